"""A contact sheet: styles on one head, each by name, from the front and from the back."""

import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hairkit.draw import Camera, Renderer
from hairkit.draw.layout import linear
from hairkit.groom import Groom, grow
from hairkit.head import Head
from hairkit.io.files import check_output
from hairkit.io.video import save_picture
from hairkit.record import Progress
from hairkit.sim.hair import Hair
from hairkit.sim.world import World
from hairkit.style import Style

ENDINGS = (".png",)
"""What `make_catalog` can write."""

YAWS = (0.6, math.pi)
"""Where a style is seen from, left to right on the sheet: yaw around the head [rad]."""

DISTANCE = 26.0
"""From the camera to the head, in head radii: far, so that lengths hardly depend on depth."""

BODY = (2.5, 3.7, 2.5)
"""How much of a body is shown around the middle of its head, along each axis [head radii]."""

MARGIN = 0.015
"""Room on each side of what is shown, as a share of a picture's width."""

DETAIL = 0.6
"""Share of the drawn hairs: small pictures do not show the others, which take their time."""

PAPER = (255, 255, 255)
"""Colour of the sheet [sRGB]."""

GROUND = (229, 231, 235)
"""Colour behind the heads [sRGB]; all of it alike, since rows differ in height."""

INK = (25, 27, 31)
"""Colour of the names [sRGB]."""

STEP_S = 0.1
"""Longest step of the world [s]: Ctrl-C is heard between two, and its clock is its own."""


def catalog_order(names: Iterable[str]) -> list[str]:
    """Return names of styles as a catalogue shows them: hair types first, 1a to 4c."""
    return sorted(names, key=lambda name: (re.fullmatch(r"\d[a-z]", name) is None, name))


def make_catalog(
    styles: Sequence[Style],
    head: Head,
    path: str | os.PathLike[str],
    *,
    backend: str | None = None,
    guides: int = 160,
    seed: int = 0,
    seconds: float = 0.7,
    size: int = 320,
    columns: int = 3,
    progress: Progress = lambda *_: None,
) -> Path:
    """Picture styles side by side, all at one scale, and write the sheet.

    Args:
        styles: What to show, at least one, in the order of the sheet.
        head: What all of them grow on; it stands still.
        path: The .png file to write, complete or not at all.
        backend: `World`'s.
        guides: Simulated strands of each style.
        seed: Of everything random in the grooms.
        seconds: How long hair falls before its pictures are taken [s]; at 0 it is as it grew.
        size: Width of one picture [pixels].
        columns: Styles side by side; each takes two pictures.
        progress: Told how far it is.

    Returns:
        The file written.

    Raises:
        FileError: The file cannot be written; found out before anything is simulated.
    """
    target = check_output(path, ENDINGS)
    world = World(backend)
    renderer = Renderer(world)
    grooms: list[Groom] = []
    for style in styles:
        progress("grow hair", len(grooms), len(styles))
        grooms.append(grow(style, head, guides=guides, seed=seed))
    progress("grow hair", len(grooms), len(styles))

    # Settled twice, here and to be drawn: the scale is known once all have been seen to their last
    # hair, and simulating is cheap beside drawing.
    cameras = [Camera.orbit(head, yaw=yaw, distance=DISTANCE * head.radius) for yaw in YAWS]
    extents = [np.stack([_extent(camera, _bust(head)) for camera in cameras])]
    progress("compile kernels", 0, 0)
    for groom in grooms:
        hair = _settled(world, groom, seconds)
        points = renderer.hair_points(hair).reshape(-1, 3)
        world.remove(hair)
        extents.append(np.stack([_extent(camera, points) for camera in cameras]))
        progress("let hair fall", len(extents) - 1, len(grooms))

    # Each view has its own middle; all have the same scale. Pictures are cut out of larger ones
    # that have the camera's axis in their middle, so that perspective is the same in all, too.
    low, high = np.min(extents, axis=0)[:, :2], np.max(extents, axis=0)[:, 2:]
    # A pixel more: hairs are that wide, and cuts are at whole pixels.
    room = MARGIN * size + 1.0
    focal = (size - 2.0 * room) / (high - low)[:, 0].max()
    middles = 0.5 * focal * (low + high)[:, 0]
    wide = math.ceil(np.abs(middles).max() + 0.5 * size) + 1
    half = math.ceil(focal * max(-low[:, 1].min(), high[:, 1].max()) + room) + 1
    lefts = [round(wide + middle - 0.5 * size) for middle in middles]
    cameras = [replace(camera, fov=2.0 * math.atan(half / focal)) for camera in cameras]

    pictures = []
    for first in range(0, len(grooms), columns):
        # As tall as the row needs: long hair leaves gaps in its own row alone.
        seen = np.array([extents[0], *extents[1 + first : 1 + first + columns]])
        top = math.floor(half - focal * seen[..., 3].max() - room)
        bottom = math.ceil(half - focal * seen[..., 1].min() + room)
        for groom in grooms[first : first + columns]:
            hair = _settled(world, groom, seconds)
            views = []
            for camera, left in zip(cameras, lefts, strict=True):
                view = renderer.image(
                    camera,
                    width=2 * wide,
                    height=2 * half,
                    background="transparent",
                    detail=DETAIL,
                    samples=3,
                )
                views.append(_on_ground(view[top:bottom, left : left + size]))
            world.remove(hair)
            pictures.append(np.concatenate(views, axis=1))
            progress("draw styles", len(pictures), len(grooms))
    world.close()
    save_picture(contact_sheet([style.name for style in styles], pictures, columns), target)
    return target


