"""The manager's rules, each on a clock that is set and threads that are stepped."""

import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gltf_scenes as g
import numpy as np
import pytest
from sway_stage import RIGGED, Clock, FakeWorld, Rigger, Threads, moved

import hairkit as hk
from hairkit.errors import FileError, HairkitError, RigError, SessionError
from hairkit.sway import (
    Accessory,
    ChainSettings,
    Character,
    HairManager,
    Stage,
    attach,
    hair_rigged,
    read_rig,
    registry,
    rig_failed,
)
from hairkit.sway.manager import DELAY_S
from hairkit.sway.passes import LENGTH_M
from hairkit.sway.reading import chains_of

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
            "reader": lambda _: RIGGED,
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


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Destroy every manager after its test: no claim is left in this process."""
    yield
    for made in MADE:
        manager = made()
        if manager is not None:
            manager.destroy()
    MADE.clear()
    gc.collect()
    assert registry.sizes() == (0, 0)


@pytest.fixture
def show() -> Show:
    """Give a show with nobody on the stage."""
    return Show()


def test_registries_hold_what_is_rigged_and_bound_and_no_more(show: Show):
    """Run one hair through: claimed while it is rigged and until it is used, then bound."""
    show.add("good")
    show.wait()
    assert registry.sizes() == (0, 0)
    show.threads.run()
    assert registry.sizes() == (1, 0)
    show.manager.update()
    assert registry.sizes() == (0, 1)
    show.manager.destroy()
    assert registry.sizes() == (0, 0)


# ---- when a pass runs


def test_pass_runs_a_quarter_second_after_the_last_accessory(show: Show):
    """Dress a character 0.24 s after it came: one pass, 0.25 s later, for both."""
    ann = show.add("good")
    show.manager.update()
    show.wait(0.24)
    ann.wear(Accessory("long hair", source="good"))
    show.wait(0.2)
    assert show.threads.waiting == []
    show.wait(0.04)
    assert show.threads.waiting == []
    show.wait(0.02)
    assert len(show.threads.waiting) == 1
    show.threads.run()
    show.manager.update()
    assert show.kinds == ["chains", "chains"] and len(show.rigger.asked) == 2


def test_any_accessory_rearms_and_time_counts_from_its_coming(show: Show):
    """Put a hat on, and update late: the deadline counts from the hat, not from the update."""
    ann = show.add("good")
    show.clock.now += 0.2
    ann.wear(Accessory("Cap", kind="hat", source="good"))
    show.clock.now += 0.1
    show.manager.update()
    assert show.threads.waiting == []
    show.wait(0.15)
    assert len(show.threads.waiting) == 1
    show.threads.run()
    assert show.rigger.asked == ["good"]


def test_each_character_has_its_own_deadline(show: Show):
    """Let a second one come later: the first's pass does not wait for it."""
    show.add("good", name="Ann")
    show.clock.now += 0.2
    show.add("good", name="Ben")
    show.wait(0.05)
    assert [work.name for work in show.threads.waiting] == ["hair of Ann"]
    show.wait(0.2)
    assert len(show.threads.waiting) == 2


def test_characters_present_at_attach_are_watched_like_later_ones():
    """Attach after a character came: its hair is bound, and what it puts on later, too."""
    show = Show()
    show.manager.destroy()
    ann = show.add("good")
    show.manager = show.attach()
    show.wait(0.24)
    assert show.threads.waiting == []
    show.settle()
    assert show.kinds == ["chains"]
    ann.wear(Accessory("hair", source="good"))
    show.settle()
    assert show.kinds == ["chains", "chains"]


def test_local_watches_the_local_character_only():
    """Let a local and another character come."""
    show = Show(characters="local")
    show.add("good", name="Ann", local=True)
    show.add("good", name="Ben")
    show.settle()
    assert show.said == [("Ann", "hair 0", RIGGED.bone_names)] and show.kinds == ["chains"]
    with pytest.raises(HairkitError, match="expected all or local"):
        show.attach(characters="some")


