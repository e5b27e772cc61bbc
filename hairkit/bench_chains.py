"""Timing bone chains: a thousand of four joints round a nodding ball, beside three-vrm's."""

import json
import shutil
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hairkit.bench import device_name, versions

NAME = "chains_1000"
CHAINS, JOINTS = 1000, 4
RADIUS, LENGTH = 0.1, 0.06
"""Of the ball, and of each bone [m], as in the program that times three-vrm."""
PEER = Path(__file__).resolve().parent.parent / "tests" / "gltf" / "springs_bench.mjs"
"""Lies in a checkout only."""


@dataclass(frozen=True, kw_only=True)
class ChainsResult:
    """What a step of the chains took; its fields are the keys of ``--json``."""

    case: str
    backend: str
    chains: int
    joints: int
    ms_per_step: float
    ms_spread: float
    ms_read: float
    """Reading all joints' rotations on top of a step."""

    peer_ms: float | None
    """What three-vrm took for an update in the same run; None where it is not installed."""

    threads: int
    device: str
    versions: str


def skirt() -> Any:
    """Return a rig of chains that hang round a ball."""
    angle = 2.0 * np.pi * np.arange(CHAINS) / CHAINS
    roots = RADIUS * np.stack([np.cos(angle), np.zeros(CHAINS), np.sin(angle)], axis=1)
    drop = np.arange(JOINTS)[None, :, None] * np.array([0.0, -LENGTH, 0.0])
    joints = (roots[:, None] * 1.1 + drop).reshape(-1, 3)
    rows = np.arange(1, len(joints) + 1).reshape(CHAINS, JOINTS)
    plan = SimpleNamespace(
        positions=np.concatenate([[[0.0, RADIUS, 0.0]], joints]),
        chains=tuple(map(tuple, rows.tolist())),
        strategy="bench",
    )
    return SimpleNamespace(plan=plan, into_scene=np.eye(4))


def time_chains(backend: str | None, *, repeats: int = 7, steps: int = 60) -> ChainsResult:
    """Time a 60 Hz step of a thousand chains, one collider, one thread.

    Args:
        backend: As `World`'s.
        repeats: Timed stretches.
        steps: Steps in each.
    """
    from hairkit import motions
    from hairkit.backend import ti
    from hairkit.shapes import Sphere
    from hairkit.sim.world import World

    world = World(backend, threads=1)
    world.sleep = False
    chains = world.add_chains(skirt())
    world.add_collider(Sphere(center=(0.0, 0.0, 0.0), radius=RADIUS))
    poses = list(motions.nod(seconds=steps / 60, rate=60))
    stepped, read = [], []
    for turn in range(repeats + 1):
        begun = time.perf_counter()
        for pose in poses:
            chains.set_pose(pose)
            world.step(1 / 60)
        ti.sync()
        middle = time.perf_counter()
        for pose in poses:
            chains.set_pose(pose)
            world.step(1 / 60)
            chains.joint_turns()
        if turn:
            stepped.append(1e3 * (middle - begun) / steps)
            read.append(1e3 * (time.perf_counter() - middle) / steps)
    result = ChainsResult(
        case=NAME,
        backend=world.session.name,
        chains=CHAINS,
        joints=CHAINS * JOINTS,
        ms_per_step=statistics.median(stepped),
        ms_spread=max(stepped) - min(stepped),
        ms_read=statistics.median(read) - statistics.median(stepped),
        peer_ms=peer_ms(),
        threads=world.session.threads,
        device=device_name(world.session.name),
        versions=versions(),
    )
    world.close()
    return result


def peer_ms() -> float | None:
    """Return what three-vrm takes for an update of as many spring bones [ms]; None without it."""
    node = shutil.which("node")
    if node is None or not (PEER.parent / "node_modules").is_dir():
        return None
    run = subprocess.run(
        [node, str(PEER), "300", str(CHAINS), str(JOINTS)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=PEER.parent,
    )
    return float(json.loads(run.stdout)["median_ms"]) if run.returncode == 0 else None


def print_chains(out: Console, result: ChainsResult) -> None:
    """Print what the chains took."""
    table = Table(box=None, pad_edge=False)
    for column in ("case", "backend"):
        table.add_column(column, no_wrap=True)
    for column in ("joints", "ms a step", "spread", "ms to read", "three-vrm ms"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_row(
        result.case,
        result.backend,
        f"{result.joints:,}",
        f"{result.ms_per_step:.3f}",
        f"{result.ms_spread:.3f}",
        f"{result.ms_read:.3f}",
        "not installed" if result.peer_ms is None else f"{result.peer_ms:.2f}",
    )
    out.print(table)
    out.print(f"{result.backend}: {result.device}, {result.threads} threads", style="dim")
    out.print(result.versions, style="dim")
