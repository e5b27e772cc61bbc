"""Play a motion of the head through a world, and record the hair as .mp4, .png or strands."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from hairkit.draw.camera import Camera
from hairkit.groom import Groom
from hairkit.io.files import check_output
from hairkit.io.strand_set import AddFrame, StrandSet
from hairkit.io.strands import ENDINGS as STRAND_ENDINGS
from hairkit.io.strands import save_strands
from hairkit.io.video import save_picture, video_writer
from hairkit.motions import Motion
from hairkit.sim.hair import Hair
from hairkit.sim.world import Stats, World

ENDINGS = (".mp4", ".png", *STRAND_ENDINGS)
"""What `record` can write; the ending of the output file picks one."""

Progress = Callable[[str, int, int], None]
"""Told what is going on, how many steps of it are done, and of how many."""

What = Literal["guides", "hairs"]
"""Which strands are recorded: those that are simulated, or those that are drawn."""


def record(
    groom: Groom,
    motion: Motion,
    path: str | os.PathLike[str],
    *,
    what: What = "guides",
    backend: str | None = None,
    wind: tuple[float, float, float] = (0.0, 0.0, 0.0),
    gust: float = 0.3,
    width: int = 960,
    height: int = 720,
    progress: Progress = lambda *_: None,
) -> Stats:
    """Simulate a groom along a motion and write what its file's ending says.

    .mp4: a video of every frame. .png: a picture of the last frame. An ending of strands: the
    guides, or the drawn hairs, at every frame, from which `load_strands` and ``hairkit simulate``
    start again.

    Args:
        groom: What grows on which head.
        motion: How the head moves; its rate is the rate of frames. The first frame is its start.
        path: The file to write, complete or not at all.
        what: Which strands a file of strands gets.
        backend: `World`'s.
        wind: Velocity of the air [m/s].
        gust: How much of the wind comes and goes, 0..1.
        width: Of the picture [pixels].
        height: Of the picture [pixels].
        progress: Told how far it is.

    Returns:
        How well it went: the worst stretch and penetration of all frames.

    Raises:
        FileError: The file cannot be written; found out before anything is simulated.
    """
    target = check_output(path, ENDINGS)
    world = World(backend)
    world.wind = wind
    world.gust = gust
    hair = world.add_hair(groom, pose=motion.start)
    label = f"simulate to {target.name}"
    frames = len(motion) + 1
    worst = Stats(max_stretch=0.0, max_penetration=0.0, resets=0, awake=0, steps=0, compile_s=0.0)
    body = motion.start

    def play() -> Iterator[np.ndarray]:
        nonlocal worst, body
        progress("compile kernels", 0, 0)
        yield motion.start
        for number, pose in enumerate(motion, start=2):
            # The body goes where the head goes, and does not turn with it.
            body = motion.start.copy()
            body[:3, 3] = pose[:3, 3]
            hair.set_head(pose)
            hair.set_body(body)
            world.step(1.0 / motion.rate)
            now = world.stats()
            worst = replace(
                now,
                max_stretch=max(worst.max_stretch, now.max_stretch),
                max_penetration=max(worst.max_penetration, now.max_penetration),
            )
            yield pose
            progress(label, number, frames)

    def picture() -> np.ndarray:
        # Goes along with the body: a walk stays in the picture, and a turn of the head shows.
        camera = Camera.orbit(groom.head, yaw=0.45, pitch=0.08, pose=body)
        return world.render(camera, width=width, height=height)

    ending = target.suffix.lower()
    if ending in STRAND_ENDINGS:
        poses = [motion.start, *motion]
        like = _strands(hair, what, motion.start)
        with _open_strands(target, like, frames, head_pose=poses) as add:
            for number, _ in enumerate(play()):
                add(_points(hair, what), number / motion.rate)
    elif ending == ".png":
        for _ in play():
            pass
        save_picture(picture(), target)
    else:
        with video_writer(target, width=width, height=height, rate=motion.rate) as write:
            for _ in play():
                write(picture())
    world.close()
    return worst


def _points(hair: Hair, what: What) -> np.ndarray:
    """Return the points of guides or drawn hairs in the world [m], shape (points, 3), f32."""
    points = hair.points() if what == "guides" else hair.drawn_points().reshape(-1, 3)
    return points.astype(np.float32)


def _strands(hair: Hair, what: What, pose: np.ndarray) -> StrandSet:
    """Return what is recorded as one frame, with all that stays the same from frame to frame."""
    if what == "guides":
        return StrandSet.of(hair.groom, points=[hair.points()], times=[0.0], head_pose=[pose])
    hairs, each, _ = hair.drawn_points().shape
    width = np.float32(hair.groom.style.hair_width)
    return StrandSet(
        points=_points(hair, what)[None],
        counts=np.full(hairs, each, np.int32),
        head_pose=pose[None],
        widths=np.full(hairs * each, width),
    )


@contextmanager
def _open_strands(
    path: Path, like: StrandSet, frames: int, *, head_pose: Sequence[np.ndarray]
) -> Iterator[AddFrame]:
    """Open a file of strands for frames that are added one by one."""
    rows: list[np.ndarray] = []
    times: list[float] = []

    def add(points: np.ndarray, time: float) -> None:
        rows.append(points)
        times.append(time)

    yield add
    assert len(rows) == frames
    strands = replace(
        like, points=np.array(rows), times=np.array(times), head_pose=np.array(head_pose)
    )
    save_strands(strands, path)
