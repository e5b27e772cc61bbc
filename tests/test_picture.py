"""Pictures as a whole: samples against many, still against moved, highlights, depth and owners."""

import math
import os
from dataclasses import replace

import numpy as np
import pytest
from reference_draw import StillWorld, straight_groom

from hairkit.backend import open_session, ti
from hairkit.draw import Camera, Light, Renderer
from hairkit.draw.scatter import scatter
from hairkit.draw.shade import fibre
from hairkit.groom import grow
from hairkit.head import Head
from hairkit.style import load_style, melanin_color

BACKENDS = os.environ.get("HAIRKIT_TEST_BACKENDS", "cpu").split(",")

pytestmark = pytest.mark.render


@pytest.fixture(scope="module", params=BACKENDS)
def stage(request: pytest.FixtureRequest) -> tuple[StillWorld, Renderer]:
    """Open a backend with one world and renderer for all tests, since each would compile anew."""
    world = StillWorld(open_session(request.param))
    return world, Renderer(world)


def test_two_samples_are_near_many(stage: tuple[StillWorld, Renderer]) -> None:
    """Compare a picture's hair with the same from 8 x 8 samples: at least 32 dB."""
    groom = grow(load_style("long").replace(hairs_per_guide=60), Head.sphere(), guides=80)
    stage[0].clear()
    stage[0].add(groom)
    camera = Camera.back(groom.head)
    options = {"width": 200, "height": 150, "thin": False}
    few, many = (stage[1].image(camera, samples=n, **options).astype(float) for n in (2, 8))
    hair = stage[1].layers(camera, **options).guide >= 0
    error = np.mean((few[hair] - many[hair]) ** 2)
    assert hair.sum() > 3000
    assert 10.0 * math.log10(255.0**2 / error) > 32.0


def test_a_tenth_of_a_pixel_does_not_flicker(stage: tuple[StillWorld, Renderer]) -> None:
    """Move the camera by a tenth of a pixel, frame by frame: a region's mean colour stays."""
    groom = grow(load_style("straight").replace(hairs_per_guide=60), Head.sphere(), guides=80)
    stage[0].clear()
    stage[0].add(groom)
    camera = Camera.back(groom.head)
    height = 160
    away = np.linalg.norm(np.subtract(camera.position, camera.target))
    pixel = 2.0 * away * math.tan(0.5 * camera.fov) / height
    means = []
    for frame in range(60):
        step = 0.1 * pixel * frame
        moved = replace(
            camera,
            position=(camera.position[0] + step, camera.position[1], camera.position[2]),
            target=(camera.target[0] + step, camera.target[1], camera.target[2]),
        )
        image = stage[1].image(moved, width=200, height=height).astype(float)
        # A region that moves along with the hair, by whole pixels.
        left = 80 + round(0.1 * frame)
        means.append(image[60:90, left : left + 40].mean())
    change = np.abs(np.diff(means)) / np.mean(means)
    assert change.max() < 0.005


@ti.kernel
def _shine(
    shift: ti.f32,
    shine: ti.f32,
    to_light: ti.types.ndarray(dtype=ti.f32, ndim=1),
    base: ti.types.ndarray(dtype=ti.f32, ndim=1),
    to_eye: ti.types.ndarray(dtype=ti.f32, ndim=2),
    out: ti.types.ndarray(dtype=ti.f32, ndim=2),
):
    for i in range(to_eye.shape[0]):
        eye = ti.Vector([to_eye[i, 0], to_eye[i, 1], to_eye[i, 2]])
        along = ti.Vector([0.0, -1.0, 0.0])
        light = ti.Vector([to_light[0], to_light[1], to_light[2]])
        color = ti.Vector([base[0], base[1], base[2]])
        sent = fibre(along, light, eye, 0.0, shift, shine, color)
        for c in ti.static(range(3)):
            out[i, c] = sent[c]


