"""The world: what can be asked of it, what it refuses, and what nobody else may notice."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scenes
from scenes import play, settle, small

from hairkit.backend import ti
from hairkit.errors import GroomError, WorldError
from hairkit.shapes import Sphere
from hairkit.sim.world import World

Worlds = Callable[..., World]
Points = scenes.Points


def one_line(error: pytest.ExceptionInfo[Exception]) -> str:
    """Return an error's message, which must be one line."""
    text = str(error.value)
    assert text and "\n" not in text
    return text


# ---- what it refuses


@pytest.mark.parametrize("dt", [0.0, -1.0 / 60.0, float("nan"), float("inf"), None, "soon", [1, 2]])
def test_step_refuses_a_time_that_is_none(world: Worlds, dt: Any) -> None:
    """Ask for impossible steps: one line that names dt, and no time passes."""
    made = world()
    hair = made.add_hair(small())
    before = hair.points()
    with pytest.raises(WorldError, match=r"^dt ") as error:
        made.step(dt)
    one_line(error)
    assert made.time == 0.0
    assert np.array_equal(hair.points(), before)


@pytest.mark.parametrize(
    "options",
    [
        {"clock": 0.0},
        {"clock": 0.1},
        {"clock": float("nan")},
        {"max_points": 0},
        {"max_points": -5},
        {"threads": 0},
    ],
)
def test_world_refuses_wrong_numbers(world: Worlds, options: dict[str, Any]) -> None:
    """Name the setting that is out of range."""
    with pytest.raises(WorldError) as error:
        world(**options)
    assert next(iter(options)) in one_line(error)


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        ("world", "wind", (1.0, 2.0)),
        ("world", "wind", (np.nan, 0.0, 0.0)),
        ("world", "wind", (1e6, 0.0, 0.0)),
        ("world", "wind", "north"),
        ("world", "gust", 2.0),
        ("world", "gust", -0.1),
        ("world", "gravity", (0.0, np.inf, 0.0)),
        ("hair", "wind", -1.0),
        ("hair", "wind", np.nan),
        ("hair", "motion", 1.5),
        ("hair", "motion", None),
        ("hair", "hold", -0.1),
        ("hair", "hold", np.nan),
    ],
)
def test_settings_out_of_range_are_refused_and_not_taken(
    world: Worlds, where: str, name: str, value: Any
) -> None:
    """Set wrong values: one line that names the setting, and the old value stays."""
    made = world()
    thing = made if where == "world" else made.add_hair(small())
    before = np.copy(getattr(thing, name))
    with pytest.raises(WorldError) as error:
        setattr(thing, name, value)
    assert name in one_line(error)
    assert np.array_equal(getattr(thing, name), before)


@pytest.mark.parametrize(
    "pose",
    [np.eye(3), "up", 2.0 * np.eye(4), np.diag([-1.0, 1.0, 1.0, 1.0]), None, np.zeros((4, 4))],
)
def test_head_pose_must_be_a_rotation_and_a_translation(world: Worlds, pose: Any) -> None:
    """Pose a head impossibly: one line, and the head stays."""
    made = world()
    hair = made.add_hair(small())
    for call in (hair.set_head, hair.set_body):
        with pytest.raises(WorldError) as error:
            call(pose)
        one_line(error)
    if pose is not None:
        with pytest.raises(WorldError) as error:
            made.add_hair(small(), pose=pose)
        one_line(error)
    made.step(1 / 60)
    assert np.array_equal(hair.head_pose, np.eye(4))
    assert len(made.hairs) == 1


@pytest.mark.parametrize(
    "strand",
    [
        scenes.straight(2, 0.02),
        scenes.straight(6, 0.02)[[0, 1, 2, 2, 3, 4]],
        np.where(np.arange(5)[:, None] == 3, np.nan, scenes.straight(5, 0.02)),
    ],
    ids=["two points", "coincident points", "not finite"],
)
def test_groom_that_no_rod_can_be_made_of_is_refused(world: Worlds, strand: Points) -> None:
    """Add a bad strand among good ones: one line that names it, and the world is as before."""
    made = world()
    free = made.arena.row_space.free
    good = scenes.straight(6, 0.02)
    groom = scenes.hand_groom([good, good, strand], scenes.plain_style())
    with pytest.raises(GroomError, match="strand 2") as error:
        made.add_hair(groom)
    one_line(error)
    assert made.hairs == []
    assert made.arena.row_space.free == free


