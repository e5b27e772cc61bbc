"""Strands that were given become a groom: in place at rest, moved with their guides, root first."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trimesh
from scenes import Points, ball_head, play, pose, settle, turning, unit

import hairkit as hk
from hairkit import cli
from hairkit.errors import FileWarning, FitError, GroomError
from hairkit.groom import Groom
from hairkit.groom.given import groom_from_lines
from hairkit.io.strand_groom import NATURAL
from hairkit.io.strand_set import StrandSet
from hairkit.sim.world import World

MakeWorld = Callable[..., World]
UP = np.array([0.0, 1.0, 0.0])


def lock(root: Points, count: int, length: float, bow: float) -> Points:
    """Return a strand that leaves a ball along its normal and bows over, uneven in its points."""
    out = unit(root)
    side = unit(np.cross(out, [0.2, 0.1, 1.0]))
    t = np.linspace(0.0, 1.0, count)[:, None] ** 1.4
    line = root + length * (t * out + bow * t**2 * side - 0.4 * t**2 * UP)
    return line


def given(count: int = 90, seed: int = 0, head: hk.Head | None = None) -> list[Points]:
    """Return strands of 5 to 24 points all over the top of a ball."""
    rng = np.random.default_rng(seed)
    radius = (ball_head() if head is None else head).radius
    roots = radius * unit(rng.normal(size=(count, 3)) + 1.5 * UP)
    return [
        lock(root, int(rng.integers(5, 25)), rng.uniform(0.08, 0.2), rng.uniform(-0.5, 0.5))
        for root in roots
    ]


def as_set(strands: list[Points], **fields: object) -> StrandSet:
    """Return strands as a set of one frame."""
    counts = np.array([len(line) for line in strands])
    return StrandSet(points=np.concatenate(strands)[None], counts=counts, **fields)  # pyright: ignore[reportArgumentType]


def made(strands: list[Points], guides: int | None = 12, **options: object) -> Groom:
    """Return the groom of strands on a ball."""
    return hk.groom_from_strands(as_set(strands), ball_head(), guides=guides, **options)  # pyright: ignore[reportArgumentType]


def off_line(points: Points, line: Points) -> float:
    """Return how far points are from a line of straight pieces, at most [m]."""
    a, way = line[:-1], np.diff(line, axis=0)
    share = np.einsum("nij,ij->ni", points[:, None] - a, way) / np.sum(way * way, axis=1)
    nearest = a + np.clip(share, 0.0, 1.0)[..., None] * way
    return float(np.linalg.norm(points[:, None] - nearest, axis=2).min(axis=1).max())


def test_drawn_hairs_lie_on_their_own_strands_at_rest(world: MakeWorld):
    """Draw a groom before any step: each hair on its strand, with every one of its points."""
    strands = given()
    drawn = world().add_hair(made(strands)).drawn_points()
    assert len(drawn) == len(strands)
    for hair, line in zip(drawn, strands, strict=True):
        assert off_line(hair, line) < 1e-5
        assert off_line(line, hair) < 1e-5


def test_drawn_hairs_turn_rigidly_with_all_that_turns(world: MakeWorld):
    """Turn and move head and guides as one body; drawn hairs must go along, not by a bit else."""
    groom = made(given())
    turned = pose(turning([0.3, 1.0, -0.4], 2.1), (0.4, -0.2, 7.0))
    drawn = world().add_hair(groom, pose=turned).drawn_points()
    assert groom.hairs is not None
    there = groom.hairs.points @ turned[:3, :3].T + turned[:3, 3]
    assert np.abs(drawn - there).max() < 1e-5


def test_drawn_hairs_keep_near_their_guides_in_motion(world: MakeWorld):
    """Shake a groom; hairs that are guides too must stay on them, all must keep their length."""
    strands = given()
    groom = made(strands, 30)
    one = world()
    hair = one.add_hair(groom)
    play(one, hair, frames=45)
    turn = hair.head_pose
    drawn = hair.drawn_points()
    guides = np.split(hair.points(), groom.starts[1:])
    moved = np.linalg.norm(np.concatenate(guides) - groom.points, axis=1).max()
    assert moved > 0.03
    assert groom.hairs is not None
    alone = np.flatnonzero(groom.hairs.weights[:, 0] > 0.999999)
    assert len(alone) == 30
    for row in alone:
        guide = guides[groom.hairs.guides[row, 0]]
        assert np.linalg.norm(drawn[row, -1] - guide[-1]) < 1e-3
    length = np.linalg.norm(np.diff(drawn, axis=1), axis=2).sum(axis=1)
    strain = np.abs(length / groom.hairs.lengths - 1.0)
    assert np.median(strain) < 0.02
    assert np.percentile(strain, 95.0) < 0.15
    distance, _ = groom.head.signed_distance((drawn.reshape(-1, 3) - turn[:3, 3]) @ turn[:3, :3])
    assert distance.min() > -1e-3


def test_contact_leaves_the_rest_pose_alone(world: MakeWorld):
    """Let rigid hair rest that lies nearer to the head than its thickness: no point may move."""
    rng = np.random.default_rng(2)
    strands = []
    for _ in range(8):
        start, way = unit(rng.normal(size=3) + 2.0 * UP), rng.normal(size=3)
        way = unit(way - start * (way @ start))
        angle = np.linspace(0.0, 1.0, 12)[:, None]
        strands.append(0.1008 * (np.cos(angle) * start + np.sin(angle) * way))
    groom = made(strands, None, style=NATURAL.replace(hold=0.97))
    assert groom.style.contact_radius() > 0.002
    one = world()
    one.gravity = (0.0, 0.0, 0.0)
    hair = one.add_hair(groom)
    settle(one, 0.5)
    assert np.abs(hair.points() - groom.points).max() < 2e-4


def test_guides_are_as_many_as_asked_and_strands_themselves():
    """Choose guides among dense strands; each must lie on one of them, with its length."""
    strands = given(200)
    lengths = np.array([np.linalg.norm(np.diff(s, axis=0), axis=1).sum() for s in strands])
    for wanted in (1, 2, 17, 199, 200, 500):
        groom = made(strands, wanted, segments=20)
        assert len(groom.counts) == min(wanted, 200)
        assert (groom.hairs is None) == (wanted >= 200)
    groom = made(strands, 17, segments=20)
    roots = np.array([line[0] for line in strands])
    for guide, length in zip(groom.strands(), groom.lengths * groom.style.length, strict=True):
        row = int(np.linalg.norm(roots - guide[0], axis=1).argmin())
        assert off_line(guide, strands[row]) < 1e-7
        assert np.linalg.norm(guide[-1] - strands[row][-1]) < 1e-7
        assert abs(length / lengths[row] - 1.0) < 0.01


def test_guides_are_evenly_spaced_along_their_strands():
    """Walk along a straight strand of uneven points: the groom's segments must be equal."""
    line = (
        np.array([0.0, 0.1, 0.0]) + np.array([0.0, 0.01, 0.0]) * np.array([[0, 1, 1, 2, 9, 16]]).T
    )
    guide = made([line], None, segments=15).strands()[0]
    step = np.linalg.norm(np.diff(guide, axis=0), axis=1)
    np.testing.assert_allclose(step, 0.16 / 16, rtol=1e-6)


