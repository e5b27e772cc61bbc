"""Files are complete or absent, come back as they were, and are not believed when they lie."""

import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
from videos import read_video

from hairkit.errors import FileError
from hairkit.io.files import check_folder, check_output, written_beside
from hairkit.io.strand_set import StrandSet
from hairkit.io.strands import load_strands, save_strands
from hairkit.io.video import save_picture, video_writer


def make_strands(frames: int = 3) -> StrandSet:
    """Return two strands of 3 and 4 points that move at random."""
    rng = np.random.default_rng(1)
    return StrandSet(
        points=rng.normal(size=(frames, 7, 3)).astype(np.float32),
        counts=np.array([3, 4]),
        times=np.arange(frames) / 60,
        head_pose=np.tile(np.eye(4), (frames, 1, 1)),
    )


def leftovers(folder: Path) -> list[str]:
    """Return what lies in a folder, hidden files included."""
    return sorted(os.listdir(folder))


def save_with(path: Path, **changes: object) -> Path:
    """Write a strands file with some arrays replaced, or left out where the change is None."""
    strands = make_strands()
    arrays = {name: getattr(strands, name) for name in ("points", "counts", "times", "head_pose")}
    arrays |= changes
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})
    return path


def test_file_appears_only_when_it_is_complete(tmp_path: Path):
    """Write half a file and fail; neither it nor the file beside may stay."""
    target = tmp_path / "a.txt"
    with pytest.raises(RuntimeError), written_beside(target) as beside:
        beside.write_text("half")
        raise RuntimeError
    assert leftovers(tmp_path) == []


def test_failed_write_keeps_the_file_that_was_there(tmp_path: Path):
    """Fail while replacing a file; the old one must still be whole."""
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt), written_beside(target) as beside:
        beside.write_text("new, ha")
        raise KeyboardInterrupt
    assert target.read_text() == "old"
    assert leftovers(tmp_path) == ["a.txt"]


def test_file_beside_keeps_the_ending(tmp_path: Path):
    """Look at the name that encoders choose their format by."""
    with written_beside(tmp_path / "a.mp4") as beside:
        assert beside.suffix == ".mp4"
        beside.write_bytes(b"x")
    assert leftovers(tmp_path) == ["a.mp4"]


def test_unknown_ending_names_the_known_ones():
    """Ask for a format that nothing writes."""
    with pytest.raises(FileError, match=r"'\.mp5'.*\.mp4, \.png.*did you mean '\.mp4'"):
        check_output("a.mp5", (".mp4", ".png"))
    with pytest.raises(FileError, match=r"missing"):
        check_output("a", (".mp4",))


def test_ending_is_read_in_any_case(tmp_path: Path):
    """Take .MP4 for what it is."""
    assert check_output(tmp_path / "a.MP4", (".mp4",)).name == "a.MP4"


def test_folder_must_exist_be_a_folder_and_writable(tmp_path: Path):
    """Try a missing folder, a file in a folder's place, and one that takes no files."""
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="no such folder"):
        check_folder(tmp_path / "missing")
    with pytest.raises(FileError, match="is a file"):
        check_folder(tmp_path / "file")
    with pytest.raises(FileError, match="cannot be written to"):
        check_folder("/proc/self")
    assert check_folder(tmp_path) == tmp_path
    assert leftovers(tmp_path) == ["file"]


def test_strands_come_back_as_they_were(tmp_path: Path):
    """Write and read strands without a groom."""
    strands = make_strands()
    save_strands(strands, tmp_path / "a.npz")
    back = load_strands(tmp_path / "a.npz")
    for name in ("points", "counts", "times", "head_pose"):
        np.testing.assert_array_equal(getattr(back, name), getattr(strands, name))
    assert back.points.dtype == np.float32
    assert back.counts.dtype == np.int32
    assert back.groom is None
    assert leftovers(tmp_path) == ["a.npz"]


