"""Timing pictures: what each stage of drawing takes, on the public API."""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from hairkit.bench import device_name, versions
from hairkit.errors import BackendError

SIZE = {"width": 1280, "height": 720}
SETTLE = 20
"""Steps before the first picture, so that hair lies as it does in motion."""


@dataclass(frozen=True, kw_only=True)
class DrawCase:
    """One picture that is timed."""

    name: str
    """What the table calls it."""

    style: str
    """Name of the style."""

    length: float
    """Strand length [m]."""

    segments: int
    """Simulated segments of a guide."""

    hairs: int
    """Drawn hairs for each of the 160 guides."""


CASES = (
    DrawCase(name="straight 160 x 128 x 33", style="straight", length=0.3, segments=15, hairs=128),
    # As long as 97 points make twelve turns of 4C hair.
    DrawCase(name="4c 160 x 40 x 97", style="4c", length=0.0486, segments=8, hairs=40),
)


@dataclass(frozen=True, kw_only=True)
class DrawResult:
    """What one picture took; its fields are the keys of ``--json``."""

    case: str
    backend: str
    hairs: int
    points: int
    ms: float
    ms_spread: float
    stages: dict[str, float]
    lines_ms: float | None
    """What GGUI's own lines take on the same hairs: expanded before, one flat colour; None where
    no window can open."""

    repeats: int
    threads: int
    device: str
    versions: str


def time_pictures(
    backend: str | None,
    *,
    repeats: int = 7,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> list[DrawResult]:
    """Draw every case at 1280 x 720, two samples across a pixel, all its hairs, on all cores.

    Args:
        backend: As `World`'s.
        repeats: Pictures that are timed, after one that compiles.
        progress: Told how far it is.
    """
    from hairkit.draw.camera import Camera
    from hairkit.draw.layout import points_per_hair
    from hairkit.groom import grow
    from hairkit.head import Head
    from hairkit.paths import assets_dir
    from hairkit.sim.world import World
    from hairkit.style import load_style

    head = Head.load(assets_dir() / "head.glb")
    world = World(backend)
    lines = _can_open_window()
    options: dict[str, Any] = {**SIZE, "thin": False}
    results = []
    for number, case in enumerate(CASES):
        progress("draw", number, len(CASES))
        style = load_style(case.style).replace(
            length=case.length, segments=case.segments, hairs_per_guide=case.hairs
        )
        hair = world.add_hair(grow(style, head, guides=160))
        for _ in range(SETTLE):
            world.step(1.0 / 60.0)
        camera = Camera.front(head, yaw=2.4, pitch=0.15)
        world.render(camera, **options)
        timed, stages = [], []
        for _ in range(repeats):
            begun = time.perf_counter()
            world.render(camera, **options)
            timed.append(1e3 * (time.perf_counter() - begun))
            stages.append(world.drawing().stages(camera, **options))
        points = world.drawing().hair_points(hair) if lines else None
        results.append(
            DrawResult(
                case=case.name,
                backend=world.session.name,
                hairs=world.drawing().drawn_hairs(),
                points=points_per_hair(style),
                ms=statistics.median(timed),
                ms_spread=max(timed) - min(timed),
                stages={
                    name: statistics.median(each[name] for each in stages) for name in stages[0]
                },
                lines_ms=None if points is None else _time_lines(points, camera, repeats),
                repeats=repeats,
                threads=world.session.threads,
                device=device_name(world.session.name),
                versions=versions(),
            )
        )
        world.remove(hair)
    world.close()
    return results


def _can_open_window() -> bool:
    """Return whether GGUI can draw here, if only into a hidden window."""
    from hairkit.backend.probe import require_window

    try:
        require_window(hidden=True)
    except BackendError:
        return False
    return True


def _time_lines(points: NDArray[np.float64], camera: Any, repeats: int) -> float:
    """Return what GGUI takes to draw hairs as lines, the copy to the host included [ms]."""
    from hairkit.view.lines import LineScene

    scene = LineScene(points, camera, **SIZE)
    timed = []
    try:
        scene.image()
        for _ in range(repeats):
            begun = time.perf_counter()
            scene.image()
            timed.append(1e3 * (time.perf_counter() - begun))
    finally:
        scene.close()
    return statistics.median(timed)


def print_pictures(out: Console, results: list[DrawResult]) -> None:
    """Print what pictures took, stage by stage."""
    table = Table(box=None, pad_edge=False)
    for column in ("picture of 1280 x 720", "backend"):
        table.add_column(column, no_wrap=True)
    stages = list(results[0].stages)
    for column in ("hairs", "points", "ms", "spread", *stages, "GGUI lines"):
        table.add_column(column, justify="right", no_wrap=True)
    for result in results:
        table.add_row(
            result.case,
            result.backend,
            f"{result.hairs:,}",
            str(result.points),
            f"{result.ms:.1f}",
            f"{result.ms_spread:.1f}",
            *(f"{result.stages[name]:.2f}" for name in stages),
            "no window" if result.lines_ms is None else f"{result.lines_ms:.1f}",
        )
    out.print(table)
    out.print(
        f"{results[0].backend}: {results[0].device}, {results[0].threads} threads", style="dim"
    )
    out.print(results[0].versions, style="dim")


def as_rows(results: list[DrawResult]) -> list[dict[str, Any]]:
    """Return results as plain objects, what ``--json`` writes."""
    return [asdict(result) for result in results]
