"""What swaying needs of a world, and what is kept of each accessory that sways."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hairkit.rigging import RiggedHair
from hairkit.rigging.read import BonedHair
from hairkit.sway.settings import ChainSettings

Skeleton = RiggedHair | BonedHair
"""Hair with bones that we made, or that were there."""

DOWN = (0.0, -1.0, 0.0)
"""Where a pendulum hangs in the space of what carries it, at rest."""

Transform = NDArray[np.float64]


class Binding(Protocol):
    """One accessory's chains, or its pendulum, in a world."""

    @property
    def active(self) -> bool:
        """Whether it sways; False holds its pose. Becoming active, it eases in from there."""
        ...

    @active.setter
    def active(self, value: bool) -> None: ...

    @property
    def position(self) -> NDArray[np.float64]:
        """Where it is in the world [m], shape (3,)."""
        ...

    def set_pose(self, pose: Transform) -> None:
        """Move what carries it.

        Args:
            pose: As it was given when this was bound, shape (4, 4).
        """
        ...


class SwayWorld(Protocol):
    """A world that hair is bound into; all calls come from the thread that owns it."""

    def add_chains(self, rigged: Skeleton, settings: ChainSettings, *, pose: Transform) -> Binding:
        """Let a rigged mesh's chains sway.

        Args:
            rigged: The mesh and its skeleton.
            settings: How they swing.
            pose: From the space of its plan into the world, shape (4, 4).
        """
        ...

    def add_pendulum(
        self, length: float, settings: ChainSettings, *, pose: Transform, down: Any
    ) -> Binding:
        """Let a whole accessory swing rigidly from its attachment.

        Args:
            length: How far it hangs [m].
            settings: How it swings.
            pose: From the accessory's own space into the world, shape (4, 4).
            down: Unit direction in which it hangs at rest, in the accessory's own space, shape
                (3,).
        """
        ...

    def most_chains(self) -> int:
        """Return how many chains this device can let sway, for a budget of ``auto``."""
        ...

    def remove(self, binding: Any, /) -> None:
        """Take a binding out of the world."""
        ...


@dataclass(eq=False, kw_only=True)
class Swaying:
    """One accessory that sways: its binding, and what a budget asks of it."""

    binding: Binding
    """What the world gave."""

    chains: int
    """How many chains it has; a pendulum counts as one."""

    radius: float
    """Radius of a ball round its position that holds it [m]."""

    rigged: Skeleton | None
    """Its skeleton; None for a pendulum."""

    into_own: Transform
    """From the space that the world has it in, the plan's, into the accessory's, shape (4, 4)."""

    placed: tuple[Transform, Transform] | None = field(default=None, repr=False)
    """Head pose and attachment that it was last placed by."""

    @property
    def active(self) -> bool:
        """Whether it sways; False holds its pose."""
        return self.binding.active

    @active.setter
    def active(self, value: bool) -> None:
        self.binding.active = value

    @property
    def position(self) -> NDArray[np.float64]:
        """Where it is in the world [m], shape (3,)."""
        return np.asarray(self.binding.position, dtype=np.float64)
