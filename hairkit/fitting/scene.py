"""What happens to hair while it is compared: how the head stands or moves, wind, which frames."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hairkit.errors import FitError


@dataclass(frozen=True, eq=False, kw_only=True)
class Scene:
    """A head's poses frame by frame, and which frames are looked at."""

    poses: NDArray[np.float64]
    """The head's frame to the world's at the start and after each frame, (frames + 1, 4, 4)."""

    rate: float = 60.0
    """Frames a second [1/s]."""

    wind: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Velocity of the air [m/s]."""

    gravity: tuple[float, float, float] = (0.0, -9.81, 0.0)
    """Gravity [m/s^2]."""

    shown: Sequence[int] = field(default=(-1,))
    """Frames that are compared with a target, 0 the first after the start, -1 the last."""

    def __post_init__(self) -> None:
        """Check shapes."""
        poses = np.asarray(self.poses, np.float64)
        if poses.ndim != 3 or poses.shape[1:] != (4, 4) or len(poses) < 2:
            raise FitError(f"scene: poses of shape {poses.shape}, expected (frames + 1, 4, 4)")
        if not np.isfinite(poses).all():
            raise FitError("scene: poses are not finite, expected rotations and translations")
        object.__setattr__(self, "poses", poses)
        count = self.frames
        if not self.shown or not all(-count <= frame < count for frame in self.shown):
            raise FitError(f"scene: shown {list(self.shown)}, expected frames below {count}")

    @property
    def frames(self) -> int:
        """How many frames it has."""
        return len(self.poses) - 1

    @property
    def rows(self) -> list[int]:
        """The frames that are looked at, counted from 0, in time's order, each once."""
        return sorted({frame % self.frames for frame in self.shown})


def drape(tilt: float = 0.0, *, seconds: float = 1.0, rate: float = 60.0) -> Scene:
    """Return a scene in which hair settles on a head that is tilted sideways and stays so.

    Args:
        tilt: Turn about the head's forward axis [rad].
        seconds: How long it settles [s].
        rate: Frames a second [1/s].
    """
    pose = np.eye(4)
    pose[:2, :2] = [[np.cos(tilt), -np.sin(tilt)], [np.sin(tilt), np.cos(tilt)]]
    return Scene(poses=np.repeat(pose[None], round(seconds * rate) + 1, axis=0), rate=rate)
