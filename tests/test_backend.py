"""Backends: found out by trying, never swapped in silence, one session at a time."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import BACKENDS as WANTED

import hairkit.backend.probe as probe_module
import hairkit.backend.session as session_module
from hairkit.backend import (
    BACKENDS,
    Probe,
    bind,
    choose_backend,
    current_session,
    open_session,
    probe_backend,
    probe_backends,
    ti,
)
from hairkit.errors import BackendError, HairkitError
from hairkit.sim.world import World


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Let every backend but the CPU fail its trial, with an empty cache; list the trials."""
    tried: list[str] = []

    def fail(name: str) -> Probe:
        tried.append(name)
        works = name == "cpu"
        return Probe(name=name, works=works, device="x" * works, reason="" if works else "no card")

    monkeypatch.setenv("HAIRKIT_CACHE", str(tmp_path))
    monkeypatch.setattr(probe_module, "probe_backend", fail)
    return tried


def test_probe_tries_every_backend_and_the_cpu_works() -> None:
    """Probe all: a device for each that works, a one-line reason for each that does not."""
    found = {probe.name: probe for probe in probe_backends()}
    assert tuple(found) == BACKENDS
    assert found["cpu"].works and found["cpu"].device
    for probe in found.values():
        assert bool(probe.device) == probe.works
        assert bool(probe.reason) != probe.works
        assert "\n" not in probe.reason


@pytest.mark.parametrize("name", WANTED)
def test_wanted_backends_work_here(name: str) -> None:
    """Probe what HAIRKIT_TEST_BACKENDS asks for: missing is a failure, not a reason to skip."""
    found = probe_backend(name)
    assert found.works, found.reason


@pytest.mark.parametrize("name", ["metal", "gpu", "cuda11", "volcan", ""])
def test_unknown_backend_is_an_error_that_names_the_known(name: str) -> None:
    """Ask for backends that are none: one line with the choices."""
    for call in (probe_backend, *([] if name == "" else [open_session, World])):
        with pytest.raises(BackendError) as error:
            call(name)
        text = str(error.value)
        assert "\n" not in text
        assert all(known in text for known in (repr(name), *BACKENDS, "auto"))


def test_misspelt_backend_suggests_the_nearest() -> None:
    """Misspell Vulkan: the message says what was meant."""
    with pytest.raises(BackendError, match="did you mean 'vulkan'"):
        open_session("volcan")


@pytest.mark.parametrize("name", ["cuda", "vulkan"])
def test_missing_backend_is_an_error_and_never_another_one(broken: list[str], name: str) -> None:
    """Ask for a backend that fails its trial: the reason in one line, and the session stays."""
    before = current_session()
    if before is not None and before.name == name:
        open_session("cpu")
        before = current_session()
    with pytest.raises(BackendError, match=f"{name}.*no card") as error:
        World(name)
    assert "\n" not in str(error.value)
    assert isinstance(error.value, HairkitError)
    assert current_session() is before
    assert broken == [name]


