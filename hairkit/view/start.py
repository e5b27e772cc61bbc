"""From a style's name to an open window."""

import sys
from collections.abc import Sequence
from pathlib import Path

from hairkit.backend.probe import require_window
from hairkit.catalog import catalog_order
from hairkit.errors import BackendError
from hairkit.head import Head
from hairkit.style import Style, load_style, style_names
from hairkit.view.controls import Controls
from hairkit.view.desk import Desk
from hairkit.view.loop import View
from hairkit.view.stage import Stage

INSTEAD = "'hairkit simulate STYLE --out hair.mp4' makes a video without one"


def check_window() -> None:
    """Make sure that a window can open.

    Raises:
        BackendError: It cannot; the message says what is missing and what to do instead.
    """
    if in_notebook():
        raise BackendError(
            f"no window opens in a notebook; show pictures by world.show(), {INSTEAD}"
        )
    try:
        require_window()
    except BackendError as error:
        raise BackendError(f"{error}; {INSTEAD}") from None


def in_notebook() -> bool:
    """Return whether this is a notebook's kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def styles_to_show(first: Style | None) -> tuple[list[Style], int]:
    """Return the styles that come with hairkit, as a catalogue has them, and where one of them is.

    Args:
        first: The style to begin with; one that does not come with hairkit is put before the
            others. None begins with the first.
    """
    styles = [load_style(name) for name in catalog_order(style_names())]
    if first is None:
        return styles, 0
    if first in styles:
        return styles, styles.index(first)
    return [first, *styles], 0


def open_catalogue(
    styles: Sequence[Style],
    head: Head,
    *,
    controls: Controls,
    backend: str | None = None,
    guides: int = 160,
    seed: int = 0,
    width: int = 1280,
    height: int = 720,
    folder: Path | None = None,
    hidden: bool = False,
) -> tuple[View, Desk]:
    """Open a window with styles on a head; `run` shows it, and `check_window` comes before.

    Args:
        styles: What there is to choose from, at least one.
        head: What they grow on.
        controls: How it begins.
        backend: `World`'s; the window itself is Vulkan's in any case.
        guides: Simulated strands.
        seed: Of everything random in the grooms.
        width: Of the window [pixels].
        height: Of the window [pixels].
        folder: Where screenshots and recordings go; None is the current folder.
        hidden: Show nothing on a display; see `Desk`.

    Raises:
        HairkitError: The backend does not work, or the style does not grow on this head.
    """
    stage = Stage(head, backend=backend, guides=guides, seed=seed)
    view = View(stage, styles, controls, (folder or Path()).absolute())
    # Before the window opens: the first picture compiles, and a black window looks broken.
    view.draw((width, height), 0.0)
    return view, Desk(width, height, hidden=hidden)
