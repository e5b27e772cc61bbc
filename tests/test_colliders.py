"""Colliders: every shape keeps hair out, still and moving, and errors say what is wrong."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scenes
from trimesh.creation import box, icosphere

from hairkit.errors import HairkitError, WorldError
from hairkit.shapes import Box, Capsule, DistanceGrid, Ellipsoid, Plane, Sphere
from hairkit.sim.colliders import as_shape
from hairkit.sim.hair import Hair
from hairkit.sim.world import World
from hairkit.style import load_style

Worlds = Callable[..., World]

SHAPES = {
    "sphere": Sphere(0.06, center=(0.01, 0.0, 0.0)),
    "capsule": Capsule((-0.08, 0.0, 0.0), (0.06, 0.03, 0.02), 0.04),
    "capsule of no length": Capsule((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.05),
    "box": Box((0.08, 0.04, 0.05), center=(0.0, 0.01, 0.0)),
    "ellipsoid": Ellipsoid((0.09, 0.04, 0.06)),
    "plane": Plane((0.2, 1.0, 0.1), 0.03),
    "grid": DistanceGrid.from_mesh(
        *(lambda ball: (ball.vertices, ball.faces))(icosphere(subdivisions=3, radius=0.06)),
        cache=False,
    ),
    "mesh": box((0.16, 0.08, 0.1)),
}
"""Solids about 10 cm large around their frame's origin."""

DEPTH = 1e-4
"""How deep a guide point may get in a collider [m]."""


def curtain(made: World, **changes: Any) -> Hair:
    """Hang 24 straight strands of 40 cm from a board, some with the solid in the middle of them."""
    style = load_style("straight").replace(**{"length": 0.4, "segments": 16, **changes})
    roots = [(0.02 * x, 0.0, 0.02 * z) for x in range(-4, 4) for z in (-1, 0, 1)]
    down = (0.0, -1.0, 0.0)
    strands = [scenes.straight(18, 0.4 / 17, along=down, root=root) for root in roots]
    return made.add_hair(scenes.hand_groom(strands, style))


def at(position: Any, turn: Any = None) -> Any:
    """Return a pose."""
    return scenes.pose(turn, position)


@pytest.mark.parametrize("name", SHAPES)
def test_still_solid_keeps_hair_out(world: Worlds, name: str) -> None:
    """Put a solid into hanging hair: from the first step on no point is over 0.1 mm in it."""
    made = world()
    hair = curtain(made)
    solid = made.add_collider(
        SHAPES[name], pose=at((0.003, -0.25, 0.004), scenes.turning((1, 2, 3), 0.5))
    )
    watch = scenes.Watch(hair, solid)
    inside = -solid.shape.signed_distance(scenes.in_head(hair.points(), solid.pose))[0].min()
    assert inside > 0.01
    for _ in range(60):
        made.step(1 / 60)
        watch.look()
    assert watch.depth < DEPTH
    assert made.resets == 0


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dt", [1 / 144, 1 / 30])
def test_moving_turning_solid_keeps_hair_out(world: Worlds, name: str, dt: float) -> None:
    """Swing a turning solid through hair at up to 1 m/s: never over 0.1 mm in it, strain under 2 %.

    The plane is in the hair when it appears, so lengths are looked at a moment later.
    """
    made = world()
    hair = curtain(made)
    start = at((0.25, -0.28, 0.0))
    solid = made.add_collider(SHAPES[name], pose=start)
    watch = scenes.Watch(hair, solid)
    time, strain = 0.0, 0.0
    touched = False
    while time < 1.2:
        time += dt
        place = (0.25 * np.cos(4.0 * time), -0.28, 0.02 * np.sin(3.0 * time))
        solid.set_pose(at(place, scenes.turning((0.3, 1.0, 0.2), 0.4 * np.sin(5.0 * time))))
        made.step(dt)
        near = solid.shape.signed_distance(scenes.in_head(watch.look(), solid.pose))[0].min()
        touched = touched or near < 2.0 * hair.groom.style.thickness
        if time > 0.1:
            strain = max(strain, watch.strain)
        watch.strain = 0.0
    assert touched
    assert watch.depth < DEPTH
    assert strain < 0.02
    assert made.resets == 0


