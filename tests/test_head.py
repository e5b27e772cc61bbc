"""Heads: reading, finding head and scalp, the two solids, and errors."""

import json

import numpy as np
import pytest
import trimesh

from hairkit.errors import HeadError
from hairkit.head import Head
from hairkit.paths import assets_dir

ASSET = assets_dir() / "head.glb"


@pytest.fixture(scope="module")
def head() -> Head:
    """Return the head that comes with hairkit."""
    return Head.load(ASSET)


@pytest.fixture(scope="module")
def raw() -> trimesh.Trimesh:
    """Return the mesh in that head's file."""
    mesh = trimesh.load(str(ASSET), force="mesh", process=False)
    assert isinstance(mesh, trimesh.Trimesh)
    return mesh


def save(path, vertices, faces):
    """Write a mesh file and return its path."""
    trimesh.Trimesh(vertices, faces, process=False).export(str(path))
    return path


def directions(*degrees: tuple[float, float]) -> np.ndarray:
    """Return unit directions of azimuths from the front and elevations [deg]."""
    azimuth, elevation = np.radians(np.array(degrees, float)).T
    level = np.cos(elevation)
    return np.stack([np.sin(azimuth) * level, np.sin(elevation), np.cos(azimuth) * level], axis=1)


def test_ball_grows_hair_within_the_crown_and_off_the_face():
    """Try directions just inside and outside both angles."""
    ball = Head.sphere(0.1, crown=1.8, hairline=0.9)
    crown, line = np.degrees(1.8), np.degrees(0.9)
    inside = directions((0, 90), (180, 90 - crown + 1), (0, line + 1), (line + 1, 0))
    outside = directions((0, 0), (180, 90 - crown - 1), (0, line - 1), (line - 1, 0), (0, -90))
    assert (ball.scalp_limit(inside) > 0).all()
    assert (ball.scalp_limit(outside) < 0).all()
    assert ball.scalp_limit(3.0 * directions((180, 0)))[0] == pytest.approx(1.8 - np.pi / 2)


def test_ball_is_exact_and_its_mesh_lies_on_it():
    """Check distances, normals and the mesh's winding of a ball."""
    ball = Head.sphere(0.12)
    distance, normal = ball.signed_distance(ball.vertices)
    assert np.abs(distance).max() < 1e-12
    assert np.allclose(normal, ball.vertex_normals)
    corners = ball.vertices[ball.faces]
    out = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (np.sum(out * corners.mean(axis=1), axis=1) > 0).all()
    assert ball.body_shape is None and ball.is_sphere and ball.source == "sphere"
    assert ball.scalp_faces.any() and not ball.scalp_faces.all()


def test_own_head_is_human_sized_and_mirror_symmetric(head):
    """Measure the asset, and look for each vertex's mirror image."""
    part = head.vertices[head.follow == 1.0]
    skull = part[part[:, 1] > head.center[1]]
    assert 0.14 < np.ptp(skull[:, 0]) < 0.17
    assert 0.17 < np.ptp(skull[:, 2]) < 0.22
    there = {tuple(row) for row in np.round(head.vertices, 6) + 0.0}
    mirrored = np.round(head.vertices * [-1, 1, 1], 6) + 0.0
    assert all(tuple(row) in there for row in mirrored)
    assert 5_000 <= len(head.faces) <= 15_000
    assert ASSET.stat().st_size < 500_000
    assert head.colors is not None and head.colors.shape == head.vertices.shape


def test_pivot_is_between_chin_and_skull(head):
    """Check that the origin lies inside, under the skull's middle and behind the face."""
    assert head.signed_distance([[0.0, 0.0, 0.0]])[0][0] < -0.02
    assert 0.03 < head.center[1] < 0.1
    assert head.center[2] > 0.0
    assert 0.07 < head.radius < 0.11


def test_scalp_leaves_out_face_ears_and_neck(head):
    """Look for scalp where no hair grows, and for bare skin where it does."""
    middle = head.vertices[head.faces].mean(axis=1)
    scalp = middle[head.scalp_faces]
    assert np.abs(scalp[:, 0]).max() < 0.08  # the ears stand out farther
    face = (middle[:, 2] > head.center[2] + 0.06) & (middle[:, 1] < head.center[1] + 0.02)
    assert face.any() and not (head.scalp_faces & face).any()
    assert scalp[:, 1].min() > head.center[1] - 0.09  # the hairline of the nape
    assert (head.follow[head.faces[head.scalp_faces]] == 1.0).all()
    top = (middle[:, 1] > head.center[1] + 0.06) & (middle[:, 2] < head.center[2] + 0.05)
    assert head.scalp_faces[top].all()
    back = (middle[:, 2] < head.center[2] - 0.07) & (np.abs(middle[:, 1] - head.center[1]) < 0.03)
    assert back.any() and head.scalp_faces[back].all()


