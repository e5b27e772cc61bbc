"""From a hair mesh without bones to a file in which it has them: find, plan, bake, read back."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hairkit.errors import FileError, RigError
from hairkit.io.files import check_input, check_output, written_beside
from hairkit.io.gltf import Gltf
from hairkit.rigging import gates
from hairkit.rigging.bake import HairMesh, bake, skinned_positions
from hairkit.rigging.cards import plan_cards
from hairkit.rigging.find import find_hair
from hairkit.rigging.plan import Plan, Points, check_axis, check_vertices, plan

Strategy = Literal["sectors", "cards"]
STRATEGIES = ("sectors", "cards")
MADE = (".glb", ".gltf", ".vrm")
"""Endings of what `RiggedHair.save` writes."""
READ = (*MADE, ".obj", ".ply", ".stl")
"""Endings of what `rig` reads."""

CLOSE = 1e-6
"""How far a vertex may be from where it was, as a share of the mesh's size."""

_log = logging.getLogger("hairkit.rigging")
# Without a handler of the user's, Python would print what the error says anyway.
_log.addHandler(logging.NullHandler())
_told: set[str] = set()


@dataclass(frozen=True, eq=False, kw_only=True)
class RiggedHair:
    """A hair mesh that has a skeleton, in the document that it came in."""

    plan: Plan
    """The skeleton, in the mesh's own space and units."""

    vertices: Points = field(repr=False)
    """Positions in the mesh's own space, shape (v, 3)."""

    faces: NDArray[np.int64] = field(repr=False)
    """Triangles, shape (f, 3)."""

    name: str
    """Name of the mesh."""

    source: str
    """File that it came from; empty for a mesh in memory."""

    document: Gltf = field(repr=False)
    """All that the file held, with the skin."""

    node: int
    """Row of the mesh's node in the document."""

    into_scene: Points = field(repr=False)
    """From the mesh's space into the scene, shape (4, 4)."""

    note: str = ""
    """What the user should know, such as what the file's licence says of passing it on."""

    @property
    def bone_names(self) -> list[str]:
        """Names of the joints, ``HairRoot`` first."""
        return self.plan.names

    def to_bytes(self, ending: str) -> bytes:
        """Return the file's bytes.

        Args:
            ending: ``.glb``, ``.vrm`` (the same), or ``.gltf``.
        """
        return self.document.to_gltf() if ending == ".gltf" else self.document.to_glb()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a .glb, .gltf or .vrm file, complete or not at all, and read it back.

        Args:
            path: Where to; a .gltf holds its buffers itself.

        Returns:
            The path.

        Raises:
            RigError: What was written has no skin, and is deleted; or a file is there that may not
                be written to.
            FileError: It cannot be written.
        """
        target = check_output(path, MADE)
        with failures(str(target)), written_beside(target) as beside:
            if target.exists() and not gates.writable(target):
                raise RigError("not permitted", gates.READ_ONLY)
            beside.write_bytes(self.to_bytes(target.suffix.lower()))
            read_back(beside.read_bytes(), self, str(target))
        return target


def rig(
    source: Any,
    *,
    mesh: str | None = None,
    root: ArrayLike | None = None,
    axis: ArrayLike | None = None,
    sectors: int | None = None,
    segments: int = 3,
    max_influences: int = 2,
    reference: ArrayLike | None = None,
    strategy: Strategy = "sectors",
    replace_skin: bool = False,
) -> RiggedHair:
    """Give a hair mesh a skeleton.

    Args:
        source: A .glb, .gltf, .vrm, .obj, .ply or .stl file; a trimesh mesh or scene; or vertices
            (v, 3) and faces (f, 3).
        mesh: Which mesh of a file of several, by the name of its node or its own; None takes the
            only one, or the only one with "hair" in the name of its node, itself or its material.
        root: Where the hair is fixed to the scalp, in the mesh's own space; None is the top centre
            of the bounds.
        axis: Direction in which hair grows, in the mesh's own space; None is straight down in the
            scene.
        sectors: As `plan`; None is 3. With ``cards``, the most chains that there may be; None is as
            many as there are locks, up to a dozen.
        segments: As `plan`.
        max_influences: As `plan`.
        reference: As `plan`.
        strategy: ``sectors``, as `plan`; or ``cards``, whose chains follow locks and tails.
        replace_skin: Rig a mesh that has a skin, too; what carried most of it carries the new one.

    Raises:
        RigError: It cannot be rigged, or must not be; see there. Nothing was changed.
    """
    where = str(source) if isinstance(source, str | os.PathLike) else ""
    with failures(where):
        if strategy not in STRATEGIES:
            raise RigError("bad option", f"strategy: expected sectors or cards, got {strategy!r}")
        document, hair = document_of(source, mesh)
        if hair.joints and not replace_skin:
            raise RigError(
                "already skinned",
                f"mesh {hair.name!r} has a skin of {hair.joints} joints already and is left as it "
                "is; expected one without, or replace_skin",
            )
        if not gates.supported():
            raise RigError("unsupported", "Unsupported")
        permission = gates.licence(document)
        if not permission:
            raise RigError("not permitted", permission.reason)
        made = plan_hair(
            document,
            hair,
            root=root,
            axis=axis,
            sectors=sectors,
            segments=segments,
            max_influences=max_influences,
            reference=reference,
            strategy=strategy,
        )
        rigged = baked(document, hair, made, source=where, note=permission.reason)
        read_back(rigged.to_bytes(".glb"), rigged, where)
        return rigged


def document_of(source: Any, mesh: str | None) -> tuple[Gltf, HairMesh]:
    """Return a mesh as a document, and where in it the hair is.

    Raises:
        RigError: There is no such mesh, or it has no vertices.
        FileError: It cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        path = check_input(source, "a hair mesh such as .glb, .obj or .ply")
        ending = path.suffix.lower()
        if ending not in READ:
            raise FileError(f"{path}: ending {ending!r}, expected one of {', '.join(READ)}")
        document = Gltf.read(path) if ending in MADE else _converted(_loaded(path), str(path))
    elif hasattr(source, "export"):
        document = _converted(source, "mesh")
    else:
        document = _converted(_mesh_of(source), "mesh")
    hair = find_hair(document, mesh)
    check_vertices(hair.vertices)
    return document, hair


