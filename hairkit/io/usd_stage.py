"""Strands out of an OpenUSD file, by the library itself; runs in a process of its own.

Nothing outside the file's folder is opened: what layers are made of is looked at layer by layer
before a stage puts them together.
"""

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from hairkit.errors import FileError
from hairkit.io.curves import (
    BASES,
    Piece,
    at_points,
    at_roots,
    check_counts,
    merged,
    moved,
    sampling,
    scale_of,
    srgb_from_linear,
    whole_numbers,
)
from hairkit.io.guard import Found, budget

# It has no stubs, and its modules fill themselves at run time.
Sdf = importlib.import_module("pxr.Sdf")
Tf = importlib.import_module("pxr.Tf")
Usd = importlib.import_module("pxr.Usd")
UsdGeom = importlib.import_module("pxr.UsdGeom")

ENDINGS = (".usd", ".usda", ".usdc")
"""Endings of the layers that are read."""

_UP = {
    "Y": np.eye(3),
    "Z": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
    "X": np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
}
"""What row vectors are multiplied by to have +Y up."""

_NUMBERS = {
    "ids": ("groom_id", "ids", "id"),
    "groups": ("groom_group_id", "groups", "group_id"),
    "guides": ("groom_guide", "guides", "guide"),
}
"""Primvars that hold one whole number a strand, best first."""

_ROOT_UV = ("groom_root_uv", "st", "root_uv", "rootUV", "uv")


def read(path: Path, *, scale: float | None = None, upright: bool = True) -> Found:
    """Read every visible `UsdGeomBasisCurves` of a file.

    Args:
        path: The file.
        scale: Metres in one of its units, in place of what it says.
        upright: Whether to turn it as its upAxis has it.

    Raises:
        FileError: It is not OpenUSD, refers to something outside its folder, or has no strands.
    """
    try:
        layers = _own_layers(path)
        stage = Usd.Stage.Open(layers[0], Usd.Stage.LoadAll)
        return _read_stage(stage, path, _to_metres(stage, scale, upright))
    except FileError:
        raise
    except (Tf.ErrorException, RuntimeError, TypeError, ValueError) as error:
        raise FileError(f"not readable as OpenUSD ({_reason(error)})") from error


def _own_layers(path: Path) -> list[Any]:
    """Open all layers that a stage of this file needs, after a look at where each one lies."""
    folder = path.resolve().parent
    todo, layers, seen = [path.resolve()], [], set()
    while todo:
        file = todo.pop()
        if file in seen:
            continue
        seen.add(file)
        layer = Sdf.Layer.FindOrOpen(str(file))
        if layer is None:
            raise FileError(f"{file.name} is not readable as OpenUSD, expected a layer")
        layers.append(layer)
        layer.Traverse(Sdf.Path.absoluteRootPath, lambda at, layer=layer: _refuse_clips(layer, at))
        todo += [_inside(asset, file.parent, folder) for asset in _assets(layer)]
    return layers


def _assets(layer: Any) -> list[str]:
    return sorted(set(layer.GetCompositionAssetDependencies()) - {""})


def _refuse_clips(layer: Any, at: Any) -> None:
    if at.IsPrimPath() or at.IsPrimVariantSelectionPath():
        spec = layer.GetPrimAtPath(at)
        if spec is not None and spec.HasInfo("clips"):
            raise FileError(f"{at} has value clips, expected its samples in the file itself")


def _inside(asset: str, beside: Path, folder: Path) -> Path:
    """Return where an asset lies, if that is a layer in the folder of the file that is read."""
    # Schemes, packages, format arguments and expressions all are ways to somewhere else.
    if any(mark in asset for mark in (":", "[", "`", "\\", "\0")):
        raise FileError(f"refers to {asset!r}, expected nothing but layers in its own folder")
    file = (beside / asset).resolve()
    if not file.is_relative_to(folder):
        raise FileError(f"refers to {asset!r} outside its folder, expected layers inside it")
    if file.suffix.lower() not in ENDINGS:
        raise FileError(f"refers to {asset!r}, expected one of {', '.join(ENDINGS)}")
    if not file.is_file():
        raise FileError(f"refers to {asset!r}, no such file, expected a layer in its folder")
    return file


