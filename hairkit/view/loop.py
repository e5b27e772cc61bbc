"""The loop: hands and panel in, a world moved on, a picture out."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hairkit.errors import HairkitError
from hairkit.style import Style
from hairkit.view.caption import shown
from hairkit.view.controls import DETAIL, KEYS, Controls, Hands, Meter, Pace
from hairkit.view.desk import Desk, beside_panel
from hairkit.view.keep import VIDEO_RATE, Recording, keep_picture
from hairkit.view.laps import RATE
from hairkit.view.orbit import Orbit
from hairkit.view.panel import Readout, lay_panel, next_motion
from hairkit.view.stage import Stage

MOST_FRAMES = 15
"""Frames of 1/60 s that one picture may stand for: a slow machine sees time slow down instead."""

REST_S = 0.25
"""What stands still for this long is drawn sharply [s]."""

ZOOM_RATE = 3.0
"""How many times nearer a key goes in a second."""


class View:
    """A catalogue: styles on one head, with what can be set, and what is shown."""

    def __init__(
        self, stage: Stage, styles: Sequence[Style], controls: Controls, folder: Path
    ) -> None:
        """Put the first style on.

        Args:
            stage: Where hair grows and moves.
            styles: What there is to choose from, at least one.
            controls: How it begins; what a style sets is the style's.
            folder: Where screenshots and recordings go, an absolute path.

        Raises:
            HairkitError: The style does not grow on this head.
        """
        self.stage = stage
        """The world."""
        self.styles = list(styles)
        """What there is to choose from."""
        self.controls = controls
        """What is set."""
        self.folder = folder
        """Where screenshots and recordings go."""
        self.orbit = Orbit(stage.head)
        """Where the camera is."""
        self.running = True
        """Whether nobody has quit."""
        self.recording: Recording | None = None
        """The video that is being recorded."""
        self.written: list[Path] = []
        """Files that are complete."""
        self.note = ""
        """What the panel says that happened last."""
        self.panel_shown = True
        """Whether the panel is there."""
        # A CPU starts quick and gets sharp, since a slow first second is what is remembered.
        self.pace = Pace(len(Pace.LEVELS) - 1 if stage.world.backend == "cpu" else 0)
        """How sharply to draw."""
        self.meters = {name: Meter() for name in ("simulate", "draw", "frame")}
        """How long stages of a frame take."""
        self._owed = 0.0
        self._drag = ""
        self._pointer = (0.5, 0.5)
        self._key: object = None
        self._sharp = False
        self._rested = 0.0
        self._picture: NDArray[np.uint8] = np.zeros((1, 1, 3), np.uint8)
        self._grown = controls.growth()
        self._wear()

    def frame(self, desk: Desk, elapsed: float) -> None:
        """Take in what hands do, move the world on, and show a picture.

        Args:
            desk: The window.
            elapsed: Time since the last frame [s].
        """
        self.meters["frame"].note(elapsed)
        hands = desk.hands()
        for key in hands.keys:
            self._do(KEYS.get(key, ""), desk)
        if self.panel_shown:
            with desk.panel() as gui:
                asked = lay_panel(gui, self.controls, self.styles, self._readout())
            for word in asked:
                self._do(word, desk)
        self._steer(desk, hands, elapsed)
        if self.controls.growth() != self._grown and not hands.left:
            self._grow()
        self.stage.follow(self.controls)

        frames = self._frames(elapsed)
        before = time.perf_counter()
        self.stage.advance(frames)
        if frames:
            self.meters["simulate"].note(time.perf_counter() - before)
        self.draw(desk.size, elapsed)
        style = self.styles[self._grown[0]]
        desk.show(shown(self._picture, desk.size, style.name, style.description))

    def draw(self, size: tuple[int, int], elapsed: float) -> None:
        """Draw a new picture where the last one is not what there is to see.

        Args:
            size: Width and height of the window [pixels].
            elapsed: Time since the last call [s].
        """
        aside = beside_panel(*size) if self.panel_shown else 0.0
        camera = self.orbit.camera(self.stage.place, aside=aside)
        detail = self.controls.detail
        key = (camera, detail, size, self.stage.version)
        if self.recording is not None:
            self._picture = self._full(self.recording.size)
            self._key, self._sharp = key, True
            try:
                self.recording.add(self._picture)
            except HairkitError as error:
                self.recording, self.note = None, str(error)
            return
        self._rested = 0.0 if key != self._key else self._rested + elapsed
        if key == self._key and (self._sharp or self._rested < REST_S):
            return
        moving = key != self._key
        sharpness = self.pace.sharpness if moving else Pace.FULL
        before = time.perf_counter()
        self._picture = self.stage.picture(
            camera,
            width=max(round(sharpness.size * size[0]), 1),
            height=max(round(sharpness.size * size[1]), 1),
            detail=max(sharpness.detail * detail, min(detail, DETAIL[0])),
            samples=2,
        )
        spent = time.perf_counter() - before
        if moving:
            self.pace.note(spent)
        if self._key is not None:
            # The first one compiles.
            self.meters["draw"].note(spent)
        self._key, self._sharp = key, sharpness == Pace.FULL

    def close(self) -> None:
        """Complete a recording, and empty the world."""
        try:
            if self.recording is not None:
                self._record(self.recording.size)
        finally:
            self.stage.close()

    def _do(self, word: str, desk: Desk) -> None:
        """Do what a key or a button asks for."""
        controls = self.controls
        if word in ("previous style", "next style"):
            step = 1 if word == "next style" else -1
            controls.style = (controls.style + step) % len(self.styles)
        elif word == "next motion":
            controls.motion = next_motion(controls.motion)
        elif word == "camera":
            self.orbit.front()
        elif word == "panel":
            self.panel_shown = not self.panel_shown
        elif word == "quit":
            self.running = False
        elif word:
            try:
                self._keep(desk.size) if word == "screenshot" else self._record(desk.size)
            except HairkitError as error:
                self.note = str(error)

    def _steer(self, desk: Desk, hands: Hands, elapsed: float) -> None:
        """Move the camera with a drag, and with the keys that are held."""
        down = hands.left or hands.right
        if down and not self._drag:
            over = self.panel_shown and desk.over_panel(hands.pointer)
            self._drag = "panel" if over else "camera"
        elif not down:
            self._drag = ""
        else:
            width, height = desk.size
            right = (hands.pointer[0] - self._pointer[0]) * width / height
            up = hands.pointer[1] - self._pointer[1]
            if self._drag == "panel":
                desk.drag_panel(hands.pointer)
            elif (right, up) != (0.0, 0.0):
                move = self.orbit.shift if hands.right or hands.shift else self.orbit.turn
                move(right, up)
        self._pointer = hands.pointer
        if hands.nearer != hands.farther:
            self.orbit.near(ZOOM_RATE ** (min(elapsed, 0.1) * (1 if hands.nearer else -1)))

    def _grow(self) -> None:
        """Grow what the controls ask for, or go back to what is there."""
        before = self._grown
        self._grown = self.controls.growth()
        try:
            self._wear(own=self._grown[0] != before[0])
        except HairkitError as error:
            self.note = str(error)
            self._grown = before
            self.controls.style, self.controls.droop, self.controls.shrinkage = before

    def _wear(self, *, own: bool = True) -> None:
        """Put on the style that is chosen, with its own settings or those of the sliders."""
        style = self.styles[self.controls.style]
        if not own:
            style = style.replace(droop=self.controls.droop, shrinkage=self.controls.shrinkage)
        self.stage.wear(style)
        if own:
            self.controls.take(style)
            self._grown = self.controls.growth()

    def _frames(self, elapsed: float) -> int:
        """Return how many frames of the world this frame stands for."""
        if self.recording is not None:
            # However long a picture takes, the video is smooth.
            return RATE // VIDEO_RATE
        self._owed = min(self._owed + elapsed * RATE, float(MOST_FRAMES))
        # What is owed is a sum of rounded numbers.
        frames = int(self._owed + 1e-6)
        self._owed -= frames
        return frames

    def _full(self, size: tuple[int, int], samples: int = 2) -> NDArray[np.uint8]:
        """Return the picture as it is now, sharp, without panel and caption."""
        before = time.perf_counter()
        picture = self.stage.picture(
            self.orbit.camera(self.stage.place),
            width=size[0],
            height=size[1],
            detail=self.controls.detail,
            samples=samples,
        )
        self.meters["draw"].note(time.perf_counter() - before)
        return picture

    def _keep(self, size: tuple[int, int]) -> None:
        """Write a screenshot."""
        name = self.styles[self._grown[0]].name
        self._wrote(keep_picture(self._full(size, samples=3), self.folder, name))

    def _record(self, size: tuple[int, int]) -> None:
        """Begin a recording, or complete the one that runs."""
        if self.recording is None:
            self.recording = Recording(self.folder, self.styles[self._grown[0]].name, size)
            self.note = f"recording {self.recording.path.name}"
            return
        done, self.recording = self.recording, None
        done.close()
        self._wrote(done.path)

    def _wrote(self, path: Path) -> None:
        """Take note of a file."""
        self.written.append(path)
        self.note = f"wrote {path.name}"

    def _readout(self) -> Readout:
        """Return what the panel is to say."""
        return Readout(
            backend=self.stage.world.backend,
            simulate_ms=self.meters["simulate"].ms,
            draw_ms=self.meters["draw"].ms,
            frame_ms=self.meters["frame"].ms,
            recording=self.recording is not None,
            note=self.note,
        )


def run(view: View, desk: Desk, *, clock: Callable[[], float] = time.perf_counter) -> None:
    """Show a catalogue until its window is closed.

    Args:
        view: The catalogue.
        desk: The window.
        clock: Tells the time [s].
    """
    with closing(desk), closing(view):
        before = clock()
        while view.running and desk.open:
            now = clock()
            view.frame(desk, now - before)
            before = now