def test_leaving_cancels_the_deadline(show: Show):
    """Go 0.2 s after coming: no pass ever starts."""
    ann = show.add("good")
    show.wait(0.2)
    show.stage.remove(ann)
    show.settle()
    assert show.rigger.asked == [] and show.kinds == []


def test_only_so_many_passes_run_at_once():
    """Let five come with room for two passes: the rest wait, in the order of coming."""
    show = Show(passes=2)
    for number in range(5):
        show.add("good", name=str(number))
    show.wait()
    assert [work.name for work in show.threads.waiting] == ["hair of 0", "hair of 1"]
    show.wait(10.0)
    assert len(show.threads.waiting) == 2
    show.threads.run()
    show.manager.update()
    assert [work.name for work in show.threads.waiting] == ["hair of 2", "hair of 3"]
    show.settle()
    assert len(show.kinds) == 5


# ---- what is bound


def test_no_match_no_bind(show: Show):
    """Wear a hat, whatever it is made of."""
    ann = Character("Ann", accessories=[Accessory("Cap", kind="hat", source="good")])
    show.stage.add(ann)
    show.settle()
    assert show.kinds == [] and show.rigger.asked == []


def test_match_is_the_users_and_may_raise(caplog: pytest.LogCaptureFixture):
    """Match by a filter of one's own that raises for one accessory: that one does not match."""

    def match(accessory: Accessory) -> bool:
        if accessory.name == "hair 0":
            raise RuntimeError("not that one")
        return True

    show = Show(match=match)
    show.add("good", "good")
    show.settle()
    assert show.kinds == ["chains"] and "not that one" in caplog.text


def test_without_a_world_nothing_is_rigged():
    """Attach without a world."""
    show = Show(world=None)
    show.add("good")
    show.settle()
    assert show.rigger.asked == [] and show.said == [] and show.manager.swaying == []


def test_options_and_settings_reach_rig_and_world():
    """Rig with the options, bind with the settings at head pose times attachment."""
    settings = ChainSettings(damping=0.5, stiffness=0.2)
    show = Show(rig={"sectors": 3, "segments": 4}, settings=settings)
    hair = Accessory("hair", source="good", attachment=moved(0.0, 0.1))
    ann = Character("Ann", head_pose=moved(2.0), accessories=[hair])
    show.stage.add(ann)
    show.settle()
    assert show.rigger.options == {"sectors": 3, "segments": 4}
    assert show.world is not None
    binding = show.world.bindings[0]
    assert binding.settings is settings
    assert np.array_equal(binding.poses[0], moved(2.0, 0.1))
    assert hair.rigged is RIGGED


def test_bindings_follow_the_head_and_only_when_it_moves(show: Show):
    """Move the head, then the attachment, then nothing."""
    ann = show.add("good")
    show.settle()
    assert show.world is not None
    binding = show.world.bindings[0]
    assert len(binding.poses) == 1
    ann.head_pose = moved(1.0)
    show.manager.update()
    ann.accessories[0].attachment = moved(0.0, 1.0)
    show.manager.update()
    show.manager.update()
    assert [pose[:2, 3].tolist() for pose in binding.poses[1:]] == [[1.0, 0.0], [1.0, 1.0]]


def test_what_is_no_mesh_gets_the_pendulum(show: Show):
    """Wear hair without a mesh: a pendulum of its length or the usual one; that is no failure."""
    ann = Character("Ann", accessories=[Accessory("hair a"), Accessory("hair b", length=0.6)])
    show.stage.add(ann)
    show.settle()
    assert show.world is not None
    assert [binding.what for binding in show.world.bindings] == [LENGTH_M, 0.6]
    assert show.world.bindings[0].more["down"] == (0.0, -1.0, 0.0)
    assert show.manager.failures == [] and show.said == [] and show.rigger.asked == []


