"""Fifty characters with three kinds of hair come and go for a minute: nothing is left over."""

import gc
import threading
import weakref

import numpy as np
from sway_stage import FRAME, RIGGED, Clock, FakeWorld, Rigger, Threads, moved

from hairkit.draw.camera import Camera
from hairkit.sway import (
    Accessory,
    Budget,
    Character,
    HairManager,
    Stage,
    attach,
    hair_rigged,
    registry,
)

SOURCES = ("good", "already skinned", "not permitted")
SEATS, CHAINS, PASSES = 50, 40, 3
CAMERA = Camera(position=(0.0, 1.5, 6.0), target=(0.0, 1.5, 0.0), fov=0.9)


class Crowd:
    """People on a stage, by their names; none is held after going."""

    def __init__(self, manager: HairManager, stage: Stage, world: FakeWorld) -> None:
        self.manager, self.stage, self.world = manager, stage, world
        self.rng = np.random.default_rng(11)
        self.there: list[Character] = []
        self.ever: list[weakref.ref[Character]] = []
        self.bound: set[str] = set()
        self.told: list[tuple[str, str]] = []
        self.left_early = 0
        hair_rigged.connect(self.note, sender=manager)

    def note(self, _: object, *, character: Character, mesh: Accessory, **__: object) -> None:
        """Write down whose hair was rigged."""
        self.told.append((character.name, mesh.source))

    def change(self) -> None:
        """Let some come, some go and some move."""
        rng = self.rng
        if rng.random() < 0.15 and len(self.there) < SEATS:
            hair = Accessory("hair", source=SOURCES[int(rng.integers(3))])
            someone = Character(str(len(self.ever)), accessories=[hair, Accessory("Cap")])
            self.stage.add(someone)
            self.there.append(someone)
            self.ever.append(weakref.ref(someone))
        if self.there and rng.random() < 0.09:
            gone = self.there.pop(int(rng.integers(len(self.there))))
            self.left_early += gone.name not in self.bound
            self.stage.remove(gone)
        for someone in self.there:
            if rng.random() < 0.1:
                x, _, z = rng.normal(size=3)
                someone.head_pose = moved(4.0 * x, 1.6, 3.0 * z)

    def check(self) -> None:
        """Compare what sways with who is there."""
        swaying = self.manager.swaying
        assert sum(each.chains for each in swaying if each.active) <= CHAINS
        assert {id(b) for b in self.world.bindings} == {id(each.binding) for each in swaying}
        count = 0
        for someone in self.there:
            bound = self.manager.bindings(someone)
            for accessory, each in bound.items():
                assert accessory.name == "hair"
                assert (each.rigged is None) == (accessory.source == "not permitted")
                self.bound.add(someone.name)
            assert len(bound) == (someone.name in self.bound)
            count += len(bound)
        assert count == len(swaying)

    def leave(self) -> None:
        """Let all go."""
        for someone in self.there:
            self.stage.remove(someone)
        self.there.clear()

    def alive(self) -> int:
        """Return how many of all that ever came are in memory."""
        gc.collect()
        return sum(someone() is not None for someone in self.ever)


def test_crowd_comes_and_goes():
    """Run a minute of frames: each bound once, the budget kept, registries empty, memory flat."""
    clock, threads, world, stage, rigger = Clock(), Threads(), FakeWorld(), Stage(), Rigger()
    before = set(threading.enumerate())
    manager = attach(
        stage,
        world=world,
        clock=clock,
        start=threads,
        rigger=rigger,
        reader=lambda *_, **__: RIGGED,
        budget=Budget("auto", CAMERA, measure=lambda: CHAINS),
        passes=PASSES,
    )
    crowd = Crowd(manager, stage, world)
    for frame in range(int(60.0 / FRAME)):
        crowd.change()
        clock.now += FRAME
        manager.update()
        if threads.waiting and crowd.rng.random() < 0.3:
            threads.waiting.pop(int(crowd.rng.integers(len(threads.waiting)))).run()
        crowd.check()
        if frame % 500 == 499:
            # Who went is held by nobody but a pass that has not ended.
            assert crowd.alive() <= len(crowd.there) + PASSES
    # The run held what it is meant to hold.
    assert len(crowd.there) > 40 and crowd.left_early > 10 and len(crowd.bound) > 100
    assert world.ever == len(crowd.bound)
    assert len(crowd.told) == len(set(crowd.told)) > 30
    assert {source for _, source in crowd.told} == {"good"}
    crowd.leave()
    threads.run()
    manager.update()
    assert world.bindings == [] and manager.failures == [] and manager.swaying == []
    assert registry.sizes() == (0, 0) and crowd.alive() == 0
    manager.destroy()
    assert threads.waiting == [] and set(threading.enumerate()) == before
    gone = weakref.ref(manager)
    del manager, crowd
    gc.collect()
    assert gone() is None
