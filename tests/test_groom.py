"""Grooms: roots spread evenly over the scalp, and rest poses that lie on the head."""

import hashlib
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from hairkit.errors import GroomError
from hairkit.groom import Groom, grow
from hairkit.groom.roots import farthest_points, spaced_points
from hairkit.head import Head
from hairkit.paths import assets_dir
from hairkit.shapes import DistanceGrid
from hairkit.style import Style, load_style, style_names

GATHERED = ("bantu knots", "cornrows", "puff")
"""Styles whose hair is pulled over the scalp; test_ties measures them."""

SLIP = 1e-4
"""How much nearer than its thickness a point may be [m]."""


@pytest.fixture(scope="module")
def ball() -> Head:
    """Return a ball."""
    return Head.sphere(0.1)


@pytest.fixture(scope="module")
def head() -> Head:
    """Return the head that comes with hairkit."""
    return Head.load(assets_dir() / "head.glb")


@pytest.fixture(params=["ball", "head"])
def either(request) -> Head:
    """Return the ball, then the head."""
    return request.getfixturevalue(request.param)


def indices(groom: Groom) -> np.ndarray:
    """Return each point's place in its strand, 0 at the root."""
    return np.concatenate([np.arange(count) for count in groom.counts])


def clearance(groom: Groom) -> float:
    """Return the least distance of points beyond the second from head and body [m]."""
    distance, _ = groom.head.signed_distance(groom.points)
    return float(distance[indices(groom) >= 2].min())


def chords(strand: np.ndarray) -> np.ndarray:
    """Return the lengths of a strand's segments [m]."""
    return np.linalg.norm(np.diff(strand, axis=0), axis=1)


@pytest.mark.parametrize("name", style_names())
def test_rest_pose_lies_over_head_and_body(either, name):
    """Grow every style and measure each point that is not the head's own."""
    groom = grow(load_style(name), either, guides=80)
    assert clearance(groom) >= groom.style.thickness - SLIP


@pytest.mark.parametrize("name", [n for n in style_names() if n not in GATHERED])
def test_strands_have_equal_chords_and_the_styles_length(either, name):
    """Measure every segment of every strand; a cut makes it shorter."""
    groom = grow(load_style(name), either, guides=40)
    for strand, share in zip(groom.strands(), groom.lengths, strict=True):
        points = max(round((groom.style.segments + 1) * share), 3) + 1
        assert len(strand) == points
        lengths = chords(strand)
        assert np.ptp(lengths) < 1e-9
        assert lengths.sum() == pytest.approx(groom.style.length * share, rel=1e-9)


def test_first_segment_is_the_heads(either):
    """Check that points 0 and 1 are the root and a segment along the direction."""
    groom = grow(load_style("wavy"), either, guides=50)
    starts = groom.starts
    assert np.array_equal(groom.points[starts], groom.roots)
    second = groom.roots + groom.directions * groom.segments[:, None]
    assert np.allclose(groom.points[starts + 1], second, atol=1e-15)
    assert np.allclose(np.linalg.norm(groom.directions, axis=1), 1.0)
    assert (np.sum(groom.directions * groom.normals, axis=1) > 0.0).all()


@pytest.mark.parametrize("name", ["straight", "long", "short", "wavy", "curly"])
def test_hair_is_combed_off_the_face(head, name):
    """Look for points in front of the face, below the hairline; beside it parted hair may fall."""
    for part in (0.0, 1.0):
        points = grow(load_style(name).replace(part=part), head, guides=200).points - head.center
        before = (points[:, 2] > 0.5 * head.radius) & (points[:, 1] < 0.2 * head.radius)
        face = before & (np.abs(points[:, 0]) < 0.5 * head.radius)
        # In front of the chest, hair may hang towards the middle.
        face &= points[:, 1] > -1.5 * head.radius
        assert not (face if part else before).any()


def test_a_parting_sends_hair_to_both_sides(either):
    """Compare the hair over the forehead: to the sides of the middle, or straight back."""
    for name in ("straight", "long"):
        sides = []
        for part in (0.0, 0.5, 1.0):
            groom = grow(load_style(name).replace(part=part), either, guides=300)
            root = (groom.roots - either.center) / either.radius
            front = (root[:, 2] > 0.3) & (np.abs(root[:, 0]) > 0.05) & (np.abs(root[:, 0]) < 0.4)
            third = groom.points[groom.starts + 4] - groom.roots
            sides.append(np.mean(third[front, 0] * np.sign(root[front, 0])) / either.radius)
        assert sides[0] < sides[1] < sides[2] and sides[2] > 0.2


