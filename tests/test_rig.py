"""Rigging: what a file gains, what it keeps, and every reason to refuse."""

import copy
import logging
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

import gltf_scenes as g
import numpy as np
import pytest
import trimesh

import hairkit as hk
from hairkit.cli import run
from hairkit.errors import FileError, RigError
from hairkit.rigging import gates
from hairkit.rigging import rig as rig_of
from hairkit.rigging.bake import exact_weights
from hairkit.rigging.rig import RiggedHair, top_centre

NODES = {
    "plain": {},
    "hundredth": {"scale": [0.01, 0.01, 0.01]},
    "hundredfold": {"scale": [100.0, 100.0, 100.0], "translation": [3.0, -2.0, 1.0]},
    "mirrored": {"scale": [-1.0, 1.0, 1.0], "rotation": [0.0, 0.0, 0.6, 0.8]},
    "uneven": {"scale": [1.0, 3.0, 0.5], "rotation": [0.5, 0.5, 0.5, 0.5]},
    "mirrored matrix": {"matrix": [0, 0, 2, 0, 0, 3, 0, 0, 1, 0, 0, 0, 0.1, 0.2, 0.3, 1]},
}


def rigged_file(folder: Path, options: dict[str, Any] | None = None, **node: Any) -> Path:
    """Rig the small scene and return the file that was written."""
    source = g.write(folder / "in.glb", g.hair_scene(**node))
    return hk.rig(source, **(options or {})).save(folder / "out.glb")


def node_named(data: dict[str, Any], name: str) -> int:
    """Return the row of a node."""
    return [node.get("name") for node in data["nodes"]].index(name)


# ---- what a file gains


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
def test_skinned_mesh_lies_where_the_mesh_did(tmp_path: Path, node: dict[str, Any]):
    """Skin the written file by a twin of ours: no vertex moves by a millionth of the mesh."""
    before, binary = g.hair_scene(**node)
    points = g.numbers(before, binary, 0)
    matrix = g.world(before, 2)
    wanted = points @ matrix[:3, :3].T + matrix[:3, 3]
    data, held = g.unpack(rigged_file(tmp_path, **node))
    place = g.skinned(data, held, node_named(data, "Fringe_skinned"))
    assert np.abs(place - wanted).max() <= 1e-6 * np.ptp(wanted, axis=0).max()


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
def test_sides_of_triangles_stay(tmp_path: Path, node: dict[str, Any]):
    """Compare which way triangles face, as glTF says it: a mirroring node turns them over."""
    before, binary = g.hair_scene(**node)
    matrix = g.world(before, 2)
    data, held = g.unpack(rigged_file(tmp_path, **node))
    row = node_named(data, "Fringe_skinned")
    primitive = data["meshes"][data["nodes"][row]["mesh"]]["primitives"][0]
    wanted = g.numbers(before, binary, 1).reshape(-1, 3)
    if np.linalg.det(matrix[:3, :3]) < 0.0:
        wanted = wanted[:, ::-1]
    got = g.numbers(data, held, primitive["indices"]).reshape(-1, 3)
    assert np.array_equal(got, wanted)


def test_file_gains_joints_and_nothing_else_changes(tmp_path: Path):
    """Take what was added away again: the JSON and every byte of the buffer are as they were."""
    before, binary = g.hair_scene(scale=[2.0, 2.0, 2.0])
    data, held = g.unpack(rigged_file(tmp_path, scale=[2.0, 2.0, 2.0]))
    assert held[: len(binary)] == binary
    nodes = data["nodes"]
    assert [node.get("name") for node in nodes[5:]] == [
        "HairRoot",
        *(f"Hair_S{s}_B{b}" for s in (1, 2, 3) for b in (1, 2, 3)),
        "Fringe_skinned",
    ]
    skin = data["skins"][0]
    assert skin["joints"] == list(range(5, 15)) and skin["skeleton"] == 5
    assert nodes[15] == {"name": "Fringe_skinned", "mesh": 0, "skin": 0, "weights": [0.0]}
    # The mesh's node holds the skeleton now; weights are animated where the mesh is.
    assert nodes[2] == {
        "name": "Fringe",
        "children": [4, 5],
        "scale": [2.0, 2.0, 2.0],
        "extras": {"worn": True},
    }
    targets = [channel["target"] for channel in data["animations"][0]["channels"]]
    assert targets == [{"node": 15, "path": "weights"}, {"node": 2, "path": "translation"}]
    assert data["scenes"] == [{"name": "all", "nodes": [0, 15]}]
    wanted = copy.deepcopy(before)
    attributes = data["meshes"][0]["primitives"][0]["attributes"]
    assert set(attributes) == {"POSITION", "JOINTS_0", "WEIGHTS_0"}
    wanted["meshes"][0]["primitives"][0]["attributes"] = attributes
    for name in ("asset", "scene", "meshes", "materials"):
        assert data[name] == wanted[name]
    for name in ("accessors", "bufferViews"):
        assert data[name][: len(before[name])] == before[name]
    for number in (0, 1, 3, 4):
        assert nodes[number] == before["nodes"][number]


