"""What is fixed about drawn hairs that have lines of their own: where they lie beside their guides.

NumPy, once for each groom, as `scatter` is for hairs that a style places.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hairkit.draw.scatter import CUT, TILT, TINT, TRAIT_COUNT, WARMTH, Scatter, strand_frames

LINE_NUMBERS = 5
"""Numbers of a point at rest: place (3), share of its hair's length, least distance to a solid."""

NEAREST = 4e-4
"""Hair that was farther from head and body at rest keeps this far away from them [m]."""

_BLOCK = 1_000_000
"""Points that are measured at once."""


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Drawn hairs of one groom in the order in which they are drawn; the first stand for all."""

    order: NDArray[np.int64]
    """Which of the groom's hairs each is, shape (hairs,)."""

    line: NDArray[np.float32]
    """Numbers of each point at rest in the head's frame, shape (hairs, points, LINE_NUMBERS)."""

    guide: NDArray[np.int32]
    """Guides that each hair follows, shape (hairs, 3)."""

    share: NDArray[np.float32]
    """How much each guide counts (3), how much of it the hair's length is (3), and that length [m],
    shape (hairs, 7)."""

    rest: NDArray[np.float32]
    """Guide points at rest in the head's frame [m], shape (guide points, 3)."""

    frame: NDArray[np.float32]
    """Unit vectors along and across the guide at each of these, shape (guide points, 6)."""

    reach: float
    """Farthest that a hair lies from its first guide at rest [m]."""


def scatter_lines(groom: Any) -> tuple[Scatter, Lines]:
    """Put a groom's own drawn hairs in order, and measure where they lie.

    Args:
        groom: The `Groom` that is drawn, with hairs.
    """
    hairs, head = groom.hairs, groom.head
    count = len(hairs.points)
    random = np.random.Generator(np.random.PCG64([int(groom.seed) & 0x7FFFFFFF, 0x4C494E45]))
    # Any first few of them lie all over the head.
    order = random.permutation(count)
    points = hairs.points[order].astype(np.float64)
    guides = hairs.guides[order]
    tint = random.standard_normal(len(groom.roots))
    warmth = random.standard_normal(len(groom.roots))
    trait = np.zeros((count, TRAIT_COUNT), np.float32)
    trait[:, CUT] = 1.0
    own = 0.35 * tint[guides[:, 0]] + 0.85 * random.standard_normal(count)
    trait[:, TINT] = np.exp(0.20 * np.clip(own, -2.5, 2.5))
    trait[:, WARMTH] = np.clip(warmth[guides[:, 0]], -2.0, 2.0)
    trait[:, TILT] = np.clip(random.standard_normal(count), -2.0, 2.0)
    strands = strand_frames(groom)
    scattered = Scatter(
        strand=np.ascontiguousarray(guides[:, :2]),
        trait=trait,
        root=points[:, 0],
        frame=strands,
    )
    guide_length = (groom.lengths * groom.style.length)[guides]
    length = hairs.lengths[order][:, None]
    line = np.zeros((*points.shape[:2], LINE_NUMBERS), np.float32)
    line[..., :3], line[..., 3] = points, hairs.shares[order]
    flat = line.reshape(-1, LINE_NUMBERS)
    for first in range(0, len(flat), _BLOCK):
        # As the kernel will see them, in single precision, which itself is off by this much.
        distance, _ = head.signed_distance(flat[first : first + _BLOCK, :3])
        flat[first : first + _BLOCK, 4] = np.minimum(distance - 2e-6, NEAREST)
    share = [hairs.weights[order], length / np.maximum(guide_length, length), length]
    along, across = rest_frames(groom.points, groom.counts, strands[:, :3])
    places = np.asarray(groom.points)[groom.starts[guides[:, 0]]]
    place = points - places[:, None]
    # The root's distance, and from there as far as the directions differ.
    tips = np.asarray(groom.points)[(groom.starts + groom.counts - 1)[guides[:, 0]]]
    reach = max(
        float(np.linalg.norm(place[:, 0], axis=1).max()),
        float(np.linalg.norm(points[:, -1] - tips, axis=1).max()),
    )
    return scattered, Lines(
        order=order,
        line=line,
        guide=np.ascontiguousarray(guides),
        share=np.concatenate(share, axis=1).astype(np.float32),
        rest=np.asarray(groom.points, np.float32),
        frame=np.concatenate([along, across], axis=1).astype(np.float32),
        reach=reach,
    )


def rest_frames(
    points: NDArray[np.float64], counts: NDArray[np.int32], side: NDArray[np.floating]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return unit vectors along and across guides at each point, as `carry_frames` carries them.

    Args:
        points: Strand by strand, root to tip [m], shape (points, 3).
        counts: Points of each strand, shape (strands,).
        side: Unit vector across each strand's root, shape (strands, 3).
    """
    start = np.cumsum(counts) - counts
    along, across = np.zeros_like(points), np.zeros_like(points)
    before = _unit(points[start + 1] - points[start])
    side = np.asarray(side, dtype=np.float64)
    side = _unit(side - before * _dot(side, before))
    for place in range(int(counts.max())):
        live = np.flatnonzero(counts > place)
        row, last = start[live] + place, start[live] + counts[live] - 1
        way = _unit(points[np.minimum(row + 1, last)] - points[np.maximum(row - 1, start[live])])
        old = before[live]
        turned = side[live] - (old + way) * (
            _dot(side[live], way) / np.maximum(1.0 + _dot(old, way), 1e-3)
        )
        side[live] = _unit(turned - way * _dot(turned, way))
        before[live] = way
        along[row], across[row] = way, side[live]
    return along, across


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return vectors / np.sqrt(np.maximum(_dot(vectors, vectors), 1e-20))


def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sum(a * b, axis=1, keepdims=True)
