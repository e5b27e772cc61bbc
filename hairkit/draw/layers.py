"""What a picture shows, pixel by pixel: how far it is and whose hair. NumPy only."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Layers:
    """A picture and, for each of its pixels, the nearest thing that any of its samples shows."""

    image: NDArray[np.uint8] = field(repr=False)
    """The picture, sRGB, shape (height, width, 3), or 4 with straight alpha."""

    depth: NDArray[np.float32] = field(repr=False)
    """Distance along the camera's view [m], infinite where nothing is, shape (height, width)."""

    owner: NDArray[np.int32] = field(repr=False)
    """Row of the hair, or of the hair whose head it is, in ``world.hairs``; -1 where nothing is."""

    guide: NDArray[np.int32] = field(repr=False)
    """Guide that the drawn hair follows, -1 where no hair is, shape (height, width)."""

    hair: NDArray[np.int32] = field(repr=False)
    """Row of the hair in ``Hair.drawn_points``, -1 where no hair is, shape (height, width)."""


def nearest_samples(
    keys: NDArray[np.int32], numbers: NDArray[np.int32], width: int, height: int, samples: int
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return distances [m] and numbers of what each pixel's nearest sample shows, (height, width).

    Args:
        keys: Bits of each sample's inverse distance [1/m], column by column.
        numbers: What each shows, in the same order.
        width: Pixels across.
        height: Pixels down.
        samples: Samples across a pixel.
    """
    shape = (width, samples, height, samples)
    inverse = keys.view(np.float32).reshape(shape).transpose(2, 0, 1, 3)
    inverse = np.ascontiguousarray(inverse).reshape(height, width, samples * samples)
    number = numbers.reshape(shape).transpose(2, 0, 1, 3).reshape(height, width, samples * samples)
    nearest = inverse.argmax(axis=2)[..., None]
    inverse = np.take_along_axis(inverse, nearest, axis=2)[..., 0]
    with np.errstate(divide="ignore"):
        depth = np.where(inverse > 0.0, 1.0 / inverse, np.inf)
    return depth.astype(np.float32), np.take_along_axis(number, nearest, axis=2)[..., 0]


def owners(
    number: NDArray[np.int32], slots: list[Any]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return whose hair or head, which guide and which drawn hair each number is.

    Args:
        number: What is shown: rows of hair points from 0, faces from -1 down, any shape.
        slots: Where each hair of the world lies in the fields.
    """
    owner, guide, hair = (np.full(number.shape, -1, np.int32) for _ in range(3))
    for index, slot in enumerate(slots):
        row = number - slot.point_first
        mine = (number >= 0) & (row >= 0) & (row < slot.row_count)
        drawn = row[mine] // slot.point_count
        row = drawn // slot.kept * slot.full + drawn % slot.kept
        owner[mine], guide[mine] = index, slot.scattered.strand[row, 0]
        hair[mine] = row if slot.lines is None else slot.lines.order[row]
        face = -1 - number - slot.face_first
        owner[(number < 0) & (face >= 0) & (face < slot.face_count)] = index
    return owner, guide, hair
