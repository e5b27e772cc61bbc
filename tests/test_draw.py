"""Drawn hairs and pictures: what the kernels make equals slow twins and obeys simple laws."""

import math
import os
from typing import Any

import numpy as np
import pytest
from reference_draw import StillWorld, coverage, expand, straight_groom
from scipy.ndimage import binary_erosion

from hairkit.backend import open_session
from hairkit.draw import Camera, Light, Renderer
from hairkit.draw.layout import points_per_hair
from hairkit.draw.numbers import FINEST_RIBBON
from hairkit.draw.raster import ATOMIC, PLAIN
from hairkit.draw.scatter import scatter
from hairkit.errors import HairkitError
from hairkit.groom import grow
from hairkit.head import Head
from hairkit.paths import assets_dir
from hairkit.style import load_style

BACKENDS = os.environ.get("HAIRKIT_TEST_BACKENDS", "cpu").split(",")
RED = {"root_color": (1.0, 0.05, 0.05), "tip_color": (1.0, 0.05, 0.05)}

pytestmark = pytest.mark.render


@pytest.fixture(scope="module", params=BACKENDS)
def stage(request: pytest.FixtureRequest) -> tuple[StillWorld, Renderer]:
    """Open a backend with one world and renderer for all tests, since each would compile anew."""
    world = StillWorld(open_session(request.param))
    return world, Renderer(world)


def _rotation(axis: tuple[float, float, float], angle: float) -> np.ndarray:
    """Return a rotation about an axis as a pose."""
    k = np.asarray(axis) / np.linalg.norm(axis)
    cross = np.array([[0, -k[2], k[1]], [k[2], 0, -k[0]], [-k[1], k[0], 0]])
    pose = np.eye(4)
    pose[:3, :3] += math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross
    return pose


def _only(stage: tuple[StillWorld, Renderer], groom: Any, **options: Any) -> Any:
    """Put one hair on the stage, alone."""
    stage[0].clear()
    return stage[0].add(groom, **options)


@pytest.fixture(scope="module")
def small_groom() -> Any:
    """Grow a few guides on a ball."""
    return grow(load_style("straight").replace(hairs_per_guide=6), Head.sphere(), guides=24)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"frizz": 0.6, "clump": 0.9},
        {"coil": 30.0, "coil_radius": 0.004, "definition": 0.3},
        {"coil": 25.0, "coil_radius": 0.004, "zigzag": 0.8},
        {"plait": 3, "plait_turns": 30.0},
        {"plait": 2, "plait_turns": 25.0, "frizz": 0.4},
        {"plait": 1, "plait_turns": 9.0, "plait_radius": 0.003},
        {"ties": [{"at": (0, 1, -0.3), "size": 0.1}, {"at": (1, 0, -1), "kind": "knot"}]},
    ],
)
def test_drawn_hairs_equal_the_numpy_twin(
    stage: tuple[StillWorld, Renderer], changes: dict[str, Any]
) -> None:
    """Compare every drawn point with the twin: coils, zig-zags, plaits and gathered hair."""
    style = load_style("wavy").replace(hairs_per_guide=3, length=0.2, **changes)
    groom = grow(style, Head.sphere(), guides=10, seed=3)
    hair = _only(stage, groom)
    points = stage[1].hair_points(hair)
    twin = expand(groom, scatter(groom, hairs_per_guide=3), points_per_hair(style))
    assert points.shape == twin.shape
    assert np.abs(points - twin).max() < 5e-6


def test_no_drawn_point_is_inside_a_ball(
    stage: tuple[StillWorld, Renderer], small_groom: Any
) -> None:
    """Turn the head and look for drawn points in it."""
    pose = _rotation((1, 2, 3), 2.0)
    pose[:3, 3] = (50.0, 1.0, -20.0)
    hair = _only(stage, small_groom, pose=pose)
    local = (stage[1].hair_points(hair).reshape(-1, 3) - pose[:3, 3]) @ pose[:3, :3]
    assert small_groom.head.signed_distance(local)[0].min() > -1e-6


