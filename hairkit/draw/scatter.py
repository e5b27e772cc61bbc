"""What is fixed about each drawn hair: its root on the scalp, its lock, its own small differences.

Roots do not move in the head's frame, so all of this is NumPy, once for each groom; the kernels
only add what moves. NumPy's PCG64 gives the same hairs on every machine.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from hairkit.groom.ties import NECK, ROPE, tie_distances, tie_places

TRAIT_COUNT = 20
"""Numbers that a drawn hair has of its own."""

OFFSET_X, OFFSET_Y, LOCK_X, LOCK_Y, LEAN, CUT, LOCK_PHASE, HAIR_PHASE = range(8)
WILD, TINT, WARMTH, DROP_X, DROP_Y, DROP_Z, TILT, GATHER = range(8, 16)
START, ROPE_X, ROPE_Y, ROPE_PHASE = range(16, 20)

FRAME_COUNT = 12
"""Numbers of each strand: across (3), rise (3), segment, flat, then those below."""

TIE_AT, TIE_SQUEEZE, TIE_SPREAD, PLAIT_PHASE = range(8, 12)

PART = 0.003
"""Width of the bare line between two parts of plaited hair [m]."""

FED = 0.75
"""Share of a cornrow's hairs that come into it along its way, the others at the hairline."""

_LOCK_SHARE = 0.42
"""Size of a lock as a share of its guide's disc: five to six locks a guide."""


@dataclass(frozen=True, kw_only=True)
class Scatter:
    """Drawn hairs of one groom, guide by guide: hairs that lie together are stored together."""

    strand: NDArray[np.int32]
    """Own guide and the guide each leans to, shape (hairs, 2)."""

    trait: NDArray[np.float32]
    """Numbers of each hair in the order of this module's constants, shape (hairs, 20)."""

    root: NDArray[np.float64]
    """Root of each hair in the head's frame [m], shape (hairs, 3)."""

    frame: NDArray[np.float32]
    """Numbers of each strand, shape (strands, 12): unit vectors in the scalp at the root in the
    head's frame, across the hair (3) and the other one (3); rest length of a segment [m]; how thick
    its hairs lie over the scalp as a share of their width; share of its length where its tie is, 0
    for none; what its hairs' offsets are multiplied by in the tie and beyond; where its plait's
    pattern begins [rad]."""

    @property
    def side(self) -> NDArray[np.float32]:
        """Unit vector in the scalp across each root, in the head's frame, shape (strands, 3)."""
        return self.frame[:, 0:3]

    @property
    def rise(self) -> NDArray[np.float32]:
        """The other direction in the scalp at each root, shape (strands, 3)."""
        return self.frame[:, 3:6]


