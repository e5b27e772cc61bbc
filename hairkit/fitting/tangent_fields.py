"""Fields that carry a derivative beside each value, and the kernels that run the solver on them.

Forward mode gives the derivative of every point by one parameter, exactly, in memory that does not
grow with the steps. Taichi 1.7.4 adds a store's derivative to the one that is there, so every store
of the solver takes the old one away first (``hairkit.sim.rod.put``); stores here are made once.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hairkit.backend import Session, ti
from hairkit.sim import columns as col
from hairkit.sim.arena import SCRATCH, row_stride
from hairkit.sim.ends import to_rest
from hairkit.sim.kernels import THREAD_TURNS, move
from hairkit.sim.layout import Layout
from hairkit.sim.rod import pose_between, put

GIVEN = (*range(col.REST, col.REST + 3), *range(col.CURVATURE, col.CURVATURE + 3))
GIVEN = (*GIVEN, col.BEND, col.LENGTH, col.THICKNESS)
"""The arena's columns that a layout's rows hold, in their order."""


class TangentFields:
    """The solver's fields for one groom, each with its derivative; a strand is a block.

    It stands in for an arena: it has all that the solver's functions ask of one.
    """

    differentiable = True
    lanes = 1

    def __init__(
        self,
        session: Session,
        layout: Layout,
        numbers: int,
        shown: int,
        cells: NDArray[Any],
        precision: str = "f64",
    ) -> None:
        """Allocate the fields; compiles nothing yet.

        Args:
            session: The runtime that owns the fields.
            layout: Where the strands lie.
            numbers: Rows of the table of numbers.
            shown: Frames that are looked at.
            cells: Distance grids' values and directions, shape (cells, 4).
            precision: Of all fields, ``f64`` or ``f32``. What a kernel works out from them is of
                the same, whatever the session's default is.
        """
        real = {"f32": ti.f32, "f64": ti.f64}[precision]
        self.dtype = {"f32": np.float32, "f64": np.float64}[precision]
        """The values' type in NumPy."""
        self.session = session
        self.stride = row_stride(session)
        rows, blocks = layout.row_count, len(layout.blocks)

        def field(shape: int | tuple[int, ...]) -> Any:
            return ti.field(real, shape=shape, needs_dual=True)

        self.row = [field(rows) for _ in range(col.ROW_COLUMNS)]
        self.scratch = [field(rows) for _ in range(SCRATCH)]
        self.known = field((rows, col.KNOWN_COLUMNS))
        self.frame = [field(blocks) for _ in range(3)]
        self.numbers = field((numbers, col.HAIR_COLUMNS))
        self.out = field((shown, rows, 3))
        self.shown = ti.field(ti.i32, shape=numbers)
        self.block_motion = ti.field(real, shape=blocks)
        self.block_row = ti.field(ti.i32, shape=blocks)
        self.block_points = ti.field(ti.i32, shape=blocks)
        self.grid_value = ti.Vector.field(4, real, shape=max(len(cells), 1))
        self.block_row.from_numpy(np.ascontiguousarray(layout.blocks[:, 0]))
        self.block_points.from_numpy(np.ascontiguousarray(layout.blocks[:, 1]))
        if len(cells):
            self.grid_value.from_numpy(cells.astype(self.dtype))
        # Forward mode asks for a result and a parameter; ours are the fields themselves.
        self._result = ti.field(real, shape=(), needs_dual=True)
        self._parameter = ti.field(real, shape=(1,), needs_dual=True)

    def load(
        self, rows: NDArray[Any], frames: NDArray[Any], numbers: NDArray[Any], *, dual: bool = False
    ) -> None:
        """Write the solver's inputs, or their derivatives.

        Args:
            rows: As a layout has them, shape (rows, 9).
            frames: Normals of the root edges, shape (blocks, 3).
            numbers: Rows of numbers, one frame's after the other's.
            dual: Whether these are derivatives.
        """

        def write(field: Any, values: NDArray[Any]) -> None:
            target = field.dual if dual else field
            target.from_numpy(np.ascontiguousarray(values, self.dtype))

        for column, values in zip(GIVEN, rows.T, strict=True):
            write(self.row[column], values)
        for column in range(3):
            write(self.frame[column], frames[:, column])
        write(self.numbers, numbers)

    def run(self, frames: int, each: int, shown: NDArray[np.int32], *, tangent: bool) -> None:
        """Play all frames from the rest pose.

        Args:
            frames: How many.
            each: Rows of numbers of one frame.
            shown: For each frame the row of the result it goes to, or -1.
            tangent: Whether derivatives are carried along.
        """
        self.known.fill(0.0)
        self.shown.from_numpy(np.resize(shown, self.shown.shape))
        arguments = (frames, each, self.session.gpu, self)
        if not tangent:
            play(*arguments)
            return
        for field in (self.known, self.out):
            field.dual.fill(0.0)
        with ti.ad.FwdMode(
            loss=self._result, param=self._parameter, seed=[1.0], clear_gradients=False
        ):
            play(*arguments)


@ti.kernel
def play(
    frames: ti.i32,
    each: ti.i32,
    many: ti.template(),
    arena: ti.template(),
):
    """Move every strand through all frames, in whole ticks, and keep the frames asked for.

    Args:
        frames: How many.
        each: Rows of numbers of one frame: the hair's, then its colliders'.
        many: Whether every strand has a thread of its own, as on a GPU.
        arena: The fields.
    """
    turns = ti.static(1 if many else THREAD_TURNS)
    for task in range(arena.block_row.shape[0] * turns):
        if task % turns == 0:
            b = task // turns
            r0 = arena.block_row[b]
            count = arena.block_points[b]
            turn, moved = pose_between(arena.numbers, 0, col.POSE_BEFORE, col.POSE_NOW, 0.0)
            to_rest(arena, turn, moved, r0, count)
            for i in range(count):
                put(arena, arena.row[col.CARRIED], r0 + i * ti.static(arena.stride), 0.0)
            for f in range(frames):
                hair = f * each
                ticks = ti.cast(arena.numbers[hair, col.TICKS], ti.i32)
                h = arena.numbers[hair, col.TICK_S]
                share = arena.numbers[hair, col.ALPHA_TICK]
                for tick in range(ticks):
                    alpha = (tick + 1) * share
                    before = tick * share
                    move(
                        arena,
                        arena.numbers,
                        hair,
                        b,
                        r0,
                        r0,
                        count,
                        h,
                        before,
                        alpha,
                        False,
                        tick == ticks - 1,
                    )
                if arena.shown[f] >= 0:
                    for i in range(count):
                        r = r0 + i * ti.static(arena.stride)
                        for c in ti.static(range(3)):
                            arena.out[arena.shown[f], r, c] = arena.row[col.POSITION + c][r]
