"""Head motions: sequences of head poses, made here or read from a file.

Poses are those of `hairkit.poses`: a positive yaw turns the face to the head's left, a positive
pitch lowers it. Frame i is the pose at time (i + 1) / rate, so that in

    for pose in motion:
        hair.set_head(pose)
        world.step(1 / motion.rate)

each step ends at that frame's pose; `motion.start` is the pose at time zero, where hair is put on.
"""

import csv
import json
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from hairkit.errors import FileError, WorldError, nearest
from hairkit.poses import between, body_pose, from_quaternions, head_pose, rigid

__all__ = [
    "Motion",
    "body_pose",
    "from_file",
    "head_pose",
    "jump",
    "motion",
    "motion_names",
    "nod",
    "shake",
    "spin",
    "still",
    "turn",
    "turn_and_nod",
    "walk",
]

MAX_FRAMES = 1_000_000
"""Longest motion, so that a slip in `seconds` is an error rather than a full memory."""

GRAVITY = 9.81
"""Acceleration of a body in the air [m/s^2]."""


class Motion:
    """Head poses at a fixed rate; poses cannot be written to."""

    rate: float
    """Frames a second [1/s]."""

    poses: np.ndarray
    """Head frame to world frame at each of `times`, shape (frames, 4, 4), float64."""

    start: np.ndarray
    """Pose at time zero, shape (4, 4), float64."""

    def __init__(
        self, poses: np.ndarray, *, rate: float, start: np.ndarray | None = None, name: str = ""
    ) -> None:
        """Take poses as they are.

        Args:
            poses: Pose at time (i + 1) / rate for each frame i, shape (frames, 4, 4).
            rate: Frames a second [1/s].
            start: Pose at time zero, shape (4, 4); the first frame's when left out.
            name: What the motion is called.

        Raises:
            WorldError: Not finite rigid poses of that shape, or `rate` is not positive.
        """
        self.rate = _positive("rate", rate)
        self.poses = rigid(np.array(poses, dtype=np.float64))
        self.start = rigid(np.array(self.poses[:1] if start is None else [start], np.float64))[0]
        self.name = name
        self.poses.flags.writeable = False
        self.start.flags.writeable = False

    @property
    def times(self) -> np.ndarray:
        """Time of each frame [s], shape (frames,); the first is 1 / rate."""
        return np.arange(1, len(self) + 1) / self.rate

    @property
    def seconds(self) -> float:
        """Time of the last frame [s]."""
        return len(self) / self.rate

    def __len__(self) -> int:
        """Return how many frames there are."""
        return len(self.poses)

    def __iter__(self) -> Iterator[np.ndarray]:
        """Give each frame's pose, shape (4, 4)."""
        return iter(self.poses)

    def __getitem__(self, index: int | slice) -> np.ndarray:
        """Return a frame's pose, shape (4, 4), or those of a range of frames, shape (n, 4, 4)."""
        return self.poses[index]

    def __repr__(self) -> str:
        """Say which motion it is."""
        return f"Motion({self.name!r}, frames={len(self)}, rate={self.rate:g})"


# ---- named motions


def still(*, seconds: float = 5.0, rate: float = 60.0) -> Motion:
    """Keep the head still.

    Args:
        seconds: How long [s].
        rate: Frames a second [1/s].
    """
    return _made("still", seconds, rate, lambda time: head_pose(yaw=0.0 * time))


def turn(
    *,
    seconds: float = 5.0,
    rate: float = 60.0,
    angle: float = 0.9,
    frequency: float = 0.75,
    ease: float = 0.2,
) -> Motion:
    """Turn the head from side to side.

    Args:
        seconds: How long [s].
        rate: Frames a second [1/s].
        angle: Largest yaw either way [rad].
        frequency: Turns there and back a second [1/s].
        ease: Time over which the motion grows to its full size [s]; 0 starts it with a kick.
    """
    _check(angle=angle, frequency=frequency, ease=ease)
    return _made(
        "turn", seconds, rate, lambda time: head_pose(yaw=_swing(time, angle, frequency, ease))
    )


def nod(
    *,
    seconds: float = 5.0,
    rate: float = 60.0,
    angle: float = 0.5,
    frequency: float = 1.0,
    ease: float = 0.2,
) -> Motion:
    """Nod.

    Args:
        seconds: How long [s].
        rate: Frames a second [1/s].
        angle: Largest pitch either way [rad].
        frequency: Nods a second [1/s].
        ease: Time over which the motion grows to its full size [s]; 0 starts it with a kick.
    """
    _check(angle=angle, frequency=frequency, ease=ease)
    return _made(
        "nod", seconds, rate, lambda time: head_pose(pitch=_swing(time, angle, frequency, ease))
    )


