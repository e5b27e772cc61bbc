"""A skeleton for a hair mesh that has none: plan it, rig the mesh, bake a file. NumPy only."""

from hairkit.rigging.cards import plan_cards
from hairkit.rigging.gates import Permission, may_edit, supported
from hairkit.rigging.plan import Bone, Plan, Weights, plan
from hairkit.rigging.rig import RiggedHair, rig

__all__ = [
    "Bone",
    "Permission",
    "Plan",
    "RiggedHair",
    "Weights",
    "may_edit",
    "plan",
    "plan_cards",
    "rig",
    "supported",
]
