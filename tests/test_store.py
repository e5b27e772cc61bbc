"""The bake store: what a key depends on, many processes at once, bounded size; and the server."""

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import gltf_scenes as g
import numpy as np
import pytest
import trimesh
from sway_stage import RIGGED, Clock, FakeWorld, Rigger, Threads

import hairkit as hk
from hairkit.errors import FileError, HairkitError
from hairkit.sway import (
    Accessory,
    BakeStore,
    Character,
    RigServer,
    Stage,
    attach,
    hair_rigged,
    read_boned,
)
from hairkit.sway import (
    store as store_module,
)

ROOT = Path(__file__).resolve().parent.parent
KEYS = [f"{number:064x}" for number in range(8)]


def content(key: str) -> bytes:
    """Return what a key stands for, 40,000 bytes."""
    return (key.encode() * 625)[:40_000]


# ---- keys


def test_key_is_what_the_bake_depends_on(tmp_path: Path):
    """Change the mesh, an option, the version: another key; the file's name or a default: none."""
    store = BakeStore(tmp_path / "store")
    path = g.write(tmp_path / "a.glb", g.hair_scene())
    twin = g.write(tmp_path / "b.glb", g.hair_scene())
    other = g.write(tmp_path / "c.glb", g.hair_scene(scale=[2.0, 2.0, 2.0]))
    key = store.key(path)
    same = [
        store.key(str(twin)),
        store.key(path, {}),
        store.key(path, {"segments": 3, "root": None}),
    ]
    assert set(same) == {key}
    points, faces = g.card_mesh()
    different = [
        store.key(other),
        store.key(path, {"sectors": 4}),
        store.key(path, {"root": (0, 1, 0)}),
        store.key(path, {"root": (0, 2, 0)}),
        store.key((points, faces)),
        store.key((points + 0.1, faces)),
        store.key((points, faces[:, ::-1])),
        store.key(trimesh.Trimesh(points, faces, process=False)),
    ]
    assert len({key, *different}) == 9
    assert store.key(path, {"root": np.array([0.0, 1.0, 0.0])}) == different[2]
    assert store.key((points.tolist(), faces.tolist())) == different[4]


