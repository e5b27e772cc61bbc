"""The catalogue: what is on the sheet, where, and how the command says no."""

import os
import re
import shlex
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest

from hairkit import cli
from hairkit.catalog import GROUND, PAPER, catalog_order, contact_sheet, gap, label_height
from hairkit.style import style_names

SIZE = 64
PAIR = 2 * SIZE


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """Make one small sheet with the command for all tests: long, an own style, and gel below."""
    folder = tmp_path_factory.mktemp("sheet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HAIRKIT_BACKEND", "cpu")
        Path("mine.toml").write_text('name = "mine"\n[look]\nroot_color = [1, 0.05, 0.05]\n')
        line = "catalog --style long --style mine.toml --style gel --columns 2 --head sphere"
        more = f"--guides 24 --seconds 0.2 --size {SIZE} --out sheet.png"
        assert cli.run(shlex.split(f"{line} {more}")) == 0
        assert sorted(os.listdir()) == ["mine.toml", "sheet.png"]
    return iio.imread(folder / "sheet.png")


def pictures(sheet: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return front and back of each style; rows are found by the strips of paper between them."""
    paper = (sheet[:, gap(PAIR)] == PAPER).all(axis=1)
    edges = np.flatnonzero(np.diff(paper.astype(int)))
    found = []
    for top, bottom in edges.reshape(-1, 2) + 1:
        for left in range(gap(PAIR), sheet.shape[1] - PAIR, PAIR + gap(PAIR)):
            pair = sheet[top:bottom, left : left + PAIR]
            if (pair != PAPER).any():
                found.append((pair[:, :SIZE], pair[:, SIZE:]))
    return found


@pytest.mark.render
def test_sheet_has_two_pictures_of_each_style(sheet: np.ndarray):
    """Count pictures, and compare the sheet's size with the sum of its parts."""
    found = pictures(sheet)
    assert len(found) == 3
    rows = len(found[0][0]) + len(found[2][0])
    height = rows + 2 * label_height(PAIR) + 3 * gap(PAIR)
    assert sheet.shape == (height, 2 * PAIR + 3 * gap(PAIR), 3)
    assert sheet.dtype == np.uint8
    # Long hair makes its own row tall, and only that.
    assert len(found[0][0]) > 1.3 * len(found[2][0])


@pytest.mark.render
def test_front_and_back_differ(sheet: np.ndarray):
    """Compare the pictures of each style; the face is bare, and the back of the head is not."""
    for front, back in pictures(sheet):
        assert np.abs(front.astype(int) - back.astype(int)).mean() > 3
    (_, _), (front, back), (_, _) = pictures(sheet)
    red = [(view[..., 0] > view[..., 1].astype(int) + 60).mean() for view in (front, back)]
    assert red[1] > 1.2 * red[0]


@pytest.mark.render
def test_everything_shown_is_inside_its_picture(sheet: np.ndarray):
    """Look at the edges of all pictures: the ground alone, and the same in all."""
    for view in (view for pair in pictures(sheet) for view in pair):
        edges = np.concatenate([view[0], view[-1], view[:, 0], view[:, -1]])
        assert (edges == GROUND).all()
        assert (view != GROUND).any(axis=2).mean() > 0.1


def test_names_are_on_the_sheet():
    """Label equal pictures: strips differ as names do, and names stay in their strip."""
    picture = np.full((20, 240, 3), GROUND, np.uint8)
    sheet = contact_sheet(["4c", "long", "long", "n" * 64], [picture] * 4, columns=2)
    strip, space = label_height(240), gap(240)
    across = [slice(space, space + 240), slice(2 * space + 240, 2 * space + 480)]
    down = [slice(space + row * (20 + strip + space), None) for row in (0, 1)]
    labels = [sheet[rows][:strip, columns] for rows in down for columns in across]
    for label in labels:
        assert (label < 200).any()
    assert (labels[0] != labels[1]).any()
    assert (labels[1] == labels[2]).all()
    # The longest name that there may be is drawn smaller, not cut off.
    assert (labels[3][:, [0, -1]] > 200).all()
    for rows in down:
        for columns in across:
            assert (sheet[rows][strip : strip + 20, columns] == GROUND).all()


def test_hair_types_come_first():
    """Order names; a digit alone does not make a hair type."""
    assert catalog_order(["wavy", "4a", "afro", "2 braids", "1c"]) == [
        *("1c", "4a"),
        *("2 braids", "afro", "wavy"),
    ]
    assert sorted(catalog_order(style_names())) == style_names()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", r"--out"),
        ("--out a.jpg", r"'\.jpg'.*\.png"),
        ("--out missing/a.png", r"missing: no such folder"),
        ("--style curlyy --out a.png", r"'curlyy'.*did you mean 'curly'"),
        ("--style long --style missing.toml --out a.png", r"missing\.toml"),
        ("--head missing.glb --out a.png", r"missing\.glb.*no such file"),
        ("--head sphere --backend cudda --out a.png", r"'cudda'.*mean 'cuda'"),
        ("--guides 0 --out a.png", r"--guides: 0, expected"),
        ("--size 15 --out a.png", r"--size: 15, expected a whole number from 16"),
        ("--size big --out a.png", r"--size.*integer"),
        ("--columns 0 --out a.png", r"--columns: 0, expected"),
        ("--seconds nan --out a.png", r"--seconds: nan, expected"),
        ("--seed -1 --out a.png", r"--seed: -1, expected"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    message: str,
):
    """Give each kind of wrong input once; exit 2, one line, no file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAIRKIT_BACKEND", "cpu")
    assert cli.run(["catalog", *shlex.split(line)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.startswith("hairkit: "), said
    assert re.search(message, said)
    assert os.listdir() == []
