"""Pictures (.png) through imageio, videos (.mp4, H.264) through the ffmpeg of imageio-ffmpeg."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import Protocol

import numpy as np

from hairkit.errors import FileError
from hairkit.io.files import written_beside


class FrameSink(Protocol):
    """What a video is fed through."""

    def __call__(self, image: np.ndarray) -> None:
        """Take the next frame, shape (height, width, 3), uint8."""


def save_picture(image: np.ndarray, path: str | os.PathLike[str]) -> None:
    """Write one picture.

    Args:
        image: Shape (height, width, 3) or (height, width, 4), uint8, sRGB, top row first.
        path: A .png file.

    Raises:
        FileError: The image has another shape or type, or the file cannot be written.
    """
    import imageio.v3 as iio

    _check_image(image, path, channels=(3, 4))
    with written_beside(path) as beside:
        iio.imwrite(beside, image, extension=".png")


@contextmanager
def video_writer(
    path: str | os.PathLike[str], *, width: int, height: int, rate: float
) -> Iterator[FrameSink]:
    """Open an .mp4 for writing; the value to call with each frame.

    The file appears, complete, when the body ends without an exception. H.264 wants even sizes: an
    odd last column or row is doubled.

    Args:
        path: An .mp4 file.
        width: Of every frame [pixels].
        height: Of every frame [pixels].
        rate: Frames a second of the video.

    Raises:
        FileError: A frame has another shape or type, or the file cannot be written.
    """
    import imageio_ffmpeg

    size = f"{width + width % 2}x{height + height % 2}"
    # A fraction, since 29.97 has no short decimal.
    frames_a_second = str(Fraction(rate).limit_denominator(1001))
    with written_beside(path) as beside:
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-v", "error"]
        command += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", frames_a_second]
        command += ["-i", "-", "-an", "-vcodec", "libx264", "-pix_fmt", "yuv420p"]
        # Thin bright lines on dark show every block. The index first, to play from a server.
        command += ["-crf", "18", "-preset", "medium", "-movflags", "+faststart", str(beside)]
        # imageio-ffmpeg's own writer does not look at the exit code: a full disk would pass.
        # In a session of its own, Ctrl-C reaches only us, and we decide what becomes of the file.
        encoder = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        feed, complaints = encoder.stdin, encoder.stderr
        assert feed is not None and complaints is not None
        frames = 0

        def write(image: np.ndarray) -> None:
            nonlocal frames
            _check_image(image, path, channels=(3,))
            if image.shape[:2] != (height, width):
                raise FileError(
                    f"{path}: frame of shape {image.shape}, expected ({height}, {width}, 3)"
                )
            padded = np.pad(image, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
            try:
                feed.write(np.ascontiguousarray(padded).data)
            except BrokenPipeError as error:
                raise _encoder_error(path, encoder) from error
            frames += 1

        try:
            yield write
            if frames == 0:
                raise FileError(f"{path}: no frame was written, expected at least one")
            with suppress(BrokenPipeError):
                feed.close()
            if encoder.wait() != 0:
                raise _encoder_error(path, encoder)
        finally:
            encoder.kill()
            with suppress(BrokenPipeError):
                feed.close()
            encoder.wait()
            complaints.close()


def _check_image(
    image: np.ndarray, path: str | os.PathLike[str], *, channels: tuple[int, ...]
) -> None:
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in channels:
        wanted = " or ".join(str(count) for count in channels)
        raise FileError(
            f"{path}: image of shape {image.shape} and type {image.dtype}, "
            f"expected (height, width, {wanted}) uint8"
        )
    if 0 in image.shape:
        raise FileError(f"{path}: image of shape {image.shape}, expected at least one pixel")


def _encoder_error(path: str | os.PathLike[str], encoder: subprocess.Popen[bytes]) -> FileError:
    said = encoder.stderr.read().decode(errors="replace").strip() if encoder.stderr else ""
    last = said.splitlines()[-1] if said else f"exit code {encoder.poll()}"
    return FileError(f"{path}: the video encoder failed ({last}), expected it to take the frames")
