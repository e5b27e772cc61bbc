"""Derivatives through hair's dynamics: equal to central differences, and of the lane solver."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import hairkit as hk
from hairkit.fitting import Scene, StrandModel, drape

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


@pytest.fixture
def double(backend: str) -> str:
    """Name a backend that has f64."""
    if backend == "vulkan":
        pytest.skip("Vulkan has no f64 functions: derivatives are compared in f32 there")
    return backend


def turning(frames: int, *, share: float = 1.0) -> Scene:
    """Return a head that turns, nods and moves in the wind, by a share of a lively motion."""
    poses = []
    for t in np.linspace(0.0, frames / 60.0, frames + 1):
        a, b = share * 0.6 * np.sin(7.0 * t), share * 0.3 * np.sin(5.0 * t)
        yaw = np.array([[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]])
        nod = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
        pose = np.eye(4)
        pose[:3, :3] = yaw @ nod
        pose[:3, 3] = [share * 0.05 * np.sin(4.0 * t), 0.0, share * 0.02 * t]
        poses.append(pose)
    return Scene(poses=np.array(poses), wind=(1.5, 0.0, 0.5))


LYING = [[0.03, 0.095, 0.01], [-0.05, 0.086, 0.02], [0.0, 0.09, -0.043]]
"""Roots of strands that fall over a ball's top and lie on it."""

HANGING = [[0.099, 0.0, 0.01], [-0.0985, -0.01, 0.01], [0.098, -0.02, -0.02]]
"""Roots of strands that fall past a ball: on its side, where hair grows straight out."""


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
    head = hk.Head.sphere(radius=0.1)
    return hk.grow(style, head, roots=np.array(LYING if contact else HANGING), seed=2)


def difference(
    model: StrandModel, name: str, value: float, step: float, repeats: int = 1
) -> np.ndarray:
    """Return the mean of central differences of a few steps close to one another.

    The mean of several has less of the points' own rounding in it.
    """
    found = []
    for reach in step * np.linspace(1.0, 1.1, repeats):
        more, less = model.points({name: value + reach}), model.points({name: value - reach})
        found.append((more - less) / (2.0 * reach))
    return np.mean(found, axis=0)


MOVES = tuple(1e-4 * 0.5**k for k in range(10))
"""How far a step of the differences moves points [m]: wide ones have kinks in them, short ones are
lost in rounding, and every strand has its own best."""


def compare(
    model: StrandModel, names: Sequence[str], repeats: int = 1
) -> dict[tuple[str, int], tuple[float, float]]:
    """Compare derivatives with central differences, strand by strand and frame by frame.

    Only entries on which differences of a step and of a tenth of it agree to 1e-6 are compared.

    Returns:
        For each name and frame looked at the worst relative error of a strand, and the share of
        entries left out.
    """
    _, slopes = model.derivatives({}, names)
    frames = len(slopes)
    strand = np.repeat(np.arange(len(model.counts)), model.counts)
    reports = {}
    for column, name in enumerate(names):
        value = float(model.groom.style.model_dump()[name])
        slope = slopes[..., column]
        out = np.ones((frames, strand[-1] + 1))
        error = np.full(out.shape, np.inf)
        for move in MOVES:
            step = move / np.abs(slope).max()
            wide = difference(model, name, value, step)
            short = difference(model, name, value, 0.1 * step, repeats)
            for frame, k in np.argwhere(out > 0.0):
                mine = frame, strand == k
                size = np.abs(wide[mine]).max()
                smooth = np.abs(wide[mine] - short[mine]) <= 1e-6 * size
                if 1.0 - smooth.mean() < out[frame, k]:
                    out[frame, k] = 1.0 - smooth.mean()
                    off = (slope[mine] - wide[mine])[smooth]
                    error[frame, k] = np.linalg.norm(off) / np.linalg.norm(wide[mine])
            if not out.any():
                break
        for frame in range(frames):
            reports[name, frame] = float(error[frame].max()), float(out[frame].mean())
    return reports


LENGTHS = (1, 10, 60)


@pytest.mark.parametrize("contact", [True, False], ids=["contact", "free"])
@pytest.mark.parametrize("points", [4, 16, 33, 64])
def test_derivatives_equal_central_differences(
    double: str, points: int, contact: bool, record_property: Callable[[str, object], None]
):
    """Compare every parameter's derivatives in f64 after 1, 10 and 60 frames.

    Strands of 64 points move less: the differences, not the derivatives, have too much rounding.
    """
    share, repeats = (0.4, 4) if points == 64 else (1.0, 1)
    scenes = [turning(frames, share=share) for frames in LENGTHS]
    model = StrandModel(make(points - 2, contact=contact), scenes, backend=double)
    assert model.counts[0] == points
    reports = compare(model, NAMES, repeats)
    for (name, scene), (error, left_out) in reports.items():
        where = f"{name}, {LENGTHS[scene]} frames"
        record_property(f"left out: {where}", left_out)
        assert error <= 1e-5, (where, error)
    assert np.mean([left_out for _, left_out in reports.values()]) <= 0.01


def test_the_differentiable_run_is_the_lane_solver(backend: str):
    """Compare points after 60 frames with those of a world."""
    groom = make(14, contact=True)
    scene = turning(60)
    points = StrandModel(groom, [scene], backend=backend).points({})[0]
    world = hk.World(backend)
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


@pytest.mark.parametrize("contact", [True, False], ids=["contact", "free"])
def test_single_precision_agrees_with_double(backend: str, contact: bool):
    """Compare every parameter's derivatives in f32 with those in f64 on the CPU."""
    groom = make(14, contact=contact)
    exact, single = (
        StrandModel(groom, [turning(30)], backend=name, precision=precision).derivatives({}, NAMES)[
            1
        ]
        for name, precision in (("cpu", "f64"), (backend, "f32"))
    )
    for column, name in enumerate(NAMES):
        error = np.linalg.norm((single - exact)[..., column])
        assert error <= 1e-2 * np.linalg.norm(exact[..., column]), name


def test_a_real_head_is_differentiated_too(double: str):
    """Compare with central differences where hair lies on a distance grid."""
    from hairkit.paths import assets_dir

    head = hk.Head.load(assets_dir() / "head.glb")
    groom = hk.grow(hk.load_style("wavy").replace(hold=0.4, segments=8), head, guides=6, seed=1)
    model = StrandModel(groom, [drape(0.3, seconds=0.3)], backend=double)
    for (name, _), (error, left_out) in compare(model, ("hold", "length")).items():
        assert error <= 1e-5, (name, error)
        assert left_out <= 0.01, (name, left_out)
