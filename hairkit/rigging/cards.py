"""Where the bones of a hair mesh made of cards, locks or tails go: one chain follows each lock.

Hair near the skull follows the root. From there on, the way along the mesh says how far along a
lock each place is, so that a chain goes up, out and round as its lock does. Places that leave the
skull side by side and go the same way are one lock.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import coo_array
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from hairkit.errors import RigError
from hairkit.rigging.course import Course, course
from hairkit.rigging.plan import (
    MOST_CHAINS,
    SNAP,
    Bone,
    Plan,
    Points,
    Weights,
    check_axis,
    check_counts,
    check_influences,
    check_root,
    check_vertices,
    triple,
)
from hairkit.rigging.surface import Rows, Surface, weld

AUTO_CHAINS = 12
"""The most chains that are made unless more are asked for."""
SPREAD = 0.65
"""How far apart two bunches of hair are one lock, on average over both [skull radii]."""
SOFT = 0.6
"""How much farther than its own lock another is that has no share in a place [skull radii]."""
SHORT, LONG = 0.3, 0.5
"""Shares of the longest hair: what is shorter than the first follows the root, than the second
partly."""
CELLS = 256
"""Places that stand for all when locks are gathered."""


class Locks(NamedTuple):
    """Which lock each place belongs to."""

    shares: Points
    """Of each place in each lock, each row summing to 1, shape (n, locks)."""

    moving: Points
    """How much of each place follows a chain at all, not the root, shape (n,)."""

    start: Points
    """The way from the scalp at which each lock begins, shape (locks,)."""

    end: Points
    """The way from the scalp at which each lock ends, shape (locks,)."""


def plan_cards(
    vertices: ArrayLike,
    faces: ArrayLike,
    *,
    root: ArrayLike,
    axis: ArrayLike = (0.0, -1.0, 0.0),
    chains: int | None = None,
    segments: int = 3,
    max_influences: int = 2,
) -> Plan:
    """Plan a skeleton whose chains follow the locks of a hair mesh.

    Rows of `Plan.bones` count from 0: row 0 is ``HairRoot`` at `root` with parent -1, then
    ``Hair_S1_B1`` to ``Hair_S1_B{segments}``, then the next lock's. Locks are numbered from the
    largest. Each bone stands on its lock's centre line in the middle of a band; bands are slices of
    the way along the hair, not of height.

    Vertices are welded by place first, so those of a seam get the same weights. Where the hair
    round the root fits a ball, what lies on that ball follows the root, and hair is measured from
    where it leaves it. Otherwise hair is measured from the end of each piece that is nearest to the
    root.

    A bone moves what is past it: at the scalp the root moves all, at a bone it and the one before
    it move half each, at the end of its band it moves all, and in between shares go over evenly. So
    a vertex's heaviest bone is the one whose way to the next it lies along. Hair too short to
    swing follows the root. In a piece wider than a lock, chains share the vertices between them:
    there, where four bones meet, weights are smooth with four influences and may jump with fewer.

    Args:
        vertices: Positions, shape (v, 3), any unit.
        faces: Triangles as rows of vertices, shape (f, 3).
        root: Where the hair is fixed to the scalp, in the same space.
        axis: Direction in which hair grows, which tells the top of the skull; any length but zero.
        chains: The most chains, 1 to 64; None chooses up to 12.
        segments: Bones of a chain, 1 to 64.
        max_influences: Bones that may move one vertex; clamped to 1 to 4.

    Raises:
        RigError: There is no vertex, none below the root, one that is not finite, faces are not
            rows of vertices, or an option is out of range.
    """
    points = check_vertices(vertices)
    anchor, along = check_root(root), check_axis(axis)
    check_counts(1, segments)
    _check_chains(chains)
    influences = check_influences(max_influences)
    away = points - anchor
    if not (away @ along > SNAP * float(np.abs(away).max())).any():
        raise RigError(
            "above root",
            f"all {len(points)} vertices are at or above the root {anchor.tolist()}; "
            f"expected some in the direction of the axis {along.tolist()}",
        )
    surface = weld(points, faces, anchor, along)
    flow = course(surface)
    locks = _locks(surface, flow, chains)
    spots = _centres(surface, flow, locks, segments)
    weights = _weights(flow, locks, segments, influences)

    bones = [Bone(name="HairRoot", position=triple(anchor), parent=-1)]
    rows = []
    for number, spot in enumerate(spots):
        where = anchor + surface.reach * (spot @ surface.turn)
        rows.append(tuple(range(len(bones), len(bones) + segments)))
        for b in range(segments):
            name = f"Hair_S{number + 1}_B{b + 1}"
            parent = len(bones) - 1 if b else 0
            bones.append(Bone(name=name, position=triple(where[b]), parent=parent))
    return Plan(
        bones=tuple(bones),
        weights=Weights(weights.indices[surface.place], weights.weights[surface.place]),
        chains=tuple(rows),
        strategy="cards",
    )


def _locks(surface: Surface, flow: Course, chains: int | None) -> Locks:
    """Return locks: places whose hair leaves the scalp side by side and goes the same way."""
    width = SPREAD * flow.unit
    still = _still(flow, width / 6.0)
    moved = surface.area * (1.0 - still) * (flow.far > 0.0)
    live = np.flatnonzero(moved > 0.0)
    if not len(live):
        live = np.arange(len(moved))
        moved = surface.area + 1e-12
    traits, weigh = flow.traits[live], moved[live] / moved[live].sum()
    cells, owner = _cells(traits, weigh, width / 6.0)
    mass = np.bincount(owner, weigh, minlength=len(cells)).astype(np.float64)
    middle, size = _joined(cells, mass, width, chains, AUTO_CHAINS)
    big = size > (0.01 if chains is None else 0.002)
    middle = middle[big] if big.any() else middle[[int(np.argmax(size))]]
    middle, size = _settled(traits, weigh, middle)
    if chains is None:
        # Settled, two may turn out to be one.
        middle, _ = _joined(middle, size, width, None, AUTO_CHAINS)
        middle, size = _settled(traits, weigh, middle)
    # The largest first; equals as they come, which is by place.
    order = np.lexsort((np.arange(len(middle)), -np.round(size, 9)))
    order = order[size[order] > 0.0]
    middle = middle[order]

    gap = cdist(flow.traits, middle)
    shares = np.maximum(1.0 - (gap - gap.min(axis=1, keepdims=True)) / (SOFT * flow.unit), 0.0)
    shares = shares / shares.sum(axis=1, keepdims=True)
    main = np.argmax(shares, axis=1)
    # A lock of which most follows the root gets no chain, and the rest of it follows the root too.
    whole = np.bincount(main[live], surface.area[live] + 1e-12, minlength=len(middle))
    swings = np.bincount(main[live], moved[live], minlength=len(middle)) > 0.5 * whole
    if not swings.any():
        swings[0] = True
    # Long hair that passes near such a lock goes with its own.
    shares = np.where(swings, shares, 0.0)
    free = shares.sum(axis=1)
    moving = (1.0 - still) * (1.0 - (1.0 - free) * np.minimum(4.0 * still, 1.0))
    moving = np.where(flow.far > 0.0, moving, 0.0)
    lost = np.flatnonzero(free < 1e-6)
    shares[lost, np.argmin(np.where(swings, gap[lost], np.inf), axis=1)] = 1.0
    shares = shares / shares.sum(axis=1, keepdims=True)
    # Neighbours are told apart by little; what rounding of the ways makes of it is evened out.
    mixed = _evened(surface, np.column_stack([shares * moving[:, None], moving]), flow.far > 0.0)
    moving = mixed[:, -1]
    shares = np.where(
        moving[:, None] > 1e-9, mixed[:, :-1] / np.maximum(moving, 1e-12)[:, None], shares
    )
    start, end = [], []
    for k in np.flatnonzero(swings):
        mine = live[main[live] == k] if (main[live] == k).any() else live
        low, high = _range(flow.far[mine], moved[mine])
        start.append(low)
        end.append(max(high, low + 1e-9))
    return Locks(shares[:, swings], moving, np.array(start), np.array(end))


def _evened(surface: Surface, values: Points, free: NDArray[np.bool_]) -> Points:
    """Return values moved towards the mean of their neighbours', where `free`."""
    count = len(values)
    ends = surface.edges
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(count, count))
    graph = (graph + graph.T).tocsr()
    number = np.maximum(np.asarray(graph.sum(axis=1)), 1.0)[:, None]
    alone = (np.asarray(graph.sum(axis=1)) == 0.0) | ~free
    for _ in range(4):
        mean = np.asarray(graph @ values) / number
        values = np.where(alone[:, None], values, 0.5 * (values + mean))
    return values


