"""Gives rigged hair VRM 1.0's spring bones, VRMC_springBone, so that other programs sway it.

VRM's reference takes no settings that hold at every frame rate, nor at every size: the numbers
that are written hold for one frame rate, which is in each spring's name and extras (see
`hairkit.sway.springs`), and for each bone's length in the scene, with all scales of the nodes
above it, since the reference moves tails in the scene. A file in centimetres below a node of scale
0.01 gets the numbers of the same hair in metres. Who shows a character n times as large has to
multiply stiffness, gravityPower and hitRadius by n.
"""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hairkit.errors import HairkitError, RigError
from hairkit.io.gltf import Gltf
from hairkit.rigging.plan import Points
from hairkit.rigging.rig import RiggedHair, failures
from hairkit.sway.settings import ChainSettings
from hairkit.sway.springs import (
    FASTEST,
    SLOWEST,
    SpringNumbers,
    check_number,
    spring_numbers,
)

if TYPE_CHECKING:
    from hairkit.shapes import Capsule, Sphere

EXTENSION = "VRMC_springBone"
VERSION = "1.0"
EARTH = 9.81
"""Acceleration of free fall [m/s2]."""
THICKNESS = 0.1
"""Radius of a joint as a share of its bone's length, where none is given."""
SAG = np.radians(5.0)
"""How far gravity may turn a bone from its rest pose [rad]."""
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
    still: int | None = None,
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

    The rest pose is what hair looks like under gravity, but VRM cannot take its gravity off there.
    So bones that hang feel all of it, as bones of a pendulum of the longest chain's length; those
    that do not hang feel less, by as much as keeps them within 5 degrees of the rest pose, and
    their stiffness makes up for the rest, so that they swing as fast.

    Args:
        rigged: The hair.
        damping: Share of its speed that a bone keeps over 1/60 s, as `ChainSettings`.
        stiffness: Share of the way back to the rest pose that a bone without inertia goes in
            1/60 s, as `ChainSettings`.
        gravity: Share of the earth's gravity that bones feel, 0 or more.
        radius: Of each joint, against colliders, in the scene [m]. None is a tenth of each bone's
            length, and never so much that a collider moves the rest pose.
        still: Bones of each chain, from the root on, that do not turn, as `ChainSettings`.
        frame_rate: Frames a second at which the springs will run, 10 to 1000.
        colliders: Nodes, by name or row, and balls and capsules in the nodes' own space. All
            springs made here share them. What is in the file are radii in the scene.

    Raises:
        RigError: A setting is out of range, a node is not there, the file is an avatar of VRM 0.x
            or has springs that cannot be read, or the bones have springs already.
    """
    with failures(rigged.source):
        try:
            settings = ChainSettings(damping=damping, stiffness=stiffness, still=still)
        except HairkitError as error:
            raise RigError("bad option", str(error)) from error
        check_number("gravity", gravity, 0.0)
        check_number("frame_rate", frame_rate, SLOWEST, FASTEST)
        if radius is not None:
            check_number("radius", radius, 0.0)
        document = rigged.document.copy()
        springs = _extension(document)
        joints = _joints(document, rigged)
        notes = _warnings(document, rigged, springs, joints[0])
        bodies, group = _add_colliders(document, springs, colliders, notes)
        chains = []
        for chain in rigged.plan.chains:
            first = settings.still_bones(rigged.plan.strategy, len(chain))
            rows = [joints[bone] for bone in chain[first:]]
            rows.append(_add_tail(document, rigged, chain, joints))
            chains.append(rows)
        lines = [_line(document, rows) for rows in chains]
        longest = max((float(line.lengths.sum()) for line in lines), default=0.0)
        if not longest > 0.0:
            raise RigError("no length", "the bones have no length in the scene; expected some")
        hang = EARTH * gravity / longest
        moved = {
            (pull, len(line.rows)): spring_numbers(
                _drag(settings, pull, hang, len(line.rows) - 1), pull, frame_rate
            )
            for line in lines
            for pull in _pulls(line, settings.spring(), hang)
        }
        if not all(numbers.exact for numbers in moved.values()):
            notes.append(
                f"{frame_rate:g} frames a second are few for these springs: swings die down faster"
            )
        made, pushed = [], 0
        for chain, line in zip(rigged.plan.chains, lines, strict=True):
            if len(line.rows) < 2:
                continue
            spring: dict[str, Any] = {
                "name": f"{_chain_name(rigged, chain)} ({frame_rate:g} fps)",
                "joints": _spring_joints(
                    line, moved, _pulls(line, settings.spring(), hang), hang, radius, bodies
                ),
                "extras": {
                    "hairkit": {
                        "frameRate": float(frame_rate),
                        "damping": float(damping),
                        "stiffness": float(stiffness),
                        "gravity": float(gravity),
                    }
                },
            }
            if group is not None:
                spring["colliderGroups"] = [group]
            made.append(spring)
            count = sum(
                min((_gap(body, tail) for body in bodies), default=np.inf) < joint["hitRadius"]
                for joint, tail in zip(spring["joints"], line.places[1:], strict=False)
            )
            pushed += count
        springs["springs"] = [*springs.get("springs", []), *made]
        if len(made) < len(lines):
            notes.append(f"{len(lines) - len(made)} chains without length have no spring")
        if pushed:
            notes.append(f"colliders push joints out of the rest pose ({pushed})")
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


@dataclasses.dataclass(frozen=True, eq=False)
class _Line:
    """A spring's joints in the scene."""

    rows: list[int]
    """Their nodes, the tail's last."""

    places: Points
    """Where they are [m], shape (joints, 3)."""

    @property
    def lengths(self) -> Points:
        """How far each is from the next [m], shape (joints - 1,)."""
        return np.asarray(np.linalg.norm(np.diff(self.places, axis=0), axis=1), np.float64)


