"""Alembic files: what other tools wrote is read, and the library sees what Unreal looks for."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import imath
import numpy as np
import pytest
import scene_files
from alembic3d import Abc, AbcCoreAbstract, AbcGeom
from scene_files import COUNTS, FIELDS, full_set, given

from hairkit.errors import FileError, FileWarning
from hairkit.io import alembic
from hairkit.io.strand_set import StrandSet

KINDS = {
    "linear": (AbcGeom.CurveType.kLinear, AbcGeom.BasisType.kNoBasis),
    "bezier": (AbcGeom.CurveType.kCubic, AbcGeom.BasisType.kBezierBasis),
    "bspline": (AbcGeom.CurveType.kCubic, AbcGeom.BasisType.kBsplineBasis),
    "catmullRom": (AbcGeom.CurveType.kCubic, AbcGeom.BasisType.kCatmullromBasis),
}


def save(path: Path, strands: StrandSet, **options: Any) -> Path:
    """Write every frame of a set."""
    with alembic.writer(path, strands, len(strands.times), **options) as add:
        for points, time in zip(strands.points, strands.times, strict=True):
            add(points, float(time))
    return path


def random_points(number: int) -> np.ndarray:
    """Return points at random."""
    return np.random.default_rng(number).normal(size=(number, 3)).astype(np.float32)


def add_curves(
    parent: Any,
    name: str,
    frames: list[np.ndarray],
    counts: list[int],
    *,
    kind: str = "linear",
    wrap: Any = AbcGeom.CurvePeriodicity.kNonPeriodic,
    times: int = 0,
) -> Any:
    """Add curves with the library alone; return their schema."""
    schema = AbcGeom.OCurves(parent, name, times).getSchema()
    curve, basis = KINDS[kind]
    for points in frames:
        sample = AbcGeom.OCurvesSchemaSample(
            imath.V3fArrayFromBuffer(np.ascontiguousarray(points, np.float32)),
            imath.IntArrayFromBuffer(np.array(counts, np.int32)),
            curve,
            wrap,
        )
        sample.setBasis(basis)
        schema.set(sample)
    return schema


def curves_file(path: Path, points: np.ndarray, counts: list[int], **options: Any) -> Path:
    """Write one curves object with the library alone."""
    add_curves(Abc.OArchive(str(path)).getTop(), "curves", [points], counts, **options)
    return path


def number_at(properties: Any, name: str) -> Any:
    """Return a property's first sample."""
    return properties.getProperty(name).samples[0]


@pytest.mark.parametrize("frames", [1, 3])
def test_strands_come_back_as_they_were(tmp_path: Path, frames: int):
    """Write and read everything a set can have; centimetres cost a bit of the last digit."""
    strands = full_set(frames, start=0.5)
    back = alembic.read(save(tmp_path / "a.abc", strands))
    for name in ("counts", "root_uv", "root_normals", "ids", "groups", "guides"):
        np.testing.assert_array_equal(getattr(back, name), getattr(strands, name), err_msg=name)
    for name in ("points", "widths"):
        np.testing.assert_allclose(getattr(back, name), getattr(strands, name), rtol=1e-6)
    np.testing.assert_allclose(given(back.colors), given(strands.colors), atol=1e-6)
    np.testing.assert_allclose(back.times, strands.times, atol=1e-12)
    assert os.listdir(tmp_path) == ["a.abc"]


def test_bare_strands_bring_nothing_else(tmp_path: Path):
    """Write points only; no field may appear."""
    strands = StrandSet(points=random_points(5)[None], counts=np.array([2, 3]))
    back = alembic.read(save(tmp_path / "a.abc", strands))
    np.testing.assert_allclose(back.points, strands.points, rtol=1e-6)
    assert all(getattr(back, name) is None for name in FIELDS)


