"""Small glTF files, written byte by byte, not by hairkit."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

FLOAT, UINT = 5126, 5125


def glb(data: dict[str, Any], binary: bytes) -> bytes:
    """Return the bytes of a .glb file."""
    text = json.dumps(data).encode()
    text += b" " * (-len(text) % 4)
    binary += b"\0" * (-len(binary) % 4)
    parts = struct.pack("<II", len(text), 0x4E4F534A) + text
    if binary:
        parts += struct.pack("<II", len(binary), 0x004E4942) + binary
    return struct.pack("<4sII", b"glTF", 2, 12 + len(parts)) + parts


def card_mesh(cards: int = 6, rows: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices and faces of cards that hang round a head, two vertices a row."""
    points, faces = [], []
    for card in range(cards):
        angle = 2.0 * np.pi * (card + 0.3) / cards
        for row in range(rows):
            for side in (-0.1, 0.1):
                out = 0.08 + 0.02 * row
                points.append(
                    (out * np.cos(angle + side), 1.7 - 0.06 * row, out * np.sin(angle + side))
                )
        first = card * rows * 2
        for row in range(rows - 1):
            a = first + 2 * row
            faces += [(a, a + 1, a + 2), (a + 1, a + 3, a + 2)]
    return np.array(points), np.array(faces)


def accessors(arrays: list[tuple[np.ndarray, str]]) -> tuple[dict[str, Any], bytes]:
    """Return accessors, views and a buffer that hold arrays.

    Args:
        arrays: Numbers and their type, with a star for those that are not drawn but animate.
    """
    data: dict[str, Any] = {"accessors": [], "bufferViews": []}
    binary = b""
    for values, kind in arrays:
        code = {"f": FLOAT, "u": UINT}[values.dtype.kind]
        view = {"buffer": 0, "byteOffset": len(binary), "byteLength": values.nbytes}
        if not kind.endswith("*"):
            view["target"] = 34963 if kind == "SCALAR" else 34962
        row: dict[str, Any] = {
            "bufferView": len(data["bufferViews"]),
            "componentType": code,
            "count": len(values),
            "type": kind.rstrip("*"),
        }
        if code == FLOAT:
            flat = values.reshape(len(values), -1)
            row |= {"min": flat.min(axis=0).tolist(), "max": flat.max(axis=0).tolist()}
        data["bufferViews"].append(view)
        data["accessors"].append(row)
        binary += values.tobytes()
    data["buffers"] = [{"byteLength": len(binary)}]
    return data, binary


def hair_scene(**hair_node: Any) -> tuple[dict[str, Any], bytes]:
    """Return a scene: a head under a body, and hair with a morph target, animated, under the head.

    Args:
        hair_node: Further keys of the hair's node, such as its scale.
    """
    points, faces = card_mesh()
    corners = points.astype(np.float32)
    face_rows = faces.astype(np.uint32).reshape(-1, 1)
    longer = np.where(
        corners[:, 1:2] < 1.5, np.array([[0.0, -0.1, 0.0]], np.float32), np.float32(0.0)
    )
    data, binary = accessors(
        [
            (corners, "VEC3"),
            (face_rows, "SCALAR"),
            (longer.astype(np.float32), "VEC3"),
            (np.array([[0.0], [1.0]], np.float32), "SCALAR*"),
            (np.array([[0.0], [1.0]], np.float32), "SCALAR*"),
            (np.array([[0, 0, 0], [0, 1, 0]], np.float32), "VEC3*"),
            (np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32), "VEC3"),
        ]
    )
    data |= {
        "asset": {"version": "2.0", "generator": "by hand", "extras": {"kept": [1, 2.5, "x"]}},
        "scene": 0,
        "scenes": [{"name": "all", "nodes": [0]}],
        "nodes": [
            {"name": "Body", "children": [1], "translation": [0.0, 0.1, 0.0]},
            {"name": "Head", "children": [2, 3], "rotation": [0.0, 0.38268343, 0.0, 0.92387953]},
            {
                "name": "Fringe",
                "mesh": 0,
                "weights": [0.0],
                "extras": {"worn": True},
                "children": [4],
                **hair_node,
            },
            {"name": "Face", "mesh": 1},
            {"name": "Bow"},
        ],
        "meshes": [
            {
                "name": "locks",
                "extras": {"targetNames": ["longer"]},
                "weights": [0.0],
                "primitives": [
                    {
                        "attributes": {"POSITION": 0},
                        "indices": 1,
                        "material": 0,
                        "targets": [{"POSITION": 2}],
                    }
                ],
            },
            {"name": "face", "primitives": [{"attributes": {"POSITION": 6}}]},
        ],
        "materials": [
            {"name": "HairBrown", "pbrMetallicRoughness": {"baseColorFactor": [0.3, 0.2, 0.1, 1]}}
        ],
        "animations": [
            {
                "name": "grow",
                "samplers": [{"input": 3, "output": 4}, {"input": 3, "output": 5}],
                "channels": [
                    {"sampler": 0, "target": {"node": 2, "path": "weights"}},
                    {"sampler": 1, "target": {"node": 2, "path": "translation"}},
                ],
            }
        ],
    }
    if "matrix" in hair_node:
        # What a matrix places cannot be moved by an animation.
        del data["animations"][0]["channels"][1]
    return data, binary