def test_joints_and_weights_are_the_plan(tmp_path: Path):
    """Read joints and weights from the file: the plan's, summing to 1 in f32."""
    source = g.write(tmp_path / "in.glb", g.hair_scene())
    rigged = hk.rig(source, sectors=4, segments=2, max_influences=4)
    data, held = g.unpack(rigged.save(tmp_path / "out.glb"))
    attributes = data["meshes"][0]["primitives"][0]["attributes"]
    joints = g.numbers(data, held, attributes["JOINTS_0"]).astype(int)
    weights = g.numbers(data, held, attributes["WEIGHTS_0"])
    assert (weights.sum(axis=1, dtype=np.float32) == 1.0).all()
    assert (joints[weights == 0.0] == 0).all()
    for row, (bones, shares) in enumerate(zip(*rigged.plan.weights, strict=True)):
        wanted = np.bincount(bones, shares, minlength=9)
        assert np.bincount(joints[row], weights[row], minlength=9) == pytest.approx(
            wanted, abs=1e-6
        )
    assert rigged.bone_names == [data["nodes"][j]["name"] for j in data["skins"][0]["joints"]]


def test_turning_a_joint_turns_what_hangs_on_it(tmp_path: Path):
    """Turn one chain's first joint: its chain's vertices move, the others and the root's stay."""
    path = rigged_file(tmp_path, scale=[2.0, 2.0, 2.0])
    data, held = g.unpack(path)
    row = node_named(data, "Fringe_skinned")
    before = g.skinned(data, held, row)
    data["nodes"][node_named(data, "Hair_S2_B1")]["rotation"] = [0.0, 0.0, 0.6, 0.8]
    moved = np.linalg.norm(g.skinned(data, held, row) - before, axis=1) > 1e-9
    chain = hk.rig(tmp_path / "in.glb").plan.chain_of_vertices()
    assert moved[chain == 1].mean() > 0.9 and not moved[chain != 1].any()


def test_same_place_has_same_weights():
    """Split a vertex as at a seam of a texture: both halves move alike."""
    points, faces = g.card_mesh()
    twice = np.concatenate([points, points[faces[5]]])
    split = faces.copy()
    split[5] = np.arange(3) + len(points)
    made = hk.rig((twice, split), max_influences=4).plan.weights
    for corner, own in zip(faces[5], split[5], strict=True):
        assert np.array_equal(made.indices[corner], made.indices[own])
        assert np.array_equal(made.weights[corner], made.weights[own])


def test_weights_are_exact_with_hundreds_of_bones():
    """Hold more than 256 bones: joints become two bytes wide, weights still sum to 1."""
    points = np.random.default_rng(3).normal(size=(2000, 3))
    made = hk.plan(points, root=(0, 4, 0), sectors=40, segments=9, max_influences=4)
    joints, weights = exact_weights(made)
    assert joints.dtype == np.uint16 and joints.max() > 255
    assert (weights.sum(axis=1, dtype=np.float32) == 1.0).all()


