"""How the distance to a target changes with a style's keys: for all strands, or root by root."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hairkit.fitting.strand_model import StrandModel
from hairkit.fitting.target import Target


def loss_gradient(
    model: StrandModel,
    target: Target,
    names: Sequence[str],
    values: Mapping[str, float] | None = None,
    *,
    per_root: bool = False,
) -> tuple[float, NDArray[np.float64]]:
    """Return the mean squared distance of points to a target, and its derivatives.

    With ``per_root`` each strand has a value of its own for every key, all the same ones now: a map
    over the scalp. Strands do not act on each other, so that one forward run with every strand's
    own derivative carries the whole map, however many roots it has; running backwards would save
    nothing. The map's sum over the strands is the derivative by the one value of all.

    Args:
        model: Hair, and what happens to it.
        target: What it aims at; pairs are chosen for the points as they are now.
        names: Keys of the style, see `hairkit.fitting.strand_model.PARAMETERS`.
        values: Keys of the style that differ from the model's groom's.
        per_root: Whether derivatives are by each strand's own value.

    Returns:
        The loss [m^2], and its derivatives, shape (keys,), or per root (strands, keys).

    Raises:
        StyleError: A value is out of range.
        FitError: A key cannot be fitted, or hair went bad.
    """
    points, slopes = model.derivatives(values or {}, names)
    pairs = target.pairs(points)
    weights = np.square(pairs.weights)
    total = float(weights.sum())
    off = points.reshape(-1, 3)[pairs.rows] - pairs.goals
    loss = float((weights * np.square(off).sum(axis=1)).sum() / total)
    pulls = (2.0 / total) * weights[:, None] * off
    each = np.einsum("pc,pck->pk", pulls, slopes.reshape(-1, 3, len(names))[pairs.rows])
    if not per_root:
        return loss, each.sum(axis=0)
    strand = np.repeat(np.arange(len(model.counts)), model.counts)[pairs.rows % points.shape[1]]
    found = np.zeros((len(model.counts), len(names)))
    np.add.at(found, strand, each)
    return loss, found
