"""What is fixed about each drawn hair: its root on the scalp, its lock, its own small differences.

Roots do not move in the head's frame, so all of this is NumPy, once for each groom; the kernels
only add what moves. NumPy's PCG64 gives the same hairs on every machine.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

TRAIT_COUNT = 16
"""Numbers that a drawn hair has of its own."""

OFFSET_X, OFFSET_Y, LOCK_X, LOCK_Y, LEAN, CUT, LOCK_PHASE, HAIR_PHASE = range(8)
WILD, TINT, WARMTH, DROP_X, DROP_Y, DROP_Z, TILT, GATHER = range(8, 16)

_LOCK_SHARE = 0.42
"""Size of a lock as a share of its guide's disc: five to six locks a guide."""


@dataclass(frozen=True, kw_only=True)
class Scatter:
    """Drawn hairs of one groom, guide by guide: hairs that lie together are stored together."""

    strand: NDArray[np.int32]
    """Own guide and the guide each leans to, shape (hairs, 2)."""

    trait: NDArray[np.float32]
    """Numbers of each hair in the order of this module's constants, shape (hairs, 16)."""

    root: NDArray[np.float64]
    """Root of each hair in the head's frame [m], shape (hairs, 3)."""

    side: NDArray[np.float32]
    """Unit vector in the scalp across each root, in the head's frame, shape (strands, 3)."""

    rise: NDArray[np.float32]
    """The other direction in the scalp at each root, in the head's frame, shape (strands, 3)."""

    segment: NDArray[np.float32]
    """Length of a guide's segment at rest [m], shape (strands,)."""

    flat: NDArray[np.float32]
    """How thick a guide's hairs lie over the scalp as a share of their width, shape (strands,)."""


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
    shove = rng.random((strands, 2))[own]
    place = np.floor(offset / cell + shove).astype(np.int64)
    key = np.stack([own, place[:, 0], place[:, 1]], axis=1)
    _, lock = np.unique(key, axis=0, return_inverse=True)
    lock = lock.reshape(-1)
    locks = int(lock.max()) + 1
    middle = np.zeros((locks, 2))
    np.add.at(middle, lock, offset)
    middle /= np.bincount(lock, minlength=locks)[:, None]
    middle += (rng.random((locks, 2)) - 0.5) * cell * 0.35

    # A lock leans as one, each of its hairs a little differently, so that it keeps together.
    lean = 0.5 * (0.75 * rng.random(locks)[lock] + 0.25 * rng.random(count))
    pick = (rng.random(locks)[lock] * groom.neighbours.shape[1]).astype(np.int64)
    near = np.asarray(groom.neighbours)[own, pick]

    across, rise = root_frames(groom.directions, groom.normals)
    roots = _rest_roots(groom.roots, own, near, lean, offset, across, rise)
    outside = ~_on_scalp(head, roots)
    offset[outside] *= 0.25
    lean[outside] *= 0.25
    roots = _rest_roots(groom.roots, own, near, lean, offset, across, rise)
    distance, normal = head.head_shape.signed_distance(roots)
    drop = -distance[:, None] * normal

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
    tint = 0.55 * rng.standard_normal(locks)[lock] + 0.85 * rng.standard_normal(count)
    trait[:, TINT] = np.exp(0.20 * np.clip(tint, -2.5, 2.5))
    trait[:, WARMTH] = np.clip(rng.standard_normal(locks)[lock], -2.0, 2.0)
    trait[:, DROP_X : DROP_Z + 1] = drop
    trait[:, TILT] = np.clip(rng.standard_normal(count), -2.0, 2.0)
    trait[:, GATHER] = np.clip(0.10 + 0.60 * style.clump + 0.40 * rng.random(locks)[lock], 0, 0.95)

    upright = np.abs(np.sum(groom.directions * groom.normals, axis=1))
    starts = np.concatenate([[0], np.cumsum(groom.counts)[:-1]])
    segment = np.linalg.norm(groom.points[starts + 1] - groom.points[starts], axis=1)
    return Scatter(
        strand=np.stack([own, near], axis=1).astype(np.int32),
        trait=trait.astype(np.float32),
        root=roots + drop,
        side=across.astype(np.float32),
        rise=rise.astype(np.float32),
        segment=segment.astype(np.float32),
        flat=(0.30 + 0.70 * upright**2).astype(np.float32),
    )


def _rest_roots(
    roots: NDArray[np.float64],
    own: NDArray[np.int64],
    near: NDArray[np.int64],
    lean: NDArray[np.float64],
    offset: NDArray[np.float64],
    across: NDArray[np.float64],
    rise: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return where hairs start in the head's frame before they are let down on the scalp."""
    middle = roots[own] * (1.0 - lean[:, None]) + roots[near] * lean[:, None]
    return middle + across[own] * offset[:, :1] + rise[own] * offset[:, 1:]


def _on_scalp(head: Any, points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which points are over the scalp's faces, by its faces where they were given."""
    if not head.own_scalp:
        return head.scalp_limit(points - head.center) >= 0.0
    middles = np.asarray(head.vertices)[np.asarray(head.faces)].mean(axis=1)
    nearest = np.asarray(KDTree(middles).query(points)[1])
    return np.asarray(head.scalp_faces, dtype=bool)[nearest]
