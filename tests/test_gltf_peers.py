"""The tests' own way to ask node programs about glTF files, on files made byte by byte."""

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import gltf_peers
import numpy as np
import pytest
from gltf_peers import (
    Job,
    all_posed_by_three,
    complaints,
    posed_by_three,
    require_node,
    validator_report,
    validator_reports,
)
from scipy.spatial.transform import Rotation

POSITIONS = np.array([[0, 0, 0], [0.3, 0.1, 0], [0.1, 1.5, 0.2]], dtype=np.float32)
WEIGHTS = np.array([[1, 0, 0, 0], [0.75, 0.25, 0, 0], [0.25, 0.75, 0, 0]], dtype=np.float32)
# A slot of no weight has to name joint 0: the validator warns of any other.
JOINTS = np.array([[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]], dtype=np.uint8)
# Of the joints' nodes: each one's place in its parent.
ROOT = np.array([0.2, 0.5, -0.1])
TIP = np.array([0.0, 1.0, 0.0])
# three.js strips "." from the first name, and then takes the second for a double of it.
NAMES = ("bone.001", "bone001")
TURN = Rotation.from_euler("xyz", [0.3, -0.5, 0.9])
BEND = Rotation.from_euler("xyz", [-1.1, 0.2, 0.4])


def png() -> bytes:
    """Return a picture of one white pixel."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        check = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixel = zlib.compress(b"\x00\xff")
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")
    )


def skinned() -> tuple[dict[str, Any], bytes]:
    """Return a triangle on two joints, with a picture: a file's JSON and its buffer."""
    inverses = np.tile(np.eye(4, dtype=np.float32), (2, 1, 1))
    inverses[0, :3, 3] = -ROOT
    inverses[1, :3, 3] = -ROOT - TIP
    # The file keeps a matrix's columns one after another.
    pieces = [
        POSITIONS.tobytes(),
        WEIGHTS.tobytes(),
        JOINTS.tobytes(),
        np.array([0, 1, 2, 0], dtype=np.uint16).tobytes(),
        inverses.transpose(0, 2, 1).tobytes(),
        np.zeros((3, 2), dtype=np.float32).tobytes(),
        png(),
    ]
    views: list[dict[str, Any]] = []
    buffer = b""
    for piece in pieces:
        views.append({"buffer": 0, "byteOffset": len(buffer), "byteLength": len(piece)})
        buffer += piece + b"\0" * (-len(piece) % 4)
    for i in (0, 1, 2, 5):
        views[i]["target"] = 34962
    views[3]["target"] = 34963
    low, high = POSITIONS.min(axis=0).tolist(), POSITIONS.max(axis=0).tolist()
    tree = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0, 1]}],
        "nodes": [
            {"name": "hair", "mesh": 0, "skin": 0},
            {"name": NAMES[0], "translation": ROOT.tolist(), "children": [2]},
            {"name": NAMES[1], "translation": TIP.tolist()},
        ],
        "skins": [{"joints": [1, 2], "inverseBindMatrices": 4}],
        "meshes": [
            {
                "primitives": [
                    {
                        "attributes": {
                            "POSITION": 0,
                            "WEIGHTS_0": 1,
                            "JOINTS_0": 2,
                            "TEXCOORD_0": 5,
                        },
                        "indices": 3,
                        "material": 0,
                    }
                ]
            }
        ],
        "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}],
        "textures": [{"source": 0}],
        "images": [{"bufferView": 6, "mimeType": "image/png"}],
        "accessors": [
            {
                "bufferView": 0,
                "componentType": 5126,
                "count": 3,
                "type": "VEC3",
                "min": low,
                "max": high,
            },
            {"bufferView": 1, "componentType": 5126, "count": 3, "type": "VEC4"},
            {"bufferView": 2, "componentType": 5121, "count": 3, "type": "VEC4"},
            {"bufferView": 3, "componentType": 5123, "count": 3, "type": "SCALAR"},
            {"bufferView": 4, "componentType": 5126, "count": 2, "type": "MAT4"},
            {"bufferView": 5, "componentType": 5126, "count": 3, "type": "VEC2"},
        ],
        "bufferViews": views,
        "buffers": [{"byteLength": len(buffer)}],
    }
    return tree, buffer


