"""Benchmarks run the code that users run, and say what they measured."""

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from hairkit import bench, bench_report, cli
from hairkit.errors import FileError, HairkitError

CONTRACT = {
    "case",
    "backend",
    "lanes",
    "guides",
    "points",
    "substeps",
    "ms_per_step",
    "ns_per_point_step",
    "max_stretch",
    "max_penetration_mm",
    "compile_s",
}


def result(case: str = "long_400", *, ms: float = 1.0) -> bench.Result:
    """Return a made-up result."""
    return bench.Result(
        case=case,
        backend="cpu",
        lanes=8,
        guides=400,
        points=7200,
        substeps=2,
        ms_per_step=ms,
        ns_per_point_step=ms * 1e6 / 7200,
        max_stretch=0.004,
        max_penetration_mm=0.0,
        compile_s=9.0,
        ms_spread=0.1,
        repeats=5,
        steps=100,
        threads=1,
        device="a processor",
        versions="hairkit 0",
    )


def small_case(monkeypatch: pytest.MonkeyPatch, **changes: object) -> bench.Case:
    """Put a case that takes a moment in the list of cases."""
    # All threads: another number would close the session that the other tests share.
    changes = {"name": "small", "guides": 6, "points": 8, "threads": None, **changes}
    case = replace(bench.case_named("straight_100"), **changes)
    monkeypatch.setattr(bench, "CASES", (case,))
    return case


def test_cases_have_the_sizes_of_the_seeds_table():
    """Count guide points: the seed's table says 1,400, 7,200, 10,400 and 28,800."""
    totals = {case.name: case.heads * case.guides * case.points for case in bench.CASES}
    assert totals["straight_100"] == 1400
    assert totals["long_400"] == 7200
    assert totals["curly_400"] == 10_400
    assert totals["heads_8"] == 28_800
    assert totals["strands_1600"] == 28_800
    assert len(totals) == len(bench.CASES)


def test_gpu_case_runs_only_when_it_is_named():
    """Look for the case that would take a CPU for ever."""
    assert [case.name for case in bench.CASES if case.asked] == ["gpu_100k"]


@pytest.mark.parametrize("case", bench.CASES, ids=lambda case: case.name)
def test_heads_move_rigidly_and_each_in_its_own_way(case: bench.Case):
    """Check the poses that a case sends: rotations, never at rest, heads well apart."""
    for head in range(case.heads):
        poses = np.array([bench.head_pose(case, head, frame) for frame in range(120)])
        turns = poses[:, :3, :3]
        np.testing.assert_allclose(
            turns @ turns.transpose(0, 2, 1), np.tile(np.eye(3), (120, 1, 1)), atol=1e-12
        )
        assert np.abs(np.diff(poses, axis=0)).max(axis=(1, 2)).min() > 1e-3
    if case.heads > 1:
        apart = bench.head_pose(case, 1, 7) - bench.head_pose(case, 0, 7)
        assert np.linalg.norm(apart[:3, 3]) > 0.4
        assert np.abs(apart[:3, :3]).max() > 0.01


def test_case_names_are_forgiving_and_checked():
    """Ask for a case with a dash, and for one that is not there."""
    assert bench.case_named("Straight-100").name == "straight_100"
    with pytest.raises(HairkitError, match="did you mean 'curly_400'"):
        bench.case_named("curly_40")


@pytest.mark.parametrize("heads", [1, 2])
def test_a_case_measures_what_it_says(monkeypatch: pytest.MonkeyPatch, heads: int):
    """Run a small case; the counts must agree, the hair must be whole and the motion the same."""
    case = small_case(monkeypatch, heads=heads)
    found, points = bench.run_case(case.name, "cpu", repeats=5, steps=3)
    assert found.case == "small"
    assert found.backend == "cpu"
    assert found.guides == 6 * heads
    assert found.points == 48 * heads
    assert found.ms_per_step > 0
    assert found.ns_per_point_step == pytest.approx(found.ms_per_step * 1e6 / found.points)
    assert 0 <= found.max_stretch < 0.05
    assert 0 <= found.max_penetration_mm < 1
    assert points.shape == (48, 3)
    _, again = bench.run_case(case.name, "cpu", repeats=5, steps=3)
    np.testing.assert_array_equal(again, points)


