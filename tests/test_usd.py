"""OpenUSD files: what other tools wrote is read as they draw it, and what we write they read."""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scene_files
from scene_files import COUNTS, FIELDS, full_set, given, opened_in
from scipy.interpolate import BSpline

from hairkit.errors import FileError, FileWarning
from hairkit.io import usd
from hairkit.io.strand_set import StrandSet

Gf, Usd, UsdGeom, Vt, Sdf = (
    importlib.import_module(f"pxr.{name}") for name in ("Gf", "Usd", "UsdGeom", "Vt", "Sdf")
)


def save(path: Path, strands: StrandSet, **options: Any) -> Path:
    """Write every frame of a set."""
    with usd.writer(path, strands, len(strands.times), **options) as add:
        for points, time in zip(strands.points, strands.times, strict=True):
            add(points, float(time))
    return path


def curves_file(path: Path, points: Any, counts: Any, **attributes: Any) -> Path:
    """Write curves with the library alone, in metres and +Y up unless changed."""
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    define(stage, "/curves", points, counts, **attributes)
    stage.Save()
    return path


def define(
    stage: Any,
    name: str,
    points: Any,
    counts: Any,
    *,
    kind: str = "linear",
    basis: str = "bezier",
    wrap: str = "nonperiodic",
) -> Any:
    """Define one curves prim."""
    curves = UsdGeom.BasisCurves.Define(stage, name)
    curves.CreateTypeAttr(kind)
    curves.CreateBasisAttr(basis)
    curves.CreateWrapAttr(wrap)
    curves.CreateCurveVertexCountsAttr([int(count) for count in counts])
    curves.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(np.asarray(points, np.float32)))
    return curves


def random_points(number: int) -> np.ndarray:
    """Return points at random."""
    return np.random.default_rng(number).normal(size=(number, 3)).astype(np.float32)


@pytest.mark.parametrize("ending", usd.ENDINGS)
@pytest.mark.parametrize("frames", [1, 3])
def test_strands_come_back_as_they_were(tmp_path: Path, ending: str, frames: int):
    """Write and read everything a set can have; floats are the same bit for bit."""
    strands = full_set(frames, start=0.5)
    back = usd.read(save(tmp_path / f"a{ending}", strands))
    for name in (
        "points",
        "counts",
        "widths",
        "root_uv",
        "root_normals",
        "ids",
        "groups",
        "guides",
    ):
        np.testing.assert_array_equal(getattr(back, name), getattr(strands, name), err_msg=name)
    np.testing.assert_allclose(given(back.colors), given(strands.colors), atol=1e-6)
    np.testing.assert_allclose(back.times, strands.times, atol=1e-12)
    assert os.listdir(tmp_path) == [f"a{ending}"]


def test_bare_strands_bring_nothing_else(tmp_path: Path):
    """Write points only; no field may appear."""
    strands = StrandSet(points=random_points(5)[None], counts=np.array([2, 3]))
    back = usd.read(save(tmp_path / "a.usdc", strands))
    np.testing.assert_array_equal(back.points, strands.points)
    assert all(getattr(back, name) is None for name in FIELDS)


@pytest.mark.parametrize("ending", usd.ENDINGS)
@pytest.mark.parametrize("physics", [False, True])
def test_written_files_pass_the_libraries_validators(tmp_path: Path, ending: str, physics: bool):
    """Run every validator that the library has, and read the prim with its own schema."""
    validation = importlib.import_module("pxr.UsdValidation")
    strands = full_set(3)
    path = save(tmp_path / f"a{ending}", strands, physics=physics)
    stage = Usd.Stage.Open(str(path))
    registry = validation.ValidationRegistry()
    context = validation.ValidationContext(registry.GetOrLoadAllValidators())
    assert [error.GetMessage() for error in context.Validate(stage)] == []
    curves = UsdGeom.BasisCurves(stage.GetDefaultPrim().GetChildren()[0])
    assert curves.GetPointsAttr().GetTimeSamples() == [0.0, 1.0, 2.0]
    assert (stage.GetTimeCodesPerSecond(), stage.GetEndTimeCode()) == (60.0, 2.0)
    for frame in range(3):
        points = np.array(curves.GetPointsAttr().Get(frame))
        np.testing.assert_array_equal(points, strands.points[frame])
        low, high = np.array(curves.GetExtentAttr().Get(frame))
        assert (low <= points.min(axis=0)).all() and (high >= points.max(axis=0)).all()
    segments = list(curves.ComputeSegmentCounts(Usd.TimeCode.Default()))
    assert segments == (COUNTS - 1).tolist()
    assert curves.GetWidthsInterpolation() == "vertex"
    primvars = UsdGeom.PrimvarsAPI(curves)
    assert primvars.GetPrimvar("st").GetInterpolation() == "uniform"
    assert primvars.GetPrimvar("displayColor").GetInterpolation() == "vertex"
    schemas = list(curves.GetPrim().GetPrimTypeInfo().GetAppliedAPISchemas())
    assert ("PhysicsCurvesDeformableSimAPI" in schemas) == physics
    assert curves.GetTypeAttr().Get() == ("linear" if physics else "cubic")
    assert curves.GetWrapAttr().Get() == ("nonperiodic" if physics else "pinned")
    if physics:
        np.testing.assert_array_equal(curves.GetPointsAttr().Get(), strands.points[0])


