"""VRM springs by other people's software: three-vrm runs them, Khronos' validator reads them."""

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gltf_scenes as g
import numpy as np
import pytest
from gltf_peers import (
    Sway,
    complaints,
    require_node,
    swayed_by_three,
    three_springs_ms,
    validator_reports,
)
from scipy.spatial.transform import Rotation
from test_rig import NODES, node_named
from test_rig_peers import kinds
from test_vrm import springs_of, swing

import hairkit as hk
from hairkit.shapes import Sphere
from hairkit.sway.vrm import with_springs

FRAMES = 600
NOD = 120
"""Frames in which the head nods; then it stays as it was."""
BONES = (
    "leftUpperLeg leftLowerLeg leftFoot rightUpperLeg rightLowerLeg rightFoot "
    "leftUpperArm leftLowerArm leftHand rightUpperArm rightLowerArm rightHand"
).split()
"""What a humanoid has to have besides hips, spine and head."""
KINDS: dict[str, dict[str, Any]] = {
    **NODES,
    "tiny": {"scale": [0.01] * 3},
    "huge": {"scale": [100.0] * 3},
    "mirror": {"scale": [-1.0, 1.0, 1.0]},
}
"""Nodes that hold the hair."""
GRAVITY = {"hundredth": 0.01, "hundredfold": 100.0, "tiny": 0.01, "huge": 100.0}
"""In files whose hair has another size, gravity goes with it."""
BALL = Sphere(0.14, (0.0, 1.65, 0.0))
"""What hair keeps off, in the head's space."""
SETTINGS: dict[str, dict[str, Any]] = {
    **{name: {"gravity": GRAVITY.get(name, 1.0)} for name in KINDS},
    "weightless": {"gravity": 0.0},
    "near": {"gravity": 0.0, "still": 0},
    "kept off": {"gravity": 0.0, "still": 0, "colliders": [("Head", BALL)]},
    "one bone": {"gravity": 0.0},
    "avatar": {},
}


def humanoid() -> tuple[dict[str, Any], bytes]:
    """Return the small scene as a VRM 1.0 avatar with all bones that it must have, and a spring."""
    scene, binary = g.hair_scene()
    nodes = scene["nodes"]
    spine = len(nodes)
    nodes.append({"name": "Spine", "children": [1]})
    nodes[0]["children"] = [spine]
    bones = {"hips": {"node": 0}, "spine": {"node": spine}, "head": {"node": 1}}
    for name in BONES:
        row = len(nodes)
        bones[name] = {"node": row}
        nodes.append({"name": name, "translation": [0.0, -0.2, 0.0]})
        starts = name.endswith(("UpperLeg", "UpperArm"))
        parent = nodes[spine if "Arm" in name else 0] if starts else nodes[row - 1]
        parent["children"] = [*parent.get("children", []), row]
    ear = len(nodes)
    nodes += [
        {"name": "ear1", "translation": [0.1, 1.8, 0.0], "children": [ear + 1]},
        {"name": "ear2", "translation": [0.0, 0.1, 0.0]},
    ]
    nodes[1]["children"].append(ear)
    meta = {
        "name": "Avatar",
        "authors": ["Nobody"],
        "licenseUrl": "https://vrm.dev/licenses/1.0/",
        "modification": "allowModificationRedistribution",
        "allowRedistribution": True,
    }
    scene["extensionsUsed"] = ["VRMC_vrm", "VRMC_springBone"]
    scene["extensions"] = {
        "VRMC_vrm": {"specVersion": "1.0", "meta": meta, "humanoid": {"humanBones": bones}},
        "VRMC_springBone": {
            "specVersion": "1.0",
            "colliders": [
                {"node": 1, "shape": {"sphere": {"offset": [0, 1.7, 0], "radius": 0.05}}}
            ],
            "colliderGroups": [{"name": "Head", "colliders": [0]}],
            "springs": [
                {
                    "name": "Ear",
                    "joints": [{"node": ear, "stiffness": 1.0}, {"node": ear + 1}],
                    "colliderGroups": [0],
                }
            ],
        },
    }
    return scene, binary


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Give springs to hair of each kind, and let three-vrm nod its head, all in one process."""
    require_node()
    folder = tmp_path_factory.mktemp("springs")
    at_rest = Rotation.from_quat(g.hair_scene()[0]["nodes"][1]["rotation"])
    # The head's node is 1.7 m below the hair.
    nod = 0.05 * np.sin(np.arange(NOD) / NOD * 4.0 * np.pi)
    turns = at_rest * Rotation.from_rotvec([[angle, 0.0, 0.0] for angle in [*nod, 0.0]])
    ins, outs, made = [], [], {}
    for name, options in SETTINGS.items():
        scene = humanoid() if name == "avatar" else g.hair_scene(**KINDS.get(name, {}))
        source = g.write(folder / f"in {name}.vrm", scene)
        rigged = hk.rig(source, segments=1 if name == "one bone" else 3)
        ins.append(source)
        made[name] = with_springs(rigged, **options)
        outs.append(made[name].save(folder / f"{name}.vrm"))
    paths = swayed_by_three([Sway(path, "Head", turns.as_quat(), FRAMES) for path in outs])
    body = np.array(g.hair_scene()[0]["nodes"][0]["translation"])
    return SimpleNamespace(
        made=made,
        paths=dict(zip(SETTINGS, paths, strict=True)),
        data={name: g.unpack(path)[0] for name, path in zip(SETTINGS, outs, strict=True)},
        turned=turns,
        turns=turns * at_rest.inv(),
        body=body,
        ins=validator_reports(ins),
        outs=validator_reports(outs),
    )


def rigidly(files: SimpleNamespace, path: Any) -> np.ndarray:
    """Return where joints would be if hair were stiff, frame by frame."""
    moved = [path.positions[0]]
    for frame in range(FRAMES):
        turn = files.turns[min(frame, NOD)]
        moved.append(turn.apply(path.positions[0] - files.body) + files.body)
    return np.array(moved)


def hair_of(files: SimpleNamespace, name: str) -> np.ndarray:
    """Return which of a file's joints are bones of our chains or their tails."""
    nodes = files.data[name]["nodes"]
    return np.array([nodes[row]["name"].startswith("Hair") for row in files.paths[name].nodes])


