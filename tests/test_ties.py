"""Gathered hair: parts, ways over the scalp, puffs, knots, rows, and what follows the head."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hairkit as hk
from hairkit.draw.scatter import scatter
from hairkit.errors import GroomError, StyleError
from hairkit.groom import Groom, grow
from hairkit.groom.ties import nearest_tie, tie_places
from hairkit.head import Head
from hairkit.paths import assets_dir
from hairkit.poses import head_pose
from hairkit.style import Style, Tie, load_style, style_names

CROWN = Tie(at=(0.0, 1.0, -0.5))


@pytest.fixture(scope="module")
def ball() -> Head:
    """Return a ball."""
    return Head.sphere(0.1)


@pytest.fixture(scope="module")
def head() -> Head:
    """Return the head that comes with hairkit."""
    return Head.load(assets_dir() / "head.glb")


@pytest.fixture(params=["ball", "head"])
def either(request: pytest.FixtureRequest) -> Head:
    """Return the ball, then the head."""
    return request.getfixturevalue(request.param)


def laid_part(groom: Groom, row: int) -> np.ndarray:
    """Return the points of a guide that follow the head [m]."""
    return groom.strands()[row][: groom.laid[row]]


def away(head: Head, points: np.ndarray) -> np.ndarray:
    """Return how far points are from the skin of the head itself [m]."""
    return head.signed_distance(points, body=False)[0]


# ---- which root goes where


def test_a_root_goes_to_its_nearest_tie_within_reach(either: Head):
    """Compare with distances measured here; beyond all reach hair is loose."""
    ties = [Tie(at=(1, 0.6, 0), reach=0.09), Tie(at=(-1, 0.6, 0), kind="knot", reach=0.05)]
    groom = grow(load_style("4b"), either, guides=120, ties=ties)
    gap = np.linalg.norm(groom.roots[:, None] - tie_places(either, ties), axis=2)
    for row in range(120):
        near = [index for index in np.argsort(gap[row]) if gap[row, index] <= ties[index].reach]
        assert groom.tied_to[row] == (near[0] if near else -1)
    assert {-1, 0, 1} == set(groom.tied_to.tolist())
    loose = groom.tied_to < 0
    assert (groom.laid[loose] == 2).all() and (groom.laid[~loose] > 2).any()


def test_loose_hair_beside_a_tie_lies_as_without_it(ball: Head):
    """Grow with and without a tie and compare the guides out of its reach."""
    style = load_style("straight")
    plain = grow(style, ball, guides=60)
    tied = grow(style, ball, guides=60, ties=[replace(CROWN, reach=0.06)])
    loose = np.flatnonzero(tied.tied_to < 0)
    assert 5 < len(loose) < 60
    a, b = plain.strands(), tied.strands()
    assert max(np.abs(a[row] - b[row]).max() for row in loose) < 1e-9


def test_tied_to_chooses_in_place_of_the_nearest(ball: Head):
    """Tie every guide to the far side."""
    ties = [Tie(at=(1, 0.5, 0), kind="hang"), Tie(at=(-1, 0.5, 0), kind="hang")]
    near = grow(load_style("long"), ball, guides=30, ties=ties)
    far = grow(load_style("long"), ball, guides=30, ties=ties, tied_to=1 - near.tied_to)
    assert np.array_equal(far.tied_to, 1 - near.tied_to)
    places = tie_places(ball, ties)
    for row in range(30):
        last = laid_part(far, row)[-1]
        assert np.linalg.norm(last - places[far.tied_to[row]]) < 0.03


def test_neighbours_of_gathered_guides_are_in_the_same_tie(ball: Head):
    """Look at whom drawn hairs may lean to."""
    groom = grow(load_style("bantu knots"), ball, guides=100)
    assert (groom.tied_to[groom.neighbours] == groom.tied_to[:, None]).all()


def test_drawn_hair_leaves_the_parts_bare(either: Head):
    """Look where hairs of sections and of braids start: each in its own part, none between."""
    knots = grow(load_style("bantu knots"), either, guides=160)
    hairs = scatter(knots, hairs_per_guide=20)
    own = knots.tied_to[hairs.strand[:, 0]]
    assert np.mean(nearest_tie(either, knots.style.ties, hairs.root) == own) > 0.995
    gap = np.linalg.norm(hairs.root[:, None] - tie_places(either, knots.style.ties), axis=2)
    two = np.sort(gap, axis=1)
    assert np.quantile(two[:, 1] - two[:, 0], 0.01) > 0.0025
    braids = grow(load_style("box braids"), either, guides=120)
    hairs = scatter(braids, hairs_per_guide=20)
    gap = np.linalg.norm(hairs.root[:, None] - braids.roots, axis=2)
    assert np.mean(gap.argmin(axis=1) == hairs.strand[:, 0]) > 0.99


# ---- ways over the scalp


@pytest.mark.parametrize("name", ["bantu knots", "cornrows", "puff"])
def test_the_laid_part_lies_on_the_scalp(either: Head, name: str):
    """Measure every laid point but the root, and the last one of a bunch, off the skin."""
    groom = grow(load_style(name), either, guides=160)
    radius = groom.style.contact_radius()
    for row in range(len(groom.roots)):
        part = laid_part(groom, row)
        off = away(either, part if name == "cornrows" else part[:-1])
        assert off.max() < 1.5 * radius
        assert off[2:].min(initial=1.0) > radius - 2e-4
    assert either.signed_distance(groom.points)[0][_beyond_second(groom)].min() > radius - 2e-4


def _beyond_second(groom: Groom) -> np.ndarray:
    return np.concatenate([np.arange(count) for count in groom.counts]) >= 2


def test_a_way_is_the_shortest_unless_it_goes_over_a_place(ball: Head):
    """Compare a way's length with the great circle's; a place to pass over is passed over."""
    style = load_style("long").replace(thickness=0.001, segments=60)
    root = [[0.08, 0.06, 0.0]]
    tie = Tie(at=(-0.8, 0.2, -0.6), kind="hang")
    plain = laid_part(grow(style, ball, roots=root, ties=[tie]), 0)
    angle = np.arccos(np.dot(root[0], tie_places(ball, [tie])[0]) / 0.01)
    travelled = np.linalg.norm(np.diff(plain, axis=0), axis=1).sum()
    assert travelled == pytest.approx(0.101 * angle, rel=0.06)
    over = laid_part(grow(style, ball, roots=root, ties=[replace(tie, via=(0, 0.6, 0.8))]), 0)
    gap = np.linalg.norm(over / np.linalg.norm(over, axis=1, keepdims=True) - [0, 0.6, 0.8], axis=1)
    assert gap.min() < 0.06


def test_gathered_coils_are_pulled_on_their_way_and_free_after_it(ball: Head):
    """Compare segments of a 4B puff on the scalp and in the ball with their length at rest."""
    groom = grow(load_style("puff"), ball, guides=100)
    slack = 1.0 / (1.0 - groom.style.shrinkage)
    for row in np.flatnonzero(groom.laid > 4):
        step = np.linalg.norm(np.diff(groom.strands()[row], axis=0), axis=1) / groom.segments[row]
        assert 1.3 < step[1] < slack
        assert step[groom.laid[row] + 1 :] == pytest.approx(1.0, abs=0.06)


def test_laid_hair_follows_the_head_and_the_rest_moves():
    """Turn a head with gathered hair hard; in its frame what is laid stays where it was."""
    head = Head.sphere(0.1)
    groom = grow(load_style("cornrows"), head, guides=160)
    world = hk.World()
    hair = world.add_hair(groom)
    pose = np.eye(4)
    for frame in range(24):
        pose = head_pose(yaw=0.08 * frame, position=(0.01 * frame, 0.0, 0.0))
        hair.set_head(pose)
        world.step(1 / 60)
    local = (hair.points() - pose[:3, 3]) @ pose[:3, :3]
    index = np.concatenate([np.arange(count) for count in groom.counts])
    laid = index < np.repeat(groom.laid, groom.counts)
    moved = np.linalg.norm(local - groom.points, axis=1)
    assert moved[laid].max() < 2e-6
    assert moved[~laid].max() > 0.02
    assert world.stats().max_penetration == 0.0
    world.close()


# ---- what it does at the tie


def test_bantu_knots_have_seven_sections_each_wound_into_a_knot(either: Head):
    """Count sections; measure how far each strand winds round its knot, and how wide that is."""
    groom = grow(load_style("bantu knots"), either, guides=200)
    assert set(groom.tied_to.tolist()) == set(range(7))
    assert np.bincount(groom.tied_to).min() >= 10
    turns = []
    for index, tie in enumerate(groom.style.ties):
        middle = tie_places(either, [tie])
        normal = either.signed_distance(middle, body=False)[1][0]
        east = np.cross(normal, [0.3, 0.5, 0.8])
        east /= np.linalg.norm(east)
        for row in np.flatnonzero(groom.tied_to == index):
            offset = groom.strands()[row][groom.laid[row] :] - middle[0]
            x, y = offset @ east, offset @ np.cross(normal, east)
            assert np.hypot(x, y).max() < 0.55 * tie.size
            assert (offset @ normal).min() > 0.0
            wound = np.unwrap(np.arctan2(y, x))
            turns.append(abs(wound[-1] - wound[0]) / (2.0 * np.pi))
    assert min(turns) > 0.75 and np.median(turns) > 1.3
    assert np.allclose(groom.lengths, 1.0)


def test_a_puff_bursts_out_every_way_into_a_ball(either: Head):
    """Look at the tips: about one radius from one middle, all round it but for the scalp's side."""
    groom = grow(load_style("puff"), either, guides=160)
    tie = groom.style.ties[0]
    middle = tie_places(either, [tie])
    normal = either.signed_distance(middle, body=False)[1][0]
    tips = groom.points[groom.starts + groom.counts - 1] - middle[0]
    ball = 0.55 * 0.5 * tie.size * normal
    reach = np.linalg.norm(tips - ball, axis=1)
    assert np.median(reach) == pytest.approx(0.5 * tie.size, rel=0.1)
    assert np.mean(abs(reach - 0.5 * tie.size) < 0.2 * tie.size) > 0.9
    flat = tips - np.outer(tips @ normal, normal)
    east = np.cross(normal, [0.3, 0.5, 0.8])
    around = np.arctan2(flat @ np.cross(normal, east), flat @ east)
    assert np.histogram(around, bins=8, range=(-np.pi, np.pi))[0].min() > 160 / 8 * 0.4
    assert (groom.lengths < 1.0).any()