@pytest.mark.parametrize(
    "kind",
    [
        "no vertices",
        "not finite",
        "above root",
        "bad option",
        "no such mesh",
        "unsupported",
        "not permitted",
        "unreadable",
        "out of memory",
        "lost skin",
        FileError("gone"),
        MemoryError(),
        TypeError("a bug"),
    ],
    ids=str,
)
def test_a_rig_failure_of_any_kind_gets_the_pendulum_and_is_reported(show: Show, kind: Any):
    """Fail in one way: a pendulum, one report with the reason, nothing raised."""
    wanted = kind
    if isinstance(kind, Exception):
        wanted = {FileError: "unreadable", MemoryError: "out of memory"}.get(type(kind))
    ann = show.add(kind, "good")
    show.settle()
    assert show.kinds == ["pendulum", "chains"]
    failure = show.manager.failures[0]
    assert len(show.manager.failures) == 1
    assert failure.character is ann and failure.accessory is ann.accessories[0]
    assert isinstance(failure.error, RigError) and failure.error.kind == (wanted or "unexpected")
    assert show.said[0] == ("Ann", "hair 0", failure.error.kind) and len(show.said) == 2
    assert ann.accessories[0].rigged is None
    assert len(show.rigger.asked) == 2


def test_boned_hair_is_left_and_bound_as_it_is(show: Show):
    """Wear hair with a skin: read, bound by its own chains, and told of by no signal."""
    show.add("already skinned")
    show.settle()
    assert show.kinds == ["chains"] and show.said == [] and show.manager.failures == []


def test_boned_hair_that_cannot_be_read_gets_the_pendulum():
    """Fail to read it: a pendulum and the reader's reason."""

    def reader(_: Any) -> Any:
        raise RigError("unreadable", "a knot")

    show = Show(reader=reader)
    show.add("already skinned")
    show.settle()
    assert show.kinds == ["pendulum"] and show.manager.failures[0].error.reason == "a knot"


def test_each_character_is_bound_once(show: Show):
    """Update for long after: nothing is rigged, bound or told again."""
    show.add("good", "not permitted")
    for _ in range(5):
        show.settle()
    assert show.world is not None and show.world.ever == 2
    assert len(show.said) == 2 and len(show.rigger.asked) == 2


def test_late_hair_is_bound_beside_what_is_bound(show: Show):
    """Put more hair on after the bind: it alone is added."""
    ann = show.add("good")
    show.settle()
    ann.wear(Accessory("hair b", source="good"))
    show.settle()
    assert show.world is not None
    assert show.kinds == ["chains", "chains"] and show.world.ever == 2
    assert [bound.name for bound in show.manager.bindings(ann)] == ["hair 0", "hair b"]


def test_hair_that_is_taken_off_leaves_the_world(show: Show):
    """Take it off, put it on again: it was rigged once, and is bound again."""
    ann = show.add("good", "not permitted")
    hair = ann.accessories[0]
    show.settle()
    ann.take_off(hair)
    show.manager.update()
    assert show.kinds == ["pendulum"]
    ann.wear(hair)
    show.settle()
    assert sorted(show.kinds) == ["chains", "pendulum"]
    assert show.rigger.asked.count("good") == 1 and len(show.said) == 2


def test_hair_that_is_taken_off_during_its_pass_is_not_bound(show: Show):
    """Give it to another while it is being rigged: bound there, and only there."""
    ann = show.add("good")
    ben = show.add(name="Ben")
    hair = ann.accessories[0]
    show.wait()
    show.rigger.during = lambda: ben.wear(hair)
    show.settle()
    assert show.manager.bindings(ann) == {} and list(show.manager.bindings(ben)) == [hair]
    assert show.kinds == ["chains"] and len(show.said) == 1 and show.said[0][0] == "Ben"


