"""Plans of sectors and bands: a slow twin, and laws that hold for any cloud of vertices."""

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from reference_plan import Place, places, slow_plan, table

from hairkit.errors import RigError
from hairkit.rigging import Plan, plan

Points = NDArray[np.float64]
Options = dict[str, Any]

SEEDS = range(40)
CLOSE = 1e-9


class Case(NamedTuple):
    """A cloud of vertices and how to plan for it."""

    points: Points
    options: Options


def rotation(random: np.random.Generator) -> Points:
    """Return a random rotation that is no mirror."""
    turn, _ = np.linalg.qr(random.normal(size=(3, 3)))
    return turn * np.linalg.det(turn)


def case(seed: int, **fixed: Any) -> Case:
    """Return a random cloud of up to 60 vertices, some above the root, and random options."""
    random = np.random.default_rng(seed)
    size = 10.0 ** random.uniform(-3.0, 3.0)
    axis = random.normal(size=3) * size
    options: Options = {
        "root": random.normal(size=3) * size,
        "axis": (0.0, -1.0, 0.0) if seed % 4 == 0 else axis,
        "sectors": int(random.integers(1, 8)),
        "segments": int(random.integers(1, 7)),
        "max_influences": int(random.integers(0, 7)),
        "reference": random.normal(size=3) if seed % 3 == 0 else None,
    }
    options.update(fixed)
    count = int(random.integers(2, 60))
    points = random.normal(size=(count, 3)) * size
    if seed % 2:
        # Strands: few places sideways, many depths, so that sectors and bands stay empty.
        points = points[random.integers(0, min(count, 3), count)]
        along = np.asarray(options["axis"]) / np.linalg.norm(options["axis"])
        points = points + along * random.uniform(0.0, 4.0 * size, (count, 1))
    # One surely hangs, one is the root itself.
    down = np.asarray(options["axis"]) / np.linalg.norm(options["axis"])
    points = np.concatenate([points, [0.3 * size * (down + 0.1), np.zeros(3)]])
    return Case(options["root"] + points, options)


def places_of(points: Points, options: Options) -> list[Place | None]:
    """Return the slow planner's place of each vertex."""
    names = ("root", "axis", "sectors", "segments", "reference")
    return places(points.tolist(), *(options[name] for name in names))


def away_from_edges(points: Points, options: Options) -> Points:
    """Return vertices that rounding cannot move across a sector's edge, or the root's plane."""
    share = 1e-6 * options["sectors"] / (2.0 * math.pi)
    kept = []
    for point, place in zip(points, places_of(points, options), strict=True):
        if place is None or share < place.through_sector < 1.0 - share:
            kept.append(point)
    return np.array(kept)


def weights_of(found: Plan) -> Points:
    """Return weights as one row a vertex, one column a bone."""
    result = np.zeros((len(found.weights.indices), len(found.bones)))
    np.add.at(
        result,
        (np.arange(len(result))[:, None], found.weights.indices),
        found.weights.weights,
    )
    return result


def spread(points: Points, options: Options) -> float:
    """Return how far vertices lie from the root, the measure of errors in places."""
    return float(np.abs(points - options["root"]).max())


def assert_same(found: Plan, positions: Points, weights: Points, size: float):
    """Compare bones' places, by the cloud's size, and weights."""
    np.testing.assert_allclose(found.positions, positions, rtol=0.0, atol=CLOSE * size)
    np.testing.assert_allclose(weights_of(found), weights, rtol=0.0, atol=CLOSE)


def two_strands() -> Points:
    """Return strands that hang from y = 10 at x = 2 and x = -2, and one vertex of scalp."""
    rows = [[0.0, 10.0, 0.0]]
    for step in range(1, 7):
        rows += [[2.0, 10.0 - step, 0.0], [-2.0, 10.0 - step, 0.0]]
    return np.array(rows)