@pytest.mark.parametrize("name", ["sphere", "mesh"])
def test_groom_comes_back_and_grows_the_same(tmp_path: Path, name: str):
    """Regrow a saved groom on the head that its file names; every rest point must be the same."""
    import hairkit as hk
    from hairkit.paths import assets_dir

    # On a mesh the nearest place to some roots is on another face than they were chosen on.
    mesh = name == "mesh"
    head = hk.Head.load(assets_dir() / "head.glb") if mesh else hk.Head.sphere(radius=0.09)
    groom = hk.grow(hk.load_style("curly").replace(length=0.2), head, guides=60, seed=0)
    poses = np.tile(np.eye(4), (2, 1, 1))
    frames = np.stack([groom.points, groom.points])
    strands = StrandSet.of(groom, points=frames, times=[0.0, 1 / 60], head_pose=poses)
    save_strands(strands, tmp_path / "a.npz")
    again = load_strands(tmp_path / "a.npz").regrow()
    assert again.style == groom.style
    assert again.head.thumbprint() == head.thumbprint()
    np.testing.assert_array_equal(again.counts, groom.counts)
    np.testing.assert_allclose(again.points, groom.points, atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"points": None}, r"'points' is missing"),
        ({"counts": None}, r"'counts' is missing"),
        ({"points": np.zeros((3, 7))}, r"points: shape \(3, 7\), expected \(frames, points, 3\)"),
        ({"points": np.full((3, 7, 3), np.nan)}, r"strand 0 is not finite"),
        ({"counts": np.array([3, 5])}, r"counts: sum is 8, expected 7"),
        ({"counts": np.array([6, 1])}, r"strand 1 has 1 points, expected 2 or more"),
        ({"counts": np.array([2**31 - 1, 2**31 - 1])}, r"counts: sum is 4294967294"),
        ({"counts": np.array([3.0, 4.0])}, r"counts: type float64, expected int32"),
        ({"times": np.zeros(2)}, r"times: 2 frames, expected 3"),
        ({"times": np.array([0.0, 2.0, 1.0])}, r"times: not in order"),
        ({"head_pose": np.zeros((3, 3, 3))}, r"head_pose: shape"),
        ({"style": np.array("name = 'x'")}, r"'roots' is missing"),
    ],
)
def test_wrong_arrays_are_named(tmp_path: Path, changes: dict[str, object], message: str):
    """Read files in which one array is missing or wrong; the message names file and array."""
    path = save_with(tmp_path / "a.npz", **changes)
    with pytest.raises(FileError, match=message) as caught:
        load_strands(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nan_names_its_strand(tmp_path: Path):
    """Break one point of the second strand."""
    points = make_strands().points.copy()
    points[1, 3, 0] = np.nan
    with pytest.raises(FileError, match="strand 1 is not finite"):
        load_strands(save_with(tmp_path / "a.npz", points=points))


def test_pickles_are_refused(tmp_path: Path):
    """Read an archive that would run code if it were unpickled."""
    path = save_with(tmp_path / "a.npz", points=np.array([print], dtype=object))
    with pytest.raises(FileError, match="points: holds Python objects"):
        load_strands(path)


def test_array_larger_than_its_bytes_is_refused(tmp_path: Path):
    """Read a header that promises terabytes; the message comes before memory is asked for."""
    path = tmp_path / "a.npz"
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000, 3), }"
    header = header.ljust(117) + b"\n"
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 12
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("points.npy", member)
    with pytest.raises(FileError, match=r"points: shape .* needs 12000000000000 bytes, found 12"):
        load_strands(path)