@pytest.mark.parametrize("name", SETTINGS)
def test_three_vrm_runs_600_frames(files: SimpleNamespace, name: str):
    """Let the head nod: joints are finite, swing out while it nods, and come back to rest."""
    path = files.paths[name]
    assert path.positions.shape == (FRAMES + 1, len(path.nodes), 3)
    assert np.isfinite(path.positions).all()
    springs = springs_of(files.data[name])["springs"]
    assert path.nodes == [joint["node"] for spring in springs for joint in spring["joints"]]
    assert path.moved == len(path.nodes) - len(springs)
    hair = hair_of(files, name)
    places = path.positions[:, hair]
    size = np.linalg.norm(np.ptp(places[0], axis=0))
    away = np.linalg.norm(places - rigidly(files, path)[:, hair], axis=2)
    first = [row for row, node in enumerate(np.array(path.nodes)[hair]) if is_first(springs, node)]
    # Springs begin at bones whose place is fixed to the head; all further joints swing.
    assert away[:, first].max() <= 1e-6 * size
    further = np.setdiff1d(np.arange(hair.sum()), first)
    assert away[1].max() <= 0.01 * size
    assert away[1 : NOD + 1, further].max(axis=0).min() > 0.01 * size
    last = np.linalg.norm(places[-1] - places[-2], axis=1)
    assert last.max() <= 1e-5 * size
    droops = SETTINGS[name].get("gravity", 1.0) > 0.0
    assert away[-1].max() <= (0.1 if droops else 1e-3) * size


def is_first(springs: list[dict[str, Any]], node: int) -> bool:
    """Tell whether a node is a spring's first joint."""
    return any(spring["joints"][0]["node"] == node for spring in springs)


def test_three_vrm_is_as_our_twin_of_the_reference(files: SimpleNamespace):
    """Follow the tail of a chain of one bone, from the last nod on, by the twin that tests use."""
    path = files.paths["one bone"]
    springs = springs_of(files.data["one bone"])["springs"]
    for number, spring in enumerate(springs):
        bone, tail = (path.positions[:, 2 * number + end] for end in (0, 1))
        # While a bone's head moves, three-vrm takes its length from two frames: not exact.
        start = NOD + 3
        rest = tail[0] - bone[0]
        length = float(np.linalg.norm(rest))
        swung = tail - bone[-1]
        twin = swing(
            spring["joints"][0],
            60.0,
            FRAMES - start,
            length=length,
            rest=rest / length,
            start=swung[start],
            before=swung[start - 1],
        )
        assert np.abs(swung[start] - rest).max() > 0.01 * length
        assert np.abs(twin - swung[start:]).max() <= 1e-6 * length


