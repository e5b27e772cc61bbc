"""Benchmarks: what a 60 Hz step costs through the public `World`, case by case.

Cases are data. Each runs in a process of its own, so that no case finds another's kernels compiled
and a backend that crashes takes only its own row with it. Compile time stands apart, warm-up is not
counted, and each figure is the median of repeats with their spread.
"""

import importlib.metadata
import json
import math
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hairkit import poses
from hairkit.errors import BackendError, FileError, HairkitError, nearest
from hairkit.io.files import check_input, written_beside

RATE = 60.0
"""Steps a second of every case [1/s]."""

WARM_UP = 120
"""Frames before anything is timed: two seconds, after which the hair swings as it goes on to."""

PERIOD = 1200
"""Frames after which every head's motion begins again."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One scene that is timed."""

    name: str
    """What ``--case`` calls it."""

    summary: str
    """What it is, for the table."""

    style: str = "long"
    """Name of the style."""

    length: float | None = None
    """Strand length [m] where it differs from the style's."""

    heads: int = 1
    """Heads in the one world."""

    guides: int = 400
    """Guides on each head."""

    points: int = 18
    """Points of each guide, root and the next one included."""

    head: Literal["sphere", "mesh"] = "sphere"
    """A sphere of 0.1 m, as in the seed's cases, or the head that comes with hairkit."""

    motion: Literal["turn_and_nod", "shake"] = "turn_and_nod"
    """How the heads move; see `head_pose`."""

    threads: int | None = 1
    """CPU threads; None for all cores."""

    max_points: int = 2**17
    """Points that the world has room for."""

    seed_ms: float | None = None
    """What the seed's C++ engine took for a step of the same case [ms], on its own machine."""

    asked: bool = False
    """Whether it runs only when it is named."""


CASES = (
    Case(
        name="straight_100",
        summary="one head, 100 straight strands",
        style="straight",
        guides=100,
        points=14,
        seed_ms=0.12,
    ),
    Case(name="long_400", summary="one head, 400 long strands", seed_ms=0.71),
    Case(
        name="curly_400",
        summary="one head, 400 curly strands",
        style="curly",
        points=26,
        seed_ms=1.42,
    ),
    Case(
        name="heads_8",
        summary="eight heads of 200 long strands",
        heads=8,
        guides=200,
        seed_ms=3.2,
    ),
    Case(
        name="strands_1600",
        summary="1600 strands of 0.55 m in a violent shake",
        length=0.55,
        guides=1600,
        motion="shake",
        # Native Jolt on one core of the design's machine: 104 to 131 ns a point a step.
        seed_ms=3.4,
    ),
    Case(
        name="curls_3b",
        summary="one head, 200 strands of 3B ringlets",
        style="3b",
        guides=200,
        points=16,
        seed_ms=0.41,
    ),
    Case(
        name="coils_4c",
        summary="one head, 200 strands of 4C coils",
        style="4c",
        guides=200,
        points=10,
        seed_ms=0.22,
    ),
    Case(
        name="bantu_knots",
        summary="one head, 200 strands in bantu knots",
        style="bantu knots",
        guides=200,
        points=20,
        seed_ms=0.54,
    ),
    Case(
        name="box_braids",
        summary="one head, 160 box braids of 0.5 m",
        style="box braids",
        guides=160,
        points=20,
        seed_ms=0.33,
    ),
    Case(
        name="cornrows",
        summary="one head, ten rows of cornrows",
        style="cornrows",
        guides=10,
        points=26,
        seed_ms=0.03,
    ),
    Case(
        name="heads_4x160",
        summary="four heads of 160 long strands, all cores",
        heads=4,
        guides=160,
        threads=None,
        seed_ms=1.2,
    ),
    Case(
        name="mesh_400",
        summary="400 long strands on a head mesh with shoulders",
        head="mesh",
    ),
    Case(
        name="gpu_100k",
        summary="one head, 100,000 long strands, for a GPU",
        guides=100_000,
        threads=None,
        max_points=2**21,
        asked=True,
    ),
)
"""Every case, in the order of the table."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one case took on one backend; its fields are the keys of ``--json``."""

    case: str
    backend: str
    lanes: int
    guides: int
    points: int
    substeps: int
    ms_per_step: float
    ns_per_point_step: float
    max_stretch: float
    max_penetration_mm: float
    compile_s: float
    ms_spread: float
    repeats: int
    steps: int
    threads: int
    device: str
    versions: str


