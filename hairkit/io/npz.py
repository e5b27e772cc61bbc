"""Strands as one .npz archive: hairkit's own, with all that is needed to grow the same groom again.

An array for each field of `StrandSet` and, where the groom is known, ``style`` (TOML), ``roots``,
``normals``, ``directions``, ``lengths``, ``tied_to``, ``seed``, ``head``, ``head_hash`` and
``head_options``. Archives of DiffLocks are read too: ``positions`` (strands, points, 3),
``root_normal`` (strands, 3), ``root_uv`` (strands, 2).
"""

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from hairkit.errors import FileError
from hairkit.io.strand_set import (
    FIELDS,
    AddFrame,
    GroomRecord,
    HeadRecord,
    StrandSet,
    as_array,
)

HOLDS = frozenset({*FIELDS, "groom"})

_GROOM_SHAPES: dict[str, tuple[str | int, ...]] = {
    "roots": ("strands", 3),
    "normals": ("strands", 3),
    "directions": ("strands", 3),
    "lengths": ("strands",),
}
_GROOM = (*_GROOM_SHAPES, "tied_to", "seed", "style", "head", "head_hash", "head_options")
_DIFFLOCKS = {"root_uv": "root_uv", "root_normal": "root_normals"}

# All that NumPy writes for plain arrays; structured ones and those of Python 2 are not read.
_HEADER = re.compile(
    r"\{'descr': '([<>|=]?)([a-zA-Z])(\d{0,8})', 'fortran_order': (True|False), "
    r"'shape': \(((?:\d{1,20}(?:, ?)?)*),?\), ?\}\s*"
)
_SIZES = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8)}
_CHUNK = 2**20
_MOST = 4
"""Memory that arrays may take, in sizes of the file; a tight archive may be a trap."""

# zipfile has no list of what it raises for damaged archives; each of these was seen.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
    struct.error,
    zlib.error,
)


def read(path: Path) -> StrandSet:
    """Read strands.

    Raises:
        FileError: It is no whole archive, an array is missing or wrong, or one holds Python
            objects, which are never loaded.
    """
    try:
        arrays = _read_arrays(path)
        if "positions" in arrays and "points" not in arrays:
            return _difflocks(arrays)
        for name in ("points", "counts"):
            if name not in arrays:
                raise FileError(f"array {name!r} is missing, expected it in a strands file")
        groom = _groom_record(arrays) if "style" in arrays else None
        return StrandSet(**{name: arrays[name] for name in FIELDS if name in arrays}, groom=groom)
    except FileError as error:
        raise FileError(f"{path}: {error}") from error


@contextmanager
def writer(
    path: Path, like: StrandSet, frames: int, *, head_pose: np.ndarray | None = None
) -> Iterator[AddFrame]:
    """Open an archive that frames are added to one by one.

    Args:
        path: The file.
        like: What to write beside points and times.
        frames: How many frames will come.
        head_pose: Head frame to world frame at each frame, shape (frames, 4, 4).
    """
    arrays = {
        name: getattr(like, name)
        for name in FIELDS
        if name not in ("points", "times", "head_pose") and getattr(like, name) is not None
    }
    if head_pose is not None:
        arrays["head_pose"] = as_array(head_pose, "head_pose", np.float64, ("frames", 4, 4))
    if like.groom is not None:
        arrays |= _groom_arrays(like.groom)
    times: list[float] = []
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, value, allow_pickle=False)
        with archive.open("points.npy", "w", force_zip64=True) as file:
            shape = (frames, like.points.shape[1], 3)
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)

            def add(points: np.ndarray, time: float) -> None:
                file.write(np.ascontiguousarray(points, "<f4").data)
                times.append(time)

            yield add
        with archive.open("times.npy", "w") as file:
            np.lib.format.write_array(file, np.array(times, np.float64), allow_pickle=False)


def _difflocks(arrays: dict[str, np.ndarray]) -> StrandSet:
    positions = as_array(arrays["positions"], "positions", np.float32, ("strands", "points", 3))
    strands, each = positions.shape[:2]
    more: dict[str, Any] = {name: arrays[key] for key, name in _DIFFLOCKS.items() if key in arrays}
    return StrandSet(
        points=positions.reshape(1, -1, 3), counts=np.full(strands, each, np.int32), **more
    )


def _groom_arrays(groom: GroomRecord) -> dict[str, np.ndarray]:
    arrays = {name: getattr(groom, name) for name in (*_GROOM_SHAPES, "tied_to")}
    arrays["style"] = np.array(groom.style)
    arrays["seed"] = np.array(groom.seed, dtype=np.int64)
    arrays["head"] = np.array(groom.head.source)
    arrays["head_hash"] = np.array(groom.head.digest)
    arrays["head_options"] = np.array(json.dumps(groom.head.options, sort_keys=True))
    return arrays


