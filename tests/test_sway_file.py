"""Rigged files that sway: read back, simulated, written as an animation, played by three.js."""

from pathlib import Path
from typing import Any

import gltf_scenes as g
import numpy as np
import pytest
from gltf_peers import Job, all_posed_by_three, complaints, require_node, validator_report

import hairkit as hk
from hairkit.cli import run
from hairkit.errors import RigError
from hairkit.record_rig import record_rig
from hairkit.rigging.read import read_rig
from hairkit.sway.settings import ChainSettings


def rigged(folder: Path, **node: Any) -> Path:
    """Rig the small scene with four bones a chain."""
    source = g.write(folder / "in.glb", g.hair_scene(**node))
    return hk.rig(source, segments=4).save(folder / "rigged.glb")


def key_frames(path: Path) -> tuple[dict[str, Any], dict[tuple[int, str], np.ndarray], np.ndarray]:
    """Return a file's JSON, its last animation's values by node and path, and their times."""
    data, binary = g.unpack(path)
    animation = data["animations"][-1]
    values, times = {}, np.zeros(0)
    for channel in animation["channels"]:
        sampler = animation["samplers"][channel["sampler"]]
        target = channel["target"]
        values[target["node"], target["path"]] = g.numbers(data, binary, sampler["output"])
        times = g.numbers(data, binary, sampler["input"])[:, 0]
    return data, values, times


@pytest.mark.parametrize("node", [{}, {"scale": [2.0, 2.0, 2.0], "translation": [0.0, 1.0, 0.0]}])
def test_our_own_rigs_are_read_back(tmp_path: Path, node: dict[str, Any]):
    """Read a rigged file: its bones, chains and places are the plan's."""
    path = rigged(tmp_path, **node)
    plan = hk.rig(tmp_path / "in.glb", segments=4).plan
    hair = read_rig(path)
    assert hair.bone_names == plan.names and hair.plan.strategy == "sectors"
    assert [len(chain) for chain in hair.plan.chains] == [4, 4, 4]
    assert hair.plan.positions == pytest.approx(plan.positions - plan.positions[0], abs=1e-6)
    data, _ = g.unpack(path)
    assert [data["nodes"][row]["name"] for row in hair.nodes] == plan.names
    assert hair.into_scene == pytest.approx(g.world(data, hair.nodes[0]), abs=1e-6)


def test_single_chain_hangs_on_its_root(tmp_path: Path):
    """Rig with one sector: the root, which moves no vertex, carries the chain."""
    source = g.write(tmp_path / "in.glb", g.hair_scene())
    path = hk.rig(source, sectors=1, segments=3).save(tmp_path / "out.glb")
    assert read_rig(path).bone_names == ["HairRoot", "Hair_S1_B1", "Hair_S1_B2", "Hair_S1_B3"]


def other_rig(tail: bool) -> tuple[dict[str, Any], bytes]:
    """Return a skinned scene of another make: turned joints, a branch, a tail without vertices."""
    scene, binary = g.hair_scene()
    points = g.card_mesh()[0]
    quarter = [0.0, 0.0, 2**-0.5, 2**-0.5]
    scene["nodes"] = [
        {"name": "Fringe", "mesh": 0, "skin": 0},
        {"name": "Skull", "translation": [0.0, 1.75, 0.0], "children": [2, 5]},
        # Turned a quarter about Z: its child's -Y is its own -X.
        {"name": "a1", "rotation": quarter, "translation": [0.1, 0.0, 0.0], "children": [3]},
        {"name": "a2", "translation": [-0.1, 0.0, 0.0], "children": [4]},
        {"name": "a3", "translation": [-0.1, 0.0, 0.0]},
        {"name": "b1", "translation": [-0.1, 0.0, 0.0], "children": [6, 7]},
        {"name": "b2", "translation": [0.0, -0.1, 0.0]},
        {"name": "b3", "translation": [0.1, -0.1, 0.0]},
    ]
    scene["scenes"] = [{"nodes": [0, 1]}]
    scene["animations"] = []
    joints = [1, 2, 3, 4, 5, 6, 7]
    matrices = [np.linalg.inv(g.world(scene, joint)).T.reshape(16) for joint in joints]
    rows = np.zeros((len(points), 4), np.uint32)
    rows[:, 0] = np.arange(len(points)) % (7 if not tail else 3)
    if tail:
        rows[:, 0] = np.array([0, 1, 2, 4, 5])[np.arange(len(points)) % 5]
    shares = np.zeros((len(points), 4), np.float32)
    shares[:, 0] = 1.0
    for values, kind in (
        (np.array(matrices, np.float32), "MAT4"),
        (rows.astype(np.uint16), "VEC4"),
        (shares, "VEC4"),
    ):
        code = {"f4": 5126, "u2": 5123}[values.dtype.str[1:]]
        scene["bufferViews"].append(
            {"buffer": 0, "byteOffset": len(binary), "byteLength": values.nbytes}
        )
        scene["accessors"].append(
            {
                "bufferView": len(scene["bufferViews"]) - 1,
                "componentType": code,
                "count": len(values),
                "type": kind,
            }
        )
        binary += values.tobytes()
    last = len(scene["accessors"])
    scene["buffers"] = [{"byteLength": len(binary)}]
    scene["skins"] = [{"joints": joints, "inverseBindMatrices": last - 3}]
    attributes = scene["meshes"][0]["primitives"][0]["attributes"]
    attributes |= {"JOINTS_0": last - 2, "WEIGHTS_0": last - 1}
    del scene["meshes"][1]
    return scene, binary


