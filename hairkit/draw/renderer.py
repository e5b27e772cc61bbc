"""The host's side of drawing: launches the kernels in order, with the numbers that they take."""

import time
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hairkit.backend import current_session, ti
from hairkit.draw import shade as s
from hairkit.draw.camera import Camera, Light
from hairkit.draw.expand import carry_frames, expand
from hairkit.draw.fields import shared_fields
from hairkit.draw.follow import follow, turn_guides
from hairkit.draw.layers import Layers, nearest_samples, owners
from hairkit.draw.layout import Layout, Slot
from hairkit.draw.numbers import (
    distinct_meshes,
    hair_numbers,
    look_numbers,
    share_to_draw,
    view_numbers,
)
from hairkit.draw.raster import (
    ATOMIC,
    PACKED,
    PLAIN,
    TILE,
    clear,
    clear_keys,
    draw_mesh,
    farthest,
    pose_mesh,
    try_atomics,
    unpack,
)
from hairkit.draw.resolve import copy_pixels, resolve
from hairkit.draw.ribbons import ALL, EIGHTH, EVEN, ODD, draw_hairs
from hairkit.draw.shade import deposit, project, shade, sweep
from hairkit.errors import HairkitError

Background = Literal["studio", "transparent"]

_PLAIN_ROWS = 2**15
"""Points that one launch may count where a thread may use an atomic once."""
_GPU_FACE_PARTS = 32
"""Threads of a GPU for each mesh face: one alone would walk over all that a near face covers."""
_GRID_CELLS = ((2, 96), (8, 64), (24, 48))
"""Up to so many heads, so many cells along each axis of a head's light grid; 32 beyond."""


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
        self._fields = shared_fields(world.session)
        self._layout = Layout(self._fields)
        self._fields.ensure("changed", 2)
        self._mode = self._find_mode()
        self._face_parts = _GPU_FACE_PARTS if world.session.gpu else 1
        self._drawn = 0
        self._stages: dict[str, float] | None = None
        self._begun = 0.0

    def _claim(self) -> None:
        """Take the session's fields over from the world that drew last."""
        if self._fields.owner is not self:
            self._fields.owner = self
            self._layout.forget()

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
        thin: bool = True,
    ) -> NDArray[np.uint8]:
        """Draw the world as it is.

        Args:
            camera: Where to look from.
            width: Pixels across.
            height: Pixels down.
            light: What lights it; None is a studio's key, rim and sky.
            background: `studio` for a soft gradient, `transparent` for an alpha channel.
            detail: Share of the drawn hairs, above 0 up to 1; each is wider by its root, so that
                hair looks as full.
            samples: Samples across a pixel, both ways: 2 for video, 3 or 4 for stills.
            thin: Whether a far head, whose hairs would pile more than 24 deep, has fewer of them.

        Returns:
            sRGB picture, top row first, shape (height, width, 3), or 4 with straight alpha when
            transparent.

        Raises:
            HairkitError: A size, the detail or the background is out of range.
        """
        _check(width, height, background, detail, samples)
        self._claim()
        self._layout.update(list(self._world.hairs))
        slots = self._layout.slots
        shares = [share_to_draw(slot, camera, height) if thin else 1.0 for slot in slots]
        self._layout.thin([min(share, detail) for share in shares])
        fields = self._fields
        origin = np.asarray(camera.target, dtype=np.float64)
        light = light or Light()
        view = view_numbers(camera, light, width, height, background, samples)
        cells = next((c for most, c in _GRID_CELLS if len(slots) <= most), 32)
        pixels, grid = width * height * samples * samples, cells**3
        fields.ensure("sample_key", pixels + cells * cells)
        fields.ensure("sample_id", pixels + cells * cells)
        fields.best(pixels + cells * cells if self._mode == PACKED else 1)
        fields.ensure("box", max(len(slots), 1))
        fields.ensure("density", max(len(slots), 1) * grid)
        fields.ensure("light", max(len(slots), 1) * grid)
        fields.picture(width * height)
        tiles = -(-width * samples // TILE) * -(-height * samples // TILE)
        fields.ensure("tile_key", tiles)
        fields.launch(
            clear,
            pixels + cells * cells,
            len(slots),
            len(slots) * grid,
            tiles,
            self._mode,
            fields.sample_key,
            fields.sample_id,
            fields.sample_best,
            fields.box,
            fields.density,
            fields.tile_key,
        )
        numbers = [hair_numbers(slot, origin, view) for slot in slots]
        look = np.zeros((max(len(slots), 1), s.LOOK_NUMBERS), np.float32)
        for index, slot in enumerate(slots):
            look[index] = look_numbers(slot)
        fields.tables.send(
            fields.launch, view, look, numbers, [self._whole_numbers(slot) for slot in slots]
        )
        self._present()
        self._stage("")
        for index, slot in enumerate(slots):
            self._expand(index, slot)
            self._stage("expand")
            self._light(index, slot, cells, pixels)
            self._stage("light")
        shown = self._draw(float(view[s.SAMPLE_SHIFT]), cells, (width, height, samples))
        fields.launch(
            resolve,
            width,
            height,
            samples,
            cells,
            fields.tables.view,
            fields.tables.look,
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
        self._stage("rasterise")
        channels = 4 if background == "transparent" else 3
        image = np.zeros((width * height, channels), np.uint8)
        copy_pixels(width * height, channels, fields.pixel, image)
        return image.reshape(height, width, channels)

    def layers(self, camera: Camera, **options: Any) -> Layers:
        """Draw a picture and tell of each pixel how far it is and whose hair it shows.

        Args:
            camera: As `image`.
            options: As `image`.
        """
        image = self.image(camera, **options)
        height, width = image.shape[:2]
        samples = int(options.get("samples", 2))
        fields, count = self._fields, width * height * samples * samples
        if self._mode == PACKED:
            best = fields.sample_best.to_numpy()[:count]
            keys = (best >> np.uint64(32)).astype(np.uint32).view(np.int32)
        else:
            keys = np.ascontiguousarray(fields.sample_key.to_numpy()[:count])
        numbers = fields.sample_id.to_numpy()[:count]
        depth, number = nearest_samples(keys, numbers, width, height, samples)
        owner, guide, hair = owners(number, self._layout.slots)
        return Layers(image=image, depth=depth, owner=owner, guide=guide, hair=hair)

    def stages(self, camera: Camera, **options: Any) -> dict[str, float]:
        """Draw a picture and return what its stages took [ms]: expand, light, rasterise, shade.

        Args:
            camera: As `image`.
            options: As `image`.
        """
        self._stages = {}
        try:
            self.image(camera, **options)
            return self._stages
        finally:
            self._stages = None

    def _stage(self, name: str) -> None:
        """Add the time since the last call to a stage, if somebody asked for it."""
        if self._stages is None:
            return
        ti.sync()
        now = time.perf_counter()
        if name:
            self._stages[name] = self._stages.get(name, 0.0) + 1e3 * (now - self._begun)
        self._begun = now

    def hair_points(self, hair: Any) -> NDArray[np.float64]:
        """Return the drawn hairs of one hair as they are now, in the world.

        Args:
            hair: One of the world's hairs.

        Returns:
            Points root to tip [m], shape (hairs, points, 3), guide by guide.
        """
        self._claim()
        self._layout.update(list(self._world.hairs))
        self._layout.thin([1.0] * len(self._layout.slots))
        index = next((i for i, slot in enumerate(self._layout.slots) if slot.hair is hair), None)
        if index is None:
            raise HairkitError("hair_points: expected a hair of this renderer's world")
        self._fields.ensure("box", len(self._layout.slots))
        slot = self._layout.slots[index]
        origin = np.asarray(hair.origin, dtype=np.float64)
        view = np.zeros(s.VIEW_NUMBERS, np.float32)
        view[s.LIGHT_AXES : s.LIGHT_AXES + 9] = np.eye(3).reshape(-1)
        slots = self._layout.slots
        self._fields.tables.send(
            self._fields.launch,
            view,
            np.zeros((len(slots), s.LOOK_NUMBERS), np.float32),
            [hair_numbers(each, origin, view) for each in slots],
            [self._whole_numbers(each) for each in slots],
        )
        self._present()
        self._expand(index, slot)
        rows = self._fields.point.to_numpy()[slot.point_first : slot.point_first + slot.row_count]
        rows = rows.reshape(slot.hair_count, slot.point_count, 3).astype(np.float64) + origin
        if slot.lines is not None:
            given = np.zeros_like(rows)
            given[slot.lines.order] = rows
            return given
        return rows

    def _present(self) -> None:
        """Let the world bring guide points up to date."""
        self._world.present()

    def _whole_numbers(self, slot: Slot) -> NDArray[np.int32]:
        """Return the whole numbers that one hair's launches take, as `expand` lays them out."""
        first = int(slot.hair.strand_first)
        return np.array(
            [*slot.grids, first, slot.own_first, slot.hair_first, slot.kept, slot.full], np.int32
        )

    def _expand(self, index: int, slot: Slot) -> None:
        """Make one hair's drawn points."""
        fields, arena = self._fields, self._world.arena
        fields.ensure("guide_side", arena.guide_point.shape[0])
        first = int(slot.hair.strand_first)
        fields.launch(
            carry_frames,
            first,
            slot.strand_count,
            slot.own_first,
            index,
            fields.tables.hair[index],
            arena.guide_start,
            arena.guide_count,
            fields.strand_frame,
            arena.guide_point,
            fields.guide_side,
            fields.box,
        )
        if slot.lines is not None:
            self._follow(index, slot)
            return
        fields.launch(
            expand,
            slot.hair_count,
            slot.point_count,
            slot.point_first,
            fields.tables.hair[index],
            fields.tables.whole[index],
            arena.guide_start,
            arena.guide_count,
            fields.strand_frame,
            fields.hair_strand,
            fields.hair_trait,
            fields.distance,
            arena.guide_point,
            fields.guide_side,
            fields.point,
            fields.color,
        )

    def _follow(self, index: int, slot: Slot) -> None:
        """Make the points of drawn hairs that have lines of their own."""
        fields, arena = self._fields, self._world.arena
        first = int(slot.hair.strand_first)
        fields.ensure("guide_turn", arena.guide_point.shape[0])
        fields.launch(
            turn_guides,
            first,
            slot.strand_count,
            slot.rest_first,
            arena.guide_start,
            arena.guide_count,
            fields.guide_frame,
            arena.guide_point,
            fields.guide_side,
            fields.guide_turn,
        )
        fields.launch(
            follow,
            slot.hair_count,
            slot.point_count,
            slot.point_first,
            first,
            slot.rest_first,
            slot.line_first,
            slot.line_point_first,
            fields.tables.hair[index],
            fields.tables.whole[index],
            arena.guide_start,
            arena.guide_count,
            fields.guide_rest,
            fields.line_guide,
            fields.line_share,
            fields.line,
            fields.distance,
            arena.guide_point,
            fields.guide_turn,
            fields.point,
        )

    def _light(
        self,
        index: int,
        slot: Slot,
        cells: int,
        key_first: int,
    ) -> None:
        """Fill one head's light grid and put its hairs on the screen."""
        fields, first = self._fields, index * cells**3
        tables = fields.tables
        if index > 0:
            fields.launch(clear_keys, key_first, cells * cells, fields.sample_key)
        fields.launch(
            pose_mesh,
            slot.vertex_first,
            slot.vertex_count,
            index,
            cells,
            1,
            tables.hair[index],
            tables.view,
            fields.mesh_rest,
            fields.box,
            fields.mesh_world,
            fields.mesh_screen,
        )
        self._settle(
            PLAIN if self._mode == PLAIN else ATOMIC,
            draw_mesh,
            slot.face_first,
            slot.face_count,
            key_first,
            cells,
            cells,
            0,
            self._face_parts,
            0.0,
            fields.mesh_face,
            fields.mesh_screen,
            fields.sample_key,
            fields.sample_id,
        )
        # A thread of a driver without atomics in loops can count one point only.
        part = _PLAIN_ROWS if self._mode == PLAIN else slot.row_count
        for skip in range(0, slot.row_count, part):
            fields.launch(
                deposit,
                slot.point_first,
                skip,
                min(part, slot.row_count - skip),
                index,
                first,
                cells,
                tables.view,
                fields.point,
                fields.box,
                fields.density,
            )
        for axis in range(3):
            fields.launch(
                sweep,
                axis,
                index,
                first,
                cells,
                key_first,
                tables.look,
                fields.box,
                fields.density,
                fields.sample_key,
                fields.light,
            )
        fields.launch(
            project,
            slot.hair_count,
            slot.point_count,
            slot.point_first,
            index,
            tables.view,
            tables.look,
            fields.point,
            fields.screen,
            fields.shown,
        )

    def _draw(self, shift: float, cells: int, size: tuple[int, int, int]) -> int:
        """Rasterise every head and hair; return how many hairs."""
        fields, slots = self._fields, self._layout.slots
        width, height, samples = size
        columns, rows = width * samples, height * samples
        meshes = distinct_meshes(slots)
        for index in meshes:
            slot = slots[index]
            fields.launch(
                pose_mesh,
                slot.vertex_first,
                slot.vertex_count,
                index,
                cells,
                0,
                fields.tables.hair[index],
                fields.tables.view,
                fields.mesh_rest,
                fields.box,
                fields.mesh_world,
                fields.mesh_screen,
            )
        mode, packed = self._mode, self._mode == PACKED
        key = fields.sample_best if packed else fields.sample_key
        # Some hairs hide most of what the others would draw, and all of them what pass two would. A
        # GPU, which waits for memory, is done sooner with all at once.
        shares = [(0, EIGHTH), (0, EVEN), (0, ODD)]
        if self._world.session.gpu and mode != PLAIN:
            shares = [(0, ALL)]
        if not packed:
            shares.append((1, ALL))
        for number, (second, share) in enumerate(shares):
            for index in meshes if number == 0 or second == 1 else ():
                self._settle(
                    mode,
                    draw_mesh,
                    slots[index].face_first,
                    slots[index].face_count,
                    0,
                    columns,
                    rows,
                    second,
                    self._face_parts,
                    shift,
                    fields.mesh_face,
                    fields.mesh_screen,
                    key,
                    fields.sample_id,
                )
            for slot in slots:
                self._settle(
                    mode,
                    draw_hairs,
                    slot.hair_count,
                    share,
                    slot.point_count,
                    slot.point_first,
                    samples,
                    columns,
                    rows,
                    second,
                    shift,
                    fields.screen,
                    fields.tile_key,
                    key,
                    fields.sample_id,
                    extra=(fields.shown,),
                )
            if number + 1 < len(shares):
                fields.launch(farthest, mode, columns, rows, key, fields.tile_key)
        if packed:
            fields.launch(unpack, columns * rows, key, fields.sample_id, fields.shown)
        self._stage("rasterise")
        for index, slot in enumerate(slots):
            self._shade(index, slot, cells)
        self._stage("shade")
        return sum(slot.hair_count for slot in slots)

    def _settle(self, mode: int, kernel: Any, *arguments: Any, extra: tuple[Any, ...] = ()) -> None:
        """Launch a pass of the visibility buffer, again and again where stores are plain."""
        changed = self._fields.changed
        while True:
            if mode == PLAIN:
                changed[0] = 0
            self._fields.launch(kernel, mode, *arguments, changed, *extra)
            if mode != PLAIN or changed[0] == 0:
                return

    def _find_mode(self) -> int:
        """Return how samples can be stored here, one of `raster`'s modes."""
        session = current_session()
        if session is None or session.name != "vulkan":
            return PACKED
        # Vulkan need not have atomics of 64 bits; some software drivers have none in loops at all.
        changed = self._fields.changed
        changed[1] = 0
        try_atomics(5, changed)
        return PLAIN if changed[1] != 5 else ATOMIC

    def _shade(self, index: int, slot: Slot, cells: int) -> None:
        """Light what is seen of one head's hairs."""
        fields = self._fields
        fields.launch(
            shade,
            slot.hair_count,
            slot.point_count,
            slot.point_first,
            slot.hair_first,
            slot.kept,
            slot.full,
            index,
            index * cells**3,
            cells,
            fields.tables.view,
            fields.tables.look,
            fields.hair_trait,
            fields.point,
            fields.box,
            fields.light,
            fields.shown,
            fields.color,
        )


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
