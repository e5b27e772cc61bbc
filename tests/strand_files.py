"""Strands to write, and strand files made byte by byte, for the tests of formats."""

import struct

import numpy as np
from numpy.typing import ArrayLike

from hairkit.io.strand_set import StrandSet

COUNTS = (2, 5, 3, 9, 2, 4)


def strands(*, counts: tuple[int, ...] = COUNTS, frames: int = 1, bare: bool = False) -> StrandSet:
    """Return strands of about 10 cm that hang and waver, with all that a format may hold."""
    rng = np.random.default_rng(3)
    total, number = sum(counts), len(counts)
    parts = []
    for count in counts:
        steps = rng.normal((0.0, -0.1 / count, 0.0), 0.002, (count, 3))
        parts.append(rng.normal(0.0, 0.1, 3) + np.cumsum(steps, axis=0))
    first = np.concatenate(parts)
    points = np.stack([first + 0.01 * frame for frame in range(frames)])
    if bare:
        return StrandSet(points=points, counts=np.array(counts), times=np.arange(frames) / 24)
    return StrandSet(
        points=points,
        counts=np.array(counts),
        times=np.arange(frames) / 24,
        widths=rng.uniform(1e-5, 1e-4, total),
        # Eighths of a byte's range: formats that hold bytes hold these.
        colors=rng.integers(0, 256, (total, 3)) / 255.0,
        root_uv=rng.uniform(0.0, 1.0, (number, 2)),
        root_normals=np.tile([0.0, 1.0, 0.0], (number, 1)),
        ids=rng.permutation(1000)[:number],
        groups=rng.integers(0, 4, number),
        guides=rng.integers(0, 2, number).astype(bool),
    )


def hair_header(
    *,
    strands: int,
    points: int,
    arrays: int = 3,
    segments: int = 0,
    thickness: float = 1.0,
    transparency: float = 0.0,
    color: tuple[float, float, float] = (1.0, 1.0, 1.0),
    order: str = "<",
) -> bytes:
    """Return the 128 bytes that a .hair file begins with."""
    start = struct.pack(order + "4sIIII", b"HAIR", strands, points, arrays, segments)
    return start + struct.pack(order + "ff3f88s", thickness, transparency, *color, b"by hand")


def hair(lines: list[list[tuple[float, float, float]]], order: str = "<") -> bytes:
    """Return a .hair file of these strands, in either byte order."""
    total = sum(map(len, lines))
    made = hair_header(strands=len(lines), points=total, order=order)
    # A strand of no points has -1 segments, which wraps: no such file can be made.
    made += b"".join(struct.pack(order + "H", len(line) - 1) for line in lines)
    return made + b"".join(struct.pack(order + "3f", *point) for line in lines for point in line)


def data(lines: list[list[tuple[float, float, float]]], order: str = "<", more: int = 0) -> bytes:
    """Return a .data file of these strands, or a .bin one with 4 more numbers a point."""
    made = struct.pack(order + "i", len(lines))
    for line in lines:
        made += struct.pack(order + "i", len(line))
        for point in line:
            made += struct.pack(f"{order}{3 + more}f", *point, *[0.0] * more)
    return made


def tfx(lines: list[list[tuple[float, float, float]]], *, uv: bool = True) -> bytes:
    """Return a .tfx file of strands of one count, with a UV and a thickness of each."""
    each = len(lines[0])
    rows = [(*point, float(row > 0)) for one in lines for row, point in enumerate(one)]
    places = b"".join(struct.pack("<4f", *row) for row in rows)
    uv_at = 160 + len(places)
    thick_at = uv_at + 8 * len(lines)
    offsets = (160, uv_at if uv else 0, 0, thick_at if uv else 0, 0)
    made = struct.pack("<fII5I32I", 4.0, len(lines), each, *offsets, *[0] * 32) + places
    if uv:
        made += b"".join(struct.pack("<2f", i / 10, i / 20) for i in range(len(lines)))
        made += b"".join(struct.pack("<f", 1e-4 * (i + 1)) for i in range(len(lines)))
    return made


def line(count: int, x: float = 0.0, step: float = 0.02) -> list[tuple[float, float, float]]:
    """Return a strand that hangs straight down."""
    return [(x, -step * row, 0.0) for row in range(count)]


def joined(lines: list[list[tuple[float, float, float]]]) -> np.ndarray:
    """Return the points of strands one after another, shape (points, 3), f32."""
    return np.array([point for each in lines for point in each], np.float32)


def f32(values: ArrayLike) -> np.ndarray:
    """Return numbers as a file has them."""
    return np.array(values, np.float32)


def ascii_ply(lines: list[list[tuple[float, float, float]]]) -> bytes:
    """Return a .ply of strands, in text."""
    points = [point for line in lines for point in line]
    head = f"ply\nformat ascii 1.0\nelement vertex {len(points)}\n"
    head += "".join(f"property float {axis}\n" for axis in "xyz")
    head += f"element strand {len(lines)}\nproperty int nsegs\nend_header\n"
    rows = [" ".join(map(repr, point)) for point in points]
    return (head + "\n".join([*rows, *(str(len(line) - 1) for line in lines)]) + "\n").encode()
