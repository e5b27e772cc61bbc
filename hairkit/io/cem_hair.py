"""Cem Yuksel's .hair files.

Little-endian: a header of 128 bytes (``HAIR``, strands, points, which arrays follow, and defaults
for those that do not), then without padding segments (u16 a strand), points (3 f32), thickness
(f32), transparency (f32) and colours (3 f32) of each point.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from hairkit.errors import FileError
from hairkit.io.dirty import check_total, lost, strands_of_file
from hairkit.io.strand_set import AddFrame, StrandSet

HOLDS = frozenset({"points", "counts", "widths", "colors"})

_HEADER = "4sIIIIff3f88s"
_SIZE = 128
_SEGMENTS, _POINTS, _THICKNESS, _TRANSPARENCY, _COLORS = 1, 2, 4, 8, 16
_MOST_SEGMENTS = 65_535
"""The largest that a u16 holds."""


@dataclass(frozen=True, kw_only=True)
class _Header:
    strands: int
    points: int
    arrays: int
    segments: int
    thickness: float
    transparency: float
    color: tuple[float, float, float]

    @property
    def size(self) -> int:
        """Bytes of the whole file, from what the header says."""
        each = {_POINTS: 12, _THICKNESS: 4, _TRANSPARENCY: 4, _COLORS: 12}
        rows = sum(size for bit, size in each.items() if self.arrays & bit)
        return _SIZE + (2 * self.strands if self.arrays & _SEGMENTS else 0) + self.points * rows


def read(path: Path) -> StrandSet:
    """Read strands, as they are in the file: without a unit, whatever axis is up.

    Defaults of the header count where they say something: a thickness other than 1 and a colour
    other than white, which programs write that know of neither.

    Raises:
        FileError: It is no .hair file, is cut short, or its counts do not add up.
    """
    try:
        size = path.stat().st_size
        with open(path, "rb") as file:
            raw = file.read(_SIZE)
            header = _checked(path, raw)
            counts = _counts(path, file, header, size)
            return _read_arrays(path, file, header, counts)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error


@contextmanager
def writer(path: Path, like: StrandSet, frames: int) -> Iterator[AddFrame]:
    """Open a file for the one frame that it holds.

    Raises:
        FileError: A strand has more points than the format counts.
    """
    segments = like.counts - 1
    if len(segments) and segments.max() > _MOST_SEGMENTS:
        strand = int(segments.argmax())
        raise FileError(
            f"strand {strand} has {like.counts[strand]} points, "
            f"expected at most {_MOST_SEGMENTS + 1} in a .hair file"
        )
    even = len(segments) > 0 and bool((segments == segments[0]).all())
    arrays = _POINTS | (0 if even else _SEGMENTS)
    arrays |= _THICKNESS if like.widths is not None else 0
    arrays |= _COLORS if like.colors is not None else 0
    header = struct.pack(
        "<" + _HEADER,
        b"HAIR",
        len(segments),
        like.points.shape[1],
        arrays,
        int(segments[0]) if even else 0,
        1.0,
        0.0,
        1.0,
        1.0,
        1.0,
        b"hairkit",
    )
    with open(path, "wb") as file:

        def add(points: np.ndarray, time: float) -> None:
            file.write(header)
            if not even:
                file.write(segments.astype("<u2").data)
            for array in (points, like.widths, like.colors):
                if array is not None:
                    file.write(np.ascontiguousarray(array, "<f4").data)

        yield add


def _checked(path: Path, raw: bytes) -> _Header:
    if raw[:4] != b"HAIR":
        raise FileError(f"{path}: starts with {raw[:4]!r}, expected b'HAIR'")
    if len(raw) < _SIZE:
        raise FileError(f"{path}: cut short, {len(raw)} bytes, expected a header of {_SIZE}")
    header = _unpack(raw, "<")
    swapped = _unpack(raw, ">")
    # A mask of arrays is small in one order only.
    if header.arrays > 0xFFFF and swapped.arrays <= 0xFFFF:
        raise FileError(f"{path}: its numbers are big-endian, expected little-endian")
    if not header.arrays & _POINTS:
        raise FileError(f"{path}: arrays are {header.arrays:#x}, expected points (2) among them")
    return header


def _counts(path: Path, file: IO[bytes], header: _Header, size: int) -> np.ndarray:
    """Return the points of each strand, after making sure that the file has all it promises."""
    needed = (
        f"{header.strands} strands and {header.points} points need {header.size} bytes, "
        f"found {size}"
    )
    if header.arrays & _SEGMENTS:
        if _SIZE + 2 * header.strands > size:
            raise FileError(f"{path}: {needed}")
        counts = np.fromfile(file, "<u2", header.strands).astype(np.int64) + 1
        check_total(path, counts, header.points)
    else:
        total = header.strands * (header.segments + 1)
        if total != header.points:
            raise FileError(
                f"{path}: {header.strands} strands of {header.segments} segments have {total} "
                f"points, found {header.points}"
            )
        if header.size > size:
            raise FileError(f"{path}: {needed}")
        counts = np.full(header.strands, header.segments + 1, np.int64)
    if header.size > size:
        there = max(size - file.tell(), 0) // 12
        strand = int(np.searchsorted(np.cumsum(counts), there, side="right"))
        where = f"strand {strand} is not whole" if strand < len(counts) else "points are whole"
        raise FileError(f"{path}: cut short, {where}; {needed}")
    return counts


def _unpack(raw: bytes, order: str) -> _Header:
    _, strands, points, arrays, segments, thickness, transparency, *color, _ = struct.unpack(
        order + _HEADER, raw
    )
    return _Header(
        strands=strands,
        points=points,
        arrays=arrays,
        segments=segments,
        thickness=thickness,
        transparency=transparency,
        color=(color[0], color[1], color[2]),
    )


def _read_arrays(path: Path, file: IO[bytes], header: _Header, counts: np.ndarray) -> StrandSet:
    points = np.fromfile(file, "<f4", 3 * header.points).reshape(-1, 3)
    widths = colors = None
    if header.arrays & _THICKNESS:
        widths = np.fromfile(file, "<f4", header.points)
    elif header.thickness not in (0.0, 1.0):
        widths = np.full(header.points, header.thickness, np.float32)
    if header.arrays & _TRANSPARENCY:
        file.seek(4 * header.points, 1)
    if header.arrays & _TRANSPARENCY or header.transparency != 0.0:
        lost(path, ["transparency"], "a strand set")
    if header.arrays & _COLORS:
        colors = np.fromfile(file, "<f4", 3 * header.points).reshape(-1, 3)
    elif header.color != (1.0, 1.0, 1.0):
        colors = np.full((header.points, 3), header.color, np.float32)
    return strands_of_file(path, points, counts, widths=widths, colors=colors)
