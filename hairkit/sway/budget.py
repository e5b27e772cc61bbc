"""Whose hair sways when not all can: what the camera sees, the nearest first."""

import math
from collections.abc import Callable, Iterable
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hairkit.errors import HairkitError

Vector = NDArray[np.float64]
_ACTIVE_RADIUS = 1.5
"""How much larger what sways already counts as, so that it does not flicker at the picture's
edge."""


class View(Protocol):
    """What a budget looks from; `hairkit.Camera` is one."""

    @property
    def position(self) -> tuple[float, float, float]:
        """Where it is in the world [m]."""
        ...

    @property
    def target(self) -> tuple[float, float, float]:
        """What is in the picture's middle [m]."""
        ...

    @property
    def up(self) -> tuple[float, float, float]:
        """Direction that is up in the picture."""
        ...

    @property
    def fov(self) -> float:
        """Angle of view from bottom to top [rad]."""
        ...


class Budgeted(Protocol):
    """Something that sways and can hold its pose instead; `Swaying` is one."""

    @property
    def active(self) -> bool:
        """Whether it sways; False holds its pose."""
        ...

    @active.setter
    def active(self, value: bool) -> None: ...

    @property
    def position(self) -> Vector:
        """Where it is in the world [m], shape (3,)."""
        ...

    @property
    def chains(self) -> int:
        """How many chains it has."""
        ...

    @property
    def radius(self) -> float:
        """Radius of a ball round its position that holds it [m]."""
        ...


class Budget:
    """At most so many chains that sway at once, over everything it is applied to.

    What a camera cannot see holds its pose. Of the rest the nearest come first, each wholly or not
    at all, until the first that has no room any more; so nothing sways behind something that holds.
    Only what has more chains than the whole budget is passed over.

    What sways keeps its place until another is nearer by more than `margin`, so two at the same
    distance do not take turns. What comes into the budget is only told so by ``active``; easing in
    is the binding's own.
    """

    def __init__(
        self,
        max_chains: int | Literal["auto"],
        camera: View | None = None,
        *,
        measure: Callable[[], int] | None = None,
        margin: float = 0.15,
        aspect: float = 16.0 / 9.0,
    ) -> None:
        """Set the limit.

        Args:
            max_chains: Most chains that sway, 0 or more; ``auto`` is what `measure` says.
            camera: What to look from where `apply` is told nothing; None sees everything, all of it
                equally near.
            measure: Returns how many chains this device can let sway. It is called once, when it is
                first needed.
            margin: Share of its distance by which something must be nearer to take the place of
                what sways, 0 to below 1.
            aspect: Width of the picture by its height, above 0.

        Raises:
            HairkitError: A number is out of range, or ``auto`` has nothing to measure with.
        """
        whole = isinstance(max_chains, int) and not isinstance(max_chains, bool)
        if max_chains != "auto" and not (whole and max_chains >= 0):
            raise HairkitError(f"max_chains {max_chains!r}: expected 0 or more, or auto")
        if max_chains == "auto" and measure is None:
            raise HairkitError("max_chains 'auto': expected measure, which counts chains")
        if not 0.0 <= margin < 1.0:
            raise HairkitError(f"margin {margin!r}: expected 0 to below 1")
        if not 0.0 < aspect < math.inf:
            raise HairkitError(f"aspect {aspect!r}: expected above 0")
        self.camera = camera
        self.margin = margin
        self.aspect = aspect
        self._limit = max_chains if isinstance(max_chains, int) else None
        self._measure = measure
        self._granted: set[int] = set()

    @property
    def max_chains(self) -> int:
        """Most chains that sway; ``auto`` is measured when this is first asked for, and kept."""
        if self._limit is None:
            assert self._measure is not None
            self._limit = max(0, int(self._measure()))
        return self._limit

    def apply(self, bindings: Iterable[Budgeted], camera: View | None = None) -> int:
        """Say of each whether it sways.

        Args:
            bindings: All that the budget is shared by.
            camera: What to look from; None is the budget's own camera.

        Returns:
            How many chains sway.
        """
        rows = list(bindings)
        view = self.camera if camera is None else camera
        held = np.array([id(each) in self._granted for each in rows], dtype=bool)
        near = np.zeros(len(rows))
        seen = np.ones(len(rows), dtype=bool)
        if view is not None and rows:
            places = np.array([each.position for each in rows], dtype=np.float64).reshape(-1, 3)
            radii = np.array([each.radius for each in rows]) * np.where(held, _ACTIVE_RADIUS, 1.0)
            near = np.linalg.norm(places - np.asarray(view.position), axis=1)
            near *= np.where(held, 1.0 - self.margin, 1.0)
            seen = in_view(places, radii, view, self.aspect)
        left = limit = self.max_chains
        granted: set[int] = set()
        # Stable, so that equal distances keep the order of coming.
        for row in np.argsort(near, kind="stable"):
            chains = rows[row].chains
            if not seen[row] or chains > limit:
                continue
            if chains > left:
                break
            left -= chains
            granted.add(id(rows[row]))
        for each in rows:
            wanted = id(each) in granted
            if each.active != wanted:
                each.active = wanted
        self._granted = granted
        return limit - left


def in_view(centres: Vector, radii: Vector, view: View, aspect: float) -> NDArray[np.bool_]:
    """Return which balls are in a camera's picture, or may be, shape (n,).

    Args:
        centres: Middles [m], shape (n, 3).
        radii: Radii [m], shape (n,).
        view: The camera.
        aspect: Width of its picture by its height.
    """
    forward = np.subtract(view.target, view.position)
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, view.up)
    right = right / np.linalg.norm(right)
    up = np.cross(right, forward)
    offset = centres - np.asarray(view.position)
    depth = offset @ forward
    tall = 0.5 * view.fov
    wide = math.atan(aspect * math.tan(tall))
    seen = depth >= -radii
    for axis, half in ((up, tall), (right, wide)):
        # How far outside of the nearer of two planes through the camera a middle lies.
        outside = np.abs(offset @ axis) * math.cos(half) - depth * math.sin(half)
        seen &= outside <= radii
    return seen