@pytest.mark.parametrize("fold", [0.5, 2 / 3, 0.8])
def test_strands_that_fold_onto_themselves_are_guides_all_the_same(fold: float):
    """Give strands that go out and straight back, of many lengths; no two points may coincide."""
    strands = []
    for length in np.linspace(0.02, 0.2, 40):
        out = unit(UP + length * np.array([1.0, 0.0, 0.0]))
        ways = np.array([0.0, fold, 2.0 * fold - 1.0])[:, None]
        strands.append((ball_head().radius + length * ways) * out)
    groom = made(strands)
    step = np.linalg.norm(np.diff(groom.points, axis=0), axis=1)
    inner = np.delete(step, groom.starts[1:] - 1)
    assert inner.min() > 1e-4


def test_guides_stand_for_the_two_halves_of_a_parting():
    """Comb half of the strands each way: no hair may follow a guide of the other half much."""
    rng = np.random.default_rng(5)
    strands = []
    for row in range(120):
        root = 0.1 * unit(np.array([rng.uniform(-0.05, 0.05), 1.0, rng.uniform(-0.8, 0.8)]))
        strands.append(lock(root, 12, 0.15, 0.0))
        strands[-1][:, 0] += (1 if row % 2 else -1) * np.linspace(0.0, 0.15, 12)
    groom = made(strands, 10)
    assert groom.hairs is not None
    tips = np.array([guide[-1, 0] > 0.0 for guide in groom.strands()])
    mine = np.arange(120)[:, None] % 2 == tips[groom.hairs.guides]
    share = (groom.hairs.weights * mine).sum(axis=1)
    assert share.min() > 0.9


