"""Errors a user can act on: one line with the thing, the value, and what was expected."""

import difflib
from collections.abc import Iterable


class HairkitError(ValueError):
    """Base of the errors hairkit raises on purpose; the command line prints it and exits 2."""


class StyleError(HairkitError):
    """A style's name, file, key or value is wrong."""


class HeadError(HairkitError):
    """A head mesh cannot be read, has no faces, or has no scalp."""


class GroomError(HairkitError):
    """Roots, directions, lengths or counts do not make a groom."""


class FileError(HairkitError):
    """A file cannot be read or written, or its format is not known."""


class FileWarning(UserWarning):
    """Something in a file was left out, looks wrong, or has no place in the file's format."""


class RigError(HairkitError):
    """A hair mesh cannot be rigged, or must not be; nothing was changed.

    ``reason`` says what is wrong and what was expected; the message has the file's name before it,
    where there is a file. ``kind`` names the sort of failure: ``no vertices``, ``not finite``,
    ``above root``, ``bad option``, ``no such mesh``, ``already skinned``, ``no skin``,
    ``unsupported``, ``not permitted``, ``unreadable``, ``out of memory``, ``lost skin``; and for
    springs ``old version`` (an avatar or springs of another VRM than 1.0) and ``no length`` (bones
    that the scene scales to nothing). ``unexpected`` stands for an error that a manager met and
    that is none of these.
    """

    def __init__(self, kind: str, reason: str, where: str = "") -> None:
        """Keep all three.

        Args:
            kind: One of those above.
            reason: What is wrong.
            where: The file, where there is one.
        """
        super().__init__(f"{where}: {reason}" if where else reason)
        self.kind = kind
        self.reason = reason
        self.where = where


class BackendError(HairkitError):
    """A backend that was asked for does not work on this machine."""


class SessionError(HairkitError):
    """Taichi's runtime was used after it was closed, or from a thread that does not own it."""


class WorldError(HairkitError):
    """A step, pose, collider or setting of a world is out of range."""


class FitError(HairkitError):
    """A target, parameter or option of a fit is wrong."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the known name closest to a wrong one, or nothing."""
    close = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
