"""How hair runs over a welded mesh: from the skull, or the root, along each lock to its tips."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array, eye_array
from scipy.sparse.linalg import spsolve_triangular
from scipy.spatial import KDTree

from hairkit.rigging.plan import Points
from hairkit.rigging.surface import Rows, Surface, distances, distinct, pieces, spans

HUG = 1.2
"""How far from the skull's middle hair still lies on it [skull radii]."""
LOW = 0.25
"""How far under the skull's middle hair lies on it [skull radii]."""
DETOUR = 2.0
"""How many times its length a way through the air costs."""
MOUTH = 0.1
"""Share of a piece's reach that is its root end."""
THICK = 0.4
"""How thick solid hair may be for its inside to go with its outside [skull radii]."""
NARROW = 0.5
"""How wide hair may be, roughly, that goes with one lock as a whole [skull radii]."""


class Skull(NamedTuple):
    """A ball that the hair near the root lies on."""

    middle: Points
    radius: float


class Course(NamedTuple):
    """How hair runs over a surface."""

    far: Points
    """The way from the scalp to each place, 0 on the scalp, shape (n,)."""

    length: Points
    """The way from the scalp to the tip of the hair through each place, shape (n,)."""

    traits: Points
    """Where the hair through each place is a little past the scalp, shape (n, 3)."""

    unit: float
    """A skull's radius, or what stands for it."""


def skull(surface: Surface) -> Skull | None:
    """Return the ball that the hair round the root lies on, or None if there is none.

    It is fitted to the faces near the top and believed if they cover most of its upper half.
    """
    corners = surface.points[surface.faces]
    if len(corners) < 8:
        return None
    middles = corners.mean(axis=1)
    size = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    size = np.linalg.norm(size, axis=1)
    width = float(np.ptp(surface.points, axis=0)[[0, 2]].min())
    best, most = None, 0.6
    for share in (0.5, 0.7, 0.9, 0.3, 1.2):
        upper = middles[:, 1] > -share * width
        if upper.sum() < 8 or size[upper].sum() <= 0.0:
            continue
        ball = _ball(middles[upper], size[upper] / size[upper].sum(), 0.5 * width)
        if not 0.2 * width < ball.radius < width:
            continue
        cover = _cover(middles, ball)
        if cover > most:
            best, most = ball, cover
        if most > 0.9:
            break
    return best


def _ball(points: Points, weight: Points, radius: float) -> Skull:
    """Return the ball through most of the points; those off it by a fifth count for nothing.

    Args:
        points: Points, shape (n, 3).
        weight: Of each, shape (n,).
        radius: Of the ball to begin with, which hangs from the root.
    """
    terms = np.concatenate([2.0 * points, np.ones((len(points), 1))], axis=1)
    square = (points**2).sum(axis=1)
    middle = np.array([0.0, -radius, 0.0])
    for slack in (0.6, 0.5, 0.4, 0.3, *[0.2] * 10):
        off = np.linalg.norm(points - middle, axis=1) / radius - 1.0
        # A little of each stays, so that there always is an answer.
        scale = weight * (np.maximum(1.0 - (off / slack) ** 2, 0.0) ** 2 + 1e-9)
        left = (terms * scale[:, None]).T @ terms
        left += 1e-9 * np.trace(left) * np.eye(4)
        found = np.linalg.solve(left, terms.T @ (scale * square))
        middle = found[:3]
        radius = float(np.sqrt(max(found[3] + middle @ middle, 1e-12)))
    return Skull(middle, radius)


def _cover(middles: Points, ball: Skull) -> float:
    """Return the share of a ball's upper half that has faces on it."""
    count = np.arange(200) + 0.5
    turn, height = np.pi * (1.0 + 5.0**0.5) * count, count / 200.0
    level = np.sqrt(1.0 - height**2)
    ways = np.stack([np.cos(turn) * level, height, np.sin(turn) * level], axis=1)
    out = middles - ball.middle
    length = np.linalg.norm(out, axis=1)
    near = np.abs(length / ball.radius - 1.0) < 0.12
    if not near.any():
        return 0.0
    gap, _ = KDTree(out[near] / length[near, None]).query(ways)
    return float((gap < 0.26).mean())