def test_the_same_strands_make_the_same_groom():
    """Make a groom twice, and with another seed."""
    strands = given(300)
    a, b, c = made(strands, 20), made(strands, 20), made(strands, 20, seed=1)
    assert a.hairs is not None
    assert b.hairs is not None
    np.testing.assert_array_equal(a.points, b.points)
    np.testing.assert_array_equal(a.hairs.guides, b.hairs.guides)
    np.testing.assert_array_equal(a.hairs.weights, b.hairs.weights)
    assert len(c.points) != len(a.points) or np.abs(c.points - a.points).max() > 1e-3


def test_marked_guides_are_guides_and_not_drawn():
    """Mark some strands as guides, as grooms of film tools do."""
    strands = given(40)
    marked = np.arange(40) % 8 == 0
    groom = hk.groom_from_strands(as_set(strands, guides=marked), ball_head())
    np.testing.assert_allclose(
        groom.roots, [s[0] for s in np.array(strands, object)[marked]], atol=1e-6
    )
    assert groom.hairs is not None
    assert len(groom.hairs.points) == 35


def test_few_strands_are_guides_and_the_style_grows_hairs_round_them(world: MakeWorld):
    """Take few strands without saying how many guides: a head must still be covered."""
    groom = made(given(30), None)
    assert (len(groom.roots), groom.hairs) == (30, None)
    drawn = world().add_hair(groom).drawn_points()
    assert len(drawn) == 30 * groom.style.hairs_per_guide


def test_widths_become_the_drawn_width():
    """Give strands of 0.1 mm."""
    strands = given(8)
    total = sum(len(line) for line in strands)
    groom = hk.groom_from_strands(as_set(strands, widths=np.full(total, 1e-4)), ball_head())
    assert groom.style.hair_width == pytest.approx(1e-4)


def test_reversed_strands_are_turned_round():
    """Reverse one strand of many, and then all of them."""
    strands = given(20)
    one = [line[::-1] if row == 7 else line for row, line in enumerate(strands)]
    with pytest.warns(FileWarning, match=r"1 of 20 strands \(7\) from tip to root, turned round"):
        groom = made(one, None)
    np.testing.assert_allclose(groom.roots, [line[0] for line in strands], atol=1e-6)
    with pytest.warns(FileWarning, match="all 20 strands from tip to root"):
        groom = made([line[::-1] for line in strands], None)
    np.testing.assert_allclose(groom.roots, [line[0] for line in strands], atol=1e-6)


def test_strands_off_the_head_are_left_out_by_number():
    """Put two strands elsewhere, and let one have next to no length."""
    strands = given(20)
    strands[3], strands[11] = strands[3] + 1.0, strands[11] - 1.0
    strands[5] = strands[5][:1] + 1e-5 * np.arange(4)[:, None]
    with pytest.warns(FileWarning) as said:
        groom = made(strands, None)
    lines = sorted(str(warning.message) for warning in said)
    assert "1 of 20 strands (5) left out, shorter than 1 mm" in lines[0]
    assert "2 of 20 strands (3, 11) left out, rooted more than 2 cm from sphere" in lines[1]
    assert len(groom.roots) == 17


