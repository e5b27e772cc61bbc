"""Fitting: styles found again from their shapes, what cannot be told, targets that are wrong."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hairkit as hk
from hairkit import cli
from hairkit.errors import FitError
from hairkit.fitting import CloudTarget, PointTarget, StrandModel, loss_gradient

pytestmark = pytest.mark.gradient

SCENES = (hk.drape(0.0, seconds=0.4), hk.drape(0.7, seconds=0.4))
TRUTH = {"hold": 0.55, "droop": 0.08, "shrinkage": 0.35}


@pytest.fixture(scope="module")
def groom() -> hk.Groom:
    """Grow a few coils on a ball."""
    style = hk.load_style("3b").replace(segments=10, length=0.25)
    return hk.grow(style, hk.Head.sphere(radius=0.1), guides=12, seed=0)


@pytest.fixture(scope="module")
def model(groom: hk.Groom, backend: str) -> StrandModel:
    """Compile once for all of these tests."""
    return StrandModel(groom, SCENES, backend=backend)


def begin(groom: hk.Groom, **values: float) -> hk.Groom:
    """Return the groom with another style to begin with."""
    return dataclasses.replace(groom, style=groom.style.replace(**values))


def test_a_style_is_found_again(groom: hk.Groom, model: StrandModel):
    """Fit the shape of a known style from another one."""
    start = begin(groom, hold=0.2, droop=0.2, shrinkage=0.1)
    result = hk.fit(model.points(TRUTH), start, scenes=SCENES, model=model)
    for name, value in TRUTH.items():
        assert result.values[name] == pytest.approx(value, rel=0.01)
        assert getattr(result.style, name) == result.values[name]
    assert result.converged
    assert result.undetermined == ()
    assert result.distance < 1e-4 < result.start_distance
    assert min(result.history) == result.distance
    assert result.points.shape == model.shape


def test_noise_shows_in_the_deviations(groom: hk.Groom, model: StrandModel):
    """Fit points that are a millimetre off: within 5 per cent, and as far off as is said."""
    points = model.points(TRUTH)
    noisy = points + np.random.default_rng(3).normal(size=points.shape) * 1e-3
    result = hk.fit(noisy, begin(groom, hold=0.3), scenes=SCENES, model=model, restarts=1)
    for name, value in TRUTH.items():
        off = abs(result.values[name] - value)
        assert off < 0.05 * value, name
        assert off < 5.0 * result.deviations[name], name
    assert result.distance == pytest.approx(np.sqrt(3.0) * 1e-3, rel=0.1)


def test_what_the_target_cannot_tell_is_said(groom: hk.Groom, model: StrandModel):
    """Fit a key that does nothing here: the largest stretch of hair that does not stretch."""
    result = hk.fit(
        model.points({}), groom, parameters=("droop", "max_stretch"), scenes=SCENES, model=model
    )
    assert result.undetermined == ("max_stretch",)
    assert "max_stretch" in result.statement()
    assert "not determined" in result.statement()


@pytest.mark.parametrize("match", ["strands", "cloud"])
def test_targets_without_correspondence(groom: hk.Groom, model: StrandModel, match: str):
    """Fit strands in another order, and a cloud of their points."""
    points = model.points({"droop": 0.12})
    order = np.random.default_rng(1).permutation(len(groom.counts))
    rows = np.concatenate([int(groom.starts[i]) + np.arange(int(groom.counts[i])) for i in order])
    options: dict[str, Any] = {"counts": groom.counts[order]} if match == "strands" else {}
    result = hk.fit(
        points[:, rows],
        begin(groom, droop=0.1),
        parameters=("droop",),
        scenes=SCENES,
        match=match,
        model=model,
        restarts=1,
        **options,
    )
    assert result.values["droop"] == pytest.approx(0.12, rel=0.01)


def test_directions_tell_crossing_hair_apart():
    """Pair points with a cloud in which hair that runs across is nearer than hair alongside."""
    line = np.stack([np.zeros(5), -np.linspace(0.0, 0.1, 5), np.zeros(5)], axis=1)
    across = line[:, [1, 0, 2]] + [0.05, -0.05, 0.001]
    alongside = line[::-1] + np.array([0.0, 0.0, 0.005])
    cloud = np.concatenate([across, alongside])
    ways = np.repeat([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 5, axis=0)
    counts = np.array([5], np.int32)
    near = CloudTarget(cloud, 1).pairs(line[None])
    same = CloudTarget(cloud, 1, directions=ways, simulated=counts).pairs(line[None])
    assert (near.goals[2] == across[2]).all()
    np.testing.assert_allclose(same.goals[:5], line + np.array([0.0, 0.0, 0.005]))
    with pytest.raises(FitError, match="directions: shape"):
        CloudTarget(cloud, 1, directions=ways[:3], simulated=counts)


def test_a_surface_is_fitted(groom: hk.Groom, model: StrandModel):
    """Fit ribbons made of a known style's strands."""
    points = model.points({"droop": 0.12})
    starts, counts = groom.starts, groom.counts
    side = np.array([0.0, 0.0, 1e-4])
    scene = SCENES[:1]
    ribbon = np.stack([points[0] - side, points[0] + side], axis=1).reshape(-1, 3)
    first = np.concatenate([s + np.arange(n - 1) for s, n in zip(starts, counts, strict=True)])
    faces = np.concatenate(
        [
            np.stack([2 * first, 2 * first + 1, 2 * first + 2], axis=1),
            np.stack([2 * first + 1, 2 * first + 3, 2 * first + 2], axis=1),
        ]
    )
    start = begin(groom, droop=0.1)
    result = hk.fit(
        ribbon, start, parameters=("droop",), scenes=scene, match="surface", faces=faces, restarts=1
    )
    assert result.values["droop"] == pytest.approx(0.12, rel=0.02)
    with pytest.raises(FitError, match="faces: expected vertices from 0 to"):
        hk.fit(ribbon, groom, scenes=scene, match="surface", faces=faces + len(ribbon))
    with pytest.raises(FitError, match="faces: expected the triangles"):
        hk.fit(ribbon, groom, scenes=scene, match="surface")


