"""A groom out of strands that were given: which of them are guides, and how the others follow."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hairkit.errors import GroomError
from hairkit.groom.model import DrawnHairs, Groom
from hairkit.groom.plan import neighbours_of
from hairkit.groom.rest import MAX_SEGMENTS, Points, point_counts, unit_rows
from hairkit.groom.roots import MOST_EXACT, farthest_points, spaced_points
from hairkit.head import Head
from hairkit.style import Style

MOST_POINTS = 161
"""Most points of a drawn hair; strands that have no more keep every one of their own."""

FOLLOWED = 3
"""Guides that a drawn hair follows."""

SHAPE_POINTS = 8
"""Places along a strand that tell how alike two are."""

ROOT_WEIGHT = 2.0
"""How much more the root counts than another place: who follows whom is decided by the scalp."""

ROUNDS = 8
"""Rounds of moving each cluster's middle to the mean of its strands."""

_SAMPLE = 20_000
"""Strands that clusters are found among, at least; all of them where there are no more."""

_CLOSE = 0.05
"""Places along a strand are not nearer to each other than this share of their distance along it."""

_BLOCK = 4_000_000
"""Distances that are worked out at once."""


def groom_from_lines(
    points: Points,
    counts: NDArray[np.integer],
    head: Head,
    style: Style,
    *,
    guides: int | NDArray[np.bool_],
    seed: int = 0,
) -> Groom:
    """Return a groom whose rest pose is these strands.

    Args:
        points: In the head's frame [m], strand by strand, root to tip, shape (points, 3).
        counts: Points of each strand, at least 2, shape (strands,).
        head: What they grow on.
        style: What the hair is like; its length becomes the guides', its segments are a long
            guide's.
        guides: How many strands are simulated, chosen so that every other one is like one of them;
            or which ones, shape (strands,). The others are drawn and follow them. Where all are
            simulated, the style's drawn hairs grow round them.
        seed: Of what is random, at least 0.

    Raises:
        GroomError: No strand, one without length, or no guide.
    """
    points = np.asarray(points, dtype=np.float64)
    counts = np.asarray(counts, dtype=np.int64)
    if len(counts) == 0:
        raise GroomError("strands: got none, expected at least one")
    lengths = strand_lengths(points, counts)
    flat = np.flatnonzero(lengths < 1e-6)
    if len(flat):
        raise GroomError(f"strands: strand {flat[0]} has no length, expected one above 0")
    shape = _shapes(points, counts)
    if isinstance(guides, np.ndarray):
        chosen = np.flatnonzero(guides)
        drawn = np.flatnonzero(~guides)
        if len(chosen) == 0:
            raise GroomError("guides: none is marked, expected at least one")
    elif guides < 1:
        raise GroomError(f"guides: expected at least 1, got {guides}")
    else:
        chosen = choose_guides(shape, min(guides, len(counts)), seed)
        drawn = np.arange(len(counts)) if len(chosen) < len(counts) else np.zeros(0, np.int64)
    style = _given_style(style, lengths[chosen], bool(len(drawn)))
    guide_counts = point_counts(style, lengths[chosen] / style.length).astype(np.int64)
    lines, guide_counts = _evenly(*rows_of(points, counts, chosen), guide_counts)
    start = np.cumsum(guide_counts) - guide_counts
    roots = lines[start]
    _, normals = head.signed_distance(roots, body=False)
    directions = unit_rows(lines[start + 1] - roots)
    alone = np.full(len(chosen), -1, np.int32)
    neighbours, spacing = neighbours_of(roots, 0.3 * head.radius, alone)
    hairs = None
    if len(drawn):
        followed, weights = followed_guides(shape[drawn], shape[chosen])
        hair_points, shares = _kept_points(*rows_of(points, counts, drawn))
        hairs = DrawnHairs(
            points=hair_points,
            shares=shares,
            lengths=lengths[drawn],
            guides=followed,
            weights=weights,
        )
    return Groom(
        style=style,
        head=head,
        roots=roots,
        normals=normals,
        directions=directions,
        lengths=strand_lengths(lines, guide_counts) / style.length,
        counts=guide_counts.astype(np.int32),
        points=lines,
        neighbours=neighbours,
        spacing=spacing,
        seed=seed,
        tied_to=alone,
        laid=np.full(len(chosen), 2, np.int32),
        thickness=_thickness(style, head, lines),
        given=True,
        hairs=hairs,
    )


def strand_lengths(points: Points, counts: NDArray[np.integer]) -> Points:
    """Return the length of each strand [m], shape (strands,)."""
    along = _arcs(points, counts)
    end = np.cumsum(counts) - 1
    return along[end] - along[end - counts + 1]


def rows_of(
    points: Points, counts: NDArray[np.int64], strands: NDArray[np.int64]
) -> tuple[Points, NDArray[np.int64]]:
    """Return the points and counts of some strands, in their order."""
    start = (np.cumsum(counts) - counts)[strands]
    sizes = counts[strands]
    return points[np.repeat(start, sizes) + _places(sizes)], sizes


