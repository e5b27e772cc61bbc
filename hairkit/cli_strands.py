"""``hairkit convert`` and ``hairkit info``: strand files of every format."""

from pathlib import Path
from typing import Annotated, Any

import typer

FileUnits = Annotated[
    str | None, typer.Option(help="Of the file that is read: m, dm, cm, mm or in.")
]
FileUp = Annotated[str | None, typer.Option(help="Its upward axis: y, z, -x ...")]
Swizzle = Annotated[
    str | None,
    typer.Option(
        metavar="X,Y,Z", help="In place of --up: which axis of it each of X, Y, Z is, as x,z,-y."
    ),
]


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The file to read.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    units: FileUnits = None,
    up: FileUp = None,
    swizzle: Swizzle = None,
    out_units: Annotated[
        str | None, typer.Option(help="Of the file that is written; by default m.")
    ] = None,
    out_up: Annotated[str | None, typer.Option(help="Its upward axis; by default y.")] = None,
    frame: Annotated[
        int | None, typer.Option(help="Write this frame alone; -1 is the last one.")
    ] = None,
) -> None:
    """Write a file of strands in another format, and say what has no place in it."""
    from hairkit.io.files import check_output
    from hairkit.io.strands import WRITTEN, load_strands, save_strands

    check_output(target, WRITTEN)
    strands = load_strands(source, units=units, up=up, swizzle=swizzle)
    save_strands(strands, target, frame=frame, units=out_units, up=out_up)
    frames = 1 if frame is not None else len(strands.times)
    typer.echo(
        f"wrote {target}: {len(strands.counts):,} strands, {strands.points.shape[1]:,} points, "
        f"{frames} frame{'' if frames == 1 else 's'}"
    )


def info(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of strands.")],
    units: FileUnits = None,
    up: FileUp = None,
    swizzle: Swizzle = None,
) -> None:
    """Say what a file of strands holds: counts, lengths, size, frames, widths and so on."""
    from hairkit.io.strands import load_strands

    strands = load_strands(file, units=units, up=up, swizzle=swizzle)
    for name, value in _facts(strands):
        typer.echo(f"{name:<11} {value}")


def _facts(strands: Any) -> list[tuple[str, str]]:
    """Return what to say of strands, line by line."""
    import numpy as np

    from hairkit.io.dirty import size_hint
    from hairkit.io.strand_set import FIELDS

    facts = [
        ("strands", f"{len(strands.counts):,}"),
        ("points", f"{strands.points.shape[1]:,}"),
    ]
    if len(strands.counts):
        counts, first = strands.counts, strands.points[0]
        low, middle, high = counts.min(), np.median(counts), counts.max()
        facts.append(("of each", f"{low} to {high}, median {middle:g}"))
        step = np.append(np.linalg.norm(np.diff(first, axis=0), axis=1).astype(np.float64), 0.0)
        step[np.cumsum(counts) - 1] = 0.0
        lengths = np.add.reduceat(step, strands.starts)
        low, middle, high = lengths.min(), np.median(lengths), lengths.max()
        facts.append(("length", f"{low:.4g} to {high:.4g} m, median {middle:.4g} m"))
        for axis, name in enumerate("xyz"):
            # No negative zero.
            low, high = first[:, axis].min() + 0.0, first[:, axis].max() + 0.0
            facts.append((name, f"{low:.4g} to {high:.4g} m"))
    times = strands.times
    span = f", {times[0]:g} to {times[-1]:g} s" if len(times) > 1 else ""
    facts.append(("frames", f"{len(times)}{span}"))
    always = ("points", "counts", "times")
    named = [name for name in FIELDS if name not in always and getattr(strands, name) is not None]
    named += ["groom"] if strands.groom is not None else []
    facts.append(("beside", ", ".join(named) or "nothing but points"))
    hint = size_hint(strands)
    facts.append(("unit", hint or "m, as far as the lengths tell"))
    return facts
