"""The catalogue's window: its camera, its panel, and whole frames of it, shown on no display."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import imageio.v3 as iio
import numpy as np
import pytest
from videos import read_video

from hairkit import cli, motions
from hairkit.backend.probe import require_window
from hairkit.errors import BackendError, StyleError
from hairkit.head import Head
from hairkit.style import load_style, style_names
from hairkit.view import start
from hairkit.view.caption import shown
from hairkit.view.controls import Controls, Meter, Pace
from hairkit.view.desk import beside_panel
from hairkit.view.keep import free_path
from hairkit.view.laps import BLEND_S, RATE, Laps
from hairkit.view.orbit import FARTHEST, NEAREST, STEEPEST, Orbit
from hairkit.view.panel import Readout, lay_panel, next_motion

ROOT = Path(__file__).resolve().parent.parent
CHILD = ROOT / "tests" / "view_child.py"
WIDTH, HEIGHT = 192, 144


# ---- camera


def seen(orbit: Orbit, point: Any) -> np.ndarray:
    """Return where a point is in the picture, right and up of its middle [half heights]."""
    camera = orbit.camera()
    right, up, away = camera.basis() @ (np.asarray(point) - camera.position)
    return np.array([right, up]) / (away * np.tan(0.5 * camera.fov))


def test_orbit_begins_where_pictures_are_taken_from():
    """Leave the camera alone, move it, and put it back: level, from the front and its left."""
    orbit = Orbit(Head.sphere())
    begun = orbit.camera()
    assert begun.position[0] > 0.0 and begun.position[2] > 0.0
    orbit.turn(0.3, 0.1)
    orbit.shift(0.2, 0.2)
    orbit.near(1.5)
    assert orbit.camera() != begun
    orbit.front()
    assert orbit.camera() == begun


def test_drag_takes_what_is_under_it_along():
    """Drag to the right and up, turning and panning: the face follows, both ways."""
    head = Head.sphere(0.1)
    nose = head.center + 0.1 * np.asarray(head.front)
    for drag in (np.array([0.02, 0.0]), np.array([0.0, 0.02]), np.array([-0.02, -0.02])):
        for move in ("turn", "shift"):
            orbit = Orbit(head, yaw=0.0, pitch=0.0)
            before = seen(orbit, nose)
            getattr(orbit, move)(*drag)
            way = seen(orbit, nose) - before
            assert way @ drag > 0.9 * np.linalg.norm(way) * np.linalg.norm(drag)


def test_pan_keeps_the_target_under_the_pointer():
    """Pan over a tenth of the window's height: the target moves by just as much."""
    orbit = Orbit(Head.sphere(0.1), yaw=0.7, pitch=0.4)
    target = orbit.camera().target
    orbit.shift(0.1, -0.05)
    # Half heights.
    assert seen(orbit, target) == pytest.approx([0.2, -0.1], abs=1e-9)


def test_pitch_zoom_and_pan_have_ends():
    """Drag and zoom far beyond every end: the camera stays a camera, near the head."""
    head = Head.sphere(0.1)
    for way in (-1.0, 1.0):
        orbit = Orbit(head)
        for _ in range(50):
            orbit.turn(0.9, way)
            orbit.shift(way, way)
            orbit.near(3.0**way)
        camera = orbit.camera()
        assert abs(orbit.pitch) == pytest.approx(STEEPEST)
        assert abs(orbit.yaw) <= np.pi
        away = np.linalg.norm(np.subtract(camera.position, camera.target)) / head.radius
        assert away == pytest.approx(NEAREST if way > 0.0 else FARTHEST)
        assert np.linalg.norm(orbit.pan) <= 6.0 * head.radius + 1e-9


def test_camera_goes_where_the_head_goes():
    """Move the head's place: position and target move alike."""
    orbit = Orbit(Head.sphere(), yaw=1.0)
    here, there = orbit.camera(), orbit.camera((0.0, 2.0, -1.0))
    for one, two in ((here.position, there.position), (here.target, there.target)):
        assert np.subtract(two, one) == pytest.approx([0.0, 2.0, -1.0])


