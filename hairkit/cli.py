"""The command line.

Bad input gives one line on stderr and exit code 2; `--debug` shows where it arose.
"""

import math
import re
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from hairkit.cli_fit import fit_style
from hairkit.cli_options import (
    ERR,
    STOPPED,
    BackendOption,
    FrontOption,
    HeadOption,
    UnitsOption,
    UpOption,
    checked_count,
    load_head,
    progress_bar,
)
from hairkit.cli_rig import RIGGED, rig, sway
from hairkit.errors import FileError, HairkitError

# Wide enough for every table: a narrow terminal may wrap a line, but no figure is cut off.
OUT = Console(highlight=False, width=max(Console().width, 132))

app = typer.Typer(
    name="hairkit",
    help="Simulate, draw, fit and rig strands of hair.",
    add_completion=False,
    # Units in square brackets are not markup.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
cache_app = typer.Typer(help="Files that hairkit keeps to start faster.")
app.add_typer(cache_app, name="cache")
app.command()(rig)
app.command("fit")(fit_style)

# Spelled out, so that --help loads nothing; a test holds it to hairkit.motions.
MOTIONS = "jump, nod, shake, spin, still, turn, turn_and_nod, walk"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run and exit: 0 on success, 2 on bad input, 130 on Ctrl-C, 1 on a bug of ours."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code."""
    words = list(arguments)
    # Wherever it stands: people put it at the end of the line that just failed.
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"] or ["--help"]
    try:
        with interruptible():
            code = app(words, prog_name="hairkit", standalone_mode=False)
        if code == 130:
            # How typer hands on an interrupt.
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except (HairkitError, typer.TyperException) as error:
        if debug:
            raise
        message = error.format_message() if isinstance(error, typer.TyperException) else str(error)
        _complain(message)
        return 2
    except KeyboardInterrupt:
        _complain("interrupted; nothing was left half-written")
        return 130
    except BrokenPipeError:
        # The reader of our output went away, such as `head`.
        sys.stderr.close()
        return 1
    except Exception as error:
        if debug:
            raise
        _complain(f"{type(error).__name__}: {error} (a bug in hairkit; --debug shows where)")
        return 1


def _complain(message: str) -> None:
    line = re.sub(r"\s*\n\s*", " ", message.strip())
    sys.stderr.write(f"hairkit: {line}\n")


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM unwind as Ctrl-C does, so that half-written files go, and lose neither."""

    def stop(*_: object) -> None:
        STOPPED.set()
        raise KeyboardInterrupt

    try:
        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:
        # Not the main thread: whoever called us there keeps its own handlers.
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        STOPPED.clear()


def _number(option: str, value: float, low: float, high: float, unit: str = "") -> float:
    """Return an option's value, or say what it may be."""
    if not math.isfinite(value) or not low <= value <= high:
        raise HairkitError(
            f"{option}: {value:g}, expected a number from {low:g} to {high:g}{unit and ' ' + unit}"
        )
    return value


def _print_version(wanted: bool) -> None:
    if wanted:
        from hairkit.bench import versions

        typer.echo(versions())
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="Print versions."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show a traceback where an error arises.")
    ] = False,
) -> None:
    """Take the options that come before any command."""


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for demo.png and demo.mp4, or for what a window records.")
    ] = Path("."),
    window: Annotated[
        bool, typer.Option("--window", help="Open a window instead, as 'hairkit view' does.")
    ] = False,
    backend: BackendOption = None,
) -> None:
    """Make a picture and a video: a real head, several styles, a turn and a gust."""
    from hairkit.io.files import check_folder

    check_folder(out, make=True)
    if window:
        _view("wavy", load_head(None, "m", "y", None), backend=backend, folder=out, lively=True)
        return
    from hairkit.demo import make_demo

    with progress_bar() as progress:
        for made in make_demo(out, backend=backend, progress=progress):
            progress_line = f"wrote {made}"
            ERR.log(progress_line) if ERR.is_terminal else typer.echo(progress_line)