def test_default_root_and_axis_follow_the_scene(tmp_path: Path):
    """Turn the node: the default axis is still down in the scene, the root on top."""
    plain = hk.rig(g.write(tmp_path / "a.glb", g.hair_scene()))
    points, _ = g.card_mesh()
    low, high = points.min(axis=0), points.max(axis=0)
    top = [(low[0] + high[0]) / 2, high[1], (low[2] + high[2]) / 2]
    assert plain.plan.positions[0] == pytest.approx(top, abs=1e-6)
    # A quarter turn about X: what is up in the scene is -Z in the mesh.
    node = {"rotation": [2**-0.5, 0.0, 0.0, 2**-0.5]}
    turned = hk.rig(g.write(tmp_path / "b.glb", g.hair_scene(**node)))
    assert turned.plan.positions[0][2] == pytest.approx(low[2], abs=1e-6)
    matrix = turned.into_scene
    places = turned.plan.positions @ matrix[:3, :3].T + matrix[:3, 3]
    assert places[:, 1].argmax() == 0
    assert top_centre(points, np.array([0.0, -1.0, 0.0])) == pytest.approx(top)


# ---- which mesh


def test_finds_the_hair_by_material_name_or_as_told(tmp_path: Path):
    """Find it by a material's name; take another when told; say what there is when unclear."""
    scene, binary = g.hair_scene()
    path = g.write(tmp_path / "in.glb", (scene, binary))
    assert hk.rig(path).name == "Fringe"
    assert hk.rig(path, mesh="locks").name == "Fringe"
    assert hk.rig(path, mesh="FRINGE").name == "Fringe"
    with pytest.raises(RigError, match=r"expected one of 'Fringe', 'Face'") as error:
        hk.rig(path, mesh="frings")
    assert error.value.kind == "no such mesh" and "did you mean" in error.value.reason
    scene["materials"][0]["name"] = "brown"
    with pytest.raises(RigError, match="no mesh with 'hair' in its name"):
        hk.rig(g.write(path, (scene, binary)))
    scene["nodes"][3]["name"], scene["meshes"][0]["name"] = "hair a", "Hair b"
    with pytest.raises(RigError, match="several meshes of hair"):
        hk.rig(g.write(path, (scene, binary)))


def test_other_users_of_a_mesh_keep_it(tmp_path: Path):
    """Show the same mesh at two nodes: the other one's mesh gets no joints."""
    scene, binary = g.hair_scene()
    scene["nodes"][3]["mesh"] = 0
    out = hk.rig(g.write(tmp_path / "in.glb", (scene, binary)), mesh="Fringe")
    data, _ = g.unpack(out.save(tmp_path / "out.glb"))
    other = data["meshes"][data["nodes"][3]["mesh"]]
    assert set(other["primitives"][0]["attributes"]) == {"POSITION"}
    mine = data["meshes"][data["nodes"][-1]["mesh"]]
    assert {"JOINTS_0", "WEIGHTS_0"} <= set(mine["primitives"][0]["attributes"])


def test_skinned_hair_is_left_alone_unless_told(tmp_path: Path):
    """Rig twice: refused; with replace_skin the new root hangs where the old one did."""
    first = rigged_file(tmp_path, scale=[2.0, 2.0, 2.0])
    with pytest.raises(RigError, match="has a skin of 10 joints already") as error:
        hk.rig(first)
    assert error.value.kind == "already skinned"
    again = hk.rig(first, replace_skin=True, sectors=2).save(tmp_path / "again.glb")
    data, held = g.unpack(again)
    before, binary = g.unpack(first)
    row = node_named(data, "Fringe_skinned")
    place = g.skinned(data, held, len(data["nodes"]) - 1)
    assert "skin" not in data["nodes"][row]
    wanted = g.skinned(before, binary, row)
    assert np.abs(place - wanted).max() <= 1e-6 * np.ptp(wanted, axis=0).max()
    skin = data["skins"][-1]
    old_root = node_named(data, "HairRoot")
    assert skin["joints"][0] in data["nodes"][old_root]["children"]


# ---- other ways in and out


def test_reads_other_mesh_files_and_arrays(tmp_path: Path):
    """Rig the same mesh from OBJ, PLY, STL, trimesh and arrays: the same bones."""
    points, faces = g.card_mesh()
    mesh = trimesh.Trimesh(points, faces, process=False)
    wanted = hk.rig((points, faces)).plan
    sources: list[Any] = [mesh, trimesh.Scene(mesh)]
    for ending in ("obj", "ply", "stl", "glb"):
        mesh.export(str(tmp_path / f"hair.{ending}"))
        sources.append(tmp_path / f"hair.{ending}")
    for source in sources:
        made = hk.rig(source).plan
        assert made.names == wanted.names
        if str(source).endswith("stl"):
            # It lists each triangle's corners: the middles of bands weigh them otherwise.
            continue
        assert made.positions == pytest.approx(wanted.positions, abs=1e-6)


