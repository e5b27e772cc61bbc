"""Puts a plan's skeleton into a glTF document: joints, a skin, weights; all else stays as it is.

glTF ignores a skinned node's own transform and places its vertices by the joints alone. So the mesh
moves to a new node at the top of the scene, and the old node, which keeps its transform, its
children and what animates it, becomes the parent of ``HairRoot``. In its space the joints stand
where the plan put them; their inverse bind matrices only move them back, whatever the old node's
scale is, mirrored or not.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from hairkit.errors import RigError
from hairkit.io.gltf import INDEX_DATA, TRIANGLES, VERTEX_DATA, Gltf
from hairkit.rigging.plan import Plan, Points

EXTRAS = "hairkit"
"""Key of what a skin says about its plan."""
STEPS = 2.0**22
"""Steps of a weight of 1: the finest whose sums are exact in f32."""
SKINNED = "_skinned"
"""What a mesh's new node adds to the old one's name."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HairMesh:
    """One node's mesh in a document."""

    node: int
    """Row of the node."""

    mesh: int
    """Row of its mesh."""

    name: str
    """What people call it."""

    vertices: Points
    """Positions in the node's space, the primitives' one after the other, shape (v, 3)."""

    faces: NDArray[np.int64]
    """Triangles, shape (f, 3)."""

    spans: dict[int, tuple[int, int]]
    """Where the positions of each accessor begin and end in `vertices`."""

    holder: int
    """Node whose space the vertices are in: the node itself, or the joint that moves most of a mesh
    that has a skin."""

    into_holder: Points
    """From the vertices' space into the holder's, shape (4, 4)."""

    joints: int
    """How many joints its skin has; 0 for a mesh without one."""

    def into_scene(self, document: Gltf) -> Points:
        """Return the transform from the vertices' space into the scene, shape (4, 4)."""
        return document.world_matrices([self.holder])[0] @ self.into_holder


def bake(document: Gltf, hair: HairMesh, plan: Plan) -> tuple[Gltf, int]:
    """Return a copy of a document in which a mesh has the plan's skin, and the mesh's new node.

    Args:
        document: What the mesh was found in; it stays as it is.
        hair: The mesh.
        plan: Its skeleton.
    """
    out = document.copy()
    old = out.json["nodes"][hair.node]
    mesh = _own_mesh(out, hair)
    mirrored = np.linalg.det(hair.into_scene(document)[:3, :3]) < 0.0
    _add_weights(out, out.json["meshes"][mesh], hair, plan, turned=bool(mirrored))

    first = len(out.json["nodes"])
    _add_joints(out, hair, plan)
    back = np.tile(np.eye(4, dtype=np.float32), (len(plan.bones), 1, 1))
    back[:, :3, 3] = -_held(plan)
    skin = out.add(
        "skins",
        {
            "name": "Hair",
            # Column by column, as glTF has matrices.
            "inverseBindMatrices": out.add_accessor(
                back.transpose(0, 2, 1).reshape(-1, 16), "MAT4"
            ),
            "skeleton": first,
            "joints": list(range(first, first + len(plan.bones))),
            "extras": {EXTRAS: {"strategy": plan.strategy}},
        },
    )
    name = str(old.get("name", "Hair")).removesuffix(SKINNED) + SKINNED
    new: dict[str, Any] = {"name": name, "mesh": mesh, "skin": skin}
    if "weights" in old:
        new["weights"] = old.pop("weights")
    old.pop("mesh")
    old.pop("skin", None)
    node = out.add("nodes", new)
    _put_into_scenes(out, hair.node, node)
    _retarget(out, hair.node, node)
    return out, node


def _own_mesh(out: Gltf, hair: HairMesh) -> int:
    """Return the mesh to change: a copy where other nodes show it too."""
    users = [n for n in out.rows("nodes") if n.get("mesh") == hair.mesh]
    if len(users) < 2:
        return hair.mesh
    return out.add("meshes", copy.deepcopy(out.json["meshes"][hair.mesh]))


