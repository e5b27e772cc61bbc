"""The name of a style and what it looks like, written large at the foot of a picture."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

INK = (25, 27, 31)
"""Colour of the letters [sRGB]."""


def shown(
    picture: NDArray[np.uint8], size: tuple[int, int], title: str, line: str
) -> NDArray[np.uint8]:
    """Return a picture stretched to a window, with a title and a line under it at its foot.

    Args:
        picture: sRGB, shape (height, width, 3); smaller than the window while something moves.
        size: Width and height of the window [pixels].
        title: The name of a style.
        line: What it looks like.
    """
    from PIL import Image

    if picture.shape[1::-1] != size:
        picture = np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BILINEAR))
    cover = _letters(*size, title, line)
    high, wide = cover.shape
    result = np.array(picture)
    under = result[-high:, -wide:].astype(np.uint16)
    share = cover[..., None].astype(np.uint16)
    result[-high:, -wide:] = (under * (255 - share) + np.array(INK, np.uint16) * share + 127) // 255
    return result


@lru_cache(maxsize=4)
def _letters(width: int, height: int, title: str, line: str) -> NDArray[np.uint8]:
    """Return how much of each pixel in the lower right is ink, 0..255."""
    from PIL import Image, ImageDraw, ImageFont

    strip = Image.new("L", (width, max(height // 7, 1)), 0)
    draw = ImageDraw.Draw(strip)
    margin = 0.03 * height
    for text, size, foot in ((title, 0.05 * height, 0.055 * height), (line, 0.024 * height, 0.0)):
        font = ImageFont.load_default(size=max(size, 8.0))
        room = (width - 2.0 * margin) / max(draw.textlength(text, font=font), 1.0)
        if room < 1.0:
            font = ImageFont.load_default(size=max(size * room, 1.0))
        place = (width - margin, strip.height - margin - foot)
        draw.text(place, text, fill=255, font=font, anchor="rs")
    return np.array(strip)
