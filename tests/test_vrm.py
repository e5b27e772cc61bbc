"""VRM spring bones: what is written, what it means by VRM's reference, and reasons to refuse."""

import copy
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import gltf_scenes as g
import numpy as np
import pytest
from numpy.typing import ArrayLike
from test_rig import NODES, avatar, node_named

import hairkit as hk
from hairkit.cli import run
from hairkit.errors import RigError
from hairkit.rigging.plan import Bone, Plan, Weights
from hairkit.rigging.rig import baked, document_of
from hairkit.shapes import Box, Capsule, Sphere
from hairkit.sway.vrm import with_springs

RATES = (24.0, 30.0, 60.0, 72.0, 90.0, 144.0, 240.0)
LENGTH = 0.08


def springs_of(data: dict[str, Any]) -> dict[str, Any]:
    """Return the extension of a document."""
    return data["extensions"]["VRMC_springBone"]


def check_by_the_spec(data: dict[str, Any]) -> None:
    """Check all that VRMC_springBone 1.0 says of its lists, references and numbers."""
    assert data["extensionsUsed"].count("VRMC_springBone") == 1
    found = springs_of(data)
    assert found["specVersion"] == "1.0"
    assert set(found) <= {"specVersion", "colliders", "colliderGroups", "springs"}
    assert all(len(found[name]) > 0 for name in found if name != "specVersion")
    parents = {
        child: row for row, node in enumerate(data["nodes"]) for child in node.get("children", [])
    }
    seen: set[int] = set()
    for spring in found["springs"]:
        rows = [joint["node"] for joint in spring["joints"]]
        assert len(rows) >= 2
        between = {rows[-1]}
        for parent, child in pairwise(rows):
            at = child
            while at != parent:
                between.add(at)
                at = parents[at]
        between.add(rows[0])
        assert not between & seen, "a joint is in two springs"
        seen |= between
        for joint in spring["joints"]:
            assert 0 <= joint["node"] < len(data["nodes"])
            assert joint.get("hitRadius", 0.0) >= 0.0 and joint.get("stiffness", 1.0) >= 0.0
            assert 0.0 <= joint.get("dragForce", 0.5) <= 1.0
            assert joint.get("gravityDir", [0, -1, 0]) == [0, -1, 0]
            assert joint.get("gravityPower", 0.0) >= 0.0
        for group in spring.get("colliderGroups", []):
            assert 0 <= group < len(found["colliderGroups"])
    for group in found.get("colliderGroups", []):
        assert group["colliders"]
        assert all(0 <= row < len(found["colliders"]) for row in group["colliders"])
    for collider in found.get("colliders", []):
        assert 0 <= collider["node"] < len(data["nodes"])
        assert len(collider["shape"]) == 1


