"""How many chains this device moves in a time: measured once, for budgets."""

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from hairkit.sim.world import World

HEADS, CHAINS, JOINTS = 32, 3, 4
"""A crowd: what it costs is mostly that of a head, so chains are measured as heads wear them."""


def most_chains(world: "World", milliseconds: float) -> int:
    """Return how many chains a step of so many milliseconds moves and reads.

    Args:
        world: Any world of the session; what is measured is put into one of its own.
        milliseconds: Of a step, above 0.
    """
    shared = world.session.shared
    if "chain_ms" not in shared:
        shared["chain_ms"] = _time_a_chain(world)
    return max(1, int(milliseconds / shared["chain_ms"]))


def _time_a_chain(world: "World") -> float:
    """Return what a step takes for each chain of a crowd [ms]."""
    from hairkit.sim.world import World

    drop = np.arange(JOINTS)[:, None] * np.array([0.0, -0.07, 0.0])
    side = np.array([0.1, 0.0, 0.0])
    places = [np.zeros((1, 3)), *(drop + side * (c - 1) - 0.05 for c in range(CHAINS))]
    rows = np.arange(1, CHAINS * JOINTS + 1).reshape(CHAINS, JOINTS).tolist()
    plan = SimpleNamespace(
        positions=np.concatenate(places), chains=tuple(map(tuple, rows)), strategy=""
    )
    rig = SimpleNamespace(plan=plan, into_scene=np.eye(4))
    own = World(world.session.name, threads=None if world.session.gpu else world.session.threads)
    own.sleep = False
    crowd = [own.add_chains(rig) for _ in range(HEADS)]
    pose, times = np.eye(4), []
    for step in range(40):
        pose = np.eye(4)
        pose[0, 3] = 0.05 * np.sin(0.3 * step)
        begun = time.perf_counter()
        for chains in crowd:
            chains.set_pose(pose)
        own.step(1 / 60)
        for chains in crowd:
            chains.joint_turns()
        times.append(time.perf_counter() - begun)
    own.close()
    return 1e3 * float(np.median(times[10:])) / (HEADS * CHAINS)
