"""Reads a file whose hair has bones already, ours or another's, as chains that can sway."""

import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from hairkit.errors import RigError
from hairkit.io.gltf import Gltf
from hairkit.rigging.avatar import spring_lines
from hairkit.rigging.bake import EXTRAS
from hairkit.rigging.find import common_ancestor, line_up, weight_of_joints
from hairkit.rigging.plan import Bone, Plan, Points, Weights, triple
from hairkit.rigging.rig import document_of, failures


@dataclass(frozen=True, eq=False, kw_only=True)
class BonedHair:
    """Hair that has bones, in the space of the node that all of them hang on, its carrier."""

    plan: Plan
    """Bones, their places in the carrier's space, and chains; bone 0 is the carrier itself."""

    tips: Points
    """Where each chain ends, in the carrier's space, shape (chains, 3)."""

    into_scene: Points
    """From the carrier's space into the scene, shape (4, 4)."""

    rest_turns: Points
    """Rotation of each bone in the carrier's space at rest, shape (bones, 3, 3)."""

    parent_turns: Points
    """Rotation of the node above each bone in the carrier's space at rest, shape (bones, 3, 3)."""

    nodes: tuple[int, ...]
    """Row of each bone's node in the document."""

    document: Gltf = field(repr=False)
    """All that the file held."""

    name: str
    """Name of the mesh."""

    head: bool = False
    """Whether the carrier is an avatar's head, which turns on its neck."""

    source: str
    """File that it came from."""

    note: str = ""
    """What is left out, such as bones that branch off in the middle of a chain."""

    @property
    def bone_names(self) -> list[str]:
        """Names of the bones."""
        return self.plan.names

    def local_turns(self, joints: NDArray[np.int64], turns: Points) -> Points:
        """Return bones' rotations in their parents, as their nodes hold them.

        Args:
            joints: Rows of bones, parents before children, shape (n,).
            turns: Their swing in their parents from the rest pose, in the carrier's space,
                quaternions (x, y, z, w), shape (..., n, 4).

        Returns:
            Quaternions, shape (..., n, 4).
        """
        before = Rotation.from_matrix(self.parent_turns[joints]).inv()
        own = Rotation.from_matrix(self.rest_turns[joints])
        flat = turns.reshape(-1, len(joints), 4)
        made = [(before * Rotation.from_quat(frame) * own).as_quat() for frame in flat]
        return np.array(made).reshape(turns.shape)


def read_rig(source: str | os.PathLike[str], mesh: str | None = None) -> BonedHair:
    """Read hair that has bones.

    The carrier is the nearest node above all joints that move the mesh, or the one of them that is
    above the others, or the ``HairRoot`` above that. Each child of it begins a chain, which goes on
    to the bone farthest along; what branches off in the middle stays with the bone that it hangs
    on. A last bone that moves no vertex is the chain's tip. An avatar says itself what sways:
    without `mesh`, its chains are its springs' below the head, which carries them.

    Args:
        source: A .glb, .gltf or .vrm file.
        mesh: As `rig`.

    Raises:
        RigError: The mesh has no skin, or its bones make no chain; or as `rig`.
    """
    where = str(source)
    with failures(where):
        if mesh is None and where.lower().endswith((".glb", ".gltf", ".vrm")):
            document = Gltf.read(where)
            springs = spring_lines(document)
            if springs is not None:
                head, lines = springs
                made = _of_lines(document, head, lines, None, "springs", where, "file", "")
                return replace(made, head=True)
        document, hair = document_of(source, mesh)
        if not hair.joints:
            raise RigError(
                "no skin", f"mesh {hair.name!r} has no skin; expected one that is rigged"
            )
        return boned(document, hair.node, hair.name, where)


def boned(document: Gltf, node: int, name: str, source: str = "") -> BonedHair:
    """Return a skinned node's bones as chains.

    Args:
        document: The document.
        node: Row of the node.
        name: What to call the mesh.
        source: The file's name.

    Raises:
        RigError: Its bones make no chain.
    """
    row = document.row("nodes", node)
    joints = [int(j) for j in document.row("skins", row["skin"])["joints"]]
    weight = weight_of_joints(document, document.row("meshes", row["mesh"]), len(joints))
    parents = document.parents()
    moving = {joint for joint, share in zip(joints, weight, strict=True) if share > 0.0}
    carrier = _top(parents, moving or set(joints))
    if carrier >= 0 and parents[carrier] >= 0:
        above = parents[carrier]
        if document.row("nodes", above).get("name") == "HairRoot":
            # A single chain of ours, whose root moves no vertex.
            carrier = above
    if carrier < 0:
        raise RigError("no skin", "its joints hang on nothing that all of them share")
    below = _below(parents, joints, carrier)
    lines, left = _lines(document, carrier, below)
    strategy = _strategy(document.row("skins", row["skin"]))
    note = f"{left} bones that branch off stay with their parents" if left else ""
    return _of_lines(document, carrier, lines, moving, name, source, strategy, note)


