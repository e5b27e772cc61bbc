"""Small grooms built by hand, poses, and the solver's state as NumPy arrays."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hairkit import motions
from hairkit.groom import Groom, grow
from hairkit.head import Head
from hairkit.shapes import Sphere
from hairkit.sim import columns
from hairkit.style import Style, load_style

Points = NDArray[np.float64]


@cache
def ball_head(radius: float = 0.1) -> Head:
    """Return a ball to grow hair on [m]."""
    return Head.sphere(radius)


@cache
def bare_head() -> Head:
    """Return a head whose solid is out of the way, so that strands touch nothing."""
    return replace(ball_head(), head_shape=Sphere(0.01, center=(0.0, 500.0, 0.0)))


def plain_style(**changes: Any) -> Style:
    """Return a style for physics alone: free, even stiffness, no drag but what is asked for."""
    values = {"hold": 0.0, "stiff_root": 1.0, "damping": 0.0, "width": 0.0, **changes}
    return load_style("straight").replace(**values)


def hand_groom(strands: Sequence[Points], style: Style, head: Head | None = None) -> Groom:
    """Return a groom with these rest poses.

    Args:
        strands: Points of each strand in the head's frame [m], root to tip, each of shape (n, 3).
        style: What the hair is like.
        head: What it grows on; by default a head that nothing touches.
    """
    roots = np.array([points[0] for points in strands])
    directions = np.array([points[1] - points[0] for points in strands])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    lengths = np.array([np.linalg.norm(np.diff(p, axis=0), axis=1).sum() for p in strands])
    return Groom(
        style=style,
        head=bare_head() if head is None else head,
        roots=roots,
        normals=directions,
        directions=directions,
        lengths=lengths / style.length,
        counts=np.array([len(points) for points in strands], np.int32),
        points=np.concatenate(strands),
        neighbours=np.zeros((len(strands), 3), np.int32),
        spacing=0.01,
        tied_to=np.full(len(strands), -1, np.int32),
        laid=np.full(len(strands), 2, np.int32),
    )


def straight(
    count: int,
    segment: float,
    *,
    along: ArrayLike = (1.0, 0.0, 0.0),
    root: ArrayLike = (0.0, 0.0, 0.0),
) -> Points:
    """Return a straight strand of equal segments [m], shape (count, 3)."""
    along = np.asarray(along, np.float64)
    along = along / np.linalg.norm(along)
    return np.asarray(root, np.float64) + segment * np.arange(count)[:, None] * along


def helix(
    count: int,
    segment: float,
    *,
    turns: float = 9.0,
    radius: float = 0.01,
    along: ArrayLike = (1.0, 0.0, 0.0),
    root: ArrayLike = (0.0, 0.0, 0.0),
    hand: float = 1.0,
) -> Points:
    """Return a helix of equal chords [m] about an axis through its root's offset, shape (count, 3).

    Args:
        count: Points.
        segment: Length of each chord [m].
        turns: Turns a metre of strand [1/m].
        radius: Its radius [m].
        along: Direction of the axis.
        root: First point [m].
        hand: 1 for a right-handed helix, -1 for a left-handed one.
    """
    angle = 2.0 * np.pi * turns * segment
    rise = np.sqrt(segment**2 - (2.0 * radius * np.sin(0.5 * angle)) ** 2)
    step = np.arange(count)
    local = np.stack(
        [
            rise * step,
            radius * (np.cos(angle * step) - 1.0),
            hand * radius * np.sin(angle * step),
        ],
        axis=1,
    )
    return np.asarray(root, np.float64) + local @ turning_to(along).T


def random_curl(
    rng: np.random.Generator,
    count: int,
    segment: float,
    *,
    bend: float = 0.3,
    root: ArrayLike = (0.0, 0.0, 0.0),
    along: ArrayLike | None = None,
) -> Points:
    """Return a strand that curls at random, with equal chords [m], shape (count, 3).

    Args:
        rng: Where the curl comes from.
        count: Points.
        segment: Length of each chord [m].
        bend: Largest angle between two segments, roughly [rad].
        root: First point [m].
        along: Direction of the first chord; any by default.
    """
    direction = unit(rng.normal(size=3) if along is None else along)
    points = [np.asarray(root, np.float64)]
    for _ in range(count - 1):
        points.append(points[-1] + segment * direction)
        direction = unit(direction + bend * rng.uniform(-0.6, 0.6, 3))
    return np.array(points)


def unit(vectors: ArrayLike) -> Points:
    """Return vectors scaled to length one, along the last axis."""
    vectors = np.asarray(vectors, np.float64)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def turning(axis: ArrayLike, angle: float) -> Points:
    """Return the rotation matrix about an axis by an angle [rad], shape (3, 3)."""
    x, y, z = unit(axis)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross


def turning_to(along: ArrayLike) -> Points:
    """Return a rotation matrix whose first column is a direction, shape (3, 3)."""
    first = unit(along)
    other = np.eye(3)[int(np.argmin(np.abs(first)))]
    second = unit(np.cross(first, other))
    return np.stack([first, second, np.cross(first, second)], axis=1)


def pose(
    turn: ArrayLike | None = None, position: ArrayLike = (0.0, 0.0, 0.0)
) -> NDArray[np.float64]:
    """Return a (4, 4) pose of a rotation matrix and a position [m]."""
    matrix = np.eye(4)
    if turn is not None:
        matrix[:3, :3] = turn
    matrix[:3, 3] = position
    return matrix


def in_head(points: Points, head_pose: Points) -> Points:
    """Return world points in a head's frame [m]."""
    return (points - head_pose[:3, 3]) @ head_pose[:3, :3]


