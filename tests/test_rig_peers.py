"""Rigged files by other people's software: Khronos' validator, and three.js that turns joints."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gltf_scenes as g
import numpy as np
import pytest
import trimesh
from gltf_peers import Job, all_posed_by_three, complaints, require_node, validator_reports
from test_rig import NODES, avatar

import hairkit as hk

POSES: list[dict[str, Any]] = [
    {},
    {"Hair_S1_B2": (0.0, 0.0, 0.6, 0.8)},
    {"HairRoot": (0.5, 0.5, 0.5, 0.5), "Hair_S3_B1": (0.6, 0.0, 0.0, 0.8)},
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Rig the small scene at every kind of node, and by every way in; ask both peers at once."""
    require_node()
    folder = tmp_path_factory.mktemp("rigged")
    ins: list[Path] = []
    outs: list[Path] = []

    def rigged(source: Any, name: str, **options: Any) -> None:
        if isinstance(source, Path):
            ins.append(source)
        outs.append(hk.rig(source, **options).save(folder / name))

    for number, node in enumerate(NODES.values()):
        source = g.write(folder / f"in{number}.glb", g.hair_scene(**node))
        rigged(source, f"node{number}.glb", max_influences=1 + number % 4)
    posed = list(outs)
    rigged(outs[1], "again.glb", replace_skin=True, sectors=2)
    rigged(g.write(folder / "a.vrm", avatar(1, modification="allowModification")), "avatar.vrm")
    scene, binary = g.hair_scene()
    scene["nodes"][3]["mesh"] = 0
    rigged(g.write(folder / "twice.glb", (scene, binary)), "shared.glb", mesh="Fringe")
    rigged(g.write(folder / "plain.glb", g.hair_scene()), "text.gltf")
    points, faces = g.card_mesh()
    mesh = trimesh.Trimesh(points, faces, process=False)
    mesh.export(str(folder / "hair.obj"))
    rigged(mesh, "mesh.glb", sectors=40, segments=9)
    outs.append(hk.rig(folder / "hair.obj").save(folder / "obj.glb"))
    return SimpleNamespace(
        names=[path.name for path in outs],
        ins=validator_reports(ins),
        outs=validator_reports(outs),
        posed=posed,
        three=all_posed_by_three([Job(path, POSES) for path in posed]),
    )


def test_validator_finds_nothing_new(files: SimpleNamespace):
    """Compare what the validator says of each file with what it said of its input."""
    before = {line for report in files.ins for line in kinds(report)}
    for name, report in zip(files.names, files.outs, strict=True):
        assert report["numErrors"] == 0, (name, complaints(report))
        assert kinds(report) <= before, (name, complaints(report))
        assert report["info"]["hasSkins"], name


def kinds(report: dict[str, Any]) -> set[str]:
    """Return the codes of a report's errors and warnings."""
    return {i["code"] for i in report["issues"] if i["severity"] in ("error", "warning")}


def test_three_turns_joints_as_our_own_skinning_says(files: SimpleNamespace):
    """Turn joints in three.js and in our twin: each vertex within 1e-5 of the mesh's size."""
    for path, places in zip(files.posed, files.three, strict=True):
        for pose, got in zip(POSES, places[0], strict=True):
            data, held = g.unpack(path)
            for name, turn in pose.items():
                row = [node.get("name") for node in data["nodes"]].index(name)
                node = data["nodes"][row]
                node["rotation"] = list(turn)
            node = [node.get("name") for node in data["nodes"]].index("Fringe_skinned")
            wanted = g.skinned(data, held, node)
            assert np.abs(got - wanted).max() <= 1e-5 * np.ptp(wanted, axis=0).max(), path.name
