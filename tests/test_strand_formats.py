"""Strands go out in every format and come back, and other people's readers read them."""

import json
import os
import struct
import subprocess
import sys
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
import strand_files as made
import trimesh
from gltf_peers import complaints, validator_report

from hairkit import cli
from hairkit.bench_formats import peak_mb, time_formats
from hairkit.errors import FileError, FileWarning
from hairkit.io import cem_hair, gltf_lines, npz, ply, usc_data
from hairkit.io.strand_set import FIELDS, StrandSet
from hairkit.io.strands import (
    ENDINGS,
    MOVING,
    WRITTEN,
    load_strands,
    one_frame,
    open_strands,
    save_strands,
)

# Those that need nothing beside hairkit's own dependencies.
MODULES = {
    ".npz": npz,
    ".hair": cem_hair,
    ".data": usc_data,
    ".bin": usc_data,
    ".ply": ply,
    ".glb": gltf_lines,
}
ALWAYS = {"points", "counts", "times"}


def kept(strands: StrandSet, ending: str) -> StrandSet:
    """Return what a format has a place for."""
    held = MODULES[ending].HOLDS
    names = {name for name in FIELDS if name in ALWAYS or name in held}
    return StrandSet(**{name: getattr(strands, name) for name in names})


def assert_same(found: StrandSet, wanted: StrandSet, ending: str = "") -> None:
    """Compare every field, bit by bit but for colours that went through linear light."""
    for name in FIELDS:
        one, other = getattr(found, name), getattr(wanted, name)
        if other is None:
            assert one is None, name
        elif name == "colors" and ending == ".glb":
            np.testing.assert_allclose(one, other, atol=1e-6)
        else:
            np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.mark.parametrize("ending", MODULES)
def test_what_a_format_holds_comes_back(tmp_path: Path, ending: str):
    """Write and read strands with all that the format has a place for: nothing is warned of."""
    strands = kept(made.strands(), ending)
    save_strands(strands, tmp_path / f"a{ending}")
    assert_same(load_strands(tmp_path / f"a{ending}"), strands, ending)
    assert os.listdir(tmp_path) == [f"a{ending}"]


@pytest.mark.parametrize("ending", MODULES)
@pytest.mark.parametrize("counts", [(7,), (4, 4, 4), (2,) * 50])
def test_points_alone_come_back(tmp_path: Path, ending: str, counts: tuple[int, ...]):
    """Write and read strands of equal counts, and one alone, of which nothing else is known."""
    strands = made.strands(counts=counts, bare=True)
    save_strands(strands, tmp_path / f"a{ending}")
    assert_same(load_strands(tmp_path / f"a{ending}"), strands)


@pytest.mark.parametrize("ending", [ending for ending in MODULES if ending != ".npz"])
def test_what_a_format_cannot_hold_is_named_once(tmp_path: Path, ending: str):
    """Write all that there is; one warning names what the format has no place for."""
    strands = made.strands()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        save_strands(strands, tmp_path / f"a{ending}")
    lost = [name for name in FIELDS if name not in {*MODULES[ending].HOLDS, "times", "head_pose"}]
    if lost:
        (warning,) = caught
        assert issubclass(warning.category, FileWarning)
        named = str(warning.message).split(": ")[1].removesuffix(" not kept").split(", ")
        assert named == lost
    else:
        assert not caught
    assert_same(load_strands(tmp_path / f"a{ending}"), kept(strands, ending), ending)


@pytest.mark.parametrize("ending", [ending for ending in MODULES if ending not in MOVING])
def test_a_motion_into_one_frame_is_refused(tmp_path: Path, ending: str):
    """Write three frames where one fits; then one of them, chosen."""
    strands = made.strands(frames=3, bare=True)
    with pytest.raises(FileError, match=r"3 frames, expected one in .*\.npz"):
        save_strands(strands, tmp_path / f"a{ending}")
    assert os.listdir(tmp_path) == []
    save_strands(strands, tmp_path / f"a{ending}", frame=-1)
    assert_same(load_strands(tmp_path / f"a{ending}"), one_frame(strands, 2))
    with pytest.raises(FileError, match="frame 3, expected one of the 3"):
        save_strands(strands, tmp_path / f"a{ending}", frame=3)