@pytest.mark.parametrize(
    ("up", "unit", "expected"),
    [("Y", 1.0, (1, 2, 3)), ("Z", 1.0, (1, 3, -2)), ("Y", 0.01, (0.01, 0.02, 0.03))],
)
def test_units_and_up_axis_are_honoured(
    tmp_path: Path, up: str, unit: float, expected: tuple[float, ...]
):
    """Place one point in a stage of other units and axes; widths follow the unit."""
    stage = Usd.Stage.CreateNew(str(tmp_path / "a.usda"))
    UsdGeom.SetStageUpAxis(stage, up)
    UsdGeom.SetStageMetersPerUnit(stage, unit)
    define(stage, "/a", [(0, 0, 0), (1, 2, 3)], [2]).CreateWidthsAttr([0.5, 0.25])
    stage.Save()
    back = usd.read(tmp_path / "a.usda")
    np.testing.assert_allclose(back.points[0, 1], expected, rtol=1e-6)
    np.testing.assert_allclose(given(back.widths), [0.5 * unit, 0.25 * unit], rtol=1e-6)


def test_unsaid_units_are_the_schemas_centimetres(tmp_path: Path):
    """Leave metersPerUnit out; the schema's fallback is 0.01."""
    stage = Usd.Stage.CreateNew(str(tmp_path / "a.usda"))
    define(stage, "/a", [(0, 0, 0), (0, 100, 0)], [2])
    stage.Save()
    np.testing.assert_allclose(usd.read(tmp_path / "a.usda").points[0, 1], (0, 1, 0), rtol=1e-6)


def test_moving_transforms_make_frames(tmp_path: Path):
    """Turn a parent between samples of the points; there are frames at both, turned in between."""
    stage = Usd.Stage.CreateNew(str(tmp_path / "a.usdc"))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetTimeCodesPerSecond(10)
    top = UsdGeom.Xform.Define(stage, "/top")
    turn = top.AddRotateYOp()
    for code, angle in ((0, 0.0), (4, 80.0)):
        turn.Set(angle, code)
    top.AddScaleOp().Set(Gf.Vec3f(2, 2, 2))
    curves = define(stage, "/top/a", random_points(3), [3])
    curves.CreateWidthsAttr([0.25])
    curves.SetWidthsInterpolation("constant")
    points = {0: random_points(3), 2: random_points(3) + 1, 4: random_points(3) * 2}
    curves.GetPointsAttr().Clear()
    for code, values in points.items():
        curves.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(values), code)
    stage.Save()
    back = usd.read(tmp_path / "a.usdc")
    np.testing.assert_allclose(back.times, [0.0, 0.2, 0.4], atol=1e-12)
    np.testing.assert_allclose(given(back.widths), 0.5, rtol=1e-6)
    for frame, (code, values) in enumerate(points.items()):
        angle = np.radians(20.0 * code)
        c, s = np.cos(angle), np.sin(angle)
        rotated = 2 * values @ np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])
        np.testing.assert_allclose(back.points[frame], rotated, atol=1e-6)


def bezier(vertices: np.ndarray) -> np.ndarray:
    """Evaluate at thirds of each segment by repeated halfway points (de Casteljau)."""
    found = [vertices[0]]
    for first in range(0, len(vertices) - 1, 3):
        for part in (1 / 3, 2 / 3, 1.0):
            rest = vertices[first : first + 4].astype(float)
            while len(rest) > 1:
                rest = rest[:-1] * (1 - part) + rest[1:] * part
            found.append(rest[0])
    return np.array(found)