@pytest.mark.parametrize("name", SHAPES)
def test_hair_settles_its_thickness_away_from_a_solid(world: Worlds, name: str) -> None:
    """Let hair lie on a solid: touching points rest at their thickness, to 0.1 mm.

    On a sharp edge a point may be nearer, but never inside: 1 mm at least.
    """
    made = world()
    hair = curtain(made, thickness=0.005)
    solid = made.add_collider(SHAPES[name], pose=at((0.003, -0.25, 0.004)))
    for _ in range(40):
        made.step(0.1)
    free = hair.points()[scenes.free(hair)]
    distance = solid.shape.signed_distance(scenes.in_head(free, solid.pose))[0]
    touching = distance[distance < 0.006]
    assert len(touching) >= 3
    assert abs(np.median(touching) - 0.005) < 1e-4
    assert touching.min() > 0.001


def test_several_solids_at_once_keep_hair_out(world: Worlds) -> None:
    """Put three solids side by side, 1 cm apart, into hair: no point is in any of them."""
    made = world()
    hair = curtain(made)
    names = ("sphere", "box", "mesh")
    solids = [
        made.add_collider(SHAPES[name], pose=at((0.17 * place - 0.17, -0.28, 0.0)))
        for place, name in enumerate(names)
    ]
    watch = scenes.Watch(hair, *solids)
    for _ in range(60):
        made.step(1 / 60)
        watch.look()
    assert watch.depth < DEPTH


def test_solid_far_from_the_origin_collides_as_near_it(world: Worlds) -> None:
    """Move hair and solid 300 m away: the same to 0.1 mm."""
    ends = []
    for place in ((0.0, 0.0, 0.0), (300.03, -20.01, 150.02)):
        made = world()
        style = load_style("straight").replace(length=0.4, segments=16)
        strands = [
            scenes.straight(18, 0.4 / 17, along=(0, -1, 0), root=(0.02 * x, 0, 0)) for x in range(8)
        ]
        hair = made.add_hair(scenes.hand_groom(strands, style), pose=at(place))
        made.add_collider(Sphere(0.05), pose=at(np.add(place, (0.065, -0.25, 0.02))))
        for _ in range(30):
            made.step(1 / 60)
        ends.append(hair.points() - place)
        made.close()
    assert np.abs(ends[1] - ends[0]).max() < 1e-4


def test_every_head_of_hair_meets_the_solid(world: Worlds) -> None:
    """Put a solid between hair that was there before and hair that comes later."""
    made = world()
    first = curtain(made)
    solid = made.add_collider(Sphere(0.06), pose=at((0.0, -0.25, 0.0)))
    second = curtain(made)
    watches = [scenes.Watch(hair, solid) for hair in (first, second)]
    for _ in range(30):
        made.step(1 / 60)
        for watch in watches:
            watch.look()
    assert max(watch.depth for watch in watches) < DEPTH
    assert np.abs(first.points() - second.points()).max() < 1e-5


def test_removed_solid_is_gone(world: Worlds) -> None:
    """Take a solid away: hair hangs again as if it had never been there, to 1 mm."""
    made = world()
    hair = curtain(made)
    straight = hair.points()
    solids = [
        made.add_collider(SHAPES[name], pose=at((0.0, -0.25, 0.0))) for name in ("mesh", "box")
    ]
    cells = made.arena.cell_space.free
    for _ in range(20):
        made.step(0.1)
    assert np.abs(hair.points() - straight).max() > 0.02
    for solid in solids:
        made.remove(solid)
    assert made.colliders == []
    assert made.arena.cell_space.free > cells
    for _ in range(60):
        made.step(0.1)
    assert np.abs(hair.points() - straight).max() < 1e-3


