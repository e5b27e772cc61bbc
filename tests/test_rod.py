"""One strand: a tick equals the NumPy twin, and what it does equals what theory says."""

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import reference_rod as twin
import scenes
from scipy.integrate import solve_bvp

from hairkit.sim import columns
from hairkit.sim.bending import CONTACT
from hairkit.sim.contact import TOUCHING
from hairkit.sim.hair import BEND_DAMPING_S
from hairkit.sim.lengths import STRAIN_LEFT
from hairkit.sim.world import World
from hairkit.style import load_style

Worlds = Callable[..., World]
Points = scenes.Points

COUNTS = (3, 4, 5, 12, 33, 12, 12, 7, 5, 3, 33, 12, 12, 12, 12, 12, 12, 12)
"""Points of the strands of a mixed world: some counts fill a block of eight, some leave lanes."""

CLOSE = 5e-6
"""How near a tick comes to the twin [m].

Single precision keeps a position 0.3 m from the origin to 3e-8 m; a stretch spring of 1e7 /s^2
against an inertia of 1/h^2 = 14400 /s^2 loses three digits more.
"""


@pytest.mark.parametrize(
    ("changes", "ball", "options"),
    [
        ({}, None, {}),
        ({}, 0.1, {}),
        ({"hold": 0.3}, None, {}),
        ({"hold": 0.3, "stiff_root": 6.0}, 0.1, {}),
        ({"bend": 0.2}, None, {"bend": 0.6}),
        ({"stretch": 0.4, "max_stretch": 0.1, "width": 0.02}, 0.1, {}),
        ({"stretch": 1.0, "max_stretch": 0.02}, None, {"throw": 40.0, "bend": 0.01}),
        ({"hold": 0.1}, 0.1, {"motion": 0.6}),
    ],
    ids=["free", "ball", "hold", "hold on ball", "stiff", "stretchy", "tether", "less motion"],
)
def test_tick_equals_the_numpy_twin(
    world: Worlds, changes: dict[str, Any], ball: float | None, options: dict[str, float]
) -> None:
    """Put mixed strands anywhere near their rest and compare two ticks with dense solves in f64."""
    motion, bend = options.get("motion", 1.0), options.get("bend", 0.3)
    rng = np.random.default_rng(5)
    style = load_style("curly").replace(**{"hold": 0.0, "bend": 0.9, **changes})
    curled = [_by_the_ball(rng, scenes.random_curl(rng, n, 0.012, bend=bend)) for n in COUNTS]
    rests = [
        scenes.random_curl(rng, len(c), 0.012, bend=bend, root=c[0], along=c[1] - c[0])
        for c in curled
    ]
    if style.stretch > 0.0:
        # Pulled or pushed, but not between the two, where rounding would choose the spring.
        for turn, c in enumerate(curled):
            c[2:] = c[1] + (c[2:] - c[1]) * (1.01 if turn % 2 else 0.99)
    head = scenes.bare_head() if ball is None else scenes.ball_head(ball)
    made = world()
    made.gravity = (0.3, -9.5, 1.0)
    made.wind = (3.0, -1.0, 2.0)
    poses = [
        scenes.pose(scenes.turning((1, 2, -1), 0.70), (0.3, 1.2, -0.4)),
        scenes.pose(scenes.turning((1, 2, -1), 0.72), (0.301, 1.2, -0.402)),
        scenes.pose(scenes.turning((1, 2, -1.1), 0.73), (0.301, 1.199, -0.403)),
    ]
    hair = made.add_hair(scenes.hand_groom(rests, style, head), pose=poses[0], motion=motion)
    velocity = rng.normal(scale=0.2, size=(sum(COUNTS), 3))
    velocity += options.get("throw", 0.0) * np.concatenate([c - c[0] for c in curled])
    turn, moved = poses[0][:3, :3], poses[0][:3, 3]
    scenes.write_state(hair, np.concatenate(curled) @ turn.T + moved, velocity @ turn.T)
    rods = [twin.Rod(rest, style, 1.0 - motion * (1.0 - style.hold)) for rest in rests]
    bounds = np.cumsum(COUNTS)[:-1]
    touches = [(np.zeros((n, 3)), np.zeros(n)) for n in COUNTS]
    h = made.clock / hair.subticks
    for before, after in itertools.pairwise(poses):
        x, v = scenes.read_state(hair)
        hair.set_head(after)
        made.step(h)
        around = twin.Surroundings(
            before=before,
            after=after,
            h=h,
            gravity=made.gravity,
            wind=made.wind,
            bend_damping=BEND_DAMPING_S,
            rounds=int(made._numbers[hair.index, columns.ROUNDS]),
            strain_left=STRAIN_LEFT,
            ball=ball,
            contact=CONTACT,
            touching=TOUCHING,
        )
        states = [
            twin.State(position=position, velocity=velocity, touch=touch, carried=carried)
            for position, velocity, (touch, carried) in zip(
                np.split(x, bounds), np.split(v, bounds), touches, strict=True
            )
        ]
        for block in scenes.blocks(hair):
            new = twin.tick([rods[i] for i in block], [states[i] for i in block], around)
            for i, state in zip(block, new, strict=True):
                states[i] = state
        touches = [(state.touch, state.carried) for state in states]
        free = scenes.free(hair)
        want_x = np.concatenate([state.position for state in states])
        want_v = np.concatenate([state.velocity for state in states])
        got_x, got_v = scenes.read_state(hair)
        assert np.linalg.norm(want_x - x, axis=1).max() > 0.005
        assert np.abs(got_x - want_x).max() < CLOSE
        assert np.abs(got_v - want_v)[free].max() < CLOSE / h
        assert np.abs(hair.points() - got_x).max() == 0.0
    touching = sum(int(touch.any(axis=1).sum()) for touch, _ in touches)
    assert touching > 5 if ball is not None else touching == 0


