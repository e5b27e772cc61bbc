"""The one growing arena of Taichi fields that all guides of a session share.

A kernel compiles again for each new field, so hair that comes later moves into rows of fields that
are there. Fields cannot be freed safely: when the rows run out, an arena of twice the size is made
and the old one stays behind.
"""

import warnings
from typing import Any

import numpy as np

from hairkit.backend import Session, ti
from hairkit.errors import WorldError
from hairkit.sim import columns as col

WARP = 32
"""Strands that a GPU keeps next to each other: their points lie in neighbouring addresses."""

SCRATCH = 21
"""Scratch numbers a point: where the step began, and what the sweeps hand each other."""

CHUNKS_PER_THREAD = 4
"""Parts that a parallel launch is cut into for each CPU thread."""

_LONGEST = 1024
"""Most points of one strand; scratch rows of a CPU chunk."""


def row_stride(session: Session) -> int:
    """Return how many rows one point of a strand is after the one before."""
    return WARP if session.gpu else 1


class Intervals:
    """Free rows of a table, handed out and taken back as whole intervals, first fit."""

    def __init__(self, size: int) -> None:
        """Begin with everything free."""
        self.size = size
        self._free = [(0, size)]

    def take(self, count: int) -> int | None:
        """Return the first row of ``count`` free ones, now taken, or None."""
        for index, (first, last) in enumerate(self._free):
            if last - first >= count:
                self._free[index] = (first + count, last)
                if first + count == last:
                    del self._free[index]
                return first
        return None

    def give(self, first: int, count: int) -> None:
        """Take rows back, joined with the free ones next to them."""
        spans = sorted([*self._free, (first, first + count)])
        joined = [spans[0]]
        for low, high in spans[1:]:
            if low == joined[-1][1]:
                joined[-1] = (joined[-1][0], high)
            else:
                joined.append((low, high))
        self._free = joined

    def grow(self, size: int) -> None:
        """Add free rows at the end."""
        if size > self.size:
            old, self.size = self.size, size
            self.give(old, size - old)

    @property
    def free(self) -> int:
        """How many rows are free."""
        return sum(high - low for low, high in self._free)


