"""Slow NumPy twins of the drawing kernels, and a stand-in for the world that drawing reads."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hairkit.backend import ti
from hairkit.draw import scatter as t


class StillWorld:
    """A world that does not move: guides as they are given, in an arena of the real layout."""

    def __init__(self, session: Any, capacity: int = 2**13) -> None:
        """Allocate an empty arena."""
        self.session = session
        self.arena = SimpleNamespace(
            guide_point=ti.Vector.field(3, ti.f32, shape=capacity),
            guide_start=ti.field(ti.i32, shape=capacity // 4),
            guide_count=ti.field(ti.i32, shape=capacity // 4),
        )
        self._capacity = capacity
        self.clear()

    def clear(self) -> None:
        """Take all hair away; the fields stay, so that nothing compiles again."""
        capacity = self._capacity
        self.hairs: list[Any] = []
        self.points = np.zeros((capacity, 3), np.float32)
        self._start = np.zeros(capacity // 4, np.int32)
        self._count = np.zeros(capacity // 4, np.int32)
        self._rows = self._strands = 0

    def add(self, groom: Any, *, pose: NDArray[np.float64] | None = None) -> Any:
        """Add a groom whose head is at a pose, body and all."""
        pose = np.eye(4) if pose is None else pose
        strands, rows = len(groom.counts), len(groom.points)
        hair = SimpleNamespace(
            groom=groom,
            strand_first=self._strands,
            strand_count=strands,
            origin=pose[:3, 3].copy(),
            head_pose=pose,
            body_pose=pose,
        )
        first = self._rows
        self.points[first : first + rows] = groom.points @ pose[:3, :3].T
        starts = np.concatenate([[0], np.cumsum(groom.counts)[:-1]])
        self._start[self._strands : self._strands + strands] = first + starts
        self._count[self._strands : self._strands + strands] = groom.counts
        self._rows += rows
        self._strands += strands
        self.hairs.append(hair)
        return hair

    def present(self) -> None:
        """Bring the arena up to date."""
        self.arena.guide_point.from_numpy(self.points)
        self.arena.guide_start.from_numpy(self._start)
        self.arena.guide_count.from_numpy(self._count)


def straight_groom(style: Any, head: Any, starts: NDArray[Any], ends: NDArray[Any]) -> Any:
    """Return a groom of straight guides, each its own neighbour, in the head's frame."""
    strands, count = len(starts), style.segments + 2
    share = np.linspace(0.0, 1.0, count)[None, :, None]
    points = starts[:, None] * (1.0 - share) + ends[:, None] * share
    direction = (ends - starts) / np.linalg.norm(ends - starts, axis=1, keepdims=True)
    return SimpleNamespace(
        style=style,
        head=head,
        roots=starts,
        normals=direction,
        directions=direction,
        lengths=np.ones(strands),
        counts=np.full(strands, count, np.int32),
        segments=np.linalg.norm(ends - starts, axis=1) / (count - 1),
        points=points.reshape(-1, 3),
        neighbours=np.repeat(np.arange(strands, dtype=np.int32)[:, None], 3, axis=1),
        spacing=0.01,
        hairs=None,
        tied_to=np.full(strands, -1, np.int32),
        laid=np.full(strands, 2, np.int32),
        seed=0,
    )


def unit(v: NDArray[Any]) -> NDArray[Any]:
    """Return a vector of length one."""
    return v / np.sqrt(max(float(v @ v), 1e-20))


def carry(points: NDArray[Any], side: NDArray[Any]) -> NDArray[Any]:
    """Return one guide's sideways vectors, carried by the smallest rotation from chord to chord."""
    before = unit(points[1] - points[0])
    side = unit(side - before * (side @ before))
    carried = np.zeros_like(points)
    for p in range(len(points)):
        along = unit(points[min(p + 1, len(points) - 1)] - points[max(p - 1, 0)])
        axis = np.cross(before, along)
        sine, cosine = np.linalg.norm(axis), before @ along
        if sine > 1e-12:
            # Rodrigues' formula about the axis that both chords are normal to.
            k = axis / sine
            side = side * cosine + np.cross(k, side) * sine + k * (k @ side) * (1.0 - cosine)
        side = unit(side - along * (side @ along))
        carried[p] = side
        before = along
    return carried


