"""What files get wrong about strands: found, named by the strand's index, and mended or refused."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from hairkit.errors import FileError, FileWarning
from hairkit.head import UNITS
from hairkit.io.strand_set import FIELDS, StrandSet

LENGTHS = (0.003, 3.0)
"""Median lengths of strands that hair has [m]; outside, the unit is probably another."""

_NAMED = 10
"""Strands that one message names; of more it gives the number."""

_BLOCK = 2**16
"""Points looked at together, so that they stay in the processor's cache."""

_FOLDED = 0.9999
"""Two segments whose directions are this much opposite (cosine) are a fold: within 0.8 degrees."""


def strands_of_file(
    path: Path,
    points: np.ndarray,
    counts: np.ndarray,
    *,
    times: np.ndarray | None = None,
    **fields: np.ndarray | None,
) -> StrandSet:
    """Make a set of what a file holds, as far as it is strands.

    Dropped, with one warning that names them: strands of no or one point, of points that are not
    finite at any time (a width or colour neither), and of no length. Kept, with one warning that
    names them: strands with equal consecutive points, and strands that fold back onto themselves,
    in the first frame.

    Args:
        path: The file, for messages.
        points: Positions strand by strand, shape (points, 3) or (frames, points, 3), f32.
        counts: Points of each strand, shape (strands,), whole numbers.
        times: Of each frame [s], shape (frames,); None for one frame.
        fields: Other fields of a `StrandSet`, in its shapes.

    Raises:
        FileError: The counts do not add up to the points, or no strand is left.
    """
    frames = points[None] if points.ndim == 2 else points
    check_total(path, counts, frames.shape[1])
    counts = counts.astype(np.int32)
    ends = np.cumsum(counts, dtype=np.int64)
    finite, equal, folded = _look_over(frames[0], ends)
    drop: dict[int, str] = {}
    for strand in np.flatnonzero(counts < 2).tolist():
        drop[strand] = f"{counts[strand]} point{'' if counts[strand] else 's'}"
    for number, frame in enumerate(frames):
        if finite if number == 0 else np.isfinite(frame).all():
            continue
        bad = np.asarray(~np.isfinite(frame).all(axis=1))
        drop |= dict.fromkeys(_strands_with(bad, ends), "not finite")
    for name, value in fields.items():
        if value is None or value.dtype.kind != "f" or np.isfinite(value).all():
            continue
        bad = np.asarray(~np.isfinite(value.reshape(len(value), -1)).all(axis=1))
        of_points = FIELDS[name][1][0] == "points"
        for strand in _strands_with(bad, ends) if of_points else np.flatnonzero(bad).tolist():
            drop.setdefault(strand, f"{name} not finite")
    for strand in _without_length(frames[0], counts, ends, equal):
        drop.setdefault(strand, "no length")
    strands = len(counts)
    if drop:
        if len(drop) == strands:
            raise FileError(f"{path}: none of its strands can be used: {_listed(drop)}")
        _warn(path, f"{len(drop)} of {strands} strands dropped: {_listed(drop)}")
        keep = np.ones(strands, bool)
        keep[list(drop)] = False
        kept_points = np.repeat(keep, counts)
        frames, counts = frames[:, kept_points], counts[keep]
        for name, value in fields.items():
            if value is not None:
                fields[name] = value[kept_points if FIELDS[name][1][0] == "points" else keep]
    for found, what in ((equal, "equal consecutive points"), (folded, "a fold back onto itself")):
        left = dict.fromkeys((strand for strand in found if strand not in drop), "")
        if left:
            _warn(path, f"{len(left)} of {strands} strands with {what}: {_listed(left)}")
    given: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    if times is not None:
        given["times"] = times
    try:
        return StrandSet(points=frames, counts=counts, **given)
    except FileError as error:
        raise FileError(f"{path}: {error}") from error


def warn_of_size(path: Path, strands: StrandSet, units: str) -> None:
    """Warn where hair is so long or short that the file's unit is probably another.

    Args:
        path: The file, for the message.
        strands: In metres, if the unit is right.
        units: The unit that was taken for the file's.
    """
    hint = size_hint(strands, units)
    if hint:
        _warn(path, hint)


def size_hint(strands: StrandSet, units: str = "m") -> str:
    """Return what is odd about the strands' length in a unit, and which other may be right."""
    length = middle_length(strands)
    low, high = LENGTHS
    if not length or low <= length <= high:
        return ""
    raw = length / UNITS[units]
    # The first that makes hair neither very short nor very long.
    good = [name for name in ("m", "cm", "mm", "in", "dm") if 0.02 <= raw * UNITS[name] <= 1.5]
    side = "longer" if length > high else "shorter"
    return (
        f"half of its strands are {side} than {length:.3g} m, expected {low:g} to {high:g} m; "
        f"{'try --units ' + good[0] if good else 'check its unit'}"
    )