def _line(document: Gltf, rows: Sequence[int]) -> _Line:
    """Return a spring's joints, without bones of no length.

    Such a bone has no direction to keep, and VRM lets a spring pass over nodes.
    """
    places = document.world_matrices(rows)[:, :3, 3]
    whole = float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum())
    kept = [len(rows) - 1]
    for at in range(len(rows) - 2, -1, -1):
        if np.linalg.norm(places[at] - places[kept[-1]]) > SHORTEST * whole:
            kept.append(at)
    kept.reverse()
    return _Line([rows[at] for at in kept], places[kept])


def _drag(settings: ChainSettings, pull: float, hang: float, count: int) -> float:
    """Return the drag of a bone of a chain [1/s].

    Stiffer bones swing faster, so their drag grows along. And each of n bones swings by the swing
    of the one before it: where a lone bone loses a share z of what would stop it at once, bones in
    a row each lose 1 - (1 - z)^n, or the tip would whip.
    """
    alone = settings.spring() + hang
    if alone <= 0.0:
        return settings.drag()
    damped = settings.drag() / (2.0 * np.sqrt(alone))
    if damped < 1.0:
        damped = 1.0 - (1.0 - damped) ** count
    return float(damped * 2.0 * np.sqrt(pull))


def _pulls(line: _Line, spring: float, hang: float) -> list[float]:
    """Return what pulls each bone of a chain to its rest pose [1/s^2].

    VRM's rest direction of a bone turns with its parent, so deflections add up along a chain, and
    each bone only carries itself. Of n bones the one at place i, from 0 at the root, has the spring
    times n (n - i): pushed evenly, the tip then gives way as far as a lone bone does, and the chain
    sways as one instead of curling up. Gravity's direction is the world's, and does not add up.
    """
    count = len(line.rows) - 1
    return [spring * count * (count - place) + hang for place in range(count)]


def _spring_joints(
    line: _Line,
    moved: dict[tuple[float, int], SpringNumbers],
    pulls: Sequence[float],
    hang: float,
    radius: float | None,
    bodies: "Sequence[Sphere | Capsule]",
) -> list[dict[str, Any]]:
    """Return a spring's joints, the tail last.

    Args:
        line: Where they are.
        moved: What moves a bone of 1 m, by what pulls it and how many joints there are.
        pulls: What pulls each bone to its rest pose [1/s^2].
        hang: A pendulum's share of that [1/s^2].
        radius: As `with_springs`.
        bodies: Colliders in the scene.
    """
    joints: list[dict[str, Any]] = []
    ways = np.diff(line.places, axis=0)
    for row, way, length, tail, pull in zip(
        line.rows, ways, line.lengths, line.places[1:], pulls, strict=False
    ):
        numbers = moved[pull, len(line.rows)]
        down = -float(way[1] / length)
        across = float(np.hypot(way[0], way[2]) / length)
        # Both in VRM's unit. Together they always pull the same along the rest pose.
        whole = numbers.pull * float(length)
        share = min(hang / pull, np.tan(SAG) / max(across, 1e-9)) if pull > 0.0 else 0.0
        fall = float(whole * share)
        wide = radius
        if wide is None:
            wide = min([THICKNESS * float(length), *(_gap(body, tail) for body in bodies)])
        joints.append(
            {
                "node": row,
                "hitRadius": max(float(wide), 0.0),
                "stiffness": max(whole - fall * down, 0.0),
                "gravityPower": fall,
                "gravityDir": [0.0, -1.0, 0.0],
                "dragForce": numbers.drag,
            }
        )
    return [*joints, {"node": line.rows[-1]}]


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