def test_more_comb_moves_hair_back(either):
    """Compare where the hair of the front half ends up."""
    behind = []
    for comb in (0.2, 0.6, 1.0):
        groom = grow(load_style("straight").replace(comb=comb), either, guides=120)
        front = groom.roots[:, 2] > either.center[2] + 0.3 * either.radius
        tips = groom.points[groom.starts + groom.counts - 1]
        behind.append(tips[front, 2].mean())
    assert behind[0] > behind[1] > behind[2]


def test_more_lift_leaves_the_scalp_steeper(either):
    """Compare the angle to the normal; full lift is along it."""
    steepness = []
    for lift in (0.0, 0.4, 0.8, 1.0):
        groom = grow(load_style("straight").replace(lift=lift), either, guides=60)
        steepness.append(np.sum(groom.normals * groom.directions, axis=1).mean())
    assert steepness == sorted(steepness) and len(set(steepness)) == 4
    assert steepness[-1] == pytest.approx(1.0)


def test_longer_droop_keeps_hair_up_longer(ball):
    """Compare how far spikes hang."""
    heights = []
    for droop in (0.03, 0.1, 0.5):
        style = load_style("gel").replace(droop=droop, length=0.2)
        heights.append(grow(style, ball, guides=60).points[:, 1].mean())
    assert heights == sorted(heights)


def test_free_hair_ends_up_hanging_down(ball):
    """Look at the last segments of long hair beside a ball."""
    ends = np.array([s[-1] - s[-2] for s in grow(load_style("long"), ball, guides=80).strands()])
    assert (ends[:, 1] / np.linalg.norm(ends, axis=1) < -0.95).all()


