"""From a groom to rows and blocks: where strands lie, and their rods' constants (NumPy only)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hairkit.errors import GroomError
from hairkit.groom import Groom
from hairkit.style import Style

FEWEST_POINTS = 3
"""Points 0 and 1 belong to the head; a strand needs one of its own."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A hair's rows and blocks, counted from its own first row, block and point."""

    row_count: int
    """Rows of points."""

    rows: NDArray[np.floating]
    """Rest point [m], rest curvature [m], bending [1/s^2], length [m], thickness as a share of the
    hair's collision radius, shape (row_count, lanes, 9)."""

    frames: NDArray[np.floating]
    """Normal of each strand's root edge in the head's frame, shape (blocks, lanes, 3)."""

    blocks: NDArray[np.int32]
    """First simulated row and simulated points of each block, shape (blocks, 2)."""

    strand_row: NDArray[np.int32]
    """Row of each strand's first point, shape (strands,)."""

    strand_lane: NDArray[np.int32]
    """Lane of each strand, shape (strands,)."""

    strand_start: NDArray[np.int32]
    """First point of each strand in strand order, shape (strands,)."""

    strand_rigid: NDArray[np.int32]
    """Points of each strand before its first simulated one, which follow the head, (strands,)."""

    stiffest: float
    """Twice the largest bending stiffness [1/s^2]; it sets the clock of the hair."""


def pack(groom: Groom, *, lanes: int, stride: int, dtype: type = np.float32) -> Layout:
    """Lay a groom's strands out for the solver.

    Args:
        groom: What to lay out.
        lanes: Strands that share a row, 8 on a CPU, 1 on a GPU.
        stride: Strands that take turns row by row, 1 on a CPU, 32 on a GPU.
        dtype: Of rows and frames; f64 where derivatives are wanted.

    Raises:
        GroomError: A strand has fewer than 3 points, a point that is not finite, or no length.
    """
    counts, start, rigid = strand_rows(groom)
    points = np.asarray(groom.points, np.float64)
    width = lanes * stride
    strand_row = np.zeros(len(counts), np.int32)
    strand_lane = np.zeros(len(counts), np.int32)
    blocks: list[tuple[int, int]] = []
    strand_block = np.zeros(len(counts), np.int64)
    row = 0
    for count, skip in np.unique(np.stack([counts, rigid]), axis=1).T:
        members = np.flatnonzero((counts == count) & (rigid == skip))
        for first in range(0, len(members), width):
            group = members[first : first + width]
            if lanes > 1:
                strand_row[group] = row
                strand_lane[group] = np.arange(len(group))
                strand_block[group] = len(blocks)
                blocks.append((row + int(skip), int(count - skip)))
                row += int(count)
            else:
                strand_row[group] = row + np.arange(len(group))
                strand_block[group] = len(blocks) + np.arange(len(group))
                blocks.extend(
                    (row + int(skip) * stride + turn, int(count - skip))
                    for turn in range(len(group))
                )
                row += int(count) * stride
    values, frames, stiffest = _rods(groom, counts, points, start, rigid)
    strand = np.repeat(np.arange(len(counts)), counts)
    index = np.arange(len(points)) - start[strand]
    rows = np.zeros((row, lanes, 9), dtype)
    rows[:, :, 7:] = 1.0
    block_frames = np.zeros((len(blocks), lanes, 3), dtype)
    if lanes > 1:
        # Lanes without a strand of their own copy the block's first, so that they cost no special
        # case.
        for head in np.flatnonzero(strand_lane == 0):
            first_row, count = strand_row[head], counts[head]
            rows[first_row : first_row + count] = values[start[head] : start[head] + count][:, None]
            block_frames[strand_block[head]] = frames[head]
    rows[strand_row[strand] + index * stride, strand_lane[strand]] = values
    block_frames[strand_block, strand_lane] = frames
    return Layout(
        row_count=row,
        rows=rows,
        frames=block_frames,
        blocks=np.asarray(blocks, np.int32),
        strand_row=strand_row,
        strand_lane=strand_lane,
        strand_start=start.astype(np.int32),
        strand_rigid=rigid.astype(np.int32),
        stiffest=stiffest,
    )


