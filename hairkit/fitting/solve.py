"""Fit a style to a shape: least squares on the Jacobian that the solver carries along."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares

from hairkit.errors import FitError
from hairkit.fitting.scene import Scene, drape
from hairkit.fitting.strand_model import PARAMETERS, StrandModel, parameter_range
from hairkit.fitting.target import (
    CloudTarget,
    Pairs,
    PointTarget,
    StrandTarget,
    SurfaceTarget,
    Target,
    unit_hint,
)
from hairkit.groom import Groom
from hairkit.style import Style

CONVERGED = 1e-4
"""A fit whose residual is below this share of the hair's length is taken without a restart."""

NOISE_FLOOR = 1e-5
"""Least error of a target's points that a covariance goes by [m]."""

COARSE, FINE = 1e-2, 1e-9
"""Least share by which an evaluation has to lower the squared distance for a start to go on, and
for the last search from the best place of all starts."""

SCREENED = 3
"""Places that are tried, for each parameter, before another start begins at the best of them."""

UNKNOWN = 0.25
"""A parameter whose standard deviation is more than this share of its range is undetermined."""

Progress = Callable[[int, float], None]
"""Told the number of simulations so far and the best root mean square distance [m]."""


@dataclass(frozen=True, kw_only=True)
class FitResult:
    """A fitted style and how well the target says what it is."""

    style: Style
    """The groom's style with the fitted values."""

    values: dict[str, float]
    """The fitted values."""

    deviations: dict[str, float]
    """Standard deviation of each, of the covariance (J^T J)^-1 at the optimum; infinite where the
    target says nothing."""

    correlation: NDArray[np.float64] = field(repr=False)
    """How the errors of the parameters go together, shape (p, p)."""

    undetermined: tuple[str, ...]
    """Parameters that the target could not tell."""

    distance: float
    """Root mean square distance of points to where they should be [m]."""

    start_distance: float
    """The same for the style that the fit began with [m]."""

    converged: bool
    """Whether the solver came to rest within its number of steps and was not stopped."""

    history: tuple[float, ...] = field(repr=False)
    """Root mean square distance at each evaluation of all starts [m]."""

    simulations: int
    """How many times the scenes were simulated; a column of the Jacobian counts as one."""

    starts: int
    """How many starts were taken."""

    points: NDArray[np.float64] = field(repr=False)
    """The fitted points [m], shape (frames, points, 3)."""

    start_points: NDArray[np.float64] = field(repr=False)
    """Those that the fit began with [m], shape (frames, points, 3)."""

    def statement(self) -> str:
        """Return in plain words how it went, one line a parameter."""
        lines = [
            f"distance {1e3 * self.start_distance:.2f} mm before, {1e3 * self.distance:.2f} mm "
            f"after, {self.simulations} simulations, "
            f"{'converged' if self.converged else 'not converged'}"
        ]
        for name, value in self.values.items():
            known = (
                "not determined by this target"
                if name in self.undetermined
                else f"± {self.deviations[name]:.2g}"
            )
            lines.append(f"{name} = {value:.5g} {known}")
        return "\n".join(lines)


class _Stopped(Exception):
    """The caller has had enough."""


