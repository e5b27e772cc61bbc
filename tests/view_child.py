"""Drive the catalogue's window through everything, for test_view: WIDTH HEIGHT BACKEND.

Writes facts.json, shots.npz and what the window keeps into the current folder.
"""

import contextlib
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import hairkit as hk
from hairkit.errors import StyleError
from hairkit.view.controls import Controls, Hands
from hairkit.view.desk import Desk
from hairkit.view.lines import LineScene
from hairkit.view.loop import View, run
from hairkit.view.stage import Stage

WIDTH, HEIGHT, BACKEND = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


class Answers:
    """GGUI's widgets, laid out as ever, of which some answer what the script wants."""

    def __init__(self, gui: Any, answers: dict[str, Any]) -> None:
        self.gui, self.answers = gui, answers

    def text(self, text: str) -> None:
        """Lay a line out."""
        self.gui.text(text)

    def button(self, label: str) -> bool:
        """Lay a button out, and tell whether it is pressed."""
        return self.gui.button(label) or label in self.answers

    def slider_float(self, label: str, value: float, low: float, high: float) -> float:
        """Lay a slider out, and tell what it is set to."""
        return self.answers.get(label, self.gui.slider_float(label, value, low, high))

    def slider_int(self, label: str, value: int, low: int, high: int) -> int:
        """Lay a slider out, and tell what it is set to."""
        return self.answers.get(label, self.gui.slider_int(label, value, low, high))


class Scripted(Desk):
    """A window whose hands and widgets do what the script says."""

    now, count = Hands(), 0
    answers: dict[str, Any]

    def hands(self) -> Hands:
        """Return what the script's hands do."""
        return self.now

    @contextlib.contextmanager
    def panel(self) -> Iterator[Any]:
        """Open the panel with answers for its widgets."""
        with super().panel() as gui:
            yield Answers(gui, self.answers)

    def show(self, picture: np.ndarray) -> None:
        """Show a picture, and count."""
        super().show(picture)
        self.count += 1


stage = Stage(hk.Head.sphere(0.1), backend=BACKEND, guides=40, seed=0)
styles = [hk.load_style(name).replace(hairs_per_guide=8) for name in ("wavy", "3b", "short")]
view = View(stage, styles, Controls(), Path.cwd())
desk = Scripted(WIDTH, HEIGHT, hidden=True)
facts: dict[str, Any] = {"backend": stage.world.backend}
shots: dict[str, Any] = {}


def go(
    frames: int = 1, elapsed: float = 0.05, answers: dict[str, Any] | None = None, **hands: Any
) -> np.ndarray:
    """Make frames, in the first of which hands and widgets do something; return what is shown."""
    for frame in range(frames):
        first = frame == 0
        desk.now, desk.answers = Hands(**hands if first else {}), (first and answers) or {}
        view.frame(desk, elapsed)
    return desk.shot


shots["panel"] = go(2)
yaw = view.orbit.yaw
go(left=True, pointer=(0.1, 0.5))
go(left=True, pointer=(0.3, 0.5))
facts["turned by the panel"] = view.orbit.yaw - yaw
go(answers={"Hair physics": 0.0})
go(keys=("Tab",))
# Until hair has become solid, and what stands still is drawn sharply.
shots["still"] = go(14, elapsed=0.25)
camera = view.orbit.camera()
shots["reference"] = stage.world.render(camera, width=WIDTH, height=HEIGHT)
facts["at rest"] = stage.version
go(3)
facts["still at rest"] = stage.version

yaw = view.orbit.yaw
go(left=True, pointer=(0.5, 0.5))
go(left=True, pointer=(0.6, 0.5))
facts["turned"] = yaw - view.orbit.yaw
go(left=True, shift=True, pointer=(0.6, 0.6))
go(right=True, pointer=(0.6, 0.6))
go(right=True, pointer=(0.6, 0.7))
facts["panned"] = view.orbit.pan
go(nearer=True)
facts["zoom"] = view.orbit.zoom
shots["moved"] = go(8, elapsed=0.25)
go(keys=("c", "x"))
shots["back"] = go(8, elapsed=0.25)

go(keys=("Right", "Tab"))
facts["second"] = stage.world.hairs[0].groom.style.name
go(answers={"style": 3}, left=True)
facts["held"] = [stage.world.hairs[0].groom.style.name, view.controls.style]
go(1)
facts["third"] = stage.world.hairs[0].groom.style.name
facts["own"] = [view.controls.hold, styles[2].hold, len(stage.world.hairs)]
go(keys=("Tab",))
shots["short"] = go(8, elapsed=0.25)
go(keys=("Tab", "Left"))

grooms = [stage.world.hairs[0].groom.style]
go(answers={"droop [m]": 0.5}, left=True)
grooms.append(stage.world.hairs[0].groom.style)
go(answers={"shrinkage": 0.2})
grooms.append(stage.world.hairs[0].groom.style)
facts["droop"] = [style.droop for style in grooms]
facts["shrinkage"] = [style.shrinkage for style in grooms]

hair = stage.world.hairs[0]
go(answers={"hold": 0.25, "wind [m/s]": 5.0, "gust": 0.75, "Hair physics": 1.0})
facts["air"] = [float(np.linalg.norm(stage.world.wind)), stage.world.gust]
facts["free"] = [hair.hold, hair.motion]
before = hair.points()
go(4)
facts["blown"] = float(np.abs(hair.points() - before).max())

go(answers={"next motion (M)": True})
facts["motion"] = view.controls.motion
go(keys=("m",))
heads = []
for _ in range(12):
    go()
    heads.append(hair.head_pose)
facts["nodded"] = float(np.abs(np.diff(heads, axis=0)).max())
facts["second motion"] = view.controls.motion

go(answers={"wind [m/s]": 0.0})
drawn = []
for detail in (1.0, 0.05):
    go(answers={"Hair detail": detail})
    drawn.append(stage.world.drawing().drawn_hairs())
facts["drawn"] = drawn

go(keys=("p",))
go(keys=("p",))
go(keys=("r",))
facts["recording"] = view.recording is not None
go(4)
begun: float = stage.world.time
go()
facts["recorded step"] = stage.world.time - begun
go(keys=("r",))
go(keys=("r", "r"))
facts["note"] = view.note


def broken(style: hk.Style) -> None:
    """Grow nothing."""
    raise StyleError("does not grow here")


wear, stage.wear = stage.wear, broken
go(keys=("Right",))
facts["broken"] = [view.note, view.styles[view.controls.style].name]
stage.wear = wear

go(keys=("r",))
frames = desk.count
ticks = iter(range(1000))


def clock() -> float:
    """Tell the time; Escape goes down in the third frame."""
    tick = next(ticks)
    desk.now = Hands(keys=("Escape",)) if tick == 3 else Hands()
    return 0.05 * tick


run(view, desk, clock=clock)
facts["frames run"] = desk.count - frames
facts["left"] = len(stage.world.hairs)
facts["written"] = [path.name for path in view.written]

front = hk.Camera(position=(0.0, 0.0, 1.0), target=(0.0, 0.0, 0.0))
lines = LineScene(np.array([[(-0.1, 0.1, 0.0), (0.05, 0.1, 0.0)]]), front, WIDTH, HEIGHT)
shots["lines"] = lines.image()
lines.close()
facts["pixels a metre"] = 0.5 * HEIGHT / math.tan(0.5 * front.fov)
np.savez("shots.npz", **shots)
Path("facts.json").write_text(json.dumps(facts))
print("DONE")