def _by_the_ball(rng: np.random.Generator, curl: Points) -> Points:
    """Return a curl moved so that its free points are just in, on or off a ball of 0.1 m."""
    curl = curl - curl.mean(axis=0) + 0.2 * scenes.unit(rng.normal(size=3))
    away = np.linalg.norm(curl[2:], axis=1)
    nearest = curl[2:][np.argmin(away)]
    return curl - nearest * (1.0 - (0.1 + rng.uniform(-0.003, 0.004)) / away.min())


# ---- what theory says


@cache
def _heavy_elastica(load: float, angle: float) -> Any:
    """Return the shape of a rod that is clamped at one end and bends under its own weight.

    Args:
        load: Weight a length times length cubed over EI.
        angle: Direction at the clamp, from straight down [rad].

    Returns:
        A function of arc length that gives angle, curvature, sideways and downwards, all in rod
        lengths.
    """
    found: Any = None
    s = np.linspace(0.0, 1.0, 101)
    y = np.stack([np.full(101, angle), 0.0 * s, s * np.sin(angle), s * np.cos(angle)])
    for part in np.geomspace(min(0.1, load), load, 8):

        def slope(s: Points, y: Points, part: float = part) -> Points:
            return np.stack([y[1], part * (1.0 - s) * np.sin(y[0]), np.sin(y[0]), np.cos(y[0])])

        def ends(a: Points, b: Points) -> Points:
            return np.array([a[0] - angle, b[1], a[2], a[3]])

        found = solve_bvp(slope, ends, s, y, tol=1e-6, max_nodes=20000)
        assert found.success
        s, y = found.x, found.y
    return found.sol


def _hang(
    made: World,
    count: int,
    load: float,
    angle: float,
    *,
    length: float = 0.3,
    seconds: float = 6.0,
    **changes: Any,
) -> Points:
    """Let a straight strand sag until it rests; return its free part in lengths of that part.

    Args:
        made: Where.
        count: Points of the strand; point 1 is the clamp.
        load: Weight a length times length cubed over EI, which gravity is set for.
        angle: Direction at the clamp, from straight down [rad].
        length: Of the free part [m].
        seconds: How long to wait [s].
        changes: Keys of the style.
    """
    segment = length / (count - 2)
    style = scenes.plain_style(
        **{"segments": count - 2, "length": segment * (count - 1), "damping": 20.0, **changes}
    )
    made.sleep = False
    made.gravity = (0.0, -load * style.bending_rigidity() / (style.density * length**3), 0.0)
    along = np.array([np.sin(angle), -np.cos(angle), 0.0])
    hair = made.add_hair(
        scenes.hand_groom(
            [scenes.straight(count, segment, along=along, root=-segment * along)], style
        )
    )
    for _ in range(round(10 * seconds)):
        made.step(0.1)
    points = hair.points()
    made.remove(hair)
    return (points[1:] - points[1]) / length


def _theory(count: int, load: float, angle: float) -> Points:
    """Return what `_hang` should give."""
    shape = _heavy_elastica(load, angle)(np.linspace(0.0, 1.0, count - 1))
    return np.stack([shape[2], -shape[3], 0.0 * shape[2]], axis=1)


SMALL = {"load": 0.5, "angle": np.pi / 2, "bend": 0.0, "density": 0.001}
LARGE = {"load": 13.0, "angle": np.pi / 2, "bend": 0.0, "density": 0.0045}