def fit(
    target: Any,
    groom: Groom,
    *,
    parameters: Sequence[str] = ("hold", "droop", "shrinkage"),
    scenes: Sequence[Scene] | None = None,
    counts: ArrayLike | None = None,
    match: str = "points",
    directions: ArrayLike | None = None,
    faces: ArrayLike | None = None,
    restarts: int = 4,
    seed: int = 0,
    robust: bool = False,
    most: int = 40,
    stop: Callable[[], bool] = lambda: False,
    progress: Progress = lambda *_: None,
    backend: str | None = None,
    precision: str | None = None,
    model: StrandModel | None = None,
) -> FitResult:
    """Find the style whose hair takes a given shape once it has moved.

    Levenberg-Marquardt in the manner of scipy's ``least_squares``: trust region, bounds kept by
    construction, on derivatives through the hair's dynamics. Where the first start ends far from
    the target, others begin at the best of several places drawn at random within the bounds.

    Args:
        target: Where points should be [m]: for ``match="points"`` the same strands as the groom's,
            shape (frames, points, 3) with the frames of all scenes one after the other; for
            ``"strands"`` any strands, with ``counts``; for ``"cloud"`` any points, with
            ``directions`` where they are known; for ``"surface"`` the vertices of a mesh, with
            ``faces``. Or any `hairkit.fitting.target.Target`.
        groom: Roots, head and the style to begin with.
        parameters: Keys of the style to fit.
        scenes: What happens to the hair before it is compared; by default it settles for a second
            on an upright head. Hold and droop both bend hair under gravity: two tilts of the head
            tell them apart, one often cannot.
        counts: Points of each of the target's strands.
        match: ``points``, ``strands``, ``cloud`` or ``surface``.
        directions: Unit directions of the hair at a cloud's points, of the same shape.
        faces: Triangles of a surface, shape (m, 3).
        restarts: Most starts, the first one included.
        seed: Of the places of the others.
        robust: Whether points far off count less (soft L1).
        most: Most evaluations of one start.
        stop: Asked after each evaluation; where it says so the best so far is returned.
        progress: Told how far it is.
        backend: As `World`'s.
        precision: As `StrandModel`'s.
        model: A model of the same groom and scenes to use again.

    Raises:
        FitError: The target or a parameter is wrong.
    """
    names = tuple(parameters)
    if not names or len(set(names)) != len(names):
        raise FitError(f"parameters {list(names)}: expected one or more, each once")
    bounds = np.array([parameter_range(name) for name in names])
    if restarts < 1 or most < 2:
        raise FitError(f"restarts {restarts}, most {most}: expected at least 1 and 2")
    # Before anything is compiled.
    shown = tuple(scenes) if scenes is not None else (drape(),)
    frames = sum(len(scene.rows) for scene in shown)
    aim = _target(target, groom, counts, match, frames, directions, faces)
    simulated = model or StrandModel(groom, shown, backend=backend, precision=precision)
    search = _Search(simulated, aim, names, bounds, stop, progress)
    random = np.random.Generator(np.random.PCG64([seed, 17]))
    base = groom.style.model_dump()
    low, high = bounds.T
    start = np.clip([float(base[name]) for name in names], low, high)
    good = CONVERGED * groom.style.length
    starts, settled = 0, False
    try:
        while starts < restarts and search.best_distance >= good:
            begin = start if starts == 0 else search.screened(random)
            starts += 1
            search.run(begin, robust=robust, most=most, tolerance=COARSE)
        assert search.best is not None
        settled = search.run(search.best, robust=robust, most=most, tolerance=FINE)
    except _Stopped:
        settled = False
    if search.best is None:
        raise FitError("stopped before anything was simulated")
    return search.result(groom, starts, settled)


def _target(
    target: Any,
    groom: Groom,
    counts: ArrayLike | None,
    match: str,
    frames: int,
    directions: ArrayLike | None,
    faces: ArrayLike | None,
) -> Target:
    if hasattr(target, "pairs"):
        return target
    reach = groom.head.radius + groom.style.length
    try:
        values = np.asarray(target, np.float64)
    except (TypeError, ValueError):
        raise FitError("target: expected an array of points") from None
    hint = unit_hint(np.nan_to_num(values), reach) if values.size else ""
    if hint:
        warnings.warn(hint, stacklevel=3)
    if match == "points":
        return PointTarget(values, (frames, len(groom.points), 3))
    if match == "strands":
        if counts is None:
            raise FitError("counts: expected the points of each of the target's strands")
        return StrandTarget(values, counts, groom.counts, frames)
    if match == "cloud":
        return CloudTarget(values, frames, directions=directions, simulated=groom.counts)
    if match == "surface":
        if faces is None:
            raise FitError("faces: expected the triangles of the target's surface")
        return SurfaceTarget(values, faces, frames)
    raise FitError(f"match {match!r}: expected points, strands, cloud or surface")