def test_gltf_with_files_beside_it_becomes_one_file(tmp_path: Path):
    """Read a .gltf whose buffer and picture lie beside it; what is written stands alone."""
    scene, binary = g.hair_scene()
    scene["buffers"][0]["uri"] = "data%20of%20it.bin"
    scene["images"] = [{"uri": "sub/dot.png", "name": "dot"}]
    (tmp_path / "data of it.bin").write_bytes(binary)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "dot.png").write_bytes(b"\x89PNG not really")
    path = tmp_path / "in.gltf"
    path.write_text(g.json.dumps(scene))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    hair = hk.rig(path)
    data, held = g.unpack(hair.save(elsewhere / "out.glb"))
    assert held[: len(binary)] == binary and "uri" not in data["buffers"][0]
    assert data["images"][0]["uri"].startswith("data:image/png;base64,")
    text = hair.save(elsewhere / "out.gltf")
    again = hk.rig(text, replace_skin=True)
    assert again.plan.positions == pytest.approx(hair.plan.positions, abs=1e-6)


def test_reads_packed_and_sparse_positions(tmp_path: Path):
    """Hold positions as shares of one in two bytes, strided, some of them sparse."""
    points, faces = g.card_mesh()
    scale = 2.0
    packed = np.round(points / scale * 32767).astype("<i2")
    moved = packed.copy()
    moved[7] = 0
    strided = np.zeros((len(points), 4), "<i2")
    strided[:, :3] = moved
    order = faces.astype("<u2")
    binary = strided.tobytes() + order.tobytes()
    rest = len(binary)
    binary += np.array([7], "<u2").tobytes() + b"\0\0" + packed[7].tobytes()
    views = [(0, strided.nbytes), (strided.nbytes, order.nbytes), (rest, 2), (rest + 4, 6)]
    data = {
        "asset": {"version": "2.0"},
        "buffers": [{"byteLength": len(binary)}],
        "bufferViews": [{"buffer": 0, "byteOffset": a, "byteLength": n} for a, n in views],
        "accessors": [
            {
                "bufferView": 0,
                "componentType": 5122,
                "normalized": True,
                "count": len(points),
                "type": "VEC3",
                "sparse": {
                    "count": 1,
                    "indices": {"bufferView": 2, "componentType": 5123},
                    "values": {"bufferView": 3},
                },
            },
            {"bufferView": 1, "componentType": 5123, "count": faces.size, "type": "SCALAR"},
        ],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "nodes": [{"mesh": 0, "scale": [scale] * 3}],
        "scenes": [{"nodes": [0]}],
        "extensionsUsed": ["KHR_mesh_quantization"],
        "extensionsRequired": ["KHR_mesh_quantization"],
    }
    data["bufferViews"][0]["byteStride"] = 8
    path = tmp_path / "packed.glb"
    path.write_bytes(g.glb(data, binary))
    hair = hk.rig(path)
    assert hair.vertices * scale == pytest.approx(points, abs=1e-4)
    assert hair.faces == pytest.approx(faces)


@pytest.mark.parametrize(("mode", "count"), [(5, 3), (6, 3), (4, 1)])
def test_reads_strips_and_fans(tmp_path: Path, mode: int, count: int):
    """Draw five vertices as a strip, a fan and as they are."""
    points = np.array([[0, 1, 0], [1, 0.5, 0], [0, 0, 0.5], [1, -0.5, 0], [0, -1, 0]], np.float32)
    data, binary = g.accessors([(points, "VEC3")])
    data["meshes"] = [{"primitives": [{"attributes": {"POSITION": 0}, "mode": mode}]}]
    data |= {"asset": {"version": "2.0"}, "nodes": [{"mesh": 0}], "scenes": [{"nodes": [0]}]}
    assert len(hk.rig(g.write(tmp_path / "in.glb", (data, binary))).faces) == count


# ---- refusals