@app.command()
def simulate(
    style: Annotated[
        str,
        typer.Argument(
            metavar="STYLE|GROOM|RIGGED",
            help="A style's name, a .toml file, an .npz, or rigged hair: .glb, .gltf or .vrm.",
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="The file to write: .mp4, .png or .npz; .glb of rigged hair.")
    ],
    head: HeadOption = None,
    units: UnitsOption = "m",
    up: UpOption = "y",
    front: FrontOption = None,
    motion: Annotated[
        str, typer.Option(help=f"{MOTIONS}, or a file of poses (.npz .npy .json .csv).")
    ] = "turn",
    seconds: Annotated[float, typer.Option(help="How long [s].")] = 5.0,
    guides: Annotated[int, typer.Option(help="Simulated strands.")] = 160,
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

    # Everything that can be wrong is found before Taichi loads and before anything is grown.
    rigged = Path(style).suffix.lower() in RIGGED
    check_output(out, (".glb", ".gltf") if rigged else (".mp4", ".png", ".npz"))
    _number("--seconds", seconds, 1e-3, 3600.0, "s")
    frames = rate if rate is not None else (30.0 if out.suffix.lower() == ".mp4" else 60.0)
    _number("--rate", frames, 1.0, 1000.0, "frames a second")
    checked_count("--guides", guides, 1, 1_000_000)
    checked_count("--seed", seed, 0, 2**31 - 1)
    checked_count("--width", width, 16, 8192)
    checked_count("--height", height, 16, 8192)
    for axis, part in zip("XYZ", wind, strict=True):
        _number(f"--wind {axis}", part, -100.0, 100.0, "m/s")
    if rigged and sag_free:
        raise HairkitError("--sag-free: expected a style or a groom, not rigged hair")
    moved = motions.motion(motion, seconds=seconds, rate=frames)
    if rigged:
        sway(style, moved, out, wind=wind, backend=backend, progress=progress_bar)
        return
    groom = _groom(style, head=head, units=units, up=up, front=front, guides=guides, seed=seed)
    if sag_free:
        groom = _settled(groom, moved.start)

    from hairkit.record import record

    with progress_bar() as progress:
        worst = record(
            groom,
            moved,
            out,
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


@app.command()
def view(
    style: Annotated[
        str | None,
        typer.Argument(metavar="STYLE", help="The style to begin with, or a .toml file."),
    ] = None,
    head: HeadOption = None,
    units: UnitsOption = "m",
    up: UpOption = "y",
    front: FrontOption = None,
    guides: Annotated[int, typer.Option(help="Simulated strands.")] = 160,
    backend: BackendOption = None,
    seed: Annotated[int, typer.Option(help="Of everything random in the groom.")] = 0,
    width: Annotated[int, typer.Option(help="Of the window [pixels].")] = 1280,
    height: Annotated[int, typer.Option(help="Of the window [pixels].")] = 720,
) -> None:
    """Open a window: every style on a head, with a camera to turn and sliders. Needs Vulkan."""
    checked_count("--guides", guides, 1, 1_000_000)
    checked_count("--seed", seed, 0, 2**31 - 1)
    checked_count("--width", width, 160, 8192)
    checked_count("--height", height, 120, 8192)
    worn = load_head(head, units, up, front)
    _view(style, worn, backend=backend, guides=guides, seed=seed, width=width, height=height)


def _view(style: str | None, head: Any, *, lively: bool = False, **options: Any) -> None:
    """Open the window of `view`, or with a head that moves in the wind that of the demo."""
    from hairkit.backend.probe import check_backend_name
    from hairkit.style import load_style

    first = None if style is None else load_style(style)
    if options["backend"] is not None:
        check_backend_name(options["backend"])

    from hairkit.view.controls import Controls
    from hairkit.view.loop import run
    from hairkit.view.start import check_window, open_catalogue, styles_to_show

    styles, place = styles_to_show(first)
    controls = Controls(style=place)
    if lively:
        controls.motion, controls.wind, controls.gust = "turn_and_nod", 2.0, 0.5
    with ERR.status("opening a window"):
        check_window()
        shown, desk = open_catalogue(styles, head, controls=controls, **options)
    try:
        run(shown, desk)
    finally:
        for path in shown.written:
            typer.echo(f"wrote {path}")


def _groom(
    style: str,
    *,
    head: str | None,
    units: str,
    up: str,
    front: str | None,
    guides: int,
    seed: int,
) -> Any:
    """Grow what `simulate` was asked for."""
    from hairkit.groom import grow
    from hairkit.style import load_style

    if style.lower().endswith(".npz"):
        from hairkit.io.strands import load_strands

        chosen = None if head is None else load_head(head, units, up, front)
        return load_strands(style).regrow(head=chosen, source=style)
    return grow(load_style(style), load_head(head, units, up, front), guides=guides, seed=seed)


def _settled(groom: Any, pose: Any) -> Any:
    """Return the groom that stays as it is under gravity, after saying what that took."""
    import warnings

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


@app.command()
def catalog(
    out: Annotated[Path, typer.Option(help="The file to write: .png.")],
    style: Annotated[
        list[str] | None,
        typer.Option(
            help="A style's name or a .toml file; may be given again. By default every style."
        ),
    ] = None,
    head: HeadOption = None,
    units: UnitsOption = "m",
    up: UpOption = "y",
    front: FrontOption = None,
    guides: Annotated[int, typer.Option(help="Simulated strands of each style.")] = 160,
    seconds: Annotated[
        float, typer.Option(help="Seconds that hair falls before its pictures are taken.")
    ] = 0.7,
    backend: BackendOption = None,
    seed: Annotated[int, typer.Option(help="Of everything random in the grooms.")] = 0,
    size: Annotated[int, typer.Option(help="Width of one picture in pixels.")] = 320,
    columns: Annotated[
        int, typer.Option(help="Styles side by side, each of them two pictures.")
    ] = 3,
) -> None:
    """Picture every style on one head, by name, from the front and from the back."""
    from hairkit.io.files import check_output
    from hairkit.style import load_style, style_names

    check_output(out, (".png",))
    _number("--seconds", seconds, 0.0, 60.0, "s")
    checked_count("--guides", guides, 1, 1_000_000)
    checked_count("--seed", seed, 0, 2**31 - 1)
    checked_count("--size", size, 16, 1024)
    checked_count("--columns", columns, 1, 100)
    chosen = [load_style(name) for name in style or []]
    worn = load_head(head, units, up, front)

    from hairkit.catalog import catalog_order, make_catalog

    with progress_bar() as progress:
        make_catalog(
            chosen or [load_style(name) for name in catalog_order(style_names())],
            worn,
            out,
            backend=backend,
            guides=guides,
            seed=seed,
            seconds=seconds,
            size=size,
            columns=columns,
            progress=progress,
        )
    typer.echo(f"wrote {out}: {len(chosen) or len(style_names())} styles")


@app.command()
def styles(
    name: Annotated[str | None, typer.Argument(help="Print this style's file.")] = None,
) -> None:
    """List the styles, or print one as a style file."""
    from hairkit.style import load_style, style_names

    if name is not None:
        typer.echo(load_style(name).to_toml(), nl=False)
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("style", style="bold")
    table.add_column("length", justify="right")
    table.add_column("hold", justify="right")
    table.add_column("")
    for known in style_names():
        style = load_style(known)
        table.add_row(known, f"{100 * style.length:.3g} cm", f"{style.hold:g}", style.description)
    OUT.print(table)


@app.command()
def backends() -> None:
    """Show which backends work here, each tried with a real kernel in a process of its own."""
    from hairkit.backend import probe_backends

    with ERR.status("trying backends"):
        probes = probe_backends()
    table = Table(box=None, pad_edge=False)
    for column in ("backend", "works", "device or reason"):
        table.add_column(column)
    for probe in probes:
        works = "[green]yes[/]" if probe.works else "[red]no[/]"
        table.add_row(probe.name, works, probe.device if probe.works else probe.reason)
    OUT.print(table)


@app.command()
def bench(
    case: Annotated[
        list[str] | None, typer.Option(help="A case by name; may be given again.")
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="As elsewhere; 'all' for every one that works.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the results to this file.")] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A B", help="Compare two such files instead of running."),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Timed stretches of each case.")] = 7,
    draw: Annotated[bool, typer.Option("--draw", help="Time pictures in place of steps.")] = False,
) -> None:
    """Time a 60 Hz step of each case, beside the seed engine's figures; or pictures."""
    from hairkit import bench as benchmarks
    from hairkit.bench_report import print_comparison, run_and_print

    if compare is not None:
        print_comparison(OUT, *(benchmarks.load_results(path) for path in compare))
        return
    if json is not None:
        from hairkit.io.files import check_output

        check_output(json, (".json",))
    checked_count("--repeats", repeats, 5, 1000)
    if draw:
        if case:
            raise HairkitError("--case: expected steps to be timed, not --draw")
        from hairkit.bench_draw import as_rows, print_pictures, time_pictures

        with progress_bar() as progress:
            pictures = time_pictures(backend, repeats=repeats, progress=progress)
        print_pictures(OUT, pictures)
        if json is not None:
            benchmarks.save_rows(as_rows(pictures), json)
            typer.echo(f"wrote {json}")
        return
    if case and "chains_1000" in case:
        if len(case) > 1:
            raise HairkitError("--case: expected chains_1000 alone")
        from dataclasses import asdict

        from hairkit.bench_chains import print_chains, time_chains

        chains = time_chains(backend, repeats=repeats)
        print_chains(OUT, chains)
        if json is not None:
            benchmarks.save_rows([asdict(chains)], json)
            typer.echo(f"wrote {json}")
        return
    if case:
        cases = [benchmarks.case_named(name) for name in case]
    else:
        cases = [known for known in benchmarks.CASES if not known.asked]
    with progress_bar() as progress:
        results = run_and_print(OUT, cases, backend, repeats=repeats, progress=progress)
    if json is not None:
        benchmarks.save_results(results, json)
        typer.echo(f"wrote {json}")


@cache_app.command("clear")
def cache_clear() -> None:
    """Remove compiled kernels, distance grids and probe results; they are made again on demand."""
    from hairkit.paths import cache_dir

    folder = cache_dir()
    removed = 0
    # Only what hairkit itself put there: HAIRKIT_CACHE may name a folder that holds more.
    for pattern in ("taichi-*", "grids", "probe-*.json"):
        for path in folder.glob(pattern):
            files = (
                [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
            )
            removed += sum(file.stat().st_size for file in files)
            try:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            except OSError as error:
                raise FileError(f"{path}: cannot be removed ({error.strerror})") from error
    typer.echo(f"removed {removed / 1e6:.1f} MB from {folder}")


if __name__ == "__main__":
    main()
