"""Motions: what heads do, at any rate, from names and from files."""

import json
import subprocess
import sys

import numpy as np
import pytest

from hairkit import motions
from hairkit.errors import FileError, WorldError

NAMES = motions.motion_names()


def angles(poses):
    """Return yaw and pitch of poses made as yaw after pitch [rad]."""
    yaw = np.arctan2(poses[:, 0, 2], poses[:, 2, 2])
    pitch = np.arctan2(-poses[:, 1, 2], poses[:, 1, 1])
    return yaw, pitch


def some_motion():
    """Return a short motion that turns, nods and moves."""
    poses = motions.head_pose(
        yaw=np.linspace(0.1, 2.0, 7),
        pitch=np.linspace(0.0, 0.4, 7),
        roll=np.linspace(0.3, -0.2, 7),
        position=np.linspace([0, 0, 0], [0.1, 1.5, -3.0], 7),
    )
    return motions.Motion(poses, rate=30.0, name="some")


# ---- poses


def test_yaw_turns_the_face_to_the_left_and_pitch_lowers_it():
    """Follow the face's direction, +Z, and the top's, +Y, through each turn."""
    face, top = np.array([0, 0, 1, 0.0]), np.array([0, 1, 0, 0.0])
    assert (motions.head_pose(yaw=0.3) @ face)[0] > 0  # +X is the head's left
    assert (motions.head_pose(pitch=0.3) @ face)[1] < 0
    assert (motions.head_pose(roll=0.3) @ top)[0] < 0


def test_body_follows_the_head_without_turning():
    """Keep the translation of one pose and of many, and nothing else."""
    pose = motions.head_pose(yaw=1.0, pitch=0.5, position=(1, 2, 3))
    body = motions.body_pose(pose)
    assert np.array_equal(body[:3, :3], np.eye(3))
    assert np.array_equal(body[:, 3], pose[:, 3])
    many = motions.body_pose(np.stack([pose, np.eye(4)]))
    assert np.array_equal(many, [body, np.eye(4)])


# ---- named motions


@pytest.mark.parametrize("name", NAMES)
def test_every_motion_is_rigid_and_starts_at_identity(name):
    """Check rotations, the frame count, the times, and that the head starts where it is bound."""
    motion = motions.motion(name, seconds=3, rate=50)
    assert len(motion) == len(list(motion)) == 150
    assert motion.poses.shape == (150, 4, 4) and motion.poses.dtype == np.float64
    assert np.allclose(motion.times, np.arange(1, 151) / 50)
    turn = motion.poses[:, :3, :3]
    assert np.allclose(turn @ turn.transpose(0, 2, 1), np.eye(3), atol=1e-12)
    assert np.allclose(np.linalg.det(turn), 1.0)
    assert np.array_equal(motion.poses[:, 3], np.tile([0, 0, 0, 1.0], (150, 1)))
    assert np.allclose(motion.start, np.eye(4))
    assert motion[-1] is not None and np.array_equal(motion[-1], motion.poses[149])


@pytest.mark.parametrize("name", NAMES)
def test_every_motion_starts_from_rest(name):
    """Refine time: the first frame's speed goes to zero, so hair is not kicked."""
    slow, fast = (
        np.abs(motions.motion(name, seconds=0.01, rate=rate)[0] - np.eye(4)).max() * rate
        for rate in (1e3, 1e5)
    )
    assert fast < 1e-2
    assert fast <= slow


