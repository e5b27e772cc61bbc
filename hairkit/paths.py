"""Where hairkit finds the files that come with it, and where it may keep files of its own."""

import os
import sys
import tempfile
from functools import cache
from pathlib import Path

from hairkit.errors import FileError

_PACKAGE = Path(__file__).resolve().parent


def styles_dir() -> Path:
    """Return the folder of the style files that come with hairkit."""
    return _shipped("styles")


def assets_dir() -> Path:
    """Return the folder of the meshes and pictures that come with hairkit."""
    return _shipped("assets")


def cache_dir() -> Path:
    """Return the folder for files that can be made again; it exists and can be written.

    `HAIRKIT_CACHE` names it; without that it is the platform's cache folder, or, where that cannot
    be written (a read-only home), a private folder for this process.

    Raises:
        FileError: `HAIRKIT_CACHE` names a folder that cannot be made or written.
    """
    wanted = os.environ.get("HAIRKIT_CACHE", "")
    if wanted:
        folder = Path(wanted).expanduser().absolute()
        if not _usable(folder):
            raise FileError(
                f"HAIRKIT_CACHE={wanted}: expected a folder that can be made and written"
            )
        return folder
    folder = _platform_cache()
    return folder if folder is not None and _usable(folder) else _process_cache()


def _shipped(name: str) -> Path:
    # A wheel carries the folder inside the package, a checkout beside it. The package's own comes
    # first: beside an installed package lies site-packages, where such a name may be another's.
    for folder in (_PACKAGE / name, _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise FileError(
        f"{_PACKAGE / name}: the folder is missing; hairkit is not installed completely"
    )


def _platform_cache() -> Path | None:
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        return (
            Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "hairkit" / "Cache"
        )
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "hairkit"
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The base-directory rules say that a relative XDG_CACHE_HOME is to be ignored.
    return (base if base.is_absolute() else home / ".cache") / "hairkit"


def _usable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


@cache
def _process_cache() -> Path:
    # A name that others can guess in a shared temporary folder could be filled by them beforehand.
    return Path(tempfile.mkdtemp(prefix="hairkit-"))
