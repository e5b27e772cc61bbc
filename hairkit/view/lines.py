"""Hairs drawn by GGUI's own lines, to compare with: no light, no head, one flat colour."""

import contextlib
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hairkit.backend import ti
from hairkit.draw.camera import Camera
from hairkit.errors import BackendError


class LineScene:
    """A hidden window that shows hairs as lines one pixel wide."""

    def __init__(
        self, points: NDArray[np.float64], camera: Camera, width: int, height: int
    ) -> None:
        """Open it; the session must be open.

        Args:
            points: Hairs root to tip [m], shape (hairs, points, 3).
            camera: Where to look from.
            width: Of the picture [pixels].
            height: Of the picture [pixels].

        Raises:
            BackendError: The window cannot be opened.
        """
        hairs, count = points.shape[:2]
        self._points = ti.Vector.field(3, ti.f32, shape=hairs * count)
        self._points.from_numpy(points.reshape(-1, 3).astype(np.float32))
        first = np.arange(hairs * count).reshape(hairs, count)[:, :-1].reshape(-1)
        pairs = np.stack([first, first + 1], axis=1).reshape(-1)
        self._pairs = ti.field(ti.i32, shape=len(pairs))
        self._pairs.from_numpy(pairs.astype(np.int32))
        try:
            with _elsewhere():
                self._window = ti.ui.Window("lines", (width, height), show_window=False)
        except RuntimeError as error:
            raise BackendError(f"window: cannot be opened ({error})") from error
        self._scene = self._window.get_scene()
        self._canvas = self._window.get_canvas()
        self._camera = ti.ui.Camera()
        self._camera.position(*camera.position)
        self._camera.lookat(*camera.target)
        self._camera.up(*camera.up)
        self._camera.fov(np.degrees(camera.fov))
        self._camera.z_near(0.01)

    def image(self) -> NDArray[np.uint8]:
        """Draw the hairs and return the picture, top row first, shape (height, width, 3)."""
        self._scene.set_camera(self._camera)
        self._scene.ambient_light((0.8, 0.8, 0.8))
        self._scene.lines(self._points, width=1.0, indices=self._pairs, color=(0.6, 0.5, 0.4))
        self._canvas.scene(self._scene)
        shown: Any = self._window.get_image_buffer_as_numpy()
        picture = np.asarray(shown).transpose(1, 0, 2)[::-1, :, :3]
        return np.ascontiguousarray(np.clip(picture * 255.0 + 0.5, 0, 255).astype(np.uint8))

    def close(self) -> None:
        """Close the window."""
        with _elsewhere():
            self._window.destroy()


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """Let GGUI write its settings where nobody looks."""
    with tempfile.TemporaryDirectory(prefix="hairkit-") as folder, contextlib.chdir(folder):
        yield