def test_two_strands_get_a_chain_each():
    """Plan for two strands: names, parents, places and weights as described."""
    points = two_strands()
    found = plan(points, root=(0, 10, 0), sectors=2, segments=3)
    assert found.names == [
        "HairRoot",
        *("Hair_S1_B1", "Hair_S1_B2", "Hair_S1_B3"),
        *("Hair_S2_B1", "Hair_S2_B2", "Hair_S2_B3"),
    ]
    assert found.parents.tolist() == [-1, 0, 1, 2, 0, 4, 5]
    assert found.chains == ((1, 2, 3), (4, 5, 6))
    assert found.bones[0].position == (0.0, 10.0, 0.0)
    for row, bone in enumerate(found.positions[1:]):
        strand = 2.0 if row < 3 else -2.0
        assert math.hypot(bone[0] - strand, bone[2]) < 0.5
        assert 4.0 <= bone[1] < 10.0
    indices, weights = found.weights
    assert (indices[0].tolist(), weights[0].tolist()) == ([0, 0], [1.0, 0.0])
    assert [found.names[row] for row in indices[-2:, 0]] == ["Hair_S1_B3", "Hair_S2_B3"]
    assert (weights[-2:, 0] > 0.5).all()
    # +X is the left of a wearer who looks along +Z, and sector 1 is there.
    np.testing.assert_array_equal(found.chain_of_vertices(), [-1, *[0, 1] * 6])


def test_default_is_three_chains_of_three():
    """Count the bones of a plan without options."""
    found = plan(two_strands(), root=(0, 10, 0))
    assert len(found.bones) == 10
    assert found.weights.indices.shape == (13, 2)
    assert found.strategy == "sectors"


@pytest.mark.parametrize(("influences", "allowed"), [(-3, 1), (0, 1), (1, 1), (4, 4), (6, 4)])
def test_influences_are_clamped(influences: int, allowed: int):
    """Ask for too few and too many bones a vertex."""
    found = plan(two_strands(), root=(0, 10, 0), max_influences=influences)
    assert found.weights.indices.shape == found.weights.weights.shape == (13, allowed)


@pytest.mark.parametrize("seed", SEEDS)
def test_plans_equal_the_slow_twin(seed: int):
    """Compare bones and weights with those found vertex by vertex."""
    points, options = case(seed)
    found = plan(points, **options)
    slow = slow_plan(points.tolist(), **options)
    assert found.names == slow.names
    assert found.parents.tolist() == slow.parents
    weights = table(slow.weights, len(slow.names))
    assert_same(found, np.array(slow.positions), weights, spread(points, options))


@pytest.mark.parametrize("seed", SEEDS)
def test_skeleton_and_weights_are_well_formed(seed: int):
    """Check counts, order, sums and unused slots of random plans."""
    points, options = case(seed)
    sectors, segments = options["sectors"], options["segments"]
    found = plan(points, **options)
    assert found.names == [
        "HairRoot",
        *(f"Hair_S{s}_B{b}" for s in range(1, sectors + 1) for b in range(1, segments + 1)),
    ]
    assert [row for row, bone in enumerate(found.bones) if bone.parent < 0] == [0]
    assert all(bone.parent < row for row, bone in enumerate(found.bones))
    assert [len(chain) for chain in found.chains] == [segments] * sectors
    for chain in found.chains:
        assert [found.bones[row].parent for row in chain] == [0, *chain[:-1]]
    np.testing.assert_array_equal(found.positions[0], options["root"])

    indices, weights = found.weights
    allowed = min(max(options["max_influences"], 1), 4)
    assert indices.shape == weights.shape == (len(points), allowed)
    assert (indices.dtype, weights.dtype) == (np.int32, np.float64)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=0.0, atol=1e-6)
    assert (weights >= 0.0).all()
    assert (np.diff(weights, axis=1) <= 0.0).all()
    assert (indices[weights == 0.0] == 0).all()
    assert ((indices >= 0) & (indices < len(found.bones))).all()
    for row, share in zip(indices, weights, strict=True):
        used = row[share > 0.0].tolist()
        assert len(set(used)) == len(used)


@pytest.mark.parametrize("seed", SEEDS)
def test_order_of_vertices_does_not_matter(seed: int):
    """Shuffle a cloud: the same bones, and weights that moved along."""
    points, options = case(seed)
    found = plan(points, **options)
    order = np.random.default_rng(seed).permutation(len(points))
    shuffled = plan(points[order], **options)
    weights = weights_of(found)[order]
    assert_same(shuffled, found.positions, weights, spread(points, options))


