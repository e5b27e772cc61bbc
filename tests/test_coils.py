"""Coils and zig-zags as they are drawn: radius, turns, shrinkage, bends, definition, unwinding.

Everything is measured on points of drawn hairs. What a coil adds to a hair is the difference from
the same hair drawn with coils of no radius.
"""

import os
from typing import Any

import numpy as np
import pytest
from reference_draw import StillWorld, straight_groom

from hairkit.backend import open_session
from hairkit.draw import Renderer
from hairkit.draw.scatter import CUT, WILD, scatter
from hairkit.groom import grow
from hairkit.head import Head
from hairkit.style import Style, load_style

BACKENDS = os.environ.get("HAIRKIT_TEST_BACKENDS", "cpu").split(",")
ROUND = ("3a", "3b", "3c", "4a", "4c")
COILED = (*ROUND, "4b")

pytestmark = pytest.mark.render


@pytest.fixture(scope="module", params=BACKENDS)
def stage(request: pytest.FixtureRequest) -> tuple[StillWorld, Renderer]:
    """Open a backend with one world and renderer for all tests, since each would compile anew."""
    world = StillWorld(open_session(request.param))
    return world, Renderer(world)


class Hanging:
    """Straight guides of a style, drawn; what their coils are and how long hair is for each metre.

    Attributes:
        coil: Each hair's points less those of its curve without coils [m], (hairs, points, 2).
        axis: Distance of each point along the guide [m], shape (hairs, points).
        hairs: The points themselves, wandering apart from the coil left out [m].
    """

    def __init__(
        self,
        stage: tuple[StillWorld, Renderer],
        style: Style,
        pull: float = 1.0,
        guides: int = 4,
    ) -> None:
        """Draw hairs with coils and without and keep the difference."""
        style = style.replace(hairs_per_guide=40)
        start = np.stack([0.05 * np.arange(guides), np.full(guides, 0.01), np.zeros(guides)], 1)
        end = start + np.array([0.0, style.length, 0.0])
        groom = straight_groom(style, Head.sphere(0.001), start, end)
        scattered = scatter(groom, hairs_per_guide=40)
        stage[0].clear()
        hair = stage[0].add(groom)
        stage[0].points[: len(groom.points), 1] *= pull
        drawn = []
        for radius in (style.coil_radius, 0.0):
            # The same hairs in the same places: only what their coils add goes.
            groom.style = style.replace(coil_radius=radius)
            drawn.append(stage[1].hair_points(hair))
        self.traits = scattered.trait
        self.own = scattered.strand[:, 0]
        self.coil = (drawn[0] - drawn[1])[..., [0, 2]]
        self.axis = drawn[1][..., 1]
        self.hairs = np.stack([self.coil[..., 0], drawn[0][..., 1], self.coil[..., 1]], axis=-1)
        turns = style.coil * style.length * self.traits[:, CUT]
        # Past where coils grow to their full width and hairs come off the skin; hairs that stray
        # have coils of their own.
        share = max(1.3 / turns.min(), 0.017 / (style.length * self.traits[:, CUT].min()))
        self.begin = int(np.ceil(share * self.axis.shape[1]))
        self.usual = self.traits[:, WILD] == 0.0

    def radii(self) -> np.ndarray:
        """Return how far points are from the axis where coils are full [m], (hairs, points)."""
        return np.linalg.norm(self.coil[:, self.begin :], axis=2)

    def turns(self) -> np.ndarray:
        """Return turns of round coils for each metre along the guide, of each hair."""
        part = self.coil[:, self.begin :]
        angle = np.unwrap(np.arctan2(part[..., 1], part[..., 0]), axis=1)
        way = self.axis[:, -1] - self.axis[:, self.begin]
        return np.abs(angle[:, -1] - angle[:, 0]) / (2.0 * np.pi) / way

    def lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the hairs' own lengths where coils are full, and along the guide [m].

        A round coil's chords are lengthened to the arcs that they cut: by the angle they span.
        """
        part, coil = self.hairs[:, self.begin :], self.coil[:, self.begin :]
        step = np.diff(part, axis=1)
        along, across = step[..., 1], np.linalg.norm(step[..., [0, 2]], axis=2)
        angle = np.diff(np.unwrap(np.arctan2(coil[..., 1], coil[..., 0]), axis=1), axis=1)
        half = np.clip(0.5 * np.abs(angle), 1e-6, 0.5 * np.pi - 1e-3)
        own = np.hypot(along, across * half / np.sin(half)).sum(axis=1)
        return own, along.sum(axis=1)

    def straight_lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the same of hairs that are straight from point to point."""
        step = np.diff(self.hairs[:, self.begin :], axis=1)
        return np.linalg.norm(step, axis=2).sum(axis=1), step[..., 1].sum(axis=1)


