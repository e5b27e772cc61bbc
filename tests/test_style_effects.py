"""Every key of a style changes what comes out: the rest pose, the motion, or the picture."""

import numpy as np
import pytest

import hairkit as hk
from hairkit.style import style_keys

# A key's other value, and what else must hold for it to matter.
CHANGES: dict[str, tuple[object, dict[str, object]]] = {
    "length": (0.2, {}),
    "segments": (9, {}),
    "droop": (0.3, {}),
    "lift": (0.9, {}),
    "comb": (0.1, {}),
    "part": (0.0, {}),
    "curl": (5.0, {"curl_radius": 0.01}),
    "curl_radius": (0.02, {"curl": 5.0}),
    "curl_flat": (1.0, {"curl": 5.0, "curl_radius": 0.01}),
    "curl_start": (0.9, {"curl": 5.0, "curl_radius": 0.01}),
    "hold": (0.6, {}),
    "density": (0.02, {}),
    "bend": (2.0, {}),
    "stretch": (0.5, {"max_stretch": 0.2}),
    "max_stretch": (0.02, {"stretch": 1.0, "density": 0.5}),
    "stiff_root": (8.0, {}),
    "width": (0.02, {}),
    "thickness": (0.008, {}),
    "damping": (9.0, {}),
    "coil": (60.0, {"coil_radius": 0.004}),
    "coil_radius": (0.006, {"coil": 60.0}),
    "zigzag": (1.0, {"coil": 60.0, "coil_radius": 0.004}),
    "definition": (0.0, {"coil": 60.0, "coil_radius": 0.004}),
    "shrinkage": (0.6, {}),
    "plait": (3, {}),
    "plait_radius": (0.012, {"plait": 3}),
    "plait_turns": (10.0, {"plait": 2}),
    "area": (0.8, {}),
    "upward": (1.0, {}),
    "backward": (0.8, {}),
    "side_length": (0.3, {}),
    "flat_top": (0.1, {"lift": 1.0, "upward": 1.0}),
    "row_guides": (2, {}),
    "scalp": (0.0, {"length": 0.01}),
    "fade": (0.1, {"area": 0.6, "length": 0.01}),
    "root_color": ((0.7, 0.5, 0.2), {}),
    "tip_color": ((0.7, 0.5, 0.2), {}),
    "hairs_per_guide": (9, {}),
    "spread": (0.2, {}),
    "clump": (0.95, {}),
    "frizz": (0.9, {}),
    "hair_width": (0.0006, {}),
    "shine": (0.0, {}),
    "shift": (0.3, {}),
}


def come_out(style: hk.Style, *, drawn: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return a style's rest pose, its points after a turn in wind, and its picture if drawn."""
    head = hk.Head.sphere(radius=0.1)
    groom = hk.grow(style, head, guides=12, seed=3)
    world = hk.World()
    hair = world.add_hair(groom)
    world.wind = (2.0, 0.0, 1.0)
    for pose in hk.motions.turn(seconds=0.4, rate=60):
        hair.set_head(pose)
        world.step(1 / 60)
    picture = world.render(hk.Camera.side(head), width=96, height=72) if drawn else None
    points = hair.points()
    world.close()
    return groom.points, points, picture


def differ(a: np.ndarray | None, b: np.ndarray | None, least: float) -> bool:
    """Return whether two results differ in shape, or somewhere by more than least."""
    assert a is not None and b is not None
    return a.shape != b.shape or float(np.abs(a.astype(float) - b.astype(float)).max()) > least


def test_every_key_is_tried():
    """List each key of a style file above, and no other."""
    assert set(CHANGES) == {key.name for key in style_keys()}


@pytest.mark.render
@pytest.mark.parametrize("name", sorted(CHANGES))
def test_key_changes_the_result(name: str):
    """Change one key and see another rest pose, another motion or another picture."""
    value, needs = CHANGES[name]
    base = hk.load_style("straight").replace(hairs_per_guide=30, **needs)
    changed = base.replace(**{name: value})
    section = next(key.section for key in style_keys() if key.name == name)
    moves = section in ("shape", "motion", "growth") or name == "shrinkage"
    before, after = come_out(base, drawn=not moves), come_out(changed, drawn=not moves)
    if moves:
        assert differ(before[0], after[0], 1e-4) or differ(before[1], after[1], 1e-4)
    else:
        assert differ(before[2], after[2], 4.0)