def test_frames_are_streamed(tmp_path: Path):
    """Write 200 frames of 240 kB one by one; memory must hold a few of them at most."""
    like = made.strands(counts=(20,) * 1000, bare=True)
    poses = np.tile(np.eye(4), (200, 1, 1))
    tracemalloc.start()
    with open_strands(tmp_path / "a.npz", like, 200, head_pose=poses) as add:
        for frame in range(200):
            add(like.points[0] + np.float32(frame), frame / 24)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * like.points.nbytes
    back = load_strands(tmp_path / "a.npz")
    assert back.points.shape == (200, 20_000, 3)
    np.testing.assert_array_equal(back.points[7], like.points[0] + np.float32(7))
    np.testing.assert_array_equal(back.times, np.arange(200) / 24)
    np.testing.assert_array_equal(back.head_pose, poses)


def test_a_full_disk_names_the_file_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Let the disk be full at a later frame of a text scene; the old file must stay."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hairkit.io.usd._write_sample", full)
    (tmp_path / "a.usda").write_text("old")
    with pytest.raises(FileError, match=r"^\S*/a\.usda: could not be written \(No space left"):
        save_strands(made.strands(frames=3, bare=True), tmp_path / "a.usda")
    assert os.listdir(tmp_path) == ["a.usda"]
    assert (tmp_path / "a.usda").read_text() == "old"


def test_frames_that_were_not_promised_are_refused(tmp_path: Path):
    """Give too few, too many, of other points, and back in time; nothing may be left."""
    like = made.strands(bare=True)
    points = like.points[0]
    path = tmp_path / "a.npz"
    with (
        pytest.raises(FileError, match="1 frames came, expected 2"),
        open_strands(path, like, 2) as add,
    ):
        add(points, 0.0)
    with pytest.raises(FileError, match="expected 1 frames"), open_strands(path, like) as add:
        add(points, 0.0)
        add(points, 1.0)
    with pytest.raises(FileError, match=r"shape \(3, 3\)"), open_strands(path, like) as add:
        add(points[:3], 0.0)
    with pytest.raises(FileError, match="each later"), open_strands(path, like, 2) as add:
        add(points, 1.0)
        add(points, 0.5)
    assert os.listdir(tmp_path) == []


def test_a_hair_file_written_by_hand_is_read(tmp_path: Path):
    """Read a .hair made byte by byte from its specification, every array in it, odd strands."""
    lines = [made.line(2), made.line(4, 0.1), made.line(3, 0.2)]
    total = 9
    widths = [0.001 * (i + 1) for i in range(total)]
    colors = [(i / 9, 0.5, 1.0) for i in range(total)]
    raw = made.hair_header(strands=3, points=total, arrays=31)
    assert len(raw) == 128
    raw += struct.pack("<3H", 1, 3, 2)
    raw += b"".join(struct.pack("<3f", *point) for line in lines for point in line)
    raw += struct.pack("<9f", *widths) + struct.pack("<9f", *[0.5] * total)
    raw += b"".join(struct.pack("<3f", *color) for color in colors)
    (tmp_path / "a.hair").write_bytes(raw)
    with pytest.warns(FileWarning, match="transparency not kept"):
        found = load_strands(tmp_path / "a.hair")
    np.testing.assert_array_equal(found.counts, [2, 4, 3])
    np.testing.assert_array_equal(found.points[0], made.joined(lines))
    np.testing.assert_array_equal(found.widths, made.f32(widths))
    np.testing.assert_array_equal(found.colors, made.f32(colors))


