"""Strands of USC-HairSalon (.data) and CT2Hair (.bin): counts among the points, no names.

Little-endian: the number of strands (i32), then each strand's number of points (i32) and its
points. A point of .data is x, y, z (f32); one of .bin has a normal and a label after them. Nothing
in a file says which it is but its length.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from hairkit.errors import FileError
from hairkit.io.dirty import lost, strands_of_file
from hairkit.io.strand_set import AddFrame, StrandSet

HOLDS = frozenset({"points", "counts"})

_WIDTHS = {".data": 3, ".bin": 7}
"""Numbers that a point has, by the ending that such files usually have."""

_BATCH = 2**16
"""Points that are put together at once when a file is written."""


def read(path: Path) -> StrandSet:
    """Read strands of either layout, whichever fits the file's length.

    Raises:
        FileError: Neither layout fits.
    """
    try:
        size = path.stat().st_size
        words = np.fromfile(path, "<u4", size // 4)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error
    usual = _WIDTHS.get(path.suffix.lower(), 3)
    tries = {width: _walk(words, size, width) for width in (usual, 10 - usual)}
    for width, (starts, _) in tries.items():
        if starts is not None:
            return _strands(path, words, starts, width)
    if any(_walk(words.byteswap(), size, width)[0] is not None for width in tries):
        raise FileError(f"{path}: its numbers are big-endian, expected little-endian")
    raise FileError(
        f"{path}: {tries[usual][1]}; its length fits neither points of 3 numbers (.data) "
        "nor of 7 (.bin)"
    )


@contextmanager
def writer(path: Path, like: StrandSet, frames: int) -> Iterator[AddFrame]:
    """Open a file for the one frame that it holds; the ending says which layout."""
    width = _WIDTHS[path.suffix.lower()]
    counts, starts = like.counts, like.starts
    with open(path, "wb") as file:

        def add(points: np.ndarray, time: float) -> None:
            np.array(len(counts), "<i4").tofile(file)
            first = 0
            while first < len(counts):
                # As many strands as fill a batch, and one at least.
                last = int(np.searchsorted(starts, starts[first] + _BATCH, side="right"))
                some = counts[first:last]
                words = np.zeros((int(some.sum(dtype=np.int64)), width), "<f4")
                words[:, :3] = points[starts[first] : starts[first] + len(words)]
                heads = width * (starts[first:last] - starts[first])
                file.write(np.insert(words.view("<i4").reshape(-1), heads, some).data)
                first = last

        yield add


def _walk(words: np.ndarray, size: int, width: int) -> tuple[np.ndarray | None, str]:
    """Return where each strand's count is, if counts lead to the very end, else what is wrong."""
    if size % 4 or not len(words):
        return None, f"{size} bytes, expected a whole number of f32"
    strands = int(words[0])
    if strands >= len(words):
        return None, f"{strands} strands do not fit into {size} bytes"
    if strands and len(words) > 1:
        # Most files have strands of one count: then counts lie at even distances.
        step = 1 + width * int(words[1])
        if 1 + strands * step == len(words) and (words[1::step] == words[1]).all():
            return np.arange(1, len(words), step), ""
    at, starts, total = 1, np.zeros(strands, np.int64), len(words)
    counts = words.data.cast("B").cast("I")
    # Each count says where the next one is, so that this cannot be done all at once.
    for strand in range(strands):
        if at == total:
            return None, f"cut short, strand {strand} of {strands} is missing"
        starts[strand] = at
        count = counts[at]
        at += 1 + width * count
        if at > total:
            return None, f"cut short, strand {strand} of {strands} has {count} points"
    if at == total:
        return starts, ""
    return None, f"all {strands} strands take {4 * at} bytes, found {size}"


def _strands(path: Path, words: np.ndarray, starts: np.ndarray, width: int) -> StrandSet:
    counts = words[starts].astype(np.int64)
    if len(counts) and (counts == counts[0]).all():
        rows = words[1:].reshape(len(counts), -1)[:, 1:]
    else:
        keep = np.ones(len(words), bool)
        keep[0] = False
        keep[starts] = False
        rows = words[keep]
    values = rows.reshape(-1, width).view("<f4") if rows.size else np.zeros((0, width), "<f4")
    if width > 3 and values[:, 3:].any():
        lost(path, ["normals", "labels"], "a strand set")
    return strands_of_file(path, np.ascontiguousarray(values[:, :3]), counts)
