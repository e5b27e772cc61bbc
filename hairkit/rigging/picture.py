"""A picture of a plan: the mesh in its chains' colours from three sides, and the bones over it."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hairkit.errors import RigError
from hairkit.rigging.faces import front_faces, shares_of_corners
from hairkit.rigging.plan import Plan, check_vertices

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

Points = NDArray[np.float64]
Picture = NDArray[np.uint8]

COLOURS = (
    (0, 112, 239),
    (255, 128, 16),
    (0, 223, 255),
    (143, 80, 48),
    (175, 239, 175),
    (128, 64, 143),
    (64, 48, 255),
    (255, 223, 128),
    (0, 159, 239),
    (191, 0, 96),
    (175, 80, 0),
    (207, 112, 175),
    (223, 143, 96),
    (207, 239, 0),
    (255, 159, 191),
    (112, 64, 175),
)
"""Colours of the chains in turn [sRGB]. Each was taken as the one farthest from those before it and
from the root's grey, in the eyes of people who see all colours, and who lack one kind of cone."""

GREY: tuple[int, int, int] = (142, 142, 142)
"""Colour of what the root alone moves [sRGB]."""
PAPER = (246, 247, 249)
"""Behind everything [sRGB]."""
INK = (22, 24, 29)
"""Words and outlines [sRGB]."""
BONE = (255, 255, 255)
"""Bones [sRGB]."""

FINE = 2
"""Pixels drawn for each of the picture, along each side."""
SMALLEST = (240, 120)
"""Least width and height: three views, and words that can be read."""
LIGHT = (0.0, 0.6, 0.8)
"""Where light comes from in a view: right, up, towards the eye. From the middle, so that mirrored
hair is drawn mirrored."""
DARKEST = 0.2
"""Light on what is turned away, as a share of full light."""
EDGE = 0.55
"""Light left beside an edge, as a share."""
CLEFT = 0.012
"""How far in front of its neighbour something is to cast a line there, as a share of the height."""


class _View(NamedTuple):
    """Whence the mesh is seen."""

    title: str
    right: Points
    up: Points
    towards: Points


class _Frame(NamedTuple):
    """Where a view's middle is on the fine picture, and its scale."""

    width: int
    height: int
    scale: float
    middle: Points

    @property
    def unit(self) -> float:
        """Return what dots and lines are measured by: the height, unless it is very narrow."""
        return min(self.height, 2 * self.width)


def plan_picture(
    plan: Plan,
    vertices: ArrayLike,
    faces: ArrayLike,
    *,
    width: int = 1600,
    height: int = 900,
) -> Picture:
    """Draw which part of a mesh each chain moves and where its bones stand.

    Front, side and back stand side by side, at one scale. A vertex has its chains' colours, mixed
    by its weights; what the root alone moves is grey. Each bone is a dot with a line from its
    parent, which narrows away from the root; the root is a square. What lies behind the root, seen
    from there, is smaller. Names stand beside bones where there is room.

    Up is +Y and the front is +Z; where the plan's bones hang along Z, up is Z and the front is +Y.
    The side is the wearer's left.

    Args:
        plan: The plan.
        vertices: What it was made for, shape (v, 3), any unit.
        faces: Rows of three vertices, shape (f, 3). Without any, vertices are drawn as dots.
        width: Of the picture [px].
        height: Of the picture [px].

    Returns:
        sRGB, shape (height, width, 3).

    Raises:
        RigError: The plan is of another mesh, a face names no vertex, or the picture is too small.
    """
    from PIL import Image, ImageDraw

    points = check_vertices(vertices)
    triangles = _check_faces(faces, len(points))
    _check_size(width, height)
    if len(plan.weights.indices) != len(points):
        raise RigError(
            "bad option",
            f"plan: expected one of {len(points)} vertices, got {len(plan.weights.indices)}",
        )
    chain = _chain_of_bones(plan)
    views = _views(plan)
    strip = max(round(height * 0.07), 22)
    wide = width // len(views)
    frame = _frame(points, plan.positions, views, wide * FINE, (height - 2 * strip) * FINE)
    paint = _paint(plan, chain)
    normals = _normals(points, triangles)

    picture = Image.new("RGB", (width, height), PAPER)
    for number, view in enumerate(views):
        panel = Image.fromarray(_mesh(points, triangles, normals, paint, view, frame))
        joints = _project(plan.positions, view, frame)
        sizes = _sizes(joints, frame)
        _bones(ImageDraw.Draw(panel), plan, chain, joints, sizes)
        panel = panel.resize((wide, height - 2 * strip), Image.Resampling.BOX)
        draw = ImageDraw.Draw(panel)
        _names(draw, plan, joints / FINE, sizes / FINE, panel.size)
        picture.paste(panel, (number * wide, strip))
    _captions(ImageDraw.Draw(picture), plan, views, strip, width, height)
    return np.array(picture)