def test_a_world_that_takes_no_chains_gets_the_pendulum(show: Show):
    """Let the world refuse chains, then pendulums too: reported, not raised, not tried again."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise HairkitError("full")

    assert show.world is not None
    show.world.add_chains = refuse
    show.add("good")
    show.settle()
    assert show.kinds == ["pendulum"] and show.manager.failures[0].error.reason == "full"
    show.world.add_pendulum = refuse
    show.add("good", name="Ben")
    show.settle()
    show.settle()
    assert show.kinds == ["pendulum"] and len(show.manager.failures) == 2
    assert [said[2] for said in show.said if said[0] == "Ben"][1:] == ["unexpected"] * 2


def test_a_world_of_another_thread_is_said_so(show: Show):
    """Update from a thread that does not own the world: raised, and bound by the next that does."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise SessionError("another thread owns it")

    assert show.world is not None
    right = show.world.add_chains
    show.world.add_chains = refuse
    show.add("good")
    show.wait()
    show.threads.run()
    with pytest.raises(SessionError):
        show.manager.update()
    show.world.add_chains = right
    show.manager.update()
    assert show.kinds == ["chains"]


# ---- several passes and managers


def test_an_accessory_that_comes_during_a_pass_gets_one_of_its_own(show: Show):
    """Start a second pass while the first is at its hair: the one that ends last binds both."""
    ann = show.add("good")
    show.wait()
    late = Accessory("late hair", source="good")

    def during() -> None:
        ann.wear(late)
        show.wait()
        assert len(show.threads.waiting) == 1
        show.threads.run()
        show.manager.update()
        # The second pass has ended and left the first one's mesh alone; the first still runs.
        assert show.kinds == [] and show.rigger.asked == ["good", "good"]

    show.rigger.during = during
    show.threads.run()
    assert show.kinds == []
    show.manager.update()
    assert show.kinds == ["chains", "chains"]
    show.settle()
    assert show.world is not None and show.world.ever == 2 and len(show.rigger.asked) == 2


def test_bind_waits_for_hair_that_is_due(show: Show):
    """Put hair on during a pass that ends first: both are bound in one go."""
    ann = show.add("good")
    show.wait()
    ann.wear(Accessory("late hair", source="good"))
    show.threads.run()
    show.manager.update()
    assert show.kinds == []
    show.settle()
    assert show.kinds == ["chains", "chains"]


def test_two_managers_rig_a_mesh_once_and_bind_it_once_into_one_world(show: Show):
    """Let a second manager's pass meet a mesh that the first is at: skipped, then left to it."""
    other = show.attach()
    ann = show.add("good")
    show.wait()
    other.update()
    first, second = show.threads.waiting
    show.threads.waiting.clear()

    def during() -> None:
        second.run()
        other.update()
        show.clock.now += 1.0
        other.update()
        assert show.threads.waiting == [] and show.kinds == []

    show.rigger.during = during
    first.run()
    other.update()
    assert show.threads.waiting == []
    show.manager.update()
    assert show.kinds == ["chains"]
    for _ in range(3):
        other.update()
        show.settle()
    assert show.kinds == ["chains"] and show.rigger.asked == ["good"] and len(show.said) == 1
    assert ann.accessories[0] in show.manager.bindings(ann) and other.swaying == []
    # Whoever is left takes over.
    show.manager.destroy()
    other.update()
    assert show.kinds == ["chains"] and len(other.swaying) == 1


def test_two_managers_bind_into_two_worlds(show: Show):
    """Give the second manager a world of its own: rigged once, bound in both."""
    world = FakeWorld()
    other = show.attach(world=world)
    show.add("good")
    for _ in range(3):
        show.settle()
        other.update()
    assert show.kinds == world.kinds == ["chains"] and show.rigger.asked == ["good"]
    assert len(show.said) == 1


def test_the_second_manager_tries_itself_what_the_first_could_not_rig(show: Show):
    """Let the first manager's rig fail: the second waits for that, and reports on its own."""
    world = FakeWorld()
    other = show.attach(world=world)
    show.add("not permitted")
    for _ in range(3):
        show.settle()
        other.update()
    assert show.kinds == world.kinds == ["pendulum"]
    assert len(show.manager.failures) == len(other.failures) == 1


