"""Shapes: distances, their directions, and grids made of meshes."""

import numpy as np
import pytest

from hairkit.errors import HairkitError
from hairkit.shapes import (
    Box,
    Capsule,
    DistanceGrid,
    Ellipsoid,
    Plane,
    Shape,
    Sphere,
    close_holes,
    weld,
)

SHAPES = [
    Sphere(0.1, (0.01, -0.02, 0.03)),
    Capsule((-0.05, 0.0, 0.0), (0.06, 0.05, 0.02), 0.04),
    Box((0.05, 0.08, 0.06), (0.0, 0.01, 0.0)),
    Ellipsoid((0.06, 0.1, 0.08), (0.02, 0.0, 0.0)),
    Plane((0.3, 1.0, -0.2), 0.02),
]


def ball(radius: float = 0.1, rings: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices and triangles of a ball made of rings, with poles along y."""
    vertices = [[0.0, radius, 0.0]]
    for ring in range(1, rings):
        angle = np.pi * ring / rings
        for step in range(2 * rings):
            turn = np.pi * step / rings
            x, z = np.sin(angle) * np.sin(turn), np.sin(angle) * np.cos(turn)
            vertices.append([radius * x, radius * np.cos(angle), radius * z])
    vertices.append([0.0, -radius, 0.0])
    faces, wide = [], 2 * rings
    for step in range(wide):
        after = (step + 1) % wide
        faces.append([0, 1 + step, 1 + after])
        for ring in range(rings - 2):
            a, b = 1 + ring * wide, 1 + (ring + 1) * wide
            faces += [[a + step, b + step, b + after], [a + step, b + after, a + after]]
        last = 1 + (rings - 2) * wide
        faces.append([len(vertices) - 1, last + after, last + step])
    return np.array(vertices), np.array(faces)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Keep the grids of one test in a folder of its own."""
    monkeypatch.setenv("HAIRKIT_CACHE", str(tmp_path))
    return tmp_path


def grid_of_ball() -> DistanceGrid:
    """Return a grid of a ball of 0.1 m."""
    return DistanceGrid.from_mesh(*ball(), cell=0.008, cache=False)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_distance_grows_along_its_normal_at_unit_rate(shape):
    """Compare the normal with central differences of the distance."""
    points = np.random.default_rng(3).uniform(-0.2, 0.2, (300, 3))
    distance, normal = shape.signed_distance(points)
    step = 1e-6
    slope = np.stack(
        [
            (
                shape.signed_distance(points + step * axis)[0]
                - shape.signed_distance(points - step * axis)[0]
            )
            / (2 * step)
            for axis in np.eye(3)
        ],
        axis=1,
    )
    assert np.allclose(np.linalg.norm(normal, axis=1), 1.0)
    # Where two sides are equally near the distance has no slope; few random points are there.
    same = np.abs(slope - normal).max(axis=1) < 1e-4
    assert same.mean() > 0.99
    assert (distance < 0).any() and (distance > 0).any()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_a_step_of_the_distance_leads_to_the_surface(shape):
    """Move points along the normal by their distance and measure again."""
    points = np.random.default_rng(4).uniform(-0.2, 0.2, (300, 3))
    distance, normal = shape.signed_distance(points)
    outside = distance > 0
    surface = (points - normal * distance[:, None])[outside]
    assert np.abs(shape.signed_distance(surface)[0]).max() < 1e-9


def test_shapes_are_shapes():
    """Check every shape, a grid too, against the protocol."""
    assert all(isinstance(shape, Shape) for shape in [*SHAPES, grid_of_ball()])


def test_equal_half_axes_make_a_sphere():
    """Compare an ellipsoid with the sphere that it is, centre and axes included."""
    points = np.concatenate([np.random.default_rng(5).normal(0, 0.1, (100, 3)), np.eye(3) * 0.05])
    same = Ellipsoid((0.1, 0.1, 0.1)).signed_distance(points)[0]
    assert np.allclose(same, Sphere(0.1).signed_distance(points)[0], atol=1e-9)
    center, normal = Ellipsoid((0.1, 0.05, 0.2)).signed_distance(np.zeros((1, 3)))
    assert center[0] == pytest.approx(-0.05, abs=1e-6)
    assert abs(normal[0, 1]) == pytest.approx(1.0, abs=1e-6)


def test_a_capsule_without_length_is_a_sphere():
    """Compare a capsule whose ends coincide with a sphere."""
    points = np.random.default_rng(6).normal(0, 0.1, (50, 3))
    same = Capsule((0.0, 0.1, 0.0), (0.0, 0.1, 0.0), 0.05).signed_distance(points)[0]
    assert np.allclose(same, Sphere(0.05, (0.0, 0.1, 0.0)).signed_distance(points)[0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Sphere(0.0),
        lambda: Sphere(float("nan")),
        lambda: Capsule((0, 0, 0), (0, np.inf, 0), 0.1),
        lambda: Box((0.1, -0.1, 0.1)),
        lambda: Ellipsoid((0.1, 0.1)),  # pyright: ignore[reportArgumentType]
        lambda: Plane((0.0, 0.0, 0.0)),
        lambda: DistanceGrid(np.zeros((1, 4, 4), np.float32), (0, 0, 0), 0.1),
        lambda: DistanceGrid.from_mesh(np.zeros((3, 3)), np.zeros((0, 3), int)),
        lambda: DistanceGrid.from_mesh(np.zeros((3, 3)), np.array([[0, 1, 7]])),
        lambda: DistanceGrid.from_mesh(ball()[0] * 1e4, ball()[1]),
        lambda: Sphere(0.1).signed_distance(np.zeros((4, 2))),
    ],
)
def test_a_wrong_value_is_refused_in_one_line(make):
    """Make shapes with sizes that cannot be."""
    with pytest.raises(HairkitError) as caught:
        make()
    assert "expected" in str(caught.value) and "\n" not in str(caught.value)


def test_grid_of_a_ball_measures_like_the_ball():
    """Compare a grid with the exact distance, inside, outside and beyond the grid."""
    grid = grid_of_ball()
    points = np.random.default_rng(7).uniform(-0.13, 0.13, (500, 3))
    exact, way = Sphere(0.1).signed_distance(points)
    near = exact > -0.05
    distance, normal = grid.signed_distance(points)
    assert np.abs(distance - exact)[near].max() < 1.2e-3
    assert np.sum(normal * way, axis=1)[near].min() > 0.97
    far, outward = grid.signed_distance([[0.0, 0.5, 0.0], [1.0, 0.0, 0.0]])
    assert far == pytest.approx([0.4, 0.9], abs=2e-3)
    assert outward[0, 1] > 0.99 and outward[1, 0] > 0.99


def test_grid_normal_is_the_slope_of_its_own_distance():
    """Compare the normal with central differences inside cells."""
    grid = grid_of_ball()
    points = np.random.default_rng(8).uniform(-0.12, 0.12, (200, 3))
    step = 1e-7
    slope = np.stack(
        [
            grid.signed_distance(points + step * a)[0] - grid.signed_distance(points - step * a)[0]
            for a in np.eye(3)
        ],
        axis=1,
    )
    slope /= np.linalg.norm(slope, axis=1, keepdims=True)
    assert np.abs(slope - grid.signed_distance(points)[1]).max() < 1e-4


def test_a_hole_does_not_change_inside_and_outside():
    """Leave the bottom out of a ball, and measure in its middle and under it."""
    vertices, faces = ball()
    open_faces = faces[vertices[faces][:, :, 1].mean(axis=1) > -0.085]
    assert len(open_faces) < len(faces)
    grid = DistanceGrid.from_mesh(vertices, open_faces, cell=0.008, cache=False)
    distance, _ = grid.signed_distance([[0, 0, 0], [0, -0.06, 0], [0, -0.105, 0], [0, 0.12, 0]])
    assert (distance[:2] < 0).all() and (distance[2:] > 0).all()
    assert distance[1] == pytest.approx(-0.02, abs=0.008)


def test_two_overlapping_bodies_are_one_solid():
    """Measure where two balls overlap and in each alone."""
    vertices, faces = ball()
    both = np.concatenate([vertices, vertices + np.array([0.1, 0, 0])])
    two = np.concatenate([faces, faces + len(vertices)])
    grid = DistanceGrid.from_mesh(both, two, cell=0.01, cache=False)
    distance, _ = grid.signed_distance([[0.05, 0, 0], [-0.05, 0, 0], [0.15, 0, 0], [0.05, 0.12, 0]])
    assert (distance[:3] < 0).all() and distance[3] > 0


def test_closing_holes_leaves_no_open_edge():
    """Cut two holes into a ball and count the edges that only one triangle has."""
    vertices, faces = ball()
    faces = faces[np.abs(vertices[faces][:, :, 1].mean(axis=1)) < 0.08]
    closed_vertices, closed = close_holes(vertices, faces)
    edges = np.sort(
        np.concatenate([closed[:, [0, 1]], closed[:, [1, 2]], closed[:, [2, 0]]]), axis=1
    )
    _, count = np.unique(edges, axis=0, return_counts=True)
    assert (count == 2).all()
    assert len(closed_vertices) == len(vertices) + 2


def test_welding_joins_seams():
    """Give every triangle its own corners and join them again."""
    vertices, faces = ball(rings=6)
    joined, joined_faces, row = weld(
        vertices[faces].reshape(-1, 3), np.arange(faces.size).reshape(-1, 3)
    )
    assert len(joined) == len(vertices) and len(joined_faces) == len(faces)
    assert np.array_equal(joined[row], vertices[faces].reshape(-1, 3))


def test_grid_is_kept_on_disk_and_made_again_when_damaged(cache):
    """Make a grid, read it back, damage its file in three ways, and make it again."""
    vertices, faces = ball()
    first = DistanceGrid.from_mesh(vertices, faces, cell=0.02)
    (path,) = (cache / "grids").glob("*.npy")
    whole = path.read_bytes()
    np.save(path, first.values + np.float32(1.0), allow_pickle=False)
    assert np.array_equal(
        DistanceGrid.from_mesh(vertices, faces, cell=0.02).values, first.values + np.float32(1.0)
    ), "a good file is read, not made again"
    for damage in (b"", whole[:200], b"x" * len(whole)):
        path.write_bytes(damage)
        again = DistanceGrid.from_mesh(vertices, faces, cell=0.02)
        assert np.array_equal(again.values, first.values)
        assert path.read_bytes() == whole
    assert not list((cache / "grids").glob("*.part"))


def test_another_mesh_or_cell_has_another_grid(cache):
    """Count the files of grids that differ in one thing."""
    vertices, faces = ball()
    DistanceGrid.from_mesh(vertices, faces, cell=0.02)
    DistanceGrid.from_mesh(vertices, faces, cell=0.025)
    DistanceGrid.from_mesh(vertices * 1.01, faces, cell=0.02)
    DistanceGrid.from_mesh(vertices, faces, cell=0.02, bounds=([-0.05] * 3, [0.05] * 3))
    assert len(list((cache / "grids").glob("*.npy"))) == 4
