"""The manager: rigs the hair of every character on a stage once and lets it sway in a world."""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hairkit.errors import HairkitError, RigError, SessionError
from hairkit.rigging import RiggedHair
from hairkit.rigging import rig as rig_mesh
from hairkit.sway import registry
from hairkit.sway.binding import DOWN, Skeleton, Swaying, SwayWorld
from hairkit.sway.budget import Budget, View
from hairkit.sway.matching import is_hair
from hairkit.sway.passes import Found, HairPass, Mailbox, Tools
from hairkit.sway.reading import read_boned
from hairkit.sway.settings import ChainSettings
from hairkit.sway.signals import guarded, hair_rigged, rig_failed, tell
from hairkit.sway.stage import Accessory, Character, Stage, Transform
from hairkit.sway.store import BakeStore
from hairkit.sway.threads import Running, Start, start_thread, wait_for

DELAY_S = 0.25
"""How long after the last accessory a character's pass runs."""
PASSES = 2
"""Passes that run at once; Python's threads share one core, and the frame loop needs it too."""

_log = logging.getLogger("hairkit.sway")


@dataclass(frozen=True, eq=False)
class Failure:
    """An accessory that could not be rigged and swings as a pendulum."""

    character: Character
    """Who wears it."""

    accessory: Accessory
    """What."""

    error: RigError
    """Why."""


@dataclass(eq=False)
class _Entry:
    """What a manager knows of one character; only `update` and `destroy` touch it."""

    character: Character
    deadline: float | None = None
    running: int = 0
    taken: dict[Accessory, Any] = field(default_factory=dict)
    skipped: set[Accessory] = field(default_factory=set)
    found: dict[Accessory, Found] = field(default_factory=dict)
    swaying: dict[Accessory, Swaying | None] = field(default_factory=dict)
    failures: dict[Accessory, Failure] = field(default_factory=dict)


def attach(
    stage: Stage,
    *,
    world: SwayWorld | None = None,
    characters: Literal["all", "local"] = "all",
    rig: Mapping[str, Any] | None = None,
    match: Callable[[Accessory], bool] | None = None,
    settings: ChainSettings | None = None,
    on_rigged: Callable[[Character, Accessory, list[str]], Any] | None = None,
    budget: Budget | int | Literal["auto"] | None = None,
    store: BakeStore | None = None,
    clock: Callable[[], float] = time.monotonic,
    rigger: Callable[..., RiggedHair] = rig_mesh,
    reader: Callable[..., Skeleton] = read_boned,
    start: Start = start_thread,
    passes: int = PASSES,
) -> "HairManager":
    """Watch a stage, rig its characters' hair and let it sway.

    Call `HairManager.update` once a frame on the thread that owns the world, and
    `HairManager.destroy` there at the end.

    Args:
        stage: Whose characters; those there already are watched like later ones.
        world: What hair is bound into; None rigs nothing and binds nothing.
        characters: ``all``, or ``local`` for the local user's only.
        rig: Options of every rig, keywords of `hairkit.rig`.
        match: Which accessories are hair; by default those of kind hair or with "hair" in the name.
            Called on a pass's thread.
        settings: How chains and pendulums swing.
        on_rigged: Called per rigged accessory with the character, the accessory and the bones'
            names, on a thread of its own; what it raises is logged.
        budget: Which hair sways, the rest holding its pose; a number is that many chains, ``auto``
            as many as the world says that this device can move; None lets all sway.
        store: Bakes to read before anything is rigged.
        clock: Seconds that only grow; what deadlines go by.
        rigger: Rigs a source; raises `RigError`.
        reader: Reads a source, or a bake's bytes, that has bones already; takes ``mesh`` as a
            keyword; raises `RigError`.
        start: Starts work on a thread.
        passes: How many passes run at once; further ones wait for their turn.

    Returns:
        The manager.

    Raises:
        HairkitError: ``characters`` or ``passes`` is out of range.
    """
    if characters not in ("all", "local"):
        raise HairkitError(f"characters {characters!r}: expected all or local")
    if passes < 1:
        raise HairkitError(f"passes {passes!r}: expected 1 or more")
    return HairManager(
        stage,
        world=world,
        local=characters == "local",
        tools=Tools(
            match=is_hair if match is None else match,
            rigger=rigger,
            reader=reader,
            options=dict(rig or {}),
            store=store,
        ),
        settings=ChainSettings() if settings is None else settings,
        on_rigged=on_rigged,
        budget=_budget(budget, world),
        clock=clock,
        start=start,
        passes=passes,
    )


