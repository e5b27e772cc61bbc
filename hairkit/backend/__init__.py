"""The only door to Taichi: sessions, the capability probe, and the ``ti`` that kernels are written in.

A maintained fork can take Taichi's place here: kernels use ``from hairkit.backend import ti`` and nothing else.
"""

import os

# Taichi prints a banner and its version check at import; a library must not talk.
os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")

import taichi as ti

from hairkit.backend.probe import BACKENDS, Probe, choose_backend, probe_backend, probe_backends
from hairkit.backend.session import Session, current_session, open_session

__all__ = [
    "BACKENDS",
    "Probe",
    "Session",
    "choose_backend",
    "current_session",
    "open_session",
    "probe_backend",
    "probe_backends",
    "ti",
]