def point_index(hair: Any) -> NDArray[np.int64]:
    """Return each point's place along its strand, 0 at the root, shape (points,)."""
    return np.concatenate([np.arange(count) for count in hair.counts])


def free(hair: Any) -> NDArray[np.bool_]:
    """Return which points the head does not hold, shape (points,)."""
    return point_index(hair) >= 2


def strand_lengths(hair: Any) -> Points:
    """Return the rest length of the strand that each point belongs to [m], shape (points,)."""
    return np.repeat(hair.groom.lengths * hair.groom.style.length, hair.counts)


def small(name: str = "curly", guides: int = 12, **changes: Any) -> Groom:
    """Grow a few guides on a ball."""
    return grow(load_style(name).replace(**changes), ball_head(), guides=guides)


def play(made: Any, *hairs: Any, frames: int = 30, rate: float = 60.0) -> list[Points]:
    """Turn and nod heads where they are for some frames; return the points of the last frame."""
    stands = [hair.head_pose for hair in hairs]
    for pose in motions.turn_and_nod(seconds=frames / rate, rate=rate):
        for stand, hair in zip(stands, hairs, strict=True):
            hair.set_head(stand @ pose)
        made.step(1.0 / rate)
    return [hair.points() for hair in hairs]


def settle(made: Any, seconds: float) -> None:
    """Let time pass."""
    for _ in range(round(10.0 * seconds)):
        made.step(0.1)


class Watch:
    """Reads one hair off after each step: how deep in a solid, how far stretched, at worst."""

    def __init__(self, hair: Any, *solids: Any) -> None:
        """Watch a hair.

        Args:
            hair: Which.
            solids: Colliders to watch too, beside the hair's own head and body.
        """
        self.hair = hair
        self.depth = -np.inf
        """Deepest a free point has been in a solid [m]; negative: the nearest it came."""
        self.strain = 0.0
        """Largest strain of any segment but the roots', of either sign."""
        index = point_index(hair)
        self._free = index >= 2
        self._inner = index[1:] >= 2
        rest = np.linalg.norm(np.diff(hair.groom.points, axis=0), axis=1)
        self._rest = rest[self._inner]
        self._solids = solids

    def look(self) -> Points:
        """Look at the hair now; return its points in the world [m]."""
        hair, head = self.hair, self.hair.groom.head
        points = hair.points()
        length = np.linalg.norm(np.diff(points, axis=0)[self._inner], axis=1)
        self.strain = max(self.strain, float(np.abs(length / self._rest - 1.0).max()))
        solids = [(head.head_shape, hair.head_pose), (head.body_shape, hair.body_pose)]
        solids += [(solid.shape, solid.pose) for solid in self._solids]
        for shape, where in solids:
            if shape is not None:
                distance, _ = shape.signed_distance(in_head(points[self._free], where))
                self.depth = max(self.depth, -float(distance.min()))
        return points


def blocks(hair: Any) -> list[list[int]]:
    """Return which strands share a block, whose lanes take rounds of length solves together."""
    first = hair._world.arena.strand_row.to_numpy()[hair.strand_first :][: hair.strand_count]
    return [np.flatnonzero(first == row).tolist() for row in np.unique(first)]


def _places(hair: Any) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
    """Return the arena, and the row and lane of each of a hair's points."""
    arena = hair._world.arena
    mine = slice(hair.strand_first, hair.strand_first + hair.strand_count)
    row = np.repeat(arena.strand_row.to_numpy()[mine], hair.counts).astype(np.int64)
    lane = np.repeat(arena.strand_lane.to_numpy()[mine], hair.counts).astype(np.int64)
    return arena, row + point_index(hair) * arena.stride, lane


def _read(hair: Any, column: int) -> Points:
    """Return three columns of the arena's rows at a hair's points, shape (points, 3)."""
    arena, row, lane = _places(hair)
    at = (row, lane) if arena.lanes > 1 else row
    fields = arena.row[column : column + 3]
    return np.stack([field.to_numpy()[at] for field in fields], axis=1).astype(np.float64)


def _write(hair: Any, column: int, values: Points) -> None:
    arena, row, lane = _places(hair)
    at = (row, lane) if arena.lanes > 1 else row
    for c in range(3):
        field = arena.row[column + c]
        whole = field.to_numpy()
        whole[at] = values[:, c]
        field.from_numpy(whole)


def read_state(hair: Any) -> tuple[Points, Points]:
    """Return positions in the world [m] and velocities [m/s] of the solver's own state."""
    return _read(hair, columns.POSITION) + hair.origin, _read(hair, columns.VELOCITY)


def write_state(hair: Any, position: Points, velocity: Points) -> None:
    """Set positions in the world [m] and velocities [m/s] of the solver's own state."""
    _write(hair, columns.POSITION, position - hair.origin)
    _write(hair, columns.VELOCITY, velocity)