@pytest.mark.parametrize("case", [SMALL, LARGE], ids=["small", "large"])
def test_cantilever_of_18_points_bends_as_theory_says_to_one_per_cent(
    world: Worlds, case: dict[str, Any]
) -> None:
    """Clamp a strand level: its tip sinks by 6 % or 87 % of its length, right to 0.2 %."""
    got, want = _hang(world(), 18, **case)[-1], _theory(18, case["load"], case["angle"])[-1]
    sunk = np.linalg.norm(want - [1.0, 0.0, 0.0])
    assert np.linalg.norm(got - want) < 0.005 * sunk


def test_cantilever_converges_at_second_order(world: Worlds) -> None:
    """Halve the segments twice: off by 0.19 %, 0.03 % and 0.01 % at 8, 16 and 32 free segments."""
    made = world()
    for segments in (8, 16, 32):
        got, want = (
            _hang(made, segments + 2, **SMALL)[-1],
            _theory(segments + 2, 0.5, np.pi / 2)[-1],
        )
        sunk = np.linalg.norm(want - [1.0, 0.0, 0.0])
        assert np.linalg.norm(got - want) < 0.15 / segments**2 * sunk


@pytest.mark.parametrize(
    ("angle", "within"), [(np.pi / 2, 0.01), (2.6, 0.02)], ids=["from level", "from upwards"]
)
def test_hanging_strand_has_the_shape_of_the_heavy_elastica(
    world: Worlds, angle: float, within: float
) -> None:
    """Compare all 18 points of a strand that hangs from a bent root: 0.7 % and 1.5 % of length."""
    got = _hang(world(), 18, 60.0, angle, bend=0.4)
    assert np.linalg.norm(got - _theory(18, 60.0, angle), axis=1).max() < within


def test_stiff_segment_swings_with_a_pendulums_period(world: Worlds) -> None:
    """Time six small swings of 25 cm: within 0.5 % of 2 pi sqrt(l / g)."""
    length, angle = 0.25, 0.2
    style = scenes.plain_style(bend=3.0, segments=2, length=2.0 * length)
    hanging = length * np.array([[0, 1, 0], [0, 0, 0], [np.sin(angle), -np.cos(angle), 0]])
    made = world()
    made.sleep = False
    hair = made.add_hair(scenes.hand_groom([hanging], style))
    side = []
    for _ in range(round(7.0 / made.clock)):
        made.step(made.clock)
        side.append(hair.points()[2, 0])
    swings = np.diff(_upward_crossings(np.array(side), made.clock))
    assert len(swings) >= 5
    assert np.abs(swings / (2.0 * np.pi * np.sqrt(length / 9.81)) - 1.0).max() < 0.005


def _upward_crossings(values: Points, step: float) -> Points:
    """Return when values rise through zero [s]."""
    before = np.flatnonzero((values[:-1] < 0.0) & (values[1:] >= 0.0))
    part = values[before] / (values[before] - values[before + 1])
    return (before + 1 + part) * step


def test_clamped_strand_vibrates_at_its_first_frequency(world: Worlds) -> None:
    """Pluck a level strand of 18 points without weight: within 2 % of 3.516 sqrt(EI / rho L^4)."""
    length, count = 0.3, 18
    segment = length / (count - 2)
    style = scenes.plain_style(
        bend=0.0, density=0.002, segments=count - 2, length=segment * (count - 1)
    )
    made = world(clock=1.0 / 480.0)
    made.sleep = False
    made.gravity = (0.0, -1.0, 0.0)
    hair = made.add_hair(scenes.hand_groom([scenes.straight(count, segment)], style))
    for _ in range(40):
        made.step(made.clock)
    made.gravity = (0.0, 0.0, 0.0)
    height = []
    for _ in range(round(3.0 / made.clock)):
        made.step(made.clock)
        height.append(hair.points()[-1, 1])
    periods = np.diff(_upward_crossings(np.array(height), made.clock))
    rate = 3.516 * np.sqrt(style.bending_rigidity() / (style.density * length**4))
    assert len(periods) >= 2
    assert np.abs(periods * rate / (2.0 * np.pi) - 1.0).max() < 0.02


# ---- sag is a material property


@pytest.mark.parametrize(
    ("clock", "damping"), [(1 / 240, 2.0), (1 / 480, 2.0), (1 / 120, 20.0), (1 / 480, 20.0)]
)
def test_sag_depends_on_neither_clock_nor_damping(
    world: Worlds, clock: float, damping: float
) -> None:
    """Let the same strand sag under other clocks and ten times the damping: the same to 1e-4."""
    calm = _hang(world(clock=1 / 120), 18, 40.0, 2.0, seconds=15.0, damping=2.0)
    other = _hang(world(clock=clock), 18, 40.0, 2.0, seconds=15.0, damping=damping)
    assert np.abs(other - calm).max() < 1e-4


