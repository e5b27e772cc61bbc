"""Screenshots and recordings: new files with a number, never over another."""

import re
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hairkit.io.video import FrameSink, save_picture, video_writer

VIDEO_RATE = 30
"""Frames a second of a recording [1/s]."""


def free_path(folder: Path, name: str, ending: str) -> Path:
    """Return a path that no file has, named after a style and numbered from 1."""
    bare = re.sub(r"[^\w-]+", "-", name).strip("-") or "hair"
    number = 1
    while (path := folder / f"{bare}-{number:03d}{ending}").exists():
        number += 1
    return path


def keep_picture(picture: NDArray[np.uint8], folder: Path, name: str) -> Path:
    """Write a picture, sRGB, shape (height, width, 3), and return its file.

    Raises:
        FileError: It cannot be written.
    """
    path = free_path(folder, name, ".png")
    save_picture(picture, path)
    return path


class Recording:
    """An .mp4 that grows by a frame a time; complete once `close` returns."""

    def __init__(self, folder: Path, name: str, size: tuple[int, int]) -> None:
        """Begin.

        Args:
            folder: Where it goes.
            name: What it is named after.
            size: Width and height of each frame [pixels].

        Raises:
            FileError: It cannot be written.
        """
        self.path = free_path(folder, name, ".mp4")
        self.size = size
        self._open = ExitStack()
        width, height = size
        self._write: FrameSink = self._open.enter_context(
            video_writer(self.path, width=width, height=height, rate=VIDEO_RATE)
        )

    def add(self, picture: NDArray[np.uint8]) -> None:
        """Take the next frame, sRGB, shape (height, width, 3).

        Raises:
            FileError: It cannot be written; the recording is over, and its file gone.
        """
        try:
            self._write(picture)
        except BaseException as error:
            self._open.__exit__(type(error), error, error.__traceback__)
            raise

    def close(self) -> None:
        """Complete the file.

        Raises:
            FileError: It cannot be written.
        """
        self._open.close()
