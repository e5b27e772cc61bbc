"""How a chain of bones swings: numbers of a frame that mean the same at every frame rate."""

import math
from dataclasses import dataclass

from hairkit.errors import HairkitError

FRAME_RATE = 60.0
"""Frames a second that `ChainSettings.damping` and `ChainSettings.stiffness` speak of [1/s]."""


@dataclass(frozen=True, kw_only=True)
class ChainSettings:
    """How one character's bone chains swing.

    ``damping`` and ``stiffness`` are shares a sixtieth of a second, as game engines have them. Both
    become constants of the motion's equation, in which no frame rate is left: of a bone's angle
    from its rest pose, relative to its parent,

        acceleration = -spring * angle - damping_rate * speed + all else
    """

    damping: float = 0.92
    """Share of a bone's swing speed, relative to its parent, that is left after 1/60 s of free
    swing; above 0, up to 1, where 1 never comes to rest. `damping_rate` is what it becomes."""

    stiffness: float = 0.1
    """Share of the way back to its rest pose that a displaced bone goes in 1/60 s if nothing else
    acts and it has no speed left over from before; 0 none, 1 rigid. `spring` is what it becomes."""

    gravity: float = 1.0
    """Share of the world's gravity, 0 to 10; 1 is all of it."""

    wind: float = 1.0
    """Share of the world's wind, 0 to 10; 1 is all of it."""

    radius: float = 0.01
    """Radius of each bone against colliders [m], 0 to 1."""

    angle_limit: float | None = None
    """Largest angle between a bone and its rest direction in its parent [rad], above 0 up to pi;
    None is no limit."""

    def __post_init__(self) -> None:
        """Refuse numbers out of range."""
        _check("damping", self.damping, 0.0, 1.0, above=True)
        _check("stiffness", self.stiffness, 0.0, 1.0)
        _check("gravity", self.gravity, 0.0, 10.0)
        _check("wind", self.wind, 0.0, 10.0)
        _check("radius", self.radius, 0.0, 1.0)
        if self.angle_limit is not None:
            _check("angle_limit", self.angle_limit, 0.0, math.pi, above=True)

    @property
    def damping_rate(self) -> float:
        """Rate at which free swing loses speed [1/s]: c = -60 ln(damping).

        Over a time t the share exp(-c t) of the speed is left, so damping after 1/60 s.
        """
        return -FRAME_RATE * math.log(self.damping) + 0.0

    @property
    def spring(self) -> float:
        """Spring to the rest pose for a unit inertia [1/s^2]: k = 60^2 stiffness / (1 - stiffness).

        One implicit step of h = 1/60 s from standstill leaves 1 / (1 + k h^2) = 1 - stiffness of
        the way. Left alone, a bone swings at sqrt(k) [rad/s]. Infinite for a stiffness of 1.
        """
        if self.stiffness == 1.0:
            return math.inf
        return FRAME_RATE**2 * self.stiffness / (1.0 - self.stiffness)


def _check(name: str, value: float, least: float, most: float, *, above: bool = False) -> None:
    """Refuse a number out of range."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not least <= value <= most or (above and value == least):
        start = f"above {least:g}, up to" if above else f"{least:g} to"
        raise HairkitError(f"settings: {name} {value!r}, expected {start} {most:g}")
