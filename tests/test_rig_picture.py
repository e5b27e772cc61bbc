"""Pictures of plans: chains' colours where their vertices are, bones where they stand."""

import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hairkit.errors import RigError
from hairkit.rigging import Bone, Plan, Weights, plan
from hairkit.rigging.faces import front_faces, shares_of_corners
from hairkit.rigging.picture import GREY, PAPER, caption, chain_colour, plan_picture

Points = NDArray[np.float64]
Faces = NDArray[np.int64]
Picture = NDArray[np.uint8]

WIDE, HIGH = 900, 480

ALL_CONES = np.eye(3)
# What those see who lack one kind of cone, as linear light (Machado and others, 2009).
NO_RED = np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]])
NO_GREEN = np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]])
NO_BLUE = np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]])


def tube(around: int = 48, down: int = 30, squash: float = 1.0) -> tuple[Points, Faces]:
    """Return a cup of hair, open below: a ring of vertices for each depth."""
    turn, depth = np.meshgrid(
        (np.arange(around) + 0.5) * 2.0 * np.pi / around, np.linspace(0.1, 2.0, down)
    )
    wide = np.sqrt(np.minimum(depth, 1.0))
    points = np.stack([wide * np.sin(turn), -depth, squash * wide * np.cos(turn)], axis=-1)
    row, column = np.divmod(np.arange(around * (down - 1)), around)
    corner = [(row + r) * around + (column + c) % around for r, c in ((0, 0), (1, 0), (1, 1))]
    last = row * around + (column + 1) % around
    faces = np.concatenate(
        [np.stack(corner, axis=1), np.stack([corner[0], corner[2], last], axis=1)]
    )
    return points.reshape(-1, 3), faces


def hue(picture: Picture) -> Points:
    """Return colours without their lightness: shares of linear light."""
    light = (picture.astype(np.float64) / 255.0) ** 2.2 + 1e-3
    return light / light.sum(axis=-1, keepdims=True)


def like(picture: Picture, colour: tuple[int, int, int]) -> NDArray[np.bool_]:
    """Tell where a colour is, shaded or not."""
    wanted = hue(np.array(colour, dtype=np.uint8))
    near = np.abs(hue(picture) - wanted).max(axis=-1) < 0.04
    return near & (np.abs(picture.astype(int) - PAPER).max(axis=-1) > 30)


def panels(picture: Picture) -> list[Picture]:
    """Return front, side and back, without words above and below."""
    strip = round(picture.shape[0] * 0.07)
    wide = picture.shape[1] // 3
    return [picture[strip:-strip, n * wide : (n + 1) * wide] for n in range(3)]


def middle_of(where: NDArray[np.bool_]) -> tuple[float, float]:
    """Return how far right and down something is, as shares of its panel."""
    rows, columns = np.nonzero(where)
    assert len(rows) > 200
    return float(columns.mean()) / where.shape[1], float(rows.mean()) / where.shape[0]


@pytest.fixture(scope="module")
def cup() -> tuple[Plan, Points, Faces, Picture]:
    """Draw a cup of hair in four chains once for all tests."""
    points, faces = tube()
    found = plan(points, root=(0, 0, 0), sectors=4)
    return found, points, faces, plan_picture(found, points, faces, width=WIDE, height=HIGH)


@pytest.mark.parametrize(("width", "height"), [(1600, 900), (700, 301), (240, 120), (240, 1500)])
def test_picture_has_the_size_asked_for(
    cup: tuple[Plan, Points, Faces, Picture], width: int, height: int
):
    """Draw large, odd and small pictures."""
    found, points, faces, _ = cup
    for drawn in (faces, []):
        picture = plan_picture(found, points, drawn, width=width, height=height)
        assert picture.shape == (height, width, 3)
        assert picture.dtype == np.uint8


@pytest.mark.render
def test_each_chain_is_drawn_where_its_vertices_are(cup: tuple[Plan, Points, Faces, Picture]):
    """Find colours from the front, the wearer's left and the back, and where they are hidden."""
    found, points, _, picture = cup
    front, side, back = panels(picture)
    # Sector 1 is in front on the left, and so on: what is seen, and on which half of the view.
    seen = {0: (front, True), 1: (back, False), 2: (back, True), 3: (front, False)}
    for number, (view, right) in seen.items():
        across, _ = middle_of(like(view, chain_colour(number)))
        assert (across > 0.55) if right else (across < 0.45)
    across_front, _ = middle_of(like(side, chain_colour(0)))
    across_back, _ = middle_of(like(side, chain_colour(1)))
    assert across_front < 0.45 < 0.55 < across_back
    # The far side shows no more than its joints.
    assert like(side, chain_colour(3)).sum() < 0.02 * like(side, chain_colour(0)).sum()
    assert set(found.chain_of_vertices()) == {0, 1, 2, 3}
    assert len(points)