def turn_angles(hanging: Hanging) -> np.ndarray:
    """Return by how much each hair turns at each of its points [rad], shape (hairs, points)."""
    step = np.diff(hanging.hairs[:, hanging.begin :], axis=1)
    way = step / np.linalg.norm(step, axis=2, keepdims=True)
    return np.arccos(np.clip(np.sum(way[:, 1:] * way[:, :-1], axis=2), -1.0, 1.0))


@pytest.mark.parametrize("name", ROUND)
def test_round_coils_have_the_radius_and_turns_of_the_chart(
    stage: tuple[StillWorld, Renderer], name: str
) -> None:
    """Measure hairs of every round type."""
    style = load_style(name)
    hanging = Hanging(stage, style)
    assert hanging.radii() == pytest.approx(style.coil_radius, rel=0.10)
    assert hanging.usual.mean() > 0.8
    assert hanging.turns()[hanging.usual] == pytest.approx(style.coil, rel=0.05)


def test_a_zigzag_has_the_depth_and_bends_of_the_chart(
    stage: tuple[StillWorld, Renderer],
) -> None:
    """Measure 4B: how far its bends are from the axis, and how many there are a metre."""
    style = load_style("4b")
    hanging = Hanging(stage, style)
    for hair in np.flatnonzero(hanging.usual):
        off = np.linalg.norm(hanging.coil[hair, hanging.begin :], axis=1)
        peak = (off[1:-1] > off[:-2]) & (off[1:-1] >= off[2:])
        axis = hanging.axis[hair, hanging.begin + 1 : -1][peak]
        assert off[1:-1][peak] == pytest.approx(style.coil_radius, rel=0.10)
        # Two bends a turn.
        assert (len(axis) - 1) / (axis[-1] - axis[0]) == pytest.approx(2.0 * style.coil, rel=0.05)


@pytest.mark.parametrize("name", COILED)
def test_hair_shrinks_by_the_charts_share(stage: tuple[StillWorld, Renderer], name: str) -> None:
    """Compare how long hairs are with how far they reach."""
    style = load_style(name)
    hanging = Hanging(stage, style)
    own, reach = hanging.straight_lengths() if name == "4b" else hanging.lengths()
    shrunk = (1.0 - reach / own)[hanging.usual]
    assert shrunk == pytest.approx(style.shrinkage, abs=0.02)


@pytest.mark.parametrize("name", COILED)
def test_a_pulled_coil_keeps_its_length_and_narrows(
    stage: tuple[StillWorld, Renderer], name: str
) -> None:
    """Pull guides half and all of the way: the same hair, narrower; straight when fully out."""
    style = load_style(name)
    most = 1.0 / (1.0 - style.shrinkage)
    half = 0.5 * (1.0 + most)
    at_rest, pulled = Hanging(stage, style), Hanging(stage, style, half)
    lengths = [
        (h.straight_lengths() if name == "4b" else h.lengths())[0] for h in (at_rest, pulled)
    ]
    assert lengths[1] == pytest.approx(lengths[0], rel=0.01)
    narrow = np.sqrt((most**2 - half**2) / (most**2 - 1.0))
    ratio = np.median(pulled.radii()) / np.median(at_rest.radii())
    assert ratio == pytest.approx(narrow, abs=0.03)
    straight = Hanging(stage, style, most)
    assert straight.radii()[straight.usual].max() < 0.1 * style.coil_radius


