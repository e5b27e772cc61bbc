"""Gathered hair: which tie each root goes to, its way along the scalp, and what it does there."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hairkit.errors import GroomError
from hairkit.groom.lines import line_length, walk
from hairkit.groom.rest import (
    Flow,
    Points,
    point_counts,
    push_out,
    rest_pose,
    smooth_step,
    unit_rows,
)
from hairkit.head import Head
from hairkit.style import Style, Tie

GATHER_PULL = 0.8
"""How far gathered hair with coils is pulled out on its way, as a share of all the way."""

WAY_STEPS = 64
"""Places along a way over the scalp."""

NECK = 0.13
"""Radius of the bunch that a puff's tie holds, as a share of the ball's width."""

ROPE = 0.22
"""Radius of the rope that a knot is wound of, as a share of the knot's width."""

_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


@dataclass(frozen=True, kw_only=True)
class _Place:
    """A tie on a head: a frame in the scalp, and the numbers of its knot or ball."""

    tie: Tie
    middle: Points
    normal: Points
    east: Points
    north: Points
    members: NDArray[np.int64]

    def azimuth(self, offset: Points) -> Points:
        """Return angles of offsets about the tie's normal [rad], shape (n,)."""
        return np.arctan2(offset @ self.north, offset @ self.east)

    def around(self, angle: Points) -> Points:
        """Return unit vectors in the scalp at angles, shape (n, 3)."""
        return np.cos(angle)[:, None] * self.east + np.sin(angle)[:, None] * self.north


def assign(
    head: Head, ties: Sequence[Tie], roots: Points, tied_to: NDArray[np.int32] | None
) -> NDArray[np.int32]:
    """Return each root's tie, -1 for none: the nearest within its reach, unless it is given.

    Args:
        head: The head.
        ties: Its ties.
        roots: Where guides grow [m], shape (s, 3).
        tied_to: Rows of ties, -1 for none, shape (s,); None chooses.

    Raises:
        GroomError: A tie has no root in reach.
    """
    if tied_to is None:
        tied_to = nearest_tie(head, ties, roots)
    for index, tie in enumerate(ties):
        if not (tied_to == index).any():
            place = tie_places(head, [tie])[0]
            least = float(np.linalg.norm(roots - place, axis=1).min())
            raise GroomError(
                f"ties: tie {index} ({tie.kind}) has no root: none is within its reach of "
                f"{tie.reach:g} m and nearer to it than to another tie (the nearest is "
                f"{least:.3g} m away); expected a wider reach, more guides, or a tie elsewhere"
            )
    return tied_to


def nearest_tie(head: Head, ties: Sequence[Tie], places: Points) -> NDArray[np.int32]:
    """Return the nearest tie within reach of each place, -1 for none, shape (n,)."""
    gap = tie_distances(head, ties, places)
    nearest = gap.argmin(axis=1)
    return np.where(np.isfinite(gap.min(axis=1)), nearest, -1).astype(np.int32)


def tie_distances(head: Head, ties: Sequence[Tie], places: Points) -> Points:
    """Return how far places are from each tie [m], infinite beyond its reach, shape (n, ties)."""
    middles = tie_places(head, ties)
    gap = np.linalg.norm(places[:, None] - middles, axis=2)
    return np.where(gap <= [tie.reach for tie in ties], gap, np.inf)


def tie_places(head: Head, ties: Sequence[Tie]) -> Points:
    """Return where ties are on the scalp [m], shape (ties, 3)."""
    return on_scalp(head, unit_rows(np.array([tie.at for tie in ties])), 0.0)


def on_scalp(head: Head, directions: Points, clear: float | Points) -> Points:
    """Return the places over the head in directions from the middle of the skull, shape (n, 3).

    Args:
        head: The head.
        directions: Unit directions, shape (n, 3).
        clear: How far above the surface [m], one number or shape (n,).
    """
    reach = np.full(len(directions), 1.05 * head.radius)
    for _ in range(12):
        # Neck and shoulders count for what lies above the skin, not for where the skin is.
        place = head.center + directions * reach[:, None]
        distance, normal = head.signed_distance(place, body=bool(np.any(clear)))
        # Where the surface runs along the ray a whole step would overshoot.
        slope = np.maximum(np.sum(normal * directions, axis=1), 0.4)
        reach = np.clip(reach - (distance - clear) / slope, 0.3 * head.radius, 3.0 * head.radius)
    return head.center + directions * reach[:, None]


