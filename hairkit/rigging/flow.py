"""How well a plan's bones run along a hair mesh, measured without the planning."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array

from hairkit.rigging.plan import Plan, Points, check_root, check_vertices
from hairkit.rigging.surface import Rows, Surface, distances, spans, weld

DRAWN = 1.5
"""How many times its area's side a piece is long that has a direction of its own."""


def flow_angle(
    plan: Plan,
    vertices: ArrayLike,
    faces: ArrayLike,
    *,
    root: ArrayLike,
    among: NDArray[np.bool_] | None = None,
) -> float:
    """Return the mean angle between bones and the hair that they move, by area [rad].

    A vertex's bone is its heaviest, and the bone's direction is to its child, or from its parent
    for the last of a chain of several. Vertices that the root moves most are left out. What the
    hair's own direction is, `hair_flow` says.

    Args:
        plan: The plan, of these vertices.
        vertices: Positions, shape (v, 3).
        faces: Triangles as rows of vertices, shape (f, 3).
        root: Where the hair is fixed to the scalp.
        among: Vertices to measure at, shape (v,); None is all. To compare two plans, give both the
            same.

    Returns:
        0 where all bones run along the hair, pi where all run against it; 0 for nothing to
        measure.

    Raises:
        RigError: Vertices, faces or root are not what they should be.
    """
    flow, area = hair_flow(vertices, faces, root=root)
    spots, parents = plan.positions, plan.parents
    along = np.zeros_like(spots)
    for chain in plan.chains:
        rows = list(chain)
        # A chain of one bone runs on from the root.
        line = spots[rows] if len(rows) > 1 else spots[[parents[rows[0]], rows[0]]]
        steps = np.diff(line, axis=0)
        along[rows] = steps if len(rows) == 1 else np.concatenate([steps, steps[-1:]])
    bone = along[plan.weights.indices[:, 0]]
    size = np.linalg.norm(bone, axis=1) * np.linalg.norm(flow, axis=1)
    weigh = np.where(size > 0.0, area, 0.0)
    if among is not None:
        weigh = np.where(among, weigh, 0.0)
    if weigh.sum() <= 0.0:
        return 0.0
    cosine = (bone * flow).sum(axis=1) / np.where(size > 0.0, size, 1.0)
    return float(np.arccos(np.clip(cosine, -1.0, 1.0)) @ weigh / weigh.sum())


def hair_flow(vertices: ArrayLike, faces: ArrayLike, *, root: ArrayLike) -> tuple[Points, Points]:
    """Return which way the hair runs at each vertex, and the area there.

    Each connected piece of the mesh is measured alone. A long one, such as a card or a tube, runs
    from one end to the other: its ends are the two places with the longest way along its edges
    between them, and it begins at the end nearer to the root. A piece that is as wide as long, such
    as a cap, or whose middle third is nearest to the root, such as a card laid over the head, runs
    away from its place nearest to the root. The direction at a face is where the way
    from there grows fastest; a vertex has the mean of its faces', and of its neighbours'. Neither
    the skull, nor locks, nor ways between pieces, of which plans are made, come in.

    Args:
        vertices: Positions, shape (v, 3).
        faces: Triangles as rows of vertices, shape (f, 3).
        root: Where the hair is fixed to the scalp.

    Returns:
        Directions of length 1, or 0 where there is none, shape (v, 3), and areas as shares of the
        whole mesh's, shape (v,); those of a vertex that lies in several places are shared out.

    Raises:
        RigError: Vertices, faces or root are not what they should be.
    """
    points, anchor = check_vertices(vertices), check_root(root)
    surface = weld(points, faces, anchor, np.array([0.0, -1.0, 0.0]))
    pairs, length = spans(surface)
    off = np.linalg.norm(surface.points, axis=1)
    parts = int(surface.island.max()) + 1
    centre = (
        np.stack(
            [np.bincount(surface.island, surface.points[:, k], parts) for k in range(3)], axis=1
        )
        / np.bincount(surface.island, minlength=parts)[:, None]
    )
    out = np.linalg.norm(surface.points - centre[surface.island], axis=1)

    begin = _least(out, surface.island, parts)
    one = _least(-_ways(pairs, length, begin, len(off)), surface.island, parts)
    way = _ways(pairs, length, one, len(off))
    other = _least(-way, surface.island, parts)
    whole = np.bincount(surface.island, surface.area, minlength=parts)
    corners = surface.points[surface.faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    whole = whole * np.linalg.norm(across, axis=1).sum() / 2.0
    nearest = _least(off, surface.island, parts)
    drawn = way[other] > DRAWN * np.sqrt(whole)
    # A card laid over the head runs down on both sides.
    inward = np.minimum(way[nearest], way[other] - way[nearest])
    drawn &= inward < way[other] / 3.0
    end = np.where(off[one] <= off[other], one, other)
    start = np.where(drawn, end, nearest)
    way = _ways(pairs, length, start, len(off))

    flow = _smooth(surface, _slope(surface, corners, across, way))
    share = surface.area / np.maximum(np.bincount(surface.place, minlength=len(off)), 1)
    return flow[surface.place] @ surface.turn, share[surface.place]


def _least(values: Points, island: NDArray[np.int32], parts: int) -> Rows:
    """Return the row of the least value of each island, the first of equals."""
    order = np.lexsort((np.arange(len(values)), np.round(values, 9), island))
    return order[np.searchsorted(island[order], np.arange(parts))]


def _ways(pairs: Rows, length: Points, starts: Rows, count: int) -> Points:
    """Return the way to each place from its island's start."""
    cost = np.full(count, np.inf)
    cost[starts] = 0.0
    return distances(pairs, length, cost)


def _slope(surface: Surface, corners: Points, across: Points, way: Points) -> Points:
    """Return at each place the mean of its faces' directions of steepest growth, by area."""
    square = np.maximum((across**2).sum(axis=1), 1e-300)[:, None]
    slope = np.zeros_like(across)
    for k in range(3):
        side = corners[:, (k + 2) % 3] - corners[:, (k + 1) % 3]
        slope += way[surface.faces[:, k], None] * np.cross(across, side) / square
    size = np.linalg.norm(slope, axis=1, keepdims=True)
    slope = slope / np.maximum(size, 1e-12) * np.sqrt(square)
    rows = surface.faces.ravel()
    sums = [np.bincount(rows, np.repeat(slope[:, k], 3), len(way)) for k in range(3)]
    return np.stack(sums, axis=1).astype(np.float64)


def _smooth(surface: Surface, flow: Points) -> Points:
    """Return directions that are the mean of a place's own and its neighbours', of length 1."""
    count = len(flow)
    ends = surface.edges
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(count, count))
    graph = (graph + graph.T).tocsr()
    for _ in range(2):
        flow = flow + np.asarray(graph @ flow)
        flow = flow / np.maximum(np.linalg.norm(flow, axis=1, keepdims=True), 1e-300)
    return flow