def test_removing_a_stranger_is_an_error(world: Worlds) -> None:
    """Remove hair twice, and a collider of another world."""
    made, other = world(), world()
    hair = made.add_hair(small())
    collider = other.add_collider(Sphere(0.1))
    made.remove(hair)
    with pytest.raises(WorldError):
        made.remove(hair)
    with pytest.raises(WorldError):
        made.remove(collider)


# ---- time


@pytest.mark.parametrize("dt", [1e-4, 1e-3, 1 / 144, 1 / 60, 1 / 30, 0.1])
def test_hair_stays_in_one_piece_at_any_step(world: Worlds, dt: float) -> None:
    """Jerk a head to and fro every step: points stay finite, within 2 % of reach of their roots."""
    made = world()
    made.wind = (20.0, 5.0, -10.0)
    hairs = [made.add_hair(small(name)) for name in ("curly", "long", "gel")]
    for frame in range(20):
        for hair in hairs:
            side = 0.05 * (-1.0) ** frame
            hair.set_head(scenes.pose(scenes.turning((1, 2, 3), 4.0 * side), (side, 0.0, side)))
        made.step(dt)
        for hair in hairs:
            points = hair.points()
            root = np.repeat(points[hair.groom.starts], hair.counts, axis=0)
            reach = np.linalg.norm(points - root, axis=1) / scenes.strand_lengths(hair)
            assert reach.max() < 1.02
    assert made.resets == 0


def test_a_stalled_caller_sees_time_slow_down(world: Worlds) -> None:
    """Ask for 100 s at once: one second passes, and one warning says so."""
    made = world()
    made.add_hair(small())
    with pytest.warns(UserWarning, match="100 s is cut to 1 s"):
        made.step(100.0)
    assert made.time == 1.0
    made.step(100.0)
    assert made.time == 2.0


def test_roots_are_where_the_head_is_at_every_returned_time(world: Worlds) -> None:
    """Step by times that never meet the clock's: points 0 and 1 are in the head to 1 um."""
    made = world()
    hair = made.add_hair(small())
    held = ~scenes.free(hair)
    rng = np.random.default_rng(0)
    for _ in range(40):
        pose = scenes.pose(scenes.turning(rng.normal(size=3), 0.4), rng.normal(scale=0.02, size=3))
        hair.set_head(pose)
        made.step(rng.uniform(0.001, 0.03))
        gap = scenes.in_head(hair.points(), pose) - hair.groom.points
        assert np.abs(gap[held]).max() < 1e-6


def test_motion_does_not_depend_on_how_often_it_is_asked_for(world: Worlds) -> None:
    """Take the same half second in 5, 60 and 97 uneven steps: the same points to 1 um."""
    rng = np.random.default_rng(1)
    uneven = rng.uniform(0.5, 1.5, 97)
    ways = [np.full(5, 0.1), np.full(60, 0.5 / 60), 0.5 * uneven / uneven.sum()]
    groom = small()
    ends = []
    for way in ways:
        made = world()
        made.wind = (2.0, 0.0, 1.0)
        hair = made.add_hair(groom)
        for dt in way:
            made.step(float(dt))
        assert made.time == pytest.approx(0.5)
        ends.append(hair.points())
    assert np.abs(ends[0] - groom.points).max() > 0.02
    assert np.abs(ends[1] - ends[0]).max() < 1e-6
    assert np.abs(ends[2] - ends[0]).max() < 1e-6