def test_defaults_of_a_hair_file_count(tmp_path: Path):
    """Read a .hair of points alone, whose header says segments, thickness and colour for all."""
    points = b"".join(struct.pack("<3f", *point) for x in (0.0, 0.1) for point in made.line(3, x))
    raw = made.hair_header(
        strands=2, points=6, arrays=2, segments=2, thickness=0.002, color=(0.25, 0.5, 0.0)
    )
    (tmp_path / "a.hair").write_bytes(raw + points)
    found = load_strands(tmp_path / "a.hair")
    np.testing.assert_array_equal(found.counts, [3, 3])
    np.testing.assert_array_equal(found.widths, np.full(6, np.float32(0.002)))
    np.testing.assert_array_equal(found.colors, np.tile(made.f32([0.25, 0.5, 0.0]), (6, 1)))
    plain = made.hair_header(strands=2, points=6, arrays=2, segments=2)
    (tmp_path / "a.hair").write_bytes(plain + points)
    found = load_strands(tmp_path / "a.hair")
    assert found.widths is None
    assert found.colors is None


def test_written_hair_file_is_what_the_specification_says(tmp_path: Path):
    """Take a written .hair apart with struct."""
    strands = made.strands(bare=True)
    save_strands(strands, tmp_path / "a.hair")
    raw = (tmp_path / "a.hair").read_bytes()
    magic, number, total, arrays = struct.unpack_from("<4sIII", raw)
    assert (magic, number, total, arrays) == (b"HAIR", 6, 25, 3)
    assert struct.unpack_from("<6H", raw, 128) == tuple(count - 1 for count in made.COUNTS)
    assert raw[140:] == strands.points.tobytes()
    assert len(raw) == 128 + 12 + 300


@pytest.mark.parametrize("ending", [".data", ".bin"])
@pytest.mark.parametrize("more", [0, 4])
def test_data_and_bin_are_told_apart_by_length(tmp_path: Path, ending: str, more: int):
    """Give each layout either name."""
    lines = [made.line(2), made.line(5, 0.1), made.line(3, 0.2)]
    (tmp_path / f"a{ending}").write_bytes(made.data(lines, more=more))
    found = load_strands(tmp_path / f"a{ending}")
    np.testing.assert_array_equal(found.counts, [2, 5, 3])
    np.testing.assert_array_equal(found.points[0], made.joined(lines))


def test_tressfx_is_read_and_not_written(tmp_path: Path):
    """Read a .tfx made by hand: strand UV and thickness come along."""
    lines = [made.line(4), made.line(4, 0.1)]
    (tmp_path / "a.tfx").write_bytes(made.tfx(lines))
    found = load_strands(tmp_path / "a.tfx")
    np.testing.assert_array_equal(found.counts, [4, 4])
    np.testing.assert_array_equal(found.points[0], made.joined(lines))
    np.testing.assert_array_equal(found.root_uv, made.f32([[0, 0], [0.1, 0.05]]))
    np.testing.assert_array_equal(found.widths, made.f32([1e-4] * 4 + [2e-4] * 4))
    with pytest.raises(FileError, match=r"'\.tfx' is not known"):
        save_strands(found, tmp_path / "b.tfx")


def test_archives_of_difflocks_are_read(tmp_path: Path):
    """Read an .npz with the names that DiffLocks gives its arrays."""
    positions = made.f32([made.line(4), made.line(4, 0.1), made.line(4, 0.2)])
    normals = np.tile(made.f32([0, 1, 0]), (3, 1))
    uv = made.f32([[0, 0], [0.5, 0], [1, 1]])
    np.savez(tmp_path / "a.npz", positions=positions, root_normal=normals, root_uv=uv)
    found = load_strands(tmp_path / "a.npz")
    np.testing.assert_array_equal(found.counts, [4, 4, 4])
    np.testing.assert_array_equal(found.points[0], positions.reshape(-1, 3))
    np.testing.assert_array_equal(found.root_normals, normals)
    np.testing.assert_array_equal(found.root_uv, uv)


PLY = """ply
format {format} 1.0
comment of no interest
element face 1
property list uchar int vertex_indices
element vertex 6
property double x
property double y
property double z
property float radius
element edge 4
property uint vertex1
property uint vertex2
end_header
"""