def test_bends_are_sharp_in_4b_and_round_in_4a(stage: tuple[StillWorld, Renderer]) -> None:
    """Compare where hairs turn: at a few points by much, or everywhere alike."""
    sharp, even = (turn_angles(Hanging(stage, load_style(name))) for name in ("4b", "4a"))
    assert np.quantile(even, 0.9) < 1.35 * np.quantile(even, 0.1)
    # Most points of a zig-zag lie on a straight stretch; a third of them makes nearly all turns.
    order = np.sort(sharp, axis=1)[:, ::-1]
    third = order.shape[1] // 3
    assert (order[:, :third].sum(axis=1) > 0.8 * order.sum(axis=1)).all()
    assert np.median(order[:, : third // 2]) > np.radians(70.0)
    assert np.median(sharp) < np.radians(20.0)


def test_a_zigzags_bends_change_sides_and_turn_their_plane(
    stage: tuple[StillWorld, Renderer],
) -> None:
    """Look at the directions of successive bends: about opposite, never quite in one plane."""
    hanging = Hanging(stage, load_style("4b"))
    for hair in np.flatnonzero(hanging.usual)[:40]:
        part = hanging.coil[hair, hanging.begin :]
        off = np.linalg.norm(part, axis=1)
        peak = np.flatnonzero((off[1:-1] > off[:-2]) & (off[1:-1] >= off[2:])) + 1
        way = part[peak] / off[peak, None]
        facing = np.sum(way[1:] * way[:-1], axis=1)
        assert (facing < -0.5).all() and (facing > -0.95).all()


def test_definition_says_how_alike_a_clumps_hairs_are(
    stage: tuple[StillWorld, Renderer],
) -> None:
    """Compare coils of hairs of one lock, type by type: from together (3A) to each alone (4C)."""
    alike = []
    for name in ("3a", "3b", "3c", "4a", "4b", "4c"):
        hanging = Hanging(stage, load_style(name))
        # Half way down: where the hair is round its axis there, or at the nearest bend.
        place = 0.01 + 0.5 * load_style(name).length
        off = np.linalg.norm(hanging.coil, axis=2)
        gap = np.where(off > 0.8 * load_style(name).coil_radius, abs(hanging.axis - place), 1.0)
        near = gap.argmin(axis=1)[:, None, None]
        at = np.take_along_axis(hanging.coil, near, axis=1)[:, 0]
        phase = np.arctan2(at[:, 1], at[:, 0])
        locks = np.unique(hanging.traits[:, 6], return_inverse=True)[1]
        together = [
            abs(np.mean(np.exp(1j * phase[locks == lock])))
            for lock in range(locks.max() + 1)
            if np.count_nonzero(locks == lock) >= 5
        ]
        alike.append(float(np.mean(together)))
    assert alike == sorted(alike, reverse=True)
    assert alike[0] > 0.9 and alike[-1] < 0.45


def test_coils_are_of_both_hands(stage: tuple[StillWorld, Renderer]) -> None:
    """Count which way coils turn; a lock's hairs turn alike."""
    hanging = Hanging(stage, load_style("3b"))
    part = hanging.coil[:, hanging.begin :]
    angle = np.unwrap(np.arctan2(part[..., 1], part[..., 0]), axis=1)
    hand = np.sign(angle[:, -1] - angle[:, 0])
    assert 0.2 < np.mean(hand > 0) < 0.8
    for lock in np.unique(hanging.traits[:, 6]):
        assert len(set(hand[hanging.traits[:, 6] == lock])) == 1


def test_coils_do_not_flip_as_the_head_turns(stage: tuple[StillWorld, Renderer]) -> None:
    """Turn head and guides by steps all the way round: no drawn point jumps."""
    style = load_style("3b").replace(hairs_per_guide=4)
    groom: Any = grow(style, Head.sphere(), guides=10)
    before = None
    for angle in np.linspace(0.0, 2.0 * np.pi, 25):
        pose = np.eye(4)
        pose[:3, :3] = [
            [np.cos(angle), 0.0, np.sin(angle)],
            [0.0, 1.0, 0.0],
            [-np.sin(angle), 0.0, np.cos(angle)],
        ]
        stage[0].clear()
        local = stage[1].hair_points(stage[0].add(groom, pose=pose)) @ pose[:3, :3]
        assert before is None or np.abs(local - before).max() < 5e-6
        before = local