def catmull_rom(points: NDArray[Any], u: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return place and derivative at `u` segments from the root, the ends going on as they came."""
    long = np.concatenate([2 * points[:1] - points[1:2], points, 2 * points[-1:] - points[-2:-1]])
    i = min(int(u), len(points) - 2)
    f = u - i
    p = long[i : i + 4]
    basis = 0.5 * np.array([[0, 2, 0, 0], [-1, 0, 1, 0], [2, -5, 4, -1], [-1, 3, -3, 1]])
    powers, slopes = np.array([1, f, f * f, f**3]), np.array([0, 1, 2 * f, 3 * f * f])
    return powers @ basis @ p, slopes @ basis @ p


def expand(groom: Any, scattered: t.Scatter, point_count: int) -> NDArray[np.float64]:
    """Return drawn hairs of a groom on a ball at the world's origin, shape (hairs, points, 3)."""
    style, ball = groom.style, groom.head.head_shape
    starts = np.concatenate([[0], np.cumsum(groom.counts)])
    guides = [groom.points[a : a + n] for a, n in zip(starts, groom.counts, strict=False)]
    sides = [carry(g, s.astype(np.float64)) for g, s in zip(guides, scattered.side, strict=True)]
    out = np.zeros((len(scattered.trait), point_count, 3))
    for h, trait in enumerate(scattered.trait.astype(np.float64)):
        own, near = scattered.strand[h]
        for j in range(point_count):
            first = trait[t.START]
            s = first + j / (point_count - 1) * (trait[t.CUT] - first)
            last, segment = len(guides[own]) - 1, float(scattered.frame[own][6])
            if style.zigzag and style.coil and j > 0:
                alone = 1 - style.definition
                turns = 2 * np.pi * style.coil * last * segment * _own_turns(style, trait)
                begin = trait[t.LOCK_PHASE] + alone * trait[t.HAIR_PHASE]
                bend = (np.round((turns * s + begin) / np.pi - 0.5) + 0.5) * np.pi
                place = (bend - begin) / turns
                if abs(place - s) < 0.5 * (trait[t.CUT] - first) / (point_count - 1):
                    s = place
            lean = trait[t.LEAN] * (1.0 - 0.6 * style.clump * s)
            last = len(guides[own]) - 1
            a, da = catmull_rom(guides[own], s * last)
            b, db = catmull_rom(guides[near], s * (len(guides[near]) - 1))
            apart = np.linalg.norm(guides[near][0] - guides[own][0])
            times = float(np.linalg.norm(b - a)) / max(float(apart), 1e-6)
            lean *= 1 - _smooth((times - 3.0) / 2.0)
            x, along = a * (1 - lean) + b * lean, unit(da * (1 - lean) + db * lean)
            i = min(int(s * last), last - 1)
            f = s * last - i
            frame = scattered.frame[own].astype(np.float64)
            segment = frame[6]
            reach, grown = s * last * segment, (s - first) * last * segment
            pull = float(np.linalg.norm(guides[own][i + 1] - guides[own][i])) / segment
            side = sides[own][i] * (1 - f) + sides[own][i + 1] * f
            side = unit(side - along * (side @ along))
            leave = _smooth(grown / 0.02)
            spread = 1.0 if first > 0 else leave
            beyond = _smooth((s - frame[t.TIE_AT]) / 0.15) if frame[t.TIE_AT] > 0 else 0.0
            flat = frame[7] * (1 - beyond) + beyond
            other = frame[3:6] * (1 - spread) + np.cross(along, side) * (spread * flat)
            offset = _offset(style, trait, s, reach, pull, point_count)
            if frame[t.TIE_AT] > 0:
                gathered = _smooth(s / frame[t.TIE_AT])
                scale = 1 - gathered + gathered * frame[t.TIE_SQUEEZE]
                offset = offset * (scale * (1 - beyond) + frame[t.TIE_SPREAD] * beyond)
            coil = _coil(style, trait, reach, pull)
            if style.plait:
                joined = _smooth(grown / (0.024 if first > 0 else 0.012))
                coil = joined * _plait(style, trait, frame[t.PLAIT_PHASE], s, reach, point_count)
                offset = (1 - joined) * trait[t.OFFSET_X : t.OFFSET_Y + 1]
            x = x + side * coil[0] + np.cross(along, side) * coil[1]
            side = frame[0:3] * (1 - spread) + side * spread
            x = x + side * offset[0] + other * offset[1]
            down = max(0.0, 1.0 - grown / 0.015) ** 2
            x = x + trait[t.DROP_X : t.DROP_Z + 1] * down
            out[h, j] = _squeeze(x, ball, 0.0004 + 0.0026 * leave)
    return out


def _offset(
    style: Any, trait: NDArray[Any], s: float, reach: float, pull: float, point_count: int
) -> NDArray[Any]:
    """Return how far a hair is from its curve, sideways and up [m]."""
    wild = trait[t.WILD]
    gather = trait[t.GATHER] * min(1.0, 1.6 * s) * (1.0 - 0.8 * min(1.0, wild * 4.0))
    own, lock = trait[t.OFFSET_X : t.OFFSET_Y + 1], trait[t.LOCK_X : t.LOCK_Y + 1]
    offset = (own * (1 - gather) + lock * gather) * (1.0 - style.clump * s * (1.0 - 0.5 * wild))
    spacing = style.length / (point_count - 1)
    slow = 2 * np.pi * reach / max(0.17, 5 * spacing)
    quick = 2 * np.pi * reach / max(0.04, 7 * spacing)
    lock_phase, hair_phase = trait[t.LOCK_PHASE], trait[t.HAIR_PHASE]
    drift = min(0.03 * reach, 0.0015 + 0.012 * style.frizz)
    stray = wild * min(0.12 * reach, 0.012)
    fray = min(0.02 * reach, 0.0006 + 0.006 * style.frizz) * (0.3 + 0.7 * s)
    offset = offset + drift * np.sin([slow + lock_phase, 1.37 * slow + 2 * lock_phase])
    offset += fray * np.sin([quick + 3 * hair_phase, 0.83 * quick + 5 * hair_phase])
    offset[0] += stray * np.sin(slow + 2 * hair_phase) + wild * 0.25 * s * own[0]
    offset[1] += stray * (0.4 + np.sin(0.7 * slow + 3 * hair_phase))
    return offset


def _smooth(share: float) -> float:
    """Return a smooth ramp from 0 at 0 to 1 at 1."""
    share = min(max(share, 0.0), 1.0)
    return share * share * (3.0 - 2.0 * share)


def _plait(
    style: Any, trait: NDArray[Any], begin: float, s: float, reach: float, point_count: int
) -> NDArray[Any]:
    """Return how far a plait takes a hair from its guide, along the frame that is carried [m]."""
    phase = 2 * np.pi * style.plait_turns * reach + begin
    rope = phase + trait[t.ROPE_PHASE]
    middle, thick = {
        1: (np.zeros(2), 1.0),
        2: (0.5 * np.array([np.sin(rope), np.cos(rope)]), 0.5),
        3: (np.array([0.585 * np.sin(rope), 0.415 * np.sin(2 * rope)]), 0.38),
    }[style.plait]
    fuzz = 0.3 * style.frizz
    turned = (trait[t.ROPE_X] + 1j * trait[t.ROPE_Y]) * np.exp(1j * phase)
    quick = 2 * np.pi * reach / max(0.04, 7 * style.length / (point_count - 1))
    hair = trait[t.HAIR_PHASE]
    stray = (
        0.7
        * fuzz
        * (1.0 if style.plait == 1 else 0.38)
        * np.sin([quick + 3 * hair, 0.83 * quick + 5 * hair])
    )
    place = middle + thick * (1 - fuzz) * np.array([turned.real, turned.imag]) + stray
    return place * style.plait_radius * (1 - 0.5 * _smooth((s - 0.92) / 0.08))


def _own_turns(style: Any, trait: NDArray[Any]) -> float:
    """Return a hair's turns beside its style's."""
    return float(1 + 0.12 * (1 - style.definition) * trait[t.WILD])


def _coil(style: Any, trait: NDArray[Any], reach: float, pull: float) -> NDArray[Any]:
    """Return how far a coil takes a hair from its curve, along the frame that is carried [m]."""
    if style.coil == 0:
        return np.zeros(2)
    lock_phase, alone = trait[t.LOCK_PHASE], 1 - style.definition
    coil = style.coil * _own_turns(style, trait)
    sideways = (2 * np.pi * (1 - style.zigzag) + 4 * style.zigzag) * coil
    radius = np.sqrt(max(1 + (sideways * style.coil_radius) ** 2 - pull**2, 0)) / sideways
    radius *= min(1.0, reach * style.coil)
    phase = 2 * np.pi * coil * reach + lock_phase + alone * trait[t.HAIR_PHASE]
    plane = 0.7 * np.floor(phase / np.pi) + lock_phase + 2 * alone * trait[t.HAIR_PHASE]
    tooth = 2 / np.pi * np.arcsin(np.sin(phase))
    hand = 1 if trait[t.LOCK_PHASE] < np.pi else -1
    round_part = np.array([np.cos(phase), hand * np.sin(phase)]) * (1 - style.zigzag)
    sharp_part = tooth * np.array([np.cos(plane), np.sin(plane)]) * style.zigzag
    return radius * (round_part + sharp_part)


def _squeeze(x: NDArray[Any], ball: Any, soft: float) -> NDArray[Any]:
    """Return a place let out of a ball."""
    from_middle = x - np.asarray(ball.center)
    length = np.linalg.norm(from_middle)
    d = length - ball.radius
    if d >= soft:
        return x
    least = 0.15 * soft
    return x + from_middle / length * (
        least + (soft - least) * np.exp((d - soft) / (soft - least)) - d
    )


def coverage(
    line: NDArray[Any], half: NDArray[Any], width: int, height: int, fine: int = 8
) -> NDArray[np.float64]:
    """Return which share of each pixel a ribbon covers, by brute force, shape (height, width).

    Args:
        line: Places on the screen, right and down [pixels], shape (points, 2).
        half: Half of the ribbon's width at each [pixels], shape (points,).
        width: Pixels across.
        height: Pixels down.
        fine: Samples across a pixel.
    """
    x = (np.arange(width * fine) + 0.5) / fine
    y = (np.arange(height * fine) + 0.5) / fine
    place = np.stack(np.meshgrid(x, y), axis=-1)
    hit = np.zeros(place.shape[:2], bool)
    for i in range(len(line) - 1):
        a, b, wa, wb = line[i], line[i + 1], half[i], half[i + 1]
        e = b - a
        f = np.clip((place - a) @ e / (e @ e), 0.0, 1.0)
        off = place - a - f[..., None] * e
        hit |= (off * off).sum(-1) <= (wa + (wb - wa) * f) ** 2
    return hit.reshape(height, fine, width, fine).mean(axis=(1, 3))