def test_failure_is_not_remembered_and_success_is(
    broken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Require a backend twice while it fails, then twice while it works: tried three times."""
    for _ in range(2):
        with pytest.raises(BackendError):
            probe_module.require_backend("vulkan")
    assert broken == ["vulkan", "vulkan"]

    def work(name: str) -> Probe:
        broken.append(name)
        return Probe(name=name, works=True, device="card", reason="")

    monkeypatch.setattr(probe_module, "probe_backend", work)
    first = probe_module.require_backend("vulkan")
    assert probe_module.require_backend("vulkan") == first
    assert broken == ["vulkan"] * 3


def test_damaged_memory_of_a_trial_is_tried_again(broken: list[str], tmp_path: Path) -> None:
    """Spoil the file that remembers a trial: the backend is tried again."""
    probe_module.require_backend("cpu")
    for file in tmp_path.iterdir():
        file.write_text("{")
    probe_module.require_backend("cpu")
    assert broken == ["cpu", "cpu"]


@pytest.mark.usefixtures("broken")
def test_auto_falls_to_the_cpu_where_nothing_else_works() -> None:
    """Choose among failing backends: the CPU."""
    assert choose_backend() == "cpu"


def test_auto_takes_no_software_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose where Vulkan is a CPU in disguise: the CPU itself, which is faster."""

    def found(name: str) -> Probe:
        if name == "cuda":
            raise BackendError("none")
        return Probe(name=name, works=True, device="llvmpipe (LLVM 15)", reason="")

    monkeypatch.setattr(probe_module, "require_backend", found)
    monkeypatch.setattr(os.path, "isdir", lambda path: True)
    assert choose_backend() == "cpu"
    assert found("vulkan").software


def test_session_is_shared_while_the_wishes_agree(backend: str) -> None:
    """Open the session again, by name, by any case, and as auto: the same one."""
    session = open_session(backend)
    assert open_session(backend.upper()) is session
    assert open_session("auto") is session
    assert open_session(backend, threads=session.threads) is session
    assert World(backend).session is World("auto").session is session
    assert World(backend).backend == backend


def test_environment_names_the_backend(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set HAIRKIT_BACKEND: a world without a name takes it, and a wrong one is an error."""
    monkeypatch.setenv("HAIRKIT_BACKEND", backend)
    assert World().backend == backend
    monkeypatch.setenv("HAIRKIT_BACKEND", "abacus")
    with pytest.raises(BackendError, match="abacus"):
        World()


def test_session_never_falls_back(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Watch how Taichi is started: its own fall-back to another backend is off."""
    asked: dict[str, object] = {}

    def init(**options: object) -> None:
        asked.update(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(ti, "init", init)
    monkeypatch.setattr(session_module, "_current", None)
    with pytest.raises(KeyboardInterrupt):
        open_session(backend)
    assert asked["enable_fallback"] is False


def test_trial_in_a_process_that_dies_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the trial's process crash: the probe says so and this process lives on."""
    real = subprocess.run

    def crash(command: list[str], **options: Any) -> Any:
        return real([sys.executable, "-c", "import os; os.abort()"], **options)

    monkeypatch.setattr(probe_module.subprocess, "run", crash)
    found = probe_backend("cpu")
    assert not found.works
    assert "-6" in found.reason


def test_trial_that_hangs_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the trial take too long: the probe says so."""

    def hang(command: list[str], **options: Any) -> Any:
        raise subprocess.TimeoutExpired(command, 60.0)

    monkeypatch.setattr(probe_module.subprocess, "run", hang)
    found = probe_backend("cpu")
    assert not found.works
    assert "no answer" in found.reason


@ti.kernel
def _weigh(scale: ti.i32, field: ti.template(), by: ti.types.ndarray(), plus: ti.types.ndarray()):
    for i in field:
        field[i] = scale * by[i] + plus[i]


def test_bound_launch_sees_what_its_arrays_hold_now(backend: str) -> None:
    """Launch a kernel bound to its arguments: as a plain call, with what arrays hold by then."""
    open_session(backend)
    bound, plain = ti.field(ti.f32, 5), ti.field(ti.f32, 5)
    by = np.arange(5, dtype=np.float32)
    plus = ti.ndarray(ti.f32, 5)
    launch = bind(_weigh, 3, bound, by, plus)
    for turn in range(4):
        by[:] = np.arange(5) + 10.0 * turn
        plus.fill(turn)
        launch()
        _weigh(3, plain, by, plus)
        assert bound.to_numpy().tolist() == plain.to_numpy().tolist()
        assert bound.to_numpy()[4] == 3 * (4 + 10 * turn) + turn


def test_bound_launch_is_a_plain_call_where_taichi_is_built_otherwise() -> None:
    """Bind what has nothing of a known kernel: it is called with its arguments."""
    seen: list[Any] = []
    bind(lambda *arguments: seen.extend(arguments), 1, "two")()
    assert seen == [1, "two"]