def lay(
    style: Style,
    head: Head,
    ties: Sequence[Tie],
    tied_to: NDArray[np.int32],
    roots: Points,
    shares: Points,
    given: bool,
    seed: int,
) -> tuple[list[Points], NDArray[np.int32], Points]:
    """Lay gathered strands over the scalp to their ties, and on from there.

    Args:
        style: What the hair is like.
        head: What it grows on.
        ties: Where it is gathered.
        tied_to: Row of each strand's tie, shape (s,).
        roots: Where strands grow [m], shape (s, 3).
        shares: Lengths as fractions of the style's, shape (s,).
        given: Whether these are somebody's wish; otherwise the hair of a puff is cut round.
        seed: Chooses what is random.

    Returns:
        Points of each strand [m], how many of each follow the head, shape (s,), and the lengths.
    """
    lines: list[Points] = [np.zeros((0, 3))] * len(roots)
    laid = np.zeros(len(roots), np.int32)
    shares = shares.copy()
    for index, tie in enumerate(ties):
        members = np.flatnonzero(tied_to == index)
        if len(members) == 0:
            continue
        place = _place(head, tie, members)
        lay_one = {"puff": _puff, "knot": _knot, "hang": _hang}[tie.kind]
        ways = _ways(style, head, place, roots[members])
        done, rigid, share = lay_one(
            style, head, place, ways, shares[members], given, seed + 7919 * index
        )
        for row, points in zip(members, done, strict=True):
            lines[row] = points
        laid[members], shares[members] = rigid, share
    return lines, laid, shares


def _place(head: Head, tie: Tie, members: NDArray[np.int64]) -> _Place:
    middle = tie_places(head, [tie])
    _, normal = head.signed_distance(middle, body=False)
    up = normal[0]
    east = np.cross([0.0, 1.0, 0.0] if abs(up[1]) < 0.9 else [0.0, 0.0, -1.0], up)
    east = east / np.linalg.norm(east)
    return _Place(
        tie=tie,
        middle=middle[0],
        normal=up,
        east=east,
        north=np.asarray(np.cross(up, east), dtype=np.float64),
        members=members,
    )


def _ways(style: Style, head: Head, place: _Place, roots: Points) -> Points:
    """Return ways over the scalp from roots to their tie [m], shape (s, WAY_STEPS, 3).

    Each goes along the great circle of directions from the middle of the skull, or over the tie's
    own `via`, and rises from the skin to where hair lies within the first of its segments. It ends
    where the bunch in the tie begins.
    """
    start = unit_rows(roots - head.center)
    neck = _neck(place.tie)
    away = roots - place.middle
    away = away - np.outer(away @ place.normal, place.normal)
    goal = place.middle + unit_rows(away) * neck
    end = unit_rows(goal - head.center)
    t = np.linspace(0.0, 1.0, WAY_STEPS)[None, :, None]
    if place.tie.via is not None:
        via = unit_rows(np.array([place.tie.via]))[:, None]
        # The parabola through three directions, drawn out to the sphere.
        first, middle, last = (t - 0.5) * (t - 1.0) * 2.0, -4.0 * t * (t - 1.0), 2.0 * t * (t - 0.5)
        way = start[:, None] * first + via * middle + end[:, None] * last
    else:
        angle = np.arccos(np.clip(np.sum(start * end, axis=1), -1.0, 1.0))[:, None, None]
        sine = np.maximum(np.sin(angle), 1e-6)
        way = (start[:, None] * np.sin((1.0 - t) * angle) + end[:, None] * np.sin(t * angle)) / sine
    flat = unit_rows(way.reshape(-1, 3))
    clear = style.contact_radius() + 2e-4
    rise = np.clip(t[0, :, 0] * np.linalg.norm(roots - goal, axis=1)[:, None], 0.0, None)
    above = clear * smooth_step(rise / max(0.8 * style.segment_length(), 1e-4))
    return on_scalp(head, flat, above.reshape(-1)).reshape(way.shape)