@pytest.mark.parametrize("form", ["ascii", "binary_little_endian", "binary_big_endian"])
def test_ply_is_read_in_every_encoding(tmp_path: Path, form: str):
    """Read lines whose vertices are in no order, behind an element that has to be skipped."""
    # Two strands: 4 -> 0 -> 5, and 3 -> 1 -> 2, whose edges are given from the tip.
    places = np.random.default_rng(0).normal(0.0, 0.1, (6, 3)).tolist()
    edges = [(4, 0), (0, 5), (1, 2), (3, 1)]
    head = PLY.format(format=form).encode()
    if form == "ascii":
        rows = ["3 0 1 2", *(f"{x} {y} {z} 0.5" for x, y, z in places)]
        body = "\n".join([*rows, *(f"{a} {b}" for a, b in edges)]).encode() + b"\n"
    else:
        order = "<" if "little" in form else ">"
        body = struct.pack(order + "B3i", 3, 0, 1, 2)
        body += b"".join(struct.pack(order + "3df", *place, 0.5) for place in places)
        body += b"".join(struct.pack(order + "2I", *edge) for edge in edges)
    (tmp_path / "a.ply").write_bytes(head + body)
    found = load_strands(tmp_path / "a.ply")
    np.testing.assert_array_equal(found.counts, [3, 3])
    order = [3, 1, 2, 4, 0, 5]
    np.testing.assert_array_equal(found.points[0], made.f32(places)[order])
    np.testing.assert_array_equal(found.widths, np.ones(6))


def test_trimesh_reads_the_lines_of_a_ply(tmp_path: Path):
    """Read a written .ply with trimesh: the same vertices in the same lines, with colours."""
    strands = made.strands()
    save_strands(strands, tmp_path / "a.ply")
    path = trimesh.load(str(tmp_path / "a.ply"))
    assert isinstance(path, trimesh.path.Path3D)
    assert len(path.entities) == len(strands.counts)
    ends = np.cumsum(strands.counts)
    wanted = {
        tuple(map(tuple, strands.points[0, end - count : end].tolist()))
        for end, count in zip(ends, strands.counts, strict=True)
    }
    found = set()
    for entity in path.entities:
        one = tuple(map(tuple, made.f32(path.vertices[entity.points]).tolist()))
        # A path has no root: either end may come first.
        found.add(one if one in wanted else one[::-1])
    assert found == wanted


def test_validator_accepts_the_lines_of_a_glb(tmp_path: Path):
    """Ask Khronos' validator about a written .glb; it must have seen the lines."""
    strands = made.strands()
    save_strands(kept(strands, ".glb"), tmp_path / "a.glb")
    report = validator_report(tmp_path / "a.glb")
    assert complaints(report) == []
    assert report["info"]["totalVertexCount"] == 25
    assert report["info"]["drawCallCount"] == 1


def glb_of(primitives: list[dict[str, object]], **node: object) -> bytes:
    """Return a .glb whose node shows primitives of five vertices."""
    from hairkit.io.gltf import Gltf

    document = Gltf({"asset": {"version": "2.0"}}, [], "made")
    places = made.f32([[0, -0.02 * row, 0] for row in range(5)])
    document.add_accessor(places, "VEC3")
    document.add_accessor(np.arange(5, dtype=np.uint8)[:, None], "SCALAR")
    # Segments with both ends each: 0-1, 1-2 end to end, then 3-4 on its own.
    document.add_accessor(places[[0, 1, 1, 2, 3, 4]], "VEC3")
    document.add("meshes", {"primitives": primitives})
    document.add("nodes", {"mesh": 0, **node})
    return document.to_glb()


