"""Moving strands as one .npz file, with all that is needed to grow the same groom again."""

import functools
import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hairkit.errors import FileError, nearest
from hairkit.groom import Groom, grow
from hairkit.head import UNITS, Head
from hairkit.io.files import check_input, check_output, written_beside
from hairkit.paths import assets_dir
from hairkit.style import Style

ENDINGS = (".npz",)
"""Endings that strands can be written to and read from."""

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
class Strands:
    """Strands over time, as simulated or as read from a file."""

    points: np.ndarray
    """World positions strand by strand, root to tip [m], shape (frames, points, 3), f32."""

    counts: np.ndarray
    """Points of each strand, shape (strands,), i32; their sum is the number of points."""

    times: np.ndarray
    """Time of each frame [s], shape (frames,), f64."""

    head_pose: np.ndarray
    """Head frame to world frame at each frame, shape (frames, 4, 4), f64."""

    groom: GroomRecord | None = None
    """How the strands were grown, where that is known."""

    def __post_init__(self) -> None:
        """Check shapes and values, and settle the types."""
        _settle(self, "points", np.float32, ("frames", "points", 3))
        _settle(self, "counts", np.int32, ("strands",))
        _settle(self, "times", np.float64, ("frames",))
        _settle(self, "head_pose", np.float64, ("frames", 4, 4))
        frames, total = self.points.shape[:2]
        for name in ("times", "head_pose"):
            found = len(getattr(self, name))
            if found != frames:
                raise FileError(f"{name}: {found} frames, expected {frames} as in points")
        if len(self.counts) and self.counts.min() < 2:
            strand = int(self.counts.argmin())
            raise FileError(
                f"counts: strand {strand} has {self.counts[strand]} points, expected 2 or more"
            )
        if int(self.counts.sum(dtype=np.int64)) != total:
            raise FileError(
                f"counts: sum is {self.counts.sum(dtype=np.int64)}, "
                f"expected {total} as many as there are points"
            )
        bad = ~np.isfinite(self.points).all(axis=(0, 2))
        if bad.any():
            strand = int(np.searchsorted(np.cumsum(self.counts), bad.argmax(), side="right"))
            raise FileError(f"points: strand {strand} is not finite, expected numbers")
        if not np.isfinite(self.times).all() or (np.diff(self.times) < 0).any():
            raise FileError("times: not in order, expected numbers that never fall")

    @classmethod
    def of(
        cls,
        groom: Groom,
        *,
        points: Sequence[np.ndarray] | np.ndarray,
        times: Sequence[float] | np.ndarray,
        head_pose: Sequence[np.ndarray] | np.ndarray,
    ) -> "Strands":
        """Put a groom and the frames of its motion together.

        Args:
            groom: What was simulated.
            points: World positions of each frame [m], each of shape (points, 3).
            times: Time of each frame [s].
            head_pose: Head frame to world frame at each frame, each of shape (4, 4).
        """
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
            directions=record.directions,
            lengths=record.lengths,
            tied_to=record.tied_to,
        )


def save_strands(strands: Strands, path: str | os.PathLike[str]) -> None:
    """Write strands to a file whose ending picks the format: .npz.

    Raises:
        FileError: The ending is not known or the file cannot be written.
    """
    target = check_output(path, ENDINGS)
    arrays = {name: getattr(strands, name) for name in ("points", "counts", "times", "head_pose")}
    if strands.groom is not None:
        groom = strands.groom
        arrays |= {name: getattr(groom, name) for name in _GROOM_SHAPES}
        arrays["tied_to"] = groom.tied_to
        arrays["style"] = np.array(groom.style)
        arrays["seed"] = np.array(groom.seed, dtype=np.int64)
        arrays["head"] = np.array(groom.head.source)
        arrays["head_hash"] = np.array(groom.head.digest)
        arrays["head_options"] = np.array(json.dumps(groom.head.options, sort_keys=True))
    with written_beside(target) as beside, open(beside, "wb") as file:
        np.savez(file, **arrays)


def load_strands(path: str | os.PathLike[str]) -> Strands:
    """Read strands from a file whose ending tells the format: .npz.

    Raises:
        FileError: There is no such file, it is not of that format, or an array is missing or wrong.
    """
    source = check_input(path, "a strands file")
    ending = source.suffix.lower()
    if ending not in ENDINGS:
        raise FileError(
            f"{source}: ending {ending or 'missing'!r} is not known, expected one of "
            f"{', '.join(ENDINGS)}{nearest(ending, ENDINGS) if ending else ''}"
        )
    arrays = _read_npz(source)
    try:
        for name in ("points", "counts", "times", "head_pose"):
            if name not in arrays:
                raise FileError(f"array {name!r} is missing, expected it in a strands file")
        groom = _groom_record(arrays) if "style" in arrays else None
        return Strands(
            points=arrays["points"],
            counts=arrays["counts"],
            times=arrays["times"],
            head_pose=arrays["head_pose"],
            groom=groom,
        )
    except FileError as error:
        raise FileError(f"{source}: {error}") from error


