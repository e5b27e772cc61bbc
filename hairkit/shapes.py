"""Solid shapes that hair collides with, and their signed distances.

Each shape is a frozen description in its own frame: a world gives it a pose. ``signed_distance``
is the slow, exact NumPy twin of what the kernels compute: negative inside, with the direction in
which the distance grows.
"""

import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from hairkit.errors import HairkitError
from hairkit.paths import cache_dir

Vector = tuple[float, float, float]
Points = NDArray[np.float64]

GRID_VERSION = 3
"""Part of each cached grid's key: raise it when ``from_mesh`` computes something else."""

EXACT_CELLS = 4.0
"""Within so many cells of the surface each sample of a grid is measured, not interpolated."""

MAX_GRID_CELLS = 40_000_000
"""A grid with more samples than this is a mistake in units, and would not fit in memory."""


@runtime_checkable
class Shape(Protocol):
    """Anything that can say how far points are from its surface."""

    def signed_distance(self, points: ArrayLike) -> tuple[Points, Points]:
        """Return distances [m], negative inside, and unit directions in which they grow."""
        ...


def _as_points(points: ArrayLike) -> Points:
    """Return points as an array of shape (n, 3) in f64."""
    array = np.atleast_2d(np.asarray(points, dtype=np.float64))
    if array.ndim != 2 or array.shape[1] != 3:
        raise HairkitError(f"points: expected shape (n, 3), got {np.shape(points)}")
    return array


def _unit(vectors: Points) -> Points:
    """Return vectors scaled to length one; a zero vector becomes +Y."""
    length = np.sqrt(np.sum(vectors * vectors, axis=1, keepdims=True))
    safe = vectors / np.where(length > 0.0, length, 1.0)
    return np.where(length > 1e-300, safe, np.array([0.0, 1.0, 0.0]))


def _check_positive(kind: str, name: str, *values: float) -> None:
    """Raise when a size is not a positive, finite number."""
    for value in values:
        if not (np.isfinite(value) and value > 0.0):
            raise HairkitError(f"{kind}: {name} expected to be greater than 0 [m], got {value}")


def _check_vector(kind: str, name: str, value: ArrayLike) -> None:
    """Raise when a value is not three finite numbers."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape != (3,) or not np.isfinite(array).all():
        raise HairkitError(f"{kind}: {name} expected three finite numbers, got {value}")


@dataclass(frozen=True)
class Sphere:
    """A ball."""

    radius: float
    """Radius [m], greater than zero."""

    center: Vector = (0.0, 0.0, 0.0)
    """Middle in the shape's frame [m]."""

    def __post_init__(self) -> None:
        """Check the values."""
        _check_positive("Sphere", "radius", self.radius)
        _check_vector("Sphere", "center", self.center)

    def signed_distance(self, points: ArrayLike) -> tuple[Points, Points]:
        """Return distances [m], negative inside, and unit directions in which they grow."""
        offset = _as_points(points) - np.asarray(self.center)
        return np.sqrt(np.sum(offset * offset, axis=1)) - self.radius, _unit(offset)


@dataclass(frozen=True)
class Capsule:
    """All points nearer than a radius to the line between two points."""

    a: Vector
    """One end of the middle line [m]."""

    b: Vector
    """The other end [m]; the same as ``a`` makes a ball."""

    radius: float
    """Radius [m], greater than zero."""

    def __post_init__(self) -> None:
        """Check the values."""
        _check_positive("Capsule", "radius", self.radius)
        _check_vector("Capsule", "a", self.a)
        _check_vector("Capsule", "b", self.b)

    def signed_distance(self, points: ArrayLike) -> tuple[Points, Points]:
        """Return distances [m], negative inside, and unit directions in which they grow."""
        points = _as_points(points)
        a, axis = np.asarray(self.a, float), np.subtract(self.b, self.a).astype(float)
        squared = float(axis @ axis)
        along = (
            np.clip((points - a) @ axis / squared, 0.0, 1.0)
            if squared > 0.0
            else np.zeros(len(points))
        )
        offset = points - a - along[:, None] * axis
        return np.sqrt(np.sum(offset * offset, axis=1)) - self.radius, _unit(offset)


@dataclass(frozen=True)
class Box:
    """A box whose sides are parallel to its frame's axes."""

    half: Vector
    """Half of the width, height and depth [m], each greater than zero."""

    center: Vector = (0.0, 0.0, 0.0)
    """Middle in the shape's frame [m]."""

    def __post_init__(self) -> None:
        """Check the values."""
        _check_vector("Box", "half", self.half)
        _check_positive("Box", "half", *self.half)
        _check_vector("Box", "center", self.center)

    def signed_distance(self, points: ArrayLike) -> tuple[Points, Points]:
        """Return distances [m], negative inside, and unit directions in which they grow."""
        offset = _as_points(points) - np.asarray(self.center)
        sign = np.where(offset < 0.0, -1.0, 1.0)
        beyond = np.abs(offset) - np.asarray(self.half)
        outside = np.maximum(beyond, 0.0)
        length = np.sqrt(np.sum(outside * outside, axis=1))
        deepest = np.max(beyond, axis=1)
        nearest_face = np.eye(3)[np.argmax(beyond, axis=1)]
        inside = deepest <= 0.0
        normal = np.where(inside[:, None], nearest_face, _unit(outside)) * sign
        return np.where(inside, deepest, length), normal