def refused(kind: str, source: Any, **options: Any) -> RigError:
    """Rig what must be refused and return the error."""
    with pytest.raises(RigError) as error:
        hk.rig(source, **options)
    assert error.value.kind == kind, error.value
    assert "\n" not in str(error.value)
    return error.value


def test_mesh_without_vertices_is_refused_before_any_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Offer nothing: the seed's reason, and nothing is tried."""
    gates.forget()
    monkeypatch.setattr(gates, "try_bake", lambda: pytest.fail("probed"))
    scene, binary = g.hair_scene()
    scene["meshes"][0]["primitives"] = []
    path = g.write(tmp_path / "in.glb", (scene, binary))
    for source in (path, (np.zeros((0, 3)), np.zeros((0, 3), int))):
        mesh = {"mesh": "Fringe"} if source is path else {}
        assert refused("no vertices", source, **mesh).reason == "the mesh has no vertices"
    scene["nodes"] = [{"name": "empty"}]
    scene["scenes"], scene["animations"] = [{"nodes": [0]}], []
    error = refused("no vertices", g.write(path, (scene, binary)))
    assert str(error) == f"{path}: the mesh has no vertices"


def test_probe_runs_once_and_want_of_memory_is_no_answer(monkeypatch: pytest.MonkeyPatch):
    """Count the probes: one that works or fails is kept, one without memory is tried again."""
    calls = []

    def probe(outcome: Exception | None) -> None:
        def tried() -> None:
            calls.append(1)
            if outcome is not None:
                raise outcome

        monkeypatch.setattr(gates, "try_bake", tried)

    mesh = g.card_mesh()
    gates.forget()
    probe(MemoryError())
    assert not hk.supported() and not hk.supported() and len(calls) == 2
    assert refused("unsupported", mesh).reason == "Unsupported"
    probe(None)
    assert hk.supported() and hk.supported() and len(calls) == 4
    gates.forget()
    probe(RigError("lost skin", "gone"))
    assert not hk.supported() and not hk.supported() and len(calls) == 5
    assert refused("unsupported", mesh).reason == "Unsupported"
    gates.forget()
    monkeypatch.undo()
    assert hk.supported()


NOWHERE = np.full((3, 3), 1.0)


@pytest.mark.parametrize(
    ("kind", "mesh", "options", "says"),
    [
        ("not finite", (NOWHERE * np.nan, [[0, 1, 2]]), {}, r"vertex 0 is \[nan"),
        ("no vertices", ([[0.0, 1.0, 0.0]], np.zeros((0, 3), int)), {}, "faces"),
        ("above root", (NOWHERE, [[0, 1, 2]]), {}, "all 3 vertices are at or above the root"),
        ("above root", g.card_mesh(), {"root": (0, -9, 0)}, "at or above the root"),
        ("bad option", g.card_mesh(), {"axis": (0, 0, 0)}, "zero length"),
        ("bad option", g.card_mesh(), {"axis": (0, float("inf"), 0)}, "axis"),
        ("bad option", g.card_mesh(), {"root": (0, 1)}, "root"),
        ("bad option", g.card_mesh(), {"sectors": 0}, "sectors: expected a whole number"),
        ("bad option", g.card_mesh(), {"segments": 1000}, "segments: expected a whole number"),
        ("bad option", g.card_mesh(), {"strategy": "spirals"}, "strategy"),
        ("unreadable", (NOWHERE, [[0, 1, 3]]), {}, "rows below 3"),
        ("bad option", 7, {}, "source"),
    ],
)
def test_meshes_and_options_that_make_no_skeleton(
    kind: str, mesh: Any, options: dict[str, Any], says: str
):
    """Refuse each with its reason."""
    assert re.search(says, refused(kind, mesh, **options).reason)


def test_one_vertex_and_no_triangles(tmp_path: Path):
    """Offer a file with a single vertex."""
    data, binary = g.accessors([(np.zeros((1, 3), np.float32), "VEC3")])
    data["meshes"] = [{"primitives": [{"attributes": {"POSITION": 0}, "mode": 0}]}]
    data |= {"asset": {"version": "2.0"}, "nodes": [{"mesh": 0}], "scenes": [{"nodes": [0]}]}
    error = refused("no vertices", g.write(tmp_path / "in.glb", (data, binary)))
    assert error.reason == "the mesh has no triangles, only 1 vertices"


