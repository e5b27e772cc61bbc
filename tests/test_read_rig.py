"""Hair that has bones already: what is read is what was planned."""

from pathlib import Path

import gltf_scenes as g
import numpy as np
import pytest

import hairkit as hk
from hairkit.errors import RigError
from hairkit.sway import (
    read_rig,
)
from hairkit.sway.reading import chains_of


def test_reading_a_rig_gives_what_was_planned(tmp_path: Path):
    """Read back a rigged file of a scaled and turned mesh: the plan's bones, chains, weights."""
    path = g.write(tmp_path / "in.glb", g.hair_scene(scale=[2.0, 3.0, 2.0]))
    made = hk.rig(path, sectors=4, segments=2, max_influences=4)
    saved = made.save(tmp_path / "out.glb")
    for source in (saved, saved.read_bytes()):
        read = read_rig(source)
        assert read.bone_names == made.bone_names and read.plan.chains == made.plan.chains
        assert read.plan.parents.tolist() == made.plan.parents.tolist()
        assert read.plan.positions == pytest.approx(made.plan.positions, abs=1e-6)
        assert read.into_scene == pytest.approx(made.into_scene, abs=1e-6)
        assert read.plan.weights.weights == pytest.approx(made.plan.weights.weights, abs=1e-6)
        nodes = [read.document.json["nodes"][j]["name"] for j in read.joints]
        assert nodes == read.bone_names
    with pytest.raises(RigError, match="has no skin"):
        read_rig(path)


def test_chains_of_a_forked_skeleton_share_no_bone():
    """Fork below the root and in a chain: each bone once, the longest branch goes on."""
    #            0
    #          1   2
    #        3  4
    #        |
    #        5
    assert chains_of([-1, 0, 0, 1, 1, 3]) == ((1, 3, 5), (4,), (2,))
    assert chains_of([-1]) == ()


def test_joints_with_no_joint_in_common_hang_below_one_bone(tmp_path: Path):
    """Read a skin whose first joint is not a joint any more: the node above stands for it."""
    made = hk.rig(g.write(tmp_path / "in.glb", g.hair_scene()), sectors=2, segments=2)
    data, binary = g.unpack(made.save(tmp_path / "out.glb"))
    skin = data["skins"][0]
    root = skin["joints"][0]
    weights = data["meshes"][0]["primitives"][0]["attributes"]["JOINTS_0"]
    # Its vertices go to the other joints; rows move down by one, those of the root stay at 0.
    view = data["bufferViews"][data["accessors"][weights]["bufferView"]]
    at, size = view["byteOffset"], view["byteLength"]
    rows = np.frombuffer(binary[at : at + size], np.uint8)
    binary = (
        binary[:at] + (np.maximum(rows, 1) - 1).astype(np.uint8).tobytes() + binary[at + size :]
    )
    skin["joints"] = skin["joints"][1:]
    back = data["accessors"][skin["inverseBindMatrices"]]
    back["byteOffset"], back["count"] = 64, back["count"] - 1
    del skin["skeleton"]
    path = tmp_path / "rootless.glb"
    path.write_bytes(g.glb(data, binary))
    read = read_rig(path)
    assert read.plan.chains == ((1, 2), (3, 4))
    assert read.joints[0] == root and read.bone_names[1:] == made.bone_names[1:]
    assert read.plan.positions[1:] == pytest.approx(made.plan.positions[1:], abs=1e-6)