def label_height(width: int) -> int:
    """Return the height of the strip above a picture that holds its name [pixels].

    Args:
        width: Of the picture [pixels].
    """
    return max(round(0.06 * width), 12)


def gap(width: int) -> int:
    """Return how far pictures of a width are from each other and from the edge [pixels]."""
    return max(width // 60, 2)


def contact_sheet(
    names: Sequence[str], pictures: Sequence[NDArray[np.uint8]], columns: int
) -> NDArray[np.uint8]:
    """Lay pictures out row by row, each with its name above it.

    Args:
        names: What to write above each.
        pictures: All of one width, those of a row of one height, shape (height, width, 3).
        columns: Pictures side by side.

    Returns:
        The sheet, sRGB, shape (height, width, 3).
    """
    columns = min(columns, len(pictures))
    width = pictures[0].shape[1]
    space, strip = gap(width), label_height(width)
    rows = []
    for first in range(0, len(pictures), columns):
        row = pictures[first : first + columns]
        sheet = np.full(
            (strip + len(row[0]) + space, space + columns * (width + space), 3), PAPER, np.uint8
        )
        for place, picture in enumerate(row):
            left = space + place * (width + space)
            sheet[:strip, left : left + width] = _label(names[first + place], width, strip)
            sheet[strip:-space, left : left + width] = picture
        rows.append(sheet)
    return np.concatenate([np.full((space, *rows[0].shape[1:]), PAPER, np.uint8), *rows])


def _label(name: str, width: int, height: int) -> NDArray[np.uint8]:
    """Return a strip of paper with a name in its middle, smaller where it would not fit."""
    from PIL import Image, ImageDraw, ImageFont

    strip = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(strip)
    size = 0.68 * height
    font = ImageFont.load_default(size=size)
    wide = draw.textlength(name, font=font)
    if wide > width:
        font = ImageFont.load_default(size=max(size * width / wide, 1.0))
    draw.text((0.5 * width, 0.5 * height), name, fill=INK, font=font, anchor="mm")
    return np.array(strip)


def _settled(world: World, groom: Groom, seconds: float) -> Hair:
    """Put hair on a head that stands, and let it fall."""
    hair = world.add_hair(groom)
    steps = math.ceil(seconds / STEP_S)
    for _ in range(steps):
        world.step(seconds / steps)
    return hair


def _bust(head: Head) -> NDArray[np.float64]:
    """Return points that bound what is shown of a head and its body [m], shape (n, 3)."""
    body = np.multiply(BODY, head.radius)
    return np.clip(head.vertices, head.center - body, head.center + body)


def _extent(camera: Camera, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far left, down, right and up points are in a picture of focal length one."""
    right, up, away = camera.basis() @ (points - np.asarray(camera.position)).T
    across, rise = right / away, up / away
    return np.array([across.min(), rise.min(), across.max(), rise.max()])


def _on_ground(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Put a picture with an alpha channel on the ground colour: light adds up, sRGB does not."""
    share = picture[..., 3:].astype(np.float32) / 255.0
    light = linear(np.arange(256) / 255.0).astype(np.float32)
    mixed = light[picture[..., :3]] * share + light[np.array(GROUND)] * (1.0 - share)
    # Halfway between the light of each two codes the next one begins.
    return np.searchsorted(0.5 * (light[1:] + light[:-1]), mixed).astype(np.uint8)
