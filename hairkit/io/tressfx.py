"""AMD TressFX's .tfx files, read only: it asks for strands of 4 to 64 points, all of one count.

Little-endian: a header of 160 bytes (version f32; strands, points of each, and the offsets of
positions (4 f32 a point), strand UV (2 f32 a strand), vertex UV (2 f32 a point), thickness (f32 a
strand) and colours (4 f32 a point), u32, 0 for absent; 32 reserved u32), then the arrays.
"""

import struct
from pathlib import Path

import numpy as np

from hairkit.errors import FileError
from hairkit.io.dirty import lost, strands_of_file
from hairkit.io.strand_set import StrandSet

_SIZE = 160
_PARTS = ("position", "strand UV", "vertex UV", "thickness", "color")


def read(path: Path) -> StrandSet:
    """Read strands; strand UV become ``root_uv``, thickness ``widths``.

    Raises:
        FileError: It is no .tfx file, or an array reaches past its end.
    """
    try:
        size = path.stat().st_size
        with open(path, "rb") as file:
            raw = file.read(_SIZE)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error
    if len(raw) < _SIZE:
        raise FileError(f"{path}: cut short, {len(raw)} bytes, expected a header of {_SIZE}")
    version, strands, each, *offsets = struct.unpack_from("<fII5I", raw)
    if not 1.0 <= version < 100.0:
        if 1.0 <= struct.unpack_from(">f", raw)[0] < 100.0:
            raise FileError(f"{path}: its numbers are big-endian, expected little-endian")
        raise FileError(f"{path}: version {version:.3g}, expected about 4, as in a .tfx file")
    if strands and not each:
        raise FileError(f"{path}: {strands} strands of 0 points, expected 2 or more")
    total = strands * each
    widths = dict(zip(_PARTS, (4, 2, 2, 1, 4), strict=True))
    rows = dict(zip(_PARTS, (total, strands, total, strands, total), strict=True))
    found: dict[str, np.ndarray] = {}
    if not offsets[0]:
        raise FileError(f"{path}: offset of position is 0, expected positions")
    for name, offset in zip(_PARTS, offsets, strict=True):
        if not offset:
            continue
        bytes_needed = 4 * widths[name] * rows[name]
        if offset < _SIZE or offset + bytes_needed > size:
            raise FileError(
                f"{path}: {name} of {strands} strands of {each} points needs bytes {offset} to "
                f"{offset + bytes_needed}, found {size}"
            )
        if name != "vertex UV":
            count = widths[name] * rows[name]
            values = np.fromfile(path, "<f4", count, offset=offset)
            found[name] = values.reshape(-1, widths[name])
    if offsets[_PARTS.index("vertex UV")]:
        lost(path, ["vertex UV"], "a strand set")
    thickness = found.get("thickness")
    color = found.get("color")
    return strands_of_file(
        path,
        np.ascontiguousarray(found["position"][:, :3]),
        np.full(strands, each, np.int64),
        root_uv=found.get("strand UV"),
        widths=None if thickness is None else np.repeat(thickness[:, 0], each),
        colors=None if color is None else np.ascontiguousarray(color[:, :3]),
    )
