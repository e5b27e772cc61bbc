"""The command line.

Bad input gives one line on stderr and exit code 2; `--debug` shows where it arose.
"""

import re
import shutil
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.table import Table

from hairkit.cli_bench import bench
from hairkit.cli_fit import fit_style
from hairkit.cli_options import (
    ERR,
    OUT,
    STOPPED,
    BackendOption,
    FrontOption,
    HeadOption,
    UnitsOption,
    UpOption,
    checked_count,
    checked_number,
    load_head,
    progress_bar,
)
from hairkit.cli_rig import rig
from hairkit.cli_simulate import simulate
from hairkit.cli_strands import convert, info
from hairkit.errors import FileError, FileWarning, HairkitError

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
app.command()(simulate)
app.command()(rig)
app.command("fit")(fit_style)
app.command()(convert)
app.command()(info)
app.command()(bench)


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
        with interruptible(), plain_warnings():
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


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Say what is odd about a file in one line on stderr; other warnings stay as they are."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", FileWarning)
        show = warnings.showwarning

        def tell(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, FileWarning):
                _complain(f"warning: {message}")
            else:
                show(message, category, *where, **more)

        warnings.showwarning = tell
        yield


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
    checked_number("--seconds", seconds, 0.0, 60.0, "s")
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
