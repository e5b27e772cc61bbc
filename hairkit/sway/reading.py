"""Reads a hair mesh that has a skeleton already: its joints as chains, nothing changed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hairkit.errors import RigError
from hairkit.io.gltf import Gltf
from hairkit.rigging import Bone, Plan, RiggedHair, Weights
from hairkit.rigging.bake import HairMesh
from hairkit.rigging.find import find_hair
from hairkit.rigging.plan import check_vertices, heaviest
from hairkit.rigging.rig import document_of, failures

_ROOT = "HairRoot"
"""Name of the bone that stands above the joints where they have no joint in common."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BonedHair(RiggedHair):
    """A hair mesh whose skeleton was there already."""

    joints: tuple[int, ...] = ()
    """Node of each bone of the plan; that of a root that is no joint is the node above, or -1."""


def read_rig(source: Any, *, mesh: str | None = None) -> BonedHair:
    """Read a mesh that has a skin.

    The root is the joint above all others, or, where several have none above them, a bone that
    stands for the node above. Chains go from below the root to a leaf. Where joints fork, the
    longest branch goes on and the others begin anew, so that a bone is in one chain only.

    Args:
        source: A .glb, .gltf or .vrm file, or the bytes of one.
        mesh: Which mesh, as in `hairkit.rig`.

    Returns:
        The mesh, its bones where they are bound to it.

    Raises:
        RigError: It has no skin, or cannot be read.
    """
    raw = isinstance(source, bytes | bytearray | memoryview)
    where = "" if raw else str(source)
    with failures(where):
        if raw:
            document = Gltf.parse(bytes(source), "mesh")
            hair = find_hair(document, mesh)
            check_vertices(hair.vertices)
        else:
            document, hair = document_of(source, mesh)
        if not hair.joints:
            raise RigError("lost skin", f"mesh {hair.name!r} has no skin; expected one")
        made, joints = _skeleton(document, hair)
        return BonedHair(
            plan=made,
            vertices=hair.vertices,
            faces=hair.faces,
            name=hair.name,
            source=where,
            document=document,
            node=hair.node,
            into_scene=hair.into_scene(document),
            joints=joints,
        )


def _skeleton(document: Gltf, hair: HairMesh) -> tuple[Plan, tuple[int, ...]]:
    """Return a skin's joints as a plan, and the node of each bone."""
    skin = document.row("skins", document.row("nodes", hair.node)["skin"])
    joints: list[int] = skin["joints"]
    if len(set(joints)) != len(joints):
        raise RigError("unreadable", "a skin has a joint twice")
    above = _joints_above(document.parents(), joints)
    order = _parents_first(above)
    tops = [joint for joint in order if above[joint] < 0]
    extra = 0 if len(tops) == 1 else 1
    row_of = {joint: extra + row for row, joint in enumerate(order)}
    positions = _positions(document, hair, skin, joints)
    bones: list[Bone] = []
    nodes: list[int] = []
    if extra:
        bones.append(Bone(name=_ROOT, position=_triple(positions[tops].mean(axis=0)), parent=-1))
        nodes.append(hair.holder if hair.holder not in joints else -1)
    for joint in order:
        name = str(document.row("nodes", joints[joint]).get("name", f"joint {joint}"))
        parent = row_of[above[joint]] if above[joint] >= 0 else extra - 1
        bones.append(Bone(name=name, position=_triple(positions[joint]), parent=parent))
        nodes.append(joints[joint])
    made = Plan(
        bones=tuple(bones),
        weights=_weights(document, hair, np.array([row_of[j] for j in range(len(joints))])),
        chains=chains_of([bone.parent for bone in bones]),
        strategy="read",
    )
    return made, tuple(nodes)


def _joints_above(parents: list[int], joints: list[int]) -> list[int]:
    """Return for each joint the nearest joint above it, -1 for none; nodes between are skipped."""
    rows = {node: row for row, node in enumerate(joints)}
    above = []
    for node in joints:
        at = parents[node]
        while at >= 0 and at not in rows:
            at = parents[at]
        above.append(rows.get(at, -1))
    return above


