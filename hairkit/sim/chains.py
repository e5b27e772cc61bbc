"""Bone chains in the solver: each is a strand whose points are the joints.

Points 0 and 1, the root's joint and the chain's first, belong to what carries the hair. The rest
pose is at rest: gravity as it is there is taken off, and the pull to the rest pose has a
pendulum's restoring force added, so that a hanging chain swings as long as one and, when its head
tilts, comes to hang straight down; a fringe keeps its shape.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hairkit.backend import bind
from hairkit.errors import WorldError
from hairkit.sim import columns as col
from hairkit.sim import joints
from hairkit.sim.hair import Hair
from hairkit.style import RIGID_STRETCH
from hairkit.sway.settings import ChainSettings

if TYPE_CHECKING:
    from hairkit.sim.layout import Layout
    from hairkit.sim.world import World

Matrix = NDArray[np.float64]

AIR_DRAG = 1.0
"""How strongly the wind pulls, of all drag [1/s]: 5 m/s of wind is half of gravity."""

FEW = 256
"""Fewer chains than this are read by the calling thread: waking others costs more."""
IDENTITY = np.eye(3)
USUAL_M = 0.3
"""Chains are simulated as if the longest were so long [m]: a doll and a giant sway alike."""


@dataclass(frozen=True, kw_only=True)
class ChainStyle:
    """What the solver asks of a style, for chains: they do not bend by themselves."""

    settings: ChainSettings
    radius: float
    hold: float = 0.5
    density: float = 1.0
    max_stretch: float = 0.0

    def bending_rigidity(self) -> float:
        """Return that joints are free."""
        return 0.0

    def bending_along(self, share: Matrix) -> Matrix:
        """Return what rigidity is multiplied by along a chain."""
        return np.ones_like(share)

    def stretch_limits(self) -> tuple[float, float]:
        """Return the strains that the length solve allows: bones keep their lengths."""
        return -0.002, 0.002

    def stretch_stiffness(self) -> float:
        """Return the spring along a bone [1/s^2]."""
        return RIGID_STRETCH

    def drag(self) -> float:
        """Return all drag for each unit of mass [1/s]."""
        return self.settings.drag()

    def contact_radius(self) -> float:
        """Return how far joints keep away from what they touch, in the solver's unit."""
        return self.radius


@dataclass(frozen=True, eq=False, kw_only=True)
class ChainGroom:
    """Chains as the solver takes strands, in the carrier's rigid frame and the solver's unit."""

    style: ChainStyle
    counts: NDArray[np.int32]
    points: Matrix
    laid: NDArray[np.int32]
    thickness: Matrix
    """Radius of each point as a share of the largest, shape (points,)."""

    unit: float
    """What lengths are counted in [m]."""

    stretch: Matrix
    """From the carrier's space into its rigid frame [m]: its scale, shear and mirroring, (3, 3)."""

    unstretch: Matrix
    """Its inverse, shape (3, 3)."""

    joints: NDArray[np.int64]
    """Rows of the plan's bones, chain by chain, shape (joints,)."""

    joint_counts: NDArray[np.int64]
    """How many joints each chain has, shape (chains,)."""

    rest: Matrix
    """From each joint to the next, the last to its tip, in the carrier's space, (joints, 3)."""

    still_gravity: Matrix
    """Direction of gravity at the rest pose in the carrier's rigid frame, unit length, (3,)."""

    pendulum: float
    """Length of the longest chain's part that turns [m]."""

    def rigid(self, pose: Matrix) -> Matrix:
        """Return a carrier's transform without its scale, in the solver's unit, shape (4, 4).

        Raises:
            WorldError: It is not a finite transform.
        """
        matrix = np.asarray(pose, dtype=np.float64)
        if matrix.shape != (4, 4) or not np.isfinite(matrix).all():
            raise WorldError("chains pose: expected a finite (4, 4) matrix")
        out = np.eye(4)
        turn = matrix[:3, :3] @ self.unstretch
        if np.abs(turn.T @ turn - IDENTITY).max() > 1e-6:
            # Its scale is another one than at first.
            turn = _turn_of(matrix[:3, :3])
        out[:3, :3] = turn
        out[:3, 3] = matrix[:3, 3] / self.unit
        return out