@pytest.mark.parametrize("shift", [0.0, 0.06, 0.12])
def test_highlights_move_by_the_angle_of_shift(
    stage: tuple[StillWorld, Renderer], shift: float
) -> None:
    """Look at hair that hangs, lit level: R moves towards the tip by `shift`, TRT to the root.

    Half of the eye's height over the level is the angle that counts. The lower on the hair, the
    higher over it the eye is: R is brightest where that half is `shift`, TRT where it is one and a
    half times `shift` below the level, which is nearer to the root.
    """
    height = np.linspace(-0.9, 0.9, 2001)
    eye = np.stack([np.zeros_like(height), np.sin(height), np.cos(height)], 1).astype(np.float32)
    peaks = {}
    for name, base in (("R", (0.0, 0.0, 0.0)), ("TRT", (0.3, 0.0, 0.0))):
        sent = np.zeros((len(eye), 3), np.float32)
        level = np.array([0.0, 0.0, 1.0], np.float32)
        _shine(shift, 1.0, level, np.array(base, np.float32), eye, sent)
        # Blue has no colour of its own and shows R; what red has more is TRT and a level glow.
        bright = sent[:, 2] if name == "R" else sent[:, 0] - sent[:, 2]
        upper = bright > bright.max() - 0.3 * np.ptp(bright)
        peaks[name] = np.average(height[upper], weights=bright[upper] - bright[upper].min())
    assert 0.5 * peaks["R"] == pytest.approx(shift, abs=0.004)
    assert 0.5 * peaks["TRT"] == pytest.approx(-1.5 * shift, abs=0.012)


@pytest.mark.parametrize("shine", [0.0, 1.0, 2.0])
def test_hair_sends_out_no_more_light_than_it_gets(
    stage: tuple[StillWorld, Renderer], shine: float
) -> None:
    """Add up what a layer of hairs sends to all sides of it, for light from along and across.

    Light that a white wall would send back whole is seen on it as 0.36, as skin has it.
    """
    random = np.random.Generator(np.random.PCG64(1))
    eye = random.normal(size=(40_000, 3))
    eye /= np.linalg.norm(eye, axis=1, keepdims=True)
    eye[:, 2] = np.abs(eye[:, 2])
    sent = np.zeros((len(eye), 3), np.float32)
    for angle in (-1.2, -0.6, 0.0, 0.6, 1.2):
        light = np.array([0.0, math.sin(angle), math.cos(angle)], np.float32)
        base = np.array([1.0, 0.5, 0.1], np.float32)
        brightest = 0.0
        for color in (base, base[::-1] * 0.3, np.ones(3, np.float32), np.zeros(3, np.float32)):
            _shine(0.1, shine, light, np.ascontiguousarray(color), eye.astype(np.float32), sent)
            out = 2.0 * np.pi * (sent * eye[:, 2:]).mean(axis=0)
            got = 0.36 * np.pi * light[2]
            brightest = max(brightest, float(out.max() / got))
        assert brightest < 1.02
        assert brightest > (0.5 if shine == 0.0 else 0.25)


def test_the_highlight_moves_down_the_picture(stage: tuple[StillWorld, Renderer]) -> None:
    """Photograph a curtain of black hairs, the light behind the camera: R moves to the tips."""
    style = load_style("straight").replace(
        length=0.5, hairs_per_guide=1, frizz=0.0, spread=0.0, hair_width=0.002
    )
    style = style.replace(root_color=(0.0, 0.0, 0.0), tip_color=(0.0, 0.0, 0.0))
    across = np.linspace(-0.08, 0.08, 200)
    start = np.stack([across, np.full(200, 0.25), np.zeros(200)], axis=1)
    camera = Camera(position=(0.0, 0.0, 0.7), target=(0.0, 0.0, 0.0), fov=0.72)
    light = Light(key=(0.0, 0.0, 1.0), world=True, rim_color=(0, 0, 0), sky_color=(0, 0, 0))
    places = []
    for shift in (0.0, 0.06, 0.12):
        end = start - np.array([0.0, 0.5, 0.0])
        groom = straight_groom(style.replace(shift=shift), Head.sphere(0.001), start, end)
        stage[0].clear()
        stage[0].add(groom)
        image = (
            stage[1]
            .image(camera, width=160, height=400, light=light, background="transparent")
            .astype(float)
        )
        weight = image[..., 2] * (image[..., 3] == 255.0)
        rows = np.arange(60, 340)
        bright = weight[rows].sum(axis=1) / np.maximum((weight[rows] > 0.0).sum(axis=1), 1)
        places.append(np.average(rows, weights=bright**3))
    assert places[0] + 5.0 < places[1] < places[2] - 5.0


