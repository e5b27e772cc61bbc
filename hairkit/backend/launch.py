"""A kernel launched again and again with the same arguments, without a look at them each time.

Taichi 1.7.4 looks at every argument of every call, 60 us for the solver's five: as long as a
thousand guide points take. Here that is done once; arrays are bound by address, so that what is
written into them counts at the next launch.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import taichi


class _Launch:
    """A compiled kernel and a context with its arguments set."""

    def __init__(self, kernel: Any, arguments: tuple[Any, ...]) -> None:
        from taichi.lang import impl

        primal = kernel._primal
        compiled = primal.compiled_kernels[primal.ensure_compiled(*arguments)]
        self._context = compiled.make_launch_context()
        self._arrays: list[tuple[tuple[int], Any]] = []
        # Addresses are used for as long as this lives; so are the arrays.
        self._arguments = arguments
        if impl.current_cfg().arch not in (taichi.x64, taichi.arm64):
            # A CUDA launch leaves addresses of its own in the context, and a second one crashes.
            raise TypeError("expected the CPU")
        at = 0
        for argument, value in zip(primal.arguments, arguments, strict=True):
            if isinstance(argument.annotation, taichi.template):
                continue
            if isinstance(value, np.ndarray):
                if not value.flags.c_contiguous:
                    raise TypeError("expected a C-contiguous array")
                self._context.set_arg_external_array_with_shape(
                    (at,), int(value.ctypes.data), value.nbytes, value.shape, 0
                )
            elif isinstance(value, int):
                self._context.set_arg_int((at,), value)
            else:
                self._arrays.append(((at,), value.arr))
            at += 1
        program: Any = impl.get_runtime().prog
        self._data = program.compile_kernel(program.config(), program.get_device_caps(), compiled)
        self._launch = program.launch_kernel

    def __call__(self) -> None:
        # A launch turns a Taichi array's entry in the context into a plain address.
        for place, array in self._arrays:
            self._context.set_arg_ndarray(place, array)
        self._launch(self._data, self._context)


def bind(kernel: Any, *arguments: Any) -> Callable[[], Any]:
    """Return a call of a kernel with these arguments.

    On a GPU, and where Taichi is built otherwise than known, it is an ordinary call. Gradient tapes
    do not see it.

    Args:
        kernel: A kernel that returns nothing.
        arguments: Its arguments: whole numbers, templates, C-contiguous NumPy arrays and Taichi
            arrays. What a field or an array holds may change between launches, which array it is
            may not.
    """
    try:
        return _Launch(kernel, arguments)
    except (ImportError, AttributeError, TypeError):
        return lambda: kernel(*arguments)