def test_stats_see_the_deepest_point(world: Worlds) -> None:
    """Move a solid onto hair between two steps: stats say how deep the hair is in it now."""
    made = world()
    hair = curtain(made)
    made.step(1 / 60)
    assert made.stats().max_penetration == 0.0
    solid = made.add_collider(Sphere(0.05), pose=at((0.0, -0.25, 0.0)))
    watch = scenes.Watch(hair, solid)
    watch.look()
    assert watch.depth > 0.01
    assert made.stats().max_penetration == pytest.approx(watch.depth, abs=1e-6)
    made.step(1 / 60)
    assert made.stats().max_penetration < DEPTH


@pytest.mark.parametrize(
    "thing",
    [
        "ball",
        None,
        42,
        SimpleNamespace(vertices=np.zeros((3, 3)), faces=np.zeros((0, 3), int)),
        SimpleNamespace(vertices=np.zeros((3, 2)), faces=np.zeros((1, 3), int)),
        SimpleNamespace(signed_distance=lambda points: points),
    ],
    ids=["text", "none", "number", "no faces", "flat vertices", "unknown shape"],
)
def test_what_is_no_solid_is_refused(world: Worlds, thing: Any) -> None:
    """Add things that hair cannot collide with: one line that says what was expected."""
    made = world()
    with pytest.raises(HairkitError, match="expected") as error:
        made.add_collider(thing)
    assert "\n" not in str(error.value)
    assert made.colliders == []


@pytest.mark.parametrize(
    "pose", [np.eye(3), 2.0 * np.eye(4), np.full((4, 4), np.nan), np.full((4, 4), 3e30), "here"]
)
def test_solid_pose_must_be_a_rotation_and_a_translation(world: Worlds, pose: Any) -> None:
    """Pose a solid impossibly, when it comes and later: one line, and it stays where it was."""
    made = world()
    solid = made.add_collider(Sphere(0.1))
    for call in (solid.set_pose, lambda pose: made.add_collider(Sphere(0.1), pose=pose)):
        with pytest.raises(WorldError, match="collider pose") as error:
            call(pose)
        assert "\n" not in str(error.value)
    assert np.array_equal(solid.pose, np.eye(4))
    assert made.colliders == [solid]


def test_two_meshes_do_not_take_each_other_for_one(world: Worlds) -> None:
    """Lay hair over one of two meshes: the other, far away, changes nothing."""
    alone, both = world(), world()
    hairs = [curtain(alone), curtain(both)]
    for made in (alone, both):
        made.add_collider(SHAPES["mesh"], pose=at((0.0, -0.25, 0.0)))
    # In the same frame, so that what is known of one would pass for the other's.
    far = icosphere(radius=0.02)
    far.apply_translation([0.5, 0.5, 0.0])
    both.add_collider(far, pose=at((0.0, -0.25, 0.0)))
    for _ in range(60):
        alone.step(1 / 60)
        both.step(1 / 60)
    apart = np.abs(hairs[0].points() - hairs[1].points()).max()
    assert apart < 1e-3
    assert both.stats().max_penetration < DEPTH


def test_one_grid_serves_all_who_use_it(world: Worlds) -> None:
    """Add one shape twice and take it out twice: it takes room once, and gives it back at last."""
    made = world()
    curtain(made)
    shape = as_shape(SHAPES["mesh"])
    cells = made.arena.cell_space.free
    first, second = made.add_collider(shape), made.add_collider(shape)
    taken = made.arena.cell_space.free
    assert isinstance(shape, DistanceGrid)
    assert taken == cells - shape.values.size
    made.remove(first)
    assert made.arena.cell_space.free == taken
    made.remove(second)
    assert made.arena.cell_space.free == cells
