"""Who rigs what, and who has bound what, over all managers of a process.

Keys are held weakly and so are holders: what its owner has forgotten is free again.
"""

import threading
import weakref
from typing import Any

from hairkit.sway.stage import Accessory

_lock = threading.Lock()
_rigging: weakref.WeakKeyDictionary[Accessory, weakref.ref[Any]] = weakref.WeakKeyDictionary()
_bound: weakref.WeakKeyDictionary[Accessory, dict[int, weakref.ref[Any]]] = (
    weakref.WeakKeyDictionary()
)


def claim(accessory: Accessory, holder: Any) -> bool:
    """Claim an accessory for rigging.

    Args:
        accessory: The accessory.
        holder: Who rigs it, an object that can be weakly held.

    Returns:
        Whether it is the holder's now; False while another one has it.
    """
    with _lock:
        held = _rigging.get(accessory)
        if held is not None and held() not in (None, holder):
            return False
        _rigging[accessory] = weakref.ref(holder)
        return True


def release(accessory: Accessory, holder: Any) -> None:
    """Give a claim back; one that is another's stays."""
    with _lock:
        held = _rigging.get(accessory)
        if held is not None and held() in (None, holder):
            del _rigging[accessory]


def is_claimed(accessory: Accessory) -> bool:
    """Return whether somebody rigs an accessory."""
    with _lock:
        held = _rigging.get(accessory)
        return held is not None and held() is not None


def claim_bind(accessory: Accessory, world: Any, holder: Any) -> bool:
    """Claim the binding of an accessory into a world, so that no two managers do both bind it.

    Args:
        accessory: The accessory.
        world: The world; the holder keeps it alive.
        holder: Who binds it, an object that can be weakly held.

    Returns:
        Whether it is the holder's; False while another one has it.
    """
    with _lock:
        holders = _bound.setdefault(accessory, {})
        held = holders.get(id(world))
        if held is not None and held() not in (None, holder):
            return False
        holders[id(world)] = weakref.ref(holder)
        return True


def release_bind(accessory: Accessory, world: Any, holder: Any) -> None:
    """Give the claim of a binding back; one that is another's stays."""
    with _lock:
        holders = _bound.get(accessory)
        if holders is None:
            return
        held = holders.get(id(world))
        if held is not None and held() in (None, holder):
            del holders[id(world)]
        if not holders:
            del _bound[accessory]


def sizes() -> tuple[int, int]:
    """Return how many accessories are being rigged and how many are bound, by holders alive."""
    with _lock:
        rigging = sum(held() is not None for held in _rigging.values())
        bound = sum(any(h() is not None for h in holders.values()) for holders in _bound.values())
        return rigging, bound
