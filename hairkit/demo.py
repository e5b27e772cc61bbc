"""The demo: one real head in four styles, a turn and a gust, as a picture and a video."""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from hairkit import motions
from hairkit.draw.camera import Camera
from hairkit.groom import grow
from hairkit.head import Head
from hairkit.io.files import check_folder
from hairkit.io.video import save_picture, video_writer
from hairkit.paths import assets_dir
from hairkit.sim.hair import Hair
from hairkit.sim.world import World
from hairkit.style import load_style

STYLES = ("short", "curly", "wavy", "long")
"""What the heads wear, from left to right in the picture."""

SPACING = 0.42
"""Distance between heads [m], as near as shoulders allow."""

FACING = -0.7
"""Yaw of the whole row [rad]: from the front, long hair hides behind its shoulders."""

RATE = 20.0
"""Frames a second of the video [1/s]."""

TURN_S = 2.4
"""How long the heads turn [s]."""

GUST_S = 2.0
"""How long the wind then takes to come and go [s]."""

CALM_S = 0.8
"""How long hair has to fall back [s]."""

PICTURE_S = 1.0
"""The moment of the picture [s]."""

_GUIDES = 120
_HAIRS_PER_GUIDE = 80
_VIDEO_DETAIL = 0.6


def make_demo(
    folder: str | os.PathLike[str],
    *,
    backend: str | None = None,
    width: int = 1280,
    height: int = 640,
    seconds: float = TURN_S + GUST_S + CALM_S,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> Iterator[Path]:
    """Make demo.png and demo.mp4 in a folder; gives each file's path once it is complete.

    The picture comes first: it is what somebody who tries hairkit waits for.

    Args:
        folder: Where the files go; made where only its parent exists.
        backend: `World`'s.
        width: Of the picture [pixels]; the video has three quarters of it.
        height: Of the picture [pixels]; the video has three quarters of it.
        seconds: Length of the video [s].
        progress: Told how far it is.

    Raises:
        FileError: The folder cannot be written to; found out before anything is simulated.
    """
    place = check_folder(folder, make=True)
    progress("grow hair", 0, len(STYLES))
    head = Head.load(assets_dir() / "head.glb")
    grooms = []
    for number, name in enumerate(STYLES):
        style = load_style(name).replace(hairs_per_guide=_HAIRS_PER_GUIDE)
        grooms.append(grow(style, head, guides=_GUIDES, seed=number))
        progress("grow hair", number + 1, len(STYLES))

    world = World(backend)
    camera = _camera(head, width / height)

    def start() -> list[Hair]:
        return [
            world.add_hair(groom, pose=_placed(np.eye(4), place))
            for place, groom in enumerate(grooms)
        ]

    hairs = start()
    before = round(PICTURE_S * RATE)
    progress("compile kernels", 0, 0)
    for frame in range(1, before + 1):
        _advance(world, hairs, frame)
        progress("simulate", frame, before)
    progress("draw the picture", 0, 0)
    picture = place / "demo.png"
    save_picture(world.render(camera, width=width, height=height, samples=3), picture)
    yield picture

    # From the start again: simulating is cheap beside drawing.
    for hair in hairs:
        world.remove(hair)
    hairs = start()
    video = place / "demo.mp4"
    frames = max(round(seconds * RATE), 1)
    width, height = 3 * width // 4, 3 * height // 4
    with video_writer(video, width=width, height=height, rate=RATE) as write:
        for frame in range(1, frames + 1):
            _advance(world, hairs, frame)
            write(world.render(camera, width=width, height=height, detail=_VIDEO_DETAIL))
            progress("draw the video", frame, frames)
    world.close()
    yield video


def _advance(world: World, hairs: list[Hair], frame: int) -> None:
    """Move the heads and the air to a frame, and step the world there."""
    time_s = frame / RATE
    # A turn to each side and back to the front, starting and ending at rest.
    share = min(time_s / TURN_S, 1.0)
    ease = math.sin(math.pi * share) ** 2
    turned = motions.head_pose(yaw=1.0 * ease * math.sin(2.0 * math.pi * 1.5 * share))
    for place, hair in enumerate(hairs):
        hair.set_head(_placed(turned, place))
    blown = min(max((time_s - TURN_S) / GUST_S, 0.0), 1.0)
    strength = 5.0 * math.sin(math.pi * blown) ** 2
    # Against the faces.
    world.wind = (-strength * math.sin(FACING), 0.0, -strength * math.cos(FACING))
    world.gust = 0.5
    world.step(1.0 / RATE)


def _placed(pose: np.ndarray, place: int) -> np.ndarray:
    """Return a head's pose in its place in the row."""
    along = SPACING * (place - 0.5 * (len(STYLES) - 1))
    return motions.head_pose(yaw=FACING, position=(along, 0.0, 0.0)) @ pose


def _camera(head: Head, aspect: float) -> Camera:
    """Return a camera that has the row of heads, and hair of half a metre, in the picture."""
    camera = Camera.front(head, pitch=0.06, fov=0.18)
    wide = SPACING * (len(STYLES) + 0.05)
    distance = 0.5 * wide / aspect / math.tan(0.5 * camera.fov)
    target = np.array(camera.target) - [0.0, 0.14, 0.0]
    away = np.subtract(camera.position, camera.target)
    away /= np.linalg.norm(away)
    x, y, z = (float(part) for part in target + distance * away)
    target_x, target_y, target_z = (float(part) for part in target)
    return replace(camera, target=(target_x, target_y, target_z), position=(x, y, z))