def test_a_set_for_another_head_is_refused_with_a_hint():
    """Bring strands in centimetres, lying down, and from elsewhere."""
    head = replace(ball_head(), file_from_head=pose(None, 1.5 * UP))
    stand = [line + 1.5 * UP for line in given(30)]
    assert len(hk.groom_from_strands(as_set(stand), head).roots) == 30
    assert len(hk.groom_from_strands(as_set(given(30)), head).roots) == 30
    with pytest.raises(GroomError, match=r"hair\.data: .*they fit in units of cm with y up"):
        hk.groom_from_strands(as_set([100.0 * s for s in stand]), head, source="hair.data")
    lying = [s[:, [0, 2, 1]] * [1.0, -1.0, 1.0] for s in stand]
    with pytest.raises(GroomError, match="they fit in units of m with z up"):
        hk.groom_from_strands(as_set(lying), head)
    with pytest.raises(GroomError, match=r"half of the roots are .* expected strands made for"):
        hk.groom_from_strands(as_set([s + 0.3 for s in stand]), head)


def test_strands_beside_a_mesh_stay_beside_it(tmp_path: Path):
    """Load a head that looks along -X out of a file with Z up; strands of that file must fit."""
    mesh = hk.Head.load(hk.paths.assets_dir() / "head.glb")
    inward = np.linalg.inv(np.array([[0.0, -1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 0.0, 0.0]]))
    to_file = np.eye(4)
    to_file[:3, :3], to_file[:3, 3] = 100.0 * inward, (3.0, 8.0, 150.0)
    head = replace(mesh, file_from_head=to_file)
    places = np.random.default_rng(0).normal(size=(9, 3))
    in_file = places @ to_file[:3, :3].T + to_file[:3, 3]
    # Readers make metres and +Y up of it and know nothing of faces: x, z, -y.
    read = 0.01 * in_file[:, [0, 2, 1]] * [1.0, 1.0, -1.0]
    np.testing.assert_allclose(head.beside_file(read), places, atol=1e-12)
    np.testing.assert_allclose(head.to_beside_file(places), read, atol=1e-12)


def test_hair_of_a_mesh_comes_out_where_the_mesh_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Simulate and fit the lines of a .glb that lie on a head mesh 1.5 m above its file's origin.

    The head is in centimetres with Z up; the strands that come out begin where those were.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAIRKIT_BACKEND", "cpu")
    there = np.array([0.2, 1.5, -0.1])
    ball = trimesh.creation.icosphere(subdivisions=3, radius=100 * ball_head().radius)
    ball.apply_translation(100 * there[[0, 2, 1]] * [1.0, -1.0, 1.0])
    ball.export("head.obj")
    strands = [line + there for line in given(12)]
    hk.save_strands(as_set(strands), "in.glb")
    of_head = "--head head.obj --units cm --up z"
    line = f"simulate in.glb {of_head} --motion still --seconds 0.02"
    assert cli.run([*shlex.split(line), "--out", "out.ply"]) == 0
    assert "12 guides" in capsys.readouterr().out
    found = hk.load_strands("out.ply")
    roots = np.array([strand[0] for strand in strands])
    np.testing.assert_allclose(found.points[0][found.starts], roots, atol=1e-4)
    asked: list[Points] = []

    def stop(goal: Points, groom: Groom, **_: object) -> None:
        asked.extend((goal[0], groom.roots))
        raise FitError("enough")

    monkeypatch.setattr("hairkit.fit_file.fit", stop)
    hk.save_strands(as_set(strands), "in.ply", units="mm", up="z")
    line = f"fit in.ply {of_head} --strand-units mm --strand-up z -o a.toml"
    assert cli.run(shlex.split(line)) == 2
    assert capsys.readouterr().err == "hairkit: enough\n"
    head = hk.Head.load("head.obj", units="cm", up="z")
    in_head = head.beside_file(np.concatenate(strands))
    np.testing.assert_allclose(asked[0], in_head, atol=1e-6)
    np.testing.assert_allclose(asked[1], head.beside_file(roots), atol=1e-3)


