"""What an avatar says of its own bones: where the head is, and which chains sway on it."""

from typing import Any

from hairkit.io.gltf import Gltf


def spring_lines(document: Gltf) -> tuple[int, list[list[int]]] | None:
    """Return an avatar's head and the chains of its springs below it, None if it has none.

    Args:
        document: A VRM 1.0 or 0.x file, or any other.

    Returns:
        Row of the head's node, and rows of each chain's nodes, root first, the last one its tip.

    Raises:
        FileError: What it says refers to nodes that are not there.
    """
    extensions = document.json.get("extensions", {})
    head = _head(extensions)
    if head is None:
        return None
    document.row("nodes", head)
    parents = document.parents()
    lines: list[list[int]] = []
    seen: set[int] = set()
    for line in _springs(document, extensions):
        above = parents[line[0]]
        while above >= 0 and above != head:
            above = parents[above]
        if above == head and len(line) > 1 and not seen & set(line):
            seen |= set(line)
            lines.append(line)
    return (head, lines) if lines else None


def _head(extensions: dict[str, Any]) -> int | None:
    """Return the node of the head, None where nothing says which it is."""
    bones = _part(extensions, "VRMC_vrm", "humanoid", "humanBones")
    if isinstance(bones, dict):
        node = _part(bones, "head", "node")
        return node if isinstance(node, int) else None
    for bone in _list(_part(extensions, "VRM", "humanoid", "humanBones")):
        if _part(bone, "bone") == "head":
            node = _part(bone, "node")
            return node if isinstance(node, int) else None
    return None


def _springs(document: Gltf, extensions: dict[str, Any]) -> list[list[int]]:
    """Return the nodes of each spring, root first."""
    lines: list[list[int]] = []
    for spring in _list(_part(extensions, "VRMC_springBone", "springs")):
        nodes = [_part(joint, "node") for joint in _list(_part(spring, "joints"))]
        line = [_row(document, node) for node in nodes if isinstance(node, int)]
        if line:
            lines.append(line)
    for group in _list(_part(extensions, "VRM", "secondaryAnimation", "boneGroups")):
        for root in _list(_part(group, "bones")):
            if isinstance(root, int):
                lines.append(_longest(document, _row(document, root)))
    return lines


def _row(document: Gltf, node: int) -> int:
    """Return a node's row, which must be one."""
    document.row("nodes", node)
    return node


def _longest(document: Gltf, root: int) -> list[int]:
    """Return the longest line of nodes from one on down."""
    line, reach = [root], [(root, [root])]
    while reach:
        node, way = reach.pop()
        if len(way) > len(line):
            line = way
        reach += [
            (child, [*way, child]) for child in document.children(document.row("nodes", node))
        ]
    return line


def _list(value: Any) -> list[Any]:
    """Return a list, an empty one for anything else."""
    return value if isinstance(value, list) else []


def _part(holder: Any, *keys: str) -> Any:
    """Return what is under keys, None where something is missing or is no object."""
    for key in keys:
        holder = holder.get(key) if isinstance(holder, dict) else None
    return holder
