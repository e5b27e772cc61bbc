"""Fit: styles from shapes, by derivatives through the solver's own maths."""

from hairkit.fitting.scene import Scene, drape
from hairkit.fitting.solve import FitResult, fit
from hairkit.fitting.strand_model import StrandModel

__all__ = ["FitResult", "Scene", "StrandModel", "drape", "fit"]
