"""Strands of every format: a file's ending picks the module that reads and writes it."""

import importlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hairkit.errors import FileError, nearest
from hairkit.io.dirty import lost, warn_of_size
from hairkit.io.file_axes import to_metres, turned, turned_points
from hairkit.io.files import check_input, check_output, written_beside
from hairkit.io.strand_set import FIELDS, AddFrame, StrandSet


@dataclass(frozen=True, kw_only=True)
class Format:
    """What is known of a format before its module is loaded.

    The module has `read`, and `writer` where ``written``; ``HOLDS`` in it names the fields of
    `StrandSet` that have a place in such a file. Where it has none, its writer warns by itself.
    """

    module: str
    """Name of the module in ``hairkit.io``."""

    extra: str = ""
    """The extra of hairkit that has to be installed for it."""

    motion: bool = False
    """Whether a file holds more than one frame."""

    written: bool = True
    """Whether it is written, and not read only."""

    has_units: bool = False
    """Whether a file says, or the format fixes, what its unit is."""

    takes_units: bool = False
    """Whether its module converts units itself; such files are written with +Y up."""

    has_up: bool = False
    """Whether a file says which axis is up, so that its module turns what it reads."""


_USD = Format(module="usd", extra="usd", motion=True, has_units=True, takes_units=True, has_up=True)

FORMATS = {
    ".npz": Format(module="npz", motion=True, has_units=True),
    ".hair": Format(module="cem_hair"),
    ".data": Format(module="usc_data"),
    ".bin": Format(module="usc_data"),
    ".tfx": Format(module="tressfx", written=False),
    ".ply": Format(module="ply"),
    ".glb": Format(module="gltf_lines", has_units=True),
    ".usd": _USD,
    ".usda": _USD,
    ".usdc": _USD,
    ".abc": Format(module="alembic", extra="alembic", motion=True, takes_units=True),
}
"""Every format by its ending."""

ENDINGS = tuple(FORMATS)
"""Endings that strands can be read from."""

WRITTEN = tuple(ending for ending, known in FORMATS.items() if known.written)
"""Endings that strands can be written to."""

MOVING = tuple(ending for ending in WRITTEN if FORMATS[ending].motion)
"""Of those, the endings of formats that hold a motion, and not one frame only."""


def load_strands(
    path: str | os.PathLike[str],
    *,
    units: str | None = None,
    up: str | None = None,
    swizzle: str | None = None,
) -> StrandSet:
    """Read strands from a file whose ending tells the format: one of `ENDINGS`.

    What is wrong with single strands is warned of (`FileWarning`), and they are dropped where they
    are none: see `hairkit.io.dirty`. So is a size that no hair has, where a format has no units.

    Args:
        path: The file.
        units: What one unit of the file is (m, dm, cm, mm or in), if not what the file itself says;
            where it says nothing, metres.
        up: The file's upward axis, if it is not +Y or what the file itself says.
        swizzle: In place of ``up``: which axis of the file X, Y and Z are, such as ``x,z,-y``.

    Raises:
        FileError: There is no such file, it is not of that format, something in it is missing or
            wrong, or the extra that reads the format is not installed.
    """
    source = check_input(path, "a strands file")
    ending = source.suffix.lower()
    if ending not in FORMATS:
        raise FileError(
            f"{source}: ending {ending or 'missing'!r} is not known, expected one of "
            f"{', '.join(ENDINGS)}{nearest(ending, ENDINGS) if ending else ''}"
        )
    known = FORMATS[ending]
    matrix = to_metres(None if known.takes_units else units, up, swizzle)
    options: dict[str, Any] = {"units": units} if known.takes_units else {}
    if known.has_up and (up is not None or swizzle is not None):
        options["upright"] = False
    # Whatever a file's numbers become on the way: what is not finite is found in the end.
    with _extra(source, known), np.errstate(all="ignore"):
        strands = _module(known).read(source, **options)
    try:
        strands = turned(strands, matrix)
    except FileError as error:
        raise FileError(f"{source}: {error}") from error
    if not known.has_units:
        warn_of_size(source, strands, units or "m")
    return strands


def save_strands(
    strands: StrandSet,
    path: str | os.PathLike[str],
    *,
    frame: int | None = None,
    units: str | None = None,
    up: str | None = None,
    **options: Any,
) -> None:
    """Write strands to a file whose ending picks the format: one of `WRITTEN`.

    What the format has no place for is warned of by name, once (`FileWarning`).

    Args:
        strands: What to write.
        path: The file, complete or not at all.
        frame: Write this frame alone; negative numbers count from the last one.
        units: What one unit of the file shall be (m, dm, cm, mm or in), by default metres.
        up: The upward axis that the file shall have, by default ``y``.
        options: The format's own.

    Raises:
        FileError: The ending is not known, the file cannot be written, the strands are more than
            the format can count, or they move and the format holds one frame only.
    """
    target = check_output(path, WRITTEN)
    if frame is not None:
        if not -len(strands.times) <= frame < len(strands.times):
            raise FileError(
                f"{target}: frame {frame}, expected one of the {len(strands.times)} there are"
            )
        strands = one_frame(strands, frame)
    frames = len(strands.times)
    if strands.head_pose is not None:
        options["head_pose"] = strands.head_pose
    with open_strands(target, strands, frames, units=units, up=up, **options) as add:
        for points, time in zip(strands.points, strands.times.tolist(), strict=True):
            add(points, time)


