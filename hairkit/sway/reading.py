"""Reads hair that has bones already: a file's, or a bake's bytes."""

from typing import Any

from hairkit.errors import FileError, RigError
from hairkit.io.gltf import Gltf
from hairkit.rigging.bake import EXTRAS
from hairkit.rigging.find import find_hair
from hairkit.rigging.read import BonedHair, boned, read_rig
from hairkit.rigging.rig import failures


def read_boned(source: Any, *, mesh: str | None = None) -> BonedHair:
    """Read hair that has bones.

    Args:
        source: A .glb, .gltf or .vrm file, or the bytes of a bake.
        mesh: Which mesh of a file, as in `hairkit.rig`. Of a bake it is the one that was rigged.

    Raises:
        RigError: The mesh has no skin, its bones make no chain, or it cannot be read.
    """
    if not isinstance(source, bytes):
        return read_rig(source, mesh)
    with failures(""):
        document = Gltf.parse(source, "bake")
        node = _rigged_node(document)
        if node is None:
            hair = find_hair(document, mesh)
            node = hair.node
            if not hair.joints:
                raise RigError("no skin", f"mesh {hair.name!r} has no skin; expected one")
        name = str(document.row("nodes", node).get("name", ""))
        return boned(document, node, name, "bake")


def _rigged_node(document: Gltf) -> int | None:
    """Return the last node whose skin says that it is ours, or None."""
    found = None
    skins = document.rows("skins")
    for index, node in enumerate(document.rows("nodes")):
        skin = node.get("skin")
        if isinstance(skin, int) and "mesh" in node:
            if not 0 <= skin < len(skins):
                raise FileError(f"{document.label}: nodes[{index}]: has no skin {skin}")
            extras = skins[skin].get("extras")
            if isinstance(extras, dict) and EXTRAS in extras:
                found = index
    return found
