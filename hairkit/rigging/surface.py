"""A hair mesh welded by position, with its edges, islands and areas, whatever the vertex order."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import KDTree

from hairkit.errors import RigError
from hairkit.rigging.plan import Points

Rows = NDArray[np.int64]

WELD = 1e-6
"""Shares of the mesh's reach within which vertices are one place."""


class Surface(NamedTuple):
    """A welded mesh in its own frame: the root at 0, up along +Y, its reach 1."""

    points: Points
    """Places in faces, in an order that does not depend on the mesh's, shape (n, 3)."""

    place: Rows
    """Row in `points` of each vertex; the nearest one's for a vertex in no face, shape (v,)."""

    faces: Rows
    """Rows in `points`, those of a face without width left out, shape (f, 3)."""

    area: Points
    """A third of the area of the faces round each place, shape (n,); they sum to 1."""

    normal: Points
    """Where the faces round each place face, of length 1 or 0, shape (n, 3)."""

    edges: Rows
    """Pairs of rows in `points`, each once, shape (e, 2)."""

    island: NDArray[np.int32]
    """Which connected piece each place is in, shape (n,)."""

    turn: Points
    """Rows are the frame's axes in the mesh's space, shape (3, 3)."""

    reach: float
    """Length in the mesh's space of 1 here."""


def weld(points: Points, faces: ArrayLike, anchor: Points, along: Points) -> Surface:
    """Weld vertices and build the frame, which turns and grows with mesh, root and axis.

    Args:
        points: Vertices, shape (v, 3).
        faces: Rows of vertices, shape (f, 3).
        anchor: The root, shape (3,).
        along: The axis, of length 1, shape (3,).

    Raises:
        RigError: Faces are not rows of three vertices.
    """
    corners = _check_faces(faces, len(points))
    # Vertices at the same place become one row before anything is worked out from them, so that
    # rounding cannot part them, and rows in order of place forget the order of vertices.
    first, back = distinct(points)
    raw = points[first]
    away = raw - anchor
    reach = float(np.linalg.norm(away, axis=1).max()) or 1.0
    away = away / reach
    turn = _frame(away, along)
    local = np.stack([away @ turn[0], away @ turn[1], away @ turn[2]], axis=1)
    first, near = distinct(np.round(local / WELD))
    spots, row = local[first], near[back]

    corners = row[corners]
    sides = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    sides = np.sort(sides[sides[:, 0] != sides[:, 1]], axis=1)
    sides = sides[distinct(sides)[0]]
    used = np.zeros(len(spots), dtype=bool)
    used[sides.ravel()] = True
    if not used.any():
        used[:] = True
    kept = np.flatnonzero(used)
    renumber = np.zeros(len(spots), dtype=np.int64)
    renumber[kept] = np.arange(len(kept))
    if len(kept) < len(spots):
        lone = np.flatnonzero(~used)
        renumber[lone] = KDTree(spots[kept]).query(spots[lone])[1]
    spots, edges = spots[kept], renumber[sides]

    wide = (corners != np.roll(corners, 1, axis=1)).all(axis=1)
    # Each face once, the least corner first: sums then do not depend on the mesh's order.
    solid = renumber[corners[wide]]
    shift = (np.argmin(solid, axis=1)[:, None] + np.arange(3)) % 3
    solid = np.take_along_axis(solid, shift, axis=1)
    solid = solid[distinct(solid)[0]]
    a, b, c = (spots[solid[:, k]] for k in range(3))
    across = np.cross(b - a, c - a)
    size = np.linalg.norm(across, axis=1) / 6.0
    area = np.bincount(solid.ravel(), np.repeat(size, 3), minlength=len(spots))
    normal = [np.bincount(solid.ravel(), np.repeat(across[:, k], 3), len(spots)) for k in range(3)]
    normal = np.stack(normal, axis=1)
    # Faces may be wound either way; out is where most of the mesh faces.
    if (normal * (spots - spots.mean(axis=0))).sum() < 0.0:
        normal = -normal
    normal = normal / np.maximum(np.linalg.norm(normal, axis=1), 1e-12)[:, None]
    area = area / area.sum() if area.sum() > 0.0 else np.full(len(spots), 1.0 / len(spots))
    island = pieces(edges, len(spots))
    return Surface(spots, renumber[row], solid, area, normal, edges, island, turn, reach)


