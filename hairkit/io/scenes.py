"""What OpenUSD and Alembic share on this side of the native library: what is read, what is lost."""

import importlib.util
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from hairkit.errors import FileError, FileWarning, nearest
from hairkit.head import UNITS
from hairkit.io.dirty import strands_of_file
from hairkit.io.guard import read_guarded
from hairkit.io.strand_set import StrandSet


def require(module: str, extra: str, path: Path) -> None:
    """Make sure that the library of a format is installed.

    Raises:
        FileError: It is not; the message says how to install it.
    """
    if importlib.util.find_spec(module) is None:
        raise FileError(
            f"{path}: needs the package {module!r}, expected it installed: "
            f'pip install "hairkit[{extra}]"'
        )


def read_scene(
    reader: str, path: Path, *, library: str, memory: int = 12, **options: Any
) -> StrandSet:
    """Read a scene's strands in another process, as far as `strands_of_file` takes them.

    Args:
        reader: As for `read_guarded`.
        path: The file.
        library: What to call the library in messages.
        memory: As for `read_guarded`.
        options: What the reader takes beside the path.

    Raises:
        FileError: The file cannot be read, or no strand is left.
    """
    found = read_guarded(reader, path, library=library, memory=memory, options=options)
    for message in found.warnings:
        warn(path, message)
    arrays = found.arrays
    for name in ("root_uv", "root_normals"):
        if name in arrays and not np.isfinite(arrays[name]).all():
            del arrays[name]
            warn(path, f"{name} left out, expected finite numbers")
    return strands_of_file(path, **arrays)


def metres_in(units: str) -> float:
    """Return how many metres a unit is.

    Raises:
        FileError: It is none of `hairkit.head.UNITS`.
    """
    if units not in UNITS:
        raise FileError(
            f"units: {units!r}, expected one of {', '.join(UNITS)}{nearest(units, UNITS)}"
        )
    return UNITS[units]


def warn(path: Path, message: str) -> None:
    """Warn of something in a file."""
    warnings.warn(f"{path}: {message}", FileWarning, stacklevel=3)


def check_frame(
    path: Path, points: np.ndarray, total: int, frame: int, metres: float
) -> np.ndarray:
    """Return one frame's points in a file's unit, f32, after comparing it with the set it is of.

    Raises:
        FileError: The shape is another.
    """
    if points.shape != (total, 3):
        raise FileError(
            f"{path}: frame {frame} has points of shape {points.shape}, expected ({total}, 3)"
        )
    return in_units(points, metres)


def in_units(lengths: np.ndarray, metres: float) -> np.ndarray:
    """Return lengths [m] in another unit, f32; metres bit for bit."""
    scaled = lengths if metres == 1.0 else lengths / metres
    return np.ascontiguousarray(scaled, np.float32)
