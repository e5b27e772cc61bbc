"""From a style to points after a motion, and those points' derivatives by the style's keys."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hairkit.backend import open_session
from hairkit.errors import FitError, nearest
from hairkit.fitting.scene import Scene
from hairkit.fitting.tangent_fields import TangentFields
from hairkit.groom import Groom, grow
from hairkit.shapes import DistanceGrid
from hairkit.sim import columns as col
from hairkit.sim.arena import row_stride
from hairkit.sim.colliders import shape_row
from hairkit.sim.grids import grid_cells
from hairkit.sim.hair import ROUNDS, STIFF_BENDING, hold_spring, style_numbers
from hairkit.sim.layout import pack
from hairkit.sim.poses import pose_row
from hairkit.style import Style, style_keys

STEP = 1e-6
"""Central differences of what a style means go this share of a key's range to either side."""

MOST_HOLD = 0.98
"""Hair that is held more does not move enough to be told apart."""

PARAMETERS = {
    key.name: (float(key.low), float(key.high))
    for key in style_keys()
    if key.section in ("shape", "motion") or key.name == "shrinkage"
    if isinstance(key.low, float)
} | {"hold": (0.0, MOST_HOLD)}
"""Keys of a style that a shape can tell, and the range of each."""


def parameter_range(name: str) -> tuple[float, float]:
    """Return a parameter's lowest and highest value.

    Raises:
        FitError: It is no number that shapes or moves hair.
    """
    if name not in PARAMETERS:
        raise FitError(
            f"parameter {name!r}: expected one of {', '.join(PARAMETERS)}"
            f"{nearest(name, PARAMETERS)}"
        )
    return PARAMETERS[name]


