"""Poses as the solver takes them: checked, as a quaternion and a translation relative to an origin."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hairkit.errors import WorldError

FARTHEST = 1e7
"""A head farther from the world's origin than this [m] is a mistake of the caller's arithmetic."""


def check_pose(pose: Any, what: str) -> NDArray[np.float64] | None:
    """Return a pose as a float64 (4, 4) matrix, or None where its numbers are not finite or out of the world.

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


def quaternion(matrix: NDArray[np.float64]) -> tuple[float, float, float, float]:
    """Return the unit quaternion (x, y, z, w) of a pose's rotation."""
    (a, b, c, _), (d, e, f, _), (g, h, i, _) = matrix[:3].tolist()
    trace = a + e + i
    if trace > 0.0:
        s = 2.0 * math.sqrt(1.0 + trace)
        q = ((h - f) / s, (c - g) / s, (d - b) / s, 0.25 * s)
    elif a > e and a > i:
        s = 2.0 * math.sqrt(1.0 + a - e - i)
        q = (0.25 * s, (b + d) / s, (c + g) / s, (h - f) / s)
    elif e > i:
        s = 2.0 * math.sqrt(1.0 + e - a - i)
        q = ((b + d) / s, 0.25 * s, (f + h) / s, (c - g) / s)
    else:
        s = 2.0 * math.sqrt(1.0 + i - a - e)
        q = ((c + g) / s, (f + h) / s, 0.25 * s, (d - b) / s)
    n = 1.0 / math.sqrt(q[0] ** 2 + q[1] ** 2 + q[2] ** 2 + q[3] ** 2)
    return q[0] * n, q[1] * n, q[2] * n, q[3] * n


def pose_row(matrix: NDArray[np.float64], origin: NDArray[np.float64]) -> list[float]:
    """Return a pose's seven columns: quaternion, then translation relative to an origin [m]."""
    return [*quaternion(matrix), *(matrix[:3, 3] - origin).tolist()]