def test_a_manager_that_was_forgotten_blocks_nobody(show: Show):
    """Forget a manager undestroyed while its pass has not been collected: another one rigs."""
    show.add("good")
    other = show.attach(world=FakeWorld())
    show.clock.now += DELAY_S
    other.update()
    show.threads.run()
    gone = weakref.ref(other)
    del other
    gc.collect()
    assert gone() is None
    show.settle()
    assert show.kinds == ["chains"]


# ---- going


def test_everything_is_dropped_when_a_character_goes(show: Show):
    """Go after the bind: out of the world, out of the lists, out of memory."""
    ann = show.add("good", "not permitted")
    show.settle()
    show.stage.remove(ann)
    show.manager.update()
    assert show.kinds == [] and show.manager.failures == [] and show.manager.swaying == []
    gone = [weakref.ref(ann), *(weakref.ref(a) for a in ann.accessories)]
    del ann
    gc.collect()
    assert [ref() for ref in gone] == [None] * 3 and registry.sizes() == (0, 0)


def test_leaving_during_a_pass_binds_nothing(show: Show):
    """Go while the first of two meshes is rigged: no second rig, no bind, no signal."""
    ann = show.add("good", "good")
    show.wait()
    show.rigger.during = lambda: show.stage.remove(ann)
    show.settle()
    assert show.rigger.asked == ["good"] and show.kinds == [] and show.said == []
    assert show.world is not None and show.world.ever == 0
    assert registry.sizes() == (0, 0)


def test_leaving_and_coming_back_during_a_pass_starts_anew(show: Show):
    """Be the same object again: what the old pass found is left, a new one is told of once."""
    ann = show.add("good")
    show.wait()

    def during() -> None:
        show.stage.remove(ann)
        show.stage.add(ann)

    show.rigger.during = during
    show.settle()
    assert show.kinds == ["chains"] and len(show.said) == 1


def test_a_respawned_character_is_bound_anew(show: Show):
    """Let a new object of the same name and with the same hair come when the old has gone."""
    ann = show.add("good")
    show.settle()
    show.stage.remove(ann)
    again = Character("Ann")
    for accessory in ann.accessories:
        again.wear(accessory)
    show.stage.add(again)
    show.settle()
    assert show.world is not None
    assert show.kinds == ["chains"] and show.world.ever == 2
    assert list(show.manager.bindings(again)) == list(again.accessories)
    assert show.manager.bindings(ann) == {}


def test_destroy_leaves_nothing_behind(show: Show):
    """Destroy with one bound, one in its pass and one due: nothing happens any more."""
    show.add("good", name="Ann")
    show.settle()
    show.add("good", name="Ben")
    show.wait()
    show.add("good", name="Cem")
    show.manager.destroy()
    show.manager.destroy()
    assert show.kinds == [] and not any(
        signal.receivers
        for signal in (
            show.stage.character_added,
            show.stage.character_removed,
            show.stage.accessory_added,
            show.stage.accessory_removed,
        )
    )
    said = list(show.said)
    show.settle()
    show.add("good", name="Dan")
    show.settle()
    assert show.kinds == [] and show.said == said and registry.sizes() == (0, 0)
    gone = weakref.ref(show.manager)
    del show.manager
    gc.collect()
    assert gone() is None


def test_a_receiver_may_destroy_the_manager(show: Show):
    """Destroy it from the signal that it sends: the update ends quietly."""

    def receiver(*_: Any, **__: Any) -> None:
        show.manager.destroy()

    hair_rigged.connect(receiver)
    show.add("good", "good")
    show.settle()
    assert show.kinds == [] and registry.sizes() == (0, 0)


def test_a_world_that_was_closed_first_does_not_stop_destroy(show: Show):
    """Empty the world, then destroy the manager."""
    show.add("good")
    show.settle()
    assert show.world is not None
    show.world.bindings.clear()
    show.manager.destroy()
    assert show.manager.swaying == []