def test_no_drawn_point_is_inside_a_head_mesh(stage: tuple[StillWorld, Renderer]) -> None:
    """Look for drawn points in a real head and its shoulders, whose grids kernels interpolate."""
    head = Head.load(assets_dir() / "head.glb")
    style = load_style("long").replace(hairs_per_guide=12)
    groom = grow(style, head, guides=40)
    pose = _rotation((0, 1, 0), 0.7)
    hair = _only(stage, groom, pose=pose)
    local = stage[1].hair_points(hair).reshape(-1, 3) @ pose[:3, :3]
    assert head.signed_distance(local)[0].min() > -5e-5


def test_roots_lie_on_the_scalp(stage: tuple[StillWorld, Renderer], small_groom: Any) -> None:
    """Measure how far drawn roots are off the ball."""
    hair = _only(stage, small_groom)
    roots = stage[1].hair_points(hair)[:, 0]
    assert np.abs(small_groom.head.signed_distance(roots)[0]).max() < 3e-4


def test_hairs_turn_with_the_head(stage: tuple[StillWorld, Renderer], small_groom: Any) -> None:
    """Rotate guides and head together, even upside down: drawn hairs are rotated, nothing flips."""
    pose = _rotation((0.3, 1.0, -0.4), 2.8)
    expected = stage[1].hair_points(_only(stage, small_groom)) @ pose[:3, :3].T
    turned = stage[1].hair_points(_only(stage, small_groom, pose=pose))
    assert np.abs(turned - expected).max() < 2e-6


