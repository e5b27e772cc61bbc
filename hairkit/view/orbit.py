"""A camera that a hand turns around a head. NumPy only."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hairkit.draw.camera import Camera

STEEPEST = 1.45
"""Largest pitch either way [rad]: at a right angle, up would no longer be up."""

NEAREST, FARTHEST = 2.0, 40.0
"""How near and how far the camera may be [head radii]."""

ASTRAY = 6.0
"""How far from its place the camera may be panned [head radii]."""

TURN = 3.5
"""Turn for a drag over the height of the window [rad]."""


@dataclass
class Orbit:
    """Where a camera is around a head: yaw, pitch and distance, and how far it is panned."""

    head: Any
    """The `Head` to look at."""

    yaw: float = 0.45
    """Turn around the head from its front towards its left [rad]."""

    pitch: float = 0.08
    """Height over the horizon [rad]."""

    zoom: float = 1.0
    """How many times nearer than `Camera.orbit` places it."""

    pan: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """How far the camera and its target are moved, in the world [m]."""

    def turn(self, right: float, up: float) -> None:
        """Turn with a drag, as if the hand held the head.

        Args:
            right: How far the drag went to the right [window heights].
            up: How far it went up [window heights].
        """
        self.yaw = math.remainder(self.yaw - TURN * right, 2.0 * math.pi)
        self.pitch = min(max(self.pitch - TURN * up, -STEEPEST), STEEPEST)

    def shift(self, right: float, up: float) -> None:
        """Pan with a drag: what is under the pointer stays there.

        Args:
            right: How far the drag went to the right [window heights].
            up: How far it went up [window heights].
        """
        camera = self.camera()
        away = np.linalg.norm(np.subtract(camera.position, camera.target))
        tall = 2.0 * away * math.tan(0.5 * camera.fov)
        across, rise, _ = camera.basis()
        pan = np.array(self.pan) - tall * (right * across + up * rise)
        far = float(np.linalg.norm(pan)) / (ASTRAY * float(self.head.radius))
        x, y, z = (float(part) for part in pan / max(far, 1.0))
        self.pan = (x, y, z)

    def near(self, factor: float) -> None:
        """Go nearer by a factor, as far as there is room; below 1 goes away."""
        usual = self._distance() / float(self.head.radius)
        self.zoom = min(max(self.zoom * factor, usual / FARTHEST), usual / NEAREST)

    def front(self) -> None:
        """Go back to where a new catalogue opens."""
        fresh = Orbit(self.head)
        self.yaw, self.pitch, self.zoom, self.pan = fresh.yaw, fresh.pitch, fresh.zoom, fresh.pan

    def camera(self, place: ArrayLike = (0.0, 0.0, 0.0), *, aside: float = 0.0) -> Camera:
        """Return the camera that is there.

        Args:
            place: Where the head's frame is, in the world [m], shape (3,).
            aside: How far right of the middle its target is to be seen [window heights].
        """
        camera = Camera.orbit(self.head, yaw=self.yaw, pitch=self.pitch).moved(zoom=self.zoom)
        away = np.linalg.norm(np.subtract(camera.position, camera.target))
        tall = 2.0 * away * math.tan(0.5 * camera.fov)
        moved = np.add(self.pan, place) - aside * tall * camera.basis()[0]
        x, y, z = (float(part) for part in moved + camera.target)
        a, b, c = (float(part) for part in moved + camera.position)
        return replace(camera, target=(x, y, z), position=(a, b, c))

    def _distance(self) -> float:
        """Return how far from its target `Camera.orbit` places a camera [m]."""
        camera = Camera.orbit(self.head)
        return float(np.linalg.norm(np.subtract(camera.position, camera.target)))
