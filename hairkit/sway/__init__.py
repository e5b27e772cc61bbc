"""Whose hair sways: characters that come and go, their hair rigged once, budgets, a server.

No Taichi here: a world is whatever answers to `SwayWorld`.
"""

from hairkit.sway.binding import Binding, Swaying, SwayWorld
from hairkit.sway.budget import Budget
from hairkit.sway.manager import Failure, HairManager, attach
from hairkit.sway.matching import is_hair
from hairkit.sway.reading import read_boned
from hairkit.sway.server import RigServer
from hairkit.sway.settings import ChainSettings
from hairkit.sway.signals import hair_rigged, rig_failed
from hairkit.sway.stage import Accessory, Character, Stage
from hairkit.sway.store import BakeStore

__all__ = [
    "Accessory",
    "BakeStore",
    "Binding",
    "Budget",
    "ChainSettings",
    "Character",
    "Failure",
    "HairManager",
    "RigServer",
    "Stage",
    "SwayWorld",
    "Swaying",
    "attach",
    "hair_rigged",
    "is_hair",
    "read_boned",
    "rig_failed",
]