def test_key_depends_on_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Bake otherwise from now on: old bakes are not found any more."""
    store, mesh = BakeStore(tmp_path), g.card_mesh()
    before = store.key(mesh)
    monkeypatch.setattr(store_module, "BAKE_VERSION", store_module.BAKE_VERSION + 1)
    assert store.key(mesh) != before


def test_key_of_a_gltf_depends_on_the_files_beside_it(tmp_path: Path):
    """Change one byte of the buffer that lies beside a .gltf."""
    scene, binary = g.hair_scene()
    scene["buffers"][0]["uri"] = "data.bin"
    (tmp_path / "a.gltf").write_text(g.json.dumps(scene))
    store = BakeStore(tmp_path / "store")
    keys = set()
    for last in (0, 1):
        (tmp_path / "data.bin").write_bytes(binary[:-1] + bytes([last]))
        keys.add(store.key(tmp_path / "a.gltf"))
    assert len(keys) == 2


def test_what_is_no_source_or_option_is_refused(tmp_path: Path):
    """Ask for a missing file, for nothing, for an option that is no number, for no key."""
    store = BakeStore(tmp_path)
    with pytest.raises(FileError, match="no such file"):
        store.key(tmp_path / "no.glb")
    for bad in (None, 3, ("a", "b")):
        with pytest.raises(HairkitError, match="source: expected"):
            store.key(bad)
    with pytest.raises(HairkitError, match="option root"):
        store.key(g.card_mesh(), {"root": object()})
    for key in ("", "../../etc/passwd", KEYS[0].upper() + "A"):
        with pytest.raises(HairkitError, match="64 hexadecimal digits"):
            store.get(key)
        with pytest.raises(HairkitError, match="64 hexadecimal digits"):
            store.put(key, b"")
    with pytest.raises(HairkitError, match="max_bytes"):
        BakeStore(tmp_path, max_bytes=0)
    with pytest.raises(FileError):
        BakeStore(tmp_path / "no" / "where")


# ---- files


def test_what_is_put_is_got(tmp_path: Path):
    """Put two bakes, one empty; open the folder anew; replace one."""
    store = BakeStore(tmp_path)
    assert store.get(KEYS[0]) is None
    assert store.put(KEYS[0], b"hair") and store.put(KEYS[1], b"")
    again = BakeStore(tmp_path)
    assert again.get(KEYS[0]) == b"hair" and again.get(KEYS[1]) == b""
    again.put(KEYS[0], b"other")
    assert store.get(KEYS[0]) == b"other"
    assert len(list(tmp_path.iterdir())) == 2


def test_bad_files_are_dropped(tmp_path: Path):
    """Cut a file at every length, flip a bit, swap two, write garbage: never what was not put."""
    store = BakeStore(tmp_path)
    store.put(KEYS[0], b"hair of one")
    store.put(KEYS[1], b"hair of two")
    first, second = (tmp_path / f"{key}.bake" for key in KEYS[:2])
    whole = first.read_bytes()
    bad = [whole[:count] for count in range(len(whole))]
    bad += [whole[:3] + bytes([whole[3] ^ 1]) + whole[4:], whole + b"\0", os.urandom(100)]
    bad += [second.read_bytes()]
    for raw in bad:
        first.write_bytes(raw)
        assert store.get(KEYS[0]) is None and not first.exists()
    first.write_bytes(whole)
    assert store.get(KEYS[0]) == b"hair of one"


def test_least_recently_used_go_first(tmp_path: Path):
    """Read the oldest, put one too many: the second oldest goes."""
    store = BakeStore(tmp_path, max_bytes=3 * 40_032)
    for age, key in zip((30, 20, 10), KEYS, strict=False):
        store.put(key, content(key))
        at = time.time() - age
        os.utime(tmp_path / f"{key}.bake", (at, at))
    store.get(KEYS[0])
    store.put(KEYS[3], content(KEYS[3]))
    assert [store.get(key) is not None for key in KEYS[:4]] == [True, False, True, True]


def test_size_is_bounded(tmp_path: Path):
    """Put more than there is room for; one that is larger than all room is not kept."""
    store = BakeStore(tmp_path, max_bytes=100_000)
    for key in KEYS:
        assert store.put(key, content(key))
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 100_000
    assert len(list(tmp_path.iterdir())) == 2
    assert not store.put(KEYS[0], b"x" * 100_000) and store.get(KEYS[7]) == content(KEYS[7])


def test_remains_of_a_killed_writer_go(tmp_path: Path):
    """Find an old unfinished file and a fresh one: the fresh one may be another process's."""
    store = BakeStore(tmp_path)
    old, fresh = tmp_path / "a.1.x.part", tmp_path / "a.2.x.part"
    old.write_bytes(b"x")
    fresh.write_bytes(b"x")
    os.utime(old, (1.0, 1.0))
    store.put(KEYS[0], b"hair")
    assert not old.exists() and fresh.exists()


def test_a_full_disk_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Let the rename fail: not kept, nothing left beside."""

    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    store = BakeStore(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        assert store.put(KEYS[0], b"hair") is False
    assert list(tmp_path.iterdir()) == [] and store.get(KEYS[0]) is None


CHILD = """
import random
import sys
from hairkit.sway.store import BakeStore
folder, seed, rounds, most = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
store = BakeStore(folder, max_bytes=most)
print("ready", flush=True)
sys.stdin.readline()
random.seed(seed)
hits = 0
for turn in range(rounds):
    key = f"{random.randrange(8):064x}"
    wanted = (key.encode() * 625)[:40_000]
    found = store.get(key)
    assert found in (None, wanted), (key, len(found))
    hits += found is not None
    if found is None or turn % 5 == seed:
        assert store.put(key, wanted)
print("hits", hits)
"""


@pytest.mark.parametrize("room", [8, 3])
def test_many_processes_share_a_store(tmp_path: Path, room: int):
    """Let three processes read and write eight keys at once, with room for all or for three."""
    most = room * 40_032
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path), str(seed), "120", str(most)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for seed in range(3)
    ]
    for child in children:
        # All wait until all are there, so that they truly write at once.
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    hits = 0
    for child in children:
        out, error = child.communicate(timeout=60)
        assert child.returncode == 0, error
        hits += int(out.split()[-1])
    assert hits > 20
    files = list(tmp_path.iterdir())
    assert {path.suffix for path in files} == {".bake"} and len(files) == room
    store = BakeStore(tmp_path)
    assert all(store.get(path.stem) == content(path.stem) for path in files)


# ---- the server


class Served:
    """A stage with a server."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.stage, self.threads, self.rigger = Stage(), Threads(), Rigger()
        self.store = BakeStore(folder)
        # The fake rigger goes by words; the store's keys need something to hash.
        self.options = {"rigger": self.rig, "start": self.threads, **options}

    def rig(self, source: Any, **options: Any) -> Any:
        """Rig arrays; refuse those of one triangle."""
        return self.rigger("good" if len(source[1]) > 1 else "no vertices", **options)

    def serve(self) -> RigServer:
        """Start a server."""
        return RigServer(self.stage, self.store, **self.options)

    def add(self, *sources: Any, name: str = "hair") -> Character:
        """Let a character with hair come."""
        character = Character("Ann", accessories=[Accessory(name, source=s) for s in sources])
        self.stage.add(character)
        return character