def test_points_between_two_ticks_lie_between(world: Worlds) -> None:
    """Look four times a tick at falling hair: each look adds to the way, evenly."""
    made = world()
    made.gravity = (0.0, 0.0, 9.81)
    strand = scenes.straight(8, 0.02, along=(0.0, -1.0, 0.0))
    hair = made.add_hair(scenes.hand_groom([strand], scenes.plain_style(bend=2.0)))
    tips = []
    for _ in range(48):
        made.step(0.25 * made.clock)
        tips.append(hair.points()[-1, 2])
    gains = np.diff(tips)
    assert gains.min() > 0.0
    assert np.abs(np.diff(gains)).max() < 0.5 * gains.max()


# ---- putting hair in and taking it out


@pytest.mark.parametrize("name", ["curly", "wavy", "long", "gel"])
def test_first_step_gives_no_kick(world: Worlds, name: str) -> None:
    """Put hair on heads that start anywhere, turned: without weight it stays within 2 um a tick."""
    made = world()
    made.gravity = (0.0, 0.0, 0.0)
    for turn in ((1, 0, 0), (0, 1, 0), (3, -2, 1)):
        pose = scenes.pose(scenes.turning(turn, 3.0), (37.7, -3.2, 12.1))
        hair = made.add_hair(small(name), pose=pose)
        rest = hair.points()
        assert np.abs(scenes.in_head(rest, pose) - hair.groom.points).max() < 2e-6
        for _ in range(3):
            made.step(made.clock)
        assert np.abs(hair.points() - rest).max() < 6e-6


def test_removed_hair_frees_its_rows_for_the_next(world: Worlds) -> None:
    """Fill and empty a world many times: the same rows come back and none is lost."""
    made = world()
    first = made.add_hair(small("curly"))
    spaces = made._spaces()
    free = {name: space.free for name, space in spaces.items()}
    rows = []
    for name in ("long", "curly", "fur", "long"):
        hair = made.add_hair(small(name, guides=30))
        rows.append(dict(hair._rows))
        play(made, hair, frames=2)
        made.remove(hair)
        assert {name: space.free for name, space in spaces.items()} == free
    assert rows[0] == rows[3]
    assert made.hairs == [first]


def test_hair_in_used_rows_moves_as_in_fresh_ones(world: Worlds) -> None:
    """Put hair where other hair was thrown about before: not a bit of that is left."""
    fresh = world()
    want = play(fresh, fresh.add_hair(small("curly")))[0]
    fresh.close()
    used = world()
    for name in ("long", "short"):
        hair = used.add_hair(small(name, guides=40))
        play(used, hair)
        used.remove(hair)
    assert np.array_equal(play(used, used.add_hair(small("curly")))[0], want)


def test_second_head_compiles_nothing(world: Worlds) -> None:
    """Count compiled kernels while another head and style comes, moves, changes and goes."""
    made = world()
    hair = made.add_hair(small("curly"))
    made.add_collider(Sphere(0.1), pose=scenes.pose(None, (0.4, 0.0, 0.0)))
    play(made, hair, frames=3)
    made.stats()
    settle(made, 2.0)
    count = ti.lang.impl.get_runtime().get_num_compiled_functions
    before = count()
    assert before > 3
    second = made.add_hair(small("long", guides=50), pose=scenes.pose(None, (40.0, 0.0, 0.0)))
    made.add_collider(Sphere(0.2))
    made.wind = (3.0, 0.0, 0.0)
    second.hold = 0.5
    second.motion = 0.5
    play(made, hair, second, frames=3)
    hair.motion = 0.0
    settle(made, 2.0)
    made.stats()
    made.remove(hair)
    play(made, second, frames=3)
    assert count() == before


# ---- heads do not see each other


