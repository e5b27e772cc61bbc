"""One pass through a character's accessories: rig what can be rigged, measure what cannot.

It runs on a thread of its own and touches no world: what it found is posted to the manager, whose
`update` does the rest.
"""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hairkit.errors import HairkitError, RigError
from hairkit.rigging import RiggedHair
from hairkit.rigging.rig import document_of
from hairkit.sway import registry
from hairkit.sway.binding import Skeleton
from hairkit.sway.signals import guarded
from hairkit.sway.stage import Accessory, Character, Stage
from hairkit.sway.store import BakeStore

LENGTH_M = 0.25
"""How far an accessory hangs whose mesh says nothing of it."""

_log = logging.getLogger("hairkit.sway")


@dataclass(frozen=True, eq=False, kw_only=True)
class Found:
    """What a pass found out about one accessory that matched."""

    accessory: Accessory
    """The accessory."""

    rigged: Skeleton | None = None
    """Its skeleton; None makes it a pendulum."""

    made: bool = False
    """Whether this pass made the skeleton."""

    error: RigError | None = None
    """Why there is none."""

    length: float = LENGTH_M
    """How far it hangs as a pendulum [m]."""


@dataclass(eq=False)
class Mailbox:
    """Where passes post; closed once nobody reads it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while posting, and while closing."""

    letters: deque["HairPass"] = field(default_factory=deque)
    """Passes that have ended."""

    closed: bool = False
    """Whether what is posted is thrown away."""

    def post(self, ended: "HairPass") -> None:
        """Post a pass that has ended; where nobody reads, it gives its claims back instead."""
        with self.lock:
            if not self.closed:
                self.letters.append(ended)
                return
        ended.release()

    def close(self) -> None:
        """Throw away what is there and what comes."""
        with self.lock:
            self.closed = True
            left = list(self.letters)
            self.letters.clear()
        for ended in left:
            ended.release()


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What passes work with."""

    match: Callable[[Accessory], bool]
    """Which accessories are hair."""

    rigger: Callable[..., RiggedHair]
    """Rigs a source; takes the options as keywords."""

    reader: Callable[..., Skeleton]
    """Reads a source that has bones already; takes ``mesh`` as a keyword."""

    options: Mapping[str, Any]
    """Of every rig."""

    store: BakeStore | None
    """Bakes that need no rigging any more."""


class HairPass:
    """A pass and, once it has run, what it found."""

    def __init__(
        self,
        stage: Stage,
        character: Character,
        taken: dict[Accessory, Any],
        tools: Tools,
        mailbox: Mailbox,
    ) -> None:
        """Prepare it.

        Args:
            stage: Where the character must be, or the pass ends early.
            character: Whose accessories.
            taken: Accessories that passes of the same manager have looked at; this one's are added.
            tools: What it works with.
            mailbox: Where it posts itself at its end.
        """
        self.character = character
        self.taken = taken
        self.found: list[Found] = []
        self.skipped: list[Accessory] = []
        """Accessories that another manager is rigging."""
        self._stage = stage
        self._tools = tools
        self._mailbox = mailbox
        self._claims: list[Accessory] = []
        # Not the pass itself: it would hold the table that holds it.
        self._mark = object()

    def run(self) -> None:
        """Look at every accessory that no other pass has; raise nothing; post at the end."""
        try:
            for accessory in self.character.accessories:
                if self._mailbox.closed or self.character.stage is not self._stage:
                    break
                # One step, so that of two passes at once only one gets it.
                if self.taken.setdefault(accessory, self._mark) is self._mark:
                    self._look(accessory)
        except Exception:
            _log.exception("a pass through %r ended early", self.character)
        finally:
            self._mailbox.post(self)

    def release(self) -> None:
        """Give back the claims; they last until what was found is in use, so nobody rigs again."""
        for accessory in self._claims:
            registry.release(accessory, self)
        self._claims.clear()

    def _look(self, accessory: Accessory) -> None:
        if not guarded(self._tools.match, accessory):
            return
        if accessory.rigged is None and accessory.source is not None:
            if not registry.claim(accessory, self):
                del self.taken[accessory]
                self.skipped.append(accessory)
                return
            self._claims.append(accessory)
        # Asked again with the claim in hand: another manager may have ended just before.
        if accessory.rigged is not None:
            self.found.append(Found(accessory=accessory, rigged=accessory.rigged))
        elif accessory.source is None:
            self.found.append(Found(accessory=accessory, length=accessory.length or LENGTH_M))
        else:
            self.found.append(self._rig(accessory))

    def _rig(self, accessory: Accessory) -> Found:
        try:
            baked = self._baked(accessory)
            if baked is not None:
                return Found(accessory=accessory, rigged=baked)
            try:
                made = self._tools.rigger(accessory.source, **self._tools.options)
            except RigError as error:
                if error.kind != "already skinned":
                    raise
                return Found(accessory=accessory, rigged=self._read(accessory.source))
            return Found(accessory=accessory, rigged=made, made=True)
        except Exception as raised:
            error = as_rig_error(raised, accessory)
            return Found(accessory=accessory, error=error, length=hanging_length(accessory))

    def _read(self, source: Any) -> Skeleton:
        return self._tools.reader(source, mesh=self._tools.options.get("mesh"))

    def _baked(self, accessory: Accessory) -> Skeleton | None:
        """Return the store's bake; a store that fails is as good as one that has none."""
        if self._tools.store is None:
            return None
        try:
            raw = self._tools.store.baked(accessory.source, self._tools.options)
            return None if raw is None else self._read(raw)
        except (HairkitError, OSError) as error:
            _log.warning("no bake of %r is read: %s", accessory, error)
            return None


def as_rig_error(raised: Exception, accessory: Accessory) -> RigError:
    """Return whatever stopped a rig as a `RigError`; log what should not have happened."""
    if isinstance(raised, RigError):
        return raised
    where = str(accessory.source) if isinstance(accessory.source, str | os.PathLike) else ""
    if isinstance(raised, MemoryError):
        return RigError("out of memory", "not enough memory for this mesh", where)
    if isinstance(raised, HairkitError):
        return RigError("unreadable", str(raised))
    _log.error("rigging %r raised", accessory, exc_info=raised)
    said = " ".join(str(raised).split())
    return RigError("unexpected", f"{type(raised).__name__}: {said}", where)


def hanging_length(accessory: Accessory) -> float:
    """Return how far an accessory hangs below its attachment [m], as well as can be told.

    Its own word, else how far its mesh goes down from its origin or is high, whichever is less.
    """
    if accessory.length is not None:
        return accessory.length
    try:
        document, hair = document_of(accessory.source, None)
        into = hair.into_scene(document)
        heights = hair.vertices @ into[1, :3] + into[1, 3]
    except Exception:  # what cannot be rigged often cannot be read either
        return LENGTH_M
    low, high = float(heights.min()), float(heights.max())
    length = min(high - low, -low) if low < 0.0 < high else high - low
    return length if np.isfinite(length) and length > 0.0 else LENGTH_M
