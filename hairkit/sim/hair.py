"""One head's hair in a world: its rows, its head, and how freely it moves."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hairkit.errors import WorldError
from hairkit.groom import Groom
from hairkit.shapes import Shape
from hairkit.sim import columns as col
from hairkit.sim.checks import check_pose, number
from hairkit.sim.layout import Layout
from hairkit.sim.poses import pose_row
from hairkit.style import Style
from hairkit.style.model import HOLD_AT_HALF

if TYPE_CHECKING:
    from hairkit.sim.world import World

QUIET_S = 0.5
"""Nothing may have changed for this long before hair may sleep [s]."""

SLEEP_SPEED = 1.2e-3
"""Hair whose fastest point is slower than this twice in a row may sleep [m/s]: once alone may be
the turn of a swing, and pressed hair may tremble by micrometres for ever."""

REBASE_M = 1.0
"""A head farther than this from its hair's origin takes the origin along [m]."""

LIVELY = 0.75
"""Hair of no more motion than this takes ticks twice as long while its head is calm."""

CALM_S = 0.5
"""A head is calm when it has been slow for this long [s]."""

SLOW = 0.4
"""Speed of a head up to which it is slow, that of its turn at REACH_M included [m/s]."""

REACH_M = 0.15
"""How far from the head's origin its turn counts [m]."""

EASE_S = 0.2
"""Time in which a change of ``hold`` or ``motion`` is taken up to a third [s]."""

STIFF_BENDING = 1e6
"""Bending stiffness over which hair takes two ticks of the clock for one [1/s^2]."""

ROUNDS = 8.0
"""Most rounds of length solve and contact in a tick."""

BEND_DAMPING_S = 0.03
"""Internal damping of bending [s]: at w rad/s, w * BEND_DAMPING_S / 2 of critical damping.

It also makes up for the terms that the matrix leaves out: at 1/120 s wide curls need 0.03 s to
come to rest."""


