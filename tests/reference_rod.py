"""Slow NumPy twin, in double precision, of one tick of the solver.

It shares no algebra with the kernels: bending forces are central differences of the energy, every
solve is dense, and the frame is carried by two reflections.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hairkit.style import Style

Array = NDArray[np.float64]

DIFFERENCE = 1e-6
"""Step of the central differences [m]."""

PUSHED = 1e7
"""Spring of a segment pushed together [1/s^2]."""

FIRST_TRIPLE = (12 / 5, 12 / 13)
"""What the bending stiffness of the first triples is multiplied by: the first stands for half a
cell."""

WHOLE_ROUNDS = 2
"""Rounds in which contact keeps the whole thickness clear."""

AFTERWARDS = 0.25
"""Share of the thickness that contact keeps clear in later rounds."""


@dataclass(kw_only=True)
class State:
    """One strand at the end of a tick."""

    position: Array
    """Where its points are [m], shape (n, 3)."""

    velocity: Array
    """How they move [m/s], shape (n, 3)."""

    touch: Array
    """Direction out of what each touches, zero for nothing, shape (n, 3)."""

    carried: Array
    """How far that surface moved along it in the tick [m], shape (n,)."""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What acts on a strand from outside during a tick, and how it is solved."""

    before: Array
    """The head's pose at the start of the tick, shape (4, 4)."""

    after: Array
    """The head's pose at its end, shape (4, 4)."""

    h: float
    """The tick [s]."""

    gravity: Array
    """[m/s^2], shape (3,)."""

    wind: Array
    """[m/s], shape (3,)."""

    bend_damping: float
    """Time in which bending resists its own rate as much as its amount [s]."""

    rounds: int
    """Most rounds of length solve and contact after a first contact."""

    strain_left: float
    """Strain beyond the dead zone that asks for another round."""

    ball: float | None = None
    """Radius of a ball at the head's origin that hair is kept out of [m]."""

    contact: float = 0.0
    """Spring that holds a pressed point to the surface it touches [1/s^2]."""

    touching: float = 0.0
    """A point this near to where contact would push it touches the ball [m]."""

    @property
    def turn(self) -> Array:
        """The head's rotation at the end of the tick, shape (3, 3)."""
        return self.after[:3, :3]


def _unit(vectors: Array) -> Array:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _carry(start: Array, end: Array, vector: Array) -> Array:
    """Carry a vector with the smallest rotation from start to end, as two reflections."""
    middle = _unit(start + end)
    first = vector - 2.0 * start * (start * vector).sum(-1, keepdims=True)
    return first - 2.0 * middle * (middle * first).sum(-1, keepdims=True)


def _frames(points: Array, normal: Array) -> Array:
    """Return the frame at each inner point, shape (batch, n - 2, 3, 3): normal, binormal, chord.

    Args:
        points: Strands that differ a little [m], shape (batch, n, 3).
        normal: Normal of their root edge, shape (batch, 3).
    """
    chord = _unit(points[:, 1] - points[:, 0])
    frames = []
    for i in range(1, points.shape[1] - 1):
        new = _unit(points[:, i + 1] - points[:, i - 1])
        normal = _carry(chord, new, normal)
        chord = new
        frames.append(np.stack([normal, np.cross(chord, normal), chord], axis=-1))
    return np.stack(frames, axis=1)


def _second_difference(points: Array) -> Array:
    return points[:, :-2] - 2.0 * points[:, 1:-1] + points[:, 2:]