def _joined(
    places: Points, mass: Points, width: float, chains: int | None, most: int
) -> tuple[Points, Points]:
    """Return middles and masses of places joined while they are less than `width` apart.

    With `chains` they are joined until no more than that are left, however far apart; without, no
    more than `most`.
    """
    label = np.zeros(len(places), dtype=np.int64)
    if len(places) > 1:
        gaps = np.linalg.norm(places[:, None] - places[None], axis=2)
        # Rounded, so that a turned mesh with equal gaps joins them in the same order.
        tree = linkage(np.round(gaps[np.triu_indices(len(places), 1)], 9), method="average")
        label = fcluster(tree, width, criterion="distance")
        if chains is not None or label.max() > most:
            label = fcluster(tree, chains or most, criterion="maxclust")
        label = label - 1
    size = np.bincount(label, mass).astype(np.float64)
    sums = np.stack([np.bincount(label, mass * places[:, k]) for k in range(3)], axis=1)
    return sums / np.maximum(size, 1e-300)[:, None], size


def _settled(traits: Points, weigh: Points, middle: Points) -> tuple[Points, Points]:
    """Return middles moved to the middle of what is nearest to each, and its mass."""
    for _ in range(6):
        near = KDTree(middle).query(traits)[1]
        size = np.bincount(near, weigh, minlength=len(middle))
        sums = [np.bincount(near, weigh * traits[:, k], minlength=len(middle)) for k in range(3)]
        fresh = np.stack(sums, axis=1) / np.maximum(size, 1e-300)[:, None]
        middle = np.where((size > 0.0)[:, None], fresh, middle)
    near = KDTree(middle).query(traits)[1]
    return middle, np.bincount(near, weigh, minlength=len(middle)).astype(np.float64)