def distinct(rows: NDArray[Any]) -> tuple[Rows, Rows]:
    """Return where each row that differs is first, in order, and which of them each row is.

    It is `numpy.unique` of rows, several times as fast.
    """
    order = np.lexsort(rows.T[::-1])
    fresh = np.ones(len(rows), dtype=bool)
    fresh[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    which = np.zeros(len(rows), dtype=np.int64)
    which[order] = np.cumsum(fresh) - 1
    return order[fresh], which


def pieces(pairs: Rows, count: int) -> NDArray[np.int32]:
    """Return which connected piece each of some places is in, by the pairs that connect them."""
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    return connected_components(graph, directed=False)[1]


def spans(surface: Surface) -> tuple[Rows, Points]:
    """Return the ways along the surface and their lengths: edges, and across pairs of faces.

    Ways across two faces make distances depend less on how quads were cut into triangles.
    """
    pairs, faces = surface.edges, surface.faces
    if len(faces):
        sides = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
        sides = np.sort(sides, axis=1)
        tips = np.concatenate([faces[:, 2], faces[:, 0], faces[:, 1]])
        order = np.lexsort((tips, sides[:, 1], sides[:, 0]))
        sides, tips = sides[order], tips[order]
        twin = np.flatnonzero((sides[1:] == sides[:-1]).all(axis=1))
        across = np.stack([tips[twin], tips[twin + 1]], axis=1)
        across = np.sort(across[across[:, 0] != across[:, 1]], axis=1)
        pairs = np.concatenate([pairs, across])
        pairs = pairs[distinct(pairs)[0]]
    length = np.linalg.norm(surface.points[pairs[:, 0]] - surface.points[pairs[:, 1]], axis=1)
    return pairs, length


def distances(pairs: Rows, length: Points, starts: Points) -> Points:
    """Return the shortest way to each place from where it may start.

    Args:
        pairs: Ways between places, each once, shape (e, 2).
        length: Their lengths, shape (e,).
        starts: What the way has cost where it starts, infinite for no start, shape (n,).

    Returns:
        Costs, infinite where no way leads, shape (n,).
    """
    count = len(starts)
    open_ = np.flatnonzero(np.isfinite(starts))
    # One more place leads to every start. Sparse graphs have no ways of length 0, hence the 1.
    tail = np.concatenate([pairs[:, 0], pairs[:, 1], np.full(len(open_), count)])
    head = np.concatenate([pairs[:, 1], pairs[:, 0], open_])
    cost = np.concatenate([length, length, 1.0 + starts[open_]])
    graph = csr_array((np.maximum(cost, 1e-12), (tail, head)), shape=(count + 1, count + 1))
    found: Points = dijkstra(graph, indices=count)
    return np.maximum(found[:count] - 1.0, 0.0)


def _check_faces(faces: ArrayLike, count: int) -> Rows:
    """Return faces as an array, or refuse them."""
    try:
        corners = np.asarray(faces)
    except ValueError as error:
        raise RigError("bad option", f"faces: expected rows of three numbers ({error})") from None
    if corners.size == 0:
        return np.zeros((0, 3), dtype=np.int64)
    if corners.ndim != 2 or corners.shape[1] != 3 or corners.dtype.kind not in "iu":
        raise RigError(
            "bad option",
            f"faces: expected whole numbers of shape (f, 3), got {corners.dtype} {corners.shape}",
        )
    low, high = int(corners.min()), int(corners.max())
    if low < 0 or high >= count:
        raise RigError("bad option", f"faces: expected rows of {count} vertices, got {low}..{high}")
    return corners.astype(np.int64)


def _frame(away: Points, along: Points) -> Points:
    """Return axes that turn with the mesh: sideways, up, and to where most of the hair is."""
    up = -along
    middle = away.mean(axis=0)
    back = middle - up * (middle @ up)
    if np.linalg.norm(back) < 1e-6:
        # As round as can be: the mesh itself names no direction, so the space has to.
        spare = np.eye(3)[2 if abs(up[2]) < 0.9 else 1]
        back = spare - up * (spare @ up)
    back = back / np.linalg.norm(back)
    return np.array([np.cross(up, back), up, back], dtype=np.float64)