def sprung(folder: Path, *, rig: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """Rig the small scene, add springs, and return the JSON of what was written."""
    source = g.write(folder / "in.glb", g.hair_scene())
    made = with_springs(hk.rig(source, **(rig or {})), **options)
    return g.unpack(made.save(folder / "out.glb"))[0]


def joints_of(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the joints of all springs but the tails."""
    return [joint for spring in springs_of(data)["springs"] for joint in spring["joints"][:-1]]


# ---- what is written


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
def test_springs_are_by_the_spec(tmp_path: Path, node: dict[str, Any]):
    """Give springs to hair below every kind of node: valid, and nothing else has changed."""
    source = g.write(tmp_path / "in.glb", g.hair_scene(**node))
    rigged = hk.rig(source)
    held = copy.deepcopy(rigged.document.json)
    made = with_springs(rigged, colliders=[("Head", Sphere(0.05, (0.0, 1.7, 0.0)))])
    assert rigged.document.json == held
    data, binary = g.unpack(made.save(tmp_path / "out.vrm"))
    check_by_the_spec(data)
    before, binary_before = g.unpack(rigged.save(tmp_path / "plain.glb"))
    assert binary == binary_before
    data["extensions"].pop("VRMC_springBone")
    assert not data.pop("extensions") and data.pop("extensionsUsed") == ["VRMC_springBone"]
    count = len(before["nodes"])
    tails = set(range(count, len(data["nodes"])))
    assert len(tails) == 3
    data["nodes"] = data["nodes"][:count]
    for row in data["nodes"]:
        if tails & set(row.get("children", [])):
            del row["children"]
    assert data == before


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sectors": 1, "segments": 1},
        {"sectors": 5, "segments": 1},
        {"sectors": 64, "segments": 2, "max_influences": 4},
    ],
)
def test_each_chain_is_a_spring_with_an_empty_tail(tmp_path: Path, options: dict[str, Any]):
    """Compare joints with the plan; the tail is empty, and where hair that its bone moves ends."""
    source = g.write(tmp_path / "in.glb", g.hair_scene())
    rigged = with_springs(hk.rig(source, **options))
    plan = rigged.plan
    data, _ = g.unpack(rigged.save(tmp_path / "out.glb"))
    check_by_the_spec(data)
    found = springs_of(data)["springs"]
    assert len(found) == len(plan.chains)
    for spring, chain in zip(found, plan.chains, strict=True):
        *names, tail = [data["nodes"][joint["node"]] for joint in spring["joints"]]
        # The first band of sectors lies on the scalp.
        turning = chain[min(1, len(chain) - 1) :]
        assert [node["name"] for node in names] == [plan.names[bone] for bone in turning]
        assert spring["joints"][-1] == {"node": spring["joints"][-1]["node"]}
        assert set(tail) == {"name", "translation"} and tail["name"].endswith("_End")
        assert tail["name"].startswith(spring["name"].split(" ")[0])
        before = plan.positions[plan.parents[chain[-1]]]
        last = plan.positions[chain[-1]]
        along = (last - before) / np.linalg.norm(last - before)
        move = np.array(tail["translation"])
        assert np.allclose(np.cross(move, along), 0.0, atol=1e-12) and move @ along > 0.0
        moves = plan.weights.indices[:, 0] == chain[-1]
        ends = ((rigged.vertices - last) @ along)[moves].max(initial=0.0)
        half = 0.5 * np.linalg.norm(last - before)
        assert np.isclose(move @ along, max(ends, half))


def test_chains_that_branch_are_springs_of_their_own(tmp_path: Path):
    """Let a chain begin at another one's middle bone: two springs that share no joint."""
    places = [(0.0, 1.7, 0.0), *((0.1, y, 0.0) for y in (1.65, 1.55, 1.4)), (0.2, 1.5, 0.0)]
    names = ["HairRoot", "Hair_S1_B1", "Hair_S1_B2", "Hair_S1_B3", "Hair_S2_B1"]
    bones = tuple(
        Bone(name=name, position=place, parent=parent)
        for name, place, parent in zip(names, places, (-1, 0, 1, 2, 1), strict=True)
    )
    document, hair = document_of(g.write(tmp_path / "in.glb", g.hair_scene()), None)
    count = len(hair.vertices)
    weights = Weights(np.arange(count, dtype=np.int32)[:, None] % 5, np.ones((count, 1)))
    tree = Plan(bones=bones, weights=weights, chains=((1, 2, 3), (4,)), strategy="cards")
    data = with_springs(baked(document, hair, tree)).document.json
    check_by_the_spec(data)
    found = springs_of(data)["springs"]
    assert [len(spring["joints"]) for spring in found] == [4, 2]
    # The lone bone goes on in the direction from the bone that it branches off.
    tail = data["nodes"][found[1]["joints"][1]["node"]]["translation"]
    assert np.allclose(np.cross(tail, np.subtract(places[4], places[1])), 0.0, atol=1e-9)
    assert np.dot(tail, np.subtract(places[4], places[1])) > 0.0


def test_avatars_own_data_stays(tmp_path: Path):
    """Give springs to an avatar that has some: its own are kept to the letter, ours come after."""
    scene, binary = avatar(1, modification="allowModification")
    scene["nodes"] += [{"name": "tail1", "children": [6]}, {"name": "tail2"}]
    scene["nodes"][0]["children"].append(5)
    own = {
        "specVersion": "1.0",
        "colliders": [{"node": 1, "shape": {"sphere": {"radius": 0.1}}, "extras": {"a": 1}}],
        "colliderGroups": [{"name": "Head", "colliders": [0]}],
        "springs": [
            {
                "joints": [{"node": 5, "stiffness": 0.25}, {"node": 6}],
                "colliderGroups": [0],
                "center": 0,
            }
        ],
    }
    scene["extensions"]["VRMC_springBone"] = copy.deepcopy(own)
    scene["extensionsUsed"].append("VRMC_springBone")
    rigged = hk.rig(g.write(tmp_path / "in.vrm", (scene, binary)))
    made = with_springs(rigged, colliders=[("Head", Capsule((0, 0, 0), (0, 0.1, 0), 0.1))])
    data, held = g.unpack(made.save(tmp_path / "out.vrm"))
    check_by_the_spec(data)
    assert held[: len(binary)] == binary
    found = springs_of(data)
    for name, rows in own.items():
        if name != "specVersion":
            assert json.dumps(found[name][: len(rows)]) == json.dumps(rows)
    assert json.dumps(data["extensions"]["VRMC_vrm"]) == json.dumps(scene["extensions"]["VRMC_vrm"])
    assert len(found["springs"]) == 4
    assert all(spring["colliderGroups"] == [1] for spring in found["springs"][1:])
    assert found["colliderGroups"][1]["colliders"] == [1]
    assert rigged.note in made.note


@pytest.mark.parametrize("still", [0, 1, 2, 9])
def test_bones_that_do_not_turn_are_no_joints(tmp_path: Path, still: int):
    """Say how many bones of a chain keep still: the spring begins after them, one is left."""
    data = sprung(tmp_path, still=still)
    check_by_the_spec(data)
    for number, spring in enumerate(springs_of(data)["springs"], 1):
        names = [data["nodes"][joint["node"]]["name"] for joint in spring["joints"]]
        wanted = [f"Hair_S{number}_B{band}" for band in range(min(still, 2) + 1, 4)]
        assert names == [*wanted, f"Hair_S{number}_End"]


def test_frame_rate_is_in_the_file(tmp_path: Path):
    """Read from each spring what it was made for."""
    data = sprung(tmp_path, damping=0.9, stiffness=0.2, gravity=0.5, frame_rate=72)
    for number, spring in enumerate(springs_of(data)["springs"], 1):
        assert spring["name"] == f"Hair_S{number} (72 fps)"
        assert spring["extras"]["hairkit"] == {
            "frameRate": 72.0,
            "damping": 0.9,
            "stiffness": 0.2,
            "gravity": 0.5,
        }


def test_colliders_are_written_where_they_were_said(tmp_path: Path):
    """Put a ball and a capsule on nodes, by name and row: offsets as said, radii in the scene."""
    scene, binary = g.hair_scene()
    scene["nodes"][1]["scale"] = [2.0, 2.0, 2.0]
    rigged = hk.rig(g.write(tmp_path / "in.glb", (scene, binary)))
    ball = Sphere(0.05, (0.0, 1.7, 0.0))
    stick = Capsule((0.0, 0.5, 0.0), (0.0, 1.0, 0.0), 0.05)
    found = springs_of(with_springs(rigged, colliders=[("Head", ball), (0, stick)]).document.json)
    assert found["colliders"] == [
        {"node": 1, "shape": {"sphere": {"offset": [0.0, 1.7, 0.0], "radius": 0.1}}},
        {
            "node": 0,
            "shape": {
                "capsule": {"offset": [0.0, 0.5, 0.0], "radius": 0.05, "tail": [0.0, 1.0, 0.0]}
            },
        },
    ]
    assert found["colliderGroups"] == [{"name": "Hair", "colliders": [0, 1]}]
    assert all(spring["colliderGroups"] == [0] for spring in found["springs"])


def test_own_radius_leaves_the_rest_pose_alone(tmp_path: Path):
    """Set a ball between chains: no joint of ours touches it; a radius that is given may."""
    ball = Sphere(0.145, (0.0, 1.65, 0.0))
    source = g.write(tmp_path / "in.glb", g.hair_scene())
    free = with_springs(hk.rig(source), still=0)
    near = with_springs(hk.rig(source), still=0, colliders=[("Head", ball)])
    data, _ = g.unpack(near.save(tmp_path / "out.glb"))
    middle = g.world(data, node_named(data, "Head")) @ [0.0, 1.65, 0.0, 1.0]
    smaller = 0
    for spring, bare in zip(
        springs_of(data)["springs"], springs_of(free.document.json)["springs"], strict=True
    ):
        joints, wide = spring["joints"], bare["joints"]
        for joint, own, end in zip(joints, wide[:-1], joints[1:], strict=False):
            away = np.linalg.norm(g.world(data, end["node"])[:3, 3] - middle[:3])
            assert away - 0.145 >= joint["hitRadius"] - 1e-7
            assert joint["hitRadius"] <= own["hitRadius"]
            smaller += joint["hitRadius"] < own["hitRadius"]
    assert smaller > 0 and "push" not in near.note
    given = with_springs(hk.rig(source), still=0, radius=0.05, colliders=[("Head", ball)])
    assert {joint["hitRadius"] for joint in joints_of(given.document.json)} == {0.05}
    assert "push" in given.note


# ---- what it means


def swing(
    joint: dict[str, Any],
    rate: float,
    frames: int,
    *,
    length: float = LENGTH,
    rest: ArrayLike = (0.0, -1.0, 0.0),
    start: ArrayLike,
    before: ArrayLike | None = None,
) -> np.ndarray:
    """Run VRM's reference on one bone whose head stays at the origin.

    Args:
        joint: The joint as it is in the file.
        rate: Frames a second.
        frames: How many to run.
        length: Of the bone.
        rest: Unit direction of the rest pose.
        start: Where the tail is.
        before: Where it was one frame earlier; None is there, too.

    Returns:
        Where the tail is from the start on, shape (frames + 1, 3).
    """
    tail = np.asarray(start, float)
    last = tail if before is None else np.asarray(before, float)
    dt = 1.0 / rate
    pull = dt * joint["stiffness"] * np.asarray(rest, float)
    pull = pull + dt * joint["gravityPower"] * np.asarray(joint["gravityDir"], float)
    path = [tail]
    for _ in range(frames):
        ahead = tail + (tail - last) * (1.0 - joint["dragForce"]) + pull
        last, tail = tail, ahead * (length / np.linalg.norm(ahead))
        path.append(tail)
    return np.array(path)


def joint_for(rate: float, damping: float, stiffness: float, gravity: float = 0.0) -> Any:
    """Return the joint of a lone bone of `LENGTH` that hangs straight down, as it is written."""
    ring = [(np.cos(angle), np.sin(angle)) for angle in 0.5 * np.pi * np.arange(4)]
    top = [(0.01 * x, 0.0, 0.01 * z) for x, z in ring]
    # Vertices hang so far that the bone in their middle ends where they do.
    low = [(0.01 * x, -depth, 0.01 * z) for x, z in ring for depth in (LENGTH, 3.0 * LENGTH)]
    corners = np.array([*top, *low])
    faces = np.array([[0, 4, 6], [1, 6, 8], [2, 8, 10], [3, 10, 4], [4, 5, 7]])
    rigged = hk.rig((corners, faces), sectors=1, segments=1, root=(0.0, 0.0, 0.0))
    made = with_springs(
        rigged, damping=damping, stiffness=stiffness, gravity=gravity, frame_rate=rate
    ).document.json
    (spring,) = springs_of(made)["springs"]
    joint, end = spring["joints"]
    tail = made["nodes"][end["node"]]["translation"]
    assert np.allclose(tail, [0.0, -LENGTH, 0.0], atol=1e-7)
    return joint


def meant(damping: float, stiffness: float, pendulum: float = 0.0) -> np.ndarray:
    """Return the two rates at which small swings are meant to change [1/s]."""
    drag = -60.0 * np.log(damping)
    spring = -60.0 * np.log(1.0 - stiffness) * drag
    return np.sort_complex(np.roots([1.0, drag, spring + pendulum]).astype(complex))


def tilted(angle: float) -> np.ndarray:
    """Return the tail of a bone that is turned from hanging down."""
    return LENGTH * np.array([np.sin(angle), -np.cos(angle), 0.0])


def angles(path: np.ndarray) -> np.ndarray:
    """Return how far a bone is turned from hanging down, frame by frame."""
    return np.unwrap(np.arctan2(path[:, 0], -path[:, 1]))


def modes(path: np.ndarray, rate: float) -> np.ndarray:
    """Return the two rates at which small swings change [1/s], fitted to a path."""
    turn = angles(path)
    rows = np.stack([turn[1:-1], -turn[:-2]], axis=1)
    (both, product), *_ = np.linalg.lstsq(rows, turn[2:], rcond=None)
    return np.sort_complex(rate * np.log(np.roots([1.0, -both, product]).astype(complex)))


@pytest.mark.parametrize("damping", [0.5, 0.92, 0.98])
@pytest.mark.parametrize("rate", RATES)
def test_free_swing_keeps_a_share_of_its_speed(damping: float, rate: float):
    """Push a bone that nothing pulls: after 0.5 s, damping to the power of 30 of its speed."""
    joint = joint_for(rate, damping, 0.0)
    path = swing(joint, rate, int(rate / 2) + 1, start=tilted(0.0), before=tilted(-0.3 / rate))
    speed = np.diff(angles(path))
    assert np.isclose(speed[int(rate / 2)] / speed[0], damping**30, rtol=0.02)


@pytest.mark.parametrize("stiffness", [0.02, 0.1])
@pytest.mark.parametrize("rate", RATES)
def test_return_with_little_inertia_is_a_share_of_the_way(stiffness: float, rate: float):
    """Let go of a bone damped heavily: a frame at 60 leaves 1 - stiffness of the way, within 4 %.

    Some inertia is left, which makes it faster by stiffness / 4 or so.
    """
    path = swing(joint_for(rate, 0.01, stiffness), rate, int(rate / 2), start=tilted(0.05))
    turn = angles(path)
    at = int(rate / 6)
    found = np.log(turn[-1] / turn[at]) * 60.0 / ((len(turn) - 1 - at) * 60.0 / rate) / 60.0
    assert np.isclose(found * 60.0, 60.0 * np.log(1.0 - stiffness), rtol=0.04)


@pytest.mark.parametrize(
    ("damping", "stiffness", "gravity"),
    [(0.92, 0.1, 0.0), (0.92, 0.1, 1.0), (0.9, 0.02, 1.0), (0.7, 0.1, 0.5)],
)
@pytest.mark.parametrize("rate", RATES[1:])
def test_swings_are_as_meant(rate: float, damping: float, stiffness: float, gravity: float):
    """Fit period and decay of a swing by the reference at each frame rate: within 1 %."""
    joint = joint_for(rate, damping, stiffness, gravity)
    found = modes(swing(joint, rate, int(rate), start=tilted(0.02)), rate)
    wanted = meant(damping, stiffness, 9.81 * gravity / LENGTH)
    assert np.abs(found - wanted).max() <= 0.01 * np.abs(wanted).max()


def test_numbers_of_one_frame_rate_are_wrong_at_another():
    """Play numbers for 60 frames a second at 144: the twin tells, or the test above tells less."""
    joint = joint_for(60.0, 0.92, 0.1)
    right, wrong = (modes(swing(joint, rate, 144, start=tilted(0.02)), rate) for rate in (60, 144))
    assert np.abs(wrong - right).max() > 0.3 * np.abs(right).max()


@pytest.mark.parametrize("rate", [60.0, 144.0])
def test_hair_without_stiffness_is_a_pendulum(rate: float):
    """Let a bone swing under gravity alone: its period is a pendulum's."""
    path = swing(joint_for(rate, 0.98, 0.0, 1.0), rate, int(2 * rate), start=tilted(0.05))
    period = 2.0 * np.pi / np.abs(np.imag(modes(path, rate))).max()
    assert np.isclose(period, 2.0 * np.pi * np.sqrt(LENGTH / 9.81), rtol=0.01)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("stiffness", [0.0, 0.1])
def test_gravity_hardly_turns_the_rest_pose(tmp_path: Path, rate: float, stiffness: float):
    """Let the small scene's hair, and hair that sticks out, come to rest: within 5 degrees.

    What pulls along the rest pose does not depend on where it points.
    """
    source = g.write(tmp_path / "in.glb", g.hair_scene(rotation=[0.0, 0.0, 0.6, 0.8]))
    leaning = hk.rig(source, axis=(0.0, -1.0, 0.0), root=(0.0, 1.7, 0.0))
    sagged = []
    for made in (leaning, hk.rig(g.write(tmp_path / "in2.glb", g.hair_scene()))):
        data = with_springs(made, frame_rate=rate, stiffness=stiffness).document.json
        along = []
        for spring in springs_of(data)["springs"]:
            places = [g.world(data, joint["node"])[:3, 3] for joint in spring["joints"]]
            count = len(places) - 1
            for at, (joint, way) in enumerate(
                zip(spring["joints"], np.diff(places, axis=0), strict=False)
            ):
                length = float(np.linalg.norm(way))
                rest = way / length
                pull = joint["stiffness"] * rest
                pull = pull + joint["gravityPower"] * np.array(joint["gravityDir"])
                along.append((count, at, pull @ rest / length))
                path = swing(
                    joint, rate, int(8 * rate), length=length, rest=rest, start=length * rest
                )
                sagged.append(np.arccos(min(path[-1] @ rest / length, 1.0)))
        # By its place in the chain alone, and more the nearer it is to the root.
        by_place = {place[:2]: place[2] for place in along}
        assert np.allclose([by_place[c, a] for c, a, _ in along], [pull for _, _, pull in along])
        if stiffness > 0.0:
            assert by_place[2, 0] > 1.2 * by_place[2, 1]
    assert np.max(sagged) <= np.radians(5.01)
    assert np.max(sagged) > np.radians(4.9)


def test_hair_that_hangs_feels_all_of_gravity():
    """Without stiffness, nothing but gravity holds a bone that hangs."""
    joint = joint_for(60.0, 0.92, 0.0, 1.0)
    assert joint["stiffness"] <= 1e-6 * joint["gravityPower"]


def test_few_frames_a_second_are_said(tmp_path: Path):
    """Make springs for 10 frames a second: swings die down, if faster, and the user is told."""
    rigged = hk.rig(g.write(tmp_path / "in.glb", g.hair_scene()))
    assert "few" in with_springs(rigged, frame_rate=10.0).note
    assert with_springs(rigged).note == ""
    for damping, stiffness in ((1.0, 0.1), (1.0, 0.99), (0.01, 0.99), (0.5, 0.5)):
        joint = joint_for(10.0, damping, stiffness)
        turn = np.abs(angles(swing(joint, 10.0, 100, start=tilted(0.05))))
        assert turn[-20:].max() < 0.5 * 0.05 and turn.max() <= 0.05 * (1.0 + 1e-9)


@pytest.mark.parametrize("scale", [0.01, 0.2, 8.0, 100.0])
def test_springs_scale_with_the_hair(tmp_path: Path, scale: float):
    """Make hair n times as large, and gravity: all lengths of springs are n times as large."""
    plain = joints_of(sprung(tmp_path))
    source = g.write(tmp_path / "large.glb", g.hair_scene(scale=[scale] * 3))
    large = joints_of(with_springs(hk.rig(source), gravity=scale).document.json)
    for one, other in zip(plain, large, strict=True):
        for name in ("stiffness", "gravityPower", "hitRadius"):
            assert np.isclose(other[name], scale * one[name], rtol=1e-5)
        assert other["dragForce"] == one["dragForce"]


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_units_of_the_file_do_not_matter(tmp_path: Path, scale: float):
    """Undo a node's scale further up: same hair in the scene, same numbers."""
    plain = joints_of(sprung(tmp_path))
    scene, binary = g.hair_scene(scale=[scale] * 3)
    scene["nodes"][1]["scale"] = [1.0 / scale] * 3
    rigged = hk.rig(g.write(tmp_path / "in2.glb", (scene, binary)))
    for one, other in zip(plain, joints_of(with_springs(rigged).document.json), strict=True):
        for name in ("stiffness", "gravityPower", "hitRadius", "dragForce"):
            assert np.isclose(other[name], one[name], rtol=1e-5)


# ---- what is said, and refused


@pytest.mark.parametrize(
    ("node", "says"),
    [
        ("plain", ()),
        ("hundredth", ()),
        ("hundredfold", ()),
        ("mirrored", ("mirrored",)),
        ("uneven", ("unevenly scaled",)),
        ("mirrored matrix", ("mirrored", "unevenly scaled")),
    ],
)
def test_note_of_nodes_that_some_programs_mistake(tmp_path: Path, node: str, says: tuple[str, ...]):
    """Hang hair below a node that mirrors or stretches it: the user is told, and only then."""
    rigged = hk.rig(g.write(tmp_path / "in.glb", g.hair_scene(**NODES[node])))
    note = with_springs(rigged, gravity=0.0).note
    assert all(word in note for word in says)
    assert bool(note) is bool(says)


def test_note_of_hair_below_another_spring(tmp_path: Path):
    """Hang hair below a node that a spring of the avatar's sways."""
    scene, binary = avatar(1, modification="allowModification", allowRedistribution=True)
    scene["extensions"]["VRMC_springBone"] = {
        "specVersion": "1.0",
        "springs": [{"joints": [{"node": 0}, {"node": 1}]}],
    }
    rigged = hk.rig(g.write(tmp_path / "in.vrm", (scene, binary)))
    assert "'Head' above the hair" in with_springs(rigged).note


def test_bones_without_length_are_passed_over(tmp_path: Path):
    """Scale hair to nothing, which has no spring; hair of which one bone has no length has."""
    flat = hk.rig(g.write(tmp_path / "in.glb", g.hair_scene()))
    rows = flat.document.json["nodes"]
    rows[node_named(flat.document.json, "Hair_S1_B3")]["translation"] = [0.0, 0.0, 0.0]
    data = with_springs(flat).document.json
    check_by_the_spec(data)
    names = [
        [data["nodes"][joint["node"]]["name"] for joint in spring["joints"]]
        for spring in springs_of(data)["springs"]
    ]
    assert names[0] == ["Hair_S1_B3", "Hair_S1_End"]
    assert len(names[1]) == 3
    rows[node_named(flat.document.json, "Fringe")]["scale"] = [0.0, 0.0, 0.0]
    assert refused("no length", flat)


def refused(kind: str, rigged: hk.RiggedHair, **options: Any) -> str:
    """Make sure that springs are refused, and return why."""
    held = copy.deepcopy(rigged.document.json)
    with pytest.raises(RigError) as caught:
        with_springs(rigged, **options)
    assert caught.value.kind == kind
    assert rigged.document.json == held
    return str(caught.value)


def test_old_avatars_are_refused(tmp_path: Path):
    """Give springs to a VRM 0.x avatar, and beside springs of a draft: refused, file named."""
    path = g.write(tmp_path / "old.vrm", avatar(0, licenseName="CC0"))
    said = refused("old version", hk.rig(path))
    assert str(path) in said and "VRM 0.x" in said
    assert run(["rig", str(path), "--vrm", "--out", str(tmp_path / "out.vrm")]) == 2
    assert not (tmp_path / "out.vrm").exists()
    scene, binary = avatar(1, modification="allowModification")
    scene["extensions"]["VRMC_springBone"] = {"specVersion": "1.0-beta"}
    assert "1.0-beta" in refused(
        "old version", hk.rig(g.write(tmp_path / "in.vrm", (scene, binary)))
    )


@pytest.mark.parametrize(
    "broken", [[], {"specVersion": "1.0", "springs": {}}, {"specVersion": "1.0", "springs": [1]}]
)
def test_broken_springs_are_refused(tmp_path: Path, broken: Any):
    """Find something else where springs should be."""
    scene, binary = avatar(1, modification="allowModification")
    scene["extensions"]["VRMC_springBone"] = broken
    refused("unreadable", hk.rig(g.write(tmp_path / "in.vrm", (scene, binary))))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"damping": 1.5}, "damping"),
        ({"damping": 0.0}, "damping"),
        ({"still": -1}, "still"),
        ({"damping": float("nan")}, "damping"),
        ({"stiffness": 1.0}, "stiffness"),
        ({"gravity": -1.0}, "gravity"),
        ({"radius": -0.1}, "radius"),
        ({"frame_rate": 0}, "frame_rate"),
        ({"frame_rate": True}, "frame_rate"),
        ({"colliders": [("Nobody", Sphere(0.1))]}, "Nobody"),
        ({"colliders": [(99, Sphere(0.1))]}, "99"),
        ({"colliders": [("Head", Box((1.0, 1.0, 1.0)))]}, "Box"),
    ],
)
def test_bad_options_are_refused(tmp_path: Path, options: dict[str, Any], says: str):
    """Ask for what there is not."""
    rigged = hk.rig(g.write(tmp_path / "in.glb", g.hair_scene()))
    assert says in refused("bad option", rigged, **options)


def test_springs_are_given_once(tmp_path: Path):
    """Give springs to bones that have some: no joint may be in two."""
    rigged = with_springs(hk.rig(g.write(tmp_path / "in.glb", g.hair_scene())))
    refused("bad option", rigged)


def test_command_line_writes_springs(tmp_path: Path):
    """Rig with --vrm, for a frame rate: the same file as from Python."""
    source = g.write(tmp_path / "in.glb", g.hair_scene())
    out = tmp_path / "out.vrm"
    assert run(["rig", str(source), "--vrm", "--frame-rate", "90", "--out", str(out)]) == 0
    wanted = with_springs(hk.rig(source), frame_rate=90.0).save(tmp_path / "wanted.vrm")
    assert out.read_bytes() == wanted.read_bytes()
    check_by_the_spec(g.unpack(out)[0])