def write(path: Path, scene: tuple[dict[str, Any], bytes]) -> Path:
    """Write a scene as a .glb file."""
    path.write_bytes(glb(*scene))
    return path


def unpack(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the JSON and the binary chunk of a .glb file."""
    raw = path.read_bytes()
    magic, version, size = struct.unpack_from("<4sII", raw)
    assert (magic, version, size) == (b"glTF", 2, len(raw))
    length = struct.unpack_from("<I", raw, 12)[0]
    data = json.loads(raw[20 : 20 + length])
    at = 20 + length
    return data, raw[at + 8 : at + 8 + data["buffers"][0]["byteLength"]]


def numbers(data: dict[str, Any], binary: bytes, accessor: int) -> np.ndarray:
    """Return a plain accessor's numbers, shape (count, components)."""
    row = data["accessors"][accessor]
    view = data["bufferViews"][row["bufferView"]]
    kind = {5121: "<u1", 5123: "<u2", 5125: "<u4", 5126: "<f4"}[row["componentType"]]
    width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4, "MAT4": 16}[row["type"]]
    at = view.get("byteOffset", 0) + row.get("byteOffset", 0)
    values = np.frombuffer(binary, kind, row["count"] * width, at)
    return values.reshape(row["count"], width)


def local(node: dict[str, Any]) -> np.ndarray:
    """Return a node's transform in its parent."""
    if "matrix" in node:
        return np.array(node["matrix"]).reshape(4, 4).T
    x, y, z, w = node.get("rotation", (0.0, 0.0, 0.0, 1.0))
    # Column by column: where the quaternion turns each axis.
    turned = [
        v + 2.0 * np.cross((x, y, z), np.cross((x, y, z), v) + w * np.asarray(v)) for v in np.eye(3)
    ]
    matrix = np.eye(4)
    matrix[:3, :3] = np.stack(turned, axis=1) * np.asarray(node.get("scale", (1.0, 1.0, 1.0)))
    matrix[:3, 3] = node.get("translation", (0.0, 0.0, 0.0))
    return matrix


def world(data: dict[str, Any], index: int) -> np.ndarray:
    """Return a node's transform in the scene."""
    for parent, node in enumerate(data["nodes"]):
        if index in node.get("children", []):
            return world(data, parent) @ local(data["nodes"][index])
    return local(data["nodes"][index])


def skinned(data: dict[str, Any], binary: bytes, node: int) -> np.ndarray:
    """Return where a node with a skin of one primitive shows its vertices, one by one."""
    skin = data["skins"][data["nodes"][node]["skin"]]
    back = numbers(data, binary, skin["inverseBindMatrices"]).reshape(-1, 4, 4)
    matrices = [world(data, j) @ b.T for j, b in zip(skin["joints"], back, strict=True)]
    attributes = data["meshes"][data["nodes"][node]["mesh"]]["primitives"][0]["attributes"]
    points = numbers(data, binary, attributes["POSITION"])
    joints = numbers(data, binary, attributes["JOINTS_0"])
    weights = numbers(data, binary, attributes["WEIGHTS_0"])
    place = []
    for point, rows, shares in zip(points, joints, weights, strict=True):
        matrix = sum(float(share) * matrices[row] for row, share in zip(rows, shares, strict=True))
        place.append((matrix @ np.append(point, 1.0))[:3])
    return np.array(place)
