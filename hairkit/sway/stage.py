"""A stage without a picture: characters that come and go, and what they wear.

Any thread may call it. Signals are sent by the thread that caused them, outside of all locks; a
receiver that needs the order of two threads' changes looks at the stage itself.
"""

import threading
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np
from blinker import Signal
from numpy.typing import ArrayLike, NDArray

from hairkit.errors import HairkitError
from hairkit.sway.signals import tell

Transform = NDArray[np.float64]


class Accessory:
    """Something that a character wears: hair, a hat."""

    def __init__(
        self,
        name: str,
        *,
        kind: str = "",
        source: Any = None,
        attachment: ArrayLike | None = None,
        length: float | None = None,
    ) -> None:
        """Describe it.

        Args:
            name: What it is called.
            kind: ``hair``, ``hat`` and so on; may be empty.
            source: Its mesh: a file, vertices (v, 3) and faces (f, 3), or whatever `hairkit.rig`
                reads; None where it is no mesh.
            attachment: From its own space, the scene of its file, into the head's, shape (4, 4); by
                default the identity.
            length: How far it hangs from its attachment [m], for a pendulum; None measures the
                mesh.

        Raises:
            HairkitError: The attachment is no transform, or the length is not above 0.
        """
        self.name = name
        self.kind = kind
        self.source = source
        if length is not None and not 0.0 < length < np.inf:
            raise HairkitError(f"accessory {name!r}: length {length!r}, expected above 0 m")
        self.length = length
        self.rigged: Any = None
        """Its hair with a skeleton, once somebody has rigged it or read the one it had."""
        self._attachment = _transform(attachment, f"accessory {name!r}: attachment")
        self._wearer: weakref.ref[Character] | None = None

    @property
    def attachment(self) -> Transform:
        """From its own space into the head's, shape (4, 4), read-only; setting it moves it."""
        return self._attachment

    @attachment.setter
    def attachment(self, value: ArrayLike) -> None:
        self._attachment = _transform(value, f"accessory {self.name!r}: attachment")

    @property
    def wearer(self) -> "Character | None":
        """Who wears it."""
        return self._wearer() if self._wearer is not None else None

    def __repr__(self) -> str:
        return f"<Accessory {self.name!r}>"


class Character:
    """Somebody with a head and accessories. One who respawns is a new object."""

    def __init__(
        self,
        name: str,
        *,
        local: bool = False,
        head_pose: ArrayLike | None = None,
        accessories: Iterable[Accessory] = (),
    ) -> None:
        """Describe it; it is on no stage yet.

        Args:
            name: What it is called.
            local: Whether it is the local user's.
            head_pose: From the head's space into the world, shape (4, 4); by default the identity.
            accessories: What it wears already.

        Raises:
            HairkitError: The pose is no transform.
        """
        self.name = name
        self.local = local
        self._lock = threading.RLock()
        self._head_pose = _transform(head_pose, f"character {name!r}: head pose")
        self._accessories: tuple[Accessory, ...] = ()
        self._stage: weakref.ref[Stage] | None = None
        for accessory in accessories:
            self.wear(accessory)

    @property
    def head_pose(self) -> Transform:
        """From the head's space into the world, shape (4, 4), read-only; setting it moves it."""
        return self._head_pose

    @head_pose.setter
    def head_pose(self, value: ArrayLike) -> None:
        # Replaced as a whole: who reads it on another thread sees the old pose or the new one.
        self._head_pose = _transform(value, f"character {self.name!r}: head pose")
        stage = self.stage
        if stage is not None and stage.pose_changed.receivers:
            tell(stage.pose_changed, stage, character=self)

    @property
    def accessories(self) -> tuple[Accessory, ...]:
        """What it wears, in the order of coming."""
        return self._accessories

    @property
    def stage(self) -> "Stage | None":
        """The stage that it is on."""
        return self._stage() if self._stage is not None else None

    def wear(self, accessory: Accessory) -> None:
        """Put an accessory on; whoever wore it takes it off first. One that is on stays on."""
        former = accessory.wearer
        if former is self:
            return
        if former is not None:
            former.take_off(accessory)
        with self._lock:
            accessory._wearer = weakref.ref(self)
            self._accessories = (*self._accessories, accessory)
        stage = self.stage
        if stage is not None:
            tell(stage.accessory_added, stage, character=self, accessory=accessory)

    def take_off(self, accessory: Accessory) -> None:
        """Take an accessory off.

        Raises:
            HairkitError: It is not worn by this character.
        """
        with self._lock:
            if accessory not in self._accessories:
                raise HairkitError(f"accessory {accessory.name!r}: not worn by {self.name!r}")
            accessory._wearer = None
            self._accessories = tuple(a for a in self._accessories if a is not accessory)
        stage = self.stage
        if stage is not None:
            tell(stage.accessory_removed, stage, character=self, accessory=accessory)

    def __repr__(self) -> str:
        return f"<Character {self.name!r}>"


class Stage:
    """The characters that are there."""

    def __init__(self) -> None:
        """Make an empty stage."""
        self.character_added = Signal()
        """Sent with ``character``; the stage is the sender of all its signals."""
        self.character_removed = Signal()
        """Sent with ``character``."""
        self.accessory_added = Signal()
        """Sent with ``character`` and ``accessory``; not for what a character wears as it comes."""
        self.accessory_removed = Signal()
        """Sent with ``character`` and ``accessory``; not for what a character wears as it goes."""
        self.pose_changed = Signal()
        """Sent with ``character`` when its head pose is set."""
        self._lock = threading.RLock()
        self._characters: tuple[Character, ...] = ()

    @property
    def characters(self) -> tuple[Character, ...]:
        """Who is there, in the order of coming."""
        return self._characters

    def add(self, character: Character) -> None:
        """Let a character come.

        Raises:
            HairkitError: It is on a stage already.
        """
        with self._lock, character._lock:
            if character.stage is not None:
                raise HairkitError(f"character {character.name!r}: is on a stage already")
            character._stage = weakref.ref(self)
            self._characters = (*self._characters, character)
        tell(self.character_added, self, character=character)

    def remove(self, character: Character) -> None:
        """Let a character go.

        Raises:
            HairkitError: It is not on this stage.
        """
        with self._lock, character._lock:
            if character.stage is not self:
                raise HairkitError(f"character {character.name!r}: is not on this stage")
            character._stage = None
            self._characters = tuple(c for c in self._characters if c is not character)
        tell(self.character_removed, self, character=character)


def _transform(value: ArrayLike | None, label: str) -> Transform:
    """Return a read-only copy of a transform, shape (4, 4)."""
    try:
        matrix = np.array(np.eye(4) if value is None else value, dtype=np.float64)
    except (TypeError, ValueError):
        raise HairkitError(f"{label}: expected numbers of shape (4, 4)") from None
    if matrix.shape != (4, 4):
        raise HairkitError(f"{label}: expected shape (4, 4), got {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise HairkitError(f"{label}: expected finite numbers")
    if not np.array_equal(matrix[3], [0.0, 0.0, 0.0, 1.0]):
        raise HairkitError(f"{label}: expected a last row of 0 0 0 1, got {matrix[3].tolist()}")
    matrix.flags.writeable = False
    return matrix
