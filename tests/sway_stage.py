"""A clock that is set, threads that are stepped, and a world that only counts."""

import weakref
from collections.abc import Callable
from typing import Any

import gltf_scenes as g
import numpy as np

from hairkit.errors import HairkitError, RigError
from hairkit.rigging import RiggedHair, rig
from hairkit.sway import (
    Accessory,
    ChainSettings,
    Character,
    HairManager,
    Stage,
    attach,
    hair_rigged,
    rig_failed,
)
from hairkit.sway.manager import DELAY_S

FRAME = 1.0 / 64.0
"""A frame that binary numbers hold exactly, so that times add up."""


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return the time [s]."""
        return self.now


class Work:
    """Work that waits to be run."""

    def __init__(self, work: Callable[[], Any], name: str) -> None:
        self.work, self.name, self.alive = work, name, True

    def run(self) -> None:
        """Do it, as its thread would."""
        try:
            self.work()
        finally:
            self.alive = False
            self.work = lambda: None

    def is_alive(self) -> bool:
        """Return whether it has not ended."""
        return self.alive

    def join(self, timeout: float | None = None) -> None:
        """Do not wait: nothing would happen."""


class Threads:
    """Starts work that runs when told to."""

    def __init__(self) -> None:
        self.waiting: list[Work] = []

    def __call__(self, work: Callable[[], Any], name: str) -> Work:
        """Keep work until it is run."""
        self.waiting.append(Work(work, name))
        return self.waiting[-1]

    def run(self) -> int:
        """Run what waits, also what that starts, and return how much it was."""
        count = 0
        while self.waiting:
            self.waiting.pop(0).run()
            count += 1
        return count


class FakeBinding:
    """A binding that keeps what it is told."""

    def __init__(self, what: Any, settings: ChainSettings, pose: np.ndarray, **more: Any) -> None:
        self.what, self.settings, self.more = what, settings, more
        self.active = True
        self.poses = [np.array(pose)]

    @property
    def position(self) -> np.ndarray:
        """Where it is."""
        return self.poses[-1][:3, 3]

    def set_pose(self, pose: np.ndarray) -> None:
        """Keep a pose."""
        self.poses.append(np.array(pose))


class FakeWorld:
    """A world that lists what is in it."""

    def __init__(self) -> None:
        self.bindings: list[FakeBinding] = []
        self.ever = 0

    def add_chains(self, rigged: Any, settings: ChainSettings, *, pose: Any) -> FakeBinding:
        """Add chains."""
        return self._add(FakeBinding(rigged, settings, pose))

    def add_pendulum(
        self, length: float, settings: ChainSettings, *, pose: Any, down: Any
    ) -> FakeBinding:
        """Add a pendulum."""
        return self._add(FakeBinding(length, settings, pose, down=down))

    def most_chains(self) -> int:
        """Say what a device could."""
        return 7

    def remove(self, binding: FakeBinding) -> None:
        """Remove what is there."""
        if binding not in self.bindings:
            raise HairkitError("this binding is not in this world")
        self.bindings.remove(binding)

    @property
    def kinds(self) -> list[str]:
        """What is in it: ``chains`` or ``pendulum`` each."""
        return ["pendulum" if isinstance(b.what, float) else "chains" for b in self.bindings]

    def _add(self, binding: FakeBinding) -> FakeBinding:
        self.bindings.append(binding)
        self.ever += 1
        return binding


RIGGED = rig(g.card_mesh())
"""A rigged mesh of three chains."""


class Rigger:
    """Rigs by the source's word: ``good``, or the kind of failure; counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.options: dict[str, Any] = {}
        self.during: Callable[[], Any] | None = None

    def __call__(self, source: Any, **options: Any) -> RiggedHair:
        """Rig, or raise."""
        self.asked.append(source)
        self.options = options
        if self.during is not None:
            during, self.during = self.during, None
            during()
        if isinstance(source, Exception):
            raise source
        if source != "good":
            raise RigError(source, f"{source}; expected another mesh")
        return RIGGED


def moved(x: float, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    """Return a translation."""
    matrix = np.eye(4)
    matrix[:3, 3] = x, y, z
    return matrix


MADE: list[weakref.ref[HairManager]] = []
"""Managers of the test."""


class Show:
    """A stage with a manager, and all that it needs."""

    def __init__(self, **options: Any) -> None:
        self.clock, self.threads, self.stage = Clock(), Threads(), Stage()
        self.rigger = Rigger()
        self.world: FakeWorld | None = options.pop("world", FakeWorld())
        self.options = {
            "world": self.world,
            "clock": self.clock,
            "start": self.threads,
            "rigger": self.rigger,
            "reader": lambda *_, **__: RIGGED,
            **options,
        }
        self.manager = self.attach()
        self.said: list[tuple[str, str, Any]] = []
        hair_rigged.connect(self._rigged)
        rig_failed.connect(self._failed)

    def attach(self, **options: Any) -> HairManager:
        """Attach a manager to the stage."""
        made = attach(self.stage, **{**self.options, **options})
        MADE.append(weakref.ref(made))
        return made

    def _rigged(self, _: Any, *, character: Any, mesh: Any, bone_names: Any) -> None:
        self.said.append((character.name, mesh.name, bone_names))

    def _failed(self, _: Any, *, character: Any, mesh: Any, error: Any) -> None:
        self.said.append((character.name, mesh.name, error.kind))

    def add(self, *sources: Any, name: str = "Ann", local: bool = False) -> Character:
        """Let a character with hair come."""
        hair = [Accessory(f"hair {n}", source=source) for n, source in enumerate(sources)]
        character = Character(name, accessories=hair, local=local)
        self.stage.add(character)
        return character

    def wait(self, seconds: float = DELAY_S) -> None:
        """Let time pass and update."""
        self.clock.now += seconds
        self.manager.update()

    def settle(self) -> None:
        """Let everything happen that is due."""
        for _ in range(4):
            self.wait()
            self.threads.run()
        self.manager.update()

    @property
    def kinds(self) -> list[str]:
        """What is in the world."""
        assert self.world is not None
        return self.world.kinds


MakeShow = Callable[..., Show]
"""Makes shows in a test that are cleared away after it."""
