"""Poses: where a head is and how it is turned, as (4, 4) matrices, and the maths of many at once.

A pose takes the head's frame to the world's: rotation about the head frame's origin, translation
[m] in the last column. +Y is up, +Z the face, +X the head's left.
"""

from collections.abc import Sequence

import numpy as np

from hairkit.errors import WorldError


def head_pose(
    *,
    yaw: float | np.ndarray = 0.0,
    pitch: float | np.ndarray = 0.0,
    roll: float | np.ndarray = 0.0,
    position: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0),
) -> np.ndarray:
    """Return the pose of a head that is rolled, then pitched, then yawed, then moved.

    Args:
        yaw: Turn about +Y [rad], positive to the head's left; a number or shape (n,).
        pitch: Turn about +X [rad], positive lowers the face; a number or shape (n,).
        roll: Turn about +Z [rad], positive tips the head to its right; a number or shape (n,).
        position: Where the head's origin is [m], shape (3,) or (n, 3).

    Returns:
        Poses, shape (4, 4), or (n, 4, 4) when any argument has n entries.
    """
    place = np.asarray(position, dtype=np.float64)
    yaw, pitch, roll, _ = np.broadcast_arrays(yaw, pitch, roll, place[..., 0])
    turn = _about(1, yaw) @ _about(0, pitch) @ _about(2, roll)
    pose = np.zeros((*yaw.shape, 4, 4))
    pose[..., :3, :3] = turn
    pose[..., :3, 3] = place
    pose[..., 3, 3] = 1.0
    return pose


def body_pose(pose: np.ndarray) -> np.ndarray:
    """Return what neck and shoulders do under a head pose: they move with it but do not turn.

    Args:
        pose: Head poses, shape (..., 4, 4).
    """
    body = np.zeros_like(np.asarray(pose, dtype=np.float64))
    body[...] = np.eye(4)
    body[..., :3, 3] = np.asarray(pose)[..., :3, 3]
    return body


