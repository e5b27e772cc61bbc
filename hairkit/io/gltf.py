"""glTF 2.0 files (.gltf, .glb, and .vrm, which is a .glb) that are changed in places only.

What is not touched stays as it is: the JSON's other values, every byte of the buffers. Nothing
outside a file's folder is read, and nothing is allocated that the file cannot hold.
"""

import base64
import binascii
import copy
import json
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from hairkit.errors import FileError
from hairkit.io.files import check_input

_TYPES = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
_COMPONENTS = {
    5120: np.dtype("<i1"),
    5121: np.dtype("<u1"),
    5122: np.dtype("<i2"),
    5123: np.dtype("<u2"),
    5125: np.dtype("<u4"),
    5126: np.dtype("<f4"),
}
_CODES = {kind: code for code, kind in _COMPONENTS.items()}
VERTEX_DATA, INDEX_DATA = 34962, 34963
"""What a buffer view is for, in glTF's numbers."""

TRIANGLES, TRIANGLE_STRIP, TRIANGLE_FAN = 4, 5, 6
"""Modes of a primitive that is a surface."""

_JSON_CHUNK, _BINARY_CHUNK = 0x4E4F534A, 0x004E4942
_FREE_ZEROS = 2**20
"""Bytes that an accessor without data may take beyond the file's own size."""


