"""Moving strands as one .npz file, with all that is needed to grow the same groom again."""

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from hairkit.errors import FileError, nearest
from hairkit.io.files import check_input, check_output, written_beside
from hairkit.io.strand_set import FIELDS, GroomRecord, HeadRecord, StrandSet, as_array

ENDINGS = (".npz",)
"""Endings that strands can be written to and read from."""


def save_strands(strands: StrandSet, path: str | os.PathLike[str]) -> None:
    """Write strands to a file whose ending picks the format: .npz.

    Raises:
        FileError: The ending is not known or the file cannot be written.
    """
    target = check_output(path, ENDINGS)
    arrays = {name: getattr(strands, name) for name in FIELDS if getattr(strands, name) is not None}
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


def load_strands(path: str | os.PathLike[str]) -> StrandSet:
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
        for name in ("points", "counts"):
            if name not in arrays:
                raise FileError(f"array {name!r} is missing, expected it in a strands file")
        groom = _groom_record(arrays) if "style" in arrays else None
        return StrandSet(**{name: arrays[name] for name in FIELDS if name in arrays}, groom=groom)
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
    strands = len(as_array(arrays["counts"], "counts", np.int32, ("strands",)))
    for name, shape in _GROOM_SHAPES.items():
        if name not in arrays:
            raise FileError(f"array {name!r} is missing, expected it beside 'style'")
        values[name] = as_array(arrays[name], name, np.float64, shape)
        if len(values[name]) != strands:
            raise FileError(f"{name}: {len(values[name])} strands, expected {strands} as in counts")
        if not np.isfinite(values[name]).all():
            strand = int((~np.isfinite(values[name]).reshape(strands, -1).all(axis=1)).argmax())
            raise FileError(f"{name}: strand {strand} is not finite, expected numbers")
    tied_to = np.full(strands, -1, np.int32)
    if "tied_to" in arrays:
        tied_to = as_array(arrays["tied_to"], "tied_to", np.int32, ("strands",))
        if len(tied_to) != strands:
            raise FileError(f"tied_to: {len(tied_to)} strands, expected {strands} as in counts")
    options = _text(arrays, "head_options", default="{}")
    try:
        parsed = json.loads(options)
    except ValueError as error:
        raise FileError(f"head_options: {options[:40]!r}, expected a JSON object") from error
    if not isinstance(parsed, dict):
        raise FileError(f"head_options: {options[:40]!r}, expected a JSON object")
    seed = as_array(arrays["seed"], "seed", np.int64, ()) if "seed" in arrays else np.int64(0)
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