def _turn_of(linear: Matrix) -> Matrix:
    """Return the rotation that is nearest to a linear map; of a mirroring one, mirrored in x."""
    left, size, right = np.linalg.svd(linear)
    if size.min() <= 1e-9 * size.max() or size.max() == 0.0:
        raise WorldError("chains pose: expected a transform that is not flat")
    turn = left @ right
    if np.linalg.det(turn) < 0.0:
        turn = turn @ np.diag([-1.0, 1.0, 1.0])
    return np.asarray(turn, dtype=np.float64)


def chain_groom(rigged: Any, pose: Matrix, settings: ChainSettings) -> ChainGroom:
    """Return a rig's chains as strands.

    Args:
        rigged: Has `plan` (`positions`, `chains`) and `into_scene`, where the file has it.
        pose: The carrier's transform into the world, shape (4, 4).
        settings: How they move.

    Raises:
        WorldError: There is no chain, or one has no length, or the transform is flat.
    """
    plan = rigged.plan
    matrix = np.asarray(pose, dtype=np.float64)
    if matrix.shape != (4, 4) or not np.isfinite(matrix).all():
        raise WorldError("chains pose: expected a finite (4, 4) matrix")
    if not plan.chains or not all(len(chain) for chain in plan.chains):
        raise WorldError("chains: expected at least one, each with a joint")
    turn = _turn_of(matrix[:3, :3])
    stretch = turn.T @ matrix[:3, :3]
    positions = plan.positions
    strands, rest = [], []
    tips = getattr(rigged, "tips", None)
    for number, chain in enumerate(plan.chains):
        tip = None if tips is None else np.asarray(tips[number], dtype=np.float64)
        line = _line(positions[0], positions[list(chain)], tip)
        strands.append(line)
        rest.append(np.diff(line, axis=0)[1:])
    strategy = getattr(plan, "strategy", "")
    still = [settings.still_bones(strategy, len(chain)) for chain in plan.chains]
    lengths = [
        np.linalg.norm(np.diff(line[1 + first :], axis=0) @ stretch.T, axis=1).sum()
        for line, first in zip(strands, still, strict=True)
    ]
    longest = float(max(lengths))
    if not longest > 0.0:
        raise WorldError("chains: expected joints apart from each other")
    unit = longest / USUAL_M
    radii = [settings.radii(len(chain)) for chain in plan.chains]
    widest = max(max(each) for each in radii)
    # What collides is a bone's end; the first two points belong to the carrier.
    wide = np.concatenate([[each[0], each[0], *each] for each in radii])
    counts = np.array([len(line) for line in strands], np.int32)
    joints = np.concatenate([np.asarray(chain, np.int64) for chain in plan.chains])
    there = np.asarray(rigged.into_scene, dtype=np.float64)[:3, :3]
    down = _turn_of(there).T @ np.array([0.0, -1.0, 0.0])
    return ChainGroom(
        style=ChainStyle(settings=settings, radius=widest / unit),
        thickness=wide / max(widest, 1e-30),
        counts=counts,
        points=np.concatenate(strands) @ stretch.T / unit,
        laid=np.array(still, np.int32) + 2,
        unit=unit,
        stretch=stretch,
        unstretch=np.asarray(np.linalg.inv(stretch), dtype=np.float64),
        joints=joints,
        joint_counts=np.array([len(chain) for chain in plan.chains], np.int64),
        rest=np.concatenate(rest),
        still_gravity=down,
        pendulum=longest,
    )


def _line(root: Matrix, joints: Matrix, tip: Matrix | None) -> Matrix:
    """Return a chain's points: the root, its joints, and the tip that the last one points to.

    Without a tip the last bone is as long as the one before it and goes on as that came.
    """
    size = float(np.abs(joints - root).max()) or 1.0
    along = joints[-1] - (joints[-2] if len(joints) > 1 else root)
    if tip is not None:
        along = tip - joints[-1]
    length = float(np.linalg.norm(along))
    if length <= 1e-9 * size:
        along, length = np.array([0.0, -size, 0.0]), size
    line = [root, *joints, joints[-1] + along]
    # The solver needs points apart: joints in one place are moved on by next to nothing.
    for at in range(1, len(line)):
        if np.linalg.norm(line[at] - line[at - 1]) <= 1e-4 * size:
            if at == 1:
                line[0] = line[1] - (line[2] - line[1])
            else:
                line[at] = line[at - 1] + along * (1e-3 * size / length)
    return np.array(line)


