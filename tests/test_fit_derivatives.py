"""Derivatives through hair's dynamics: equal to central differences, and of the lane solver."""

import numpy as np
import pytest

import hairkit as hk
from hairkit.fitting import Scene, StrandModel, drape
from hairkit.fitting.strand_model import parameter_range

pytestmark = pytest.mark.gradient

NAMES = (
    "hold",
    "droop",
    "shrinkage",
    "length",
    "bend",
    "damping",
    "curl",
    "curl_radius",
    "lift",
    "density",
    "stiff_root",
)


def turning(frames: int) -> Scene:
    """Return a head that turns, nods and moves in the wind."""
    poses = []
    for t in np.linspace(0.0, frames / 60.0, frames + 1):
        a, b = 0.6 * np.sin(7.0 * t), 0.3 * np.sin(5.0 * t)
        yaw = np.array([[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]])
        nod = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
        pose = np.eye(4)
        pose[:3, :3] = yaw @ nod
        pose[:3, 3] = [0.05 * np.sin(4.0 * t), 0.0, 0.02 * t]
        poses.append(pose)
    return Scene(poses=np.array(poses), wind=(1.5, 0.0, 0.5))


def make(segments: int, *, contact: bool, hold: float = 0.3) -> hk.Groom:
    """Return a few wavy strands that lie on a ball, or stand off it."""
    style = hk.load_style("wavy").replace(
        segments=segments,
        hold=hold,
        shrinkage=0.2,
        length=0.25,
        lift=0.2 if contact else 0.9,
        thickness=0.003,
    )
    # Off the ball only where hair grows straight up: the rest falls past it.
    roots = [[0.03, 0.095, 0.01], [-0.05, 0.086, 0.02], [0.0, 0.09, -0.043]]
    if not contact:
        roots = [[0.099, 0.0, 0.01], [-0.0985, -0.01, 0.01], [0.098, -0.02, -0.02]]
    head = hk.Head.sphere(radius=0.1)
    return hk.grow(style, head, roots=np.array(roots), seed=2)


def differences(
    model: StrandModel, name: str, value: float, step: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return central differences of two steps, the second a tenth of the first."""
    found = []
    for reach in (step, 0.1 * step):
        more, less = model.points({name: value + reach}), model.points({name: value - reach})
        found.append((more - less) / (2.0 * reach))
    return found[0], found[1]


@pytest.mark.parametrize(
    ("points", "frames", "contact"),
    [
        (4, 1, True),
        (16, 10, True),
        (4, 60, True),
        (16, 60, False),
        (33, 60, True),
        (64, 10, False),
    ],
)
def test_derivatives_equal_central_differences(points: int, frames: int, contact: bool):
    """Compare every parameter's derivatives in f64 where differences of two steps agree."""
    model = StrandModel(make(points - 2, contact=contact), [turning(frames)], backend="cpu")
    assert model.counts[0] == points
    start = model.groom.style.model_dump()
    _, slopes = model.derivatives({}, NAMES)
    for column, name in enumerate(NAMES):
        low, high = parameter_range(name)
        step = 1e-5 * min(high - low, max(float(start[name]), 0.05))
        coarse, fine = differences(model, name, float(start[name]), step)
        slope = slopes[..., column]
        size = np.abs(coarse).max()
        assert size > 0.0, name
        # Rounding of the points themselves is in both differences.
        noise = 1e-6 * size + 1e-14 / step
        smooth = np.abs(coarse - fine) <= 3.0 * noise
        left_out = 1.0 - smooth.mean()
        assert left_out <= 0.5, (name, left_out)
        error = np.linalg.norm((slope - coarse)[smooth]) / np.linalg.norm(coarse[smooth])
        assert error <= 1e-5 + 1e-14 / (step * size), (name, error)


def test_the_differentiable_run_is_the_lane_solver():
    """Compare points after 60 frames with those of a world."""
    groom = make(14, contact=True)
    scene = turning(60)
    points = StrandModel(groom, [scene], backend="cpu").points({})[0]
    world = hk.World("cpu")
    try:
        world.wind = scene.wind
        world.gust = 0.0
        hair = world.add_hair(groom, pose=scene.poses[0])
        for pose in scene.poses[1:]:
            hair.set_head(pose)
            hair.set_body(scene.poses[0])
            world.step(1.0 / scene.rate)
        np.testing.assert_allclose(points, hair.points(), atol=1e-4 * groom.style.length)
    finally:
        world.close()


def test_single_precision_agrees_with_double():
    """Compare derivatives in f32 with those in f64, off the head: contact may take another side.

    Rounding moves segments over the edge of the length correction's dead zone, which is a kink:
    what changes rest lengths or turns every segment (length, shrinkage) differs by more in f32.
    """
    groom = make(14, contact=False)
    names = ("hold", "droop")
    slopes = [
        StrandModel(groom, [drape(0.4, seconds=0.5)], backend="cpu", precision=p).derivatives(
            {}, names
        )[1]
        for p in ("f64", "f32")
    ]
    for column in range(len(names)):
        exact, single = slopes[0][..., column], slopes[1][..., column]
        assert np.linalg.norm(single - exact) <= 1e-2 * np.linalg.norm(exact), names[column]


def test_a_real_head_is_differentiated_too():
    """Compare with central differences where hair lies on a distance grid."""
    from hairkit.paths import assets_dir

    head = hk.Head.load(assets_dir() / "head.glb")
    groom = hk.grow(hk.load_style("wavy").replace(hold=0.4, segments=8), head, guides=6, seed=1)
    model = StrandModel(groom, [drape(0.3, seconds=0.3)], backend="cpu")
    _, slopes = model.derivatives({}, ("hold", "length"))
    for column, name in enumerate(("hold", "length")):
        value = float(groom.style.model_dump()[name])
        coarse, fine = differences(model, name, value, 1e-6)
        smooth = np.abs(coarse - fine) <= 3e-6 * np.abs(coarse).max()
        assert smooth.mean() > 0.5
        error = np.linalg.norm((slopes[..., column] - coarse)[smooth])
        assert error <= 1e-5 * np.linalg.norm(coarse[smooth])
