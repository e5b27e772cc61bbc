"""The strand set: hair as flat ragged arrays, one frame or a motion, whatever format it is from."""

import functools
import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hairkit.errors import FileError
from hairkit.groom import Groom, grow
from hairkit.head import UNITS, Head
from hairkit.paths import assets_dir
from hairkit.style import Style

_SHIPPED = "hairkit:"


@dataclass(frozen=True, kw_only=True)
class HeadRecord:
    """Which head a groom grew on, so that it can be loaded again."""

    source: str
    """Path of its mesh as it was given, ``hairkit:`` and a name for one of ours, or ``sphere``."""

    digest: str = ""
    """SHA-256 of the file's bytes; a mesh that changed since is noticed."""

    options: dict[str, Any] = field(default_factory=dict)
    """What else `Head.load` or `Head.sphere` was called with."""


@dataclass(frozen=True, kw_only=True)
class GroomRecord:
    """What `grow` needs to grow the same groom again, without its points."""

    style: str
    """The style as TOML."""

    roots: np.ndarray
    """Roots in the head's frame [m], shape (strands, 3), f64."""

    normals: np.ndarray
    """The scalp's normal at each root, shape (strands, 3), f64."""

    directions: np.ndarray
    """Unit directions that strands leave along, shape (strands, 3), f64."""

    lengths: np.ndarray
    """Each strand's length as a fraction of the style's, shape (strands,), f64."""

    tied_to: np.ndarray
    """Row of each strand's tie in the style, -1 for none, shape (strands,), i32."""

    seed: int
    """Seed of everything random in it."""

    head: HeadRecord
    """The head it grew on."""


