"""The sag-free start: rest values with which a groom's shape is its own equilibrium (NumPy only).

Statics first, tip to root. Where the shape is given, the energy of bending is linear in the rest
bends (the square of the whole is, but for a constant, what turns with the frame and what does not),
so each joint's bending force follows from what the joints nearer to the tip need: its two
components across the strand and the pull of the segment below it balance one point's weight. That
needs no stiffness; the stiffness says how far the rest bend must be from the bend.

Then stability. An equilibrium may be one that a strand falls out of: hair too soft for its own
weight. The energy's second variation at the shape is linear in the stiffness, so the least
stiffening that makes every small turn of the strand cost energy is the least eigenvalue of one
small matrix a strand.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hairkit.errors import WorldError
from hairkit.groom import Groom
from hairkit.sim.checks import check_pose, number, vector
from hairkit.sim.hair import BEND_DAMPING_S, STIFF_BENDING
from hairkit.sim.layout import joint_stiffness, stiffest_joint, strand_rows, transport
from hairkit.style import Style
from hairkit.style.model import RIGID_STRETCH

Array = NDArray[np.float64]

KNOTS = 18
"""Places along a strand where its small changes are told apart at first."""

DOUBT = 0.65
"""A strand that has no more than this share of its stiffness to spare, as few knots show it, is
looked at with FINE_KNOTS."""

FINE_KNOTS = 48
"""Places along a strand where its small changes are told apart where there is doubt."""

KINK = 0.8
"""And so is one that turns by more than this somewhere from one chord to the next, about [rad]."""

FIRMNESS = 0.25
"""How firmly a strand must keep its shape, as the square of a frequency: a share of that of a
pendulum as long as it is."""

TICK_S = 1.0 / 120.0
"""A world's usual clock [s]; stiff hair takes shorter ticks."""

SOFT_STRETCH = 1e6
"""Hair with a softer spring along it [1/s^2] may stretch where stability is looked at; other hair
keeps its length."""

SHARE = 0.8
"""Of the strain that the solver leaves alone, what a segment's spring may have at most."""

BATCH = 500_000
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
    """Of each joint [1/s^2], shape (s, n - 1); 0 at 0."""

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
        inverse = 1.0 / (np.linalg.norm(chord, axis=2, keepdims=True) + 1e-9)
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


@dataclass(kw_only=True)
class _Load:
    """What strands' joints and segments carry."""

    bending: Array
    """Force of each joint's bending [m/s^2], shape (s, n - 1, 3)."""

    pull: Array
    """Of each segment [m/s^2], shape (s, n - 1)."""

    torque: Array
    """About the strand, that a joint and those towards the tip hand on to the root's side
    [m^2/s^2], shape (s, n - 1)."""


def _balance(rods: _Rods, gravity: Array, limits: tuple[float, float]) -> _Load:
    """Return what every joint and segment must carry.

    Bending acts across the strand, except where a segment's pull would be beyond what its spring
    can have: there it takes over the rest.

    Args:
        rods: The strands.
        gravity: In their frame [m/s^2], shape (3,).
        limits: Least and largest pull for each metre of a segment [1/s^2].
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
        edge = rods.edge[:, j]
        axis = np.eye(3)[np.argmin(np.abs(edge), axis=1)]
        one = np.cross(edge, axis)
        one /= np.linalg.norm(one, axis=1, keepdims=True)
        two = np.cross(edge, one)
        lever = np.cross(u[:, j], d[:, j])
        along = _dot(d[:, j], u[:, j])
        handed = -0.5 * b[:, j] * inverse[:, j]
        rest = rest + handed * torque[:, i, None]
        sides: Array = np.stack([one, two, edge], axis=1, dtype=np.float64)
        forces = sides * (along * inverse[:, j] - 1.0)[:, None]
        forces += _dot(sides, lever[:, None]) * handed[:, None]
        forces -= (_dot(sides, u[:, j, None]) * d[:, j, None]) * inverse[:, j, None]
        matrix = forces.copy()
        matrix[:, 2] = -edge
        found = _solved(matrix, rest)
        most = limits[1] * rods.size[:, j, 0]
        pull[:, j] = np.clip(found[:, 2], limits[0] * rods.size[:, j, 0], most)
        beyond = np.not_equal(pull[:, j], found[:, 2])
        found[:, 2] = 0.0
        left = rest[beyond] - pull[beyond, j, None] * edge[beyond]
        found[beyond] = _solved(forces[beyond], left)
        g[:, j] = (sides * found[:, :, None]).sum(axis=1)
        torque[:, j] = torque[:, i] + _dot(g[:, j], lever)[:, 0]
        chord_pull[:, j] = (along * g[:, j] - _dot(g[:, j], u[:, j]) * d[:, j]) * inverse[:, j]
        turned[:, j] = -0.5 * torque[:, j, None] * b[:, j]
    return _Load(bending=g[:, : count - 1], pull=pull, torque=torque[:, : count - 1])


def _solved(forces: Array, rest: Array) -> Array:
    """Return how much of each row's forces, (s, 3, 3), is against what is left, (s, 3)."""
    across = np.cross(forces[:, [1, 2, 0]], forces[:, [2, 0, 1]])
    volume = _dot(forces[:, 0], across[:, 0])
    return -_dot(across, rest[:, None])[:, :, 0] / np.where(np.abs(volume) > 1e-12, volume, 1e-12)


