"""Files that lie, are cut short or hold what is no hair: named in one line, or mended."""

import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import strand_files as made

from hairkit.errors import FileError, FileWarning
from hairkit.io.strand_set import StrandSet
from hairkit.io.strands import load_strands, save_strands

NAN = float("nan")
LINES = [made.line(3), made.line(4, 0.1), made.line(5, 0.2)]


def write(path: Path, raw: bytes) -> Path:
    """Write bytes and return where."""
    path.write_bytes(raw)
    return path


def refused(path: Path) -> str:
    """Return the one line that says why a file is refused."""
    with pytest.raises(FileError) as caught:
        load_strands(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def test_998_of_1000_strands_load(tmp_path: Path):
    """Give strand 7 one point and strand 9 none: one warning names both, the rest is unharmed."""
    lines = [made.line(2 + strand % 5, 0.001 * strand) for strand in range(1000)]
    lines[7], lines[9] = lines[7][:1], []
    for name, raw in (
        ("a.data", made.data(lines)),
        ("a.bin", made.data(lines, more=4)),
        ("a.ply", made.ascii_ply(lines)),
    ):
        path = write(tmp_path / name, raw)
        with pytest.warns(FileWarning) as caught:
            found = load_strands(path)
        assert [str(each.message) for each in caught] == [
            f"{path}: 2 of 1000 strands dropped: strand 7 (1 point), 9 (0 points)"
        ]
        rest = [line for line in lines if len(line) > 1]
        assert len(found.counts) == 998
        np.testing.assert_array_equal(found.counts, [len(line) for line in rest])
        np.testing.assert_array_equal(found.points[0], made.joined(rest))


def test_widths_and_colours_follow_their_strand(tmp_path: Path):
    """Drop a strand in the middle of a .hair; what is known of the others must stay with them."""
    lines = [made.line(3), made.line(1, 0.1), made.line(4, 0.2)]
    raw = made.hair_header(strands=3, points=8, arrays=1 | 2 | 4 | 16)
    raw += struct.pack("<3H", 2, 0, 3) + made.joined(lines).tobytes()
    raw += np.arange(8, dtype="<f4").tobytes() + np.arange(24, dtype="<f4").tobytes()
    with pytest.warns(FileWarning, match=r"1 of 3 strands dropped: strand 1 \(1 point\)"):
        found = load_strands(write(tmp_path / "a.hair", raw))
    np.testing.assert_array_equal(found.widths, [0, 1, 2, 4, 5, 6, 7])
    assert found.colors is not None
    np.testing.assert_array_equal(found.colors[3], [12, 13, 14])


@pytest.mark.parametrize("bad", [NAN, float("inf"), -float("inf")])
@pytest.mark.parametrize("name", ["a.hair", "a.data", "a.bin", "a.ply"])
def test_strands_that_are_not_finite_are_dropped(tmp_path: Path, name: str, bad: float):
    """Break one coordinate of strand 1."""
    lines = [made.line(3), [*made.line(2, 0.1), (0.1, bad, 0.0)], made.line(5, 0.2)]
    raw = {
        "a.hair": made.hair(lines),
        "a.data": made.data(lines),
        "a.bin": made.data(lines, more=4),
        "a.ply": made.ascii_ply(lines),
    }[name]
    with pytest.warns(FileWarning, match=r"1 of 3 strands dropped: strand 1 \(not finite\)"):
        found = load_strands(write(tmp_path / name, raw))
    np.testing.assert_array_equal(found.points[0], made.joined([lines[0], lines[2]]))


def test_widths_that_are_not_finite_drop_their_strand(tmp_path: Path):
    """Break one width."""
    raw = made.hair_header(strands=2, points=6, arrays=2 | 4, segments=2)
    raw += made.joined([made.line(3), made.line(3, 0.1)]).tobytes()
    raw += made.f32([1, 1, 1, 1, NAN, 1]).tobytes()
    with pytest.warns(FileWarning, match=r"strand 1 \(widths not finite\)"):
        found = load_strands(write(tmp_path / "a.hair", raw))
    assert len(found.counts) == 1


def test_equal_points_and_folds_are_named_and_kept(tmp_path: Path):
    """Repeat a point, fold a strand back, and put all points of one in one place."""
    equal = [(0.0, 0.0, 0.0), (0.0, -0.02, 0.0), (0.0, -0.02, 0.0), (0.0, -0.04, 0.0)]
    fold = [(0.1, 0.0, 0.0), (0.1, -0.04, 0.0), (0.1, -0.02, 0.0), (0.1, -0.06, 0.0)]
    still = [(0.2, 0.0, 0.0)] * 3
    # The next strand begins where this one ends, and goes back along it: nothing is wrong with it.
    sound = [made.line(3, 0.3), made.line(3, 0.3)[::-1]]
    lines = [equal, fold, still, *sound]
    path = write(tmp_path / "a.data", made.data(lines))
    with pytest.warns(FileWarning) as caught:
        found = load_strands(path)
    assert [str(each.message).removeprefix(f"{path}: ") for each in caught] == [
        "1 of 5 strands dropped: strand 2 (no length)",
        "1 of 5 strands with equal consecutive points: strand 0",
        "1 of 5 strands with a fold back onto itself: strand 1",
    ]
    np.testing.assert_array_equal(found.points[0], made.joined([equal, fold, *sound]))


def test_many_bad_strands_are_counted(tmp_path: Path):
    """Give thirty strands of one point; ten are named."""
    lines = [made.line(1 if strand < 30 else 3, 0.01 * strand) for strand in range(40)]
    with pytest.warns(FileWarning, match=r"30 of 40 .* 9 \(1 point\) and 20 more$"):
        load_strands(write(tmp_path / "a.data", made.data(lines)))


def test_a_file_without_a_sound_strand_is_refused(tmp_path: Path):
    """Give one-point strands alone."""
    message = refused(write(tmp_path / "a.data", made.data([made.line(1), made.line(1)])))
    assert "none of its strands can be used: strand 0 (1 point), 1 (1 point)" in message


def test_no_strands_at_all_are_no_error(tmp_path: Path):
    """Read files that truly hold nothing."""
    for name, raw in (
        ("a.hair", made.hair_header(strands=0, points=0)),
        ("a.data", struct.pack("<i", 0)),
    ):
        assert len(load_strands(write(tmp_path / name, raw)).counts) == 0


def test_counts_that_do_not_add_up_name_the_strand(tmp_path: Path):
    """Let a .hair's point count be one too low, one too high, and wrong for default segments."""
    sizes = struct.pack("<3H", 2, 3, 4)
    points = made.joined(LINES).tobytes() + b"\0" * 12
    low = made.hair_header(strands=3, points=11) + sizes + points
    message = refused(write(tmp_path / "a.hair", low))
    assert "strand 2 ends at point 12 of 11" in message
    high = made.hair_header(strands=3, points=13) + sizes + points
    message = refused(write(tmp_path / "a.hair", high))
    assert "the last strand, 2, ends at point 12 of 13" in message
    even = made.hair_header(strands=3, points=12, arrays=2, segments=4) + points
    message = refused(write(tmp_path / "a.hair", even))
    assert "3 strands of 4 segments have 15 points, found 12" in message


@pytest.mark.parametrize("name", ["a.hair", "a.data", "a.bin", "a.tfx", "a.ply", "a.glb", "a.npz"])
def test_truncated_files_are_refused(tmp_path: Path, name: str):
    """Cut a file after every one of its bytes; each time it must be refused in one line."""
    whole = tmp_path / f"whole{Path(name).suffix}"
    if name == "a.tfx":
        whole.write_bytes(made.tfx([made.line(4), made.line(4, 0.1)]))
    else:
        save_strands(made.strands(counts=(3, 4), bare=True), whole)
    raw = whole.read_bytes()
    load_strands(whole)
    # Zeros that pad a .glb's end may be missed by none; its header tells its size.
    for size in range(0, len(raw), 1 if len(raw) < 600 else 7):
        refused(write(tmp_path / name, raw[:size]))


def test_the_strand_where_a_file_was_cut_is_named(tmp_path: Path):
    """Cut in the second of three strands."""
    raw = made.hair(LINES)
    message = refused(write(tmp_path / "a.hair", raw[: 128 + 6 + 5 * 12 + 3]))
    assert "strand 1 is not whole" in message
    raw = made.data(LINES)
    message = refused(write(tmp_path / "a.data", raw[: 4 + 40 + 20]))
    assert "cut short, strand 1 of 3 has 4 points" in message
    message = refused(write(tmp_path / "a.data", raw[: 4 + 40]))
    assert "cut short, strand 1 of 3 is missing" in message


def test_four_billion_hairs_in_200_bytes_ask_for_no_memory(tmp_path: Path):
    """Promise 4e9 strands, points or both in small files; memory must not be asked for."""
    huge = 4_000_000_000
    pad = b"\0" * 72
    files = {
        "a.hair": made.hair_header(strands=huge, points=huge) + pad,
        "b.hair": made.hair_header(strands=huge, points=huge, arrays=2) + pad,
        "c.hair": made.hair_header(strands=1, points=huge, arrays=2, segments=huge - 1) + pad,
        "a.data": struct.pack("<Ii", huge, 3) + b"\0" * 192,
        "b.data": struct.pack("<iI", 3, huge) + b"\0" * 192,
        "a.tfx": struct.pack("<fII5I32I", 4.0, huge, huge, 160, *[0] * 36) + b"\0" * 40,
        "a.ply": (
            f"ply\nformat binary_little_endian 1.0\nelement vertex {huge}\nproperty float x\n"
            "property float y\nproperty float z\nelement strand 1\nproperty int nsegs\nend_header\n"
        ).encode(),
    }
    for name, raw in files.items():
        path = write(tmp_path / name, raw)
        refused(path)
        tracemalloc.start()
        refused(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # Messages, and what pytest keeps of them.
        assert peak < 4 * len(raw) + 200_000, name


def test_a_tight_archive_is_not_unpacked(tmp_path: Path):
    """Pack 40 MB of zeros into an .npz of 40 kB: it is refused before it takes memory."""
    path = tmp_path / "a.npz"
    np.savez_compressed(path, points=np.zeros((1, 3_400_000, 3), np.float32), counts=np.array([3]))
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    message = refused(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "expected at most 4 times the file's size" in message
    assert peak < 5_000_000


def test_a_strand_of_70000_points_does_not_fit_into_hair(tmp_path: Path):
    """Write strands of 65,536 points, which fit, and of 70,000, which do not."""

    def long(count: int) -> StrandSet:
        points = np.zeros((1, count + 2, 3))
        points[0, :, 1] = -1e-5 * np.arange(count + 2)
        return StrandSet(points=points, counts=np.array([2, count]))

    save_strands(long(65_536), tmp_path / "a.hair")
    np.testing.assert_array_equal(load_strands(tmp_path / "a.hair").counts, [2, 65_536])
    with pytest.raises(FileError, match="strand 1 has 70000 points, expected at most 65536"):
        save_strands(long(70_000), tmp_path / "b.hair")
    assert not (tmp_path / "b.hair").exists()
    save_strands(long(70_000), tmp_path / "b.ply")
    np.testing.assert_array_equal(load_strands(tmp_path / "b.ply").counts, [2, 70_000])


def test_wrong_byte_order_is_said(tmp_path: Path):
    """Write every number big-endian."""
    swapped_tfx = np.frombuffer(made.tfx([made.line(4)] * 2), "<u4").byteswap().tobytes()
    for name, raw in (
        ("a.hair", made.hair(LINES, ">")),
        ("a.data", made.data(LINES, ">")),
        ("a.bin", made.data(LINES, ">", more=4)),
        ("a.tfx", swapped_tfx),
    ):
        assert "big-endian, expected little-endian" in refused(write(tmp_path / name, raw))


def test_lines_that_are_no_strands_are_refused(tmp_path: Path):
    """Let lines branch, close, and name vertices that are not there."""
    head = "ply\nformat ascii 1.0\nelement vertex 4\n"
    head += "".join(f"property float {axis}\n" for axis in "xyz")
    head += "element edge 3\nproperty int vertex1\nproperty int vertex2\nend_header\n"
    places = "0 0 0\n0 1 0\n0 0 1\n1 0 0\n"
    for edges, message in (
        ("0 1\n0 2\n0 3\n", "3 lines meet at vertex 0"),
        ("0 1\n1 2\n2 0\n", "the line through vertex 0 is closed"),
        ("0 1\n1 2\n2 4\n", "edge 2 joins vertices [2, 4]"),
        ("0 1\n1 2\n-1 2\n", "edge 2 joins vertices [-1, 2]"),
    ):
        assert message in refused(write(tmp_path / "a.ply", (head + places + edges).encode()))


@pytest.mark.parametrize("name", ["a.hair", "a.data", "a.tfx", "a.ply", "a.glb", "a.npz"])
def test_text_under_another_name_is_refused(tmp_path: Path, name: str):
    """Give a page of text, a picture's first bytes, and nothing at all, each by every name."""
    for raw in (b"Lorem ipsum dolor sit amet. " * 20, b"\x89PNG\r\n\x1a\n" + b"\0" * 300, b""):
        refused(write(tmp_path / name, raw))


def test_pickles_are_never_loaded(tmp_path: Path):
    """Hide a pickle that would make a file: as an object array, and as a member of its own."""
    trap = tmp_path / "trap"

    class Trap:
        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return Path.touch, (trap,)

    path = tmp_path / "a.npz"
    for name in ("points", "positions", "counts", "style"):
        arrays: dict[str, Any] = {name: np.array([Trap()], dtype=object)}
        np.savez(path, **arrays)
        assert "holds Python objects" in refused(path)
    import pickle

    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("points.npy", pickle.dumps(Trap()))
    refused(path)
    assert not trap.exists()