@dataclass(frozen=True)
class Ellipsoid:
    """A ball stretched along its frame's axes."""

    radii: Vector
    """Half axes along x, y and z [m], each greater than zero."""

    center: Vector = (0.0, 0.0, 0.0)
    """Middle in the shape's frame [m]."""

    def __post_init__(self) -> None:
        """Check the values."""
        _check_vector("Ellipsoid", "radii", self.radii)
        _check_positive("Ellipsoid", "radii", *self.radii)
        _check_vector("Ellipsoid", "center", self.center)

    def signed_distance(self, points: ArrayLike) -> tuple[Points, Points]:
        """Return distances [m], negative inside, and unit directions in which they grow.

        The nearest surface point is y with y_i = r_i² p_i / (r_i² + t); t is the largest root of Σ
        (y_i / r_i)² = 1, which lies above -min(r)² and is found by bisection, safe for points on
        the axes too.
        """
        offset = _as_points(points) - np.asarray(self.center)
        radii = np.asarray(self.radii, dtype=np.float64)
        # A point on a symmetry plane may have its nearest point off that plane; a shift far below
        # f32 decides a side.
        tiny = 1e-9 * float(np.min(radii))
        shifted = np.where(np.abs(offset) < tiny, np.where(offset < 0.0, -tiny, tiny), offset)
        square = radii * radii
        low = np.full(len(offset), -float(np.min(square)))
        high = np.sqrt(np.sum((radii * shifted) ** 2, axis=1))
        for _ in range(80):
            middle = 0.5 * (low + high)
            ratio = radii * shifted / np.maximum(square + middle[:, None], 1e-300)
            above = np.sum(ratio * ratio, axis=1) > 1.0
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        surface = square * shifted / np.maximum(square + high[:, None], 1e-300)
        level = np.sqrt(np.sum((surface / radii) ** 2, axis=1, keepdims=True))
        surface = surface / level
        gap = offset - surface
        inside = np.sum((offset / radii) ** 2, axis=1) < 1.0
        distance = np.sqrt(np.sum(gap * gap, axis=1))
        return np.where(inside, -distance, distance), _unit(surface / square)


@dataclass(frozen=True)
class Plane:
    """A half space: solid on the side that the normal points away from."""

    normal: Vector = (0.0, 1.0, 0.0)
    """Direction out of the solid; any length but zero."""

    offset: float = 0.0
    """Distance of the surface from the origin along the unit normal [m]."""

    def __post_init__(self) -> None:
        """Check the values."""
        _check_vector("Plane", "normal", self.normal)
        if not np.any(np.asarray(self.normal)):
            raise HairkitError("Plane: normal expected to be longer than zero, got (0, 0, 0)")
        _check_vector("Plane", "offset", (self.offset, 0.0, 0.0))

    def signed_distance(self, points: ArrayLike) -> tuple[Points, Points]:
        """Return distances [m], negative inside, and unit directions in which they grow."""
        points = _as_points(points)
        normal = np.asarray(self.normal, dtype=np.float64)
        normal = normal / np.sqrt(normal @ normal)
        return points @ normal - self.offset, np.broadcast_to(normal, points.shape).copy()