def test_library_sees_unreals_attributes(tmp_path: Path):
    """Compare names, types, scopes and values with "Alembic for Grooms" 1.5, in centimetres."""
    strands = full_set(3)
    archive = Abc.IArchive(str(save(tmp_path / "a.abc", strands)))
    top = archive.getTop()
    groom = AbcGeom.IXform(top, top.getChildHeader(0).getName())
    own = groom.getSchema().getUserProperties()
    for name, value in (("groom_version_major", 1), ("groom_version_minor", 5)):
        header = own.getPropertyHeader(name)
        assert header.isScalar() and str(header.getDataType().getPod()) == "kInt16POD"
        assert number_at(own, name) == value
    assert str(own.getPropertyHeader("groom_tool").getDataType().getPod()) == "kStringPOD"
    schema = AbcGeom.ICurves(groom, groom.getChildHeader(0).getName()).getSchema()
    params = schema.getArbGeomParams()
    expected = {
        "groom_id": ("kInt32POD", 1, "uni", strands.ids),
        "groom_group_id": ("kInt32POD", 1, "uni", strands.groups),
        "groom_guide": ("kInt32POD", 1, "uni", strands.guides),
        "groom_root_uv": ("kFloat32POD", 2, "uni", strands.root_uv),
        "groom_width": ("kFloat32POD", 1, "vtx", (given(strands.widths) / 0.01).astype(np.float32)),
        "groom_color": ("kFloat32POD", 3, "vtx", None),
    }
    for name, (pod, extent, scope, value) in expected.items():
        header = params.getPropertyHeader(name)
        found = header.getDataType()
        assert (str(found.getPod()), found.getExtent()) == (pod, extent), name
        assert header.getMetaData().get("geoScope") == scope, name
        assert header.isArray(), name
        if value is not None:
            np.testing.assert_array_equal(np.array(number_at(params, name)), value, err_msg=name)
    assert schema.getNumSamples() == 3
    for frame in range(3):
        sample = schema.getValue(Abc.ISampleSelector(frame / 60))
        positions = np.array(sample.getPositions())
        np.testing.assert_allclose(positions, strands.points[frame] * 100, rtol=1e-6)
        assert list(sample.getCurvesNumVertices()) == COUNTS.tolist()
        assert sample.getType() == AbcGeom.CurveType.kLinear
        assert sample.getWrap() == AbcGeom.CurvePeriodicity.kNonPeriodic
    assert schema.getWidthsParam().getScope() == AbcGeom.GeometryScope.kVertexScope
    np.testing.assert_allclose(schema.getTimeSampling().getSampleTime(2), 2 / 60)


def test_uneven_times_are_kept_where_they_are_known(tmp_path: Path):
    """Write frames at uneven times: known from the set, and not."""
    strands = full_set(3)
    times = np.array([0.0, 0.1, 0.5])
    known = StrandSet(points=strands.points, counts=strands.counts, times=times)
    np.testing.assert_allclose(alembic.read(save(tmp_path / "a.abc", known)).times, times)
    with (
        pytest.raises(FileError, match=r"frame 2 is at 0\.5 s, expected 0\.2 s"),
        alembic.writer(tmp_path / "b.abc", full_set(1), 3) as add,
    ):
        for points, time in zip(strands.points, times, strict=True):
            add(points, float(time))
    assert os.listdir(tmp_path) == ["a.abc"]


@pytest.mark.parametrize(
    ("groom", "units", "scale"),
    [(False, None, 1.0), (True, None, 0.01), (False, "mm", 0.001), (True, "m", 1.0)],
)
def test_unit_is_unreals_or_given(tmp_path: Path, groom: bool, units: str | None, scale: float):
    """Read a file that says that it is a groom, one that does not, and units that are given."""
    archive = Abc.OArchive(str(tmp_path / "a.abc"))
    schema = add_curves(archive.getTop(), "curves", [random_points(3)], [3])
    if groom:
        Abc.OInt32Property(schema.getUserProperties(), "groom_version_major").setValue(1)
    del schema, archive
    back = alembic.read(tmp_path / "a.abc", units=units)
    np.testing.assert_allclose(back.points[0], random_points(3) * scale, rtol=1e-6)


def test_units_are_written_as_asked_and_unknown_ones_refused(tmp_path: Path):
    """Write metres, and ask for a unit that is none."""
    strands = full_set()
    path = save(tmp_path / "a.abc", strands, units="m")
    np.testing.assert_array_equal(alembic.read(path, units="m").points, strands.points)
    with pytest.raises(FileError, match=r"units: 'feet', expected one of m, dm, cm, mm, in"):
        alembic.read(tmp_path / "a.abc", units="feet")


