"""A picture of a target against the fit: both as lines, from the front and from the side."""

import os

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

SIZE = 640
"""Width and height of each of the three views [pixels]."""

TARGET, BEFORE, AFTER = (60, 60, 60), (214, 120, 40), (30, 110, 210)


def save_comparison(
    path: str | os.PathLike[str],
    target: tuple[NDArray[np.float64], NDArray[np.int32]],
    before: tuple[NDArray[np.float64], NDArray[np.int32]],
    after: tuple[NDArray[np.float64], NDArray[np.int32]],
) -> None:
    """Write a picture: above the start against the target, below the fit, front and side.

    Args:
        path: The file to write, .png.
        target: Points [m], shape (points, 3), and points of each strand.
        before: The same for the style that the fit began with.
        after: The same for the fitted style.
    """
    every = np.concatenate([target[0], before[0], after[0]])
    low, high = every.min(axis=0), every.max(axis=0)
    middle, reach = 0.5 * (low + high), 0.55 * float((high - low).max())
    picture = Image.new("RGB", (2 * SIZE, 2 * SIZE), (250, 250, 250))
    draw = ImageDraw.Draw(picture)
    for row, (shown, colour, name) in enumerate(
        ((before, BEFORE, "before"), (after, AFTER, "fitted"))
    ):
        for column, axis in enumerate((0, 2)):
            for (points, counts), line in ((target, TARGET), (shown, colour)):
                x = column * SIZE + SIZE * (0.5 + 0.5 * (points[:, axis] - middle[axis]) / reach)
                y = row * SIZE + SIZE * (0.5 - 0.5 * (points[:, 1] - middle[1]) / reach)
                for strand in np.split(np.stack([x, y], axis=1), np.cumsum(counts)[:-1]):
                    draw.line([tuple(point) for point in strand.tolist()], fill=line, width=1)
            side = "front" if axis == 0 else "side"
            draw.text((column * SIZE + 12, row * SIZE + 10), f"{name}, {side}", fill=colour)
    draw.text((12, 28), "grey: target", fill=TARGET)
    picture.save(path)