def turn_and_nod(
    *,
    seconds: float = 5.0,
    rate: float = 60.0,
    turn_angle: float = 0.9,
    turn_frequency: float = 0.75,
    nod_angle: float = 0.5,
    nod_frequency: float = 1.0,
    ease: float = 0.2,
) -> Motion:
    """Turn and nod at once.

    Args:
        seconds: How long [s].
        rate: Frames a second [1/s].
        turn_angle: Largest yaw either way [rad].
        turn_frequency: Turns there and back a second [1/s].
        nod_angle: Largest pitch either way [rad].
        nod_frequency: Nods a second [1/s].
        ease: Time over which the motion grows to its full size [s]; 0 starts it with a kick.
    """
    _check(turn_angle=turn_angle, turn_frequency=turn_frequency, ease=ease)
    _check(nod_angle=nod_angle, nod_frequency=nod_frequency)

    def pose(time: np.ndarray) -> np.ndarray:
        return head_pose(
            yaw=_swing(time, turn_angle, turn_frequency, ease),
            pitch=_swing(time, nod_angle, nod_frequency, ease),
        )

    return _made("turn_and_nod", seconds, rate, pose)


def shake(
    *,
    seconds: float = 5.0,
    rate: float = 60.0,
    angle: float = 1.2,
    frequency: float = 1.4,
    shift: float = 0.05,
    shift_frequency: float = 1.0,
    ease: float = 0.2,
) -> Motion:
    """Shake the head violently: quick wide turns, while it is thrown from side to side.

    Args:
        seconds: How long [s].
        rate: Frames a second [1/s].
        angle: Largest yaw either way [rad].
        frequency: Turns there and back a second [1/s].
        shift: Largest move along X either way [m].
        shift_frequency: Moves there and back a second [1/s].
        ease: Time over which the motion grows to its full size [s]; 0 starts it with a kick.
    """
    _check(angle=angle, frequency=frequency, ease=ease)
    _check(shift=shift, shift_frequency=shift_frequency)

    def pose(time: np.ndarray) -> np.ndarray:
        place = np.zeros((len(time), 3))
        place[:, 0] = _swing(time, shift, shift_frequency, ease)
        return head_pose(yaw=_swing(time, angle, frequency, ease), position=place)

    return _made("shake", seconds, rate, pose)


def walk(
    *,
    seconds: float = 5.0,
    rate: float = 60.0,
    steps: float = 1.9,
    bob: float = 0.025,
    sway: float = 0.02,
    speed: float = 0.0,
    ease: float = 0.2,
) -> Motion:
    """Walk: the head bobs with every step, sways from foot to foot, and nods and turns a little.

    Args:
        seconds: How long [s].
        rate: Frames a second [1/s].
        steps: Steps a second [1/s].
        bob: How far the head drops between steps [m].
        sway: Largest move along X either way [m].
        speed: Walking speed along +Z [m/s]; 0 walks on the spot, in front of a camera that stays.
        ease: Time over which the motion grows to its full size [s]; 0 starts it with a kick.
    """
    _check(steps=steps, bob=bob, sway=sway, speed=speed, ease=ease)

    def pose(time: np.ndarray) -> np.ndarray:
        phase = 2.0 * np.pi * steps * time
        grow = _grown(time, ease)
        place = np.zeros((len(time), 3))
        place[:, 0] = sway * grow * np.sin(0.5 * phase)
        place[:, 1] = -0.5 * bob * grow * (1.0 - np.cos(phase))
        place[:, 2] = speed * (_travel(time, ease))
        yaw = 0.06 * grow * np.sin(0.5 * phase)
        pitch = 0.03 * grow * np.sin(phase)
        return head_pose(yaw=yaw, pitch=pitch, position=place)

    return _made("walk", seconds, rate, pose)


def jump(
    *,
    seconds: float = 5.0,
    rate: float = 60.0,
    height: float = 0.3,
    crouch: float = 0.5,
    pause: float = 0.3,
) -> Motion:
    """Jump again and again: crouch, fly, land in a crouch, stand.

    Args:
        seconds: How long [s].
        rate: Frames a second [1/s].
        height: Top of the flight above standing height [m].
        crouch: Time that a crouch takes before and after the flight [s].
        pause: Time to stand between jumps [s].
    """
    _check(height=height, pause=pause)
    crouch = _positive("crouch", crouch)
    leave = math.sqrt(2.0 * GRAVITY * height)
    flight = 2.0 * leave / GRAVITY

    def pose(time: np.ndarray) -> np.ndarray:
        now = np.mod(time, 2.0 * crouch + flight + pause)
        # A cubic from rest at 0 to the take-off speed at 0; landing is the same, backwards.
        before = now / crouch
        after = np.clip((2.0 * crouch + flight - now) / crouch, 0.0, 1.0)
        in_air = now - crouch
        place = np.zeros((len(time), 3))
        place[:, 1] = np.select(
            [before < 1.0, in_air < flight],
            [
                leave * crouch * (before**3 - before**2),
                leave * in_air - 0.5 * GRAVITY * in_air**2,
            ],
            leave * crouch * (after**3 - after**2),
        )
        return head_pose(position=place)

    return _made("jump", seconds, rate, pose)