def _read_stage(stage: Any, path: Path, to_metres: np.ndarray) -> Found:
    warnings: list[str] = []
    prims = _curves(stage, warnings)
    codes = _time_codes(prims)
    times = [Usd.TimeCode(code) for code in codes] or [Usd.TimeCode.Default()]
    cache = UsdGeom.XformCache(times[0])
    pieces: list[Piece] = []
    kept: list[Any] = []
    frame_bytes = 0
    for prim in prims:
        matrix = _matrix(cache, prim) @ to_metres
        piece = _piece(UsdGeom.BasisCurves(prim), times, matrix, warnings)
        if piece is None:
            continue
        pieces.append(piece)
        kept.append(prim)
        frame_bytes += 12 * int(piece.sample.counts.sum())
        if frame_bytes * len(times) > budget(path):
            raise FileError(
                f"holds over {frame_bytes * len(times)} bytes of points in {len(times)} frames, "
                f"expected {budget(path)} or fewer in a file of {path.stat().st_size}"
            )
    if not pieces:
        raise FileError("holds no strands, expected a BasisCurves prim with points")
    fields, more = merged(pieces)
    points = np.zeros((len(times), frame_bytes // 12, 3), np.float32)
    for frame, time in enumerate(times):
        cache.SetTime(time)
        row = 0
        for prim, piece in zip(kept, pieces, strict=True):
            vertices = _points(prim, piece, time)
            world = moved(piece.sample.apply(vertices), _matrix(cache, prim) @ to_metres)
            points[frame, row : row + len(world)] = world
            row += len(world)
    rate = stage.GetTimeCodesPerSecond()
    if codes and not (np.isfinite(rate) and rate > 0.0):
        raise FileError(f"timeCodesPerSecond is {rate}, expected a number above 0")
    fields["points"] = points
    fields["times"] = np.array(codes) / rate if codes else np.zeros(1)
    return Found(arrays=fields, warnings=warnings + more)


def _curves(stage: Any, warnings: list[str]) -> list[Any]:
    """Return the curves that are meant to be seen, and those that are guides."""
    everything = Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies())
    found: dict[str, list[Any]] = {}
    hidden = 0
    for prim in everything:
        if prim.IsA(UsdGeom.NurbsCurves) or prim.IsA(UsdGeom.HermiteCurves):
            warnings.append(f"{prim.GetPath()} left out, expected BasisCurves")
        if not prim.IsA(UsdGeom.BasisCurves):
            continue
        image = UsdGeom.Imageable(prim)
        if image.ComputeVisibility(Usd.TimeCode.EarliestTime()) == UsdGeom.Tokens.invisible:
            hidden += 1
            continue
        found.setdefault(str(image.ComputePurpose()), []).append(prim)
    if hidden:
        warnings.append(f"{hidden} invisible curves prim{'' if hidden == 1 else 's'} left out")
    # A proxy stands for what is rendered in its place.
    if "render" in found and "proxy" in found:
        warnings.append(f"{len(found.pop('proxy'))} proxy curves left out, expected render ones")
    kept = {prim.GetPath() for prims in found.values() for prim in prims}
    return [prim for prim in everything if prim.GetPath() in kept]


def _time_codes(prims: list[Any]) -> list[float]:
    codes: set[float] = set()
    seen = set()
    for prim in prims:
        codes.update(UsdGeom.BasisCurves(prim).GetPointsAttr().GetTimeSamples())
        while prim and prim.GetPath() not in seen:
            seen.add(prim.GetPath())
            if prim.IsA(UsdGeom.Xformable):
                codes.update(UsdGeom.Xformable(prim).GetTimeSamples())
            prim = prim.GetParent()
    return sorted(codes)


def _to_metres(stage: Any, scale: float | None, upright: bool) -> np.ndarray:
    scale = float(UsdGeom.GetStageMetersPerUnit(stage)) if scale is None else scale
    if not (np.isfinite(scale) and scale > 0.0):
        raise FileError(f"metersPerUnit is {scale}, expected a number above 0")
    up = str(UsdGeom.GetStageUpAxis(stage))
    if up not in _UP:
        raise FileError(f"upAxis is {up!r}, expected Y or Z")
    matrix = np.eye(4)
    matrix[:3, :3] = (_UP[up] if upright else np.eye(3)) * scale
    return matrix


def _matrix(cache: Any, prim: Any) -> np.ndarray:
    return np.array(cache.GetLocalToWorldTransform(prim), np.float64)


def _piece(curves: Any, times: list[Any], matrix: np.ndarray, warnings: list[str]) -> Piece | None:
    name, time = str(curves.GetPath()), times[0]
    counts_attr = curves.GetCurveVertexCountsAttr()
    counts = np.array(counts_attr.Get(time) or (), np.int64)
    if not len(counts):
        warnings.append(f"{name} left out, expected curveVertexCounts")
        return None
    if counts_attr.GetNumTimeSamples() > 1 and any(
        not np.array_equal(counts, np.array(counts_attr.Get(later) or ())) for later in times[1:]
    ):
        raise FileError(f"{name}: curveVertexCounts change over time, expected the same throughout")
    wrap = str(curves.GetWrapAttr().Get(time))
    if wrap == "periodic":
        warnings.append(f"{name} left out, expected open curves, found periodic ones")
        return None
    linear = str(curves.GetTypeAttr().Get(time)) == "linear"
    basis = None if linear else str(curves.GetBasisAttr().Get(time))
    if basis is not None and basis not in BASES:
        raise FileError(f"{name}: basis is {basis!r}, expected one of {', '.join(BASES)}")
    values = curves.GetPointsAttr().Get(time)
    vertices = 0 if values is None else len(values)
    try:
        check_counts(counts, vertices)
        sample = sampling(counts, basis=basis, pinned=wrap == "pinned")
    except FileError as error:
        raise FileError(f"{name}: {error}") from error
    piece = Piece(name=name, sample=sample, vertices=vertices, fields={})
    _read_widths(curves, piece, time, scale_of(matrix), warnings)
    _read_primvars(curves, piece, time, matrix, warnings)
    if str(curves.ComputePurpose()) == "guide":
        piece.fields["guides"] = np.ones(len(counts), bool)
    return piece


def _points(prim: Any, piece: Piece, time: Any) -> np.ndarray:
    values = UsdGeom.BasisCurves(prim).GetPointsAttr().Get(time)
    points = np.zeros((0, 3)) if values is None else np.array(values)
    if points.ndim != 2 or points.shape[1] != 3 or points.dtype.kind != "f":
        raise FileError(f"{piece.name}: points are {points.dtype} {points.shape}, expected point3f")
    points = points.astype(np.float32, copy=False)
    if len(points) != piece.vertices:
        raise FileError(
            f"{piece.name}: {len(points)} points at time code {time}, "
            f"expected {piece.vertices} as at the first"
        )
    return points


def _read_widths(curves: Any, piece: Piece, time: Any, scale: float, warnings: list[str]) -> None:
    found = _primvar(curves.GetPrim(), ("widths", "groom_width"), time)
    if found is None:
        authored = curves.GetWidthsAttr().Get(time)
        if authored is None:
            return
        found = "widths", np.array(authored), str(curves.GetWidthsInterpolation())
    spread = _fit(found, piece, 1, at_points, warnings)
    if spread is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            piece.fields["widths"] = (spread * scale).astype(np.float32)


def _read_primvars(
    curves: Any, piece: Piece, time: Any, matrix: np.ndarray, warnings: list[str]
) -> None:
    prim = curves.GetPrim()
    color = _primvar(prim, ("displayColor", "groom_color"), time)
    if color is not None:
        spread = _fit(color, piece, 3, at_points, warnings)
        if spread is not None:
            piece.fields["colors"] = srgb_from_linear(spread)
    uv = _primvar(prim, _ROOT_UV, time)
    if uv is not None:
        spread = _fit(uv, piece, 2, at_roots, warnings)
        if spread is not None:
            piece.fields["root_uv"] = spread.astype(np.float32)
    normal = _primvar(prim, ("root_normal",), time)
    if normal is not None:
        spread = _fit(normal, piece, 3, at_roots, warnings)
        if spread is not None and np.linalg.det(matrix[:3, :3]) != 0.0:
            turned = (
                spread
                if np.array_equal(matrix, np.eye(4))
                else (spread @ np.linalg.inv(matrix[:3, :3]).T)
            )
            length = np.linalg.norm(turned, axis=1, keepdims=True)
            safe = np.where(length > 0.0, length, 1.0)
            piece.fields["root_normals"] = (
                turned if np.allclose(length, 1.0, atol=1e-6) else turned / safe
            ).astype(np.float32)
    for field, names in _NUMBERS.items():
        number = _primvar(prim, names, time)
        spread = None if number is None else _fit(number, piece, 1, at_roots, warnings)
        if spread is None:
            continue
        whole = whole_numbers(spread)
        if whole is None:
            warnings.append(f"{piece.name}: {field} left out, expected whole numbers of 32 bits")
        else:
            piece.fields[field] = whole != 0 if field == "guides" else whole


def _primvar(prim: Any, names: tuple[str, ...], time: Any) -> tuple[str, np.ndarray, str] | None:
    """Return the first of some primvars that has a value, its numbers and its interpolation."""
    for name in names:
        primvar = UsdGeom.PrimvarsAPI(prim).FindPrimvarWithInheritance(name)
        if not primvar or not primvar.HasValue():
            continue
        value = primvar.ComputeFlattened(time)
        if value is not None:
            values = np.array(value)
            return name, values, str(primvar.GetInterpolation())
    return None


def _fit(
    found: tuple[str, np.ndarray, str], piece: Piece, width: int, spread: Any, warnings: list[str]
) -> np.ndarray | None:
    """Spread a primvar's values over points or strands; warn of one that does not fit."""
    name, values, scope = found
    if values.dtype.kind in "fiub" and values.ndim == (1 if width == 1 else 2):
        if width == 1 or values.shape[1] == width:
            result = spread(values, scope, piece.sample, piece.vertices)
            if result is not None:
                return result
    elif values.dtype.kind in "fiub" and values.shape == (width,)[: width > 1]:
        return _fit((name, values[None], "constant"), piece, width, spread, warnings)
    warnings.append(
        f"{piece.name}: {name} left out, {scope} values of shape {values.shape} do not fit "
        f"{len(piece.sample.counts)} strands of {piece.vertices} vertices"
    )
    return None


def _reason(error: Exception) -> str:
    """Return what the library says, without where in its source it says so."""
    try:
        said = " ".join(str(error).split())
    except UnicodeDecodeError:
        return "text that is not UTF-8"
    return said.rsplit(" : '", 1)[-1].rstrip("' ")[-160:]
