"""The wheel holds all that a simulation needs: installed into an empty environment, run there."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

PROGRAM = """
import hairkit as hk, numpy as np, sys
from pathlib import Path
assert Path(hk.__file__).is_relative_to(sys.prefix), hk.__file__
head = hk.Head.load(hk.paths.assets_dir() / "head.glb")
world = hk.World("cpu")
hair = world.add_hair(hk.grow(hk.load_style("short"), head, guides=8))
start = hair.points()
for pose in hk.motions.nod(seconds=0.2, rate=60):
    hair.set_head(pose)
    world.step(1 / 60)
moved = np.abs(hair.points() - start).max()
assert np.isfinite(moved) and moved > 1e-3, moved
print("moved by", moved, "styles", *hk.style_names())
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command, show what it said if it fails, and return its output."""
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel once."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_wheel_holds_styles_assets_and_licence(wheel: Path):
    """Compare the wheel's files with the checkout's."""
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("styles", "assets"):
        for path in (ROOT / folder).iterdir():
            if path.is_file():
                assert f"hairkit/{folder}/{path.name}" in names
    for path in (ROOT / "hairkit").rglob("*.py"):
        assert path.relative_to(ROOT).as_posix() in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith("tests/") or "__pycache__" in name for name in names)


@pytest.mark.slow
def test_wheel_simulates_in_an_empty_environment(wheel: Path, tmp_path: Path):
    """Install the wheel with its dependencies where nothing else is, and simulate there."""
    venv.create(tmp_path / "venv", with_pip=True)
    binaries = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    run(binaries / "python", "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    said = run(binaries / "python", "-c", PROGRAM, cwd=tmp_path)
    assert "moved by" in said
    assert "curly" in said
    out = tmp_path / "a.npz"
    line = ("simulate", "fur", "--guides", "8", "--seconds", "0.2", "--backend", "cpu")
    run(binaries / "hairkit", *line, "--out", out, cwd=tmp_path)
    assert out.stat().st_size > 1000