@pytest.mark.render
def test_what_the_root_moves_is_grey():
    """Weigh everything to the root: grey, and no chain's colour but at its joints."""
    points, faces = tube()
    found = plan(points, root=(0, 0, 0), sectors=2)
    alone = Weights(np.zeros((len(points), 1), np.int32), np.ones((len(points), 1)))
    bound = Plan(bones=found.bones, weights=alone, chains=found.chains, strategy="sectors")
    front = panels(plan_picture(bound, points, faces, width=WIDE, height=HIGH))[0]
    assert like(front, GREY).mean() > 0.2
    assert like(front, chain_colour(0)).mean() < 0.01


@pytest.mark.render
def test_weights_mix_colours():
    """Weigh each vertex half to either chain: the mixture is there, neither of its colours."""
    points, faces = tube()
    found = plan(points, root=(0, 0, 0), sectors=2)
    rows = np.tile(np.array([1, 4], np.int32), (len(points), 1))
    both = Plan(
        bones=found.bones,
        weights=Weights(rows, np.full(rows.shape, 0.5)),
        chains=found.chains,
        strategy="sectors",
    )
    front = panels(plan_picture(both, points, faces, width=WIDE, height=HIGH))[0]
    light = [(np.array(chain_colour(number)) / 255.0) ** 2.2 for number in (0, 1)]
    mixture = ((0.5 * (light[0] + light[1])) ** (1 / 2.2) * 255.0).round().astype(int)
    assert like(front, (int(mixture[0]), int(mixture[1]), int(mixture[2]))).mean() > 0.15
    assert like(front, chain_colour(0)).mean() < 0.02


@pytest.mark.render
def test_shape_is_shaded(cup: tuple[Plan, Points, Faces, Picture]):
    """Compare light on one chain's colour: what turns away is darker."""
    front = panels(cup[3])[0]
    own = front[like(front, chain_colour(0))].astype(float).max(axis=-1)
    assert np.percentile(own, 90) > 1.25 * np.percentile(own, 10)


@pytest.mark.render
def test_joints_stand_where_bones_are():
    """Draw one dot of mesh and bones beside it: find a bone's colour where it must be."""
    points = np.array([[0.0, -1.0, 0.3], [1.0, -2.0, 0.3], [-1.0, -2.0, 0.3]])
    bones = (
        Bone(name="HairRoot", position=(0.0, 0.0, 0.0), parent=-1),
        Bone(name="Hair_S1_B1", position=(1.0, -0.5, 0.5), parent=0),
        Bone(name="Hair_S1_B2", position=(-1.0, -1.5, 0.5), parent=1),
    )
    alone = Weights(np.zeros((3, 1), np.int32), np.ones((3, 1)))
    found = Plan(bones=bones, weights=alone, chains=((1, 2),), strategy="sectors")
    picture = plan_picture(found, points, np.zeros((0, 3), int), width=WIDE, height=HIGH)
    front, _, back = panels(picture)
    for view, side in ((front, 1.0), (back, -1.0)):
        rows, columns = np.nonzero(like(view, chain_colour(0)))
        high, wide = view.shape[:2]
        # The mesh and its bones, 2 wide and 2 high, are fit into the middle of the view.
        scale = min(0.84 * wide / 2.0, 0.92 * high / 2.0)
        for x, y in ((1.0, 0.5), (-1.0, -0.5)):
            place = 0.5 * wide + side * x * scale, 0.5 * high - y * scale
            near = np.hypot(columns + 0.5 - place[0], rows + 0.5 - place[1])
            assert (near < 3.0).sum() > 5


@pytest.mark.render
def test_mirrored_mesh_has_mirrored_views():
    """Mirror mesh and bones, keep the weights: front and back turn over, but for the names."""
    points, faces = tube(squash=0.7)
    points += 0.2 * np.sin(3.0 * points[:, [1, 2, 0]])
    found = plan(points, root=(0, 0.2, 0), sectors=3)
    flip = np.array([-1.0, 1.0, 1.0])
    mirrored = Plan(
        bones=tuple(
            Bone(name=bone.name, position=(-x, y, z), parent=bone.parent)
            for bone in found.bones
            for x, y, z in (bone.position,)
        ),
        weights=found.weights,
        chains=found.chains,
        strategy="sectors",
    )
    views = panels(plan_picture(found, points, faces, width=WIDE, height=HIGH))
    other = panels(plan_picture(mirrored, points * flip, faces, width=WIDE, height=HIGH))
    for place in (0, 2):
        differs = np.abs(views[place].astype(int) - other[place][:, ::-1]).max(axis=-1) > 24
        assert differs.mean() < 0.04
        unturned = np.abs(views[place].astype(int) - other[place]).max(axis=-1) > 24
        assert unturned.mean() > 0.2