@pytest.mark.parametrize("target_of", [PointTarget, CloudTarget])
def test_the_loss_has_a_map_of_derivatives(model: StrandModel, target_of: Any):
    """Compare the loss's derivatives with differences, and the map with single strands."""
    names = tuple(TRUTH)
    goal = model.points({"hold": 0.3, "droop": 0.12})
    target = PointTarget(goal, model.shape) if target_of is PointTarget else CloudTarget(goal, 2)
    loss, slopes = loss_gradient(model, target, names, TRUTH)
    again, each = loss_gradient(model, target, names, TRUTH, per_root=True)
    assert again == loss > 0.0
    assert each.shape == (len(model.counts), len(names))
    np.testing.assert_allclose(each.sum(axis=0), slopes, rtol=1e-9)
    if target_of is CloudTarget:
        return
    # Strands are alone: a root's own value moves its own strand as the one value of all does.
    strand = np.repeat(np.arange(len(model.counts)), model.counts)
    for column, name in enumerate(names):
        step = 1e-5
        losses = []
        for value in (TRUTH[name] + step, TRUTH[name] - step):
            off = model.points({**TRUTH, name: value}) - goal
            away = np.square(off).sum(axis=(0, 2)) / (off.shape[0] * off.shape[1])
            losses.append(np.bincount(strand, away))
        expected = (losses[0] - losses[1]) / (2.0 * step)
        np.testing.assert_allclose(
            each[:, column], expected, rtol=1e-4, atol=1e-7 * abs(slopes[column])
        )


def test_bounds_are_kept(groom: hk.Groom, model: StrandModel):
    """Aim at hair that no hold is stiff enough for: the fit ends inside the bounds."""
    target = np.concatenate([groom.points[None]] * 2)
    result = hk.fit(target, groom, parameters=("hold",), scenes=SCENES, model=model, restarts=1)
    assert 0.0 <= result.values["hold"] <= 0.98


def test_stopping_keeps_the_best_so_far(groom: hk.Groom, model: StrandModel):
    """Stop after three evaluations."""
    seen: list[float] = []
    result = hk.fit(
        model.points(TRUTH),
        begin(groom, hold=0.2),
        scenes=SCENES,
        model=model,
        progress=lambda _, distance: seen.append(distance),
        stop=lambda: len(seen) >= 3,
    )
    assert len(seen) == 3
    assert not result.converged
    assert result.distance == min(seen)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda p: p[:, :-1], r"target: points of shape .* expected"),
        (lambda p: np.where(np.arange(p.shape[1])[:, None] == 5, np.nan, p), "point 5 is not"),
        (lambda p: p[0, 0], "target: points of shape"),
    ],
)
def test_bad_targets_are_one_line(groom: hk.Groom, model: StrandModel, spoil: Any, message: str):
    """Give other strands, NaN and a single point."""
    with pytest.raises(FitError, match=message):
        hk.fit(spoil(model.points({})), groom, scenes=SCENES, model=model)