def _check_faces(faces: ArrayLike, count: int) -> NDArray[np.int64]:
    """Return faces as an array, or refuse them."""
    given = np.asarray(faces)
    if given.size == 0:
        return np.zeros((0, 3), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 3 or given.dtype.kind not in "iu":
        raise RigError(
            "bad option",
            f"faces: expected whole numbers of shape (f, 3), got {given.dtype} {given.shape}",
        )
    if given.min() < 0 or given.max() >= count:
        raise RigError(
            "bad option",
            f"faces: expected vertices 0..{count - 1}, got {given.min()}..{given.max()}",
        )
    return given.astype(np.int64)


def _check_size(width: int, height: int) -> None:
    """Refuse pictures without room for three views and words."""
    for name, value, least in (("width", width, SMALLEST[0]), ("height", height, SMALLEST[1])):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise RigError(
                "bad option", f"{name}: expected a whole number from {least} px, got {value!r}"
            )


def _chain_of_bones(plan: Plan) -> NDArray[np.int64]:
    """Return each bone's chain, -1 for the root."""
    chain = np.full(len(plan.bones), -1, dtype=np.int64)
    for number, rows in enumerate(plan.chains):
        chain[list(rows)] = number
    return chain


def chain_colour(number: int) -> tuple[int, int, int]:
    """Return a chain's colour [sRGB]; after the last one they come again, darker each time."""
    turn, place = divmod(number, len(COLOURS))
    red, green, blue = (round(value * 0.75**turn) for value in COLOURS[place])
    return red, green, blue


def _pale(number: int) -> tuple[int, int, int]:
    """Return a chain's colour, paler: its bones' lines stand out from its vertices."""
    red, green, blue = (
        (value + 2 * white) // 3 for value, white in zip(chain_colour(number), BONE, strict=True)
    )
    return red, green, blue


def _linear(colour: tuple[int, int, int]) -> Points:
    """Return how much light a colour is."""
    share = np.array(colour, dtype=np.float64) / 255.0
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def _encoded(light: Points) -> Picture:
    """Return light as sRGB, looked up: there are many pixels and few colours."""
    share = np.arange(4097) / 4096.0
    root = np.where(share <= 0.0031308, share * 12.92, 1.055 * share ** (1 / 2.4) - 0.055)
    table = np.round(root * 255.0).astype(np.uint8)
    return table[np.clip(light * 4096.0 + 0.5, 0.0, 4096.0).astype(np.int64)]


def _paint(plan: Plan, chain: NDArray[np.int64]) -> Points:
    """Return each vertex's colour as light: its bones' colours by its weights."""
    own = np.array([_linear(GREY if c < 0 else chain_colour(int(c))) for c in chain])
    indices, weights = plan.weights
    return np.einsum("vi,vic->vc", weights, own[indices])


def _views(plan: Plan) -> tuple[_View, ...]:
    """Return front, side and back for what hangs as the plan's bones do."""
    down = plan.positions.sum(axis=0) - len(plan.bones) * plan.positions[0]
    hangs_along_z = abs(down[2]) > 2.0 * np.abs(down[:2]).max()
    up = np.array([0.0, 0.0, -np.sign(down[2])] if hangs_along_z else [0.0, 1.0, 0.0])
    front = np.array([0.0, 1.0, 0.0] if hangs_along_z else [0.0, 0.0, 1.0])
    left = np.cross(up, front)
    return (
        _View("Front", left, up, front),
        _View("Left side", -front, up, left),
        _View("Back", -left, up, -front),
    )


def _frame(
    points: Points, joints: Points, views: tuple[_View, ...], width: int, height: int
) -> _Frame:
    """Return the scale at which mesh and bones fit into every view."""
    both = np.concatenate([points, joints])
    low, high = both.min(axis=0), both.max(axis=0)
    middle = 0.5 * (low + high)
    extent = high - low
    scale = np.inf
    for view in views:
        across, along = np.abs(view.right) @ extent, np.abs(view.up) @ extent
        for room, size in ((0.84 * width, across), (0.92 * height, along)):
            if size > 0.0:
                scale = min(scale, room / size)
    return _Frame(width, height, float(scale) if np.isfinite(scale) else 1.0, middle)


def _project(points: Points, view: _View, frame: _Frame) -> Points:
    """Return places on the fine picture, right and down, and how near the eye [px]."""
    away = (points - frame.middle) * frame.scale
    return np.stack(
        [
            0.5 * frame.width + away @ view.right,
            0.5 * frame.height - away @ view.up,
            away @ view.towards,
        ],
        axis=1,
    )


def _normals(points: Points, triangles: NDArray[np.int64]) -> Points:
    """Return a direction for each corner of each face, shape (f, 3, 3), smooth where faces meet.

    Vertices at one place count as one: files split them where textures do.
    """
    if not len(triangles):
        return np.zeros((0, 3, 3))
    _, same = np.unique(points, axis=0, return_inverse=True)
    same = same.reshape(-1)
    # Of a size near 1, so that any unit will do.
    near = (points - points.mean(axis=0)) / max(float(np.ptp(points, axis=0).max()), 1e-300)
    a, b, c = (near[triangles[:, corner]] for corner in range(3))
    flat = np.cross(b - a, c - a)
    at = same[triangles]
    total = np.stack(
        [
            np.bincount(at.ravel(), np.repeat(flat[:, axis], 3), minlength=len(points))
            for axis in range(3)
        ],
        axis=1,
    )
    smooth = total[at]
    # Sharp edges, and the two sides of a card, keep their own.
    unit = flat / np.maximum(np.linalg.norm(flat, axis=1), 1e-300)[:, None]
    size = np.linalg.norm(smooth, axis=2, keepdims=True)
    smooth = smooth / np.maximum(size, 1e-300)
    agrees = np.einsum("fcx,fx->fc", smooth, unit) > 0.3
    return np.where(agrees[:, :, None], smooth, unit[:, None, :])


def _mesh(
    points: Points,
    triangles: NDArray[np.int64],
    normals: Points,
    paint: Points,
    view: _View,
    frame: _Frame,
) -> Picture:
    """Draw the mesh as it is seen from one side, fine."""
    places = _project(points, view, frame)
    picture = np.full((frame.height * frame.width, 3), PAPER, dtype=np.uint8)
    if len(triangles):
        corners = places[triangles]
        near, face = front_faces(corners, frame.width, frame.height)
        seen = np.flatnonzero(face >= 0)
        own = face[seen]
        share = shares_of_corners(corners, own, seen, frame.width)
        lit = _lit(_between(normals, own, share), view)
        lit *= _clefts(near, frame)[seen]
        colour = _between(paint[triangles], own, share) * lit[:, None]
        picture[seen] = _encoded(colour)
    else:
        _dots(picture, places, paint, frame)
    return picture.reshape(frame.height, frame.width, 3)


def _between(corners: Points, face: NDArray[np.int64], share: Points) -> Points:
    """Return what faces' corners have, mixed by their shares, shape (p, 3).

    Args:
        corners: Of each corner of each face, shape (f, 3, 3).
        face: Which face, shape (p,).
        share: How much each corner counts, shape (p, 3).
    """
    result = share[:, :1] * np.ascontiguousarray(corners[:, 0])[face]
    for corner in (1, 2):
        result += share[:, corner, None] * np.ascontiguousarray(corners[:, corner])[face]
    return result


def _lit(turned: Points, view: _View) -> Points:
    """Return how much light falls on what is turned in some directions, seen from either side."""
    source = LIGHT[0] * view.right + LIGHT[1] * view.up + LIGHT[2] * view.towards
    size = np.maximum(np.sqrt(np.einsum("px,px->p", turned, turned)), 1e-300)
    size = np.where(turned @ view.towards < 0.0, -size, size)
    return DARKEST + (1.0 - DARKEST) * np.maximum(turned @ source / size, 0.0)


def _clefts(near: Points, frame: _Frame) -> Points:
    """Return the light left beside something that stands well in front, or beside nothing."""
    deep = near.reshape(frame.height, frame.width)
    step = CLEFT * frame.unit
    edge = np.zeros(deep.shape, dtype=bool)
    for axis in (0, 1):
        for side in (-1, 1):
            beside = np.roll(deep, side, axis=axis)
            edge |= (beside > deep + step) | np.isneginf(beside)
    return np.where(edge, EDGE, 1.0).ravel()


def _dots(picture: Picture, places: Points, paint: Points, frame: _Frame) -> None:
    """Draw each vertex as a dot, the nearest last, the farther the darker."""
    radius = max(0.004 * frame.unit, 2.0)
    reach = int(radius)
    right, down = np.meshgrid(*[np.arange(-reach, reach + 1)] * 2)
    inside = right**2 + down**2 <= radius**2
    order = np.argsort(places[:, 2], kind="stable")
    x, y, depth = places[order].T
    column = np.floor(x).astype(np.int64)[:, None] + right[inside]
    row = np.floor(y).astype(np.int64)[:, None] + down[inside]
    share = (depth - depth.min()) / max(float(np.ptp(depth)), 1e-300)
    colour = paint[order] * (DARKEST + (1.0 - DARKEST) * share)[:, None]
    pixel = (row * frame.width + column).ravel()
    picture[pixel] = np.repeat(_encoded(colour), inside.sum(), axis=0)


def _sizes(joints: Points, frame: _Frame) -> Points:
    """Return each joint's radius: less behind the root."""
    width = 0.0085 * frame.unit
    behind = joints[:, 2] < joints[0, 2] - 0.01 * frame.unit
    return np.maximum(np.where(behind, 0.7 * width, width), 2.0 * FINE)


def _bones(
    draw: "ImageDraw",
    plan: Plan,
    chain: NDArray[np.int64],
    joints: Points,
    sizes: Points,
) -> None:
    """Draw bones over the mesh, the nearest last: lines that narrow, then dots, then the root."""
    order = [int(row) for row in np.argsort(joints[:, 2], kind="stable")]
    rim = 0.28 * float(sizes.max())
    for row in order:
        parent = plan.bones[row].parent
        if parent < 0:
            continue
        ends = joints[parent, :2], joints[row, :2]
        wide, narrow = 0.6 * sizes[row], 0.2 * sizes[row]
        draw.polygon(_taper(*ends, wide + rim, narrow + rim), fill=INK)
        draw.polygon(_taper(*ends, wide, narrow), fill=_pale(int(chain[row])))
    for row in order:
        if chain[row] >= 0:
            for size, fill in (
                (sizes[row] + rim, INK),
                (sizes[row], BONE),
                (0.74 * sizes[row], chain_colour(int(chain[row]))),
            ):
                draw.ellipse(_box(joints[row], size), fill=fill)
    for size, fill in ((1.3 * sizes[0] + rim, INK), (1.3 * sizes[0], BONE), (0.6 * sizes[0], INK)):
        draw.rectangle(_box(joints[0], size), fill=fill)


def _taper(start: Points, end: Points, wide: float, narrow: float) -> list[tuple[float, float]]:
    """Return the corners of a line that narrows, by half its widths."""
    along = end - start
    size = float(np.hypot(*along))
    aside = np.array([-along[1], along[0]]) / size if size > 0.0 else np.array([1.0, 0.0])
    corners = (
        start + wide * aside,
        end + narrow * aside,
        end - narrow * aside,
        start - wide * aside,
    )
    return [(float(x), float(y)) for x, y in corners]


def _box(place: Points, size: float) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of a square by its middle and half its side."""
    x, y = float(place[0]), float(place[1])
    return x - size, y - size, x + size, y + size


def _names(
    draw: "ImageDraw", plan: Plan, joints: Points, sizes: Points, room: tuple[int, int]
) -> None:
    """Write bones' names beside them, the nearest first, where no word or joint is yet."""
    from PIL import ImageFont

    font = ImageFont.load_default(size=max(min(room[1], 2 * room[0]) / 60.0, 9.0))
    taken = [_box(joint, 1.4 * size) for joint, size in zip(joints, sizes, strict=True)]
    order = [0, *(int(row) for row in np.argsort(-joints[:, 2], kind="stable") if row)]
    for row in order:
        x, y, _ = joints[row]
        gap = 1.5 * sizes[row] + 3.0
        outward = 1.0 if x >= joints[0, 0] else -1.0
        for right, down in ((outward, 0), (-outward, 0), (0, -1), (0, 1)):
            anchor = ("r", "m", "l")[int(right) + 1] + ("b", "m", "t")[down + 1]
            place = (float(x + right * gap), float(y + down * gap))
            # With its halo, which is 2 px wide.
            left, top, far, foot = draw.textbbox(
                place, plan.bones[row].name, font=font, anchor=anchor
            )
            box = (left - 2, top - 2, far + 2, foot + 2)
            inside = min(box) >= 0 and box[2] < room[0] and box[3] < room[1]
            if inside and not any(_overlap(box, other) for other in taken):
                draw.text(
                    place,
                    plan.bones[row].name,
                    fill=INK,
                    font=font,
                    anchor=anchor,
                    stroke_width=2,
                    stroke_fill=PAPER,
                )
                taken.append(box)
                break


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Tell whether two boxes share more than an edge."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _captions(
    draw: "ImageDraw", plan: Plan, views: tuple[_View, ...], strip: int, width: int, height: int
) -> None:
    """Write what each view is above it, and below all what the plan is, and the chains' colours."""
    from PIL import ImageFont

    font = ImageFont.load_default(size=0.42 * strip)
    wide = width // len(views)
    for number, view in enumerate(views):
        place = ((number + 0.5) * wide, 0.55 * strip)
        draw.text(place, view.title, fill=INK, font=font, anchor="mm")
    font = ImageFont.load_default(size=0.42 * strip)
    middle, margin = height - 0.55 * strip, 0.4 * strip
    text = caption(plan)
    draw.text((margin, middle), text, fill=INK, font=font, anchor="lm")
    left = margin + draw.textlength(text, font=font) + 2.0 * margin
    colours = [("root", GREY)]
    for number, rows in enumerate(plan.chains):
        name = plan.bones[rows[0]].name.removeprefix("Hair_").rsplit("_B", 1)[0]
        colours.append((name, chain_colour(number)))
    side, steps, named = 0.0, [0.0], False
    for size in (0.42, 0.36, 0.3, 0.25):
        font = ImageFont.load_default(size=size * strip)
        side = 0.85 * size * strip
        steps = [2.0 * side + draw.textlength(name, font=font) for name, _ in colours]
        named = left + sum(steps) <= width
        if named:
            break
    if not named:
        # Colours alone, as wide as there is room.
        steps = [max((width - margin - left) / len(colours), 1.0)] * len(colours)
        side = min(side, 0.8 * steps[0])
    for (name, colour), step in zip(colours, steps, strict=True):
        box = (left, middle - 0.5 * side, left + side, middle + 0.5 * side)
        draw.rectangle(box, fill=colour, outline=INK)
        if named:
            place = (left + 1.4 * side, middle)
            draw.text(place, name, fill=INK, font=font, anchor="lm")
        left += step


def caption(plan: Plan) -> str:
    """Return a plan in a line: chains x segments, bones, vertices."""
    lengths = sorted({len(rows) for rows in plan.chains})
    segments = f"{lengths[0]}" if len(lengths) == 1 else f"{lengths[0]} to {lengths[-1]}"
    return (
        f"{len(plan.chains)} chains x {segments} segments: {len(plan.bones)} bones, "
        f"{len(plan.weights.indices)} vertices"
    )