def test_two_heads_move_exactly_as_each_would_alone(world: Worlds, backend: str) -> None:
    """Run two heads together and apart: the same to the last bit."""
    stands = (scenes.pose(None, (0.3, 1.0, 0.0)), scenes.pose(scenes.turning((0, 1, 0), 2.0)))
    grooms = (small("long", guides=21), small("curly", guides=13))
    alone = []
    for groom, stand in zip(grooms, stands, strict=True):
        made = world()
        made.wind = (0.0, 0.0, 3.0)
        alone += play(made, made.add_hair(groom, pose=stand))
        made.close()
    made = world()
    made.wind = (0.0, 0.0, 3.0)
    pair = [made.add_hair(groom, pose=p) for groom, p in zip(grooms, stands, strict=True)]
    together = play(made, *pair)
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one, other)


def test_same_run_gives_the_same_bits(world: Worlds) -> None:
    """Run the same second twice."""
    runs = []
    for _ in range(2):
        made = world()
        made.wind = (1.0, 0.0, 3.0)
        made.gust = 1.0
        hairs = [made.add_hair(small(name, guides=30)) for name in ("long", "wavy")]
        runs.append(play(made, *hairs, frames=60))
        made.close()
    for one, other in zip(*runs, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("what", "harm"),
    [
        ("position", np.nan),
        ("position", np.inf),
        ("position", 1e30),
        ("position", -1e25),
        ("velocity", np.nan),
        ("velocity", -np.inf),
    ],
)
def test_strand_gone_bad_is_put_back_and_nobody_notices(
    world: Worlds, what: str, harm: float
) -> None:
    """Spoil a number of one strand: it is in its rest pose after the step, all else as ever."""
    runs = []
    for spoilt in (False, True):
        made = world()
        victim = made.add_hair(small("curly", guides=20))
        other = made.add_hair(small("long", guides=20))
        play(made, victim, other, frames=5)
        made.step(0.25 * made.clock)
        if spoilt:
            x, v = scenes.read_state(victim)
            (x if what == "position" else v)[victim.groom.starts[7] + 9, 1] = harm
            scenes.write_state(victim, x, v)
        made.step(made.clock)
        points = victim.points()
        assert np.isfinite(points).all()
        assert made.resets == made.stats().resets == int(spoilt)
        if spoilt:
            back = np.split(scenes.in_head(points, victim.head_pose), victim.groom.starts[1:])[7]
            assert np.abs(back - victim.groom.strands()[7]).max() < 1e-3
        runs.append([points, *play(made, other), *play(made, victim, frames=5)])
        made.close()
    (calm, other, later), (spoilt_now, spoilt_other, spoilt_later) = runs
    assert np.array_equal(other, spoilt_other)
    mine = np.repeat(np.arange(20), victim.counts) == 7
    assert np.array_equal(calm[~mine], spoilt_now[~mine])
    assert np.isfinite(spoilt_later).all()
    assert np.array_equal(later[~mine], spoilt_later[~mine])


@pytest.mark.parametrize("harm", [np.full((4, 4), 3e30), np.full((4, 4), np.nan)])
def test_impossible_head_is_not_taken_and_nobody_notices(world: Worlds, harm: Points) -> None:
    """Send a head to 3e30 m: its hair is in its rest pose where it was, all else as ever."""
    runs = []
    for bad in (False, True):
        made = world()
        victim, other = made.add_hair(small("curly")), made.add_hair(small("long"))
        play(made, victim, other, frames=5)
        last = victim.head_pose
        if bad:
            victim.set_head(harm)
            made.step(made.clock)
            gap = scenes.in_head(victim.points(), last) - victim.groom.points
            assert np.abs(gap).max() < 1e-3
            assert np.array_equal(victim.head_pose, last)
        else:
            made.step(made.clock)
        assert made.resets == int(bad)
        runs.append(play(made, victim, other, frames=5))
        made.close()
    assert np.array_equal(runs[0][1], runs[1][1])
    assert np.isfinite(runs[1][0]).all()


def test_resets_are_remembered_when_the_hair_is_gone(world: Worlds) -> None:
    """Spoil hair, remove it: the world still counts it."""
    made = world()
    hair = made.add_hair(small())
    hair.set_head(np.full((4, 4), np.nan))
    made.step(1 / 60)
    made.remove(hair)
    assert made.resets == 1
    assert world().resets == 0