def test_server_bakes_who_is_there_and_who_comes(tmp_path: Path):
    """Serve with one there, one that comes and one that dresses later; hats and no meshes left."""
    served = Served(tmp_path, rig={"sectors": 3})
    points, faces = g.card_mesh()
    meshes = [(points + shift, faces) for shift in (0.0, 0.1, 0.2, 0.3)]
    heard: list[Any] = []

    def receiver(*what: Any, **_: Any) -> None:
        heard.append(what)

    hair_rigged.connect(receiver)
    ann = served.add(meshes[0], None)
    server = served.serve()
    served.threads.run()
    served.add(meshes[1])
    served.add(meshes[3], name="Cap")
    assert len(served.threads.waiting) == 1
    served.threads.run()
    ann.wear(Accessory("hair", source=meshes[2]))
    assert served.threads.run() == 1
    baked = [served.store.baked(mesh, {"sectors": 3}) for mesh in meshes]
    assert baked == [RIGGED.to_bytes(".glb")] * 3 + [None]
    assert heard == [] and ann.accessories[0].rigged is None and server.failures == []
    server.close()


def test_server_rigs_once_per_mesh(tmp_path: Path):
    """Let three come in the same hair: one rig; serve again: none."""
    served = Served(tmp_path)
    for _ in range(2):
        server = served.serve()
        for _ in range(3):
            served.add(g.card_mesh())
        served.threads.run()
        server.close()
    assert len(served.rigger.asked) == 1


def test_server_leaves_what_fails_untouched(tmp_path: Path):
    """Fail to rig, to read and to find: reported, nothing baked, the rest goes on."""
    served = Served(tmp_path)
    server = served.serve()
    points, faces = g.card_mesh()
    ann = served.add((points, faces[:1]), tmp_path / "no.glb", 3, (points, faces))
    served.threads.run()
    kinds = [failure.error.kind for failure in server.failures]
    assert kinds == ["no vertices", "unreadable", "unreadable"]
    assert [accessory.rigged for accessory in ann.accessories] == [None] * 4
    assert len(list(tmp_path.iterdir())) == 1
    served.stage.remove(ann)
    assert server.failures == []
    server.close()


def test_server_stops_when_it_is_closed(tmp_path: Path):
    """Close with work waiting: nothing is rigged any more, nobody is held."""
    served = Served(tmp_path)
    server = served.serve()
    ann = served.add(g.card_mesh())
    server.close()
    served.threads.run()
    served.add(g.card_mesh())
    assert served.threads.run() == 0 and served.rigger.asked == []
    served.stage.remove(ann)
    gone = weakref.ref(ann)
    del ann
    gc.collect()
    assert gone() is None
    gone = weakref.ref(server)
    del server
    gc.collect()
    assert gone() is None


def test_server_skips_who_left(tmp_path: Path):
    """Go before the thread gets there."""
    served = Served(tmp_path)
    server = served.serve()
    served.stage.remove(served.add(g.card_mesh()))
    served.threads.run()
    assert served.rigger.asked == []
    server.close()


def test_client_sways_what_the_server_baked(tmp_path: Path):
    """Bake a file on a real thread; a client that has the store binds it and rigs nothing."""
    path = g.write(tmp_path / "in.glb", g.hair_scene())
    before = set(threading.enumerate())
    stage, store = Stage(), BakeStore(tmp_path / "store")
    stage.add(Character("Ann", accessories=[Accessory("hair", source=path)]))
    options: dict[str, Any] = {"sectors": 4, "segments": 2}
    server = RigServer(stage, store, rig=options)
    server.close(timeout=30.0)
    assert set(threading.enumerate()) <= before
    raw = store.baked(path, options)
    assert raw is not None
    assert read_boned(raw).bone_names == hk.rig(path, **options).bone_names
    world, clock, threads, rigger = FakeWorld(), Clock(), Threads(), Rigger()
    manager = attach(
        stage, world=world, store=store, rig=options, clock=clock, start=threads, rigger=rigger
    )
    clock.now += 1.0
    manager.update()
    threads.run()
    manager.update()
    assert world.kinds == ["chains"] and len(world.bindings[0].what.plan.chains) == 4
    assert rigger.asked == []
    manager.destroy()