def write(path: Path, tree: dict[str, Any], buffer: bytes) -> Path:
    """Write a GLB file."""
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text
    chunks += struct.pack("<II", len(buffer), 0x004E4942) + buffer
    path.write_bytes(struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks)
    return path


def blended(root: Rotation, tip: Rotation) -> np.ndarray:
    """Return the triangle's vertices by linear blend skinning, shape (3, 3)."""
    points = POSITIONS.astype(np.float64)
    by_root = root.apply(points - ROOT) + ROOT
    by_tip = root.apply(tip.apply(points - ROOT - TIP) + TIP) + ROOT
    return WEIGHTS[:, :1] * by_root + WEIGHTS[:, 1:2] * by_tip


def test_valid_file_passes(tmp_path: Path):
    """Validate a sound file: it has nothing wrong, and the validator has seen the skin."""
    report = validator_report(write(tmp_path / "sound.glb", *skinned()))
    assert complaints(report) == []
    assert (report["numErrors"], report["numWarnings"]) == (0, 0)
    assert report["validatorVersion"] == "2.0.0-dev.3.10"
    assert report["info"]["hasSkins"]
    assert report["info"]["totalVertexCount"] == 3


def test_broken_files_are_reported(tmp_path: Path):
    """Validate files with one fault each, in one run; each is found at its place."""
    files = []
    for name in ("range", "moved", "beside"):
        tree, buffer = skinned()
        if name == "range":
            tree["accessors"][1]["count"] = 300
        elif name == "moved":
            tree["nodes"][0]["translation"] = [0, 1, 0]
        else:
            tree["images"][0] = {"uri": "../picture.png"}
        folder = tmp_path / name
        folder.mkdir()
        files.append(write(folder / "file.glb", tree, buffer))
    (tmp_path / "picture.png").write_bytes(png())

    found = [
        {(each["code"], each["severity"], each["pointer"]) for each in report["issues"]}
        for report in validator_reports(files)
    ]
    assert ("ACCESSOR_TOO_LONG", "error", "/accessors/1") in found[0]
    assert ("NODE_SKINNED_MESH_LOCAL_TRANSFORMS", "warning", "/nodes/0") in found[1]
    # The picture is there, but not in the file's own folder.
    assert ("IO_ERROR", "error", "/images/0/uri") in found[2]


def test_files_of_several_parts_are_read_from_their_folder(tmp_path: Path):
    """Validate a .gltf file with its buffer beside it, then with a cut one."""
    tree, buffer = skinned()
    tree["buffers"][0]["uri"] = "the%20buffer.bin"
    path = tmp_path / "parts.gltf"
    path.write_text(json.dumps(tree), encoding="utf-8")
    (tmp_path / "the buffer.bin").write_bytes(buffer)
    assert complaints(validator_report(path)) == []
    (tmp_path / "the buffer.bin").write_bytes(buffer[:-4])
    assert "BUFFER_BYTE_LENGTH_MISMATCH" in complaints(validator_report(path))[0]


def test_no_file_is_a_failure(tmp_path: Path):
    """Ask about a file that is not there, and about one that is not glTF."""
    with pytest.raises(AssertionError, match=r"none\.glb"):
        validator_report(tmp_path / "none.glb")
    (tmp_path / "text.glb").write_text("no mesh", encoding="utf-8")
    with pytest.raises(AssertionError, match="not a GLB file"):
        posed_by_three(tmp_path / "text.glb")


