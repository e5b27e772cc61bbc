"""Grooms: roots on a scalp and the rest pose of every guide, in NumPy alone."""

from hairkit.groom.model import Groom
from hairkit.groom.plan import grow

__all__ = ["Groom", "grow"]
