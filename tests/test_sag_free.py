"""The sag-free start: hair whose shape is its own equilibrium under gravity stays where it is."""

import dataclasses
import warnings

import numpy as np
import pytest
from numpy.typing import ArrayLike
from reference_rod import Rod, _frames
from scenes import Points, bare_head, hand_groom, plain_style, straight

import hairkit as hk
from hairkit.errors import GroomError, WorldError
from hairkit.groom import Groom
from hairkit.poses import head_pose

STILL = 1e-3
"""How far hair may move, as a share of its length."""

DOWN = np.array([0.0, -9.81, 0.0])


def moved(
    groom: Groom,
    *,
    seconds: float = 1.5,
    gravity: ArrayLike = DOWN,
    pose: Points | None = None,
    clock: float = 1 / 120,
) -> Points:
    """Return how far each strand goes from its shape at most, as a share of its length."""
    world = hk.World("cpu", clock=clock)
    world.sleep = False
    world.gravity = gravity
    hair = world.add_hair(groom, pose=pose)
    start = hair.points()
    most = np.zeros(len(groom.counts))
    for _ in range(round(seconds * 30)):
        world.step(1 / 30)
        away = np.linalg.norm(hair.points() - start, axis=1)
        most = np.maximum(most, np.maximum.reduceat(away, groom.starts))
    assert world.resets == 0
    world.close()
    lengths = [np.linalg.norm(np.diff(line, axis=0), axis=1).sum() for line in groom.strands()]
    return most / np.array(lengths)


@pytest.fixture(scope="module")
def head() -> hk.Head:
    """Return a ball to grow on."""
    return hk.Head.sphere()


def grown(name: str, head: hk.Head, *, points: int = 12, guides: int = 40) -> Groom:
    """Return a style on a ball, its strands of so many points."""
    style = hk.load_style(name).replace(segments=points - 2)
    return hk.grow(style, head, guides=guides, seed=3)


@pytest.mark.parametrize("name", ["straight", "2b", "3b", "4a", "wavy", "long"])
def test_hair_stays_under_gravity(name: str, head: hk.Head) -> None:
    """It would sag; solved it does not, and its shape is still the groom's to the last bit."""
    groom = grown(name, head)
    assert moved(groom, seconds=0.5).max() > 20.0 * STILL
    solved = hk.sag_free(groom)
    assert solved.sagging is not None and len(solved.sagging) == 0
    np.testing.assert_array_equal(solved.points, groom.points)
    assert moved(solved).max() < STILL


@pytest.mark.parametrize(
    "gravity", [(0.0, 9.81, 0.0), (9.81, 0.0, 0.0), (3.0, -7.0, 5.0), (0.0, 0.0, -1.6)]
)
def test_gravity_may_pull_any_way(gravity: tuple[float, float, float], head: hk.Head) -> None:
    """It is a vector in the world, of any strength."""
    groom = grown("2b", head)
    solved = hk.sag_free(groom, gravity=gravity)
    assert moved(solved, gravity=gravity).max() < STILL
    # What was solved for one way does not stay in another.
    assert moved(solved, gravity=DOWN, seconds=0.5).max() > 2.0 * STILL


def test_the_head_may_be_tilted(head: hk.Head) -> None:
    """The head's pose turns gravity in its frame, and nothing else."""
    groom = grown("3b", head)
    pose = head_pose(yaw=0.4, pitch=0.9, roll=-0.5, position=(3.0, 1.0, -2.0))
    solved = hk.sag_free(groom, pose=pose)
    assert moved(solved, pose=pose).max() < STILL
    turned = hk.sag_free(groom, gravity=pose[:3, :3].T @ DOWN)
    assert turned.rest_bends is not None and solved.rest_bends is not None
    np.testing.assert_allclose(turned.rest_bends, solved.rest_bends, atol=1e-12)


@pytest.mark.parametrize("clock", [1 / 60, 1 / 240])
def test_no_clock_is_built_in(clock: float, head: hk.Head) -> None:
    """The shape is an equilibrium of the forces, whatever the steps."""
    assert moved(hk.sag_free(grown("2b", head)), clock=clock).max() < STILL


def test_the_start_holds_however_freely_hair_moves(head: hk.Head) -> None:
    """`hold` pulls towards the shape itself, so none of it is built in."""
    solved = hk.sag_free(grown("straight", head))
    stiffer = dataclasses.replace(solved, style=solved.style.replace(hold=0.4))
    assert moved(stiffer).max() < STILL


def test_no_gravity_changes_nothing(head: hk.Head) -> None:
    """Without weight, or rigid, the groom is the same; hardly any weight hardly changes it."""
    groom = grown("straight", head)
    assert hk.sag_free(groom, gravity=0.0) is groom
    assert hk.sag_free(groom, gravity=(0.0, 0.0, 0.0)) is groom
    undone = hk.sag_free(hk.sag_free(groom), gravity=0)
    assert undone.rest_bends is None and undone.stiffening is None
    rigid = dataclasses.replace(groom, style=groom.style.replace(hold=1.0))
    assert hk.sag_free(rigid) is rigid
    # Ever less gravity: ever less to carry, down to the shape's own rest values.
    faint = hk.sag_free(groom, gravity=1e-9)
    plain = hk.sag_free(groom)
    inner = np.setdiff1d(
        np.arange(len(groom.points)), [*groom.starts, *(groom.starts + groom.counts - 1)]
    )
    bends = groom.points[inner - 1] - 2.0 * groom.points[inner] + groom.points[inner + 1]
    assert faint.rest_bends is not None and plain.rest_bends is not None
    np.testing.assert_allclose(faint.rest_bends[inner], bends, atol=1e-11)
    assert np.abs(plain.rest_bends[inner] - bends).max() > 1e-3


