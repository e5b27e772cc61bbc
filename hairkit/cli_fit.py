"""``hairkit fit``: strands in, the style that makes them out."""

from pathlib import Path
from typing import Annotated

import typer

from hairkit.cli_options import (
    BackendOption,
    FrontOption,
    HeadOption,
    StrandUnitsOption,
    StrandUpOption,
    UnitsOption,
    UpOption,
    checked_count,
    load_head,
    progress_bar,
)


def fit_style(
    target: Annotated[str, typer.Argument(help="Strands to aim at, of any format.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The style file to write: .toml.")],
    style: Annotated[str, typer.Option(help="The style to begin with.")] = "straight",
    params: Annotated[
        str, typer.Option(help="Keys of the style to fit, with commas between.")
    ] = "hold,droop,shrinkage",
    picture: Annotated[
        Path | None, typer.Option(help="Picture of target, start and fit: .png.")
    ] = None,
    head: HeadOption = None,
    units: UnitsOption = "m",
    up: UpOption = "y",
    front: FrontOption = None,
    strand_units: StrandUnitsOption = None,
    strand_up: StrandUpOption = None,
    backend: BackendOption = None,
    seed: Annotated[int, typer.Option(help="Of the places that further starts begin at.")] = 0,
) -> None:
    """Find the style whose hair takes the shape of given strands."""
    from hairkit.io.files import check_output
    from hairkit.style import load_style

    check_output(out, (".toml",))
    if picture is not None:
        check_output(picture, (".png",))
    checked_count("--seed", seed, 0, 2**31 - 1)
    chosen = load_style(style)
    worn = load_head(head, units, up, front)

    from hairkit.fit_file import fit_file
    from hairkit.fitting.strand_model import parameter_range

    names = tuple(name.strip() for name in params.split(",") if name.strip())
    for name in names:
        parameter_range(name)
    found = fit_file(
        target,
        chosen,
        worn,
        names,
        own_head=head is not None,
        axes={"units": strand_units, "up": strand_up},
        backend=backend,
        seed=seed,
        picture=picture,
        progress=progress_bar,
    )
    found.style.replace(name=out.stem, description=f"fitted to {Path(target).name}").save(out)
    typer.echo(found.statement())
    typer.echo(f"wrote {out}")
