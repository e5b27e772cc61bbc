"""Finds the hair mesh in a document of many, and reads what a plan needs of it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hairkit.errors import RigError, nearest
from hairkit.io.gltf import TRIANGLE_FAN, TRIANGLE_STRIP, TRIANGLES, Gltf
from hairkit.rigging.bake import HairMesh
from hairkit.rigging.plan import Points

WORD = "hair"
"""What a hair mesh, its node or its material has in its name."""


def find_hair(document: Gltf, mesh: str | None = None) -> HairMesh:
    """Return the hair mesh of a document.

    That is the one asked for; else the only one; else the only one whose node, mesh or material has
    "hair" in its name.

    Args:
        document: Where to look.
        mesh: Name of the node or of its mesh, letters' case forgiven.

    Raises:
        RigError: There is none, or more than one.
        FileError: The document is broken.
    """
    nodes = [index for index, node in enumerate(document.rows("nodes")) if "mesh" in node]
    if not nodes:
        raise RigError("no vertices", "the mesh has no vertices")
    if mesh is not None:
        found = _named(document, nodes, mesh)
    elif len(nodes) == 1:
        found = nodes
    else:
        found = [
            index for index in nodes if any(WORD in n.lower() for n in _names(document, index))
        ]
    if len(found) != 1:
        raise _unclear(document, nodes, found, mesh)
    return read_mesh(document, found[0])


def _named(document: Gltf, nodes: list[int], mesh: str) -> list[int]:
    """Return nodes of a name; exactly written ones before others, a node's before a mesh's."""
    for fold in (str, str.lower):
        for part in (0, 1):
            found = [i for i in nodes if fold(_names(document, i)[part]) == fold(mesh)]
            if found:
                return found
    return []


def _names(document: Gltf, index: int) -> list[str]:
    """Return the names of a node, its mesh and its materials."""
    node = document.row("nodes", index)
    mesh = document.row("meshes", node["mesh"])
    names = [str(node.get("name", "")), str(mesh.get("name", ""))]
    for primitive in mesh.get("primitives", []):
        if "material" in primitive:
            names.append(str(document.row("materials", primitive["material"]).get("name", "")))
    return names


def _unclear(document: Gltf, nodes: list[int], found: list[int], mesh: str | None) -> RigError:
    """Return the error that says which meshes there are to choose from."""
    labels = [_label(document, index) for index in nodes]
    if mesh is not None and not found:
        close = nearest(mesh, [label.lower() for label in labels])
        return RigError("no such mesh", f"mesh {mesh!r}: expected one of {_few(labels)}{close}")
    some = [_label(document, index) for index in found] if found else labels
    which = "several meshes of hair" if found else f"no mesh with {WORD!r} in its name"
    return RigError("no such mesh", f"{which}; expected mesh to name one of {_few(some)}")


def _label(document: Gltf, index: int) -> str:
    names = _names(document, index)
    return names[0] or names[1] or f"node {index}"


def _few(labels: list[str]) -> str:
    shown = ", ".join(repr(label) for label in labels[:12])
    return shown if len(labels) <= 12 else f"{shown} and {len(labels) - 12} more"


def read_mesh(document: Gltf, index: int) -> HairMesh:
    """Return the mesh of a node.

    Args:
        document: The document.
        index: Row of the node.

    Raises:
        RigError: It has no vertices or no triangles, or is packed in a way that is not read.
        FileError: The document is broken.
    """
    node = document.row("nodes", index)
    mesh = document.row("meshes", node["mesh"])
    if "EXT_mesh_gpu_instancing" in node.get("extensions", {}):
        raise RigError("unreadable", "the mesh is instanced by EXT_mesh_gpu_instancing")
    parts: list[Points] = []
    faces: list[NDArray[np.int64]] = []
    spans: dict[int, tuple[int, int]] = {}
    total = 0
    for primitive in mesh.get("primitives", []):
        if "KHR_draco_mesh_compression" in primitive.get("extensions", {}):
            raise RigError(
                "unreadable",
                "the mesh is compressed by KHR_draco_mesh_compression; expected plain data",
            )
        at = primitive.get("attributes", {}).get("POSITION")
        if at is None or document.row("accessors", at).get("count") == 0:
            raise RigError("no vertices", "the mesh has no vertices")
        if at not in spans:
            points = document.accessor(at)
            if points.shape[1] != 3:
                raise RigError("unreadable", f"accessors[{at}]: expected positions of type VEC3")
            spans[at] = (total, total + len(points))
            total += len(points)
            parts.append(points.astype(np.float64))
        first, last = spans[at]
        faces.append(_faces(document, primitive, last - first) + first)
    if not parts:
        raise RigError("no vertices", "the mesh has no vertices")
    triangles = np.concatenate(faces)
    if len(triangles) == 0:
        raise RigError("no vertices", f"the mesh has no triangles, only {total} vertices")
    name = _label(document, index)
    holder, into, joints = _holder(document, index, node, mesh)
    return HairMesh(
        node=index,
        mesh=node["mesh"],
        name=name,
        vertices=np.concatenate(parts),
        faces=triangles,
        spans=spans,
        holder=holder,
        into_holder=into,
        joints=joints,
    )


def _faces(document: Gltf, primitive: dict[str, Any], count: int) -> NDArray[np.int64]:
    """Return a primitive's triangles, none for points and lines."""
    order = np.arange(count, dtype=np.int64)
    if "indices" in primitive:
        rows = document.accessor(primitive["indices"])
        if rows.dtype.kind != "u" or rows.shape[1] != 1:
            raise RigError("unreadable", "a face's indices: expected whole numbers of type SCALAR")
        order = rows[:, 0].astype(np.int64)
        if order.max(initial=0) >= count:
            raise RigError("unreadable", f"a face has vertex {int(order.max())} of {count}")
    mode = primitive.get("mode", TRIANGLES)
    if mode == TRIANGLES:
        return order[: len(order) // 3 * 3].reshape(-1, 3)
    if mode == TRIANGLE_STRIP and len(order) > 2:
        return np.stack([order[:-2], order[1:-1], order[2:]], axis=1)
    if mode == TRIANGLE_FAN and len(order) > 2:
        middle = np.full(len(order) - 2, order[0])
        return np.stack([middle, order[1:-1], order[2:]], axis=1)
    return np.zeros((0, 3), np.int64)


def _holder(
    document: Gltf, index: int, node: dict[str, Any], mesh: dict[str, Any]
) -> tuple[int, Points, int]:
    """Return the node that carries the mesh, how it lies there, and how many joints it has.

    A mesh with a skin is carried by the nearest node above all joints that move it, and lies there
    as the joint that moves most of it says.
    """
    if "skin" not in node:
        return index, np.eye(4), 0
    label = f"skins[{node['skin']}]"
    skin = document.row("skins", node["skin"])
    joints = skin.get("joints", [])
    if not joints:
        raise RigError("unreadable", f"{label}: expected joints")
    for joint in joints:
        document.row("nodes", joint)
    weight = weight_of_joints(document, mesh, len(joints))
    main = int(np.argmax(weight))
    back = np.eye(4)
    if "inverseBindMatrices" in skin:
        matrices = document.accessor(skin["inverseBindMatrices"]).astype(np.float64)
        if len(matrices) <= main or matrices.shape[1] != 16:
            raise RigError("unreadable", f"{label}: too few inverse bind matrices")
        back = matrices[main].reshape(4, 4).T
    moving = [joint for joint, share in zip(joints, weight, strict=True) if share > 0.0]
    above = common_ancestor(document.parents(), moving or [joints[main]])
    if above < 0:
        return joints[main], back, len(joints)
    there, held = document.world_matrices([above, joints[main]])
    if abs(np.linalg.det(there[:3, :3])) < 1e-300:
        return joints[main], back, len(joints)
    return above, np.linalg.solve(there, held @ back), len(joints)


def weight_of_joints(document: Gltf, mesh: dict[str, Any], count: int) -> Points:
    """Return how much of a mesh each joint of its skin moves, shape (count,)."""
    weight = np.zeros(count)
    for primitive in mesh.get("primitives", []):
        attributes = primitive.get("attributes", {})
        if {"JOINTS_0", "WEIGHTS_0"} <= set(attributes):
            which = document.accessor(attributes["JOINTS_0"]).astype(np.int64)
            share = document.accessor(attributes["WEIGHTS_0"]).astype(np.float64)
            if which.shape != share.shape or which.max(initial=0) >= count:
                raise RigError("unreadable", f"a vertex has joint {which.max()} of {count}")
            weight += np.bincount(which.ravel(), share.ravel(), minlength=count)
    return weight


def line_up(parents: list[int], node: int) -> list[int]:
    """Return a node and all that are above it, itself first."""
    line = [node]
    while parents[line[-1]] >= 0:
        line.append(parents[line[-1]])
    return line


def common_ancestor(parents: list[int], nodes: list[int]) -> int:
    """Return the lowest node that is above all of these or one of them, -1 for none."""
    shared: list[int] = []
    for node in nodes:
        line = line_up(parents, node)
        shared = [at for at in shared if at in line] if shared else line
        if not shared:
            return -1
    return shared[0]
