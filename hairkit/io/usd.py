"""OpenUSD: strands as BasisCurves in .usd, .usda and .usdc, by the official library (usd-core)."""

import importlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from hairkit import __version__
from hairkit.errors import FileError
from hairkit.io.curves import linear_from_srgb
from hairkit.io.files import written_beside
from hairkit.io.scenes import check_frame, in_units, metres_in, read_scene, require
from hairkit.io.strand_set import AddFrame, StrandSet

ENDINGS = (".usd", ".usda", ".usdc")
"""Endings of the files that are read and written; .usd is written in USD's binary form."""

HOLDS = ("points", "counts", "times", "widths", "colors", "root_uv", "root_normals")
HOLDS += ("ids", "groups", "guides")
"""Fields of a strand set that have a place in such a file."""

_LIBRARY = "OpenUSD"
_TEXT = b"#usda"
_TEXT_MEMORY = 32
"""Times its size that reading a text layer may take: 22 were seen, of 6 million points."""

_CURVES = "/hair/strands"
_UNSAVED = 64 << 20
"""Bytes of points that may wait in memory before they are saved."""

_ROWS = 4096
"""Points that are turned into text together."""

_SLOT = "0: [(16777216, 16777216, 16777216)],"
"""A sample as the library writes it, in whose place a text layer gets all of them."""


def read(path: Path, *, units: str | None = None, upright: bool = True) -> StrandSet:
    """Read all visible strands of an OpenUSD file: metres, +Y up, world frame.

    Read are `UsdGeomBasisCurves`, several prims put together, with the transforms above them at
    every time sample, ``metersPerUnit`` (0.01 where the file says nothing, as OpenUSD has it) and
    ``upAxis``. Linear curves and pinned Catmull-Rom curves have strands through their vertices;
    Bezier curves and B-splines are evaluated, see `hairkit.io.curves.sampling`. Beside points:
    widths of every interpolation, ``displayColor`` (linear; sRGB here), ``st`` or
    ``groom_root_uv``, ``groom_id``, ``groom_group_id``, ``groom_guide`` and ``root_normal``, as
    they are at the first time. Curves of purpose guide are guides; invisible and inactive ones
    are left out. Frames are the time samples of points and transforms, together.

    Nothing outside the file's folder is opened, and the library runs in a process of its own with
    limits: some damaged files end it, and it is not the caller that ends.

    Args:
        path: The file.
        units: One of `hairkit.head.UNITS` in place of what the file says.
        upright: Whether to turn what has another axis up than +Y, or leave it as the file has it.

    Raises:
        FileError: The library is not installed; or the file is no OpenUSD layer, refers to
            something outside its folder, has strands that do not fit its points, or none.
    """
    if path.suffix.lower() == ".usdz":
        raise FileError(
            f"{path}: is a package, expected .usd, .usda or .usdc (unpack it: it is a zip archive)"
        )
    scale = None if units is None else metres_in(units)
    require("pxr", "usd", path)
    try:
        with open(path, "rb") as file:
            text = file.read(len(_TEXT)) == _TEXT
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error
    return read_scene(
        "hairkit.io.usd_stage:read",
        path,
        library=_LIBRARY,
        memory=_TEXT_MEMORY if text else 12,
        scale=scale,
        upright=upright,
    )


@contextmanager
def writer(
    path: Path, like: StrandSet, frames: int, *, physics: bool = False, units: str = "m"
) -> Iterator[AddFrame]:
    """Write strands as one BasisCurves prim, frame by frame, with +Y up.

    Curves are cubic Catmull-Rom with pinned ends: they go through every point, and OpenUSD counts
    a segment for strands of two points already. Several frames are time samples; one frame at time
    0 is the default value. Memory stays flat: samples are saved as they come.

    Args:
        path: The file; its ending picks text (.usda) or binary.
        like: What it is a motion of.
        frames: How many frames will come.
        physics: Write linear curves that other simulators can pick up, with the applied schemas
            ``PhysicsDeformableBodyAPI`` and ``PhysicsCurvesDeformableSimAPI``, and the first frame
            as default value too. Both schemas are proposals: usd-core up to 26.11 does not
            register them, so they stand in ``apiSchemas`` by name.
        units: One of `hairkit.head.UNITS`: what lengths are in, which the file says.

    Raises:
        FileError: The library is not installed, a frame has another shape or is not later than the
            one before, or the file cannot be written.
    """
    require("pxr", "usd", path)
    metres = metres_in(units)
    with written_beside(path) as beside:
        motion = _Motion(beside, path, like, frames, physics, metres)
        try:
            yield motion.add
            motion.finish()
        finally:
            motion.close()


