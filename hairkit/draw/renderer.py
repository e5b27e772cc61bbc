"""The host's side of drawing: lays out heads and hairs in fields, and launches the kernels in order."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from hairkit.draw import expand as e
from hairkit.draw import shade as s
from hairkit.draw.camera import Camera, Light
from hairkit.draw.expand import carry_frames, expand
from hairkit.draw.fields import Fields
from hairkit.draw.raster import (
    TILE,
    clear,
    clear_keys,
    draw_hairs,
    draw_mesh,
    farthest,
    pose_mesh,
    resolve,
)
from hairkit.draw.scatter import Scatter, scatter
from hairkit.draw.shade import deposit, project, shade, sweep
from hairkit.errors import HairkitError

Background = Literal["studio", "transparent"]

FINEST_RIBBON = 0.75
"""Least width of a ribbon [pixels]: thinner ones would break into dots."""
MOST_POINTS = 97
"""Most points of a drawn hair."""
SKIN = (0.62, 0.39, 0.29)
"""Colour of a head that brings none, linear red, green and blue."""
_GRID_CELLS = ((2, 96), (8, 64), (24, 48))
"""Up to so many heads, so many cells along each axis of a head's light grid; 32 beyond."""
_BAKE_CELLS = 56
"""Cells along the longest side of a grid made for a shape that has no kernel of its own."""


@dataclass(kw_only=True)
class _Slot:
    """Where one hair lies in the fields."""

    hair: Any
    scattered: Scatter
    hair_count: int
    point_count: int
    strand_count: int
    own_first: int
    hair_first: int
    point_first: int
    vertex_first: int
    vertex_count: int
    face_first: int
    face_count: int
    widening: float
    shapes: NDArray[np.float32]
    grids: NDArray[np.int32]

    @property
    def row_count(self) -> int:
        """Rows of drawn hair points."""
        return self.hair_count * self.point_count


def points_per_hair(style: Any) -> int:
    """Return how many points a drawn hair of a style has: twice its guide's, or eight for each coil's turn."""
    turns = style.coil * style.length
    wanted = max(2 * (style.segments + 1) + 1, math.ceil(8.0 * turns) + 1 if turns > 0.0 else 0)
    return min(wanted, MOST_POINTS)


def linear(color: Any) -> NDArray[np.float64]:
    """Return sRGB values 0..1 as linear light."""
    c = np.asarray(color, dtype=np.float64)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