def along_strands(
    points: Points, counts: NDArray[np.int64], shares: Points, wanted: NDArray[np.int64]
) -> Points:
    """Return places along strands [m], shape (sum of wanted, 3).

    Args:
        points: Strand by strand [m], shape (points, 3).
        counts: Points of each strand, shape (strands,).
        shares: Share of its strand's length at which each place lies, shape (sum of wanted,).
        wanted: Places of each strand, shape (strands,).
    """
    along = _arcs(points, counts)
    end = np.cumsum(counts) - 1
    first, last = along[end - counts + 1], along[end]
    # Sums round: no place may leave its own strand.
    goal = np.repeat(first, wanted) + shares * np.repeat(last - first, wanted)
    goal = np.clip(goal, np.repeat(first, wanted), np.repeat(last, wanted))
    return np.stack([np.interp(goal, along, points[:, axis]) for axis in range(3)], axis=1)


def choose_guides(shape: Points, count: int, seed: int) -> NDArray[np.int64]:
    """Return which strands stand best for the others, in rising order, shape (count,).

    Strands are gathered round middles that begin evenly spread over the scalp and go to the mean
    of their strands; the strand nearest to each middle is a guide.

    Args:
        shape: What makes strands alike, shape (strands, numbers), the root's place first.
        count: How many, at most as many as there are strands.
        seed: Where the spread begins, and which strands are looked at of very many.
    """
    total = len(shape)
    if count == total:
        return np.arange(total)
    random = np.random.Generator(np.random.PCG64([seed, 7]))
    rows = np.arange(total)
    if total > max(_SAMPLE, 8 * count):
        rows = np.sort(random.choice(total, max(_SAMPLE, 8 * count), replace=False))
    seen = shape[rows]
    spread = farthest_points if count <= MOST_EXACT else spaced_points
    middle = seen[spread(seen[:, :3], count, random)].copy()
    for _ in range(ROUNDS):
        nearest, _ = _nearest(seen, middle)
        size = np.bincount(nearest, minlength=count)
        order = np.argsort(nearest, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(size)])[:-1]
        filled = size > 0
        total_of = np.add.reduceat(seen[order], bounds[filled], axis=0)
        middle[filled] = total_of / size[filled][:, None]
    nearest, gap = _nearest(seen, middle)
    # The first of each middle's strands, by distance.
    order = np.lexsort((gap, nearest))
    _, first = np.unique(nearest[order], return_index=True)
    chosen = order[first]
    if len(chosen) < count:
        # Middles that lie in one place leave guides over: for those that are least like theirs.
        gap[chosen] = -1.0
        chosen = np.concatenate([chosen, np.argsort(-gap, kind="stable")[: count - len(chosen)]])
    return np.sort(rows[chosen])


