"""Growing a groom: from a style and a head to guides."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree

from hairkit.errors import GroomError
from hairkit.groom.model import Groom
from hairkit.groom.rest import Flow, leaving_directions, rest_pose
from hairkit.groom.roots import choose_roots
from hairkit.head import Head
from hairkit.style import Style

MAX_GUIDES = 2_000_000
MAX_SEGMENTS = 254
STEEPEST_INWARD = 0.05
"""Least part of a unit direction along the scalp's normal: no hair grows into the head."""


def grow(
    style: Style,
    head: Head,
    *,
    guides: int = 160,
    seed: int = 0,
    roots: ArrayLike | None = None,
    directions: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
) -> Groom:
    """Grow guides on a head and comb them into their rest pose.

    Roots are spread evenly over the scalp; the same seed gives the same roots on every machine.

    Args:
        style: What the hair is like.
        head: What it grows on.
        guides: How many guides to grow, at least 1; not used when ``roots`` are given.
        seed: Chooses another even spread of roots, and where each curl begins, at least 0.
        roots: Own roots in the head's frame [m], shape (s, 3).
        directions: Own directions in which guides leave the scalp, any length, shape (s, 3). One
            that points into the head is lifted just out of it.
        lengths: Length of each guide as a fraction of ``style.length``, shape (s,).
    """
    seed = _whole("seed", seed, 0, 2**63 - 1)
    if roots is None:
        guides = _whole("guides", guides, 1, MAX_GUIDES)
        root, normal = choose_roots(head, guides, seed)
    else:
        root = _rows("roots", roots, None)
        away, normal = head.signed_distance(root, body=False)
        far = np.flatnonzero(np.abs(away) > head.radius)
        if len(far):
            raise GroomError(
                f"roots: row {far[0]} is {abs(away[far[0]]):.3g} m from the head's surface; "
                f"expected within {head.radius:.3g} m, in the head's frame and metres"
            )
    count = len(root)
    share = np.ones(count) if lengths is None else _lengths(lengths, count)
    flow = Flow.over(head, style)
    if directions is None:
        direction = leaving_directions(style, flow, root, normal)
    else:
        direction = _directions(directions, normal)
    # Shorter guides get fewer segments: their bending stiffness and their curls stay alike.
    segments = np.rint((style.segments + 1) * share) - 1
    counts = np.clip(segments, 2, MAX_SEGMENTS).astype(np.int32) + np.int32(2)
    points = rest_pose(style, flow, root, normal, direction, share, counts, seed)
    neighbours, spacing = _neighbours(root, 0.3 * head.radius)
    return Groom(
        style=style,
        head=head,
        roots=root,
        normals=normal,
        directions=direction,
        lengths=share,
        counts=counts,
        points=points,
        neighbours=neighbours,
        spacing=spacing,
        seed=seed,
    )


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


def _directions(values: ArrayLike, normal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return own directions as unit vectors that point out of the scalp."""
    rows = _rows("directions", values, len(normal))
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    bad = np.flatnonzero(length[:, 0] < 1e-12)
    if len(bad):
        raise GroomError(f"directions: row {bad[0]} has no length; expected a direction")
    rows = rows / length
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


def _neighbours(root: NDArray[np.float64], alone: float) -> tuple[NDArray[np.int32], float]:
    """Return the three nearest other guides of each, shape (s, 3), and the typical distance [m]."""
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
