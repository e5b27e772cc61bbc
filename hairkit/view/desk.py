"""The window itself, and the only place that names GGUI."""

import contextlib
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hairkit.backend import ti
from hairkit.errors import BackendError
from hairkit.view.controls import Hands

PANEL_PIXELS = 306
"""Width of the panel [pixels]: GGUI's letters have one size."""
PANEL_TALL_PIXELS = 612
"""Height of the panel where the window has as much [pixels]; it scrolls where not."""
MARGIN_PIXELS = 8
"""From the panel to the window's edges [pixels]."""
TITLE_PIXELS = 20
"""Height of the panel's title, by which it can be moved [pixels]."""


def beside_panel(width: int, height: int) -> float:
    """Return how far right of a window's middle that of its free part is [window heights].

    Args:
        width: Of the window [pixels].
        height: Of the window [pixels].
    """
    return min(0.5 * (MARGIN_PIXELS + PANEL_PIXELS), 0.25 * width) / height


class Desk:
    """A window with a panel: takes keys and mouse in, and shows pictures.

    GGUI tells neither where its panel was moved to nor whether the mouse is busy with it: both are
    followed here. It does not tell of the mouse wheel, and its letters have one size.
    """

    def __init__(self, width: int, height: int, *, hidden: bool = False) -> None:
        """Open the window; the session must be open.

        Args:
            width: Of its picture [pixels].
            height: Of its picture [pixels].
            hidden: Show nothing on a display, and keep what would be shown in `shot`.

        Raises:
            BackendError: The window cannot be opened.
        """
        self.hidden = hidden
        self.shot: NDArray[np.uint8] = np.zeros((height, width, 3), np.uint8)
        """What a hidden window shows, sRGB, top row first, shape (height, width, 3)."""
        # GGUI keeps places of panels in the current folder, which is the user's.
        self._folder = tempfile.TemporaryDirectory(prefix="hairkit-")
        try:
            with contextlib.chdir(self._folder.name):
                self._window = ti.ui.Window(
                    "hairkit", (width, height), show_window=not hidden, fps_limit=60
                )
                self._canvas = self._window.get_canvas()
                self.gui = self._window.get_gui()
        except RuntimeError as error:
            self._folder.cleanup()
            raise BackendError(f"window: cannot be opened ({error})") from error
        self._corner = (float(MARGIN_PIXELS), float(MARGIN_PIXELS))
        self._panel_height = min(PANEL_TALL_PIXELS, height - 2 * MARGIN_PIXELS)
        self._grip: tuple[float, float] | None = None

    @property
    def open(self) -> bool:
        """Whether nobody has closed it."""
        return bool(self._window.running)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height [pixels]."""
        width, height = self._window.get_window_shape()
        return int(width), int(height)

    def hands(self) -> Hands:
        """Return what keys and mouse do since the last call."""
        if self.hidden:
            return Hands()
        window, down = self._window, self._window.is_pressed
        x, y = window.get_cursor_pos()
        return Hands(
            keys=tuple(event.key for event in window.get_events(ti.ui.PRESS)),
            pointer=(float(x), float(y)),
            left=down(ti.ui.LMB),
            right=down(ti.ui.RMB),
            shift=down(ti.ui.SHIFT),
            nearer=down(ti.ui.UP),
            farther=down(ti.ui.DOWN),
        )

    @contextlib.contextmanager
    def panel(self) -> Iterator[Any]:
        """Open the panel for widgets; gives GGUI's own."""
        width, height = self.size
        x, y = MARGIN_PIXELS / width, MARGIN_PIXELS / height
        # Where it begins; then it is where it was dragged to.
        share = PANEL_PIXELS / width, self._panel_height / height
        with self.gui.sub_window("hairkit", x, y, *share) as gui:
            yield gui

    def over_panel(self, pointer: tuple[float, float]) -> bool:
        """Return whether a place in the window is the panel's; a drag may begin there."""
        at = self._pixels(pointer)
        x, y = at[0] - self._corner[0], at[1] - self._corner[1]
        inside = 0.0 <= x <= PANEL_PIXELS and 0.0 <= y <= self._panel_height
        self._grip = at if inside and y <= TITLE_PIXELS else None
        return inside

    def drag_panel(self, pointer: tuple[float, float]) -> None:
        """Follow the panel where a drag that began at its title takes it."""
        if self._grip is not None:
            at = self._pixels(pointer)
            x, y = self._corner
            self._corner = (x + at[0] - self._grip[0], y + at[1] - self._grip[1])
            self._grip = at

    def _pixels(self, pointer: tuple[float, float]) -> tuple[float, float]:
        """Return a place in pixels from the left and from the top."""
        width, height = self.size
        return pointer[0] * width, (1.0 - pointer[1]) * height

    def show(self, picture: NDArray[np.uint8]) -> None:
        """Show a picture, and the panel over it.

        Args:
            picture: sRGB, top row first, shape (height, width, 3).
        """
        # GGUI's images are (x, y) with y up.
        self._canvas.set_image(np.ascontiguousarray(picture[::-1].transpose(1, 0, 2)))
        with contextlib.chdir(self._folder.name):
            if self.hidden:
                # Showing a hidden window takes the process down; reading it draws it.
                seen = self._window.get_image_buffer_as_numpy()[..., :3]
                seen = np.rint(255.0 * np.clip(seen, 0.0, 1.0)).astype(np.uint8)
                self.shot = np.ascontiguousarray(seen.transpose(1, 0, 2)[::-1])
            else:
                self._window.show()

    def close(self) -> None:
        """Close the window."""
        with contextlib.chdir(self._folder.name):
            self._window.destroy()
        self._folder.cleanup()