@pytest.mark.parametrize("seed", SEEDS)
def test_turning_everything_turns_the_bones(seed: int):
    """Rotate cloud, root, axis and reference about the world's origin."""
    random = np.random.default_rng(seed)
    points, options = case(seed, reference=random.normal(size=3))
    points = away_from_edges(points, options)
    turn = rotation(random)
    turned = {
        **options,
        **{name: turn @ np.asarray(options[name]) for name in ("root", "axis", "reference")},
    }
    before = plan(points, **options)
    after = plan(points @ turn.T, **turned)
    assert_same(after, before.positions @ turn.T, weights_of(before), spread(points, options))


@pytest.mark.parametrize("scale", [1e-100, 1e-3, 0.37, 1e3, 1e100])
@pytest.mark.parametrize("seed", SEEDS[:10])
def test_scaling_and_moving_scales_and_moves_the_bones(seed: int, scale: float):
    """Scale and move cloud and root; options without a place stay as they are."""
    points, options = case(seed)
    points = away_from_edges(points, options)
    size = spread(points, options) * scale
    shift = np.random.default_rng(seed).normal(size=3) * size
    moved = {**options, "root": options["root"] * scale + shift}
    before = plan(points, **options)
    after = plan(points * scale + shift, **moved)
    assert_same(after, before.positions * scale + shift, weights_of(before), size)


@pytest.mark.parametrize("length", [1e-200, 1e-3, 1e200])
def test_length_of_the_axis_does_not_matter(length: float):
    """Stretch axis and reference."""
    points, options = case(3, reference=(0.2, 0.3, -0.4))
    after = plan(
        points,
        **{
            **options,
            "axis": options["axis"] / np.linalg.norm(options["axis"]) * length,
            "reference": np.array(options["reference"]) * length,
        },
    )
    before = plan(points, **options)
    assert_same(after, before.positions, weights_of(before), spread(points, options))


@pytest.mark.parametrize("seed", SEEDS[:20])
def test_vertices_above_the_root_pull_nothing(seed: int):
    """Add vertices at the root's plane and above it: the root moves them, and no bone stirs."""
    points, options = case(seed)
    random = np.random.default_rng(seed)
    down = np.asarray(options["axis"]) / np.linalg.norm(options["axis"])
    size = spread(points, options)
    flat = random.normal(size=(12, 3)) * size
    flat -= np.outer(flat @ down, down)
    flat[:6] -= random.uniform(0.0, 3.0, (6, 1)) * size * down
    before = plan(points, **options)
    after = plan(np.concatenate([points, options["root"] + flat]), **options)
    scalp = np.zeros((12, len(before.bones)))
    scalp[:, 0] = 1.0
    assert_same(after, before.positions, np.concatenate([weights_of(before), scalp]), size)
    np.testing.assert_array_equal(after.chain_of_vertices()[-12:], -1)


@pytest.mark.parametrize("seed", SEEDS[:20])
def test_copies_change_nothing_and_weigh_the_same(seed: int):
    """Put every vertex there twice."""
    points, options = case(seed)
    before = plan(points, **options)
    after = plan(np.concatenate([points, points]), **options)
    weights = weights_of(before)
    assert_same(
        after, before.positions, np.concatenate([weights, weights]), spread(points, options)
    )
    indices, shares = after.weights
    half = len(points)
    np.testing.assert_array_equal(indices[:half], indices[half:])
    np.testing.assert_array_equal(shares[:half], shares[half:])


@pytest.mark.parametrize("seed", SEEDS[:20])
def test_mirrored_cloud_has_mirrored_bones(seed: int):
    """Mirror left and right: chain s becomes the chain that is s-th from the other end."""
    points, options = case(seed, axis=(0.0, -2.0, 0.0), reference=None)
    points = away_from_edges(points, options)
    flip = np.array([-1.0, 1.0, 1.0])
    before = plan(points, **options)
    after = plan(points * flip, **{**options, "root": options["root"] * flip})
    order = np.concatenate([[0], np.array(before.chains)[::-1].ravel()])
    weights = weights_of(before)[:, order]
    assert_same(after, before.positions[order] * flip, weights, spread(points, options))


