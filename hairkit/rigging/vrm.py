"""Gives rigged hair VRM 1.0's spring bones, VRMC_springBone, so that other programs sway it.

VRM's reference takes no settings that hold at every frame rate, nor at every size: the numbers
that are written hold for one frame rate, which is in each spring's name and extras (see
`hairkit.rigging.springs`), and for each bone's length in the scene, with all scales of the nodes
above it, since the reference moves tails in the scene. A file in centimetres below a node of scale
0.01 gets the numbers of the same hair in metres. Who shows a character n times as large has to
multiply stiffness, gravityPower and hitRadius by n.
"""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hairkit.errors import RigError
from hairkit.io.gltf import Gltf
from hairkit.rigging.plan import Points
from hairkit.rigging.rig import RiggedHair, failures
from hairkit.rigging.springs import SpringNumbers, check_number, spring_numbers

if TYPE_CHECKING:
    from hairkit.shapes import Capsule, Sphere

EXTENSION = "VRMC_springBone"
VERSION = "1.0"
EARTH = 9.81
"""Acceleration of free fall [m/s2]."""
THICKNESS = 0.1
"""Radius of a joint as a share of its bone's length, where none is given."""
SHORTEST = 1e-6
"""Length of a bone that is none, as a share of the hair's size."""
EVEN = 1e-3
"""How far scales of a node's axes may differ, as a share, and be called even."""


def with_springs(
    rigged: RiggedHair,
    *,
    damping: float = 0.92,
    stiffness: float = 0.1,
    gravity: float = 1.0,
    radius: float | None = None,
    frame_rate: float = 60.0,
    colliders: "Sequence[tuple[str | int, Sphere | Capsule]]" = (),
) -> RiggedHair:
    """Return rigged hair with a spring for each of its chains; what went in stays as it is.

    A spring's joints are its chain's bones from the root outwards, and an empty node at the tip:
    VRM turns no last joint, it is only where the one before it points to. The empty node goes on
    from the last bone in the direction of the bone before it, as far as the vertices that the last
    bone moves most reach, and at least half of the way between the two; so what collides and swings
    is the tip of the hair. ``HairRoot`` is fixed to the head and is no joint.

    An avatar's own springs, colliders and groups stay, as do their numbers; ours come after them.
    Springs of joints that move nothing any more, since their hair has a new skin, stay, too.

    Args:
        rigged: The hair.
        damping: Share of a swing's speed that is left after 1/60 s of free swing, 0 to 1.
        stiffness: Share of the way back to the rest pose gone in 1/60 s without inertia, 0 to 0.99.
        gravity: What pulls hair down from its rest pose, in multiples of the earth's.
        radius: Of each joint, against colliders, in the scene [m]. None is a tenth of each bone's
            length, and never so much that a collider moves the rest pose.
        frame_rate: Frames a second at which the springs will run, 10 to 1000.
        colliders: Nodes, by name or row, and balls and capsules in the nodes' own space. All
            springs made here share them. What is in the file are radii in the scene.

    Raises:
        RigError: A setting is out of range, a node is not there, the file is an avatar of VRM 0.x
            or has springs that cannot be read, or the bones have springs already.
    """
    with failures(rigged.source):
        numbers = spring_numbers(damping, stiffness, frame_rate)
        check_number("gravity", gravity, 0.0)
        if radius is not None:
            check_number("radius", radius, 0.0)
        document = rigged.document.copy()
        springs = _extension(document)
        joints = _joints(document, rigged)
        notes = _warnings(document, rigged, springs, joints[0])
        if numbers.held:
            notes.append(
                f"{frame_rate:g} frames a second are few for this stiffness: swings are slower "
                "than at 60"
            )
        bodies, group = _add_colliders(document, springs, colliders, notes)
        settings = {
            "frameRate": float(frame_rate),
            "damping": float(damping),
            "stiffness": float(stiffness),
            "gravity": float(gravity),
        }
        made = 0
        for chain in rigged.plan.chains:
            rows = [joints[bone] for bone in chain]
            rows.append(_add_tail(document, rigged, chain, joints))
            held = _spring_joints(document, rows, numbers, gravity, radius, bodies)
            if len(held) < 2:
                continue
            made += 1
            name = _chain_name(rigged, chain)
            spring: dict[str, Any] = {
                "name": f"{name} ({frame_rate:g} fps)",
                "joints": held,
                "extras": {"hairkit": dict(settings)},
            }
            if group is not None:
                spring["colliderGroups"] = [group]
            springs.setdefault("springs", []).append(spring)
        if made == 0:
            raise RigError("no length", "the bones have no length in the scene; expected some")
        if made < len(rigged.plan.chains):
            notes.append(f"{len(rigged.plan.chains) - made} chains without length have no spring")
        notes += _pushed(bodies, springs["springs"][-made:], document)
        note = "; ".join([rigged.note, *notes] if rigged.note else notes)
        return dataclasses.replace(rigged, document=document, note=note)


