"""Pictures that a notebook shows in their place; no window."""

import io
import os
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hairkit.draw.camera import Camera
from hairkit.errors import WorldError


class Picture:
    """A picture of a world, as `World.show` returns it.

    As the last value of a notebook's cell, or given to `display`, it is shown there.
    """

    def __init__(self, image: NDArray[np.uint8]) -> None:
        self.image = image
        """The pixels, sRGB, top row first, shape (height, width, 3 or 4), uint8."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .png file, complete or not at all.

        Args:
            path: The file.

        Raises:
            FileError: The ending is not .png, or the file cannot be written.
        """
        from hairkit.io.files import check_output
        from hairkit.io.video import save_picture

        save_picture(self.image, check_output(path, (".png",)))

    def __repr__(self) -> str:
        height, width = self.image.shape[:2]
        return f"Picture({width} x {height})"

    def _repr_png_(self) -> bytes:
        """Return it as a .png file; notebooks call this."""
        import imageio.v3 as iio

        buffer = io.BytesIO()
        iio.imwrite(buffer, self.image, extension=".png")
        return buffer.getvalue()


def show(world: Any, camera: Camera | None = None, **options: Any) -> Picture:
    """Return a picture of a world that a notebook shows.

    Args:
        world: The `World`.
        camera: Where from; None sees every head of the world, a little from its left.
        options: See `World.render`.

    Raises:
        WorldError: There is neither a camera nor hair to look at.
    """
    return Picture(world.render(camera or overview(world.hairs), **options))


def overview(hairs: list[Any]) -> Camera:
    """Return a camera that sees every head, in front of the first.

    Args:
        hairs: The world's, at least one.

    Raises:
        WorldError: There are none.
    """
    if not hairs:
        raise WorldError("show: a world without hair, expected a camera or hair to look at")
    # Along with the body: a turn of the head shows.
    cameras = [Camera.orbit(h.groom.head, yaw=0.45, pitch=0.08, pose=h.body_pose) for h in hairs]
    first = cameras[0]
    targets = np.array([camera.target for camera in cameras])
    middle = 0.5 * (targets.min(axis=0) + targets.max(axis=0))
    # The first camera has five radii of its head in the picture, from top to bottom.
    apart = 2.0 * np.linalg.norm(targets - middle, axis=1).max()
    largest = max(float(hair.groom.head.radius) for hair in hairs)
    wanted = (5.0 * largest + apart) / (5.0 * float(hairs[0].groom.head.radius))
    position = middle + wanted * np.subtract(first.position, first.target)
    x, y, z = (float(part) for part in middle)
    a, b, c = (float(part) for part in position)
    return replace(first, target=(x, y, z), position=(a, b, c))