@pytest.mark.parametrize(("axis", "front"), [((0, -1, 0), (0, 0, 1)), ((0, 0, -1), (0, 1, 0))])
def test_sectors_begin_in_front_and_go_to_the_left(axis: tuple[int, ...], front: tuple[int, ...]):
    """Find the sectors of vertices just left and right of the front: the first and the last."""
    left = -np.cross(axis, front)
    points = np.array([axis + np.array(front) + 0.1 * side * left for side in (1, -1)])
    found = plan(points, root=(0, 0, 0), axis=axis, sectors=5)
    assert found.chain_of_vertices().tolist() == [0, 4]
    if axis[1]:
        assert left[0] > 0.0


def ladder(bands: list[int], segments: int) -> Points:
    """Return vertices of sector 1 of 3 in some bands, and one deep in sector 2 for the depth."""
    rows = [
        [0.5 + 0.3 * band + 0.1 * side, -(band + 0.3 + 0.2 * side), 1.0 + 0.05 * band**2]
        for band in bands
        for side in (0.0, 1.0)
    ]
    return np.array([*rows, [0.3, -float(segments), -2.0]])


@pytest.mark.parametrize("bands", [[0, 3], [2], [1, 4], [0], [0, 1, 5], [3, 5]])
def test_empty_bands_keep_their_bones_on_the_line(bands: list[int]):
    """Leave out bands between, before and after others: bones on lines, evenly apart."""
    segments = 6
    root = np.array([5.0, 6.0, 7.0])
    found = plan(ladder(bands, segments) + root, root=root, segments=segments)
    places = found.positions[list(found.chains[0])] - root
    for band in bands:
        middle = ladder([band], segments)[:2].mean(axis=0)
        np.testing.assert_allclose(places[band], middle, atol=CLOSE)
    # Along the chain by bands: the root is half a band before the first one's middle.
    line = np.concatenate([[np.zeros(3)], places])
    steps = np.array([0.0, *(np.arange(segments) + 0.5)])
    fixed = [0, *(band + 1 for band in bands)]
    for first, last in itertools.pairwise(fixed):
        share = (steps[first : last + 1] - steps[first]) / (steps[last] - steps[first])
        expected = line[first] + np.outer(share, line[last] - line[first])
        np.testing.assert_allclose(line[first : last + 1], expected, atol=CLOSE)
    straight = np.outer(steps[fixed[-1] :] - steps[fixed[-1]], [0.0, -1.0, 0.0])
    np.testing.assert_allclose(line[fixed[-1] :], line[fixed[-1]] + straight, atol=CLOSE)


def test_empty_sector_hangs_straight_down():
    """Leave a sector without vertices: its chain has all bones, at the bands' middles."""
    found = plan(ladder([0, 1, 2], 3), root=(0, 0, 0), sectors=3, segments=3)
    np.testing.assert_allclose(
        found.positions[list(found.chains[2])],
        [[0.0, -0.5, 0.0], [0.0, -1.5, 0.0], [0.0, -2.5, 0.0]],
        atol=CLOSE,
    )


@pytest.mark.parametrize("depth", [0.05, 0.5, 0.8, 1.0, 1.2, 1.5, 1.9, 2.5, 2.8, 3.0])
def test_vertex_leans_to_the_nearer_band(depth: float):
    """Compare a vertex's shares with the described ones, in the first, a middle and the last."""
    found = plan([[0.5, -depth, 0.5], [1.0, -3.0, 0.5]], root=(0, 0, 0), sectors=1, segments=3)
    band = min(int(depth), 2)
    through = depth - band
    beside = band + (1 if through > 0.5 else -1)
    share = abs(through - 0.5) * 0.8 if 0 <= beside < 3 else 0.0
    expected = np.zeros(4)
    expected[1 + band] += 1.0 - share
    if share:
        expected[1 + beside] += share
    np.testing.assert_allclose(weights_of(found)[0], expected, atol=CLOSE)


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_one_influence_is_one_bone(seed: int):
    """Bind each vertex to one bone: the heaviest of those that two influences give."""
    points, options = case(seed)
    one = plan(points, **{**options, "max_influences": 1})
    two = plan(points, **{**options, "max_influences": 2})
    assert (one.weights.weights == 1.0).all()
    np.testing.assert_array_equal(one.weights.indices[:, 0], two.weights.indices[:, 0])