def test_head_is_seen_beside_the_panel():
    """Ask for a camera that sees its target aside: there it is, and the panel leaves that free."""
    orbit = Orbit(Head.sphere(0.1), yaw=2.0, pitch=-0.3, zoom=1.3)
    aside = orbit.camera(aside=0.2)
    right, up, away = aside.basis() @ np.subtract(orbit.camera().target, aside.position)
    assert [right, up] == pytest.approx([0.4 * away * np.tan(0.5 * aside.fov), 0.0], abs=1e-12)
    for width, height in ((1280, 720), (900, 800), (192, 144)):
        middle = 0.5 * width + beside_panel(width, height) * height
        assert middle == pytest.approx(min(0.5 * (314 + width), 0.75 * width))


# ---- motion


@pytest.mark.parametrize("name", motions.motion_names())
def test_motion_goes_on_for_ever_without_a_jump(name: str):
    """Play three laps: no frame moves the head farther than the fastest of the first lap."""
    laps = Laps(name)
    poses = np.array([laps.start] + [laps.next() for _ in range(62 * RATE)])
    steps = np.abs(np.diff(poses, axis=0)).max(axis=(1, 2))
    # Motions begin with more than they go on with.
    first = steps[RATE : 20 * RATE].max()
    assert steps[20 * RATE :].max() <= 1.01 * first + 1e-12
    assert steps[-3 * RATE :].max() >= 0.9 * first
    assert laps.moving == (name != "still")


def test_head_leaves_one_motion_for_another_smoothly():
    """Change motions in mid-swing, twice: the head neither jumps nor stays behind."""
    laps = Laps("shake")
    poses = [laps.next() for _ in range(100)]
    for name, count in (("nod", 10), ("still", 60)):
        laps = Laps(name, leave=laps)
        poses += [laps.next() for _ in range(count)]
    steps = np.abs(np.diff(np.array(poses), axis=0)).max(axis=(1, 2))
    assert steps[99:].max() <= 1.3 * steps[:99].max()
    assert not laps.moving
    assert np.array_equal(poses[-1], np.eye(4))
    assert BLEND_S * RATE < 60


# ---- panel


class Widgets:
    """GGUI's widgets without a window: each answers what a test wants."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.lines: list[str] = []

    def text(self, text: str) -> None:
        """Take a line."""
        self.lines.append(text)

    def button(self, label: str) -> bool:
        """Tell whether it is pressed."""
        self.lines.append(label)
        return label.split(" (")[0] in self.answers.get("pressed", ())

    def slider_float(self, label: str, value: float, low: float, high: float) -> float:
        """Tell what it is set to, in single precision as GGUI does."""
        self.lines.append(label)
        return float(np.float32(self.answers.get(label, value)))

    def slider_int(self, label: str, value: int, low: int, high: int) -> int:
        """Tell what it is set to."""
        return self.answers.get(label, value)


def readout(**changes: Any) -> Readout:
    """Return what the panel says."""
    times = {"simulate_ms": 1.25, "draw_ms": 20.0, "frame_ms": 33.3}
    return Readout(**{"backend": "cpu", "recording": False, "note": "", **times, **changes})


STYLES = [load_style(name) for name in ("wavy", "high-top fade", "3b")]


def test_panel_that_nobody_touches_changes_nothing():
    """Lay the panel out for every style that comes with hairkit: settings stay to the last bit."""
    for name in style_names():
        style = load_style(name)
        controls, before = Controls(wind=1.1, gust=0.3), Controls(wind=1.1, gust=0.3)
        for each in (controls, before):
            each.take(style)
        assert lay_panel(Widgets(), controls, [style], readout()) == []
        assert controls == before


def test_sliders_set_what_they_say():
    """Move every slider, typed numbers beyond the ends included: settings follow, within ends."""
    wanted = {"hold": 0.5, "droop [m]": 0.25, "shrinkage": 0.5, "wind [m/s]": 4.0, "gust": 1.0}
    controls = Controls()
    lay_panel(
        Widgets(style=3, **wanted, **{"Hair physics": -2.0, "Hair detail": 0.0}),
        controls,
        STYLES,
        readout(),
    )
    got = (controls.hold, controls.droop, controls.shrinkage, controls.wind, controls.gust)
    assert got == tuple(wanted.values())
    assert (controls.style, controls.physics, controls.detail) == (2, 0.0, 0.05)


def test_buttons_ask_for_what_keys_do():
    """Press each button: what it asks for is in the words of the keys."""
    labels = ["previous style", "next style", "next motion", "camera back", "screenshot", "record"]
    asked = lay_panel(Widgets(pressed=labels), Controls(), STYLES, readout())
    assert asked == [*labels[:3], "camera", *labels[4:]]
    stop = Widgets(pressed=["stop recording"])
    assert lay_panel(stop, Controls(), STYLES, readout(recording=True)) == ["record"]


def test_panel_tells_backend_times_and_what_happened():
    """Look for the backend, the three times, and a long note, which takes several lines."""
    widgets = Widgets()
    note = "/a/long/folder/of/pictures: cannot be written to (Read-only file system)"
    lay_panel(widgets, Controls(), STYLES, readout(note=note))
    said = "\n".join(widgets.lines)
    for part in ("backend    cpu", "simulate      1.2 ms", "draw         20.0 ms", "33.3 ms"):
        assert part in said
    assert "/a/long/folder" in said and "Read-only file" in said
    assert max(map(len, widgets.lines)) <= 42


def test_motions_follow_each_other_in_a_ring():
    """Ask for the next motion until the first comes again: each once."""
    ring = ["still"]
    while (name := next_motion(ring[-1])) != "still":
        ring.append(name)
    assert sorted(ring) == motions.motion_names()


def test_drawing_gets_quicker_until_it_is_in_time_and_sharper_where_there_is_time():
    """Let pictures take long, then no time: every level in turn, but for each one's first."""
    pace = Pace()
    sizes = []
    for spent in [1.0] * 8 + [0.03] * 4 + [0.001] * 8:
        sizes.append(pace.sharpness)
        pace.note(spent)
    quick, sharp = Pace.LEVELS[-1], Pace.FULL
    assert sizes[:2] == [sharp, sharp] and sizes[6:13] == [quick] * 7 and sizes[-1] == sharp


