"""Options that several commands share, and what they stand for."""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)

from hairkit.errors import HairkitError

ERR = Console(stderr=True, highlight=False)

# Wide enough for every table: a narrow terminal may wrap a line, but no figure is cut off.
OUT = Console(highlight=False, width=max(Console().width, 132))

# Taichi's compiler may swallow the exception that a signal raised in the middle of it.
STOPPED = threading.Event()

BackendOption = Annotated[
    str | None,
    typer.Option(
        help="cpu, cuda, vulkan or auto; by default the environment's HAIRKIT_BACKEND, else auto."
    ),
]
HeadOption = Annotated[
    str | None,
    typer.Option(help="A head mesh, or 'sphere'; by default the head that comes with hairkit."),
]
UnitsOption = Annotated[str, typer.Option(help="Of the head mesh: m, dm, cm, mm or in.")]
UpOption = Annotated[str, typer.Option(help="The head mesh's upward axis: y, z, -x ...")]
FrontOption = Annotated[
    str | None, typer.Option(help="The axis its face looks along; by default z, or -y.")
]
StrandUnitsOption = Annotated[
    str | None, typer.Option(help="Of a file of strands that does not say: m, dm, cm, mm, in.")
]
StrandUpOption = Annotated[
    str | None, typer.Option(help="The upward axis of a file of strands that does not say.")
]


def checked_number(option: str, value: float, low: float, high: float, unit: str = "") -> float:
    """Return an option's value, or say what it may be."""
    if not math.isfinite(value) or not low <= value <= high:
        raise HairkitError(
            f"{option}: {value:g}, expected a number from {low:g} to {high:g}{unit and ' ' + unit}"
        )
    return value


def checked_count(option: str, value: int, low: int, high: int) -> int:
    """Return an option's whole number, or say what it may be."""
    if not low <= value <= high:
        raise HairkitError(f"{option}: {value}, expected a whole number from {low} to {high}")
    return value


def load_head(head: str | None, units: str, up: str, front: str | None) -> Any:
    """Load the head that was asked for."""
    from hairkit.head import Head
    from hairkit.paths import assets_dir

    if head is None:
        return Head.load(assets_dir() / "head.glb")
    if head == "sphere":
        return Head.sphere()
    return Head.load(head, units=units, up=up, front=front)


def load_groom(
    style: str,
    head: Any,
    *,
    guides: int | None,
    segments: int | None,
    look: str | None,
    seed: int,
    axes: dict[str, str | None],
) -> Any:
    """Grow what `simulate` was asked for, or take it from a file."""
    from hairkit.groom import grow
    from hairkit.io.strand_groom import groom_from_strands
    from hairkit.io.strands import ENDINGS, load_strands
    from hairkit.style import load_style

    if Path(style).suffix.lower() not in ENDINGS:
        if look is not None:
            raise HairkitError(f"--style: {look!r} beside {style!r}, expected a file of strands")
        grown = load_style(style)
        if segments is not None:
            grown = grown.replace(segments=segments)
        return grow(grown, head or load_head(None, "m", "y", None), guides=guides or 160, seed=seed)
    strands = load_strands(style, **axes)
    if strands.groom is not None:
        if look is not None:
            raise HairkitError(f"--style: {look!r}, but {style} holds a groom with its own")
        return strands.regrow(head=head, source=style)
    return groom_from_strands(
        strands,
        head or load_head(None, "m", "y", None),
        style=look,
        guides=guides,
        segments=segments,
        seed=seed,
        source=style,
    )


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Show progress bars on stderr; gives what to call with a label, steps done, steps in all."""
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeRemainingColumn(),
        console=ERR,
        transient=True,
        # Into a file or a pipe a bar is only noise.
        disable=not ERR.is_terminal,
    )
    tasks: dict[str, Any] = {}

    def show(label: str, done: int, total: int) -> None:
        if STOPPED.is_set():
            raise KeyboardInterrupt
        for other, task in tasks.items():
            if other != label and bars.tasks[task].total is None:
                bars.update(task, total=1, completed=1)
        if label not in tasks:
            tasks[label] = bars.add_task(label, total=total or None)
        bars.update(tasks[label], completed=done)

    with bars:
        yield show
