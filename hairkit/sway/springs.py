"""The numbers of VRM's spring bones that swing as `ChainSettings` say.

VRM's reference moves a bone's tail once a frame, dt = 1 / frame rate seconds::

    next = tail + (tail - before) * (1 - dragForce)
         + dt * stiffness * rest_direction + dt * gravityPower * gravityDir

and then puts it back to the bone's length L from the bone's head. Drag is not scaled by dt, and
what pulls is a length in dt rather than one in dt squared: played at another frame rate, the same
numbers swing otherwise. So numbers hold for one frame rate, which has to be stated.

With a the small angle between a bone and its rest direction, q = 1 - dragForce, and K the sum of
``dt / L`` times what pulls along the rest direction, the reference says of angles one frame apart
``(1 + K) * a2 = a1 + q * (a1 - a0)``. It has two modes, which multiply angles by z1 and z2 a frame,
with ``z1 + z2 = (1 + q) / (1 + K)`` and ``z1 * z2 = q / (1 + K)``.

What is meant is ``a'' = -drag * a' - pull * a``, at any frame rate, with drag = -60 ln(damping) and
pull the spring of the stiffness, -60 ln(1 - stiffness) * drag, and a pendulum's. Its modes are
``exp(r1 * t)`` and ``exp(r2 * t)``, r1 and r2 the roots of ``r**2 + drag * r + pull = 0``. Both
move alike, frame by frame, if z1 = exp(r1 * dt) and z2 = exp(r2 * dt)::

    P = exp(-drag * dt)            B = 1 - (1 - z1) * (1 - z2)
    dragForce = 1 - P / B          K = 1 / B - 1

Without anything that pulls, that is ``dragForce = 1 - damping ** (60 * dt)``; at many frames a
second, K is about ``pull * dt**2``.

At few frames a second, fast swings die down faster by the reference's own rounding than they
should, and no drag is less than none: then dragForce is 0 and K stays. A bone that would swing
through more than about a quarter of its period in a frame does not swing: dragForce is 1, and K
brings it back as fast as its swings would have died down, or half of the way a frame.
"""

from dataclasses import dataclass

import numpy as np

from hairkit.errors import RigError

SLOWEST, FASTEST = 10.0, 1000.0
"""Frame rates that numbers are made for."""


@dataclass(frozen=True, kw_only=True)
class SpringNumbers:
    """Numbers of VRM's spring bones, for one frame rate."""

    drag: float
    """``dragForce``, 0 to 1."""

    pull: float
    """K * frame rate: what pulls along the rest direction of a bone of 1 m [1/s]; it grows with
    the bone's length."""

    exact: bool
    """Whether swings are as meant, and do not die down faster."""


def spring_numbers(drag: float, pull: float, frame_rate: float) -> SpringNumbers:
    """Return the numbers with which VRM's reference swings as meant; see the module.

    Args:
        drag: Rate at which speed is lost [1/s], 0 or more.
        pull: What pulls back to the rest pose, for each unit of mass [1/s^2], 0 or more.
        frame_rate: Frames a second at which it will be played, 10 to 1000.

    Raises:
        RigError: The frame rate is out of range.
    """
    check_number("frame_rate", frame_rate, SLOWEST, FASTEST)
    root = np.sqrt(complex(0.25 * drag * drag - pull))
    # In this form a weak pull is not lost in a strong drag.
    fast = -0.5 * drag - root
    slow = pull / fast if abs(fast) > 0.0 else 0.0
    both = 1.0 - float((np.expm1(fast / frame_rate) * np.expm1(slow / frame_rate)).real)
    product = float(np.exp(-drag / frame_rate))
    if abs(fast.imag) > 0.5 * np.pi * frame_rate or both <= 0.0:
        ratio, force, exact = max(product**-0.5 - 1.0, 1.0), 1.0, False
    else:
        ratio = 1.0 / both - 1.0
        force = 1.0 - product / both
        exact = force > -1e-9
    return SpringNumbers(
        drag=float(np.clip(force, 0.0, 1.0)), pull=max(ratio, 0.0) * frame_rate, exact=exact
    )


def check_number(name: str, value: float, least: float, most: float = np.inf) -> None:
    """Refuse what is no number or out of range.

    Raises:
        RigError: It is.
    """
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or not least <= value <= most:
        wanted = f"{least:g}..{most:g}" if np.isfinite(most) else f"{least:g} or more"
        raise RigError("bad option", f"{name}: expected a number {wanted}, got {value!r}")