def test_truncated_and_foreign_files_are_refused(tmp_path: Path):
    """Cut a strands file at several places, and give a picture's bytes and nothing at all."""
    whole = save_with(tmp_path / "whole.npz").read_bytes()
    path = tmp_path / "a.npz"
    cuts = [whole[: len(whole) * part // 10] for part in range(1, 10)]
    for content in [b"", b"\x89PNG\r\n", *cuts]:
        path.write_bytes(content)
        with pytest.raises(FileError, match=r"a\.npz"):
            load_strands(path)


def test_damaged_bytes_are_refused(tmp_path: Path):
    """Flip a byte of an array; the archive's checksum must notice."""
    path = save_with(tmp_path / "a.npz")
    content = bytearray(path.read_bytes())
    content[len(content) // 4] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"a\.npz"):
        load_strands(path)


def test_missing_file_and_wrong_ending_are_named(tmp_path: Path):
    """Ask for a file that is not there, a folder, and a format that is not known."""
    with pytest.raises(FileError, match="no such file"):
        load_strands(tmp_path / "a.npz")
    with pytest.raises(FileError, match="is a folder"):
        load_strands(tmp_path)
    (tmp_path / "a.zip").write_bytes(b"")
    with pytest.raises(FileError, match=r"'\.zip' is not known, expected one of \.npz"):
        load_strands(tmp_path / "a.zip")
    with pytest.raises(FileError, match=r"expected one of \.npz"):
        save_strands(make_strands(), tmp_path / "a.tfx")


def test_picture_comes_back_exactly(tmp_path: Path):
    """Write and read a PNG of random pixels, without and with transparency."""
    rng = np.random.default_rng(0)
    for channels in (3, 4):
        image = rng.integers(0, 256, (5, 7, channels), dtype=np.uint8)
        save_picture(image, tmp_path / "a.png")
        np.testing.assert_array_equal(iio.imread(tmp_path / "a.png"), image)


@pytest.mark.parametrize("size", [(48, 64), (47, 63)])
def test_video_holds_every_frame_in_order(tmp_path: Path, size: tuple[int, int]):
    """Write frames of rising brightness, of even and odd size, and read them back."""
    height, width = size
    levels = [20, 90, 160, 230]
    with video_writer(tmp_path / "a.mp4", width=width, height=height, rate=30) as write:
        for level in levels:
            write(np.full((height, width, 3), level, dtype=np.uint8))
    back = read_video(tmp_path / "a.mp4", width=64, height=48)
    assert len(back) == 4
    # H.264 keeps a flat grey within a few levels.
    np.testing.assert_allclose(back.mean(axis=(1, 2, 3)), levels, atol=4)
    assert leftovers(tmp_path) == ["a.mp4"]


def test_video_that_fails_leaves_nothing(tmp_path: Path):
    """Stop while frames are written, give none, and give one of another size."""
    frame = np.zeros((48, 64, 3), dtype=np.uint8)
    path = tmp_path / "a.mp4"
    with (
        pytest.raises(KeyboardInterrupt),
        video_writer(path, width=64, height=48, rate=30) as write,
    ):
        write(frame)
        raise KeyboardInterrupt
    with (
        pytest.raises(FileError, match="no frame"),
        video_writer(path, width=64, height=48, rate=30),
    ):
        pass
    with (
        pytest.raises(FileError, match=r"expected \(48, 64, 3\)"),
        video_writer(path, width=64, height=48, rate=30) as write,
    ):
        write(frame[:10])
    assert leftovers(tmp_path) == []


def test_wrong_image_is_refused(tmp_path: Path):
    """Give images of the wrong type and shape."""
    for image in (np.zeros((4, 4, 3)), np.zeros((4, 4), np.uint8), np.zeros((0, 4, 3), np.uint8)):
        with pytest.raises(FileError, match="image of shape"):
            save_picture(image, tmp_path / "a.png")
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_video_leaves_nothing(tmp_path: Path, stop: signal.Signals):
    """Send a real signal to a process in the middle of a video."""
    program = f"""
import numpy as np, sys, time
from hairkit.cli import interruptible
from hairkit.io.video import video_writer
path = {str(tmp_path / "a.mp4")!r}
with interruptible(), video_writer(path, width=64, height=48, rate=30) as write:
    while True:
        write(np.zeros((48, 64, 3), np.uint8))
        print("frame", flush=True)
        time.sleep(0.01)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"frame\n"
    process.send_signal(stop)
    process.stdout.read()
    assert process.wait(timeout=20) != 0
    process.stdout.close()
    assert leftovers(tmp_path) == []
