"""Strands as the lines of a .glb, for web viewers.

One mesh of one primitive of LINES: positions in metres with +Y up, as glTF has them; ``COLOR_0``
where colours are known; and, under names of our own that viewers pass over, ``_WIDTH`` and
``_GROUP``. Any file's LINES and LINE_STRIP primitives are read, in the scene's axes.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hairkit.errors import FileError
from hairkit.io.dirty import strands_of_file
from hairkit.io.edges import edges_of_strands, strands_of_edges
from hairkit.io.gltf import INDEX_DATA, VERTEX_DATA, Gltf
from hairkit.io.strand_set import AddFrame, StrandSet

HOLDS = frozenset({"points", "counts", "widths", "colors", "groups"})

_LINES, _STRIP = 1, 3
_MOST = 2**32 - 1
"""Bytes of the largest .glb."""

_EACH = 48
"""Bytes that a point takes in it at most, its share of all else included."""


def read(path: Path) -> StrandSet:
    """Read strands: every line of every mesh that a node shows.

    Raises:
        FileError: It is no glTF file, has no lines, or its lines branch or close.
    """
    document = Gltf.read(path)
    # Nodes may show one mesh again and again; what is read must stay near what is stored.
    room = path.stat().st_size // 3
    nodes = document.rows("nodes")
    shown = [index for index, node in enumerate(nodes) if "mesh" in node]
    matrices = document.world_matrices(shown)
    parts: list[dict[str, np.ndarray | None]] = []
    for index, matrix in zip(shown, matrices, strict=True):
        mesh = document.row("meshes", nodes[index]["mesh"])
        for primitive in mesh.get("primitives", []):
            if primitive.get("mode") not in (_LINES, _STRIP):
                continue
            part = _primitive(document, path, primitive, matrix)
            room -= len(part["points"]) if part["points"] is not None else 0
            if room < 0:
                raise FileError(f"{path}: shows more points than it has room for")
            parts.append(part)
    if not parts:
        raise FileError(f"{path}: has no lines (mode 1 or 3), expected strands")
    joined = {name: _join(parts, name) for name in parts[0]}
    points, counts = joined.pop("points"), joined.pop("counts")
    assert points is not None
    assert counts is not None
    groups = joined.pop("groups")
    if groups is not None:
        # Kept at every point; the root's is the strand's.
        starts = np.minimum(np.cumsum(counts) - counts, max(len(groups) - 1, 0))
        groups = _whole(path, groups[starts]) if len(groups) else np.zeros(len(counts), np.int32)
    return strands_of_file(path, points, counts, groups=groups, **joined)


def holds_strands(path: str | os.PathLike[str]) -> bool:
    """Return whether a .glb holds lines and no skin: strands, and not hair with bones.

    Raises:
        FileError: There is no such file, or it is no glTF file.
    """
    document = Gltf.read(path)
    if document.rows("skins"):
        return False
    return any(
        primitive.get("mode") in (_LINES, _STRIP)
        for mesh in document.rows("meshes")
        for primitive in mesh.get("primitives", [])
    )


@contextmanager
def writer(path: Path, like: StrandSet, frames: int) -> Iterator[AddFrame]:
    """Open a file for the one frame that it holds.

    Raises:
        FileError: There is no strand, which glTF cannot say, or more than fits into 4 GB.
    """
    total = like.points.shape[1]
    if not total:
        raise FileError("no strands, expected one or more in a .glb")
    if _EACH * total > _MOST:
        raise FileError(f"{total} points, expected at most {_MOST // _EACH} in a .glb")

    def add(points: np.ndarray, time: float) -> None:
        document = Gltf({"asset": {"version": "2.0", "generator": "hairkit"}}, [], str(path))
        positions = np.ascontiguousarray(points, "<f4")
        attributes = {
            "POSITION": document.add_accessor(
                positions,
                "VEC3",
                target=VERTEX_DATA,
                min=positions.min(axis=0).tolist(),
                max=positions.max(axis=0).tolist(),
            )
        }
        if like.colors is not None:
            # glTF's vertex colours are linear light.
            colors = _linear(np.clip(like.colors, 0.0, 1.0)).astype("<f4")
            attributes["COLOR_0"] = document.add_accessor(colors, "VEC3", target=VERTEX_DATA)
        if like.widths is not None:
            widths = like.widths.astype("<f4")[:, None]
            attributes["_WIDTH"] = document.add_accessor(widths, "SCALAR", target=VERTEX_DATA)
        if like.groups is not None:
            groups = np.repeat(like.groups, like.counts).astype("<f4")[:, None]
            attributes["_GROUP"] = document.add_accessor(groups, "SCALAR", target=VERTEX_DATA)
        indices = edges_of_strands(like.counts).astype("<u4").reshape(-1, 1)
        primitive = {
            "mode": _LINES,
            "attributes": attributes,
            "indices": document.add_accessor(indices, "SCALAR", target=INDEX_DATA),
        }
        mesh = document.add("meshes", {"name": "hair", "primitives": [primitive]})
        node = document.add("nodes", {"name": "hair", "mesh": mesh})
        document.json["scene"] = document.add("scenes", {"nodes": [node]})
        path.write_bytes(document.to_glb())

    yield add


def _primitive(
    document: Gltf, path: Path, primitive: dict[str, Any], matrix: np.ndarray
) -> dict[str, np.ndarray | None]:
    """Return a primitive's points strand by strand, their counts, and what is known of each."""
    attributes = primitive.get("attributes", {})
    positions = document.accessor(attributes.get("POSITION"))
    if positions.shape[1] != 3 or positions.dtype.kind != "f":
        raise FileError(f"{path}: POSITION is not of three f32, expected points")
    vertices = len(positions)
    if "indices" in primitive:
        indices = document.accessor(primitive["indices"])
        if indices.shape[1] != 1 or indices.dtype.kind != "u":
            raise FileError(f"{path}: indices are not whole numbers, expected vertices of lines")
        rows = indices[:, 0].astype(np.int64)
        if rows.max() >= vertices:
            raise FileError(f"{path}: index {rows.max()}, expected less than {vertices}")
    else:
        rows = np.arange(vertices)
    if primitive["mode"] == _STRIP:
        counts = np.array([len(rows)])
    else:
        if len(rows) % 2:
            raise FileError(f"{path}: {len(rows)} ends of LINES, expected two a line")
        # Meshes share vertices: those of no line here belong to others.
        met = np.zeros(vertices, bool)
        met[rows] = True
        used = np.flatnonzero(met)
        edges = rows if len(used) == vertices else np.searchsorted(used, rows)
        edges = edges.reshape(-1, 2)
        if "indices" not in primitive:
            # Without numbers each segment has both ends; the next begins where it ended.
            same = (positions[1:-1:2] == positions[2::2]).all(axis=1)
            edges[1:, 0] -= same
        chosen, counts = strands_of_edges(path, edges, len(used))
        if "indices" not in primitive:
            chosen, counts = _without_doubles(chosen, counts, edges)
        rows = used if chosen is None else used[chosen]
    points = positions[rows]
    if not np.array_equal(matrix, np.eye(4)):
        moved = points.astype(np.float64) @ matrix[:3, :3].T + matrix[:3, 3]
        points = moved.astype(np.float32)
    more: dict[str, np.ndarray | None] = {"colors": None, "widths": None, "groups": None}
    for key, name in (("COLOR_0", "colors"), ("_WIDTH", "widths"), ("_GROUP", "groups")):
        if key not in attributes:
            continue
        values = document.accessor(attributes[key])
        width = 3 if name == "colors" else 1
        if len(values) != vertices or values.shape[1] < width:
            raise FileError(f"{path}: {key} has {len(values)} rows, expected {vertices}")
        values = values[rows, :width].astype(np.float32)
        more[name] = _srgb(values) if name == "colors" else values[:, 0]
    return {"points": points, "counts": counts, **more}


