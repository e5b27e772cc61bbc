"""Curves of scene files as strands: bases, values by scope, objects put together, colour.

Native readers run in a process of their own (`hairkit.io.guard`), so this imports NumPy only.
"""

import dataclasses

import numpy as np

from hairkit.errors import FileError

BASES = ("bezier", "bspline", "catmullRom")
"""Cubic bases that are understood, by their OpenUSD names."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the points of strands come from the vertices of curves: by weighted sums of four."""

    counts: np.ndarray
    """Points of each strand, shape (strands,), i64; below 2 where a curve draws nothing."""

    rows: np.ndarray | None = None
    """Vertices that make each point, shape (points, 4), i64; None where vertices are points."""

    weights: np.ndarray | None = None
    """Their weights, shape (points, 4), f32; each row sums to 1."""

    def apply(self, values: np.ndarray) -> np.ndarray:
        """Return values at points from values at vertices, shape (vertices,) or (vertices, n)."""
        if self.rows is None or self.weights is None:
            return values
        weights = self.weights if values.ndim == 1 else self.weights[:, :, None]
        total = values[self.rows[:, 0]] * weights[:, 0]
        for column in range(1, 4):
            total += values[self.rows[:, column]] * weights[:, column]
        return total


def sampling(counts: np.ndarray, *, basis: str | None, pinned: bool) -> Sampling:
    """Return how to take strands from curves.

    Linear curves and pinned Catmull-Rom curves go through their vertices: these are the points. A
    Catmull-Rom curve that is not pinned is not drawn before its second and after its last but one
    vertex; the two at the ends are left out. B-splines give one point a knot, beginning and ending
    at the end vertices if pinned. A Bezier segment gives the points at thirds of its parameter, so
    a curve has as many points as vertices.

    Args:
        counts: Vertices of each curve, shape (strands,), i64, none negative.
        basis: One of `BASES`, or None for linear curves.
        pinned: Whether the curves reach their end vertices.

    Raises:
        FileError: A Bezier curve has not one vertex more than three a segment.
    """
    if basis is None or (basis == "catmullRom" and pinned):
        return Sampling(counts=counts)
    ends = np.cumsum(counts)
    starts = ends - counts
    row = np.arange(int(counts.sum()))
    within = row - np.repeat(starts, counts)
    after = np.repeat(ends, counts) - 1 - row
    if basis == "bezier":
        odd = (counts % 3 != 1) & (counts > 1)
        if odd.any():
            curve = int(odd.argmax())
            raise FileError(
                f"strand {curve} has {counts[curve]} vertices, expected 4, 7, 10 ... "
                "(one more than three a Bezier segment)"
            )
        phase = within % 3
        thirds = np.array([[27, 0, 0, 0], [8, 12, 6, 1], [1, 6, 12, 8]], np.float32) / 27
        last = np.repeat(ends, counts) - 1
        rows = np.minimum((row - phase)[:, None] + np.arange(4), last[:, None])
        return Sampling(counts=counts, rows=rows, weights=thirds[phase])
    inner = (within > 0) & (after > 0)
    rows = np.repeat(row[:, None], 4, axis=1)
    weights = np.zeros((len(row), 4), np.float32)
    weights[:, 0] = 1.0
    if basis == "bspline":
        rows[inner, 1] -= 1
        rows[inner, 2] += 1
        weights[inner] = np.array([4, 1, 1, 0], np.float32) / 6
    if pinned:
        return Sampling(counts=counts, rows=rows, weights=weights)
    return Sampling(counts=np.maximum(counts - 2, 0), rows=rows[inner], weights=weights[inner])


