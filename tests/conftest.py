"""Fixtures that every test shares: the backends to run on, and worlds emptied after each test."""

import gc
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hairkit.backend import open_session
from hairkit.sim.world import World

BACKENDS = [name.strip() for name in os.environ.get("HAIRKIT_TEST_BACKENDS", "cpu").split(",")]
"""Backends to test on. One that does not work here fails its tests: nobody asked to skip it."""


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """Name a backend that works here; pytest runs all tests of one before those of the next."""
    open_session(request.param)
    return request.param


@pytest.fixture
def world(backend: str) -> Iterator[Callable[..., World]]:
    """Make worlds on the backend, all in one session; each is emptied after the test."""
    made: list[World] = []

    def make(**options: Any) -> World:
        made.append(World(backend, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def make_show() -> Iterator[Callable[..., Any]]:
    """Make stages with a manager; after the test no claim on hair is left in this process."""
    # Here and not above: it rigs a mesh, which most tests can do without.
    from sway_stage import MADE, Show

    from hairkit.sway import registry

    yield Show
    for made in MADE:
        manager = made()
        if manager is not None:
            manager.destroy()
    MADE.clear()
    if registry.sizes() != (0, 0):
        gc.collect()
    assert registry.sizes() == (0, 0)


@pytest.fixture
def show(make_show: Callable[..., Any]) -> Any:
    """Make a stage with a manager and nobody on it."""
    return make_show()