def _without_doubles(
    chosen: np.ndarray | None, counts: np.ndarray, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Leave out the vertices that only repeated the end of the segment before."""
    used = np.zeros(int(counts.sum()), bool)
    used[edges] = True
    order = np.arange(len(used)) if chosen is None else chosen
    ends = np.cumsum(counts)
    keep = used[order]
    strand = np.repeat(np.arange(len(counts)), counts)
    kept = np.bincount(strand[keep], minlength=len(ends))
    return order[keep], kept[kept > 0]


def _join(parts: list[dict[str, np.ndarray | None]], name: str) -> np.ndarray | None:
    """Return one array of all parts' own, None where a part has none."""
    found = [part[name] for part in parts]
    present = [value for value in found if value is not None]
    return np.concatenate(present) if len(present) == len(found) else None


def _whole(path: Path, values: np.ndarray) -> np.ndarray:
    if not (np.abs(values) < 2.0**31).all():
        raise FileError(f"{path}: _GROUP has {values[0]:g}, expected whole numbers")
    return np.rint(values).astype(np.int32)


def _linear(srgb: np.ndarray) -> np.ndarray:
    srgb = srgb.astype(np.float64)
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def _srgb(linear: np.ndarray) -> np.ndarray:
    linear = np.clip(linear.astype(np.float64), 0.0, None)
    curve = 1.055 * linear ** (1.0 / 2.4) - 0.055
    return np.where(linear <= 0.0031308, 12.92 * linear, curve).astype(np.float32)