def course(surface: Surface) -> Course:
    """Return how hair runs from the skull, or from each piece's end nearest to the root."""
    ball = skull(surface)
    if ball is not None:
        out = surface.points - ball.middle
        off = np.linalg.norm(out, axis=1) / ball.radius - HUG
        outside = np.maximum(off, -out[:, 1] / ball.radius - LOW)
        free = surface.area[outside > 0.0].sum()
        if free > 0.02:
            flow = _from_scalp(surface, outside, ball.radius)
            if flow.far.max() > 0.3 * ball.radius:
                return flow
    # No skull, or nothing that leaves it.
    return _from_scalp(surface, np.ones(len(surface.points)), None)


def _from_scalp(surface: Surface, outside: Points, radius: float | None) -> Course:
    """Return how hair runs from where `outside` is below 0; with no such place, from the root.

    Args:
        surface: The mesh.
        outside: How far from the scalp each place is, 0 at its edge, any unit, shape (n,).
        radius: The skull's.
    """
    count = len(surface.points)
    scalp = outside <= 0.0
    pairs, length = spans(surface)
    # A way that crosses the scalp's edge only costs what of it is outside.
    ends = outside[pairs]
    crossing = scalp[pairs[:, 0]] != scalp[pairs[:, 1]]
    part = ends.max(axis=1) / np.maximum(ends.max(axis=1) - ends.min(axis=1), 1e-12)
    length = np.where(crossing, length * part, length)
    length = np.where(scalp[pairs].all(axis=1), 1e-9, length)
    if radius is not None:
        inward, inward_cost = _through(surface, THICK * radius)
        pairs, length = np.concatenate([pairs, inward]), np.concatenate([length, inward_cost])

    jumps, jump_cost = _jumps(surface)
    starts = DETOUR * np.linalg.norm(surface.points, axis=1)
    if scalp.any():
        gap, _ = KDTree(surface.points[scalp]).query(surface.points)
        starts = DETOUR * gap
    starts[scalp] = 0.0
    first = distances(np.concatenate([pairs, jumps]), np.concatenate([length, jump_cost]), starts)
    # Through the air a tail's tip may be near the neck. So each piece is entered at the end that
    # is reached first, and measured from there along itself.
    parts = int(surface.island.max()) + 1
    near, last = np.full(parts, np.inf), np.zeros(parts)
    np.minimum.at(near, surface.island, first)
    np.maximum.at(last, surface.island, first)
    mouth = first <= (near + MOUTH * (last - near))[surface.island]
    far = distances(pairs, length, np.where(mouth, first, np.inf))
    far[scalp] = 0.0

    # Where nothing is nearer to the scalp, hair begins; elsewhere it comes from its neighbours.
    ways = np.concatenate([pairs, jumps])
    ways = np.where((far[ways[:, 0]] < far[ways[:, 1]])[:, None], ways, ways[:, ::-1])
    inner = surface.island[ways[:, 0]] == surface.island[ways[:, 1]]
    ways = ways[inner | mouth[ways[:, 1]]]
    step = far[ways[:, 1]] - far[ways[:, 0]]
    space = np.linalg.norm(surface.points[ways[:, 1]] - surface.points[ways[:, 0]], axis=1)
    weight = (step / np.maximum(space, 1e-12)) ** 2
    rising = step > 1e-9
    ways, weight = ways[rising], weight[rising]
    order = np.lexsort((np.arange(count), far))
    low = float(far.min())
    unit = radius if radius is not None else 0.3 * float(far.max() - low)
    unit = max(unit, 1e-6)
    # A little past the scalp, where what is bound together has met and what parts has parted.
    gate = low + min(unit, 0.5 * float(far.max() - low))
    past = far >= gate
    down, up = past[ways[:, 1]], ~past[ways[:, 0]]
    after = _carry(ways[down], weight[down], order, surface.points)
    before = _carry(ways[up][:, ::-1], weight[up], order[::-1], surface.points)
    longest = _carry(ways[:, ::-1], weight, order[::-1], far[:, None])[:, 0]
    traits = np.where(past[:, None], after, before)

    # What is narrower than a lock goes with one lock as a whole: its places share their traits.
    free = surface.edges[~scalp[surface.edges].any(axis=1)]
    strip = pieces(free, count)
    strips = int(strip.max()) + 1
    weigh = np.where(scalp, 0.0, surface.area + 1e-12)
    total = np.bincount(strip, weigh, minlength=strips)
    begin, end = np.full(strips, np.inf), np.zeros(strips)
    np.minimum.at(begin, strip, far)
    np.maximum.at(end, strip, far)
    width = total * _whole_area(surface) / np.maximum(end - begin, 1e-9)
    inside = ((width < NARROW * unit) & (total > 0.0))[strip]
    for row in (*traits.T, longest):
        mean = np.bincount(strip, weigh * row, minlength=strips) / np.maximum(total, 1e-300)
        row[inside] = mean[strip[inside]]
    return Course(far, longest, traits, unit)


