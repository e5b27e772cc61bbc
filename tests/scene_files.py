"""Strand sets, damaged files and watched folders for the tests of scene formats."""

import ctypes
import importlib
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from hairkit.errors import FileError
from hairkit.io.guard import limit
from hairkit.io.strand_set import StrandSet

COUNTS = np.array([2, 3, 5, 9], np.int32)
FIELDS = ("widths", "colors", "root_uv", "root_normals", "ids", "groups", "guides")


def full_set(frames: int = 1, *, start: float = 0.0) -> StrandSet:
    """Return four strands that have everything a scene format can hold."""
    rng = np.random.default_rng(4)
    total, strands = int(COUNTS.sum()), len(COUNTS)
    normals = rng.normal(size=(strands, 3))
    return StrandSet(
        points=rng.normal(size=(frames, total, 3)).astype(np.float32),
        counts=COUNTS,
        times=start + np.arange(frames) / 60,
        widths=rng.uniform(1e-5, 1e-4, total).astype(np.float32),
        colors=rng.random((total, 3)).astype(np.float32),
        root_uv=rng.random((strands, 2)).astype(np.float32),
        root_normals=normals / np.linalg.norm(normals, axis=1, keepdims=True),
        ids=np.array([7, 5, 3, 11]),
        groups=np.array([0, 1, 1, 0]),
        guides=np.array([True, False, False, True]),
    )


def given(value: np.ndarray | None) -> np.ndarray:
    """Return a field that must be there."""
    assert value is not None
    return value


@contextmanager
def opened_in(folder: Path) -> Iterator[list[str]]:
    """Collect the names of files in a folder that any process opens meanwhile (inotify)."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    assert watch >= 0
    assert libc.inotify_add_watch(watch, os.fsencode(folder), 0x20) >= 0
    names: list[str] = []
    try:
        yield names
        try:
            data = os.read(watch, 1 << 16)
        except BlockingIOError:
            data = b""
        while data:
            length = int.from_bytes(data[12:16], "little")
            names.append(os.fsdecode(data[16 : 16 + length].rstrip(b"\0")))
            data = data[16 + length :]
    finally:
        os.close(watch)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return bytes cut short, with some removed, or with numbers and bits changed."""
    changed = bytearray(data)
    where = rng.randrange(len(changed) - 8)
    kind = rng.randrange(5)
    if kind == 0:
        del changed[where:]
    elif kind == 1:
        del changed[where : where + rng.randrange(1, 64)]
    elif kind == 2:
        changed[where : where + 8] = (1 << rng.randrange(64)).to_bytes(8, "little")
    elif kind == 3:
        changed[where : where + 4] = rng.choice([b"\xff" * 4, b"\0" * 4, b"\xff\xff\xff\x7f"])
    else:
        for _ in range(rng.randrange(1, 8)):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def read_damaged(reader: str, path: Path, number: int, **options: object) -> Counter[str]:
    """Read damaged copies of a file, each in a fork with the reader's limits, and count the ends.

    A native crash or a refused allocation ends the fork, as it ends the process that
    `hairkit.io.guard` starts; what may not be is work over 2 s, memory over 1 GB, or an exception
    that is none of ours.
    """
    module, function = reader.split(":")
    call = getattr(importlib.import_module(module), function)
    data, rng = path.read_bytes(), random.Random(8)
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        for _ in range(number):
            copy.write_bytes(damaged(data, rng))
            child = os.fork()
            if child == 0:
                try:
                    silent = os.open(os.devnull, os.O_WRONLY)
                    os.dup2(silent, 1)
                    os.dup2(silent, 2)
                    limit(2, 512 << 20)
                    call(copy, **options)
                    os._exit(0)
                except FileError:
                    os._exit(1)
                except MemoryError:
                    os._exit(2)
                except BaseException:
                    os._exit(3)
            _, status, used = os.wait4(child, 0)
            if os.WIFSIGNALED(status):
                end = f"signal {os.WTERMSIG(status)}"
                path.with_stem("crashed").write_bytes(copy.read_bytes())
            else:
                end = ("valid", "error", "memory", "exception")[os.WEXITSTATUS(status)]
            ends[end] += 1
            ends["over 1 GB"] += used.ru_maxrss > 1 << 20
    return ends


if __name__ == "__main__":
    options = {"scale": None} if sys.argv[2].endswith(".abc") else {}
    for end, times in read_damaged(
        sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), **options
    ).items():
        print(f"{end}\t{times}")
