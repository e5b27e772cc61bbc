"""A groom out of a strand set: strands find the head that they were made for, root first."""

import os
import warnings
from dataclasses import dataclass

import numpy as np

from hairkit.errors import FileWarning, GroomError
from hairkit.groom import Groom
from hairkit.groom.given import groom_from_lines, rows_of, strand_lengths
from hairkit.head import UNITS, Head
from hairkit.io.strand_set import StrandSet
from hairkit.style import Style, load_style

FARTHEST_ROOT = 0.02
"""A strand whose root lies farther than this from the head's surface is left out [m]."""

SHORTEST = 0.001
"""A strand shorter than this is left out [m]."""

FEW = 1000
"""No more strands than this are guides, all of them: drawn alone they would not cover a head."""

GUIDES = 300
"""Guides of a denser set, where nobody says how many."""

REVERSED = 0.9
"""Where of this share of strands the tips lie nearer to the head, all run from tip to root."""

NATURAL = Style(
    name="natural",
    description="hair as it was given: soft, and drawn back to its own shape a little",
    hold=0.05,
)
"""What strands without a style are like."""

_ENDS = 2000
"""Strands whose ends are looked at to see whether a set fits a head."""


def groom_from_strands(
    strands: StrandSet,
    head: Head,
    *,
    style: Style | str | os.PathLike[str] | None = None,
    guides: int | None = None,
    segments: int | None = None,
    seed: int = 0,
    source: str = "strands",
) -> Groom:
    """Return a groom whose rest pose is a set's first frame.

    Strands with a head's pose are put back into that head. Others lie beside the head's mesh as in
    its file or, if that is where their roots are, in the head's own frame. A strand that begins far
    off and ends at the head is turned round, and so is a whole set whose tips are where roots
    belong. What cannot be used is left out and warned of, by number.

    Args:
        strands: What to take; of a motion the first frame.
        head: What they grow on.
        style: How the hair moves and looks, by its name, file or itself; None or "natural" is
            `NATURAL`. Its
            length becomes the strands', and its ties are dropped.
        guides: How many strands are simulated; the others are drawn and follow them. None: those
            that the set marks as guides, else all of up to `FEW`, else `GUIDES`.
        segments: Simulated segments of a long guide; None is the style's.
        seed: Of what is random, at least 0.
        source: What to call the strands in messages, such as the file's name.

    Raises:
        GroomError: The strands do not lie on this head, or none is left.
        StyleError: There is no such style.
    """
    if guides is not None and guides < 1:
        raise GroomError(f"guides: {guides}, expected at least 1")
    look = NATURAL if style is None or style == NATURAL.name else style
    look = look if isinstance(look, Style) else load_style(look)
    if segments is not None:
        look = look.replace(segments=segments)
    if strands.widths is not None and len(strands.widths):
        width = float(np.median(strands.widths))
        look = look.replace(hair_width=float(np.clip(width, 1e-5, 0.005))) if width > 0.0 else look
    points, counts, used = strands_on_head(strands, head, source=source)
    wanted: int | np.ndarray = guides or (len(counts) if len(counts) <= FEW else GUIDES)
    if guides is None and strands.guides is not None and strands.guides[used].any():
        wanted = strands.guides[used]
    return groom_from_lines(points, counts, head, look, guides=wanted, seed=seed)