def _changes(rods: _Rods, knots: int, *, soft: bool) -> Array:
    """Return a basis of small changes of a strand's shape, shape (s, n - 1, 3, p).

    Each is how far segments' ends move against their starts [m] where the strand turns by 1 rad at
    a knot, across itself; where it is soft also where it stretches to twice its length.
    """
    strands, segments = rods.edge.shape[:2]
    knots = min(segments - 1, knots)
    side = np.zeros_like(rods.edge)
    axis = np.eye(3)[np.argmin(np.abs(rods.edge[:, 0]), axis=1)]
    side[:, 0] = np.cross(rods.edge[:, 0], axis)
    side[:, 0] /= np.linalg.norm(side[:, 0], axis=1, keepdims=True)
    for i in range(1, segments):
        side[:, i] = transport(rods.edge[:, i - 1], rods.edge[:, i], side[:, i - 1])
    ways = [side, np.cross(rods.edge, side), *([rods.edge] if soft else [])]
    # Each segment by itself near the root, where hair gives way, then farther and farther apart.
    near = np.arange(knots // 2)
    far = np.geomspace(knots // 2 + 1, segments - 1, knots - len(near)) - 1.0
    places = np.concatenate([near, far]) if segments - 1 > knots else np.arange(knots)
    share = np.zeros((segments, knots))
    for knot in range(knots):
        one = np.eye(knots)[knot]
        share[1:, knot] = np.interp(np.arange(segments - 1), places, one)
    moves = (np.stack(ways, axis=-1) * rods.size[..., None])[:, :, :, None]
    return (moves * share[None, :, None, :, None]).reshape(strands, segments, 3, -1)


def _gram(first: Array, second: Array) -> Array:
    """Return sums over a strand of products of forms, (s, n, c, p) twice to (s, p, p)."""
    strands, _, _, p = first.shape
    left = first.reshape(strands, -1, p).transpose(0, 2, 1)
    return left @ second.reshape(strands, -1, p)


def _against(vector: Array, forms: Array) -> Array:
    """Return components along a vector: (s, n, 3) and (s, n, 3, p) to (s, n, 1, p)."""
    return np.einsum("sni,snip->snp", vector, forms)[:, :, None]


@dataclass(kw_only=True)
class _Variation:
    """Quadratic forms of small changes of the shape, each of shape (s, p, p)."""

    energy: Array
    """The whole energy's second variation [m^2/s^2]."""

    bending: Array
    """Of that what grows with the stiffness, and is positive."""

    matrix: Array
    """What of bending is in the solver's matrix."""

    springs: Array
    """What the segments' springs add to that matrix."""

    mass: Array
    """Squares of what moves [m^2]."""


def _variation(rods: _Rods, load: _Load, hold: float, stretch: float, knots: int) -> _Variation:
    """Return the second variation of strands' energy, and what the solver's matrix has of it.

    Args:
        rods: The strands.
        load: What they carry.
        hold: Spring to the shape [1/s^2].
        stretch: Spring along a pulled segment [1/s^2].
        knots: Places along a strand where its changes are told apart.
    """
    g, pull, torque = load.bending, load.pull, load.torque
    step = _changes(rods, knots, soft=stretch < SOFT_STRETCH)
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
    k = rods.stiffness[..., None, None]
    bending = _gram(off, k * off)
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
    energy = bending + half + half.transpose(0, 2, 1)
    stress = (pull[..., None] / rods.size)[..., None]
    longer = _against(rods.edge, step)
    aside = step - rods.edge[..., None] * longer
    spring = np.where(stress < 0.0, RIGID_STRETCH, stretch)
    spring[:, 0] = 0.0
    along_springs = _gram(longer, spring * longer)
    energy += along_springs + _gram(aside, stress * aside)
    moved = np.cumsum(step, axis=1)
    mass = _gram(moved, rods.mass[1:, :, None] * moved)
    return _Variation(
        energy=energy + hold * mass,
        bending=bending,
        matrix=_gram(bend, k * bend),
        springs=along_springs + _gram(aside, np.maximum(stress, 0.0) * aside),
        mass=mass,
    )


def _cross(vector: Array, forms: Array) -> Array:
    """Return cross products of vectors (s, n, 3) with forms (s, n, 3, p)."""
    return np.cross(vector[..., None], forms, axis=2)


def sag_free(
    groom: Groom,
    *,
    gravity: float | ArrayLike = 9.81,
    pose: ArrayLike | None = None,
    stiffen: bool = True,
) -> Groom:
    """Return a groom whose shape is its own equilibrium under gravity: at t = 0 its hair stays.

    Solved strand by strand from tip to root for the solver as it is: every joint gets the rest bend
    with which it carries the weight beyond it, every segment the rest length that its pull
    stretches to what it is. Nothing leans on the head, and `hold` pulls at nothing: the start holds
    whatever `Hair.hold` and `Hair.motion` are. Points stay where they are, and what is solved does
    not depend on the world's clock.

    Hair that is too soft for its shape would stand but fall at a touch: it is made stiffer, by one
    factor a strand, until its shape pulls it back at least half as fast as a pendulum of its length
    swings. Where the solver's steps at the world's usual clock would not stay in such a minimum
    (hair wound up tighter than its stiffness bears), the strand is left as it was and sags as
    before. Such strands are in ``groom.sagging`` and a warning counts them; ``groom.stiffening`` is
    above 1 where hair was made stiffer.

    A file of strands does not keep the start: solve the groom again that is grown from it.

    Args:
        groom: What to solve; rest values it has already are replaced.
        gravity: Pull towards the ground, down in the world or a vector in it, number or shape (3,)
            [m/s^2]; 0 gives rest values of the shape alone.
        pose: Where the head is, shape (4, 4); by default the identity. Only its turn matters.
        stiffen: Whether hair may be made stiffer; otherwise a strand that needs it is left as it
            was.

    Returns:
        The groom with ``rest_bends``, ``rest_lengths``, ``stiffening`` and ``sagging``; the same
        groom where there is no gravity or its hair is rigid (`hold` 1).

    Raises:
        GroomError: A strand cannot be simulated; see `World.add_hair`.
        WorldError: ``gravity`` or ``pose`` is not what it should be.

    The public figure for this is 11 s for 1900 strands of 100 points (rest shapes of discrete
    elastic rods, Takahashi and Batty 2025).
    """
    turn = np.eye(4) if pose is None else check_pose(pose, "head pose")
    if turn is None:
        raise WorldError("head pose: expected finite numbers below 1e7 m")
    if np.ndim(gravity) == 0:
        gravity = (0.0, -number("gravity", gravity, -1000.0, 1000.0), 0.0)
    down = vector("gravity", gravity, 1000.0) @ turn[:3, :3]
    if not down.any() or groom.style.hold == 1.0:
        solved = (groom.rest_bends, groom.rest_lengths, groom.stiffening, groom.sagging)
        if all(value is None for value in solved):
            return groom
        return replace(groom, rest_bends=None, rest_lengths=None, stiffening=None, sagging=None)
    counts, starts, skips = strand_rows(groom)
    bends, lengths = np.zeros_like(groom.points), np.zeros(len(groom.points))
    stiffening = np.ones(len(groom.points))
    failed = np.zeros(len(counts), bool)
    for full, skip in np.unique(np.stack([counts, skips]), axis=1).T:
        count = int(full - skip)
        strands = np.flatnonzero((counts == full) & (skips == skip))
        batch = max(1, BATCH // (count * 6 * KNOTS))
        for first in range(0, len(strands), batch):
            part = strands[first : first + batch]
            rows = (starts[part] + skip)[:, None] + np.arange(count)
            found = _rest(groom.style, groom.points[rows], down, int(skip), int(full))
            left = found.failed if stiffen else found.failed | (found.factor > 1.0)
            failed[part] = left
            stiffening[rows] = np.where(left, 1.0, found.factor)[:, None]
            bends[rows[:, :-1]] = np.where(left[:, None, None], found.shape, found.bends)
            lengths[rows[:, :-1]] = np.where(left[:, None], found.size, found.lengths)
    sagging = np.flatnonzero(failed).astype(np.int32)
    if len(sagging):
        named = ", ".join(str(row) for row in sagging[:8]) + (", ..." if len(sagging) > 8 else "")
        warnings.warn(
            f"sag_free: {len(sagging)} of {len(counts)} strands sag as before, "
            f"too soft for their shape: {named}",
            stacklevel=2,
        )
    return replace(
        groom, rest_bends=bends, rest_lengths=lengths, stiffening=stiffening, sagging=sagging
    )


@dataclass(kw_only=True)
class _Rest:
    """Rest values of strands of n points."""

    shape: Array
    """Bends of the shape [m], shape (s, n - 1, 3)."""

    size: Array
    """Lengths of its segments [m], shape (s, n - 1)."""

    bends: Array
    """Rest bends [m], shape (s, n - 1, 3)."""

    lengths: Array
    """Rest lengths [m], shape (s, n - 1)."""

    factor: Array
    """How much stiffer they must be, shape (s,)."""

    failed: NDArray[np.bool_]
    """Which have no start that stays, shape (s,)."""


def _rest(style: Style, x: Array, gravity: Array, skip: int, full: int) -> _Rest:
    """Solve strands of equally many points [m], shape (s, n, 3), with gravity [m/s^2]."""
    size = np.linalg.norm(np.diff(x, axis=1), axis=2)
    stiffness = joint_stiffness(style, size, skip, full)
    stiffest = stiffest_joint(stiffness)
    stiffness = stiffness[:, :-1]
    rods = _Rods.of(x, stiffness)
    low, high = (SHARE * strain / (1.0 + SHARE * strain) for strain in style.stretch_limits())
    limits = (RIGID_STRETCH * low, style.stretch_stiffness() * high)
    load = _balance(rods, gravity, limits)
    # Folded so sharply that no bend carries anything.
    folded = ~(np.abs(load.bending).max(axis=(1, 2)) < 1e9)
    for value in (load.bending, load.pull, load.torque):
        value[folded] = 0.0
    pulled = float(np.linalg.norm(gravity))
    lack, failed = _stability(style, rods, load, stiffest, pulled, KNOTS)
    if x.shape[1] - 2 > KNOTS:
        kinked = np.linalg.norm(rods.b, axis=2).max(axis=1) > KINK
        doubtful = np.flatnonzero((kinked | (lack > -DOUBT)) & ~folded)
        batch = max(1, BATCH // (6 * FINE_KNOTS * x.shape[1]))
        for first in range(0, len(doubtful), batch):
            part = doubtful[first : first + batch]
            lack[part], failed[part] = _stability(
                style,
                _Rods.of(x[part], stiffness[part]),
                _Load(bending=load.bending[part], pull=load.pull[part], torque=load.torque[part]),
                stiffest[part],
                pulled,
                FINE_KNOTS,
            )
    factor = 1.0 + np.maximum(lack, 0.0)
    k = np.maximum(stiffness * factor[:, None], 1e-30)[:, :, None]
    spring = np.where(load.pull < 0.0, RIGID_STRETCH, style.stretch_stiffness())
    return _Rest(
        shape=rods.d,
        size=size,
        bends=rods.d - load.bending / k,
        lengths=size - load.pull / spring,
        factor=factor,
        failed=failed | folded,
    )


def _stability(
    style: Style, rods: _Rods, load: _Load, stiffest: Array, gravity: float, knots: int
) -> tuple[Array, NDArray[np.bool_]]:
    """Return what strands' stiffness lacks, and where the solver would not stay all the same.

    Args:
        style: What the hair is like.
        rods: The strands.
        load: What they carry.
        stiffest: What each asks of the clock [1/s^2], shape (s,).
        gravity: [m/s^2].
        knots: Places along a strand where its changes are told apart.

    Returns:
        As a share of their stiffness, below 0 where they have more than they need, shape (s,);
        whether the solver would leave the shape, shape (s,).
    """
    hold = style.hold_stiffness()
    forms = _variation(rods, load, hold, style.stretch_stiffness(), knots)
    firm = FIRMNESS * gravity / rods.size[:, 1:, 0].sum(axis=1)
    down = np.linalg.inv(np.linalg.cholesky(forms.bending))
    needed = down @ (forms.energy - firm[:, None, None] * forms.mass) @ down.transpose(0, 2, 1)
    lack = np.asarray(-np.linalg.eigvalsh(needed)[:, 0], np.float64)
    more = np.maximum(lack, 0.0)[:, None, None]
    # An implicit step whose matrix leaves parts of the energy out stays with a minimum only where
    # twice the matrix, and inertia with it, is more than the energy's second variation.
    fast = stiffest[:, None, None] * (1.0 + more) > STIFF_BENDING
    tick = np.where(fast, 0.5 * TICK_S, TICK_S)
    damped = 1.0 + BEND_DAMPING_S / tick
    left = 2.0 * damped * (1.0 + more) * forms.matrix + 2.0 * forms.springs
    left += (4.0 / tick**2 + 2.0 * hold) * forms.mass
    left -= forms.energy + more * forms.bending
    return lack, np.linalg.eigvalsh(left)[:, 0] <= 0.0