def test_meter_follows_without_flicker():
    """Measure 10 ms and then 20 ms: a little more at first, nearly all after a second."""
    meter = Meter()
    meter.note(0.01)
    assert meter.ms == pytest.approx(10.0)
    meter.note(0.02)
    assert 10.0 < meter.ms < 13.0
    for _ in range(60):
        meter.note(0.02)
    assert meter.ms == pytest.approx(20.0, abs=0.1)


def test_caption_is_at_the_foot_of_a_stretched_picture():
    """Write under a small picture: it has the window's size, and ink at its foot alone."""
    small = np.full((30, 40, 3), 200, np.uint8)
    large = shown(small, (WIDTH, HEIGHT), "two-strand twists", "Hair in twists of two")
    assert large.shape == (HEIGHT, WIDTH, 3)
    rows = np.flatnonzero((large < 120).any(axis=(1, 2)))
    assert len(rows) > 5 and rows.min() > 0.8 * HEIGHT
    assert (small == 200).all()


def test_files_are_numbered_and_never_taken_twice(tmp_path: Path):
    """Ask for free names beside files that are there, for styles with odd names too."""
    (tmp_path / "bantu-knots-001.png").touch()
    (tmp_path / "bantu-knots-003.png").touch()
    names = [free_path(tmp_path, "bantu knots", ending).name for ending in (".png", ".mp4")]
    assert names == ["bantu-knots-002.png", "bantu-knots-001.mp4"]
    assert free_path(tmp_path, "../my/style", ".png").parent == tmp_path


def test_style_of_ones_own_comes_first():
    """Begin with a style that comes with hairkit, with none, and with one's own."""
    count = len(style_names())
    styles, place = start.styles_to_show(load_style("Wavy"))
    assert (len(styles), styles[place].name) == (count, "wavy")
    assert start.styles_to_show(None)[0][0].name == "1a"
    mine = load_style("wavy").replace(length=0.123)
    styles, place = start.styles_to_show(mine)
    assert (len(styles), styles[place]) == (count + 1, mine)


# ---- no window


def refused(capsys: pytest.CaptureFixture[str], line: str) -> str:
    """Run a command that must be refused; return its one line on stderr."""
    assert cli.run(shlex.split(line)) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "Traceback" not in said
    return said


