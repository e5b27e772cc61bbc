"""Where the head, the neck and the ears of a mesh are, found from horizontal slices."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hairkit.shapes import Points

TILT = 0.5
"""How much the border between head and neck drops for each metre to the front: it passes under the
chin in front and at the hairline of the nape."""


@dataclass(frozen=True)
class Landmarks:
    """Sizes and places on a mesh, +Y up and +Z front."""

    pivot: Points
    """Joint of skull and neck in the mesh's coordinates [m], shape (3,)."""

    top: float
    """Height of the highest point in the mesh's coordinates [m]."""

    height: float
    """From the neck's narrowest place, or the lowest point, to the top [m]."""

    has_neck: bool
    """Whether there is anything below the head."""

    neck: tuple[float, float]
    """Height and depth of the neck's middle at its narrowest, seen from the pivot [m]."""

    cut_low: float
    """Level of the neck below which nothing turns with the head [m]."""

    cut_high: float
    """Level of the neck above which everything turns with the head [m]."""

    @property
    def steepness(self) -> float:
        """How fast the level grows across its planes."""
        return math.hypot(1.0, TILT)

    def level_of(self, y: Points, z: Points) -> Points:
        """Return the level above the neck's border [m] at y and z seen from the pivot [m]."""
        return (y - self.neck[0]) + TILT * (z - self.neck[1])

    def level(self, points: Points) -> Points:
        """Return the level above the neck's border [m] of points, shape (n, 3)."""
        return self.level_of(points[:, 1], points[:, 2])


def find_landmarks(vertices: Points, faces: NDArray[np.int64]) -> Landmarks:
    """Find the head of a head, a bust or a whole body.

    Slices are walked from the top down. The neck is the narrowest one after the widest, once the
    slices get clearly wider again (shoulders) or the mesh ends there.

    Args:
        vertices: Positions [m], +Y up and +Z front, shape (v, 3).
        faces: Vertex rows of each triangle, shape (f, 3).
    """
    used = vertices[np.unique(faces)]
    top, bottom = float(used[:, 1].max()), float(used[:, 1].min())
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    edges = np.unique(edges, axis=0)
    low = vertices[edges].min(axis=1)[:, 1]
    high = vertices[edges].max(axis=1)[:, 1]
    step = max((top - bottom) / 400.0, 1e-9)
    widest = 0.0
    narrowest = (math.inf, bottom)
    width = 0.0
    found = False
    for y in np.arange(top - step, bottom, -step):
        x = _slice(vertices, edges[(low <= y) & (high > y)], y)[:, 0]
        if len(x) == 0:
            continue
        width = float(x.max() - x.min())
        if width > widest and not found:
            if (
                width > 1.35 * narrowest[0]
                and narrowest[0] < 0.8 * widest
                and top - y > 0.8 * widest
            ):
                found = True
                break
            widest = width
            narrowest = (math.inf, bottom)
        if width < narrowest[0]:
            narrowest = (width, float(y))
        elif width > 1.35 * narrowest[0] and narrowest[0] < 0.8 * widest:
            if top - narrowest[1] > 0.8 * widest:
                found = True
                break
    if not found:
        # A head cut off at the neck ends in a slice of the neck; a ball ends in a point.
        found = widest * 0.3 < width and narrowest[0] < 0.85 * widest
        narrowest = narrowest if found else (width, bottom)
    height = top - narrowest[1]
    center_x, back = _middle(vertices, edges, low, high, top, narrowest[1])
    half_neck = 0.5 * narrowest[0] if found else 0.0
    neck_z = back + 0.8 * half_neck if found else 0.5 * float(used[:, 2].min() + used[:, 2].max())
    pivot = np.array([center_x, narrowest[1] + 0.29 * height, neck_z])
    return Landmarks(
        pivot=pivot,
        top=top,
        height=height,
        has_neck=found,
        neck=(-0.29 * height, 0.0),
        cut_low=-0.18 * height,
        cut_high=0.0,
    )


def _slice(vertices: Points, edges: NDArray[np.int64], y: float) -> Points:
    """Return where edges cross a height, shape (n, 3)."""
    a, b = vertices[edges[:, 0]], vertices[edges[:, 1]]
    share = (y - a[:, 1]) / (b[:, 1] - a[:, 1])
    return a + (b - a) * share[:, None]


def _middle(
    vertices: Points,
    edges: NDArray[np.int64],
    low: Points,
    high: Points,
    top: float,
    neck: float,
) -> tuple[float, float]:
    """Return the x of the head's middle and the z of the neck's back [m]."""
    skull = top - 0.4 * (top - neck)
    x = _slice(vertices, edges[(low <= skull) & (high > skull)], skull)[:, 0]
    neck_slice = _slice(vertices, edges[(low <= neck) & (high > neck)], neck)
    middle = 0.5 * float(x.min() + x.max()) if len(x) else 0.0
    if abs(middle) < 0.01 * (top - neck):
        middle = 0.0  # a mesh made symmetric about x = 0 stays so exactly
    back = float(neck_slice[:, 2].min()) if len(neck_slice) else 0.0
    return middle, back


def fit_sphere(points: Points) -> tuple[Points, float]:
    """Return the middle and the radius [m] of the ball nearest to points, least squares."""
    origin = points.mean(axis=0)
    local = points - origin
    system = np.concatenate([2.0 * local, np.ones((len(local), 1))], axis=1)
    solution, *_ = np.linalg.lstsq(system, np.sum(local * local, axis=1), rcond=None)
    radius = math.sqrt(max(float(solution[3] + solution[:3] @ solution[:3]), 1e-12))
    return origin + solution[:3], radius


def ear_vertices(vertices: Points, center: Points, radius: float) -> Points:
    """Return vertices that stand out of the skull's sides, shape (n, 3).

    The skull is an ellipsoid through the vertices above the ears; what stands out of it beside and
    below them is an ear.

    Args:
        vertices: Positions [m], shape (v, 3).
        center: Middle of the skull [m], shape (3,).
        radius: Radius of the skull [m].
    """
    local = vertices - center
    distance = np.linalg.norm(local, axis=1)
    elevation = np.arcsin(np.clip(local[:, 1] / np.maximum(distance, 1e-12), -1.0, 1.0))
    azimuth = np.degrees(np.arctan2(np.abs(local[:, 0]), local[:, 2]))
    skull = (elevation > math.radians(12.0)) & (distance > 0.6 * radius) & (distance < 1.6 * radius)
    if np.count_nonzero(skull) < 12:
        return np.zeros((0, 3))
    system = np.concatenate([local[skull] ** 2, local[skull][:, 1:]], axis=1)
    fit, *_ = np.linalg.lstsq(system, np.ones(len(system)), rcond=None)
    if np.any(fit[:3] <= 0.0):
        return np.zeros((0, 3))
    level = local**2 @ fit[:3] + local[:, 1:] @ fit[3:]
    slope = np.linalg.norm(2.0 * local * fit[:3] + np.array([0.0, fit[3], fit[4]]), axis=1)
    stands_out = (level - 1.0) / np.maximum(slope, 1e-12)
    beside = (azimuth > 65.0) & (azimuth < 128.0)
    height = (elevation < math.radians(15.0)) & (elevation > math.radians(-50.0))
    return vertices[beside & height & (stands_out > 0.04 * radius) & (distance < 2.0 * radius)]