def pendulum(length: float, down: ArrayLike) -> Any:
    """Return a rig of one bone that hangs from the origin.

    Args:
        length: Of the bone.
        down: Where it hangs.

    Raises:
        WorldError: It has no length or direction.
    """
    way = np.asarray(down, dtype=np.float64)
    size = float(np.linalg.norm(way)) if way.shape == (3,) else 0.0
    if not (np.isfinite(length) and length > 0.0 and np.isfinite(size) and size > 0.0):
        raise WorldError("pendulum: expected a length over 0 and a direction")
    way = way / size
    positions = np.array([-way * length, np.zeros(3)])
    plan = SimpleNamespace(positions=positions, chains=((1,),))
    # At rest it hangs straight down, whatever its space calls down.
    turn = _between(way[None], np.array([[0.0, -1.0, 0.0]]))[0]
    into_scene = np.eye(4)
    into_scene[:3, :3] = turn
    return SimpleNamespace(plan=plan, into_scene=into_scene, tips=way[None] * length)


class Chains(Hair):
    """A rigged hair's bone chains in a world; made by ``World.add_chains``.

    `joint_turns` gives what a skeleton needs after each step.
    """

    groom: Any

    def __init__(
        self, world: "World", groom: ChainGroom, pose: Matrix, layout: "Layout", rows: Any
    ) -> None:
        """Keep where their rows are; ``World.add_chains`` is the way to make them."""
        super().__init__(world, groom, pose, layout, rows)  # pyright: ignore[reportArgumentType]
        self.unit = groom.unit
        self._pose = pose
        self._active = True
        self._turns = np.tile([0.0, 0.0, 0.0, 1.0], (len(groom.joints), 1))
        start = np.concatenate([[0], np.cumsum(groom.joint_counts)[:-1]])
        self._chain_joints = np.stack([start, groom.joint_counts], axis=1).astype(np.int32)
        self._bone_ways = _unit(groom.rest).astype(np.float32)
        self._seen_turns = np.zeros((len(groom.joints), 4), np.float32)
        self._into = np.zeros((3, 3), np.float32)
        self._bound: tuple[Any, Any, Any] | None = None
        self._seen_at = -1
        self._held_at: Matrix | None = None

    @property
    def settings(self) -> ChainSettings:
        """How they move."""
        return self.groom.style.settings

    @property
    def position(self) -> Matrix:
        """Where they hang from in the world [m], shape (3,)."""
        pose = self._next_head
        return (pose[:3, :3] @ self.groom.points[1] + pose[:3, 3]) * self.unit

    @property
    def active(self) -> bool:
        """Whether they are simulated; if not, they keep the shape that they have."""
        return self._active

    @active.setter
    def active(self, value: bool) -> None:
        if bool(value) == self._active:
            return
        if value:
            # Where they were left, carried to where the head is now: nothing is seen to jump.
            if self._held_at is not None:
                self._carry(self._held_at, self._next_head)
            self._held_at = None
        else:
            self._turns = self.joint_turns()
            self._held_at = self.head_pose
        self._active = bool(value)
        self.wake()
        self._world.active_changed = True

    @property
    def at_rest(self) -> bool:
        """Whether the solver leaves them alone at present."""
        return self.sleeping or self.solid or not self._active

    def set_pose(self, pose: ArrayLike) -> None:
        """Say where what carries them is at the end of the next step.

        Args:
            pose: Its transform into the world, shape (4, 4). Scale, shear and mirroring stay those
                that they were added with.
        """
        self.set_head(self.groom.rigid(np.asarray(pose, dtype=np.float64)))

    def teleport(self, pose: ArrayLike, *, mode: str = "carry") -> None:
        """Put what carries them somewhere else at once.

        Args:
            pose: Its transform into the world, shape (4, 4).
            mode: ``carry`` keeps shape and motion as they are, seen from the carrier; ``rest`` puts
                them into their rest pose, still.

        Raises:
            WorldError: The mode is neither.
        """
        new = self.groom.rigid(np.asarray(pose, dtype=np.float64))
        if mode == "carry":
            self._carry(self.head_pose, new)
        elif mode == "rest":
            self.reset()
        else:
            raise WorldError(f"teleport mode: expected carry or rest, got {mode!r}")
        self._next_head = new
        self.wake()

    def _carry(self, old: Matrix, new: Matrix) -> None:
        """Move points rigidly from one pose of the carrier to another."""
        self._world.carry(self, old, new)
        self.head_pose = new
        self._next_head = new

    def points(self) -> Matrix:
        """Return the chains' points in the world [m], root, joints and tip of each, (points, 3)."""
        return self._world.read(self) * self.unit

    def joint_turns(self) -> Matrix:
        """Return each joint's rotation in its parent, from its rest pose, swung without twist.

        Returns:
            Quaternions (x, y, z, w) in the order of `joints`, shape (joints, 4), in the carrier's
            space.
        """
        if not self._active:
            return self._turns
        if self._seen_at != self._world.steps:
            self._turns = self._read_turns()
            self._seen_at = self._world.steps
        return self._turns

    @property
    def joints(self) -> NDArray[np.int64]:
        """Rows of the plan's bones that `joint_turns` speaks of, shape (joints,)."""
        return self.groom.joints

    def _read_turns(self) -> Matrix:
        """Work the rotations out of where the points are."""
        groom, world = self.groom, self._world
        world.session.check()
        self._into[:] = groom.unstretch @ self.head_pose[:3, :3].T
        bound = self._bound
        if bound is None or bound[0] is not world._table or bound[1] is not world.arena:
            limit = self.settings.angle_limit
            launch = bind(
                joints.swing,
                self.strand_count,
                self.strand_first,
                not world.session.gpu and self.strand_count < FEW,
                self._chain_joints,
                self._bone_ways,
                joints.LIMITLESS if limit is None else float(limit),
                world._table,
                self._into,
                world.arena,
                self._seen_turns,
            )
            bound = self._bound = (world._table, world.arena, launch)
        bound[2]()
        exact = self._seen_turns.astype(np.float64)
        return exact / np.linalg.norm(exact, axis=1, keepdims=True)

    def bone_matrices(self) -> Matrix:
        """Return the transform of each of the plan's bones in the carrier's space.

        Returns:
            What moves vertices at the rest pose to where the bones take them, shape (bones, 4, 4),
            the root's first.
        """
        groom = self.groom
        turns = _matrices(self.joint_turns())
        out = np.tile(np.eye(4), (int(groom.joints.max()) + 1, 1, 1))
        start = np.concatenate([[0], np.cumsum(groom.joint_counts)[:-1]]).astype(np.int64)
        place = self._anchor()
        carried = np.tile(np.eye(3), (len(start), 1, 1))
        for bone in range(int(groom.joint_counts.max())):
            mine = np.flatnonzero(groom.joint_counts > bone)
            row = start[mine] + bone
            carried[mine] = carried[mine] @ turns[row]
            joint = groom.joints[row]
            out[joint, :3, :3] = carried[mine]
            rest = self._joint_rest()[row]
            out[joint, :3, 3] = place[mine] - np.einsum("nij,nj->ni", carried[mine], rest)
            place[mine] += np.einsum("nij,nj->ni", carried[mine], groom.rest[row])
        return out

    def skin_matrices(self) -> Matrix:
        """Return what each of the plan's bones does to the mesh, in the world, (bones, 4, 4).

        What moves vertices from the carrier's space at the rest pose to where bones take them in
        the world.
        """
        return self.pose @ self.bone_matrices()

    def joint_matrices(self) -> Matrix:
        """Return where each of the plan's bones is in the world, shape (bones, 4, 4).

        The transforms of nodes that stand unturned in the carrier's space at the rest pose, as
        those that `rig` writes do. Row 0 is the carrier's own.
        """
        places = np.tile(np.eye(4), (int(self.groom.joints.max()) + 1, 1, 1))
        places[self.groom.joints, :3, 3] = self._joint_rest()
        return self.skin_matrices() @ places

    @property
    def pose(self) -> Matrix:
        """Where what carries them is: its transform into the world, shape (4, 4)."""
        out = self.head_pose.copy()
        out[:3, :3] = out[:3, :3] @ self.groom.stretch
        out[:3, 3] *= self.unit
        return out

    def vertices(self, rigged: Any) -> Matrix:
        """Return where a rigged mesh's vertices are in the world [m], shape (v, 3).

        Args:
            rigged: The `RiggedHair` that the chains came from.
        """
        plan = rigged.plan
        count = len(rigged.vertices)
        places = np.zeros((count, 3), np.float32)
        joints.blend(
            count,
            plan.weights.indices.shape[1],
            np.ascontiguousarray(rigged.vertices, np.float32),
            np.ascontiguousarray(plan.weights.indices, np.int32),
            np.ascontiguousarray(plan.weights.weights, np.float32),
            # Seen from the root, where f32 is finest.
            np.ascontiguousarray(self._from_root()[:, :3], np.float32),
            places,
        )
        return places.astype(np.float64) + self.pose[:3, 3]

    def _from_root(self) -> Matrix:
        """Return `skin_matrices` without the carrier's place."""
        linear = np.eye(4)
        linear[:3, :3] = self.pose[:3, :3]
        return linear @ self.bone_matrices()

    def _joint_rest(self) -> Matrix:
        """Return where joints are at the rest pose in the carrier's space, shape (joints, 3)."""
        groom = self.groom
        first = np.concatenate([[0], np.cumsum(groom.counts)[:-1]]).astype(np.int64)
        rows = np.concatenate(
            [at + 1 + np.arange(n) for at, n in zip(first, groom.joint_counts, strict=True)]
        )
        return np.linalg.solve(groom.stretch, (groom.points[rows] * groom.unit).T).T

    def _anchor(self) -> Matrix:
        """Return where each chain's first joint is in the carrier's space, shape (chains, 3)."""
        start = np.concatenate([[0], np.cumsum(self.groom.joint_counts)[:-1]]).astype(np.int64)
        return self._joint_rest()[start].copy()

    # The world drives what follows.

    def in_units(self, pose: Matrix) -> Matrix:
        """Return a pose as the solver has it."""
        if self.unit == 1.0:
            return pose
        out = pose.copy()
        out[:3, 3] /= self.unit
        return out

    def after_step(self, dt: float) -> None:
        """Take note that a step was made; turn joints back that went past their limit."""
        super().after_step(dt)
        limit = self.settings.angle_limit
        if limit is None or self.at_rest:
            return
        pose, groom = self.head_pose[:3, :3], self.groom
        joints.keep_limits(
            self.strand_count,
            self.strand_first,
            self._chain_joints,
            self._bone_ways,
            float(limit),
            np.ascontiguousarray(groom.unstretch @ pose.T, np.float32),
            np.ascontiguousarray(pose @ groom.stretch, np.float32),
            self._world.arena,
        )

    def write_air(self, row: NDArray[np.float32], wind: Matrix, gravity: Matrix) -> None:
        """Fill in wind and gravity: what gravity is at the rest pose is not felt."""
        settings, groom = self.settings, self.groom
        share = settings.wind * self.wind * AIR_DRAG / max(settings.drag(), AIR_DRAG)
        row[col.WIND_NOW : col.WIND_NOW + 3] = wind * (share / self.unit)
        strength = float(np.linalg.norm(gravity))
        still = self._next_head[:3, :3] @ (groom.still_gravity * strength)
        felt = (gravity - still) * (settings.gravity / self.unit)
        row[col.GRAVITY : col.GRAVITY + 3] = felt
        self._pull = settings.gravity * strength / groom.pendulum

    def write_step(self, numbers: NDArray[np.float32], dt: float, clock: float) -> None:
        """Fill in their row for a step of dt seconds."""
        if not self._active:
            self.head_pose = self._next_head
            self._quiet = 0.0
            return
        super().write_step(numbers, dt, clock)
        free = max(self._freedom / (1.0 - self._hold), 1e-3)
        spring = (self.settings.spring() + self._pull) / free
        numbers[self.index, col.HOLD] = spring