@pytest.mark.parametrize("line", ["view --head sphere", "view 3b", "demo --window"])
def test_without_vulkan_the_command_says_so(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    line: str,
):
    """Take Vulkan's drivers away: one line with what is missing and what to do; no file."""
    monkeypatch.chdir(tmp_path)
    for name in ("VK_ICD_FILENAMES", "VK_DRIVER_FILES"):
        monkeypatch.setenv(name, str(tmp_path / "none.json"))
    said = refused(capsys, line)
    assert "Vulkan" in said and "hairkit simulate STYLE --out hair.mp4" in said
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="displays are X11's on Linux")
@pytest.mark.parametrize(("display", "said"), [(None, "DISPLAY is not set"), (":987", ":987")])
def test_without_a_display_the_command_says_so(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    display: str | None,
    said: str,
):
    """Take the display away, or name one that is not there; GLFW would end the process."""
    monkeypatch.delenv("DISPLAY", raising=False)
    if display is not None:
        monkeypatch.setenv("DISPLAY", display)
    line = refused(capsys, "view --head sphere")
    assert (said in line or "Vulkan" in line) and "hairkit simulate" in line


def test_no_window_opens_in_a_notebook(monkeypatch: pytest.MonkeyPatch):
    """Pretend to be a notebook's kernel, then IPython in a terminal."""
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with pytest.raises(BackendError, match=r"notebook.*world\.show"):
        start.check_window()
    monkeypatch.setitem(
        sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace())
    )
    assert not start.in_notebook()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("view curlyy", "did you mean 'curly'"),
        ("view --head missing.glb", "missing.glb"),
        ("view --width 0", "--width: 0, expected"),
        ("view --guides 0", "--guides: 0, expected"),
        ("view --backend cudda", "did you mean 'cuda'"),
        ("demo --window --out missing/deeper", "no such folder"),
    ],
)
def test_wrong_options_are_refused(capsys: pytest.CaptureFixture[str], line: str, said: str):
    """Give each kind of wrong option once; none needs a display to be refused."""
    assert said in refused(capsys, line)