# ---- callbacks


def test_on_rigged_is_called_on_its_own_thread():
    """Rig two: the callback runs in work of its own, beside the pass and the update."""
    calls: list[Any] = []
    show = Show(on_rigged=lambda *what: calls.append(what))
    ann = show.add("good", "not permitted")
    show.wait()
    show.threads.run()
    show.manager.update()
    assert calls == [] and len(show.threads.waiting) == 1 and show.kinds
    show.threads.run()
    assert calls == [(ann, ann.accessories[0], RIGGED.bone_names)]


def test_callbacks_that_raise_are_logged_and_stop_nothing(caplog: pytest.LogCaptureFixture):
    """Raise in on_rigged and in a receiver: all is bound, later characters too."""

    def bad(*_: Any, **__: Any) -> None:
        raise RuntimeError("mine")

    show = Show(on_rigged=bad)
    hair_rigged.connect(bad)
    show.add("good")
    show.settle()
    show.add("good", name="Ben")
    show.settle()
    assert show.kinds == ["chains", "chains"] and len(show.said) == 2
    assert caplog.text.count("RuntimeError: mine") == 4


def test_signal_can_be_asked_of_one_manager(show: Show):
    """Connect to one manager's signals only."""
    other = show.attach(world=FakeWorld(), characters="local")
    heard: list[Any] = []

    def receiver(sender: Any, **_: Any) -> None:
        heard.append(sender)

    hair_rigged.connect(receiver, sender=other)
    show.add("good")
    show.settle()
    assert heard == [] and len(show.said) == 1


# ---- real threads and real meshes


def test_real_threads_rig_real_files(tmp_path: Path):
    """Rig a file, a boned file, arrays and an empty mesh on real threads; none is left."""
    path = g.write(tmp_path / "a.glb", g.hair_scene())
    boned = hk.rig(path, sectors=2).save(tmp_path / "boned.glb")
    before = set(threading.enumerate())
    calls: list[Any] = []
    told = threading.Event()

    def on_rigged(*what: Any) -> None:
        calls.append((threading.current_thread(), *what))
        if len(calls) == 2:
            told.set()

    stage, world, clock = Stage(), FakeWorld(), Clock()
    manager = attach(stage, world=world, on_rigged=on_rigged, clock=clock, rig={"sectors": 4})
    empty = g.card_mesh()[0], np.zeros((0, 3), int)
    sources = [path, boned, g.card_mesh(), empty]
    hair = [Accessory(f"hair {n}", source=source) for n, source in enumerate(sources)]
    stage.add(Character("Ann", accessories=hair))
    clock.now += 1.0
    manager.update()
    for thread in set(threading.enumerate()) - before:
        thread.join(30.0)
    manager.update()
    assert told.wait(30.0)
    assert world.kinds == ["chains", "chains", "chains", "pendulum"]
    assert [len(b.what.plan.chains) for b in world.bindings[:3]] == [4, 2, 4]
    assert {call[0] for call in calls}.isdisjoint({threading.main_thread()})
    assert [call[2] for call in calls] == [hair[0], hair[2]]
    assert manager.failures[0].error.kind == "no vertices"
    manager.destroy()
    assert set(threading.enumerate()) <= before and world.bindings == []


def test_destroy_abandons_a_pass_that_does_not_end(show: Show, caplog: pytest.LogCaptureFixture):
    """Let a rig hang on a real thread: destroy returns; what it finds later is thrown away."""
    go_on, began = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def rigger(_: Any, **__: Any) -> Any:
        threads.append(threading.current_thread())
        began.set()
        go_on.wait(30.0)
        return RIGGED

    stage, world, clock = Stage(), FakeWorld(), Clock()
    manager = attach(stage, world=world, clock=clock, rigger=rigger)
    stage.add(Character("Ann", accessories=[Accessory("hair", source="x")]))
    clock.now += 1.0
    manager.update()
    assert began.wait(30.0)
    manager.destroy(timeout=0.01)
    assert "abandoned" in caplog.text
    gone = weakref.ref(manager)
    del manager
    gc.collect()
    assert gone() is None
    go_on.set()
    threads[0].join(30.0)
    assert world.ever == 0 and registry.sizes() == (0, 0)


