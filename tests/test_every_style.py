"""Every type and hairstyle on a head that turns and nods: out of it, whole, and at rest after."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

import hairkit as hk
from hairkit.paths import assets_dir
from hairkit.poses import head_pose

SECONDS, RATE = 3.0, 60.0

pytestmark = pytest.mark.render


@pytest.fixture(scope="module", params=["ball", "head"])
def head(request: pytest.FixtureRequest) -> hk.Head:
    """Return a ball, then the head that comes with hairkit."""
    if request.param == "ball":
        return hk.Head.sphere(radius=0.1)
    return hk.Head.load(assets_dir() / "head.glb")


@pytest.fixture(scope="module")
def world() -> Iterator[hk.World]:
    """Return one world for all styles."""
    made = hk.World()
    yield made
    made.close()


def depth(head: hk.Head, pose: np.ndarray, points: np.ndarray) -> float:
    """Return how deep the deepest of points is in the head or its body, which stays [m]."""
    nearest = head.head_shape.signed_distance((points - pose[:3, 3]) @ pose[:3, :3])[0].min()
    if head.body_shape is not None:
        nearest = min(nearest, head.body_shape.signed_distance(points)[0].min())
    return max(-float(nearest), 0.0)


@pytest.mark.parametrize("name", hk.style_names())
def test_hair_stays_out_of_a_moving_head_and_comes_to_rest(
    world: hk.World, head: hk.Head, name: str
) -> None:
    """Turn and nod for three seconds; look at guides and drawn hairs; then wait for rest."""
    style = hk.load_style(name)
    style = style.replace(hairs_per_guide=60 if style.row_guides else 8)
    groom = hk.grow(style, head, guides=100 if style.row_guides or style.ties else 50)
    world.sleep = False
    hair = world.add_hair(groom)
    beyond = np.concatenate([np.arange(count) for count in groom.counts]) >= 2
    resets = world.resets
    for frame in range(1, round(SECONDS * RATE) + 1):
        time = frame / RATE
        pose = head_pose(
            yaw=0.9 * math.sin(1.5 * math.pi * time), pitch=0.5 * math.sin(2.0 * math.pi * time)
        )
        hair.set_head(pose)
        world.step(1.0 / RATE)
        if frame % 6 == 0:
            points = hair.points()
            assert np.isfinite(points).all()
            assert depth(head, pose, points[beyond]) < 1e-5
        if frame % 45 == 20:
            drawn = hair.drawn_points().reshape(-1, 3)
            assert np.isfinite(drawn).all()
            assert depth(head, pose, drawn) < 2e-4
    assert world.resets == resets
    hair.set_head(np.eye(4))
    world.sleep = True
    for _ in range(round(8.0 * RATE)):
        world.step(1.0 / RATE)
        if hair.sleeping:
            break
    assert hair.sleeping
    away = head.signed_distance(hair.points()[beyond])[0].min()
    assert away > 0.75 * style.contact_radius()
    world.remove(hair)