def test_hairline_and_crown_move_the_edges(head):
    """Ask for a higher forehead and a lower nape."""
    front, nape = directions((0, 32)), directions((180, -52))
    bald = Head.load(ASSET, hairline=1.2, crown=2.2)
    assert head.scalp_limit(front)[0] > 0 > bald.scalp_limit(front)[0]
    assert head.scalp_limit(nape)[0] < 0 < bald.scalp_limit(nape)[0]


def test_follow_blends_along_the_neck(head):
    """Check skull, chest and the neck between them."""
    y = head.vertices[:, 1]
    assert (head.follow[y > 0.0] == 1.0).all()
    assert (head.follow[y < -0.15] == 0.0).all()
    between = (head.follow > 0.0) & (head.follow < 1.0)
    assert between.any() and y[between].max() < 0.0


def test_head_and_body_overlap_in_the_neck(head):
    """Walk from the skull down into the chest: no gap, and both solids at one height."""
    path = np.zeros((200, 3))
    path[:, 1] = np.linspace(0.05, -0.18, 200)
    inside, _ = head.head_shape.signed_distance(path)
    below, _ = head.body_shape.signed_distance(path)
    assert (np.minimum(inside, below) < -0.005).all()
    assert ((inside < 0) & (below < 0)).any()
    assert inside[-1] > 0 and below[0] > 0
    alone, _ = head.signed_distance(path, body=False)
    assert np.array_equal(alone, inside)


def test_solids_agree_with_the_mesh(head):
    """Measure the mesh's own vertices, and points off the skull along its normals."""
    distance, _ = head.signed_distance(head.vertices)
    assert np.quantile(np.abs(distance), 0.99) < 0.0025
    skull = head.vertices[:, 1] > head.center[1]
    off = head.vertices[skull] + 0.01 * head.vertex_normals[skull]
    distance, normal = head.signed_distance(off)
    assert np.quantile(np.abs(distance - 0.01), 0.95) < 1e-3
    assert np.median(np.sum(normal * head.vertex_normals[skull], axis=1)) > 0.98


@pytest.mark.parametrize(
    ("units", "up", "front", "turn"),
    [
        ("mm", "z", None, np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])),
        ("in", "x", "y", np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])),
    ],
)
def test_units_and_axes_do_not_change_the_head(head, raw, tmp_path, units, up, front, turn):
    """Write the head in other units and axes and read it back."""
    scale = {"cm": 100.0, "mm": 1000.0, "in": 1 / 0.0254, "dm": 10.0}[units]
    path = save(tmp_path / "turned.obj", raw.vertices @ turn.T * scale, raw.faces)
    other = Head.load(path, units=units, up=up, front=front)
    assert np.abs(other.vertices - head.vertices).max() < 1e-5
    assert np.array_equal(other.scalp_faces, head.scalp_faces)
    back = other.vertices @ other.file_from_head[:3, :3].T + other.file_from_head[:3, 3]
    assert np.abs(back - raw.vertices @ turn.T * scale).max() < 1e-4 * scale


def test_file_offset_leads_back_to_the_file(head, raw):
    """Add the offset to the vertices."""
    assert np.allclose(head.vertices + head.file_offset, raw.vertices)


def test_head_of_a_whole_body_is_found(head, raw, tmp_path):
    """Put a tall body with stretched arms under the bust."""
    trunk = trimesh.creation.box((0.34, 1.3, 0.14))
    trunk.apply_translation((0.0, -0.83, -0.05))
    arms = trimesh.creation.box((1.5, 0.08, 0.08))
    arms.apply_translation((0.0, -0.15, -0.05))
    body = trimesh.util.concatenate([raw, trunk, arms])
    assert isinstance(body, trimesh.Trimesh)
    path = save(tmp_path / "body.ply", body.vertices + np.array([0.0, 1.5, 0.3]), body.faces)
    whole = Head.load(path)
    assert np.abs(whole.file_offset - [0.0, 1.5, 0.3] - head.file_offset).max() < 0.01
    assert abs(whole.radius - head.radius) < 0.005
    scalp = whole.vertices[whole.faces[whole.scalp_faces]].reshape(-1, 3)
    assert scalp[:, 1].min() > -0.05
    arm = np.array([[0.3, -0.15 - head.file_offset[1], -0.05 - head.file_offset[2]]])
    assert whole.signed_distance(arm)[0][0] < 0 < whole.signed_distance(arm, body=False)[0][0]