class Renderer:
    """Draws the hair and heads of a world.

    It does not draw colliders, and hair of one head casts no shadow on another.
    """

    def __init__(self, world: Any) -> None:
        """Draw a world.

        Args:
            world: The `World`; what is read of it is `hairs`, `arena` and `present()`.
        """
        self._world = world
        self._fields = Fields()
        self._slots: list[_Slot] = []
        self._signature: tuple[Any, ...] = ()
        self._scattered: dict[tuple[int, int], tuple[Any, Scatter]] = {}
        self._baked: dict[int, tuple[Any, Any]] = {}
        self._drawn = 0

    def drawn_hairs(self) -> int:
        """Return how many hairs the last picture drew."""
        return self._drawn

    def image(
        self,
        camera: Camera,
        *,
        width: int = 960,
        height: int = 720,
        light: Light | None = None,
        background: Background = "studio",
        detail: float = 1.0,
        samples: int = 2,
    ) -> NDArray[np.uint8]:
        """Draw the world as it is.

        Args:
            camera: Where to look from.
            width: Pixels across.
            height: Pixels down.
            light: What lights it; None is a studio's key, rim and sky.
            background: `studio` for a soft gradient, `transparent` for an alpha channel.
            detail: Share of the drawn hairs, above 0 up to 1; each is wider by its root, so that hair looks as full.
            samples: Samples across a pixel, both ways: 2 for video, 3 or 4 for stills.

        Returns:
            sRGB picture, top row first, shape (height, width, 3), or 4 with straight alpha when transparent.

        Raises:
            HairkitError: A size, the detail or the background is out of range.
        """
        _check(width, height, background, detail, samples)
        self._lay_out(detail)
        fields, slots = self._fields, self._slots
        origin = np.asarray(camera.target, dtype=np.float64)
        light = light or Light()
        view = _view_numbers(camera, light, width, height, background, samples)
        cells = next((c for most, c in _GRID_CELLS if len(slots) <= most), 32)
        pixels, grid = width * height * samples * samples, cells**3
        fields.ensure("sample_key", pixels + cells * cells)
        fields.ensure("sample_id", pixels + cells * cells)
        fields.ensure("box", max(len(slots), 1))
        fields.ensure("density", max(len(slots), 1) * grid)
        fields.ensure("light", max(len(slots), 1) * grid)
        fields.picture(width * height)
        tiles = -(-width * samples // TILE) * -(-height * samples // TILE)
        fields.ensure("tile_key", tiles)
        clear(
            pixels + cells * cells,
            len(slots),
            len(slots) * grid,
            tiles,
            fields.sample_key,
            fields.sample_id,
            fields.box,
            fields.density,
            fields.tile_key,
        )
        numbers = [self._hair_numbers(slot, origin, view) for slot in slots]
        look = np.zeros((max(len(slots), 1), s.LOOK_NUMBERS), np.float32)
        for index, slot in enumerate(slots):
            look[index] = _look_numbers(slot)
        self._present()
        for index, slot in enumerate(slots):
            self._expand(index, slot, numbers[index])
            self._light(index, slot, numbers[index], view, look, cells, pixels)
        shown = self._draw(numbers, view, look, cells, (width, height, samples))
        resolve(
            width,
            height,
            samples,
            cells,
            view,
            look,
            fields.mesh_rest,
            fields.mesh_face,
            fields.mesh_world,
            fields.mesh_screen,
            fields.color,
            fields.screen,
            fields.box,
            fields.light,
            fields.sample_id,
            fields.pixel,
        )
        self._drawn = shown
        packed = np.ascontiguousarray(fields.pixel.to_numpy()[: width * height])
        image = packed.view(np.uint8).reshape(height, width, 4)
        return image if background == "transparent" else np.ascontiguousarray(image[:, :, :3])

    def hair_points(self, hair: Any) -> NDArray[np.float64]:
        """Return the drawn hairs of one hair as they are now, in the world.

        Args:
            hair: One of the world's hairs.

        Returns:
            Points root to tip [m], shape (hairs, points, 3), guide by guide.
        """
        self._lay_out(1.0)
        index = next((i for i, slot in enumerate(self._slots) if slot.hair is hair), None)
        if index is None:
            raise HairkitError("hair_points: expected a hair of this renderer's world")
        self._fields.ensure("box", len(self._slots))
        slot = self._slots[index]
        origin = np.asarray(hair.origin, dtype=np.float64)
        view = np.zeros(s.VIEW_NUMBERS, np.float32)
        view[s.LIGHT_AXES : s.LIGHT_AXES + 9] = np.eye(3).reshape(-1)
        self._present()
        self._expand(index, slot, self._hair_numbers(slot, origin, view))
        rows = self._fields.point.to_numpy()[slot.point_first : slot.point_first + slot.row_count]
        return rows.reshape(slot.hair_count, slot.point_count, 3).astype(np.float64) + origin

    def _present(self) -> None:
        """Let the world bring guide points up to date."""
        self._world.present()

    def _expand(self, index: int, slot: _Slot, numbers: NDArray[np.float32]) -> None:
        """Make one hair's drawn points."""
        fields, arena = self._fields, self._world.arena
        fields.ensure("guide_side", arena.guide_point.shape[0])
        first = int(slot.hair.strand_first)
        carry_frames(
            first,
            slot.strand_count,
            slot.own_first,
            index,
            numbers,
            arena.guide_start,
            arena.guide_count,
            fields.strand_frame,
            arena.guide_point,
            fields.guide_side,
            fields.box,
        )
        whole = np.array([*slot.grids, first, slot.own_first, slot.hair_first], np.int32)
        expand(
            slot.hair_count,
            slot.point_count,
            slot.point_first,
            numbers,
            whole,
            arena.guide_start,
            arena.guide_count,
            fields.strand_frame,
            fields.hair_strand,
            fields.hair_trait,
            fields.distance,
            arena.guide_point,
            fields.guide_side,
            fields.point,
        )

    def _light(
        self,
        index: int,
        slot: _Slot,
        numbers: NDArray[np.float32],
        view: NDArray[np.float32],
        look: NDArray[np.float32],
        cells: int,
        key_first: int,
    ) -> None:
        """Fill one head's light grid and put its hairs on the screen."""
        fields, first = self._fields, index * cells**3
        if index > 0:
            clear_keys(key_first, cells * cells, fields.sample_key)
        pose_mesh(
            slot.vertex_first,
            slot.vertex_count,
            index,
            cells,
            1,
            numbers,
            view,
            fields.mesh_rest,
            fields.box,
            fields.mesh_world,
            fields.mesh_screen,
        )
        draw_mesh(
            slot.face_first,
            slot.face_count,
            key_first,
            cells,
            cells,
            0,
            0.0,
            fields.mesh_face,
            fields.mesh_screen,
            fields.sample_key,
            fields.sample_id,
        )
        deposit(
            slot.point_first,
            slot.row_count,
            index,
            first,
            cells,
            view,
            fields.point,
            fields.box,
            fields.density,
        )
        for axis in range(3):
            sweep(
                axis,
                index,
                first,
                cells,
                key_first,
                look,
                fields.box,
                fields.density,
                fields.sample_key,
                fields.light,
            )
        project(
            slot.hair_count,
            slot.point_count,
            slot.point_first,
            index,
            view,
            look,
            fields.point,
            fields.screen,
            fields.shown,
        )

    def _draw(
        self,
        numbers: list[NDArray[np.float32]],
        view: NDArray[np.float32],
        look: NDArray[np.float32],
        cells: int,
        size: tuple[int, int, int],
    ) -> int:
        """Rasterise every head and hair; return how many hairs."""
        fields, slots = self._fields, self._slots
        width, height, samples = size
        columns, rows = width * samples, height * samples
        meshes = _distinct_meshes(slots)
        for index in meshes:
            slot = slots[index]
            pose_mesh(
                slot.vertex_first,
                slot.vertex_count,
                index,
                cells,
                0,
                numbers[index],
                view,
                fields.mesh_rest,
                fields.box,
                fields.mesh_world,
                fields.mesh_screen,
            )
        # Every fourth hair hides most of what the others would draw, and all of them what pass two would.
        for second, step in ((0, 4), (0, 1), (1, 1)):
            for index in meshes if step == 4 or second == 1 else ():
                draw_mesh(
                    slots[index].face_first,
                    slots[index].face_count,
                    0,
                    columns,
                    rows,
                    second,
                    float(view[s.SAMPLE_SHIFT]),
                    fields.mesh_face,
                    fields.mesh_screen,
                    fields.sample_key,
                    fields.sample_id,
                )
            for slot in slots:
                draw_hairs(
                    slot.hair_count,
                    step,
                    slot.point_count,
                    slot.point_first,
                    samples,
                    columns,
                    rows,
                    second,
                    float(view[s.SAMPLE_SHIFT]),
                    fields.screen,
                    fields.tile_key,
                    fields.sample_key,
                    fields.sample_id,
                    fields.shown,
                )
            if second == 0:
                farthest(columns, rows, fields.sample_key, fields.tile_key)
        for index, slot in enumerate(slots):
            self._shade(index, slot, view, look, cells)
        return sum(slot.hair_count for slot in slots)

    def _shade(
        self,
        index: int,
        slot: _Slot,
        view: NDArray[np.float32],
        look: NDArray[np.float32],
        cells: int,
    ) -> None:
        """Light what is seen of one head's hairs."""
        fields = self._fields
        shade(
            slot.hair_count,
            slot.point_count,
            slot.point_first,
            slot.hair_first,
            index,
            index * cells**3,
            cells,
            view,
            look,
            fields.hair_trait,
            fields.point,
            fields.box,
            fields.light,
            fields.shown,
            fields.color,
        )

    def _hair_numbers(
        self, slot: _Slot, origin: NDArray[np.float64], view: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return the numbers that one hair's launches take, as `expand` lays them out."""
        hair, style = slot.hair, slot.hair.groom.style
        numbers = np.zeros(e.HAIR_NUMBERS, np.float32)
        numbers[e.SHIFT : e.SHIFT + 3] = np.asarray(hair.origin) - origin
        for at, pose in ((e.HEAD, hair.head_pose), (e.BODY, hair.body_pose)):
            matrix = np.asarray(pose, dtype=np.float64)
            numbers[at : at + 9] = matrix[:3, :3].reshape(-1)
            numbers[at + 9 : at + 12] = matrix[:3, 3] - origin
        spread = style.spread * hair.groom.spacing
        numbers[e.CLUMP], numbers[e.FRIZZ] = style.clump, style.frizz
        numbers[e.COIL], numbers[e.COIL_RADIUS] = style.coil, style.coil_radius
        numbers[e.ZIGZAG], numbers[e.DEFINITION] = style.zigzag, style.definition
        numbers[e.MARGIN] = spread + style.coil_radius + 0.008
        numbers[e.LENGTH] = style.length
        numbers[e.LIGHT_RIGHT : e.LIGHT_RIGHT + 9] = view[s.LIGHT_AXES : s.LIGHT_AXES + 9]
        numbers[e.SHAPES : e.SHAPES + len(slot.shapes)] = slot.shapes
        numbers[e.BALL : e.BALL + 3] = hair.groom.head.center
        numbers[e.BALL + 3] = 1.35 * hair.groom.head.radius
        return numbers

    def _lay_out(self, detail: float) -> None:
        """Put what does not move into fields, unless it is there already."""
        hairs = list(self._world.hairs)
        signature = (detail, *((id(hair), id(hair.groom)) for hair in hairs))
        if signature == self._signature and all(
            slot.hair is hair for slot, hair in zip(self._slots, hairs, strict=True)
        ):
            return
        fields = self._fields
        tables = _Tables()
        self._slots = []
        for hair in hairs:
            self._slots.append(self._place(hair, detail, tables))
        rows = sum(slot.row_count for slot in self._slots)
        for name in ("point", "color", "screen", "shown"):
            fields.ensure(name, max(rows, 1))
        tables.upload(fields)
        self._signature = signature
        # Only what is drawn now is kept: a groom that went must not live on here.
        live = {id(hair.groom) for hair in hairs}
        self._scattered = {k: v for k, v in self._scattered.items() if k[0] in live}

    def _place(self, hair: Any, detail: float, tables: "_Tables") -> _Slot:
        """Give one hair its rows."""
        groom = hair.groom
        style, head = groom.style, groom.head
        full = int(style.hairs_per_guide)
        kept = min(full, max(1, math.ceil(full * detail)))
        key = (id(groom), full)
        if key not in self._scattered:
            self._scattered[key] = (groom, scatter(groom, hairs_per_guide=full))
        scattered = self._scattered[key][1]
        strands = len(groom.roots)
        count = strands * kept
        # The first few of every guide, so that less detail is thinner hair and not a smaller head of it.
        chosen = np.flatnonzero(np.arange(strands * full) % full < kept)
        frame = np.zeros((strands, 8), np.float32)
        frame[:, 0:3], frame[:, 3:6] = scattered.side, scattered.rise
        frame[:, 6], frame[:, 7] = scattered.segment, scattered.flat
        slot = _Slot(
            hair=hair,
            scattered=scattered,
            hair_count=count,
            point_count=points_per_hair(style),
            strand_count=strands,
            own_first=tables.add("strand_frame", frame),
            hair_first=tables.add("hair_trait", scattered.trait[chosen]),
            point_first=sum(other.row_count for other in self._slots),
            vertex_first=0,
            vertex_count=len(head.vertices),
            face_first=0,
            face_count=len(head.faces),
            widening=math.sqrt(full / kept),
            shapes=np.zeros(2 * e.SHAPE_SIZE, np.float32),
            grids=np.zeros(8, np.int32),
        )
        tables.add("hair_strand", scattered.strand[chosen])
        rest = np.zeros((len(head.vertices), 12), np.float32)
        rest[:, 0:3], rest[:, 3:6] = head.vertices, head.vertex_normals
        rest[:, 6], rest[:, 7] = head.follow, _scalp_share(head.vertices, scattered.root)
        rest[:, 8:11] = SKIN if head.colors is None else linear(np.asarray(head.colors) / 255.0)
        slot.vertex_first = tables.add("mesh_rest", rest)
        face = np.zeros((len(head.faces), 4), np.int32)
        face[:, :3] = np.asarray(head.faces) + slot.vertex_first
        face[:, 3] = len(self._slots)
        slot.face_first = tables.add("mesh_face", face)
        for which, shape in enumerate((head.head_shape, head.body_shape)):
            if shape is not None:
                self._place_shape(slot, which, shape, tables)
        return slot

    def _place_shape(self, slot: _Slot, which: int, shape: Any, tables: "_Tables") -> None:
        """Describe a solid to the kernels: a sphere by its numbers, anything else by a grid of distances."""
        numbers = slot.shapes[which * e.SHAPE_SIZE : (which + 1) * e.SHAPE_SIZE]
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


class _Tables:
    """Rows on their way into fields."""

    def __init__(self) -> None:
        self._parts: dict[str, list[NDArray[Any]]] = {}
        self._rows: dict[str, int] = {}
        self._once: dict[int, int] = {}

    def add(self, name: str, rows: NDArray[Any], *, once: int | None = None) -> int:
        """Append rows to a field; return the first, or where they are if they came `once` before."""
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


def _scalp_share(vertices: NDArray[Any], roots: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much of each vertex is scalp: 1 among roots, 0 a centimetre away from them."""
    away = np.asarray(cKDTree(roots).query(np.asarray(vertices))[0])
    share = np.clip((0.011 - away) / 0.008, 0.0, 1.0)
    return share * share * (3.0 - 2.0 * share)


def _distinct_meshes(slots: list[_Slot]) -> list[int]:
    """Return slots whose head is not there already in the same place, as when two hairs grow on one head."""
    seen: dict[tuple[Any, ...], int] = {}
    for index, slot in enumerate(slots):
        head_pose = np.asarray(slot.hair.head_pose, np.float64)
        body_pose = np.asarray(slot.hair.body_pose, np.float64)
        key = (id(slot.hair.groom.head), head_pose.tobytes(), body_pose.tobytes())
        seen.setdefault(key, index)
    return sorted(seen.values())


def _look_numbers(slot: _Slot) -> NDArray[np.float32]:
    """Return a head's row of `look`, as `shade` lays it out."""
    style = slot.hair.groom.style
    look = np.zeros(s.LOOK_NUMBERS, np.float32)
    look[s.ROOT_COLOR : s.ROOT_COLOR + 3] = linear(style.root_color)
    look[s.TIP_COLOR : s.TIP_COLOR + 3] = linear(style.tip_color)
    look[s.HAIR_WIDTH] = style.hair_width * slot.widening
    look[s.SHINE], look[s.SHIFT] = style.shine, style.shift
    mean_length = style.length * float(np.mean(slot.hair.groom.lengths))
    each = mean_length / (slot.point_count - 1)
    look[s.POINT_AREA] = each * style.hair_width * slot.widening**2
    look[s.REACH] = style.length
    return look


def _view_numbers(
    camera: Camera,
    light: Light,
    width: int,
    height: int,
    background: str,
    samples: int,
) -> NDArray[np.float32]:
    """Return the numbers that a picture's launches share, as `shade` lays them out."""
    view = np.zeros(s.VIEW_NUMBERS, np.float32)
    basis = camera.basis()
    key, rim = light.directions(camera)
    # Any two axes across the light do, as long as they do not turn with the picture's contents.
    spare = basis[0] if abs(key @ basis[0]) < 0.9 else basis[1]
    across = np.cross(spare, key)
    across /= np.linalg.norm(across)
    view[s.EYE : s.EYE + 3] = np.subtract(camera.position, camera.target)
    view[s.RIGHT : s.RIGHT + 9] = basis.reshape(-1)
    view[s.FOCAL] = 0.5 * height / math.tan(0.5 * camera.fov)
    view[s.WIDTH], view[s.HEIGHT], view[s.SAMPLES] = width, height, samples
    view[s.NEAR], view[s.FINEST] = 0.01, FINEST_RIBBON
    view[s.LIGHT_AXES : s.LIGHT_AXES + 9] = np.concatenate([np.cross(key, across), across, key])
    view[s.RIM : s.RIM + 3] = rim
    view[s.KEY_COLOR : s.KEY_COLOR + 3] = light.key_color
    view[s.RIM_COLOR : s.RIM_COLOR + 3] = light.rim_color
    view[s.SKY_COLOR : s.SKY_COLOR + 3] = light.sky_color
    view[s.WORLD_UP : s.WORLD_UP + 3] = (0.0, 1.0, 0.0)
    view[s.BACK_MIDDLE : s.BACK_MIDDLE + 3] = linear((0.90, 0.905, 0.92))
    view[s.BACK_EDGE : s.BACK_EDGE + 3] = linear((0.66, 0.68, 0.72))
    view[s.SAMPLE_SHIFT] = 0.25 if samples > 1 else 0.0
    view[s.TRANSPARENT] = 1.0 if background == "transparent" else 0.0
    return view


def _check(width: int, height: int, background: str, detail: float, samples: int) -> None:
    """Refuse a picture that cannot be made."""
    for name, size in (("width", width), ("height", height)):
        if not 1 <= size <= 16384:
            raise HairkitError(f"image {name}: expected 1..16384 pixels, got {size}")
    if background not in ("studio", "transparent"):
        raise HairkitError(f"image background: expected studio or transparent, got {background!r}")
    if not 0.0 < detail <= 1.0:
        raise HairkitError(f"image detail: expected above 0 up to 1, got {detail}")
    if not 1 <= samples <= 8:
        raise HairkitError(f"image samples: expected 1..8, got {samples}")
