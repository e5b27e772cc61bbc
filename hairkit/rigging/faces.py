"""Which face of a mesh is in front at each pixel: a picture's depths, without a GPU."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Rows = NDArray[np.int64]

PIECE = 1 << 20
"""Pixels tested at a time, which bounds memory."""


class Front(NamedTuple):
    """What is in front: -inf, -1 and 0 where there is no face."""

    near: Points
    """How near the eye, shape (height * width,)."""

    face: Rows
    """Which face, shape (height * width,)."""


def front_faces(corners: Points, width: int, height: int) -> Front:
    """Find the nearest face at each pixel's middle.

    Args:
        corners: Places of the faces' corners, right, down and towards the eye, shape (f, 3, 3).
            Pixel 0 reaches from 0 to 1.
        width: Of the picture [px].
        height: Of the picture [px].
    """
    near = np.full(width * height, -np.inf)
    face = np.full(width * height, -1, dtype=np.int64)
    across, down = _slopes(corners)
    for some in _pieces(corners, width, height):
        of, row, first, count = _spans(corners[some], width, height)
        own = some[of]
        middle = row + 0.5 - corners[own, 0, 1]
        # How near it would be at the pixel 0 of the row.
        base = corners[own, 0, 2] + down[own] * middle - across[own] * (corners[own, 0, 0] - 0.5)
        column = _counted(first, count)
        depth = np.repeat(base, count) + np.repeat(across[own], count) * column
        pixel = np.repeat(row * width, count) + column
        np.maximum.at(near, pixel, depth)
        won = depth >= near[pixel]
        face[pixel[won]] = np.repeat(own, count)[won]
    return Front(near, face)


def shares_of_corners(corners: Points, face: Rows, pixel: Rows, width: int) -> Points:
    """Return how much each corner of a face counts at a pixel, shape (p, 3), rows sum to 1.

    Args:
        corners: As for `front_faces`.
        face: Which face, shape (p,).
        pixel: At which pixel, shape (p,).
        width: Of the picture [px].
    """
    row, column = np.divmod(pixel, width)
    a, b, c = (corners[:, corner, :2] for corner in range(3))
    area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (c[:, 0] - a[:, 0]) * (b[:, 1] - a[:, 1])
    area = np.where(np.abs(area) < 1e-6, np.inf, area)
    # Of two corners; each falls evenly from its own to the side across.
    share = np.zeros((len(pixel), 3))
    for corner, start, end in ((0, b, c), (1, c, a)):
        down, across = (end[:, 0] - start[:, 0]) / area, (start[:, 1] - end[:, 1]) / area
        base = -across * (start[:, 0] - 0.5) - down * (start[:, 1] - 0.5)
        share[:, corner] = base[face] + across[face] * column + down[face] * row
    share = np.clip(share, 0.0, 1.0, out=share)
    share[:, 2] = np.maximum(1.0 - share[:, 0] - share[:, 1], 0.0)
    return share


def _slopes(corners: Points) -> tuple[Points, Points]:
    """Return how much nearer each face comes a pixel to the right, and a pixel down."""
    b, c = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    area = b[:, 0] * c[:, 1] - c[:, 0] * b[:, 1]
    # Slivers, which hardly meet a pixel's middle, count as flat: rounding would throw them far.
    area = np.where(np.abs(area) < 1e-6, np.inf, area)
    across = (b[:, 2] * c[:, 1] - c[:, 2] * b[:, 1]) / area
    return across, (b[:, 0] * c[:, 2] - c[:, 0] * b[:, 2]) / area


def _pieces(corners: Points, width: int, height: int) -> Iterator[Rows]:
    """Yield rows of faces, a piece's worth of pixels at a time."""
    limit = np.array([width, height])
    low = np.clip(corners[:, :, :2].min(axis=1), 0, limit)
    high = np.clip(corners[:, :, :2].max(axis=1), 0, limit)
    upto = np.cumsum(np.prod(high - low + 1.0, axis=1))
    number = (upto // PIECE).astype(np.int64)
    yield from np.split(np.arange(len(corners)), np.flatnonzero(np.diff(number)) + 1)


def _spans(corners: Points, width: int, height: int) -> tuple[Rows, Rows, Rows, Rows]:
    """Return the faces' rows of pixels: of which face, which row, first pixel, how many."""
    order = np.argsort(corners[:, :, 1], axis=1, kind="stable")
    a, b, c = np.moveaxis(np.take_along_axis(corners, order[:, :, None], axis=1), 1, 0)
    top = np.clip(np.ceil(a[:, 1] - 0.5), 0, height).astype(np.int64)
    bottom = np.clip(np.ceil(c[:, 1] - 0.5), 0, height).astype(np.int64)
    rows = np.maximum(bottom - top, 0)
    of = np.repeat(np.arange(len(corners)), rows)
    row = _counted(top, rows)
    y = np.asarray(row + 0.5, dtype=np.float64)
    a, b, c = a[of], b[of], c[of]
    upper = (y < b[:, 1])[:, None]
    long = _crossing(a, c, y)
    short = _crossing(np.where(upper, a, b), np.where(upper, b, c), y)
    first = np.ceil(np.minimum(long, short) - 0.5)
    last = np.ceil(np.maximum(long, short) - 0.5)
    first, last = (np.clip(end, 0, width).astype(np.int64) for end in (first, last))
    return of, row, first, last - first


def _crossing(start: Points, end: Points, y: Points) -> Points:
    """Return where lines cross rows, between their ends."""
    rise = end[:, 1] - start[:, 1]
    share = np.clip((y - start[:, 1]) / np.where(rise > 0.0, rise, np.inf), 0.0, 1.0)
    return start[:, 0] + share * (end[:, 0] - start[:, 0])


def _counted(first: Rows, count: Rows) -> Rows:
    """Return ``first[i], first[i] + 1, ...``, as many as each count says, one after the other."""
    offset = first - (np.cumsum(count) - count)
    return np.arange(count.sum()) + np.repeat(offset, count)