def followed_guides(
    shape: Points, guide_shape: Points
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the guides that hairs follow and how much each counts, both (hairs, 3).

    The nearer in place and shape a guide is the more it counts, and the fourth nearest not at all,
    so that neighbouring hairs are moved alike. With fewer guides the last is named again.
    """
    count = len(guide_shape)
    near = min(FOLLOWED + 1, count)
    rows = np.zeros((len(shape), near), np.int64)
    gaps = np.zeros((len(shape), near))
    for first, block in _blocks(shape, guide_shape):
        pick = np.argpartition(block, near - 1, axis=1)[:, :near]
        gap = np.take_along_axis(block, pick, axis=1)
        order = np.lexsort((pick, gap), axis=1)
        rows[first : first + len(block)] = np.take_along_axis(pick, order, axis=1)
        gaps[first : first + len(block)] = np.take_along_axis(gap, order, axis=1)
    gaps = np.sqrt(gaps)
    edge = gaps[:, -1:] if near > FOLLOWED else 2.0 * gaps[:, -1:] + 1e-6
    gaps, rows = gaps[:, :FOLLOWED], rows[:, :FOLLOWED]
    weights = (np.maximum(edge - gaps, 0.0) / (edge * (gaps + 1e-6) + 1e-12)) ** 2
    weights[:, 0] += 1e-9
    weights /= weights.sum(axis=1, keepdims=True)
    spare = FOLLOWED - rows.shape[1]
    rows = np.pad(rows, ((0, 0), (0, spare)), mode="edge")
    weights = np.pad(weights, ((0, 0), (0, spare)))
    return rows.astype(np.int32), weights.astype(np.float32)


def _evenly(
    points: Points, counts: NDArray[np.int64], wanted: NDArray[np.int64], tries: int = 4
) -> tuple[Points, NDArray[np.int64]]:
    """Return places at even distances along strands, strand by strand, and how many each has.

    Where a strand folds back onto itself midway between two places, these lie in one: it gets
    another number of places.
    """
    lines = along_strands(
        points, counts, np.repeat(1.0 / (wanted - 1), wanted) * _places(wanted), wanted
    )
    row = np.repeat(np.arange(len(wanted)), wanted)
    step = np.linalg.norm(np.diff(lines, axis=0), axis=1)
    even = (strand_lengths(points, counts) / (wanted - 1))[row[1:]]
    folded = np.unique(row[1:][(row[1:] == row[:-1]) & (step < _CLOSE * even)])
    if not len(folded) or not tries:
        return lines, wanted
    wanted = wanted.copy()
    wanted[folded] += np.where(wanted[folded] < MAX_SEGMENTS, 1, -1)
    return _evenly(points, counts, wanted, tries - 1)


def _given_style(style: Style, lengths: Points, drawn: bool) -> Style:
    """Return a style as long as the guides, without what only grown hair has."""
    # Not the longest: one stray strand would leave the others few points.
    length = float(np.clip(np.percentile(lengths, 90.0), 0.002, 3.0))
    changes: dict[str, object] = {"length": length, "ties": (), "row_guides": 0}
    if drawn:
        changes |= {"plait": 0, "coil": 0.0, "shrinkage": 0.0}
    return style.replace(**changes)


def _thickness(style: Style, head: Head, lines: Points) -> Points:
    """Return how thick points are to what they touch, so that contact leaves the rest pose be."""
    radius = style.contact_radius()
    if radius == 0.0:
        return np.ones(len(lines))
    distance, _ = head.signed_distance(lines)
    return np.clip(0.98 * distance / radius, 0.0, 1.0)


def _arcs(points: Points, counts: NDArray[np.integer]) -> Points:
    """Return how far along all strands laid end to end each point is [m], shape (points,).

    A strand begins a metre after the one before it ends, so that none runs into the next.
    """
    step = np.zeros(len(points))
    step[1:] = np.linalg.norm(np.diff(points, axis=0), axis=1)
    step[np.cumsum(counts) - counts] = 1.0
    return np.cumsum(step)


def _places(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each point's place in its strand, 0 at the root, shape (sum of counts,)."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


def _shapes(points: Points, counts: NDArray[np.int64]) -> Points:
    """Return what makes strands alike: places along them [m], shape (strands, 3 SHAPE_POINTS)."""
    strands = len(counts)
    shares = np.tile(np.linspace(0.0, 1.0, SHAPE_POINTS), strands)
    wanted = np.full(strands, SHAPE_POINTS)
    shape = along_strands(points, counts, shares, wanted).reshape(strands, SHAPE_POINTS, 3)
    shape /= np.sqrt(SHAPE_POINTS)
    shape[:, 0] *= ROOT_WEIGHT * np.sqrt(SHAPE_POINTS)
    return shape.reshape(strands, -1)


def _kept_points(
    points: Points, counts: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return hairs of equally many points and where these are along each.

    A hair keeps its own points, and has further ones between them where others have more; one of
    more than MOST_POINTS has places at even distances along it.
    """
    strands, most = len(counts), min(int(counts.max()), MOST_POINTS)
    along = _arcs(points, counts)
    end = np.cumsum(counts) - 1
    first, length = along[end - counts + 1], (along[end] - along[end - counts + 1])
    share = (along - np.repeat(first, counts)) / np.repeat(length, counts)
    place, row = _places(counts), np.repeat(np.arange(strands), counts)
    # Which of the new points is each of the old: by its distance along, but no two the same.
    far = 4 * most
    at = np.rint(share * (most - 1)).astype(np.int64)
    at = np.maximum.accumulate(row * far + at - place) - row * far + place
    at = np.minimum(at, most - np.repeat(counts, counts) + place)
    keeps = np.repeat(counts <= most, counts)
    wanted = np.tile(np.linspace(0.0, 1.0, most), strands)
    if keeps.any():
        own = np.interp(np.arange(strands * most), (row * most + at)[keeps], share[keeps])
        wanted = np.where(np.repeat(counts <= most, most), own, wanted)
    lines = along_strands(points, counts, wanted, np.full(strands, most))
    return (
        lines.reshape(strands, most, 3).astype(np.float32),
        wanted.reshape(strands, most).astype(np.float32),
    )


def _blocks(rows: Points, others: Points) -> Iterator[tuple[int, Points]]:
    """Yield squared distances of rows to all others, block by block, with each block's start."""
    each = max(_BLOCK // len(others), 1)
    square = np.sum(others * others, axis=1)
    for first in range(0, len(rows), each):
        part = rows[first : first + each]
        block = np.sum(part * part, axis=1)[:, None] - 2.0 * part @ others.T + square
        yield first, np.maximum(block, 0.0)


def _nearest(rows: Points, others: Points) -> tuple[NDArray[np.int64], Points]:
    """Return the nearest other of each row and the squared distance to it."""
    nearest, gap = np.zeros(len(rows), np.int64), np.zeros(len(rows))
    for first, block in _blocks(rows, others):
        best = block.argmin(axis=1)
        nearest[first : first + len(block)] = best
        gap[first : first + len(block)] = block[np.arange(len(block)), best]
    return nearest, gap
