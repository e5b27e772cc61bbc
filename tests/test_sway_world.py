"""The manager and the solver's world: hair of three kinds sways where it is worn."""

from collections.abc import Callable
from pathlib import Path

import gltf_scenes as g
import numpy as np
import pytest
from sway_stage import Clock, Threads, moved

import hairkit as hk
from hairkit.sim.world import World
from hairkit.sway import Accessory, Budget, Character, Stage, attach


def test_hair_of_three_kinds_sways_in_a_world(tmp_path: Path, world: Callable[..., World]):
    """Wear a scaled file, a boned one and an empty one: in place, moving, budgeted, then gone."""
    path = g.write(tmp_path / "a.glb", g.hair_scene(scale=[2.0, 2.0, 2.0]))
    boned = hk.rig(path, sectors=2).save(tmp_path / "boned.glb")
    empty = g.card_mesh()[0], np.zeros((0, 3), int)
    place, clock, threads, stage = world(), Clock(), Threads(), Stage()
    budget = Budget(6)
    manager = attach(stage, world=place, clock=clock, start=threads, budget=budget)
    hair = [Accessory(f"hair {n}", source=s) for n, s in enumerate((path, boned, empty))]
    for accessory in hair:
        accessory.attachment = moved(0.0, 0.1)
    ann = Character("Ann", head_pose=moved(3.0), accessories=hair)
    stage.add(ann)
    clock.now += 1.0
    manager.update()
    threads.run()
    manager.update()
    bound = manager.bindings(ann)
    assert [bound[a].chains for a in hair] == [3, 2, 1] and len(place.chains) == 3
    # Joints are where the mesh is: its own space through file, attachment and head.
    rigged = hair[0].rigged
    wanted = rigged.plan.positions[list(rigged.plan.chains[1])]
    wanted = wanted @ rigged.into_scene[:3, :3].T + rigged.into_scene[:3, 3] + (3.0, 0.1, 0.0)
    chains = place.chains[0]
    each = len(chains.points()) // 3
    assert chains.points()[each + 1 : each + 4] == pytest.approx(wanted, abs=1e-4)
    # The ball that cameras are asked about holds all of each mesh.
    corners = np.concatenate([rigged.vertices, rigged.plan.positions])
    corners = corners @ rigged.into_scene[:3, :3].T + rigged.into_scene[:3, 3] + (3.0, 0.1, 0.0)
    for accessory in hair[:2]:
        away = np.linalg.norm(corners - bound[accessory].position, axis=1)
        assert away.max() <= bound[accessory].radius
    before = [each.points() for each in place.chains]
    for frame in range(30):
        ann.head_pose = moved(3.0 + 0.3 * np.sin(0.5 * frame))
        manager.update()
        place.step(1 / 60)
    for old, each in zip(before, place.chains, strict=True):
        assert np.isfinite(each.points()).all() and np.abs(each.points() - old).max() > 0.01
    manager.budget = Budget(4)
    manager.update()
    assert [bound[a].active for a in hair] == [True, False, False]
    manager.update()
    place.step(1 / 60)
    stage.remove(ann)
    manager.update()
    place.step(1 / 60)
    assert place.chains == []
    manager.destroy()


def test_device_is_measured_once_for_a_budget_of_auto(world: Callable[..., World]):
    """Ask how many chains fit: a whole number, the same again, more in more time; and attach."""
    place = world()
    first = place.most_chains()
    assert first >= 1 and place.most_chains() == first
    assert place.most_chains(50.0) >= 20 * first
    manager = attach(Stage(), world=place, budget="auto")
    assert manager.budget is not None and manager.budget.max_chains == first
    manager.destroy()
    with pytest.raises(hk.HairkitError, match="milliseconds"):
        place.most_chains(0.0)
    with pytest.raises(hk.HairkitError, match="auto"):
        attach(Stage(), budget="auto")