def _range(far: Points, weigh: Points) -> tuple[float, float]:
    """Return where hair begins and ends, leaving out a hundredth of it at each end."""
    order = np.argsort(far, kind="stable")
    sums = np.cumsum(weigh[order])
    low, high = np.interp([0.005 * sums[-1], 0.99 * sums[-1]], sums, far[order])
    return float(low), float(high)


def _still(flow: Course, step: float) -> Points:
    """Return how much each place follows the root because its hair is too short to swing.

    It is the longest hair near by that counts, since a dent in the way along a lock looks like a
    tip.

    Args:
        flow: The hair.
        step: How far apart places stand that are judged as one.
    """
    live = np.flatnonzero(flow.far > 0.0)
    still = np.ones(len(flow.far))
    if not len(live):
        return still
    traits = flow.traits[live]
    cells, owner = _cells(traits, np.full(len(live), 1.0 / len(live)), step)
    length = np.zeros(len(cells))
    np.maximum.at(length, owner, flow.length[live])
    longest = max(float(length.max()), 1e-12)
    short = _short(length / longest)
    # From cell to cell it goes over evenly.
    most = min(12, len(cells))
    gap, near = (part.reshape(-1, most) for part in KDTree(cells).query(traits, k=most))
    weigh = np.maximum(1.0 - (gap / (gap[:, :1] + 3.0 * step)) ** 2, 1e-6)
    mean = (weigh * short[near]).sum(axis=1) / weigh.sum(axis=1)
    # A long wisp among short hair still swings.
    still[live] = np.minimum(mean, _short(flow.length[live] / longest))
    return still


def _short(length: Points) -> Points:
    """Return how much hair follows the root, by its length as a share of the longest's."""
    share = np.clip((length - SHORT) / (LONG - SHORT), 0.0, 1.0)
    return 1.0 - share * share * (3.0 - 2.0 * share)


def _cells(traits: Points, weigh: Points, enough: float) -> tuple[Points, Rows]:
    """Return places far from each other that stand for all, and which stands for each."""
    middle = weigh @ traits
    gap = np.linalg.norm(traits - middle, axis=1)
    chosen = [int(np.argmax(np.round(gap, 9)))]
    gap = np.full(len(traits), np.inf)
    owner = np.zeros(len(traits), dtype=np.int64)
    while True:
        fresh = np.linalg.norm(traits - traits[chosen[-1]], axis=1)
        closer = fresh < gap
        owner[closer] = len(chosen) - 1
        gap = np.minimum(gap, fresh)
        farthest = int(np.argmax(np.round(gap, 9)))
        if gap[farthest] < enough or len(chosen) == CELLS:
            return traits[chosen], owner
        chosen.append(farthest)


def _centres(surface: Surface, flow: Course, locks: Locks, segments: int) -> list[Points]:
    """Return each lock's bones, in the middle of its bands, each of shape (segments, 3)."""
    moved = locks.moving[:, None] * locks.shares
    where, far, size, owned = surface.points, flow.far, surface.area, moved
    if len(surface.faces):
        # Over the faces, not only their corners: where those are few, no band goes without.
        fine = int(np.clip(np.sqrt(200_000 / len(surface.faces)), 1, 6))
        mix = _spread(fine)
        where, far, owned = (
            np.einsum("sk,fk...->sf...", mix, values[surface.faces]).reshape(-1, *values.shape[1:])
            for values in (where, far, owned)
        )
        corners = surface.points[surface.faces]
        size = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        size = np.tile(np.linalg.norm(size, axis=1), len(mix))
    best = owned.max(axis=1, keepdims=True)
    spots = []
    for k in range(owned.shape[1]):
        mine = (owned[:, k] >= best[:, 0]) & (owned[:, k] > 0.0)
        weigh = size[mine] * owned[mine, k]
        span = locks.end[k] - locks.start[k]
        place = np.clip((far[mine] - locks.start[k]) / span, 0.0, 1.0) * segments
        line, known = np.zeros((segments, 3)), np.zeros(segments, dtype=bool)
        for b in range(segments):
            hat = np.maximum(1.0 - 2.0 * np.abs(place - b - 0.5), 0.0) * weigh
            if hat.sum() > 1e-12:
                line[b], known[b] = hat @ where[mine] / hat.sum(), True
        spots.append(_fill(line, known, span / segments))
    return spots