def test_impossible_requests_name_what_was_expected():
    """Ask for no guide, an unknown style, no strand; fit what cannot be grown."""
    strands = given(4)
    with pytest.raises(GroomError, match="guides: 0, expected at least 1"):
        made(strands, 0)
    with pytest.raises(hk.HairkitError, match="unknown style 'curlyy'"):
        made(strands, style="curlyy")
    with pytest.raises(GroomError, match="holds no strands"):
        hk.groom_from_strands(
            StrandSet(points=np.zeros((1, 0, 3)), counts=np.zeros(0, int)), ball_head()
        )
    with pytest.raises(GroomError, match="strand 1 has no length"):
        lines = np.concatenate([strands[0], np.ones((2, 3))])
        counts = np.array([len(strands[0]), 2])
        groom_from_lines(lines, counts, ball_head(), NATURAL, guides=1)
    with pytest.raises(FitError, match="its strands were given"):
        groom = made(strands)
        hk.fit(groom.points[None], groom, scenes=[hk.drape()])


def test_recorded_strands_are_simulated_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    backend: str,
):
    """Simulate strands of a file to guides and to hairs; these must begin where they were."""
    monkeypatch.chdir(tmp_path)
    strands = given(60)
    hk.save_strands(as_set(strands), "in.npz")
    line = "simulate in.npz --head sphere --guides 8 --motion nod --seconds 0.2 --rate 30"
    line += f" --backend {backend}"
    assert cli.run([*shlex.split(line), "--out", "guides.npz"]) == 0
    assert "8 guides, 7 frames" in capsys.readouterr().out
    assert cli.run([*shlex.split(line), "--out", "hairs.npz", "--what", "hairs"]) == 0
    guides, hairs = hk.load_strands("guides.npz"), hk.load_strands("hairs.npz")
    assert (len(guides.counts), len(hairs.counts)) == (8, 60)
    assert guides.groom is None
    for taken in (guides, hairs):
        assert taken.points.shape[0] == 7
        assert np.abs(taken.points[-1] - taken.points[0]).max() > 1e-3
        np.testing.assert_allclose(taken.times, np.arange(7) / 30)
    assert hairs.widths is not None
    again = hk.groom_from_strands(hairs, ball_head(), guides=8)
    assert again.hairs is not None
    for hair, own in zip(again.hairs.points.astype(float), strands, strict=True):
        assert off_line(hair, own) < 1e-5
    wrong = [*shlex.split(line), "--out", "x.npz", "--what", "curls"]
    assert cli.run(wrong) == 2
    assert "--what: 'curls', expected guides or hairs" in capsys.readouterr().err


@pytest.mark.render
def test_pictures_tell_which_given_hair_a_pixel_shows(world: MakeWorld):
    """Draw a groom of given hairs and compare whose pixels are where with where the hairs are."""
    strands = given(80)
    one = world()
    hair = one.add_hair(made(strands, style=NATURAL.replace(hair_width=0.002)))
    camera = hk.Camera.orbit(hair.groom.head, yaw=0.4, pitch=0.2)
    layers = one.drawing().layers(camera, width=160, height=120)
    shown = np.unique(layers.hair[layers.hair >= 0])
    assert len(shown) > 30
    right, _, ahead = camera.basis()
    assert hair.groom.hairs is not None
    for row in shown[:10]:
        y, x = np.nonzero(layers.hair == row)
        place = strands[row] - np.asarray(camera.position)
        scale = 60.0 / np.tan(0.5 * camera.fov)
        across = 80.0 + scale * (place @ right) / (place @ ahead)
        assert across.min() - 3.0 < x.mean() < across.max() + 3.0
        assert set(layers.guide[y, x]) == {hair.groom.hairs.guides[row, 0]}
