"""May and can a mesh be rigged here? What a file's owner allows, and a real bake to try."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hairkit.errors import HairkitError
from hairkit.io.gltf import Gltf

READ_ONLY = "is read-only; expected permission to write it"
_supported: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Permission:
    """Whether a file may be edited; as true or false as its answer."""

    allowed: bool
    """The answer."""

    reason: str
    """The rule that forbids it, or what else its licence says; empty where there is neither."""

    def __bool__(self) -> bool:
        return self.allowed


def supported() -> bool:
    """Return whether rigging works here, by rigging a scratch mesh and reading it back.

    The answer is kept. Want of memory is not an answer: it gives False, and the next call tries
    again. Nothing calls this until something is rigged.
    """
    global _supported
    if _supported is None:
        try:
            try_bake()
            _supported = True
        except MemoryError:
            return False
        except (HairkitError, ArithmeticError, LookupError, TypeError, ValueError, OSError):
            _supported = False
    return _supported


def forget() -> None:
    """Let the next `supported` try again."""
    global _supported
    _supported = None


def try_bake() -> None:
    """Rig a scratch mesh of one triangle with one chain bone, in memory, and read it back.

    Raises:
        RigError: What came back has no skin.
    """
    from hairkit.rigging.rig import baked, document_of, plan_hair, read_back

    corners = np.array([[0.0, 1.0, 0.0], [0.1, 0.0, 0.0], [-0.1, 0.0, 0.1]])
    document, hair = document_of((corners, np.array([[0, 1, 2]])), None)
    made = plan_hair(document, hair, sectors=1, segments=1)
    rigged = baked(document, hair, made)
    read_back(rigged.to_bytes(".glb"), rigged, "scratch mesh")


def may_edit(path: str | os.PathLike[str]) -> Permission:
    """Return whether a file may be edited, by its permissions and by what an avatar's licence says.

    A file that nobody may write to is not edited; `rig` reads it all the same, to write another
    one. VRM 1.0 forbids it where ``modification`` is
    ``prohibited``, which it is when nothing is said; VRM 0.x where the licence allows no
    derivatives. Whether the result may be passed on is told as a reason beside the answer.

    Args:
        path: A .glb, .gltf, .vrm, or any other mesh file.

    Raises:
        FileError: It cannot be read.
    """
    source = Path(path)
    if not source.is_file() or not os.access(source, os.R_OK):
        return Permission(allowed=False, reason="cannot be read; expected a file and permission")
    if not writable(source):
        return Permission(allowed=False, reason=READ_ONLY)
    if source.suffix.lower() not in (".glb", ".gltf", ".vrm"):
        return Permission(allowed=True, reason="")
    return licence(Gltf.read(source))


def writable(path: Path) -> bool:
    """Return whether somebody may write to a file."""
    # Permission bits and not os.access: for root everything may be written.
    return bool(path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))


def licence(document: Gltf) -> Permission:
    """Return whether an avatar's licence lets it be edited; what is no avatar may be."""
    extensions = document.json.get("extensions", {})
    if not isinstance(extensions, dict):
        return Permission(allowed=True, reason="")
    if "VRMC_vrm" in extensions:
        meta = _meta(extensions["VRMC_vrm"])
        if str(meta.get("modification", "prohibited")) == "prohibited":
            return Permission(
                allowed=False, reason="its VRM licence forbids it (modification: prohibited)"
            )
        if meta.get("allowRedistribution") is not True:
            return Permission(
                allowed=True,
                reason="its VRM licence does not let it be passed on (allowRedistribution)",
            )
    elif "VRM" in extensions:
        name = str(_meta(extensions["VRM"]).get("licenseName", ""))
        if "ND" in name.upper().split("_"):
            return Permission(
                allowed=False,
                reason=f"its VRM licence allows no derivatives (licenseName: {name})",
            )
        if name == "Redistribution_Prohibited":
            return Permission(
                allowed=True, reason=f"its VRM licence does not let it be passed on ({name})"
            )
    return Permission(allowed=True, reason="")


def _meta(avatar: Any) -> dict[str, Any]:
    """Return what an avatar says about itself."""
    meta = avatar.get("meta") if isinstance(avatar, dict) else None
    return meta if isinstance(meta, dict) else {}