def _unit(v: Matrix) -> Matrix:
    """Return vectors of length 1, shape (n, 3)."""
    return v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300)


def _between(a: Matrix, b: Matrix) -> Matrix:
    """Return the smallest rotations of unit vectors a to b, shape (n, 3, 3)."""
    axis, dot = np.cross(a, b), np.sum(a * b, axis=1)
    cross = np.zeros((len(a), 3, 3))
    cross[:, 0, 1], cross[:, 0, 2], cross[:, 1, 2] = -axis[:, 2], axis[:, 1], -axis[:, 0]
    cross -= cross.transpose(0, 2, 1)
    # Two opposite vectors have no smallest rotation; this one is near enough to none.
    share = 1.0 / np.maximum(1.0 + dot, 1e-9)
    turn = np.eye(3) + cross + cross @ cross * share[:, None, None]
    flip = dot < -1.0 + 1e-6
    if flip.any():
        spare = np.eye(3)[np.argmin(np.abs(a[flip]), axis=1)]
        about = _unit(np.cross(a[flip], spare))
        turn[flip] = 2.0 * about[:, :, None] * about[:, None, :] - np.eye(3)
    return turn


def _matrices(quaternions: Matrix) -> Matrix:
    """Return quaternions (x, y, z, w) as rotations, shape (n, 3, 3)."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(quaternions).as_matrix()
