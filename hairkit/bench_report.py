"""Tables of benchmark results."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hairkit.bench import Case, Result, difference, run_apart
from hairkit.errors import BackendError, HairkitError


def run_and_print(
    out: Console,
    cases: Sequence[Case],
    backend: str | None,
    *,
    repeats: int,
    progress: Callable[[str, int, int], None],
) -> list[Result]:
    """Run cases on one backend, or on all that work, and print their table.

    Raises:
        BackendError: The backend is unknown, or no case could be run.
    """
    from hairkit.backend.probe import check_backend_name, probe_backends

    failures: list[str] = []
    if backend is not None and backend.strip().lower() == "all":
        progress("try backends", 0, 0)
        probes = probe_backends()
        wanted: list[str | None] = [probe.name for probe in probes if probe.works]
        failures += [f"{probe.name}: {probe.reason}" for probe in probes if not probe.works]
    else:
        wanted = [check_backend_name(backend) if backend is not None else None]

    results: list[Result] = []
    table = _table()
    apart: list[str] = []
    total = len(cases) * len(wanted)
    done = 0
    for case in cases:
        motions: dict[str, np.ndarray] = {}
        for name in wanted:
            progress(f"time {case.name}", done, total)
            try:
                result, points = run_apart(case.name, name, repeats=repeats)
            except HairkitError as error:
                if len(wanted) == 1:
                    raise
                failures.append(str(error))
                continue
            finally:
                done += 1
                progress(f"time {case.name}", done, total)
            results.append(result)
            motions[result.backend] = points
            table.add_row(*_row(case, result))
        apart += _apart(case, motions)
    if not results:
        raise BackendError("no case could be run: " + "; ".join(failures))
    out.print(table)
    for device in dict.fromkeys(f"{result.backend}: {result.device}" for result in results):
        out.print(device, style="dim")
    out.print(results[0].versions, style="dim")
    for line in apart:
        out.print(line)
    for failure in failures:
        out.print(f"not run: {failure}", style="yellow")
    return results


def print_comparison(
    out: Console,
    before: Mapping[tuple[str, str], Mapping[str, Any]],
    after: Mapping[tuple[str, str], Mapping[str, Any]],
) -> None:
    """Print two files of results side by side.

    Raises:
        HairkitError: They have no case in common.
    """
    common = [key for key in before if key in after]
    if not common:
        raise HairkitError("the two files have no case and backend in common, expected one or more")
    table = Table(box=None, pad_edge=False)
    for column in ("case", "backend"):
        table.add_column(column)
    for column in ("ms A", "ms B", "B / A", "stretch A", "stretch B"):
        table.add_column(column, justify="right")
    for key in common:
        old, new = before[key], after[key]
        table.add_row(
            *key,
            f"{old['ms_per_step']:.3f}",
            f"{new['ms_per_step']:.3f}",
            f"{new['ms_per_step'] / old['ms_per_step']:.2f}" if old["ms_per_step"] > 0 else "",
            f"{100 * old['max_stretch']:.2f} %",
            f"{100 * new['max_stretch']:.2f} %",
        )
    out.print(table)
    for key in [key for key in (*before, *after) if key not in common]:
        out.print(f"only in one file: {key[0]} on {key[1]}", style="dim")


def _table() -> Table:
    table = Table(box=None, pad_edge=False, caption_justify="left")
    for column in ("case", "backend"):
        table.add_column(column, no_wrap=True)
    for column in (
        "points",
        "threads",
        "ms a step",
        "spread",
        "seed ms",
        "ns a point",
        "stretch",
        "deepest",
        "compile",
    ):
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _row(case: Case, result: Result) -> list[str]:
    return [
        result.case,
        result.backend,
        f"{result.points:,}",
        str(result.threads) if result.backend == "cpu" else "",
        f"{result.ms_per_step:.3f}",
        f"{result.ms_spread:.3f}",
        f"{case.seed_ms:g}" if case.seed_ms is not None else "",
        f"{result.ns_per_point_step:.1f}",
        f"{100 * result.max_stretch:.2f} %",
        f"{result.max_penetration_mm:.3f} mm",
        f"{result.compile_s:.1f} s",
    ]


def _apart(case: Case, motions: Mapping[str, np.ndarray]) -> list[str]:
    """Say how far each backend's hair is from the first one's after the same two seconds."""
    if len(motions) < 2:
        return []
    first, *others = motions
    lines = []
    for other in others:
        middle, largest = difference(motions[first], motions[other], case)
        lines.append(
            f"{case.name}: {other} is {100 * middle:.3f} % of the strand length from {first} "
            f"after 2 s (median; {100 * largest:.2f} % at most)"
        )
    return lines