def test_coil_unwinds_when_its_guide_is_pulled(stage: tuple[StillWorld, Renderer]) -> None:
    """Pull a coiled guide longer: the coil narrows and the hair keeps its own length."""
    style = load_style("straight").replace(
        hairs_per_guide=1, frizz=0.0, spread=0.0, coil=30.0, coil_radius=0.008, length=0.15
    )
    head = Head.sphere(radius=0.01)
    start, end = np.array([[0.0, 0.01, 0.0]]), np.array([[0.0, 0.16, 0.0]])
    lengths, widths = [], []
    for pull in (1.0, 1.4):
        groom = straight_groom(style, head, start, end)
        hair = _only(stage, groom)
        stage[0].points[: len(groom.points)] *= [1.0, pull, 1.0]
        # The first quarter is where the coil and the hair's wander still set in.
        hairs = stage[1].hair_points(hair)[0]
        hairs = hairs[len(hairs) // 4 :]
        lengths.append(np.linalg.norm(np.diff(hairs, axis=0), axis=1).sum())
        widths.append(np.hypot(hairs[:, 0], hairs[:, 2]).mean())
    assert widths[1] < 0.95 * widths[0]
    assert lengths[1] == pytest.approx(lengths[0], rel=0.05)


@pytest.mark.parametrize("angle", [0.0, 0.35, 0.79, 1.2, 1.57])
@pytest.mark.parametrize(("wide", "samples"), [(0.0, 2), (5.0, 2), (2.2, 4)])
def test_slanted_line_covers_its_area(
    stage: tuple[StillWorld, Renderer], angle: float, wide: float, samples: int
) -> None:
    """Draw a line at several slants, hair-thin and wide, and compare with brute force."""
    width, height, fov, away = 96, 72, 0.06, 1.0
    focal = 0.5 * height / math.tan(0.5 * fov)
    style = load_style("straight").replace(
        hairs_per_guide=1, frizz=0.0, spread=0.0, length=1.0, hair_width=max(wide, 0.1) / focal
    )
    way = np.array([math.cos(angle), math.sin(angle), 0.0])
    groom = straight_groom(style, Head.sphere(radius=0.02), -0.5 * way[None], 0.5 * way[None])
    hair, renderer = _only(stage, groom), stage[1]
    # The head is behind the line's middle, so look past it.
    shift = 0.18 * way
    camera = Camera(position=tuple(shift + np.array([0, 0, away])), target=tuple(shift), fov=fov)
    image = renderer.image(
        camera, width=width, height=height, background="transparent", samples=samples
    )
    line = renderer.hair_points(hair)[0] - shift
    scale = focal / (away - line[:, 2])
    screen = np.stack([0.5 * width + line[:, 0] * scale, 0.5 * height - line[:, 1] * scale], axis=1)
    taper = np.minimum(1.0, 0.25 + 3.0 * (1.0 - np.linspace(0.0, 1.0, len(line))))
    half = 0.5 * np.maximum(style.hair_width * taper * scale, FINEST_RIBBON)
    expected = coverage(screen, half, width, height)
    alpha = image[..., 3] / 255.0
    assert expected.mean() > 0.005
    assert alpha.mean() == pytest.approx(expected.mean(), rel=0.04)
    blocks = [a.reshape(9, 8, 12, 8).mean(axis=(1, 3)) for a in (alpha, expected)]
    assert np.abs(blocks[0] - blocks[1]).max() < 0.05


def test_hair_behind_the_head_is_hidden_and_in_front_is_seen(
    stage: tuple[StillWorld, Renderer],
) -> None:
    """Draw a bar of red hair in front of a ball and one behind it."""
    head = Head.sphere(radius=0.1)
    style = load_style("straight").replace(
        hairs_per_guide=1, frizz=0.0, spread=0.0, length=0.5, hair_width=0.005, **RED
    )
    camera = Camera(position=(0.0, 0.0, 1.5), target=(0.0, 0.0, 0.0), fov=0.35)
    red = {}
    for name, depth in (("front", 0.13), ("behind", -0.13)):
        start, end = np.array([[-0.25, 0.0, depth]]), np.array([[0.25, 0.0, depth]])
        groom = straight_groom(style, head, start, end)
        _only(stage, groom)
        image = stage[1].image(camera, width=200, height=150).astype(int)
        red[name] = image[..., 0] - image[..., 1] > 60
    across = np.zeros(200, bool)
    # The ball is about 57 pixels wide in the middle of the picture.
    across[80:120] = True
    assert red["front"][65:85, across].any(axis=0).all()
    assert not red["behind"][65:85, across].any()
    assert red["behind"][:, 150:].any()


def test_same_picture_twice_bit_for_bit(
    stage: tuple[StillWorld, Renderer], small_groom: Any
) -> None:
    """Draw a picture, another one, and the first again, also by a new renderer."""
    _only(stage, small_groom)
    renderer = stage[1]
    camera, side = Camera.front(small_groom.head), Camera.side(small_groom.head)
    first = renderer.image(camera, width=160, height=120)
    other = renderer.image(side, width=200, height=100)
    again = renderer.image(camera, width=160, height=120)
    assert (first == again).all()
    assert (first == Renderer(stage[0]).image(camera, width=160, height=120)).all()
    assert (other[:100, :160] != first[:100]).any()


@pytest.mark.parametrize("mode", [ATOMIC, PLAIN])
def test_every_way_to_store_samples_ends_with_the_same_picture(
    stage: tuple[StillWorld, Renderer],
    small_groom: Any,
    monkeypatch: pytest.MonkeyPatch,
    mode: int,
) -> None:
    """Draw as where 64 bits cannot be compared at once, and as on drivers without atomics."""
    _only(stage, small_groom)
    camera, renderer = Camera.back(small_groom.head), stage[1]
    usual = renderer.image(camera, width=160, height=120)
    monkeypatch.setattr(renderer, "_mode", mode)
    assert (renderer.image(camera, width=160, height=120) == usual).all()


def test_far_from_the_origin_draws_the_same_picture(
    stage: tuple[StillWorld, Renderer], small_groom: Any
) -> None:
    """Move head and camera by 100 m: the picture has its own origin, so little changes."""
    away = np.eye(4)
    away[:3, 3] = (100.0, 0.0, -100.0)
    pictures = []
    for pose in (np.eye(4), away):
        _only(stage, small_groom, pose=pose)
        camera = Camera.back(small_groom.head, pose=pose)
        pictures.append(stage[1].image(camera, width=160, height=120).astype(int))
    assert np.abs(pictures[0] - pictures[1]).mean() < 0.5


def test_two_heads_are_both_in_the_picture(
    stage: tuple[StillWorld, Renderer], small_groom: Any
) -> None:
    """Draw two heads side by side and find hair at both places, as each looks alone."""
    poses = [np.eye(4), np.eye(4)]
    poses[0][0, 3], poses[1][0, 3] = -0.25, 0.25
    camera = Camera(position=(0.0, 0.0, 2.0), target=(0.0, -0.05, 0.0), fov=0.4)
    world, renderer = stage
    world.clear()
    for pose in poses:
        world.add(small_groom, pose=pose)
    options = {"width": 200, "height": 120, "background": "transparent"}
    together = renderer.image(camera, **options)
    assert renderer.drawn_hairs() == 2 * 6 * len(small_groom.roots)
    for pose, half in zip(poses, (slice(0, 100), slice(100, 200)), strict=True):
        _only(stage, small_groom, pose=pose)
        alone = renderer.image(camera, **options)
        assert (alone[:, half, 3] > 0).any()
        assert (alone[:, half, 3] == together[:, half, 3]).all()


def test_less_detail_draws_fewer_hairs_as_full(
    stage: tuple[StillWorld, Renderer], small_groom: Any
) -> None:
    """Halve the detail: every guide keeps half its hairs, and they cover nearly as much."""
    style = load_style("straight").replace(hairs_per_guide=60, hair_width=0.0006)
    groom = grow(style, Head.sphere(), guides=60)
    _only(stage, groom)
    renderer = stage[1]
    camera = Camera.back(groom.head, distance=0.5)
    options = {"width": 480, "height": 360, "background": "transparent"}
    full = renderer.image(camera, **options)
    assert renderer.drawn_hairs() == 60 * 60
    # Where hair piles up it looks as full; single hairs at the edges are lost.
    dense = np.asarray(binary_erosion(full[..., 3] == 255, iterations=3), dtype=bool)
    for detail in (0.5, 0.2):
        less = renderer.image(camera, detail=detail, **options)
        assert renderer.drawn_hairs() == round(60 * detail) * 60
        assert (less[dense, 3] / 255.0).mean() > 0.97
        assert (less[..., 3] > 0).mean() == pytest.approx((full[..., 3] > 0).mean(), rel=0.12)


def test_far_heads_have_fewer_hairs_and_look_as_full(
    stage: tuple[StillWorld, Renderer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Go away step by step: fewer hairs, every guide keeps its share, hair stays as full."""
    style = load_style("straight").replace(hairs_per_guide=200)
    groom = grow(style, Head.sphere(), guides=100)
    _only(stage, groom)
    renderer = stage[1]
    counts = []
    options = {"width": 320, "height": 240, "background": "transparent"}
    for distance in (0.3, 0.6, 1.0, 2.0, 4.0):
        camera = Camera.back(groom.head, distance=distance)
        picture = renderer.image(camera, **options)
        counts.append(renderer.drawn_hairs())
        assert renderer.drawn_hairs() % 100 == 0
        with monkeypatch.context() as patched:
            patched.setattr("hairkit.draw.numbers.DEEPEST_PILE", 1e9)
            every = renderer.image(camera, **options)
        assert renderer.drawn_hairs() == 200 * 100
        assert picture[..., 3].sum() == pytest.approx(every[..., 3].sum(dtype=float), rel=0.04)
    assert counts == sorted(counts, reverse=True) and counts[-1] < 0.25 * counts[0]
    # A step of the camera changes the hairs by a few: nothing pops.
    steps = []
    for distance in np.linspace(1.0, 1.05, 8):
        renderer.image(Camera.back(groom.head, distance=float(distance)), width=160, height=120)
        steps.append(renderer.drawn_hairs())
    assert np.abs(np.diff(steps)).max() <= 100


def test_lit_from_the_left_is_brighter_on_the_left(
    stage: tuple[StillWorld, Renderer], small_groom: Any
) -> None:
    """Move the key light to one side and compare the halves of a bald ball."""
    style = load_style("straight").replace(hairs_per_guide=1, length=0.004)
    groom = grow(style, Head.sphere(), guides=8)
    _only(stage, groom)
    renderer = stage[1]
    light = Light(key=(-1.0, 0.2, 0.3), rim_color=(0.0, 0.0, 0.0))
    image = renderer.image(
        Camera.front(groom.head), width=160, height=120, light=light, background="transparent"
    )
    brightness = np.where(image[..., 3] > 0, image[..., :3].sum(axis=2), 0).astype(float)
    assert brightness[:, :80].sum() > 1.3 * brightness[:, 80:].sum()


def test_hair_shades_hair(stage: tuple[StillWorld, Renderer]) -> None:
    """Draw the same hairs with and without a thick layer between them and the light."""
    head = Head.sphere(radius=0.02)
    style = load_style("straight").replace(
        hairs_per_guide=40, length=0.3, spread=3.0, frizz=0.0, hair_width=0.0006
    )
    across = np.linspace(-0.1, 0.1, 12)
    low = np.stack([across, np.full(12, -0.1), np.full(12, -0.15)], axis=1)
    camera = Camera(position=(0.0, -1.2, 0.02), target=(0.0, 0.0, 0.0), up=(0, 0, 1), fov=0.4)
    light = Light(key=(0.0, 1.0, 0.0), world=True, sky_color=(0, 0, 0), rim_color=(0, 0, 0))
    means = []
    for layers in (1, 6):
        starts = np.concatenate([low + np.array([0.0, 0.02 * k, 0.0]) for k in range(layers)])
        groom = straight_groom(style, head, starts, starts + np.array([0.0, 0.0, 0.3]))
        _only(stage, groom)
        image = stage[1].image(camera, width=120, height=90, light=light, background="transparent")
        seen = image[..., 3] > 0
        means.append(image[..., :3][seen].mean())
    assert means[1] < 0.7 * means[0]


def test_transparent_background_is_empty(
    stage: tuple[StillWorld, Renderer], small_groom: Any
) -> None:
    """Ask for an alpha channel: the corner has none, the head's middle is opaque."""
    _only(stage, small_groom)
    renderer = stage[1]
    image = renderer.image(
        Camera.front(small_groom.head), width=80, height=60, background="transparent"
    )
    assert image.shape == (60, 80, 4) and image.dtype == np.uint8
    assert image[0, 0, 3] == 0 and image[25, 40, 3] == 255


@pytest.mark.parametrize(
    "options", [{"width": 0}, {"detail": 0.0}, {"background": "green"}, {"samples": 9}]
)
def test_bad_picture_is_refused(
    stage: tuple[StillWorld, Renderer], small_groom: Any, options: dict[str, Any]
) -> None:
    """Ask for pictures that cannot be made and read the option's name in the error."""
    _only(stage, small_groom)
    renderer = stage[1]
    with pytest.raises(HairkitError, match=next(iter(options))):
        renderer.image(Camera.front(small_groom.head), **options)


def test_camera_basis_is_orthonormal_and_looks_at_the_target() -> None:
    """Check the axes of an orbiting camera."""
    camera = Camera.orbit(Head.sphere(), yaw=1.0, pitch=0.4)
    basis = camera.basis()
    assert np.allclose(basis @ basis.T, np.eye(3), atol=1e-12)
    toward = np.subtract(camera.target, camera.position)
    assert np.allclose(basis[2], toward / np.linalg.norm(toward))
    assert np.allclose(np.cross(basis[0], basis[1]), -basis[2])


def test_cameras_stand_where_they_say() -> None:
    """Front is +Z, the head's left is +X, back is -Z."""
    head = Head.sphere()
    assert Camera.front(head).position[2] > 0.3
    assert Camera.side(head).position[0] > 0.3
    assert Camera.back(head).position[2] < -0.3


@pytest.mark.parametrize("changes", [{"fov": 0.0}, {"fov": 4.0}, {"up": (0.0, 0.0, 1.0)}])
def test_camera_without_a_picture_is_refused(changes: dict[str, Any]) -> None:
    """Refuse an angle of view or an up direction that gives no picture."""
    with pytest.raises(HairkitError, match="camera"):
        Camera(**{"position": (0.0, 0.0, 1.0), "target": (0.0, 0.0, 0.0), **changes})