def broken(name: str, folder: Path) -> Path:
    """Write a file that is broken in one way."""
    scene, binary = g.hair_scene()
    path = folder / ("in.gltf" if name in ("climbs", "absolute", "link", "web") else "in.glb")
    if name == "huge count":
        scene["accessors"][0]["count"] = 2**32 - 1
    elif name == "huge count without data":
        scene["accessors"][0] = {"componentType": 5126, "count": 2**28, "type": "VEC3"}
    elif name == "loop":
        scene["nodes"][4]["children"] = [0]
    elif name == "two parents":
        scene["nodes"][3]["children"] = [4]
    elif name == "index":
        scene["nodes"][2]["mesh"] = 9
    elif name == "kinds":
        scene["nodes"][2]["extensions"] = [1]
    elif name == "version":
        scene["asset"]["version"] = "1.0"
    elif name == "face":
        scene["accessors"][1]["componentType"] = 5126
    elif name == "draco":
        scene["meshes"][0]["primitives"][0]["extensions"] = {"KHR_draco_mesh_compression": {}}
    if path.suffix == ".gltf":
        outside = folder.parent / "outside.bin"
        outside.write_bytes(binary)
        (folder / "link.bin").symlink_to(outside)
        uris = {"climbs": "../outside.bin", "absolute": str(outside), "link": "link.bin"}
        scene["buffers"][0]["uri"] = uris.get(name, "https://example.org/a.bin")
        path.write_text(g.json.dumps(scene))
        return path
    return g.write(path, (scene, binary))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("huge count", "do not fit into bufferViews"),
        ("huge count without data", "more than the file's size"),
        ("loop", "ancestor|two parents"),
        ("two parents", "two parents"),
        ("index", "expected an index below 2"),
        ("kinds", r"nodes\[2\].extensions: expected an object"),
        ("version", "expected glTF 2.0"),
        ("face", "expected whole numbers"),
        ("draco", "KHR_draco_mesh_compression"),
        ("climbs", "expected a file in its own folder"),
        ("absolute", "expected a file in its own folder"),
        ("link", "expected a file in its own folder"),
        ("web", "expected a file in its own folder"),
    ],
)
def test_broken_files(tmp_path: Path, name: str, says: str):
    """Refuse each with one line, and write nothing."""
    folder = tmp_path / "files"
    folder.mkdir()
    path = broken(name, folder)
    out = tmp_path / "out.glb"
    with pytest.raises(RigError, match=says) as error:
        hk.rig(path, mesh=None if name == "web" else "Fringe")
    assert str(path) in str(error.value)
    assert run(["rig", str(path), "-o", str(out), "--mesh", "Fringe"]) == 2
    assert not out.exists()


def test_every_cut_of_a_file_is_refused(tmp_path: Path):
    """Cut a file short at many places."""
    raw = g.glb(*g.hair_scene())
    path = tmp_path / "cut.glb"
    for size in [*range(0, 40), *range(40, len(raw), 97), len(raw) - 1]:
        path.write_bytes(raw[:size])
        with pytest.raises(RigError):
            hk.rig(path)


def test_changed_bytes_give_an_error_or_a_rig(tmp_path: Path):
    """Change a few bytes at random, in the JSON more than elsewhere: nothing else may happen."""
    raw = g.glb(*g.hair_scene())
    text = int.from_bytes(raw[12:16], "little")
    rng = np.random.default_rng(11)
    path = tmp_path / "changed.glb"
    worked = 0
    for _ in range(400):
        data = bytearray(raw)
        for at in rng.integers(20, 20 + text if rng.random() < 0.8 else len(raw), 3):
            data[at] = rng.choice([*b'0123456789-.[]{},":etrufalsn ', 0, 255])
        path.write_bytes(bytes(data))
        try:
            hk.rig(path, mesh="Fringe")
            worked += 1
        except RigError:
            pass
    assert 0 < worked < 400


# ---- permissions


def avatar(version: int, **meta: Any) -> tuple[dict[str, Any], bytes]:
    """Return the small scene as an avatar with a licence."""
    scene, binary = g.hair_scene()
    name = "VRMC_vrm" if version else "VRM"
    scene["extensions"] = {name: {"meta": meta}}
    scene["extensionsUsed"] = [name]
    return scene, binary