def test_lines_of_other_programs_are_read(tmp_path: Path):
    """Read a strip, a strip with indices, and segments without, under a node that moves them."""
    strip = {"mode": 3, "attributes": {"POSITION": 0}}
    listed = {"mode": 3, "attributes": {"POSITION": 0}, "indices": 1}
    loose = {"mode": 1, "attributes": {"POSITION": 2}}
    raw = glb_of([strip, listed, loose], translation=[1, 2, 3], scale=[2, 2, 2])
    (tmp_path / "a.glb").write_bytes(raw)
    found = load_strands(tmp_path / "a.glb")
    np.testing.assert_array_equal(found.counts, [5, 5, 3, 2])
    wanted = np.array([[1, 2 - 0.04 * row, 3] for row in range(5)])
    for first in (0, 5, 10):
        np.testing.assert_allclose(found.points[0, first : first + 5], wanted, atol=1e-6)


def test_units_and_axes_of_files_without_any(tmp_path: Path):
    """Read a file in centimetres with Z up, in both ways of saying so, and write it back."""
    strands = made.strands()
    path = tmp_path / "a.hair"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FileWarning)
        save_strands(strands, path, units="cm", up="z")
    raw = np.frombuffer(path.read_bytes(), "<f4", 75, 140).reshape(-1, 3)
    x, y, z = strands.points[0].T
    np.testing.assert_allclose(raw, 100 * np.stack([x, -z, y], axis=1), rtol=1e-6)
    for options in ({"up": "z"}, {"swizzle": "x,z,-y"}):
        back = load_strands(path, units="cm", **options)
        np.testing.assert_allclose(back.points, strands.points, rtol=1e-6)
        assert back.widths is not None
        assert strands.widths is not None
        np.testing.assert_allclose(back.widths, strands.widths, rtol=1e-6)


@pytest.mark.parametrize("ending", [".usda", ".usdc", ".abc"])
@pytest.mark.parametrize("units", [None, "m", "cm", "in"])
def test_units_of_scenes_are_taken_once(tmp_path: Path, ending: str, units: str | None):
    """Write a scene in a unit, read it with the unit said, and where the file says it, without."""
    strands = made.strands()
    path = tmp_path / f"a{ending}"
    save_strands(strands, path, units=units)
    # Alembic files do not say it: grooms are taken for centimetres, as they are written.
    said = [units or "cm"] if ending == ".abc" else [None, units or "m"]
    said += [None] if units in (None, "cm") else []
    for one in said:
        back = load_strands(path, units=one)
        np.testing.assert_allclose(back.points, strands.points, rtol=1e-6)
        assert back.widths is not None
        assert strands.widths is not None
        np.testing.assert_allclose(back.widths, strands.widths, rtol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FileWarning)
        other = load_strands(path, units="mm")
    scale = {None: 0.1 if ending == ".abc" else 0.001, "m": 0.001, "cm": 0.1, "in": 1 / 25.4}
    np.testing.assert_allclose(other.points, strands.points * scale[units], rtol=1e-6)


