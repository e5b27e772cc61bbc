"""Alembic: strands as curves with Unreal's groom attributes, by the library alembic3d.

Names, types and scopes are those of "Alembic for Grooms", version 1.5, as Epic publishes it.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hairkit import __version__
from hairkit.errors import FileError
from hairkit.io.curves import linear_from_srgb
from hairkit.io.files import written_beside
from hairkit.io.scenes import check_frame, in_units, metres_in, read_scene, require
from hairkit.io.strand_set import AddFrame, StrandSet

ENDINGS = (".abc",)
"""Endings of the files that are read and written."""

HOLDS = ("points", "counts", "times", "widths", "colors", "root_uv", "root_normals")
HOLDS += ("ids", "groups", "guides")
"""Fields of a strand set that have a place in such a file."""

_LIBRARY = "Alembic"
_HDF5 = b"\x89HDF\r\n\x1a\n"
_OGAWA = b"Ogawa"
_ROOM = 1 << 20
"""Bytes that must be left on the disk for what the library writes beside arrays."""


def read(path: Path, *, units: str | None = None) -> StrandSet:
    """Read all visible strands of an Alembic archive: metres, +Y up, world frame.

    Read are ``ICurves``, several objects put together, with the transforms above them at every
    sample's time. Vertices are points, as Unreal takes them, except in files without
    ``groom_version_major`` for cubic B-splines, and Bezier curves whose vertex counts fit: those
    are evaluated, see `hairkit.io.curves.sampling`, as curves that reach their end vertices.
    Beside points: ``groom_width`` or the curves' own width, ``groom_color`` (linear; sRGB here),
    ``groom_root_uv`` or the curves' own uv, ``groom_id``, ``groom_group_id``, ``groom_guide``;
    as they are in their first sample.

    The library runs in a process of its own with limits: it ends on many damaged files.

    Args:
        path: The file.
        units: One of `hairkit.head.UNITS`; by default centimetres where the file has
            ``groom_version_major``, which says that it is for Unreal, else metres. Alembic itself
            stores no unit.

    Raises:
        FileError: The library is not installed; or the file is no Ogawa archive, has strands that
            do not fit its points, or none.
    """
    scale = None if units is None else metres_in(units)
    try:
        with open(path, "rb") as file:
            start = file.read(8)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error
    if start == _HDF5:
        raise FileError(
            f"{path}: is HDF5 Alembic, expected Ogawa; export it again as Ogawa, the default since "
            "Alembic 1.5"
        )
    if not start.startswith(_OGAWA):
        raise FileError(f"{path}: begins with {start[:5]!r}, expected an Alembic file (b'Ogawa')")
    if len(start) < 6 or start[5] != 0xFF:
        raise FileError(f"{path}: was never finished by its writer, expected a whole Alembic file")
    require("alembic3d", "alembic", path)
    return read_scene("hairkit.io.abc_archive:read", path, library=_LIBRARY, scale=scale)


@contextmanager
def writer(path: Path, like: StrandSet, frames: int, *, units: str = "cm") -> Iterator[AddFrame]:
    """Write strands as one curves object for Unreal, frame by frame.

    Positions and widths are in centimetres by default, as Unreal's importer expects, and +Y is up,
    as in Alembic files from other tools. Curves are linear. Memory stays flat: samples are written
    as they come. Alembic wants to know the times of frames before the first: they are those of
    ``like`` if it has as many, else evenly spaced as the first two.

    Args:
        path: The file.
        like: What it is a motion of.
        frames: How many frames will come.
        units: One of `hairkit.head.UNITS`: what lengths are in. Alembic does not say it in the
            file, and `read` takes grooms for centimetres.

    Raises:
        FileError: The library is not installed, a frame has another shape or comes at another
            time, or the file cannot be written.
    """
    require("alembic3d", "alembic", path)
    metres = metres_in(units)
    with written_beside(path) as beside:
        motion = _Motion(beside, path, like, frames, metres)
        try:
            yield motion.add
            motion.finish()
        finally:
            motion.close()


class _Motion:
    """An archive that frames are added to."""

    def __init__(
        self, beside: Path, path: Path, like: StrandSet, frames: int, metres: float
    ) -> None:
        self.path, self.beside, self.like, self.frames = path, beside, like, frames
        self.total, self.metres = int(like.counts.sum()), metres
        self.count = 0
        self.times = like.times if len(like.times) == frames else None
        self.first: tuple[np.ndarray, float] | None = None
        self.schema: Any = None

    def add(self, points: np.ndarray, time: float) -> None:
        """Write a frame, the first one when the second tells the step."""
        points = check_frame(self.path, np.asarray(points), self.total, self.count, self.metres)
        self.count += 1
        if self.schema is None:
            if self.first is None and self.frames > 1:
                self.first = points.copy(), time
                return
            self._start(time)
        self._check_time(time)
        self._set(points)

    def finish(self) -> None:
        """Make sure that every frame came."""
        if self.count != self.frames:
            raise FileError(f"{self.path}: {self.count} frames, expected {self.frames}")

    def close(self) -> None:
        """Let go of the archive, which writes the end of the file."""
        self.schema = None

    def _check_room(self, arrays: list[np.ndarray | None]) -> None:
        # Where the disk is full when an archive is closed, the library ends the process.
        size = sum(array.nbytes for array in arrays if array is not None)
        if shutil.disk_usage(self.beside.parent).free < size + _ROOM:
            raise FileError(f"{self.path}: could not be written (disk full), expected room")

    def _start(self, time: float) -> None:
        from alembic3d import Abc, AbcCoreAbstract

        before, start = self.first if self.first is not None else (None, time)
        if not self._known(start, time):
            step = time - start if time > start else 1 / 24
            self.times = start + step * np.arange(self.frames)
        times = np.asarray(self.times)
        steps = np.diff(times)
        if before is not None and (steps <= 0.0).any():
            raise FileError(f"{self.path}: times do not rise, expected each frame after the last")
        if len(steps) and np.ptp(steps) > 1e-9 * times[-1]:
            stored = AbcCoreAbstract.TimeVector()
            for value in times.tolist():
                stored.append(value)
            acyclic = AbcCoreAbstract.TimeSamplingType(AbcCoreAbstract.AcyclicFlag.kAcyclic)
            kept = AbcCoreAbstract.TimeSampling(acyclic, stored)
        else:
            step = float(steps.mean()) if len(steps) else 1 / 24
            kept = AbcCoreAbstract.TimeSampling(step, float(times[0]))
        like = self.like
        # Widths are written twice: for everyone, and for Unreal.
        self._check_room([getattr(like, name) for name in (*HOLDS, "widths") if name != "points"])
        try:
            archive = Abc.OArchive(str(self.beside))
            self.schema = _define(archive, kept, like, self.metres)
        except RuntimeError as error:
            raise FileError(
                f"{self.path}: could not be written, expected room and permission"
            ) from error
        if before is not None:
            self._set(before)

    def _known(self, start: float, time: float) -> bool:
        """Return whether the set that this is a motion of has these times."""
        if self.times is None:
            return False
        pair = [start, time] if self.frames > 1 else [start]
        return bool(np.allclose(self.times[: len(pair)], pair, rtol=0.0, atol=1e-9))

    def _check_time(self, time: float) -> None:
        times = np.asarray(self.times)
        if self.count > self.frames:
            raise FileError(f"{self.path}: over {self.frames} frames, expected no more")
        wanted = float(times[self.count - 1])
        step = float(times[1] - times[0]) if len(times) > 1 else 1.0
        if abs(time - wanted) > 1e-3 * step:
            raise FileError(
                f"{self.path}: frame {self.count - 1} is at {time} s, expected {wanted} s: Alembic "
                "needs the times before the first frame, or frames evenly spaced"
            )

    def _set(self, points: np.ndarray) -> None:
        import imath
        from alembic3d import AbcGeom

        # What a sample does not say falls back to other values than the last one's.
        self._check_room([points])
        positions = imath.V3fArrayFromBuffer(points)
        if self.like.widths is not None and self.schema.getNumSamples() == 0:
            width = AbcGeom.OFloatGeomParamSample(
                imath.FloatArrayFromBuffer(in_units(self.like.widths, self.metres)),
                AbcGeom.GeometryScope.kVertexScope,
            )
        else:
            width = AbcGeom.OFloatGeomParamSample()
        sample = AbcGeom.OCurvesSchemaSample(
            positions,
            imath.IntArrayFromBuffer(self.like.counts),
            AbcGeom.CurveType.kLinear,
            AbcGeom.CurvePeriodicity.kNonPeriodic,
            width,
        )
        sample.setBasis(AbcGeom.BasisType.kNoBasis)
        self.schema.set(sample)


def _define(archive: Any, times: Any, like: StrandSet, metres: float) -> Any:
    """Make the objects and everything that does not move; return the curves' schema."""
    import imath
    from alembic3d import Abc, AbcGeom

    scope = AbcGeom.GeometryScope
    number = archive.addTimeSampling(times)
    groom = AbcGeom.OXform(archive.getTop(), "hair")
    own = groom.getSchema().getUserProperties()
    for name, value in (("groom_version_major", 1), ("groom_version_minor", 5)):
        Abc.OInt16Property(own, name).setValue(value)
    Abc.OStringProperty(own, "groom_tool").setValue(f"hairkit {__version__}")
    schema = AbcGeom.OCurves(groom, "strands", number).getSchema()
    params = schema.getArbGeomParams()
    whole = {"groom_id": like.ids, "groom_group_id": like.groups, "groom_guide": like.guides}
    for name, value in whole.items():
        if value is not None:
            array = imath.IntArrayFromBuffer(np.ascontiguousarray(value, np.int32))
            _param(params, "OInt32GeomParam", name, array, scope.kUniformScope)
    if like.root_uv is not None:
        array = imath.V2fArrayFromBuffer(like.root_uv)
        _param(params, "OV2fGeomParam", "groom_root_uv", array, scope.kUniformScope)
    if like.root_normals is not None:
        array = imath.V3fArrayFromBuffer(like.root_normals)
        _param(params, "ON3fGeomParam", "root_normal", array, scope.kUniformScope)
    if like.widths is not None:
        array = imath.FloatArrayFromBuffer(in_units(like.widths, metres))
        _param(params, "OFloatGeomParam", "groom_width", array, scope.kVertexScope)
    if like.colors is not None:
        # A colour array has no buffer; each of its channels has.
        array = imath.C3fArray(len(like.colors))
        linear = linear_from_srgb(like.colors)
        for channel, view in enumerate((array.r, array.g, array.b)):
            np.asarray(view)[:] = linear[:, channel]
        _param(params, "OC3fGeomParam", "groom_color", array, scope.kVertexScope)
    return schema


def _param(params: Any, kind: str, name: str, array: Any, scope: Any) -> None:
    from alembic3d import AbcGeom

    param = getattr(AbcGeom, kind)(params, name, False, scope, 1)
    param.set(getattr(AbcGeom, kind + "Sample")(array, scope))