def case_named(name: str) -> Case:
    """Return a case by its name.

    Raises:
        HairkitError: There is no such case.
    """
    names = [case.name for case in CASES]
    wanted = name.strip().lower().replace("-", "_")
    if wanted not in names:
        raise HairkitError(
            f"case {name!r}: expected one of {', '.join(names)}{nearest(wanted, names)}"
        )
    return CASES[names.index(wanted)]


def head_pose(case: Case, head: int, frame: int) -> np.ndarray:
    """Return where a head of a case is at a frame: head frame to world frame, shape (4, 4).

    ``turn_and_nod``: yaw of 0.9 rad at 0.75 Hz and pitch of 0.5 rad at 1 Hz. ``shake``: yaw of
    1.2 rad at 1.4 Hz and 5 cm from side to side at 1 Hz. Heads stand 0.6 m apart, each at another
    moment of its motion.
    """
    time_s = frame / RATE + 0.37 * head
    if case.motion == "shake":
        yaw = 1.2 * math.sin(2 * math.pi * 1.4 * time_s)
        pitch = 0.0
        side = 0.05 * math.sin(2 * math.pi * time_s)
    else:
        yaw = 0.9 * math.sin(2 * math.pi * 0.75 * time_s)
        pitch = 0.5 * math.sin(2 * math.pi * time_s)
        side = 0.0
    return poses.head_pose(yaw=yaw, pitch=pitch, position=(side + 0.6 * head, 0.0, 0.0))


class Scene:
    """A case in a world: the code that users run, and nothing beside it."""

    def __init__(self, case: Case, *, backend: str | None) -> None:
        """Grow the grooms and put them into a new world."""
        # Only here: the process that prints the table needs no Taichi.
        from hairkit.groom import grow
        from hairkit.head import Head
        from hairkit.paths import assets_dir
        from hairkit.sim.world import World
        from hairkit.style import load_style

        style = load_style(case.style).replace(segments=case.points - 2)
        if case.length is not None:
            style = style.replace(length=case.length)
        if case.head == "mesh":
            self.head = Head.load(assets_dir() / "head.glb")
        else:
            self.head = Head.sphere(radius=0.1)
        self.case = case
        self.frame = 0
        # The same groom on every head: what differs is where each is in its motion.
        guides = case.guides * max(style.row_guides, 1)
        self.groom = grow(style, self.head, guides=guides, seed=0)
        self.world = World(backend=backend, threads=case.threads, max_points=case.max_points)
        self.world.sleep = False
        # Made before anything is timed: where a head goes is the caller's work.
        self._poses = [
            [head_pose(case, head, frame) for frame in range(PERIOD)] for head in range(case.heads)
        ]
        self.hairs = [
            self.world.add_hair(self.groom, pose=head_pose(case, head, 0))
            for head in range(case.heads)
        ]

    def advance(self) -> None:
        """Move heads and wind on by one frame and step the world."""
        self.frame += 1
        time_s = self.frame / RATE
        self.world.wind = (2.0 * math.sin(0.5 * time_s), 0.0, 1.0)
        self.world.gust = 0.5
        for head, hair in enumerate(self.hairs):
            hair.set_head(self._poses[head][self.frame % PERIOD])
        self.world.step(1.0 / RATE)

    def finish(self) -> None:
        """Wait until the device has done all that was asked of it."""
        from hairkit.backend import ti

        ti.sync()

    def stretch_and_depth(self) -> tuple[float, float]:
        """Return the largest strain of a segment and the deepest point in a head [m].

        Roots and the points next to them are left out: they follow the head by definition.
        """
        groom = self.groom
        starts = np.concatenate(([0], np.cumsum(groom.counts)[:-1]))
        place = np.arange(len(groom.points)) - np.repeat(starts, groom.counts)
        free = place >= 2
        rest = np.linalg.norm(np.diff(groom.points, axis=0), axis=1)
        inside_strand = free[1:]
        stretch = depth = 0.0
        for head, hair in enumerate(self.hairs):
            points = hair.points()
            length = np.linalg.norm(np.diff(points, axis=0), axis=1)
            stretch = max(stretch, float((length / rest - 1.0)[inside_strand].max()))
            pose = head_pose(self.case, head, self.frame)
            local = (points[free] - pose[:3, 3]) @ pose[:3, :3]
            distance, _ = self.head.head_shape.signed_distance(local)
            depth = max(depth, -float(distance.min()))
        return stretch, max(depth, 0.0)