@pytest.mark.parametrize(
    ("version", "meta", "allowed", "says"),
    [
        (1, {}, False, "modification: prohibited"),
        (1, {"modification": "prohibited"}, False, "modification: prohibited"),
        (1, {"modification": "allowModification"}, True, "allowRedistribution"),
        (
            1,
            {"modification": "allowModificationRedistribution", "allowRedistribution": True},
            True,
            "",
        ),
        (0, {"licenseName": "CC_BY_NC_ND"}, False, "CC_BY_NC_ND"),
        (0, {"licenseName": "CC_BY_ND"}, False, "CC_BY_ND"),
        (0, {"licenseName": "CC_BY"}, True, ""),
        (0, {"licenseName": "Redistribution_Prohibited"}, True, "Redistribution_Prohibited"),
    ],
)
def test_licences_of_avatars(
    tmp_path: Path, version: int, meta: dict[str, Any], allowed: bool, says: str
):
    """Ask whether an avatar may be edited, and rig it."""
    path = g.write(tmp_path / "in.vrm", avatar(version, **meta))
    answer = hk.may_edit(path)
    assert bool(answer) is allowed and says in answer.reason and (says or not answer.reason)
    if allowed:
        hair = hk.rig(path)
        assert hair.note == answer.reason
        data, _ = g.unpack(hair.save(tmp_path / "out.vrm"))
        assert data["extensions"] == avatar(version, **meta)[0]["extensions"]
    else:
        assert refused("not permitted", path).reason == answer.reason


def test_avatars_expressions_follow_the_mesh(tmp_path: Path):
    """Bind an expression and first person to the hair's node: they go along to the new one."""
    scene, binary = avatar(1, modification="allowModification")
    scene["extensions"]["VRMC_vrm"] |= {
        "firstPerson": {"meshAnnotations": [{"node": 2, "type": "auto"}, {"node": 3}]},
        "expressions": {
            "preset": {"happy": {"morphTargetBinds": [{"node": 2, "index": 0, "weight": 1.0}]}},
            "custom": {"x": {"morphTargetBinds": [{"node": 3, "index": 0}]}},
        },
    }
    data, _ = g.unpack(
        hk.rig(g.write(tmp_path / "in.vrm", (scene, binary))).save(tmp_path / "out.vrm")
    )
    new = node_named(data, "Fringe_skinned")
    made = data["extensions"]["VRMC_vrm"]
    assert [row["node"] for row in made["firstPerson"]["meshAnnotations"]] == [new, 3]
    assert made["expressions"]["preset"]["happy"]["morphTargetBinds"][0]["node"] == new
    assert made["expressions"]["custom"]["x"]["morphTargetBinds"][0]["node"] == 3


def test_read_only_files_are_read_but_not_replaced(tmp_path: Path):
    """Rig a file that nobody may write to: into another one only."""
    path = g.write(tmp_path / "in.glb", g.hair_scene())
    raw = path.read_bytes()
    os.chmod(path, stat.S_IRUSR | stat.S_IRGRP)
    assert not hk.may_edit(path) and "read-only" in hk.may_edit(path).reason
    hair = hk.rig(path)
    hair.save(tmp_path / "out.glb")
    with pytest.raises(RigError, match="read-only") as error:
        hair.save(path)
    assert error.value.kind == "not permitted" and path.read_bytes() == raw
    assert run(["rig", str(path), "-o", str(path)]) == 2 and path.read_bytes() == raw
    assert not hk.may_edit(tmp_path / "missing.glb")


# ---- outputs