_GROOM_SHAPES: dict[str, tuple[str | int, ...]] = {
    "roots": ("strands", 3),
    "normals": ("strands", 3),
    "directions": ("strands", 3),
    "lengths": ("strands",),
}


def _groom_record(arrays: dict[str, np.ndarray]) -> GroomRecord:
    values: dict[str, np.ndarray] = {}
    strands = len(_array(arrays["counts"], "counts", np.int32, ("strands",)))
    for name, shape in _GROOM_SHAPES.items():
        if name not in arrays:
            raise FileError(f"array {name!r} is missing, expected it beside 'style'")
        values[name] = _array(arrays[name], name, np.float64, shape)
        if len(values[name]) != strands:
            raise FileError(f"{name}: {len(values[name])} strands, expected {strands} as in counts")
        if not np.isfinite(values[name]).all():
            strand = int((~np.isfinite(values[name]).reshape(strands, -1).all(axis=1)).argmax())
            raise FileError(f"{name}: strand {strand} is not finite, expected numbers")
    tied_to = np.full(strands, -1, np.int32)
    if "tied_to" in arrays:
        tied_to = _array(arrays["tied_to"], "tied_to", np.int32, ("strands",))
        if len(tied_to) != strands:
            raise FileError(f"tied_to: {len(tied_to)} strands, expected {strands} as in counts")
    options = _text(arrays, "head_options", default="{}")
    try:
        parsed = json.loads(options)
    except ValueError as error:
        raise FileError(f"head_options: {options[:40]!r}, expected a JSON object") from error
    if not isinstance(parsed, dict):
        raise FileError(f"head_options: {options[:40]!r}, expected a JSON object")
    seed = _array(arrays["seed"], "seed", np.int64, ()) if "seed" in arrays else np.int64(0)
    return GroomRecord(
        style=_text(arrays, "style"),
        tied_to=tied_to,
        seed=int(seed),
        head=HeadRecord(
            source=_text(arrays, "head"),
            digest=_text(arrays, "head_hash", default=""),
            options=parsed,
        ),
        **values,
    )


def _text(arrays: dict[str, np.ndarray], name: str, *, default: str | None = None) -> str:
    if name not in arrays:
        if default is None:
            raise FileError(f"array {name!r} is missing, expected it beside 'style'")
        return default
    value = arrays[name]
    if value.dtype.kind != "U" or value.shape != ():
        raise FileError(f"{name}: {value.dtype} of shape {value.shape}, expected one text")
    return str(value)


def _settle(
    strands: Strands, name: str, dtype: type[np.generic], shape: tuple[str | int, ...]
) -> None:
    object.__setattr__(strands, name, _array(getattr(strands, name), name, dtype, shape))


def _array(
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
    kinds = "iu" if np.issubdtype(dtype, np.integer) else "iuf"
    if value.dtype.kind not in kinds:
        raise FileError(f"{name}: type {value.dtype}, expected {np.dtype(dtype)}")
    return np.ascontiguousarray(value, dtype=dtype).reshape(value.shape)


def _read_npz(source: Path) -> dict[str, np.ndarray]:
    """Read every array of an archive, trusting neither its pickles nor its sizes."""
    arrays: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(source) as archive:
            for entry in archive.infolist():
                name = entry.filename.removesuffix(".npy")
                with archive.open(entry) as file:
                    _check_header(file, entry.file_size, name)
                with archive.open(entry) as file:
                    arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
    except FileError as error:
        raise FileError(f"{source}: {error}") from error
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise FileError(f"{source}: not a whole .npz archive ({error})") from error
    except ValueError as error:
        raise FileError(f"{source}: not a readable array ({error})") from error
    except OSError as error:
        raise FileError(f"{source}: cannot be read ({error.strerror or error})") from error
    return arrays


def _check_header(file: Any, size: int, name: str) -> None:
    """Compare what an array says of itself with its bytes, before memory is asked for."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    if dtype.hasobject:
        raise FileError(f"{name}: holds Python objects, expected numbers or text")
    count = 1
    for length in shape:
        count *= length
    there = size - file.tell()
    if count * dtype.itemsize != there:
        raise FileError(
            f"{name}: shape {shape} of {dtype} needs {count * dtype.itemsize} bytes, found {there}"
        )


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