def test_moving_transforms_make_frames(tmp_path: Path):
    """Move a parent between samples of the points; there are frames at both, on straight lines."""
    archive = Abc.OArchive(str(tmp_path / "a.abc"))
    slow = archive.addTimeSampling(AbcCoreAbstract.TimeSampling(0.5, 0.0))
    fast = archive.addTimeSampling(AbcCoreAbstract.TimeSampling(0.25, 0.0))
    top = AbcGeom.OXform(archive.getTop(), "top", fast)
    for number in range(3):
        sample = AbcGeom.XformSample()
        sample.setTranslation(imath.V3d(0, number, 0))
        sample.setScale(imath.V3d(2, 2, 2))
        top.getSchema().set(sample)
    still = AbcGeom.OXform(top, "still")
    sample = AbcGeom.XformSample()
    sample.setTranslation(imath.V3d(5, 0, 0))
    still.getSchema().set(sample)
    frames = [random_points(4), random_points(4) + 1]
    schema = add_curves(still, "curves", frames, [4], times=slow)
    del schema, sample, still, top, archive
    back = alembic.read(tmp_path / "a.abc")
    np.testing.assert_allclose(back.times, [0.0, 0.25, 0.5])
    for frame, part in enumerate((0.0, 0.5, 1.0)):
        local = frames[0] + part + np.array([5, 0, 0])
        np.testing.assert_allclose(back.points[frame], local * 2 + [0, frame, 0], atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "counts", "same"),
    [("catmullRom", [4, 3], True), ("bezier", [5, 2], True), ("bezier", [4, 4], False)],
)
def test_vertices_are_points_unless_a_basis_is_meant(
    tmp_path: Path, kind: str, counts: list[int], same: bool
):
    """Read cubic curves: the basis that every file has by default counts where it can be meant."""
    points = random_points(sum(counts))
    back = alembic.read(curves_file(tmp_path / "a.abc", points, counts, kind=kind))
    assert back.counts.tolist() == counts
    assert np.allclose(back.points[0], points) == same
    ends = np.cumsum(counts) - 1
    np.testing.assert_allclose(back.points[0, ends], points[ends], atol=1e-6)


def test_bsplines_reach_their_ends(tmp_path: Path):
    """Read a cubic B-spline: at its knots inside, and from its first vertex to its last."""
    points = random_points(5)
    back = alembic.read(curves_file(tmp_path / "a.abc", points, [5], kind="bspline")).points[0]
    np.testing.assert_allclose(back[[0, -1]], points[[0, -1]], atol=1e-6)
    np.testing.assert_allclose(
        back[1:-1], (points[:-2] + 4 * points[1:-1] + points[2:]) / 6, atol=1e-6
    )


def test_attributes_of_other_writers(tmp_path: Path):
    """Read constant, unscoped, indexed and native attributes of two objects in one file."""
    archive = Abc.OArchive(str(tmp_path / "a.abc"))
    scope = AbcGeom.GeometryScope
    for name, count in (("a", 3), ("b", 4)):
        schema = add_curves(archive.getTop(), name, [random_points(2 * count)], [count, count])
        params = schema.getArbGeomParams()
        group = AbcGeom.OInt32GeomParam(params, "groom_group_id", False, scope.kConstantScope, 1)
        group.set(
            AbcGeom.OInt32GeomParamSample(
                imath.IntArrayFromBuffer(np.array([count], np.int32)), scope.kConstantScope
            )
        )
        identity = Abc.OInt32ArrayProperty(params, "groom_id")
        identity.setValue(imath.IntArrayFromBuffer(np.array([count, count + 10], np.int32)))
        uv = AbcGeom.OV2fGeomParam(params, "groom_root_uv", True, scope.kUniformScope, 1)
        uv.set(
            AbcGeom.OV2fGeomParamSample(
                imath.V2fArrayFromBuffer(np.array([[0.25, 0.5], [0.75, 1.0]], np.float32)),
                unsigned([1, 0]),
                scope.kUniformScope,
            )
        )
        del schema, params, group, identity, uv
    del archive
    back = alembic.read(tmp_path / "a.abc")
    assert back.groups is not None and back.groups.tolist() == [3, 3, 4, 4]
    assert back.ids is not None and back.ids.tolist() == [3, 13, 4, 14]
    np.testing.assert_array_equal(given(back.root_uv), [[0.75, 1.0], [0.25, 0.5]] * 2)


def unsigned(values: list[int]) -> Any:
    """Return indices as the library wants them."""
    array = imath.UnsignedIntArray(len(values))
    for place, value in enumerate(values):
        array[place] = value
    return array


