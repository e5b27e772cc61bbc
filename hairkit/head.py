"""A head: its mesh, where hair may grow on it, and the solids that hair lies on.

Every head is kept in its own frame: metres, +Y up, +Z out of the face, and the origin at the
pivot, the joint of skull and neck about which a head turns and nods (the middle of a ball).
Whatever a file used is converted when it is read.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hairkit.errors import HeadError, nearest
from hairkit.landmarks import Landmarks, ear_vertices, find_landmarks, fit_sphere
from hairkit.shapes import DistanceGrid, Points, Shape, Sphere, weld

UNITS = {"m": 1.0, "dm": 0.1, "cm": 0.01, "mm": 0.001, "in": 0.0254}
"""Metres in each unit that a file may use."""

AXES = {
    f"{sign}{name}": tuple(float(value) * (a == row) for a in range(3))
    for row, name in enumerate("xyz")
    for sign, value in (("", 1), ("+", 1), ("-", -1))
}
"""Direction of each axis name, such as ``-z``."""

CROWN, HAIRLINE = 2.0, 0.95

HEAD_HEIGHT = (0.05, 0.8)
"""A head lower or higher than this, from the top to the neck [m], is a mistake in units."""

SCALP_EDGE = (
    (0, 28.0),
    (25, 30.0),
    (40, 28.0),
    (55, 18.0),
    (68, 8.0),
    (80, 0.0),
    (95, -6.0),
    (106, -15.0),
    (116, -32.0),
    (135, -45.0),
    (180, -48.0),
)
"""Hairline of a human head, seen from the middle of the skull: azimuth from the front, elevation
[deg]."""

HEAD_CELL, BODY_CELL = 0.004, 0.008
REACH = 0.75
"""Length of hair that the body's grid is made for [m]."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Head:
    """A head, with a neck and shoulders or without: ``Head.sphere`` or ``Head.load``."""

    name: str
    """What to call it in messages."""

    source: str
    """Path of the file it came from, or ``sphere``."""

    vertices: Points = field(repr=False)
    """Positions [m], shape (v, 3)."""

    faces: NDArray[np.int32] = field(repr=False)
    """Vertex rows of each triangle, anticlockwise from outside, shape (f, 3)."""

    vertex_normals: Points = field(repr=False)
    """Unit normals, smooth across seams, shape (v, 3)."""

    colors: NDArray[np.uint8] | None = field(repr=False)
    """sRGB colour of each vertex, shape (v, 3), or None when the file has none."""

    follow: NDArray[np.float32] = field(repr=False)
    """How far each vertex turns with the head: 1 with the head, 0 stays with the body, shape
    (v,)."""

    scalp_faces: NDArray[np.bool_] = field(repr=False)
    """Triangles on which hair may grow, shape (f,)."""

    own_scalp: bool = False
    """True when the scalp faces were given and not found: then they alone say where hair grows."""

    center: Points
    """Middle of the ball that fits the skull best [m], shape (3,)."""

    radius: float
    """Radius of that ball [m]."""

    crown: float = CROWN
    """How far hair grows down the back, as an angle from ``up`` [rad]."""

    hairline: float = HAIRLINE
    """How far around ``front`` no hair grows [rad]; more is a higher forehead."""

    head_shape: Shape = field(repr=False)
    """Solid that turns with the head, in the head's frame."""

    body_shape: Shape | None = field(repr=False)
    """Neck, shoulders and the rest, which stay when the head turns; overlaps the head in the
    neck."""

    file_from_head: Points = field(repr=False)
    """Matrix from the head's frame to the file's coordinates and units, shape (4, 4)."""

    up: tuple[float, float, float] = (0.0, 1.0, 0.0)
    front: tuple[float, float, float] = (0.0, 0.0, 1.0)

    @property
    def file_offset(self) -> Points:
        """Where the head's origin is in the file [m], along the head's axes, shape (3,)."""
        linear = self.file_from_head[:3, :3]
        return np.asarray(np.linalg.solve(linear, self.file_from_head[:3, 3]), dtype=np.float64)

    @property
    def is_sphere(self) -> bool:
        """Whether the head is an exact ball; roots then lie on the ball, not on triangles."""
        return isinstance(self.head_shape, Sphere)

    @classmethod
    def sphere(
        cls, radius: float = 0.1, *, crown: float = CROWN, hairline: float = HAIRLINE
    ) -> "Head":
        """Make a ball.

        Args:
            radius: Radius [m].
            crown: Hair grows within this angle of straight up [rad].
            hairline: No hair grows within this angle of the front [rad].
        """
        if not (math.isfinite(radius) and radius > 0.0):
            raise HeadError(f"sphere: radius expected to be greater than 0 [m], got {radius}")
        _check_angles("sphere", crown, hairline)
        from trimesh.creation import icosphere  # slow to import, and not needed to grow on a mesh

        ball = icosphere(subdivisions=4)
        normals = np.array(ball.vertices, dtype=np.float64)
        faces = np.array(ball.faces, dtype=np.int32)
        middle = normals[faces].mean(axis=1)
        middle /= np.linalg.norm(middle, axis=1, keepdims=True)
        scalp = _ball_limit(middle, crown, hairline) >= 0.0
        if not scalp.any():
            raise HeadError(
                f"sphere: no scalp is left with crown {crown} and hairline {hairline} [rad]; "
                "expected a wider crown or a smaller hairline"
            )
        return cls(
            name="sphere",
            source="sphere",
            vertices=normals * radius,
            faces=faces,
            vertex_normals=normals,
            colors=None,
            follow=np.ones(len(normals), np.float32),
            scalp_faces=scalp,
            center=np.zeros(3),
            radius=float(radius),
            crown=float(crown),
            hairline=float(hairline),
            head_shape=Sphere(float(radius)),
            body_shape=None,
            file_from_head=np.eye(4),
        )

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        units: str = "m",
        up: str = "y",
        front: str | None = None,
        scalp: Sequence[int] | NDArray[np.integer] | str | Path | None = None,
        crown: float = CROWN,
        hairline: float = HAIRLINE,
        name: str | None = None,
    ) -> "Head":
        """Read a head, a bust or a whole body from any mesh file that trimesh reads.

        The head is the part above the narrowest slice below the widest one. The body's solid
        reaches far enough for hair of ``REACH``. Both are sampled once and kept on disk.

        Args:
            path: The mesh file.
            units: Unit of its coordinates: m, dm, cm, mm or in.
            up: Axis that points up, such as ``y`` or ``z``.
            front: Axis that the face looks along; None is ``z``, or ``-y`` when z is up.
            scalp: Triangles on which hair grows, as rows of the file's triangles, or a JSON file
                with such faces or vertices; None finds the scalp.
            crown: How far down the back hair grows, as an angle from straight up [rad]; 2.0 is the
                nape.
            hairline: How far around the front no hair grows [rad]; 0.95 is a usual forehead, more
                a higher one.
            name: What to call it; None is the file's name.
        """
        path = Path(path)
        label = path.name
        if units not in UNITS:
            raise HeadError(
                f"units: expected one of {', '.join(UNITS)}, got {units!r}{nearest(units, UNITS)}"
            )
        turn = axes_to_head(up, front)
        _check_angles(label, crown, hairline)
        raw, faces, colors = _read_mesh(path)
        vertices = raw * UNITS[units] @ turn.T
        welded, welded_faces, welded_row = weld(vertices, faces)
        marks = _landmarks(label, welded, welded_faces, units)
        vertices, welded = vertices - marks.pivot, welded - marks.pivot
        normals = _normals(welded, welded_faces)[welded_row]
        top = welded[:, 1] > marks.top - marks.pivot[1] - 0.42 * marks.height
        center, radius = fit_sphere(welded[top])
        center[0] = 0.0 if abs(center[0]) < 0.02 * radius else center[0]
        level = marks.level(vertices)
        follow = _smoothstep((level - marks.cut_low) / (marks.cut_high - marks.cut_low))
        if not marks.has_neck:
            follow = np.ones(len(vertices))
        middle = vertices[faces].mean(axis=1)
        if scalp is None:
            ears = ear_vertices(welded, center, radius)
            mask = _find_scalp(vertices, faces, center, radius, follow, ears, crown, hairline)
        else:
            mask = _given_scalp(label, scalp, path.name, len(vertices), faces)
        area = np.linalg.norm(
            np.cross(
                vertices[faces[:, 1]] - vertices[faces[:, 0]],
                vertices[faces[:, 2]] - vertices[faces[:, 0]],
            ),
            axis=1,
        )
        if not area[mask].sum() > 0.0:
            raise HeadError(
                f"{label}: no scalp found (hair may grow on none of {len(middle)} triangles); "
                "expected +Y up and the face to +Z (see up= and front=), or scalp= faces"
            )
        head_shape, body_shape = _solids(vertices, faces, marks, follow)
        to_file = np.eye(4)
        to_file[:3, :3] = turn.T / UNITS[units]
        to_file[:3, 3] = turn.T @ marks.pivot / UNITS[units]
        return cls(
            name=name or path.stem,
            source=str(path),
            vertices=vertices,
            faces=faces.astype(np.int32),
            vertex_normals=normals,
            colors=colors,
            follow=follow.astype(np.float32),
            scalp_faces=mask,
            own_scalp=scalp is not None,
            center=center,
            radius=radius,
            crown=float(crown),
            hairline=float(hairline),
            head_shape=head_shape,
            body_shape=body_shape,
            file_from_head=to_file,
        )

    def beside_file(self, points: ArrayLike) -> Points:
        """Return what lies beside the mesh in its file in the head's frame [m], shape (n, 3).

        Args:
            points: In the file's own frame, but in metres and with +Y up [m], shape (n, 3).
        """
        return np.asarray(points, dtype=np.float64) @ self._turn_beside().T - self.file_offset

    def to_beside_file(self, points: ArrayLike) -> Points:
        """Return what `beside_file` was given for points in the head's frame [m], shape (n, 3)."""
        return (np.asarray(points, dtype=np.float64) + self.file_offset) @ self._turn_beside()

    def _turn_beside(self) -> Points:
        turn = self.file_from_head[:3, :3].T
        turn = turn / np.linalg.norm(turn, axis=1, keepdims=True)
        axis = int(np.abs(turn[1]).argmax())
        up = ("-" if turn[1, axis] < 0.0 else "") + "xyz"[axis]
        # Such points have been turned upright, but not yet to where this face looks.
        return turn @ axes_to_head(up, None).T

    def scalp_limit(self, directions: ArrayLike) -> Points:
        """Return how far directions from ``center`` are inside the scalp [rad], negative outside.

        Args:
            directions: Vectors of any length, shape (n, 3).
        """
        directions = np.atleast_2d(np.asarray(directions, dtype=np.float64))
        if self.is_sphere:
            unit = directions / np.linalg.norm(directions, axis=1, keepdims=True)
            return _ball_limit(unit, self.crown, self.hairline)
        return _human_limit(directions, self.crown, self.hairline)

    def signed_distance(self, points: ArrayLike, *, body: bool = True) -> tuple[Points, Points]:
        """Return distances [m] of points in the head's frame, negative inside, and unit normals.

        Args:
            points: Positions [m], shape (n, 3).
            body: Whether neck and shoulders count, unturned, and not the head alone.
        """
        distance, normal = self.head_shape.signed_distance(points)
        if body and self.body_shape is not None:
            other, other_normal = self.body_shape.signed_distance(points)
            nearer = other < distance
            distance = np.where(nearer, other, distance)
            normal = np.where(nearer[:, None], other_normal, normal)
        return distance, normal

    def thumbprint(self) -> str:
        """Return a short text that differs for heads that differ in shape or scalp."""
        digest = hashlib.sha256(f"{self.crown!r} {self.hairline!r} {self.own_scalp}".encode())
        for array in (self.vertices, self.faces, self.follow, self.scalp_faces):
            digest.update(f"{array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]


def _check_angles(label: str, crown: float, hairline: float) -> None:
    """Raise when the scalp's angles are not angles."""
    for key, value in (("crown", crown), ("hairline", hairline)):
        if not (math.isfinite(value) and 0.0 <= value <= math.pi):
            raise HeadError(f"{label}: {key} expected 0 to {math.pi:.4f} [rad], got {value}")


def _ball_limit(unit: Points, crown: float, hairline: float) -> Points:
    """Return how far unit directions are inside the scalp of a ball [rad], negative outside."""
    from_up = np.arccos(np.clip(unit[:, 1], -1.0, 1.0))
    from_front = np.arccos(np.clip(unit[:, 2], -1.0, 1.0))
    return np.minimum(crown - from_up, from_front - hairline)


def _human_limit(directions: Points, crown: float, hairline: float) -> Points:
    """Return how far directions are inside the scalp of a human head [rad], negative outside."""
    azimuth = np.arctan2(np.abs(directions[:, 0]), directions[:, 2])
    elevation = np.arctan2(directions[:, 1], np.hypot(directions[:, 0], directions[:, 2]))
    table = np.radians(np.array(SCALP_EDGE))
    edge = np.interp(azimuth, table[:, 0], table[:, 1])
    # The crown moves the edge at the back and the hairline moves it in front; they meet above the
    # ears.
    front = _smoothstep((math.radians(100.0) - azimuth) / math.radians(40.0))
    return elevation - edge - front * (hairline - HAIRLINE) + (1.0 - front) * (crown - CROWN)


def _smoothstep(value: Points) -> Points:
    """Return a smooth ramp from 0 at 0 to 1 at 1."""
    value = np.clip(value, 0.0, 1.0)
    return value * value * (3.0 - 2.0 * value)


def axes_to_head(up: str, front: str | None) -> Points:
    """Return the rotation from a file's axes to +Y up and +Z front, shape (3, 3)."""
    if front is None:
        front = "-y" if up.strip("+-") == "z" else "z"
    for key, value in (("up", up), ("front", front)):
        if value not in AXES:
            raise HeadError(f"{key}: expected an axis such as y, z or -z, got {value!r}")
    up_axis, front_axis = np.array(AXES[up]), np.array(AXES[front])
    if up_axis @ front_axis != 0.0:
        raise HeadError(f"front: expected an axis across up ({up}), got {front!r}")
    return np.stack([np.cross(up_axis, front_axis), up_axis, front_axis])


def _read_mesh(path: Path) -> tuple[Points, NDArray[np.int64], NDArray[np.uint8] | None]:
    """Return a file's vertices, triangles and vertex colours."""
    if not path.is_file():
        raise HeadError(f"{path}: no such file; expected a head mesh such as .glb or .obj")
    import trimesh  # slow to import, and a ball does without

    try:
        # An avatar in a .vrm is a .glb by another name.
        kind = "glb" if path.suffix.lower() == ".vrm" else None
        mesh = trimesh.load(str(path), file_type=kind, force="mesh", process=False)
    except Exception as error:  # each of trimesh's readers raises its own kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        raise HeadError(
            f"{path}: not a mesh that can be read ({reason}); expected such as .glb, .obj, .ply"
        ) from error
    vertices = np.array(getattr(mesh, "vertices", ()), dtype=np.float64).reshape(-1, 3)
    faces = np.array(getattr(mesh, "faces", ()), dtype=np.int64).reshape(-1, 3)
    if len(faces) == 0:
        raise HeadError(f"{path}: no faces ({len(vertices)} vertices); expected a triangle mesh")
    bad = np.flatnonzero(~np.isfinite(vertices).all(axis=1))
    if len(bad):
        raise HeadError(
            f"{path}: vertex {bad[0]} is {vertices[bad[0]].tolist()} ({len(bad)} such); "
            "expected finite numbers"
        )
    colors = None
    visual: Any = getattr(mesh, "visual", None)
    if visual is not None and visual.kind == "vertex":
        colors = np.array(visual.vertex_colors, dtype=np.uint8)[:, :3]
    return vertices, faces, colors


