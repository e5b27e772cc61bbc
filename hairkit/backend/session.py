"""One Taichi runtime at a time, owned by the thread that opened it."""

import contextlib
import importlib.metadata
import io
import os
import threading
from dataclasses import dataclass, field
from typing import Any

import taichi

from hairkit.backend.frontend import quicken
from hairkit.backend.probe import check_backend_name, choose_backend, require_backend
from hairkit.errors import SessionError
from hairkit.paths import cache_dir

CPU_LANES = 8
"""Strands that share a vector on the CPU: eight f32 fill an AVX register."""


@dataclass(kw_only=True)
class Session:
    """Taichi's runtime: which backend, how many threads, and which thread owns it.

    ``ti.init`` kills every field of the runtime before it, and touching one of those takes the
    process down. Everything that holds fields keeps its session and asks :meth:`check` first.
    """

    name: str
    """The backend: ``cpu``, ``cuda`` or ``vulkan``."""

    threads: int
    """CPU threads that a parallel loop may use; 1 runs loops in the calling thread."""

    debug: bool
    """Whether Taichi checks indices (slow)."""

    generation: int
    """How many runtimes this process has opened, this one included."""

    lanes: int
    """Strands in one vector: 8 on the CPU, 1 on a GPU, where threads are the lanes."""

    owner: int = field(default_factory=threading.get_ident)
    """The thread that may use it."""

    shared: dict[str, Any] = field(default_factory=dict)
    """What lives as long as the runtime and is made once, such as the arena of fields."""

    @property
    def gpu(self) -> bool:
        """Whether threads of a GPU do the work."""
        return self.name != "cpu"

    def check(self) -> None:
        """Raise unless this runtime is alive and the calling thread owns it.

        Raises:
            SessionError: The runtime was closed, or another thread owns it.
        """
        if _current is not self:
            raise SessionError(
                f"this world belongs to session {self.generation} ({self.name}), which was closed "
                "when another backend was opened; expected a world of the current session"
            )
        if threading.get_ident() != self.owner:
            raise SessionError(
                f"the {self.name} session belongs to another thread; expected a call from the "
                "thread that opened it (hand work over with world.post)"
            )


_current: Session | None = None
_opened = 0


def current_session() -> Session | None:
    """Return the session that is open, if any."""
    return _current


def open_session(
    backend: str | None = None, *, threads: int | None = None, debug: bool | None = None
) -> Session:
    """Open Taichi's runtime, or return the one that is open if it is the one asked for.

    Args:
        backend: ``cpu``, ``cuda``, ``vulkan`` or ``auto``; by default the environment's
            ``HAIRKIT_BACKEND``, else ``auto``.
        threads: CPU threads for parallel loops; by default all cores.
        debug: Check indices inside kernels; by default whether ``HAIRKIT_DEBUG`` is set.

    Raises:
        BackendError: The backend is unknown, or does not work here; never a silent fall-back.
        SessionError: Another thread owns the open runtime.
    """
    global _current, _opened
    name = check_backend_name(backend or os.environ.get("HAIRKIT_BACKEND") or "auto")
    if name == "auto":
        # A second world on "auto" joins the session that is open.
        name = _current.name if _current is not None else choose_backend()
    wanted_threads = threads if threads is not None else (os.cpu_count() or 1)
    wanted_debug = bool(os.environ.get("HAIRKIT_DEBUG")) if debug is None else debug
    if _current is not None:
        same = _current.name == name and _current.debug == wanted_debug
        if same and (_current.gpu or threads is None or _current.threads == wanted_threads):
            _current.check()
            return _current
        if threading.get_ident() != _current.owner:
            _current.check()
    if name != "cpu":
        require_backend(name)
    cache = os.path.join(cache_dir(), f"taichi-{importlib.metadata.version('taichi')}")
    os.makedirs(cache, exist_ok=True)
    # Taichi prints which arch it starts on, straight to standard output.
    quicken()
    ti: Any = taichi
    with contextlib.redirect_stdout(io.StringIO()):
        ti.init(
            arch={"cpu": ti.cpu, "cuda": ti.cuda, "vulkan": ti.vulkan}[name],
            enable_fallback=False,
            default_fp=ti.f32,
            default_ip=ti.i32,
            # On the CPU it would let sums be regrouped lane by lane, and LLVM would no longer find
            # the lanes side by side (a fifth slower); it also saves no fused operation worth that.
            fast_math=name != "cpu",
            debug=wanted_debug,
            cpu_max_num_threads=wanted_threads,
            offline_cache=True,
            offline_cache_file_path=cache,
            # A third of the compile time, and the solver runs no slower: LLVM does the same again.
            advanced_optimization=False,
            log_level=ti.ERROR,
        )
    _opened += 1
    _current = Session(
        name=name,
        threads=wanted_threads,
        debug=wanted_debug,
        generation=_opened,
        lanes=1 if name != "cpu" else CPU_LANES,
    )
    return _current
