"""A server that rigs each character's hair once, into a store that every client reads."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from hairkit.rigging import RiggedHair
from hairkit.rigging import rig as rig_mesh
from hairkit.sway.manager import Failure
from hairkit.sway.matching import is_hair
from hairkit.sway.passes import as_rig_error
from hairkit.sway.signals import guarded
from hairkit.sway.stage import Accessory, Character, Stage
from hairkit.sway.store import BakeStore
from hairkit.sway.threads import Running, Start, start_thread, wait_for

_log = logging.getLogger("hairkit.sway")


class RigServer:
    """Watches a stage and bakes its hair; nothing sways here, and no signal is sent.

    The accessories stay as they are. A client finds a bake by ``store.baked(source, options)`` and
    sways it itself; `attach` does so where it is given the store.
    """

    def __init__(
        self,
        stage: Stage,
        store: BakeStore,
        *,
        rig: Mapping[str, Any] | None = None,
        match: Callable[[Accessory], bool] | None = None,
        rigger: Callable[..., RiggedHair] = rig_mesh,
        start: Start = start_thread,
    ) -> None:
        """Rig the characters that are there and each that comes, one after the other on a thread.

        Args:
            stage: Whose characters.
            store: Where bakes go.
            rig: Options of every rig, keywords of `hairkit.rig`.
            match: Which accessories are hair; by default as `attach` has it. Called on the thread.
            rigger: Rigs a source; raises `RigError`.
            start: Starts work on a thread.
        """
        self.stage = stage
        self.store = store
        self._options = dict(rig or {})
        self._match = is_hair if match is None else match
        self._rigger = rigger
        self._start = start
        self._lock = threading.Lock()
        self._wanted: deque[Character] = deque()
        self._done: dict[Character, set[Accessory]] = {}
        self._failed: dict[Character, list[Failure]] = {}
        self._workers: list[Running] = []
        self._busy = False
        self._closed = False
        stage.character_added.connect(self._came, sender=stage)
        stage.character_removed.connect(self._went, sender=stage)
        stage.accessory_added.connect(self._came, sender=stage)
        for character in stage.characters:
            self._came(stage, character=character)

    @property
    def failures(self) -> list[Failure]:
        """Accessories of characters that are there, which could not be rigged."""
        with self._lock:
            return [failure for failures in self._failed.values() for failure in failures]

    def close(self, timeout: float = 5.0) -> None:
        """Stop watching; the mesh that is being rigged is finished.

        Args:
            timeout: How long to wait for that [s].
        """
        with self._lock:
            self._closed = True
            self._wanted.clear()
            self._done.clear()
            self._failed.clear()
            workers, self._workers = self._workers, []
        self.stage.character_added.disconnect(self._came)
        self.stage.character_removed.disconnect(self._went)
        self.stage.accessory_added.disconnect(self._came)
        if wait_for(workers, timeout):
            _log.warning("the rig server's thread did not end in %g s and is abandoned", timeout)

    def _came(self, _: Any, *, character: Character, accessory: Accessory | None = None) -> None:
        with self._lock:
            if self._closed:
                return
            self._wanted.append(character)
            if self._busy:
                return
            self._busy = True
        try:
            worker = self._start(self._work, "hair rig server")
        except RuntimeError:
            _log.exception("no thread could be started for the rig server")
            with self._lock:
                self._busy = False
            return
        with self._lock:
            self._workers = [each for each in self._workers if each.is_alive()] + [worker]

    def _went(self, _: Any, *, character: Character) -> None:
        with self._lock:
            self._done.pop(character, None)
            self._failed.pop(character, None)

    def _work(self) -> None:
        """Bake until nothing is wanted; the thread ends then, so an idle server has none."""
        while (next_one := self._take()) is not None:
            self._bake(*next_one)

    def _take(self) -> tuple[Character, Accessory] | None:
        """Return an accessory that has not been looked at yet, or None if there is none."""
        with self._lock:
            while self._wanted and not self._closed:
                character = self._wanted[0]
                if character.stage is self.stage:
                    done = self._done.setdefault(character, set())
                    for accessory in character.accessories:
                        if accessory not in done:
                            done.add(accessory)
                            return character, accessory
                self._wanted.popleft()
            self._busy = False
            return None

    def _bake(self, character: Character, accessory: Accessory) -> None:
        if accessory.source is None or not guarded(self._match, accessory):
            return
        try:
            key = self.store.key(accessory.source, self._options)
            if self.store.get(key) is None:
                rigged = self._rigger(accessory.source, **self._options)
                self.store.put(key, rigged.to_bytes(".glb"))
        except Exception as raised:
            error = as_rig_error(raised, accessory)
            with self._lock:
                if character in self._done:
                    failures = self._failed.setdefault(character, [])
                    failures.append(Failure(character, accessory, error))
            _log.warning("%s of %s is left as it is: %s", accessory.name, character.name, error)
