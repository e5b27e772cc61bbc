"""Threads, sessions and the arena: who may use a world, when it is gone, how it grows."""

import copy
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scenes
from scenes import play, small

from hairkit.errors import SessionError
from hairkit.groom import grow
from hairkit.shapes import Sphere
from hairkit.sim.world import World

Worlds = Callable[..., World]


def in_thread(work: Callable[[], Any]) -> Exception | None:
    """Run something in another thread; return what it raised."""
    raised: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0] if raised else None


def test_only_the_thread_that_opened_the_session_may_use_it(world: Worlds, backend: str) -> None:
    """Touch a world from another thread: one line that says how to hand work over."""
    made = world()
    hair = made.add_hair(small())
    calls: list[Callable[[], Any]] = [
        lambda: made.step(1 / 60),
        lambda: made.add_hair(hair.groom),
        lambda: made.add_collider(Sphere(0.1)),
        lambda: made.remove(hair),
        lambda: World(backend),
        hair.points,
        made.stats,
    ]
    for call in calls:
        error = in_thread(call)
        assert isinstance(error, SessionError)
        assert "world.post" in str(error) and "\n" not in str(error)
    made.step(1 / 60)
    assert made.steps == 1


def test_posted_work_runs_in_the_owning_thread_at_the_next_step(world: Worlds) -> None:
    """Post from another thread: it runs once, here, and may use the world."""
    made = world()
    groom = small()
    ran: list[int] = []

    def work() -> None:
        ran.append(threading.get_ident())
        made.add_hair(groom)

    assert in_thread(lambda: made.post(work)) is None
    assert ran == []
    made.step(1 / 60)
    made.step(1 / 60)
    assert ran == [threading.get_ident()]
    assert len(made.hairs) == 1


CHILD = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
import scenes
from hairkit.backend import open_session
from hairkit.errors import SessionError
from hairkit.groom import grow
from hairkit.shapes import Sphere
from hairkit.sim.world import World
from hairkit.style import load_style

world = World(sys.argv[3])
groom = grow(load_style("curly"), scenes.ball_head(), guides=20)
hair = world.add_hair(groom)
collider = world.add_collider(Sphere(0.1))
world.step(1 / 60)
open_session(sys.argv[3], debug=True)
for call in (
    lambda: world.step(1 / 60),
    lambda: world.add_hair(groom),
    lambda: world.add_collider(Sphere(0.1)),
    lambda: world.remove(hair),
    lambda: world.remove(collider),
    lambda: world.resets,
    hair.points,
    world.stats,
    world.present,
):
    try:
        print("nothing", call())
    except SessionError as error:
        print("SessionError", error)
"""


def test_world_of_a_closed_session_says_so_and_does_not_crash(backend: str) -> None:
    """Open another session in a process of its own: everything the old world can do says so."""
    tests, root = Path(__file__).parent, Path(str(grow.__globals__["__file__"])).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tests), str(root), backend],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if "[Taichi]" not in line]
    assert len(said) == 9
    assert all(line.startswith("SessionError") and "closed" in line for line in said)


@pytest.fixture
def spare(backend: str) -> Iterator[Callable[[], World]]:
    """Make worlds in an arena that is a copy of the session's, which later tests find untouched."""
    shared = World(backend).session.shared
    kept = shared["arena"]
    arena = shared["arena"] = copy.copy(kept)
    for name, value in vars(kept).items():
        if name.endswith("_space"):
            setattr(arena, name, copy.deepcopy(value))
    made: list[World] = []

    def make() -> World:
        made.append(World(backend))
        return made[-1]

    yield make
    # Closed first: rows of the copy must not be given back to the arena itself.
    for each in made:
        each.close()
    shared["arena"] = kept


def test_full_arena_warns_grows_and_keeps_the_motion_going(spare: Callable[[], World]) -> None:
    """Add a head to a full arena in mid-motion: twice the room, one warning, the same points."""
    curls = [scenes.helix(20, 0.012, along=way) for way in ((1, 0, 0), (0, 0, 1), (-1, -1, 1))]
    groom = scenes.hand_groom(curls, scenes.plain_style())
    ends = []
    for full in (False, True):
        made = spare()
        hair = made.add_hair(groom)
        space, room = made.arena.point_space, made.arena.max_points
        play(made, hair, frames=10)
        if full:
            space.take(space.free)
            with pytest.warns(UserWarning, match=f"arena of {room} guide points.*max_points"):
                made.add_hair(groom, pose=scenes.pose(None, (2.0, 0.0, 0.0)))
            assert made.arena.max_points == 2 * room
        ends += play(made, hair, frames=10)
    assert np.abs(ends[0] - groom.points).max() > 0.02
    assert np.abs(ends[1] - ends[0]).max() < 1e-5
