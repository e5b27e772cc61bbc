"""Play a motion of the head through a world, and record the hair: video, picture or strands."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from hairkit.draw.camera import Camera
from hairkit.groom import Groom
from hairkit.io.files import check_output
from hairkit.io.strand_set import StrandSet
from hairkit.io.strands import FORMATS, WRITTEN, open_strands
from hairkit.io.video import save_picture, video_writer
from hairkit.motions import Motion
from hairkit.sim.hair import Hair
from hairkit.sim.world import Stats, World

ENDINGS = (".mp4", ".png", *WRITTEN)
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
    guides, or the drawn hairs, at every frame, or at the last one where the format holds one only.
    From an .npz of them ``hairkit simulate`` starts again. An .npz is in the world's frame, whose
    origin is the head's at its start; in other files strands lie beside the head's mesh as that is
    in its own file, in metres and with +Y up.

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
    if ending in FORMATS:
        motion_file = FORMATS[ending].motion
        poses = np.array([motion.start, *motion])
        like = _strands(hair, what, motion.start)
        if what == "guides" and ending != ".npz":
            # Other programs have no use for how they were grown, but for how they look.
            like = replace(like, groom=None, **_look(hair, like.counts))
        with open_strands(
            target,
            like,
            frames if motion_file else 1,
            head_pose=poses if ending == ".npz" else None,
        ) as add:
            for number, _ in enumerate(play()):
                if motion_file or number == frames - 1:
                    time = number / motion.rate if motion_file else 0.0
                    points = _points(hair, what)
                    if ending != ".npz":
                        points = groom.head.to_beside_file(points).astype(np.float32)
                    add(points, time)
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
    counts = np.full(hairs, each, np.int32)
    return StrandSet(points=_points(hair, what)[None], counts=counts, **_look(hair, counts))


def _look(hair: Hair, counts: np.ndarray) -> dict[str, Any]:
    """Return the width and colour of strands at each of their points."""
    style, total = hair.groom.style, int(counts.sum())
    place = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    share = (place / np.repeat(counts - 1, counts))[:, None]
    root, tip = np.array(style.root_color), np.array(style.tip_color)
    return {
        "widths": np.full(total, style.hair_width, np.float32),
        "colors": (root + share * (tip - root)).astype(np.float32),
    }
