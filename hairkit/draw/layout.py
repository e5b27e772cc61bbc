"""Where heads and hairs lie in the fields: what does not move is put there once."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from hairkit.draw.expand import SHAPE_SIZE
from hairkit.draw.fields import Fields
from hairkit.draw.lines import LINE_NUMBERS, Lines, scatter_lines
from hairkit.draw.scatter import Scatter, scatter

MOST_POINTS = 161
"""Most points of a drawn hair."""
SKIN = (0.62, 0.39, 0.29)
"""Colour of a head that brings none, linear red, green and blue."""
_BAKE_CELLS = 56
"""Cells along the longest side of a grid made for a shape that has no kernel of its own."""


@dataclass(kw_only=True)
class Slot:
    """Where one hair lies in the fields."""

    hair: Any
    scattered: Scatter
    lines: Lines | None
    """Drawn hairs with lines of their own; None for those that are scattered round guides."""
    sets: int
    """Sets of drawn hairs: one a guide, or one of all that have lines of their own."""
    full: int
    """Hairs of each set; the first ``kept`` of them are drawn."""
    kept: int
    reach: float
    """How far drawn hairs lie from their guides, about [m]."""
    low: NDArray[np.float64]
    """Least place of its guides' rest pose along each axis of the head [m]."""
    high: NDArray[np.float64]
    """Greatest place of the same."""
    mean_length: float
    """Of its drawn hairs [m]."""
    point_count: int
    strand_count: int
    own_first: int
    hair_first: int
    point_first: int
    vertex_first: int
    vertex_count: int
    face_first: int
    face_count: int
    shapes: NDArray[np.float32]
    grids: NDArray[np.int32]
    rest_first: int = 0
    """Its first row of guide points at rest."""
    line_first: int = 0
    """Its first hair with a line of its own."""
    line_point_first: int = 0
    """The first point of that."""

    @property
    def hair_count(self) -> int:
        """Hairs that are drawn."""
        return self.sets * self.kept

    @property
    def widening(self) -> float:
        """How much wider each is, so that hair looks as full."""
        return math.sqrt(self.full / self.kept)

    @property
    def row_count(self) -> int:
        """Rows of drawn hair points."""
        return self.hair_count * self.point_count


def points_per_hair(style: Any) -> int:
    """Return the points of a drawn hair.

    Twice its guide's, eight for each turn of a coil, or twelve for each of a plait.
    """
    wanted = 2 * (style.segments + 1) + 1
    if style.plait > 0:
        turns = style.plait_turns * style.length
        return min(max(wanted, math.ceil(12.0 * turns) + 1), MOST_POINTS)
    turns = style.coil * style.length
    return min(max(wanted, math.ceil(8.0 * turns) + 1 if turns > 0.0 else 0), MOST_POINTS)


def linear(color: Any) -> NDArray[np.float64]:
    """Return sRGB values 0..1 as linear light."""
    c = np.asarray(color, dtype=np.float64)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


