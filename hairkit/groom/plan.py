"""Growing a groom: from a style and a head to guides."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree

from hairkit.errors import GroomError
from hairkit.groom.growth import cut_lengths, rows_on, turned_directions
from hairkit.groom.model import Groom
from hairkit.groom.rest import Flow, leaving_directions, point_counts, rest_pose
from hairkit.groom.roots import choose_roots
from hairkit.groom.ties import assign, keep_off, lay
from hairkit.head import Head
from hairkit.style import Style, Tie
from hairkit.style.tie import as_ties

MAX_GUIDES = 2_000_000
STEEPEST_INWARD = 0.05
"""Least part of a unit direction along the scalp's normal: no hair grows into the head."""


def grow(
    style: Style,
    head: Head,
    *,
    guides: int = 160,
    seed: int = 0,
    roots: ArrayLike | None = None,
    normals: ArrayLike | None = None,
    directions: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    ties: Iterable[Tie] | None = None,
    tied_to: ArrayLike | None = None,
) -> Groom:
    """Grow guides on a head and comb them into their rest pose.

    Roots are spread evenly over the scalp; the same seed gives the same roots on every machine.

    Args:
        style: What the hair is like.
        head: What it grows on.
        guides: How many guides to grow, at least 1; not used when ``roots`` are given. A style with
            ``row_guides`` makes one row, which is one guide, for so many of them.
        seed: Chooses another even spread of roots, and where each curl begins, at least 0.
        roots: Own roots in the head's frame [m], shape (s, 3).
        normals: Out of the scalp at own roots, any length, shape (s, 3); by default out of its
            nearest place, which on a crease or an edge may be another face than a root was chosen
            on.
        directions: Own directions in which guides leave the scalp, any length, shape (s, 3). One
            that points into the head is lifted just out of it. A guide that goes to a tie leaves
            towards it.
        lengths: Length of each guide as a fraction of ``style.length``, shape (s,); by default the
            style's cut, and hair in a puff is cut round.
        ties: Where hair is gathered, in place of the style's own ties.
        tied_to: Row of the tie that each guide goes to, -1 for none, shape (s,); by default the
            nearest that it is in reach of.

    Raises:
        GroomError: An argument is of the wrong kind, shape or range, or a tie has no root.
        StyleError: One of ``ties`` is not a tie.
    """
    seed = _whole("seed", seed, 0, 2**63 - 1)
    if ties is not None:
        style = style.replace(ties=as_ties(ties))
    if roots is None:
        if normals is not None:
            raise GroomError("normals: expected them with roots, got no roots")
        guides = _whole("guides", guides, 1, MAX_GUIDES)
        if style.row_guides > 0 and not style.ties:
            root, normal, rows = rows_on(style, head, guides)
            style = style.replace(ties=rows)
            tied_to = np.arange(len(root)) if tied_to is None else tied_to
        else:
            root, normal = choose_roots(head, guides, seed, style.area)
    else:
        root = _rows("roots", roots, None)
        away, nearest = head.signed_distance(root, body=False)
        normal = nearest if normals is None else _unit("normals", normals, len(root))
        far = np.flatnonzero(np.abs(away) > head.radius)
        if len(far):
            raise GroomError(
                f"roots: row {far[0]} is {abs(away[far[0]]):.3g} m from the head's surface; "
                f"expected within {head.radius:.3g} m, in the head's frame and metres"
            )
    count = len(root)
    given = lengths is not None
    share = cut_lengths(style, head, root) if lengths is None else _lengths(lengths, count)
    flow = Flow.over(head, style)
    if directions is None:
        direction = leaving_directions(style, flow, root, normal)
        direction = turned_directions(style, direction, normal)
    else:
        direction = _directions(directions, normal)
    tied = _tied(style, head, root, tied_to)
    lines: list[NDArray[np.float64]] = [np.zeros((0, 3))] * count
    laid = np.full(count, 2, np.int32)
    if (tied >= 0).any():
        lines, rigid, share = lay(style, head, style.ties, tied, root, share, given, seed)
        laid = np.maximum(laid, rigid)
        keep_off(head, lines, laid, style.contact_radius())
        gathered = np.flatnonzero(tied >= 0)
        first = np.array([lines[row][1] - lines[row][0] for row in gathered])
        direction[gathered] = first / np.linalg.norm(first, axis=1, keepdims=True)
    free = np.flatnonzero(tied < 0)
    if len(free):
        counts = point_counts(style, share[free])
        loose = rest_pose(
            style, flow, root[free], normal[free], direction[free], share[free], counts, seed
        )
        for row, line in zip(free, np.split(loose, np.cumsum(counts)[:-1]), strict=True):
            lines[row] = line
    neighbours, spacing = neighbours_of(root, 0.3 * head.radius, tied)
    return Groom(
        style=style,
        head=head,
        roots=root,
        normals=normal,
        directions=direction,
        lengths=share,
        counts=np.array([len(line) for line in lines], np.int32),
        points=np.concatenate(lines),
        neighbours=neighbours,
        spacing=spacing,
        seed=seed,
        tied_to=tied,
        laid=laid,
    )