@dataclass(frozen=True, eq=False)
class DistanceGrid:
    """Signed distances to a mesh, sampled on a regular grid and interpolated in between."""

    values: NDArray[np.float32] = field(repr=False)
    """Distance at each grid point [m], negative inside, shape (nx, ny, nz), each count at least
    2."""

    origin: Vector
    """Position of the grid point (0, 0, 0) [m]."""

    cell: float
    """Distance between neighbouring grid points [m]."""

    def __post_init__(self) -> None:
        """Check the values."""
        if self.values.ndim != 3 or min(self.values.shape) < 2 or self.values.dtype != np.float32:
            raise HairkitError(
                "DistanceGrid: values expected f32 of shape (nx, ny, nz), each at least 2, "
                f"got {self.values.dtype} {self.values.shape}"
            )
        _check_vector("DistanceGrid", "origin", self.origin)
        _check_positive("DistanceGrid", "cell", self.cell)

    def signed_distance(self, points: ArrayLike) -> tuple[Points, Points]:
        """Return distances [m], negative inside, and unit directions in which they grow.

        The direction is the gradient of the trilinear interpolant itself, so that following it
        really does change the distance. Outside the grid the distance to the grid's box is added
        to the value on its border.
        """
        points = _as_points(points)
        shape = np.array(self.values.shape)
        high = np.asarray(self.origin) + (shape - 1) * self.cell
        clamped = np.clip(points, self.origin, high)
        beyond = points - clamped
        gap = np.sqrt(np.sum(beyond * beyond, axis=1))
        place = (clamped - np.asarray(self.origin)) / self.cell
        index = np.clip(np.floor(place).astype(np.int64), 0, shape - 2)
        x, y, z = (place - index).T
        i, j, k = index.T
        # Eight corners, then one axis at a time; each gradient part is the difference along its
        # axis.
        c00 = [self.values[i, j + b, k + c].astype(np.float64) for b in (0, 1) for c in (0, 1)]
        c10 = [self.values[i + 1, j + b, k + c].astype(np.float64) for b in (0, 1) for c in (0, 1)]
        along_x = [p + (q - p) * x for p, q in zip(c00, c10, strict=True)]
        slope_x = [q - p for p, q in zip(c00, c10, strict=True)]
        low_y, high_y = (
            along_x[0] + (along_x[1] - along_x[0]) * z,
            along_x[2] + (along_x[3] - along_x[2]) * z,
        )
        value = low_y + (high_y - low_y) * y
        near, far = (
            slope_x[0] + (slope_x[1] - slope_x[0]) * z,
            slope_x[2] + (slope_x[3] - slope_x[2]) * z,
        )
        gradient_z = (along_x[1] - along_x[0]) * (1.0 - y) + (along_x[3] - along_x[2]) * y
        gradient = (
            np.stack([near + (far - near) * y, high_y - low_y, gradient_z], axis=1) / self.cell
        )
        outward = beyond / np.where(gap > 0.0, gap, 1.0)[:, None]
        gradient = np.where(beyond != 0.0, outward, gradient)
        return value + gap, _unit(gradient)

    @classmethod
    def from_mesh(
        cls,
        vertices: ArrayLike,
        faces: ArrayLike,
        *,
        cell: float = 0.004,
        margin: float = 0.03,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        cache: bool = True,
    ) -> "DistanceGrid":
        """Sample the distance to a triangle mesh; the sign comes from the winding number.

        The winding number knows inside from outside for meshes with holes, flipped scraps and
        several overlapping bodies, as real heads are. Holes are closed with a fan first, so that
        the surface has no gap there.

        Args:
            vertices: Positions [m], shape (v, 3).
            faces: Vertex rows of each triangle, shape (f, 3).
            cell: Distance between grid points [m].
            margin: How far the grid reaches past the mesh [m].
            bounds: Lower and upper corner to keep the grid within [m], each of shape (3,); None
                covers the mesh.
            cache: Keep the result on disk and take it from there the next time.
        """
        vertices = np.ascontiguousarray(vertices, dtype=np.float64)
        faces = np.ascontiguousarray(faces, dtype=np.int64)
        _check_positive("DistanceGrid", "cell", cell)
        if faces.ndim != 2 or faces.shape[1] != 3 or len(faces) == 0:
            raise HairkitError(
                f"DistanceGrid: faces expected shape (f, 3), f at least 1, got {faces.shape}"
            )
        if vertices.ndim != 2 or vertices.shape[1] != 3 or not np.isfinite(vertices).all():
            raise HairkitError(
                "DistanceGrid: vertices expected shape (v, 3) of finite numbers, "
                f"got {vertices.shape}"
            )
        if faces.min() < 0 or faces.max() >= len(vertices):
            raise HairkitError(
                f"DistanceGrid: faces expected rows from 0 to {len(vertices) - 1}, "
                f"got {faces.min()} to {faces.max()}"
            )
        used = vertices[np.unique(faces)]
        low, high = used.min(axis=0) - margin, used.max(axis=0) + margin
        if bounds is not None:
            low, high = np.maximum(low, bounds[0]), np.minimum(high, bounds[1])
        counts = np.maximum(np.ceil((high - low) / cell).astype(np.int64) + 1, 2)
        if np.prod(counts.astype(np.float64)) > MAX_GRID_CELLS:
            raise HairkitError(
                f"DistanceGrid: a mesh {np.round(high - low, 3).tolist()} m large needs "
                f"{counts.tolist()} points of {cell} m, more than {MAX_GRID_CELLS}; "
                "expected a larger cell, or a mesh in metres"
            )
        key = hashlib.sha256(
            f"grid {GRID_VERSION} {cell!r} {low.tolist()} {counts.tolist()}".encode()
        )
        key.update(vertices.tobytes())
        key.update(faces.tobytes())
        path = cache_dir() / "grids" / f"{key.hexdigest()[:32]}.npy"
        shape = (int(counts[0]), int(counts[1]), int(counts[2]))
        values = _read_grid(path, shape) if cache else None
        if values is None:
            values = _sample_mesh(vertices, faces, low, cell, shape)
            if cache:
                _write_grid(path, values)
        return cls(values, (float(low[0]), float(low[1]), float(low[2])), float(cell))