def at_points(values: np.ndarray, scope: str, sample: Sampling, vertices: int) -> np.ndarray | None:
    """Spread values over points, or return None where there are not as many as the scope wants.

    Args:
        values: Shape (n,) or (n, width).
        scope: ``constant``, ``uniform`` (one a strand), ``varying`` (one a segment's end) or
            ``vertex``.
        sample: How points come from vertices.
        vertices: Number of vertices.
    """
    counts = sample.counts
    points = int(counts.sum())
    if scope == "constant":
        return np.repeat(values, points, axis=0) if len(values) == 1 else None
    if scope == "uniform":
        return np.repeat(values, counts, axis=0) if len(values) == len(counts) else None
    if scope == "vertex" and len(values) == vertices:
        return sample.apply(values)
    if len(values) == points:
        return values
    if scope != "varying":
        return None
    # Only Bezier curves have points between the ends of segments: straight lines between them.
    knots = np.where(counts > 1, (counts - 1) // 3 + 1, counts)
    if len(values) != int(knots.sum()):
        return None
    row = np.arange(points) - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.repeat(np.cumsum(knots) - knots, counts) + row // 3
    second = np.minimum(first + 1, len(values) - 1)
    part = (row % 3).astype(np.float32) / 3
    part = part if values.ndim == 1 else part[:, None]
    return (values[first] * (1 - part) + values[second] * part).astype(values.dtype)


def at_roots(values: np.ndarray, scope: str, sample: Sampling, vertices: int) -> np.ndarray | None:
    """Return one value a strand, the root's where there are several; None as `at_points`."""
    counts = sample.counts
    if scope == "uniform":
        return values if len(values) == len(counts) else None
    if scope == "constant":
        return np.repeat(values, len(counts), axis=0) if len(values) == 1 else None
    spread = at_points(values, scope, sample, vertices)
    if spread is None or not len(spread):
        return None
    return spread[np.minimum(np.cumsum(counts) - counts, len(spread) - 1)]


def check_counts(counts: np.ndarray, vertices: int) -> None:
    """Compare vertices a curve with how many vertices there are.

    Raises:
        FileError: A count is negative, or their sum is another; the strand is named.
    """
    if len(counts) and counts.min() < 0:
        strand = int(counts.argmin())
        raise FileError(f"strand {strand} has {counts[strand]} vertices, expected 0 or more")
    total = int(counts.sum(dtype=np.int64))
    if total != vertices:
        over = int(np.searchsorted(np.cumsum(counts, dtype=np.int64), vertices, side="right"))
        where = f"strand {over} ends past them" if total > vertices else "some belong to no strand"
        raise FileError(
            f"vertices of all strands sum to {total}, expected {vertices} as there are points "
            f"({where})"
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Piece:
    """The strands of one curves object of a scene, without their points."""

    name: str
    """Its path in the scene."""

    sample: Sampling
    """How its points come from its vertices."""

    vertices: int
    """How many vertices it has."""

    fields: dict[str, np.ndarray]
    """Fields of a strand set that it has; those of points at its points."""


def merged(pieces: list[Piece]) -> tuple[dict[str, np.ndarray], list[str]]:
    """Put the fields of all objects of a scene together, and warn of what only some of them have.

    Where there are several objects and none says which group its strands are of, each is a group.
    """
    warnings: list[str] = []
    fields = {"counts": np.concatenate([piece.sample.counts for piece in pieces])}
    for piece in pieces:
        if any("guides" in other.fields for other in pieces):
            piece.fields.setdefault("guides", np.zeros(len(piece.sample.counts), bool))
    if len(pieces) > 1 and not any("groups" in piece.fields for piece in pieces):
        for number, piece in enumerate(pieces):
            piece.fields["groups"] = np.full(len(piece.sample.counts), number, np.int32)
    for name in sorted({name for piece in pieces for name in piece.fields}):
        without = [piece.name for piece in pieces if name not in piece.fields]
        if without:
            warnings.append(
                f"{name} left out, expected them on every curves object, not on "
                f"{len(without)} ({without[0]})"
            )
            continue
        fields[name] = np.concatenate([piece.fields[name] for piece in pieces])
    return fields, warnings


def whole_numbers(values: np.ndarray) -> np.ndarray | None:
    """Return numbers as i32, or None where one does not fit."""
    if values.dtype.kind not in "iub" or values.ndim != 1:
        return None
    limits = np.iinfo(np.int32)
    if values.size and (values.min() < limits.min or values.max() > limits.max):
        return None
    return values.astype(np.int32)


def moved(points: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return points times a matrix of row vectors, shape (4, 4), as f32; unchanged by identity."""
    if np.array_equal(matrix, np.eye(4)):
        return points.astype(np.float32, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        return (points @ matrix[:3, :3] + matrix[3, :3]).astype(np.float32)


def scale_of(matrix: np.ndarray) -> float:
    """Return by how much a matrix makes things larger, the mean of its three directions."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.cbrt(abs(np.linalg.det(matrix[:3, :3]))))


def linear_from_srgb(colors: np.ndarray) -> np.ndarray:
    """Return linear Rec. 709 colours from sRGB ones (IEC 61966-2-1), 0..1, f32."""
    colors = np.clip(np.asarray(colors, np.float64), 0.0, 1.0)
    curved = ((colors + 0.055) / 1.055) ** 2.4
    return np.where(colors <= 0.04045, colors / 12.92, curved).astype(np.float32)


def srgb_from_linear(colors: np.ndarray) -> np.ndarray:
    """Return sRGB colours from linear Rec. 709 ones (IEC 61966-2-1), 0..1, f32."""
    colors = np.clip(np.asarray(colors, np.float64), 0.0, 1.0)
    curved = 1.055 * colors ** (1 / 2.4) - 0.055
    return np.where(colors <= 0.0031308, colors * 12.92, curved).astype(np.float32)