@dataclass(frozen=True, kw_only=True)
class StrandSet:
    """Strands at one time or over time: metres, +Y up, right-handed, in the world's frame.

    What a format does not carry is None.
    """

    points: np.ndarray
    """Positions strand by strand, root to tip [m], shape (frames, points, 3), f32."""

    counts: np.ndarray
    """Points of each strand, shape (strands,), i32; their sum is the number of points."""

    times: np.ndarray = field(default_factory=lambda: np.zeros(1))
    """Time of each frame [s], shape (frames,), f64."""

    head_pose: np.ndarray | None = None
    """Head frame to world frame at each frame, shape (frames, 4, 4), f64."""

    widths: np.ndarray | None = None
    """Width (diameter) of the strand at each point [m], shape (points,), f32."""

    colors: np.ndarray | None = None
    """sRGB colour at each point, 0..1, shape (points, 3), f32."""

    root_uv: np.ndarray | None = None
    """Where on the scalp's texture each strand grows, shape (strands, 2), f32."""

    root_normals: np.ndarray | None = None
    """The scalp's unit normal at each root, shape (strands, 3), f32."""

    ids: np.ndarray | None = None
    """A number for each strand that stays the same from file to file, shape (strands,), i32."""

    groups: np.ndarray | None = None
    """Which part of the groom each strand belongs to, shape (strands,), i32."""

    guides: np.ndarray | None = None
    """Which strands are guides that others follow, shape (strands,), bool."""

    groom: GroomRecord | None = None
    """How the strands were grown, where that is known."""

    def __post_init__(self) -> None:
        """Check shapes and values, and settle the types."""
        for name, (dtype, shape) in FIELDS.items():
            if getattr(self, name) is not None:
                settled = as_array(getattr(self, name), name, dtype, shape)
                object.__setattr__(self, name, settled)
        frames, total = self.points.shape[:2]
        strands = len(self.counts)
        wanted = {"frames": frames, "points": total, "strands": strands}
        for name, (_, shape) in FIELDS.items():
            value = getattr(self, name)
            if value is not None and len(value) != wanted[str(shape[0])]:
                raise FileError(
                    f"{name}: {len(value)} {shape[0]}, expected {wanted[str(shape[0])]} "
                    f"as in {'counts' if shape[0] == 'strands' else 'points'}"
                )
        if strands and self.counts.min() < 2:
            strand = int(self.counts.argmin())
            raise FileError(
                f"counts: strand {strand} has {self.counts[strand]} points, expected 2 or more"
            )
        if int(self.counts.sum(dtype=np.int64)) != total:
            raise FileError(
                f"counts: sum is {self.counts.sum(dtype=np.int64)}, "
                f"expected {total} as many as there are points"
            )
        # First all at once: which point it is, is seldom asked.
        if not np.isfinite(self.points).all():
            bad = ~np.isfinite(self.points).all(axis=(0, 2))
            strand = int(np.searchsorted(np.cumsum(self.counts), bad.argmax(), side="right"))
            raise FileError(f"points: strand {strand} is not finite, expected numbers")
        if not np.isfinite(self.times).all() or (np.diff(self.times) < 0).any():
            raise FileError("times: not in order, expected numbers that never fall")

    @property
    def starts(self) -> np.ndarray:
        """Row of each strand's root in ``points``, shape (strands,), i64."""
        return np.cumsum(self.counts, dtype=np.int64) - self.counts

    @classmethod
    def of(
        cls,
        groom: Groom,
        *,
        points: Sequence[np.ndarray] | np.ndarray,
        times: Sequence[float] | np.ndarray,
        head_pose: Sequence[np.ndarray] | np.ndarray,
    ) -> "StrandSet":
        """Put a groom and the frames of its motion together.

        Of a groom whose strands were given these are all that there is to say.

        Args:
            groom: What was simulated.
            points: World positions of each frame [m], each of shape (points, 3).
            times: Time of each frame [s].
            head_pose: Head frame to world frame at each frame, each of shape (4, 4).
        """
        record = None
        if not groom.given:
            record = GroomRecord(
                style=groom.style.to_toml(),
                roots=groom.roots,
                normals=groom.normals,
                directions=groom.directions,
                lengths=groom.lengths,
                tied_to=groom.tied_to,
                seed=groom.seed,
                head=_record_head(groom.head),
            )
        return cls(
            points=np.asarray(points),
            counts=groom.counts,
            times=np.asarray(times),
            head_pose=np.asarray(head_pose),
            groom=record,
        )

    def regrow(self, *, head: Head | None = None, source: str = "strands") -> Groom:
        """Grow the same groom again, from its roots, directions and seed.

        Args:
            head: Grow on this head; by default the one that the groom grew on, loaded again.
            source: What to call these strands in messages, such as the file's name.

        Raises:
            FileError: The strands came without a groom, or their head is gone or has changed.
        """
        if self.groom is None:
            raise FileError(f"{source}: holds no groom, expected strands that hairkit simulated")
        record = self.groom
        return grow(
            Style.from_toml(record.style, source=f"{source} (style)"),
            head if head is not None else _load_head(record.head, source),
            guides=len(record.roots),
            seed=record.seed,
            roots=record.roots,
            normals=record.normals if head is None else None,
            directions=record.directions,
            lengths=record.lengths,
            tied_to=record.tied_to,
        )


FIELDS: dict[str, tuple[type[np.generic], tuple[str | int, ...]]] = {
    "points": (np.float32, ("frames", "points", 3)),
    "counts": (np.int32, ("strands",)),
    "times": (np.float64, ("frames",)),
    "head_pose": (np.float64, ("frames", 4, 4)),
    "widths": (np.float32, ("points",)),
    "colors": (np.float32, ("points", 3)),
    "root_uv": (np.float32, ("strands", 2)),
    "root_normals": (np.float32, ("strands", 3)),
    "ids": (np.int32, ("strands",)),
    "groups": (np.int32, ("strands",)),
    "guides": (np.bool_, ("strands",)),
}


class AddFrame(Protocol):
    """Takes one frame of a motion that is being written."""

    def __call__(self, points: np.ndarray, time: float) -> None:
        """Write a frame: points [m], shape (points, 3), at a time [s] later than the last."""
        ...


