"""Skeletons along the locks of a hair mesh: laws, and meshes where sectors go wrong."""

from collections.abc import Callable

import numpy as np
import pytest

from hairkit.errors import RigError
from hairkit.rigging.cards import plan_cards
from hairkit.rigging.flow import flow_angle, hair_flow
from hairkit.rigging.plan import Plan, plan

Mesh = tuple[np.ndarray, np.ndarray]
"""Vertices and faces."""

TOP = np.array([0.0, 1.0, 0.0])


def sheet(rows: int, columns: int, at: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Mesh:
    """Return a grid of triangles; `at` gives points, shape (n, 3), by two shares from 0 to 1."""
    u, v = np.meshgrid(np.linspace(0, 1, rows), np.linspace(0, 1, columns), indexing="ij")
    number = np.arange(rows * columns).reshape(rows, columns)
    a, b = number[:-1, :-1].ravel(), number[1:, :-1].ravel()
    c, d = number[1:, 1:].ravel(), number[:-1, 1:].ravel()
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return at(u.ravel(), v.ravel()), faces


def joined(*meshes: Mesh) -> Mesh:
    """Return meshes as one."""
    start = np.cumsum([0] + [len(points) for points, _ in meshes])
    faces = [rows + first for (_, rows), first in zip(meshes, start, strict=False)]
    return np.concatenate([points for points, _ in meshes]), np.concatenate(faces)


def cap(rows: int = 12, columns: int = 24, low: float = 0.55) -> Mesh:
    """Return the upper part of a ball of radius 1 round 0, a little dented, with a seam."""

    def at(u, v):
        height, turn = low * np.pi * u, 2.0 * np.pi * v
        out = 1.0 + 0.01 * np.sin(3.0 * turn + 1.0) * np.sin(height)
        across = out * np.sin(height)
        # The seam's both sides must be one place to the last bit.
        spin, sway = np.where(v == 1.0, 0.0, np.sin(turn)), np.where(v == 1.0, 1.0, np.cos(turn))
        return np.stack([across * spin, np.cos(height), across * sway], axis=1)

    return sheet(rows, columns, at)


def tail_line(share: np.ndarray) -> np.ndarray:
    """Return the middle of a tail: out of the back of the head, up, over, and down in a curve."""
    knots = [(0.5, -0.8), (1.0, -1.5), (1.0, -2.3), (0.0, -2.7), (-1.5, -2.2), (-2.5, -1.4)]
    place = np.asarray(share) * (len(knots) - 1)
    first = np.clip(place.astype(int), 0, len(knots) - 2)
    part = (place - first)[:, None]
    line = np.array(knots)[first] * (1.0 - part) + np.array(knots)[first + 1] * part
    return np.column_stack([0.03 * np.sin(5.0 * share), line])


def tube(width: float = 0.2, rows: int = 40) -> Mesh:
    """Return a ponytail."""

    def at(u, v):
        middle = tail_line(u)
        ahead = tail_line(np.minimum(u + 0.01, 1.0)) - tail_line(np.maximum(u - 0.01, 0.0))
        ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
        side = np.tile([1.0, 0.0, 0.0], (len(u), 1))
        other = np.cross(ahead, side)
        spin = np.where(v == 1.0, 0.0, v) * 2.0 * np.pi
        size = (width * (0.5 + np.sin(np.pi * np.clip(u, 0.1, 0.9))))[:, None]
        return middle + size * (np.cos(spin)[:, None] * side + np.sin(spin)[:, None] * other)

    return sheet(rows, 11, at)


def ponytail() -> Mesh:
    """Return a cap and a tail."""
    return joined(cap(), tube())


def fan(count: int = 5) -> Mesh:
    """Return cards that part from the top to all sides, no two alike, without a cap."""

    def card(turn: float, length: float) -> Mesh:
        def at(u, v):
            out = 0.3 + length * 0.8 * u
            across = 0.12 * (v - 0.5)
            fall = 1.0 - length * u**2
            sine, cosine = np.sin(turn), np.cos(turn)
            return np.stack(
                [out * sine + across * cosine, fall, out * cosine - across * sine], axis=1
            )

        return sheet(12, 3, at)

    return joined(*(card(2.0 * np.pi * k / count + 0.3, 1.0 + 0.07 * k) for k in range(count)))


def wave() -> Mesh:
    """Return one lock that swings to and fro as it falls."""

    def at(u, v):
        aside = 0.25 * np.sin(9.0 * u) + 0.1 * (v - 0.5)
        return np.stack([aside, 0.9 - 2.0 * u, -0.8 - 0.1 * u * v], axis=1)

    return sheet(50, 4, at)


MESHES = {"ponytail": ponytail, "tube": tube, "fan": fan, "wave": wave, "cap": cap}


@pytest.fixture(params=sorted(MESHES))
def mesh(request) -> Mesh:
    """Return each mesh."""
    return MESHES[request.param]()


def dense(made: Plan) -> np.ndarray:
    """Return weights as one column for each bone, shape (vertices, bones)."""
    full = np.zeros((len(made.weights.indices), len(made.bones)))
    rows = np.arange(len(full))
    for indices, shares in zip(made.weights.indices.T, made.weights.weights.T, strict=True):
        full[rows, indices] += shares
    return full


def turned(angle: float) -> np.ndarray:
    """Return a turn about a crooked axis, shape (3, 3)."""
    x, y, z = np.array([1.0, 2.0, -0.5]) / np.linalg.norm([1.0, 2.0, -0.5])
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross


@pytest.mark.parametrize("influences", [0, 1, 2, 3, 4, 9])
@pytest.mark.parametrize("segments", [1, 4])
def test_weights_and_bones_are_well_formed(mesh, influences, segments):
    """Check sums, order, unused places, names and parents."""
    made = plan_cards(*mesh, root=TOP, segments=segments, max_influences=influences)
    indices, weights = made.weights
    assert weights.shape == indices.shape == (len(mesh[0]), min(max(influences, 1), 4))
    assert np.isfinite(weights).all() and np.isfinite(made.positions).all()
    assert np.abs(weights.sum(axis=1) - 1.0).max() < 1e-6
    assert (np.diff(weights, axis=1) <= 0.0).all() and (weights >= 0.0).all()
    assert (indices[weights == 0.0] == 0).all()
    for row, shares in zip(indices, weights, strict=True):
        used = row[shares > 0.0]
        assert len(set(used)) == len(used)
    assert made.strategy == "cards" and made.names[0] == "HairRoot"
    assert 1 <= len(made.chains) <= 12
    for number, chain in enumerate(made.chains):
        assert [made.names[bone] for bone in chain] == [
            f"Hair_S{number + 1}_B{b + 1}" for b in range(segments)
        ]
        assert [made.bones[bone].parent for bone in chain] == [0, *chain[:-1]]
    assert sorted(sum(made.chains, ())) == list(range(1, len(made.bones)))


def test_order_of_vertices_and_faces_does_not_matter(mesh):
    """Shuffle both."""
    points, faces = mesh
    rng = np.random.default_rng(1)
    order = rng.permutation(len(points))
    where = np.argsort(order)
    shuffled = np.roll(where[faces][rng.permutation(len(faces))], 1, axis=1)
    one = plan_cards(points, faces, root=TOP)
    other = plan_cards(points[order], shuffled, root=TOP)
    assert np.abs(one.positions - other.positions).max() < 1e-9
    assert np.abs(dense(one)[order] - dense(other)).max() < 1e-9


def test_skeleton_turns_and_grows_with_the_mesh(mesh):
    """Turn, grow and move mesh, root and axis together."""
    points, faces = mesh
    turn, size, move = turned(0.9), 37.0, np.array([3.0, -2.0, 5.0])
    down = np.array([0.0, -1.0, 0.0])
    one = plan_cards(points, faces, root=TOP, axis=down)
    other = plan_cards(
        size * points @ turn.T + move, faces, root=size * turn @ TOP + move, axis=turn @ down
    )
    expected = size * one.positions @ turn.T + move
    assert other.names == one.names
    assert np.abs(other.positions - expected).max() < 1e-6 * size
    assert np.abs(dense(other) - dense(one)).max() < 1e-6


def test_vertices_at_one_place_get_the_same_weights(mesh):
    """Give each face its own vertices."""
    points, faces = mesh
    one = plan_cards(points, faces, root=TOP)
    split = plan_cards(points[faces.ravel()], np.arange(faces.size).reshape(-1, 3), root=TOP)
    assert np.abs(one.positions - split.positions).max() < 1e-9
    full = dense(split)
    _, first, back = np.unique(
        points[faces.ravel()], axis=0, return_index=True, return_inverse=True
    )
    assert np.array_equal(full, full[first][back.ravel()])
    assert np.abs(dense(one)[faces.ravel()] - full).max() < 1e-9


def test_ponytail_gets_one_chain_along_its_curve():
    """Compare the chain with the line that the tail was made round, and the angles with sectors'.

    The part of the tail that rises is what sectors cannot follow.
    """
    points, faces = ponytail()
    made = plan_cards(points, faces, root=TOP, segments=6)
    assert len(made.chains) == 1
    line = tail_line(np.linspace(0.0, 1.0, 2000))
    spots = made.positions[list(made.chains[0])]
    gap = np.linalg.norm(spots[:, None] - line[None], axis=2)
    assert gap.min(axis=1).max() < 0.15
    assert (np.diff(gap.argmin(axis=1)) > 0).all()
    # The cap stays.
    on_cap = np.arange(len(points)) < len(cap()[0])
    assert dense(made)[on_cap, 0].min() > 0.9
    old = plan(points, root=TOP, segments=6)
    moved = ~on_cap & (made.weights.indices[:, 0] > 0) & (old.weights.indices[:, 0] > 0)
    ours = flow_angle(made, points, faces, root=TOP, among=moved)
    theirs = flow_angle(old, points, faces, root=TOP, among=moved)
    assert ours < 0.35 and ours < 0.75 * theirs


def test_tail_stays_at_the_head_when_its_bones_turn():
    """Look for weights that jump along an edge, and for the tail's mouth in the root's hand."""
    points, faces = ponytail()
    full = dense(plan_cards(points, faces, root=TOP, segments=3))
    sides = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    length = np.linalg.norm(points[sides[:, 0]] - points[sides[:, 1]], axis=1)
    jump = 0.5 * np.abs(full[sides[:, 0]] - full[sides[:, 1]]).sum(axis=1)
    # Over half a band, 1; a band is a third of the tail's 5 or so.
    assert (jump < 0.1 + 1.5 * length).all()
    mouth = len(cap()[0])
    assert full[mouth : mouth + 11, 0].min() > 0.8


def test_each_card_of_a_fan_has_its_chain():
    """Check that cards are not mixed, and that bones run along them."""
    points, faces = fan(5)
    made = plan_cards(points, faces, root=TOP)
    assert len(made.chains) == 5
    owner = made.chain_of_vertices().reshape(5, -1)
    for card in owner:
        assert len(set(card[card >= 0])) == 1
    assert flow_angle(made, points, faces, root=TOP) < 0.3


def test_wave_is_one_lock_that_bones_follow():
    """With more bones than swings, they swing too."""
    points, faces = wave()
    made = plan_cards(points, faces, root=TOP, segments=12)
    assert len(made.chains) == 1
    along = np.linspace(0, 1, 1000)
    line = np.stack([0.25 * np.sin(9.0 * along), 0.9 - 2.0 * along, -0.8 - 0.05 * along], axis=1)
    gap = np.linalg.norm(made.positions[1:, None] - line[None], axis=2)
    assert gap.min(axis=1).max() < 0.05
    # Bands are slices of the way, not of height: they are evenly spaced along the line.
    way = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1)))
    steps = np.diff(way[gap.argmin(axis=1)])
    assert steps.std() < 0.2 * steps.mean()