@pytest.mark.parametrize("ending", [".usda", ".abc"])
def test_up_of_scenes_is_taken_once(
    tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
):
    """Say which way is up of a scene: in place of what it says itself; none is written so."""
    strands = made.strands(bare=True)
    path = tmp_path / f"a{ending}"
    save_strands(strands, path, up="y")
    x, y, z = strands.points[0].T
    up = [{"up": "z"}, {"swizzle": "x,z,-y"}]
    for options in up:
        found = load_strands(path, **options).points[0]
        np.testing.assert_allclose(found, np.stack([x, z, -y], axis=1), rtol=1e-6)
    if ending == ".usda":
        text = path.read_text().replace('upAxis = "Y"', 'upAxis = "Z"')
        path.write_text(text)
        for options in ({}, *up):
            found = load_strands(path, **options).points[0]
            np.testing.assert_allclose(found, np.stack([x, z, -y], axis=1), rtol=1e-6)
        np.testing.assert_allclose(load_strands(path, up="y").points, strands.points, rtol=1e-6)
    assert cli.run(["convert", str(path), str(tmp_path / f"b{ending}"), "--out-up", "z"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"up: 'z', expected y in {ending}" in said
    assert os.listdir(tmp_path) == [f"a{ending}"]


@pytest.mark.parametrize("ending", [".usda", ".abc"])
def test_oddities_of_scenes_are_named(tmp_path: Path, ending: str):
    """Write a strand of equal points, one that doubles one, and one that folds; read them."""
    lines = [made.line(4), [(0.2, 0.0, 0.0)] * 3, made.line(3, 0.1), made.line(3, 0.3)]
    lines[2].insert(1, lines[2][0])
    lines[3].append(lines[3][1])
    counts = np.array([len(line) for line in lines])
    strands = StrandSet(points=made.joined(lines)[None], counts=counts)
    save_strands(strands, tmp_path / f"a{ending}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = load_strands(tmp_path / f"a{ending}")
    np.testing.assert_array_equal(found.counts, [4, 4, 4])
    said = [str(warning.message).split(": ", 1)[1] for warning in caught]
    assert said == [
        "1 of 4 strands dropped: strand 1 (no length)",
        "1 of 4 strands with equal consecutive points: strand 2",
        "1 of 4 strands with a fold back onto itself: strand 3",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"units": "furlong"}, r"units: 'furlong', expected one of m, dm, cm, mm, in"),
        ({"up": "w"}, r"up: expected an axis"),
        ({"swizzle": "x,y"}, r"swizzle: 'x,y', expected three different axes"),
        ({"swizzle": "x,y,y"}, r"three different axes"),
        ({"swizzle": "x,y,--z"}, r"expected axes such as"),
        ({"swizzle": "x,y,z", "up": "z"}, r"expected one of the two"),
    ],
)
def test_wrong_units_and_axes_are_named(tmp_path: Path, options: dict[str, str], message: str):
    """Misspell each option."""
    save_strands(made.strands(bare=True), tmp_path / "a.data")
    with pytest.raises(FileError, match=message):
        load_strands(tmp_path / "a.data", **options)


@pytest.mark.parametrize(("step", "hint"), [(2.0, "try --units cm"), (50.0, "try --units mm")])
def test_a_size_that_no_hair_has_is_warned_of(tmp_path: Path, step: float, hint: str):
    """Read strands in centimetres and millimetres as metres; then as what they are."""
    (tmp_path / "a.data").write_bytes(made.data([made.line(8, step=step)] * 3))
    with pytest.warns(FileWarning, match=f"longer than [0-9]+ m.*{hint}"):
        load_strands(tmp_path / "a.data")
    load_strands(tmp_path / "a.data", units=hint[-2:])


