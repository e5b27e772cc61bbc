"""Groom: a head's roots, rest pose and style, ready to be simulated."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hairkit.head import Head
from hairkit.style import Style


@dataclass(frozen=True, eq=False, kw_only=True)
class Groom:
    """Guides on a head; make one with ``hairkit.grow``.

    Positions are in the head's frame. Points 0 and 1 of a strand follow the head rigidly, and so
    does what is laid over the scalp to a tie.
    """

    style: Style
    """What the hair is like."""

    head: Head
    """What it grows on."""

    roots: NDArray[np.float64] = field(repr=False)
    """Where each guide grows [m], shape (s, 3)."""

    normals: NDArray[np.float64] = field(repr=False)
    """The scalp's unit normal at each root, shape (s, 3)."""

    directions: NDArray[np.float64] = field(repr=False)
    """Unit direction in which each guide leaves the scalp, shape (s, 3)."""

    lengths: NDArray[np.float64] = field(repr=False)
    """Length of each guide as a fraction of ``style.length``, shape (s,)."""

    counts: NDArray[np.int32] = field(repr=False)
    """Points of each guide, shape (s,); a shorter guide has fewer, so that segments stay alike."""

    points: NDArray[np.float64] = field(repr=False)
    """Rest pose [m], strand by strand from root to tip, shape (sum of counts, 3)."""

    neighbours: NDArray[np.int32] = field(repr=False)
    """The three nearest other guides, nearest first, shape (s, 3); repeated in tiny grooms."""

    spacing: float
    """Typical distance from a guide to its neighbours on the scalp [m]."""

    seed: int = 0
    """What the roots were drawn with."""

    tied_to: NDArray[np.int32] = field(repr=False)
    """Row of each guide's tie in ``style.ties``, -1 for hair that is not gathered, shape (s,)."""

    laid: NDArray[np.int32] = field(repr=False)
    """How many points of each guide follow the head rigidly, 2 where it is not gathered, shape
    (s,)."""

    rest_bends: NDArray[np.float64] | None = field(default=None, repr=False)
    """What bending pulls each point's neighbours towards: their sum less twice the point [m], in
    the head's frame, as the frame carried along ``points`` has it, shape (sum of counts, 3). None
    is the bends of ``points``."""

    rest_lengths: NDArray[np.float64] | None = field(default=None, repr=False)
    """Length of the segment from each point to the next where nothing pulls it [m], shape (sum of
    counts,). None is the lengths of ``points``."""

    stiffening: NDArray[np.float64] | None = field(default=None, repr=False)
    """What bending stiffness is multiplied by at each point, shape (sum of counts,). None is 1."""

    sagging: NDArray[np.int32] | None = field(default=None, repr=False)
    """Strands that ``hairkit.sag_free`` found no start for, which sag as before, shape (r,)."""

    @property
    def starts(self) -> NDArray[np.int64]:
        """Row of each guide's root in ``points``, shape (s,)."""
        return np.concatenate([[0], np.cumsum(self.counts[:-1], dtype=np.int64)])

    @property
    def segments(self) -> NDArray[np.float64]:
        """Rest length of each guide's segments where nothing pulls them [m], shape (s,)."""
        return self.lengths * self.style.length / (self.counts - 1)

    def strands(self) -> list[NDArray[np.float64]]:
        """Return the points of each guide [m], root to tip, each of shape (count, 3)."""
        return np.split(self.points, self.starts[1:])