def root_frames(
    directions: NDArray[np.float64], normals: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two unit vectors in the scalp at each root, the first one across the hair.

    Args:
        directions: Unit direction in which each strand leaves, shape (strands, 3).
        normals: Unit normal of the scalp at each root, shape (strands, 3).

    Returns:
        Across the hair and, seen along the hair, the other way in the scalp, both (strands, 3).
    """
    across = np.asarray(np.cross(normals, directions), dtype=np.float64)
    size = np.linalg.norm(across, axis=1, keepdims=True)
    # Hair straight out of the scalp has no "across": any fixed direction does.
    axis = np.eye(3)[np.argmin(np.abs(normals), axis=1)]
    spare = np.asarray(np.cross(normals, axis), dtype=np.float64)
    across = np.where(size > 0.05, across, spare)
    across = across / np.linalg.norm(across, axis=1, keepdims=True)
    return across, np.asarray(np.cross(normals, across), dtype=np.float64)


def strand_frames(groom: Any) -> NDArray[np.float32]:
    """Return the numbers of each strand of loose hair, shape (strands, FRAME_COUNT)."""
    across, rise = root_frames(groom.directions, groom.normals)
    upright = np.abs(np.sum(groom.directions * groom.normals, axis=1))
    frame = np.zeros((len(groom.roots), FRAME_COUNT), np.float32)
    frame[:, 0:3], frame[:, 3:6] = across, rise
    frame[:, 6] = groom.segments
    frame[:, 7] = 0.30 + 0.70 * upright**2
    frame[:, TIE_SQUEEZE : TIE_SPREAD + 1] = 1.0
    return frame


def scatter(groom: Any, *, hairs_per_guide: int) -> Scatter:
    """Place drawn hairs round the guides of a groom.

    Args:
        groom: The `Groom` that is drawn.
        hairs_per_guide: Drawn hairs for each guide, at least one.
    """
    style, head = groom.style, groom.head
    strands = len(groom.roots)
    count = strands * hairs_per_guide
    rng = np.random.Generator(np.random.PCG64([int(groom.seed) & 0x7FFFFFFF, 0x48414952]))
    own = np.repeat(np.arange(strands), hairs_per_guide)
    reach = style.spread * groom.spacing

    # Uniform in a disc; the first hair of a guide is the guide itself only if there is no other.
    radius = np.sqrt(rng.random(count)) * (reach if hairs_per_guide > 1 else 0.0)
    angle = 2.0 * np.pi * rng.random(count)
    offset = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)

    cell = max(_LOCK_SHARE * reach, 1e-9) * 2.0
    if style.coil > 0.0:
        # Hairs that coil together make one ringlet, as wide as its coil.
        cell = max(cell, 2.5 * style.coil_radius * style.definition)
    shove = rng.random((strands, 2))[own]
    place = np.floor(offset / cell + shove).astype(np.int64)
    key = np.stack([own, place[:, 0], place[:, 1]], axis=1)
    _, lock = np.unique(key, axis=0, return_inverse=True)
    lock = own.copy() if style.plait else lock.reshape(-1)
    locks = int(lock.max()) + 1
    middle = np.zeros((locks, 2))
    np.add.at(middle, lock, offset)
    middle /= np.bincount(lock, minlength=locks)[:, None]
    middle += (rng.random((locks, 2)) - 0.5) * cell * 0.35

    # A lock leans as one, each of its hairs a little differently, so that it keeps together.
    lean = 0.5 * (0.75 * rng.random(locks)[lock] + 0.25 * rng.random(count))
    pick = (rng.random(locks)[lock] * groom.neighbours.shape[1]).astype(np.int64)
    near = np.asarray(groom.neighbours)[own, pick]

    plaited, gathered = style.plait > 0, groom.tied_to >= 0
    # A plait is one thing; and gathered guides run side by side but are not equally far along.
    lean = np.where(plaited | gathered[own], 0.0, lean)
    across, rise = root_frames(groom.directions, groom.normals)
    place = _Roots(groom, own, near, lean, across, rise)
    start = np.zeros(count)
    if plaited:
        start = _feed(groom, own, place, offset, rng)
    roots = place.at(offset)
    outside = ~_on_scalp(head, roots)
    offset[outside] *= 0.25
    lean[outside] *= 0.25
    roots = place.at(offset)
    if plaited or gathered.any():
        for tries in range(16):
            over = np.flatnonzero(_crosses(groom, own, roots) & (start == 0.0))
            if tries < 6:
                offset[over] *= 0.7
            elif gathered.any():
                # A guide may grow where the parting is: its hairs make way towards their tie.
                offset[over] += place.towards_tie(over) * 0.5e-3
            roots = place.at(offset)
    drop = np.zeros_like(roots)
    for _ in range(2):
        # Twice: where the skin turns the first way down does not quite lead to it.
        distance, normal = head.head_shape.signed_distance(roots + drop)
        drop -= distance[:, None] * normal

    cut = 1.0 - 0.07 * rng.random(locks)[lock] - 0.24 * rng.random(count) ** 2
    wild = np.where(rng.random(count) < 0.012 + 0.08 * style.frizz, rng.random(count), 0.0)
    trait = np.zeros((count, TRAIT_COUNT))
    trait[:, OFFSET_X : OFFSET_Y + 1] = offset
    trait[:, LOCK_X : LOCK_Y + 1] = middle[lock]
    trait[:, LEAN] = lean
    trait[:, CUT] = cut
    trait[:, LOCK_PHASE] = 2.0 * np.pi * rng.random(locks)[lock]
    trait[:, HAIR_PHASE] = 2.0 * np.pi * rng.random(count)
    trait[:, WILD] = wild
    # Locks differ; plaits, which lie close together, more than the hairs of one.
    each = (1.1, 0.5) if plaited else (0.55, 0.85)
    tint = each[0] * rng.standard_normal(locks)[lock] + each[1] * rng.standard_normal(count)
    trait[:, TINT] = np.exp(0.20 * np.clip(tint, -2.5, 2.5))
    trait[:, WARMTH] = np.clip(rng.standard_normal(locks)[lock], -2.0, 2.0)
    trait[:, DROP_X : DROP_Z + 1] = drop
    trait[:, TILT] = np.clip(rng.standard_normal(count), -2.0, 2.0)
    trait[:, GATHER] = np.clip(0.10 + 0.60 * style.clump + 0.40 * rng.random(locks)[lock], 0, 0.95)
    if plaited:
        trait[:, START] = start
        trait[:, CUT] = 1.0 - 0.06 * rng.random(count)
        # Most of a rope's hairs lie near its surface, where they are seen.
        inside = np.sqrt(0.3 + 0.7 * rng.random(count))
        turn = 2.0 * np.pi * rng.random(count)
        trait[:, ROPE_X], trait[:, ROPE_Y] = inside * np.cos(turn), inside * np.sin(turn)
        rope = np.arange(count) % style.plait
        trait[:, ROPE_PHASE] = 2.0 * np.pi * rope / style.plait

    frame = strand_frames(groom)
    frame[:, PLAIT_PHASE] = 2.0 * np.pi * rng.random(strands)
    for index, tie in enumerate(style.ties):
        mine = np.flatnonzero(groom.tied_to == index)
        if len(mine) == 0 or plaited:
            continue
        frame[mine, TIE_AT] = (groom.laid[mine] - 1) / (groom.counts[mine] - 1)
        frame[mine, 7] = 0.3
        # As thin as its share of the bunch.
        bunch = 0.75 * ROPE * tie.size if tie.kind == "knot" else NECK * tie.size
        share = bunch / math.sqrt(len(mine)) / max(reach, 1e-9)
        frame[mine, TIE_SQUEEZE] = min(share, 1.0)
        if tie.kind == "knot":
            frame[mine, TIE_SPREAD] = min(share, 1.0)
    return Scatter(
        strand=np.stack([own, near], axis=1).astype(np.int32),
        trait=trait.astype(np.float32),
        root=roots + drop,
        frame=frame,
    )


class _Roots:
    """Where hairs start in the head's frame before they are let down on the scalp."""

    def __init__(
        self,
        groom: Any,
        own: NDArray[np.int64],
        near: NDArray[np.int64],
        lean: NDArray[np.float64],
        across: NDArray[np.float64],
        rise: NDArray[np.float64],
    ) -> None:
        """Start all at their guides' roots."""
        self._lean, self._groom, self._own, self._near = lean, groom, own, near
        self._across, self._rise = across[own], rise[own]
        self._fed = np.zeros(len(own), bool)
        self._middle = np.zeros((len(own), 3))

    def feed(
        self, hairs: NDArray[np.int64], middle: NDArray[np.float64], across: NDArray[np.float64]
    ) -> None:
        """Start some hairs on their guide's way over the scalp."""
        self._fed[hairs] = True
        self._middle[hairs], self._across[hairs] = middle, across

    def towards_tie(self, hairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return unit offsets from roots towards their ties, shape (n, 2)."""
        groom = self._groom
        tie = groom.tied_to[self._own[hairs]]
        places = tie_places(groom.head, groom.style.ties)
        way = np.where(tie[:, None] < 0, 0.0, places[tie] - groom.roots[self._own[hairs]])
        across, rise = self._across[hairs], self._rise[hairs]
        flat = np.stack([np.sum(way * across, axis=1), np.sum(way * rise, axis=1)], axis=1)
        return flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-9)

    def at(self, offset: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where hairs of such offsets start [m], shape (hairs, 3)."""
        roots, lean = self._groom.roots, self._lean[:, None]
        middle = roots[self._own] * (1.0 - lean) + roots[self._near] * lean
        middle = np.where(self._fed[:, None], self._middle, middle)
        return middle + self._across * offset[:, :1] + self._rise * offset[:, 1:]


def _feed(
    groom: Any,
    own: NDArray[np.int64],
    place: _Roots,
    offset: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Let hairs of cornrows begin along the laid way; return where, as shares of the length."""
    start = np.zeros(len(own))
    rows = np.flatnonzero(groom.laid > 3)
    if len(rows) == 0:
        return start
    lines = groom.strands()
    ways = [lines[row][: groom.laid[row]] for row in rows]
    for number, row in enumerate(rows):
        hairs = np.flatnonzero(own == row)
        offset[hairs] *= min(1.0, groom.style.plait_radius / (1e-9 + np.abs(offset[hairs]).max()))
        hairs = hairs[rng.random(len(hairs)) < FED]
        way = ways[number]
        along = rng.random(len(hairs)) * (len(way) - 1.5)
        middle, ahead = _curve(lines[row], along)
        _, normal = groom.head.head_shape.signed_distance(middle)
        across = np.cross(normal, ahead)
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        others = [other for at, other in enumerate(ways) if at != number]
        gap = groom.spacing * np.ones(len(hairs))
        if others:
            gap = np.asarray(KDTree(np.concatenate(others)).query(middle)[0])
        wide = np.clip(0.5 * (gap - PART), groom.style.plait_radius, 0.02)
        offset[hairs, 0] = (2.0 * rng.random(len(hairs)) - 1.0) * wide
        offset[hairs, 1] = 0.0
        place.feed(hairs, middle, across)
        start[hairs] = along / (len(lines[row]) - 1)
    return start


def _curve(
    points: NDArray[np.float64], along: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return places and directions on the Catmull-Rom curve that is drawn, each of shape (n, 3).

    Args:
        points: A guide, shape (count, 3).
        along: How many segments from the root, shape (n,).
    """
    long = np.concatenate([2 * points[:1] - points[1:2], points, 2 * points[-1:] - points[-2:-1]])
    index = np.minimum(along.astype(np.int64), len(points) - 2)
    f = (along - index)[:, None]
    p0, p1, p2, p3 = (long[index + step] for step in range(4))
    m1, m2 = 0.5 * (p2 - p0), 0.5 * (p3 - p1)
    bulge, sweep = 2.0 * (p1 - p2) + m1 + m2, 3.0 * (p2 - p1) - 2.0 * m1 - m2
    return p1 + f * (m1 + f * (sweep + f * bulge)), m1 + f * (2.0 * sweep + f * 3.0 * bulge)


def _crosses(groom: Any, own: NDArray[np.int64], roots: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which hairs start over the line between their part of the scalp and the next."""
    ties = groom.style.ties
    if groom.style.plait and not (groom.tied_to >= 0).any():
        if len(groom.roots) < 2:
            return np.zeros(len(own), bool)
        gap, nearest = KDTree(groom.roots).query(roots, k=2)
        return (np.asarray(nearest)[:, 0] != own) | (np.diff(gap, axis=1)[:, 0] < PART)
    if len(ties) < 2 or groom.style.plait:
        return np.zeros(len(own), bool)
    gaps = tie_distances(groom.head, ties, roots)
    mine = groom.tied_to[own]
    to_mine = np.where(mine >= 0, gaps[np.arange(len(own)), np.maximum(mine, 0)], -np.inf)
    gaps[np.arange(len(own)), np.maximum(mine, 0)] = np.inf
    return (mine >= 0) & (gaps.min(axis=1) - to_mine < PART)


def _on_scalp(head: Any, points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which points are over the scalp's faces, by its faces where they were given."""
    if not head.own_scalp:
        return head.scalp_limit(points - head.center) >= 0.0
    middles = np.asarray(head.vertices)[np.asarray(head.faces)].mean(axis=1)
    nearest = np.asarray(KDTree(middles).query(points)[1])
    return np.asarray(head.scalp_faces, dtype=bool)[nearest]