def test_forces_balance_by_the_slow_twin() -> None:
    """Bending by differences of the energy, weight and the segments' springs cancel."""
    random = np.random.default_rng(5)
    style = plain_style(bend=0.5)
    for count in (3, 4, 9):
        way = np.cumsum(random.normal(0.0, 0.3, (count - 1, 3)), axis=0) + np.eye(3)[0]
        step = 0.02 * way / np.linalg.norm(way, axis=1, keepdims=True)
        step *= random.uniform(0.9, 1.1, (count - 1, 1))
        points = np.concatenate([np.zeros((1, 3)), np.cumsum(step, axis=0)])
        solved = hk.sag_free(hand_groom([points], style), gravity=(1.0, -9.0, 3.0))
        assert solved.rest_bends is not None
        assert solved.rest_lengths is not None and solved.stiffening is not None
        rod = Rod(points, style)
        rod.bending *= solved.stiffening[1]
        frames = _frames(points[None], rod.normal[None])[0]
        rod.curvature = np.einsum("nij,ni->nj", frames, solved.rest_bends[1:-1])
        force = rod.bending_force(points, np.eye(3)) + rod.mass[:, None] * [1.0, -9.0, 3.0]
        assert np.linalg.norm(force[2:], axis=1).max() > 1e-2
        for i in range(1, count - 1):
            edge = points[i + 1] - points[i]
            size = float(np.linalg.norm(edge))
            off = size - solved.rest_lengths[i]
            pull = (1e7 if off < 0.0 else style.stretch_stiffness()) * off * edge / size
            force[i] += pull
            force[i + 1] -= pull
        np.testing.assert_allclose(force[2:], 0.0, atol=1e-4)


def test_hair_too_soft_to_stand_is_made_stiffer() -> None:
    """An upright column buckles under its own weight past a known length (Greenhill's 7.837)."""
    count, length = 26, 0.2
    points = straight(count, length / (count - 1), along=(0.0, 1.0, 0.0))
    factors = []
    style = plain_style()
    # The first segment is clamped.
    free = length * (count - 2) / (count - 1)
    limit = style.density * 9.81 * free**3 / 7.837
    for share in (0.5, 0.9, 1.1, 2.0):
        bend = style.bend + np.log10(style.bending_rigidity() / (share * limit))
        groom = hand_groom([points], style.replace(bend=float(bend)), bare_head())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solved = hk.sag_free(groom)
            left = hk.sag_free(groom, stiffen=False)
        assert solved.stiffening is not None and left.sagging is not None
        factors.append(float(solved.stiffening.max()))
        # Made as much stiffer as the column lacks, with a little more to be firm.
        assert share * factors[-1] > 0.98
        assert share * factors[-1] < 1.25 or factors[-1] == 1.0
        assert list(left.sagging) == ([0] if factors[-1] > 1.0 else [])
    assert factors[0] > 1.9 and factors[1] > 1.05 and factors[-1] == 1.0


def test_hair_that_no_start_was_found_for_is_counted() -> None:
    """Where it may not be made stiffer it keeps its own rest values, and a warning names it."""
    style = plain_style(bend=2.0)
    up = straight(14, 0.02, along=(0.0, 1.0, 0.0))
    down = straight(14, 0.02, along=(0.0, -1.0, 0.0))
    groom = hand_groom([down, up, down], style)
    with pytest.warns(UserWarning, match="1 of 3 strands sag as before.*: 1$"):
        solved = hk.sag_free(groom, stiffen=False)
    assert solved.sagging is not None and solved.sagging.tolist() == [1]
    assert solved.rest_bends is not None and solved.rest_lengths is not None
    np.testing.assert_allclose(solved.rest_bends[15:27], 0.0, atol=1e-15)
    np.testing.assert_allclose(solved.rest_lengths[14:27], 0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert moved(hk.sag_free(groom)).max() < STILL


def test_folded_and_short_strands_are_no_trouble() -> None:
    """A turn that no bend can carry is left alone; three points are enough."""
    style = plain_style()
    folded = np.array([[0, 0, 0], [0, -1, 0], [1, -1, 0], [0, 0, 0], [0, 1, 0.0]]) * 0.02
    short = straight(3, 0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solved = hk.sag_free(hand_groom([folded, short], style))
    for value in (solved.rest_bends, solved.rest_lengths, solved.stiffening):
        assert value is not None and np.isfinite(value).all()
    assert moved(solved)[1] < STILL


def test_bad_input_is_refused(head: hk.Head) -> None:
    """Each is named, with what was expected."""
    groom = grown("straight", head, guides=4)
    with pytest.raises(WorldError, match="gravity"):
        hk.sag_free(groom, gravity=(1.0, 2.0))
    with pytest.raises(WorldError, match="gravity"):
        hk.sag_free(groom, gravity=float("nan"))
    with pytest.raises(WorldError, match="head pose"):
        hk.sag_free(groom, pose=2.0 * np.eye(4))
    with pytest.raises(WorldError, match="head pose"):
        hk.sag_free(groom, pose=np.full((4, 4), np.nan))
    points = groom.points.copy()
    points[7] = np.nan
    with pytest.raises(GroomError, match="not finite"):
        hk.sag_free(dataclasses.replace(groom, points=points))
