"""Bone chains that sway: at rest, at any frame rate and scale, and by the meaning of settings."""

from types import SimpleNamespace
from typing import Any

import gltf_scenes as g
import numpy as np
import pytest

import hairkit as hk
from hairkit.errors import HairkitError, WorldError
from hairkit.shapes import DistanceGrid, Sphere
from hairkit.sway.settings import ChainSettings

LENGTH = 0.3


def hanging(joints: int = 4, chains: int = 3, length: float = LENGTH) -> Any:
    """Return a rig of chains that hang side by side, like what `rig` returns."""
    step = length / joints
    positions = [(0.0, 0.05 * length / LENGTH, 0.0)]
    rows = []
    for chain in range(chains):
        x = 0.1 * (chain - 1) * length / LENGTH
        rows.append(tuple(len(positions) + i for i in range(joints)))
        positions += [(x, -step * i, 0.0) for i in range(joints)]
    plan = SimpleNamespace(positions=np.array(positions), chains=tuple(rows))
    return SimpleNamespace(plan=plan, into_scene=np.eye(4))


def turned(axis: int, angle: float) -> np.ndarray:
    """Return a rotation as a pose."""
    pose = np.eye(4)
    a, b = [i for i in range(3) if i != axis]
    pose[a, a] = pose[b, b] = np.cos(angle)
    pose[a, b], pose[b, a] = -np.sin(angle), np.sin(angle)
    return pose


def played(world: Any, chains: Any, motion: Any, carrier: np.ndarray | None = None) -> np.ndarray:
    """Move chains along a motion at 60 Hz and return the last pose."""
    last = np.eye(4)
    for pose in motion:
        last = pose if carrier is None else pose @ carrier
        chains.set_pose(last)
        world.step(1 / 60)
    return last


@pytest.fixture(name="world")
def one_world(world: Any) -> Any:
    """Return a world on each backend that is tested."""
    return world()


def test_rest_pose_is_at_rest(world: Any):
    """Leave a real rig alone for five seconds: nothing moves, then it sleeps."""
    chains = world.add_chains(hk.rig(g.card_mesh()))
    before = chains.points()
    for _ in range(300):
        world.step(1 / 60)
    assert np.abs(chains.points() - before).max() <= 1e-5 * LENGTH
    assert chains.sleeping
    assert np.abs(chains.joint_turns()[:, :3]).max() < 1e-4
    assert np.abs(chains.bone_matrices() - np.eye(4)).max() < 1e-4


@pytest.mark.parametrize("rate", [30, 60, 144, 240])
def test_path_is_the_same_at_any_frame_rate(world: Any, rate: int):
    """Nod, and compare where tips go with what 120 Hz gives: within 3 % of the length."""
    paths = []
    for each in (720, rate):
        world.wind = (1.0, 0.0, 0.5)
        chains = world.add_chains(hanging())
        motion = hk.motions.turn_and_nod(seconds=3, rate=each)
        tips = []
        for pose in motion:
            chains.set_pose(pose)
            world.step(1.0 / each)
            tips.append(chains.points()[5::6])
        paths.append(dict(zip(np.round(np.asarray(motion.times) * 720), tips, strict=True)))
        world.remove(chains)
    wanted, got = paths
    shared = sorted(set(wanted) & set(got))
    assert len(shared) >= 70
    assert max(np.abs(got[t] - wanted[t]).max() for t in shared) <= 0.03 * LENGTH


def ball_grid(center: np.ndarray, radius: float) -> DistanceGrid:
    """Return a ball as a grid of distances."""
    axis = np.linspace(-1.5 * radius, 1.5 * radius, 24)
    places = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    values = np.linalg.norm(places, axis=-1) - radius
    return DistanceGrid(
        values=values.astype(np.float32), origin=tuple(center + axis[0]), cell=axis[1] - axis[0]
    )


@pytest.mark.parametrize("grid", [False, True], ids=["ball", "grid"])
@pytest.mark.parametrize("scale", [0.01, 0.2, 8.0, 100.0])
def test_scale_changes_nothing_but_sizes(world: Any, scale: float, grid: bool):
    """Scale lengths, gravity and wind together, by the node or by the mesh: scaled motion."""
    tips = []
    for node, size in ((1.0, 1.0), (scale, 1.0), (1.0, scale)):
        s = node * size
        world.gravity, world.wind = (0.0, -9.81 * s, 0.0), (1.0 * s, 0.0, 0.0)
        center, radius = np.array([0.0, -0.25, 0.08]) * s, 0.05 * s
        shape: Any = Sphere(center=tuple(center), radius=radius)
        if grid:
            shape = ball_grid(center, radius)
        ball = world.add_collider(shape)
        settings = ChainSettings(radius=0.01 * s)
        chains = world.add_chains(
            hanging(length=LENGTH * size), settings, pose=np.diag([node, node, node, 1.0])
        )
        path = []
        for pose in hk.motions.nod(seconds=2, rate=60):
            moved = pose @ np.diag([node, node, node, 1.0])
            moved[:3, 3] *= s
            chains.set_pose(moved)
            world.step(1 / 60)
            path.append(chains.points() / s)
        tips.append(np.array(path))
        world.remove(chains)
        world.remove(ball)
    assert np.abs(tips[1] - tips[0]).max() <= 0.01 * LENGTH
    assert np.abs(tips[2] - tips[0]).max() <= 0.01 * LENGTH