@pytest.mark.parametrize("count", [12, 36])
def test_sag_does_not_depend_on_the_number_of_points(world: Worlds, count: int) -> None:
    """Cut the same hanging strand into 12, 18 or 36 points: its tip sags the same within 0.5 %.

    It measures 0.01 and 0.11 %; held level as a cantilever, 12 points are 0.16 % off 18.
    """
    made = world()
    hanging = {**LARGE, "angle": np.pi / 4}
    other, usual = _hang(made, count, **hanging)[-1], _hang(made, 18, **hanging)[-1]
    assert abs(other[1] / usual[1] - 1.0) < 0.005


# ---- laws of motion


@pytest.mark.parametrize(
    "rest",
    [
        scenes.straight(14, 0.02, along=(1.0, 0.3, 0.0)),
        scenes.helix(26, 0.0115, along=(1.0, 0.3, 0.2)),
        scenes.helix(26, 0.0115, along=(0.2, 1.0, 0.2)),
    ],
    ids=["straight", "helix", "helix that topples"],
)
def test_energy_only_falls_in_a_free_swing(world: Worlds, rest: Points) -> None:
    """Let a strand swing without drag: no tick adds a thousandth of its largest kinetic energy."""
    style = scenes.plain_style(segments=len(rest) - 2, length=0.02 * (len(rest) - 1))
    made = world()
    made.sleep = False
    hair = made.add_hair(scenes.hand_groom([rest], style))
    rod = twin.Rod(rest, style)
    energies = []
    before = rest
    for _ in range(240):
        made.step(made.clock)
        now = hair.points()
        energies.append(rod.whole_energy(now, (now - before) / made.clock, made.gravity))
        before = now
    whole, kinetic = np.array(energies).T
    assert kinetic.max() > 1.0
    assert np.diff(whole).max() < 1e-3 * kinetic.max()
    assert whole[-1] < whole[0] - kinetic.max()


def _swing(
    world: Worlds,
    *,
    mirror: Points | None = None,
    stand: Points | None = None,
) -> Points:
    """Return a second of curls on a turning, nodding ball in wind, in the frame that it stands in.

    Args:
        world: Makes worlds.
        mirror: Matrix that all of the scene is mirrored with, and the result back.
        stand: Pose that all of the scene, gravity and wind included, is moved by.
    """
    flip = np.eye(3) if mirror is None else mirror
    stand = np.eye(4) if stand is None else stand
    style = load_style("curly")
    rng = np.random.default_rng(3)
    ways = scenes.unit(rng.normal(size=(9, 3)) + np.array([0.0, -0.4, 0.0]))
    count, segment = style.segments + 2, style.segment_length()
    strands = [scenes.helix(count, segment, along=way, root=0.1 * way) @ flip for way in ways]
    made = world()
    made.gravity = stand[:3, :3] @ (0.0, -9.81, 0.0)
    made.wind = stand[:3, :3] @ flip @ (1.0, 0.0, 2.0)
    hair = made.add_hair(scenes.hand_groom(strands, style, scenes.ball_head()), pose=stand)
    seen = []
    for frame in range(60):
        time = (frame + 1) / 60
        yaw = scenes.turning((0, 1, 0), 0.9 * np.sin(1.5 * np.pi * time))
        nod = scenes.turning((1, 0, 0), 0.5 * np.sin(2.0 * np.pi * time))
        hair.set_head(stand @ scenes.pose(flip @ yaw @ nod @ flip))
        made.step(1 / 60)
        seen.append(scenes.in_head(hair.points(), stand) @ flip)
    made.close()
    return np.array(seen)


def test_mirrored_scene_gives_mirrored_motion(world: Worlds) -> None:
    """Swap left and right: curls turn the other way and everything else is the mirror image."""
    mirrored = _swing(world, mirror=np.diag([-1.0, 1.0, 1.0]))
    assert np.abs(mirrored - _swing(world)).max() < 1e-4


@pytest.mark.parametrize(
    "stand",
    [
        scenes.pose(None, (100.03, 20.01, -50.02)),
        scenes.pose(scenes.turning((0, 1, 0), 2.0), (0.0, 0.0, 0.0)),
        scenes.pose(scenes.turning((3, -1, 2), 1.1), (-100.0, 3.3, 77.7)),
    ],
    ids=["far away", "turned", "tilted far away"],
)
def test_scene_moves_the_same_anywhere_and_any_way_round(world: Worlds, stand: Points) -> None:
    """Move and turn the whole scene: curls do the same to 0.2 mm, which is rounding."""
    assert np.abs(_swing(world, stand=stand) - _swing(world)).max() < 2e-4