def test_other_peoples_bones_become_chains(tmp_path: Path):
    """Read turned joints, a branch and a tail: chains hang on the head, the tail is a tip."""
    hair = read_rig(g.write(tmp_path / "a.glb", other_rig(tail=True)))
    assert hair.bone_names == ["Skull", "a1", "a2", "b1", "b2"]
    assert hair.plan.chains == ((1, 2), (3, 4))
    assert hair.plan.positions[1:3] == pytest.approx(np.array([[0.1, 0, 0], [0.1, -0.1, 0]]))
    assert hair.tips[0] == pytest.approx([0.1, -0.2, 0.0])
    hair = read_rig(g.write(tmp_path / "b.glb", other_rig(tail=False)))
    assert hair.plan.chains == ((1, 2, 3), (4, 5)) and "1 bones that branch off" in hair.note


@pytest.mark.parametrize("version", [0, 1])
def test_avatars_springs_below_the_head_are_their_chains(tmp_path: Path, version: int):
    """Read an avatar whose one mesh has all bones: what sways is what it says, on its head."""
    scene, binary = other_rig(tail=True)
    # A neck that carries the head, a tail that is not hair, and a hat between head and lock.
    scene["nodes"] += [
        {"name": "Neck", "children": [1, 9]},
        {"name": "t1", "children": [10]},
        {"name": "t2", "translation": [0.0, -0.3, 0.0]},
        {"name": "Hat", "rotation": [0.0, 0.6, 0.0, 0.8], "children": [5]},
    ]
    scene["nodes"][1]["children"] = [2, 11]
    scene["scenes"] = [{"nodes": [0, 8]}]
    lines = [[2, 3, 4], [5, 6], [9, 10]]
    if version:
        springs = [{"joints": [{"node": node} for node in line]} for line in lines]
        bones: Any = {"head": {"node": 1}}
        scene["extensions"] = {
            "VRMC_vrm": {"humanoid": {"humanBones": bones}},
            "VRMC_springBone": {"specVersion": "1.0", "springs": springs},
        }
    else:
        bones = [{"bone": "head", "node": 1}]
        groups = [{"bones": [line[0] for line in lines]}]
        scene["extensions"] = {
            "VRM": {"humanoid": {"humanBones": bones}, "secondaryAnimation": {"boneGroups": groups}}
        }
    path = g.write(tmp_path / "a.vrm", (scene, binary))
    hair = read_rig(path)
    assert hair.bone_names == ["Skull", "a1", "a2", "b1"]
    assert hair.plan.chains == ((1, 2), (3,))
    out = tmp_path / "out.glb"
    motion = hk.motions.nod(seconds=0.5, rate=60)
    record_rig(path, motion, out, backend="cpu", wind=(4.0, 0.0, 1.0))
    data, values, _ = key_frames(out)
    for (node, kind), frames in values.items():
        data["nodes"][node][kind] = frames[0].tolist()
    # At the start all bones are where they were, below the turned hat, too.
    for node in (4, 6):
        assert g.world(data, node) == pytest.approx(g.world(scene, node), abs=1e-5)
    for (node, kind), frames in values.items():
        data["nodes"][node][kind] = frames[-1].tolist()
    assert np.abs(g.world(data, 4) - g.world(scene, 4)).max() > 0.01
    # The head has turned on the neck, which stays, as does the tail.
    turned = motion.poses[-1][:3, :3] if hasattr(motion, "poses") else list(motion)[-1][:3, :3]
    assert g.world(data, 1)[:3, :3] == pytest.approx(turned @ g.world(scene, 1)[:3, :3], abs=1e-5)
    assert g.world(data, 1)[:3, 3] == pytest.approx(g.world(scene, 1)[:3, 3], abs=1e-5)
    for node in (8, 10):
        assert g.world(data, node) == pytest.approx(g.world(scene, node), abs=1e-6)
    assert not any(node.get("name") == "HeadMotion" for node in data["nodes"])