def _landmarks(label: str, vertices: Points, faces: NDArray[np.int64], units: str) -> Landmarks:
    """Return where head and neck are, or say that the size is absurd."""
    marks = find_landmarks(vertices, faces)
    low, high = HEAD_HEIGHT
    if not low <= marks.height <= high:
        raw = marks.height / UNITS[units]
        guess = min(UNITS, key=lambda unit: abs(math.log(max(raw, 1e-12) * UNITS[unit] / 0.22)))
        hint = f"try --units {guess}" if low <= raw * UNITS[guess] <= high else "check --units"
        raise HeadError(
            f"{label}: the head is {marks.height:.4g} m high in units of {units}; "
            f"expected {low} to {high} m; {hint}"
        )
    return marks


def _normals(vertices: Points, faces: NDArray[np.int64]) -> Points:
    """Return unit vertex normals, weighted by area, shape (v, 3)."""
    corners = vertices[faces]
    face_normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal = np.zeros_like(vertices)
    for corner in range(3):
        np.add.at(normal, faces[:, corner], face_normal)
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    return np.where(length > 0.0, normal / np.where(length > 0.0, length, 1.0), [0.0, 1.0, 0.0])


def _find_scalp(
    vertices: Points,
    faces: NDArray[np.int64],
    center: Points,
    radius: float,
    follow: Points,
    ears: Points,
    crown: float,
    hairline: float,
) -> NDArray[np.bool_]:
    """Return the triangles on the outside of the skull within the hairline, shape (f,)."""
    corners = vertices[faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    outward = corners.mean(axis=1) - center
    facing = np.sum(normal * outward, axis=1)
    size = np.linalg.norm(normal, axis=1) * np.linalg.norm(outward, axis=1)
    limit = _human_limit(corners.reshape(-1, 3) - center, crown, hairline).reshape(-1, 3)
    # A triangle that crosses the hairline belongs to the scalp; roots are kept behind the line one
    # by one.
    mask = (limit.max(axis=1) > 0.0) & (facing > 0.3 * size) & (follow[faces].min(axis=1) > 0.99)
    if len(ears):
        from scipy.spatial import KDTree

        near, _ = KDTree(ears).query(corners.reshape(-1, 3), distance_upper_bound=0.08 * radius)
        mask &= ~np.isfinite(near).reshape(-1, 3).any(axis=1)
    return mask


def _given_scalp(
    label: str,
    scalp: Sequence[int] | NDArray[np.integer] | str | Path,
    mesh_name: str,
    vertex_count: int,
    faces: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return the mask of scalp faces that a user gave as rows or in a JSON file, shape (f,)."""
    kind, rows, where = "faces", scalp, f"{label}: scalp"
    if isinstance(scalp, str | Path):
        where = str(scalp)
        kind, rows = _read_scalp(Path(scalp), mesh_name)
    try:
        rows = np.asarray(rows)
        if rows.dtype == bool and rows.shape == (len(faces),):
            return rows.copy()
        if rows.size == 0:
            rows = np.zeros(0, np.int64)
        if rows.dtype.kind not in "iu" or rows.ndim != 1:
            raise ValueError
    except ValueError:
        raise HeadError(f"{where}: expected a list of whole numbers of {kind}") from None
    count = len(faces) if kind == "faces" else vertex_count
    bad = rows[(rows < 0) | (rows >= count)]
    if len(bad):
        raise HeadError(f"{where}: {kind} {bad[0]} is out of range; expected 0 to {count - 1}")
    if kind == "faces":
        mask = np.zeros(len(faces), bool)
        mask[rows] = True
        return mask
    chosen = np.zeros(vertex_count, bool)
    chosen[rows] = True
    return np.asarray(chosen[faces].all(axis=1), dtype=np.bool_)


def _read_scalp(path: Path, mesh_name: str) -> tuple[str, Any]:
    """Return ``faces`` or ``vertices`` and the rows from a scalp file.

    Vertices are preferred where a file has both: rows of polygons are not rows of triangles.
    """
    if not path.is_file():
        raise HeadError(f"{path}: no such file; expected JSON with the scalp's faces or vertices")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise HeadError(f"{path}: not JSON ({error}); expected the scalp's faces") from error
    if isinstance(content, dict):
        content = content.get(mesh_name, content)
    if isinstance(content, list):
        return "faces", content
    if isinstance(content, dict):
        for key in ("vertices", "vertices0", "faces", "faces0"):
            if key in content:
                return key.strip("0"), content[key]
    raise HeadError(
        f"{path}: expected a list of faces, or 'faces' or 'vertices', or an entry {mesh_name!r}"
    )


def _solids(
    vertices: Points, faces: NDArray[np.int64], marks: Landmarks, follow: Points
) -> tuple[Shape, Shape | None]:
    """Return the solids of the head and of the body, which overlap within the neck.

    Both are the whole mesh's distance, cut by a plane: cutting the triangles instead would leave
    holes.
    """
    larger = max(marks.height / 0.24, 1.0)  # a giant's head needs no more samples
    if not marks.has_neck:
        return DistanceGrid.from_mesh(vertices, faces, cell=HEAD_CELL * larger), None
    head_part = vertices[follow > 0.0]
    margin = 0.03
    head = DistanceGrid.from_mesh(
        vertices,
        faces,
        cell=HEAD_CELL * larger,
        bounds=(head_part.min(axis=0) - margin, head_part.max(axis=0) + margin),
    )
    body_part = vertices[follow < 1.0]
    low = np.array([-0.32, -REACH, -REACH])
    high = np.array([0.32, 0.0, REACH])
    high[1] = body_part[:, 1].max() + margin
    body = DistanceGrid.from_mesh(vertices, faces, cell=BODY_CELL, bounds=(low, high))
    # The turning solid ends high in the neck: what reached farther down would swing about like a
    # stick and pinch hair between itself and the back.
    low_cut = marks.cut_high + 0.35 * (marks.cut_low - marks.cut_high)
    return _cut(head, marks, low_cut, -1.0), _cut(body, marks, marks.cut_high, 1.0)


def _cut(grid: DistanceGrid, marks: Landmarks, at: float, side: float) -> DistanceGrid:
    """Return the part of a solid below (side 1) or above (side -1) a level of the neck."""
    axes = [grid.origin[axis] + grid.cell * np.arange(grid.values.shape[axis]) for axis in range(3)]
    _, y, z = np.meshgrid(*axes, indexing="ij", sparse=True)
    level = marks.level_of(y, z)
    beyond = side * (level - at) / marks.steepness
    values = np.maximum(grid.values, beyond.astype(np.float32))
    return DistanceGrid(np.ascontiguousarray(values), grid.origin, grid.cell)
