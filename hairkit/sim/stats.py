"""How well a world does: stretch and penetration, read off its state."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from hairkit.sim.world import World


@dataclass(frozen=True, kw_only=True)
class Stats:
    """How well a world does, read off its state now."""

    max_stretch: float
    """Worst strain of any segment but the root's."""

    max_penetration: float
    """Deepest a guide point is in its head, body or a collider [m]; points 0 and 1 are exempt."""

    resets: int
    """Strands and heads that went bad and were put back into their rest pose."""

    awake: int
    """Heads of hair that are simulated at present."""

    steps: int
    """Steps made so far."""

    compile_s: float
    """Time spent compiling the solver [s], as the first launch of each kernel shows it."""


def measure(world: "World") -> Stats:
    """Return a world's stats now."""
    stretch = 0.0
    depth = 0.0
    for hair in world.hairs:
        points = hair.points()
        first = np.concatenate([[0], np.cumsum(hair.counts)]).astype(np.int64)
        index = np.arange(len(points)) - np.repeat(first[:-1], hair.counts)
        rest = np.linalg.norm(np.diff(np.asarray(hair.groom.points), axis=0), axis=1)
        now = np.linalg.norm(np.diff(points, axis=0), axis=1)
        mine = index[1:] >= 2
        if mine.any():
            stretch = max(stretch, float((now[mine] / rest[mine] - 1.0).max()))
        free = points[index >= 2]
        solids = [
            (shape, hair.head_pose if follows else hair.body_pose)
            for shape, _, follows in hair.shapes
        ]
        solids += [(c.shape, c.pose) for c in world.colliders]
        for shape, pose in solids:
            local = (free - pose[:3, 3]) @ pose[:3, :3]
            if len(local):
                depth = max(depth, float(-shape.signed_distance(local)[0].min()))
    return Stats(
        max_stretch=stretch,
        max_penetration=max(depth, 0.0),
        resets=world.resets,
        awake=sum(not (h.sleeping or h.solid) for h in world.hairs),
        steps=world.steps,
        compile_s=world.session.shared.get("compile_s", 0.0),
    )