class Layout:
    """Rows of the fields for every hair of a world, laid out again when the hairs change."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self.slots: list[Slot] = []
        self._signature: tuple[Any, ...] = ()
        self._scattered: dict[tuple[int, int], tuple[Any, Scatter, Lines | None]] = {}
        self._baked: dict[int, tuple[Any, Any]] = {}

    def forget(self) -> None:
        """Lay everything out anew at the next update: another world has used the fields."""
        self._signature = ()

    def update(self, hairs: list[Any]) -> None:
        """Put what does not move into fields, unless it is there already; all hairs are drawn.

        Args:
            hairs: The world's hairs.
        """
        for slot in self.slots:
            slot.kept = slot.full
        signature = tuple((id(hair), id(hair.groom)) for hair in hairs)
        if signature == self._signature and all(
            slot.hair is hair for slot, hair in zip(self.slots, hairs, strict=True)
        ):
            return
        fields = self._fields
        tables = _Tables()
        self.slots = []
        for hair in hairs:
            self.slots.append(self._place(hair, tables))
        self._line_up()
        rows = sum(slot.row_count for slot in self.slots)
        for name in ("point", "color", "screen", "shown"):
            fields.ensure(name, max(rows, 1))
        tables.upload(fields)
        self._signature = signature
        # Only what is drawn now is kept: a groom that went must not live on here.
        live = {id(hair.groom) for hair in hairs}
        self._scattered = {k: v for k, v in self._scattered.items() if k[0] in live}

    def thin(self, shares: list[float]) -> None:
        """Draw only some of each head's hairs: the first few of every guide.

        So less is thinner hair and not a smaller head of it.

        Args:
            shares: For each slot, above 0 up to 1.
        """
        for slot, share in zip(self.slots, shares, strict=True):
            slot.kept = min(slot.full, max(1, math.ceil(slot.full * share - 1e-9)))
        self._line_up()

    def _line_up(self) -> None:
        """Give the drawn points of each slot their rows, one after the other."""
        first = 0
        for slot in self.slots:
            slot.point_first = first
            first += slot.row_count

    def _place(self, hair: Any, tables: "_Tables") -> Slot:
        """Give one hair its rows."""
        groom = hair.groom
        style, head = groom.style, groom.head
        sets, full = len(groom.roots), int(style.hairs_per_guide)
        if groom.hairs is not None:
            sets, full = 1, len(groom.hairs.points)
        key = (id(groom), full)
        if key not in self._scattered:
            self._scattered[key] = (groom, *_drawn(groom, full))
        _, scattered, lines = self._scattered[key]
        points, mean_length = np.asarray(groom.points), style.length * float(np.mean(groom.lengths))
        if groom.hairs is not None:
            points = np.concatenate([points, groom.hairs.points.reshape(-1, 3)])
            mean_length = float(np.mean(groom.hairs.lengths))
        slot = Slot(
            hair=hair,
            scattered=scattered,
            lines=lines,
            sets=sets,
            full=full,
            kept=full,
            reach=style.spread * groom.spacing if lines is None else lines.reach,
            low=points.min(axis=0),
            high=points.max(axis=0),
            mean_length=mean_length,
            point_count=points_per_hair(style) if lines is None else lines.line.shape[1],
            strand_count=len(groom.roots),
            own_first=tables.add("strand_frame", scattered.frame),
            hair_first=tables.add("hair_trait", scattered.trait),
            point_first=0,
            vertex_first=0,
            vertex_count=len(head.vertices),
            face_first=0,
            face_count=len(head.faces),
            shapes=np.zeros(2 * SHAPE_SIZE, np.float32),
            grids=np.zeros(8, np.int32),
        )
        tables.add("hair_strand", scattered.strand)
        if lines is not None:
            slot.rest_first = tables.add("guide_rest", lines.rest)
            tables.add("guide_frame", lines.frame)
            slot.line_first = tables.add("line_guide", lines.guide)
            tables.add("line_share", lines.share)
            slot.line_point_first = tables.add("line", lines.line.reshape(-1, LINE_NUMBERS))
        rest = np.zeros((len(head.vertices), 12), np.float32)
        rest[:, 0:3], rest[:, 3:6] = head.vertices, head.vertex_normals
        rest[:, 6], rest[:, 7] = head.follow, _scalp_share(head, style, scattered.root)
        rest[:, 8:11] = SKIN if head.colors is None else linear(np.asarray(head.colors) / 255.0)
        slot.vertex_first = tables.add("mesh_rest", rest)
        face = np.zeros((len(head.faces), 4), np.int32)
        face[:, :3] = np.asarray(head.faces) + slot.vertex_first
        face[:, 3] = len(self.slots)
        slot.face_first = tables.add("mesh_face", face)
        for which, shape in enumerate((head.head_shape, head.body_shape)):
            if shape is not None:
                self._place_shape(slot, which, shape, tables)
        return slot

    def _place_shape(self, slot: Slot, which: int, shape: Any, tables: "_Tables") -> None:
        """Describe a solid to the kernels: a sphere by numbers, all else by a grid of distances."""
        numbers = slot.shapes[which * SHAPE_SIZE : (which + 1) * SHAPE_SIZE]
        if hasattr(shape, "radius") and hasattr(shape, "center"):
            numbers[:5] = [1.0, *shape.center, shape.radius]
            return
        if not hasattr(shape, "values"):
            if id(shape) not in self._baked:
                reach = float(slot.hair.groom.head.radius)
                self._baked[id(shape)] = (shape, _bake(shape, reach))
            shape = self._baked[id(shape)][1]
        values = np.ascontiguousarray(shape.values, dtype=np.float32)
        numbers[:5] = [2.0, *shape.origin, shape.cell]
        first = tables.add("distance", values.reshape(-1), once=id(shape))
        slot.grids[which * 4 : which * 4 + 4] = [first, *values.shape]


def _drawn(groom: Any, full: int) -> tuple[Scatter, Lines | None]:
    """Return what is fixed about a groom's drawn hairs."""
    if groom.hairs is None:
        return scatter(groom, hairs_per_guide=full), None
    return scatter_lines(groom)