def middle_length(strands: StrandSet) -> float:
    """Return the median length of up to a thousand strands, evenly chosen, first frame [m]."""
    total = len(strands.counts)
    if not total:
        return 0.0
    chosen = np.unique(np.linspace(0, total - 1, min(total, 1000)).astype(np.int64))
    starts, counts, points = strands.starts, strands.counts, strands.points[0]
    lengths = []
    for strand in chosen.tolist():
        line = points[starts[strand] : starts[strand] + counts[strand]].astype(np.float64)
        lengths.append(np.linalg.norm(np.diff(line, axis=0), axis=1).sum())
    return float(np.median(lengths))


def check_total(path: Path, counts: np.ndarray, points: int) -> None:
    """Raise `FileError` where strands' counts do not add up to the points, naming the strand."""
    ends = np.cumsum(counts, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    if total == points:
        return
    if total > points:
        strand = int(np.searchsorted(ends, points, side="right"))
        raise FileError(
            f"{path}: strand {strand} ends at point {int(ends[strand])} of {points}, "
            f"expected counts that add up to {points}, found {total}"
        )
    raise FileError(
        f"{path}: the last strand, {len(counts) - 1}, ends at point {total} of {points}, "
        f"expected counts that add up to {points}"
    )


def lost(path: Path, names: list[str], where: str) -> None:
    """Warn of what a format has no place for, by name, once for a file."""
    if names:
        _warn(path, f"{', '.join(names)} not kept: {where} has no place for that")


def _warn(path: Path, message: str) -> None:
    warnings.warn(f"{path}: {message}", FileWarning, stacklevel=3)


def _listed(strands: dict[int, str]) -> str:
    named = [f"{i} ({why})" if why else str(i) for i, why in sorted(strands.items())[:_NAMED]]
    more = len(strands) - len(named)
    return "strand " + ", ".join(named) + (f" and {more} more" if more > 0 else "")


def _look_over(points: np.ndarray, ends: np.ndarray) -> tuple[bool, list[int], list[int]]:
    """Return whether all is finite, and which strands have equal points, and which have folds."""
    finite, equal, folded = True, [], []
    for first in range(0, max(len(points) - 1, 0), _BLOCK):
        block = points[first : first + _BLOCK + 2]
        with np.errstate(all="ignore"):
            # One coordinate after another: sums over rows of three are several times slower.
            edge = np.diff(block, axis=0).reshape(-1)
            square = _row_sums(edge * edge)
            dot = _row_sums(edge[3:] * edge[:-3])
            # Sums of products are not finite where a point is not, or is too far off to be hair.
            if not np.isfinite(square).all():
                finite = False
            equal += _inside(np.flatnonzero(square[:_BLOCK] == 0.0) + first, 1, ends)
            back = np.flatnonzero(dot < 0.0)
            lengths = np.sqrt(square[back]) * np.sqrt(square[back + 1])
            sharp = back[-dot[back] > _FOLDED * lengths]
            folded += _inside(sharp + first, 2, ends)
    if len(points) == 1:
        finite = bool(np.isfinite(points).all())
    return finite, sorted(set(equal)), sorted(set(folded))


def _row_sums(products: np.ndarray) -> np.ndarray:
    sums = products[0::3] + products[1::3]
    sums += products[2::3]
    return sums


def _inside(rows: np.ndarray, reach: int, ends: np.ndarray) -> list[int]:
    """Return the strands of rows whose next ``reach`` points are of the same strand."""
    if not len(rows):
        return []
    strand = np.searchsorted(ends, rows, side="right")
    return np.unique(strand[rows + reach < ends[strand]]).tolist()


def _strands_with(bad_points: np.ndarray, ends: np.ndarray) -> list[int]:
    return np.unique(np.searchsorted(ends, np.flatnonzero(bad_points), side="right")).tolist()


def _without_length(
    points: np.ndarray, counts: np.ndarray, ends: np.ndarray, equal: list[int]
) -> list[int]:
    """Return which of the strands with equal points have nothing else."""
    if not equal:
        return []
    chosen = np.array(equal)
    mask = np.zeros(len(counts), bool)
    mask[chosen] = True
    rows = np.flatnonzero(np.repeat(mask, counts))
    strand = np.searchsorted(ends, rows, side="right")
    with np.errstate(invalid="ignore"):
        moved = (points[rows] != points[ends[strand] - counts[strand]]).any(axis=1)
    return np.setdiff1d(chosen, strand[moved]).tolist()