def bspline(vertices: np.ndarray) -> np.ndarray:
    """Evaluate at every knot."""
    curve = BSpline(np.arange(len(vertices) + 4) - 3.0, vertices, 3)
    return curve(np.arange(len(vertices) - 2))


def with_phantoms(vertices: np.ndarray) -> np.ndarray:
    """Add the vertices that pin a curve's ends."""
    return np.concatenate(
        [[2 * vertices[0] - vertices[1]], vertices, [2 * vertices[-1] - vertices[-2]]]
    )


@pytest.mark.parametrize(
    ("basis", "wrap", "evaluate"),
    [
        ("bezier", "nonperiodic", bezier),
        ("bspline", "nonperiodic", bspline),
        ("bspline", "pinned", lambda vertices: bspline(with_phantoms(vertices))),
        ("catmullRom", "nonperiodic", lambda vertices: vertices[1:-1]),
        ("catmullRom", "pinned", lambda vertices: vertices),
    ],
)
def test_each_basis_is_evaluated(
    tmp_path: Path, basis: str, wrap: str, evaluate: Callable[[np.ndarray], np.ndarray]
):
    """Compare strands of two curves with other people's evaluation of the same vertices."""
    first, second = random_points(7), random_points(4)
    path = curves_file(
        tmp_path / "a.usda",
        np.concatenate([first, second]),
        [7, 4],
        kind="cubic",
        basis=basis,
        wrap=wrap,
    )
    back = usd.read(path)
    expected = [evaluate(first), evaluate(second)]
    assert back.counts.tolist() == [len(strand) for strand in expected]
    np.testing.assert_allclose(back.points[0], np.concatenate(expected), atol=1e-6)


@pytest.mark.parametrize(
    ("scope", "values", "expected"),
    [
        ("constant", [2], [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]),
        ("uniform", [1, 2], [1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2]),
        ("varying", [0, 3, 6, 1, 4], [0, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4]),
        ("vertex", [0, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4]),
    ],
)
def test_widths_of_every_interpolation(
    tmp_path: Path, scope: str, values: list[float], expected: list[float]
):
    """Give widths of two Bezier curves each way; straight lines stay straight."""
    stage = Usd.Stage.CreateNew(str(tmp_path / "a.usda"))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    curves = define(stage, "/a", random_points(11), [7, 4], kind="cubic")
    curves.CreateWidthsAttr([float(value) for value in values])
    curves.SetWidthsInterpolation(scope)
    stage.Save()
    np.testing.assert_allclose(given(usd.read(tmp_path / "a.usda").widths), expected, atol=1e-6)


def test_several_prims_and_what_is_not_shown(tmp_path: Path):
    """Put prims together; leave the invisible and inactive out, and take guides for guides."""
    stage = Usd.Stage.CreateNew(str(tmp_path / "a.usda"))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    groups = [random_points(number) for number in (2, 3, 4, 5)]
    prims = [define(stage, f"/p{len(each)}", each, [len(each)]) for each in groups]
    prims[1].MakeInvisible()
    prims[2].GetPrim().SetActive(False)
    prims[3].CreatePurposeAttr("guide")
    define(stage, "/ring", random_points(6), [6], wrap="periodic")
    stage.Save()
    with pytest.warns(FileWarning) as caught:
        back = usd.read(tmp_path / "a.usda")
    said = " ".join(str(each.message) for each in caught)
    assert "1 invisible curves prim left out" in said and "/ring left out" in said
    np.testing.assert_array_equal(back.points[0], np.concatenate([groups[0], groups[3]]))
    assert back.guides is not None and back.guides.tolist() == [False, True]
    assert back.groups is not None and back.groups.tolist() == [0, 1]


