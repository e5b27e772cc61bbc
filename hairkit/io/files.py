"""Output files that are complete or absent: written beside their place, then renamed into it."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hairkit.errors import FileError, nearest


def check_output(path: str | os.PathLike[str], endings: Sequence[str]) -> Path:
    """Return an output path after making sure, before any work is done, that it can be written.

    Args:
        path: Where the file will go.
        endings: The endings that a writer exists for, such as ``.mp4``, lower case.

    Raises:
        FileError: The ending is not known, or the folder is missing, not a folder, or not writable.
    """
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in endings:
        known = ", ".join(endings)
        raise FileError(
            f"{target}: ending {ending or 'missing'!r} is not known, expected one of "
            f"{known}{nearest(ending, endings) if ending else ''}"
        )
    if target.is_dir():
        raise FileError(f"{target}: is a folder, expected a file name")
    check_folder(target.parent)
    return target


def check_folder(path: str | os.PathLike[str], *, make: bool = False) -> Path:
    """Return a folder after making sure that a file can be made in it.

    Args:
        path: The folder.
        make: Whether to make it where only its parent exists.

    Raises:
        FileError: It does not exist, is not a folder, or cannot be written to.
    """
    folder = Path(path)
    if make and not folder.exists() and folder.parent.is_dir():
        try:
            folder.mkdir()
        except OSError as error:
            raise FileError(f"{folder}: cannot be made ({error.strerror})") from error
    if not folder.exists():
        raise FileError(f"{folder}: no such folder, expected one that exists")
    if not folder.is_dir():
        raise FileError(f"{folder}: is a file, expected a folder")
    try:
        # Permission bits do not tell the truth about read-only mounts, nor for root.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FileError(
            f"{folder}: cannot be written to ({error.strerror}), expected a writable folder"
        ) from error
    return folder


def check_input(path: str | os.PathLike[str], what: str) -> Path:
    """Return the path of a file that must exist.

    Args:
        path: The file.
        what: What it should hold, for the message, such as "a strands file".

    Raises:
        FileError: There is no such file, or it is a folder.
    """
    source = Path(path)
    if source.is_dir():
        raise FileError(f"{source}: is a folder, expected {what}")
    if not source.is_file():
        raise FileError(f"{source}: no such file, expected {what}")
    return source


@contextmanager
def written_beside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path beside the wanted one to write to, and rename it into place at the end.

    Where the body raises, Ctrl-C included, the file beside is removed and what was at ``path``
    stays as it was. The name keeps its ending, since encoders choose by it.

    Raises:
        FileError: The system refused to write.
    """
    target = Path(path)
    beside = target.with_name(f".{target.stem}.{os.getpid()}.part{target.suffix}")
    try:
        yield beside
        os.replace(beside, target)
    except OSError as error:
        if error.filename not in (None, str(beside), str(target)):
            # Another file's trouble, met while this one was open.
            raise
        raise FileError(
            f"{target}: could not be written ({error.strerror or error}), "
            "expected room and permission"
        ) from error
    finally:
        beside.unlink(missing_ok=True)
