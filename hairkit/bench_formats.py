"""Timing strand files: writing and reading each format, beside plainly reading the same bytes."""

import contextlib
import statistics
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hairkit.bench import versions
from hairkit.errors import FileError, FileWarning
from hairkit.io.strand_set import StrandSet
from hairkit.io.strands import WRITTEN, load_strands, save_strands

NAME = "formats"
STRANDS, POINTS = 100_000, 64

_LONG_MS = 30_000.0
"""A format that has taken this long is not timed again: text takes its time."""


@dataclass(frozen=True, kw_only=True)
class FormatResult:
    """What one format took; its fields are the keys of ``--json``."""

    case: str
    format: str
    strands: int
    points: int
    file_mb: float
    write_ms: float
    read_ms: float
    bytes_ms: float
    """Reading the file into memory as it is."""

    write_peak_mb: float | None
    """Memory that writing took beside the strands; None where the system does not tell."""

    read_peak_mb: float | None
    """Memory that reading took, the strands themselves and a reader's own process included."""

    versions: str


def strands_to_time(strands: int, points: int) -> StrandSet:
    """Return hair that hangs and wavers, the same each time."""
    rng = np.random.default_rng(0)
    steps = rng.normal(0.0, 0.0005, (strands, points, 3)).astype(np.float32)
    steps[:, :, 1] -= 0.3 / points
    steps[:, 0] = rng.normal(0.0, 0.1, (strands, 3))
    np.cumsum(steps, axis=1, out=steps)
    return StrandSet(points=steps.reshape(1, -1, 3), counts=np.full(strands, points, np.int32))


def time_formats(
    *, strands: int = STRANDS, points: int = POINTS, repeats: int = 7
) -> tuple[list[FormatResult], list[str]]:
    """Write and read strands in every format that is written.

    Args:
        strands: How many.
        points: Of each.
        repeats: How often; the figures are medians.

    Returns:
        The results, and why a format has none.
    """
    given = strands_to_time(strands, points)
    results, failures = [], []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", FileWarning)
        for ending in WRITTEN:
            path = Path(folder) / f"hair{ending}"
            try:
                results.append(_time_format(given, path, repeats))
            except FileError as error:
                failures.append(str(error))
            path.unlink(missing_ok=True)
    return results, failures


def _time_format(given: StrandSet, path: Path, repeats: int) -> FormatResult:
    write_peak = peak_mb(lambda: save_strands(given, path))
    read_peak = peak_mb(lambda: load_strands(path))
    written, read, plain = [], [], []
    for _ in range(repeats):
        # In turn, so that all three see the same state of the machine.
        written.append(_ms(lambda: save_strands(given, path)))
        plain.append(_ms(path.read_bytes))
        read.append(_ms(lambda: load_strands(path)))
        if sum(written) + sum(read) > _LONG_MS:
            break
    return FormatResult(
        case=NAME,
        format=path.suffix,
        strands=len(given.counts),
        points=given.points.shape[1],
        file_mb=path.stat().st_size / 1e6,
        write_ms=statistics.median(written),
        read_ms=statistics.median(read),
        bytes_ms=statistics.median(plain),
        write_peak_mb=write_peak,
        read_peak_mb=read_peak,
        versions=versions(),
    )


def _ms(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - begun)


def peak_mb(work: Callable[[], Any]) -> float | None:
    """Return by how much this process grew at most while it worked [MB]; None if nothing tells.

    The most that a process of its own took comes on top.
    """
    own = Path("/proc/self")
    try:
        # Linux forgets the highest mark when it is told so.
        (own / "clear_refs").write_text("5")
        before = _status_mb(own, "VmRSS")
    except OSError:
        work()
        return None
    done, children = threading.Event(), [0.0]

    def watch() -> None:
        while not done.wait(0.01):
            for task in (own / "task").iterdir():
                # Whatever it is may be gone by now, and leave nothing to read.
                with contextlib.suppress(OSError, StopIteration):
                    for child in (task / "children").read_text().split():
                        children.append(_status_mb(Path("/proc") / child, "VmHWM"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return max(_status_mb(own, "VmHWM") - before, 0.0) + max(children)


def _status_mb(process: Path, key: str) -> float:
    lines = (process / "status").read_text().splitlines()
    return next(float(line.split()[1]) / 1e3 for line in lines if line.startswith(f"{key}:"))


def print_formats(out: Console, results: list[FormatResult], failures: list[str]) -> None:
    """Print what each format took, and which were not run."""
    table = Table(box=None, pad_edge=False)
    table.add_column("format", no_wrap=True)
    columns = ("MB", "write ms", "peak MB", "read ms", "peak MB", "bytes ms", "read / bytes")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for row in results:
        table.add_row(
            row.format,
            f"{row.file_mb:.1f}",
            f"{row.write_ms:.0f}",
            "" if row.write_peak_mb is None else f"{row.write_peak_mb:.0f}",
            f"{row.read_ms:.0f}",
            "" if row.read_peak_mb is None else f"{row.read_peak_mb:.0f}",
            f"{row.bytes_ms:.0f}",
            f"{row.read_ms / row.bytes_ms:.2f}",
        )
    out.print(table)
    if results:
        out.print(f"{results[0].strands:,} strands, {results[0].points:,} points", style="dim")
        out.print(results[0].versions, style="dim")
    for failure in failures:
        out.print(f"not run: {failure}", style="yellow", markup=False)