@pytest.mark.parametrize("arc", ["references", "payload", "sublayer", "variant", "nested", "link"])
def test_nothing_outside_the_folder_is_opened(tmp_path: Path, arc: str):
    """Compose a layer that lies beside the folder, every way; refused before it is opened."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    curves_file(outside / "secret.usda", random_points(2), [2])
    asset = "@../outside/secret.usda@"
    bodies = {
        "references": f'def "a" (prepend references = {asset}</curves>) {{}}',
        "payload": f'def "a" (prepend payload = {asset}</curves>) {{}}',
        "sublayer": "",
        "variant": 'def "a" (variants = { string v = "x" }\nprepend variantSets = "v") {\n'
        f'variantSet "v" = {{\n"x" (prepend references = {asset}</curves>) {{\n}}\n}}\n}}',
        "nested": 'def "a" (prepend references = @./inner.usda@</a>) {}',
        "link": 'def "a" (prepend references = @./link.usda@</curves>) {}',
    }
    head = f"( subLayers = [{asset}] )\n" if arc == "sublayer" else ""
    (inside / "a.usda").write_text(f"#usda 1.0\n{head}{bodies[arc]}\n")
    (inside / "inner.usda").write_text(f"#usda 1.0\n{bodies['references']}\n")
    (inside / "link.usda").symlink_to(outside / "secret.usda")
    with (
        opened_in(outside) as opened,
        pytest.raises(FileError, match="outside its folder"),
    ):
        usd.read(inside / "a.usda")
    assert opened == []
    with opened_in(outside) as opened:
        usd.read(outside / "secret.usda")
    assert "secret.usda" in opened, "the watch sees what is opened"


@pytest.mark.parametrize(
    ("asset", "message"),
    [
        ("https://example.com/a.usda", "its own folder"),
        ("a.usdz[b.usda]", "its own folder"),
        ("`${NAME}.usda`", "its own folder"),
        ("picture.png", "expected one of .usd"),
        ("missing.usda", "no such file"),
    ],
)
def test_other_ways_out_are_refused(tmp_path: Path, asset: str, message: str):
    """Refer to a place on the net, into a package, by an expression, to no layer, to nothing."""
    (tmp_path / "picture.png").write_bytes(b"")
    path = tmp_path / "a.usda"
    path.write_text(f'#usda 1.0\ndef "a" (prepend references = @{asset}@) {{}}\n')
    with pytest.raises(FileError, match=message):
        usd.read(path)


def test_layers_in_the_folder_are_composed(tmp_path: Path):
    """Refer to a layer one folder down, twice; the strands come from there."""
    (tmp_path / "parts").mkdir()
    curves_file(tmp_path / "parts" / "b.usdc", points := random_points(4), [4])
    body = "".join(
        f'def "{name}" (prepend references = @./parts/b.usdc@</curves>) {{}}\n' for name in "xy"
    )
    (tmp_path / "a.usda").write_text(f"#usda 1.0\n(metersPerUnit = 1)\n{body}")
    back = usd.read(tmp_path / "a.usda")
    np.testing.assert_array_equal(back.points[0], np.concatenate([points, points]))


def test_dirty_strands_are_named(tmp_path: Path):
    """Read strands of no, one and not finite points; the rest is loaded."""
    points = random_points(3000 + 1)
    points[5, 1] = np.nan
    counts = [3] * 998
    counts[10:10] = [0, 1]
    points = points[: sum(counts)]
    path = curves_file(tmp_path / "a.usdc", points, counts)
    with pytest.warns(
        FileWarning, match=r"3 of 1000 .* 1 \(not finite\), 10 \(0 points\), 11 \(1 p"
    ):
        back = usd.read(path)
    assert len(back.counts) == 997 and back.points.shape == (1, 997 * 3, 3)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([2, 4], r"/curves: vertices .* sum to 6, expected 5 .*\(strand 1 ends past them\)"),
        ([2, 2], r"/curves: vertices .* sum to 4, expected 5"),
        ([8, -3], r"/curves: strand 1 has -3 vertices"),
        ([2147483647, 2147483647], r"sum to 4294967294, expected 5 .*\(strand 0 ends"),
    ],
)
def test_counts_that_do_not_fit_are_refused(tmp_path: Path, counts: list[int], message: str):
    """Give counts whose sum is another, and negative and enormous ones."""
    with pytest.raises(FileError, match=message):
        usd.read(curves_file(tmp_path / "a.usda", random_points(5), counts))


def test_counts_that_change_are_refused(tmp_path: Path):
    """Change how many points strands have over time."""
    stage = Usd.Stage.CreateNew(str(tmp_path / "a.usda"))
    curves = define(stage, "/a", random_points(4), [4])
    for code, counts in ((0, [4]), (1, [2, 2])):
        curves.GetCurveVertexCountsAttr().Set(counts, code)
        curves.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(random_points(4)), code)
    stage.Save()
    with pytest.raises(FileError, match="curveVertexCounts change over time"):
        usd.read(tmp_path / "a.usda")


def test_more_frames_than_a_file_justifies_are_refused(tmp_path: Path):
    """Repeat 2 MB of points ten thousand times by moving their parent."""
    stage = Usd.Stage.CreateNew(str(tmp_path / "a.usdc"))
    top = UsdGeom.Xform.Define(stage, "/top")
    move = top.AddTranslateOp()
    for code in range(10000):
        move.Set(Gf.Vec3d(code, 0, 0), code)
    define(stage, "/top/a", np.zeros((200000, 3)), [200000])
    stage.Save()
    with pytest.raises(FileError, match=r"in 10000 frames, expected \d+ or fewer"):
        usd.read(tmp_path / "a.usdc")


@pytest.mark.parametrize(
    "content", [b"", b"hello, hair\n", b"PXR-USDC" + b"\xff" * 200, b"#usda 1"]
)
def test_files_that_are_no_layer_are_refused(tmp_path: Path, content: bytes):
    """Read a text, nothing, and a torn binary layer, all named .usd."""
    path = tmp_path / "a.usd"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"a\.usd: ") as caught:
        usd.read(path)
    assert "\n" not in str(caught.value)


def test_files_without_strands_and_packages_are_refused(tmp_path: Path):
    """Read a stage of no curves, and the name of a package."""
    (tmp_path / "a.usda").write_text("#usda 1.0\n")
    with pytest.raises(FileError, match="holds no strands"):
        usd.read(tmp_path / "a.usda")
    with pytest.raises(FileError, match=r"is a package, expected \.usd"):
        usd.read(tmp_path / "a.usdz")


def test_missing_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Hide the library."""
    monkeypatch.setitem(sys.modules, "pxr", None)
    (tmp_path / "a.usda").write_text("#usda 1.0\n")
    for use in (
        lambda: usd.read(tmp_path / "a.usda"),
        lambda: save(tmp_path / "b.usda", full_set()),
    ):
        with pytest.raises(FileError, match=r'pip install "hairkit\[usd\]"'):
            use()


