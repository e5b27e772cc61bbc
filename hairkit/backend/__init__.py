"""The only door to Taichi: sessions, the capability probe, and ``ti`` itself.

A maintained fork can take Taichi's place here: kernels use ``from hairkit.backend import ti`` and
nothing else.
"""

import os

# Taichi prints a banner and its version check at import; a library must not talk.
os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")
# In a notebook it would say so on stderr, and ask after each launch what kernels printed: nothing.
os.environ.setdefault("TI_ENABLE_PYBUF", "0")

from typing import Any

import taichi

from hairkit.backend.launch import Launcher, bind
from hairkit.backend.probe import BACKENDS, Probe, choose_backend, probe_backend, probe_backends
from hairkit.backend.session import Session, current_session, open_session

# Taichi has no type stubs; through Any, kernels are not checked against what is guessed of it.
ti: Any = taichi

__all__ = [
    "BACKENDS",
    "Launcher",
    "Probe",
    "Session",
    "bind",
    "choose_backend",
    "current_session",
    "open_session",
    "probe_backend",
    "probe_backends",
    "ti",
]
