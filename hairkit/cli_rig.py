"""``hairkit rig``: a hair mesh without bones in, a skinned one out."""

import json as plain_json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import typer

from hairkit.errors import RigError

Triple = tuple[float, float, float]
RIGGED = (".glb", ".gltf", ".vrm")
"""Endings of files whose hair may have bones."""


def rig(
    source: Annotated[
        str, typer.Argument(metavar="IN", help="A .glb, .gltf, .vrm, .obj, .ply or .stl file.")
    ],
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Where to: .glb, .gltf or .vrm.")
    ] = None,
    sectors: Annotated[
        int | None,
        typer.Option(
            help="Bone chains round the axis, by default 3; with cards, the most there may be."
        ),
    ] = None,
    segments: Annotated[int, typer.Option(help="Bones of each chain.")] = 3,
    max_influences: Annotated[
        int, typer.Option(help="Bones that may move one vertex, 1 to 4.")
    ] = 2,
    root: Annotated[
        Triple | None,
        typer.Option(
            metavar="X Y Z",
            help="Where the hair is fixed, in the mesh's own space; by default the top centre of "
            "its bounds.",
        ),
    ] = None,
    axis: Annotated[
        Triple | None,
        typer.Option(
            metavar="X Y Z",
            help="Direction in which hair grows, in the mesh's own space; by default straight down "
            "in the scene.",
        ),
    ] = None,
    mesh: Annotated[
        str | None,
        typer.Option(help="Name of the mesh; by default the only one with 'hair' in its name."),
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(help="sectors round the axis, or cards: chains along locks and tails."),
    ] = "sectors",
    replace_skin: Annotated[
        bool, typer.Option("--replace-skin", help="Rig a mesh that has a skin, too.")
    ] = False,
    vrm: Annotated[
        bool,
        typer.Option("--vrm", help="Add VRM 1.0's spring bones, which other programs sway."),
    ] = False,
    frame_rate: Annotated[
        float, typer.Option(help="Frames a second at which spring bones will run.")
    ] = 60.0,
    plan_json: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write bones and weights as JSON.")
    ] = None,
    picture: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a picture of the plan, .png.")
    ] = None,
) -> None:
    """Give a hair mesh that has no bones a skeleton and a skin."""
    from hairkit.io.files import check_output
    from hairkit.rigging import rig as rigged_of
    from hairkit.rigging.rig import MADE

    if out is None and plan_json is None and picture is None:
        raise RigError("bad option", "nothing to write: expected --out, --plan-json or --picture")
    for path, endings in ((out, MADE), (plan_json, (".json",)), (picture, (".png",))):
        if path is not None:
            check_output(path, endings)
    chosen: Any = strategy
    hair = rigged_of(
        source,
        mesh=mesh,
        root=root,
        axis=axis,
        sectors=sectors,
        segments=segments,
        max_influences=max_influences,
        strategy=chosen,
        replace_skin=replace_skin,
    )
    if vrm:
        from hairkit.sway.vrm import with_springs

        hair = with_springs(hair, frame_rate=frame_rate)
    if out is not None:
        hair.save(out)
        bones = len(hair.bone_names)
        typer.echo(
            f"wrote {out}: {hair.name}, {len(hair.vertices)} vertices, {bones} bones in "
            f"{len(hair.plan.chains)} chains"
        )
    if plan_json is not None:
        _write_json(plan_json, hair.plan.as_dict())
        typer.echo(f"wrote {plan_json}")
    if picture is not None:
        from hairkit.io.video import save_picture
        from hairkit.rigging.picture import plan_picture

        save_picture(plan_picture(hair.plan, hair.vertices, hair.faces), picture)
        typer.echo(f"wrote {picture}")
    if hair.note:
        typer.echo(f"note: {hair.note}", err=True)


def sway(
    source: str,
    motion: Any,
    out: Path,
    *,
    wind: Triple,
    backend: str | None,
    progress: Callable[[], AbstractContextManager[Callable[[str, int, int], None]]],
) -> None:
    """Let a rigged file's hair sway, for ``hairkit simulate``."""
    from hairkit.record_rig import record_rig

    with progress() as told:
        hair = record_rig(source, motion, out, wind=wind, backend=backend, progress=told)
    typer.echo(
        f"wrote {out}: {hair.name}, {len(hair.plan.chains)} chains, {len(motion) + 1} key frames"
    )
    if hair.note:
        typer.echo(f"note: {hair.note}", err=True)


def _write_json(path: str, data: dict[str, Any]) -> None:
    """Write a JSON file, complete or not at all."""
    from hairkit.io.files import written_beside

    with written_beside(Path(path)) as beside:
        beside.write_text(plain_json.dumps(data) + "\n", encoding="utf-8")