# ---- whole frames


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Drive the window through everything, in a process of its own; return what was seen."""
    try:
        require_window(hidden=True)
    except BackendError as error:
        pytest.skip(f"GGUI draws with Vulkan, and {error}")
    folder = tmp_path_factory.mktemp("view")
    child = subprocess.run(
        [sys.executable, str(CHILD), str(WIDTH), str(HEIGHT), "cpu"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert child.returncode == 0 and "DONE" in child.stdout, child.stderr
    facts = json.loads((folder / "facts.json").read_text())
    with np.load(folder / "shots.npz") as arrays:
        shots = {name: arrays[name].astype(int) for name in arrays.files}
    return SimpleNamespace(folder=folder, facts=facts, shots=shots)


PICTURE = slice(0, HEIGHT * 6 // 7)
"""Rows over the caption."""


def apart(one: np.ndarray, two: np.ndarray) -> float:
    """Return how far two pictures are from each other over their captions."""
    return float(np.abs(one[PICTURE] - two[PICTURE]).mean())


@pytest.mark.render
def test_window_shows_the_picture_of_the_renderer(played: SimpleNamespace):
    """Compare the window with `World.render`, as it is, upside down, mirrored and turned."""
    still, reference = played.shots["still"], played.shots["reference"]
    assert still.shape == (HEIGHT, WIDTH, 3)
    assert np.abs(still[PICTURE] - reference[PICTURE]).max() <= 1
    wrong = (reference[::-1], reference[:, ::-1], reference[::-1, ::-1], reference[..., ::-1])
    assert min(apart(still, picture) for picture in wrong) > 1.0
    assert played.facts["at rest"] == played.facts["still at rest"]


@pytest.mark.render
def test_panel_lies_over_the_picture(played: SimpleNamespace):
    """Look where the panel is: dark, with light letters; without it there is the background."""
    panel, still = played.shots["panel"], played.shots["still"]
    corner = (slice(20, HEIGHT - 20), slice(12, 60))
    assert np.median(panel[corner]) < 60 < 150 < np.median(still[corner])
    assert panel[corner].max() > 200


@pytest.mark.render
def test_hands_move_the_camera(played: SimpleNamespace):
    """Drag, drag with shift and with the right button, zoom: seen; and back to where it was."""
    facts = played.facts
    assert facts["turned by the panel"] == 0.0
    assert facts["turned"] == pytest.approx(3.5 * 0.1 * WIDTH / HEIGHT)
    assert facts["panned"][1] < -0.05 and facts["zoom"] > 1.01
    assert apart(played.shots["moved"], played.shots["still"]) > 5.0
    assert apart(played.shots["back"], played.shots["still"]) == 0.0


@pytest.mark.render
def test_styles_change_by_key_and_by_slider(played: SimpleNamespace):
    """Go on by a key, and by the slider once it is let go; the hair seen is another."""
    facts = played.facts
    assert facts["second"] == "3b"
    assert facts["held"] == ["3b", 2]
    assert facts["third"] == "short"
    assert facts["own"][0] == facts["own"][1] and facts["own"][2] == 1
    assert apart(played.shots["short"], played.shots["back"]) > 3.0


def test_hair_grows_again_when_a_slider_is_let_go(played: SimpleNamespace):
    """Hold the slider of droop, then let go and set shrinkage: grown once each, with both."""
    own = load_style("3b")
    assert played.facts["droop"] == [own.droop, own.droop, 0.5]
    assert played.facts["shrinkage"] == [own.shrinkage, own.shrinkage, 0.2]


def test_sliders_reach_the_world(played: SimpleNamespace):
    """Set wind, gust, hold, physics, motion and detail: the world has them, and hair moves."""
    facts = played.facts
    assert facts["air"] == pytest.approx([5.0, 0.75])
    assert facts["free"] == [0.25, 1.0]
    assert facts["blown"] > 0.01
    names = [next_motion("still"), next_motion(next_motion("still"))]
    assert [facts["motion"], facts["second motion"]] == names
    assert facts["nodded"] > 0.005
    # The quickest level draws a quarter of what the slider asks for, but not less than its end.
    assert facts["drawn"][0] >= 40 * 8 // 4 > facts["drawn"][1] > 0


@pytest.mark.render
def test_keys_keep_pictures_and_videos(played: SimpleNamespace):
    """Press P twice, R several times, and quit while a video runs: files, each complete."""
    facts, folder = played.facts, played.folder
    names = ["3b-001.png", "3b-002.png", "3b-001.mp4", "3b-002.mp4"]
    assert facts["written"] == names
    assert sorted(os.listdir(folder)) == sorted([*names, "facts.json", "shots.npz"])
    picture = iio.imread(folder / names[0])
    assert picture.shape == (HEIGHT, WIDTH, 3)
    # Without panel and caption: light to its corners.
    assert picture[:, :20].min() > 100 and picture[-8:, -40:].min() > 100
    assert facts["recording"] and facts["recorded step"] == pytest.approx(1 / 30)
    assert len(read_video(folder / names[2], width=WIDTH, height=HEIGHT)) == 6
    # A key pressed twice at once leaves no file; the window was closed while this one ran.
    assert "no frame" in facts["note"]
    assert len(read_video(folder / names[3], width=WIDTH, height=HEIGHT)) == 4


def test_style_that_does_not_grow_is_a_note_and_the_old_one_stays(played: SimpleNamespace):
    """Let growing fail: the panel says why, and the style is what it was."""
    assert played.facts["broken"] == ["does not grow here", "3b"]
    assert issubclass(StyleError, ValueError)


def test_escape_ends_the_loop_and_empties_the_world(played: SimpleNamespace):
    """Run the loop by a clock of the test's, and press Escape in its third frame."""
    assert played.facts["frames run"] == 3
    assert played.facts["left"] == 0


@pytest.mark.render
def test_lines_of_ggui_show_the_same_hairs(played: SimpleNamespace):
    """Draw one level hair with GGUI's lines: lit from end to end where our camera sees it."""
    lit = np.argwhere(played.shots["lines"].sum(axis=2) > 100)
    scale = played.facts["pixels a metre"]
    assert np.abs(lit[:, 0] - (HEIGHT / 2 - 0.1 * scale)).max() <= 1.5
    assert abs(lit[:, 1].min() - (WIDTH / 2 - 0.1 * scale)) <= 1.5
    assert abs(lit[:, 1].max() - (WIDTH / 2 + 0.05 * scale)) <= 1.5
