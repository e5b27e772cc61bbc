"""Braids, twists and locs as they are drawn: their ropes, their pattern, and that hair stays in."""

import os
from typing import Any

import numpy as np
import pytest
from reference_draw import StillWorld, catmull_rom, straight_groom

from hairkit.backend import open_session
from hairkit.draw import Renderer
from hairkit.draw.expand import JOIN
from hairkit.draw.layout import points_per_hair
from hairkit.draw.scatter import ROPE_PHASE, START, scatter
from hairkit.groom import grow
from hairkit.head import Head
from hairkit.paths import assets_dir
from hairkit.style import Style, load_style

BACKENDS = os.environ.get("HAIRKIT_TEST_BACKENDS", "cpu").split(",")
LENGTH, TURNS, RADIUS = 0.3, 20.0, 0.006

pytestmark = pytest.mark.render


@pytest.fixture(scope="module", params=BACKENDS)
def stage(request: pytest.FixtureRequest) -> tuple[StillWorld, Renderer]:
    """Open a backend with one world and renderer for all tests, since each would compile anew."""
    world = StillWorld(open_session(request.param))
    return world, Renderer(world)


def plaited(ropes: int, **changes: Any) -> Style:
    """Return a style of straight plaits."""
    values = {"length": LENGTH, "plait_turns": TURNS, "plait_radius": RADIUS, "frizz": 0.0}
    return load_style("straight").replace(plait=ropes, hairs_per_guide=120, **(values | changes))


def drawn(stage: tuple[StillWorld, Renderer], groom: Any) -> np.ndarray:
    """Return the drawn hairs of one groom [m], shape (hairs, points, 3)."""
    stage[0].clear()
    return stage[1].hair_points(stage[0].add(groom))


def ropes_of(stage: tuple[StillWorld, Renderer], style: Style) -> tuple[np.ndarray, np.ndarray]:
    """Return the middles of a hanging plait's ropes in units of its radius, and their heights.

    They are taken at even steps down the plait, past where hairs come in and before it thins out;
    the middles have shape (ropes, steps, 2), the heights [m] (steps,).
    """
    start = np.array([[0.0, 0.01, 0.0]])
    groom = straight_groom(
        style, Head.sphere(0.01), start, start + np.array([0.0, style.length, 0.0])
    )
    hairs = drawn(stage, groom)
    phase = scatter(groom, hairs_per_guide=style.hairs_per_guide).trait[:, ROPE_PHASE]
    height = np.linspace(0.03, 0.85 * style.length, 600)
    flat = np.stack(
        [
            np.stack([np.interp(height, h[:, 1], h[:, axis]) for axis in (0, 2)], axis=-1)
            for h in hairs
        ]
    )
    middles = [flat[np.isclose(phase, p)].mean(axis=0) for p in np.unique(phase)]
    return np.array(middles) / style.plait_radius, height


def principal(middles: np.ndarray) -> np.ndarray:
    """Return the same middles along their widest direction and across it."""
    every = middles.reshape(-1, 2)
    _, axes = np.linalg.eigh(np.cov(every.T))
    return middles @ axes[:, ::-1]


def test_a_braids_ropes_cross_six_times_a_repeat_over_and_under(
    stage: tuple[StillWorld, Renderer],
) -> None:
    """Follow three ropes: count crossings, see who is in front, and that no two go through."""
    middles, height = ropes_of(stage, plaited(3))
    middles = principal(middles)
    wide, deep = middles[..., 0], middles[..., 1]
    front: list[tuple[float, int, int, float]] = []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        gap = wide[a] - wide[b]
        at = np.flatnonzero(gap[:-1] * gap[1:] < 0.0)
        front += [(float(height[i]), a, b, float(deep[a, i] - deep[b, i])) for i in at]
        apart = np.hypot(*(middles[a] - middles[b]).T)
        assert apart.min() > 0.5, "two ropes go through each other"
    repeats = (height[-1] - height[0]) * TURNS
    assert len(front) == pytest.approx(6.0 * repeats, abs=2.0)
    assert min(abs(depth) for *_, depth in front) > 0.4
    # Each rope is over at one of its crossings and under at the next.
    for rope in range(3):
        mine = [d if rope == a else -d for _, a, b, d in sorted(front) if rope in (a, b)]
        over = np.sign(mine)
        assert abs(over.sum()) <= 2 and len(mine) > 10
        assert np.count_nonzero(np.diff(over)) > 0.4 * len(mine)


@pytest.mark.parametrize("ropes", [2, 3])
def test_the_pattern_repeats_as_often_as_the_style_says(
    stage: tuple[StillWorld, Renderer], ropes: int
) -> None:
    """Count how often a rope passes from side to side."""
    middles, height = ropes_of(stage, plaited(ropes))
    for rope in principal(middles)[..., 0]:
        crossing = height[:-1][(rope[:-1] < 0.0) & (rope[1:] >= 0.0)]
        assert np.diff(crossing).mean() == pytest.approx(1.0 / TURNS, rel=0.02)