def around(angle: float, depth: float) -> list[float]:
    """Return a vertex by its angle from +Z towards +X and its depth below the origin."""
    return [math.sin(angle), -depth, math.cos(angle)]


@pytest.mark.parametrize("sectors", [2, 3, 5, 7])
@pytest.mark.parametrize("through", [0.1, 0.5, 0.9])
def test_more_influences_add_the_neighbouring_sector(sectors: int, through: float):
    """Put a vertex before, in and past each sector's middle, and see which chains move it."""
    for own in range(sectors):
        angle = (own + through) * 2.0 * math.pi / sectors
        points = [around(angle, 1.3), around(angle, 3.0)]
        four, three, two = (
            plan(points, root=(0, 0, 0), sectors=sectors, max_influences=most) for most in (4, 3, 2)
        )
        shares = weights_of(four)[0, 1:].reshape(sectors, 3)
        aside = abs(through - 0.5) * 0.8
        expected = np.zeros(sectors)
        expected[own] += 1.0 - aside
        expected[(own + (1 if through > 0.5 else -1)) % sectors] += aside
        np.testing.assert_allclose(shares.sum(axis=1), expected, atol=CLOSE)
        # Bands share as they do with two influences, in either sector.
        bands = weights_of(two)[0, 1:].reshape(sectors, 3).sum(axis=0)
        np.testing.assert_allclose(shares.sum(axis=0), bands, atol=CLOSE)
        # Where the sector's middle leaves the neighbour nothing, its bones take no slot.
        assert np.count_nonzero(four.weights.weights[0]) == (2 if through == 0.5 else 4)
        kept = np.sort(weights_of(four)[0])[::-1][:3]
        np.testing.assert_allclose(three.weights.weights[0], kept / kept.sum(), atol=CLOSE)


def test_middle_of_a_band_takes_one_slot():
    """Put vertices in a band's middle, however rounding places them: one bone moves each."""
    random = np.random.default_rng(0)
    for _ in range(50):
        root, deepest = random.normal(size=3), random.uniform(0.1, 10.0)
        points = root + np.array([[0.1, -deepest / 2.0, 0.3], [0.1, -deepest, 0.3]])
        found = plan(points, root=root, sectors=1, segments=3)
        assert np.count_nonzero(found.weights.weights[0]) == 1


@pytest.mark.parametrize("parts", [2, 3, 5, 6, 7])
def test_vertices_on_an_edge_belong_past_it(parts: int):
    """Put vertices on edges of bands and sectors, however rounding places them."""
    random = np.random.default_rng(parts)
    edges = np.arange(parts)
    for _ in range(20):
        root, deepest = random.normal(size=3), random.uniform(0.1, 10.0)
        points = np.array([around(0.3, deepest * edge / parts) for edge in range(1, parts + 1)])
        found = plan(points + root, root=root, sectors=1, segments=parts)
        bands = found.weights.indices[:, 0] - 1
        np.testing.assert_array_equal(bands, [*edges[1:], parts - 1])

        points = np.array([around(edge * 2.0 * math.pi / parts, 1.0) for edge in edges])
        found = plan(deepest * points + root, root=root, sectors=parts)
        np.testing.assert_array_equal(found.chain_of_vertices(), edges)


def test_lone_vertex_is_enough():
    """Plan for the smallest hair there is."""
    found = plan([[0.0, -1.0, 0.0]], root=(0, 0, 0), sectors=2, segments=2)
    assert len(found.bones) == 5
    np.testing.assert_allclose(found.positions[2], [0.0, -1.0, 0.0])


def test_plan_as_plain_objects():
    """Turn a plan into what JSON holds, and find all of it there."""
    found = plan(two_strands(), root=(0, 10, 0), sectors=2)
    plain = found.as_dict()
    assert [bone["name"] for bone in plain["bones"]] == found.names
    assert [bone["parent"] for bone in plain["bones"]] == found.parents.tolist()
    np.testing.assert_array_equal([bone["position"] for bone in plain["bones"]], found.positions)
    assert plain["chains"] == [list(chain) for chain in found.chains]
    np.testing.assert_array_equal(plain["weights"]["indices"], found.weights.indices)
    np.testing.assert_array_equal(plain["weights"]["weights"], found.weights.weights)