def test_output_that_lost_its_skin_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Let what is written lose its skin, its weights, its joints or its end: nothing is left."""
    path = g.write(tmp_path / "in.glb", g.hair_scene())
    hair = hk.rig(path)
    whole = hair.to_bytes

    def without(change: Any) -> Any:
        def written(ending: str) -> bytes:
            document = hair.document.copy()
            change(document.json)
            return document.to_glb()

        return written

    changes: list[Any] = [
        without(lambda d: d["nodes"][15].pop("skin")),
        without(lambda d: d["meshes"][0]["primitives"][0]["attributes"].pop("WEIGHTS_0")),
        without(lambda d: d["nodes"][7].update(name="x")),
        without(lambda d: d["nodes"][7].update(translation=[0.0, 1.0, 0.0])),
        lambda ending: whole(ending)[:-8],
    ]
    for number, change in enumerate(changes):
        monkeypatch.setattr(RiggedHair, "to_bytes", lambda _, ending, c=change: c(ending))
        with pytest.raises(RigError) as error:
            hair.save(tmp_path / "out.glb")
        assert error.value.kind == "lost skin", number
        assert sorted(p.name for p in tmp_path.iterdir()) == ["in.glb"]


def test_failed_rig_changes_no_file(tmp_path: Path):
    """Fail on top of a file that is there: it stays, and nothing lies beside it."""
    path = g.write(tmp_path / "in.glb", g.hair_scene())
    out = tmp_path / "out.glb"
    out.write_bytes(b"mine")
    assert run(["rig", str(path), "-o", str(out), "--segments", "1000"]) == 2
    assert out.read_bytes() == b"mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.glb", "out.glb"]


def test_want_of_memory_is_a_reason(monkeypatch: pytest.MonkeyPatch):
    """Run out of memory in the middle."""
    hk.supported()
    module = sys.modules["hairkit.rigging.rig"]
    monkeypatch.setattr(module, "baked", lambda *_, **__: (_ for _ in ()).throw(MemoryError()))
    refused("out of memory", g.card_mesh())


def test_each_kind_of_failure_is_logged_once(caplog: pytest.LogCaptureFixture):
    """Fail twice in one way and once in another: two lines."""
    module = sys.modules["hairkit.rigging.rig"]
    module._told.clear()
    with caplog.at_level(logging.WARNING, logger="hairkit.rigging"):
        bad: list[dict[str, Any]] = [{"sectors": 0}, {"segments": 0}, {"root": (0, -9, 0)}]
        for options in bad:
            with pytest.raises(RigError):
                rig_of(g.card_mesh(), **options)
    assert [next(iter(record.args or ())) for record in caplog.records] == [
        "bad option",
        "above root",
    ]


# ---- the command line


def test_command_writes_all_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Run it: the file, the plan as JSON and the picture."""
    path = g.write(tmp_path / "in.glb", g.hair_scene())
    files = [tmp_path / name for name in ("out.glb", "plan.json", "plan.png")]
    line = ["rig", str(path), "-o", str(files[0]), "--sectors", "4", "--segments", "2"]
    line += ["--plan-json", str(files[1]), "--picture", str(files[2]), "--axis", "0", "-1", "0"]
    assert run(line) == 0
    assert all(file.exists() for file in files)
    said = capsys.readouterr().out
    assert "Fringe, 84 vertices, 9 bones in 4 chains" in said
    made = g.json.loads(files[1].read_text())
    assert [bone["name"] for bone in made["bones"]][:3] == ["HairRoot", "Hair_S1_B1", "Hair_S1_B2"]
    assert len(made["weights"]["indices"]) == 84


def test_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Ask for nothing, for a wrong ending, for a file that is not there."""
    path = g.write(tmp_path / "in.glb", g.hair_scene())
    for line, says in (
        (["rig", str(path)], "nothing to write"),
        (["rig", str(path), "-o", str(tmp_path / "out.fbx")], ".fbx"),
        (["rig", str(tmp_path / "no.glb"), "-o", str(tmp_path / "a.glb")], "no such file"),
        (["rig", str(path), "-o", str(tmp_path / "a.glb"), "--picture", "x.jpg"], ".jpg"),
    ):
        assert run(line) == 2
        error = capsys.readouterr().err
        assert says in error and error.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["in.glb"]


def test_files_that_are_no_mesh(tmp_path: Path):
    """Offer an unknown ending, a folder, and text by the name of a mesh."""
    (tmp_path / "a.fbx").write_text("x")
    (tmp_path / "a.obj").write_text("hello")
    (tmp_path / "a.glb").write_text("hello")
    for name in ("a.fbx", "a.obj", "a.glb", "."):
        with pytest.raises(RigError) as error:
            hk.rig(tmp_path / name)
        assert error.value.kind in ("unreadable", "no vertices")
    with pytest.raises(FileError):
        hk.rig(g.card_mesh()).save(tmp_path / "nowhere" / "out.glb")
