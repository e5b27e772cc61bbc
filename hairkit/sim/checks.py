"""What callers may set: poses, numbers and vectors, checked."""

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
    if not np.isfinite(matrix).all() or np.abs(matrix).max() > FARTHEST:
        return None
    turn = matrix[:3, :3]
    if np.abs(turn @ turn.T - np.eye(3)).max() > 1e-3 or np.linalg.det(turn) < 0.0:
        raise WorldError(
            f"{what}: expected a rotation and a translation, got columns of length "
            + ", ".join(f"{n:.4g}" for n in np.linalg.norm(turn, axis=0))
            + (" that mirror" if np.linalg.det(turn) < 0.0 else "")
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