class _Tables:
    """Rows on their way into fields."""

    def __init__(self) -> None:
        self._parts: dict[str, list[NDArray[Any]]] = {}
        self._rows: dict[str, int] = {}
        self._once: dict[int, int] = {}

    def add(self, name: str, rows: NDArray[Any], *, once: int | None = None) -> int:
        """Append rows to a field; return where they begin, also if they came `once` before."""
        if once is not None and once in self._once:
            return self._once[once]
        first = self._rows.get(name, 0)
        self._parts.setdefault(name, []).append(rows)
        self._rows[name] = first + len(rows)
        if once is not None:
            self._once[once] = first
        return first

    def upload(self, fields: Fields) -> None:
        """Write all rows into fields, which grow if they must."""
        for name in (
            "strand_frame",
            "hair_trait",
            "hair_strand",
            "distance",
            "mesh_rest",
            "mesh_face",
            "guide_rest",
            "guide_frame",
            "line_guide",
            "line_share",
            "line",
        ):
            field = fields.ensure(name, max(self._rows.get(name, 0), 1))
            if self._rows.get(name, 0) == 0:
                continue
            rows = np.concatenate(self._parts[name])
            whole = np.zeros((field.shape[0], *rows.shape[1:]), rows.dtype)
            whole[: len(rows)] = rows
            field.from_numpy(whole)
        fields.ensure("mesh_world", fields.mesh_rest.shape[0])
        fields.ensure("mesh_screen", fields.mesh_rest.shape[0])


@dataclass(frozen=True, kw_only=True)
class _Grid:
    """Distances of a shape that has no kernel of its own, on a grid."""

    values: NDArray[np.float32]
    origin: tuple[float, float, float]
    cell: float


def _bake(shape: Any, reach: float) -> _Grid:
    """Sample a shape's distances over a few head radii."""
    half = 3.0 * reach
    cell = 2.0 * half / (_BAKE_CELLS - 1)
    axis = np.linspace(-half, half, _BAKE_CELLS)
    places = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    distance = shape.signed_distance(places)[0].astype(np.float32)
    return _Grid(
        values=distance.reshape((_BAKE_CELLS,) * 3), origin=(-half, -half, -half), cell=cell
    )


def _scalp_share(head: Any, style: Any, roots: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much of the hair's colour each vertex has: all among roots, none far from them."""
    vertices = np.asarray(head.vertices)
    away = np.asarray(KDTree(roots).query(vertices)[0])
    share = np.clip((0.011 + style.fade - away) / (0.008 + style.fade), 0.0, 1.0)
    if style.fade > 0.0:
        # Stubble grows on the scalp only.
        share *= np.clip(head.scalp_limit(vertices - head.center) / 0.12, 0.0, 1.0)
    return style.scalp * share * share * (3.0 - 2.0 * share)
