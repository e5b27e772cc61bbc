"""Ask other people's software about glTF files.

Khronos' validator; three.js for poses; three-vrm for spring bones.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

PROGRAMS = Path(__file__).resolve().parent / "gltf"

# Keys are str or int; a Mapping of that very union would refuse a dict of str.
Pose = Mapping[Any, ArrayLike]
"""Local rotations (x, y, z, w) of nodes, by name or index; they replace what the file says."""


@dataclass(frozen=True)
class Job:
    """A skinned mesh of a GLB file, and poses to see it in.

    Attributes:
        path: The file.
        poses: Poses; an empty one is the pose that the file is in.
        node: The skinned mesh's node, by name or index; None if there is only one.
    """

    path: Path
    poses: Sequence[Pose] = ({},)
    node: str | int | None = None


@dataclass(frozen=True)
class Sway:
    """A GLB file with VRM 1.0's spring bones, and how one of its nodes turns as they run.

    Attributes:
        path: The file; an avatar has a complete humanoid.
        node: The node that turns, by name or index.
        turns: Its local rotations (x, y, z, w) before each frame; the last one stays.
        frames: How many frames to run.
        rate: Frames a second.
    """

    path: Path
    node: str | int
    turns: Sequence[ArrayLike] = ()
    frames: int = 600
    rate: float = 60.0


@dataclass(frozen=True, eq=False)
class Swayed:
    """What three-vrm made of a `Sway`.

    Attributes:
        nodes: The node of each joint of each spring, tails too, in the file's order.
        positions: Where they are in world space before the first frame and after each, shape
            (frames + 1, joints, 3); NaN where three-vrm has no number.
        moved: How many of the joints are not tails, as three-vrm sees it.
    """

    nodes: list[int]
    positions: np.ndarray
    moved: int


def require_node() -> None:
    """Skip the test if node or its packages are missing; fail if HAIRKIT_REQUIRE_NODE is 1."""
    if shutil.which("node") and _packages_are_there():
        return
    reason = "node and tests/gltf/node_modules are needed: run npm install in tests/gltf"
    if os.environ.get("HAIRKIT_REQUIRE_NODE") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def validator_report(path: Path) -> dict[str, Any]:
    """Return what Khronos' validator says about one file; see `validator_reports`."""
    return validator_reports([path])[0]


def validator_reports(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Return what Khronos' validator says about each file.

    Args:
        paths: GLB or glTF files. Buffers and pictures are read from a file's own folder only.

    Returns:
        For each file `numErrors`, `numWarnings`, `numInfos`, `numHints`; `issues`, a list of dicts
        with `code`, `severity` ("error", "warning", "information", "hint"), `message`, `pointer`
        (into the JSON, or None) and `offset` (into a GLB's bytes, or None); `info`, the validator's
        own summary of the file, or None where it could not read that far; `validatorVersion`.
    """
    names = [str(path) for path in paths]
    said = _run_node("validate.mjs", *names)
    return [said[name] for name in names]


def complaints(report: Mapping[str, Any]) -> list[str]:
    """Return a report's errors and warnings as lines to compare with an empty list."""
    return [
        f"{issue['severity']} {issue['code']} at {issue['pointer']}: {issue['message']}"
        for issue in report["issues"]
        if issue["severity"] in ("error", "warning")
    ]


def posed_by_three(
    path: Path, poses: Sequence[Pose] = ({},), node: str | int | None = None
) -> list[np.ndarray]:
    """Return where three.js puts the vertices of one skinned mesh; see `all_posed_by_three`."""
    return all_posed_by_three([Job(path, poses, node)])[0]


def all_posed_by_three(jobs: Sequence[Job]) -> list[list[np.ndarray]]:
    """Return where three.js puts the vertices of skinned meshes, morph targets at zero.

    Args:
        jobs: What to pose, all in one process: starting node takes most of the time.

    Returns:
        For each job an array for each primitive, in the file's order, shape (poses, vertices, 3):
        positions in world space, computed in float64 from the file's float32.
    """
    wanted = [
        {
            "file": str(job.path),
            "node": job.node,
            "poses": [
                [[joint, _quaternion(value)] for joint, value in pose.items()] for pose in job.poses
            ],
        }
        for job in jobs
    ]
    posed = []
    for job, found in zip(jobs, _run_node("pose.mjs", given=json.dumps(wanted)), strict=True):
        if found["warnings"]:
            raise AssertionError(f"three.js on {job.path}: " + "; ".join(found["warnings"]))
        posed.append([np.array(each, dtype=np.float64) for each in found["positions"]])
    return posed


def swayed_by_three(jobs: Sequence[Sway]) -> list[Swayed]:
    """Return where three-vrm's spring bones put joints, frame by frame, in one process.

    An avatar is loaded as one; any other file needs the spring bones alone.
    """
    wanted = [
        {
            "file": str(job.path),
            "node": job.node,
            "turns": [_quaternion(turn) for turn in job.turns],
            "frames": job.frames,
            "rate": job.rate,
        }
        for job in jobs
    ]
    swayed = []
    for job, found in zip(jobs, _run_node("springs.mjs", given=json.dumps(wanted)), strict=True):
        if found["warnings"]:
            raise AssertionError(f"three-vrm on {job.path}: " + "; ".join(found["warnings"]))
        places = np.array(found["positions"], dtype=np.float64)
        swayed.append(Swayed(found["nodes"], places, found["moved"]))
    return swayed


def three_springs_ms(updates: int = 300, chains: int = 1000, bones: int = 4) -> float:
    """Return three-vrm's median time of an update of chains with one sphere to keep off [ms]."""
    numbers = [str(number) for number in (updates, chains, bones)]
    return float(_run_node("springs_bench.mjs", *numbers)["median_ms"])


def _quaternion(value: ArrayLike) -> list[float]:
    """Return a quaternion as JSON can hold it, or refuse one that would shear the mesh."""
    quaternion = np.asarray(value, dtype=np.float64)
    assert quaternion.shape == (4,), f"a quaternion is x, y, z, w, not {value}"
    assert abs(np.linalg.norm(quaternion) - 1) < 1e-6, f"{value} is not of length 1"
    return quaternion.tolist()


def _packages_are_there() -> bool:
    """Tell whether the packages are installed in the very versions that package.json names."""
    wanted = json.loads((PROGRAMS / "package.json").read_text(encoding="utf-8"))["dependencies"]
    for name, version in wanted.items():
        path = PROGRAMS / "node_modules" / name / "package.json"
        if not path.is_file() or json.loads(path.read_text(encoding="utf-8"))["version"] != version:
            return False
    return True


def _run_node(program: str, *arguments: str, given: str = "") -> Any:
    """Run a program of ours under node and return the JSON that it prints."""
    require_node()
    done = subprocess.run(
        ["node", PROGRAMS / program, *arguments],
        input=given,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    if done.returncode != 0:
        raise AssertionError(f"{program}: {done.stderr.strip()[-3000:]}")
    return json.loads(done.stdout)
