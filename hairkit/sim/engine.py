"""What a world does below its face: rows of tables, contacts, and launches of the solver."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hairkit.backend import Session, bind, ti
from hairkit.sim import columns as col
from hairkit.sim import kernels
from hairkit.sim.arena import Arena, shared_arena
from hairkit.sim.chains import Chains
from hairkit.sim.colliders import Collider, lay_contacts
from hairkit.sim.hair import Hair, style_numbers
from hairkit.sim.poses import pose_row

GRAVITY = (0.0, -9.81, 0.0)
SMALL_BLOCKS = 24
"""Fewer blocks than this run in the calling thread: waking others costs more than they save."""


class Engine:
    """The rows that hair has in the arena and in the tables that travel with every launch."""

    def __init__(self, session: Session, max_points: int) -> None:
        """Hold nothing yet.

        Args:
            session: The runtime.
            max_points: Guide points there is room for before the arena grows.
        """
        self.session = session
        self.hairs: list[Hair] = []
        self.chains: list[Chains] = []
        self.colliders: list[Collider] = []
        self.time = 0.0
        """Time simulated so far [s]."""
        self.steps = 0
        self.active_changed = True
        self._contacts_changed = True
        self._wind = np.zeros(3)
        self._gust = 0.0
        self._gravity = np.array(GRAVITY)
        self._air_changed = True
        shared_arena(self.session, max_points)
        self._lay_table(np.zeros((16, col.HAIR_COLUMNS), np.float32), np.zeros((1, 1)))
        self._active: Any = None
        self._bound: tuple[Any, Callable[[], Any]] | None = None
        self._active_count = 0

    @property
    def arena(self) -> Arena:
        """The session's fields, the same for all its worlds; it changes when it grows."""
        return self.session.shared["arena"]

    @property
    def _moving(self) -> list[Hair]:
        """Hair and chains alike."""
        return [*self.hairs, *self.chains]

    @property
    def _used(self) -> int:
        return max((h.index + 1 for h in self._moving), default=0)

    def _spaces(self) -> dict[str, Any]:
        arena = self.arena
        return {
            "row": arena.row_space,
            "block": arena.block_space,
            "strand": arena.strand_space,
            "point": arena.point_space,
            "hair": arena.hair_space,
        }

    def _take(self, wanted: dict[str, int]) -> dict[str, int]:
        """Take rows of every table, growing the arena until there is room."""
        while True:
            spaces = self._spaces()
            taken: dict[str, int] = {}
            for name, count in wanted.items():
                first = spaces[name].take(count)
                if first is None:
                    break
                taken[name] = first
            if len(taken) == len(wanted):
                return taken
            for name, first in taken.items():
                spaces[name].give(first, wanted[name])
            self.arena.grown(points=self.arena.max_points * 2, cells=self.arena.max_cells)

    def _write_hair(self, hair: Hair) -> None:
        """Fill in what does not change from step to step."""
        if hair.index >= len(self._numbers):
            wider = np.zeros((2 * (hair.index + 1), col.HAIR_COLUMNS), np.float32)
            wider[: len(self._numbers)] = self._numbers
            self._lay_table(wider, self._contacts)
            self._contacts_changed = True
        row = self._numbers[hair.index]
        row[:] = 0.0
        row[col.POSE_BEFORE : col.POSE_BEFORE + 7] = pose_row(hair.head_pose, hair.origin)
        row[col.POSE_NOW : col.POSE_NOW + 7] = row[col.POSE_BEFORE : col.POSE_BEFORE + 7]
        style_numbers(hair.groom.style, row)
        hair.write_air(row, self._blowing(), self._gravity)
        row[col.WIND_BEFORE : col.WIND_BEFORE + 3] = row[col.WIND_NOW : col.WIND_NOW + 3]

    def _blowing(self) -> NDArray[np.float64]:
        """Return the wind with its gusts at the time now: sines whose periods share no multiple."""
        if self._gust == 0.0:
            return self._wind
        t = self.time
        wave = (
            0.5 * math.sin(1.3 * t) + 0.3 * math.sin(3.1 * t + 1.0) + 0.2 * math.sin(7.7 * t + 2.0)
        )
        return self._wind * (1.0 + self._gust * wave)

    def _write_air(self) -> None:
        gusty = self._gust > 0.0 and bool(self._wind.any())
        wind = self._blowing()
        for hair in self._moving:
            hair.write_air(self._numbers[hair.index], wind, self._gravity)
            if gusty and hair.wind > 0.0:
                hair.wake()
        if self._air_changed:
            self._air_changed = False
            self._wake()

    def _wake(self) -> None:
        for hair in self._moving:
            hair.wake()

    def _refresh(self) -> None:
        """Bring the tables of contacts and of active blocks up to date."""
        if self._contacts_changed:
            self._contacts_changed = False
            contacts = lay_contacts(self._moving, self.colliders, self._numbers)
            self._lay_table(self._numbers, contacts)
        moved = [(i, c) for i, c in enumerate(self.colliders) if c.moved]
        for hair in self._moving:
            first = hair.contact_rows[0]
            for index, collider in moved:
                self._contacts[first + index, col.COLLIDER_NOW : col.COLLIDER_NOW + 7] = pose_row(
                    hair.in_units(collider.pose), hair.origin
                )
            at = first + len(self.colliders)
            for _, _, follows in hair.shapes:
                now = self._contacts[at, col.COLLIDER_NOW : col.COLLIDER_NOW + 7]
                if follows:
                    now[:] = self._numbers[hair.index, col.POSE_NOW : col.POSE_NOW + 7]
                elif hair.body_pose is not hair.body_seen:
                    now[:] = pose_row(hair.body_pose, hair.origin)
                    hair.body_seen = hair.body_pose
                at += 1
        for _, collider in moved:
            collider.moved = False
        if moved:
            self._wake()
        if self.active_changed:
            self._list_active()

    def _lay_table(self, numbers: NDArray[Any], contacts: NDArray[Any]) -> None:
        """Put hair's rows and, below them, contacts' rows into one array: one argument a launch."""
        split = len(numbers)
        self._table = np.zeros((split + len(contacts), col.HAIR_COLUMNS), np.float32)
        self._table[:split] = numbers
        self._table[split:, : contacts.shape[1]] = contacts
        self._numbers = self._table[:split]
        self._contacts = self._table[split:]

    def _list_active(self) -> None:
        self.active_changed = False
        blocks = [
            np.arange(h._rows["block"], h._rows["block"] + h.block_count)
            for h in self._moving
            if not h.at_rest
        ]
        listed = np.concatenate(blocks).astype(np.int32) if blocks else np.zeros(0, np.int32)
        self._active_count = len(listed)
        if len(listed):
            self._active = ti.ndarray(ti.i32, len(listed))
            self._active.from_numpy(listed)

    def _launch(self, force: list[Hair] | None = None) -> None:
        """Run the solver over the active blocks, or over some hair's blocks alone."""
        active, count = self._active, self._active_count
        if force is not None:
            listed = np.concatenate(
                [np.arange(h._rows["block"], h._rows["block"] + h.block_count) for h in force]
            ).astype(np.int32)
            active, count = ti.ndarray(ti.i32, len(listed)), len(listed)
            active.from_numpy(listed)
        if not count:
            return
        arena = self.arena
        serial = not self.session.gpu and self.session.threads == 1
        if self.session.gpu:
            chunks, each = count, 1
        else:
            # A chunk is a thread's turn; a few blocks are one chunk, since a second thread costs
            # more than it saves.
            chunks = 1 if serial or count < SMALL_BLOCKS else min(arena.chunks, count)
            each = -(-count // chunks)
        before = time.perf_counter()
        self._table[0, col.ACTIVE_COUNT] = count
        self._table[0, col.CHUNK_BLOCKS] = each
        wanted = (chunks, serial, arena, active, self._table)
        bound = self._bound
        if bound is None or not (
            bound[0][:2] == wanted[:2]
            and all(a is b for a, b in zip(bound[0][2:], wanted[2:], strict=True))
        ):
            bound = self._bound = (wanted, bind(kernels.advance, *wanted))
        bound[1]()
        key = ("advance", id(arena), serial)
        seen = self.session.shared.setdefault("launched", set())
        if key not in seen:
            seen.add(key)
            ti.sync()
            spent = self.session.shared.get("compile_s", 0.0) + time.perf_counter() - before
            self.session.shared["compile_s"] = spent

    def _try_sleep(self, hair: Hair) -> None:
        if not hair.may_sleep():
            return
        speed = kernels.most_motion(hair._rows["block"], hair.block_count, self.arena)
        hair.seen_at(speed)

    def _rebase(self, hair: Hair) -> None:
        """Take a hair's origin along with its head, so that f32 stays exact anywhere."""
        new = np.round(hair._next_head[:3, 3] * 16.0) / 16.0
        shift = hair.origin - new
        hair.origin = new
        kernels.move_origin(hair.row_count, hair._rows["row"], *shift.tolist(), self.arena)
        row = self._numbers[hair.index]
        for first in (col.POSE_BEFORE, col.POSE_NOW):
            row[first + 4 : first + 7] += shift.astype(np.float32)
        at, count = hair.contact_rows
        for first in (col.COLLIDER_BEFORE, col.COLLIDER_NOW):
            self._contacts[at : at + count, first + 4 : first + 7] += shift.astype(np.float32)

    def carry(self, hair: Hair, old: NDArray[np.float64], new: NDArray[np.float64]) -> None:
        """Carry a hair's points along as its head goes at once from one pose to another."""
        change = new @ np.linalg.inv(old)
        origin = hair.origin
        rows = np.zeros((3, 4), np.float32)
        rows[:, :3] = change[:3, :3]
        rows[:, 3] = change[:3, :3] @ origin + change[:3, 3] - origin
        kernels.carry_rows(hair.row_count, hair._rows["row"], rows, self.arena)
        row = self._numbers[hair.index]
        row[col.POSE_BEFORE : col.POSE_BEFORE + 7] = pose_row(new, origin)
        row[col.POSE_NOW : col.POSE_NOW + 7] = row[col.POSE_BEFORE : col.POSE_BEFORE + 7]
