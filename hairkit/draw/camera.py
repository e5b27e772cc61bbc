"""Where a picture is taken from, and what lights it. NumPy only."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hairkit.errors import HairkitError


def _unit(vector: ArrayLike) -> NDArray[np.float64]:
    """Return a vector scaled to length one."""
    array = np.asarray(vector, dtype=np.float64)
    return array / np.linalg.norm(array)


@dataclass(frozen=True, kw_only=True)
class Camera:
    """A pinhole camera in the world."""

    position: tuple[float, float, float]
    """Where the camera is, in the world [m]."""

    target: tuple[float, float, float]
    """The point in the middle of the picture, in the world [m]."""

    up: tuple[float, float, float] = (0.0, 1.0, 0.0)
    """Direction that is up in the picture."""

    fov: float = 0.5
    """Angle of view from the picture's bottom to its top [rad], above 0 and below pi."""

    def __post_init__(self) -> None:
        """Refuse a camera that has no picture."""
        values = np.array([*self.position, *self.target, *self.up, self.fov], dtype=np.float64)
        if not np.isfinite(values).all():
            raise HairkitError(f"camera: expected finite numbers, got {self}")
        if not 0.0 < self.fov < math.pi:
            raise HairkitError(f"camera fov: expected 0..pi rad, got {self.fov}")
        forward = np.subtract(self.target, self.position)
        if np.linalg.norm(np.cross(forward, self.up)) < 1e-9 * np.linalg.norm(self.up):
            raise HairkitError(f"camera: position, target and up must not be in one line: {self}")

    def basis(self) -> NDArray[np.float64]:
        """Return the unit vectors right, up and forward in the world, shape (3, 3), one a row."""
        forward = _unit(np.subtract(self.target, self.position))
        right = _unit(np.cross(forward, self.up))
        return np.stack([right, np.cross(right, forward), forward])

    def moved(self, *, zoom: float = 1.0, rise: float = 0.0) -> "Camera":
        """Return a camera nearer by a factor, and raised with its target.

        Args:
            zoom: How many times nearer to the target, above zero.
            rise: How far position and target go up [m].
        """
        target = np.asarray(self.target, dtype=np.float64)
        lift = rise * _unit(self.up)
        position = target + (np.asarray(self.position) - target) / zoom + lift
        return replace(self, position=_triple(position), target=_triple(target + lift))

    @classmethod
    def orbit(
        cls,
        head: Any,
        *,
        yaw: float = 0.0,
        pitch: float = 0.05,
        distance: float | None = None,
        fov: float = 0.5,
        pose: ArrayLike | None = None,
    ) -> "Camera":
        """Look at a head from an angle.

        Args:
            head: The `Head` to look at.
            yaw: Turn around the head from its front towards its left [rad].
            pitch: Height over the horizon [rad], between -pi/2 and pi/2.
            distance: From the middle of the head [m]; None fits the head and shoulder-long hair.
            fov: Angle of view from bottom to top [rad].
            pose: Where the head is, 4 x 4, head frame to world; None for the world's origin.
        """
        up, front = _unit(head.up), _unit(head.front)
        left = np.cross(up, front)
        radius = float(head.radius)
        if distance is None:
            distance = 5.0 * radius / (2.0 * math.tan(0.5 * fov)) + radius
        level = math.cos(yaw) * front + math.sin(yaw) * left
        toward = math.cos(pitch) * level + math.sin(pitch) * up
        target = np.asarray(head.center, dtype=np.float64) - 0.8 * radius * up
        matrix = np.eye(4) if pose is None else np.asarray(pose, dtype=np.float64)
        target = matrix[:3, :3] @ target + matrix[:3, 3]
        position = target + distance * (matrix[:3, :3] @ toward)
        return cls(
            position=_triple(position),
            target=_triple(target),
            up=_triple(matrix[:3, :3] @ up),
            fov=fov,
        )

    @classmethod
    def front(cls, head: Any, **options: Any) -> "Camera":
        """Look at the face; options as in `orbit`."""
        return cls.orbit(head, **{"yaw": 0.0, **options})

    @classmethod
    def side(cls, head: Any, **options: Any) -> "Camera":
        """Look at the head's left side; options as in `orbit`."""
        return cls.orbit(head, **{"yaw": 0.5 * math.pi, **options})

    @classmethod
    def back(cls, head: Any, **options: Any) -> "Camera":
        """Look at the back of the head; options as in `orbit`."""
        return cls.orbit(head, **{"yaw": math.pi, **options})


def _triple(vector: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return three plain floats."""
    return float(vector[0]), float(vector[1]), float(vector[2])


@dataclass(frozen=True, kw_only=True)
class Light:
    """A key light with shadows, a rim light from behind, and a soft sky.

    Directions are in the camera's frame (right, up, towards the camera) unless `world` is set, so
    that every side of a head is lit as a photographer would light it.
    """

    key: tuple[float, float, float] = (0.55, 0.80, 0.62)
    """Direction towards the key light."""

    rim: tuple[float, float, float] = (-0.75, 0.55, -0.65)
    """Direction towards the rim light."""

    key_color: tuple[float, float, float] = (2.6, 2.45, 2.25)
    """Strength of the key light, linear red, green and blue."""

    rim_color: tuple[float, float, float] = (0.9, 1.0, 1.15)
    """Strength of the rim light, linear red, green and blue."""

    sky_color: tuple[float, float, float] = (0.66, 0.67, 0.70)
    """Strength of the light from all around, linear red, green and blue."""

    world: bool = False
    """Whether the directions are in the world's frame instead of the camera's."""

    def directions(self, camera: Camera) -> NDArray[np.float64]:
        """Return the unit directions towards key and rim light in the world, shape (2, 3)."""
        both = np.stack([_unit(self.key), _unit(self.rim)])
        if self.world:
            return both
        right, up, forward = camera.basis()
        return both @ np.stack([right, up, -forward])