def weld(
    vertices: Points, faces: NDArray[np.int64]
) -> tuple[Points, NDArray[np.int64], NDArray[np.int64]]:
    """Join vertices at the same place and drop collapsed triangles.

    Args:
        vertices: Positions [m], shape (v, 3).
        faces: Vertex rows of each triangle, shape (f, 3).

    Returns:
        The joined positions, the faces between them, and the joined row of each old vertex, shape
        (v,).
    """
    joined, row = np.unique(vertices, axis=0, return_inverse=True)
    row = row.reshape(-1)
    faces = row[faces]
    keep = (
        (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    )
    return joined, faces[keep], row


def close_holes(vertices: Points, faces: NDArray[np.int64]) -> tuple[Points, NDArray[np.int64]]:
    """Close each hole of a welded mesh with a fan of triangles around the middle of its rim.

    Args:
        vertices: Positions [m], shape (v, 3).
        faces: Vertex rows of each triangle, shape (f, 3).

    Returns:
        The vertices with the middles added, and the faces with the fans added.
    """
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    _, first, count = np.unique(
        np.sort(edges, axis=1), axis=0, return_index=True, return_counts=True
    )
    rim = edges[np.sort(first[count == 1])]
    if len(rim) == 0:
        return vertices, faces
    # Rims that share vertices are one group, closed by one fan.
    graph = coo_array((np.ones(len(rim)), (rim[:, 0], rim[:, 1])), shape=(len(vertices),) * 2)
    label = connected_components(graph, directed=False)[1][rim[:, 0]]
    groups, which = np.unique(label, return_inverse=True)
    which = which.reshape(-1)
    middle = np.zeros((len(groups), 3))
    np.add.at(middle, which, 0.5 * (vertices[rim[:, 0]] + vertices[rim[:, 1]]))
    middle /= np.bincount(which)[:, None]
    fan = np.stack([rim[:, 1], rim[:, 0], len(vertices) + which], axis=1)
    return np.concatenate([vertices, middle]), np.concatenate([faces, fan])


def _sample_mesh(
    vertices: Points,
    faces: NDArray[np.int64],
    low: Points,
    cell: float,
    shape: tuple[int, int, int],
) -> NDArray[np.float32]:
    """Return signed distances on a grid, exact near the surface.

    Every other sample is measured first; the ones between are measured too where the surface is
    near, and interpolated elsewhere, where the distance hardly bends. That saves most of the time.
    """
    vertices, faces, _ = weld(vertices, faces)
    vertices, faces = close_holes(vertices, faces)
    sparse = tuple((count + 2) // 2 for count in shape)
    values = _measure(vertices, faces, low + 2.0 * cell * _rows_of_grid(sparse)).reshape(sparse)
    for axis, count in enumerate(shape):
        index = np.arange(count)
        ahead = np.take(values, (index + 1) // 2, axis=axis)
        values = 0.5 * (np.take(values, index // 2, axis=axis) + ahead)
    near = np.flatnonzero(np.abs(values.reshape(-1)) < EXACT_CELLS * cell)
    values.reshape(-1)[near] = _measure(vertices, faces, low + cell * _rows_of_grid(shape)[near])
    return np.ascontiguousarray(values, dtype=np.float32)


def _rows_of_grid(shape: tuple[int, ...]) -> Points:
    """Return the indices of all grid points, shape (n, 3)."""
    return np.argwhere(np.ones(shape, bool)).astype(np.float64)


def _measure(vertices: Points, faces: NDArray[np.int64], points: Points) -> Points:
    """Return the exact signed distances of points [m], shape (n,)."""
    import igl  # slow to import, and a kept grid does without

    kind = igl.SIGNED_DISTANCE_TYPE_FAST_WINDING_NUMBER
    distance, *_ = igl.signed_distance(points, vertices, faces, sign_type=kind)
    return np.asarray(distance, np.float64)


def _read_grid(path: Path, shape: tuple[int, int, int]) -> NDArray[np.float32] | None:
    """Return a cached grid, or None when there is none or it is damaged."""
    try:
        values = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if values.dtype != np.float32 or values.shape != shape or not np.isfinite(values).all():
        return None
    return values


def _write_grid(path: Path, values: NDArray[np.float32]) -> None:
    """Keep a grid on disk; a cache that cannot be written is no error."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written beside and renamed, so that another process never reads half a file.
        handle, beside = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                np.save(file, values, allow_pickle=False)
            os.replace(beside, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise
