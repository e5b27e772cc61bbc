"""Counting simulations: a fit on derivatives beside searches that know only the distance.

All of them look for styles whose points are known, from the same places, and stop at the same
distance. What counts is simulated scenes: a column of derivatives is one more.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from hairkit.bench import device_name, versions
from hairkit.errors import HairkitError

NAME = "fit"

THREE = {"hold": (0.05, 0.85), "droop": (0.05, 0.3), "shrinkage": (0.05, 0.7)}
EIGHT = THREE | {
    "length": (0.18, 0.32),
    "curl": (4.0, 12.0),
    "curl_radius": (0.003, 0.012),
    "lift": (0.2, 0.8),
    "bend": (0.0, 1.0),
}
"""What is looked for, and where the styles and the starts are drawn from."""

CLOSE = 1e-4
"""A search is done where the root mean square distance is this share of the hair's length."""

METHODS = ("gradient", "Nelder-Mead", "CMA-ES")


class _Done(Exception):
    """The search came close enough, or has simulated enough."""


@dataclass(frozen=True, kw_only=True)
class FitCount:
    """What the searches took; its fields are the keys of ``--json``."""

    case: str
    backend: str
    parameters: int
    method: str
    found: int
    """Styles that were found within the limit."""

    targets: int
    """Styles that were looked for."""

    simulations: float
    """Median of simulations; those that were not found count with the limit."""

    most: int
    """Largest number of simulations."""

    seconds: float
    """Median of time, without compiling [s]."""

    device: str
    versions: str


def count_fits(
    backend: str | None, *, targets: int = 5, limit: int = 4000, guides: int = 20
) -> list[FitCount]:
    """Count the simulations that each way of searching takes.

    Args:
        backend: As `World`'s.
        targets: Styles to look for, each from one start.
        limit: Most simulations of a search.
        guides: Strands of the hair.

    Raises:
        HairkitError: The package ``cma`` is not installed.
    """
    import hairkit as hk
    from hairkit.backend import open_session
    from hairkit.fitting import StrandModel

    search_cma = _cma()
    name = open_session(backend).name
    style = hk.load_style("3b").replace(segments=10, length=0.25)
    groom = hk.grow(style, hk.Head.sphere(radius=0.1), guides=guides, seed=0)
    scenes = (hk.drape(0.0, seconds=0.5), hk.drape(0.7, seconds=0.5))
    model = StrandModel(groom, scenes, backend=backend)
    model.derivatives({}, ("hold",))
    rows = []
    for ranges in (THREE, EIGHT):
        searches: dict[str, Callable[..., None]] = {
            METHODS[0]: _gradient,
            METHODS[1]: _nelder_mead,
            METHODS[2]: search_cma,
        }
        for method, search in searches.items():
            counts, took, found = [], [], 0
            for index in range(targets):
                random = np.random.Generator(np.random.PCG64([index, len(ranges)]))
                truth, start = random.random((2, len(ranges)))
                problem = _Problem(model, ranges, truth, limit)
                begun = time.perf_counter()
                try:
                    search(problem, start, random)
                except _Done:
                    pass
                took.append(time.perf_counter() - begun)
                counts.append(min(problem.simulations, limit))
                found += problem.best < problem.close
            rows.append(
                FitCount(
                    case=NAME,
                    backend=name,
                    parameters=len(ranges),
                    method=method,
                    found=found,
                    targets=targets,
                    simulations=statistics.median(counts),
                    most=max(counts),
                    seconds=statistics.median(took),
                    device=device_name(name),
                    versions=versions(),
                )
            )
    return rows