def strands_on_head(
    strands: StrandSet, head: Head, *, source: str = "strands"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return strands in the head's frame, root first, and warn of those that are left out.

    Args:
        strands: What to take; of a motion the first frame.
        head: What they grow on, as for `groom_from_strands`.
        source: What to call the strands in messages.

    Returns:
        Points [m], shape (points, 3), strand by strand; how many each has, shape (kept strands,);
        and which of the set's strands these are, shape (strands,), bool.

    Raises:
        GroomError: The strands do not lie on this head, or none is left.
    """
    if len(strands.counts) == 0:
        raise GroomError(f"{source}: holds no strands, expected at least one")
    points = _in_head(strands, head, source)
    counts = strands.counts.astype(np.int64)
    points, used = _upright(points, counts, head, source)
    if not used.any():
        raise GroomError(f"{source}: no strand is left, expected one that grows on {head.name}")
    return *rows_of(points, counts, np.flatnonzero(used)), used


@dataclass(frozen=True)
class _Ends:
    """Where strands begin and end, in the head's frame, and how far from its surface [m]."""

    first: np.ndarray
    last: np.ndarray

    @classmethod
    def of(cls, points: np.ndarray, counts: np.ndarray, head: Head) -> "_Ends":
        """Measure every strand of a set."""
        end = np.cumsum(counts) - 1
        first, _ = head.signed_distance(points[end - counts + 1], body=False)
        last, _ = head.signed_distance(points[end], body=False)
        return cls(np.abs(first), np.abs(last))

    @property
    def typical(self) -> float:
        """How far roots are from the head, whichever end they are [m]."""
        return float(min(np.median(self.first), np.median(self.last)))


def _in_head(strands: StrandSet, head: Head, source: str) -> np.ndarray:
    """Return the first frame in the head's frame [m], shape (points, 3)."""
    world = strands.points[0].astype(np.float64)
    if strands.head_pose is not None:
        pose = strands.head_pose[0]
        frames = [(world - pose[:3, 3]) @ pose[:3, :3]]
    else:
        frames = [head.beside_file(world), world]
    few = np.unique(np.linspace(0, len(strands.counts) - 1, _ENDS).astype(np.int64))
    counts = strands.counts.astype(np.int64)
    sizes = counts[few]
    fits = [_Ends.of(rows_of(place, counts, few)[0], sizes, head).typical for place in frames]
    best = int(np.argmin(fits))
    if fits[best] <= FARTHEST_ROOT:
        return frames[best]
    hint = "expected strands made for this head, in metres and +Y up"
    closest = 0.3 * FARTHEST_ROOT
    for unit, scale in UNITS.items():
        for up, turned in (("y", world), ("z", world[:, [0, 2, 1]] * [1.0, 1.0, -1.0])):
            for place in (head.beside_file(turned * scale), turned * scale):
                ends, _ = rows_of(place, counts, few)
                fit = _Ends.of(ends, sizes, head).typical
                # Shrunk to a dot, anything fits somewhere.
                if fit < closest and np.ptp(ends, axis=0).max() > 0.5 * head.radius:
                    closest, hint = fit, f"they fit in units of {unit} with {up} up"
    raise GroomError(
        f"{source}: half of the roots are {fits[best]:.3g} m or more from {head.name}; {hint}"
    )


def _upright(
    points: np.ndarray, counts: np.ndarray, head: Head, source: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return points with every root first, and which strands can be used, shape (strands,)."""
    ends = _Ends.of(points, counts, head)
    if (ends.last < ends.first - 1e-3).mean() > REVERSED:
        flipped = np.ones(len(counts), bool)
    else:
        flipped = (ends.first > FARTHEST_ROOT) & (ends.last <= FARTHEST_ROOT)
    root = np.where(flipped, ends.last, ends.first)
    if flipped.any():
        _warn(f"{source}: {_named(flipped)} from tip to root, turned round")
        place = np.arange(len(points)) - np.repeat(np.cumsum(counts) - counts, counts)
        last = np.repeat(np.cumsum(counts) - 1, counts)
        row = np.where(np.repeat(flipped, counts), last - place, np.arange(len(points)))
        points = points[row]
    far = root > FARTHEST_ROOT
    if far.any():
        _warn(
            f"{source}: {_named(far)} left out, rooted more than {100 * FARTHEST_ROOT:g} cm from "
            f"{head.name}"
        )
    short = ~far & (strand_lengths(points, counts) < SHORTEST)
    if short.any():
        _warn(f"{source}: {_named(short)} left out, shorter than {1000 * SHORTEST:g} mm")
    return points, ~(far | short)


def _named(strands: np.ndarray) -> str:
    """Return how many strands of how many, and the first few by number."""
    rows = np.flatnonzero(strands)
    if len(rows) == len(strands):
        return f"all {len(rows)} strands"
    more = ", ..." if len(rows) > 5 else ""
    first = ", ".join(str(row) for row in rows[:5])
    return f"{len(rows)} of {len(strands)} strands ({first}{more})"


def _warn(line: str) -> None:
    warnings.warn(line, FileWarning, stacklevel=4)
