"""Puts a sway that was simulated into a glTF file, as an animation that any viewer plays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hairkit.io.gltf import Gltf
from hairkit.rigging.bake import transform_keys
from hairkit.rigging.plan import Points
from hairkit.rigging.read import BonedHair

MOVER = "HeadMotion"
"""Name of the node that moves what carries the hair."""


def animated(
    hair: BonedHair,
    times: Points,
    joints: NDArray[np.int64],
    turns: Points,
    poses: Points | None = None,
    *,
    name: str = "sway",
) -> Gltf:
    """Return a copy of a document with an animation of its hair.

    Args:
        hair: The hair and its document.
        times: Seconds from the start, rising, shape (frames,).
        joints: Rows of the hair's bones, shape (n,).
        turns: Their swing in their parents, as `Chains.joint_turns` gives it, quaternions, shape
            (frames, n, 4).
        poses: How an avatar's head moves in the scene, or else all that the carrier hangs on, from
            where it is in the file, shape (frames, 4, 4); None leaves it.
        name: Name of the animation.
    """
    out = hair.document.copy()
    clock = out.add_accessor(
        np.asarray(times, np.float32).reshape(-1, 1),
        "SCALAR",
        min=[float(np.float32(times[0]))],
        max=[float(np.float32(times[-1]))],
    )
    animation: dict[str, Any] = {"name": name, "channels": [], "samplers": []}

    def add(node: int, path: str, values: NDArray[Any], kind: str) -> None:
        sampler = {"input": clock, "output": out.add_accessor(values.astype(np.float32), kind)}
        animation["samplers"].append(sampler)
        target = {"node": node, "path": path}
        animation["channels"].append({"sampler": len(animation["samplers"]) - 1, "target": target})

    for number, quaternions in enumerate(np.moveaxis(hair.local_turns(joints, turns), 1, 0)):
        node = hair.nodes[int(joints[number])]
        _untie(out, node)
        add(node, "rotation", _continuous(quaternions), "VEC4")
    if poses is not None:
        matrices = np.asarray(poses, dtype=np.float64)
        mover = hair.nodes[0]
        if hair.head:
            # The head alone moves, on the neck that it hangs on.
            _untie(out, mover)
            above = out.world_matrices([mover])[0] @ np.linalg.inv(out.local_matrix(mover))
            matrices = np.linalg.solve(above, matrices @ hair.into_scene)
        else:
            mover = _insert_above(out, _top_of(out, mover))
        keys = [transform_keys(matrix) for matrix in matrices]
        turned = np.array([key.get("rotation", (0.0, 0.0, 0.0, 1.0)) for key in keys])
        add(mover, "rotation", _continuous(turned), "VEC4")
        add(mover, "translation", matrices[:, :3, 3], "VEC3")
    out.add("animations", animation)
    return out


def _continuous(quaternions: Points) -> Points:
    """Return unit quaternions of which none turns the long way round from the one before."""
    flips = np.sum(quaternions[1:] * quaternions[:-1], axis=1) < 0.0
    sign = np.where(np.concatenate([[0], np.cumsum(flips)]) % 2 == 1, -1.0, 1.0)
    out = quaternions * sign[:, None]
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def _untie(out: Gltf, node: int) -> None:
    """Give a node that has a matrix what an animation can turn."""
    row = out.json["nodes"][node]
    if "matrix" in row:
        keys = transform_keys(out.local_matrix(node))
        if "matrix" not in keys:
            del row["matrix"]
            row |= keys


def _top_of(out: Gltf, node: int) -> int:
    """Return the node at the top of the scene above a node."""
    parents = out.parents()
    while parents[node] >= 0:
        node = parents[node]
    return node


def _insert_above(out: Gltf, node: int) -> int:
    """Put a new node above one at the top of the scene and return it."""
    mover = out.add("nodes", {"name": MOVER, "children": [node]})
    for scene in out.rows("scenes"):
        scene["nodes"] = [mover if at == node else at for at in scene.get("nodes", [])]
    return mover
