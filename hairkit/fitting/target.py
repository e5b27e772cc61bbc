"""What a fit aims at, and how far simulated points are from it."""

from dataclasses import dataclass
from typing import Protocol

import igl
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree

from hairkit.errors import FitError
from hairkit.groom.lines import line_length, walk

Points = NDArray[np.float64]

ACROSS = 0.03
"""How far hair that runs at right angles counts as being away, beside its distance [m]."""

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
    """A cloud of points, as of a scan: both ways nearest, as in the Chamfer distance.

    Where the cloud has directions, near is also what runs the same way: hair that crosses is far.
    Which end of a line is its tip, no scan tells, so opposite directions are the same.
    """

    def __init__(
        self,
        points: ArrayLike,
        frames: int,
        *,
        directions: ArrayLike | None = None,
        simulated: NDArray[np.int32] | None = None,
    ) -> None:
        """Check the points.

        Args:
            points: The cloud [m], shape (n, 3), or (frames, n, 3).
            frames: How many frames are looked at.
            directions: Unit directions of the hair there, of the points' shape.
            simulated: Points of each simulated strand, shape (s,); needed with directions.

        Raises:
            FitError: It is a single point, not finite, or of another number of frames.
        """
        self._goal = _as_frames(points, frames)
        if self._goal.shape[1] < 2:
            raise FitError("target: a single point, expected a cloud")
        self._simulated = simulated if directions is not None else None
        self._ways = [np.zeros((self._goal.shape[1], 0))] * frames
        if directions is not None:
            if simulated is None:
                raise FitError("directions: expected the simulated strands' counts with them")
            ways = np.asarray(directions, np.float64)
            ways = ways[None] if ways.ndim == 2 else ways
            if ways.shape != self._goal.shape or not np.isfinite(ways).all():
                raise FitError(
                    f"directions: shape {ways.shape}, expected finite ones of the points' shape "
                    f"{self._goal.shape}"
                )
            self._ways = [_either_way(frame) for frame in ways]

    def pairs(self, points: Points) -> Pairs:
        """Return each simulated point's nearest of the cloud, and the other way round."""
        found = []
        for frame, (cloud, ways) in enumerate(zip(self._goal, self._ways, strict=True)):
            mine = points[frame]
            if self._simulated is not None:
                turned = _either_way(_tangents(mine, self._simulated))
                _, there = KDTree(np.hstack([cloud, ways])).query(np.hstack([mine, turned]))
                _, here = KDTree(np.hstack([mine, turned])).query(np.hstack([cloud, ways]))
            else:
                _, there = KDTree(cloud).query(mine)
                _, here = KDTree(mine).query(cloud)
            found.append((cloud[there], here, cloud))
        return _both_ways(found, points.shape[1])


class SurfaceTarget:
    """A mesh's surface, as of a hair mesh or a scan: both ways nearest.

    Simulated points aim at the nearest place of the surface, and places spread evenly over it at
    the nearest simulated point.
    """

    def __init__(
        self, vertices: ArrayLike, faces: ArrayLike, frames: int, *, samples: int = 2000
    ) -> None:
        """Spread places over the surface.

        Args:
            vertices: Of the mesh [m], shape (n, 3); it stands still.
            faces: Triangles, shape (m, 3).
            frames: How many frames are looked at.
            samples: Places spread over the surface.

        Raises:
            FitError: It has no area, is not finite, or its faces name other vertices.
        """
        self._vertices = _as_frames(vertices, 1)[0]
        corners = np.asarray(faces)
        if corners.ndim != 2 or corners.shape[1] != 3 or corners.dtype.kind not in "iu":
            raise FitError(f"faces: {corners.dtype} of shape {corners.shape}, expected (m, 3)")
        if len(corners) == 0 or corners.min() < 0 or corners.max() >= len(self._vertices):
            raise FitError(f"faces: expected vertices from 0 to {len(self._vertices) - 1}")
        self._faces = np.ascontiguousarray(corners, np.int64)
        a, b, c = self._vertices[self._faces.T]
        area = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
        if not area.sum() > 0.0:
            raise FitError("target: a mesh without area, expected a surface")
        random = np.random.Generator(np.random.PCG64(0))
        row = random.choice(len(area), samples, p=area / area.sum())
        u, v = random.random((2, samples, 1))
        u, v = np.where(u + v > 1.0, (1.0 - u, 1.0 - v), (u, v))
        self._places = a[row] + u * (b - a)[row] + v * (c - a)[row]
        self._frames = frames

    def pairs(self, points: Points) -> Pairs:
        """Return each simulated point's nearest place of the surface, and the other way round."""
        found = []
        for frame in range(self._frames):
            mine = np.ascontiguousarray(points[frame])
            _, _, there = igl.point_mesh_squared_distance(mine, self._vertices, self._faces)
            _, here = KDTree(mine).query(self._places)
            found.append((there, here, self._places))
        return _both_ways(found, points.shape[1])


def _both_ways(found: list[tuple[Points, NDArray[np.intp], Points]], count: int) -> Pairs:
    """Return pairs of each frame's points with goals, and of other places with nearest points.

    Both ways count alike, however many points each side has.

    Args:
        found: For each frame: every point's goal, rows of points nearest to places, the places.
        count: Points of a frame.
    """
    rows: list[NDArray[np.int64]] = []
    goals: list[Points] = []
    weights: list[Points] = []
    for frame, (there, here, places) in enumerate(found):
        rows += [frame * count + np.arange(count), frame * count + here]
        goals += [there, places]
        weights += [np.ones(count), np.full(len(places), np.sqrt(count / len(places)))]
    return Pairs(
        rows=np.concatenate(rows), goals=np.concatenate(goals), weights=np.concatenate(weights)
    )


def _as_frames(points: ArrayLike, frames: int) -> Points:
    """Return finite points of so many frames, shape (frames, n, 3)."""
    goal = np.asarray(points, np.float64)
    goal = goal[None] if goal.ndim == 2 else goal
    if goal.ndim != 3 or goal.shape[2] != 3 or len(goal) != frames:
        raise FitError(f"target: shape {goal.shape}, expected ({frames}, points, 3)")
    _check_finite(goal)
    return goal


def _either_way(directions: Points) -> Points:
    """Return coordinates in which opposite directions meet, 90 degrees being ACROSS apart.

    The products of a direction's parts are the same for its opposite.
    """
    x, y, z = directions.T
    half = np.sqrt(2.0)
    parts = np.stack([x * x, y * y, z * z, half * x * y, half * y * z, half * z * x], axis=1)
    return ACROSS / half * parts


def _tangents(points: Points, counts: NDArray[np.int32]) -> Points:
    """Return unit directions along strands at each of their points, shape (points, 3)."""
    starts = np.cumsum(counts) - counts
    ends = starts + counts - 1
    at = np.arange(len(points))
    before, after = np.maximum(at - 1, 0), np.minimum(at + 1, len(points) - 1)
    before[starts], after[ends] = starts, ends
    along = points[after] - points[before]
    return along / np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)


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
