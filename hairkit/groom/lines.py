"""Lines of points: how long one is, and places along it."""

import numpy as np

from hairkit.groom.rest import Points


def line_length(line: Points) -> float:
    """Return the length of a line of points [m], shape (points, 3)."""
    return float(np.linalg.norm(np.diff(line, axis=0), axis=1).sum())


def walk(line: Points, arcs: Points) -> Points:
    """Return the places at distances along a line [m], the last stretch going straight on."""
    step = np.linalg.norm(np.diff(line, axis=0), axis=1)
    along = np.concatenate([[0.0], np.cumsum(step)])
    points = np.stack([np.interp(arcs, along, line[:, axis]) for axis in range(3)], axis=1)
    beyond = np.maximum(arcs - along[-1], 0.0)
    ahead = (line[-1] - line[-2]) / max(float(step[-1]), 1e-9)
    return points + beyond[:, None] * ahead
