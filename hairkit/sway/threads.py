"""Threads that work is done on, behind a door that other ways of running it fit through."""

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol


class Running(Protocol):
    """Work that was started; `threading.Thread` is one."""

    def is_alive(self) -> bool:
        """Return whether it still runs."""
        ...

    def join(self, timeout: float | None = None) -> None:
        """Wait until it ends, or for so long [s]."""
        ...


Start = Callable[[Callable[[], Any], str], Running]
"""Starts work by a name on a thread of its own."""


def start_thread(work: Callable[[], Any], name: str) -> threading.Thread:
    """Start work on a new thread.

    Args:
        work: What it does; it must not raise.
        name: What debuggers call it.

    Returns:
        The thread. It does not keep the program from ending.
    """
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def wait_for(running: list[Running], timeout: float) -> int:
    """Wait until work ends.

    Args:
        running: The work; the calling thread's own is passed over.
        timeout: How long for all of it together [s].

    Returns:
        How much of it still runs.
    """
    # Real time, whatever clock deadlines go by: a thread takes real time to end.
    end = time.monotonic() + timeout
    for each in running:
        if each is not threading.current_thread():
            each.join(max(0.0, end - time.monotonic()))
    return sum(each.is_alive() for each in running)
