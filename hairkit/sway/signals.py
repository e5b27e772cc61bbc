"""Signals that tell of rigged hair, and a way to send one that no receiver can spoil."""

import logging
from collections.abc import Callable
from typing import Any

from blinker import Signal

_log = logging.getLogger("hairkit.sway")

hair_rigged = Signal("A manager rigged an accessory's hair.")
"""Sent by a manager, as sender, with ``character``, ``mesh`` (the accessory) and ``bone_names``:
once per rigged accessory, by the thread that calls `HairManager.update`."""

rig_failed = Signal("A manager could not rig an accessory's hair.")
"""Sent by a manager, as sender, with ``character``, ``mesh`` (the accessory) and ``error`` (the
`RigError`), by the thread that calls `HairManager.update`."""


def tell(signal: Signal, sender: Any, **what: Any) -> None:
    """Send a signal to every receiver; what a receiver raises is logged and stops nothing.

    Args:
        signal: The signal.
        sender: Who sends it.
        what: What it says.
    """
    for receiver in list(signal.receivers_for(sender)):
        guarded(receiver, sender, **what)


def guarded(callback: Callable[..., Any], *args: Any, **what: Any) -> Any:
    """Call a user's callback and return its answer, or None where it raised; that is logged."""
    try:
        return callback(*args, **what)
    except Exception:
        _log.exception("a callback raised: %r", callback)
        return None