def test_curls_shorten_the_extent_and_not_the_hair(ball):
    """Compare a curl with the same hair without it."""
    curly = load_style("curly").replace(curl_start=0.05)
    plain = curly.replace(curl=0.0)
    reach = [
        np.linalg.norm(s[-1] - s[len(s) // 2])
        for style in (curly, plain)
        for s in grow(style, ball, guides=1, roots=[[0.0, 0.0, -0.1]]).strands()
    ]
    assert reach[0] < 0.95 * reach[1]


def hanging(style: Style, ball: Head, side: float = 1.0) -> np.ndarray:
    """Return the lower half of a strand that hangs at the side of a ball, shape (n, 3)."""
    (strand,) = grow(style, ball, roots=[[side * 0.1, 0.0, -0.02]]).strands()
    return strand[len(strand) // 2 :]


def test_a_curl_has_its_turns_its_radius_and_one_hand(ball):
    """Measure a spiral that hangs straight down."""
    style = load_style("curly").replace(length=0.6, segments=120, curl_start=0.05, droop=0.02)
    for side in (1.0, -1.0):
        flat = hanging(style, ball, side)[:, [0, 2]]
        around = flat - flat.mean(axis=0)
        angle = np.unwrap(np.arctan2(around[:, 1], around[:, 0]))
        assert np.linalg.norm(around, axis=1).mean() == pytest.approx(style.curl_radius, rel=0.15)
        turns = (angle[-1] - angle[0]) / (2 * np.pi)
        length = style.length * (len(flat) - 1) / (style.segments + 1)
        assert abs(turns) == pytest.approx(style.curl * length, rel=0.1)
        steps = np.diff(angle)
        assert (np.sign(steps) == np.sign(turns)).all(), "a curl flipped"


def test_a_flat_curl_is_a_wave_in_one_plane(ball):
    """Compare a wave's depth and thickness across the way it hangs."""
    style = load_style("wavy").replace(length=0.6, segments=80, curl_start=0.05, droop=0.02)
    flat = hanging(style, ball)[:, [0, 2]]
    width = np.sqrt(np.linalg.eigvalsh(np.cov(flat.T)))
    assert width[0] < 0.15 * width[1]
    assert width[1] * np.sqrt(2) == pytest.approx(style.curl_radius, rel=0.3)


def test_curl_start_leaves_the_root_straight(ball):
    """Compare a curl that begins late with none, near the root."""
    style = load_style("wavy").replace(curl_start=1.0)
    late, plain = (grow(s, ball, guides=30).strands() for s in (style, style.replace(curl=0.0)))
    gap = np.array([np.linalg.norm(a - b, axis=1) for a, b in zip(late, plain, strict=True)])
    assert gap[:, :5].max() < 0.006 < gap[:, -1].mean()


@pytest.mark.parametrize("name", ["straight", "long", "wavy", "curly", "gel"])
def test_a_mirrored_scene_has_the_mirrored_rest_pose(either, name):
    """Mirror roots and solids about x = 0 and compare."""
    style = load_style(name)
    base = grow(style, either, guides=60)
    groom = grow(style, either, roots=base.roots, directions=base.directions)
    mirror = np.array([-1.0, 1.0, 1.0])
    shapes = {}
    for key in ("head_shape", "body_shape"):
        shape = getattr(either, key)
        if isinstance(shape, DistanceGrid):
            x, y, z = shape.origin
            x = -(x + (shape.values.shape[0] - 1) * shape.cell)
            values = np.ascontiguousarray(shape.values[::-1])
            shapes[key] = DistanceGrid(values, (x, y, z), shape.cell)
    other = grow(
        style,
        replace(either, **shapes),
        roots=groom.roots * mirror,
        directions=groom.directions * mirror,
    )
    # The two were rounded differently: a last bit may decide about one push out of the head.
    assert np.quantile(np.abs(other.points * mirror - groom.points), 0.99) < 1e-6


@pytest.mark.parametrize("count", [1, 2, 3, 160])
def test_roots_lie_on_the_scalp_and_neighbours_are_others(either, count):
    """Check roots, normals, neighbours and spacing, tiny grooms too."""
    groom = grow(load_style("short"), either, guides=count)
    assert groom.roots.shape == groom.normals.shape == (count, 3)
    assert np.abs(either.signed_distance(groom.roots, body=False)[0]).max() < 2e-3
    assert (either.scalp_limit(groom.roots - either.center) >= 0.0).all()
    assert groom.neighbours.shape == (count, 3) and groom.neighbours.dtype == np.int32
    assert ((groom.neighbours >= 0) & (groom.neighbours < count)).all()
    if count > 1:
        assert (groom.neighbours != np.arange(count)[:, None]).all()
        nearest = np.linalg.norm(groom.roots[groom.neighbours[:, 0]] - groom.roots, axis=1)
        gaps = np.linalg.norm(groom.roots[:, None] - groom.roots, axis=2) + np.eye(count)
        assert np.allclose(nearest, gaps.min(axis=1))
    assert 0.0 < groom.spacing < 2.5 * either.radius


@pytest.mark.parametrize("spread", [farthest_points, spaced_points])
def test_roots_are_blue_noise(spread):
    """Compare the least distance with that of a perfect lattice, and with chance."""
    random = np.random.Generator(np.random.PCG64(5))
    place = np.concatenate([random.random((9000, 2)), np.zeros((9000, 1))], axis=1)
    chosen = place[spread(place, 300, np.random.Generator(np.random.PCG64(1)))]
    assert len(np.unique(chosen, axis=0)) == 300

    def least(points: np.ndarray) -> float:
        gaps = np.linalg.norm(points[:, None] - points, axis=2) + 9.0 * np.eye(len(points))
        return float(gaps.min()) / np.sqrt(2.0 / (np.sqrt(3.0) * len(points)))

    assert least(chosen) > 0.6
    assert least(place[:300]) < 0.3
    to_all = np.linalg.norm(place[:, None] - chosen, axis=2).min(axis=1)
    assert to_all.max() < 1.4 / np.sqrt(300), "a hole in the spread"


def test_roots_cover_the_scalp_evenly(either):
    """Compare the nearest and the usual distance between neighbours."""
    groom = grow(load_style("short"), either, guides=160)
    nearest = np.linalg.norm(groom.roots[groom.neighbours[:, 0]] - groom.roots, axis=1)
    assert nearest.min() > 0.6 * nearest.mean()
    left = np.count_nonzero(groom.roots[:, 0] < 0.0)
    assert 0.4 * 160 < left < 0.6 * 160


def test_another_seed_is_another_spread(ball):
    """Grow twice with one seed and once with another."""
    style = load_style("curly")
    first, same, other = (grow(style, ball, guides=40, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(first.points, same.points)
    assert np.abs(first.roots - other.roots).max() > 0.01


def test_fresh_interpreters_grow_the_same(either):
    """Grow in two new processes with other hash seeds, and compare bytes."""
    source = "Head.sphere(0.1)" if either.is_sphere else "Head.load(assets_dir() / 'head.glb')"
    code = (
        "import hashlib\n"
        "from hairkit.groom import grow\n"
        "from hairkit.head import Head\n"
        "from hairkit.paths import assets_dir\n"
        "from hairkit.style import load_style\n"
        f"g = grow(load_style('curly'), {source}, guides=50, seed=2)\n"
        "print(hashlib.sha256(g.roots.tobytes() + g.points.tobytes()).hexdigest())\n"
    )
    here = grow(load_style("curly"), either, guides=50, seed=2)
    digests = {hashlib.sha256(here.roots.tobytes() + here.points.tobytes()).hexdigest()}
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
        )
        digests.add(run.stdout.strip())
    assert len(digests) == 1


def test_many_roots_are_spread_too(ball):
    """Grow more guides than are placed one by one."""
    groom = grow(load_style("fur").replace(segments=2), ball, guides=4000)
    assert groom.roots.shape == (4000, 3)
    nearest = np.linalg.norm(groom.roots[groom.neighbours[:, 0]] - groom.roots, axis=1)
    assert nearest.min() > 0.6 * nearest.mean()


def test_own_roots_and_directions_are_taken(either):
    """Give roots and long directions; hair leaves as asked."""
    base = grow(load_style("straight"), either, guides=20)
    wish = base.normals * 7.0
    groom = grow(load_style("straight"), either, guides=99, roots=base.roots, directions=wish)
    assert np.array_equal(groom.roots, base.roots)
    assert np.allclose(groom.directions, base.normals)
    assert clearance(groom) >= groom.style.thickness - SLIP


def test_a_direction_into_the_head_is_lifted_out(either):
    """Point hair straight and slantwise into the head."""
    base = grow(load_style("straight"), either, guides=20)
    into = base.directions - 2.0 * base.normals
    for wish in (-base.normals, into):
        groom = grow(load_style("straight"), either, roots=base.roots, directions=wish)
        assert (np.sum(groom.directions * groom.normals, axis=1) > 0.0).all()
        assert clearance(groom) >= groom.style.thickness - SLIP


def test_own_lengths_keep_the_segments_alike(either):
    """Cut hair to several lengths."""
    style = load_style("straight")
    shares = np.linspace(0.3, 1.5, 24)
    groom = grow(style, either, guides=24, lengths=shares)
    for strand, share in zip(groom.strands(), shares, strict=True):
        assert chords(strand).sum() == pytest.approx(style.length * share, rel=1e-9)
    assert (np.diff(groom.counts) >= 0).all() and groom.counts[0] < groom.counts[-1]
    assert groom.segments == pytest.approx(np.full(24, style.segment_length()), rel=0.1)
    assert groom.points.shape == (groom.counts.sum(), 3)
    assert clearance(groom) >= style.thickness - SLIP


@pytest.mark.parametrize(
    ("word", "arguments"),
    [
        ("guides", {"guides": 0}),
        ("guides", {"guides": -5}),
        ("guides", {"guides": 2.5}),
        ("guides", {"guides": True}),
        ("guides", {"guides": 10**9}),
        ("seed", {"seed": -1}),
        ("lengths", {"guides": 4, "lengths": [1.0, 1.0]}),
        ("guide 1", {"guides": 3, "lengths": [1.0, 0.0, 1.0]}),
        ("guide 2", {"guides": 3, "lengths": [1.0, 1.0, np.nan]}),
        ("lengths", {"guides": 1, "lengths": "long"}),
        ("roots", {"roots": [[0.0, 0.1]]}),
        ("roots", {"roots": np.zeros((0, 3))}),
        ("row 1", {"roots": [[0.0, 0.1, 0.0], [0.0, np.inf, 0.0]]}),
        ("row 0", {"roots": [[0.0, 10.0, 0.0]]}),
        ("directions", {"guides": 3, "directions": np.ones((2, 3))}),
        ("row 2", {"guides": 3, "directions": [[0, 1, 0], [0, 1, 0], [0, 0, 0]]}),
    ],
)
def test_wrong_arguments_are_refused(ball, word, arguments):
    """Try counts, lengths, roots and directions that cannot be."""
    with pytest.raises(GroomError, match=word) as caught:
        grow(load_style("straight"), ball, **arguments)
    assert "expected" in str(caught.value) and "\n" not in str(caught.value)


def test_own_normals_are_checked_and_kept():
    """Give normals of another length, without roots, and one without length."""
    head = Head.sphere()
    roots = np.array([[0.0, head.radius, 0.0], [0.0, 0.0, head.radius]])
    leaning = np.array([[0.0, 2.0, 0.5], [0.0, 0.5, 2.0]])
    groom = grow(load_style("wavy"), head, roots=roots, normals=leaning)
    np.testing.assert_allclose(groom.normals, leaning / np.linalg.norm(leaning[0]), atol=1e-12)
    with pytest.raises(GroomError, match="normals: row 1 has no length"):
        grow(load_style("wavy"), head, roots=roots, normals=leaning * [[1.0], [0.0]])
    with pytest.raises(GroomError, match="normals: expected them with roots"):
        grow(load_style("wavy"), head, normals=leaning)
