"""The numbers that a picture's launches take, worked out on the host."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hairkit.draw import expand as e
from hairkit.draw import shade as s
from hairkit.draw.camera import Camera, Light
from hairkit.draw.layout import Slot, linear

FINEST_RIBBON = 0.75
"""Least width of a ribbon [pixels]: thinner ones would break into dots."""

DEEPEST_PILE = 24.0
"""Hairs that may lie over each other in a pixel, about: more cannot be told apart."""


def hair_numbers(
    slot: Slot, origin: NDArray[np.float64], view: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the numbers that one hair's launches take, as `expand` lays them out."""
    hair, style = slot.hair, slot.hair.groom.style
    numbers = np.zeros(e.HAIR_NUMBERS, np.float32)
    numbers[e.SHIFT : e.SHIFT + 3] = np.asarray(hair.origin) - origin
    for at, pose in ((e.HEAD, hair.head_pose), (e.BODY, hair.body_pose)):
        matrix = np.asarray(pose, dtype=np.float64)
        numbers[at : at + 9] = matrix[:3, :3].reshape(-1)
        numbers[at + 9 : at + 12] = matrix[:3, 3] - origin
    numbers[e.CLUMP], numbers[e.FRIZZ] = style.clump, style.frizz
    numbers[e.COIL], numbers[e.COIL_RADIUS] = style.coil, style.coil_radius
    numbers[e.ZIGZAG], numbers[e.DEFINITION] = style.zigzag, style.definition
    numbers[e.MARGIN] = slot.reach + style.coil_radius + 0.008
    numbers[e.LENGTH] = style.length
    numbers[e.PLAIT], numbers[e.PLAIT_RADIUS] = style.plait, style.plait_radius
    numbers[e.PLAIT_TURNS] = style.plait_turns
    numbers[e.LIGHT_RIGHT : e.LIGHT_RIGHT + 9] = view[s.LIGHT_AXES : s.LIGHT_AXES + 9]
    numbers[e.SHAPES : e.SHAPES + len(slot.shapes)] = slot.shapes
    numbers[e.BALL : e.BALL + 3] = hair.groom.head.center
    numbers[e.BALL + 3] = 1.35 * hair.groom.head.radius
    return numbers


def share_to_draw(slot: Slot, camera: Camera, height: int) -> float:
    """Return which share of a head's hairs to draw: no more than can be told apart.

    A far head's hairs are most of a pixel wide each and would pile dozens deep.
    """
    hair = slot.hair
    style, low, high = hair.groom.style, slot.low, slot.high
    pose = np.asarray(hair.head_pose, dtype=np.float64)
    middle = pose[:3, :3] @ (0.5 * (low + high)) + pose[:3, 3]
    ahead = max(float((middle - np.asarray(camera.position)) @ camera.basis()[2]), 0.01)
    pixels = 0.5 * height / math.tan(0.5 * camera.fov) / ahead
    # Seen from any side, about the mean of the box's three faces, and round.
    x, y, z = np.maximum(high - low, 0.02)
    area = math.pi / 4.0 * (x * y + y * z + z * x) / 3.0 * pixels**2
    wide = max(style.hair_width * pixels, FINEST_RIBBON)
    length = slot.mean_length * pixels
    # Half of them lie behind the head.
    pile = 0.5 * slot.sets * slot.full * length * wide / area
    return min(DEEPEST_PILE / pile, 1.0)


def distinct_meshes(slots: list[Slot]) -> list[int]:
    """Return slots whose head is not there already, as when two hairs grow on one head."""
    seen: dict[tuple[Any, ...], int] = {}
    for index, slot in enumerate(slots):
        head_pose = np.asarray(slot.hair.head_pose, np.float64)
        body_pose = np.asarray(slot.hair.body_pose, np.float64)
        key = (id(slot.hair.groom.head), head_pose.tobytes(), body_pose.tobytes())
        seen.setdefault(key, index)
    return sorted(seen.values())


def look_numbers(slot: Slot) -> NDArray[np.float32]:
    """Return a head's row of `look`, as `shade` lays it out."""
    style = slot.hair.groom.style
    look = np.zeros(s.LOOK_NUMBERS, np.float32)
    look[s.ROOT_COLOR : s.ROOT_COLOR + 3] = linear(style.root_color)
    look[s.TIP_COLOR : s.TIP_COLOR + 3] = linear(style.tip_color)
    look[s.HAIR_WIDTH] = style.hair_width * slot.widening
    look[s.SHINE], look[s.SHIFT] = style.shine, style.shift
    each = slot.mean_length / (slot.point_count - 1)
    look[s.POINT_AREA] = each * style.hair_width * slot.widening**2
    if style.plait > 0:
        # Hairs of a plait lie in each other's shadow: together they keep out what it does.
        together = 2.0 * style.plait_radius / (style.hairs_per_guide * style.hair_width)
        look[s.POINT_AREA] *= min(1.0, 1.5 * together)
    look[s.REACH] = style.length
    look[s.PLAITED] = float(style.plait > 0)
    return look


def view_numbers(
    camera: Camera,
    light: Light,
    width: int,
    height: int,
    background: str,
    samples: int,
) -> NDArray[np.float32]:
    """Return the numbers that a picture's launches share, as `shade` lays them out."""
    view = np.zeros(s.VIEW_NUMBERS, np.float32)
    basis = camera.basis()
    key, rim = light.directions(camera)
    # Any two axes across the light do, as long as they do not turn with the picture's contents.
    spare = basis[0] if abs(key @ basis[0]) < 0.9 else basis[1]
    across = np.cross(spare, key)
    across /= np.linalg.norm(across)
    view[s.EYE : s.EYE + 3] = np.subtract(camera.position, camera.target)
    view[s.RIGHT : s.RIGHT + 9] = basis.reshape(-1)
    view[s.FOCAL] = 0.5 * height / math.tan(0.5 * camera.fov)
    view[s.WIDTH], view[s.HEIGHT], view[s.SAMPLES] = width, height, samples
    view[s.NEAR], view[s.FINEST] = 0.01, FINEST_RIBBON
    view[s.LIGHT_AXES : s.LIGHT_AXES + 9] = np.concatenate([np.cross(key, across), across, key])
    view[s.RIM : s.RIM + 3] = rim
    view[s.KEY_COLOR : s.KEY_COLOR + 3] = light.key_color
    view[s.RIM_COLOR : s.RIM_COLOR + 3] = light.rim_color
    view[s.SKY_COLOR : s.SKY_COLOR + 3] = light.sky_color
    view[s.WORLD_UP : s.WORLD_UP + 3] = (0.0, 1.0, 0.0)
    view[s.BACK_MIDDLE : s.BACK_MIDDLE + 3] = linear((0.90, 0.905, 0.92))
    view[s.BACK_EDGE : s.BACK_EDGE + 3] = linear((0.66, 0.68, 0.72))
    view[s.SAMPLE_SHIFT] = 0.25 if samples > 1 else 0.0
    view[s.TRANSPARENT] = 1.0 if background == "transparent" else 0.0
    return view
