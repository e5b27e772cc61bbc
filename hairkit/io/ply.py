"""Strands as .ply: vertices, edges between them, and an element ``strand`` for what is a strand's.

Written in binary, little-endian: ``vertex`` (x, y, z; width; red, green, blue as bytes), ``strand``
(nsegs, and what else is known), ``edge`` (vertex1, vertex2). Read in any of the three encodings,
with or without ``strand``.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NoReturn

import numpy as np

from hairkit.errors import FileError
from hairkit.io.dirty import strands_of_file
from hairkit.io.edges import edges_of_strands, strands_of_edges
from hairkit.io.strand_set import FIELDS, AddFrame, StrandSet

_STRAND = {
    "ids": (("id",), "<i4", "int"),
    "groups": (("group",), "<i4", "int"),
    "guides": (("guide",), "<u1", "uchar"),
    "root_uv": (("root_u", "root_v"), "<f4", "float"),
    "root_normals": (("root_nx", "root_ny", "root_nz"), "<f4", "float"),
}
"""Properties of a strand beside its segments, and their type for NumPy and for PLY."""

HOLDS = frozenset({"points", "counts", "widths", "colors", *_STRAND})

_TYPES = {
    **{"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"},
    **{"float": "f4", "double": "f8", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2"},
    **{"int32": "i4", "uint32": "u4", "float32": "f4", "float64": "f8"},
}
_ORDERS = {"binary_little_endian": "<", "binary_big_endian": ">", "ascii": ""}
_MOST_HEADER = 2**16
_RGB = ("red", "green", "blue")


@dataclass(kw_only=True)
class _Element:
    name: str
    count: int
    properties: dict[str, str] = field(default_factory=dict)
    """Type of each property, in order."""

    lists: dict[str, str] = field(default_factory=dict)
    """Type of the length of those that are lists."""

    def dtype(self, order: str) -> np.dtype:
        return np.dtype([(name, order + kind) for name, kind in self.properties.items()])


def read(path: Path) -> StrandSet:
    """Read strands: lines made of edges, or the vertices of each ``strand`` in turn.

    Raises:
        FileError: It is no .ply file, is cut short, has neither edges nor strands, or its lines
            branch or close.
    """
    try:
        size = path.stat().st_size
        with open(path, "rb") as file:
            order, elements = _header(path, file)
            names = ("vertex", "strand", "edge")
            if order:
                rows = _binary(path, file, size, order, elements, names)
            else:
                rows = _ascii(path, file, elements, names)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error
    vertex = rows.get("vertex")
    if vertex is None or not {"x", "y", "z"} <= set(vertex):
        _fail(path, "no element 'vertex' with x, y and z")
    points = np.stack([vertex[axis] for axis in "xyz"], axis=1, dtype=np.float32, casting="unsafe")
    fields: dict[str, np.ndarray | None] = {
        "widths": _widths(vertex),
        "colors": _colors(vertex),
    }
    strand = rows.get("strand", {})
    edge = rows.get("edge", {})
    chosen = None
    if "nsegs" in strand:
        counts = strand["nsegs"].astype(np.int64) + 1
        for name, (properties, _, _) in _STRAND.items():
            if all(part in strand for part in properties):
                columns = np.stack([strand[part] for part in properties], axis=1)
                shaped = columns if len(FIELDS[name][1]) > 1 else columns[:, 0]
                fields[name] = shaped.astype(FIELDS[name][0])
    elif "vertex1" in edge and "vertex2" in edge:
        joined = np.stack([edge["vertex1"], edge["vertex2"]], axis=1).astype(np.int64)
        chosen, counts = strands_of_edges(path, joined, len(points))
    else:
        _fail(path, "no element 'edge' with vertex1 and vertex2, expected strands and no surface")
    if chosen is not None:
        points = points[chosen]
        fields = {name: None if v is None else v[chosen] for name, v in fields.items()}
    return strands_of_file(path, points, counts, **fields)


@contextmanager
def writer(path: Path, like: StrandSet, frames: int) -> Iterator[AddFrame]:
    """Open a file for the one frame that it holds."""
    vertex = [(axis, "<f4", "float") for axis in "xyz"]
    if like.widths is not None:
        vertex.append(("width", "<f4", "float"))
    if like.colors is not None:
        vertex += [(name, "<u1", "uchar") for name in _RGB]
    small = not len(like.counts) or like.counts.max() <= 2**16
    strand = [("nsegs", "<u2", "ushort") if small else ("nsegs", "<u4", "uint")]
    for name, (properties, dtype, kind) in _STRAND.items():
        if getattr(like, name) is not None:
            strand += [(part, dtype, kind) for part in properties]
    edge = [("vertex1", "<i4", "int"), ("vertex2", "<i4", "int")]
    edges = edges_of_strands(like.counts)
    lines = ["ply", "format binary_little_endian 1.0", "comment strands of hair, by hairkit"]
    for name, rows, parts in (
        ("vertex", like.points.shape[1], vertex),
        ("strand", len(like.counts), strand),
        ("edge", len(edges), edge),
    ):
        lines.append(f"element {name} {rows}")
        lines += [f"property {kind} {part}" for part, _, kind in parts]
    with open(path, "wb") as file:

        def add(points: np.ndarray, time: float) -> None:
            file.write(("\n".join([*lines, "end_header"]) + "\n").encode("ascii"))
            if len(vertex) == 3:
                file.write(np.ascontiguousarray(points, "<f4").data)
            else:
                row = np.zeros(len(points), [(part, dtype) for part, dtype, _ in vertex])
                for axis, name in enumerate("xyz"):
                    row[name] = points[:, axis]
                if like.widths is not None:
                    row["width"] = like.widths
                if like.colors is not None:
                    for channel, name in enumerate(_RGB):
                        row[name] = np.rint(np.clip(like.colors[:, channel], 0.0, 1.0) * 255.0)
                file.write(row.data)
            rows = np.zeros(len(like.counts), [(part, dtype) for part, dtype, _ in strand])
            rows["nsegs"] = like.counts - 1
            for name, (properties, _, _) in _STRAND.items():
                value = getattr(like, name)
                if value is not None:
                    columns = value.reshape(len(value), -1)
                    for column, part in enumerate(properties):
                        rows[part] = columns[:, column]
            file.write(rows.data)
            file.write(edges.astype("<i4").data)

        yield add


def _widths(vertex: dict[str, np.ndarray]) -> np.ndarray | None:
    for name, factor in (("width", 1.0), ("radius", 2.0)):
        if name in vertex:
            return vertex[name].astype(np.float32) * np.float32(factor)
    return None


def _colors(vertex: dict[str, np.ndarray]) -> np.ndarray | None:
    if not all(name in vertex for name in _RGB):
        return None
    columns = np.stack([vertex[name] for name in _RGB], axis=1)
    if columns.dtype.kind in "iu":
        return columns.astype(np.float32) / np.float32(255.0)
    return columns.astype(np.float32)


def _header(path: Path, file: IO[bytes]) -> tuple[str, list[_Element]]:
    """Return the byte order, "" for text, and the elements; leaves the file at the first one."""
    raw = file.read(_MOST_HEADER)
    if raw[:3] != b"ply":
        _fail(path, f"starts with {raw[:4]!r}, expected b'ply'")
    end = raw.find(b"end_header")
    line_end = raw.find(b"\n", end)
    if end < 0 or line_end < 0:
        _fail(path, "header without end_header")
    order: str | None = None
    elements: list[_Element] = []
    for line in raw[:end].decode("latin-1").splitlines():
        words = line.split()
        match words:
            case ["format", encoding, *_]:
                order = _ORDERS.get(encoding)
            case ["element", name, count] if count.isdecimal() and len(count) < 20:
                if any(element.name == name for element in elements):
                    _fail(path, f"two elements {name!r}")
                elements.append(_Element(name=name, count=int(count)))
            case ["property", "list", length, kind, name] if elements:
                _property(path, elements[-1], kind, name)
                if _TYPES.get(length, "f")[0] not in "iu":
                    _fail(path, f"list {name!r} has a length of type {length!r}")
                elements[-1].lists[name] = _TYPES[length]
            case ["property", kind, name] if elements:
                _property(path, elements[-1], kind, name)
            case ["element" | "property", *_]:
                _fail(path, f"header line {line[:60]!r}")
    if order is None:
        _fail(path, f"format is not one of {', '.join(_ORDERS)}")
    file.seek(line_end + 1)
    return order, elements


def _property(path: Path, element: _Element, kind: str, name: str) -> None:
    if kind not in _TYPES or name in element.properties or len(element.properties) > 1000:
        _fail(path, f"property {kind} {name} of {element.name}")
    element.properties[name] = _TYPES[kind]


def _binary(
    path: Path,
    file: IO[bytes],
    size: int,
    order: str,
    elements: list[_Element],
    wanted: tuple[str, ...],
) -> dict[str, dict[str, np.ndarray]]:
    found: dict[str, dict[str, np.ndarray]] = {}
    for element in elements:
        if set(wanted) <= set(found):
            break
        if element.lists:
            _skip_lists(path, file, size, order, element)
            continue
        dtype = element.dtype(order)
        if element.count * dtype.itemsize > size - file.tell():
            _fail(
                path,
                f"{element.count} rows of {element.name} need {element.count * dtype.itemsize} "
                f"bytes, found {max(size - file.tell(), 0)}",
            )
        if element.name not in wanted:
            file.seek(element.count * dtype.itemsize, 1)
        elif element.properties:
            rows = np.fromfile(file, dtype, element.count)
            found[element.name] = {name: rows[name] for name in element.properties}
    return found


def _skip_lists(path: Path, file: IO[bytes], size: int, order: str, element: _Element) -> None:
    """Go past rows that have lists, such as faces, which are each as long as they say."""
    kinds = {name: np.dtype(order + kind) for name, kind in element.properties.items()}
    lengths = {name: np.dtype(order + kind) for name, kind in element.lists.items()}
    raw = file.read()
    at = 0
    for row in range(element.count):
        for name, kind in kinds.items():
            count = 1
            if name in lengths:
                if at + lengths[name].itemsize > len(raw):
                    _fail(path, f"cut short in row {row} of {element.name}")
                count = int(np.frombuffer(raw, lengths[name], 1, at)[0])
                at += lengths[name].itemsize
            at += max(count, 0) * kind.itemsize
        if at > len(raw):
            _fail(path, f"cut short in row {row} of {element.name}")
    file.seek(size - len(raw) + at)


def _ascii(
    path: Path, file: IO[bytes], elements: list[_Element], wanted: tuple[str, ...]
) -> dict[str, dict[str, np.ndarray]]:
    text = file.read().strip()
    try:
        with warnings.catch_warnings():
            # NumPy only warns of what is not a number.
            warnings.simplefilter("error", DeprecationWarning)
            numbers = np.fromstring(text, np.float64, sep=" ") if text else np.zeros(0)
    except (DeprecationWarning, ValueError) as error:
        raise FileError(f"{path}: not numbers after the header ({error})") from error
    found: dict[str, dict[str, np.ndarray]] = {}
    at = 0
    for element in elements:
        width = len(element.properties)
        if element.lists:
            for row in range(element.count):
                for name in element.properties:
                    if at >= len(numbers):
                        _fail(path, f"cut short in row {row} of {element.name}")
                    length = numbers[at] if name in element.lists else 0.0
                    if not 0.0 <= length <= len(numbers):
                        _fail(path, f"row {row} of {element.name} has a list of {length:g}")
                    at += 1 + int(length)
            continue
        if width * element.count > len(numbers) - at:
            _fail(
                path,
                f"cut short: {element.count} rows of {element.name} need "
                f"{width * element.count} numbers, found {max(len(numbers) - at, 0)}",
            )
        if element.name in wanted and width:
            rows = numbers[at : at + width * element.count].reshape(-1, width)
            found[element.name] = {
                name: _column(path, element, name, kind, rows[:, column])
                for column, (name, kind) in enumerate(element.properties.items())
            }
        at += width * element.count
    return found


def _column(path: Path, element: _Element, name: str, kind: str, values: np.ndarray) -> np.ndarray:
    """Return numbers that were text in the type that they are said to have."""
    if kind[0] == "f":
        return values.astype(kind)
    limits = np.iinfo(kind)
    good = (values >= limits.min) & (values <= limits.max)
    if not good.all():
        row = int((~good).argmax())
        _fail(path, f"{name} of {element.name} {row} is {values[row]:g}, expected {kind}")
    return values.astype(kind)


def _fail(path: Path, message: str) -> NoReturn:
    raise FileError(f"{path}: {message}; expected strands as a .ply of lines")
