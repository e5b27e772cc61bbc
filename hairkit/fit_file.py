"""From strands in a file to the style that makes them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from hairkit.errors import FitError
from hairkit.fitting import FitResult, Scene, drape, fit
from hairkit.fitting.picture import save_comparison
from hairkit.groom import Groom, grow
from hairkit.groom.given import rows_of
from hairkit.groom.lines import line_length
from hairkit.head import Head
from hairkit.io.files import written_beside
from hairkit.io.strand_groom import strands_on_head
from hairkit.io.strand_set import StrandSet
from hairkit.io.strands import load_strands, one_frame
from hairkit.style import Style

MOST_STRANDS = 200
"""Strands of a file that are simulated; of more, as many evenly chosen ones."""

LATEST = 4
"""Frames of a motion that are compared, evenly chosen, the last one among them."""


def fit_file(
    target: str,
    style: Style,
    head: Head,
    names: tuple[str, ...],
    *,
    own_head: bool,
    axes: dict[str, str | None],
    backend: str | None,
    seed: int,
    picture: Path | None,
    progress: Callable[[], AbstractContextManager[Any]],
) -> FitResult:
    """Fit a style to a file of strands and, where asked for, picture both.

    Strands that hairkit simulated are grown again at the same roots and taken through the same
    motion. Others are taken as hair that hangs at rest, their last frame: they are put on the head
    as `groom_from_strands` does it, and each simulated strand aims at the nearest one.

    Args:
        target: The file.
        style: Where the fit begins.
        head: What other strands grow on.
        names: Parameters to fit.
        own_head: Whether ``head`` was asked for, and takes the place of the file's own.
        axes: Unit and upward axis of the file, as for `load_strands`.
        backend: As `World`'s.
        seed: Of the starts.
        picture: Where to write the picture, .png.
        progress: Makes something that shows progress.

    Raises:
        FitError: The strands cannot be compared.
        GroomError: They do not lie on the head.
        FileError: The file cannot be read.
    """
    strands = load_strands(target, **axes)
    if strands.groom is not None:
        groom, scene, goal = _same(strands, style, head if own_head else None, target)
        match, counts = "points", None
    else:
        groom, scene, goal, counts = _other(strands, style, head, target)
        match = "strands"
    with progress() as show:

        def told(simulations: int, distance: float) -> None:
            show(f"fit, {1e3 * distance:.2f} mm off", simulations, 0)

        result = fit(
            goal,
            groom,
            parameters=names,
            scenes=[scene],
            counts=counts,
            match=match,
            backend=backend,
            seed=seed,
            progress=told,
        )
    if picture is not None:
        sizes = groom.counts if counts is None else counts
        with written_beside(picture) as beside:
            save_comparison(
                beside,
                (goal[-1], sizes),
                (result.start_points[-1], groom.counts),
                (result.points[-1], groom.counts),
            )
    return result


def _same(
    strands: StrandSet, style: Style, head: Head | None, source: str
) -> tuple[Groom, Scene, np.ndarray]:
    """Return the groom of a file of ours in another style, its motion, and the frames compared."""
    grown = strands.regrow(head=head, source=source)
    groom = grow(
        style.replace(
            length=grown.style.length, segments=grown.style.segments, ties=grown.style.ties
        ),
        grown.head,
        roots=grown.roots,
        normals=grown.normals,
        directions=grown.directions,
        lengths=grown.lengths,
        seed=grown.seed,
        tied_to=grown.tied_to,
    )
    if not np.array_equal(groom.counts, strands.counts):
        raise FitError(f"{source}: its style has other points, expected the same cut")
    if strands.head_pose is None or len(strands.times) < 2:
        return groom, drape(), strands.points[-1:].astype(np.float64)
    frames = len(strands.times) - 1
    rate = frames / float(strands.times[-1] - strands.times[0])
    shown = np.unique(np.linspace(0, frames - 1, min(LATEST, frames)).round().astype(int))
    scene = Scene(poses=strands.head_pose, rate=rate, shown=shown.tolist())
    return groom, scene, strands.points[1 + shown].astype(np.float64)


def _other(
    strands: StrandSet, style: Style, head: Head, source: str
) -> tuple[Groom, Scene, np.ndarray, np.ndarray]:
    """Return a groom with a file's roots and lengths, a drape, and the strands compared."""
    points, counts, _ = strands_on_head(one_frame(strands, -1), head, source=source)
    chosen = np.linspace(0, len(counts) - 1, min(MOST_STRANDS, len(counts))).astype(int)
    points, counts = rows_of(points, counts, np.unique(chosen))
    lines = np.split(points, np.cumsum(counts)[:-1])
    lengths = np.array([line_length(line) for line in lines])
    roots = np.array([line[0] for line in lines])
    longest = float(lengths.max())
    begin = style.replace(length=min(longest, 3.0))
    first = np.array([line[1] - line[0] for line in lines])
    groom = grow(
        begin, head, roots=roots, directions=first, lengths=np.clip(lengths / longest, 0.05, 1.0)
    )
    return groom, drape(), points[None], counts.astype(np.int32)