def test_hair_keeps_off_colliders(files: SimpleNamespace):
    """Measure how near joints come to a ball in the head, with the ball and without."""
    gaps = {}
    for name in ("near", "kept off"):
        middle = np.array(
            [files.turned[min(f, NOD)].apply(BALL.center) + files.body for f in range(FRAMES)]
        )
        tails = np.flatnonzero(
            [
                not is_first(springs_of(files.data[name])["springs"], n)
                for n in files.paths[name].nodes
            ]
        )
        away = np.linalg.norm(files.paths[name].positions[1:, tails] - middle[:, None], axis=2)
        gaps[name] = away.min() - BALL.radius
    # Pushing a tail out and keeping its bone's length are two things, done one after the other.
    assert gaps["kept off"] > -0.02 * BALL.radius
    assert gaps["near"] < -0.05 * BALL.radius


@pytest.mark.parametrize(
    ("name", "change"),
    [("tiny", [0.01] * 3), ("huge", [100.0] * 3), ("mirror", [-1.0, 1.0, 1.0])],
)
def test_sizes_and_mirrors_sway_alike(files: SimpleNamespace, name: str, change: list[float]):
    """Scale or mirror hair in its head's space: the same path, scaled or mirrored."""
    # The head nods about the axis that is mirrored, so that its nod is its own mirror image.
    back = Rotation.from_quat(g.hair_scene()[0]["nodes"][1]["rotation"]).inv()
    plain, other = (
        back.apply((files.paths[each].positions - files.body).reshape(-1, 3))
        for each in ("plain", name)
    )
    size = np.abs(other).max()
    assert np.abs(other - plain * change).max() <= 1e-5 * size


def test_validator_finds_nothing_new(files: SimpleNamespace):
    """Compare what the validator says of each file with what it said of its input."""
    for name, before, after in zip(SETTINGS, files.ins, files.outs, strict=True):
        assert after["numErrors"] == 0, (name, complaints(after))
        assert kinds(after) <= kinds(before), (name, complaints(after))


def test_avatars_own_springs_run_as_before(files: SimpleNamespace, tmp_path: Path):
    """Run the avatar without our springs: its own ear moves as it does with them."""
    made = files.made["avatar"]
    alone = copy.deepcopy(made.document.json)
    springs = springs_of(alone)["springs"]
    springs[:] = springs[:1]
    other = made.document.copy()
    other.json = alone
    path = tmp_path / "alone.vrm"
    path.write_bytes(other.to_glb())
    at_rest = Rotation.from_quat(made.document.json["nodes"][1]["rotation"])
    turns = (files.turns * at_rest).as_quat()
    ran = swayed_by_three([Sway(path, "Head", turns, FRAMES)])[0]
    ear = node_named(alone, "ear2")
    with_ours = files.paths["avatar"]
    mine = ran.positions[:, ran.nodes.index(ear)]
    assert np.abs(mine - with_ours.positions[:, with_ours.nodes.index(ear)]).max() <= 1e-9
    assert np.ptp(mine, axis=0).max() > 0.01


def test_bench_answers():
    """Time few chains: a number above zero. What it is, no test decides."""
    assert three_springs_ms(updates=5, chains=10, bones=2) > 0.0


def test_long_chains_sway_as_one(tmp_path: Path):
    """Nod with five bones a chain: no bone folds back against the one before it."""
    require_node()
    points, faces = g.card_mesh(rows=12)
    path = with_springs(hk.rig((points, faces), segments=5)).document.to_glb()
    (tmp_path / "long.glb").write_bytes(path)
    data, _ = g.unpack(tmp_path / "long.glb")
    top = data["scenes"][0]["nodes"][0]
    # About the origin, a metre and a half below: 15 cm either way.
    angles = 0.1 * np.sin(2.0 * np.pi * np.arange(180) / 60) * np.minimum(1.0, np.arange(180) / 12)
    turns = Rotation.from_rotvec(angles[:, None] * [1.0, 0.0, 0.0]).as_quat()
    (ran,) = swayed_by_three([Sway(tmp_path / "long.glb", top, turns, 300)])
    folded = 0.0
    for spring in springs_of(data)["springs"]:
        nodes = [joint["node"] for joint in spring["joints"]]
        places = np.stack([ran.positions[:, ran.nodes.index(node)] for node in nodes], axis=1)
        ways = np.diff(places, axis=1)
        ways /= np.linalg.norm(ways, axis=2, keepdims=True)
        bend = np.arccos(np.clip(np.sum(ways[:, 1:] * ways[:, :-1], axis=2), -1.0, 1.0))
        rest = bend[0]
        folded = max(folded, float(np.abs(bend - rest).max()))
    assert 0.1 < folded < np.radians(90.0), np.degrees(folded)