def test_dirty_strands_are_named(tmp_path: Path):
    """Read strands of no, one and not finite points; the rest is loaded."""
    points = random_points(3000)
    points[5, 1] = np.inf
    counts = [3] * 998
    counts[10:10] = [0, 1]
    path = curves_file(tmp_path / "a.abc", points[: sum(counts)], counts)
    with pytest.warns(
        FileWarning, match=r"3 of 1000 .* 1 \(not finite\), 10 \(0 points\), 11 \(1 p"
    ):
        back = alembic.read(path)
    assert len(back.counts) == 997 and back.points.shape == (1, 997 * 3, 3)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([2, 4], r"/curves: vertices .* sum to 6, expected 5 .*\(strand 1 ends past them\)"),
        ([8, -3], r"/curves: strand 1 has -3 vertices"),
        ([2147483647, 2147483647], r"sum to 4294967294, expected 5 .*\(strand 0 ends"),
    ],
)
def test_counts_that_do_not_fit_are_refused(tmp_path: Path, counts: list[int], message: str):
    """Give counts whose sum is another, and negative and enormous ones."""
    with pytest.raises(FileError, match=message):
        alembic.read(curves_file(tmp_path / "a.abc", random_points(5), counts))


def test_closed_curves_are_left_out(tmp_path: Path):
    """Read a file of a closed curve only."""
    path = curves_file(
        tmp_path / "a.abc", random_points(5), [5], wrap=AbcGeom.CurvePeriodicity.kPeriodic
    )
    with pytest.raises(FileError, match="holds no strands"):
        alembic.read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x89HDF\r\n\x1a\n" + b"\0" * 90, "is HDF5 Alembic, expected Ogawa"),
        (b"", "expected an Alembic file"),
        (b"#usda 1.0\n", "begins with b'#usda', expected an Alembic file"),
        (b"Ogawa\x00\x00\x01" + b"\0" * 8, "was never finished"),
        (b"Ogawa\xff\x00\x01" + b"\xff" * 40, r"a\.abc: "),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str):
    """Read HDF5, nothing, text, an unfinished and a torn archive."""
    path = tmp_path / "a.abc"
    path.write_bytes(content)
    with pytest.raises(FileError, match=message) as caught:
        alembic.read(path)
    assert "\n" not in str(caught.value)


def test_missing_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Hide the library."""
    path = save(tmp_path / "a.abc", full_set())
    monkeypatch.setitem(sys.modules, "alembic3d", None)
    for use in (lambda: alembic.read(path), lambda: save(tmp_path / "b.abc", full_set())):
        with pytest.raises(FileError, match=r'pip install "hairkit\[alembic\]"'):
            use()


def test_failed_writing_leaves_nothing(tmp_path: Path):
    """Stop in the middle, give a wrong frame, and too few."""
    strands = full_set(3)
    path = tmp_path / "a.abc"
    with pytest.raises(KeyboardInterrupt), alembic.writer(path, strands, 3) as add:
        add(strands.points[0], 0.0)
        add(strands.points[1], 1 / 60)
        raise KeyboardInterrupt
    with pytest.raises(FileError, match="frame 0 has"), alembic.writer(path, strands, 1) as add:
        add(strands.points[0, :4], 0.0)
    with pytest.raises(FileError, match="2 frames, exp"), alembic.writer(path, strands, 3) as add:
        add(strands.points[0], 0.0)
        add(strands.points[1], 1 / 60)
    assert os.listdir(tmp_path) == []


def test_damaged_files_end_nothing_but_their_reader(tmp_path: Path):
    """Read many damaged files; each is an error or valid, quick, and small in memory."""
    path = save(tmp_path / "a.abc", full_set(2))
    done = subprocess.run(
        [sys.executable, scene_files.__file__, "hairkit.io.abc_archive:read", str(path), "150"],
        capture_output=True,
        text=True,
        check=True,
    )
    ends = dict(line.split("\t") for line in done.stdout.splitlines())
    assert int(ends["over 1 GB"]) == 0
    assert set(ends) <= {"valid", "error", "memory", "over 1 GB", "signal 6", "signal 11"}
    assert int(ends["error"]) > 20 and int(ends["valid"]) > 10
    if (crashed := tmp_path / "crashed.abc").exists():
        with pytest.raises(FileError, match=r"failed on it|never finished|expected an Alembic"):
            alembic.read(crashed)


@pytest.mark.parametrize("free", [[0], [10**9, 0], [10**9, 10**9, 0]])
def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: list[int]):
    """Let the disk be full at the start, and before each frame: an error, and nothing is left."""
    left = iter(free)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=next(left)))
    strands = full_set(2)
    with pytest.raises(FileError, match=r"a\.abc: could not be written \(disk full\)"):
        save(tmp_path / "a.abc", strands)
    assert list(left) == []
    assert list(tmp_path.iterdir()) == []
