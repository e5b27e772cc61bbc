"""The sag-free start: rest values with which a groom's shape is its own equilibrium (NumPy only).

Statics first, tip to root. Where the shape is given, the energy of bending is linear in the rest
bends (the square of the whole is, but for a constant, what turns with the frame and what does not),
so each joint's bending force follows from what the joints nearer to the tip need: its two
components across the strand and the pull of the segment below it balance one point's weight. That
needs no stiffness; the stiffness says how far the rest bend must be from the bend.

Then stability. An equilibrium may be one that a strand falls out of: hair too soft for its own
weight. The energy's second variation at the shape is linear in the stiffness, so the least
stiffening that makes every small turn of the strand cost energy is the least eigenvalue of one small
matrix a strand.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hairkit.errors import GroomError
from hairkit.groom import Groom
from hairkit.poses import rigid
from hairkit.sim.layout import joint_stiffness, transport
from hairkit.style.model import RIGID_STRETCH

Array = NDArray[np.float64]

KNOTS = 24
"""Most places along a strand where its small turns are told apart when stability is looked at."""

FIRMNESS = 0.25
"""How firmly a strand must keep its shape, as the square of a frequency: a share of that of a
pendulum as long as it is."""

BATCH = 2_000_000
"""Numbers that one array of a batch of strands may have."""


def _dot(a: Array, b: Array) -> Array:
    return (a * b).sum(axis=-1, keepdims=True)


@dataclass(kw_only=True)
class _Rods:
    """Strands of equally many points in their shape, and what their joints must carry.

    Joint i bends points i - 1, i and i + 1; segment i leads from point i to the next; chord i from
    point i - 1 to point i + 1, chord 0 is the root edge, which the head holds.
    """

    x: Array
    """Points [m], shape (s, n, 3)."""

    stiffness: Array
    """Of each joint [1/s^2], shape (s, n)."""

    mass: Array
    """Of each point, 1 but for the tip, shape (n, 1)."""

    edge: Array
    """Unit directions of the segments, shape (s, n - 1, 3)."""

    size: Array
    """Their lengths [m], shape (s, n - 1, 1)."""

    u: Array
    """Unit directions of the chords, shape (s, n - 1, 3)."""

    inverse: Array
    """One over their lengths [1/m], shape (s, n - 1, 1)."""

    d: Array
    """Bend at each joint [m], shape (s, n - 1, 3); 0 at 0."""

    b: Array
    """Curvature binormal between chord i - 1 and chord i, shape (s, n - 1, 3); 0 at 0."""

    @classmethod
    def of(cls, x: Array, stiffness: Array) -> "_Rods":
        """Measure strands [m], shape (s, n, 3)."""
        step = np.diff(x, axis=1)
        size = np.linalg.norm(step, axis=2, keepdims=True)
        chord = step.copy()
        chord[:, 1:] += step[:, :-1]
        inverse = 1.0 / np.linalg.norm(chord, axis=2, keepdims=True)
        u = chord * inverse
        d = np.zeros_like(step)
        d[:, 1:] = step[:, 1:] - step[:, :-1]
        b = np.zeros_like(step)
        turn = np.maximum(_dot(u[:, :-1], u[:, 1:]), -0.98)
        b[:, 1:] = 2.0 * np.cross(u[:, :-1], u[:, 1:]) / (1.0 + turn)
        mass = np.ones((x.shape[1], 1))
        mass[-1] = 0.5
        return cls(
            x=x,
            stiffness=stiffness,
            mass=mass,
            edge=step / size,
            size=size,
            u=u,
            inverse=inverse,
            d=d,
            b=b,
        )


def _balance(rods: _Rods, gravity: Array) -> tuple[Array, Array, Array]:
    """Return each joint's bending force, each segment's pull, and each joint's torque.

    Args:
        rods: The strands.
        gravity: In their frame [m/s^2], shape (3,).

    Returns:
        Bending forces [m/s^2], shape (s, n - 1, 3); pulls [m/s^2], shape (s, n - 1); torques about
        the strand that the joints towards the tip hand on [m^2/s^2], shape (s, n - 1).
    """
    count = rods.x.shape[1]
    g = np.zeros((len(rods.x), count + 2, 3))
    pull = np.zeros((len(rods.x), count - 1))
    torque = np.zeros((len(rods.x), count + 2))
    u, inverse, d, b = rods.u, rods.inverse, rods.d, rods.b
    # What turns a joint's bend with its own chord, and with the chords towards the root.
    chord_pull = np.zeros_like(g)
    turned = np.zeros_like(g)
    for i in range(count - 1, 1, -1):
        j = i - 1
        rest = rods.mass[i] * gravity
        rest = rest + 2.0 * g[:, i] - g[:, i + 1] - chord_pull[:, i + 1]
        if i < count - 1:
            rest = rest + pull[:, i, None] * rods.edge[:, i]
        if i < count - 2:
            rest = rest - (turned[:, i + 1] + turned[:, i + 2]) * inverse[:, i + 1]
        rest = rest + turned[:, i] * inverse[:, j]
        axis = np.eye(3)[np.argmin(np.abs(u[:, j]), axis=1)]
        one = np.cross(u[:, j], axis)
        one /= np.linalg.norm(one, axis=1, keepdims=True)
        two = np.cross(u[:, j], one)
        lever = np.cross(u[:, j], d[:, j])
        along = _dot(d[:, j], u[:, j])
        handed = -0.5 * b[:, j] * inverse[:, j]
        rest = rest + handed * torque[:, i, None]
        columns = [
            side * (along * inverse[:, j] - 1.0) + handed * _dot(side, lever)
            for side in (one, two)
        ]
        matrix = np.stack([*columns, -rods.edge[:, j]], axis=-1)
        found = np.linalg.solve(matrix, -rest[:, :, None])[:, :, 0]
        g[:, j] = one * found[:, :1] + two * found[:, 1:2]
        pull[:, j] = found[:, 2]
        torque[:, j] = torque[:, i] + _dot(g[:, j], lever)[:, 0]
        chord_pull[:, j] = along * inverse[:, j] * g[:, j]
        turned[:, j] = -0.5 * torque[:, j, None] * b[:, j]
    return g[:, : count - 1], pull, torque[:, : count - 1]


def _turns(rods: _Rods) -> Array:
    """Return a basis of small turns of the segments, shape (s, n - 1, 3, p): what each segment's end
    moves against its start [m] where a knot turns by 1 rad across the strand.
    """
    strands, segments = rods.edge.shape[:2]
    knots = min(segments - 1, KNOTS)
    side = np.zeros_like(rods.edge)
    axis = np.eye(3)[np.argmin(np.abs(rods.edge[:, 0]), axis=1)]
    side[:, 0] = np.cross(rods.edge[:, 0], axis)
    side[:, 0] /= np.linalg.norm(side[:, 0], axis=1, keepdims=True)
    for i in range(1, segments):
        side[:, i] = transport(rods.edge[:, i - 1], rods.edge[:, i], side[:, i - 1])
    sides = np.stack([side, np.cross(rods.edge, side)], axis=-1) * rods.size[..., None]
    place = np.linspace(0.0, knots - 1.0, segments - 1)
    share = np.zeros((segments, knots))
    share[1:] = np.maximum(1.0 - np.abs(place[:, None] - np.arange(knots)), 0.0)
    turns = sides[:, :, :, None, :] * share[None, :, None, :, None]
    return turns.reshape(strands, segments, 3, 2 * knots)


def _gram(first: Array, second: Array) -> Array:
    """Return sums over a strand of products of forms, (s, n, c, p) twice to (s, p, p)."""
    strands, _, _, p = first.shape
    left = first.reshape(strands, -1, p).transpose(0, 2, 1)
    return left @ second.reshape(strands, -1, p)


def _against(vector: Array, forms: Array) -> Array:
    """Return components along a vector: (s, n, 3) and (s, n, 3, p) to (s, n, 1, p)."""
    return np.einsum("sni,snip->snp", vector, forms)[:, :, None]


def _variation(
    rods: _Rods, g: Array, pull: Array, torque: Array, hold: float, weights: Array
) -> tuple[Array, Array, Array]:
    """Return the energy's second variation in the basis of turns, three times (s, p, p).

    Args:
        rods: The strands.
        g: Bending forces, as `_balance` gives them.
        pull: Pulls.
        torque: Torques.
        hold: Spring to the shape [1/s^2].
        weights: What stiffening does to each joint's stiffness [1/s^2], shape (s, n - 1).

    Returns:
        The whole energy's [m^2/s^2]; what stiffening adds; the mass [m^2].
    """
    step = _turns(rods)
    d, u, b = rods.d, rods.u, rods.b
    u_ = u[..., None]
    chord = step.copy()
    chord[:, 1:] += step[:, :-1]
    w = chord * rods.inverse[..., None]
    w[:, 0] = 0.0
    ahead = _against(u, w)
    w = w - u_ * ahead
    bend = np.zeros_like(step)
    bend[:, 1:] = step[:, 1:] - step[:, :-1]
    both = w.copy()
    both[:, 1:] += w[:, :-1]
    twist = np.cumsum(-0.5 * _against(b, both), axis=1)
    along = _dot(d, u)[..., None]
    # How the bend differs from a rest bend equal to it.
    off = bend - along * w + u_ * _against(d, w) - np.cross(u, d)[..., None] * twist
    off[:, 0] = 0.0
    k = rods.stiffness[:, :-1, None, None]
    energy = _gram(off, k * off)
    added = _gram(off, weights[..., None, None] * off)
    # Beside that, what the bending forces do: they turn with chords and frames.
    w_g, w_d = _against(g, w), _against(d, w)
    half = _gram(twist, _against(np.cross(u, g), bend)) - _gram(_against(u, bend), w_g)
    half -= 0.5 * _gram(w_d, w_g)
    half += _gram(ahead, along * w_g) + _gram(twist, _against(np.cross(g, d), w))
    half -= 0.5 * _gram(twist, _dot(d, g)[..., None] * twist)
    t = torque[..., None, None]
    w_b = _against(b, w)
    before, ahead_before = np.zeros_like(w), np.zeros_like(ahead)
    before[:, 1:], ahead_before[:, 1:] = w[:, :-1], ahead[:, :-1]
    u_before = u.copy()
    u_before[:, 1:] = u[:, :-1]
    scale = 1.0 / (1.0 + np.maximum(_dot(u, u_before), -0.98))[..., None]
    turned = 2.0 * (_cross(u_before, w) - _cross(u, before))
    turned = (turned - b[..., None] * (_against(u_before, w) + _against(u, before))) * scale
    half -= 0.5 * _gram(ahead, t * w_b) + 0.5 * _gram(ahead_before, t * _against(b, before))
    half += 0.25 * _gram(turned, t * both)
    energy += half + half.transpose(0, 2, 1)
    energy += _gram(step, (pull[..., None] / rods.size)[..., None] * step)
    moved = np.cumsum(step, axis=1)
    mass = _gram(moved, rods.mass[1:, :, None] * moved)
    return energy + hold * mass, added, mass


def _cross(vector: Array, forms: Array) -> Array:
    """Return cross products of vectors (s, n, 3) with forms (s, n, 3, p)."""
    return np.cross(vector[..., None], forms, axis=2)