def test_mirrored_parent_gives_mirrored_motion(world: Any):
    """Mirror the carrier in x: points are mirrored, and rotations, seen in it, the same."""
    seen = []
    for side in (1.0, -1.0):
        world.wind = (side * 2.0, 0.0, 1.0)
        mirror = np.diag([side, 1.0, 1.0, 1.0])
        chains = world.add_chains(hanging(), pose=mirror)
        for pose in hk.motions.nod(seconds=1, rate=60):
            chains.set_pose(pose @ mirror)
            world.step(1 / 60)
        seen.append((chains.points() * [side, 1, 1], chains.joint_turns()))
        world.remove(chains)
    assert np.abs(seen[1][0] - seen[0][0]).max() <= 1e-4 * LENGTH
    assert np.abs(seen[1][1] - seen[0][1]).max() <= 1e-3


def test_teleport_carries_or_resets(world: Any):
    """Go 100 m away, turned round, in mid swing: the shape is kept, or the rest pose taken."""
    chains = world.add_chains(hanging())
    pose = played(world, chains, hk.motions.nod(seconds=0.7, rate=60))
    before = chains.joint_turns().copy()
    assert np.abs(before[:, :3]).max() > 0.05
    away = turned(1, np.pi) @ pose
    away[:3, 3] += (100.0, 5.0, 0.0)
    chains.teleport(away)
    world.step(1e-4)
    assert np.abs(chains.joint_turns() - before).max() <= 2e-3
    local = (chains.points() - away[:3, 3]) @ away[:3, :3]
    chains.teleport(pose)
    world.step(1e-4)
    back = (chains.points() - pose[:3, 3]) @ pose[:3, :3]
    assert np.abs(back - local).max() <= 2e-3 * LENGTH
    chains.teleport(away, mode="rest")
    world.step(1e-4)
    assert np.abs(chains.joint_turns()[:, :3]).max() < 1e-3
    with pytest.raises(WorldError, match="carry or rest"):
        chains.teleport(away, mode="fling")


def test_carried_shape_is_exact(world: Any):
    """Carry points without a step: each is where a rigid motion takes it, within 1e-5."""
    chains = world.add_chains(hanging())
    pose = played(world, chains, hk.motions.nod(seconds=0.5, rate=60))
    before = (chains.points() - pose[:3, 3]) @ pose[:3, :3]
    away = turned(2, 0.7) @ pose
    away[:3, 3] += (10.0, 0.0, 0.0)
    chains.teleport(away)
    after = (chains.points() - away[:3, 3]) @ away[:3, :3]
    assert np.abs(after - before).max() <= 1e-5


def test_hair_out_of_budget_keeps_its_shape_and_comes_back_without_a_jump(world: Any):
    """Hold chains in mid swing, carry them off, let them go again: they go on from there."""
    chains = world.add_chains(hanging())
    pose = played(world, chains, hk.motions.nod(seconds=0.7, rate=60))
    before = chains.joint_turns().copy()
    chains.active = False
    for step in range(30):
        pose = turned(1, 0.02 * step)
        pose[:3, 3] = (0.05 * step, 0.0, 0.0)
        chains.set_pose(pose)
        world.step(1 / 60)
        assert np.array_equal(chains.joint_turns(), before)
    chains.active = True
    chains.set_pose(pose)
    world.step(1 / 240)
    assert np.abs(chains.joint_turns() - before).max() < 0.05