def run_case(
    name: str, backend: str | None = None, *, repeats: int = 7, steps: int | None = None
) -> tuple[Result, np.ndarray]:
    """Time one case in this process.

    Args:
        name: Name of the case.
        backend: Backend to run on; by default what `World` chooses.
        repeats: Timed stretches; the figure is their median.
        steps: Steps in each; by default as many as take about half a second.

    Returns:
        The result, and the points of the first head after the warm-up [m], shape (points, 3).
    """
    case = case_named(name)
    scene = Scene(case, backend=backend)
    for _ in range(WARM_UP):
        scene.advance()
    scene.finish()
    after_warm_up = scene.hairs[0].points()

    if steps is None:
        begun = time.perf_counter()
        for _ in range(10):
            scene.advance()
        scene.finish()
        steps = int(min(max(5.0 / max(time.perf_counter() - begun, 1e-6), 10), 600))
    timed = []
    for _ in range(repeats):
        begun = time.perf_counter()
        for _ in range(steps):
            scene.advance()
        scene.finish()
        timed.append((time.perf_counter() - begun) / steps * 1e3)

    # Apart from the timing: reading points back is not part of a step.
    stretch = depth = 0.0
    for _ in range(120 if scene.case.guides < 10_000 else 10):
        scene.advance()
        now = scene.stretch_and_depth()
        stretch, depth = max(stretch, now[0]), max(depth, now[1])

    points = len(scene.groom.points) * case.heads
    middle = statistics.median(timed)
    session = scene.world.session
    result = Result(
        case=case.name,
        backend=session.name,
        lanes=session.lanes,
        guides=case.guides * case.heads,
        points=points,
        substeps=round(scene.hairs[0].subticks / RATE / scene.world.clock),
        ms_per_step=middle,
        ns_per_point_step=middle * 1e6 / points,
        max_stretch=stretch,
        max_penetration_mm=depth * 1e3,
        compile_s=scene.world.stats().compile_s,
        ms_spread=max(timed) - min(timed),
        repeats=repeats,
        steps=steps,
        threads=session.threads,
        device=device_name(session.name),
        versions=versions(),
    )
    scene.world.close()
    return result, after_warm_up


def run_apart(
    name: str, backend: str | None, *, repeats: int = 7, steps: int | None = None
) -> tuple[Result, np.ndarray]:
    """Time one case in a process of its own; see `run_case`.

    Raises:
        BackendError: The process ended before it had a result.
    """
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=spawn) as pool:
        try:
            return pool.submit(run_case, name, backend, repeats=repeats, steps=steps).result()
        except BrokenProcessPool as error:
            raise BackendError(
                f"case {name} on {backend or 'the default backend'}: its process crashed, "
                "expected a result"
            ) from error


def device_name(backend: str) -> str:
    """Return the name of the device behind a backend."""
    from hairkit.backend.probe import require_backend

    return require_backend(backend).device


def versions() -> str:
    """Return the versions that a figure depends on."""
    names = ("hairkit", "taichi", "numpy")
    known = []
    for name in names:
        try:
            known.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            known.append(f"{name} (not installed)")
    return ", ".join([*known, f"Python {sys.version.split()[0]}"])


def difference(first: np.ndarray, second: np.ndarray, case: Case) -> tuple[float, float]:
    """Return the median and largest distance of points, as shares of the strand length."""
    from hairkit.style import load_style

    length = case.length or load_style(case.style).length
    apart = np.linalg.norm(first - second, axis=1) / length
    return float(np.median(apart)), float(apart.max())


def save_results(results: Sequence[Result], path: str | os.PathLike[str]) -> None:
    """Write results as a JSON list of objects."""
    save_rows([asdict(result) for result in results], path)


def save_rows(rows: Sequence[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    """Write plain objects as a JSON list."""
    text = json.dumps(rows, indent=2)
    with written_beside(path) as beside:
        beside.write_text(text + "\n", encoding="utf-8")


def load_results(path: str | os.PathLike[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """Read results back, by case and backend.

    Raises:
        FileError: There is no such file, or it is no list of results.
    """
    source = Path(check_input(path, "a file that hairkit bench --json wrote"))
    try:
        rows = json.loads(source.read_text(encoding="utf-8"))
        found = {(str(row["case"]), str(row["backend"])): row for row in rows}
        for row in found.values():
            for key in ("ms_per_step", "ns_per_point_step", "max_stretch"):
                row[key] = float(row[key])
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(
            f"{source}: {type(error).__name__} {error}, "
            "expected a list as hairkit bench --json writes"
        ) from error
    return found
