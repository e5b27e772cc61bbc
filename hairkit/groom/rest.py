"""The rest pose: how a style lies on a head, marched point by point for all strands at once.

A smooth middle line leaves the scalp, turns over ``droop`` into a flow, combed back off the face
and then down, and is kept off head and body. The curl turns around it in a frame that is carried
along from the root, so that no curl flips. Every chord has the strand's segment length exactly.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hairkit.head import Head
from hairkit.style import Style

Points = NDArray[np.float64]

SLACK = 2e-4
"""How much farther out than a point's thickness a push aims [m]: it converges from inside."""

MAX_SEGMENTS = 254
"""Most simulated segments of a strand."""

STEEPEST_CURL = 0.92
"""Largest sine of the angle between a curl and its middle line: hair must get ahead too."""


@dataclass(frozen=True, kw_only=True)
class Flow:
    """The direction in which combed hair runs at each place around a head."""

    head: Head
    """The head."""

    comb: float
    """How strongly it is combed back, 0 to 1."""

    clearance: float
    """How near to the surface hair lies [m]."""

    part: float = 0.0
    """How far it is combed to the sides of a parting in the middle instead of back, 0 to 1."""

    @classmethod
    def over(cls, head: Head, style: Style) -> "Flow":
        """Return the flow of a style over a head."""
        return cls(head=head, comb=style.comb, clearance=style.contact_radius(), part=style.part)

    def at(self, place: Points, distance: Points, normal: Points) -> Points:
        """Return unit directions of the flow.

        In front hair is combed straight back, at the back it falls, in between it turns from one
        into the other; near a surface the flow runs along it.

        Args:
            place: Where [m], shape (n, 3).
            distance: How far from head and body [m], shape (n,).
            normal: Direction out of the nearest of them, shape (n, 3).
        """
        head = self.head
        offset = place - head.center
        reach = np.linalg.norm(offset, axis=1)
        ahead = 0.5 * (1.0 + offset[:, 2] / np.maximum(reach, 1e-9))
        # Below the chin nothing is combed back any more.
        above = smooth_step((offset[:, 1] + 1.3 * head.radius) / (1.3 * head.radius))
        back = self.comb * smooth_step(1.3 * ahead) * above
        # On top of a shoulder down has nowhere to go: hair slides off it to the back.
        shelf = 0.8 * np.clip(normal[:, 1], 0.0, 1.0) * (1.0 - above)
        # On the top of a parted head it goes to the side first; beside the face it falls back.
        beside = np.abs(offset[:, 0]) / np.maximum(reach, 1e-9)
        across = self.part * np.clip(1.0 - beside, 0.0, 1.0) * above
        sideways = 3.0 * across * np.where(offset[:, 0] < 0.0, -1.0, 1.0) * back
        behind = 2.0 * back * (1.0 - 0.75 * across)
        wish = np.stack([sideways, -(1.0 - back), -behind - shelf], axis=1)
        near = 1.0 - smooth_step((distance - 2.0 * self.clearance) / (0.35 * head.radius))
        climb = np.sum(wish * normal, axis=1)
        # Away from the surface counts half: hair leaves it where it curves in, but not at once.
        wish = wish - normal * (near * np.where(climb < 0.0, climb, 0.5 * climb))[:, None]
        # Its own weight lays hair down on the upper side of the head; lower down it hangs free.
        lying = above * smooth_step(0.75 + normal[:, 1])
        height = (distance - 1.5 * self.clearance) / (0.15 * head.radius)
        settle = lying * np.clip(height, 0.0, 1.0)
        return unit_rows(unit_rows(wish) - normal * settle[:, None])


def point_counts(style: Style, shares: Points) -> NDArray[np.int32]:
    """Return how many points strands of such lengths have, shape (s,).

    Shorter strands get fewer segments: their bending stiffness and their curls stay alike.

    Args:
        style: Its segments are a full-length strand's.
        shares: Lengths as fractions of the style's, shape (s,).
    """
    segments = np.rint((style.segments + 1) * shares) - 1
    return np.clip(segments, 2, MAX_SEGMENTS).astype(np.int32) + np.int32(2)


def smooth_step(value: Points) -> Points:
    """Return a smooth ramp from 0 at 0 to 1 at 1."""
    value = np.clip(value, 0.0, 1.0)
    return value * value * (3.0 - 2.0 * value)


