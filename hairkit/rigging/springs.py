"""What `damping` and `stiffness` mean, and the numbers of VRM's spring bones that do the same.

VRM's reference moves a bone's tail once a frame, dt = 1 / frame rate seconds::

    next = tail + (tail - before) * (1 - dragForce)
         + dt * stiffness * rest_direction + dt * gravityPower * gravityDir

and then puts it back to the bone's length L from the bone's head. Drag is not scaled by dt, and
what pulls is a length in dt rather than one in dt squared: played at another frame rate, the same
numbers swing otherwise. So numbers hold for one frame rate, which has to be stated.

With the small angle a between a bone and its rest direction, K = dt * stiffness / L and
q = 1 - dragForce, the reference is ``(1 + K) * a'' = a' + q * (a' - a)`` for three frames that
follow one another. Its two modes are the roots of ``z**2 - S * z + P = 0`` with
``S = (1 + q) / (1 + K)`` and ``P = q / (1 + K)``: by z an angle grows or shrinks a frame.

Our settings say what happens in 1/60 s, at any frame rate: without stiffness a swing keeps
`damping` of its speed (q), without inertia a bone goes `stiffness` of its way back (K / (1 + K)).
Together they are the roots z1, z2 of ``z**2 - (1 - k)(1 + D) z + (1 - k) D = 0`` with D the damping
and k the stiffness. A frame of 1 / f seconds is r = 60 / f of 1/60 s, and has the modes z1**r and
z2**r. With S = z1**r + z2**r and P = (z1 * z2)**r they are, solved for the numbers::

    K = 1 / (S - P) - 1        stiffness = K * f * L        dragForce = 1 - P / (S - P)

At 60 frames a second that is ``dragForce = 1 - D`` and ``stiffness = 60 * L * k / (1 - k)``;
without stiffness it is ``dragForce = 1 - D**r``. Gravity of g m/s2 is ``gravityPower = g / 60`` at
60 frames a second, and changes with the frame rate as stiffness does, so that hair hangs as far
from its rest pose. Without stiffness, what it changes by is ``(1 - D**r) / (1 - D)``, which keeps
the speed at which hair falls.

At few frames a second, a fast swing loses more by the reference's own rounding than it should. No
drag can undo that: then ``dragForce = 0`` and ``K = 1 / P - 1``, which keeps how fast swings die
down, and makes them slower.
"""

from dataclasses import dataclass

import numpy as np

from hairkit.errors import RigError

REFERENCE_RATE = 60.0
"""Frames a second at which damping and stiffness are what they say in one frame."""
SLOWEST, FASTEST = 10.0, 1000.0
"""Frame rates that numbers are made for."""
STIFFEST = 0.99
"""Greatest stiffness: with 1, a pull would have no end."""
_NO_PULL = 1e-9
"""Stiffness below which its own mode is lost in rounding."""


@dataclass(frozen=True, kw_only=True)
class SpringNumbers:
    """Numbers of VRM's spring bones, for one frame rate."""

    drag: float
    """``dragForce``, 0 to 1."""

    pull: float
    """``stiffness`` of a bone of 1 m [1/s]; it grows with the bone's length."""

    fall: float
    """``gravityPower`` of 1 m/s2 [s]."""

    held: bool
    """Whether swings are slower than meant, because drag cannot be less than none."""


def spring_numbers(damping: float, stiffness: float, frame_rate: float) -> SpringNumbers:
    """Return the numbers with which VRM's reference swings as meant; see the module.

    Args:
        damping: Share of a swing's speed left after 1/60 s without stiffness, 0 to 1.
        stiffness: Share of the way back to the rest pose gone in 1/60 s without inertia, 0 to 0.99.
        frame_rate: Frames a second at which it will be played, 10 to 1000.

    Raises:
        RigError: A number is out of range.
    """
    check_number("damping", damping, 0.0, 1.0)
    check_number("stiffness", stiffness, 0.0, STIFFEST)
    check_number("frame_rate", frame_rate, SLOWEST, FASTEST)
    part = REFERENCE_RATE / frame_rate
    if stiffness < _NO_PULL:
        kept = damping**part
        longer = part if damping > 1.0 - _NO_PULL else (1.0 - kept) / (1.0 - damping)
        pull = REFERENCE_RATE * stiffness * longer
        return SpringNumbers(drag=1.0 - kept, pull=pull, fall=longer / REFERENCE_RATE, held=False)
    left = 1.0 - stiffness
    half = 0.5 * left * (1.0 + damping)
    root = np.sqrt(complex(half * half - left * damping))
    one, two = (half + root) ** part, (half - root) ** part
    product = (left * damping) ** part
    # S - P of the module: less than 0 where a swing turns round within a frame.
    both = 1.0 - float(((1.0 - one) * (1.0 - two)).real)
    held = both <= 0.0 or product > both * (1.0 + 1e-12)
    if held:
        ratio, drag = 1.0 / product - 1.0, 0.0
    else:
        ratio, drag = 1.0 / both - 1.0, float(np.clip(1.0 - product / both, 0.0, 1.0))
    pull = ratio * frame_rate
    fall = pull * left / (stiffness * REFERENCE_RATE**2)
    return SpringNumbers(drag=drag, pull=pull, fall=fall, held=held)


def check_number(name: str, value: float, least: float, most: float = np.inf) -> None:
    """Refuse what is no number or out of range.

    Raises:
        RigError: It is.
    """
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or not least <= value <= most:
        wanted = f"{least:g}..{most:g}" if np.isfinite(most) else f"{least:g} or more"
        raise RigError("bad option", f"{name}: expected a number {wanted}, got {value!r}")
