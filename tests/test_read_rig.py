"""Bakes are read back by what was planned, whatever else their file holds."""

from pathlib import Path

import gltf_scenes as g
import pytest

import hairkit as hk
from hairkit.errors import RigError
from hairkit.rigging.read import read_rig
from hairkit.sway import read_boned


def test_a_bake_is_read_as_its_file_is(tmp_path: Path):
    """Read bytes and file of a scaled mesh: the plan's bones and chains, in the same place."""
    path = g.write(tmp_path / "in.glb", g.hair_scene(scale=[2.0, 3.0, 2.0]))
    made = hk.rig(path, sectors=4, segments=2)
    saved = made.save(tmp_path / "out.glb")
    for read in (read_boned(saved), read_boned(saved.read_bytes()), read_rig(saved)):
        assert read.bone_names[1:] == made.bone_names[1:]
        assert read.plan.chains == made.plan.chains
        places = read.plan.positions @ read.into_scene[:3, :3].T + read.into_scene[:3, 3]
        wanted = made.plan.positions @ made.into_scene[:3, :3].T + made.into_scene[:3, 3]
        assert places[1:] == pytest.approx(wanted[1:], abs=1e-6)


def test_a_bake_knows_which_mesh_was_rigged(tmp_path: Path):
    """Rig by name where no name says hair: the file is unclear then, the bake is not."""
    scene, binary = g.hair_scene()
    scene["materials"][0]["name"] = "brown"
    path = g.write(tmp_path / "in.glb", (scene, binary))
    with pytest.raises(RigError, match="no mesh with 'hair'"):
        hk.rig(path)
    raw = hk.rig(path, mesh="Fringe").to_bytes(".glb")
    for mesh in (None, "Fringe"):
        assert len(read_boned(raw, mesh=mesh).plan.chains) == 3


def test_what_is_no_bake_is_refused(tmp_path: Path):
    """Read a mesh without bones, garbage, and a skin that is not there."""
    path = g.write(tmp_path / "in.glb", g.hair_scene())
    with pytest.raises(RigError) as error:
        read_boned(path.read_bytes())
    assert error.value.kind == "no skin"
    with pytest.raises(RigError) as error:
        read_boned(b"hello")
    assert error.value.kind == "unreadable"
    scene, binary = g.hair_scene()
    scene["nodes"][2]["skin"] = 7
    with pytest.raises(RigError, match="has no skin 7"):
        read_boned(g.glb(scene, binary))
