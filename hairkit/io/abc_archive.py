"""Strands out of an Alembic archive, by its own library; runs in a process of its own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from alembic3d import Abc, AbcGeom

from hairkit.errors import FileError
from hairkit.io.curves import (
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

_SCOPES = {"con": "constant", "uni": "uniform", "var": "varying", "vtx": "vertex", "fvr": "vertex"}
_DEEPEST = 200
"""Objects inside one another; deeper files are damaged."""

_ROOT_UV = ("groom_root_uv", "uv", "st")
_NUMBERS = {"ids": "groom_id", "groups": "groom_group_id", "guides": "groom_guide"}


@dataclass(frozen=True, kw_only=True)
class _Curves:
    """One curves object and the transforms above it, the nearest first."""

    name: str
    schema: Any
    times: np.ndarray
    xforms: tuple["_Xform", ...]


@dataclass(frozen=True, kw_only=True)
class _Xform:
    schema: Any
    times: np.ndarray


def read(path: Path, *, scale: float | None) -> Found:
    """Read every visible curves object of an archive.

    Args:
        path: The archive.
        scale: Metres in one of its units; by default what `hairkit.io.alembic.read` says.

    Raises:
        FileError: It is not readable, or has no strands.
    """
    try:
        return _read(path, scale)
    except FileError:
        raise
    except (RuntimeError, TypeError, ValueError, LookupError, ArithmeticError) as error:
        reason = " ".join(str(error).split())[-160:]
        raise FileError(f"not readable as Alembic ({reason})") from error


def _read(path: Path, scale: float | None) -> Found:
    archive = Abc.IArchive(str(path))
    warnings: list[str] = []
    found: list[_Curves] = []
    groom = _walk(archive.getTop(), (), found, warnings, 0)
    if scale is None:
        scale = 0.01 if groom else 1.0
    times = _times(found)
    to_metres = np.diag([scale, scale, scale, 1.0])
    pieces: list[Piece] = []
    kept: list[_Curves] = []
    total = 0
    for curves in found:
        matrix = _matrix(curves, times[0]) @ to_metres
        piece = _piece(curves, matrix, groom, warnings)
        if piece is None:
            continue
        pieces.append(piece)
        kept.append(curves)
        total += int(piece.sample.counts.sum())
        if 12 * total * len(times) > budget(path):
            raise FileError(
                f"holds over {12 * total * len(times)} bytes of points in {len(times)} frames, "
                f"expected {budget(path)} or fewer in a file of {path.stat().st_size}"
            )
    if not pieces:
        raise FileError("holds no strands, expected a curves object with points")
    fields, more = merged(pieces)
    points = np.zeros((len(times), total, 3), np.float32)
    for frame, time in enumerate(times):
        row = 0
        for curves, piece in zip(kept, pieces, strict=True):
            vertices = _points(curves, piece, time)
            world = moved(piece.sample.apply(vertices), _matrix(curves, time) @ to_metres)
            points[frame, row : row + len(world)] = world
            row += len(world)
    fields["points"], fields["times"] = points, times
    return Found(arrays=fields, warnings=warnings + more)


def _walk(
    parent: Any, above: tuple[_Xform, ...], found: list[_Curves], warnings: list[str], depth: int
) -> bool:
    """Collect the curves below an object; return whether any says that this is a groom."""
    if depth > _DEEPEST:
        raise FileError(f"objects lie {depth} deep, expected {_DEEPEST} or fewer")
    groom = "groom_version_major" in _names(parent.getProperties())
    for number in range(parent.getNumChildren()):
        header = parent.getChildHeader(number)
        child = parent.getChild(number)
        inner = above
        if AbcGeom.IXform.matches(header):
            schema = AbcGeom.IXform(parent, header.getName()).getSchema()
            groom = groom or _says_groom(schema)
            # Without samples it is the identity.
            if schema.getNumSamples():
                inner = (_Xform(schema=schema, times=_sample_times(schema)), *above)
        elif AbcGeom.ICurves.matches(header):
            curves = AbcGeom.ICurves(parent, header.getName())
            schema = curves.getSchema()
            groom = groom or _says_groom(schema)
            if AbcGeom.IsAncestorInvisible(curves):
                warnings.append(f"{child.getFullName()} left out: it is invisible")
            elif schema.getNumSamples():
                found.append(
                    _Curves(
                        name=child.getFullName(),
                        schema=schema,
                        times=_sample_times(schema),
                        xforms=above,
                    )
                )
        groom = _walk(child, inner, found, warnings, depth + 1) or groom
    return groom


def _names(compound: Any) -> list[str]:
    if not compound.valid():
        return []
    return [compound.getPropertyHeader(i).getName() for i in range(compound.getNumProperties())]


def _says_groom(schema: Any) -> bool:
    return any(
        "groom_version_major" in _names(properties)
        for properties in (schema.getUserProperties(), schema.getArbGeomParams())
    )


def _sample_times(schema: Any) -> np.ndarray:
    sampling_of = schema.getTimeSampling()
    times = [sampling_of.getSampleTime(i) for i in range(schema.getNumSamples())]
    return np.array(times, np.float64)


def _times(found: list[_Curves]) -> np.ndarray:
    """Return the times of all samples of things that have more than one, else of the first."""
    sampled = [
        times
        for curves in found
        for times in (curves.times, *(xform.times for xform in curves.xforms))
        if len(times) > 1
    ]
    if sampled:
        return np.unique(np.concatenate(sampled))
    return found[0].times[:1] if found else np.zeros(1)


def _around(times: np.ndarray, time: float) -> tuple[int, int, float]:
    """Return the samples before and after a time, and how far between them it is, 0..1."""
    after = int(np.clip(np.searchsorted(times, time), 0, len(times) - 1))
    if times[after] <= time or after == 0:
        return after, after, 0.0
    step = times[after] - times[after - 1]
    return after - 1, after, float((time - times[after - 1]) / step)


def _matrix(curves: _Curves, time: float) -> np.ndarray:
    """Return object to world, for row vectors, as the file has it, shape (4, 4)."""
    matrix = np.eye(4)
    for xform in curves.xforms:
        before, after, part = _around(xform.times, time)
        local = _xform_sample(xform, before)
        if part > 0.0:
            local = local * (1.0 - part) + _xform_sample(xform, after) * part
        matrix = matrix @ local
        if not xform.schema.getInheritsXforms():
            break
    return matrix


def _xform_sample(xform: _Xform, number: int) -> np.ndarray:
    selector = Abc.ISampleSelector(
        float(xform.times[number]), Abc.ISampleSelector.TimeIndexType.kNearIndex
    )
    return np.array(xform.schema.getValue(selector).getMatrix(), np.float64).reshape(4, 4)


def _piece(curves: _Curves, matrix: np.ndarray, groom: bool, warnings: list[str]) -> Piece | None:
    schema, name = curves.schema, curves.name
    first = schema.getValue(Abc.ISampleSelector(float(curves.times[0])))
    counts = np.array(schema.getNumVerticesProperty().samples[0], np.int64)
    if not schema.getNumVerticesProperty().isConstant():
        raise FileError(f"{name}: vertex counts change over time, expected the same throughout")
    if first.getWrap() == AbcGeom.CurvePeriodicity.kPeriodic:
        warnings.append(f"{name} left out, expected open curves, found periodic ones")
        return None
    vertices = len(schema.getPositionsProperty().samples[0])
    try:
        check_counts(counts, vertices)
        basis = None if groom else _basis(first, schema, counts)
        sample = sampling(counts, basis=basis, pinned=True)
    except FileError as error:
        raise FileError(f"{name}: {error}") from error
    piece = Piece(name=name, sample=sample, vertices=vertices, fields={})
    _read_fields(schema, piece, scale_of(matrix), matrix, warnings)
    return piece


def _basis(first: Any, schema: Any, counts: np.ndarray) -> str | None:
    """Return the basis to evaluate, None to take vertices as points."""
    if first.getType() != AbcGeom.CurveType.kCubic:
        return None
    if first.getBasis() == AbcGeom.BasisType.kBsplineBasis:
        return "bspline"
    # It is also what a file gets whose writer chose none.
    bezier = first.getBasis() == AbcGeom.BasisType.kBezierBasis
    fits = bool((counts % 3 == 1).all() and (counts > 1).any())
    knots = schema.getKnotsProperty()
    knotted = knots.valid() and knots.getNumSamples() > 0 and len(knots.samples[0]) > 0
    return "bezier" if bezier and fits and not knotted else None


def _points(curves: _Curves, piece: Piece, time: float) -> np.ndarray:
    samples = curves.schema.getPositionsProperty().samples
    before, after, part = _around(curves.times[: len(samples)], time)
    points = _checked(np.array(samples[before], np.float32), piece, before)
    if part > 0.0:
        later = _checked(np.array(samples[after], np.float32), piece, after)
        points = points * np.float32(1.0 - part) + later * np.float32(part)
    return points


def _checked(points: np.ndarray, piece: Piece, number: int) -> np.ndarray:
    points = points.reshape(-1, 3)
    if len(points) != piece.vertices:
        raise FileError(
            f"{piece.name}: sample {number} has {len(points)} points, "
            f"expected {piece.vertices} as in the first"
        )
    return points


def _read_fields(
    schema: Any, piece: Piece, scale: float, matrix: np.ndarray, warnings: list[str]
) -> None:
    values: dict[str, tuple[np.ndarray, str]] = {}
    own = schema.getArbGeomParams().getParent() if schema.getArbGeomParams().valid() else None
    geometry = own if own is not None else schema.getPositionsProperty().getParent()
    for compound in (geometry, schema.getUserProperties(), schema.getArbGeomParams()):
        for name in _names(compound):
            if name.startswith("groom_") or name in ("width", "uv", "st", "root_normal"):
                value = _value(compound, name)
                if value is not None:
                    values[name] = value
    width = values.get("groom_width", values.get("width"))
    spread = _fit("width", width, piece, 1, at_points, warnings)
    if spread is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            piece.fields["widths"] = (spread * scale).astype(np.float32)
    spread = _fit("groom_color", values.get("groom_color"), piece, 3, at_points, warnings)
    if spread is not None:
        piece.fields["colors"] = srgb_from_linear(spread)
    uv = next((values[name] for name in _ROOT_UV if name in values), None)
    spread = _fit("groom_root_uv", uv, piece, 2, at_roots, warnings)
    if spread is not None:
        piece.fields["root_uv"] = spread.astype(np.float32)
    spread = _fit("root_normal", values.get("root_normal"), piece, 3, at_roots, warnings)
    if spread is not None and abs(np.linalg.det(matrix[:3, :3])) > 0.0:
        turned = spread @ (np.linalg.inv(matrix[:3, :3]).T * scale)
        piece.fields["root_normals"] = turned.astype(np.float32)
    for field, name in _NUMBERS.items():
        spread = _fit(name, values.get(name), piece, 1, at_roots, warnings)
        whole = None if spread is None else whole_numbers(spread)
        if whole is not None:
            piece.fields[field] = whole != 0 if field == "guides" else whole
        elif spread is not None:
            warnings.append(f"{piece.name}: {name} left out, expected whole numbers of 32 bits")


def _value(compound: Any, name: str) -> tuple[np.ndarray, str] | None:
    """Return the first sample of a property and its scope, None where it is not of numbers."""
    header = compound.getPropertyHeader(name)
    scope = _SCOPES.get(header.getMetaData().get("geoScope"), "")
    if header.isCompound():
        # Values and where each one is used, as of a texture's coordinates.
        inner = Abc.ICompoundProperty(compound, name)
        if not {".vals", ".indices"} <= set(_names(inner)):
            return None
        found = _value(inner, ".vals")
        indices = np.array(inner.getProperty(".indices").samples[0], np.int64)
        if found is None or not len(found[0]) or not len(indices):
            return None
        if indices.min() < 0 or indices.max() >= len(found[0]):
            return None
        return found[0][indices], scope or found[1]
    prop = compound.getProperty(name)
    if prop.getNumSamples() == 0 or "String" in str(header.getDataType().getPod()):
        return None
    sample = prop.samples[0]
    if header.isScalar():
        return np.array([sample]), scope or "constant"
    if hasattr(sample, "r"):
        # Colours give no buffer, their channels do.
        return np.stack([np.array(channel) for channel in (sample.r, sample.g, sample.b)], 1), scope
    return np.array(sample), scope


def _fit(
    name: str,
    value: tuple[np.ndarray, str] | None,
    piece: Piece,
    width: int,
    spread: Any,
    warnings: list[str],
) -> np.ndarray | None:
    """Spread values over points or strands; warn of those that do not fit."""
    if value is None:
        return None
    values, scope = value
    shape = (len(values),) if width == 1 else (len(values), width)
    if values.dtype.kind in "fiub" and values.shape == shape:
        # Many files say nothing of the scope: their number tells.
        for tried in (scope, "uniform", "vertex", "constant"):
            result = spread(values, tried, piece.sample, piece.vertices) if tried else None
            if result is not None:
                return result
    warnings.append(
        f"{piece.name}: {name} left out, values of shape {values.shape} do not fit "
        f"{len(piece.sample.counts)} strands of {piece.vertices} vertices"
    )
    return None
