"""How a style grows on a head: lengths of its cut, the ways its hair leaves, rows of braids."""

import math

import numpy as np

from hairkit.groom.rest import Points, smooth_step, unit_rows
from hairkit.groom.ties import on_scalp
from hairkit.head import Head
from hairkit.style import Style, Tie

FEWEST_ROWS, MOST_ROWS = 6, 14

SHORTEST = 0.08
"""Least length that a level cut leaves, as a share of the style's."""

_EDGE = 0.05
"""How far inside the hairline rows begin and end [rad]."""

_TEMPLE, _EAR, _NAPE = math.radians(66.0), math.radians(92.0), math.radians(112.0)
"""Azimuths from the front between which rows begin, pass over the ear, and from which they end."""


def cut_lengths(style: Style, head: Head, roots: Points) -> Points:
    """Return lengths of a style's cut as fractions of its length, shape (s,).

    Args:
        style: ``side_length`` makes hair shorter down the sides, ``flat_top`` cuts it level.
        head: What it grows on.
        roots: Where it grows [m], shape (s, 3).
    """
    up = unit_rows(roots - head.center)[:, 1]
    share = style.side_length + (1.0 - style.side_length) * smooth_step((up + 0.3) / 1.2)
    if style.flat_top > 0.0:
        level = roots[:, 1].max() + style.flat_top * style.length
        share = np.minimum(share, (level - roots[:, 1]) / style.length)
    return np.clip(share, SHORTEST, 1.0)


def turned_directions(style: Style, directions: Points, normals: Points) -> Points:
    """Return directions of hair that is brushed up and back, still out of the scalp, (s, 3).

    Args:
        style: ``upward`` and ``backward`` go from its own way (0) to straight up and back (1).
        directions: Unit directions in which it leaves otherwise, shape (s, 3).
        normals: Unit normals of the scalp, shape (s, 3).
    """
    if style.upward == 0.0 and style.backward == 0.0:
        return directions
    way = directions * (1.0 - style.upward) + style.upward * np.array([0.0, 1.0, 0.0])
    way = way * (1.0 - style.backward) + style.backward * np.array([0.0, 0.0, -1.0])
    way = unit_rows(way)
    # Where up leads along the scalp or into it, hair leans out as far as it must.
    out = np.sum(way * normals, axis=1, keepdims=True)
    return unit_rows(way + normals * np.maximum(0.35 - out, 0.0))


def rows_on(style: Style, head: Head, guides: int) -> tuple[Points, Points, tuple[Tie, ...]]:
    """Return roots, normals and ties of rows of braids from the hairline over the top to the nape.

    Each row is a guide: a root at the hairline, a tie at the nape that it hangs from, and a place
    above the ear or on the crown that it passes over. The three are spread evenly along the
    hairline, from ear to ear, and along the nape.

    Args:
        style: ``row_guides`` guides make one row.
        head: What they grow on.
        guides: How many guides are asked for.
    """
    count = min(max(round(guides / style.row_guides), FEWEST_ROWS), MOST_ROWS)
    front = np.linspace(-_TEMPLE, _TEMPLE, 81)
    hairline = _edge(head, front, _EDGE)
    nape = _edge(head, math.pi + np.linspace(math.pi - _NAPE, _NAPE - math.pi, 81), _EDGE)
    side = _edge(head, np.array([-_EAR, _EAR]), 6.0 * _EDGE)
    # From ear to ear over a place a little behind the top.
    top = unit_rows(np.array([[0.0, 1.0, -0.12]]))[0]
    turn = np.linspace(-1.0, 1.0, 81)[:, None]
    low = np.where(turn < 0.0, side[:1], side[1:])
    angle = np.arccos(np.clip(low @ top, -1.0, 1.0))[:, None]
    over = (top * np.sin((1.0 - abs(turn)) * angle) + low * np.sin(abs(turn) * angle)) / np.sin(
        angle
    )
    begin, middle, end = (_even(head, line, count) for line in (hairline, over, nape))
    roots = on_scalp(head, begin, 0.0)
    _, normals = head.signed_distance(roots, body=False)
    ties = tuple(
        Tie(at=_triple(at), via=_triple(via), kind="hang", reach=10.0)
        for at, via in zip(end, middle, strict=True)
    )
    return roots, normals, ties


def _edge(head: Head, azimuth: Points, margin: float) -> Points:
    """Return unit directions so far inside the scalp's edge at azimuths from the front, (n, 3)."""
    high, low = np.full(len(azimuth), 1.45), np.full(len(azimuth), -1.4)
    for _ in range(40):
        middle = 0.5 * (high + low)
        inside = head.scalp_limit(_direction(azimuth, middle)) >= margin
        high, low = np.where(inside, middle, high), np.where(inside, low, middle)
    return _direction(azimuth, high)


def _direction(azimuth: Points, elevation: Points) -> Points:
    flat = np.cos(elevation)
    return np.stack([flat * np.sin(azimuth), np.sin(elevation), flat * np.cos(azimuth)], axis=1)


def _even(head: Head, line: Points, count: int) -> Points:
    """Return directions evenly spaced on the scalp along a line of directions, shape (count, 3)."""
    places = on_scalp(head, unit_rows(line), 0.0)
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(places, axis=0), axis=1))])
    wanted = (np.arange(count) + 0.5) / count * along[-1]
    chosen = [np.interp(wanted, along, places[:, axis]) for axis in range(3)]
    return unit_rows(np.stack(chosen, axis=1) - head.center)


def _triple(row: Points) -> tuple[float, float, float]:
    x, y, z = (round(float(part), 6) for part in row)
    return x, y, z
