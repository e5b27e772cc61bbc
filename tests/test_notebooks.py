"""The notebooks: kept without output, text before code, and run from top to bottom."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

PATIENCE_S = 600
"""Longest that one cell may take [s], on a machine that does much else: so that a test ends."""

PICTURES = {
    "1-first-steps": 3,
    "2-tune-a-style": 3,
    "3-fit-a-style": 3,
    "4-rig-a-mesh": 3,
}
"""How many pictures each shows, sliders' included."""

WORDS = {
    "1-first-steps": ["largest strain 0.", "deepest penetration 0.0", "same groom: True"],
    "2-tune-a-style": ["hold = 0.04", "curl = 4.0"],
    "3-fit-a-style": ["converged", "undetermined: ('damping', 'width')", "sag-free: 0.0"],
    "4-rig-a-mesh": ["21 bones", "same bones: True"],
}
"""What each must have printed."""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep what Jupyter and matplotlib remember out of the home folder."""
    folder = tmp_path_factory.mktemp("settings")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(folder / name.lower()))
        patch.setenv("MPLCONFIGDIR", str(folder / "matplotlib"))
        yield folder


def read(path: Path) -> Any:
    """Read a notebook as it is in the file; its cells are attribute dictionaries."""
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def test_there_are_four():
    """Find the four, in the order in which they are read."""
    assert [path.stem for path in NOTEBOOKS] == list(PICTURES)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_kept_without_output(path: Path):
    """Read the file: valid, no output, no counts, no one's editor in it."""
    notebook = read(path)
    nbformat.validate(notebook)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert notebook.metadata.language_info == {"name": "python"}
    for cell in notebook.cells:
        assert cell.metadata == {}
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_text_before_each_cell(path: Path):
    """Look before each code cell: a paragraph, not only a heading."""
    cells = read(path).cells
    assert cells[0].source.startswith("# ")
    for before, cell in itertools.pairwise(cells):
        if cell.cell_type == "code":
            assert before.cell_type == "markdown", cell.source
            text = [line for line in before.source.splitlines() if not line.startswith("#")]
            assert len(" ".join(text).split()) >= 10, before.source


@pytest.mark.slow
@pytest.mark.render
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_from_top_to_bottom(
    path: Path, tmp_path: Path, settings: Path, monkeypatch: pytest.MonkeyPatch
):
    """Run all cells in an empty folder, without a display and a front end."""
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("MPLBACKEND", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = read(path)
    NotebookClient(
        notebook,
        timeout=PATIENCE_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()

    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in code for output in cell.outputs]
    # What a slider's function shows, or raises, is in the state of its widget.
    widgets = notebook.metadata.get("widgets", {})
    state = widgets.get("application/vnd.jupyter.widget-state+json", {}).get("state", {})
    for widget in state.values():
        outputs += widget["state"].get("outputs", ())
    assert [output for output in outputs if output["output_type"] == "error"] == []
    streams = [output for output in outputs if output["output_type"] == "stream"]
    noise = "".join(output["text"] for output in streams if output["name"] == "stderr")
    assert "Warning" not in noise and "Taichi" not in noise and "shell" not in noise, noise

    said = "".join(output["text"] for output in streams if output["name"] == "stdout")
    assert [words for words in WORDS[path.stem] if words not in said] == [], said
    assert sum(map(has_picture, outputs)) == PICTURES[path.stem]
    assert list(tmp_path.iterdir()) == []


def has_picture(output: Any) -> bool:
    """Return whether an output is a picture."""
    return any(kind.startswith("image/") for kind in output.get("data", {}))
