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

SHARE = 0.8
"""Of the strain that the solver leaves alone, what a segment's spring may have at most."""

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


def _balance(
    rods: _Rods, gravity: Array, limits: tuple[float, float]
) -> tuple[Array, Array, Array]:
    """Return each joint's bending force, each segment's pull, and each joint's torque.

    Bending acts across the strand, except where a segment's pull would be beyond what its spring
    can have: there it takes over the rest.

    Args:
        rods: The strands.
        gravity: In their frame [m/s^2], shape (3,).
        limits: Least and largest pull for each metre of a segment [1/s^2].

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
        sides = np.stack([one, two, u[:, j]], axis=1)
        forces = sides * (along * inverse[:, j] - 1.0)[:, None]
        forces += _dot(sides, lever[:, None]) * handed[:, None]
        forces[:, 2] -= d[:, j] * inverse[:, j]
        matrix = forces.copy()
        matrix[:, 2] = -rods.edge[:, j]
        found = _solved(matrix, rest)
        most = limits[1] * rods.size[:, j, 0]
        pull[:, j] = np.clip(found[:, 2], limits[0] * rods.size[:, j, 0], most)
        beyond = np.not_equal(pull[:, j], found[:, 2])
        found[:, 2] = 0.0
        left = rest[beyond] - pull[beyond, j, None] * rods.edge[beyond, j]
        found[beyond] = _solved(forces[beyond], left)
        g[:, j] = (sides * found[:, :, None]).sum(axis=1)
        torque[:, j] = torque[:, i] + _dot(g[:, j], lever)[:, 0]
        chord_pull[:, j] = (along * g[:, j] - _dot(g[:, j], u[:, j]) * d[:, j]) * inverse[:, j]
        turned[:, j] = -0.5 * torque[:, j, None] * b[:, j]
    return g[:, : count - 1], pull, torque[:, : count - 1]


def _solved(forces: Array, rest: Array) -> Array:
    """Return how much of each row's forces, (s, 3, 3), is against what is left, (s, 3)."""
    return -np.linalg.solve(forces.transpose(0, 2, 1), rest[:, :, None])[:, :, 0]


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
    axial = _dot(g, u)[..., None]
    half = _gram(twist, _against(np.cross(u, g), bend)) - _gram(_against(u, bend), w_g)
    half += _gram(bend, axial * w) - 0.5 * _gram(w, along * axial * w) - 0.5 * _gram(w_d, w_g)
    half += _gram(ahead, along * w_g - axial * w_d)
    half += _gram(twist, _against(np.cross(g, d), w) + axial * _against(np.cross(d, u), w))
    half -= 0.5 * _gram(twist, (_dot(d, g)[..., None] - along * axial) * twist)
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


def sag_free(
    groom: Groom,
    *,
    gravity: float | ArrayLike = 9.81,
    pose: ArrayLike | None = None,
    stiffen: bool = True,
    profile: str = "u",
) -> Groom:
    vector = _gravity(gravity, pose)
    if not vector.any() or groom.style.hold == 1.0:
        return groom
    style = groom.style
    low, high = (SHARE * strain / (1.0 + SHARE * strain) for strain in style.stretch_limits())
    limits = (RIGID_STRETCH * low, style.stretch_stiffness() * high)
    counts = np.asarray(groom.counts, np.int64)
    skips = np.asarray(groom.laid, np.int64) - 2
    points = np.asarray(groom.points, np.float64)
    bends = np.zeros_like(points)
    lengths = np.zeros(len(points))
    stiffening = np.ones(len(points))
    for full, skip in np.unique(np.stack([counts, skips]), axis=1).T:
        count = int(full - skip)
        starts = groom.starts[(counts == full) & (skips == skip)] + skip
        batch = max(1, BATCH // (count * 6 * min(count, KNOTS)))
        for first in range(0, len(starts), batch):
            rows = starts[first : first + batch, None] + np.arange(count)
            x = points[rows]
            size = np.linalg.norm(np.diff(x, axis=1), axis=2)
            stiffness = joint_stiffness(style, size, int(skip), int(full))
            rods = _Rods.of(x, stiffness)
            g, pull, torque = _balance(rods, vector, limits)
            k = stiffness[:, 1:-1]
            if profile == "u":
                weights = stiffness[:, :-1]
            else:
                need = np.linalg.norm(g, axis=2) / rods.size[:, :, 0]
                weights = need + float(profile)*need.max(axis=1, keepdims=True)
            energy, added, mass = _variation(
                rods, g, pull, torque, style.hold_stiffness(), weights
            )
            firm = FIRMNESS * np.linalg.norm(vector) / size[:, 1:].sum(axis=1)
            down = np.linalg.inv(np.linalg.cholesky(added))
            left = down @ (energy - firm[:, None, None] * mass) @ down.transpose(0, 2, 1)
            share = np.maximum(-np.linalg.eigvalsh(left)[:, 0], 0.0)
            if stiffen:
                stiffening[rows[:, 1:-1]] = 1.0 + share[:, None] * (weights[:, 1:] / k)
            k = k * stiffening[rows[:, 1:-1]]
            bends[rows[:, 1:-1]] = rods.d[:, 1:] - g[:, 1:] / k[:, :, None]
            spring = np.where(pull < 0.0, RIGID_STRETCH, style.stretch_stiffness())
            lengths[rows[:, :-1]] = size - pull / spring
    return replace(groom, rest_bends=bends, rest_lengths=lengths, stiffening=stiffening)


def _gravity(gravity: float | ArrayLike, pose: ArrayLike | None) -> Array:
    vector = np.asarray(gravity, np.float64)
    if vector.shape == ():
        vector = np.array([0.0, -float(vector), 0.0])
    return vector