class _Motion:
    """A layer that frames are added to."""

    def __init__(
        self,
        beside: Path,
        path: Path,
        like: StrandSet,
        frames: int,
        physics: bool,
        metres: float,
    ) -> None:
        Sdf = _pxr("Sdf")
        Usd = _pxr("Usd")

        self.path, self.beside, self.frames, self.physics = path, beside, frames, physics
        self.total = int(like.counts.sum())
        self.metres = metres
        widest = 0.0 if like.widths is None else float(like.widths.max(initial=0.0))
        self.reach = widest / metres / 2
        self.text = path.suffix.lower() == ".usda"
        try:
            layer = (
                Sdf.Layer.CreateAnonymous(".usda")
                if self.text
                else Sdf.Layer.CreateNew(str(beside))
            )
        except _pxr("Tf").ErrorException as error:
            raise FileError(
                f"{path}: could not be written, expected room and permission"
            ) from error
        self.layer = layer
        self.stage = Usd.Stage.Open(layer)
        self.spool: IO[bytes] | None = None
        if self.text:
            self.spool = tempfile.TemporaryFile(dir=path.parent)
        self.curves = _define(self.stage, like, physics, metres)
        self.count, self.rate, self.unsaved = 0, 0.0, 0
        self.first: tuple[np.ndarray, float] | None = None
        self.codes: list[float] = []
        self.time = -np.inf

    def add(self, points: np.ndarray, time: float) -> None:
        """Write a frame, the first one when the second tells the rate."""
        points = check_frame(self.path, np.asarray(points), self.total, self.count, self.metres)
        if not time > self.time:
            raise FileError(
                f"{self.path}: frame {self.count} is at {time} s, expected later than {self.time} s"
            )
        self.count, self.time = self.count + 1, time
        if self.count == 1 and self.frames > 1:
            self.first = points.copy(), time
            return
        if self.first is not None:
            before, start = self.first
            self.first = None
            self._set_rate(time - start)
            self._sample(before, start)
        elif self.frames == 1 and time == 0.0:
            self._set(points, None)
            return
        elif self.rate == 0.0:
            self._set_rate(1 / 24)
        self._sample(points, time)

    def finish(self) -> None:
        """Write what is left, and the layer's own times."""
        if self.count != self.frames:
            raise FileError(f"{self.path}: {self.count} frames, expected {self.frames}")
        if self.codes:
            self.stage.SetStartTimeCode(self.codes[0])
            self.stage.SetEndTimeCode(self.codes[-1])
        if not self.text:
            self._save()
        else:
            self._write_text()

    def close(self) -> None:
        """Let go of the files."""
        if self.spool is not None:
            self.spool.close()
        # The library keeps a layer's file open as long as anything holds the layer.
        del self.curves, self.stage, self.layer

    def _set_rate(self, step: float) -> None:
        rate = 1.0 / step
        # Frames of 1/60 s have whole time codes, which is what other tools count in.
        whole = round(rate)
        self.rate = float(whole) if whole and abs(rate - whole) < 1e-3 * whole else 24.0
        self.stage.SetTimeCodesPerSecond(self.rate)
        self.stage.SetFramesPerSecond(self.rate)

    def _sample(self, points: np.ndarray, time: float) -> None:
        code = time * self.rate
        whole = round(code)
        code = float(whole) if abs(code - whole) < 1e-6 * max(1.0, abs(code)) else code
        if self.physics and not self.codes:
            self._set(points, None)
        self.codes.append(code)
        self._set(points, code)

    def _set(self, points: np.ndarray, code: float | None) -> None:
        Usd = _pxr("Usd")
        Vt = _pxr("Vt")

        at = Usd.TimeCode.Default() if code is None else Usd.TimeCode(code)
        self.curves.CreateExtentAttr().Set(Vt.Vec3fArray.FromNumpy(self._extent(points)), at)
        if self.text and code is not None and self.spool is not None:
            _write_sample(self.spool, points, code)
            return
        self.curves.CreatePointsAttr().Set(Vt.Vec3fArray.FromNumpy(points), at)
        self.unsaved += points.nbytes
        if self.unsaved > _UNSAVED and not self.text:
            self._save()

    def _extent(self, points: np.ndarray) -> np.ndarray:
        if not len(points):
            return np.zeros((2, 3), np.float32)
        return np.stack([points.min(axis=0) - self.reach, points.max(axis=0) + self.reach])

    def _save(self) -> None:
        Tf = _pxr("Tf")

        try:
            self.layer.Save()
        except Tf.ErrorException as error:
            raise FileError(
                f"{self.path}: could not be written, expected room and permission"
            ) from error
        self.unsaved = 0

    def _write_text(self) -> None:
        Vt = _pxr("Vt")

        if self.codes:
            self.curves.CreatePointsAttr().Set(Vt.Vec3fArray([(1 << 24,) * 3]), 0.0)
        text = self.layer.ExportToString()
        before, after = text, ""
        if self.codes:
            before, slot, after = text.partition(_SLOT)
            if not slot:
                raise FileError(f"{self.path}: no place for samples in this OpenUSD's text form")
        with open(self.beside, "wb") as file:
            file.write(before.encode())
            if self.spool is not None:
                self.spool.seek(0)
                shutil.copyfileobj(self.spool, file, 1 << 20)
            file.write(after.encode())