def _neck(tie: Tie) -> float:
    """Return how far from a tie's middle hair arrives [m]."""
    if tie.kind == "knot":
        return (0.5 - ROPE) * tie.size
    return NECK * tie.size if tie.kind == "puff" else 0.0


def _pull(style: Style) -> float:
    """Return how long gathered hair is beside its length at rest."""
    return 1.0 + GATHER_PULL * style.shrinkage / (1.0 - style.shrinkage)


def _rigid(count: int, last: float) -> int:
    """Return how many points follow the head: up to a certain one, but not the strand's last."""
    return max(2, min(int(last) + 1, count - 1))


def _puff(
    style: Style,
    head: Head,
    place: _Place,
    ways: Points,
    shares: Points,
    given: bool,
    seed: int,
) -> tuple[list[Points], NDArray[np.int32], Points]:
    """Gather strands to a bunch from which each bursts out its own way, into a ball."""
    count, radius = len(ways), 0.5 * place.tie.size
    pull = _pull(style)
    random = np.random.Generator(np.random.PCG64([seed, 5]))
    # Evenly round the bunch in the order in which hair comes in, so that no hair crosses another.
    arrive = place.azimuth(ways[:, -1] - place.middle)
    rank = np.zeros(count)
    rank[np.argsort(arrive)] = np.arange(count)
    shift = np.angle(np.mean(np.exp(1j * (arrive - 2.0 * math.pi * rank / count))))
    azimuth = 2.0 * math.pi * rank / count + float(shift)
    height = 1.0 - 1.45 * np.mod(_GOLDEN * rank + random.random(), 1.0)
    out = np.sqrt(np.maximum(1.0 - height**2, 0.0))[:, None] * place.around(azimuth)
    out = out + height[:, None] * place.normal
    centre = place.middle + place.normal * (0.55 * radius + style.contact_radius())
    lines: list[Points] = []
    laid = np.zeros(count, np.int32)
    lengths = np.zeros(count)
    t = np.linspace(0.0, 1.0, 32)[:, None]
    for row in range(count):
        start = ways[row, -1]
        end = centre + radius * out[row]
        reach = float(np.linalg.norm(end - start))
        # Up through the tie, then over and out: a Hermite curve.
        lift = 1.1 * reach * unit_rows((place.normal + 0.3 * out[row])[None])[0]
        away = 0.9 * reach * out[row]
        burst = (
            start * (2 * t**3 - 3 * t**2 + 1)
            + lift * (t**3 - 2 * t**2 + t)
            + end * (3 * t**2 - 2 * t**3)
            + away * (t**3 - t**2)
        )
        burst = _lifted(head, burst, style.contact_radius() + 2e-4)
        way = line_length(ways[row])
        free = line_length(burst)
        cut = shares[row] if given else min((way / pull + free) / style.length, shares[row])
        points = int(point_counts(style, np.array([cut]))[0])
        segment = cut * style.length / (points - 1)
        arcs = _pulled_arcs(points, segment, way, pull)
        lines.append(walk(np.concatenate([ways[row], burst[1:]]), arcs))
        laid[row] = _rigid(points, math.ceil(way / (pull * segment)))
        lengths[row] = cut
    return lines, laid, lengths


def _pulled_arcs(points: int, segment: float, way: float, pull: float) -> Points:
    """Return how far along its line each point lies: hair on its way is pulled, beyond it not."""
    rest = segment * np.arange(points)
    return np.where(rest * pull < way, rest * pull, way + rest - way / pull)


def _lifted(head: Head, places: Points, clear: float) -> Points:
    """Return places let out of the head."""
    distance, normal = head.signed_distance(places)
    return places + normal * np.maximum(clear - distance, 0.0)[:, None]