def test_length_of_a_pendulum_is_the_meshs(show: Show):
    """Fail to rig a mesh that goes from 1.7 m down to 1.34 m: it hangs 0.36 m."""

    def rigger(*_: Any, **__: Any) -> Any:
        raise RigError("not permitted", "no")

    show.manager.destroy()
    show.manager = show.attach(rigger=rigger)
    show.add(g.card_mesh())
    show.settle()
    assert show.world is not None
    assert show.world.bindings[0].what == pytest.approx(0.36, abs=1e-6)


# ---- hair that has bones


def test_reading_a_rig_gives_what_was_planned(tmp_path: Path):
    """Read back a rigged file of a scaled and turned mesh: the plan's bones, chains, weights."""
    path = g.write(tmp_path / "in.glb", g.hair_scene(scale=[2.0, 3.0, 2.0]))
    made = hk.rig(path, sectors=4, segments=2, max_influences=4)
    saved = made.save(tmp_path / "out.glb")
    for source in (saved, saved.read_bytes()):
        read = read_rig(source)
        assert read.bone_names == made.bone_names and read.plan.chains == made.plan.chains
        assert read.plan.parents.tolist() == made.plan.parents.tolist()
        assert read.plan.positions == pytest.approx(made.plan.positions, abs=1e-6)
        assert read.into_scene == pytest.approx(made.into_scene, abs=1e-6)
        assert read.plan.weights.weights == pytest.approx(made.plan.weights.weights, abs=1e-6)
        nodes = [read.document.json["nodes"][j]["name"] for j in read.joints]
        assert nodes == read.bone_names
    with pytest.raises(RigError, match="has no skin"):
        read_rig(path)


def test_chains_of_a_forked_skeleton_share_no_bone():
    """Fork below the root and in a chain: each bone once, the longest branch goes on."""
    #            0
    #          1   2
    #        3  4
    #        |
    #        5
    assert chains_of([-1, 0, 0, 1, 1, 3]) == ((1, 3, 5), (4,), (2,))
    assert chains_of([-1]) == ()


def test_joints_with_no_joint_in_common_hang_below_one_bone(tmp_path: Path):
    """Read a skin whose first joint is not a joint any more: the node above stands for it."""
    made = hk.rig(g.write(tmp_path / "in.glb", g.hair_scene()), sectors=2, segments=2)
    data, binary = g.unpack(made.save(tmp_path / "out.glb"))
    skin = data["skins"][0]
    root = skin["joints"][0]
    weights = data["meshes"][0]["primitives"][0]["attributes"]["JOINTS_0"]
    # Its vertices go to the other joints; rows move down by one, those of the root stay at 0.
    view = data["bufferViews"][data["accessors"][weights]["bufferView"]]
    at, size = view["byteOffset"], view["byteLength"]
    rows = np.frombuffer(binary[at : at + size], np.uint8)
    binary = (
        binary[:at] + (np.maximum(rows, 1) - 1).astype(np.uint8).tobytes() + binary[at + size :]
    )
    skin["joints"] = skin["joints"][1:]
    back = data["accessors"][skin["inverseBindMatrices"]]
    back["byteOffset"], back["count"] = 64, back["count"] - 1
    del skin["skeleton"]
    path = tmp_path / "rootless.glb"
    path.write_bytes(g.glb(data, binary))
    read = read_rig(path)
    assert read.plan.chains == ((1, 2), (3, 4))
    assert read.joints[0] == root and read.bone_names[1:] == made.bone_names[1:]
    assert read.plan.positions[1:] == pytest.approx(made.plan.positions[1:], abs=1e-6)
