"""The stage: who is there, what is told of it, what is refused."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from sway_stage import moved

from hairkit.errors import HairkitError
from hairkit.sway import Accessory, Character, Stage, is_hair


def heard(stage: Stage) -> list[tuple[str, ...]]:
    """Write down all that a stage tells."""
    said: list[tuple[str, ...]] = []
    for name in (
        "character_added",
        "character_removed",
        "accessory_added",
        "accessory_removed",
        "pose_changed",
    ):

        def note(sender: Any, name: str = name, **what: Any) -> None:
            assert sender is stage
            said.append((name, *(thing.name for thing in what.values())))

        getattr(stage, name).connect(note, weak=False)
    return said


def test_stage_tells_what_comes_and_goes():
    """Let a character come, dress, move and go: one signal each, none for what changes nothing."""
    stage = Stage()
    said = heard(stage)
    hat, hair = Accessory("Cap", kind="hat"), Accessory("Bob", kind="hair")
    ann = Character("Ann", accessories=[hat])
    assert said == []
    stage.add(ann)
    ann.wear(hair)
    ann.wear(hair)
    ann.head_pose = moved(1.0)
    ann.take_off(hat)
    stage.remove(ann)
    ann.take_off(hair)
    ann.head_pose = moved(2.0)
    assert said == [
        ("character_added", "Ann"),
        ("accessory_added", "Ann", "Bob"),
        ("pose_changed", "Ann"),
        ("accessory_removed", "Ann", "Cap"),
        ("character_removed", "Ann"),
    ]
    assert stage.characters == () and ann.accessories == () and ann.stage is None


def test_an_accessory_has_one_wearer():
    """Let another put it on: the first takes it off, both are told of."""
    stage = Stage()
    hair = Accessory("Bob")
    ann, ben = Character("Ann", accessories=[hair]), Character("Ben")
    stage.add(ann)
    stage.add(ben)
    said = heard(stage)
    ben.wear(hair)
    assert ann.accessories == () and ben.accessories == (hair,) and hair.wearer is ben
    assert said == [("accessory_removed", "Ann", "Bob"), ("accessory_added", "Ben", "Bob")]


def test_stage_refuses_what_makes_no_sense():
    """Add twice, remove who is not there, take off what is not worn, be at no place."""
    stage, ann = Stage(), Character("Ann")
    stage.add(ann)
    with pytest.raises(HairkitError, match="'Ann': is on a stage already"):
        Stage().add(ann)
    with pytest.raises(HairkitError, match="'Ben': is not on this stage"):
        stage.remove(Character("Ben"))
    with pytest.raises(HairkitError, match="'Bob': not worn by 'Ann'"):
        ann.take_off(Accessory("Bob"))
    for bad in (np.eye(3), np.full((4, 4), np.nan), np.ones((4, 4)), "here", [[1.0], [2.0, 3.0]]):
        with pytest.raises(HairkitError, match="'Ann': head pose: expected"):
            ann.head_pose = bad
        with pytest.raises(HairkitError, match="'Bob': attachment: expected"):
            Accessory("Bob", attachment=bad)
    with pytest.raises(HairkitError, match="length"):
        Accessory("Bob", length=0.0)
    assert np.array_equal(ann.head_pose, np.eye(4))


def test_poses_are_copies_that_nobody_changes():
    """Change the array that was given: the pose stays; the pose itself cannot be written to."""
    given = moved(1.0)
    ann = Character("Ann", head_pose=given)
    given[0, 3] = 9.0
    assert ann.head_pose[0, 3] == 1.0
    with pytest.raises(ValueError):
        ann.head_pose[0, 3] = 2.0


def test_a_receiver_that_raises_does_not_silence_others(caplog: pytest.LogCaptureFixture):
    """Let the first receiver raise: the second hears it, the caller sees no error."""
    stage = Stage()

    def bad(_: Any, **__: Any) -> None:
        raise RuntimeError("mine")

    stage.character_added.connect(bad)
    said = heard(stage)
    stage.character_added.connect(bad)
    stage.add(Character("Ann"))
    assert said == [("character_added", "Ann")] and "mine" in caplog.text


def test_stage_and_characters_do_not_hold_each_other_when_gone():
    """Forget a character that went, and one whose stage went: both are gone."""
    stage, ann = Stage(), Character("Ann", accessories=[Accessory("Bob")])
    stage.add(ann)
    stage.remove(ann)
    gone = weakref.ref(ann)
    del ann
    gc.collect()
    assert gone() is None
    ben = Character("Ben")
    stage.add(ben)
    gone = weakref.ref(stage)
    del stage
    gc.collect()
    assert gone() is None and ben.stage is None


@pytest.mark.parametrize(
    ("name", "kind", "wanted"),
    [
        ("Cap", "hair", True),
        ("Cap", "HAIR", True),
        ("Long hAiR", "", True),
        ("Chair", "", True),
        ("Cap", "hat", False),
        ("Cap", "hairband", False),
        ("", "", False),
    ],
)
def test_hair_is_a_kind_or_in_the_name(name: str, kind: str, wanted: bool):
    """Ask the default filter."""
    assert is_hair(Accessory(name, kind=kind)) is wanted