def test_drawn_hairs_stay_within_a_guide_spacing(stage: tuple[StillWorld, Renderer]) -> None:
    """Measure drawn points from the nearest guide: no farther than guides are from each other."""
    for name in ("straight", "long", "curly", "short"):
        groom = grow(load_style(name).replace(hairs_per_guide=8), Head.sphere(), guides=120)
        stage[0].clear()
        hairs = stage[1].hair_points(stage[0].add(groom))
        share = np.linspace(0.0, 1.0, 60)
        fine = [
            np.stack([np.interp(share * (len(g) - 1), np.arange(len(g)), c) for c in g.T], axis=1)
            for g in groom.strands()
        ]
        lines = np.concatenate(fine)
        points = hairs.reshape(-1, 3)[::7]
        gap = np.sqrt(((points[:, None] - lines) ** 2).sum(axis=2).min(axis=1))
        assert np.quantile(gap, 0.99) < groom.spacing, name


def test_layers_tell_depth_and_whose_hair_it_is(stage: tuple[StillWorld, Renderer]) -> None:
    """Compare depths with a ball's and with the drawn hairs that pixels name."""
    style = load_style("straight").replace(hairs_per_guide=3, hair_width=0.002)
    groom = grow(style, Head.sphere(), guides=30)
    stage[0].clear()
    near = np.eye(4)
    near[0, 3] = 0.3
    first, second = stage[0].add(groom), stage[0].add(groom, pose=near)
    camera = Camera(position=(0.15, 0.0, -1.5), target=(0.15, 0.0, 0.0), fov=0.5)
    layers = stage[1].layers(camera, width=160, height=120, samples=1)
    assert layers.depth.shape == layers.owner.shape == layers.guide.shape == (120, 160)
    nothing = layers.owner < 0
    assert np.isinf(layers.depth[nothing]).all() and np.isfinite(layers.depth[~nothing]).all()
    # Seen from behind, the first hair of the world is on the right.
    assert (layers.owner[:, :60] != 0).all() and (layers.owner[:, 100:] != 1).all()
    assert (layers.owner[:, 100:] == 0).any() and (layers.owner[:, :60] == 1).any()
    scale = 60.0 / math.tan(0.25)
    for owner, hair in enumerate((first, second)):
        drawn = stage[1].hair_points(hair)
        here = (layers.owner == owner) & (layers.hair >= 0)
        assert here.sum() > 100
        assert (layers.hair[here] // 3 == layers.guide[here]).all()
        for y, x in np.argwhere(here)[::7]:
            line = drawn[layers.hair[y, x]]
            depth = line[:, 2] + 1.5
            right = 80.0 - (line[:, 0] - 0.15) * scale / depth
            down = 60.0 - line[:, 1] * scale / depth
            gap = np.hypot(right - x - 0.5, down - y - 0.5)
            assert gap.min() < 4.0
            assert layers.depth[y, x] == pytest.approx(depth[gap.argmin()], abs=0.02)
        skin = (layers.owner == owner) & (layers.hair < 0)
        for y, x in np.argwhere(skin)[::50]:
            ray = np.array([(79.5 - x) / scale, (59.5 - y) / scale, 1.0])
            origin = np.array([0.15 - 0.3 * owner, 0.0, -1.5])
            half, rest = ray @ origin, origin @ origin - 0.01
            root = half**2 - (ray @ ray) * rest
            if root > 0.0:
                depth = (-half - math.sqrt(root)) / (ray @ ray)
                assert layers.depth[y, x] == pytest.approx(depth, abs=0.004)


def test_less_detail_names_the_same_hairs(stage: tuple[StillWorld, Renderer]) -> None:
    """Draw half the hairs: those that are named are among the first of each guide."""
    groom = grow(load_style("straight").replace(hairs_per_guide=6), Head.sphere(), guides=20)
    stage[0].clear()
    stage[0].add(groom)
    layers = stage[1].layers(Camera.back(groom.head), width=120, height=90, detail=0.5)
    named = layers.hair[layers.hair >= 0]
    assert len(named) and (named % 6 < 3).all() and named.max() < 120
    assert scatter(groom, hairs_per_guide=6).strand.shape == (120, 2)


def test_more_melanin_is_darker_and_more_pheomelanin_redder() -> None:
    """Go from white to black, and from brown to red."""
    greys = [sum(melanin_color(amount)) for amount in (0.0, 0.2, 0.5, 1.3, 4.0, 8.0)]
    assert greys[0] == pytest.approx(3.0) and greys[-1] < 0.03
    assert greys == sorted(greys, reverse=True)
    red, plain = melanin_color(0.0, 1.0), melanin_color(0.45)
    assert red[0] / red[1] > plain[0] / plain[1] * 0.99
