"""Whose hair sways: characters that come and go, their hair rigged once, budgets, a server.

No Taichi here: a world is whatever answers to `SwayWorld`. The names below are looked up on first
use, since the solver needs the settings alone.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hairkit.sway.binding import Binding as Binding
    from hairkit.sway.binding import Swaying as Swaying
    from hairkit.sway.binding import SwayWorld as SwayWorld
    from hairkit.sway.budget import Budget as Budget
    from hairkit.sway.manager import Failure as Failure
    from hairkit.sway.manager import HairManager as HairManager
    from hairkit.sway.manager import attach as attach
    from hairkit.sway.matching import is_hair as is_hair
    from hairkit.sway.reading import read_boned as read_boned
    from hairkit.sway.server import RigServer as RigServer
    from hairkit.sway.settings import ChainSettings as ChainSettings
    from hairkit.sway.signals import hair_rigged as hair_rigged
    from hairkit.sway.signals import rig_failed as rig_failed
    from hairkit.sway.stage import Accessory as Accessory
    from hairkit.sway.stage import Character as Character
    from hairkit.sway.stage import Stage as Stage
    from hairkit.sway.store import BakeStore as BakeStore
    from hairkit.sway.vrm import with_springs as with_springs

_HOME = {
    "Accessory": "stage",
    "BakeStore": "store",
    "Binding": "binding",
    "Budget": "budget",
    "ChainSettings": "settings",
    "Character": "stage",
    "Failure": "manager",
    "HairManager": "manager",
    "RigServer": "server",
    "Stage": "stage",
    "SwayWorld": "binding",
    "Swaying": "binding",
    "attach": "manager",
    "hair_rigged": "signals",
    "is_hair": "matching",
    "read_boned": "reading",
    "rig_failed": "signals",
    "with_springs": "vrm",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module and keep it, so that the next look-up is a plain one."""
    if name not in _HOME:
        raise AttributeError(f"module 'hairkit.sway' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"hairkit.sway.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Name the public names, also those that nothing has loaded yet."""
    return sorted({*globals(), *_HOME})
