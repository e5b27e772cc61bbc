"""Live changes, solid hair and sleep: what is set between steps acts at once and never jumps."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scenes
from scenes import play, settle, small

from hairkit.shapes import Sphere
from hairkit.sim import columns
from hairkit.sim.hair import Hair
from hairkit.sim.world import World

Worlds = Callable[..., World]


@pytest.mark.parametrize(
    "change",
    [
        lambda made, hair: setattr(made, "wind", (0.0, 0.0, -3.0)),
        lambda made, hair: setattr(hair, "wind", 0.0),
        lambda made, hair: setattr(hair, "hold", 0.85),
        lambda made, hair: setattr(hair, "hold", 1.0),
        lambda made, hair: setattr(hair, "hold", 0.0),
        lambda made, hair: setattr(hair, "motion", 0.5),
        lambda made, hair: setattr(hair, "motion", 0.0),
        lambda made, hair: setattr(made, "gust", 1.0),
        lambda made, hair: made.remove(made.colliders[0]),
    ],
    ids=[
        "wind turns",
        "wind shut out",
        "more hold",
        "rigid",
        "free",
        "less motion",
        "solid",
        "gusts",
        "collider goes",
    ],
)
def test_live_change_makes_no_jump(world: Worlds, change: Callable[[World, Hair], Any]) -> None:
    """Change a setting while hair hangs in the wind: no point moves over 6 cm in a 60 Hz frame."""
    made = world()
    made.wind = (0.0, 0.0, 3.0)
    made.add_collider(Sphere(0.06), pose=scenes.pose(None, (0.0, -0.2, -0.05)))
    hair = made.add_hair(small("long", hold=0.2))
    settle(made, 3.0)
    change(made, hair)
    before = hair.points()
    moved = 0.0
    for _ in range(40):
        made.step(1 / 60)
        now = hair.points()
        assert np.abs(now - before).max() < 0.06
        moved += np.abs(now - before).max()
        before = now
    assert moved > 0.01
    assert made.resets == 0


def test_hair_set_free_from_solid_starts_from_its_style(world: Worlds) -> None:
    """Keep hair solid on a turning head, then let go: it leaves its rest pose without a kick."""
    made = world()
    hair = made.add_hair(small("long"), motion=0.0)
    play(made, hair, frames=10)
    still = hair.points()
    assert np.abs(scenes.in_head(still, hair.head_pose) - hair.groom.points).max() < 1e-6
    hair.motion = 1.0
    made.step(1 / 60)
    assert 0.0 < np.abs(hair.points() - still).max() < 0.01
    settle(made, 3.0)
    assert np.abs(hair.points() - still).max() > 0.1


def test_rigid_hair_is_its_style_and_is_not_simulated(world: Worlds) -> None:
    """Turn heads of motion 0 and of hold 1: exactly the rest pose in the head, and nobody awake."""
    made = world()
    made.wind = (0.0, 0.0, 8.0)
    solid = made.add_hair(small("long"), motion=0.0)
    rigid = made.add_hair(small("long", hold=1.0), pose=scenes.pose(None, (5.0, 0.0, 0.0)))
    for _ in range(3):
        for hair, points in zip((solid, rigid), play(made, solid, rigid, frames=7), strict=True):
            gap = scenes.in_head(points, hair.head_pose) - hair.groom.points
            assert np.abs(gap).max() < 1e-6
        assert made.stats().awake == 0


def test_less_motion_takes_fewer_ticks_while_the_head_is_calm(world: Worlds) -> None:
    """Turn a head slowly, then fast: hair of half the motion takes half the ticks until then."""
    made = world()
    hairs = [
        made.add_hair(small("long"), motion=motion, pose=scenes.pose(None, (place, 0.0, 0.0)))
        for place, motion in enumerate((1.0, 0.5))
    ]
    stands = [hair.head_pose for hair in hairs]
    ticks = []
    for frame in range(180):
        rate = 0.5 if frame < 120 else 4.0
        for hair, stand in zip(hairs, stands, strict=True):
            hair.set_head(stand @ scenes.pose(scenes.turning((0, 1, 0), rate * frame / 60)))
        made.step(1 / 60)
        ticks.append([made._numbers[hair.index, columns.TICKS] for hair in hairs])
    counts = np.array(ticks)
    assert counts[:, 0].tolist() == [2] * 180
    assert counts[40:120, 1].tolist() == [1] * 80
    assert counts[125:, 1].tolist() == [2] * 55


def test_hair_out_of_the_wind_hangs_as_in_still_air(world: Worlds) -> None:
    """Shut the wind out from one of two heads: the other is blown, this one feels nothing."""
    made, still = world(), world()
    made.wind = (0.0, 0.0, 6.0)
    strands = [scenes.straight(16, 0.02, along=way) for way in ((1, 0, 0), (0, 0, 1), (-1, 1, 1))]
    groom = scenes.hand_groom(strands, scenes.plain_style(width=0.004))
    inside, outside = made.add_hair(groom, wind=0.0), made.add_hair(groom)
    calm = still.add_hair(groom)
    for each in (made, still):
        settle(each, 1.0)
    assert np.array_equal(inside.points(), calm.points())
    shift = (outside.points() - inside.points())[scenes.free(inside)]
    assert shift[:, 2].mean() > 0.05


def test_steady_ride_is_like_standing_in_still_air(world: Worlds) -> None:
    """Ride at 3 m/s in a following wind, 24 m far: hair hangs as on a still head, to 1 mm."""
    made, still = world(), world()
    made.wind = (3.0, 0.0, 0.0)
    strands = [scenes.straight(16, 0.02, along=way) for way in ((1, 0, 0), (0, 0, 1), (-1, 1, 1))]
    groom = scenes.hand_groom(strands, scenes.plain_style(width=0.008))
    riding, standing = made.add_hair(groom), still.add_hair(groom)
    for frame in range(480):
        riding.set_head(scenes.pose(None, (3.0 * (frame + 1) / 60, 0.0, 0.0)))
        made.step(1 / 60)
    settle(still, 8.0)
    assert riding.origin[0] > 20.0
    gap = scenes.in_head(riding.points(), riding.head_pose) - standing.points()
    assert np.abs(gap).max() < 1e-3


# ---- sleep


def test_hair_at_rest_sleeps_and_then_moves_not_at_all(world: Worlds) -> None:
    """Leave hair alone until it sleeps: nothing is simulated, no point moves by a bit."""
    made = world()
    hair = made.add_hair(small("curly"))
    for _ in range(200):
        made.step(0.1)
        if hair.sleeping:
            break
    assert made.stats().awake == 0
    before = hair.points()
    settle(made, 1.0)
    assert np.array_equal(hair.points(), before)


@pytest.mark.parametrize(
    "change",
    [
        lambda made, hair: hair.set_head(scenes.pose(None, (0.01, 0.0, 0.0))),
        lambda made, hair: setattr(made, "wind", (0.0, 0.0, 5.0)),
        lambda made, hair: setattr(made, "gravity", (1.0, -9.81, 0.0)),
        lambda made, hair: setattr(hair, "hold", 0.5),
        lambda made, hair: setattr(hair, "motion", 0.5),
        lambda made, hair: hair.reset(),
        lambda made, hair: made.add_collider(Sphere(0.1), pose=scenes.pose(None, (0, -0.2, -0.1))),
        lambda made, hair: made.colliders[0].set_pose(scenes.pose(None, (0.0, -0.25, -0.1))),
        lambda made, hair: setattr(made, "sleep", False),
    ],
    ids=["head", "wind", "gravity", "hold", "motion", "reset", "collider", "moved", "no sleep"],
)
def test_any_change_wakes_sleeping_hair(
    world: Worlds, change: Callable[[World, Hair], Any]
) -> None:
    """Change something under sleeping hair: it is simulated again from the next step on."""
    made = world()
    made.add_collider(Sphere(0.1), pose=scenes.pose(None, (0.0, -9.0, 0.0)))
    hair = made.add_hair(small("curly", hold=0.2, damping=20.0))
    settle(made, 6.0)
    assert hair.sleeping
    before = hair.points()
    change(made, hair)
    made.step(1 / 60)
    made.step(1 / 60)
    assert not hair.sleeping
    if made.sleep:
        assert np.abs(hair.points() - before).max() > 1e-5


def test_hair_in_gusts_never_sleeps(world: Worlds) -> None:
    """Let a gusty wind blow for a long time."""
    made = world()
    made.wind = (0.0, 0.0, 2.0)
    made.gust = 0.5
    hair = made.add_hair(small("curly", damping=20.0))
    settle(made, 10.0)
    assert not hair.sleeping
