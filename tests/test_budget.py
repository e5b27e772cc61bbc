"""The budget: how many chains sway, which, and that they do not take turns."""

from typing import Any

import numpy as np
import pytest
from sway_stage import Clock, FakeWorld, Rigger, Threads, moved

from hairkit.draw.camera import Camera
from hairkit.errors import HairkitError
from hairkit.sway import Accessory, Budget, Character, Stage, attach
from hairkit.sway.budget import in_view

FRONT = Camera(position=(0.0, 0.0, 0.0), target=(0.0, 0.0, -1.0), fov=1.0)
"""Looks along -Z from the world's middle."""


class Hair:
    """Something that sways, at a place."""

    def __init__(self, z: float, chains: int = 1, x: float = 0.0, radius: float = 0.1) -> None:
        self.position = np.array([x, 0.0, -z])
        self.chains, self.radius = chains, radius
        self.changes = 0
        self._active = True

    @property
    def active(self) -> bool:
        """Whether it sways."""
        return self._active

    @active.setter
    def active(self, value: bool) -> None:
        self.changes += value != self._active
        self._active = value


def active(rows: list[Hair]) -> list[bool]:
    """Return which sway."""
    return [each.active for each in rows]


def test_nearest_first_until_the_budget_is_full():
    """Offer chains 4, 3, 3, 1 from near to far; where one has no room, none behind it has."""
    rows = [Hair(9.0, 1), Hair(2.0, 4), Hair(7.0, 3), Hair(5.0, 3)]
    assert Budget(8, FRONT).apply(rows) == 7
    assert active(rows) == [False, True, False, True]
    assert Budget(11).apply(rows, FRONT) == 11 and all(active(rows))
    assert Budget(0).apply(rows, FRONT) == 0 and not any(active(rows))
    # What never fits is in nobody's way.
    assert Budget(3).apply(rows, FRONT) == 3 and active(rows) == [False, False, False, True]


def test_a_random_crowd_keeps_the_budgets_laws():
    """Move 60 about at random for 200 frames: never over budget, none behind one that holds."""
    rng = np.random.default_rng(5)
    rows = [Hair(1.0, int(rng.integers(1, 6))) for _ in range(60)]
    budget = Budget(40, FRONT)
    for _ in range(200):
        for each in rows:
            each.position = rng.uniform((-9, -1, -20), (9, 1, 2))
        used = budget.apply(rows)
        swaying = [each for each in rows if each.active]
        assert used == sum(each.chains for each in swaying) <= 40
        seen, nearly = view(rows), view(rows, 1.5)
        holding = [e for e, there in zip(rows, seen, strict=True) if there and not e.active]
        if swaying and holding:
            far = max(np.linalg.norm(each.position) for each in swaying)
            near = min(np.linalg.norm(each.position) for each in holding)
            assert near >= (1.0 - budget.margin) * far
            assert used + max(each.chains for each in holding) > 40
        assert not any(e.active for e, there in zip(rows, nearly, strict=True) if not there)


def view(rows: list[Hair], factor: float = 1.0) -> Any:
    """Return which are in the picture, their radii times a factor."""
    places = np.array([each.position for each in rows])
    return in_view(places, factor * np.array([e.radius for e in rows]), FRONT, 16 / 9)


def test_two_at_the_limit_do_not_take_turns():
    """Let two cross each other by a tenth, over and over: nothing changes; by half: one change."""
    rows = [Hair(5.0), Hair(5.2)]
    budget = Budget(1, FRONT)
    budget.apply(rows)
    before = [each.changes for each in rows]
    for frame in range(50):
        rows[0].position[2] = -5.0 - 0.5 * (frame % 2)
        rows[1].position[2] = -5.0 - 0.5 * ((frame + 1) % 2)
        budget.apply(rows)
        assert active(rows) == [True, False]
    assert [each.changes for each in rows] == before
    rows[0].position[2] = -10.0
    for _ in range(5):
        budget.apply(rows)
        assert active(rows) == [False, True]
    assert [each.changes for each in rows] == [before[0] + 1, before[1] + 1]


def test_the_pictures_edge_does_not_flicker():
    """Cross the edge by less than half a radius: what sways goes on, what holds stays still."""
    wide = np.arctan(np.tan(0.5) * 16.0 / 9.0)
    edge = 10.0 * np.tan(wide)
    inside, outside = edge + 0.05 / np.cos(wide), edge + 0.13 / np.cos(wide)
    hair = Hair(10.0, x=inside)
    budget = Budget(5, FRONT)
    for x, wanted in ((inside, True), (outside, True), (edge + 1.0, False), (outside, False)):
        hair.position[0] = x
        budget.apply([hair])
        assert hair.active is wanted, x
    hair.position[0] = edge
    budget.apply([hair])
    assert hair.active


