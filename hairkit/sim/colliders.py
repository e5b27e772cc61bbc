"""Colliders: what hair is kept out of, and the rows that the solver reads of them."""

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hairkit.errors import WorldError
from hairkit.shapes import Box, Capsule, DistanceGrid, Ellipsoid, Plane, Shape, Sphere
from hairkit.sim import columns as col
from hairkit.sim.checks import check_pose
from hairkit.sim.poses import pose_row

if TYPE_CHECKING:
    from hairkit.sim.hair import Hair


_serials = itertools.count()
"""Numbers of colliders."""


class Collider:
    """A shape in a world, still or moving; made by ``World.add_collider``."""

    def __init__(self, shape: Shape, pose: NDArray[np.float64], first_cell: int = 0):
        """Keep the shape and where it begins.

        Args:
            shape: What it is, in its own frame [m].
            pose: Its frame to the world's, shape (4, 4).
            first_cell: First cell of its distance grid in the arena.
        """
        self.shape = shape
        self.pose = pose
        self.first_cell = first_cell
        self.serial = next(_serials)
        self.moved = True

    def set_pose(self, pose: Any) -> None:
        """Say where it is at the end of the next step; it moves evenly there during the step.

        Args:
            pose: Its frame to the world's, shape (4, 4), rotation and translation [m].

        Raises:
            WorldError: Not a rotation and a translation, or not finite.
        """
        matrix = check_pose(pose, "collider pose")
        if matrix is None:
            raise WorldError("collider pose: expected finite numbers below 1e7 m")
        if not np.array_equal(matrix, self.pose):
            self.pose = matrix
            self.moved = True

    def row(self, unit: float = 1.0) -> list[float]:
        """Return its kind and nine shape columns, in units of so many metres."""
        return shape_row(self.shape, self.first_cell, unit)


def shape_row(shape: Shape, first_cell: int, unit: float = 1.0) -> list[float]:
    """Return a shape's kind and its nine numbers.

    Args:
        shape: The shape.
        first_cell: First cell of its distance grid in the arena.
        unit: What the numbers are multiples of [m].

    Raises:
        WorldError: The solver does not know the shape.
    """
    numbers: list[float]
    if unit != 1.0:
        kind, *sizes = shape_row(shape, first_cell)
        # A plane's first three numbers are a direction, a grid's first four are counts.
        kept = {Plane: 3, DistanceGrid: 4}.get(type(shape), 0)
        return [kind, *sizes[:kept], *(size / unit for size in sizes[kept:])]
    if isinstance(shape, Sphere):
        numbers = [col.SPHERE, *shape.center, shape.radius]
    elif isinstance(shape, Capsule):
        numbers = [col.CAPSULE, *shape.a, *shape.b, shape.radius]
    elif isinstance(shape, Box):
        numbers = [col.BOX, *shape.center, *shape.half]
    elif isinstance(shape, Ellipsoid):
        numbers = [col.ELLIPSOID, *shape.center, *shape.radii]
    elif isinstance(shape, Plane):
        normal = np.asarray(shape.normal, np.float64)
        numbers = [col.PLANE, *(normal / np.linalg.norm(normal)), shape.offset]
    elif isinstance(shape, DistanceGrid):
        # The last one turns the distances, which are in metres, into the solver's unit.
        numbers = [col.GRID, first_cell, *shape.values.shape, *shape.origin, shape.cell, 1.0]
    else:
        raise WorldError(
            f"collider: expected a Sphere, Capsule, Box, Ellipsoid, Plane, DistanceGrid or mesh, "
            f"got {type(shape).__name__}"
        )
    return [float(n) for n in numbers] + [0.0] * (10 - len(numbers))


def as_shape(thing: Any) -> Shape:
    """Return a shape, made into a distance grid if it is a mesh (anything with vertices and faces).

    Raises:
        WorldError: It is neither.
    """
    if hasattr(thing, "signed_distance") and not hasattr(thing, "faces"):
        return thing
    if hasattr(thing, "vertices") and hasattr(thing, "faces"):
        return DistanceGrid.from_mesh(np.asarray(thing.vertices), np.asarray(thing.faces))
    raise WorldError(
        f"collider: expected a shape or a mesh with vertices and faces, got {type(thing).__name__}"
    )


def lay_contacts(
    hairs: "list[Hair]", colliders: list[Collider], numbers: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Give each hair its rows: the world's colliders, then its body, its head last."""
    per = [len(colliders) + len(h.shapes) for h in hairs]
    table = np.zeros((max(sum(per), 1), col.CONTACT_COLUMNS), np.float32)
    at = 0
    for hair, count in zip(hairs, per, strict=True):
        hair.contact_rows = (at, count)
        # Contacts lie below the hair's rows in the table that travels.
        numbers[hair.index, col.CONTACT_FIRST] = len(numbers) + at
        numbers[hair.index, col.CONTACT_COUNT] = count
        for collider in colliders:
            table[at, :10] = collider.row(hair.unit)
            table[at, col.SLOT] = 2.0
            table[at, col.OWNER] = 2.0 + collider.serial % 2**23
            table[at, col.COLLIDER_BEFORE :][:7] = pose_row(
                hair.in_units(collider.pose), hair.origin
            )
            table[at, col.COLLIDER_NOW :][:7] = table[at, col.COLLIDER_BEFORE :][:7]
            at += 1
        for _, shape_numbers, follows in hair.shapes:
            table[at, :10] = shape_numbers
            table[at, col.SLOT] = float(follows)
            table[at, col.OWNER] = 1.0
            pose = hair.head_pose if follows else hair.body_pose
            before = (
                numbers[hair.index, col.POSE_BEFORE :][:7]
                if follows
                else pose_row(pose, hair.origin)
            )
            table[at, col.COLLIDER_BEFORE :][:7] = before
            table[at, col.COLLIDER_NOW :][:7] = pose_row(pose, hair.origin)
            at += 1
        hair.body_seen = hair.body_pose
    return table
