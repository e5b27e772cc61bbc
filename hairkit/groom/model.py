"""Groom: a head's roots, rest pose and style, ready to be simulated."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hairkit.head import Head
from hairkit.style import Style


@dataclass(frozen=True, eq=False, kw_only=True)
class DrawnHairs:
    """Drawn hairs with lines of their own, which follow guides and at rest lie where they were.

    Positions are in the head's frame. Whoever moves them adds to a hair what its guides have moved
    since the rest pose, so that a guide at rest leaves it exactly in place.
    """

    points: NDArray[np.float32] = field(repr=False)
    """Rest pose [m], root to tip, all with as many points, shape (hairs, points, 3)."""

    shares: NDArray[np.float32] = field(repr=False)
    """How far along its hair each point is, root 0 to tip 1, shape (hairs, points)."""

    lengths: NDArray[np.float64] = field(repr=False)
    """Length of each hair [m], shape (hairs,)."""

    guides: NDArray[np.int32] = field(repr=False)
    """The three guides that each follows, the most important first, shape (hairs, 3)."""

    weights: NDArray[np.float32] = field(repr=False)
    """How much each of them counts, together 1, shape (hairs, 3)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Groom:
    """Guides on a head; make one with ``hairkit.grow`` or ``hairkit.groom_from_strands``.

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

    thickness: NDArray[np.float64] | float = field(default=1.0, repr=False)
    """Collision radius of each point as a share of the style's, shape (sum of counts,) or one for
    all: less where hair that was given lies nearer to the skin."""

    given: bool = False
    """Whether the rest pose came from strands; such a groom cannot be grown again."""

    hairs: DrawnHairs | None = field(default=None, repr=False)
    """Drawn hairs that came with the strands; None for a style's, scattered round the guides."""

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
