"""A skeleton for a hair mesh that has none: plan it, rig the mesh, bake a file. NumPy only."""

from hairkit.rigging.plan import Bone, Plan, Weights, plan

__all__ = ["Bone", "Plan", "Weights", "plan"]