class Gltf:
    """A document: its JSON, and the bytes of its buffers."""

    def __init__(self, data: dict[str, Any], buffers: list[bytes | None], label: str) -> None:
        """Keep what a file held; `read` and `parse` make it.

        Args:
            data: The JSON.
            buffers: Bytes of each buffer; None for one that only holds a place.
            label: What to call it in messages.
        """
        self.json = data
        self.buffers = buffers
        self.label = label

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Gltf":
        """Read a file.

        Args:
            path: A .gltf, .glb or .vrm file.

        Raises:
            FileError: It is none, is cut short, or refers to what lies outside its folder.
        """
        source = check_input(path, "a .glb, .gltf or .vrm file")
        try:
            raw = source.read_bytes()
        except OSError as error:
            raise FileError(f"{source}: cannot be read ({error.strerror or error})") from error
        return cls.parse(raw, str(source), folder=source.parent)

    @classmethod
    def parse(cls, raw: bytes, label: str, *, folder: Path | None = None) -> "Gltf":
        """Take a file's bytes apart.

        Args:
            raw: The bytes of a .glb, or the text of a .gltf.
            label: What to call it in messages.
            folder: Where its buffers and images lie; None lets it have none.

        Raises:
            FileError: As `read`.
        """
        text, binary = raw, None
        if raw[:4] == b"glTF":
            text, binary = _chunks(raw, label)
        data = _parse_json(text, label)
        version = data.get("asset")
        version = version.get("version") if isinstance(version, dict) else None
        if not isinstance(version, str) or not version.startswith("2."):
            raise FileError(f"{label}: asset.version is {version!r}, expected glTF 2.0")
        document = cls(data, [], label)
        document._check_shape()
        for index, buffer in enumerate(document.rows("buffers")):
            document.buffers.append(_buffer(label, index, buffer, binary, folder))
        document._embed_images(folder)
        return document

    def copy(self) -> "Gltf":
        """Return a document that can be changed alone; bytes, which never change, are shared."""
        return Gltf(copy.deepcopy(self.json), list(self.buffers), self.label)

    # ---- what is in it

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return one of the document's lists, such as ``nodes``; empty where there is none."""
        found = self.json.get(name, [])
        if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
            self._fail(f"{name}: expected a list of objects")
        return found

    def row(self, name: str, index: Any) -> dict[str, Any]:
        """Return one row of a list by its index, which another part of the document gave."""
        found = self.rows(name)
        whole = isinstance(index, int) and not isinstance(index, bool)
        if not whole or not 0 <= index < len(found):
            self._fail(f"{name}[{index!r}]: expected an index below {len(found)}")
        return found[index]

    def accessor(self, index: Any) -> NDArray[Any]:
        """Return an accessor's numbers, shape (count, components).

        Whole numbers that stand for shares of 1 come as f64, all others in the type they have.
        """
        accessor = self.row("accessors", index)
        where = f"accessors[{index}]"
        kind = _COMPONENTS.get(accessor.get("componentType", 0))
        width = _TYPES.get(accessor.get("type", ""))
        if kind is None or width is None:
            self._fail(f"{where}: componentType or type is not glTF's")
        count = self._whole(accessor, "count", where, least=1)
        if accessor.get("type") in ("MAT2", "MAT3") and kind.itemsize < 4:
            self._fail(f"{where}: matrices of small numbers are not read")
        if "bufferView" in accessor:
            offset = self._whole(accessor, "byteOffset", where, default=0)
            values = self._take(accessor["bufferView"], where, kind, width, count, offset)
        else:
            if count * width * kind.itemsize > sum(map(_length, self.buffers)) + _FREE_ZEROS:
                self._fail(f"{where}: {count} elements without data, more than the file's size")
            values = np.zeros((count, width), kind)
        if "sparse" in accessor:
            values = self._sparse(accessor["sparse"], where, values)
        if accessor.get("normalized") is True and kind.kind in "iu":
            most = float(np.iinfo(kind).max)
            return np.maximum(values.astype(np.float64) / most, -1.0)
        return values

    def children(self, node: dict[str, Any]) -> list[int]:
        """Return a node's children."""
        found = node.get("children", [])
        for child in found:
            self.row("nodes", child)
        return found

    def parents(self) -> list[int]:
        """Return each node's parent, -1 for none.

        Raises:
            FileError: A node has two parents or is its own ancestor.
        """
        nodes = self.rows("nodes")
        parents = [-1] * len(nodes)
        for index, node in enumerate(nodes):
            for child in self.children(node):
                if parents[child] >= 0:
                    self._fail(f"nodes[{child}]: has two parents, {parents[child]} and {index}")
                parents[child] = index
        for index in range(len(nodes)):
            seen, at = 0, index
            while at >= 0:
                at, seen = parents[at], seen + 1
                if seen > len(nodes):
                    self._fail(f"nodes[{index}]: is its own ancestor")
        return parents

    def local_matrix(self, index: int) -> NDArray[np.float64]:
        """Return a node's transform in its parent, shape (4, 4)."""
        node, where = self.row("nodes", index), f"nodes[{index}]"
        if "matrix" in node:
            return self._numbers(node, "matrix", 16, where).reshape(4, 4).T
        matrix = np.eye(4)
        x, y, z, w = self._numbers(node, "rotation", 4, where, (0.0, 0.0, 0.0, 1.0))
        scale = self._numbers(node, "scale", 3, where, (1.0, 1.0, 1.0))
        matrix[:3, :3] = np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
            ]
        )
        matrix[:3, :3] *= scale
        matrix[:3, 3] = self._numbers(node, "translation", 3, where, (0.0, 0.0, 0.0))
        return matrix

    def world_matrices(self, indices: Sequence[int]) -> NDArray[np.float64]:
        """Return nodes' transforms in the scene, shape (n, 4, 4)."""
        parents = self.parents()
        known: dict[int, NDArray[np.float64]] = {-1: np.eye(4)}
        for index in indices:
            line = [index]
            while line[-1] not in known:
                line.append(parents[line[-1]])
            for at in reversed(line[:-1]):
                known[at] = known[parents[at]] @ self.local_matrix(at)
        return np.array([known[index] for index in indices])

    # ---- what is added to it

    def add(self, name: str, row: dict[str, Any]) -> int:
        """Add a row to one of the document's lists and return its index."""
        rows = self.json.setdefault(name, [])
        rows.append(row)
        return len(rows) - 1

    def add_accessor(
        self, values: NDArray[Any], kind: str, *, target: int | None = None, **more: Any
    ) -> int:
        """Add numbers to the first buffer and return their accessor.

        Args:
            values: Shape (count, components), of a type that glTF has.
            kind: ``VEC4`` and so on.
            target: What the buffer view is for; None says nothing.
            more: Further keys of the accessor, such as ``min``.
        """
        if not self.buffers:
            self.add("buffers", {"byteLength": 0})
            self.buffers.append(b"")
        data = self.buffers[0]
        if data is None:
            self._fail("buffers[0]: has no data; expected a file's own first buffer")
        data += b"\0" * (-len(data) % 4)
        packed = np.ascontiguousarray(values).tobytes()
        view: dict[str, Any] = {"buffer": 0, "byteOffset": len(data), "byteLength": len(packed)}
        if target is not None:
            view["target"] = target
        self.buffers[0] = data + packed
        self.json["buffers"][0]["byteLength"] = len(data) + len(packed)
        accessor = {
            "bufferView": self.add("bufferViews", view),
            "componentType": _CODES[values.dtype.newbyteorder("<")],
            "count": len(values),
            "type": kind,
            **more,
        }
        return self.add("accessors", accessor)

    def to_glb(self) -> bytes:
        """Return it as a .glb file: the first buffer binary, others as text in the JSON."""
        data = copy.copy(self.json)
        if self.buffers:
            data["buffers"] = [
                self._written_buffer(index, binary=index == 0) for index in range(len(self.buffers))
            ]
        text = _dump_json(data)
        text += b" " * (-len(text) % 4)
        parts = [struct.pack("<II", len(text), _JSON_CHUNK), text]
        first = self.buffers[0] if self.buffers else None
        if first:
            first += b"\0" * (-len(first) % 4)
            parts += [struct.pack("<II", len(first), _BINARY_CHUNK), first]
        size = 12 + sum(map(len, parts))
        return b"".join([struct.pack("<4sII", b"glTF", 2, size), *parts])

    def to_gltf(self) -> bytes:
        """Return it as a .gltf file of its own: all buffers as text in the JSON."""
        data = copy.copy(self.json)
        if self.buffers:
            data["buffers"] = [
                self._written_buffer(index, binary=False) for index in range(len(self.buffers))
            ]
        return _dump_json(data)

    def _written_buffer(self, index: int, *, binary: bool) -> dict[str, Any]:
        """Return a buffer's JSON, with its bytes in it unless they come as the binary chunk."""
        row = dict(self.json["buffers"][index])
        held = self.buffers[index]
        if held is None:
            return row
        row.pop("uri", None)
        if not binary:
            row["uri"] = _data_uri(held, "application/octet-stream")
        return row

    # ---- reading

    def _check_shape(self) -> None:
        """Make sure that lists are lists and objects objects, all that is taken for granted."""
        self._check_members(self.json, "document", {"extensions": dict})
        shapes: dict[str, dict[str, type]] = {
            "nodes": {"extensions": dict, "children": list},
            "meshes": {"primitives": list},
            "skins": {"joints": list},
            "scenes": {"nodes": list},
            "animations": {"channels": list},
            "accessors": {"sparse": dict, "type": str},
            "bufferViews": {"extensions": dict},
            "buffers": {},
            "images": {},
            "materials": {},
        }
        for name, members in shapes.items():
            for index, row in enumerate(self.rows(name)):
                self._check_members(row, f"{name}[{index}]", members)
        for index, mesh in enumerate(self.rows("meshes")):
            for number, primitive in enumerate(mesh.get("primitives", [])):
                where = f"meshes[{index}].primitives[{number}]"
                self._check_members(primitive, where, {"attributes": dict, "extensions": dict})
        for index, animation in enumerate(self.rows("animations")):
            for number, channel in enumerate(animation.get("channels", [])):
                where = f"animations[{index}].channels[{number}]"
                self._check_members(channel, where, {"target": dict})
                self._check_members(channel.get("target", {}), where, {"extensions": dict})

    def _check_members(self, row: Any, where: str, members: dict[str, type]) -> None:
        """Make sure that a row is an object and that its members, where there, are of a type."""
        if not isinstance(row, dict):
            self._fail(f"{where}: expected an object")
        for name, kind in members.items():
            if name in row and not isinstance(row[name], kind):
                words = {dict: "an object", list: "a list", str: "text"}
                self._fail(f"{where}.{name}: expected {words[kind]}")

    def _embed_images(self, folder: Path | None) -> None:
        """Take images that lie beside the file into the JSON, so that the document stands alone."""
        for index, image in enumerate(self.rows("images")):
            uri = image.get("uri")
            if not isinstance(uri, str) or uri.startswith("data:"):
                continue
            path = _inside(uri, folder, f"{self.label}: images[{index}]")
            if path.is_file():
                ending = path.suffix.lower().lstrip(".")
                kind = {"jpg": "image/jpeg", "jpeg": "image/jpeg"}.get(ending, f"image/{ending}")
                image["uri"] = _data_uri(path.read_bytes(), kind)

    def _take(
        self, view: Any, where: str, kind: np.dtype[Any], width: int, count: int, offset: int
    ) -> NDArray[Any]:
        """Return numbers of a buffer view, after making sure that it has them."""
        row = self.row("bufferViews", view)
        label = f"bufferViews[{view}]"
        if "EXT_meshopt_compression" in row.get("extensions", {}):
            self._fail(f"{where}: is compressed by EXT_meshopt_compression; expected plain data")
        buffer = row.get("buffer")
        self.row("buffers", buffer)
        held = self.buffers[buffer] if isinstance(buffer, int) else None
        start = self._whole(row, "byteOffset", label, default=0)
        length = self._whole(row, "byteLength", label, least=1)
        if held is None or start + length > len(held):
            self._fail(f"{label}: reaches past the end of buffers[{buffer}]")
        size = kind.itemsize * width
        stride = self._whole(row, "byteStride", label, default=size)
        if stride < size or offset + stride * (count - 1) + size > length:
            self._fail(
                f"{where}: {count} elements of {size} bytes do not fit into {label} "
                f"of {length} bytes"
            )
        flat = np.frombuffer(held, np.uint8, stride * (count - 1) + size, start + offset)
        rows = np.lib.stride_tricks.as_strided(flat, (count, size), (stride, 1), writeable=False)
        return np.ascontiguousarray(rows).view(kind).reshape(count, width)

    def _sparse(self, sparse: Any, where: str, values: NDArray[Any]) -> NDArray[Any]:
        """Return numbers of which some are replaced."""
        if not isinstance(sparse, dict):
            self._fail(f"{where}.sparse: expected an object")
        count = self._whole(sparse, "count", f"{where}.sparse", least=1)
        found = [sparse.get("indices"), sparse.get("values")]
        parts = [part for part in found if isinstance(part, dict)]
        if len(parts) < 2 or count > len(values):
            self._fail(f"{where}.sparse: expected at most {len(values)} indices and values")
        kind = _COMPONENTS.get(parts[0].get("componentType", 0))
        if kind is None or kind.kind != "u":
            self._fail(f"{where}.sparse: componentType of the indices is not glTF's")
        offsets = [self._whole(part, "byteOffset", f"{where}.sparse", default=0) for part in parts]
        at = self._take(parts[0].get("bufferView"), where, kind, 1, count, offsets[0])[:, 0]
        if int(at.max()) >= len(values):
            self._fail(f"{where}.sparse: index {int(at.max())} of {len(values)}")
        values = np.array(values)
        width = values.shape[1]
        values[at] = self._take(
            parts[1].get("bufferView"), where, values.dtype, width, count, offsets[1]
        )
        return values

    def _whole(
        self,
        row: dict[str, Any],
        key: str,
        where: str,
        *,
        least: int = 0,
        default: int | None = None,
    ) -> int:
        """Return a whole number of a row."""
        value = row.get(key, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            self._fail(f"{where}.{key}: expected a whole number from {least} on, got {value!r}")
        return value

    def _numbers(
        self,
        row: dict[str, Any],
        key: str,
        count: int,
        where: str,
        default: tuple[float, ...] | None = None,
    ) -> NDArray[np.float64]:
        """Return a row of numbers."""
        value = row.get(key, default)
        good = isinstance(value, list | tuple) and len(value) == count
        if not good or not all(isinstance(v, int | float) and abs(v) < 1e300 for v in value):
            self._fail(f"{where}.{key}: expected {count} finite numbers, got {value!r}")
        return np.array(value, dtype=np.float64)

    def _fail(self, message: str) -> NoReturn:
        raise FileError(f"{self.label}: {message}")


def _length(buffer: bytes | None) -> int:
    return len(buffer or b"")


def _chunks(raw: bytes, label: str) -> tuple[bytes, bytes | None]:
    """Return a .glb file's JSON and its binary chunk, if it has one."""
    if len(raw) < 20:
        raise FileError(f"{label}: {len(raw)} bytes, cut short; a .glb has 20 at least")
    version, size = struct.unpack_from("<II", raw, 4)
    if version != 2:
        raise FileError(f"{label}: glTF binary version {version}, expected 2")
    if size > len(raw):
        raise FileError(f"{label}: cut short, {len(raw)} of {size} bytes")
    found: dict[int, bytes] = {}
    for kind, chunk in _walk(raw, size, label):
        if not found and kind != _JSON_CHUNK:
            raise FileError(f"{label}: expected the JSON chunk first")
        found.setdefault(kind, chunk)
    if _JSON_CHUNK not in found:
        raise FileError(f"{label}: no JSON chunk")
    return found[_JSON_CHUNK], found.get(_BINARY_CHUNK)


def _walk(raw: bytes, size: int, label: str) -> Iterator[tuple[int, bytes]]:
    """Give the chunks of a .glb file, kind and bytes."""
    at = 12
    while at + 8 <= size:
        length, kind = struct.unpack_from("<II", raw, at)
        if at + 8 + length > size:
            raise FileError(f"{label}: cut short, a chunk of {length} bytes at byte {at}")
        yield kind, raw[at + 8 : at + 8 + length]
        at += 8 + length


def _parse_json(text: bytes, label: str) -> dict[str, Any]:
    """Return the JSON of a document."""

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a number in JSON")

    try:
        data = json.loads(text.decode("utf-8-sig"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:120]
        raise FileError(f"{label}: not glTF ({reason}); expected .glb, .gltf or .vrm") from error
    if not isinstance(data, dict):
        raise FileError(f"{label}: not glTF; expected a JSON object")
    return data


def _buffer(
    label: str, index: int, row: dict[str, Any], binary: bytes | None, folder: Path | None
) -> bytes | None:
    """Return a buffer's bytes, None for one that only holds a place."""
    where = f"{label}: buffers[{index}]"
    length, uri = row.get("byteLength"), row.get("uri")
    if not isinstance(length, int) or isinstance(length, bool) or length < 0:
        raise FileError(f"{where}.byteLength: expected a whole number, got {length!r}")
    if uri is None:
        held = binary if index == 0 else None
        if held is None:
            return None
    elif not isinstance(uri, str):
        raise FileError(f"{where}.uri: expected text, got {uri!r}")
    elif uri.startswith("data:"):
        held = _data_of(uri, where)
    else:
        path = _inside(uri, folder, where)
        try:
            held = path.read_bytes()
        except OSError as error:
            raise FileError(f"{where}: {uri}: {error.strerror or error}") from error
    if len(held) < length:
        raise FileError(f"{where}: cut short, {len(held)} of {length} bytes")
    return held[:length]


def _inside(uri: str, folder: Path | None, where: str) -> Path:
    """Return the path that a document refers to, which must be inside its folder."""
    name = unquote(uri)
    refused = f"{where}: refers to {uri!r}; expected a file in its own folder"
    if folder is None or ":" in name or "\\" in name or "\0" in name or name.startswith("/"):
        raise FileError(refused)
    base = folder.resolve()
    path = (base / name).resolve()
    if not path.is_relative_to(base):
        raise FileError(refused)
    return path


def _data_of(uri: str, where: str) -> bytes:
    """Return the bytes that are written in the JSON itself."""
    head, _, body = uri.partition(",")
    if not head.endswith(";base64"):
        raise FileError(f"{where}: expected base64 data")
    try:
        return base64.b64decode(unquote(body) if "%" in body else body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FileError(f"{where}: base64 that cannot be read ({error})") from error


def _data_uri(data: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def _dump_json(data: dict[str, Any]) -> bytes:
    def dump(escaped: bool) -> str:
        return json.dumps(data, separators=(",", ":"), ensure_ascii=escaped, allow_nan=False)

    try:
        return dump(False).encode()
    except UnicodeEncodeError:
        # Half a character, which JSON can hold only escaped.
        return dump(True).encode()