def test_bones_reach_where_the_solver_has_them(world: Any):
    """Move the rest joints by the bones' matrices: they lie on the solver's points."""
    rigged = hk.rig(g.card_mesh(), segments=4)
    pose = np.diag([2.0, 2.0, 2.0, 1.0])
    chains = world.add_chains(rigged, pose=pose)
    world.wind = (4.0, 0.0, 2.0)
    carrier = played(world, chains, hk.motions.nod(seconds=1, rate=60), pose)
    points = chains.points().reshape(3, 6, 3)
    matrices = chains.bone_matrices()
    joints = chains.joint_matrices()
    assert joints[0] == pytest.approx(carrier)
    for number, chain in enumerate(rigged.plan.chains):
        for at, joint in enumerate(chain):
            place = matrices[joint] @ np.append(rigged.plan.positions[joint], 1.0)
            seen = (carrier @ place)[:3]
            assert joints[joint, :3, 3] == pytest.approx(seen, abs=1e-6)
            assert np.linalg.norm(seen - points[number, 1 + at]) <= 0.01 * LENGTH * 2.0
    assert np.abs(chains.joint_turns()[:, :3]).max() > 0.1


def test_joints_swing_without_twist(world: Any):
    """Look at each rotation's axis: at right angles to the bone at rest."""
    chains = world.add_chains(hanging())
    world.wind = (3.0, 0.0, 2.0)
    played(world, chains, hk.motions.turn_and_nod(seconds=1.5, rate=60))
    turns = chains.joint_turns()
    assert np.abs(turns[:, :3]).max() > 0.05
    assert np.abs(turns[:, 1]).max() < 1e-9
    assert np.linalg.norm(turns, axis=1) == pytest.approx(1.0, abs=1e-12)


def test_mesh_follows_its_bones(world: Any):
    """Skin a mesh by the kernel and by plain loops; at rest it lies where the mesh does."""
    rigged = hk.rig(g.card_mesh(), max_influences=4)
    pose = turned(1, 0.5) @ np.diag([2.0, 2.0, 2.0, 1.0])
    chains = world.add_chains(rigged, pose=pose)
    rest = rigged.vertices @ pose[:3, :3].T
    assert np.abs(chains.vertices(rigged) - rest).max() < 1e-5
    world.wind = (4.0, 0.0, 2.0)
    played(world, chains, hk.motions.nod(seconds=0.5, rate=60), pose)
    matrices = chains.skin_matrices()
    wanted = []
    for vertex, bones, shares in zip(rigged.vertices, *rigged.plan.weights, strict=True):
        whole = np.append(vertex, 1.0)
        parts = [w * (matrices[b] @ whole)[:3] for b, w in zip(bones, shares, strict=True)]
        wanted.append(sum(parts))
    assert np.abs(chains.vertices(rigged) - wanted).max() < 1e-5
    assert np.abs(chains.vertices(rigged) - rest).max() > 0.02


def test_rotations_are_those_of_plain_numpy(world: Any):
    """Work rotations out again from the points, in plain NumPy: bones point where they must."""
    chains = world.add_chains(hanging())
    world.wind = (3.0, 0.0, 2.0)
    pose = played(world, chains, hk.motions.turn_and_nod(seconds=1.0, rate=60))
    points = (chains.points() - pose[:3, 3]) @ pose[:3, :3]
    turns = chains.joint_turns().reshape(3, 4, 4)
    for number, line in enumerate(points.reshape(3, 6, 3)):
        carried = np.eye(3)
        for joint in range(4):
            x, y, z, w = turns[number, joint]
            cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
            carried = carried @ (np.eye(3) + 2 * w * cross + 2 * cross @ cross)
            way = line[joint + 2] - line[joint + 1]
            assert carried @ [0, -1, 0] == pytest.approx(way / np.linalg.norm(way), abs=1e-5)


def bends(points: np.ndarray) -> np.ndarray:
    """Return the angles between neighbouring bones of three hanging chains, the first one's too."""
    ways = np.diff(points.reshape(3, 6, 3)[:, 1:], axis=1)
    ways = np.concatenate([np.tile([0.0, -1.0, 0.0], (3, 1, 1)), ways], axis=1)
    ways /= np.linalg.norm(ways, axis=2, keepdims=True)
    return np.arccos(np.clip(np.sum(ways[:, 1:] * ways[:, :-1], axis=2), -1.0, 1.0))


def test_angle_limit_holds(world: Any):
    """Blow hard: no joint turns by more than its limit, nor do the points behind it."""
    chains = world.add_chains(hanging(), ChainSettings(angle_limit=0.2, stiffness=0.0))
    free = world.add_chains(hanging(), ChainSettings(stiffness=0.0))
    world.wind = (15.0, 0.0, 0.0)
    for _ in range(60):
        world.step(1 / 60)
        assert bends(chains.points()).max() <= 0.2 + 2e-3
    angles = [2.0 * np.arccos(np.clip(c.joint_turns()[:, 3], -1, 1)) for c in (chains, free)]
    assert angles[0].max() <= 0.2 + 1e-6 and angles[1].max() > 0.3
    # It gives way up to its limits, and keeps its lengths.
    assert bends(chains.points()).max() > 0.19
    lengths = np.linalg.norm(np.diff(chains.points().reshape(3, 6, 3)[:, 1:], axis=1), axis=2)
    assert lengths == pytest.approx(LENGTH / 4, rel=0.01)
    # In still air it comes back: nothing was caught at the limit.
    world.wind = (0.0, 0.0, 0.0)
    for _ in range(240):
        world.step(1 / 60)
    assert bends(chains.points()).max() < 0.05