def unit_rows(vectors: Points) -> Points:
    """Return rows scaled to length one; a row without length points down."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.where(length > 1e-9, vectors / np.maximum(length, 1e-9), [0.0, -1.0, 0.0])


def leaving_directions(style: Style, flow: Flow, roots: Points, normals: Points) -> Points:
    """Return unit directions in which hair leaves the scalp, shape (s, 3).

    Args:
        style: ``lift`` goes from along the flow (0) to along the normal (1).
        flow: How the head is combed.
        roots: Where [m], shape (s, 3).
        normals: Unit normals there, shape (s, 3).
    """
    combed = flow.at(roots, np.zeros(len(roots)), normals)
    combed = combed - normals * np.sum(combed * normals, axis=1, keepdims=True)
    # Never quite flat: the second point would lie in the skin.
    angle = 0.5 * math.pi * max(style.lift, 0.1) ** 1.75
    return unit_rows(math.sin(angle) * normals + math.cos(angle) * unit_rows(combed))


def rest_pose(
    style: Style,
    flow: Flow,
    roots: Points,
    normals: Points,
    directions: Points,
    shares: Points,
    counts: NDArray[np.int32],
    seed: int,
) -> Points:
    """Return the rest pose of all strands [m], strand by strand, shape (sum of counts, 3).

    Args:
        style: What the hair is like.
        flow: How the head is combed.
        roots: Where each strand grows [m], shape (s, 3).
        normals: Unit normals there, shape (s, 3).
        directions: Unit directions of the first segment, shape (s, 3).
        shares: Length of each strand as a fraction of the style's, shape (s,).
        counts: Points of each strand, shape (s,).
        seed: Chooses where each strand's curl begins.
    """
    strands, most = len(roots), int(counts.max())
    length = style.length * shares
    segment = length / (counts - 1)
    points = np.zeros((strands, most, 3))
    points[:, 0] = roots
    points[:, 1] = roots + directions * segment[:, None]
    curl = _Curl(style, flow, roots, seed)
    middle, along = points[:, 1].copy(), directions.copy()
    side = _side(normals, directions)
    flowed = flow.at(roots, np.zeros(strands), normals)
    for index in range(2, most):
        arc = (index - 1.5) * segment
        ahead = segment * curl.advance(arc, length)
        distance, normal = flow.head.signed_distance(middle)
        turn = 1.0 - np.exp(-ahead / style.droop)
        wish = flow.at(middle, distance, normal)
        # Hair that already runs with the flow turns with it; only what is left takes the droop.
        with_flow = np.clip(np.sum(along * flowed, axis=1), 0.0, 1.0) ** 2
        along = unit_rows(along + (wish - flowed) * with_flow[:, None])
        along = unit_rows(along + (wish - along) * turn[:, None])
        flowed = wish
        clear = style.contact_radius() + curl.depth(arc + 0.5 * segment, length)
        # Where it is about to land it turns along the surface in time, and not in one sharp bend.
        landing = smooth_step(1.0 - (distance - clear) / (2.5 * segment))
        falling = np.minimum(np.sum(along * normal, axis=1), 0.0)
        along = unit_rows(along - normal * (0.7 * landing * falling)[:, None])
        old = middle
        middle = push_out(flow.head, old, old + along * ahead[:, None], ahead, clear)
        along = unit_rows(middle - old)
        side = _carried(side, along)
        target = middle + curl.offset(arc + 0.5 * segment, length, side, np.cross(along, side))
        floor = np.full(strands, style.contact_radius())
        points[:, index] = push_out(
            flow.head, points[:, index - 1], target, segment, floor, thorough=True
        )
        # The middle line waits for, or catches up with, the hair that turns around it.
        lag = np.sum((points[:, index] - target) * along, axis=1)
        middle = middle + along * np.clip(0.5 * lag, -0.3 * segment, 0.3 * segment)[:, None]
    return points[np.arange(most) < counts[:, None]]


class _Curl:
    """The curl of a style around each strand's middle line."""

    def __init__(self, style: Style, flow: Flow, roots: Points, seed: int) -> None:
        """Choose each strand's beginning and the way it turns."""
        self.turn = 2.0 * math.pi * style.curl
        limit = STEEPEST_CURL / self.turn if self.turn > 0.0 else math.inf
        self.radius = min(style.curl_radius, limit) if self.turn > 0.0 else 0.0
        self.upright = 1.0 - style.curl_flat
        self.start = max(style.curl_start, 1e-3)
        random = np.random.Generator(np.random.PCG64([seed, 1]))
        # Spirals begin anywhere. Waves lie together as combed waves do: a strand that begins later
        # on the way from the forehead begins with a later part of the wave.
        offset = unit_rows(roots - flow.head.center)
        forehead = unit_rows(np.array([[0.0, 0.6, 1.0]]))[0]
        way = flow.head.radius * np.arccos(np.clip(offset @ forehead, -1.0, 1.0))
        spread = math.pi * (1.0 - style.curl_flat) + 0.3 * style.curl_flat
        self.begin = random.uniform(-spread, spread, len(roots))
        self.begin += style.curl_flat * self.turn * way
        # Mirrored on the two sides of the head, as the rest of the hair is. The plane of a wave
        # turns from along the scalp at the sides to across it in the middle: without that, waves
        # of the two sides would part the hair there.
        self.hand = np.where(roots[:, 0] < flow.head.center[0], -1.0, 1.0)
        beside = np.abs(roots[:, 0] - flow.head.center[0]) / (0.6 * flow.head.radius)
        plane = 0.5 * math.pi * np.clip(beside, 0.0, 1.0)
        self.beside, self.outward = np.sin(plane), np.cos(plane)

    def _ramp(self, arc: Points, length: Points) -> Points:
        """Return the share of the full radius."""
        return self.radius * smooth_step(arc / (self.start * length))

    def advance(self, arc: Points, length: Points) -> Points:
        """Return how far the middle line gets for each metre of hair."""
        slope = self._ramp(arc, length) * self.turn
        phase = self.turn * arc + self.begin
        sideways = (np.cos(phase) ** 2 + (self.upright * np.sin(phase)) ** 2) * slope * slope
        return np.sqrt(np.maximum(1.0 - sideways, 1.0 - STEEPEST_CURL**2))

    def depth(self, arc: Points, length: Points) -> Points:
        """Return how far the curl reaches towards the head [m]."""
        inward = np.hypot(self.outward, self.upright * self.beside)
        return self._ramp(arc, length) * np.maximum(inward, 0.15)

    def offset(self, arc: Points, length: Points, side: Points, other: Points) -> Points:
        """Return where the hair is from its middle line [m], shape (s, 3).

        Args:
            arc: Length of hair from where the curl begins [m], shape (s,).
            length: Whole length [m], shape (s,).
            side: Carried unit direction across the strand and along the scalp, shape (s, 3).
            other: Unit direction across both, shape (s, 3).
        """
        radius = self._ramp(arc, length)
        phase = self.turn * arc + self.begin
        wave, cross = radius * np.sin(phase), radius * self.upright * np.cos(phase)
        along_scalp = self.hand * (self.beside * wave + self.outward * cross)
        off_scalp = self.outward * wave - self.beside * cross
        return along_scalp[:, None] * side + off_scalp[:, None] * other