def test_a_head_without_neck_has_no_body(tmp_path):
    """Read an egg."""
    egg = trimesh.creation.icosphere(subdivisions=3)
    head = Head.load(save(tmp_path / "egg.ply", egg.vertices * [0.08, 0.11, 0.09], egg.faces))
    assert head.body_shape is None and (head.follow == 1.0).all()
    assert head.scalp_faces.any()


def test_own_scalp_faces_and_files_are_taken(head, tmp_path):
    """Give the scalp as rows, as a list in a file, and as vertices of a named mesh."""
    rows = np.flatnonzero(head.scalp_faces)[:40]
    vertices = np.unique(head.faces[rows])
    listed, named = tmp_path / "list.json", tmp_path / "named.json"
    listed.write_text(json.dumps(rows.tolist()))
    named.write_text(json.dumps({"source": "me", "head.glb": {"vertices": vertices.tolist()}}))
    for scalp in (rows, rows.tolist(), listed):
        assert np.array_equal(np.flatnonzero(Head.load(ASSET, scalp=scalp).scalp_faces), rows)
    mask = Head.load(ASSET, scalp=named).scalp_faces
    assert mask[rows].all() and np.isin(head.faces[mask], vertices).all()
    assert Head.load(ASSET, scalp=listed).own_scalp


def test_thumbprint_tells_heads_apart(head):
    """Compare the same head twice, and others."""
    assert Head.load(ASSET).thumbprint() == head.thumbprint()
    others = [Head.load(ASSET, hairline=1.0), Head.sphere(0.1), Head.sphere(0.11)]
    assert len({head.thumbprint(), *(other.thumbprint() for other in others)}) == 4


def expect(words: str, make) -> None:
    """Check that a call raises a HeadError of one line that holds the words."""
    with pytest.raises(HeadError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)
    assert "expected" in str(caught.value)


def test_wrong_arguments_are_refused():
    """Try wrong units, axes, angles and sizes."""
    expect("units", lambda: Head.load(ASSET, units="metre"))
    expect("up", lambda: Head.load(ASSET, up="w"))
    expect("front", lambda: Head.load(ASSET, up="z", front="-z"))
    expect("crown", lambda: Head.load(ASSET, crown=-0.1))
    expect("hairline", lambda: Head.sphere(hairline=float("nan")))
    expect("radius", lambda: Head.sphere(-0.1))
    expect("no scalp", lambda: Head.sphere(crown=0.0))
    expect("no scalp", lambda: Head.load(ASSET, scalp=[]))
    expect("99999", lambda: Head.load(ASSET, scalp=[1, 99999]))
    expect("whole numbers", lambda: Head.load(ASSET, scalp=np.array([0.5])))


def test_wrong_files_are_refused(raw, tmp_path):
    """Try files that are missing, broken, empty, not finite or of absurd size."""
    text = tmp_path / "text.obj"
    text.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\n")
    junk = tmp_path / "junk.glb"
    junk.write_bytes(b"glTF" + bytes(range(40)))
    hole = tmp_path / "nan.obj"
    hole.write_text("v 0 0 0\nv nan 0 0\nv 0 1 0\nf 1 2 3\n")
    expect("no such file", lambda: Head.load(tmp_path / "none.glb"))
    expect("no such file", lambda: Head.load(tmp_path))
    expect("text.obj", lambda: Head.load(text))
    expect("junk.glb", lambda: Head.load(junk))
    expect("vertex 1", lambda: Head.load(hole))
    large = save(tmp_path / "large.ply", raw.vertices * 100, raw.faces)
    expect("--units cm", lambda: Head.load(large))
    expect("--units m", lambda: Head.load(ASSET, units="mm"))
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    expect("broken.json", lambda: Head.load(ASSET, scalp=broken))
    broken.write_text('{"other.obj": {"faces": [1]}}')
    expect("head.glb", lambda: Head.load(ASSET, scalp=broken))
    expect("no such file", lambda: Head.load(ASSET, scalp=tmp_path / "none.json"))
