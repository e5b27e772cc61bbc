"""Drawing: guides become drawn hairs, are lit, and are rasterised by Taichi kernels into an image.

`Camera` and `Light` are plain NumPy data; `Renderer` needs Taichi, so it is imported on first use.
"""

from typing import TYPE_CHECKING

from hairkit.draw.camera import Camera, Light

if TYPE_CHECKING:
    from hairkit.draw.renderer import Renderer

__all__ = ["Camera", "Light", "Renderer"]


def __getattr__(name: str) -> object:
    """Import the renderer, and with it Taichi, only when somebody asks for it."""
    if name == "Renderer":
        from hairkit.draw.renderer import Renderer

        return Renderer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