def _parents_first(above: list[int]) -> list[int]:
    """Return rows so that each comes after its parent, else in their order."""
    order: list[int] = []
    done: set[int] = set()
    for row in range(len(above)):
        line = []
        while row >= 0 and row not in done:
            line.append(row)
            done.add(row)
            row = above[row]
        order += reversed(line)
    return order


def chains_of(parents: list[int]) -> tuple[tuple[int, ...], ...]:
    """Return the chains of a skeleton: from below the root to each leaf, no bone in two.

    Args:
        parents: Row of each bone's parent, which comes before it; -1 for row 0, the root.
    """
    below: list[list[int]] = [[] for _ in parents]
    for row, parent in enumerate(parents[1:], start=1):
        below[parent].append(row)
    depth = [1] * len(parents)
    for row in range(len(parents) - 1, 0, -1):
        depth[parents[row]] = max(depth[parents[row]], depth[row] + 1)
    chains = []
    starts = below[0][::-1]
    while starts:
        chain = [starts.pop()]
        while below[chain[-1]]:
            on = max(below[chain[-1]], key=lambda row: depth[row])
            starts += [row for row in below[chain[-1]][::-1] if row != on]
            chain.append(on)
        chains.append(tuple(chain))
    return tuple(chains)


def _positions(
    document: Gltf, hair: HairMesh, skin: dict[str, Any], joints: list[int]
) -> NDArray[np.float64]:
    """Return where joints are bound to the mesh, in its own space, shape (joints, 3)."""
    if "inverseBindMatrices" in skin:
        back = document.accessor(skin["inverseBindMatrices"]).astype(np.float64)
        if len(back) < len(joints) or back.shape[1] != 16:
            raise RigError("unreadable", "a skin has too few inverse bind matrices")
        back = back[: len(joints)].reshape(-1, 4, 4).transpose(0, 2, 1)
        if np.isfinite(back).all() and (np.abs(np.linalg.det(back)) > 0.0).all():
            return np.asarray(np.linalg.inv(back)[:, :3, 3], dtype=np.float64)
        raise RigError("not finite", "a skin's inverse bind matrices have no inverse")
    into = hair.into_scene(document)
    placed = np.linalg.solve(into, document.world_matrices(joints))
    return np.asarray(placed[:, :3, 3], dtype=np.float64)


def _weights(document: Gltf, hair: HairMesh, rows: NDArray[Any]) -> Weights:
    """Return the vertices' weights by the plan's rows."""
    bones, shares, seen = [], [], set()
    for primitive in document.row("meshes", hair.mesh)["primitives"]:
        attributes = primitive["attributes"]
        if attributes["POSITION"] in seen:
            continue
        seen.add(attributes["POSITION"])
        if not {"JOINTS_0", "WEIGHTS_0"} <= set(attributes):
            raise RigError("lost skin", "a primitive has no weights; expected JOINTS_0, WEIGHTS_0")
        bones.append(rows[document.accessor(attributes["JOINTS_0"]).astype(np.int64)])
        shares.append(document.accessor(attributes["WEIGHTS_0"]).astype(np.float64))
    bone, share = np.concatenate(bones), np.concatenate(shares)
    if len(bone) != len(hair.vertices) or not np.isfinite(share).all() or share.min() < 0.0:
        raise RigError("unreadable", "weights do not match the vertices, or are no shares")
    total = share.sum(axis=1)
    # A vertex without weights stays where its bones leave it: with the root.
    bone[total == 0.0, 0] = 0
    share[total == 0.0, 0] = 1.0
    return heaviest(bone, share, share.shape[1])


def _triple(point: NDArray[np.float64]) -> tuple[float, float, float]:
    return float(point[0]), float(point[1]), float(point[2])