def _tied(
    style: Style, head: Head, root: NDArray[np.float64], tied_to: ArrayLike | None
) -> NDArray[np.int32]:
    """Return the tie of each root, -1 for none, shape (s,)."""
    count, most = len(root), len(style.ties)
    given = None
    if tied_to is not None:
        try:
            rows = np.array(tied_to)
        except ValueError:
            rows = np.zeros(0)
        if rows.shape != (count,) or rows.dtype.kind not in "iu":
            raise GroomError(
                f"tied_to: expected whole numbers of shape ({count},), one a guide, got "
                f"{rows.dtype} of shape {rows.shape}"
            )
        bad = np.flatnonzero((rows < -1) | (rows >= most))
        if len(bad):
            raise GroomError(
                f"tied_to: guide {bad[0]} goes to tie {rows[bad[0]]}; expected -1 for none, or the "
                f"row of one of the {most} ties"
            )
        given = rows.astype(np.int32)
    if most == 0:
        return np.full(count, -1, np.int32)
    return assign(head, style.ties, root, given)


def _whole(name: str, value: Any, low: int, high: int) -> int:
    """Return a whole number in a range."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
        raise GroomError(f"{name}: expected a whole number from {low} to {high}, got {value!r}")
    return int(value)


def _rows(name: str, values: ArrayLike, count: int | None) -> NDArray[np.float64]:
    """Return values as finite rows of three."""
    try:
        rows = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise GroomError(f"{name}: expected numbers of shape (s, 3)") from None
    wanted = "s" if count is None else str(count)
    if rows.ndim != 2 or rows.shape[1] != 3 or (count is not None and len(rows) != count):
        raise GroomError(f"{name}: expected shape ({wanted}, 3), got {rows.shape}")
    if len(rows) == 0 or len(rows) > MAX_GUIDES:
        raise GroomError(f"{name}: expected 1 to {MAX_GUIDES} rows, got {len(rows)}")
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise GroomError(
            f"{name}: row {bad[0]} is {rows[bad[0]].tolist()}; expected finite numbers"
        )
    return rows


def _unit(name: str, values: ArrayLike, count: int) -> NDArray[np.float64]:
    """Return own vectors at unit length, shape (count, 3)."""
    rows = _rows(name, values, count)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    bad = np.flatnonzero(length[:, 0] < 1e-12)
    if len(bad):
        raise GroomError(f"{name}: row {bad[0]} has no length; expected a direction")
    return rows / length


def _directions(values: ArrayLike, normal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return own directions as unit vectors that point out of the scalp."""
    rows = _unit("directions", values, len(normal))
    out = np.sum(rows * normal, axis=1, keepdims=True)
    rows = rows + normal * np.maximum(STEEPEST_INWARD - out, 0.0)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(length > 1e-6, rows / np.maximum(length, 1e-12), normal)


def _lengths(values: ArrayLike, count: int) -> NDArray[np.float64]:
    """Return own lengths, checked."""
    try:
        rows = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise GroomError("lengths: expected one number a guide") from None
    if rows.shape != (count,):
        raise GroomError(f"lengths: expected shape ({count},), one a guide, got {rows.shape}")
    bad = np.flatnonzero(~(np.isfinite(rows) & (rows > 0.0) & (rows <= 10.0)))
    if len(bad):
        raise GroomError(
            f"lengths: guide {bad[0]} is {rows[bad[0]]}; expected a fraction of the style's length "
            "greater than 0, at most 10"
        )
    return rows


def neighbours_of(
    root: NDArray[np.float64], alone: float, tied: NDArray[np.int32]
) -> tuple[NDArray[np.int32], float]:
    """Return the three nearest other guides of each, shape (s, 3), and the typical distance [m].

    Guides of one tie have each other for neighbours; one that is alone in its tie has itself.
    """
    near, spacing = _nearest_others(root, alone)
    for tie in np.unique(tied) if (tied >= 0).any() else ():
        members = np.flatnonzero(tied == tie)
        own, _ = _nearest_others(root[members], alone)
        near[members] = members[own]
    return near, spacing


def _nearest_others(root: NDArray[np.float64], alone: float) -> tuple[NDArray[np.int32], float]:
    count = len(root)
    if count == 1:
        return np.zeros((1, 3), np.int32), alone
    wanted = min(4, count)
    distance, row = map(np.asarray, KDTree(root).query(root, k=wanted))
    # A guide is its own nearest, but where two grow at one place it may come second.
    own = row == np.arange(count)[:, None]
    own[~own.any(axis=1), -1] = True
    others, gaps = row[~own].reshape(count, -1), distance[~own].reshape(count, -1)
    pick = np.minimum(np.arange(3), wanted - 2)
    spacing = float(np.median(gaps[:, pick]))
    return others[:, pick].astype(np.int32), max(spacing, 1e-4)
