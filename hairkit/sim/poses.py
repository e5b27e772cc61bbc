"""Poses as the solver takes them: a quaternion and a translation relative to an origin."""

import math

import numpy as np
from numpy.typing import NDArray


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