def strand_rows(
    groom: Groom,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return each strand's points, its first point, and its points before the first simulated one.

    Raises:
        GroomError: A strand has fewer than 3 points, a point that is not finite, or no length.
    """
    counts = np.asarray(groom.counts, np.int64)
    start = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
    # What is laid over the scalp is not simulated, but its last segment is the root's.
    rigid = np.asarray(groom.laid, np.int64) - 2
    _check(counts, np.asarray(groom.points, np.float64), start, rigid)
    return counts, start, rigid


def joint_weights(count: int) -> NDArray[np.float64]:
    """Return what bending stiffness is multiplied by along a strand's points, shape (count,).

    The root edge is clamped along its whole length: with these weights (after Gregory's at the end
    of an integral) a cantilever's sag converges at third order.
    """
    weights = np.ones(count)
    weights[1] = 12.0 / 5.0
    weights[2] = 12.0 / 13.0
    return weights


def joint_stiffness(
    style: Style, edge: NDArray[np.float64], skip: int, full: int
) -> NDArray[np.float64]:
    """Return the bending stiffness of strands' joints [1/s^2], shape (strands, full - skip).

    EI over (mass of a point) x segment^3; 0 at the two ends, which are no joints.

    Args:
        style: What the hair is like.
        edge: Lengths of their segments [m], shape (strands, full - skip - 1).
        skip: Points before the first simulated one.
        full: All points of a strand.
    """
    segment = edge.mean(axis=1)
    share = np.arange(skip, full) / (full - 1)
    along = style.bending_rigidity() * style.bending_along(share)
    stiffness = along[None] / (style.density * segment**4)[:, None]
    stiffness[:, 0] = stiffness[:, -1] = 0.0
    return stiffness * joint_weights(full - skip)


def stiffest_joint(stiffness: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what each strand asks of the clock, twice its largest stiffness [1/s^2], shape (s,).

    Args:
        stiffness: Of its joints [1/s^2], shape (s, points); the first ones' weights do not count.
    """
    return 2.0 * (stiffness / joint_weights(stiffness.shape[1])).max(axis=1)


def transport(
    a: NDArray[np.float64], b: NDArray[np.float64], v: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Carry vectors v along with the smallest rotations of unit vectors a to b, (n, 3)."""
    c = np.cross(a, b)
    k = 1.0 / (1.0 + np.maximum((a * b).sum(-1, keepdims=True), -0.98))
    p = np.cross(c, v)
    return v + p + np.cross(c, p) * k


def _check(
    counts: NDArray[np.int64],
    points: NDArray[np.float64],
    start: NDArray[np.int64],
    rigid: NDArray[np.int64],
) -> None:
    if len(counts) == 0:
        raise GroomError("groom: expected at least one strand, got none")
    short = np.flatnonzero(counts < FEWEST_POINTS)
    if len(short):
        raise GroomError(
            f"strand {short[0]}: expected at least {FEWEST_POINTS} points, got {counts[short[0]]}"
        )
    short = np.flatnonzero((rigid < 0) | (counts - rigid < FEWEST_POINTS))
    if len(short):
        raise GroomError(
            f"strand {short[0]}: {rigid[short[0]] + 2} of its {counts[short[0]]} points are laid; "
            "expected at least 2, and one that moves"
        )
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if len(bad):
        strand = int(np.searchsorted(start, bad[0], side="right")) - 1
        raise GroomError(f"strand {strand}: point {bad[0] - start[strand]} is not finite")
    step = np.linalg.norm(np.diff(points, axis=0), axis=1)
    inner = np.ones(len(step), bool)
    inner[start[1:] - 1] = False
    flat = np.flatnonzero(inner & (step < 1e-7))
    if len(flat):
        strand = int(np.searchsorted(start, flat[0], side="right")) - 1
        raise GroomError(f"strand {strand}: points {flat[0] - start[strand]} and the next coincide")


def _rods(
    groom: Groom,
    counts: NDArray[np.int64],
    points: NDArray[np.float64],
    start: NDArray[np.int64],
    rigid: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return points' constants (points, 9), root normals (strands, 3), largest stiffness."""
    style = groom.style
    # Chains have no rest values but their shape's.
    bends, lengths, stiffening = (
        getattr(groom, name, None) for name in ("rest_bends", "rest_lengths", "stiffening")
    )
    values = np.zeros((len(points), 9))
    values[:, :3] = points
    values[:, 7] = 1.0
    values[:, 8] = getattr(groom, "thickness", 1.0)
    frames = np.zeros((len(counts), 3))
    stiffest = 0.0
    for full, skip in np.unique(np.stack([counts, rigid]), axis=1).T:
        members = np.flatnonzero((counts == full) & (rigid == skip))
        count = full - skip
        at = (start[members] + skip)[:, None] + np.arange(count)
        x = points[at]
        edge = np.linalg.norm(np.diff(x, axis=1), axis=2)
        values[at[:, :-1], 7] = edge if lengths is None else lengths[at[:, :-1]]
        rigidity = joint_stiffness(style, edge, int(skip), int(full))
        if stiffening is not None:
            rigidity *= stiffening[at]
        stiffest = max(stiffest, float(stiffest_joint(rigidity).max()))
        values[at, 6] = rigidity
        # Rest curvature in the frame carried along the chords from the root edge.
        u = x[:, 1] - x[:, 0]
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        axis = np.eye(3)[np.argmin(np.abs(u), axis=1)]
        normal = np.cross(u, axis)
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        frames[members] = normal
        for i in range(1, count - 1):
            v = x[:, i + 1] - x[:, i - 1]
            v /= np.linalg.norm(v, axis=1, keepdims=True) + 1e-12
            normal = transport(u, v, normal)
            u = v
            bend = x[:, i - 1] - 2.0 * x[:, i] + x[:, i + 1]
            if bends is not None:
                bend = bends[at[:, i]]
            values[at[:, i], 3] = (bend * normal).sum(1)
            values[at[:, i], 4] = (bend * np.cross(u, normal)).sum(1)
            values[at[:, i], 5] = (bend * u).sum(1)
    return values, frames, stiffest
