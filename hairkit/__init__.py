"""hairkit: simulate, draw, fit and rig strands of hair.

``import hairkit as hk`` gives the public names below. They are looked up on first use, so importing
the package starts nothing: Taichi loads with the first `World`, trimesh with the first `Head`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hairkit import errors as errors
    from hairkit import motions as motions
    from hairkit.draw.camera import Camera as Camera
    from hairkit.errors import HairkitError as HairkitError
    from hairkit.errors import RigError as RigError
    from hairkit.fitting import CloudTarget as CloudTarget
    from hairkit.fitting import FitResult as FitResult
    from hairkit.fitting import PointTarget as PointTarget
    from hairkit.fitting import Scene as Scene
    from hairkit.fitting import StrandModel as StrandModel
    from hairkit.fitting import StrandTarget as StrandTarget
    from hairkit.fitting import SurfaceTarget as SurfaceTarget
    from hairkit.fitting import drape as drape
    from hairkit.fitting import fit as fit
    from hairkit.fitting import loss_gradient as loss_gradient
    from hairkit.groom import Groom as Groom
    from hairkit.groom import grow as grow
    from hairkit.head import Head as Head
    from hairkit.io.strand_groom import groom_from_strands as groom_from_strands
    from hairkit.io.strand_set import StrandSet as StrandSet
    from hairkit.io.strands import load_strands as load_strands
    from hairkit.io.strands import open_strands as open_strands
    from hairkit.io.strands import save_strands as save_strands
    from hairkit.rigging import Plan as Plan
    from hairkit.rigging import RiggedHair as RiggedHair
    from hairkit.rigging import may_edit as may_edit
    from hairkit.rigging import plan as plan
    from hairkit.rigging import rig as rig
    from hairkit.rigging import supported as supported
    from hairkit.sim.sag import sag_free as sag_free
    from hairkit.sim.world import World as World
    from hairkit.style import Style as Style
    from hairkit.style import Tie as Tie
    from hairkit.style import load_style as load_style
    from hairkit.style import melanin_color as melanin_color
    from hairkit.style import style_names as style_names
    from hairkit.sway.budget import Budget as Budget
    from hairkit.sway.manager import attach as attach
    from hairkit.sway.server import RigServer as RigServer
    from hairkit.sway.settings import ChainSettings as ChainSettings
    from hairkit.sway.signals import hair_rigged as hair_rigged
    from hairkit.sway.stage import Accessory as Accessory
    from hairkit.sway.stage import Character as Character
    from hairkit.sway.stage import Stage as Stage
    from hairkit.sway.store import BakeStore as BakeStore
    from hairkit.sway.vrm import with_springs as with_springs

__version__ = "0.1.0"

_HOME = {
    "Accessory": "hairkit.sway.stage",
    "BakeStore": "hairkit.sway.store",
    "Budget": "hairkit.sway.budget",
    "Camera": "hairkit.draw.camera",
    "ChainSettings": "hairkit.sway.settings",
    "Character": "hairkit.sway.stage",
    "CloudTarget": "hairkit.fitting",
    "FitResult": "hairkit.fitting",
    "Groom": "hairkit.groom",
    "HairkitError": "hairkit.errors",
    "Head": "hairkit.head",
    "Plan": "hairkit.rigging",
    "PointTarget": "hairkit.fitting",
    "RigError": "hairkit.errors",
    "RigServer": "hairkit.sway.server",
    "RiggedHair": "hairkit.rigging",
    "Scene": "hairkit.fitting",
    "Stage": "hairkit.sway.stage",
    "StrandModel": "hairkit.fitting",
    "StrandSet": "hairkit.io.strand_set",
    "StrandTarget": "hairkit.fitting",
    "Style": "hairkit.style",
    "SurfaceTarget": "hairkit.fitting",
    "Tie": "hairkit.style",
    "World": "hairkit.sim.world",
    "attach": "hairkit.sway.manager",
    "drape": "hairkit.fitting",
    "fit": "hairkit.fitting",
    "grow": "hairkit.groom",
    "groom_from_strands": "hairkit.io.strand_groom",
    "hair_rigged": "hairkit.sway.signals",
    "load_strands": "hairkit.io.strands",
    "load_style": "hairkit.style",
    "loss_gradient": "hairkit.fitting",
    "may_edit": "hairkit.rigging",
    "melanin_color": "hairkit.style",
    "open_strands": "hairkit.io.strands",
    "plan": "hairkit.rigging",
    "rig": "hairkit.rigging",
    "sag_free": "hairkit.sim.sag",
    "save_strands": "hairkit.io.strands",
    "style_names": "hairkit.style",
    "supported": "hairkit.rigging",
    "with_springs": "hairkit.sway.vrm",
}
_MODULES = ("errors", "motions", "paths", "shapes")


def __getattr__(name: str) -> Any:
    """Load a public name from its module and keep it, so that the next look-up is a plain one."""
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"hairkit.{name}")
    else:
        raise AttributeError(f"module 'hairkit' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Name the public names, also those that nothing has loaded yet."""
    return sorted({*globals(), *_HOME, *_MODULES})
