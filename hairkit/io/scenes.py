"""What OpenUSD and Alembic share on this side of the native library: what is read, what is lost."""

import importlib.util
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hairkit.errors import FileError, FileWarning
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


def warn_of_lost(path: Path, strands: StrandSet, names: Sequence[str], where: str) -> None:
    """Warn of fields that a format has no place for, by name, once for a file."""
    lost = [name for name in names if getattr(strands, name) is not None]
    if lost:
        warn(path, f"{', '.join(lost)} not kept: {where} has no place for it")


def warn(path: Path, message: str) -> None:
    """Warn of something in a file."""
    warnings.warn(f"{path}: {message}", FileWarning, stacklevel=3)


def check_frame(path: Path, points: np.ndarray, total: int, frame: int) -> np.ndarray:
    """Return one frame's points as f32, after comparing it with the set it belongs to.

    Raises:
        FileError: The shape is another.
    """
    if points.shape != (total, 3):
        raise FileError(
            f"{path}: frame {frame} has points of shape {points.shape}, expected ({total}, 3)"
        )
    return np.ascontiguousarray(points, np.float32)


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
