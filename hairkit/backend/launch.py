"""Kernels launched again and again with the same arguments, without a look at them each time.

Taichi 1.7.4 looks at every argument of every call, 60 us for five: as long as a thousand guide
points take, and longer than most kernels of a picture take on a GPU. Here that is done once; arrays
are bound by address, so that what is written into them counts at the next launch.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import taichi

_MOST_LAUNCHES = 512
"""Bound launches that are kept; all are forgotten beyond, which is not wrong but slow."""


class _Launch:
    """A compiled kernel and how its arguments are set."""

    def __init__(self, kernel: Any, arguments: tuple[Any, ...]) -> None:
        from taichi.lang import impl

        primal = kernel._primal
        self._compiled = primal.compiled_kernels[primal.ensure_compiled(*arguments)]
        # Addresses are used for as long as this lives; so are the arrays.
        self._arguments = arguments
        self._setters: list[Callable[[Any], None]] = []
        self._arrays: list[tuple[tuple[int], Any]] = []
        at = 0
        for argument, value in zip(primal.arguments, arguments, strict=True):
            if isinstance(argument.annotation, taichi.template):
                continue
            if isinstance(value, taichi.Ndarray):
                self._arrays.append(((at,), value.arr))
            else:
                self._setters.append(_setter((at,), value))
            at += 1
        program: Any = impl.get_runtime().prog
        config = program.config()
        self._data = program.compile_kernel(config, program.get_device_caps(), self._compiled)
        self._launch = program.launch_kernel
        self._context: Any = None
        # A GPU's launch leaves addresses of its own in the context, and a second one crashes.
        self._once = impl.current_cfg().arch not in (taichi.x64, taichi.arm64)
        self._set()

    def _set(self) -> Any:
        """Return a context with all but Taichi's arrays set."""
        context = self._compiled.make_launch_context()
        for setter in self._setters:
            setter(context)
        self._context = context
        return context

    def __call__(self) -> None:
        context = self._set() if self._once else self._context
        # A launch turns a Taichi array's entry in the context into a plain address.
        for place, array in self._arrays:
            context.set_arg_ndarray(place, array)
        self._launch(self._data, context)


def _setter(place: tuple[int], value: Any) -> Callable[[Any], None]:
    """Return what sets one argument in a context."""
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise TypeError("expected a C-contiguous array")
        address, size, shape = int(value.ctypes.data), value.nbytes, value.shape
        return lambda c: c.set_arg_external_array_with_shape(place, address, size, shape, 0)
    if isinstance(value, float):
        return lambda context: context.set_arg_float(place, value)
    if isinstance(value, int):
        return lambda context: context.set_arg_int(place, value)
    raise TypeError("expected a number or an array")


def bind(kernel: Any, *arguments: Any) -> Callable[[], Any]:
    """Return a call of a kernel with these arguments.

    Where Taichi is built otherwise than known, it is an ordinary call. Gradient tapes do not see
    it.

    Args:
        kernel: A kernel that returns nothing.
        arguments: Its arguments: whole numbers for i32, floats for f32, templates, C-contiguous
            NumPy arrays and Taichi arrays. What a field or an array holds may change between
            launches, which array it is may not.
    """
    try:
        return _Launch(kernel, arguments)
    except (ImportError, AttributeError, TypeError):
        return lambda: kernel(*arguments)


class Launcher:
    """Launches kernels, and binds each when it meets it and its arguments for the first time."""

    def __init__(self) -> None:
        """Know no launch yet."""
        self._bound: dict[tuple[Any, ...], tuple[Callable[[], Any], tuple[Any, ...]]] = {}

    def __call__(self, kernel: Any, *arguments: Any) -> None:
        """Launch a kernel.

        Args:
            kernel: A kernel that returns nothing.
            arguments: As those of `bind`. Fields and arrays are told apart by which they are and
                kept alive.
        """
        key = (kernel, *(a if isinstance(a, int | float) else id(a) for a in arguments))
        found = self._bound.get(key)
        if found is None:
            if len(self._bound) >= _MOST_LAUNCHES:
                self._bound.clear()
            found = self._bound[key] = (bind(kernel, *arguments), arguments)
        found[0]()
