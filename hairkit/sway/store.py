"""A folder of baked hair, by what it was made from; safe for several processes at once.

A bake is a file whose name is the hash of all that it depends on. It is written beside its place
and renamed into it, which is one step for the file system: a reader sees the whole file or none.
No lock is needed beside that, since two processes that bake the same key write the same thing, and
whichever renames last only replaces it by its equal. A reader that has opened a file keeps its
bytes even when another process removes or replaces it.

Files end with a hash of their content. One that was cut short or changed, as after the power went,
is found out by that, dropped, and baked again; so nothing waits for the disk either (no fsync).
"""

import hashlib
import inspect
import json
import logging
import os
import re
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hairkit.errors import HairkitError
from hairkit.io.files import check_folder, check_input
from hairkit.io.gltf import Gltf

BAKE_VERSION = 1
"""Raised whenever the same mesh and options bake to something else, so that old bakes are left."""

ENDING = ".bake"
PART = ".part"
STALE_S = 3600.0
"""Age at which a file that is still being written is one that nobody finished."""

_HASH_BYTES = 32
_log = logging.getLogger("hairkit.sway")


class BakeStore:
    """Bakes on disk, the least recently used removed when there are too many bytes of them."""

    def __init__(self, folder: str | os.PathLike[str], *, max_bytes: int = 2**30) -> None:
        """Open a store, or make one.

        Args:
            folder: Where; it is made where only its parent exists.
            max_bytes: Most bytes of all bakes together, above 0.

        Raises:
            FileError: It cannot be made or written.
            HairkitError: ``max_bytes`` is not above 0.
        """
        if max_bytes < 1:
            raise HairkitError(f"max_bytes {max_bytes!r}: expected above 0")
        self.folder = check_folder(folder, make=True)
        self.max_bytes = max_bytes

    def key(self, source: Any, options: Mapping[str, Any] | None = None) -> str:
        """Return what a bake is found by: a hash of mesh, options and how hairkit bakes.

        Args:
            source: What `hairkit.rig` takes.
            options: Of the rig; one that is left out counts as its default.

        Raises:
            HairkitError: The source or an option cannot be read.
        """
        digest = hashlib.sha256(f"hairkit bake {BAKE_VERSION}\n".encode())
        digest.update(_options_text(options or {}).encode())
        _add_source(digest, source)
        return digest.hexdigest()

    def baked(self, source: Any, options: Mapping[str, Any] | None = None) -> bytes | None:
        """Return the bake of a mesh, the bytes of a .glb file, or None if there is none.

        Raises:
            HairkitError: As `key`.
        """
        return self.get(self.key(source, options))

    def get(self, key: str) -> bytes | None:
        """Return what a key stands for, or None; a file that went bad is dropped.

        Raises:
            HairkitError: The key is none.
        """
        path = self._path(key)
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.warning("%s: cannot be read (%s)", path, error.strerror or error)
            return None
        content, trailer = raw[:-_HASH_BYTES], raw[-_HASH_BYTES:]
        if trailer != hashlib.sha256(key.encode() + content).digest():
            _log.warning("%s: is not whole and is dropped", path)
            _remove(path)
            return None
        try:
            os.utime(path)
        except OSError:
            # Removed by another process, or not ours to touch: it counts as old then.
            pass
        return content

    def put(self, key: str, content: bytes) -> bool:
        """Keep what a key stands for, then remove the least recently used if there is too much.

        Args:
            key: What `key` returned.
            content: The bake.

        Returns:
            Whether it was kept; what is larger than the whole store is not, nor what the disk has
            no room for.

        Raises:
            HairkitError: The key is none.
        """
        path = self._path(key)
        if len(content) + _HASH_BYTES > self.max_bytes:
            _log.warning("a bake of %d bytes is more than the store holds", len(content))
            return False
        # A name of its own for each writer, so that no two write into one file.
        beside = self.folder / f"{key}.{os.getpid()}.{secrets.token_hex(8)}{PART}"
        try:
            with open(beside, "xb") as file:
                file.write(content)
                file.write(hashlib.sha256(key.encode() + content).digest())
            os.replace(beside, path)
        except OSError as error:
            _log.warning("%s: cannot be written (%s)", path, error.strerror or error)
            return False
        finally:
            beside.unlink(missing_ok=True)
        self.trim()
        return True

    def trim(self) -> None:
        """Remove the least recently used bakes while there are too many bytes, and old remains.

        A bake that is being read is not harmed: who has opened a file keeps its bytes, and where
        the system does not have it so it refuses to remove the file, which then stays.
        """
        bakes: list[tuple[int, int, Path]] = []
        for path in self.folder.iterdir():
            try:
                state = path.stat()
            except OSError:
                continue
            if path.suffix == ENDING:
                bakes.append((state.st_mtime_ns, state.st_size, path))
            elif path.suffix == PART and state.st_mtime < time.time() - STALE_S:
                _remove(path)
        total = sum(size for _, size, _ in bakes)
        for _, size, path in sorted(bakes, key=lambda bake: bake[0]):
            if total <= self.max_bytes:
                break
            if _remove(path):
                total -= size

    def _path(self, key: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{64}", key):
            raise HairkitError(f"key {key!r}: expected 64 hexadecimal digits")
        return self.folder / f"{key}{ENDING}"


def _remove(path: Path) -> bool:
    """Remove a file, and return whether it is gone."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _options_text(options: Mapping[str, Any]) -> str:
    """Return options as text, the same for the same rig."""
    from hairkit.rigging import rig  # not at import: reading a bake by its key needs no rigging

    known = inspect.signature(rig).parameters
    whole = {
        name: known[name].default for name in known if known[name].kind is known[name].KEYWORD_ONLY
    }
    whole |= options
    return json.dumps({name: _plain(name, whole[name]) for name in sorted(whole)})


def _plain(name: str, value: Any) -> Any:
    """Return an option as JSON holds it."""
    if value is None or isinstance(value, str | bool | int):
        return value
    try:
        return np.asarray(value, dtype=np.float64).tolist()
    except (TypeError, ValueError):
        raise HairkitError(f"option {name} {value!r}: expected a number, text or numbers") from None


def _add_source(digest: Any, source: Any) -> None:
    """Add to a hash all that a mesh is made of."""
    if isinstance(source, str | os.PathLike):
        path = check_input(source, "a hair mesh")
        ending = path.suffix.lower()
        _add(digest, ending.encode())
        if ending == ".gltf":
            # Its numbers lie in other files.
            document = Gltf.read(path)
            _add(digest, json.dumps(document.json, sort_keys=True).encode())
            for buffer in document.buffers:
                _add(digest, buffer or b"")
        else:
            _add(digest, _bytes_of(path))
    elif hasattr(source, "export"):
        _add(digest, bytes(source.export(file_type="glb")))
    elif isinstance(source, tuple | list) and len(source) == 2:
        try:
            vertices = np.ascontiguousarray(source[0], dtype="<f8")
            faces = np.ascontiguousarray(source[1], dtype="<i8")
        except (TypeError, ValueError):
            raise HairkitError("source: expected vertices (v, 3) and faces (f, 3)") from None
        for array in (vertices, faces):
            _add(digest, repr(array.shape).encode())
            _add(digest, array.tobytes())
    else:
        raise HairkitError(f"source: expected a file, a mesh or arrays, got {type(source)}")


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise HairkitError(f"{path}: cannot be read ({error.strerror or error})") from error


def _add(digest: Any, part: bytes) -> None:
    """Add bytes to a hash with their count, so that no two lists of parts look the same."""
    digest.update(len(part).to_bytes(8, "little"))
    digest.update(part)
