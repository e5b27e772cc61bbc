"""What OpenUSD and Alembic share on this side of the native library: what is read, what is lost."""

import importlib.util
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from hairkit.errors import FileError, FileWarning, nearest
from hairkit.head import UNITS
from hairkit.io.guard import read_guarded
from hairkit.io.strand_set import FIELDS, StrandSet

_NAMED = 10
"""Strands that one message names; of more it gives the number."""


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
    """Read a scene's strands in another process, and leave out those that are none.

    Left out, with one warning that names them: strands of no or one point, and strands with a
    point, width or colour that is not finite at any time.

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
    counts = arrays["counts"]
    drop = {int(i): f"{counts[i]} point{'' if counts[i] else 's'}" for i in _short(counts)}
    for name in ("points", "widths", "colors"):
        if name in arrays:
            for strand in _not_finite(arrays[name], counts):
                drop.setdefault(strand, "not finite" if name == "points" else f"{name} not finite")
    for name in ("root_uv", "root_normals"):
        if name in arrays and not np.isfinite(arrays[name]).all():
            del arrays[name]
            warn(path, f"{name} left out, expected finite numbers")
    if drop:
        if len(drop) == len(counts):
            raise FileError(f"{path}: none of its strands can be used: {_listed(drop)}")
        warn(path, f"{len(drop)} of {len(counts)} strands dropped: {_listed(drop)}")
        keep = np.ones(len(counts), bool)
        keep[list(drop)] = False
        kept = {"strands": keep, "points": np.repeat(keep, counts)}
        for name, values in arrays.items():
            axes = FIELDS[name][1]
            for axis in (0, 1):
                if axis < len(axes) and axes[axis] in kept:
                    values = np.compress(kept[str(axes[axis])], values, axis=axis)
            arrays[name] = values
    given: dict[str, Any] = arrays
    try:
        return StrandSet(**given)
    except FileError as error:
        raise FileError(f"{path}: {error}") from error


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


def _short(counts: np.ndarray) -> np.ndarray:
    return np.flatnonzero(counts < 2)


def _not_finite(values: np.ndarray, counts: np.ndarray) -> list[int]:
    if np.isfinite(values).all():
        return []
    axis = FIELDS["points"][1].index("points") if values.ndim == 3 else 0
    other = tuple(i for i in range(values.ndim) if i != axis)
    bad = np.flatnonzero(~np.isfinite(values).all(axis=other))
    return np.unique(np.searchsorted(np.cumsum(counts), bad, side="right")).tolist()


def _listed(strands: dict[int, str]) -> str:
    named = [f"{i} ({why})" for i, why in sorted(strands.items())[:_NAMED]]
    more = len(strands) - len(named)
    return "strand " + ", ".join(named) + (f" and {more} more" if more > 0 else "")