def test_what_needs_an_extra_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Take the extras away; one line must say what to install."""
    for name in ("pxr", "alembic3d", "hairkit.io.usd", "hairkit.io.alembic"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    for ending, extra in ((".usd", "usd"), (".usda", "usd"), (".usdc", "usd"), (".abc", "alembic")):
        assert ending in ENDINGS
        assert ending in WRITTEN
        (tmp_path / f"a{ending}").write_bytes(b"anything")
        wanted = rf'pip install "hairkit\[{extra}\]"'
        with pytest.raises(FileError, match=wanted):
            load_strands(tmp_path / f"a{ending}")
        with pytest.raises(FileError, match=wanted):
            save_strands(made.strands(bare=True), tmp_path / f"b{ending}")
        assert not (tmp_path / f"b{ending}").exists()


def test_convert_and_info(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Convert a file in centimetres to another format, and look at both."""
    (tmp_path / "a.data").write_bytes(made.data([made.line(3, step=10.0), made.line(5, 3.0, 5.0)]))
    source, target = str(tmp_path / "a.data"), str(tmp_path / "b.glb")
    assert cli.run(["convert", source, target, "--units", "cm"]) == 0
    assert "2 strands, 8 points, 1 frame" in capsys.readouterr().out
    assert cli.run(["info", target]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    rows = {line[:11].strip(): line[12:] for line in said.out.splitlines()}
    assert rows["strands"] == "2"
    assert rows["of each"] == "3 to 5, median 4"
    assert rows["length"] == "0.2 to 0.2 m, median 0.2 m"
    assert rows["y"] == "-0.2 to 0 m"
    assert rows["frames"] == "1"
    assert rows["beside"] == "nothing but points"
    assert cli.run(["info", source]) == 0
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert said.err.startswith("hairkit: warning: ")
    assert "try --units cm" in said.err


def test_convert_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Convert to an ending that is not known, and a motion into one frame."""
    save_strands(made.strands(frames=2, bare=True), tmp_path / "a.npz")
    source = str(tmp_path / "a.npz")
    assert cli.run(["convert", source, str(tmp_path / "b.hare")]) == 2
    assert "did you mean '.hair'" in capsys.readouterr().err
    assert cli.run(["convert", source, str(tmp_path / "b.hair")]) == 2
    assert "2 frames, expected one" in capsys.readouterr().err
    assert cli.run(["convert", source, str(tmp_path / "b.hair"), "--frame", "1"]) == 0
    assert load_strands(tmp_path / "b.hair").points.shape[0] == 1


@pytest.mark.parametrize("ending", [".hair", ".npz"])
def test_simulate_writes_other_strands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, ending: str
):
    """Simulate into a file of one frame and into one that moves: the last frames are the same."""
    monkeypatch.setenv("HAIRKIT_BACKEND", "cpu")
    words = "simulate short --head sphere --motion nod --seconds 0.1 --guides 6 --out".split()
    assert cli.run([*words, str(tmp_path / f"a{ending}")]) == 0
    assert "7 frames" in capsys.readouterr().out
    found = load_strands(tmp_path / f"a{ending}")
    if ending == ".hair":
        assert found.widths is not None
        assert found.colors is not None
        assert found.points.shape[0] == 1
        assert cli.run([*words, str(tmp_path / "b.npz")]) == 0
        moved = load_strands(tmp_path / "b.npz")
        np.testing.assert_array_equal(found.points[0], moved.points[-1])
        assert np.abs(moved.points[-1] - moved.points[0]).max() > 1e-3
    else:
        assert found.groom is not None
        assert found.points.shape[0] == 7


def test_formats_are_timed_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Run the case with a few strands; its rows must be in the file, its table on the screen."""
    words = ["bench", "--case", "formats", "--strands", "20", "--repeats", "5", "--json"]
    assert cli.run([*words, str(tmp_path / "a.json")]) == 0
    rows = json.loads((tmp_path / "a.json").read_text())
    assert {".hair", ".npz"} <= {row["format"] for row in rows}
    said = capsys.readouterr().out
    assert "20 strands, 1,280 points" in said
    assert all(row["format"] in said for row in rows)


def test_formats_are_timed():
    """Time a few strands in each format; bytes and sizes must add up."""
    results, failures = time_formats(strands=50, points=4, repeats=1)
    found = {row.format: row for row in results}
    assert set(MODULES) <= set(found)
    assert len(results) + len(failures) == len(WRITTEN)
    assert found[".hair"].file_mb * 1e6 == 128 + 50 * 4 * 12
    assert found[".data"].file_mb * 1e6 == 4 + 50 * (4 + 4 * 12)
    assert all(row.read_ms > 0 and row.write_ms > 0 and row.bytes_ms > 0 for row in results)
    assert found[".hair"].points == 200


def test_memory_of_a_process_of_its_own_counts():
    """Take 60 MB here and 200 MB in another process for a while: both are in the peak."""
    code = "import time; kept = b'x' * 200_000_000; time.sleep(0.2)"
    here = peak_mb(lambda: np.ones(60_000_000, np.uint8).sum())
    if here is None:
        pytest.skip("the system does not tell")
    both = peak_mb(
        lambda: (np.ones(60_000_000, np.uint8), subprocess.run([sys.executable, "-c", code]))
    )
    assert both is not None
    assert 55.0 < here < 100.0
    assert 255.0 < both < 330.0
