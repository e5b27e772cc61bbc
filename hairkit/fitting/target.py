"""What a fit aims at, and how far simulated points are from it."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree

from hairkit.errors import FitError
from hairkit.groom.lines import line_length, walk

Points = NDArray[np.float64]

LARGE = 3.0
"""A target that reaches farther than this many heads beyond the hair is in another unit."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Pairs:
    """Which simulated points should be where; what is left over is the residual."""

    rows: NDArray[np.int64]
    """Rows of the simulated points, all frames' one after the other, shape (pairs,)."""

    goals: Points
    """Where each should be [m], shape (pairs, 3)."""

    weights: Points
    """Factor of each pair's residual, shape (pairs,)."""


class Target(Protocol):
    """Anything that can say which simulated points should be where."""

    def pairs(self, points: Points) -> Pairs:
        """Return pairs for simulated points [m], shape (frames, points, 3)."""
        ...


class PointTarget:
    """Points in correspondence: the same strands with the same points, frame by frame."""

    def __init__(self, points: ArrayLike, shape: tuple[int, int, int]) -> None:
        """Check the points.

        Args:
            points: Where each simulated point should be [m], shape (frames, points, 3), or
                (points, 3) for one frame.
            shape: The simulated points'.

        Raises:
            FitError: The shape is another one, or a number is not finite.
        """
        goal = np.asarray(points, np.float64)
        goal = goal[None] if goal.ndim == 2 else goal
        if goal.shape != shape:
            raise FitError(
                f"target: points of shape {goal.shape}, expected {shape} (frames, points, 3); "
                "for other strands use match='strands' or match='cloud'"
            )
        _check_finite(goal)
        self._pairs = Pairs(
            rows=np.arange(shape[0] * shape[1]),
            goals=goal.reshape(-1, 3),
            weights=np.ones(shape[0] * shape[1]),
        )

    def pairs(self, points: Points) -> Pairs:
        """Return every point's own goal."""
        return self._pairs


class StrandTarget:
    """Strands without correspondence: each simulated strand aims at the nearest strand.

    Near is measured point by point along the arc, root to root and tip to tip, so that a strand
    that runs another way is far even where the two cross.
    """

    def __init__(
        self, points: ArrayLike, counts: ArrayLike, simulated: NDArray[np.int32], frames: int
    ) -> None:
        """Resample the target along its arc.

        Args:
            points: Strand by strand, root to tip [m], shape (points, 3), or (frames, points, 3).
            counts: Points of each strand, shape (strands,).
            simulated: Points of each simulated strand, shape (s,).
            frames: How many frames are looked at.

        Raises:
            FitError: A strand has no length or fewer than two points, or frames do not match.
        """
        goal = np.asarray(points, np.float64)
        goal = goal[None] if goal.ndim == 2 else goal
        sizes = np.asarray(counts, np.int64)
        if len(goal) != frames or goal.ndim != 3 or goal.shape[2] != 3:
            raise FitError(f"target: shape {goal.shape}, expected ({frames}, points, 3)")
        if sizes.sum() != goal.shape[1] or len(sizes) == 0:
            raise FitError(f"target: counts sum to {sizes.sum()}, expected {goal.shape[1]}")
        _check_finite(goal)
        short = np.flatnonzero(sizes < 2)
        if len(short):
            raise FitError(f"target: strand {short[0]} has {sizes[short[0]]} points, expected 2")
        self._simulated = simulated
        self._lines: list[dict[int, Points]] = []
        for frame in goal:
            strands = np.split(frame, np.cumsum(sizes)[:-1])
            self._lines.append(
                {
                    int(n): np.stack([_along(line, int(n), i) for i, line in enumerate(strands)])
                    for n in np.unique(simulated)
                }
            )

    def pairs(self, points: Points) -> Pairs:
        """Return each simulated point's place on the nearest strand."""
        goals = np.zeros_like(points)
        starts = np.cumsum(self._simulated) - self._simulated
        for frame, lines in enumerate(self._lines):
            for n, strands in lines.items():
                mine = np.flatnonzero(self._simulated == n)
                at = starts[mine][:, None] + np.arange(n)
                tree = KDTree(strands.reshape(len(strands), -1))
                _, nearest = tree.query(points[frame][at].reshape(len(mine), -1))
                goals[frame][at] = strands[nearest]
        total = points.shape[0] * points.shape[1]
        return Pairs(rows=np.arange(total), goals=goals.reshape(-1, 3), weights=np.ones(total))


class CloudTarget:
    """A cloud of points, as of a scan: both ways nearest, as in the Chamfer distance."""

    def __init__(self, points: ArrayLike, frames: int) -> None:
        """Check the points.

        Args:
            points: The cloud [m], shape (n, 3), or (frames, n, 3).
            frames: How many frames are looked at.

        Raises:
            FitError: It is a single point, not finite, or of another number of frames.
        """
        goal = np.asarray(points, np.float64)
        goal = goal[None] if goal.ndim == 2 else goal
        if goal.ndim != 3 or goal.shape[2] != 3 or len(goal) != frames:
            raise FitError(f"target: shape {goal.shape}, expected ({frames}, points, 3)")
        if goal.shape[1] < 2:
            raise FitError("target: a single point, expected a cloud")
        _check_finite(goal)
        self._goal = goal
        self._trees = [KDTree(frame) for frame in goal]

    def pairs(self, points: Points) -> Pairs:
        """Return each simulated point's nearest of the cloud, and the other way round."""
        count = points.shape[1]
        rows: list[NDArray[np.int64]] = []
        goals: list[Points] = []
        weights: list[Points] = []
        for frame, tree in enumerate(self._trees):
            cloud = self._goal[frame]
            _, there = tree.query(points[frame])
            _, here = KDTree(points[frame]).query(cloud)
            rows += [frame * count + np.arange(count), frame * count + here]
            goals += [cloud[there], cloud]
            # Both ways count alike, however many points each side has.
            weights += [np.ones(count), np.full(len(cloud), np.sqrt(count / len(cloud)))]
        return Pairs(
            rows=np.concatenate(rows), goals=np.concatenate(goals), weights=np.concatenate(weights)
        )


def unit_hint(points: ArrayLike, reach: float) -> str:
    """Return what to say of a target that is far too large or small for a head, or nothing.

    Args:
        points: The target [m], shape (..., 3).
        reach: How far hair may be from the head's origin [m].
    """
    values = np.asarray(points, np.float64).reshape(-1, 3)
    size = float(np.abs(values).max()) if len(values) else 0.0
    if size > 100.0 * reach:
        return "target: looks like millimetres, expected metres"
    if size > LARGE * reach:
        return "target: looks like centimetres, expected metres"
    return ""


def _check_finite(points: Points) -> None:
    bad = np.argwhere(~np.isfinite(points).all(axis=-1))
    if len(bad):
        raise FitError(f"target: frame {bad[0][0]}, point {bad[0][1]} is not finite")


def _along(line: Points, count: int, strand: int) -> Points:
    """Return points at even steps along a line's arc, its ends kept."""
    length = line_length(line)
    if length <= 1e-9:
        raise FitError(f"target: strand {strand} has no length")
    return walk(line, np.linspace(0.0, length, count))