def _of_lines(
    document: Gltf,
    carrier: int,
    lines: list[list[int]],
    moving: set[int] | None,
    name: str,
    source: str,
    strategy: str,
    note: str,
) -> BonedHair:
    """Return lines of nodes below a carrier as chains.

    Args:
        document: The document.
        carrier: Node that all hang on.
        lines: Nodes of each chain, root first.
        moving: Nodes that move vertices; a last one that does not is a tip. None: it is one.
        name: What to call the hair.
        source: The file's name.
        strategy: How it was planned.
        note: What is left out.
    """
    parents = document.parents()
    nodes = [node for line in lines for node in line]
    wanted = sorted({carrier, *nodes, *(parents[node] for node in nodes)})
    matrices = dict(zip(wanted, document.world_matrices(wanted), strict=True))
    back = np.linalg.inv(matrices[carrier])
    bones = [carrier]
    chains, tips = [], []
    for line in lines:
        places = [(back @ matrices[joint])[:3, 3] for joint in line]
        if len(line) > 1 and (moving is None or line[-1] not in moving):
            tips.append(places[-1])
            line = line[:-1]
        else:
            before = places[-2] if len(places) > 1 else np.zeros(3)
            tips.append(2.0 * places[-1] - before)
        chains.append(tuple(range(len(bones), len(bones) + len(line))))
        bones += line
    if not chains:
        raise RigError("no skin", "its joints make no chain")
    of = {joint: number for number, joint in enumerate(bones)}
    seen = [back @ matrices[joint] for joint in bones]
    above = [np.eye(4), *(back @ matrices[parents[joint]] for joint in bones[1:])]
    made = tuple(
        Bone(
            name=str(document.row("nodes", joint).get("name", f"node {joint}")),
            position=triple(seen[number][:3, 3]),
            parent=of.get(parents[joint], 0) if number else -1,
        )
        for number, joint in enumerate(bones)
    )
    count = np.zeros((0, 1))
    return BonedHair(
        plan=Plan(
            bones=made,
            weights=Weights(count.astype(np.int32), count),
            chains=tuple(chains),
            strategy=strategy,
        ),
        tips=np.array(tips),
        into_scene=matrices[carrier],
        rest_turns=np.array([_turn(m[:3, :3]) for m in seen]),
        parent_turns=np.array([_turn(m[:3, :3]) for m in above]),
        nodes=tuple(bones),
        document=document,
        name=name,
        source=source,
        note=note,
    )


def _strategy(skin: dict[str, Any]) -> str:
    """Return how a skin was planned, ``file`` where it does not say."""
    extras = skin.get("extras")
    ours = extras.get(EXTRAS) if isinstance(extras, dict) else None
    return str(ours.get("strategy", "file")) if isinstance(ours, dict) else "file"


def _top(parents: list[int], joints: set[int]) -> int:
    """Return the lowest node that is above all joints or one of them; -1 for none."""
    if len(joints) == 1:
        # One bone alone: what it hangs on carries it.
        return parents[next(iter(joints))]
    return common_ancestor(parents, sorted(joints))


def _below(parents: list[int], joints: list[int], carrier: int) -> list[int]:
    """Return the joints below the carrier and what lies between, upper ones first."""
    found: dict[int, int] = {}
    for joint in joints:
        line = line_up(parents, joint)
        if carrier in line[1:]:
            for depth, node in enumerate(reversed(line[: line.index(carrier)])):
                found.setdefault(node, depth)
    return sorted(found, key=lambda node: (found[node], node))


def _lines(document: Gltf, carrier: int, below: list[int]) -> tuple[list[list[int]], int]:
    """Return a line of nodes for each that hangs on the carrier, and how many branch off."""
    known = set(below)
    length: dict[int, int] = {}
    for node in reversed(below):
        children = [c for c in document.children(document.row("nodes", node)) if c in known]
        length[node] = 1 + max((length[c] for c in children), default=0)
    lines = []
    for first in document.children(document.row("nodes", carrier)):
        if first not in known:
            continue
        line = [first]
        while True:
            children = document.children(document.row("nodes", line[-1]))
            children = [c for c in children if c in known]
            if not children:
                break
            line.append(max(children, key=lambda c: length[c]))
        lines.append(line)
    return lines, len(below) - sum(map(len, lines))


def _turn(linear: Points) -> Points:
    """Return the rotation of a joint, its scale and mirroring left out."""
    left, _, right = np.linalg.svd(linear)
    turn = left @ right
    if np.linalg.det(turn) < 0.0:
        turn = turn @ np.diag([-1.0, 1.0, 1.0])
    return np.asarray(turn, dtype=np.float64)