def _spread(fine: int) -> Points:
    """Return shares of a triangle's corners at points spread over it, shape (fine**2, 3)."""
    rows = []
    for i in range(fine):
        for j in range(fine - i):
            rows.append((i + 1 / 3, j + 1 / 3))
            if i + j < fine - 1:
                rows.append((i + 2 / 3, j + 2 / 3))
    first, second = np.array(rows).T / fine
    return np.stack([first, second, 1.0 - first - second], axis=1)


def _fill(line: Points, known: NDArray[np.bool_], step: float) -> Points:
    """Return a chain whose bones of empty bands stand on the line through the others'.

    Args:
        line: Where bones are, shape (segments, 3).
        known: Which of them are, shape (segments,).
        step: How far bones stand from each other past the last that is known.
    """
    rows = np.flatnonzero(known)
    filled = line.copy()
    if not len(rows):
        filled[:, 1] = -step * (np.arange(len(line)) + 0.5)
        return filled
    last = rows[-1]
    ahead = line[last] - (line[rows[-2]] if len(rows) > 1 else 0.0)
    ahead = ahead / max(float(np.linalg.norm(ahead)), 1e-12)
    knots = np.concatenate([[-1.0], rows])
    places = np.concatenate([np.zeros((1, 3)), line[rows]])
    for b in np.flatnonzero(~known):
        filled[b] = [np.interp(b, knots, places[:, c]) for c in range(3)]
        filled[b] += ahead * (step * max(b - last, 0))
    return filled


def _weights(flow: Course, locks: Locks, segments: int, influences: int) -> Weights:
    """Return which bones move each place."""
    count, number = locks.shares.shape
    # A place is near three locks at most that matter.
    near = np.argsort(-locks.shares, axis=1, kind="stable")[:, : min(3, number)]
    bone, share = [np.zeros(count, dtype=np.int64)], [1.0 - locks.moving]
    for k in range(near.shape[1]):
        lock = near[:, k]
        own = np.take_along_axis(locks.shares, near[:, k : k + 1], axis=1)[:, 0] * locks.moving
        span = locks.end[lock] - locks.start[lock]
        place = np.clip((flow.far - locks.start[lock]) / span, 0.0, 1.0) * segments
        # A bone stands in its band's middle and turns what is past it: half of it at the bone, all
        # at the band's end, where the next one's share begins. So bends are even.
        step = np.clip(np.floor(place), 0, segments)
        lean = place - step
        step = step.astype(np.int64)
        lean = np.where(step >= segments, 0.0, lean)
        first = lock * segments
        share[0] += np.where(step == 0, own * (1.0 - lean), 0.0)
        bone.append(np.where(step == 0, 0, first + step))
        share.append(np.where(step == 0, 0.0, own * (1.0 - lean)))
        bone.append(first + np.minimum(step + 1, segments))
        share.append(own * lean)
    return _fewest(np.stack(bone, axis=1), np.stack(share, axis=1), influences)


def _fewest(bone: Rows, share: Points, influences: int) -> Weights:
    """Return the heaviest bones of each place, seldom with a jump where one takes another's turn.

    Each kept share is less by the heaviest that is not kept, so a bone comes and goes at 0, but
    where all that could be kept weigh the same.
    """
    order = np.argsort(-share, axis=1, kind="stable")
    share = np.take_along_axis(share, order, axis=1)
    bone = np.take_along_axis(bone, order, axis=1)
    kept = np.zeros((len(share), influences))
    width = min(influences, share.shape[1])
    kept[:, :width] = share[:, :width]
    if share.shape[1] > influences:
        less = kept - share[:, influences : influences + 1]
        tied = less[:, 0] < 1e-9
        kept = np.where(tied[:, None], kept, np.maximum(less, 0.0))
    kept = kept / kept.sum(axis=1, keepdims=True)
    rows = np.zeros((len(share), influences), dtype=np.int32)
    rows[:, :width] = bone[:, :width]
    return Weights(np.where(kept > 0.0, rows, 0).astype(np.int32), kept)


def _check_chains(chains: int | None) -> None:
    """Refuse a count of chains that makes no skeleton."""
    if chains is None:
        return
    whole = isinstance(chains, int | np.integer) and not isinstance(chains, bool)
    if not whole or not 1 <= chains <= MOST_CHAINS:
        raise RigError(
            "bad option",
            f"chains: expected a whole number 1..{MOST_CHAINS} or None, got {chains!r}",
        )