def _add_weights(
    out: Gltf, mesh: dict[str, Any], hair: HairMesh, plan: Plan, *, turned: bool
) -> None:
    """Give each primitive its joints and weights."""
    indices, weights = exact_weights(plan)
    made: dict[int, tuple[int, int]] = {}
    for primitive in mesh["primitives"]:
        attributes = primitive["attributes"]
        for name in [key for key in attributes if key.startswith(("JOINTS_", "WEIGHTS_"))]:
            del attributes[name]
        at = attributes["POSITION"]
        if at not in made:
            first, last = hair.spans[at]
            made[at] = (
                out.add_accessor(indices[first:last], "VEC4", target=VERTEX_DATA),
                out.add_accessor(weights[first:last], "VEC4", target=VERTEX_DATA),
            )
        attributes["JOINTS_0"], attributes["WEIGHTS_0"] = made[at]
        if turned and primitive.get("mode", TRIANGLES) == TRIANGLES:
            _turn_over(out, primitive)


def exact_weights(plan: Plan) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Return joints and weights as glTF holds them, each row of f32 summing to 1 as f32 does."""
    count = len(plan.weights.indices)
    kind = np.uint8 if len(plan.bones) <= 256 else np.uint16
    indices = np.zeros((count, 4), kind)
    weights = np.zeros((count, 4), np.float32)
    influences = plan.weights.indices.shape[1]
    # In whole steps that f32 adds without rounding; less than one step is no weight at all.
    weights[:, :influences] = np.round(plan.weights.weights * STEPS) / STEPS
    indices[:, :influences] = np.where(weights[:, :influences] > 0.0, plan.weights.indices, 0)
    weights[:, 0] = 1.0 - weights[:, 1:].sum(axis=1, dtype=np.float64)
    return indices, weights


def _turn_over(out: Gltf, primitive: dict[str, Any]) -> None:
    """Turn triangles over: a mirroring node did so, and glTF no longer looks at it."""
    if "indices" in primitive:
        order = out.accessor(primitive["indices"])[:, 0]
    else:
        count = out.row("accessors", primitive["attributes"]["POSITION"])["count"]
        order = np.arange(count, dtype=np.uint32)
    whole = len(order) // 3 * 3
    order = np.ascontiguousarray(order[:whole].reshape(-1, 3)[:, ::-1]).reshape(-1, 1)
    primitive["indices"] = out.add_accessor(order, "SCALAR", target=INDEX_DATA)


def _add_joints(out: Gltf, hair: HairMesh, plan: Plan) -> None:
    """Add the joints' nodes, the root below the node that holds the hair."""
    first = len(out.json["nodes"])
    positions, parents = _held(plan), plan.parents
    children: list[list[int]] = [[] for _ in plan.bones]
    for row, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(first + row)
    for row, bone in enumerate(plan.bones):
        node: dict[str, Any] = {"name": bone.name}
        if row == 0:
            matrix = hair.into_holder.copy()
            matrix[:3, 3] += hair.into_holder[:3, :3] @ positions[0]
            node |= transform_keys(matrix)
        else:
            node["translation"] = (positions[row] - positions[parents[row]]).tolist()
        if children[row]:
            node["children"] = children[row]
        out.add("nodes", node)
    holder = out.json["nodes"][hair.holder]
    holder["children"] = [*holder.get("children", []), first]


def _held(plan: Plan) -> Points:
    """Return the bones' places as inverse bind matrices hold them, so that both agree exactly."""
    return plan.positions.astype(np.float32).astype(np.float64)


def transform_keys(matrix: Points) -> dict[str, Any]:
    """Return a transform as keys of a node: move, turn and scale, or a matrix if it shears.

    Args:
        matrix: Shape (4, 4).
    """
    scale = np.linalg.norm(matrix[:3, :3], axis=0)
    if np.linalg.det(matrix[:3, :3]) < 0.0:
        scale[0] = -scale[0]
    turn = matrix[:3, :3] / np.where(scale == 0.0, 1.0, scale)
    if np.abs(turn.T @ turn - np.eye(3)).max() > 1e-6:
        return {"matrix": matrix.T.reshape(-1).tolist()}
    keys = {"translation": matrix[:3, 3].tolist()}
    if np.abs(turn - np.eye(3)).max() > 0.0:
        keys["rotation"] = Rotation.from_matrix(turn).as_quat().tolist()
    if np.abs(scale - 1.0).max() > 0.0:
        keys["scale"] = scale.tolist()
    return keys