class Rod:
    """One strand: what it is at rest, its energy, the parts of a tick. A point has unit mass."""

    def __init__(self, rest: Array, style: Style, hold: float | None = None) -> None:
        """Derive the rod from a rest pose and a style.

        Args:
            rest: Rest pose in the head's frame [m], shape (n, 3).
            style: What the hair is like.
            hold: How strongly it keeps the rest pose; the style's ``hold`` when left out.
        """
        self.rest = rest
        self.style = style
        count = len(rest)
        self.length = np.linalg.norm(np.diff(rest, axis=0), axis=1)
        segment = self.length.mean()
        share = np.arange(1, count - 1) / (count - 1)
        rigidity = style.bending_rigidity() * style.stiff_root ** (1.0 - share)
        self.bending = rigidity / (style.density * segment**4)
        for i, weight in enumerate(FIRST_TRIPLE[: count - 2]):
            self.bending[i] *= weight
        self.mass = np.ones(count)
        self.mass[-1] = 0.5
        hold = style.hold if hold is None else hold
        self.hold = 300.0 * hold / (1.0 - hold)
        self.low, self.high = style.stretch_limits()
        edge = _unit(rest[1] - rest[0])
        self.normal = _unit(np.cross(edge, [0.31, -0.52, 0.79]))
        frames = _frames(rest[None], self.normal[None])
        second = _second_difference(rest[None])
        self.curvature = np.einsum("bnij,bni->bnj", frames, second)[0]

    def energy(self, points: Array, turn: Array) -> Array:
        """Return the bending energy of strands [m^2/s^2], shape (batch,).

        Args:
            points: Strands [m], shape (batch, n, 3).
            turn: The head's rotation, shape (3, 3).
        """
        normal = np.broadcast_to(turn @ self.normal, (len(points), 3))
        target = np.einsum("bnij,nj->bni", _frames(points, normal), self.curvature)
        off = _second_difference(points) - target
        return 0.5 * (self.bending * (off**2).sum(-1)).sum(-1)

    def whole_energy(self, x: Array, v: Array, gravity: Array) -> tuple[float, float]:
        """Return all energy of a strand on an unturned head, and its kinetic part [m^2/s^2]."""
        kinetic = 0.5 * float((self.mass[2:, None] * v[2:] ** 2).sum())
        weight = -float((self.mass[2:, None] * x[2:] * gravity).sum())
        strain = np.linalg.norm(np.diff(x[1:], axis=0), axis=1) - self.length[1:]
        stiff = np.where(strain < 0.0, PUSHED, self.style.stretch_stiffness())
        spring = 0.5 * float((stiff * strain**2).sum())
        bent = float(self.energy(x[None], np.eye(3))[0])
        return kinetic + weight + spring + bent, kinetic

    def bending_force(self, points: Array, turn: Array) -> Array:
        """Return minus the energy's gradient by central differences, shape (n, 3)."""
        count = len(points)
        steps = DIFFERENCE * np.eye(3 * (count - 2)).reshape(-1, count - 2, 3)
        moved = np.concatenate([np.zeros((len(steps), 2, 3)), steps], axis=1)
        slope = self.energy(points + moved, turn) - self.energy(points - moved, turn)
        force = np.zeros((count, 3))
        force[2:] = -slope.reshape(-1, 3) / (2.0 * DIFFERENCE)
        return force

    def implicit(self, state: State, around: Surroundings) -> Array:
        """Return where the implicit step and the tether put the points [m], by dense solves."""
        count, h = len(self.rest), around.h
        goal = self.rest @ around.turn.T + around.after[:3, 3]
        # All go along with point 1; inertia and drag do not.
        ride = goal[1] - state.position[1]
        x = state.position + ride
        x[:2] = goal[:2]
        drag = self.style.drag()
        matrix = np.zeros((count, 3, count, 3))
        for i in range(count):
            matrix[i, :, i] += self.mass[i] * (1.0 / h**2 + drag / h + self.hold) * np.eye(3)
        force = self.bending_force(x, around.turn)
        force += self.mass[:, None] * (
            state.velocity / h
            + self.hold * (goal - x)
            + around.gravity
            + drag * around.wind
            - (1.0 / h**2 + drag / h) * ride
        )
        stencil = np.array([1.0, -2.0, 1.0])
        # Internal damping sees what the root's turn bends, less what turns with the head.
        spin = around.turn @ around.before[:3, :3].T - np.eye(3)
        normal = (around.turn @ self.normal)[None]
        target = np.einsum("nij,nj->ni", _frames(x[None], normal)[0], self.curvature)
        for i, k in enumerate(self.bending):
            seen = (goal[0] - state.position[0] - ride if i == 0 else 0.0) - spin @ target[i]
            force[i : i + 3] -= np.outer(stencil, k * around.bend_damping / h * seen)
        triple = np.einsum("a,b,ij->aibj", stencil, stencil, np.eye(3))
        for i, k in enumerate(self.bending):
            matrix[i : i + 3, :, i : i + 3] += k * (1.0 + around.bend_damping / h) * triple
        for i in range(1, count - 1):
            edge = x[i + 1] - x[i]
            length = np.linalg.norm(edge)
            spring = PUSHED if length < self.length[i] else self.style.stretch_stiffness()
            along = np.outer(edge, edge) / length**2
            across = max(1.0 - self.length[i] / length, 0.0) * (np.eye(3) - along)
            for a, b, sign in ((i, i, 1), (i + 1, i + 1, 1), (i, i + 1, -1), (i + 1, i, -1)):
                matrix[a, :, b] += sign * spring * (along + across)
            pull = spring * (length - self.length[i]) * edge / length
            force[i] += pull
            force[i + 1] -= pull
        for i in range(count - 1, 1, -1):
            # Pressed against what it touches, as the points towards the tip push it on the whole.
            pushed = force[i].copy()
            if i < count - 1:
                pushed -= matrix[i][:, i + 1 :].reshape(3, -1) @ _solved(matrix, force, i + 1)
            if pushed @ state.touch[i] < 0.0:
                matrix[i, :, i] += around.contact * np.outer(state.touch[i], state.touch[i])
                carried = state.carried[i] - ride @ state.touch[i]
                force[i] += around.contact * carried * state.touch[i]
        x[2:] += _solved(matrix, force, 2).reshape(-1, 3)
        reach = np.cumsum(self.length[1:]) * (1.0 + max(self.style.max_stretch, self.high))
        away = x[2:] - x[1]
        far = np.linalg.norm(away, axis=1)
        x[2:] = x[1] + away * np.minimum(reach / far, 1.0)[:, None]
        return x

    def excess(self, x: Array) -> Array:
        """Return how far each segment but the root's is past its limits [m], shape (n - 2,)."""
        off = (np.linalg.norm(np.diff(x, axis=0), axis=1) - self.length)[1:]
        return off - np.clip(off, self.low * self.length[1:], self.high * self.length[1:])

    def keep_lengths(self, x: Array, normal: Array) -> Array:
        """Return points with every segment within its limits, to first order.

        Args:
            x: Points [m], shape (n, 3).
            normal: Direction out of what a point touches, in which it may not move, shape (n, 3).
        """
        count = len(x)
        edge = _unit(np.diff(x, axis=0))
        jacobian = np.zeros((count - 2, count, 3))
        for row in range(count - 2):
            jacobian[row, row + 1] = -edge[row + 1]
            jacobian[row, row + 2] = edge[row + 1]
        mobility = np.eye(3) - np.einsum("ni,nj->nij", normal, normal)
        mobility /= self.mass[:, None, None]
        mobility[:2] = 0.0
        give = np.einsum("nij,rnj->rni", mobility, jacobian)
        system = np.einsum("rni,sni->rs", jacobian, give) + 1e-4 * np.eye(count - 2)
        return x - np.einsum("r,rni->ni", np.linalg.solve(system, self.excess(x)), give)


