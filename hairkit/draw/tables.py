"""What a picture's launches take, in arrays of the device: sent once a picture, read by all."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hairkit.backend import Launcher, ti
from hairkit.draw.expand import HAIR_NUMBERS
from hairkit.draw.shade import LOOK_NUMBERS, VIEW_NUMBERS

WHOLE_NUMBERS = 13
"""Whole numbers of each head's launches, laid out as in `expand`."""


@ti.kernel
def receive(
    # layout
    view_count: ti.i32,
    look_count: ti.i32,
    hair_count: ti.i32,
    whole_count: ti.i32,
    # control
    source: ti.types.ndarray(dtype=ti.f32, ndim=1),
    # out
    view_out: ti.types.ndarray(dtype=ti.f32, ndim=1),
    look_out: ti.types.ndarray(dtype=ti.f32, ndim=2),
    hair_out: ti.types.ndarray(dtype=ti.f32, ndim=1),
    whole_out: ti.types.ndarray(dtype=ti.i32, ndim=1),
):
    """Take numbers apart that came in one array.

    Args:
        view_count: Numbers of the picture, which come first.
        look_count: Numbers of all looks, next.
        hair_count: Numbers of one head, next.
        whole_count: Whole numbers of one head as the bits of floats, last.
        source: All of them.
        view_out: Numbers of the picture, laid out as in `shade`.
        look_out: Numbers of each head's look, laid out as in `shade`.
        hair_out: Numbers of the head, laid out as in `expand`.
        whole_out: Whole numbers of the head, laid out as in `expand`.
    """
    for i in range(view_count + look_count + hair_count + whole_count):
        value = source[i]
        look, hair = i - view_count, i - view_count - look_count
        whole = hair - hair_count
        if look < 0:
            view_out[i] = value
        elif hair < 0:
            width = look_out.shape[1]
            look_out[look // width, look % width] = value
        elif whole < 0:
            hair_out[hair] = value
        else:
            whole_out[whole] = ti.bit_cast(value, ti.i32)


class Tables:
    """Numbers of a picture and its heads on the device."""

    def __init__(self) -> None:
        """Make room for no head yet."""
        self.view = ti.ndarray(ti.f32, (VIEW_NUMBERS,))
        self.look: Any = None
        self.hair: list[Any] = []
        self.whole: list[Any] = []
        self._sources: list[NDArray[np.float32]] = []

    def send(
        self,
        launch: Launcher,
        view: NDArray[np.float32],
        look: NDArray[np.float32],
        hairs: Sequence[NDArray[np.float32]],
        wholes: Sequence[NDArray[np.int32]],
    ) -> None:
        """Send a picture's numbers.

        Args:
            launch: Launches the kernel.
            view: Numbers of the picture.
            look: Numbers of each head's look, one row at least.
            hairs: Numbers of each head.
            wholes: Whole numbers of each head.
        """
        if self.look is None or self.look.shape[0] != len(look):
            self.look = ti.ndarray(ti.f32, look.shape)
            self._sources.clear()
        heads = max(len(hairs), 1)
        while len(self.hair) < heads:
            self.hair.append(ti.ndarray(ti.f32, (HAIR_NUMBERS,)))
            self.whole.append(ti.ndarray(ti.i32, (WHOLE_NUMBERS,)))
        for index in range(heads):
            first = (view, look.reshape(-1)) if index == 0 else ()
            own = (hairs[index], wholes[index].view(np.float32)) if hairs else ()
            parts = np.concatenate([*first, *own])
            if len(self._sources) <= index:
                self._sources.append(np.zeros(len(parts), np.float32))
            source = self._sources[index]
            if len(source) != len(parts):
                source = self._sources[index] = np.zeros(len(parts), np.float32)
            source[:] = parts
            launch(
                receive,
                VIEW_NUMBERS if first else 0,
                len(look) * LOOK_NUMBERS if first else 0,
                HAIR_NUMBERS if own else 0,
                WHOLE_NUMBERS if own else 0,
                source,
                self.view,
                self.look,
                self.hair[index],
                self.whole[index],
            )
