"""Roots: an even, seeded spread of points over a scalp, the same on every machine.

Only operations that IEEE 754 rounds exactly (sums, products, square roots, comparisons) decide
where a root lies, each written out: sines and matrix products differ in the last bit from one
processor to the next, and one bit may choose another candidate.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from hairkit.errors import HeadError
from hairkit.head import Head

Points = NDArray[np.float64]

MOST_EXACT = 3000
"""Up to this many roots each is placed as far as possible from the others; beyond, a faster way."""

CANDIDATES = 24
"""Places to choose from for each root."""


def choose_roots(head: Head, count: int, seed: int, area: float = math.pi) -> tuple[Points, Points]:
    """Return roots spread evenly over a head's scalp, and the normals there, each (count, 3).

    Args:
        head: The head.
        count: How many roots, at least 1.
        seed: Which spread.
        area: Within this angle of straight up [rad].
    """
    random = np.random.Generator(np.random.PCG64(seed))
    # Many candidates make few roots even too.
    share = CANDIDATES if count <= MOST_EXACT else CANDIDATES // 3
    wanted = max(share * count, 2000)
    sample = _sample_ball if head.is_sphere else _sample_mesh
    place, normal = sample(head, wanted, random, math.cos(area) if area < math.pi else -2.0)
    spread = farthest_points if count <= MOST_EXACT else spaced_points
    chosen = np.sort(spread(place, count, random))
    return place[chosen], normal[chosen]


def _sample_ball(
    head: Head, wanted: int, random: np.random.Generator, lowest: float
) -> tuple[Points, Points]:
    """Return random places on the scalp of a ball, and the normals there."""
    found: list[Points] = []
    have = 0
    for _ in range(1000):
        cube = random.uniform(-1.0, 1.0, (2 * wanted, 3))
        square = _square(cube)
        cube = cube[(square <= 1.0) & (square > 1e-4)]
        unit = cube / np.sqrt(_square(cube))[:, None]
        unit = unit[(head.scalp_limit(unit) >= 0.0) & (unit[:, 1] >= lowest)]
        found.append(unit)
        have += len(unit)
        if have >= wanted:
            break
    if have < wanted:
        raise HeadError(
            f"{head.name}: the scalp is too small to grow hair on; expected a larger one"
        )
    unit = np.concatenate(found)[:wanted]
    return head.center + head.radius * unit, unit


def _sample_mesh(
    head: Head, wanted: int, random: np.random.Generator, lowest: float
) -> tuple[Points, Points]:
    """Return random places on the scalp of a mesh, and the normals there."""
    faces = head.faces[head.scalp_faces]
    a, b, c = (head.vertices[faces[:, corner]] for corner in range(3))
    u, v = b - a, c - a
    cross = np.stack(
        [
            u[:, 1] * v[:, 2] - u[:, 2] * v[:, 1],
            u[:, 2] * v[:, 0] - u[:, 0] * v[:, 2],
            u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0],
        ],
        axis=1,
    )
    total = np.cumsum(np.sqrt(_square(cross)))
    places: list[Points] = []
    normals: list[Points] = []
    have = 0
    for _ in range(50):
        row = np.searchsorted(total, random.random(2 * wanted) * total[-1], side="right")
        row = np.minimum(row, len(faces) - 1)
        s, t = np.sqrt(random.random(2 * wanted))[:, None], random.random(2 * wanted)[:, None]
        weight = (1.0 - s, s * (1.0 - t), s * t)
        corner = head.vertex_normals[faces[row]]
        place = weight[0] * a[row] + weight[1] * b[row] + weight[2] * c[row]
        normal = weight[0] * corner[:, 0] + weight[1] * corner[:, 1] + weight[2] * corner[:, 2]
        length = np.sqrt(_square(normal))
        keep = length > 1e-6
        up = place - head.center
        keep &= up[:, 1] >= lowest * np.sqrt(_square(up))
        if not head.own_scalp:
            keep &= head.scalp_limit(place - head.center) >= 0.0
        places.append(place[keep])
        normals.append(normal[keep] / length[keep][:, None])
        have += int(np.count_nonzero(keep))
        if have >= wanted:
            break
    if have < wanted:
        raise HeadError(
            f"{head.name}: the scalp is too small to grow hair on; expected a larger one"
        )
    return np.concatenate(places)[:wanted], np.concatenate(normals)[:wanted]


def _square(vectors: Points) -> Points:
    """Return squared lengths, the sum in a fixed order, shape (n,)."""
    x, y, z = vectors[:, 0], vectors[:, 1], vectors[:, 2]
    return x * x + y * y + z * z


def farthest_points(place: Points, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Return rows of places, each chosen farthest from those before it, shape (count,).

    Args:
        place: Candidates [m], shape (n, 3), n at least ``count``.
        count: How many to choose.
        random: Where the first choice comes from.
    """
    chosen = np.zeros(count, np.int64)
    chosen[0] = random.integers(len(place))
    gap = _square(place - place[chosen[0]])
    for index in range(1, count):
        chosen[index] = np.argmax(gap)
        gap = np.minimum(gap, _square(place - place[chosen[index]]))
    return chosen


def spaced_points(place: Points, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Return rows of places with a least distance between any two, shape (count,).

    Poisson-disk sampling in rounds: whoever comes first in a random order among its near
    neighbours stays and clears them away. The distance is searched so that just enough stay.

    Args:
        place: Candidates [m], shape (n, 3), n at least ``count``.
        count: How many to choose.
        random: Where the order comes from.
    """
    order = random.permutation(len(place))
    tree = KDTree(place)
    # A root's share of the scalp is a disk that holds its share of the candidates.
    share = max(len(place) // count, 1)
    reach = tree.query(place[:: max(len(place) // 500, 1)], k=share + 1)[0][:, -1]
    gap = 1.2 * float(np.median(reach))
    best = np.argsort(order)
    for _ in range(12):
        stays = _disk_rounds(tree.query_pairs(gap, output_type="ndarray"), order, len(place))
        if count <= len(stays) < len(best):
            best = stays
        if count <= len(best) <= 1.01 * count:
            break
        gap *= math.sqrt(len(stays) / (1.004 * count))
    return best[np.argsort(order[best])][:count]


def _disk_rounds(
    pairs: NDArray[np.int64], order: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """Return the rows that stay when each clears away its neighbours, first come first served."""
    waiting = np.ones(count, bool)
    stays = np.zeros(count, bool)
    while waiting.any():
        first = order.copy()
        near = pairs[waiting[pairs[:, 0]] & waiting[pairs[:, 1]]]
        np.minimum.at(first, near[:, 0], order[near[:, 1]])
        np.minimum.at(first, near[:, 1], order[near[:, 0]])
        wins = waiting & (first == order)
        stays |= wins
        waiting &= ~wins
        waiting[near[wins[near[:, 0]], 1]] = False
        waiting[near[wins[near[:, 1]], 0]] = False
        pairs = near
    return np.flatnonzero(stays)