def test_bad_requests_are_one_line(groom: hk.Groom, model: StrandModel):
    """Ask for keys that cannot be fitted, and give strands without length."""
    points = model.points({})
    with pytest.raises(FitError, match="did you mean 'droop'"):
        hk.fit(points, groom, parameters=("drop",), scenes=SCENES, model=model)
    with pytest.raises(FitError, match="strand 0 has no length"):
        flat = np.zeros((2, 4, 3))
        hk.fit(flat, groom, scenes=SCENES, model=model, match="strands", counts=[2, 2])
    with pytest.raises(FitError, match="a single point"):
        hk.fit(np.zeros((2, 1, 3)), groom, scenes=SCENES, model=model, match="cloud")


def test_centimetres_are_noticed(groom: hk.Groom, model: StrandModel):
    """Give a target a hundred times too large."""
    with pytest.warns(UserWarning, match="centimetres"):
        hk.fit(
            100.0 * model.points({}),
            groom,
            parameters=("hold",),
            scenes=SCENES,
            model=model,
            restarts=1,
            most=2,
        )


def test_the_command_fits_what_simulate_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Simulate to a file, fit it from another style, and read the style file back."""
    monkeypatch.chdir(tmp_path)
    hk.load_style("wavy").replace(hold=0.4, segments=8).save("true.toml")
    line = "simulate true.toml --head sphere --motion nod --seconds 0.5 --guides 6 --out a.npz"
    assert cli.run([*line.split(), "--backend", "cpu"]) == 0
    line = "fit a.npz --style true.toml --params hold -o b.toml --picture c.png --backend cpu"
    Path("true.toml").write_text(Path("true.toml").read_text().replace("hold = 0.4", "hold = 0.1"))
    assert cli.run(line.split()) == 0
    assert "wrote b.toml" in capsys.readouterr().out
    assert hk.load_style("b.toml").hold == pytest.approx(0.4, rel=0.02)
    assert Path("c.png").stat().st_size > 1000
    assert cli.run(["fit", "a.npz", "--params", "drop", "-o", "d.toml"]) == 2
    assert "did you mean 'droop'" in capsys.readouterr().err
    assert not Path("d.toml").exists()


@pytest.mark.parametrize(
    ("scale", "moved", "message"),
    [
        (1e-4, 0.0, "no strand is left"),
        (1.0, 5.0, "half of the roots are"),
    ],
)
def test_strands_that_no_head_wears_are_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    scale: float,
    moved: float,
    message: str,
):
    """Give a file of stubble, and one of hair far from the head; nothing is written."""
    monkeypatch.chdir(tmp_path)
    root = np.array([0.0, hk.Head.sphere().radius + moved, 0.0])
    line = root + scale * np.array([[0.0, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.2, 0.0]])
    points = np.concatenate([line, line])[None].astype(np.float32)
    np.savez("a.npz", points=points, counts=np.array([3, 3], np.int32), times=np.zeros(1))
    assert cli.run("fit a.npz --head sphere -o b.toml --picture c.png".split()) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not Path("b.toml").exists()
    assert not Path("c.png").exists()


def test_a_fit_leaves_worlds_open():
    """Take derivatives between two steps of a world."""
    groom = hk.grow(hk.load_style("wavy").replace(segments=6), hk.Head.sphere(), guides=3, seed=1)
    world = hk.World("cpu")
    try:
        hair = world.add_hair(groom)
        world.step(1.0 / 60.0)
        slopes = StrandModel(groom, [hk.drape(seconds=0.1)], backend="cpu").derivatives(
            {}, ("hold",)
        )
        assert np.isfinite(slopes[1]).all()
        world.step(1.0 / 60.0)
        assert np.isfinite(hair.points()).all()
    finally:
        world.close()


def test_other_precisions_are_one_line(groom: hk.Groom):
    """Ask for half precision."""
    with pytest.raises(FitError, match="precision 'f16': expected f64 or f32"):
        StrandModel(groom, SCENES, backend="cpu", precision="f16")