def _groom_record(arrays: dict[str, np.ndarray]) -> GroomRecord:
    values: dict[str, np.ndarray] = {}
    strands = len(as_array(arrays["counts"], "counts", np.int32, ("strands",)))
    for name, shape in _GROOM_SHAPES.items():
        if name not in arrays:
            raise FileError(f"array {name!r} is missing, expected it beside 'style'")
        values[name] = as_array(arrays[name], name, np.float64, shape)
        if len(values[name]) != strands:
            raise FileError(f"{name}: {len(values[name])} strands, expected {strands} as in counts")
        if not np.isfinite(values[name]).all():
            strand = int((~np.isfinite(values[name]).reshape(strands, -1).all(axis=1)).argmax())
            raise FileError(f"{name}: strand {strand} is not finite, expected numbers")
    tied_to = np.full(strands, -1, np.int32)
    if "tied_to" in arrays:
        tied_to = as_array(arrays["tied_to"], "tied_to", np.int32, ("strands",))
        if len(tied_to) != strands:
            raise FileError(f"tied_to: {len(tied_to)} strands, expected {strands} as in counts")
    options = _text(arrays, "head_options", default="{}")
    try:
        parsed = json.loads(options)
    except ValueError as error:
        raise FileError(f"head_options: {options[:40]!r}, expected a JSON object") from error
    if not isinstance(parsed, dict):
        raise FileError(f"head_options: {options[:40]!r}, expected a JSON object")
    seed = as_array(arrays["seed"], "seed", np.int64, ()) if "seed" in arrays else np.int64(0)
    return GroomRecord(
        style=_text(arrays, "style"),
        tied_to=tied_to,
        seed=int(seed),
        head=HeadRecord(
            source=_text(arrays, "head"),
            digest=_text(arrays, "head_hash", default=""),
            options=parsed,
        ),
        **values,
    )


def _text(arrays: dict[str, np.ndarray], name: str, *, default: str | None = None) -> str:
    if name not in arrays:
        if default is None:
            raise FileError(f"array {name!r} is missing, expected it beside 'style'")
        return default
    value = arrays[name]
    if value.dtype.kind != "U" or value.shape != ():
        raise FileError(f"{name}: {value.dtype} of shape {value.shape}, expected one text")
    return str(value)


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays that strands are made of, trusting neither their pickles nor their sizes."""
    wanted = {*FIELDS, *_GROOM, "positions", *_DIFFLOCKS}
    arrays: dict[str, np.ndarray] = {}
    try:
        room = _MOST * path.stat().st_size + _CHUNK
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                name = entry.filename.removesuffix(".npy")
                if name not in wanted:
                    continue
                room -= entry.file_size
                if room < 0:
                    raise FileError(
                        f"{name}: {entry.file_size} bytes when unpacked, "
                        f"expected at most {_MOST} times the file's size"
                    )
                with archive.open(entry) as file:
                    arrays[name] = _read_array(file, entry.file_size, name)
    except FileError:
        raise
    except _ZIP_ERRORS as error:
        raise FileError(f"not a whole .npz archive ({error})") from error
    return arrays


def _read_array(file: IO[bytes], size: int, name: str) -> np.ndarray:
    """Read one array after comparing what it says of itself with its bytes."""
    start = file.read(8)
    wide = start[6:7] in (b"\2", b"\3")
    if start[:6] != b"\x93NUMPY" or start[6:7] not in (b"\1", b"\2", b"\3"):
        raise FileError(f"{name}: starts with {start!r}, expected an array of NumPy")
    length = int.from_bytes(file.read(4 if wide else 2), "little")
    text = file.read(min(length, 4096)).decode("latin-1")
    found = _HEADER.fullmatch(text)
    if found is None:
        raise FileError(f"{name}: header {text[:60].strip()!r}, expected a plain array's")
    order, kind, width, fortran, lengths = found.groups()
    if kind == "O":
        raise FileError(f"{name}: holds Python objects, expected numbers or text")
    bytes_each = int(width or 0) * (4 if kind == "U" else 1)
    if kind != "U" and bytes_each not in _SIZES.get(kind, ()):
        raise FileError(f"{name}: type {order}{kind}{width}, expected numbers or text")
    shape = tuple(int(part) for part in lengths.replace(" ", "").split(",") if part)
    count = 1
    for part in shape:
        count *= part
    there = size - (12 if wide else 10) - length
    if count * bytes_each != there or (kind == "U" and count and bytes_each > there):
        raise FileError(
            f"{name}: shape {shape} of {order}{kind}{width} needs {count * bytes_each} bytes, "
            f"found {there}"
        )
    if count == 0 or bytes_each == 0:
        # Nothing may be as wide as it likes.
        if max(shape, default=0) > _CHUNK or bytes_each > _CHUNK:
            raise FileError(f"{name}: shape {shape} without bytes, expected numbers or text")
        return np.zeros(shape, f"{kind}{width or 0}" if kind != "b" else np.bool_)
    data = bytearray(there)
    filled, view = 0, memoryview(data)
    while part := file.read(_CHUNK):
        view[filled : filled + len(part)] = part
        filled += len(part)
    if filled != there:
        raise FileError(f"{name}: cut short, {filled} of {there} bytes")
    dtype = np.dtype(f"{order}{kind}{width}")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran == "True" else "C")