class Arena:
    """Fields for guide points, strands and distance grids.

    On the CPU a row is one point of eight strands, a vector; a block is eight strands whose rows
    follow each other. On a GPU a row is one point of one strand, a block is a strand, and 32
    strands take turns row by row (:attr:`stride`), so that threads next to each other read
    addresses next to each other.
    """

    def __init__(self, session: Session, max_points: int, max_cells: int) -> None:
        """Allocate the fields; compiles nothing yet.

        Args:
            session: The runtime that owns the fields.
            max_points: Guide points there is room for.
            max_cells: Cells of distance grids there is room for.
        """
        self.session = session
        self.lanes = session.lanes
        self.differentiable = False
        self.stride = row_stride(session)
        self.max_points = max_points
        self.max_cells = max_cells
        rows = max_points // self.lanes
        blocks = max(rows // 4, WARP)
        strands = max(max_points // 4, WARP)
        self.row_space = Intervals(rows)
        self.block_space = Intervals(blocks)
        self.strand_space = Intervals(strands)
        self.point_space = Intervals(max_points)
        self.cell_space = Intervals(max_cells)
        self.hair_space = Intervals(max(blocks, 64))

        self.row = self._rows(rows, col.ROW_COLUMNS)
        # The one table whose column is known only when it runs.
        known = (rows, col.KNOWN_COLUMNS)
        self.known = (
            ti.field(ti.f32, known, order="ji")
            if session.gpu
            else ti.Vector.field(self.lanes, ti.f32, known)
        )
        self.frame = self._rows(blocks, 3)
        self.chunks = 1 if session.gpu else max(1, session.threads * CHUNKS_PER_THREAD)
        self.scratch = self._rows(rows if session.gpu else self.chunks * _LONGEST, SCRATCH)
        self.longest = _LONGEST

        self.block_row = ti.field(ti.i32, blocks)
        self.block_points = ti.field(ti.i32, blocks)
        self.block_hair = ti.field(ti.i32, blocks)
        self.block_motion = ti.field(ti.f32, blocks)
        self.hair_resets = ti.field(ti.i32, max(blocks, 64))

        self.strand_row = ti.field(ti.i32, strands)
        self.strand_lane = ti.field(ti.i32, strands)
        self.strand_hair = ti.field(ti.i32, strands)
        self.strand_rigid = ti.field(ti.i32, strands)
        self.guide_start = ti.field(ti.i32, strands)
        self.guide_count = ti.field(ti.i32, strands)
        self.guide_point = ti.Vector.field(3, ti.f32, max_points)

        self.grid_value = ti.Vector.field(4, ti.f32, max_cells)

    def _rows(self, rows: int, columns: int) -> list[Any]:
        """Return one field a column.

        On the CPU the columns of a row lie next to each other in one cell: fields that lie a power
        of two apart throw each other out of the cache (twice the time a point), and a column at a
        fixed place in its cell costs no arithmetic, as one found by an index does. On a GPU
        neighbouring rows, which neighbouring threads read, are neighbouring addresses.
        """
        if self.session.gpu:
            return [ti.field(ti.f32, shape=rows) for _ in range(columns)]
        fields = [ti.Vector.field(self.lanes, ti.f32) for _ in range(columns)]
        ti.root.dense(ti.i, rows).place(*fields)
        return fields

    def grown(self, *, points: int, cells: int) -> "Arena":
        """Return an arena of at least this capacity with everything of this one in it; warns."""
        warnings.warn(
            f"the arena of {self.max_points} guide points and {self.max_cells} grid cells is "
            f"full: it grows to {points} and {cells}, and kernels compile again "
            "(World(max_points=...) avoids it)",
            stacklevel=4,
        )
        wider = Arena(self.session, points, cells)
        for name in (
            "row_space",
            "block_space",
            "strand_space",
            "point_space",
            "cell_space",
            "hair_space",
        ):
            space: Intervals = getattr(self, name)
            space.grow(getattr(wider, name).size)
            setattr(wider, name, space)
        _copy_rows(self.max_points // self.lanes, self, wider)
        _copy_frames(self.frame[0].shape[0], self, wider)
        for name, old in vars(self).items():
            if isinstance(old, list) or name == "known" or not hasattr(old, "to_numpy"):
                continue
            new = getattr(wider, name)
            values = old.to_numpy()
            whole = np.zeros((*new.shape, *values.shape[len(new.shape) :]), values.dtype)
            whole[tuple(slice(0, n) for n in values.shape)] = values
            new.from_numpy(whole)
        self.session.shared["arena"] = wider
        return wider


@ti.kernel
def _copy_rows(count: ti.i32, old: ti.template(), new: ti.template()):
    for r in range(count):
        for c in ti.static(range(col.ROW_COLUMNS)):
            new.row[c][r] = old.row[c][r]
        for c in range(col.KNOWN_COLUMNS):
            new.known[r, c] = old.known[r, c]


@ti.kernel
def _copy_frames(count: ti.i32, old: ti.template(), new: ti.template()):
    for b in range(count):
        for c in ti.static(range(3)):
            new.frame[c][b] = old.frame[c][b]


def shared_arena(session: Session, max_points: int, max_cells: int = 2**20) -> Arena:
    """Return the session's arena, made at the first call, grown if it is smaller than asked for.

    Raises:
        WorldError: ``max_points`` is out of range.
    """
    if not 64 <= max_points <= 2**28:
        raise WorldError(f"max_points {max_points}: expected 64 to {2**28}")
    rounded = 1 << (int(max_points) - 1).bit_length()
    arena = session.shared.get("arena")
    if arena is None:
        arena = session.shared["arena"] = Arena(session, rounded, max_cells)
    elif arena.max_points < rounded:
        arena = arena.grown(points=rounded, cells=arena.max_cells)
    return arena