@pytest.mark.parametrize("name", NAMES)
def test_every_motion_is_the_same_at_any_rate(name):
    """Compare 30, 60 and 120 frames a second at the times that they share."""
    slow, middle, fast = (motions.motion(name, seconds=2, rate=rate) for rate in (30, 60, 120))
    assert np.allclose(slow.poses, middle.poses[1::2], atol=1e-12)
    assert np.allclose(slow.poses, fast.poses[3::4], atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_every_motion_is_continuous(name):
    """Bound each frame's move by a speed that no head exceeds."""
    motion = motions.motion(name, seconds=5, rate=1000)
    step = np.abs(np.diff(motion.poses, axis=0, prepend=motion.start[None])).max()
    assert step * 1000 < 80.0


@pytest.mark.parametrize(
    ("name", "yaw", "pitch", "yaw_rate", "pitch_rate"),
    [
        ("turn", 0.9, 0.0, 0.75, 0.0),
        ("nod", 0.0, 0.5, 0.0, 1.0),
        ("turn_and_nod", 0.9, 0.5, 0.75, 1.0),
        ("shake", 1.2, 0.0, 1.4, 0.0),
    ],
)
def test_swings_have_their_size_and_frequency(name, yaw, pitch, yaw_rate, pitch_rate):
    """Measure the largest angle either way and the strongest frequency over 20 s."""
    motion = motions.motion(name, seconds=20, rate=100)
    for angle, size, frequency in zip(
        angles(motion.poses), (yaw, pitch), (yaw_rate, pitch_rate), strict=True
    ):
        assert angle.max() == pytest.approx(size, rel=1e-2)
        assert angle.min() == pytest.approx(-size, rel=1e-2)
        if size:
            strongest = np.argmax(np.abs(np.fft.rfft(angle))[1:]) + 1
            assert strongest / 20 == pytest.approx(frequency)


def test_shake_throws_the_head_by_five_centimetres():
    """Measure the sideways move."""
    place = motions.shake(seconds=20, rate=100).poses[:, 0, 3]
    assert place.max() == pytest.approx(0.05, rel=1e-2)
    assert np.argmax(np.abs(np.fft.rfft(place))[1:]) + 1 == 20


def test_spin_turns_half_around_in_a_tenth_of_a_second_and_stays():
    """Find half a turn at 0.1 s, exactly, and no motion after it."""
    poses = motions.spin(seconds=1, rate=100).poses
    half = motions.head_pose(yaw=np.pi)
    assert np.allclose(poses[9:], half, atol=1e-12)
    assert not np.allclose(poses[8], half, atol=1e-3)


def test_jump_flies_as_a_thrown_body():
    """Reach the height asked for, and fall at g while in the air."""
    height = motions.jump(seconds=3, rate=1000, height=0.2).poses[:, 1, 3]
    assert height.max() == pytest.approx(0.2, rel=1e-3)
    assert height.min() < -0.05
    second = np.diff(height, 2) * 1e6
    flying = height[1:-1] > 0.01
    assert np.allclose(second[flying], -motions.GRAVITY, atol=1e-3)


def test_walk_goes_forward_at_its_speed():
    """Travel along +Z when a speed is given, and stay near when it is not."""
    assert motions.walk(seconds=4, rate=50, speed=1.5)[-1][2, 3] == pytest.approx(5.85)
    assert motions.walk(seconds=4, rate=50, speed=1.5, ease=0)[-1][2, 3] == pytest.approx(6.0)
    assert np.abs(motions.walk(seconds=4, rate=50).poses[:, :3, 3]).max() < 0.05


def test_without_ease_a_turn_is_a_plain_sine():
    """Compare an uneased turn with its formula."""
    motion = motions.turn(seconds=2, rate=60, angle=0.4, frequency=2.0, ease=0)
    yaw, _ = angles(motion.poses)
    assert np.allclose(yaw, 0.4 * np.sin(4 * np.pi * motion.times))


def test_poses_cannot_be_written_to():
    """Refuse to change a frame, which other users of the motion share."""
    motion = motions.turn(seconds=1)
    with pytest.raises(ValueError, match="read-only"):
        motion[0][0, 0] = 2.0


# ---- names and numbers


@pytest.mark.parametrize("name", ["turn_and_nod", "Turn and nod", "TURN-AND-NOD"])
def test_names_forgive_case_and_separators(name):
    """Find one motion under many spellings."""
    assert motions.motion(name, seconds=1).name == "turn_and_nod"


def test_unknown_name_suggests_the_nearest():
    """Name the motion that was meant, in one line."""
    with pytest.raises(WorldError, match=r"'shaek'.*'shake'") as caught:
        motions.motion("shaek")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "5", None, True])
@pytest.mark.parametrize("number", ["seconds", "rate"])
def test_seconds_and_rate_must_be_positive(number, value):
    """Name the number and its value, in one line."""
    with pytest.raises(WorldError, match=f"^{number} = ") as caught:
        motions.motion("turn", **{number: value})
    assert "\n" not in str(caught.value)