@pytest.mark.render
@pytest.mark.parametrize("scale", [1e-170, 1e-6, 1.0, 1e6])
def test_any_unit_will_do(cup: tuple[Plan, Points, Faces, Picture], scale: float):
    """Scale and move the mesh: the same picture."""
    _, points, faces, picture = cup
    shift = np.array([3.0, -2.0, 5.0])
    moved = (points + shift) * scale
    found = plan(moved, root=shift * scale, sectors=4)
    again = plan_picture(found, moved, faces, width=WIDE, height=HIGH)
    assert (np.abs(again.astype(int) - picture).max(axis=-1) > 8).mean() < 0.005


@pytest.mark.render
def test_hair_that_hangs_along_z_stands_upright(cup: tuple[Plan, Points, Faces, Picture]):
    """Turn mesh and axis so that Z is up and -Y in front is +Y: the same picture."""
    _, points, faces, picture = cup
    turned = points @ np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    found = plan(turned, root=(0, 0, 0), axis=(0, 0, -1), sectors=4)
    again = plan_picture(found, turned, faces, width=WIDE, height=HIGH)
    assert (np.abs(again.astype(int) - picture).max(axis=-1) > 8).mean() < 0.005


@pytest.mark.render
@pytest.mark.parametrize("faces", [[], np.zeros((0, 3), int)], ids=["list", "array"])
def test_mesh_without_faces_is_drawn_as_dots(cup: tuple[Plan, Points, Faces, Picture], faces: Any):
    """Draw vertices alone: each chain's colour, on its side, but less of it than with faces."""
    found, points, _, picture = cup
    dots = plan_picture(found, points, faces, width=WIDE, height=HIGH)
    front, whole = panels(dots)[0], panels(picture)[0]
    across, _ = middle_of(like(front, chain_colour(0)))
    assert across > 0.55
    assert 0 < like(front, chain_colour(0)).sum() < like(whole, chain_colour(0)).sum()


def test_lone_vertex_is_drawn():
    """Draw the smallest mesh, at its root's side, and one with all vertices in one place."""
    for points in ([[0.0, -1.0, 0.0]], [[0.0, -1.0, 0.0]] * 3):
        found = plan(points, root=(0, 0, 0), sectors=1, segments=1)
        picture = plan_picture(found, points, [[0, 0, 0]], width=WIDE, height=HIGH)
        assert (picture != PAPER).any()