def spin(
    *, seconds: float = 5.0, rate: float = 60.0, angle: float = math.pi, duration: float = 0.1
) -> Motion:
    """Turn the head around once, fast, and then keep it still.

    Args:
        seconds: How long in all [s].
        rate: Frames a second [1/s].
        angle: How far it turns [rad].
        duration: Time that the turn takes, from rest to rest [s].
    """
    _check(angle=angle)
    duration = _positive("duration", duration)
    return _made("spin", seconds, rate, lambda time: head_pose(yaw=angle * _grown(time, duration)))


_NAMED: dict[str, Callable[..., Motion]] = {
    made.__name__: made for made in (still, turn, nod, turn_and_nod, shake, walk, jump, spin)
}


def motion_names() -> list[str]:
    """Return the names that `motion` knows."""
    return sorted(_NAMED)


def motion(name: str, *, seconds: float = 5.0, rate: float = 60.0, **options: float) -> Motion:
    """Return a motion by its name.

    Args:
        name: A name of `motion_names()` (case, spaces, dashes and underscores do not matter), or
            the path of a file that `from_file` reads.
        seconds: How long [s].
        rate: Frames a second [1/s].
        **options: Keywords of that motion's function.

    Raises:
        WorldError: No such motion, or a number is out of range.
        FileError: The file cannot be read.
    """
    bare = {_bare(known): known for known in _NAMED}
    known = bare.get(_bare(str(name)))
    if known is not None:
        return _NAMED[known](seconds=seconds, rate=rate, **options)
    if Path(str(name)).suffix.lower() in _READERS:
        return from_file(name, seconds=seconds, rate=rate)
    hint = nearest(str(name).replace("-", "_").replace(" ", "_"), _NAMED)
    known_names = ", ".join(motion_names())
    raise WorldError(f"unknown motion {str(name)[:60]!r}{hint} (motions: {known_names})")


# ---- files