def test_other_peoples_bones_sway_as_ours_do(tmp_path: Path):
    """Sway turned joints in wind: where the file's key frames put them, the solver has them."""
    path = g.write(tmp_path / "a.glb", other_rig(tail=True))
    record_rig(
        path,
        hk.motions.still(seconds=0.5, rate=60),
        tmp_path / "out.glb",
        backend="cpu",
        wind=(6.0, 0.0, 2.0),
        gust=0.0,
        settings=ChainSettings(stiffness=0.0),
    )
    data, values, _ = key_frames(tmp_path / "out.glb")
    for (node, kind), frames in values.items():
        data["nodes"][node][kind] = frames[-1].tolist()
    world = hk.World("cpu")
    hair = read_rig(path)
    chains = world.add_chains(hair, ChainSettings(stiffness=0.0))
    world.wind = (6.0, 0.0, 2.0)
    for _ in range(30):
        world.step(1 / 60)
    points = chains.points().reshape(2, 4, 3)
    for number, chain in enumerate(hair.plan.chains):
        for at, bone in enumerate(chain):
            assert g.world(data, hair.nodes[bone])[:3, 3] == pytest.approx(
                points[number, 1 + at], abs=2e-3
            )
    assert np.abs(chains.joint_turns()[:, :3]).max() > 0.1
    world.close()


def test_command_makes_a_file_that_sways(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Simulate a rigged file: an animation of every joint and of the head, the rest untouched."""
    path = rigged(tmp_path)
    out = tmp_path / "sway.glb"
    line = ["simulate", str(path), "--motion", "nod", "--seconds", "1", "--backend", "cpu"]
    assert run([*line, "--out", str(out)]) == 0
    assert "3 chains, 61 key frames" in capsys.readouterr().out
    before, binary = g.unpack(path)
    data, values, times = key_frames(out)
    assert g.unpack(out)[1][: len(binary)] == binary
    assert times == pytest.approx(np.arange(61) / 60, abs=1e-6)
    names = [data["nodes"][node]["name"] for node, kind in values if kind == "rotation"]
    assert names == [*(f"Hair_S{s}_B{b}" for s in (1, 2, 3) for b in (1, 2, 3, 4)), "HeadMotion"]
    turns = np.array([v for (_, kind), v in values.items() if kind == "rotation"])
    assert np.linalg.norm(turns, axis=2) == pytest.approx(1.0, abs=1e-6)
    # The first band lies on the scalp; no quaternion turns the long way round.
    assert np.abs(turns[[0, 4, 8], :, :3]).max() < 1e-6 < np.abs(turns[1, :, :3]).max()
    assert (np.sum(turns[:, 1:] * turns[:, :-1], axis=2) > 0.0).all()
    assert len(data["animations"]) == len(before["animations"]) + 1
    for number, node in enumerate(before["nodes"]):
        assert data["nodes"][number] == node
    mover = data["nodes"][-1]
    assert mover == {"name": "HeadMotion", "children": [0]}
    assert len(data["nodes"]) - 1 in data["scenes"][0]["nodes"]


def test_peers_take_and_play_it(tmp_path: Path):
    """Validate the file, and pose three.js by a key frame: its vertices are our kernel's."""
    require_node()
    path = rigged(tmp_path)
    out = tmp_path / "sway.glb"
    motion = hk.motions.nod(seconds=0.6, rate=60)
    record_rig(path, motion, out, backend="cpu")
    assert complaints(validator_report(out)) == []
    data, values, _ = key_frames(out)
    pose = {node: tuple(v[-1]) for (node, kind), v in values.items() if kind == "rotation"}
    moved = [v[-1] for (_, kind), v in values.items() if kind == "translation"]
    ((seen,),) = all_posed_by_three([Job(out, [pose])])
    for (node, kind), frames in values.items():
        data["nodes"][node][kind] = frames[-1].tolist()
    _, binary = g.unpack(out)
    skinned = [n for n, node in enumerate(data["nodes"]) if "skin" in node]
    place = g.skinned(data, binary, skinned[0])
    # three.js was told of rotations alone.
    assert np.abs(seen[0] + moved[0] - place).max() < 1e-5
    world = hk.World("cpu")
    hair = read_rig(path)
    chains = world.add_chains(hair)
    assert np.abs(chains.points()).max() < 10.0
    world.close()


def test_files_without_bones_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Sway a mesh without a skin, into a wrong ending, or nothing: one line each."""
    path = g.write(tmp_path / "in.glb", g.hair_scene())
    with pytest.raises(RigError, match="has no skin") as error:
        read_rig(path)
    assert error.value.kind == "no skin"
    for line, says in (
        (["simulate", str(path), "--out", str(tmp_path / "a.glb")], "has no skin"),
        (["simulate", str(path), "--out", str(tmp_path / "a.mp4")], ".mp4"),
        (["simulate", str(tmp_path / "no.glb"), "--out", str(tmp_path / "a.glb")], "no such file"),
    ):
        assert run(line) == 2
        error_line = capsys.readouterr().err
        assert says in error_line and error_line.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["in.glb"]