Reader = Callable[[Path], StrandSet]
"""Reads a whole file of one format; raises `FileError`, naming the file, where it cannot."""

Writer = Callable[[Path, StrandSet, int], AbstractContextManager[AddFrame]]
"""Opens a file of one format for so many frames of a set whose points are given frame by frame: of
the set itself everything but points, times and head_pose is written."""


def as_array(
    value: np.ndarray, name: str, dtype: type[np.generic], shape: tuple[str | int, ...]
) -> np.ndarray:
    """Return an array in its type after checking its shape; a named length may be anything."""
    value = np.asarray(value)
    fits = value.ndim == len(shape) and all(
        isinstance(want, str) or want == found
        for want, found in zip(shape, value.shape, strict=False)
    )
    if not fits:
        wanted = "(" + ", ".join(str(length) for length in shape) + ")"
        raise FileError(f"{name}: shape {value.shape}, expected {wanted}")
    kinds = {"i": "iu", "b": "b"}.get(np.dtype(dtype).kind, "iuf")
    if value.dtype.kind not in kinds:
        raise FileError(f"{name}: type {value.dtype}, expected {np.dtype(dtype)}")
    with np.errstate(over="ignore", invalid="ignore"):
        settled = np.ascontiguousarray(value, dtype=dtype).reshape(value.shape)
    if np.dtype(dtype).kind == "i" and value.dtype != dtype and (settled != value).any():
        raise FileError(f"{name}: a number is out of range, expected {np.dtype(dtype)}")
    return settled


def _record_head(head: Head) -> HeadRecord:
    if head.is_sphere:
        options = {"radius": head.radius, "crown": head.crown, "hairline": head.hairline}
        return HeadRecord(source="sphere", options=options)
    linear = head.file_from_head[:3, :3]
    units = min(UNITS, key=lambda name: abs(1.0 / UNITS[name] - np.linalg.norm(linear[:, 1])))
    options = {
        "units": units,
        "up": _axis_name(linear[:, 1]),
        "front": _axis_name(linear[:, 2]),
        "crown": head.crown,
        "hairline": head.hairline,
    }
    if head.own_scalp:
        options["scalp"] = np.flatnonzero(head.scalp_faces).tolist()
    path = Path(head.source)
    # The head that comes with hairkit lies elsewhere on every machine.
    shipped = path.resolve().parent == assets_dir().resolve()
    source = _SHIPPED + path.name if shipped else head.source
    try:
        digest = _digest(path)
    except OSError:
        digest = ""
    return HeadRecord(source=source, digest=digest, options=options)


def _load_head(record: HeadRecord, source: str) -> Head:
    if record.source == "sphere":
        return _call_head(Head.sphere, record, source)
    if record.source.startswith(_SHIPPED):
        path = assets_dir() / Path(record.source.removeprefix(_SHIPPED)).name
    else:
        path = Path(record.source)
        if not path.is_file():
            # Files that travel together often leave their folder behind.
            path = Path(source).parent / path.name
    if not path.is_file():
        raise FileError(
            f"{source}: head: no such file {record.source!r}, expected the mesh it grew on "
            "(or another head, given)"
        )
    if record.digest and _digest(path) != record.digest:
        raise FileError(
            f"{source}: head: {path} has changed since, expected the mesh it grew on "
            "(or another head, given)"
        )
    return _call_head(functools.partial(Head.load, path), record, source)


def _call_head(make: Callable[..., Head], record: HeadRecord, source: str) -> Head:
    try:
        return make(**record.options)
    except TypeError as error:
        raise FileError(f"{source}: head_options: {error}, expected options of a head") from error


def _axis_name(direction: np.ndarray) -> str:
    axis = int(np.abs(direction).argmax())
    return ("-" if direction[axis] < 0 else "") + "xyz"[axis]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