def _solved(matrix: Array, force: Array, first: int) -> NDArray[np.floating]:
    """Return the displacement of the points from a first one on, the others held, flat."""
    size = 3 * (len(force) - first)
    return np.linalg.solve(
        matrix[first:, :, first:].reshape(size, size), force[first:].reshape(size)
    )


def tick(rods: Sequence[Rod], states: Sequence[State], around: Surroundings) -> list[State]:
    """Return the states one tick on of strands that take rounds together.

    Args:
        rods: The strands.
        states: How each is before.
        around: What acts on them.
    """
    strands = [rod.implicit(state, around) for rod, state in zip(rods, states, strict=True)]
    touches = [np.zeros_like(x) for x in strands]
    carries = [np.zeros(len(x)) for x in strands]
    for turn in range(around.rounds + 1):
        if turn > 1 and not any(
            (np.abs(rod.excess(x)) > around.strain_left * rod.length[1:]).any()
            for rod, x in zip(rods, strands, strict=True)
        ):
            break
        share = 1.0 if turn <= WHOLE_ROUNDS else AFTERWARDS
        for i, rod in enumerate(rods):
            if turn > 0:
                # The last rounds let touching points go wherever the lengths ask.
                bound = touches[i] if turn <= WHOLE_ROUNDS else np.zeros_like(touches[i])
                strands[i] = rod.keep_lengths(strands[i], bound)
            clear = share * rod.style.thickness
            if around.ball is not None:
                _push_out(strands[i], touches[i], carries[i], around, around.ball + clear)
    made = []
    for x, touch, carried, state in zip(strands, touches, carries, states, strict=True):
        way = x - state.position
        # No faster off a surface than the surface itself.
        off = np.maximum((way * touch).sum(axis=1) - carried, 0.0)
        velocity = (way - off[:, None] * touch) / around.h
        made.append(State(position=x, velocity=velocity, touch=touch, carried=carried))
    return made


def _push_out(x: Array, touch: Array, carried: Array, around: Surroundings, radius: float) -> None:
    """Put the points that the head does not hold out of a ball; note which way, and its motion."""
    away = x[2:] - around.after[:3, 3]
    far = np.linalg.norm(away, axis=1)
    near = np.flatnonzero(far - radius < around.touching)
    for i in near:
        normal = away[i] / far[i]
        was = around.before @ np.linalg.inv(around.after) @ [*x[2 + i], 1.0]
        carried[2 + i] = normal @ (x[2 + i] - was[:3])
        touch[2 + i] = normal
        x[2 + i] += normal * max(radius - far[i], 0.0)
