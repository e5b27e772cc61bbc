"""How bone chains move: the numbers that people set, and what they mean a second."""

import math
from dataclasses import dataclass

from hairkit.errors import HairkitError

FRAME_S = 1.0 / 60.0
"""The frame that `ChainSettings` speaks of [s], whatever the real one is."""


@dataclass(frozen=True, kw_only=True)
class ChainSettings:
    """How bone chains move, the same at any frame rate.

    Raises:
        HairkitError: A value is out of range.
    """

    damping: float = 0.92
    """Share of its speed that a bone keeps over 1/60 s in still air, 0.01 to 1: it loses
    ``-60 ln(damping)`` of it a second."""

    stiffness: float = 0.1
    """How much of the way back to its rest pose a bone without inertia goes in 1/60 s, 0 to 0.99:
    0 only hangs, 0.99 hardly gives."""

    gravity: float = 1.0
    """Share of the world's gravity that it feels, 0 to 10. The rest pose is at rest under it."""

    wind: float = 1.0
    """Share of the world's wind that reaches it, 0 to 10. A breeze of 1 m/s pulls with 1 m/s^2, a
    fresh one of 5 m/s half as hard as gravity."""

    radius: float | tuple[float, ...] = 0.01
    """How far bones keep away from colliders, in the world [m], at least 0; or one for each bone
    from the root to the tip, the last for all further ones."""

    angle_limit: float | None = None
    """Largest angle that a bone turns from its rest direction, as its parent carries it [rad]; None
    is no limit."""

    still: int | None = None
    """Bones of each chain, from the root on, that do not turn; at least one always may. None is 1
    for sectors, whose first band lies on the scalp, and 0 for all others."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        for name, low, high in (
            ("damping", 0.01, 1.0),
            ("stiffness", 0.0, 0.99),
            ("gravity", 0.0, 10.0),
            ("wind", 0.0, 10.0),
        ):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and low <= value <= high):
                raise HairkitError(f"{name}: expected {low:g} to {high:g}, got {value!r}")
        radii = self.radius if isinstance(self.radius, tuple) else (self.radius,)
        if not radii or not all(isinstance(r, int | float) and 0.0 <= r <= 1e6 for r in radii):
            raise HairkitError(f"radius: expected 0 to 1e6 m, got {self.radius!r}")
        limit = self.angle_limit
        if limit is not None and not 0.0 <= limit <= math.pi:
            raise HairkitError(f"angle_limit: expected 0 to pi rad, got {limit!r}")
        if self.still is not None and self.still < 0:
            raise HairkitError(f"still: expected a whole number from 0 on, got {self.still!r}")

    def radii(self, count: int) -> list[float]:
        """Return the radius of each bone of a chain, root to tip [m].

        Args:
            count: Its bones.
        """
        given = self.radius if isinstance(self.radius, tuple) else (self.radius,)
        return [float(given[min(bone, len(given) - 1)]) for bone in range(count)]

    def still_bones(self, strategy: str, count: int) -> int:
        """Return how many bones of a chain do not turn.

        Args:
            strategy: How the chain was planned.
            count: Its bones.
        """
        wanted = self.still if self.still is not None else int(strategy == "sectors")
        return min(wanted, count - 1)

    def drag(self) -> float:
        """Return the rate at which speed is lost [1/s]."""
        return -math.log(self.damping) / FRAME_S

    def spring(self) -> float:
        """Return the spring to the rest pose, for each unit of mass [1/s^2].

        Without inertia, x' = -(spring / drag) x, so that exp(-spring / drag / 60) is left after a
        frame. Where there is no drag to speak of, a frame's worth of it stands in.
        """
        return -math.log(1.0 - self.stiffness) * max(self.drag(), LEAST_DRAG) / FRAME_S


LEAST_DRAG = 0.5
"""Drag below which `ChainSettings.spring` no longer sinks with it [1/s]."""
