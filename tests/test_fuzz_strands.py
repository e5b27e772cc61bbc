"""Damage small strand files at random: a clear error or sound strands, soon, in little memory.

``HAIRKIT_FUZZ`` sets how many mutations each format is given.
"""

import os
import resource
import struct
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import strand_files as made

from hairkit.errors import FileError, FileWarning
from hairkit.io.strands import load_strands, save_strands

MUTATIONS = int(os.environ.get("HAIRKIT_FUZZ", "250"))
"""Of each format; a thorough run takes 10,000."""

LONGEST_S = 2.0
MOST_KB = 2**20
"""By how much the process may grow at most [KiB]."""

EXTREMES = [
    struct.pack("<I", value)
    for value in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FC00000, 0x7F800000, 0x7F7FFFFF)
]
ENDINGS = (".hair", ".data", ".bin", ".tfx", ".ply", ".glb", ".npz")


def sound(path: Path) -> bytes:
    """Return the bytes of a small sound file that uses all of its format."""
    if path.suffix == ".tfx":
        path.write_bytes(made.tfx([made.line(4), made.line(4, 0.1), made.line(4, 0.2)]))
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            save_strands(made.strands(counts=(2, 5, 3)), path)
    return path.read_bytes()


def mutated(raw: bytes, rng: np.random.Generator) -> bytes:
    """Return bytes with one to four changes: flipped, extreme, cut, repeated, left out or new."""
    data = bytearray(raw)
    for _ in range(rng.integers(1, 5)):
        # Headers are where sizes are: half of all changes are made there.
        reach = len(data) if rng.integers(2) else min(len(data), 160)
        at = int(rng.integers(0, max(reach, 1)))
        match rng.integers(6):
            case 0 if data:
                data[at] ^= int(rng.integers(1, 256))
            case 1:
                data[at : at + 4] = EXTREMES[rng.integers(len(EXTREMES))]
            case 2:
                del data[at:]
            case 3:
                data[at:at] = data[at : at + int(rng.integers(1, 64))]
            case 4:
                del data[at : at + int(rng.integers(1, 16))]
            case _:
                data[at:at] = rng.bytes(int(rng.integers(1, 16)))
    return bytes(data)


def mutated_archive(path: Path, rng: np.random.Generator) -> None:
    """Change an array within an .npz whose checksums are right."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    chosen = sorted(members)[rng.integers(len(members))]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in members.items():
            archive.writestr(name, mutated(raw, rng) if name == chosen else raw)


def mutated_text(raw: bytes, rng: np.random.Generator) -> bytes:
    """Return a .glb whose JSON has other numbers in it, of the same length."""
    data = bytearray(raw)
    digits = [at for at, byte in enumerate(data[:2000]) if 48 <= byte <= 57]
    for at in rng.choice(digits, int(rng.integers(1, 4))):
        data[at] = int(rng.integers(48, 58))
    return bytes(data)


@pytest.mark.parametrize("ending", ENDINGS)
def test_damaged_files_do_no_harm(tmp_path: Path, ending: str):
    """Load each mutation: only a `FileError` may be raised, and what loads must be sound."""
    raw = sound(tmp_path / f"sound{ending}")
    path = tmp_path / f"a{ending}"
    rng = np.random.default_rng(ENDINGS.index(ending))
    refused = loaded = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with warnings.catch_warnings():
        # Whatever is warned of on purpose; anything else is an error.
        warnings.filterwarnings("ignore", category=FileWarning)
        for number in range(MUTATIONS):
            if ending == ".npz" and number % 2:
                path.write_bytes(raw)
                mutated_archive(path, rng)
            elif ending == ".glb" and number % 2:
                path.write_bytes(mutated_text(raw, rng))
            elif ending == ".ply" and number % 2:
                path.write_bytes(mutated(made.ascii_ply([made.line(3), made.line(4, 0.1)]), rng))
            else:
                path.write_bytes(mutated(raw, rng))
            begun = time.perf_counter()
            try:
                found = load_strands(path)
                loaded += 1
                assert found.counts.sum() == found.points.shape[1]
                assert np.isfinite(found.points).all()
            except FileError as error:
                refused += 1
                assert str(path) in str(error)
                assert "\n" not in str(error)
            assert time.perf_counter() - begun < LONGEST_S, f"mutation {number}"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_KB
    assert refused > 0
    assert loaded > 0
