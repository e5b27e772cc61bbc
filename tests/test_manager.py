"""The manager's rules: when a pass runs, and what is bound."""

from typing import Any

import numpy as np
import pytest
from sway_stage import RIGGED, MakeShow, Show, moved

from hairkit.errors import FileError, HairkitError, RigError, SessionError
from hairkit.sway import (
    Accessory,
    ChainSettings,
    Character,
    registry,
)
from hairkit.sway.passes import LENGTH_M


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


def test_characters_present_at_attach_are_watched_like_later_ones(make_show: MakeShow):
    """Attach after a character came: its hair is bound, and what it puts on later, too."""
    show = make_show()
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


def test_local_watches_the_local_character_only(make_show: MakeShow):
    """Let a local and another character come."""
    show = make_show(characters="local")
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


def test_only_so_many_passes_run_at_once(make_show: MakeShow):
    """Let five come with room for two passes: the rest wait, in the order of coming."""
    show = make_show(passes=2)
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


def test_match_is_the_users_and_may_raise(make_show: MakeShow, caplog: pytest.LogCaptureFixture):
    """Match by a filter of one's own that raises for one accessory: that one does not match."""

    def match(accessory: Accessory) -> bool:
        if accessory.name == "hair 0":
            raise RuntimeError("not that one")
        return True

    show = make_show(match=match)
    show.add("good", "good")
    show.settle()
    assert show.kinds == ["chains"] and "not that one" in caplog.text


def test_without_a_world_nothing_is_rigged(make_show: MakeShow):
    """Attach without a world."""
    show = make_show(world=None)
    show.add("good")
    show.settle()
    assert show.rigger.asked == [] and show.said == [] and show.manager.swaying == []


def test_options_and_settings_reach_rig_and_world(make_show: MakeShow):
    """Rig with the options, bind with the settings at head pose times attachment."""
    settings = ChainSettings(damping=0.5, stiffness=0.2)
    show = make_show(rig={"sectors": 3, "segments": 4}, settings=settings)
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


def test_boned_hair_that_cannot_be_read_gets_the_pendulum(make_show: MakeShow):
    """Fail to read it: a pendulum and the reader's reason."""

    def reader(*_: Any, **__: Any) -> Any:
        raise RigError("unreadable", "a knot")

    show = make_show(reader=reader)
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