def test_a_twists_two_strands_lie_side_by_side(stage: tuple[StillWorld, Renderer]) -> None:
    """Measure the distance of the two strands and that they turn round each other."""
    middles, height = ropes_of(stage, plaited(2))
    gap = middles[0] - middles[1]
    assert np.hypot(*gap.T) == pytest.approx(1.0, abs=0.12)
    turned = np.unwrap(np.arctan2(gap[:, 1], gap[:, 0]))
    wanted = 2.0 * np.pi * TURNS * (height[-1] - height[0])
    assert abs(turned[-1] - turned[0]) == pytest.approx(wanted, rel=0.02)


@pytest.mark.parametrize("ropes", [1, 2, 3])
def test_a_plait_is_as_wide_as_the_style_says(
    stage: tuple[StillWorld, Renderer], ropes: int
) -> None:
    """Measure drawn hairs of a straight plait across it: they fill it and none leaves it."""
    style = plaited(ropes, frizz=0.5)
    start = np.array([[0.0, 0.01, 0.0]])
    groom = straight_groom(style, Head.sphere(0.01), start, start + np.array([0.0, LENGTH, 0.0]))
    hairs = drawn(stage, groom)
    height = hairs[..., 1] - 0.01
    body = (height > JOIN) & (height < 0.9 * LENGTH)
    off = np.hypot(hairs[..., 0], hairs[..., 2])[body]
    assert off.max() < 1.02 * RADIUS
    assert np.quantile(off, 0.98) > 0.8 * RADIUS


def test_a_ropes_hairs_turn_with_it(stage: tuple[StillWorld, Renderer]) -> None:
    """Follow one hair of a loc round its middle."""
    style = plaited(1)
    start = np.array([[0.0, 0.01, 0.0]])
    groom = straight_groom(style, Head.sphere(0.01), start, start + np.array([0.0, LENGTH, 0.0]))
    for hair in drawn(stage, groom)[:10]:
        past = hair[hair[:, 1] > 0.01 + JOIN]
        angle = np.unwrap(np.arctan2(past[:, 2], past[:, 0]))
        wanted = 2.0 * np.pi * TURNS * (past[-1, 1] - past[0, 1])
        assert abs(angle[-1] - angle[0]) == pytest.approx(wanted, rel=0.03)


@pytest.mark.parametrize("name", ["box braids", "two-strand twists", "locs", "cornrows"])
def test_no_hair_leaves_its_braid_on_a_head(stage: tuple[StillWorld, Renderer], name: str) -> None:
    """Measure every drawn point past where its hair came in from its own guide's line."""
    style = load_style(name)
    head = Head.load(assets_dir() / "head.glb")
    groom = grow(
        style.replace(hairs_per_guide=30), head, guides=60 if not style.row_guides else 160
    )
    hairs = drawn(stage, groom)
    scattered = scatter(groom, hairs_per_guide=30)
    curves = [
        np.array([catmull_rom(line, u)[0] for u in np.linspace(0, len(line) - 1.001, 800)])
        for line in groom.strands()
    ]
    for hair, own, trait in zip(hairs, scattered.strand[:, 0], scattered.trait, strict=True):
        line = curves[own]
        share = np.linspace(trait[START], 0.94, len(hair))
        grown = (share - trait[START]) * style.length
        past = hair[grown > 2.5 * JOIN][::3]
        gap = np.linalg.norm(past[:, None] - line, axis=2).min(axis=1)
        assert gap.max() < 1.03 * style.plait_radius


def test_fed_hair_of_cornrows_starts_on_the_scalp_beside_its_row(
    stage: tuple[StillWorld, Renderer],
) -> None:
    """Measure where fed hairs start: on the skin, and nearer to their own row than to another."""
    head = Head.load(assets_dir() / "head.glb")
    groom = grow(load_style("cornrows").replace(hairs_per_guide=60), head, guides=160)
    scattered = scatter(groom, hairs_per_guide=60)
    fed = scattered.trait[:, START] > 0.0
    assert 0.6 < fed.mean() < 0.9
    roots = drawn(stage, groom)[fed, 0]
    # Over the ear, where the row turns away from the skin, a few begin inside the braid.
    assert np.quantile(np.abs(head.signed_distance(roots)[0]), 0.95) < 1e-3
    ways = [line[:rigid] for line, rigid in zip(groom.strands(), groom.laid, strict=True)]
    fine = [
        np.stack([np.interp(np.linspace(0, len(w) - 1, 200), np.arange(len(w)), c) for c in w.T], 1)
        for w in ways
    ]
    gaps = np.stack([np.linalg.norm(roots[:, None] - w, axis=2).min(axis=1) for w in fine], 1)
    assert np.mean(gaps.argmin(axis=1) == scattered.strand[fed, 0]) > 0.99


def test_plaits_have_twelve_points_a_repeat() -> None:
    """Count the points of drawn hairs, up to the most that there may be."""
    assert points_per_hair(plaited(3, plait_turns=20.0)) == 12 * 6 + 1
    assert points_per_hair(plaited(2, plait_turns=300.0)) == 161
    assert points_per_hair(plaited(1, plait_turns=0.0)) == 2 * 13 + 1
