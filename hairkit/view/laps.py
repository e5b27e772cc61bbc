"""A head motion that goes on for ever without a jump."""

import numpy as np
from numpy.typing import NDArray

from hairkit import motions
from hairkit.poses import between

RATE = 60
"""Frames a second [1/s]."""

LAPS = {"jump": (0.0, 1.7), "spin": (0.0, 2.0)}
"""Where a lap begins and how long it takes [s]: from rest to rest."""

SWINGS = (1.0, 20.0)
"""The same for the others: after they have grown to their size, a whole number of every swing."""

BLEND_S = 0.5
"""Time in which the head leaves one motion for another [s]."""


class Laps:
    """Poses of a named motion, frame after frame, lap after lap."""

    def __init__(self, name: str, *, leave: "Laps | None" = None) -> None:
        """Start a motion.

        Args:
            name: One of `hairkit.motions.motion_names()`.
            leave: What the head does now and leaves smoothly; None begins at the motion's start.
        """
        begin, length = LAPS.get(name, SWINGS)
        motion = motions.motion(name, seconds=begin + length, rate=RATE)
        self._poses = np.concatenate([motion.start[None], motion.poses])
        self._begin, self._length = round(begin * RATE), round(length * RATE)
        # What a lap leaves behind, as a spin does its turn, the next one starts from.
        self._gain = self._poses[-1] @ np.linalg.inv(self._poses[self._begin])
        self._carried = np.eye(4)
        self._leave = leave
        self._frame = 0
        self._place = 0
        self._still = bool((self._poses == self._poses[0]).all())

    @property
    def start(self) -> NDArray[np.float64]:
        """The pose at time zero, shape (4, 4)."""
        return self._poses[0]

    @property
    def moving(self) -> bool:
        """Whether the next pose may be another than the last."""
        return self._leave is not None or not self._still

    def next(self) -> NDArray[np.float64]:
        """Return the pose one frame later, shape (4, 4)."""
        self._frame += 1
        self._place += 1
        if self._place > self._begin + self._length:
            self._place -= self._length
            self._carried = self._gain @ self._carried
        pose = self._carried @ self._poses[self._place]
        if self._leave is None:
            return pose
        share = self._frame / (BLEND_S * RATE)
        share = share * share * (3.0 - 2.0 * share)
        both = np.stack([self._leave.next(), pose])
        if self._frame >= BLEND_S * RATE:
            self._leave = None
        return between(np.array([share]), np.array([0.0, 1.0]), both)[0]