@pytest.mark.parametrize("aspect", [0.5, 1.0, 16.0 / 9.0])
def test_picture_is_what_projects_into_it(aspect: float):
    """Compare points with their projection by a camera that is turned and rolled."""
    camera = Camera(position=(1.0, 2.0, 3.0), target=(4.0, 1.0, -2.0), up=(0.3, 1.0, 0.1), fov=0.8)
    points = np.random.default_rng(2).normal((4.0, 1.0, -2.0), 4.0, (500, 3))
    right, up, forward = camera.basis()
    offset = points - np.array(camera.position)
    depth = offset @ forward
    tall = np.abs(offset @ up) <= depth * np.tan(0.4)
    wide = np.abs(offset @ right) <= depth * np.tan(0.4) * aspect
    wanted = tall & wide & (depth >= 0.0)
    assert np.array_equal(in_view(points, np.zeros(500), camera, aspect), wanted)
    assert 50 < wanted.sum() < 450
    # A ball is seen if any point of it is: one at its edge that points inwards.
    for point in points[~wanted][:50]:
        distance = float(np.linalg.norm(point - np.array(camera.target)))
        assert in_view(point[None], np.full(1, distance), camera, aspect)[0]


def test_what_is_behind_the_camera_holds():
    """Stand behind, nearer than all others."""
    rows = [Hair(-1.0), Hair(30.0)]
    Budget(1, FRONT).apply(rows)
    assert active(rows) == [False, True]
    # Just behind: its ball does not reach the camera, though it reaches the picture's sides.
    rows[0].position[2] = 0.12
    Budget(1, FRONT).apply(rows)
    assert active(rows) == [False, True]


def test_without_a_camera_the_order_of_coming_decides():
    """Give no camera: the first ones sway, wherever they are, and go on doing so."""
    rows = [Hair(9.0), Hair(1.0), Hair(3.0)]
    budget = Budget(2)
    for _ in range(3):
        budget.apply(rows)
        assert active(rows) == [True, True, False]


def test_auto_measures_once_and_only_when_asked():
    """Count how often the device is measured."""
    asked: list[int] = []

    def measure() -> int:
        asked.append(1)
        return 2

    budget = Budget("auto", FRONT, measure=measure)
    assert asked == []
    rows = [Hair(1.0), Hair(2.0), Hair(3.0)]
    for _ in range(3):
        assert budget.apply(rows) == 2
    assert asked == [1] and budget.max_chains == 2


@pytest.mark.parametrize(
    "bad",
    [
        {"max_chains": -1},
        {"max_chains": 1.5},
        {"max_chains": True},
        {"max_chains": "most"},
        {"max_chains": "auto"},
        {"max_chains": 1, "margin": 1.0},
        {"max_chains": 1, "aspect": 0.0},
    ],
    ids=str,
)
def test_budgets_out_of_range_are_refused(bad: dict[str, Any]):
    """Give one number out of range."""
    with pytest.raises(HairkitError, match="expected"):
        Budget(**bad)


def test_manager_applies_its_budget_over_all_bindings():
    """Bind three heads of three chains and a pendulum with room for seven, looked at from afar."""
    stage, world, clock, threads = Stage(), FakeWorld(), Clock(), Threads()
    manager = attach(
        stage, world=world, clock=clock, start=threads, rigger=Rigger(), budget=Budget(7), passes=9
    )
    people = [Character(str(z), head_pose=moved(0.0, 0.0, -z)) for z in (4.0, 2.0, 9.0)]
    for person in people:
        person.wear(Accessory("hair", source="good"))
        stage.add(person)
    people[2].wear(Accessory("hair of no mesh"))
    clock.now += 1.0
    manager.update()
    threads.run()
    manager.update(FRONT)
    swaying = {
        person.name: [s.active for s in manager.bindings(person).values()] for person in people
    }
    assert swaying == {"4.0": [True], "2.0": [True], "9.0": [False, False]}
    people[1].head_pose = moved(0.0, 0.0, 50.0)
    manager.update(FRONT)
    swaying = {
        person.name: [s.active for s in manager.bindings(person).values()] for person in people
    }
    assert swaying == {"4.0": [True], "2.0": [False], "9.0": [True, True]}
    manager.destroy()