_UNREADABLE = (
    ArithmeticError,
    EOFError,
    KeyError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    csv.Error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy, JSON and CSV raise for a file that is damaged or is something else."""


def from_file(
    path: str | os.PathLike[str], *, seconds: float | None = None, rate: float | None = None
) -> Motion:
    """Read head poses from a file and give them at a fixed rate; the head waits at its last pose.

    - `.npz`: `poses` (or `head_pose`, as in a strands file) and `times` [s] or `rate` [1/s].
    - `.npy`: poses, 60 a second unless `rate` says otherwise.
    - `.json`: `{"poses": ..., "times": ...}` or `{"poses": ..., "rate": ...}`.
    - `.csv`: a row a pose: time [s], then x y z [m] and a quaternion x y z w, or the 16 numbers of
      the matrix row by row. A first row of names is skipped.

    Poses have shape (n, 4, 4) or (n, 16); in between, the head moves straight and turns evenly.
    Time zero is the first pose's, except that a file whose first pose comes one frame after zero
    (as a `Motion` has it) keeps its times.

    Args:
        path: The file.
        seconds: How long [s]; as long as the file when left out.
        rate: Frames a second [1/s]; the file's when left out.

    Raises:
        FileError: The file cannot be read or a pose or time in it is wrong.
        WorldError: `seconds` or `rate` is not positive.
    """
    path = Path(path)
    if seconds is not None:
        seconds = _positive("seconds", seconds)
    if rate is not None:
        rate = _positive("rate", rate)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise FileError(f"{path}: expected a motion file that ends in {', '.join(_READERS)}")
    try:
        poses, times = _checked(*reader(path, rate or 60.0))
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except _UNREADABLE as error:
        problem = " ".join(str(error).split())[:200] or type(error).__name__
        raise FileError(f"{path}: not a motion: {problem}") from None
    gap = float(np.median(np.diff(times))) if len(times) > 1 else 1.0 / (rate or 60.0)
    if not 0.0 < times[0] <= 1.5 * gap:
        times = times - times[0]
    # Rounded, so that times such as 1/30 and 2/30 make 30 frames a second and not 29.999...
    rate = rate or float(f"{1.0 / gap:.9g}")
    if seconds is None:
        seconds = max(float(times[-1]), 1.0 / rate)
    return _made(path.stem, seconds, rate, lambda time: between(time, times, poses))


def _read_npz(path: Path, rate: float) -> tuple[Any, Any]:
    # Opened here: np.load leaves a file open that is a broken archive.
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError("expected several named arrays")
        wanted = {"poses", "head_pose", "times", "rate"} & set(file.files)
        return _from_table({name: file[name] for name in wanted}, rate)


def _read_npy(path: Path, rate: float) -> tuple[Any, Any]:
    with path.open("rb") as opened:
        poses = np.load(opened, allow_pickle=False)
    if not isinstance(poses, np.ndarray):
        raise ValueError("expected one array")
    return _from_table({"poses": poses}, rate)


def _read_json(path: Path, rate: float) -> tuple[Any, Any]:
    table = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(table, dict):
        raise ValueError("expected an object with 'poses' and 'times' or 'rate'")
    return _from_table(table, rate)


def _from_table(table: Mapping[str, Any], rate: float) -> tuple[Any, Any]:
    poses = table.get("poses", table.get("head_pose"))
    if poses is None:
        raise ValueError("'poses' is missing")
    if "times" in table:
        return poses, table["times"]
    step = 1.0 / _positive("rate", float(table.get("rate", rate)))
    return poses, np.arange(1, len(poses) + 1) * step


def _read_csv(path: Path, rate: float) -> tuple[Any, Any]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row and not row[0].lstrip().startswith("#")]
    if rows and not _is_number(rows[0][0]):
        del rows[0]
    widths = {len(row) for row in rows}
    if widths not in ({8}, {17}):
        raise ValueError(f"expected rows of 8 or 17 numbers, got {sorted(widths)}")
    table = np.array(rows, dtype=np.float64)
    return (table[:, 1:] if widths == {17} else from_quaternions(table[:, 1:])), table[:, 0]


_READERS = {".npz": _read_npz, ".npy": _read_npy, ".json": _read_json, ".csv": _read_csv}


def _checked(poses: Any, times: Any) -> tuple[np.ndarray, np.ndarray]:
    poses = np.array(poses, dtype=np.float64)
    times = np.array(times, dtype=np.float64)
    if poses.ndim == 2 and poses.shape[1] == 16:
        poses = poses.reshape(-1, 4, 4)
    poses = rigid(poses)
    if times.shape != (len(poses),):
        raise ValueError(f"times: expected shape ({len(poses)},), got {times.shape}")
    wrong = np.flatnonzero(~np.isfinite(times) | (np.diff(times, prepend=-np.inf) <= 0.0))
    if wrong.size:
        raise ValueError(f"times[{wrong[0]}] = {times[wrong[0]]:g}: expected times that increase")
    return poses, times


# ---- numbers


def _made(
    name: str, seconds: float, rate: float, pose: Callable[[np.ndarray], np.ndarray]
) -> Motion:
    """Sample a motion given as a function of time; the same curve whatever the rate."""
    seconds = _positive("seconds", seconds)
    rate = _positive("rate", rate)
    if seconds * rate > MAX_FRAMES:
        raise WorldError(f"seconds = {seconds:g} at rate = {rate:g}: over {MAX_FRAMES} frames")
    count = max(1, round(seconds * rate))
    poses = pose(np.arange(count + 1) / rate)
    return Motion(poses[1:], rate=rate, start=poses[0], name=name)


_NOT_NEGATIVE = {
    "ease",
    "frequency",
    "height",
    "nod_frequency",
    "pause",
    "shift_frequency",
    "steps",
    "turn_frequency",
}
"""Which numbers of the named motions may not be negative; a size may have either sign."""


def _check(**numbers: float) -> None:
    for name, value in numbers.items():
        low = 0.0 if name in _NOT_NEGATIVE else -math.inf
        good = isinstance(value, Real) and math.isfinite(value) and value >= low
        if not good or isinstance(value, bool):
            wanted = "a finite number" + ("" if low else ", 0 or more")
            raise WorldError(f"{name} = {value!r}: expected {wanted}")


def _positive(name: str, value: float) -> float:
    good = isinstance(value, Real) and math.isfinite(value) and value > 0.0
    if not good or isinstance(value, bool):
        raise WorldError(f"{name} = {value!r}: expected a finite number greater than 0")
    return float(value)


def _grown(time: np.ndarray, ease: float) -> np.ndarray:
    # Speed and acceleration are zero at both ends.
    share = np.clip(time / ease, 0.0, 1.0) if ease > 0.0 else np.ones_like(time)
    return share**3 * (10.0 + share * (6.0 * share - 15.0))


def _travel(time: np.ndarray, ease: float) -> np.ndarray:
    # Integral of _grown: where something is whose speed grows to 1.
    if ease <= 0.0:
        return time
    share = np.clip(time / ease, 0.0, 1.0)
    return ease * share**4 * (2.5 + share * (share - 3.0)) + np.maximum(time - ease, 0.0)


def _swing(time: np.ndarray, size: float, frequency: float, ease: float) -> np.ndarray:
    return size * _grown(time, ease) * np.sin(2.0 * np.pi * frequency * time)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _bare(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter not in " -_\t")