def test_poses_are_linear_blend_skinning(tmp_path: Path):
    """Pose a file whose joints' names three.js changes, and compare with NumPy."""
    path = write(tmp_path / "sound.glb", *skinned())
    still = Rotation.identity()
    poses = [
        ({}, blended(still, still)),
        ({NAMES[1]: BEND.as_quat()}, blended(still, BEND)),
        ({NAMES[0]: TURN.as_quat(), 2: BEND.as_quat()}, blended(TURN, BEND)),
        # The earlier poses are gone.
        ({NAMES[0]: TURN.as_quat()}, blended(TURN, still)),
    ]
    (positions,) = posed_by_three(path, [pose for pose, _ in poses])
    assert positions.shape == (4, 3, 3)
    assert positions.dtype == np.float64
    np.testing.assert_allclose(positions, [expected for _, expected in poses], atol=1e-5)
    np.testing.assert_allclose(positions[0], POSITIONS, atol=1e-6)


def test_many_primitives_morphs_and_parents(tmp_path: Path):
    """Pose two primitives whose node has a child and a moved parent, and a morph target at one."""
    tree, buffer = skinned()
    mesh = tree["meshes"][0]
    first = mesh["primitives"][0]
    first["targets"] = [{"POSITION": 0}]
    mesh["primitives"].append({**first, "attributes": {**first["attributes"]}})
    del mesh["primitives"][1]["material"]
    mesh["weights"] = [1.0]
    tree["nodes"][0] |= {"translation": [3, 0, 0], "children": [4]}
    tree["nodes"] += [{"children": [0], "scale": [2, 2, 2]}, {"mesh": 0, "skin": 0, "name": "two"}]
    tree["scenes"][0]["nodes"] = [3, 1]
    path = write(tmp_path / "many.glb", tree, buffer)
    expected = blended(TURN, BEND)
    pose = {NAMES[0]: TURN.as_quat(), NAMES[1]: BEND.as_quat()}
    for found in all_posed_by_three([Job(path, [pose], "hair"), Job(path, [pose], "two")]):
        assert len(found) == 2
        for positions in found:
            np.testing.assert_allclose(positions, [expected], atol=1e-5)


@pytest.mark.parametrize(
    ("poses", "node", "message"),
    [
        ([{"bone": [0, 0, 0, 1]}], "hair", "0 nodes are called bone"),
        ([{}], NAMES[0], "has no skin"),
        ([{NAMES[0]: [0, 0, 0, 2]}], "hair", "not of length 1"),
        ([{NAMES[0]: [0, 0, 1]}], "hair", "a quaternion is"),
    ],
)
def test_wrong_poses_are_refused(poses: Any, node: str, message: str, tmp_path: Path):
    """Ask for joints and meshes that the file does not have, and for no rotations."""
    with pytest.raises(AssertionError, match=message):
        posed_by_three(write(tmp_path / "sound.glb", *skinned()), poses, node)


def test_words_of_threes_are_a_failure(tmp_path: Path):
    """Pose a file of which three.js leaves something out: the test must hear of it."""
    tree, buffer = skinned()
    tree["extensionsUsed"] = tree["extensionsRequired"] = ["MADE_UP"]
    with pytest.raises(AssertionError, match="MADE_UP"):
        posed_by_three(write(tmp_path / "new.glb", tree, buffer))


def test_missing_node_skips_unless_required(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Take node away, then its packages: tests are skipped, or fail where CI asks for them."""
    monkeypatch.delenv("HAIRKIT_REQUIRE_NODE", raising=False)
    monkeypatch.setattr(gltf_peers.shutil, "which", lambda name: None)
    with pytest.raises(pytest.skip.Exception, match="run npm install in tests/gltf"):
        require_node()
    monkeypatch.setattr(gltf_peers.shutil, "which", lambda name: name)
    (tmp_path / "package.json").write_text('{"dependencies": {"three": "1"}}', encoding="utf-8")
    monkeypatch.setattr(gltf_peers, "PROGRAMS", tmp_path)
    with pytest.raises(pytest.skip.Exception, match="run npm install in tests/gltf"):
        require_node()
    monkeypatch.setenv("HAIRKIT_REQUIRE_NODE", "1")
    with pytest.raises(pytest.fail.Exception, match="run npm install in tests/gltf"):
        require_node()