def _budget(
    budget: Budget | int | Literal["auto"] | None, world: SwayWorld | None
) -> Budget | None:
    """Return a budget from what `attach` takes for one."""
    if budget is None or isinstance(budget, Budget):
        return budget
    return Budget(budget, measure=None if world is None else world.most_chains)


class HairManager:
    """What `attach` returns.

    Any thread may change the stage: the manager only notes what happened and when. Everything else
    is done in `update`, by the thread that owns the world, so nothing here needs a lock. Passes
    hand what they found to `update` too, and not to the world's own queue: that one is part of a
    step, cannot be taken back when a character goes, and is never run once the world is closed.
    """

    def __init__(
        self,
        stage: Stage,
        *,
        world: SwayWorld | None,
        local: bool,
        tools: Tools,
        settings: ChainSettings,
        on_rigged: Callable[[Character, Accessory, list[str]], Any] | None,
        budget: Budget | None,
        clock: Callable[[], float],
        start: Start,
        passes: int,
    ) -> None:
        """Watch a stage; `attach` says what the arguments are."""
        self.budget = budget
        self._stage: Stage | None = stage
        self._world = world
        self._local = local
        self._tools: Tools | None = tools
        self._settings = settings
        self._on_rigged = on_rigged
        self._clock = clock
        self._start = start
        self._most_passes = passes
        self._mailbox = Mailbox()
        self._events: deque[tuple[str, Character, Accessory | None, float]] = deque()
        self._entries: dict[Character, _Entry] = {}
        self._passes: dict[HairPass, tuple[_Entry, Running]] = {}
        self._callbacks: list[Running] = []
        self._updating = False
        self._closed = False
        # Held weakly by the signals: a manager that is forgotten undestroyed goes all the same.
        stage.character_added.connect(self._character_added, sender=stage)
        stage.character_removed.connect(self._character_removed, sender=stage)
        stage.accessory_added.connect(self._accessory_added, sender=stage)
        stage.accessory_removed.connect(self._accessory_removed, sender=stage)
        for character in stage.characters:
            self._note("came", character)

    @property
    def swaying(self) -> list[Swaying]:
        """What is bound now, in the order of coming."""
        return [s for entry in self._entries.values() for s in entry.swaying.values() if s]

    @property
    def failures(self) -> list[Failure]:
        """Accessories of characters that are there, whose rig failed."""
        return [f for entry in self._entries.values() for f in entry.failures.values()]

    def bindings(self, character: Character) -> dict[Accessory, Swaying]:
        """Return what of a character sways."""
        entry = self._entries.get(character)
        return {a: s for a, s in entry.swaying.items() if s} if entry is not None else {}

    def update(self, camera: View | None = None) -> None:
        """Do all that is due: start passes, bind what is found, follow heads, apply the budget.

        Called once a frame by the thread that owns the world, before the world's step. It does not
        step the world, and there is no stepper beside it: a world has a fixed clock of its own, and
        ``World.step(dt)`` gives the same motion whatever the frame rate is.

        Args:
            camera: What the budget looks from; None lets it use its own.

        Raises:
            SessionError: Another thread owns the world.
        """
        if self._closed or self._updating:
            return
        self._updating = True
        try:
            self._take_events()
            self._take_results()
            self._start_passes()
            self._bind()
            self._place()
            if self.budget is not None:
                self.budget.apply(self.swaying, camera)
        finally:
            self._updating = False

    def destroy(self, timeout: float = 5.0) -> None:
        """Take everything out of the world and let go of it all.

        Called by the thread that owns the world. Passes end after the mesh that they are at; one
        that does not end in time is abandoned, and what it finds is thrown away.

        Args:
            timeout: How long to wait for threads [s].
        """
        if self._closed:
            return
        self._closed = True
        stage = self._stage
        if stage is not None:
            stage.character_added.disconnect(self._character_added)
            stage.character_removed.disconnect(self._character_removed)
            stage.accessory_added.disconnect(self._accessory_added)
            stage.accessory_removed.disconnect(self._accessory_removed)
        self._mailbox.close()
        for entry in list(self._entries.values()):
            self._drop(entry)
        self._events.clear()
        left = wait_for([r for _, r in self._passes.values()] + self._callbacks, timeout)
        if left:
            _log.warning("%d threads did not end in %g s and are abandoned", left, timeout)
        self._passes.clear()
        self._callbacks.clear()
        self._stage = self._world = self._tools = self._on_rigged = self.budget = None

    # ---- what happens on the stage, on any thread

    def _character_added(self, _: Any, *, character: Character) -> None:
        self._note("came", character)

    def _character_removed(self, _: Any, *, character: Character) -> None:
        self._note("went", character)

    def _accessory_added(self, _: Any, *, character: Character, accessory: Accessory) -> None:
        self._note("on", character, accessory)

    def _accessory_removed(self, _: Any, *, character: Character, accessory: Accessory) -> None:
        self._note("off", character, accessory)

    def _note(self, what: str, character: Character, accessory: Accessory | None = None) -> None:
        if not (self._closed or (self._local and not character.local)):
            self._events.append((what, character, accessory, self._clock()))

    # ---- what update does, on the world's thread

    def _take_events(self) -> None:
        while self._events:
            what, character, accessory, when = self._events.popleft()
            entry = self._entries.get(character)
            if what == "went" and entry is not None:
                self._drop(entry)
                entry = None
            # Events of two threads may come in either order: the stage has the last word.
            if character.stage is not self._stage:
                if entry is not None:
                    self._drop(entry)
                continue
            fresh = entry is None
            if entry is None:
                entry = self._entries[character] = _Entry(character)
            if what == "off" and accessory is not None:
                self._forget(entry, accessory)
            if (what == "on" or (fresh and what != "off")) and character.accessories:
                entry.deadline = when + DELAY_S

    def _take_results(self) -> None:
        while self._mailbox.letters:
            ended = self._mailbox.letters.popleft()
            entry, _ = self._passes.pop(ended)
            entry.running -= 1
            if self._entries.get(entry.character) is entry:
                entry.skipped |= {
                    accessory
                    for accessory in ended.skipped
                    if accessory not in entry.taken and accessory.wearer is entry.character
                }
                for found in ended.found:
                    # Taken off, and perhaps given to another, while the pass was at it.
                    if found.accessory.wearer is entry.character:
                        self._accept(entry, found)
                    if self._closed:
                        break
            ended.release()
        self._callbacks = [r for r in self._callbacks if r.is_alive()]

    def _accept(self, entry: _Entry, found: Found) -> None:
        """Keep what a pass found, and tell of it."""
        accessory, character = found.accessory, entry.character
        entry.found[accessory] = found
        if found.rigged is not None:
            accessory.rigged = found.rigged
        if found.error is not None:
            entry.failures[accessory] = Failure(character, accessory, found.error)
            tell(rig_failed, self, character=character, mesh=accessory, error=found.error)
        if found.made and found.rigged is not None:
            names = list(found.rigged.bone_names)
            callback = self._on_rigged
            tell(hair_rigged, self, character=character, mesh=accessory, bone_names=names)
            if callback is not None:
                self._call(callback, character, accessory, names)

    def _call(self, callback: Callable[..., Any], *args: Any) -> None:
        """Call a user's callback on a thread of its own."""
        try:
            self._callbacks.append(self._start(lambda: guarded(callback, *args), "hair rigged"))
        except RuntimeError:
            _log.exception("no thread could be started for %r", callback)

    def _start_passes(self) -> None:
        if self._closed or self._world is None or self._stage is None or self._tools is None:
            return
        now = self._clock()
        for entry in self._entries.values():
            free = {a for a in entry.skipped if not registry.is_claimed(a)}
            if free and entry.deadline is None:
                # Whoever rigged it has ended; what came of it is seen by looking again.
                entry.skipped -= free
                entry.deadline = now
        due = [(e.deadline, e) for e in self._entries.values() if e.deadline is not None]
        due = sorted((pair for pair in due if pair[0] <= now), key=lambda pair: pair[0])
        for _, entry in due[: max(0, self._most_passes - len(self._passes))]:
            work = HairPass(self._stage, entry.character, entry.taken, self._tools, self._mailbox)
            try:
                running = self._start(work.run, f"hair of {entry.character.name}")
            except RuntimeError:
                # Stays due, so the next update tries again.
                _log.exception("no thread could be started for %r", entry.character)
                return
            self._passes[work] = (entry, running)
            entry.running += 1
            entry.deadline = None

    def _bind(self) -> None:
        """Bind what is found of characters that no pass is at and none is due for."""
        for entry in list(self._entries.values()):
            if entry.running or entry.skipped or entry.deadline is not None or self._closed:
                continue
            if len(entry.swaying) < len(entry.found):
                for accessory, found in entry.found.items():
                    if accessory not in entry.swaying:
                        self._bind_one(entry, accessory, found)

    def _bind_one(self, entry: _Entry, accessory: Accessory, found: Found) -> None:
        world = self._world
        worn = accessory.wearer is entry.character and entry.character.stage is self._stage
        if world is None or not worn or not registry.claim_bind(accessory, world, self):
            return
        placed = entry.character.head_pose, accessory.attachment
        try:
            swaying = None
            if found.rigged is not None:
                swaying = self._chains(entry, accessory, found.rigged, placed)
            if swaying is None:
                pose = placed[0] @ placed[1]
                swaying = Swaying(
                    binding=world.add_pendulum(found.length, self._settings, pose=pose, down=DOWN),
                    chains=1,
                    radius=2.0 * found.length * float(np.linalg.norm(pose[:3, :3], 2)),
                    rigged=None,
                    into_own=np.eye(4),
                )
            swaying.placed = placed
        except SessionError:
            registry.release_bind(accessory, world, self)
            raise
        except HairkitError as error:
            self._report(entry, accessory, error)
            swaying = None
        entry.swaying[accessory] = swaying

    def _chains(
        self,
        entry: _Entry,
        accessory: Accessory,
        rigged: Skeleton,
        placed: tuple[Transform, Transform],
    ) -> Swaying | None:
        """Bind chains, or report why the world does not take them."""
        assert self._world is not None
        pose = placed[0] @ placed[1] @ rigged.into_scene
        try:
            binding = self._world.add_chains(rigged, self._settings, pose=pose)
        except SessionError:
            raise
        except HairkitError as error:
            self._report(entry, accessory, error)
            return None
        parts = [rigged.plan.positions, *(getattr(rigged, n, ()) for n in ("tips", "vertices"))]
        points = np.concatenate([np.reshape(part, (-1, 3)) for part in parts]) @ pose[:3, :3].T
        return Swaying(
            binding=binding,
            chains=len(rigged.plan.chains),
            # The whole diagonal: it holds the hair wherever in it the position is.
            radius=float(np.linalg.norm(np.ptp(points, axis=0))),
            rigged=rigged,
            into_own=rigged.into_scene,
        )

    def _report(self, entry: _Entry, accessory: Accessory, raised: HairkitError) -> None:
        error = raised if isinstance(raised, RigError) else RigError("unexpected", str(raised))
        entry.failures[accessory] = Failure(entry.character, accessory, error)
        tell(rig_failed, self, character=entry.character, mesh=accessory, error=error)

    def _place(self) -> None:
        """Move what has moved."""
        for entry in list(self._entries.values()):
            for accessory, swaying in entry.swaying.items():
                if swaying is None:
                    continue
                head, attachment = entry.character.head_pose, accessory.attachment
                # Poses are replaced, never changed, so the same object is the same pose.
                if swaying.placed is None or not (
                    swaying.placed[0] is head and swaying.placed[1] is attachment
                ):
                    swaying.placed = head, attachment
                    swaying.binding.set_pose(head @ attachment @ swaying.into_own)

    # ---- letting go

    def _drop(self, entry: _Entry) -> None:
        """Forget a character; passes that are at it find nobody to tell."""
        self._entries.pop(entry.character, None)
        for accessory in [*entry.swaying]:
            self._forget(entry, accessory)
        entry.deadline = None

    def _forget(self, entry: _Entry, accessory: Accessory) -> None:
        """Forget one accessory, and take it out of the world."""
        entry.taken.pop(accessory, None)
        entry.skipped.discard(accessory)
        entry.found.pop(accessory, None)
        entry.failures.pop(accessory, None)
        if accessory not in entry.swaying:
            return
        swaying = entry.swaying.pop(accessory)
        if self._world is None:
            return
        registry.release_bind(accessory, self._world, self)
        if swaying is not None:
            try:
                self._world.remove(swaying.binding)
            except HairkitError as error:
                # A world that was closed first has taken it out already.
                _log.debug("a binding was not removed: %s", error)
