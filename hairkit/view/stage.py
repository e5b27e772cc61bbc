"""The world of the window: one head, the style that it wears, and how it moves."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hairkit.draw.camera import Camera
from hairkit.groom import grow
from hairkit.head import Head
from hairkit.sim.world import World
from hairkit.style import Style
from hairkit.view.controls import Controls
from hairkit.view.laps import RATE, Laps

BLOWS = (0.8, 0.0, -0.6)
"""Where the wind goes, in the head's left, up and front: across the face and past it."""


class Stage:
    """A head in a world, whose hair can be grown again."""

    def __init__(self, head: Head, *, backend: str | None, guides: int, seed: int) -> None:
        """Open a world; compiles nothing.

        Args:
            head: What hair grows on.
            backend: `World`'s.
            guides: Simulated strands.
            seed: Of everything random in the grooms.

        Raises:
            BackendError: The backend does not work here.
        """
        self.head = head
        self.world = World(backend)
        self.version = 0
        """Changes whenever a picture would."""
        self._guides, self._seed = guides, seed
        self._hair: Any = None
        self._motion = "still"
        self._laps = Laps(self._motion)
        self._wind = (0.0, 0.0)
        axes = np.stack([np.cross(head.up, head.front), head.up, head.front])
        self._blows = np.array(BLOWS) @ axes

    def wear(self, style: Style) -> None:
        """Grow a style and put it on the head, whose motion begins again.

        Raises:
            HairkitError: It does not grow on this head; the hair before stays.
        """
        groom = grow(style, self.head, guides=self._guides, seed=self._seed)
        before, self._laps = self._hair, Laps(self._motion)
        # In before out: they share the head's grid, which then stays loaded.
        self._hair = self.world.add_hair(groom, pose=self._laps.start)
        if before is not None:
            self.world.remove(before)
        self.version += 1

    def follow(self, controls: Controls) -> None:
        """Do what the sliders say, as far as it needs no growing; hair wakes for a change only."""
        hair = self._hair
        for name, value in (("hold", controls.hold), ("motion", controls.physics)):
            if getattr(hair, name) != value:
                setattr(hair, name, value)
        wind = (controls.wind, controls.gust)
        if wind != self._wind:
            self._wind = wind
            self.world.wind = controls.wind * self._blows
            self.world.gust = controls.gust
        if controls.motion != self._motion:
            self._motion = controls.motion
            self._laps = Laps(self._motion, leave=self._laps)

    def advance(self, frames: int) -> None:
        """Move on by so many frames of 1/60 s."""
        hair = self._hair
        for _ in range(frames):
            solid = hair.solid
            changes = not (hair.sleeping or solid)
            if self._laps.moving:
                changes = True
                pose = self._laps.next()
                # Shoulders go where the head goes, and do not turn with it.
                body = self._laps.start.copy()
                body[:3, 3] = pose[:3, 3]
                hair.set_head(pose)
                hair.set_body(body)
            self.world.step(1.0 / RATE)
            # Hair that sleeps may become solid yet.
            self.version += changes or hair.solid != solid

    @property
    def place(self) -> NDArray[np.float64]:
        """Where the head and its shoulders are in the world [m], shape (3,)."""
        return self._hair.body_pose[:3, 3]

    def picture(
        self, camera: Camera, *, width: int, height: int, detail: float, samples: int
    ) -> NDArray[np.uint8]:
        """Return a picture, sRGB, shape (height, width, 3); arguments as in `World.render`."""
        return self.world.render(camera, width=width, height=height, detail=detail, samples=samples)

    def close(self) -> None:
        """Take everything out of the world."""
        self.world.close()