def test_stretch_and_depth_are_seen(monkeypatch: pytest.MonkeyPatch):
    """Pull the hair by a tenth and push it into the head by a centimetre; both must be reported."""
    case = small_case(monkeypatch)
    scene = bench.Scene(case, backend="cpu")
    pose = bench.head_pose(case, 0, 0)
    rest = scene.groom.points @ pose[:3, :3].T + pose[:3, 3]
    monkeypatch.setattr(scene.hairs[0], "points", lambda: rest)
    assert scene.stretch_and_depth() == pytest.approx((0.0, 0.0), abs=1e-6)
    monkeypatch.setattr(scene.hairs[0], "points", lambda: rest * 1.1)
    assert scene.stretch_and_depth()[0] == pytest.approx(0.1, abs=1e-6)
    inside = rest.copy()
    inside[2] = [0.0, 0.09, 0.0]
    monkeypatch.setattr(scene.hairs[0], "points", lambda: inside)
    assert scene.stretch_and_depth()[1] == pytest.approx(0.01, abs=1e-6)
    scene.world.close()


def test_json_has_the_keys_that_scripts_rely_on(tmp_path: Path):
    """Write results and read the file as a script would."""
    bench.save_results([result(), result("curly_400")], tmp_path / "a.json")
    rows = json.loads((tmp_path / "a.json").read_text())
    assert isinstance(rows, list)
    assert [row["case"] for row in rows] == ["long_400", "curly_400"]
    assert all(set(row) >= CONTRACT for row in rows)
    assert {field.name for field in fields(bench.Result)} >= CONTRACT


def test_comparison_shows_the_ratio_and_what_has_no_partner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Compare two files of which one has a case more."""
    bench.save_results([result(ms=2.0)], tmp_path / "a.json")
    bench.save_results([result(ms=3.0), result("curly_400")], tmp_path / "b.json")
    assert cli.run(["bench", "--compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 0
    said = capsys.readouterr().out
    assert "1.50" in said
    assert "only in one file: curly_400" in said


@pytest.mark.parametrize("content", ["", "{}", "[1]", '[{"case": "a"}]', '{"case": 1}'])
def test_foreign_json_is_refused(tmp_path: Path, content: str):
    """Read files that are no results."""
    (tmp_path / "a.json").write_text(content)
    if content == "{}":
        assert bench.load_results(tmp_path / "a.json") == {}
        return
    with pytest.raises(FileError, match=r"a\.json"):
        bench.load_results(tmp_path / "a.json")


def test_files_without_a_common_case_are_refused():
    """Compare results that have nothing in common."""
    row = {"ms_per_step": 1.0, "max_stretch": 0.0}
    with pytest.raises(HairkitError, match="no case"):
        bench_report.print_comparison(Console(), {("a", "cpu"): row}, {("b", "cpu"): row})


def test_difference_of_motions_is_relative_to_the_strand():
    """Shift a motion by a centimetre: that is a share of the strand's length."""
    case = replace(bench.case_named("long_400"), length=0.5)
    points = np.zeros((9, 3))
    middle, largest = bench.difference(points, points + np.array([0.01, 0.0, 0.0]), case)
    assert middle == pytest.approx(0.02)
    assert largest == pytest.approx(0.02)


@pytest.mark.slow
def test_bench_prints_a_table_and_writes_its_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Run the smallest case from the command line, in its own process."""
    path = tmp_path / "a.json"
    line = ["bench", "--case", "straight_100", "--backend", "cpu", "--repeats", "5"]
    assert cli.run([*line, "--json", str(path)]) == 0
    said = capsys.readouterr().out
    assert "straight_100" in said
    assert "0.12" in said
    (row,) = json.loads(path.read_text())
    assert row["points"] == 1400
    assert row["threads"] == 1
    assert row["substeps"] == 2


def test_fits_are_counted_beside_other_searches(capsys: pytest.CaptureFixture[str]):
    """Count simulations of one small problem: derivatives find what the others do not in time."""
    from hairkit.bench_fit import count_fits, print_fits

    rows = count_fits("cpu", targets=1, limit=60, guides=3)
    assert [(row.parameters, row.method) for row in rows] == [
        (count, method) for count in (3, 8) for method in ("gradient", "Nelder-Mead", "CMA-ES")
    ]
    assert rows[0].found == 1
    assert rows[1].found == rows[2].found == 0
    assert 0 < rows[0].simulations < rows[1].simulations == rows[2].simulations == 60
    print_fits(Console(width=120), rows)
    assert "Nelder-Mead" in capsys.readouterr().out