def rigid(poses: np.ndarray) -> np.ndarray:
    """Return poses with exact rotations; the array that is given is changed.

    Args:
        poses: Poses, shape (n, 4, 4), float64.

    Raises:
        WorldError: A pose is not finite, or is further than a thousandth from rigid.
    """
    if poses.ndim != 3 or poses.shape[1:] != (4, 4) or not len(poses):
        raise WorldError(f"poses: expected shape (frames, 4, 4), got {poses.shape}")
    turn = poses[:, :3, :3]
    finite = np.abs(poses).max(axis=(1, 2)) < 1e12  # false for NaN too
    safe = np.where(finite[:, None, None], turn, np.eye(3))
    off = np.abs(safe @ safe.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
    good = finite & (off < 1e-3) & (np.linalg.det(safe) > 0.0)
    good &= np.abs(poses[:, 3] - [0.0, 0.0, 0.0, 1.0]).max(axis=1) < 1e-6
    if not good.all():
        frame = int(np.argmin(good))
        what = "rotation and translation" if finite[frame] else "finite numbers"
        raise WorldError(f"poses[{frame}]: expected {what}, got {poses[frame].tolist()}")
    # Left alone when exact, so that what was saved is what is read.
    loose = np.flatnonzero(off > 1e-12)
    if loose.size:
        left, _, right = np.linalg.svd(turn[loose])
        poses[loose, :3, :3] = left @ right
    poses[:, 3] = [0.0, 0.0, 0.0, 1.0]
    return poses


def from_quaternions(rows: np.ndarray) -> np.ndarray:
    """Return poses, shape (n, 4, 4), from positions and quaternions.

    Args:
        rows: x y z [m] and a quaternion x y z w a row, shape (n, 7).

    Raises:
        WorldError: A quaternion's length is not 1.
    """
    size = np.linalg.norm(rows[:, 3:], axis=1)
    wrong = np.flatnonzero(~(np.abs(size - 1.0) < 1e-2))
    if wrong.size:
        row = rows[wrong[0], 3:].tolist()
        raise WorldError(f"poses[{wrong[0]}]: expected a quaternion of length 1, got {row}")
    axis, scalar = rows[:, 3:6] / size[:, None], rows[:, 6] / size
    cross = _cross_matrix(axis)
    pose = np.zeros((len(rows), 4, 4))
    pose[:] = np.eye(4)
    pose[:, :3, :3] += 2.0 * (scalar[:, None, None] * cross + cross @ cross)
    pose[:, :3, 3] = rows[:, :3]
    return pose


def _cross_matrix(axis: np.ndarray) -> np.ndarray:
    cross = np.zeros((len(axis), 3, 3))
    cross[:, 2, 1], cross[:, 0, 2], cross[:, 1, 0] = axis.T
    return cross - cross.transpose(0, 2, 1)


def between(time: np.ndarray, times: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """Return poses at other times: positions on a straight line, rotations about one axis.

    Args:
        time: Times wanted [s], shape (n,); before the first and after the last pose, that pose.
        times: Times of the poses [s], increasing, shape (m,).
        poses: Poses, shape (m, 4, 4).

    Returns:
        Poses, shape (n, 4, 4).
    """
    if len(times) == 1:
        return np.repeat(poses, len(time), axis=0)
    place = np.clip(np.searchsorted(times, time, side="right") - 1, 0, len(times) - 2)
    share = np.clip((time - times[place]) / (times[place + 1] - times[place]), 0.0, 1.0)
    # A time that is a frame's, but for rounding, gets that frame's pose to the last bit.
    share = np.where(share < 1e-6, 0.0, np.where(share > 1.0 - 1e-6, 1.0, share))
    first, second = poses[place], poses[place + 1]
    result = first + share[:, None, None] * (second - first)
    relative = first[:, :3, :3].transpose(0, 2, 1) @ second[:, :3, :3]
    result[:, :3, :3] = first[:, :3, :3] @ _partly(relative, share)
    exact = np.where(np.equal(share, 1.0)[:, None, None], second, first)
    between_frames = (share > 0.0) & (share < 1.0)
    return np.where(between_frames[:, None, None], result, exact)


def _partly(turn: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return a share of each rotation, about its own axis (Rodrigues' formula)."""
    twice = np.stack(
        [
            turn[:, 2, 1] - turn[:, 1, 2],
            turn[:, 0, 2] - turn[:, 2, 0],
            turn[:, 1, 0] - turn[:, 0, 1],
        ],
        axis=1,
    )
    trace = np.trace(turn, axis1=1, axis2=2)
    sine = 0.5 * np.linalg.norm(twice, axis=1)
    angle = np.arctan2(sine, 0.5 * (trace - 1.0))
    # Near half a turn the antisymmetric part vanishes; the symmetric part still has the axis.
    symmetric = 0.5 * (turn + turn.transpose(0, 2, 1))
    column = np.argmax(np.diagonal(symmetric, axis1=1, axis2=2), axis=1)
    outer = symmetric - np.cos(angle)[:, None, None] * np.eye(3)
    flat = outer[np.arange(len(turn)), :, column]
    flat = flat * np.where((flat * twice).sum(axis=1, keepdims=True) < 0.0, -1.0, 1.0)
    axis = np.where((sine > 1e-3)[:, None] | (trace > 0.0)[:, None], twice, flat)
    axis = axis / np.maximum(np.linalg.norm(axis, axis=1, keepdims=True), 1e-300)
    cross = _cross_matrix(axis)
    part = (share * angle)[:, None, None]
    return np.eye(3) + np.sin(part) * cross + (1.0 - np.cos(part)) * (cross @ cross)


def _about(axis: int, angle: np.ndarray) -> np.ndarray:
    one, two = (axis + 1) % 3, (axis + 2) % 3
    turn = np.zeros((*np.shape(angle), 3, 3))
    turn[..., axis, axis] = 1.0
    turn[..., one, one] = turn[..., two, two] = np.cos(angle)
    turn[..., two, one] = np.sin(angle)
    turn[..., one, two] = -np.sin(angle)
    return turn