class _Problem:
    """A style to be found, and what has been simulated for it; parameters run from 0 to 1."""

    def __init__(
        self,
        model: Any,
        ranges: dict[str, tuple[float, float]],
        truth: NDArray[np.float64],
        limit: int,
    ) -> None:
        """Simulate what is looked for."""
        self.model, self.names, self.limit = model, tuple(ranges), limit
        self.low, high = np.array(list(ranges.values())).T
        self.span = high - self.low
        self.goal = model.points(self.values(truth))
        self.close = CLOSE * model.groom.style.length
        self.before = model.runs
        self.best = np.inf

    @property
    def simulations(self) -> int:
        """How many there were."""
        return self.model.runs - self.before

    def values(self, x: NDArray[np.float64]) -> dict[str, float]:
        """Return parameters by name."""
        place = self.low + np.clip(x, 0.0, 1.0) * self.span
        return dict(zip(self.names, place.tolist(), strict=True))

    def distance(self, x: NDArray[np.float64]) -> float:
        """Return the root mean square distance [m], and end the search where it is done."""
        off = self.model.points(self.values(np.asarray(x))) - self.goal
        return self.seen(float(np.sqrt((off**2).sum(axis=2).mean())))

    def seen(self, distance: float) -> float:
        """Take note of a distance."""
        self.best = min(self.best, distance)
        if self.best < self.close or self.simulations >= self.limit:
            raise _Done
        return distance


def _starts(start: NDArray[np.float64], random: np.random.Generator) -> Iterator[Any]:
    """Yield the first place to search from, and others for ever."""
    yield start
    while True:
        yield random.random(len(start))


def _gradient(problem: _Problem, start: NDArray[np.float64], random: np.random.Generator) -> None:
    import dataclasses

    import hairkit as hk

    def told(_: int, distance: float) -> None:
        problem.seen(distance)

    groom = problem.model.groom
    begin = dataclasses.replace(groom, style=groom.style.replace(**problem.values(start)))
    hk.fit(
        problem.goal,
        begin,
        parameters=problem.names,
        scenes=problem.model.scenes,
        model=problem.model,
        restarts=1000,
        seed=int(random.integers(2**31)),
        progress=told,
    )


def _nelder_mead(
    problem: _Problem, start: NDArray[np.float64], random: np.random.Generator
) -> None:
    from scipy.optimize import minimize

    size = len(start)
    for place in _starts(start, random):
        # A simplex of a fifth of the ranges; scipy's own would be a twentieth of each value.
        toward = np.where(place < 0.5, 0.2, -0.2)
        simplex = np.concatenate([place[None], place + np.diag(toward)])
        minimize(
            problem.distance,
            place,
            method="Nelder-Mead",
            bounds=[(0.0, 1.0)] * size,
            options={
                "initial_simplex": simplex,
                "adaptive": True,
                "xatol": 1e-6,
                "fatol": 0.01 * problem.close,
                "maxfev": problem.limit,
            },
        )


def _cma() -> Callable[..., None]:
    try:
        import cma
    except ModuleNotFoundError:
        raise HairkitError(
            'case fit: needs the package cma, expected pip install "hairkit[bench]"'
        ) from None

    def search(problem: _Problem, start: NDArray[np.float64], random: np.random.Generator) -> None:
        for place in _starts(start, random):
            # Its default number of trials a generation, and a third of the ranges to begin with.
            options = {
                "bounds": [0.0, 1.0],
                "seed": int(random.integers(1, 2**31)),
                "verbose": -9,
            }
            cma.fmin(problem.distance, place, 0.3, options)

    return search


def print_fits(out: Console, rows: list[FitCount]) -> None:
    """Print what each way of searching took, and the share of it that the gradient takes."""
    table = Table(box=None, pad_edge=False)
    for column in ("parameters", "search"):
        table.add_column(column, no_wrap=True)
    for column in ("found", "simulations", "most", "seconds", "gradient / this"):
        table.add_column(column, justify="right", no_wrap=True)
    ours = {row.parameters: row.simulations for row in rows if row.method == METHODS[0]}
    for row in rows:
        table.add_row(
            str(row.parameters),
            row.method,
            f"{row.found} of {row.targets}",
            f"{row.simulations:.0f}",
            str(row.most),
            f"{row.seconds:.2f}",
            f"{ours[row.parameters] / row.simulations:.2f}",
        )
    out.print(table)
    out.print(f"{rows[0].backend}: {rows[0].device}", style="dim")
    out.print(rows[0].versions, style="dim")
