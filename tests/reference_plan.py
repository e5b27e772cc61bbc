"""A slow planner of sectors and bands, one vertex at a time, to compare `hairkit.rigging` with.

It follows the words that describe the plan: no arrays over vertices, no table of cells.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Vector = tuple[float, float, float]

NOTHING = 1e-9
"""Share of a band or sector within which a vertex counts as on its edge or middle."""


class SlowPlan(NamedTuple):
    """What a plan holds, in lists."""

    names: list[str]
    positions: list[Vector]
    parents: list[int]
    weights: list[dict[int, float]]


class Place(NamedTuple):
    """Where a vertex is: its cell, counted from 0, and how far through the cell, 0 to 1."""

    band: int
    through_band: float
    sector: int
    through_sector: float


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def mix(a: Sequence[float], b: Sequence[float], share: float = 1.0) -> Vector:
    """Return ``a + share * b``."""
    return (a[0] + share * b[0], a[1] + share * b[1], a[2] + share * b[2])


def unit(a: Sequence[float]) -> Vector:
    """Return the direction of a vector."""
    size = math.sqrt(dot(a, a))
    return (a[0] / size, a[1] / size, a[2] / size)


def across(axis: Vector, reference: Sequence[float] | None) -> Vector:
    """Return where sector 1 begins: the reference, at right angles to the axis."""
    if reference is None:
        reference = (0.0, 0.0, 1.0)
        if abs(dot(axis, reference)) > 1.0 - 5e-13:
            reference = (0.0, 1.0, 0.0)
    towards = unit(reference)
    return unit(mix(towards, axis, -dot(towards, axis)))


def angle_round(away: Vector, axis: Vector, start: Vector) -> float:
    """Return how far a point is turned from the start, by the left hand round the axis, 0..2 pi."""
    # The right hand's quarter turn is axis x start; the left hand's is the other way.
    quarter = (
        start[1] * axis[2] - start[2] * axis[1],
        start[2] * axis[0] - start[0] * axis[2],
        start[0] * axis[1] - start[1] * axis[0],
    )
    angle = math.atan2(dot(away, quarter), dot(away, start))
    return angle if angle >= 0.0 else angle + 2.0 * math.pi


def cell(measure: float) -> tuple[int, float]:
    """Return the whole part and the rest of a number; just below a whole one is that one."""
    whole = math.floor(measure + NOTHING)
    return whole, min(max(measure - whole, 0.0), 1.0)


def lean(through: float) -> tuple[float, int]:
    """Return how much of a vertex its neighbour moves, and which way that neighbour is."""
    share = abs(through - 0.5) * 0.8
    return share if share > NOTHING else 0.0, -1 if through < 0.5 else 1


def places(
    vertices: Sequence[Sequence[float]],
    root: Sequence[float],
    axis: Sequence[float],
    sectors: int,
    segments: int,
    reference: Sequence[float] | None,
) -> list[Place | None]:
    """Return each vertex's place, None at the root's plane or above it."""
    along = unit(axis)
    start = across(along, reference)
    away = [mix(vertex, root, -1.0) for vertex in vertices]
    size = max(abs(value) for point in away for value in point)
    deepest = max(dot(point, along) for point in away)
    found: list[Place | None] = []
    for point in away:
        depth = dot(point, along)
        if depth <= 1e-9 * size:
            found.append(None)
            continue
        band, through_band = cell(depth / deepest * segments)
        if band >= segments:  # The deepest vertex is on the last band's far edge.
            band, through_band = segments - 1, 1.0
        turned = angle_round(point, along, start) / (2.0 * math.pi) * sectors
        sector, through_sector = cell(turned)
        found.append(Place(band, through_band, sector % sectors, through_sector))
    return found


def slow_plan(
    vertices: Sequence[Sequence[float]],
    root: Sequence[float],
    axis: Sequence[float],
    sectors: int,
    segments: int,
    max_influences: int,
    reference: Sequence[float] | None,
) -> SlowPlan:
    """Plan a skeleton of good input, slowly."""
    where = places(vertices, root, axis, sectors, segments, reference)
    names, positions, parents = ["HairRoot"], [mix(root, root, 0.0)], [-1]
    for sector in range(sectors):
        for band in range(segments):
            names.append(f"Hair_S{sector + 1}_B{band + 1}")
            parents.append(0 if band == 0 else len(names) - 2)
        positions += chain(vertices, where, root, axis, sector, segments)
    weights = [shares(place, sectors, segments, min(max(max_influences, 1), 4)) for place in where]
    return SlowPlan(names, positions, parents, weights)


def chain(
    vertices: Sequence[Sequence[float]],
    where: Sequence[Place | None],
    root: Sequence[float],
    axis: Sequence[float],
    sector: int,
    segments: int,
) -> list[Vector]:
    """Return where one sector's bones are."""
    along = unit(axis)
    deepest = max(dot(mix(vertex, root, -1.0), along) for vertex in vertices)
    middles: list[Vector | None] = []
    for band in range(segments):
        own = [
            vertex
            for vertex, place in zip(vertices, where, strict=True)
            if place is not None and (place.sector, place.band) == (sector, band)
        ]
        total = (0.0, 0.0, 0.0)
        for vertex in own:
            total = mix(total, mix(vertex, root, -1.0), 1.0 / len(own))
        middles.append(mix(root, total) if own else None)
    result = []
    for band, middle in enumerate(middles):
        if middle is not None:
            result.append(middle)
            continue
        # Steps of a band's depth: the root is half a band above the first middle.
        above, steps_up = mix(root, root, 0.0), band + 0.5
        for other in range(band):
            found = middles[other]
            if found is not None:
                above, steps_up = found, float(band - other)
        below = [other for other in range(band + 1, segments) if middles[other] is not None]
        if below:
            end = middles[below[0]]
            assert end is not None
            share = steps_up / (steps_up + below[0] - band)
            result.append(mix(above, mix(end, above, -1.0), share))
        else:
            result.append(mix(above, along, steps_up * deepest / segments))
    return result


def shares(place: Place | None, sectors: int, segments: int, influences: int) -> dict[int, float]:
    """Return what moves one vertex, by row of bone."""
    if place is None:
        return {0: 1.0}
    if influences == 1:
        return {1 + place.sector * segments + place.band: 1.0}
    share, side = lean(place.through_band)
    bands = [(place.band, 1.0)]
    if share > 0.0 and 0 <= place.band + side < segments:
        bands = [(place.band, 1.0 - share), (place.band + side, share)]
    groups = [(place.sector, 1.0)]
    aside, turn = lean(place.through_sector)
    if influences > 2 and sectors > 1 and aside > 0.0:
        groups = [(place.sector, 1.0 - aside), ((place.sector + turn) % sectors, aside)]
    found = [
        (1 + sector * segments + band, by_band * by_sector)
        for sector, by_sector in groups
        for band, by_band in bands
    ]
    kept = sorted(found, key=lambda pair: -pair[1])[:influences]
    total = sum(weight for _, weight in kept)
    return {bone: weight / total for bone, weight in kept}


def table(weights: Sequence[dict[int, float]], bones: int) -> np.ndarray:
    """Return weights as one row a vertex, one column a bone."""
    result = np.zeros((len(weights), bones))
    for row, found in enumerate(weights):
        for bone, weight in found.items():
            result[row, bone] += weight
    return result