@pytest.mark.parametrize("chains", [1, 2, 3, 20])
def test_no_more_chains_than_asked_for(mesh, chains):
    """Ask for some."""
    assert 1 <= len(plan_cards(*mesh, root=TOP, chains=chains).chains) <= chains


def test_odd_meshes_are_planned_too():
    """Add what broken files have: flat faces, doubles, lone vertices, a speck; and take faces."""
    points, faces = ponytail()
    count = len(points)
    lone = points[300] + 1e-3
    speck = points[-1] + np.array([[0.0, 0.0, 0.0], [1e-4, 0.0, 0.0], [0.0, 1e-4, 0.0]]) + 0.05
    more = np.concatenate([points, points[:20], [lone], speck])
    bad = [[3, 3, 3], [4, 4, 5], [0, count, 1], [count + 21, count + 22, count + 23]]
    made = plan_cards(more, np.concatenate([faces, bad, faces[:9]]), root=TOP)
    full = dense(made)
    assert np.isfinite(full).all() and np.isfinite(made.positions).all()
    assert np.array_equal(full[count : count + 20], full[:20])
    assert np.array_equal(full[count + 20], full[300])
    for some in (more[:1] - 3.0, np.zeros((4, 3)), more):
        bare = plan_cards(some, np.zeros((0, 3), dtype=int), root=TOP)
        assert np.isfinite(bare.positions).all() and np.isfinite(dense(bare)).all()
    flat = plan_cards(np.linspace([0, 0, 0], [0, -1, 0], 6), [[0, 1, 2], [2, 3, 4]], root=TOP)
    assert np.isfinite(flat.positions).all()


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("no vertices", {"vertices": np.zeros((0, 3))}),
        ("not finite", {"vertices": np.full((3, 3), np.nan)}),
        ("above root", {"root": (0.0, -50.0, 0.0)}),
        ("bad option", {"root": (0.0, 1.0)}),
        ("bad option", {"axis": (0.0, 0.0, 0.0)}),
        ("bad option", {"chains": 0}),
        ("bad option", {"chains": 2.0}),
        ("bad option", {"chains": True}),
        ("bad option", {"chains": 65}),
        ("bad option", {"segments": 0}),
        ("bad option", {"faces": [[0, 1, 99999]]}),
        ("bad option", {"faces": [[0, 1, -1]]}),
        ("bad option", {"faces": [[0.0, 1.0, 2.0]]}),
        ("bad option", {"faces": [[0, 1]]}),
        ("bad option", {"faces": [[0, 1, 2], [0, 1]]}),
    ],
)
def test_wrong_input_is_refused(kind, change):
    """Check the sort of each failure."""
    points, faces = fan(3)
    given = {"vertices": points, "faces": faces, "root": TOP} | change
    with pytest.raises(RigError) as caught:
        plan_cards(given.pop("vertices"), given.pop("faces"), **given)
    assert caught.value.kind == kind


def test_flow_runs_along_cards_from_the_root():
    """Compare the measure's own directions with those that cards were made along."""
    points, faces = tube()
    flow, area = hair_flow(points, faces, root=TOP)
    assert area.sum() == pytest.approx(1.0)
    share = np.repeat(np.linspace(0, 1, 40), 11)
    ahead = tail_line(np.minimum(share + 0.02, 1.0)) - tail_line(np.maximum(share - 0.02, 0.0))
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    assert np.median((flow * ahead).sum(axis=1)) > 0.9
    ends = np.linalg.norm(flow, axis=1)
    assert np.abs(ends - 1.0).max() < 1e-9
