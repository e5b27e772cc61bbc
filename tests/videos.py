"""Read videos back: imageio's reader leaves pipes open, which is an error in our tests."""

import subprocess
from pathlib import Path

import imageio_ffmpeg
import numpy as np


def read_video(path: Path, *, width: int, height: int) -> np.ndarray:
    """Return every frame of a video, shape (frames, height, width, 3), uint8."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", str(path)]
    command += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    run = subprocess.run(command, capture_output=True, check=True)
    return np.frombuffer(run.stdout, dtype=np.uint8).reshape(-1, height, width, 3)