def test_endless_motion_is_refused():
    """Refuse more frames than memory should hold, before making any."""
    with pytest.raises(WorldError, match="frames"):
        motions.still(seconds=1e12)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (motions.turn, {"angle": float("nan")}),
        (motions.turn, {"frequency": -1}),
        (motions.nod, {"ease": -0.1}),
        (motions.shake, {"shift": float("inf")}),
        (motions.turn_and_nod, {"nod_frequency": "1"}),
        (motions.walk, {"steps": float("nan")}),
        (motions.jump, {"height": -0.1}),
        (motions.jump, {"crouch": 0}),
        (motions.spin, {"duration": 0}),
    ],
)
def test_sizes_must_be_finite_and_frequencies_not_negative(make, options):
    """Name the number that is wrong."""
    with pytest.raises(WorldError, match=f"^{next(iter(options))} = "):
        make(**options)


def test_very_short_motion_has_one_frame():
    """Give at least one frame."""
    assert len(motions.turn(seconds=1e-4, rate=30)) == 1


@pytest.mark.parametrize(
    "poses",
    [
        np.zeros((0, 4, 4)),
        np.zeros((3, 4)),
        np.full((1, 4, 4), np.nan),
        2.0 * np.eye(4)[None],
        np.diag([1, 1, -1, 1.0])[None],
        np.full((1, 4, 4), 3e30),
    ],
)
def test_poses_must_be_rigid(poses):
    """Refuse poses that scale, mirror, or are not numbers."""
    with pytest.raises(WorldError, match="poses"):
        motions.Motion(poses, rate=60)


# ---- files


def write(motion, path, *, times=None):
    """Write a motion in the format that the file's ending says."""
    times = motion.times if times is None else times
    if path.suffix == ".npz":
        np.savez(path, poses=motion.poses, times=times)
    elif path.suffix == ".json":
        path.write_text(json.dumps({"poses": motion.poses.tolist(), "times": list(times)}))
    elif path.suffix == ".csv":
        rows = np.column_stack([times, motion.poses.reshape(-1, 16)]).tolist()
        lines = [",".join(map(repr, row)) for row in rows]
        path.write_text("time," + ",".join(f"m{i}" for i in range(16)) + "\n" + "\n".join(lines))
    else:
        np.save(path, motion.poses)


@pytest.mark.parametrize("ending", [".npz", ".json", ".csv", ".npy"])
def test_motion_comes_back_from_a_file(tmp_path, ending):
    """Write a motion, read it, and find the same frames at the same times."""
    motion = some_motion()
    path = tmp_path / f"some{ending}"
    write(motion, path)
    rate = 30 if ending == ".npy" else None
    again = motions.from_file(path, rate=rate)
    assert again.rate == pytest.approx(30.0)
    assert np.array_equal(again.poses, motion.poses)
    assert np.array_equal(motions.motion(str(path), seconds=1, rate=30)[6], motion[6])


def test_strands_file_serves_as_a_motion(tmp_path):
    """Read the head poses that a simulation saved beside its points."""
    motion = some_motion()
    np.savez(tmp_path / "s.npz", head_pose=motion.poses, times=motion.times, points=np.zeros(3))
    assert np.array_equal(motions.from_file(tmp_path / "s.npz").poses, motion.poses)


def test_file_that_starts_late_or_early_starts_at_its_first_pose(tmp_path):
    """Shift a clip's times; its motion is the same and begins at the clip's first pose."""
    motion = some_motion()
    for first in (100.0, -3.0, 0.0):
        write(motion, tmp_path / "clip.npz", times=first + np.arange(7) / 30)
        again = motions.from_file(tmp_path / "clip.npz")
        assert np.allclose(again.start, motion[0])
        assert np.allclose(again.poses, motion.poses[1:], atol=1e-9)


def test_head_waits_at_its_last_pose(tmp_path):
    """Ask for more seconds than the file has."""
    write(some_motion(), tmp_path / "clip.npz")
    longer = motions.from_file(tmp_path / "clip.npz", seconds=1.0)
    assert len(longer) == 30
    assert np.array_equal(longer[-1], some_motion()[-1])


