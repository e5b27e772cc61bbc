"""``hairkit simulate``: a style or strands in, moving hair out."""

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from hairkit.cli_options import (
    ERR,
    BackendOption,
    FrontOption,
    HeadOption,
    StrandUnitsOption,
    StrandUpOption,
    UnitsOption,
    UpOption,
    checked_count,
    checked_number,
    load_groom,
    load_head,
    progress_bar,
)
from hairkit.cli_rig import RIGGED, sway
from hairkit.errors import HairkitError

# Spelled out, so that --help loads nothing; a test holds it to hairkit.motions.
MOTIONS = "jump, nod, shake, spin, still, turn, turn_and_nod, walk"


def simulate(
    style: Annotated[
        str,
        typer.Argument(
            metavar="STYLE|GROOM|RIGGED",
            help="A style's name, a .toml file, a file of strands (.glb: of lines), or rigged "
            "hair: .glb, .gltf or .vrm.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="The file to write: .mp4, .png, .npz or other strands; .glb of rigged hair.",
        ),
    ],
    head: HeadOption = None,
    units: UnitsOption = "m",
    up: UpOption = "y",
    front: FrontOption = None,
    motion: Annotated[
        str, typer.Option(help=f"{MOTIONS}, or a file of poses (.npz .npy .json .csv).")
    ] = "turn",
    seconds: Annotated[float, typer.Option(help="How long [s].")] = 5.0,
    guides: Annotated[
        int | None,
        typer.Option(help="Simulated strands: 160 of a style; of a file as many as it needs."),
    ] = None,
    segments: Annotated[
        int | None, typer.Option(help="Of a long guide; by default the style's.")
    ] = None,
    look: Annotated[
        str | None,
        typer.Option("--style", help="Of strands in a file: a style's name or file, or natural."),
    ] = None,
    strand_units: StrandUnitsOption = None,
    strand_up: StrandUpOption = None,
    what: Annotated[
        str, typer.Option(help="Which strands to write: guides, or hairs as they are drawn.")
    ] = "guides",
    wind: Annotated[
        tuple[float, float, float], typer.Option(metavar="X Y Z", help="Wind [m/s].")
    ] = (0.0, 0.0, 0.0),
    backend: BackendOption = None,
    seed: Annotated[int, typer.Option(help="Of everything random in the groom.")] = 0,
    rate: Annotated[
        float | None, typer.Option(help="Frames a second; by default 30 for .mp4, else 60.")
    ] = None,
    width: Annotated[int, typer.Option(help="Of the picture [pixels].")] = 960,
    height: Annotated[int, typer.Option(help="Of the picture [pixels].")] = 720,
    sag_free: Annotated[
        bool, typer.Option("--sag-free", help="Start with hair that its own weight does not move.")
    ] = False,
) -> None:
    """Simulate a style on a moving head, to a video, a picture or strands; or rigged hair."""
    from hairkit import motions
    from hairkit.io.files import check_output
    from hairkit.io.strands import WRITTEN

    # Everything that can be wrong is found before Taichi loads and before anything is grown.
    rigged = _is_rigged(style)
    check_output(out, (".glb", ".gltf") if rigged else (".mp4", ".png", *WRITTEN))
    checked_number("--seconds", seconds, 1e-3, 3600.0, "s")
    frames = rate if rate is not None else (30.0 if out.suffix.lower() == ".mp4" else 60.0)
    checked_number("--rate", frames, 1.0, 1000.0, "frames a second")
    if guides is not None:
        checked_count("--guides", guides, 1, 1_000_000)
    if segments is not None:
        checked_count("--segments", segments, 2, 254)
    if what not in ("guides", "hairs"):
        raise HairkitError(f"--what: {what!r}, expected guides or hairs")
    checked_count("--seed", seed, 0, 2**31 - 1)
    checked_count("--width", width, 16, 8192)
    checked_count("--height", height, 16, 8192)
    for axis, part in zip("XYZ", wind, strict=True):
        checked_number(f"--wind {axis}", part, -100.0, 100.0, "m/s")
    if rigged and sag_free:
        raise HairkitError("--sag-free: expected a style or a groom, not rigged hair")
    moved = motions.motion(motion, seconds=seconds, rate=frames)
    if rigged:
        sway(style, moved, out, wind=wind, backend=backend, progress=progress_bar)
        return
    worn = None if head is None else load_head(head, units, up, front)
    groom = load_groom(
        style,
        worn,
        guides=guides,
        segments=segments,
        look=look,
        seed=seed,
        axes={"units": strand_units, "up": strand_up},
    )
    if sag_free:
        groom = _settled(groom, moved.start)

    from hairkit.record import record

    with progress_bar() as progress:
        worst = record(
            groom,
            moved,
            out,
            what=what,
            backend=backend,
            wind=wind,
            width=width,
            height=height,
            progress=progress,
        )
    typer.echo(
        f"wrote {out}: {len(groom.counts)} guides, {len(moved) + 1} frames, "
        f"stretch at most {100 * worst.max_stretch:.2f} %, "
        f"at most {1e3 * worst.max_penetration:.2f} mm deep"
    )
    if worst.resets:
        ERR.print(f"hair went back to its rest pose {worst.resets} times: its state was bad")


def _is_rigged(file: str) -> bool:
    """Return whether a file is hair with bones; a .glb may be either that or strands."""
    ending = Path(file).suffix.lower()
    if ending != ".glb":
        return ending in RIGGED
    from hairkit.io.gltf_lines import holds_strands

    return not holds_strands(file)


def _settled(groom: Any, pose: Any) -> Any:
    """Return the groom that stays as it is under gravity, after saying what that took."""
    from hairkit.sim.sag import sag_free

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        groom = sag_free(groom, pose=pose)
    for warning in told:
        ERR.print(str(warning.message))
    if groom.stiffening is not None:
        stiffer = groom.stiffening[groom.starts + groom.laid - 1]
        if (stiffer > 1.0).any():
            typer.echo(
                f"sag-free: {(stiffer > 1.0).sum()} of {len(stiffer)} guides made stiffer, "
                f"at most {stiffer.max():.1f} times"
            )
    return groom