@pytest.mark.parametrize("ending", [".usda", ".usdc"])
def test_failed_writing_leaves_nothing(tmp_path: Path, ending: str):
    """Stop in the middle, give a wrong frame, one that is not later, and too few."""
    strands = full_set(3)
    path = tmp_path / f"a{ending}"
    with pytest.raises(KeyboardInterrupt), usd.writer(path, strands, 3) as add:
        add(strands.points[0], 0.0)
        raise KeyboardInterrupt
    with pytest.raises(FileError, match=r"frame 0 has points"), usd.writer(path, strands, 1) as add:
        add(strands.points[0, :4], 0.0)
    with pytest.raises(FileError, match="expected later"), usd.writer(path, strands, 3) as add:
        add(strands.points[0], 1.0)
        add(strands.points[1], 1.0)
    with (
        pytest.raises(FileError, match="1 frames, expected 3"),
        usd.writer(path, strands, 3) as add,
    ):
        add(strands.points[0], 0.0)
    assert os.listdir(tmp_path) == []


def test_other_units_are_said_in_the_file(tmp_path: Path):
    """Write centimetres; the stage says so, and they come back as metres, or as what is given."""
    strands = full_set(2)
    path = save(tmp_path / "a.usdc", strands, units="cm")
    stage = Usd.Stage.Open(str(path))
    assert UsdGeom.GetStageMetersPerUnit(stage) == 0.01
    for name in ("points", "widths"):
        wanted = getattr(strands, name)
        np.testing.assert_allclose(getattr(usd.read(path), name), wanted, rtol=1e-6)
        given_units = getattr(usd.read(path, units="mm"), name)
        np.testing.assert_allclose(given_units, wanted / 10, rtol=1e-6)
    with pytest.raises(FileError, match="units: 'feet', expected one of m"):
        usd.read(path, units="feet")


@pytest.mark.parametrize("ending", [".usdc", ".usda"])
def test_damaged_files_end_nothing_but_their_reader(tmp_path: Path, ending: str):
    """Read many damaged files; each is an error or valid, quick, and small in memory."""
    path = save(tmp_path / f"a{ending}", full_set(2))
    done = subprocess.run(
        [sys.executable, scene_files.__file__, "hairkit.io.usd_stage:read", str(path), "60"],
        capture_output=True,
        text=True,
        env=os.environ | {"PXR_WORK_THREAD_LIMIT": "1"},
        check=True,
    )
    ends = dict(line.split("\t") for line in done.stdout.splitlines())
    assert int(ends["over 1 GB"]) == 0
    assert set(ends) <= {"valid", "error", "memory", "over 1 GB", "signal 6", "signal 11"}
    assert int(ends["error"]) > 15 and int(ends["valid"]) > 3
    if (crashed := tmp_path / f"crashed{ending}").exists():
        with pytest.raises(FileError, match="failed on it"):
            usd.read(crashed)
