"""Where a hair mesh's bones go, and which of them moves each vertex: sectors and bands.

Sectors are groups of vertices round the growth axis, one bone chain each. Bands are slices down the
axis, one bone of every chain each.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hairkit.errors import RigError

Points = NDArray[np.float64]

MOST_INFLUENCES = 4
"""Bones of a vertex that glTF holds in one set of attributes."""
MOST_CHAINS = 64
MOST_SEGMENTS = 64
LEAN = 0.8
"""How fast a vertex leans to the neighbouring bone as it leaves its band's middle; at the band's
edge, half a band away, it has 0.4 of it."""
SNAP = 1e-9
"""Shares of a band or sector that count as nothing, so that rounding moves no vertex across."""


class Weights(NamedTuple):
    """Which bones move each vertex."""

    indices: NDArray[np.int32]
    """Rows of `Plan.bones`, the heaviest first, shape (vertices, influences); unused places are
    0."""

    weights: Points
    """Shares, each row falling and summing to 1, shape (vertices, influences); unused places are
    0."""


@dataclass(frozen=True, kw_only=True)
class Bone:
    """One bone: a point that vertices turn about."""

    name: str
    """``HairRoot``, or ``Hair_S{sector}_B{band}``, both counted from 1."""

    position: tuple[float, float, float]
    """Where it is, in the vertices' space and units."""

    parent: int
    """Row of the parent in `Plan.bones`; -1 for the root, which has none."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """A skeleton and how it moves a mesh."""

    bones: tuple[Bone, ...]
    """The root first, then chain by chain from the root outwards: parents before children."""

    weights: Weights
    """Of each vertex, in the vertices' order."""

    chains: tuple[tuple[int, ...], ...]
    """Rows of each chain's bones in `bones`, nearest to the root first."""

    strategy: str
    """How it was made: ``sectors`` or ``cards``; ``file`` for bones that were there."""

    @property
    def names(self) -> list[str]:
        """Names of the bones."""
        return [bone.name for bone in self.bones]

    @property
    def positions(self) -> Points:
        """Where the bones are, shape (bones, 3)."""
        return np.array([bone.position for bone in self.bones], dtype=np.float64)

    @property
    def parents(self) -> NDArray[np.int32]:
        """Row of each bone's parent, -1 for the root, shape (bones,)."""
        return np.array([bone.parent for bone in self.bones], dtype=np.int32)

    def chain_of_vertices(self) -> NDArray[np.int32]:
        """Return which chain moves each vertex most, -1 for the root, shape (vertices,)."""
        owner = np.full(len(self.bones), -1, dtype=np.int32)
        for number, chain in enumerate(self.chains):
            owner[list(chain)] = number
        return owner[self.weights.indices[:, 0]]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain objects, what ``--plan-json`` writes."""
        return {
            "strategy": self.strategy,
            "bones": [
                {"name": bone.name, "position": list(bone.position), "parent": bone.parent}
                for bone in self.bones
            ],
            "chains": [list(chain) for chain in self.chains],
            "weights": {
                "indices": self.weights.indices.tolist(),
                "weights": self.weights.weights.tolist(),
            },
        }


def plan(
    vertices: ArrayLike,
    *,
    root: ArrayLike,
    axis: ArrayLike = (0.0, -1.0, 0.0),
    sectors: int = 3,
    segments: int = 3,
    max_influences: int = 2,
    reference: ArrayLike | None = None,
) -> Plan:
    """Plan a skeleton of sectors and bands for a cloud of vertices.

    Rows of `Plan.bones` count from 0: row 0 is ``HairRoot`` at `root` with parent -1, then
    ``Hair_S1_B1`` to ``Hair_S1_B{segments}``, then the next sector's. Each bone stands in the
    middle of its sector's band. An empty band's bone is on the line between its neighbours in the
    chain, or straight on along the axis past the last one; a sector without vertices gets its chain
    straight down the axis.

    A vertex is moved by the bone of its own band and, by ``|f - 0.5| * 0.8``, by that of the
    neighbouring band that it leans to, where f is its place in the band from 0 to 1. Nearer the
    root than the first band's middle, or past the last one's, one bone moves it. At the root's
    plane or above it, the root alone does, and such vertices pull no bone towards them.

    With three or four influences, a vertex also leans to the nearest other sector in the same way,
    by its place in the sector: of the bones in its two bands and two sectors, each weighed by the
    product of both shares, the heaviest are kept. That lets hair bend across the edge between two
    chains, where with two it parts.

    Args:
        vertices: Positions, shape (v, 3), any unit.
        root: Where the hair is fixed to the scalp, in the same space.
        axis: Direction in which hair grows; any length but zero.
        sectors: Chains round the axis, 1 to 64.
        segments: Bones of a chain, 1 to 64.
        max_influences: Bones that may move one vertex; clamped to 1 to 4. With 1 it is the one of
            its own band.
        reference: Where sector 1 begins, seen from the axis; the others follow by the left-hand
            rule round the axis, which for hair that hangs is anticlockwise from above. None is +Z,
            where faces look, or +Y where the axis is along Z: sector 1 then is on the wearer's
            left, and sectors lie in mirror symmetry about the middle of the face.

    Raises:
        RigError: There is no vertex, none below the root, one that is not finite, or an option is
            out of range.
    """
    points = check_vertices(vertices)
    anchor, along = check_root(root), check_axis(axis)
    check_counts(sectors, segments)
    influences = check_influences(max_influences)
    start = _start(along, reference)
    sideways = np.cross(start, along)

    away = points - anchor
    depth = away @ along
    reach = float(np.abs(away).max(initial=0.0))
    hangs = depth > SNAP * reach
    if not hangs.any():
        raise RigError(
            "above root",
            f"all {len(points)} vertices are at or above the root {anchor.tolist()}; "
            f"expected some in the direction of the axis {along.tolist()}",
        )
    place = depth * (segments / depth[hangs].max())
    band = np.clip(np.floor(place + SNAP), 0, segments - 1).astype(np.int32)
    angle = np.arctan2(away @ sideways, away @ start) % (2.0 * np.pi)
    turn = angle * (sectors / (2.0 * np.pi))
    whole = np.floor(turn + SNAP).astype(np.int32)
    sector = whole % sectors

    bones, chains = _bones(anchor, along, points, hangs, depth, sector, band, sectors, segments)
    weights = _weights(
        influences, hangs, band, place - band, sector, turn - whole, sectors, segments
    )
    return Plan(bones=bones, weights=weights, chains=chains, strategy="sectors")


def _bones(
    anchor: Points,
    along: Points,
    points: Points,
    hangs: NDArray[np.bool_],
    depth: Points,
    sector: NDArray[np.int32],
    band: NDArray[np.int32],
    sectors: int,
    segments: int,
) -> tuple[tuple[Bone, ...], tuple[tuple[int, ...], ...]]:
    """Return bones in the middle of what they move, and the chains that they form."""
    cell = (sector * segments + band)[hangs]
    cells = sectors * segments
    count = np.bincount(cell, minlength=cells).reshape(sectors, segments)
    # From the root, where sums lose least, however far away the mesh is.
    away = (points - anchor)[hangs]
    total = np.stack([np.bincount(cell, away[:, c], minlength=cells) for c in range(3)], axis=1)
    middle = total.reshape(sectors, segments, 3) / np.maximum(count, 1)[:, :, None]
    band_depth = (np.arange(segments) + 0.5) * (depth[hangs].max() / segments)
    bones = [Bone(name="HairRoot", position=triple(anchor), parent=-1)]
    chains = []
    for s in range(sectors):
        filled = np.flatnonzero(count[s])
        knots = np.concatenate([[0.0], band_depth[filled]])
        places = np.concatenate([np.zeros((1, 3)), middle[s, filled]])
        chain = []
        for b in range(segments):
            where = middle[s, b]
            if count[s, b] == 0:
                where = np.array([np.interp(band_depth[b], knots, places[:, c]) for c in range(3)])
                where += along * max(band_depth[b] - knots[-1], 0.0)
            parent = len(bones) - 1 if b else 0
            chain.append(len(bones))
            name = f"Hair_S{s + 1}_B{b + 1}"
            bones.append(Bone(name=name, position=triple(anchor + where), parent=parent))
        chains.append(tuple(chain))
    return tuple(bones), tuple(chains)


def _weights(
    influences: int,
    hangs: NDArray[np.bool_],
    band: NDArray[np.int32],
    band_place: Points,
    sector: NDArray[np.int32],
    sector_place: Points,
    sectors: int,
    segments: int,
) -> Weights:
    """Return which bones move each vertex, by its place from 0 to 1 in its band and sector."""
    lean, other = _lean(band, band_place)
    lean[(other < 0) | (other >= segments)] = 0.0
    bands = np.stack([band, np.clip(other, 0, segments - 1)], axis=1)
    shares = np.stack([1.0 - lean, lean], axis=1)
    bone = 1 + sector[:, None] * segments + bands
    if influences == 1:
        # Past the middle of the last band or not: its own band's alone.
        shares = np.tile([1.0, 0.0], (len(band), 1))
    elif influences > 2 and sectors > 1:
        aside, beside = _lean(sector, sector_place)
        bone = np.concatenate([bone, 1 + (beside % sectors)[:, None] * segments + bands], axis=1)
        shares = np.concatenate(
            [shares * (1.0 - aside)[:, None], shares * aside[:, None]],
            axis=1,
        )
    bone[~hangs] = 0
    shares[~hangs] = 0.0
    shares[~hangs, 0] = 1.0
    if influences <= 2:
        # In order as they are: a vertex leans by no more than 0.4.
        bone, shares = bone[:, :influences], shares[:, :influences]
        return Weights(np.where(shares > 0.0, bone, 0).astype(np.int32), shares)
    return heaviest(bone, shares, influences)


def _lean(own: NDArray[np.int32], place: Points) -> tuple[Points, NDArray[np.int32]]:
    """Return how far places from 0 to 1 lean to the neighbour, and which neighbour that is."""
    lean = LEAN * np.abs(np.clip(place, 0.0, 1.0) - 0.5)
    # Rounding would put a middle a little aside, and a neighbour of no weight into a slot.
    lean[lean <= SNAP] = 0.0
    return lean, np.where(place < 0.5, own - 1, own + 1)


def heaviest(bone: NDArray[np.int32], shares: Points, influences: int) -> Weights:
    """Return the heaviest bones of each vertex, sorted, their shares summing to 1.

    Args:
        bone: Rows of bones, shape (v, n); a bone may be there once with a share, and unused.
        shares: What each weighs, shape (v, n).
        influences: How many to keep.
    """
    order = np.argsort(-shares, axis=1, kind="stable")[:, :influences]
    kept = np.take_along_axis(shares, order, axis=1)
    kept = kept / kept.sum(axis=1, keepdims=True)
    indices = np.where(kept > 0.0, np.take_along_axis(bone, order, axis=1), 0)
    if indices.shape[1] < influences:
        room = ((0, 0), (0, influences - indices.shape[1]))
        indices, kept = np.pad(indices, room), np.pad(kept, room)
    return Weights(indices.astype(np.int32), kept)


def check_vertices(vertices: ArrayLike) -> Points:
    """Return vertices as an array, or refuse what is none."""
    points = _numbers("vertices", vertices)
    if points.size == 0:
        raise RigError("no vertices", "the mesh has no vertices")
    if points.ndim != 2 or points.shape[1] != 3:
        raise RigError("bad option", f"vertices: expected shape (v, 3), got {points.shape}")
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if len(bad):
        raise RigError(
            "not finite",
            f"vertex {bad[0]} is {points[bad[0]].tolist()} ({len(bad)} such); "
            "expected finite numbers",
        )
    return points


def check_root(root: ArrayLike) -> Points:
    """Return the root as an array, or refuse it."""
    anchor = _numbers("root", root)
    if anchor.shape != (3,) or not np.isfinite(anchor).all():
        raise RigError("bad option", f"root: expected three finite numbers, got {root!r}")
    return anchor


def check_axis(axis: ArrayLike) -> Points:
    """Return the axis with a length of 1, or refuse it."""
    along = _numbers("axis", axis)
    if along.shape != (3,) or not np.isfinite(along).all():
        raise RigError("bad option", f"axis: expected three finite numbers, got {axis!r}")
    largest = np.abs(along).max()
    if largest == 0.0:
        raise RigError("bad option", "axis: expected a direction, got zero length")
    along = along / largest
    return along / np.linalg.norm(along)


def check_counts(sectors: int, segments: int) -> None:
    """Refuse counts of chains and bones that make no skeleton."""
    for name, value, most in (
        ("sectors", sectors, MOST_CHAINS),
        ("segments", segments, MOST_SEGMENTS),
    ):
        if not _is_whole(value) or not 1 <= value <= most:
            raise RigError(
                "bad option", f"{name}: expected a whole number 1..{most}, got {value!r}"
            )


def check_influences(max_influences: int) -> int:
    """Return how many bones may move a vertex, clamped, or refuse what is no whole number."""
    if not _is_whole(max_influences):
        raise RigError(
            "bad option",
            f"max_influences: expected a whole number, clamped to 1..{MOST_INFLUENCES}, "
            f"got {max_influences!r}",
        )
    return min(max(int(max_influences), 1), MOST_INFLUENCES)


def _is_whole(value: object) -> bool:
    """Tell whether a value is a whole number; True is none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _numbers(name: str, value: Any) -> Points:
    """Return numbers as an array, or refuse what are none: words, or rows that differ in length."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RigError("bad option", f"{name}: expected numbers ({error})") from None


def _start(along: Points, reference: ArrayLike | None) -> Points:
    """Return the unit direction, at right angles to the axis, in which sector 1 begins."""
    given = reference is not None
    towards = _numbers("reference", reference if given else (0.0, 0.0, 1.0))
    if towards.shape != (3,) or not np.isfinite(towards).all():
        raise RigError("bad option", f"reference: expected three finite numbers, got {reference!r}")
    largest = max(float(np.abs(towards).max()), 1e-300)
    flat = towards / largest
    flat = flat - along * (flat @ along)
    size = np.linalg.norm(flat)
    if size < 1e-6:
        if given:
            raise RigError(
                "bad option",
                f"reference: expected a direction across the axis {along.tolist()}, "
                f"got {towards.tolist()}",
            )
        return _start(along, (0.0, 1.0, 0.0))
    return flat / size


def triple(point: Points) -> tuple[float, float, float]:
    """Return a point as plain numbers."""
    x, y, z = (float(value) for value in point)
    return x, y, z
