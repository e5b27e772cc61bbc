"""Managers beside each other and their end: nobody is rigged twice, nothing is left over."""

import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import gltf_scenes as g
import numpy as np
import pytest
from sway_stage import RIGGED, Clock, FakeWorld, MakeShow, Rigger, Show, moved

import hairkit as hk
from hairkit.errors import RigError
from hairkit.sway import (
    Accessory,
    Character,
    Stage,
    attach,
    hair_rigged,
    registry,
)
from hairkit.sway.manager import DELAY_S
from hairkit.sway.passes import HairPass, Mailbox, Tools

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


def test_bind_waits_for_a_mesh_that_another_manager_is_at(show: Show):
    """Find one mesh of two while another manager is at the other: both are bound in one go."""
    world = FakeWorld()
    other = show.attach(world=world)
    show.add("good", "good")
    show.wait()
    other.update()
    first, second = show.threads.waiting
    show.threads.waiting.clear()

    def during() -> None:
        second.run()
        other.update()
        assert len(show.rigger.asked) == 2 and world.kinds == []

    show.rigger.during = during
    first.run()
    show.manager.update()
    assert show.kinds == ["chains", "chains"] and world.kinds == []
    for _ in range(2):
        other.update()
        show.threads.run()
    other.update()
    assert world.kinds == ["chains", "chains"] and len(show.rigger.asked) == 2


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


def test_going_and_coming_between_two_updates_is_seen(show: Show):
    """Go and come back before the manager looks: dropped, and bound anew."""
    ann = show.add("good")
    show.settle()
    show.stage.remove(ann)
    show.stage.add(ann)
    show.manager.update()
    assert show.kinds == []
    show.settle()
    assert show.world is not None and show.kinds == ["chains"] and show.world.ever == 2


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


def test_on_rigged_is_called_on_its_own_thread(make_show: MakeShow):
    """Rig two: the callback runs in work of its own, beside the pass and the update."""
    calls: list[Any] = []
    show = make_show(on_rigged=lambda *what: calls.append(what))
    ann = show.add("good", "not permitted")
    show.wait()
    show.threads.run()
    show.manager.update()
    assert calls == [] and len(show.threads.waiting) == 1 and show.kinds
    show.threads.run()
    assert calls == [(ann, ann.accessories[0], RIGGED.bone_names)]


def test_callbacks_that_raise_are_logged_and_stop_nothing(
    make_show: MakeShow, caplog: pytest.LogCaptureFixture
):
    """Raise in on_rigged and in a receiver: all is bound, later characters too."""

    def bad(*_: Any, **__: Any) -> None:
        raise RuntimeError("mine")

    show = make_show(on_rigged=bad)
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


def test_a_pass_that_ends_after_destroy_claims_nothing(make_show: MakeShow):
    """Close the mailbox while a mesh is rigged: the pass gives it back, though it is still held."""
    show, mailbox = make_show(), Mailbox()
    ann = show.add("good")
    tools = Tools(
        match=lambda _: True, rigger=show.rigger, reader=show.rigger, options={}, store=None
    )
    work = HairPass(show.stage, ann, {}, tools, mailbox)
    show.rigger.during = mailbox.close
    work.run()
    assert len(work.found) == 1 and not mailbox.letters and registry.sizes() == (0, 0)


def test_changes_on_many_threads_end_well():
    """Let four threads change the stage while passes run on threads of their own."""
    before = set(threading.enumerate())
    stage, world, clock, rigger = Stage(), FakeWorld(), Clock(), Rigger()
    manager = attach(stage, world=world, clock=clock, rigger=rigger, passes=3)

    def changes(number: int) -> None:
        for turn in range(60):
            someone = Character(f"{number}.{turn}", accessories=[Accessory("hair", source="good")])
            stage.add(someone)
            late = Accessory("hair", source="unreadable")
            someone.wear(late)
            someone.head_pose = moved(float(turn))
            if turn % 3 == 0:
                someone.take_off(late)
            if turn % 4:
                stage.remove(someone)

    threads = [threading.Thread(target=changes, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        clock.now += 0.1
        manager.update()
    while len(manager.swaying) < sum(len(c.accessories) for c in stage.characters):
        clock.now += 0.1
        manager.update()
        for thread in set(threading.enumerate()) - before:
            thread.join(30.0)
    assert len(stage.characters) == 60 and len(world.bindings) == len(manager.swaying) == 100
    manager.destroy()
    assert world.bindings == [] and set(threading.enumerate()) <= before


@pytest.mark.parametrize(("top", "wanted"), [(1.7, 0.36), (0.06, 0.3), (0.0, 0.36)])
def test_length_of_a_pendulum_is_the_meshs(show: Show, top: float, wanted: float):
    """Fail to rig a mesh of 0.36 m: it hangs so far, or as far as it goes below its origin."""

    def rigger(*_: Any, **__: Any) -> Any:
        raise RigError("not permitted", "no")

    show.manager.destroy()
    show.manager = show.attach(rigger=rigger)
    points, faces = g.card_mesh()
    show.add((points + np.array([0.0, top - 1.7, 0.0]), faces))
    show.settle()
    assert show.world is not None
    assert show.world.bindings[0].what == pytest.approx(wanted, abs=1e-6)
