"""Native file readers in a process of their own, with limits of time and memory.

The libraries that read OpenUSD and Alembic are C++ that trusts its input: a damaged file can end
the process, make it ask for all memory, or never come back. Here that ends the child only.
"""

import importlib
import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hairkit.errors import FileError

_MEGABYTE = 1 << 20
# Beside what reading needs: Python, NumPy and the library's own tables.
_SPARE = 512 * _MEGABYTE
_CHILD = "from hairkit.io.guard import main; main()"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a native reader gives back."""

    arrays: dict[str, np.ndarray]
    """Arrays by name, of numbers only."""

    warnings: list[str] = field(default_factory=list)
    """One line each."""


def budget(path: Path) -> int:
    """Return how many bytes the arrays read from a file may have: four times its own.

    Small files compress and repeat, so they may grow to some megabytes all the same.
    """
    return max(4 * path.stat().st_size, 64 * _MEGABYTE)


def read_guarded(
    reader: str, path: Path, *, library: str, memory: int, options: dict[str, Any]
) -> Found:
    """Run a native reader in another process and return its arrays.

    Args:
        reader: Module and function, such as ``hairkit.io.usd_stage:read``; called with the path
            and the options, it returns `Found` or raises `FileError`.
        path: The file.
        library: What to call the library in messages.
        memory: How many times the file's size the library may take to read it.
        options: Keyword arguments, plain JSON values.

    Raises:
        FileError: The reader raised it, or it crashed, took too long, or wanted too much memory.
    """
    size = path.stat().st_size
    seconds = 2 + size // (4 * _MEGABYTE)
    request = {
        "reader": reader,
        "path": os.fspath(path),
        "options": options,
        "seconds": seconds,
        "memory": _SPARE + memory * size,
    }
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        # Thread stacks count against the limit of memory, and a file is read by one anyway.
        "PXR_WORK_THREAD_LIMIT": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    # Assets are looked for beside the file, never along a path from the environment.
    environment.pop("PXR_AR_DEFAULT_SEARCH_PATH", None)
    with tempfile.TemporaryFile() as reply:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=reply,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        try:
            # A busy machine is not a hang: the limit proper is processor time, in the child.
            process.communicate(json.dumps(request).encode(), timeout=20 + 10 * seconds)
        except subprocess.TimeoutExpired as error:
            raise FileError(
                f"{path}: {library} was not done after {20 + 10 * seconds} s, expected a whole file"
            ) from error
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        reply.seek(0)
        if process.returncode == -signal.SIGXCPU:
            raise FileError(
                f"{path}: {library} was not done after {seconds} s of work, expected a whole file"
            )
        if process.returncode != 0:
            raise FileError(
                f"{path}: {library} failed on it (exit status {process.returncode}), "
                "expected a whole file"
            )
        return _receive(reply, path)


def main() -> None:
    """Answer one request on standard input with a line of JSON and the arrays' bytes."""
    # Libraries print what they like; only the answer goes to the pipe.
    with os.fdopen(os.dup(1), "wb") as reply:
        os.dup2(2, 1)
        request = json.loads(sys.stdin.buffer.read())
        module, function = request["reader"].split(":")
        path = Path(request["path"])
        try:
            call = getattr(importlib.import_module(module), function)
            limit(request["seconds"], request["memory"])
            found = call(path, **request["options"])
            _check_budget(found.arrays, path)
        except FileError as error:
            _send(reply, {"error": _one_line(error)}, {})
        except MemoryError:
            _send(reply, {"error": "wants more memory than a file of its size justifies"}, {})
        else:
            _send(reply, {"warnings": found.warnings}, found.arrays)
        reply.flush()
        # The libraries' own clean-up is no part of reading.
        os._exit(0)


def limit(seconds: int, memory: int) -> None:
    """Bound this process: seconds of processor time and bytes of memory from now on."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = int(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    total = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (total, total))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _check_budget(arrays: dict[str, np.ndarray], path: Path) -> None:
    total = sum(values.nbytes for values in arrays.values())
    if total > budget(path):
        raise FileError(
            f"holds {total} bytes of strands, expected {budget(path)} or fewer in a file of "
            f"{path.stat().st_size}"
        )


def _one_line(error: FileError) -> str:
    return " ".join(str(error).split())


def _send(reply: BinaryIO, head: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    ready = {name: np.ascontiguousarray(values) for name, values in arrays.items()}
    head["arrays"] = [
        {"name": name, "type": values.dtype.str, "shape": values.shape}
        for name, values in ready.items()
    ]
    reply.write(json.dumps(head).encode() + b"\n")
    for values in ready.values():
        reply.write(values.reshape(-1).view(np.uint8).data)


def _receive(reply: BinaryIO, path: Path) -> Found:
    head = json.loads(reply.readline())
    if "error" in head:
        raise FileError(f"{path}: {head['error']}")
    arrays: dict[str, np.ndarray] = {}
    for entry in head["arrays"]:
        shape = tuple(entry["shape"])
        values = np.fromfile(reply, entry["type"], count=math.prod(shape))
        arrays[entry["name"]] = values.reshape(shape)
    return Found(arrays=arrays, warnings=head["warnings"])
