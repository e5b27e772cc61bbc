"""Whatever the README shows is run here as it stands there."""

import re
import shlex
from pathlib import Path

import gltf_scenes as g
import pytest
import trimesh

import hairkit as hk
from hairkit import cli
from hairkit.sway import HairManager

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Return the code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run everything in a folder of its own, on the CPU."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAIRKIT_BACKEND", "cpu")


@pytest.mark.slow
@pytest.mark.parametrize("code", blocks("python"))
def test_python_examples_run(code: str):
    """Run an example; its names must hold what its comments say."""
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    if "image" in names:
        assert getattr(names["image"], "shape", None) == (360, 480, 3)
    if "groom" in names:
        assert isinstance(names["groom"], hk.Groom)
    elif "moved" in names:
        assert getattr(names["moved"], "shape", None) == (192, 3)
    else:
        assert isinstance(names["manager"], HairManager)


@pytest.mark.slow
def test_command_examples_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Run the command-line examples in their order: later ones use files of earlier ones."""
    # What rigging is shown on is hair without bones: any mesh that hangs.
    points, faces = g.card_mesh()
    trimesh.Trimesh(points, faces, process=False).export(str(tmp_path / "hair.glb"))
    for block in blocks("sh"):
        if "hairkit simulate" not in block:
            continue
        for line in block.splitlines():
            words, _, target = line.partition(" > ")
            program, *arguments = shlex.split(words)
            assert program == "hairkit"
            capsys.readouterr()
            assert cli.run(arguments) == 0, capsys.readouterr().err
            if target:
                Path(target).write_text(capsys.readouterr().out)
    made = {path.name for path in tmp_path.iterdir()} - {"hair.glb"}
    styles = {"mine.toml", "sheet.png", "curly.npz", "windy.png", "again.npz", "last.hair"}
    fitted = {"target.npz", "fitted.toml", "fit.png"}
    assert made == styles | fitted | {"rigged.glb", "plan.png", "swaying.glb"}


def test_two_commands_set_up_everything_themselves():
    """Find the two commands for a fresh machine: single lines that make their own environment."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    fresh = [line for line in lines if line.startswith("python3 -m venv .venv && ")]
    assert len(fresh) == 2
    assert fresh[0].endswith("/hairkit demo")
    assert fresh[1].endswith("-m pytest")


def test_known_limits_are_named():
    """Look for what hairkit does not do."""
    limits = README.split("## Known limits")[1].split("\n## ")[0]
    assert "do not collide with each other" in limits
    assert "Only guide points collide" in limits


def test_pictures_are_there():
    """Follow the README's pictures."""
    pictures = re.findall(r"!\[.*\]\((.*)\)", README)
    assert pictures
    assert all((ROOT / picture).is_file() for picture in pictures)