def _whole_area(surface: Surface) -> float:
    """Return the area of all faces."""
    a, b, c = (surface.points[surface.faces[:, k]] for k in range(3))
    return float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()) / 2.0


def _through(surface: Surface, most: float) -> tuple[Rows, Points]:
    """Return ways through solid hair, from outside to inside, no longer than `most`.

    Along the surface alone, the inside of a thick shell would come after its rim.
    """
    stretch = np.concatenate([surface.points, 4.0 * most * surface.normal], axis=1)
    seek = np.concatenate([surface.points, -4.0 * most * surface.normal], axis=1)
    # Some of a fine mesh are enough: the way goes on along the surface from there.
    some = np.arange(0, len(seek), 1 + len(seek) // 4000)
    # Bounded, or a mesh without an inside would be searched from end to end.
    _, found = KDTree(stretch).query(seek[some], distance_upper_bound=2.0 * most)
    hit = np.flatnonzero(found < len(seek))
    pairs = np.stack([some[hit], np.asarray(found, dtype=np.int64)[hit]], axis=1)
    way = surface.points[pairs[:, 1]] - surface.points[pairs[:, 0]]
    size = np.linalg.norm(way, axis=1)
    inward = (way * surface.normal[pairs[:, 0]]).sum(axis=1) < -0.3 * size
    inward &= (way * surface.normal[pairs[:, 1]]).sum(axis=1) > 0.3 * size
    inward &= (size < most) & (size > 0.0)
    pairs = np.sort(pairs[inward], axis=1)
    pairs = pairs[distinct(pairs)[0]]
    way = surface.points[pairs[:, 1]] - surface.points[pairs[:, 0]]
    return pairs, np.linalg.norm(way, axis=1)


def _jumps(surface: Surface) -> tuple[Rows, Points]:
    """Return ways through the air between pieces that are near each other, and their costs."""
    count = len(surface.points)
    most = min(10, count)
    if most < 2 or surface.island.max() == 0:
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0)
    _, near = KDTree(surface.points).query(surface.points, k=most)
    here = np.repeat(np.arange(count), most)
    pairs = np.stack([here, near.ravel()], axis=1)
    pairs = pairs[surface.island[pairs[:, 0]] != surface.island[pairs[:, 1]]]
    pairs = np.sort(pairs, axis=1)
    pairs = pairs[distinct(pairs)[0]]
    gap = surface.points[pairs[:, 0]] - surface.points[pairs[:, 1]]
    return pairs, DETOUR * np.linalg.norm(gap, axis=1)


def _carry(ways: Rows, weight: Points, order: Rows, values: Points) -> Points:
    """Return values carried along ways: each place has the weighted mean of those before it.

    Args:
        ways: Pairs of places, from and to, shape (e, 2).
        weight: Of each way, shape (e,).
        order: Places so that ways lead forwards, shape (n,).
        values: What places have that no way leads to, shape (n, k).
    """
    count = len(order)
    rank = np.zeros(count, dtype=np.int64)
    rank[order] = np.arange(count)
    before, after = rank[ways[:, 0]], rank[ways[:, 1]]
    total = np.bincount(after, weight, minlength=count)
    share = coo_array((weight / total[after], (after, before)), shape=(count, count))
    system = csr_array(eye_array(count) - share)
    given = np.where((total > 0.0)[:, None], 0.0, values[order])
    carried = np.zeros_like(given)
    # It is triangular in this order: solving it is one pass.
    carried[order] = spsolve_triangular(system, given, lower=True, unit_diagonal=True)
    return carried