BAD: list[tuple[str, str, str, Any, Options]] = [
    ("none", "no vertices", "no vertices", [], {}),
    ("none, shaped", "no vertices", "no vertices", np.zeros((0, 3)), {}),
    ("nan", "not finite", "vertex 1 is", [[0, -1, 0], [0, math.nan, 0]], {}),
    ("inf", "not finite", "vertex 0 is", [[0, -math.inf, 0]], {}),
    ("above", "above root", "all 2 vertices are at or above", [[0, 1, 0], [3, 0, 0]], {}),
    ("no axis", "bad option", "axis: .*zero length", None, {"axis": (0, 0, 0)}),
    ("endless axis", "bad option", "axis: .*finite", None, {"axis": (0, -math.inf, 0)}),
    ("flat axis", "bad option", "axis: .*three", None, {"axis": (0, -1)}),
    ("axis in words", "bad option", "axis: .*numbers", None, {"axis": "down"}),
    ("nan root", "bad option", "root: .*finite", None, {"root": (0, math.nan, 0)}),
    ("many roots", "bad option", "root: .*three", None, {"root": [[0, 0, 0]]}),
    ("no root", "bad option", "root: ", None, {"root": None}),
    ("sectors 0", "bad option", r"sectors: .*1\.\.64, got 0", None, {"sectors": 0}),
    ("sectors 65", "bad option", r"sectors: .*1\.\.64, got 65", None, {"sectors": 65}),
    ("sectors 2.5", "bad option", "sectors: .*whole number.*2.5", None, {"sectors": 2.5}),
    ("sectors True", "bad option", "sectors: .*whole number.*True", None, {"sectors": True}),
    ("sectors '3'", "bad option", "sectors: .*whole number.*'3'", None, {"sectors": "3"}),
    ("segments 0", "bad option", r"segments: .*1\.\.64, got 0", None, {"segments": 0}),
    ("segments 1000", "bad option", r"segments: .*1\.\.64, got 1000", None, {"segments": 1000}),
    ("influences", "bad option", "max_influences: .*nan", None, {"max_influences": math.nan}),
    ("influences 2.5", "bad option", "max_influences: .*2.5", None, {"max_influences": 2.5}),
    ("flat", "bad option", r"vertices: .*\(v, 3\), got \(2, 2\)", [[0, -1], [0, -2]], {}),
    ("one row", "bad option", r"vertices: .*\(v, 3\), got \(3,\)", [0, -1, 0], {}),
    ("ragged", "bad option", "vertices: .*numbers", [[0, -1, 0], [0, -2]], {}),
    ("words", "bad option", "vertices: .*numbers", [["a", "b", "c"]], {}),
    ("along", "bad option", "reference: .*across the axis", None, {"reference": (0, 3, 0)}),
    ("no reference", "bad option", "reference: .*across", None, {"reference": (0, 0, 0)}),
    ("flat reference", "bad option", "reference: .*three", None, {"reference": (0, 0)}),
    ("nan reference", "bad option", "reference: .*finite", None, {"reference": (0, math.nan, 1)}),
]


@pytest.mark.parametrize(
    ("kind", "words", "points", "options"), [row[1:] for row in BAD], ids=[row[0] for row in BAD]
)
def test_bad_input_is_refused(kind: str, words: str, points: Any, options: Options):
    """Give what makes no plan: an error that names the thing and what was expected."""
    with pytest.raises(RigError, match=words) as caught:
        plan(two_strands() if points is None else points, **{"root": (0, 0, 0), **options})
    assert caught.value.kind == kind
    assert caught.value.reason == str(caught.value)
    assert "\n" not in caught.value.reason


def test_whole_numbers_of_numpy_count():
    """Take counts as NumPy makes them."""
    counts: Options = {
        "sectors": np.int64(2),
        "segments": np.uint8(2),
        "max_influences": np.int32(3),
    }
    found = plan(two_strands(), root=(0, 10, 0), **counts)
    assert len(found.bones) == 5