class Hair:
    """A groom that moves in a world; made by ``World.add_hair``.

    What can be set at any time between steps, without a jump and without compiling: :attr:`wind`,
    :attr:`motion`, :attr:`hold`, :meth:`set_head`, :meth:`set_body`.
    """

    def __init__(
        self,
        world: "World",
        groom: Groom,
        pose: NDArray[np.float64],
        layout: Layout,
        rows: dict[str, int],
    ) -> None:
        """Keep where the hair's rows are; ``World.add_hair`` is the way to make one."""
        self.groom = groom
        self.counts = np.asarray(groom.counts, np.int32)
        """Points of each strand, shape (strands,)."""
        self.origin = np.round(pose[:3, 3] * 16.0) / 16.0
        """World position that the points in the arena are relative to [m], shape (3,)."""
        self.head_pose = pose
        """The head's frame to the world's at the end of the last step, shape (4, 4)."""
        self.body_pose = pose
        """The same for neck and shoulders, which do not follow the head."""
        self.sleeping = False
        """Whether it is at rest and not simulated until something changes."""
        self.subticks = 1 if layout.stiffest <= STIFF_BENDING else 2
        """Steps of the solver in one tick of the world's clock; stiff hair takes two."""

        self._world = world
        self._rows = rows
        self._next_head = pose
        self._next_body = pose
        self._wind = 1.0
        self._motion = 1.0
        self._hold = float(groom.style.hold)
        self._freedom = 1.0 - self._hold
        self._fresh = True
        self._reset = False
        self._host_resets = 0
        self._quiet = 0.0
        self._checked = 0.0
        self._still = 0
        self._phase = 0.0
        self._calm = 0.0
        self.row_count = layout.row_count
        self.block_count = len(layout.blocks)
        self.contact_rows: tuple[int, int] = (0, 0)
        self.shapes: list[tuple[Shape, list[float], bool]] = []
        self.body_seen = pose

    @property
    def strand_first(self) -> int:
        """Its first row in the arena's strand table."""
        return self._rows["strand"]

    @property
    def strand_count(self) -> int:
        """How many strands it has."""
        return len(self.counts)

    @property
    def index(self) -> int:
        """Its row in the table of numbers."""
        return self._rows["hair"]

    @property
    def wind(self) -> float:
        """Share of the world's wind that reaches this hair; 0 indoors, 1 by default, at least 0."""
        return self._wind

    @wind.setter
    def wind(self, value: float) -> None:
        self._wind = number("hair.wind", value, 0.0, 100.0)
        self.wake()

    @property
    def motion(self) -> float:
        """How freely it moves: 1 natural, less closer to its style and cheaper, 0 not simulated."""
        return self._motion

    @motion.setter
    def motion(self, value: float) -> None:
        self._motion = number("hair.motion", value, 0.0, 1.0)
        self.wake()

    @property
    def hold(self) -> float:
        """How strongly it keeps its rest pose, at first the style's: 0 hangs free, 1 rigid."""
        return self._hold

    @hold.setter
    def hold(self, value: float) -> None:
        self._hold = number("hair.hold", value, 0.0, 1.0)
        self.wake()

    @property
    def at_rest(self) -> bool:
        """Whether the solver leaves it alone at present."""
        return self.sleeping or self.solid

    @property
    def solid(self) -> bool:
        """Whether it turns rigidly with the head at present."""
        return self._freedom == 0.0

    def set_head(self, pose: Any) -> None:
        """Say where the head is at the end of the next step; it moves evenly there during the step.

        A pose that is not finite, or beyond 1e7 m, is not taken: the hair goes back to its rest
        pose in the head as it last was, the other hair of the world never notices, and
        ``World.resets`` counts it.

        Args:
            pose: The head's frame to the world's, shape (4, 4), rotation and translation [m].

        Raises:
            WorldError: Not a (4, 4) matrix, or not a rotation and a translation.
        """
        matrix = check_pose(pose, "head pose")
        if matrix is None:
            self._reset = True
            self._host_resets += 1
            self.wake()
            return
        if not np.array_equal(matrix, self._next_head):
            self._next_head = matrix
            self.wake()

    def set_body(self, pose: Any) -> None:
        """Say where neck and shoulders are at the end of the next step; still until told.

        Args:
            pose: Their frame, which is the head's at its first pose, to the world's, shape (4, 4).

        Raises:
            WorldError: Not a rotation and a translation, or not finite.
        """
        matrix = check_pose(pose, "body pose")
        if matrix is None:
            raise WorldError("body pose: expected finite numbers below 1e7 m")
        if not np.array_equal(matrix, self._next_body):
            self._next_body = matrix
            self.wake()

    def reset(self) -> None:
        """Put it back into its rest pose in the head, still, at the next step."""
        self._reset = True
        self.wake()

    def wake(self) -> None:
        """Simulate it again if it sleeps."""
        self._quiet = 0.0
        self._checked = 0.0
        self._still = 0
        if self.sleeping:
            self.sleeping = False
            self._world.active_changed = True

    def points(self) -> NDArray[np.float64]:
        """Return its points in the world [m], strand by strand, root to tip, (points, 3)."""
        return self._world.read(self)

    def drawn_points(self) -> NDArray[np.float64]:
        """Return its drawn hairs in the world [m], guide by guide, root to tip, (hairs, points, 3).

        For a renderer of your own, or for an export.
        """
        return self._world.drawing().hair_points(self)

    # The world drives what follows.

    unit = 1.0
    """What the solver counts its lengths in [m]."""

    def in_units(self, pose: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a pose as the solver has it."""
        return pose

    def write_air(
        self, row: NDArray[np.float32], wind: NDArray[np.float64], gravity: NDArray[np.float64]
    ) -> None:
        """Fill in what the air and gravity do to it, of the world's wind [m/s] and [m/s^2]."""
        row[col.WIND_NOW : col.WIND_NOW + 3] = wind * self._wind
        row[col.GRAVITY : col.GRAVITY + 3] = gravity

    def write_step(self, numbers: NDArray[np.float32], dt: float, clock: float) -> None:
        """Fill in this hair's row for a step of dt seconds."""
        row = numbers[self.index]
        self._calm += dt
        if self._next_head is not self.head_pose:
            if self._motion <= LIVELY:
                way = self._next_head - self.head_pose
                reach = np.linalg.norm(way[:3, 3]) + REACH_M * np.linalg.norm(way[:3, :3])
                if reach > SLOW * dt:
                    self._calm = 0.0
            row[col.POSE_NOW : col.POSE_NOW + 7] = pose_row(self._next_head, self.origin)
            self.head_pose = self._next_head
        self.body_pose = self._next_body
        before = self._freedom
        self._ease(dt)
        if before == 0.0 and self._freedom > 0.0:
            self._reset = True
        if (before == 0.0) != (self._freedom == 0.0):
            self._world.active_changed = True
        tick = clock / self.subticks
        if self._motion <= LIVELY and self._calm > CALM_S:
            tick *= 2.0
        # A shorter tick than before may be over already.
        ticks, trial, first = _ticks(min(self._phase, tick), dt, tick)
        self._phase = 0.0 if trial == 0.0 else trial
        row[col.TICKS] = ticks
        row[col.TICK_S] = tick
        row[col.TRIAL_S] = trial
        row[col.ALPHA_FIRST] = first / dt
        row[col.ALPHA_TICK] = tick / dt
        free = self._freedom
        row[col.HOLD] = hold_spring(free) if free > 0.0 else 0.0
        row[col.ROUNDS] = ROUNDS
        row[col.SOLID] = float(free == 0.0)
        row[col.RESET] = float(self._reset)

    def after_step(self, dt: float) -> None:
        """Take note that a step was made."""
        self._fresh = False
        self._reset = False
        self._quiet += dt

    def may_sleep(self) -> bool:
        """Return whether it is time to look whether it is at rest; then not for a while."""
        if (
            self.sleeping
            or self.solid
            or self._quiet < QUIET_S
            or self._quiet - self._checked < 0.25
        ):
            return False
        self._checked = self._quiet
        return True

    def seen_at(self, speed: float) -> None:
        """Take note of its fastest point's speed [m/s]; fall asleep when it is still."""
        self._still = self._still + 1 if speed < SLEEP_SPEED else 0
        if self._still > 1:
            self.sleeping = True
            self._world.active_changed = True

    def far(self) -> bool:
        """Return whether the head has left its hair's origin behind."""
        x, y, z = self._next_head[:3, 3].tolist()
        a, b, c = self.origin.tolist()
        return max(abs(x - a), abs(y - b), abs(z - c)) > REBASE_M

    def _ease(self, dt: float) -> None:
        """Move towards the freedom hold and motion ask for: at once when fresh, else smoothly."""
        goal = self._motion * (1.0 - self._hold)
        if self._fresh or goal == self._freedom:
            self._freedom = goal
            return
        # Geometric, since the spring goes with 1 / freedom; from solid it starts stiff.
        low = 2e-3
        now = max(self._freedom, low)
        self._freedom = now * (max(goal, low) / now) ** (1.0 - math.exp(-dt / EASE_S))
        if abs(self._freedom - max(goal, low)) < 0.01 * max(goal, low):
            self._freedom = goal


def style_numbers(style: Style, row: NDArray[np.floating]) -> None:
    """Fill in a hair's row with what its style says, its hold excepted.

    Args:
        style: What the hair is like.
        row: The row, see ``columns``, shape (HAIR_COLUMNS,).
    """
    low, high = style.stretch_limits()
    row[col.DRAG] = style.drag()
    row[col.STRETCH] = style.stretch_stiffness()
    row[col.STRAIN_LOW] = low
    row[col.STRAIN_HIGH] = high
    row[col.TETHER] = 1.0 + max(style.max_stretch, high)
    row[col.RADIUS] = style.contact_radius()
    row[col.BEND_DAMPING] = BEND_DAMPING_S


def hold_spring(freedom: float) -> float:
    """Return the spring to the rest pose a unit mass [1/s^2] of hair that is so free, above 0."""
    return HOLD_AT_HALF * (1.0 - freedom) / freedom


def _ticks(phase: float, dt: float, tick: float) -> tuple[int, float, float]:
    """Return a step's whole ticks, what is left to its end [s], and when the first ends [s].

    Args:
        phase: Time from the last tick to the start of the step [s].
        dt: The step [s].
        tick: Time between two ticks [s].
    """
    reach = phase + dt
    # A hundredth of a per cent of a tick: callers' times are sums of rounded numbers.
    ticks = int(reach / tick + 1e-4)
    left = reach - ticks * tick
    if left < 1e-4 * tick:
        left = 0.0
    return ticks, left, tick - phase
