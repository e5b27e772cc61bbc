"""Fit: styles from shapes, by derivatives through the solver's own maths."""

from hairkit.fitting.gradient import loss_gradient
from hairkit.fitting.scene import Scene, drape
from hairkit.fitting.solve import FitResult, fit
from hairkit.fitting.strand_model import StrandModel
from hairkit.fitting.target import CloudTarget, PointTarget, StrandTarget, SurfaceTarget

__all__ = [
    "CloudTarget",
    "FitResult",
    "PointTarget",
    "Scene",
    "StrandModel",
    "StrandTarget",
    "SurfaceTarget",
    "drape",
    "fit",
    "loss_gradient",
]
