"""Distance grids in the arena: one copy of each, however many heads and colliders use it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hairkit.backend import Session
from hairkit.shapes import DistanceGrid, Shape
from hairkit.sim import kernels


@dataclass
class _Entry:
    shape: DistanceGrid
    first: int
    count: int
    users: int = 1


def take_grid(session: Session, shape: Shape) -> int:
    """Return a shape's first cell in the session's arena, loaded at its first use.

    The arena grows until there is room. A shape that is no grid has no cells: 0.
    """
    if not isinstance(shape, DistanceGrid):
        return 0
    entries = session.shared.setdefault("grids", {})
    entry = entries.get(id(shape))
    if entry is not None:
        entry.users += 1
        return entry.first
    values = grid_cells(shape)
    arena = session.shared["arena"]
    first = arena.cell_space.take(len(values))
    while first is None:
        arena = arena.grown(points=arena.max_points, cells=arena.max_cells * 2)
        first = arena.cell_space.take(len(values))
    kernels.load_grid(len(values), first, values, arena)
    # The entry keeps the shape, so that no other can come to have its identity.
    entries[id(shape)] = _Entry(shape, first, len(values))
    return first


def grid_cells(shape: DistanceGrid) -> NDArray[np.float32]:
    """Return a grid's distances [m] and directions out, cell by cell, shape (cells, 4)."""
    values = np.stack([shape.values, *np.gradient(shape.values)], axis=-1, dtype=np.float32)
    return values.reshape(-1, 4)


def give_grid(session: Session, shape: Shape) -> None:
    """Take note that a user of a grid is gone; the last one frees its cells."""
    entries = session.shared.get("grids", {})
    entry = entries.get(id(shape))
    if entry is None:
        return
    entry.users -= 1
    if entry.users == 0:
        session.shared["arena"].cell_space.give(entry.first, entry.count)
        del entries[id(shape)]