def _knot(
    style: Style,
    head: Head,
    place: _Place,
    ways: Points,
    shares: Points,
    given: bool,
    seed: int,
) -> tuple[list[Points], NDArray[np.int32], Points]:
    """Twist a section's strands into a rope that winds up into a cone."""
    del given
    count, pull = len(ways), _pull(style)
    random = np.random.Generator(np.random.PCG64([seed, 6]))
    rope = ROPE * place.tie.size
    wide = 0.5 * place.tie.size - rope
    narrow = 0.6 * wide
    lengths = pull * style.length * shares
    arrive = np.mod(place.azimuth(ways[:, -1] - place.middle), 2.0 * math.pi)
    left = np.maximum(lengths - [line_length(way) for way in ways], 0.2 * lengths)
    # As many turns as the hair is long: the rope is used up where the cone ends.
    turns = max(float(np.mean(left)) / (math.pi * (wide + narrow)), 1.0)
    pitch = min(1.35 * rope, 0.75 * place.tie.size / turns)
    # Where each strand lies in the rope, and how the rope twists.
    share = np.sqrt(np.mod(_GOLDEN * np.arange(count) + random.random(), 1.0))
    spot = 2.0 * math.pi * random.random(count)
    theta = np.linspace(0.0, 2.0 * math.pi * (turns + 1.5), 400)
    lines: list[Points] = []
    laid = np.zeros(count, np.int32)
    for row in range(count):
        angle = arrive[row] + theta
        done = np.clip(angle / (2.0 * math.pi * (turns + 0.5)), 0.0, 1.0)
        radius = wide + (narrow - wide) * done
        height = style.contact_radius() + 0.8 * rope + pitch * done * turns
        # Strands come into the rope one after another over the first turn.
        joined = smooth_step(theta / 1.5)
        twist = spot[row] + 2.5 * angle
        off = 0.72 * rope * share[row] * joined
        across = radius + off * np.cos(twist)
        up = style.contact_radius() + (height - style.contact_radius()) * joined
        up = up + off * np.sin(twist)
        wound = place.middle + across[:, None] * place.around(angle) + up[:, None] * place.normal
        wound = _lifted(head, wound, style.contact_radius() + 2e-4)
        points = int(point_counts(style, shares[row : row + 1])[0])
        segment = lengths[row] / (points - 1)
        lines.append(walk(np.concatenate([ways[row], wound]), segment * np.arange(points)))
        laid[row] = _rigid(points, math.ceil(line_length(ways[row]) / segment))
    return lines, laid, shares


def _hang(
    style: Style,
    head: Head,
    place: _Place,
    ways: Points,
    shares: Points,
    given: bool,
    seed: int,
) -> tuple[list[Points], NDArray[np.int32], Points]:
    """Let strands hang from the tie."""
    del given
    count, pull = len(ways), _pull(style)
    points = point_counts(style, shares)
    segment = shares * style.length / (points - 1)
    lines: list[Points] = []
    laid = np.zeros(count, np.int32)
    for row in range(count):
        reached = line_length(ways[row]) / (pull * segment[row])
        rigid = _rigid(int(points[row]), reached)
        arcs = pull * segment[row] * np.arange(rigid)
        lines.append(walk(ways[row], arcs))
        laid[row] = rigid
    # From the last two laid points on, as any free hair hangs.
    base = np.array([line[-2] for line in lines])
    ahead = np.array([line[-1] - line[-2] for line in lines])
    step = np.linalg.norm(ahead, axis=1)
    _, normal = head.signed_distance(base, body=False)
    rest_counts = (points - laid + 2).astype(np.int32)
    fall = rest_pose(
        style,
        Flow.over(head, style),
        base,
        normal,
        ahead / step[:, None],
        step * (rest_counts - 1) / style.length,
        rest_counts,
        seed,
    )
    tails = np.split(fall, np.cumsum(rest_counts)[:-1])
    lines = [np.concatenate([a, b[2:]]) for a, b in zip(lines, tails, strict=True)]
    for row, line in enumerate(lines):
        # A strand that is all on the scalp ends there.
        lines[row] = line[: points[row]]
    return lines, laid, shares


def keep_off(head: Head, lines: list[Points], laid: NDArray[np.int32], clear: float) -> None:
    """Move points that came too near the surface out to where hair lies, in place."""
    for line, rigid in zip(lines, laid, strict=True):
        for index in range(int(rigid), len(line)):
            distance, _ = head.signed_distance(line[index : index + 1])
            if distance[0] < clear:
                reach = float(np.linalg.norm(line[index] - line[index - 1]))
                line[index : index + 1] = push_out(
                    head,
                    line[index - 1 : index],
                    line[index : index + 1],
                    np.array([reach]),
                    np.array([clear]),
                    thorough=True,
                )
