"""Style: what hair is like (length, shape, feel, look), its file, and what it means in physics."""

from hairkit.style.keys import StyleKey, melanin_color
from hairkit.style.load import load_style, style_names
from hairkit.style.model import RIGID_STRETCH, Style, style_keys
from hairkit.style.tie import Tie

__all__ = [
    "RIGID_STRETCH",
    "Style",
    "StyleKey",
    "Tie",
    "load_style",
    "melanin_color",
    "style_keys",
    "style_names",
]