def _side(normals: Points, directions: Points) -> Points:
    """Return unit directions across each strand and along the scalp, shape (s, 3)."""
    side = np.cross(normals, directions)
    # A strand straight out of the scalp has no such direction; any one across it will do.
    flat = np.linalg.norm(side, axis=1) < 1e-3
    side[flat] = np.cross(directions[flat], [0.0, 0.0, -1.0])
    flat = np.linalg.norm(side, axis=1) < 1e-3
    side[flat] = [1.0, 0.0, 0.0]
    return unit_rows(side)


def _carried(side: Points, along: Points) -> Points:
    """Return a direction across, carried to the next segment without turning about it."""
    return unit_rows(side - along * np.sum(side * along, axis=1, keepdims=True))


def push_out(
    head: Head,
    start: Points,
    goal: Points,
    reach: Points,
    clear: Points,
    *,
    thorough: bool = False,
) -> Points:
    """Return points at a given distance from a start towards a goal, but out of the head and body.

    Args:
        head: What to stay out of.
        start: Where each segment begins [m], shape (n, 3).
        goal: Where it should lead [m], shape (n, 3).
        reach: Length of each segment [m], shape (n,).
        clear: Least distance to the surface [m], shape (n,).
        thorough: Turn those that still touch straight away from the surface.
    """
    place = start + unit_rows(goal - start) * reach[:, None]
    rows = np.arange(len(place))
    for _ in range(8):
        distance, normal = head.signed_distance(place[rows])
        deep = clear[rows] + SLACK - distance
        touching = deep > 0.5 * SLACK
        rows, deep, normal = rows[touching], deep[touching], normal[touching]
        if len(rows) == 0:
            return place
        moved = place[rows] + normal * deep[:, None]
        place[rows] = start[rows] + unit_rows(moved - start[rows]) * reach[rows, None]
    if not thorough:
        return place
    distance, _ = head.signed_distance(place[rows])
    rows = rows[distance < clear[rows]]
    if len(rows) == 0:
        return place
    _, out = head.signed_distance(start[rows])
    blocked = unit_rows(place[rows] - start[rows])
    low, high = np.zeros(len(rows)), np.ones(len(rows))
    for _ in range(12):
        share = 0.5 * (low + high)
        way = unit_rows(blocked * (1.0 - share)[:, None] + out * share[:, None])
        distance, _ = head.signed_distance(start[rows] + way * reach[rows, None])
        free = distance >= clear[rows] + 0.5 * SLACK
        low, high = np.where(free, low, share), np.where(free, share, high)
    way = unit_rows(blocked * (1.0 - high)[:, None] + out * high[:, None])
    place[rows] = start[rows] + way * reach[rows, None]
    return place