class _Search:
    """Evaluations of one fit: the best so far, the history, who may stop it."""

    def __init__(
        self,
        model: StrandModel,
        aim: Target,
        names: tuple[str, ...],
        bounds: NDArray[np.float64],
        stop: Callable[[], bool],
        progress: Progress,
    ) -> None:
        """Begin with nothing evaluated."""
        self.model, self.aim, self.names = model, aim, names
        self.low, self.high = bounds[:, 0], bounds[:, 1]
        # Restarts are drawn from where hair usually is, not from all that a key allows.
        usual = np.array([USUAL.get(name, tuple(b)) for name, b in zip(names, bounds, strict=True)])
        self.scale = np.minimum(usual[:, 1] - usual[:, 0], 1.0)
        self.span = usual[:, 1] - usual[:, 0]
        self.bottom = usual[:, 0]
        self.stop, self.progress = stop, progress
        self.best: NDArray[np.float64] | None = None
        self.best_distance = np.inf
        self.best_points = np.zeros((0, 0, 3))
        self.first_points = np.zeros((0, 0, 3))
        self.history: list[float] = []
        self.before = model.runs
        self._seen: tuple[NDArray[np.float64], Pairs] | None = None

    def values(self, x: NDArray[np.float64]) -> dict[str, float]:
        """Return parameters by name."""
        return dict(zip(self.names, np.clip(x, self.low, self.high).tolist(), strict=True))

    def residual(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what is left between points and their goals [m], flat."""
        points = self.model.points(self.values(x))
        pairs = self.aim.pairs(points)
        self._seen = x.copy(), pairs
        off = (points.reshape(-1, 3)[pairs.rows] - pairs.goals) * pairs.weights[:, None]
        distance = float(np.sqrt((off**2).sum() / (pairs.weights**2).sum()))
        if not self.history:
            self.first_points = points
        self.history.append(distance)
        if distance < self.best_distance:
            self.best, self.best_distance, self.best_points = x.copy(), distance, points
        self.progress(self.model.runs - self.before, self.best_distance)
        if self.stop():
            raise _Stopped
        return off.ravel()

    def jacobian(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the residual's derivatives."""
        points, slopes = self.model.derivatives(self.values(x), self.names)
        if self._seen is not None and np.array_equal(x, self._seen[0]):
            pairs = self._seen[1]
        else:
            pairs = self.aim.pairs(points)
        flat = slopes.reshape(-1, 3, len(self.names))[pairs.rows] * pairs.weights[:, None, None]
        return flat.reshape(-1, len(self.names))

    def screened(self, random: np.random.Generator) -> NDArray[np.float64]:
        """Return the best of several places drawn at random.

        One simulation each is little beside the derivatives of a start in a valley that leads
        nowhere.
        """
        places = random.random((SCREENED * len(self.names), len(self.names)))
        places = self.bottom + places * self.span
        sizes = [float(np.square(self.residual(place)).sum()) for place in places]
        return places[int(np.argmin(sizes))]

    def run(self, begin: NDArray[np.float64], *, robust: bool, most: int, tolerance: float) -> bool:
        """Search from one place; return whether it came to rest."""
        inside = 1e-6 * (self.high - self.low)
        # scipy takes a function here, whatever its annotations say.
        slopes: Any = self.jacobian
        found = least_squares(
            self.residual,
            np.clip(begin, self.low + inside, self.high - inside),
            slopes,
            bounds=(self.low, self.high),
            x_scale=self.scale,
            loss="soft_l1" if robust else "linear",
            f_scale=0.01,
            xtol=1e-7,
            ftol=tolerance,
            gtol=1e-12,
            max_nfev=most,
        )
        return bool(found.status > 0)

    def result(self, groom: Groom, starts: int, settled: bool) -> FitResult:
        """Return what was found, with the covariance there."""
        assert self.best is not None
        jac = self.jacobian(self.best)
        count = len(self.names)
        error = max(
            self.best_distance / np.sqrt(3.0) * np.sqrt(len(jac) / max(len(jac) - count, 1)),
            NOISE_FLOOR,
        )
        information = (jac * self.span).T @ (jac * self.span) / error**2
        values, vectors = np.linalg.eigh(information)
        covariance = (vectors / np.maximum(values, 1e-12)) @ vectors.T
        spread = np.sqrt(np.diag(covariance))
        unknown = tuple(
            name for name, share in zip(self.names, spread, strict=True) if share > UNKNOWN
        )
        found = self.values(self.best)
        deviations = {
            name: float(share * span) if share < 1e5 else float("inf")
            for name, share, span in zip(self.names, spread, self.span, strict=True)
        }
        return FitResult(
            style=groom.style.replace(**found),
            values=found,
            deviations=deviations,
            correlation=covariance / np.outer(spread, spread),
            undetermined=unknown,
            distance=self.best_distance,
            start_distance=self.history[0],
            converged=settled,
            history=tuple(self.history),
            simulations=self.model.runs - self.before,
            starts=starts,
            points=self.best_points,
            start_points=self.first_points,
        )


USUAL = {
    "hold": (0.0, 0.9),
    "droop": (0.03, 0.35),
    "shrinkage": (0.0, 0.75),
    "length": (0.02, 0.8),
    "bend": (0.0, 2.0),
    "damping": (0.0, 10.0),
    "curl": (0.0, 30.0),
    "curl_radius": (0.0, 0.02),
    "density": (0.001, 0.02),
    "stiff_root": (1.0, 6.0),
    "width": (0.0, 0.02),
    "thickness": (0.0, 0.01),
}
"""Where hair usually is: restarts are drawn from there, and steps are measured by it."""

assert set(USUAL) <= set(PARAMETERS)