class StrandModel:
    """A groom's points after one or several scenes, as a function of its style.

    The solver is `hairkit.World`'s own, function by function, one strand a thread. Derivatives are
    exact but for what the style means (rest pose, stiffness), which are central differences in f64;
    at a kink, where a point comes to touch something or a segment reaches its limit, they are those
    of one side.
    """

    def __init__(
        self,
        groom: Groom,
        scenes: Sequence[Scene],
        *,
        backend: str | None = None,
        precision: str | None = None,
        clock: float = 1.0 / 120.0,
    ) -> None:
        """Allocate fields; compiles nothing yet.

        Args:
            groom: Its roots, head, seed and number of points stay; its style is where it starts.
            scenes: What happens to it, each from the rest pose.
            backend: As `World`'s.
            precision: ``f64``, or ``f32``, whose derivatives agree with those to 1e-2, but for
                single strands that touch something from another side; by default ``f64``, on
                Vulkan, which has no f64 functions, ``f32``.
            clock: Time between two ticks [s].

        Raises:
            FitError: There is no scene, a frame is shorter than a tick, or the precision is
                another or not to be had.
            BackendError: The backend does not work here.
        """
        if not scenes:
            raise FitError("scenes: expected at least one, got none")
        if groom.given:
            raise FitError("groom: its strands were given, expected one that a style grew")
        self.groom = groom
        self.scenes = tuple(scenes)
        self.clock = clock
        # What the caller gave, and not the style, stays as it is.
        own = grow(
            groom.style,
            groom.head,
            roots=groom.roots,
            normals=groom.normals,
            seed=groom.seed,
            tied_to=groom.tied_to,
        )
        same = np.allclose(own.directions, groom.directions, atol=1e-9)
        self._directions = None if same else groom.directions
        self._lengths = None if np.allclose(own.lengths, groom.lengths) else groom.lengths
        if precision not in (None, "f32", "f64"):
            raise FitError(f"precision {precision!r}: expected f64 or f32")
        self._session = open_session(backend)
        vulkan = self._session.name == "vulkan"
        if vulkan and precision == "f64":
            raise FitError("precision 'f64': Vulkan has no f64 functions, expected f32 there")
        precision = precision or ("f32" if vulkan else "f64")
        layout = self._layout(groom)
        subticks = 1 if layout.stiffest <= STIFF_BENDING else 2
        self._tick = clock / subticks
        for index, scene in enumerate(self.scenes):
            if round(1.0 / (scene.rate * self._tick)) < 1:
                raise FitError(f"scene {index}: rate {scene.rate}, expected at most {1 / clock:g}")
        head = groom.head
        self._shapes = [
            (shape, follows)
            for shape, follows in ((head.body_shape, False), (head.head_shape, True))
            if shape is not None
        ]
        self._cells: list[int] = []
        grids: list[NDArray[np.float32]] = []
        first = 0
        for shape, _ in self._shapes:
            self._cells.append(first)
            if isinstance(shape, DistanceGrid):
                grids.append(grid_cells(shape))
                first += len(grids[-1])
        self._each = 1 + len(self._shapes)
        self._tables = [self._table(scene) for scene in self.scenes]
        self._fields = TangentFields(
            self._session,
            layout,
            max(scene.frames for scene in self.scenes) * self._each,
            max(len(scene.rows) for scene in self.scenes),
            np.concatenate(grids) if grids else np.zeros((0, 4), np.float32),
            precision,
        )
        strand = np.repeat(np.arange(len(groom.counts)), groom.counts)
        index = np.arange(len(groom.points)) - groom.starts[strand]
        self._at = layout.strand_row[strand] + index * self._fields.stride
        self.counts = groom.counts
        """Points of each strand, shape (strands,)."""
        self.runs = 0
        """How many times all scenes have been simulated; a derivative counts once more."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Frames looked at of all scenes, points, 3."""
        return sum(len(scene.rows) for scene in self.scenes), len(self.groom.points), 3

    def style(self, values: Mapping[str, float]) -> Style:
        """Return the groom's style with some keys changed."""
        return self.groom.style.replace(**values)

    def points(self, values: Mapping[str, float]) -> NDArray[np.float64]:
        """Simulate a style.

        Args:
            values: Keys of the style that differ from the groom's.

        Returns:
            Points of each frame looked at [m], scene by scene, shape (frames, points, 3).

        Raises:
            StyleError: A value is out of range.
            FitError: The style has another number of points, or hair went bad.
        """
        return self._run(self._inputs(values))[0]

    def derivatives(
        self, values: Mapping[str, float], names: Sequence[str]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Simulate a style, and how its points change with some of its keys.

        Args:
            values: Keys of the style that differ from the groom's.
            names: Keys to differentiate by.

        Returns:
            Points [m], shape (frames, points, 3), and their derivatives, (frames, points, 3, keys).

        Raises:
            StyleError: A value is out of range.
            FitError: A key cannot be fitted, the style has another number of points, or hair went
                bad.
        """
        inputs = self._inputs(values)
        full = self.groom.style.model_dump() | dict(values)
        columns = []
        points: NDArray[np.float64] | None = None
        for name in names:
            low, high = parameter_range(name)
            reach = STEP * min(high - low, 1.0)
            above = min(float(full[name]) + reach, high)
            below = max(float(full[name]) - reach, low)
            more = self._inputs({**values, name: above})
            less = self._inputs({**values, name: below})
            slope = [(a - b) / (above - below) for a, b in zip(more, less, strict=True)]
            points, column = self._run(inputs, slope)
            columns.append(column)
        if points is None:
            raise FitError("names: expected at least one key to differentiate by")
        return points, np.stack(columns, axis=-1)

    def _layout(self, groom: Groom) -> Any:
        return pack(groom, lanes=1, stride=row_stride(self._session), dtype=np.float64)

    def _inputs(self, values: Mapping[str, float]) -> list[NDArray[np.float64]]:
        """Return rows, frames and style numbers that a style means, all f64."""
        groom = self.groom
        style = self.style(values)
        grown = grow(
            style,
            groom.head,
            roots=groom.roots,
            normals=groom.normals,
            directions=self._directions,
            lengths=self._lengths,
            seed=groom.seed,
            tied_to=groom.tied_to,
        )
        if not np.array_equal(grown.counts, groom.counts):
            raise FitError("style: the number of points changed, expected what it was")
        layout = self._layout(grown)
        numbers = np.zeros(col.HAIR_COLUMNS)
        style_numbers(style, numbers)
        numbers[col.HOLD] = hold_spring(1.0 - style.hold)
        return [layout.rows[:, 0].astype(np.float64), layout.frames[:, 0], numbers]

    def _table(self, scene: Scene) -> NDArray[np.float64]:
        """Return a scene's rows of numbers, without what the style says."""
        ticks = round(1.0 / (scene.rate * self._tick))
        origin = np.zeros(3)
        table = np.zeros((scene.frames, self._each, col.HAIR_COLUMNS))
        rows = [pose_row(pose, origin) for pose in scene.poses]
        body = scene.poses[0]
        for frame in range(scene.frames):
            row = table[frame, 0]
            row[col.POSE_BEFORE : col.POSE_BEFORE + 7] = rows[frame]
            row[col.POSE_NOW : col.POSE_NOW + 7] = rows[frame + 1]
            row[col.WIND_BEFORE : col.WIND_BEFORE + 3] = scene.wind
            row[col.WIND_NOW : col.WIND_NOW + 3] = scene.wind
            row[col.GRAVITY : col.GRAVITY + 3] = scene.gravity
            row[col.TICKS] = ticks
            row[col.TICK_S] = 1.0 / (scene.rate * ticks)
            row[col.ALPHA_TICK] = 1.0 / ticks
            row[col.ROUNDS] = ROUNDS
            row[col.CONTACT_FIRST] = frame * self._each + 1
            row[col.CONTACT_COUNT] = len(self._shapes)
            for index, (shape, follows) in enumerate(self._shapes):
                contact = table[frame, 1 + index]
                contact[:10] = shape_row(shape, self._cells[index])[:10]
                contact[col.SLOT] = float(follows)
                contact[col.OWNER] = 1.0
                still = pose_row(body, origin)
                contact[col.COLLIDER_BEFORE :][:7] = rows[frame] if follows else still
                contact[col.COLLIDER_NOW :][:7] = rows[frame + 1] if follows else still
        return table

    def _fill(self, table: NDArray[np.float64], style: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return all rows of numbers for a scene's table, what the style says added."""
        rows = np.zeros((self._fields.numbers.shape[0], col.HAIR_COLUMNS))
        rows[: table.shape[0] * self._each] = table.reshape(-1, col.HAIR_COLUMNS)
        rows[: table.shape[0] * self._each : self._each] += style
        return rows

    def _run(
        self, inputs: list[NDArray[np.float64]], slope: list[NDArray[np.float64]] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return points after all scenes, and their derivatives along a slope of the inputs."""
        self.runs += 1
        played = [
            self._play(scene, table, inputs, slope)
            for scene, table in zip(self.scenes, self._tables, strict=True)
        ]
        points, derivatives = zip(*played, strict=True)
        return np.concatenate(points), np.concatenate(derivatives)

    def _play(
        self,
        scene: Scene,
        table: NDArray[np.float64],
        inputs: list[NDArray[np.float64]],
        slope: list[NDArray[np.float64]] | None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        self._session.check()
        fields = self._fields
        rows, frames, style = inputs
        fields.load(rows, frames, self._fill(table, style))
        if slope is not None:
            still = np.zeros_like(table)
            fields.load(slope[0], slope[1], self._fill(still, slope[2]), dual=True)
        shown = np.full(scene.frames, -1, np.int32)
        shown[scene.rows] = np.arange(len(scene.rows))
        fields.run(scene.frames, self._each, shown, tangent=slope is not None)
        count = len(scene.rows)
        points = fields.out.to_numpy()[:count, self._at].astype(np.float64)
        if not np.isfinite(points).all():
            raise FitError("hair went bad: its points are not finite; expected a calmer scene")
        if slope is None:
            return points, np.zeros_like(points)
        return points, fields.out.dual.to_numpy()[:count, self._at].astype(np.float64)
