"""Units and axes of files that say nothing of them, turned into metres and +Y up and back."""

from dataclasses import replace

import numpy as np

from hairkit.errors import FileError, HeadError, nearest
from hairkit.head import AXES, UNITS, axes_to_head
from hairkit.io.strand_set import StrandSet


def to_metres(
    units: str | None = None, up: str | None = None, swizzle: str | None = None
) -> np.ndarray | None:
    """Return what takes a file's positions to metres and +Y up, shape (3, 3); None for nothing.

    Args:
        units: One of `UNITS`; by default metres.
        up: The file's upward axis, such as ``z`` or ``-x``; by default ``y``. The front is the
            file's +Z, or its -Y where Z is up.
        swizzle: In place of ``up``: which axis of the file each of X, Y and Z is, such as
            ``x,z,-y``.

    Raises:
        FileError: One of them is not known, or both ``up`` and ``swizzle`` are given.
    """
    if units is not None and units not in UNITS:
        raise FileError(
            f"units: {units!r}, expected one of {', '.join(UNITS)}{nearest(units, UNITS)}"
        )
    if up is not None and swizzle is not None:
        raise FileError(f"swizzle: {swizzle!r} beside up, expected one of the two")
    turn = np.eye(3)
    if up is not None:
        try:
            turn = axes_to_head(up, None)
        except HeadError as error:
            raise FileError(str(error)) from error
    if swizzle is not None:
        names = [name.strip().lower() for name in swizzle.split(",")]
        if len(names) != 3 or {name.strip("+-") for name in names} != set("xyz"):
            raise FileError(f"swizzle: {swizzle!r}, expected three different axes such as x,z,-y")
        if not all(name in AXES for name in names):
            raise FileError(f"swizzle: {swizzle!r}, expected axes such as x, -x and z")
        turn = np.array([AXES[name] for name in names])
    whole = turn * UNITS[units or "m"]
    return None if np.array_equal(whole, np.eye(3)) else whole


def turned(strands: StrandSet, matrix: np.ndarray | None) -> StrandSet:
    """Return strands with every position multiplied by a matrix of signed axes and one scale.

    Args:
        strands: Any set. Its groom and its head's poses, which belong to the old axes, are left
            out unless nothing is changed.
        matrix: As `to_metres` returns it, or its inverse, shape (3, 3).
    """
    if matrix is None:
        return strands
    scale = float(np.abs(matrix[0]).max())
    normals = strands.root_normals
    return replace(
        strands,
        points=turned_points(strands.points, matrix),
        widths=None if strands.widths is None else strands.widths * np.float32(scale),
        root_normals=None if normals is None else turned_points(normals, matrix / scale),
        head_pose=None,
        groom=None,
    )


def turned_points(points: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return points multiplied by a matrix of signed axes and one scale, shape (..., 3), f32."""
    axes = np.abs(matrix).argmax(axis=1)
    factors = np.take_along_axis(matrix, axes[:, None], axis=1)[:, 0]
    result = np.zeros(points.shape, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for row, (axis, factor) in enumerate(zip(axes.tolist(), factors.tolist(), strict=True)):
            np.multiply(points[..., axis], factor, out=result[..., row], casting="same_kind")
    return result
