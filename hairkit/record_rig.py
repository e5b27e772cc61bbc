"""Lets a rigged file's hair sway along a motion, and writes it as an animation in a .glb file."""

import os
from collections.abc import Callable

import numpy as np

from hairkit.io.files import check_output, written_beside
from hairkit.motions import Motion
from hairkit.rigging.animate import animated
from hairkit.rigging.plan import Points
from hairkit.rigging.read import BonedHair, read_rig
from hairkit.rigging.rig import failures
from hairkit.sim.world import World
from hairkit.sway.settings import ChainSettings

ENDINGS = (".glb", ".gltf")
"""What `record_rig` can write."""

NECK = 1.2
"""How far below the top of the hair its head turns, as a multiple of how wide the hair is."""


def record_rig(
    source: str | os.PathLike[str],
    motion: Motion,
    path: str | os.PathLike[str],
    *,
    mesh: str | None = None,
    settings: ChainSettings | None = None,
    backend: str | None = None,
    wind: tuple[float, float, float] = (0.0, 0.0, 0.0),
    gust: float = 0.3,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> BonedHair:
    """Simulate a rigged file along a motion of the head and write the file with an animation.

    An avatar's head turns on its neck. Else the head's motion goes to a new node at the top of the
    scene, which all that carries the hair hangs on; it turns about a point below the hair's root,
    where a neck is.

    Args:
        source: A .glb, .gltf or .vrm file whose hair has bones.
        motion: How the head moves; its rate is the rate of key frames.
        path: The .glb or .gltf file to write, complete or not at all.
        mesh: As `rig`.
        settings: How chains move.
        backend: `World`'s.
        wind: Velocity of the air [m/s], in the scene.
        gust: How much of the wind comes and goes, 0..1.
        progress: Told how far it is.

    Returns:
        The hair that swayed.

    Raises:
        RigError: The file has no rigged hair.
        FileError: The file cannot be written; found out before anything is simulated.
    """
    target = check_output(path, ENDINGS)
    hair = read_rig(source, mesh)
    about = np.eye(4)
    about[:3, 3] = neck_of(hair)
    poses = [about @ pose @ np.linalg.inv(about) for pose in (motion.start, *motion)]
    world = World(backend)
    world.wind, world.gust = wind, gust
    chains = world.add_chains(hair, settings, pose=poses[0] @ hair.into_scene)
    turns = [chains.joint_turns()]
    label = f"simulate to {target.name}"
    for number, pose in enumerate(poses[1:], start=1):
        chains.set_pose(pose @ hair.into_scene)
        world.step(1.0 / motion.rate)
        turns.append(chains.joint_turns().copy())
        progress(label, number, len(motion))
    world.close()
    times = np.arange(len(poses)) / motion.rate
    moving = np.abs(np.diff(poses, axis=0)).max(initial=0.0) > 0.0
    document = animated(
        hair, times, chains.joints, np.array(turns), np.array(poses) if moving else None
    )
    with failures(str(target)), written_beside(target) as beside:
        raw = document.to_gltf() if target.suffix.lower() == ".gltf" else document.to_glb()
        beside.write_bytes(raw)
    return hair


def neck_of(hair: BonedHair) -> Points:
    """Return about where in the scene the head turns that carries hair, shape (3,)."""
    matrix = hair.into_scene
    if hair.head:
        return matrix[:3, 3]
    places = hair.plan.positions @ matrix[:3, :3].T + matrix[:3, 3]
    wide = float(np.ptp(places[:, [0, 2]], axis=0).max())
    return places[0] - (0.0, NECK * wide, 0.0)