@pytest.mark.parametrize("rate", [30, 144])
def test_limited_chains_sway_alike_at_any_frame_rate(world: Any, rate: int):
    """Nod against limits at two rates: tips stay within 3 % of the length of each other."""
    paths = []
    for each in (240, rate):
        chains = world.add_chains(hanging(), ChainSettings(angle_limit=0.15, stiffness=0.02))
        motion = hk.motions.nod(seconds=2, rate=each)
        tips = []
        for pose in motion:
            chains.set_pose(pose)
            world.step(1.0 / each)
            tips.append(chains.points()[5::6])
        paths.append(dict(zip(np.round(np.asarray(motion.times) * 720), tips, strict=True)))
        world.remove(chains)
    shared = sorted(set(paths[0]) & set(paths[1]))
    assert len(shared) >= 40
    assert max(np.abs(paths[0][t] - paths[1][t]).max() for t in shared) <= 0.03 * LENGTH


def test_chain_hangs_straight_down_when_its_head_tilts(world: Any):
    """Tilt slowly by half a radian without stiffness: tips come to hang below their roots."""
    chains = world.add_chains(hanging(), ChainSettings(stiffness=0.0, damping=0.8))
    for step in range(400):
        chains.set_pose(turned(2, min(step / 200, 1.0) * 0.5))
        world.step(1 / 60)
    points = chains.points().reshape(3, 6, 3)
    away = points[:, 5] - points[:, 1]
    assert np.abs(np.arctan2(away[:, 0], -away[:, 1])).max() < 0.05


def swinging(backend: str, damping: float) -> np.ndarray:
    """Push a pendulum's pivot aside and return its angles, 240 a second.

    On a fine clock: the solver's own loses another tenth of a swing a second or more.
    """
    world = hk.World(backend, clock=1 / 480)
    world.sleep = False
    chains = world.add_pendulum(0.4, ChainSettings(stiffness=0.0, damping=damping))
    pose = np.eye(4)
    pose[0, 3] = 0.03
    chains.set_pose(pose)
    world.step(0.05)
    angles = []
    for _ in range(960):
        world.step(1 / 240)
        tip = chains.points()
        angles.append(np.arctan2(tip[2, 0] - tip[1, 0], tip[1, 1] - tip[2, 1]))
    world.close()
    return np.array(angles)


def test_pendulum_has_its_period(backend: str):
    """Swing freely and count: 2 pi sqrt(length / gravity)."""
    angles = swinging(backend, 1.0)
    crossings = np.flatnonzero((angles[:-1] < 0.0) & (angles[1:] >= 0.0))
    period = np.diff(crossings).mean() / 240
    assert period == pytest.approx(2.0 * np.pi * np.sqrt(0.4 / 9.81), rel=0.01)


@pytest.mark.parametrize("damping", [0.95, 0.98])
def test_damping_is_what_a_frame_leaves(backend: str, damping: float):
    """Swing with damping: amplitudes fall as the speed that each frame keeps says."""
    angles = np.abs(swinging(backend, damping))
    inner = angles[1:-1]
    peaks = 1 + np.flatnonzero((inner > angles[:-2]) & (inner >= angles[2:]))
    first, last = peaks[0], peaks[2]
    # Energy of a swing falls at the rate of the drag: amplitudes at half of it.
    fall = np.log(angles[first] / angles[last]) / ((last - first) / 240)
    assert fall == pytest.approx(-60 * np.log(damping) / 2, rel=0.05)


@pytest.mark.parametrize("damping", [0.8, 0.92])
def test_wind_pulls_a_metre_a_second_squared_for_each_metre_a_second(world: Any, damping: float):
    """Hang a pendulum in a steady wind: it leans as far as wind and gravity say, however damped."""
    chains = world.add_pendulum(0.4, ChainSettings(stiffness=0.0, damping=damping))
    world.wind = (2.0, 0.0, 0.0)
    for _ in range(900):
        world.step(1 / 60)
    tip = chains.points()[2]
    assert np.arctan2(tip[0], -tip[1]) == pytest.approx(np.arctan(2.0 / 9.81), rel=0.03)