@contextmanager
def open_strands(
    path: str | os.PathLike[str],
    like: StrandSet,
    frames: int = 1,
    *,
    head_pose: np.ndarray | None = None,
    units: str | None = None,
    up: str | None = None,
    **options: Any,
) -> Iterator[AddFrame]:
    """Open a file for strands whose frames are given one by one, and not kept.

    Args:
        path: The file, complete or not at all; its ending picks the format.
        like: Strands with all that is to be written but points and times, which are not looked at.
        frames: How many frames will come.
        head_pose: Head frame to world frame at each frame, shape (frames, 4, 4).
        units: As `save_strands`.
        up: As `save_strands`.
        options: The format's own.

    Yields:
        What to call with each frame's points [m], shape (points, 3), and its time [s].

    Raises:
        FileError: As `save_strands`; or the frames given are not as many, or not of the points,
            that were promised.
    """
    target = check_output(path, WRITTEN)
    known = FORMATS[target.suffix.lower()]
    if frames != 1 and not known.motion:
        raise FileError(
            f"{target}: {frames} frames, expected one in {target.suffix.lower()} (frame=, "
            f"--frame), or a format that moves: {', '.join(MOVING)}"
        )
    if known.takes_units:
        if up not in (None, "y"):
            raise FileError(f"{target}: up: {up!r}, expected y in {target.suffix.lower()}")
        up = None
        options |= {} if units is None else {"units": units}
        units = None
    matrix = to_metres(units, up)
    out_of_metres = None if matrix is None else np.linalg.inv(matrix)
    like = replace(turned(like, out_of_metres), head_pose=None)
    if matrix is not None:
        head_pose = None
    shape, done, latest = (like.points.shape[1], 3), 0, -np.inf
    with _extra(target, known):
        module = _module(known)
    held = getattr(module, "HOLDS", None)
    if held is not None:
        there = [name for name in FIELDS if getattr(like, name) is not None]
        there += ["head_pose"] * (head_pose is not None) + ["groom"] * (like.groom is not None)
        lost(target, [name for name in there if name not in {*held, "times"}], target.suffix)
    if head_pose is not None and held is not None and "head_pose" in held:
        options["head_pose"] = head_pose
    with (
        written_beside(target) as beside,
        _named(target, beside, others=False),
        ExitStack() as opened,
    ):
        with _extra(target, known), _named(target, beside):
            write = opened.enter_context(module.writer(beside, like, frames, **options))

        def add(points: np.ndarray, time: float) -> None:
            nonlocal done, latest
            if points.shape != shape or not np.isfinite(points).all():
                raise FileError(
                    f"{target}: frame {done}: points of shape {points.shape}, "
                    f"expected {shape}, finite"
                )
            if done == frames or not time >= latest:
                raise FileError(
                    f"{target}: frame {done} at {time:g} s, expected {frames} frames, each later"
                )
            done, latest = done + 1, time
            moved = points if out_of_metres is None else turned_points(points, out_of_metres)
            with _named(target, beside):
                write(moved, time)

        yield add
        if done != frames:
            raise FileError(f"{target}: {done} frames came, expected {frames}")
        with _named(target, beside):
            opened.close()


def one_frame(strands: StrandSet, frame: int) -> StrandSet:
    """Return a set with one frame of another's, at time 0."""
    pose = strands.head_pose
    return replace(
        strands,
        points=strands.points[frame][None],
        times=np.zeros(1),
        head_pose=None if pose is None else pose[frame][None],
    )


def _module(known: Format) -> Any:
    # By name: what a format needs is loaded, and has to be installed, only where it is used.
    return importlib.import_module(f"hairkit.io.{known.module}")


@contextmanager
def _extra(path: Path, known: Format) -> Iterator[None]:
    """Say how to install what a format needs, where it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not known.extra:
            raise
        raise FileError(
            f"{path}: {path.suffix.lower()} needs more than is installed ({error.name}): "
            f'pip install "hairkit[{known.extra}]"'
        ) from error


@contextmanager
def _named(target: Path, beside: Path, *, others: bool = True) -> Iterator[None]:
    """Let errors name the file that was asked for: all, or those that name the one beside it."""
    try:
        yield
    except FileError as error:
        if not others and not str(error).startswith(f"{beside}: "):
            raise
        reason = str(error).removeprefix(f"{beside}: ").removeprefix(f"{target}: ")
        raise FileError(f"{target}: {reason}") from error
