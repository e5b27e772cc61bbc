"""The command line: what it writes, and how it says no."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
from videos import read_video

import hairkit as hk
from hairkit import cli, cli_simulate

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every command in a folder of its own, on the CPU, which every machine has."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAIRKIT_BACKEND", "cpu")


def refused(capsys: pytest.CaptureFixture[str], line: str) -> str:
    """Run a command that must be refused; return its one line on stderr."""
    before = sorted(os.listdir())
    assert cli.run(shlex.split(line)) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1, said.err
    assert said.err.startswith("hairkit: ")
    assert "Traceback" not in said.err
    assert sorted(os.listdir()) == before
    return said.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("simulate curlyy --out a.npz", r"'curlyy'.*did you mean 'curly'"),
        ("simulate missing.toml --out a.npz", r"missing\.toml"),
        ("simulate missing.npz --out a.npz", r"missing\.npz: no such file"),
        ("simulate long --head missing.glb --out a.npz", r"missing\.glb.*no such file"),
        ("simulate long --head sphere --guides 0 --out a.npz", r"--guides: 0, expected"),
        ("simulate long --head sphere --guides -5 --out a.npz", r"--guides: -5, expected"),
        ("simulate long --head sphere --guides many --out a.npz", r"--guides.*integer"),
        ("simulate long --head sphere --seconds 0 --out a.npz", r"--seconds: 0, expected"),
        ("simulate long --head sphere --seconds -1 --out a.npz", r"--seconds: -1, expected"),
        ("simulate long --head sphere --seconds nan --out a.npz", r"--seconds: nan, expected"),
        ("simulate long --head sphere --seconds inf --out a.npz", r"--seconds: inf, expected"),
        ("simulate long --head sphere --rate 0 --out a.npz", r"--rate: 0, expected"),
        ("simulate long --head sphere --wind 0 nan 0 --out a.npz", r"--wind Y: nan, expected"),
        ("simulate long --head sphere --wind 1 2 --out a.npz", r"--wind"),
        ("simulate long --head sphere --width 0 --out a.png", r"--width: 0, expected"),
        ("simulate long --head sphere --out a.xyz", r"'\.xyz'.*\.mp4, \.png, \.npz"),
        ("simulate long --head sphere --out a", r"ending 'missing'"),
        ("simulate long --head sphere --out missing/a.npz", r"missing: no such folder"),
        ("simulate long --head sphere --out /proc/self/a.npz", r"/proc/self: cannot be written"),
        ("simulate long --head sphere --motion nodd --out a.npz", r"'nodd'.*did you mean 'nod'"),
        ("simulate long --head sphere --backend cudda --out a.npz", r"'cudda'.*mean 'cuda'"),
        ("simulate long --head h.obj --units furlong --out a.npz", r"furlong"),
        ("simulate long --head h.obj --up w --out a.npz", r"up: .*'w'"),
        ("simulate long", r"--out"),
        ("simulate --out a.npz", r"(?i)missing argument.*STYLE"),
        ("simulate long --oot a.npz", r"--oot"),
        ("styles curlyy", r"did you mean 'curly'"),
        ("styel", r"(?i)no such command 'styel'"),
        ("cache", r"(?i)missing command"),
        ("demo --out missing/deeper", r"missing/deeper: no such folder"),
        ("demo --out /proc/self", r"cannot be written"),
        ("bench --case long_4000", r"'long_4000'.*did you mean 'long_400'"),
        ("bench --case long_400 --backend cudda", r"'cudda'.*mean 'cuda'"),
        ("bench --json a.txt", r"'\.txt'.*\.json"),
        ("bench --repeats 1", r"--repeats: 1, expected"),
        ("bench --compare a.json b.json", r"a\.json: no such file"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], line: str, message: str
):
    """Give each kind of wrong input once; exit 2, one line, nothing written."""
    Path("h.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    assert re.search(message, refused(capsys, line))


def test_style_file_with_a_wrong_key_is_refused(capsys: pytest.CaptureFixture[str]):
    """Misspell a key in a style file; file, key and the nearest right one are named."""
    Path("mine.toml").write_text('name = "mine"\n[motion]\nhould = 0.4\n')
    said = refused(capsys, "simulate mine.toml --head sphere --out a.npz")
    assert all(word in said for word in ("mine.toml", "should"[1:], "hold"))


def test_style_file_with_a_wrong_value_is_refused(capsys: pytest.CaptureFixture[str]):
    """Put a value out of its range; file, key, value and range are named."""
    Path("mine.toml").write_text('name = "mine"\n[motion]\nhold = 1.5\n')
    said = refused(capsys, "simulate mine.toml --head sphere --out a.npz")
    assert all(word in said for word in ("mine.toml", "hold", "1.5", "0 to 1"))


def test_mesh_without_faces_is_refused(capsys: pytest.CaptureFixture[str]):
    """Load a head that is points alone, one that is empty, and one that is no mesh at all."""
    Path("points.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\n")
    Path("empty.obj").write_text("")
    Path("broken.glb").write_bytes(b"glTF\x02\0\0\0")
    for name in ("points.obj", "empty.obj", "broken.glb"):
        assert name in refused(capsys, f"simulate long --head {name} --out a.npz")


def test_head_without_scalp_is_refused(capsys: pytest.CaptureFixture[str]):
    """Load a single triangle that faces down: there is nowhere for hair to grow."""
    Path("flat.obj").write_text("v 0 0 0\nv 0.1 0 0\nv 0 0 0.1\nf 1 2 3\n")
    assert "flat.obj" in refused(capsys, "simulate long --head flat.obj --out a.npz")


def test_debug_shows_where_an_error_arose():
    """Repeat a refused command with --debug at its end; the error comes through."""
    with pytest.raises(hk.HairkitError):
        cli.run(["styles", "curlyy", "--debug"])


def test_bugs_of_ours_are_one_line_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Let a command fail in a way nobody foresaw: exit 1, one line, no traceback."""

    def broken() -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("hairkit.style.style_names", broken)
    assert cli.run(["styles"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_no_words_print_the_help(capsys: pytest.CaptureFixture[str]):
    """Run the bare command; it must name every command and succeed."""
    assert cli.run([]) == 0
    said = capsys.readouterr().out
    for command in ("demo", "simulate", "view", "catalog", "styles", "backends", "bench", "cache"):
        assert command in said


def test_version_names_what_results_depend_on(capsys: pytest.CaptureFixture[str]):
    """Print the versions."""
    assert cli.run(["--version"]) == 0
    assert re.match(r"hairkit .*, taichi 1\.7\.4, numpy 2\.", capsys.readouterr().out)


def test_help_names_every_motion():
    """Hold the help text, which loads nothing, to the motions that there are."""
    assert cli_simulate.MOTIONS.split(", ") == hk.motions.motion_names()


def test_styles_lists_every_style(capsys: pytest.CaptureFixture[str]):
    """List the styles."""
    assert cli.run(["styles"]) == 0
    listed = [
        line.split("  ")[0] for line in capsys.readouterr().out.splitlines()[1:] if line[0] != " "
    ]
    assert listed == hk.style_names()


def test_printed_style_is_a_style_file(capsys: pytest.CaptureFixture[str]):
    """Print a style, keep it as a file, and load it: nothing may be lost."""
    assert cli.run(["styles", "Curly"]) == 0
    Path("mine.toml").write_text(capsys.readouterr().out)
    assert hk.load_style("mine.toml") == hk.load_style("curly")


def test_backends_shows_a_row_for_each(capsys: pytest.CaptureFixture[str]):
    """Probe the backends; the CPU must work everywhere."""
    assert cli.run(["backends"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"cpu\s+yes", said)
    assert re.search(r"cuda\s+(yes|no)\s+\S", said)
    assert re.search(r"vulkan\s+(yes|no)\s+\S", said)


def test_cache_clear_leaves_other_files_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Point the cache at a folder that holds more than the cache; only the cache may go."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("HAIRKIT_CACHE", str(folder))
    (folder / "taichi-1.7.4").mkdir(parents=True)
    (folder / "grids").mkdir()
    for name in ("taichi-1.7.4/kernel.tic", "grids/a.npy", "probe-cpu-0.json", "thesis.txt"):
        (folder / name).write_bytes(b"x" * 1000)
    assert cli.run(["cache", "clear"]) == 0
    assert os.listdir(folder) == ["thesis.txt"]
    assert "removed 0.0 MB" in capsys.readouterr().out


def test_simulate_writes_strands_that_start_another_run(capsys: pytest.CaptureFixture[str]):
    """Simulate to .npz, look inside, and simulate from that file again."""
    line = (
        "simulate short --head sphere --motion nod --seconds 0.25 --guides 12 --seed 3 --out a.npz"
    )
    assert cli.run(shlex.split(line)) == 0
    assert "wrote a.npz: 12 guides, 16 frames" in capsys.readouterr().out
    strands = hk.load_strands("a.npz")
    assert strands.points.shape == (16, strands.counts.sum(), 3)
    assert len(strands.counts) == 12
    np.testing.assert_allclose(strands.times, np.arange(16) / 60)
    assert strands.head_pose is not None
    np.testing.assert_array_equal(strands.head_pose[0], np.eye(4))
    assert np.abs(strands.points[-1] - strands.points[0]).max() > 0.005
    with np.load("a.npz", allow_pickle=False) as arrays:
        assert set(arrays) >= {"style", "roots", "directions", "lengths", "seed", "head"}

    again = "simulate a.npz --motion nod --seconds 0.25 --out b.npz"
    assert cli.run(shlex.split(again)) == 0
    twin = hk.load_strands("b.npz")
    np.testing.assert_array_equal(twin.counts, strands.counts)
    np.testing.assert_allclose(twin.points, strands.points, atol=1e-6)
    assert sorted(os.listdir()) == ["a.npz", "b.npz"]


def test_wind_blows_hair_downwind():
    """Simulate with and without wind along +X; tips must end further along +X in it."""
    ends = {}
    for name, wind in (("calm", "0 0 0"), ("windy", "6 0 0")):
        line = f"simulate straight --head sphere --motion still --seconds 0.5 --wind {wind}"
        assert cli.run([*shlex.split(line), "--out", f"{name}.npz"]) == 0
        strands = hk.load_strands(f"{name}.npz")
        ends[name] = strands.points[-1, np.cumsum(strands.counts) - 1, 0].mean()
    assert ends["windy"] > ends["calm"] + 0.02


@pytest.mark.render
def test_simulate_writes_a_picture_and_a_video():
    """Simulate to .png and .mp4; hair must be on them, and the video must move."""
    line = "simulate wavy --head sphere --seconds 0.5 --guides 24 --width 160 --height 120"
    assert cli.run([*shlex.split(line), "--out", "a.png"]) == 0
    picture = iio.imread("a.png")
    assert picture.shape == (120, 160, 3)
    assert picture.std() > 5
    assert cli.run([*shlex.split(line), "--rate", "10", "--out", "a.mp4"]) == 0
    frames = read_video(Path("a.mp4"), width=160, height=120).astype(int)
    assert len(frames) == 6
    assert np.abs(frames[-1] - frames[0]).max() > 40
    assert sorted(os.listdir()) == ["a.mp4", "a.png"]


@pytest.mark.slow
@pytest.mark.render
def test_demo_makes_a_picture_and_a_video():
    """Make the demo, short and small, on the head that comes with hairkit."""
    from hairkit.demo import make_demo

    made = list(make_demo(".", backend="cpu", width=320, height=160, seconds=0.3))
    assert [path.name for path in made] == ["demo.png", "demo.mp4"]
    picture = iio.imread("demo.png")
    assert picture.shape == (160, 320, 3)
    assert picture.std() > 5
    assert len(read_video(Path("demo.mp4"), width=240, height=120)) == 6


@pytest.mark.slow
def test_interrupt_leaves_nothing_half_written(tmp_path: Path):
    """Send Ctrl-C to a command in the middle of its work: exit 130, one line, no file."""
    line = "simulate short --head sphere --seconds 600 --guides 8 --out a.npz"
    process = subprocess.Popen(
        [sys.executable, "-m", "hairkit", *shlex.split(line)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert "Traceback" not in said
    assert os.listdir(tmp_path) == []