def _define(stage: Any, like: StrandSet, physics: bool, metres: float) -> Any:
    """Define the prim and everything of it that does not move."""
    Sdf = _pxr("Sdf")
    UsdGeom = _pxr("UsdGeom")
    Vt = _pxr("Vt")

    UsdGeom.SetStageMetersPerUnit(stage, metres)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    stage.GetRootLayer().documentation = f"hairkit {__version__}"
    root = UsdGeom.Xform.Define(stage, _CURVES.rpartition("/")[0])
    stage.SetDefaultPrim(root.GetPrim())
    curves = UsdGeom.BasisCurves.Define(stage, _CURVES)
    curves.CreateTypeAttr(UsdGeom.Tokens.linear if physics else UsdGeom.Tokens.cubic)
    curves.CreateBasisAttr(UsdGeom.Tokens.catmullRom)
    # The proposal of the deformable schemas knows open linear curves only.
    curves.CreateWrapAttr(UsdGeom.Tokens.nonperiodic if physics else UsdGeom.Tokens.pinned)
    curves.CreateCurveVertexCountsAttr(Vt.IntArray.FromNumpy(like.counts))
    if physics:
        for schema in ("PhysicsDeformableBodyAPI", "PhysicsCurvesDeformableSimAPI"):
            curves.GetPrim().AddAppliedSchema(schema)
    if like.widths is not None:
        curves.CreateWidthsAttr(Vt.FloatArray.FromNumpy(in_units(like.widths, metres)))
        curves.SetWidthsInterpolation(UsdGeom.Tokens.vertex)
    types = Sdf.ValueTypeNames
    values: list[tuple[str, Any, str, Any, np.ndarray | None]] = [
        # Shaders look for st, Unreal for its own name.
        ("st", types.TexCoord2fArray, "uniform", Vt.Vec2fArray, like.root_uv),
        ("groom_root_uv", types.Float2Array, "uniform", Vt.Vec2fArray, like.root_uv),
        ("root_normal", types.Normal3fArray, "uniform", Vt.Vec3fArray, like.root_normals),
        ("groom_id", types.IntArray, "uniform", Vt.IntArray, like.ids),
        ("groom_group_id", types.IntArray, "uniform", Vt.IntArray, like.groups),
        ("groom_guide", types.IntArray, "uniform", Vt.IntArray, like.guides),
    ]
    if like.colors is not None:
        linear = linear_from_srgb(like.colors)
        values.append(("displayColor", types.Color3fArray, "vertex", Vt.Vec3fArray, linear))
    primvars = UsdGeom.PrimvarsAPI(curves)
    for name, kind, scope, array, value in values:
        if value is not None:
            plain = value.astype(np.int32) if value.dtype == np.bool_ else value
            primvars.CreatePrimvar(name, kind, scope).Set(array.FromNumpy(plain))
    return curves


def _pxr(name: str) -> Any:
    """Return a module of the library, which is loaded when a file is written and not before."""
    return importlib.import_module(f"pxr.{name}")


def _write_sample(spool: IO[bytes], points: np.ndarray, code: float) -> None:
    """Write one sample of a text layer; nine digits give a float back as it was."""
    spool.write(f"{code!r}: [".encode())
    for first in range(0, len(points), _ROWS):
        rows = points[first : first + _ROWS]
        form = ("" if first == 0 else ", ") + ", ".join(["(%.9g, %.9g, %.9g)"] * len(rows))
        spool.write((form % tuple(rows.ravel().tolist())).encode())
    spool.write(b"],\n            ")