def _extension(document: Gltf) -> dict[str, Any]:
    """Return the extension's object in a document, added if there is none.

    Raises:
        RigError: It is not VRM 1.0's, or not what it should be.
    """
    extensions = document.json.setdefault("extensions", {})
    if "VRM" in extensions and "VRMC_vrm" not in extensions:
        raise RigError(
            "old version",
            "is an avatar of VRM 0.x, whose springs are others; expected VRM 1.0 or plain glTF",
        )
    found = extensions.setdefault(EXTENSION, {"specVersion": VERSION})
    if not isinstance(found, dict):
        raise RigError("unreadable", f"extensions.{EXTENSION}: expected an object")
    if found.get("specVersion") != VERSION:
        raise RigError(
            "old version",
            f"extensions.{EXTENSION}.specVersion is {found.get('specVersion')!r}, "
            f"expected {VERSION!r}",
        )
    for name in ("colliders", "colliderGroups", "springs"):
        rows = found.get(name, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise RigError("unreadable", f"extensions.{EXTENSION}.{name}: expected objects")
    used = document.json.setdefault("extensionsUsed", [])
    if not isinstance(used, list):
        raise RigError("unreadable", "extensionsUsed: expected a list")
    if EXTENSION not in used:
        used.append(EXTENSION)
    return found


def _joints(document: Gltf, rigged: RiggedHair) -> list[int]:
    """Return the nodes of the plan's bones."""
    skin = document.row("nodes", rigged.node).get("skin")
    return list(document.row("skins", skin)["joints"])


def _warnings(document: Gltf, rigged: RiggedHair, springs: dict[str, Any], root: int) -> list[str]:
    """Return what may make programs sway the hair otherwise.

    Raises:
        RigError: The bones have springs already.
    """
    taken = set()
    for spring in springs.get("springs", []):
        joints = spring.get("joints")
        for joint in joints if isinstance(joints, list) else ():
            node = joint.get("node") if isinstance(joint, dict) else None
            if isinstance(node, int):
                taken.add(node)
    if taken & set(_joints(document, rigged)):
        raise RigError("bad option", "the hair's bones have springs already; expected none")
    notes = []
    parents = document.parents()
    above = root
    while above >= 0:
        above = parents[above]
        if above in taken:
            name = document.row("nodes", above).get("name", above)
            notes.append(f"node {name!r} above the hair is a joint of another spring: both sway it")
            break
    linear = document.world_matrices([root])[0][:3, :3]
    sizes = np.linalg.svd(linear, compute_uv=False)
    words = []
    if np.linalg.det(linear) < 0.0:
        words.append("mirrored")
    if sizes[0] > (1.0 + EVEN) * sizes[-1]:
        words.append("unevenly scaled")
    if words:
        notes.append(
            f"the hair is {' and '.join(words)} by nodes above it, where VRM's reference only "
            "looks at their rotation: some programs may sway it wrongly"
        )
    return notes


def _add_colliders(
    document: Gltf,
    springs: dict[str, Any],
    colliders: "Sequence[tuple[str | int, Sphere | Capsule]]",
    notes: list[str],
) -> "tuple[list[Sphere | Capsule], int | None]":
    """Add colliders and one group of them all.

    Returns:
        The shapes in the scene; the group, None where there are no colliders.
    """
    if not colliders:
        return [], None
    from hairkit.shapes import Capsule, Sphere  # slow to import, and most springs do without

    rows = [_node_row(document, node) for node, _ in colliders]
    bodies: list[Sphere | Capsule] = []
    added = []
    for row, matrix, (_, shape) in zip(rows, document.world_matrices(rows), colliders, strict=True):
        sizes = np.linalg.svd(matrix[:3, :3], compute_uv=False)
        if sizes[0] > (1.0 + EVEN) * sizes[-1]:
            notes.append(f"node {row} is unevenly scaled: its collider is as large as it is widest")
        scale = float(sizes[0])
        if isinstance(shape, Sphere):
            radius = shape.radius * scale
            data = {"sphere": {"offset": _floats(shape.center), "radius": radius}}
            bodies.append(Sphere(radius, _moved(matrix, shape.center)))
        elif isinstance(shape, Capsule):
            radius = shape.radius * scale
            ends = {"offset": _floats(shape.a), "radius": radius, "tail": _floats(shape.b)}
            data = {"capsule": ends}
            bodies.append(Capsule(_moved(matrix, shape.a), _moved(matrix, shape.b), radius))
        else:
            raise RigError(
                "bad option", f"colliders: expected a Sphere or Capsule, got {type(shape).__name__}"
            )
        found = springs.setdefault("colliders", [])
        found.append({"node": row, "shape": data})
        added.append(len(found) - 1)
    groups = springs.setdefault("colliderGroups", [])
    groups.append({"name": "Hair", "colliders": added})
    return bodies, len(groups) - 1


def _node_row(document: Gltf, node: str | int) -> int:
    """Return the row of a node that a collider is on."""
    nodes = document.rows("nodes")
    if isinstance(node, str):
        found = [row for row, each in enumerate(nodes) if each.get("name") == node]
        if len(found) != 1:
            raise RigError(
                "bad option", f"colliders: {len(found)} nodes are called {node!r}; expected one"
            )
        return found[0]
    if isinstance(node, bool) or not isinstance(node, int) or not 0 <= node < len(nodes):
        raise RigError("bad option", f"colliders: node {node!r}, expected one below {len(nodes)}")
    return node


def _add_tail(
    document: Gltf, rigged: RiggedHair, chain: Sequence[int], joints: Sequence[int]
) -> int:
    """Add the empty node at a chain's tip and return its row."""
    # Bones are not turned, so that a move in their space is one in the mesh's.
    held = rigged.plan.positions
    last = held[chain[-1]]
    before = held[chain[-2]] if len(chain) > 1 else held[rigged.plan.parents[chain[-1]]]
    heaviest = rigged.plan.weights.indices[:, 0] == chain[-1]
    away = rigged.vertices[heaviest] - last
    along = last - before
    size = float(np.linalg.norm(along))
    if size <= SHORTEST * _size(rigged):
        # A bone on top of the one before it: towards what it moves.
        along = away.mean(axis=0) if len(away) else np.zeros(3)
        size = float(np.linalg.norm(along))
    reach = 0.0
    if size > 0.0:
        along = along / size
        reach = max(0.5 * size, float((away @ along).max(initial=0.0)))
    tail: dict[str, Any] = {
        "name": f"{_chain_name(rigged, chain)}_End",
        "translation": (along * reach).tolist(),
    }
    row = document.add("nodes", tail)
    bone = document.row("nodes", joints[chain[-1]])
    bone["children"] = [*bone.get("children", []), row]
    return row


def _size(rigged: RiggedHair) -> float:
    """Return the mesh's greatest extent, in its own space."""
    return float(np.ptp(rigged.vertices, axis=0).max(initial=0.0))


def _chain_name(rigged: RiggedHair, chain: Sequence[int]) -> str:
    """Return what a chain's bones are called, without what numbers them."""
    return rigged.plan.names[chain[0]].rpartition("_B")[0] or rigged.plan.names[chain[0]]


def _spring_joints(
    document: Gltf,
    rows: Sequence[int],
    numbers: SpringNumbers,
    gravity: float,
    radius: float | None,
    bodies: "Sequence[Sphere | Capsule]",
) -> list[dict[str, Any]]:
    """Return a spring's joints, the tail last, without bones of no length.

    Such a bone has no direction to keep, and VRM lets a spring pass over nodes.
    """
    places = document.world_matrices(rows)[:, :3, 3]
    whole = float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum())
    joints: list[dict[str, Any]] = [{"node": rows[-1]}]
    tail = places[-1]
    for row, place in zip(reversed(rows[:-1]), places[-2::-1], strict=True):
        length = float(np.linalg.norm(tail - place))
        if length <= SHORTEST * whole:
            continue
        wide = radius
        if wide is None:
            wide = min([THICKNESS * length, *(_gap(body, tail) for body in bodies)])
        joints.append(
            {
                "node": row,
                "hitRadius": max(float(wide), 0.0),
                "stiffness": numbers.pull * length,
                "gravityPower": numbers.fall * EARTH * gravity,
                "gravityDir": [0.0, -1.0, 0.0],
                "dragForce": numbers.drag,
            }
        )
        tail = place
    return joints[::-1]


def _pushed(
    bodies: "Sequence[Sphere | Capsule]", springs: Sequence[dict[str, Any]], document: Gltf
) -> list[str]:
    """Return a note of tails that a collider pushes out of the rest pose, if there are any."""
    count = 0
    for spring in springs:
        joints = spring["joints"]
        tails = document.world_matrices([joint["node"] for joint in joints[1:]])[:, :3, 3]
        for joint, tail in zip(joints[:-1], tails, strict=True):
            room = min((_gap(body, tail) for body in bodies), default=np.inf)
            count += room < joint["hitRadius"]
    return [f"colliders push joints out of the rest pose ({count})"] if count else []


def _gap(body: "Sphere | Capsule", place: Points) -> float:
    """Return how far a place in the scene is from a collider, negative inside."""
    return float(body.signed_distance(place[None])[0][0])


def _moved(matrix: NDArray[np.float64], point: Sequence[float]) -> tuple[float, float, float]:
    """Return a point of a node's space in the scene."""
    x, y, z = (float(value) for value in matrix[:3, :3] @ np.asarray(point) + matrix[:3, 3])
    return x, y, z


def _floats(point: Sequence[float]) -> list[float]:
    """Return a point as plain numbers."""
    return [float(value) for value in point]
