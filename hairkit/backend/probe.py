"""What works on this machine: each backend tried with a real kernel, in a process of its own.

A GPU that Taichi cannot drive may take its process down, so nothing is tried in the user's process.
"""

import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from hairkit.errors import BackendError, nearest
from hairkit.paths import cache_dir

BACKENDS = ("cpu", "cuda", "vulkan")
"""Backends by name, in the order of the table that ``hairkit backends`` prints."""

_LIMIT_S = 60.0

_TRIAL = Path(__file__).with_name("trial.py")


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What came of trying one backend."""

    name: str
    """The backend, one of :data:`BACKENDS`."""

    works: bool
    """Whether a real kernel ran and its answer was right."""

    device: str
    """The device's name, as far as it tells one; empty when it does not work."""

    reason: str
    """Why it does not work, one line; empty when it works."""

    @property
    def software(self) -> bool:
        """Whether the device is a CPU that stands in for a GPU, such as Mesa's lavapipe."""
        return bool(re.search(r"llvmpipe|lavapipe|swiftshader", self.device, re.IGNORECASE))


def check_backend_name(name: str) -> str:
    """Return the name of a backend in lower case.

    Raises:
        BackendError: There is no backend of that name.
    """
    lowered = name.strip().lower()
    if lowered not in (*BACKENDS, "auto"):
        known = ", ".join((*BACKENDS, "auto"))
        raise BackendError(
            f"backend {name!r}: expected one of {known}{nearest(name, (*BACKENDS, 'auto'))}"
        )
    return lowered


def probe_backend(name: str) -> Probe:
    """Try one backend in a subprocess with a real kernel whose answer is known."""
    return _try(check_backend_name(name))


def probe_backends() -> list[Probe]:
    """Try every backend; see :func:`probe_backend`."""
    return [probe_backend(name) for name in BACKENDS]


def require_backend(name: str) -> Probe:
    """Return the probe of a backend that works, from the cache where it worked before.

    Raises:
        BackendError: It does not work here; the message says why.
    """
    cached = _read_cached(name)
    if cached is not None:
        return cached
    probe = probe_backend(name)
    if not probe.works:
        raise BackendError(f"backend {name!r} does not work on this machine: {probe.reason}")
    _write_cached(probe)
    return probe


def require_window(*, hidden: bool = False) -> None:
    """Make sure, in a subprocess, that a GGUI window can open; not cached, displays come and go.

    Args:
        hidden: Whether it needs no display.

    Raises:
        BackendError: It cannot; the message says what is missing.
    """
    probe = _try("window" if hidden else "display")
    if not probe.works:
        raise BackendError(f"no window can open here: {probe.reason}")


def choose_backend() -> str:
    """Return what ``auto`` means here: CUDA, else Vulkan on a real GPU, else the CPU."""
    if _library_exists("libcuda.so.1", "nvcuda.dll"):
        try:
            return require_backend("cuda").name
        except BackendError:
            pass
    if os.path.isdir("/dev/dri") or sys.platform == "win32":
        try:
            if not require_backend("vulkan").software:
                return "vulkan"
        except BackendError:
            pass
    return "cpu"


def _try(name: str) -> Probe:
    """Run a trial in a subprocess."""
    try:
        run = subprocess.run(
            [sys.executable, str(_TRIAL), name],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Probe(name=name, works=False, device="", reason=f"no answer within {_LIMIT_S:.0f} s")
    output = run.stdout + run.stderr
    verdict = re.search(r"HAIRKIT-PROBE (.*)", output)
    if verdict and verdict.group(1) == "ok":
        return Probe(name=name, works=True, device=_device_name(name, output), reason="")
    return Probe(name=name, works=False, device="", reason=_reason(verdict, output, run.returncode))


def _library_exists(*names: str) -> bool:
    import ctypes

    for name in names:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return True
    return False


def _device_name(name: str, output: str) -> str:
    if name == "cpu":
        return _processor()
    if name == "cuda":
        return _cuda_device()
    found = re.search(r"HAIRKIT-DEVICE (.*)", output)
    return found.group(1) if found else "unnamed"


def _cuda_device() -> str:
    import ctypes

    try:
        cuda = ctypes.CDLL("libcuda.so.1" if sys.platform != "win32" else "nvcuda.dll")
        text = ctypes.create_string_buffer(128)
        if cuda.cuInit(0) == 0 and cuda.cuDeviceGetName(text, 128, 0) == 0:
            return text.value.decode()
    except OSError:
        pass
    return "unnamed"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return f"{line.split(':', 1)[1].strip()}, {os.cpu_count()} threads"
    except OSError:
        pass
    return f"{os.cpu_count()} threads"


def _reason(verdict: re.Match[str] | None, output: str, code: int) -> str:
    if verdict:
        return verdict.group(1)
    wanted = [
        line.strip()
        for line in output.splitlines()
        if re.search(r"RuntimeError|RHI Error|not (found|supported)|AssertionError", line)
    ]
    if wanted:
        return re.sub(r"\s+", " ", re.sub(r"\x1b\[[0-9;]*m|^\[[^]]*\]\s*", "", wanted[-1]))[:200]
    return f"its process ended with {code}"


def _cache_file(name: str) -> str:
    # A new driver, Taichi or processor asks for a new try.
    stamp = [importlib.metadata.version("taichi"), name, _processor()]
    for library in ("/proc/driver/nvidia/version", "/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"):
        if os.path.exists(library):
            stamp.append(f"{library} {os.stat(library).st_mtime_ns}")
    if name == "cuda":
        stamp.append(_cuda_device())
    digest = hashlib.sha256("\n".join(stamp).encode()).hexdigest()[:16]
    return os.path.join(cache_dir(), f"probe-{name}-{digest}.json")


def _read_cached(name: str) -> Probe | None:
    try:
        with open(_cache_file(name), encoding="utf-8") as file:
            return Probe(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None


def _write_cached(probe: Probe) -> None:
    path = _cache_file(probe.name)
    beside = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(beside, "w", encoding="utf-8") as file:
            json.dump(asdict(probe), file)
        os.replace(beside, path)
    except OSError:
        # A cache that cannot be written costs a second at the next start, nothing else.
        pass