def test_stiffness_is_the_way_back_in_a_frame(world: Any):
    """Push by a steady wind, damped heavily, and let go: the way back goes as stated."""
    settings = ChainSettings(stiffness=0.1, damping=0.05, gravity=0.0)
    chains = world.add_pendulum(0.4, settings)
    world.wind = (20.0, 0.0, 0.0)
    for _ in range(240):
        world.step(1 / 60)
    world.wind = (0.0, 0.0, 0.0)
    for _ in range(2):
        world.step(1 / 60)
    away = [chains.points()[2, 0]]
    for _ in range(10):
        world.step(1 / 60)
        away.append(chains.points()[2, 0])
    left = (away[10] / away[0]) ** 0.1
    assert away[0] > 1e-3 and left == pytest.approx(0.9, abs=0.01)


def test_chains_keep_out_of_colliders_by_their_radius(world: Any):
    """Blow chains on to a ball: joints stay a radius away."""
    settings = ChainSettings(radius=0.02, stiffness=0.0)
    chains = world.add_chains(hanging(), settings)
    world.add_collider(Sphere(center=(0.0, -0.2, 0.06), radius=0.05))
    world.wind = (0.0, 0.0, 5.0)
    gaps = []
    for _ in range(180):
        world.step(1 / 60)
        points = chains.points().reshape(3, 6, 3)[:, 2:]
        gaps.append((np.linalg.norm(points - [0.0, -0.2, 0.06], axis=2) - 0.05).min())
    assert min(gaps) > -1e-4 and gaps[-1] < 0.03


@pytest.mark.parametrize("grid", [False, True], ids=["ball", "grid"])
def test_each_bone_has_its_radius(world: Any, grid: bool):
    """Blow chains on to a ball with thick first bones and thin last ones: each keeps its own."""
    radii = (0.03, 0.02, 0.01, 0.004)
    chains = world.add_chains(hanging(), ChainSettings(radius=radii, stiffness=0.0))
    center = np.array([0.0, -0.2, 0.12])
    ball: Any = Sphere(center=tuple(center), radius=0.1)
    world.add_collider(ball_grid(center, 0.1) if grid else ball)
    world.wind = (0.0, 0.0, 6.0)
    for _ in range(240):
        world.step(1 / 60)
    points = chains.points().reshape(3, 6, 3)[1, 2:]
    gaps = np.linalg.norm(points - center, axis=1) - 0.1
    assert (gaps > np.array(radii) - 2e-3).all()
    # The middle two are pressed on to it.
    assert gaps[1:3] == pytest.approx(radii[1:3], abs=3e-3)


def test_chains_and_hair_share_a_world(world: Any):
    """Put both in, take chains out again: hair goes on, rows are free for the next."""
    hair = world.add_hair(hk.grow(hk.load_style("short"), hk.Head.sphere(radius=0.1), guides=8))
    chains = world.add_chains(hanging())
    for _ in range(10):
        world.step(1 / 60)
    rows = dict(chains._rows)
    world.remove(chains)
    world.step(1 / 60)
    again = world.add_chains(hanging())
    assert again._rows == rows and world.hairs == [hair] and world.chains == [again]
    assert np.isfinite(hair.points()).all()
    with pytest.raises(WorldError):
        world.remove(chains)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"damping": 0.0}, "damping"),
        ({"stiffness": 1.0}, "stiffness"),
        ({"wind": -1.0}, "wind"),
        ({"radius": float("nan")}, "radius"),
        ({"radius": (0.01, -1.0)}, "radius"),
        ({"radius": ()}, "radius"),
        ({"still": -1}, "still"),
        ({"angle_limit": 4.0}, "angle_limit"),
    ],
)
def test_settings_out_of_range(settings: dict[str, Any], says: str):
    """Refuse each by its name."""
    with pytest.raises(HairkitError, match=says):
        ChainSettings(**settings)


def test_what_makes_no_chains(world: Any):
    """Refuse rigs without chains, flat transforms, and a pendulum without length."""
    with pytest.raises(WorldError, match="at least one"):
        plan = SimpleNamespace(positions=np.zeros((1, 3)), chains=())
        world.add_chains(SimpleNamespace(plan=plan, into_scene=np.eye(4)))
    with pytest.raises(WorldError, match="not flat"):
        world.add_chains(hanging(), pose=np.diag([1.0, 0.0, 1.0, 1.0]))
    with pytest.raises(WorldError, match="finite"):
        world.add_chains(hanging(), pose=np.full((4, 4), np.nan))
    with pytest.raises(WorldError, match="length over 0"):
        world.add_pendulum(0.0)
