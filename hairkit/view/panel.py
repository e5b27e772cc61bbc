"""The panel: what its sliders, buttons and lines are."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hairkit.motions import motion_names
from hairkit.style import Style
from hairkit.view.controls import DETAIL, DROOP, FASTEST_WIND, SHRINKAGE, Controls

LETTERS = 41
"""Letters that a line of the panel holds."""

NOTE_LINES = 4
"""Most lines that a note takes."""


@dataclass(frozen=True, kw_only=True)
class Readout:
    """What the panel says beside its controls."""

    backend: str
    """What the world runs on."""

    simulate_ms: float
    """Time that simulating takes a frame, smoothed [ms]."""

    draw_ms: float
    """Time that drawing takes a picture, smoothed [ms]."""

    frame_ms: float
    """Time from frame to frame, smoothed [ms]."""

    recording: bool
    """Whether a video is being recorded."""

    note: str
    """What happened last, such as a file that was written."""


def lay_panel(gui: Any, controls: Controls, styles: Sequence[Style], readout: Readout) -> list[str]:
    """Lay the panel's widgets out, and take over what they are set to.

    Args:
        gui: GGUI's widgets, or something that answers for them.
        controls: What is set; changed in place.
        styles: What there is to choose from.
        readout: What to say.

    Returns:
        What buttons ask for, in the words of `KEYS`.
    """
    asked = []

    def button(label: str, word: str) -> None:
        if gui.button(label):
            asked.append(word)

    gui.text(f"style {controls.style + 1} of {len(styles)}: {styles[controls.style].name}")
    if len(styles) > 1:
        chosen = gui.slider_int("style", controls.style + 1, 1, len(styles))
        controls.style = min(max(int(chosen), 1), len(styles)) - 1
        button("previous style (Left)", "previous style")
        button("next style (Right)", "next style")
    own = styles[controls.style]
    controls.hold = _slide(gui, "hold", controls.hold, (0.0, 1.0))
    controls.droop = _slide(gui, "droop [m]", controls.droop, (DROOP[0], max(DROOP[1], own.droop)))
    controls.shrinkage = _slide(gui, "shrinkage", controls.shrinkage, SHRINKAGE)
    gui.text("")

    gui.text(f"head: {controls.motion.replace('_', ' ')}")
    button("next motion (M)", "next motion")
    controls.wind = _slide(gui, "wind [m/s]", controls.wind, (0.0, FASTEST_WIND))
    controls.gust = _slide(gui, "gust", controls.gust, (0.0, 1.0))
    controls.physics = _slide(gui, "Hair physics", controls.physics, (0.0, 1.0))
    controls.detail = _slide(gui, "Hair detail", controls.detail, DETAIL)
    gui.text("")

    button("camera back (C)", "camera")
    button("screenshot (P)", "screenshot")
    button("stop recording (R)" if readout.recording else "record (R)", "record")
    for line in textwrap.wrap(readout.note, LETTERS)[:NOTE_LINES] or [""]:
        gui.text(line)
    gui.text("")

    gui.text(f"backend    {readout.backend}")
    gui.text(f"simulate {readout.simulate_ms:8.1f} ms")
    gui.text(f"draw     {readout.draw_ms:8.1f} ms")
    gui.text(f"frame    {readout.frame_ms:8.1f} ms")
    gui.text("")
    gui.text("drag turns, right drag or shift pans,")
    gui.text("Up and Down zoom, Tab hides this,")
    gui.text("Esc quits")
    return asked


def next_motion(name: str) -> str:
    """Return the motion that follows another, and after the last the first: `still` first."""
    order = ["still", *(known for known in motion_names() if known != "still")]
    return order[(order.index(name) + 1) % len(order)]


def _slide(gui: Any, label: str, value: float, ends: tuple[float, float]) -> float:
    """Return what a slider is set to."""
    low, high = ends
    got = float(gui.slider_float(label, value, low, high))
    # GGUI's numbers are single; what nobody touched stays as it is. Typed ones may be anything.
    return value if abs(got - value) <= 1e-6 * max(abs(value), 1.0) else min(max(got, low), high)