def _loaded(path: Path) -> Any:
    """Return a mesh file as trimesh reads it."""
    import trimesh  # slow to import, and glTF does without

    try:
        return trimesh.load(str(path), process=False)
    except Exception as error:  # each of trimesh's readers raises its own kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FileError(f"{path}: not a mesh that can be read ({reason})") from error


def _mesh_of(source: Any) -> Any:
    """Return vertices and faces as a trimesh mesh."""
    import trimesh

    if not isinstance(source, tuple | list) or len(source) != 2:
        raise RigError(
            "bad option",
            f"source: expected a file, a trimesh mesh or vertices and faces, got {type(source)}",
        )
    vertices = check_vertices(source[0])
    faces = np.asarray(source[1], dtype=np.int64)
    if faces.ndim != 2 or faces.shape[1] != 3 or len(faces) == 0:
        raise RigError("no vertices", f"faces: expected shape (f, 3), got {faces.shape}")
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise RigError(
            "unreadable", f"faces: expected rows below {len(vertices)}, got {int(faces.max())}"
        )
    return trimesh.Trimesh(vertices=vertices, faces=faces, process=False)


def _converted(mesh: Any, label: str) -> Gltf:
    """Return a trimesh mesh or scene as a document."""
    parts = mesh.geometry.values() if hasattr(mesh, "geometry") else [mesh]
    corners = [np.asarray(getattr(part, "vertices", ())).reshape(-1, 3) for part in parts]
    # Before it is converted: a number that is none cannot be written.
    check_vertices(np.concatenate([*corners, np.zeros((0, 3))]))
    try:
        raw = mesh.export(file_type="glb")
    except Exception as error:  # as many kinds as trimesh has writers
        raise FileError(f"{label}: cannot be converted to glTF ({error})") from error
    return Gltf.parse(bytes(raw), label)