def _put_into_scenes(out: Gltf, old: int, new: int) -> None:
    """Show a node in every scene that shows another one."""
    parents = out.parents()
    top = old
    while parents[top] >= 0:
        top = parents[top]
    for scene in out.rows("scenes"):
        if top in scene.get("nodes", []):
            scene["nodes"] = [*scene["nodes"], new]


def _retarget(out: Gltf, old: int, new: int) -> None:
    """Let what was said of the mesh's node be said of its new one."""
    for animation in out.rows("animations"):
        for channel in animation.get("channels", []):
            target = channel.get("target", {})
            if target.get("node") == old and target.get("path") == "weights":
                target["node"] = new
            pointer = target.get("extensions", {}).get("KHR_animation_pointer", {})
            name = str(pointer.get("pointer", ""))
            if name == f"/nodes/{old}/weights" or name.startswith(f"/nodes/{old}/weights/"):
                pointer["pointer"] = name.replace(f"/nodes/{old}/", f"/nodes/{new}/", 1)
    for binding in _avatar_bindings(out):
        if binding.get("node") == old:
            binding["node"] = new


def _avatar_bindings(out: Gltf) -> Iterator[dict[str, Any]]:
    """Give what VRM 1.0 says of nodes with meshes: expressions, and what first person sees."""
    avatar = out.json.get("extensions", {}).get("VRMC_vrm", {})
    if not isinstance(avatar, dict):
        return
    yield from _dicts(avatar.get("firstPerson"), "meshAnnotations")
    expressions = avatar.get("expressions")
    for group in ("preset", "custom"):
        named = expressions.get(group) if isinstance(expressions, dict) else None
        for expression in named.values() if isinstance(named, dict) else ():
            yield from _dicts(expression, "morphTargetBinds")


def _dicts(holder: Any, key: str) -> Iterator[dict[str, Any]]:
    rows = holder.get(key) if isinstance(holder, dict) else None
    yield from (row for row in rows or () if isinstance(row, dict))


def skinned_positions(document: Gltf, node: int) -> tuple[Points, list[str]]:
    """Return where a skinned node's vertices are in the scene now, and its joints' names.

    Args:
        document: The document.
        node: Row of the node.

    Returns:
        Positions, the primitives' one after the other, shape (v, 3); names.

    Raises:
        RigError: The node has no skin, or a primitive no weights.
    """
    row = document.row("nodes", node)
    if "skin" not in row:
        raise RigError("lost skin", f"{document.label}: the mesh has lost its skin")
    skin = document.row("skins", row["skin"])
    joints = skin["joints"]
    back = document.accessor(skin["inverseBindMatrices"]).reshape(-1, 4, 4).transpose(0, 2, 1)
    matrices = document.world_matrices(joints) @ back.astype(np.float64)
    parts, seen = [], set()
    for primitive in document.row("meshes", row.get("mesh")).get("primitives", []):
        attributes = primitive["attributes"]
        if not {"JOINTS_0", "WEIGHTS_0"} <= set(attributes):
            raise RigError("lost skin", f"{document.label}: a primitive has lost its weights")
        if attributes["POSITION"] in seen:
            continue
        seen.add(attributes["POSITION"])
        rest = document.accessor(attributes["POSITION"]).astype(np.float64)
        rest = np.concatenate([rest, np.ones((len(rest), 1))], axis=1)
        which = document.accessor(attributes["JOINTS_0"]).astype(np.int64)
        share = document.accessor(attributes["WEIGHTS_0"]).astype(np.float64)
        if len(which) != len(rest) or which.max(initial=0) >= len(joints):
            raise RigError("lost skin", f"{document.label}: weights do not match the vertices")
        place = np.zeros((len(rest), 3))
        for slot in range(4):
            moved = np.einsum("vij,vj->vi", matrices[which[:, slot], :3], rest)
            place += share[:, slot : slot + 1] * moved
        parts.append(place)
    names = [str(document.row("nodes", joint).get("name", "")) for joint in joints]
    return np.concatenate(parts), names