def test_nearest_face_is_in_front():
    """Put squares before one another, and through one another, in both orders."""
    left, right = 2.0, 14.0

    def square(near_left: float, near_right: float) -> Points:
        a, b = (left, 2.0, near_left), (right, 2.0, near_right)
        c, d = (right, 12.0, near_right), (left, 12.0, near_left)
        return np.array([[a, b, c], [a, c, d]])

    far, near, slope = square(1.0, 1.0), square(2.0, 2.0), square(0.0, 3.0)
    for first, second in ((far, near), (near, far)):
        front = front_faces(np.concatenate([first, second]), 16, 14)
        inside = np.zeros((14, 16), dtype=bool)
        inside[2:12, 2:14] = True
        np.testing.assert_array_equal(front.face.reshape(14, 16) >= 0, inside)
        wanted = 2.0 if second is near else 0.0
        assert (front.face.reshape(14, 16)[inside] // 2 * 2 == wanted).all()
        np.testing.assert_allclose(front.near.reshape(14, 16)[inside], 2.0)
    front = front_faces(np.concatenate([far, slope]), 16, 14)
    # They cross at a third of the way.
    np.testing.assert_array_equal(front.face.reshape(14, 16)[5, 2:14] // 2, [0] * 4 + [1] * 8)


def test_corners_share_a_pixel():
    """Mix the places of a face's corners by their shares: each pixel's own middle."""
    random = np.random.default_rng(0)
    corners = random.uniform(0.0, 40.0, (12, 3, 3))
    near, face = front_faces(corners, 40, 40)
    pixel = np.flatnonzero(face >= 0)
    share = shares_of_corners(corners, face[pixel], pixel, 40)
    mixed = np.einsum("pk,pkx->px", share, corners[face[pixel]])
    middles = np.stack([pixel % 40 + 0.5, pixel // 40 + 0.5, near[pixel]], axis=1)
    np.testing.assert_allclose(mixed, middles, atol=1e-9)
    np.testing.assert_allclose(share.sum(axis=1), 1.0, atol=1e-12)


def test_faces_beyond_the_picture_are_cut():
    """Draw a face far larger than the picture, and one beside it."""
    huge = np.array([[[-1e4, -1e4, 0.0], [1e4, -1e4, 0.0], [0.0, 2e4, 0.0]]])
    assert (front_faces(huge, 9, 7).face == 0).all()
    assert (front_faces(huge + np.array([5e4, 0.0, 0.0]), 9, 7).face == -1).all()


@pytest.mark.parametrize(
    "cones", [ALL_CONES, NO_RED, NO_GREEN, NO_BLUE], ids=["all", "no red", "no green", "no blue"]
)
def test_twelve_chains_tell_apart(cones: Points):
    """Compare colours in CIELAB, in the eyes of those who lack a kind of cone too."""
    colours = np.array([*map(chain_colour, range(12)), GREY]) / 255.0
    light = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    light = np.clip(light @ cones.T, 0.0, 1.0)
    to_xyz = np.array([[0.412, 0.358, 0.180], [0.213, 0.715, 0.072], [0.019, 0.119, 0.950]])
    x, y, z = np.cbrt(light @ to_xyz.T / [0.950, 1.0, 1.088]).T
    lab = np.stack([116.0 * y, 500.0 * (x - y), 200.0 * (y - z)], axis=1)
    apart = np.linalg.norm(lab[:, None] - lab[None], axis=-1) + 1e3 * np.eye(len(lab))
    # Three or so is a difference that is just seen, side by side.
    assert apart.min() > 10.0


def test_many_chains_have_colours_of_their_own():
    """Ask for as many colours as there can be chains."""
    assert len({chain_colour(number) for number in range(64)}) == 64
    points, faces = tube(around=80, down=6)
    found = plan(points, root=(0, 0, 0), sectors=64, segments=2)
    assert plan_picture(found, points, faces, width=400, height=200).shape == (200, 400, 3)


def test_caption_says_what_the_plan_is(cup: tuple[Plan, Points, Faces, Picture]):
    """Read the line below the views, of chains of one length and of several."""
    found, points = cup[:2]
    assert caption(found) == f"4 chains x 3 segments: 13 bones, {len(points)} vertices"
    uneven = Plan(
        bones=found.bones, weights=found.weights, chains=((1, 2), (3, 4, 5)), strategy="cards"
    )
    assert "2 chains x 2 to 3 segments" in caption(uneven)
    assert (cup[3][-round(HIGH * 0.07) :] != PAPER).any()


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("faces: .*shape", {"faces": [[0, 1]]}),
        ("faces: .*whole", {"faces": [[0.0, 1.0, 2.0]]}),
        ("faces: .*0..1439", {"faces": [[0, 1, 1440]]}),
        ("faces: .*0..1439", {"faces": [[-1, 1, 2]]}),
        ("plan: .*vertices", {"vertices": [[0.0, 0.0, 0.0]]}),
        ("width: .*got 100", {"width": 100}),
        ("height: .*got 9", {"height": 9}),
        ("height: .*whole.*True", {"height": True}),
    ],
)
def test_bad_input_is_refused(
    cup: tuple[Plan, Points, Faces, Picture], words: str, change: dict[str, Any]
):
    """Give what cannot be drawn: an error that names the thing."""
    found, points, _, _ = cup
    given: dict[str, Any] = {"vertices": points, "faces": [], **change}
    with pytest.raises(RigError, match=words) as caught:
        plan_picture(found, **given)
    assert caught.value.kind == "bad option"


@pytest.mark.render
def test_twenty_thousand_faces_take_seconds_at_most():
    """Draw a head of hair of a catalogue's size, with layers behind layers."""
    points, faces = tube(around=100, down=21)
    layers = [points * (1.0 - 0.05 * layer) for layer in range(5)]
    whole = np.concatenate(layers)
    rows = np.concatenate([faces + len(points) * layer for layer in range(5)])
    assert len(rows) == 20_000
    found = plan(whole, root=(0, 0, 0))
    began = time.perf_counter()
    plan_picture(found, whole, rows)
    print(f"{time.perf_counter() - began:.2f} s")
    # Three seconds on one free core; machines that test are busy.
    assert time.perf_counter() - began < 15.0