def plan_hair(
    document: Gltf,
    hair: HairMesh,
    *,
    root: ArrayLike | None = None,
    axis: ArrayLike | None = None,
    strategy: Strategy = "sectors",
    sectors: int | None = None,
    segments: int = 3,
    max_influences: int = 2,
    reference: ArrayLike | None = None,
) -> Plan:
    """Plan a skeleton for a document's mesh; the arguments are `rig`'s."""
    along = check_axis(_down(hair.into_scene(document)) if axis is None else axis)
    anchor = top_centre(hair.vertices, along) if root is None else root
    if strategy == "cards":
        return plan_cards(
            hair.vertices,
            hair.faces,
            root=anchor,
            axis=along,
            chains=sectors,
            segments=segments,
            max_influences=max_influences,
        )
    return plan(
        hair.vertices,
        root=anchor,
        axis=along,
        sectors=3 if sectors is None else sectors,
        segments=segments,
        max_influences=max_influences,
        reference=reference,
    )


def _down(into_scene: Points) -> Points:
    """Return what is straight down in the scene, seen from the mesh."""
    linear = into_scene[:3, :3]
    if abs(np.linalg.det(linear)) < 1e-300:
        return np.array([0.0, -1.0, 0.0])
    return np.asarray(np.linalg.solve(linear, [0.0, -1.0, 0.0]), dtype=np.float64)


def top_centre(vertices: Points, along: Points) -> Points:
    """Return the middle of the bounds, at the end where an axis begins.

    Args:
        vertices: Positions, shape (v, 3).
        along: Unit direction of the axis.
    """
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    middle = 0.5 * (low + high)
    return middle + along * (((vertices - middle) @ along).min())


def baked(
    document: Gltf, hair: HairMesh, made: Plan, *, source: str = "", note: str = ""
) -> RiggedHair:
    """Return a mesh with a plan's skin."""
    out, node = bake(document, hair, made)
    return RiggedHair(
        plan=made,
        vertices=hair.vertices,
        faces=hair.faces,
        name=hair.name,
        source=source,
        document=out,
        node=node,
        into_scene=hair.into_scene(document),
        note=note,
    )


def read_back(raw: bytes, rigged: RiggedHair, label: str) -> None:
    """Make sure that a file's bytes hold the skin that went into them.

    Raises:
        RigError: They do not.
    """
    try:
        document = Gltf.parse(raw, label)
        place, names = skinned_positions(document, rigged.node)
    except (FileError, LookupError, TypeError) as error:
        raise RigError("lost skin", f"what was written cannot be read ({error})") from error
    if names != rigged.bone_names:
        raise RigError("lost skin", "what was written has lost its joints")
    matrix = rigged.into_scene
    wanted = rigged.vertices @ matrix[:3, :3].T + matrix[:3, 3]
    size = float(np.ptp(wanted, axis=0).max()) + 1e-7 * float(np.abs(wanted).max())
    if place.shape != wanted.shape or np.abs(place - wanted).max() > CLOSE * size:
        raise RigError("lost skin", "what was written does not lie where the mesh does")


@contextmanager
def failures(where: str) -> Iterator[None]:
    """Turn whatever stops a rig into a `RigError` that names the file; log each kind once."""
    try:
        yield
    except RigError as error:
        told = error if error.where or not where else RigError(error.kind, error.reason, where)
        _tell(told)
        raise told from error.__cause__
    except FileError as error:
        told = RigError("unreadable", str(error))
        _tell(told)
        raise told from error
    except MemoryError as error:
        told = RigError("out of memory", "not enough memory for this mesh", where)
        _tell(told)
        raise told from error


def _tell(error: RigError) -> None:
    """Log a kind of failure the first time that it is met."""
    if error.kind not in _told:
        _told.add(error.kind)
        _log.warning("rig failed (%s): %s", error.kind, error)
