"""What callers may set: poses, numbers and vectors, checked."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hairkit.errors import WorldError

FARTHEST = 1e7
"""A head farther from the world's origin than this [m] is a mistake of the caller's arithmetic."""


def check_pose(pose: Any, what: str) -> NDArray[np.float64] | None:
    """Return a pose as a float64 (4, 4) matrix, or None where it is not finite or too far.

    Args:
        pose: Something like a (4, 4) matrix: rotation and translation [m].
        what: Whose pose, for the message.

    Raises:
        WorldError: It is no (4, 4) matrix, or not a rotation and a translation.
    """
    try:
        matrix = np.array(pose, np.float64)
    except (TypeError, ValueError):
        raise WorldError(f"{what}: expected a (4, 4) matrix, got {type(pose).__name__}") from None
    if matrix.shape != (4, 4):
        raise WorldError(f"{what}: expected shape (4, 4), got {matrix.shape}")
    # Plain numbers: a head moves every frame, and NumPy costs microseconds a call.
    (a, b, c, x), (d, e, f, y), (g, h, i, z), bottom = matrix.tolist()
    # A sum, unlike a maximum, lets no NaN slip by.
    if not sum(map(abs, (a, b, c, d, e, f, g, h, i, x, y, z, *bottom))) <= FARTHEST:
        return None
    lengths = (a * a + d * d + g * g, b * b + e * e + h * h, c * c + f * f + i * i)
    skew = (a * b + d * e + g * h, a * c + d * f + g * i, b * c + e * f + h * i)
    mirrored = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) < 0.0
    if mirrored or max(abs(n - 1.0) for n in lengths) > 1e-3 or max(map(abs, skew)) > 1e-3:
        raise WorldError(
            f"{what}: expected a rotation and a translation, got columns of length "
            + ", ".join(f"{math.sqrt(n):.4g}" for n in lengths)
            + (" that mirror" if mirrored else "")
        )
    return matrix


def number(what: str, value: Any, low: float, high: float) -> float:
    """Return a number between low and high.

    Raises:
        WorldError: It is none, or out of range.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise WorldError(
            f"{what} = {value!r}: expected a number from {low:g} to {high:g}"
        ) from None
    if not low <= number <= high:
        raise WorldError(f"{what} = {number:g}: expected {low:g} to {high:g}")
    return number


def vector(what: str, value: ArrayLike, most: float) -> NDArray[np.float64]:
    """Return three finite numbers up to most.

    Raises:
        WorldError: They are not.
    """
    try:
        vector = np.array(value, np.float64)
    except (TypeError, ValueError):
        raise WorldError(f"{what} {value!r}: expected three numbers") from None
    if vector.shape != (3,) or not np.isfinite(vector).all() or np.abs(vector).max() > most:
        raise WorldError(f"{what} {value!r}: expected three finite numbers up to {most:g}")
    return vector