@pytest.mark.parametrize("angle", [1e-9, 0.1, 1.5, 3.0, np.pi - 1e-7, np.pi])
def test_rotation_between_two_poses_is_even(tmp_path, angle):
    """Read four times as many frames as the file has; the head turns about one axis, evenly."""
    axis = np.array([0.48, 0.6, 0.64])
    half = [*(axis * np.sin(angle / 2)), np.cos(angle / 2)]
    rows = [[0, 0, 0, 0, 0, 0, 0, 1], [1, 4, 0, 0, *half]]
    (tmp_path / "q.csv").write_text("\n".join(",".join(map(repr, map(float, r))) for r in rows))
    motion = motions.from_file(tmp_path / "q.csv", rate=4)
    steps = np.concatenate([motion.start[None], motion.poses])
    turns = steps[:-1, :3, :3].transpose(0, 2, 1) @ steps[1:, :3, :3]
    expected = np.arange(5) / 4
    assert np.allclose(steps[:, 0, 3], 4 * expected)
    assert np.allclose(turns, turns[0], atol=1e-7)
    assert np.allclose(turns @ axis, axis, atol=1e-7)
    found = np.arccos(np.clip((np.trace(turns[0]) - 1) / 2, -1, 1))
    assert found == pytest.approx(angle / 4, abs=1e-7)


def test_quaternions_are_x_y_z_w(tmp_path):
    """Turn 90 degrees about +Y by a quaternion: the face looks along +X."""
    root = 0.5**0.5
    (tmp_path / "q.csv").write_text(f"0,1,2,3,0,{root},0,{root}\n")
    pose = motions.from_file(tmp_path / "q.csv")[0]
    assert np.allclose(pose, motions.head_pose(yaw=np.pi / 2, position=(1, 2, 3)))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b""),
        ("a.csv", b"time,x\n1,2\n"),
        ("a.csv", b"0,0,0,0,0,0,0,9\n"),
        ("a.csv", b"0,0,0,0,0,0,0,nan\n"),
        ("a.csv", b"0,0,0,0,0,0,0,1\n0,0,0,0,0,0,0,1\n"),
        ("a.csv", b"0,0,0,0,0,0,0,1\n1,0,0,zero,0,0,0,1\n"),
        ("a.csv", b"\xff\xfe"),
        ("a.json", b"[1, 2"),
        ("a.json", b"[]"),
        ("a.json", b"{}"),
        ("a.json", b"[" * 100000),
        ("a.json", b'{"poses": 3, "rate": 60}'),
        ("a.json", b'{"poses": [[1, 2], [3]], "rate": 60}'),
        ("a.json", b'{"poses": [], "rate": 60}'),
        ("a.json", b'{"poses": [[1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1]], "rate": 0}'),
        ("a.npy", b"\x93NUMPY"),
        ("a.npz", b"PK\x03\x04 and nothing"),
        ("a.npz", b""),
        ("a.bvh", b"HIERARCHY"),
    ],
)
def test_bad_files_give_one_line_with_their_name(tmp_path, name, content):
    """Refuse broken, empty and foreign files."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=name) as caught:
        motions.from_file(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_pickled_arrays_are_not_loaded(tmp_path):
    """Refuse an array of Python objects, which could run anything when loaded."""
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match=r"a\.npy"):
        motions.from_file(tmp_path / "a.npy")


def test_truncated_npz_is_refused(tmp_path):
    """Cut a file at many places; each gives the same kind of error or the whole motion."""
    write(some_motion(), tmp_path / "a.npz")
    whole = (tmp_path / "a.npz").read_bytes()
    for size in range(0, len(whole), 97):
        (tmp_path / "a.npz").write_bytes(whole[:size])
        with pytest.raises(FileError):
            motions.from_file(tmp_path / "a.npz")


def test_missing_file_is_named(tmp_path):
    """Say which file is missing."""
    with pytest.raises(FileError, match=r"none\.npz: cannot be read"):
        motions.from_file(tmp_path / "none.npz")


def test_motions_leave_taichi_out():
    """Import motions in a fresh interpreter and see that Taichi did not start."""
    code = "import sys, hairkit.motions as m; m.turn(); assert 'taichi' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