def test_own_lengths_of_a_puff_are_kept(ball: Head):
    """Give lengths: the ball is then as ragged as they are."""
    groom = grow(load_style("puff"), ball, guides=40, lengths=np.full(40, 0.8))
    assert np.allclose(groom.lengths, 0.8)
    assert len(set(groom.counts.tolist())) == 1


@pytest.mark.parametrize(("guides", "rows"), [(160, 10), (40, 6), (400, 14), (1, 6)])
def test_cornrows_have_a_row_for_sixteen_guides(either: Head, guides: int, rows: int):
    """Count them; each begins at the hairline and ends at the nape."""
    groom = grow(load_style("cornrows"), either, guides=guides)
    assert len(groom.roots) == rows
    assert np.array_equal(groom.tied_to, np.arange(rows))
    inside = either.scalp_limit(groom.roots - either.center)
    assert ((inside > 0.0) & (inside < 0.12)).all()
    assert (groom.roots[:, 2] > 0.0).all()
    last = np.array([laid_part(groom, row)[-1] for row in range(rows)])
    middle = slice(rows // 2 - 1, rows // 2 + 1)
    assert (last[:, 2] < either.center[2] + 0.1 * either.radius).all()
    assert (last[middle, 2] < either.center[2] - 0.5 * either.radius).all()


def test_cornrows_are_even_and_mirrored(either: Head):
    """Compare gaps between rows at the hairline, from ear to ear and at the nape."""
    groom = grow(load_style("cornrows"), either, guides=160)
    ways = [laid_part(groom, row) for row in range(10)]
    over = [np.array(tie.via or ()) for tie in groom.style.ties]
    rows = {
        "hairline": [way[0] for way in ways],
        "ear to ear": [_nearest(either, way, via) for way, via in zip(ways, over, strict=True)],
        "nape": list(tie_places(either, groom.style.ties)),
    }
    for where, row in rows.items():
        place = np.array(row)
        gaps = np.linalg.norm(np.diff(place, axis=0), axis=1)
        assert gaps.max() < 1.35 * gaps.min(), where
        assert np.allclose(place[::-1] * [-1, 1, 1], place, atol=0.006)


def _nearest(head: Head, way: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return the place on a way nearest to a direction from the middle of the head [m]."""
    share = np.linspace(0.0, 1.0, 400)
    index = share * (len(way) - 1)
    fine = [np.interp(index, np.arange(len(way)), way[:, axis]) for axis in range(3)]
    places = np.stack(fine, axis=1)
    offset = places - head.center
    return places[((offset / np.linalg.norm(offset, axis=1, keepdims=True)) @ direction).argmax()]


def test_cornrows_hang_from_the_nape(either: Head):
    """Look at the ends of the middle rows."""
    groom = grow(load_style("cornrows"), either, guides=160)
    for row in (4, 5):
        end = groom.strands()[row][-3:]
        assert (end[-1] - end[0])[1] < -0.8 * np.linalg.norm(end[-1] - end[0])


# ---- cuts and growth


def test_a_high_top_grows_on_top_straight_up_and_is_cut_level(either: Head):
    """Measure where it grows, the way it leaves and how level its tips are."""
    groom = grow(load_style("high-top fade"), either, guides=160)
    up = groom.roots - either.center
    angle = np.arccos(up[:, 1] / np.linalg.norm(up, axis=1))
    assert angle.max() <= groom.style.area + 1e-9
    tips = groom.points[groom.starts + groom.counts - 1]
    steep = groom.directions[:, 1] > 0.97
    assert steep.mean() > 0.9
    assert np.ptp(tips[steep, 1]) < 0.006
    assert np.ptp(groom.roots[steep, 1]) > 0.02


def test_an_afro_stands_out_everywhere_longer_on_top(either: Head):
    """Compare tips with roots: all farther out; the top's hair is longest."""
    groom = grow(load_style("afro"), either, guides=160)
    tips = groom.points[groom.starts + groom.counts - 1]
    assert (away(either, tips) > 0.6 * groom.lengths * groom.style.length).all()
    up = (groom.roots - either.center)[:, 1] / either.radius
    assert groom.lengths[up > 0.8].min() > groom.lengths[up < 0.0].max()
    assert (tips - groom.roots)[:, 1].mean() > 0.0
    assert groom.directions[:, 2].mean() < groom.normals[:, 2].mean()


@pytest.mark.parametrize("key", ["upward", "backward"])
def test_brushed_hair_still_leaves_the_scalp(ball: Head, key: str):
    """Turn hair all the way: near the nape or the forehead that way would lead into the head."""
    way = np.array([0.0, 1.0, 0.0]) if key == "upward" else np.array([0.0, 0.0, -1.0])
    groom = grow(load_style("afro").replace(**{"upward": 0, "backward": 0, key: 1}), ball)
    assert (np.sum(groom.directions * groom.normals, axis=1) > 0.2).all()
    free = groom.normals @ way > 0.4
    assert np.allclose(groom.directions[free], way)


# ---- one style, however it is named or stored


@pytest.mark.parametrize(
    "name", ["box braids", "Box Braids", "BOX-BRAIDS", "box_braids", "boxbraids", " box  braids "]
)
def test_names_tolerate_case_spaces_and_dashes(name: str):
    """Load one hairstyle under many spellings."""
    assert load_style(name).name == "box braids"


@pytest.mark.parametrize("name", ["3a", "cornrows"])
def test_a_style_can_keep_the_callers_colours(name: str):
    """Take a type and a hairstyle with the colours of another style."""
    mine = load_style("wavy").replace(root_color=(0.4, 0.1, 0.1), tip_color=(0.9, 0.2, 0.1))
    style = load_style(name, colors=mine)
    assert (style.root_color, style.tip_color) == (mine.root_color, mine.tip_color)
    plain = load_style(name)
    assert style.replace(root_color=plain.root_color, tip_color=plain.tip_color) == plain


@pytest.mark.parametrize("name", style_names())
def test_a_style_file_keeps_everything(name: str):
    """Write a style out and read it again, ties included."""
    style = load_style(name)
    assert Style.from_toml(style.to_toml()) == style


def test_a_groom_with_ties_can_be_grown_again(ball: Head, tmp_path: Any):
    """Save gathered hair, read it, grow it: the same points, ties chosen or found."""
    style = load_style("4b").replace(ties=[CROWN, Tie(at=(1, 0, 0), kind="knot", reach=0.06)])
    found = grow(style, ball, guides=40)
    chosen = grow(style, ball, guides=40, tied_to=np.arange(40) % 3 - 1)
    for groom in (found, chosen, grow(load_style("cornrows"), ball, guides=100)):
        strands = hk.StrandSet.of(groom, points=[groom.points], times=[0.0], head_pose=[np.eye(4)])
        hk.save_strands(strands, tmp_path / "hair.npz")
        again = hk.load_strands(tmp_path / "hair.npz").regrow()
        assert np.array_equal(again.tied_to, groom.tied_to)
        assert np.array_equal(again.laid, groom.laid)
        assert np.abs(again.points - groom.points).max() < 1e-9


# ---- what is refused


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["tie 0", "puff", "0.01 m"], {"ties": [Tie(at=(0, -1, 0), reach=0.01)]}),
        (["tie 1", "no root"], {"ties": [CROWN, CROWN]}),
        (["tied_to", "(20,)"], {"ties": [CROWN], "tied_to": [0, 0]}),
        (["tied_to", "guide 3", "tie 1"], {"ties": [CROWN], "tied_to": [0, 0, 0, 1] + 16 * [0]}),
        (["tied_to", "guide 0", "0 ties"], {"tied_to": 20 * [0]}),
        (["tied_to", "whole numbers"], {"ties": [CROWN], "tied_to": 20 * [0.5]}),
        (["lengths", "(20,)"], {"ties": [CROWN], "lengths": [1.0, 1.0]}),
    ],
)
def test_wrong_ties_are_refused(ball: Head, words: list[str], arguments: dict[str, Any]):
    """Give ties without roots, and rows that do not fit."""
    with pytest.raises(GroomError) as caught:
        grow(load_style("straight"), ball, guides=20, **arguments)
    assert all(word in str(caught.value) for word in words) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["[plait] plait = 4", "0 to 3"], "[plait]\nplait = 4"),
        (["plait_radius = -0.1", "0.0005 to 0.05 [m]"], "[plait]\nplait_radius = -0.1"),
        (["tie 0", "kind = 'bun'", "puff, knot or hang"], '[[tie]]\nat=[0,1,0]\nkind="bun"'),
        (["tie 0", "reach = -1"], "[[tie]]\nat=[0,1,0]\nreach=-1"),
        (["tie 1", "at = [0, 0, 0]"], "[[tie]]\nat=[0,1,0]\n[[tie]]\nat=[0,0,0]"),
        (["tie 0", "expected a key at"], "[[tie]]\nsize=0.1"),
        (["tie 0", "sise", "unknown key", "'size'"], "[[tie]]\nat=[0,1,0]\nsise=0.1"),
        (["tie = 3", "[[tie]]"], "tie = 3"),
        (["tie", "[[tie]]"], "[tie]\nat=[0,1,0]"),
        (["via = [0, 1]", "three numbers"], "[[tie]]\nat=[0,1,0]\nvia=[0,1]"),
    ],
)
def test_wrong_ties_and_plaits_in_a_file_are_refused(words: list[str], text: str):
    """Read style files with mistakes; each error is one line that names the key and value."""
    with pytest.raises(StyleError) as caught:
        Style.from_toml(text, "mine.toml")
    message = str(caught.value)
    assert message.startswith("mine.toml: ") and "\n" not in message
    assert all(word in message for word in words), message
