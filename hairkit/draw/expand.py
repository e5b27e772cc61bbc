"""Kernels that make drawn hairs out of guides: frames along the guides, then the hairs round them.

Threads go over (hair, point) with the point fastest, in the loop and in memory alike: neighbouring
threads of a GPU then read and write neighbouring rows, and a CPU thread walks along one hair.
Positions are f32, relative to the picture's origin.
"""

from hairkit.backend import ti
from hairkit.draw.scatter import (
    CUT,
    DROP_X,
    DROP_Y,
    DROP_Z,
    GATHER,
    HAIR_PHASE,
    LEAN,
    LOCK_PHASE,
    LOCK_X,
    LOCK_Y,
    OFFSET_X,
    OFFSET_Y,
    PLAIT_PHASE,
    ROPE_PHASE,
    ROPE_X,
    ROPE_Y,
    START,
    TIE_AT,
    TIE_SPREAD,
    TIE_SQUEEZE,
    WILD,
)

# Where each number is in the array `hair` that a head's launches take.
SHIFT = 0
"""Guide points to picture: what is added to them, 3 numbers [m]."""
HEAD = 3
"""Head frame to picture: rotation row by row, then translation, 12 numbers."""
BODY = 15
"""Body frame to picture, as HEAD."""
CLUMP, FRIZZ, COIL, COIL_RADIUS, ZIGZAG, DEFINITION, MARGIN, LENGTH = range(27, 35)
PLAIT, PLAIT_RADIUS, PLAIT_TURNS = range(35, 38)
LIGHT_RIGHT, LIGHT_UP, LIGHT_TOWARD = 38, 41, 44
"""Axes of the light's grid in the world, 3 numbers each."""
SHAPES = 47
"""Two shapes, head and body, SHAPE_SIZE numbers each."""
SHAPE_SIZE = 10
"""A kind (0 nothing, 1 sphere, 2 grid), centre or origin (3), radius or cell; the rest is spare."""
BALL = SHAPES + 2 * SHAPE_SIZE
"""Ball round the skull that the light's grid covers too: centre (3) in the head's frame, radius."""
HAIR_NUMBERS = BALL + 4

BOX_STEP = 1e-4
"""Boxes are kept in whole steps [m], so that integer atomics give the same box in any order."""

ROOT_FADE = 0.02
"""Distance from the root over which a hair leaves the scalp's plane [m]."""

KEEP_OUT_TURNS = 8
"""Times that a hair is let out of head and body in turn, at most."""

PART_FROM, PART_AT = 3.0, 5.0
"""Two guides this many times as far apart as their roots share less, and no hair: it would lie
where neither is, even on both sides of the neck."""

WILD_TURNS = 0.12
"""How many more turns than its style's a stray hair has that coils alone, as a share."""

ZIGZAG_TURN = 0.7
"""How far the plane of a zig-zag turns from bend to bend [rad]."""

JOIN = 0.012
"""Distance from its root within which a hair comes into its plait [m]."""

TAU = 6.283185307179586


@ti.func
def triple(hair: ti.template(), at: ti.i32):
    """Return three numbers as a vector."""
    return ti.Vector([hair[at], hair[at + 1], hair[at + 2]])


@ti.func
def turn(hair: ti.template(), at: ti.i32, v):
    """Rotate a vector from a frame to the world."""
    return ti.Vector(
        [
            hair[at] * v[0] + hair[at + 1] * v[1] + hair[at + 2] * v[2],
            hair[at + 3] * v[0] + hair[at + 4] * v[1] + hair[at + 5] * v[2],
            hair[at + 6] * v[0] + hair[at + 7] * v[1] + hair[at + 8] * v[2],
        ]
    )


@ti.func
def turn_back(hair: ti.template(), at: ti.i32, v):
    """Rotate a vector from the world to a frame."""
    return ti.Vector(
        [
            hair[at] * v[0] + hair[at + 3] * v[1] + hair[at + 6] * v[2],
            hair[at + 1] * v[0] + hair[at + 4] * v[1] + hair[at + 7] * v[2],
            hair[at + 2] * v[0] + hair[at + 5] * v[1] + hair[at + 8] * v[2],
        ]
    )


@ti.func
def unit(v):
    """Return a vector of length one; a zero vector stays zero."""
    return v / ti.sqrt(ti.max(v.dot(v), 1e-20))


@ti.func
def on_axes(hair: ti.template(), x):
    """Return a place on the axes of the light's grid [m]."""
    return ti.Vector(
        [
            x.dot(triple(hair, LIGHT_RIGHT)),
            x.dot(triple(hair, LIGHT_UP)),
            x.dot(triple(hair, LIGHT_TOWARD)),
        ]
    )


@ti.kernel
def carry_frames(
    # layout
    strand_first: ti.i32,
    strand_count: ti.i32,
    own_first: ti.i32,
    slot: ti.i32,
    # control
    hair: ti.types.ndarray(dtype=ti.f32, ndim=1),
    # model
    guide_start: ti.template(),
    guide_count: ti.template(),
    strand_frame: ti.template(),
    # state in
    guide_point: ti.template(),
    # out
    guide_side_out: ti.template(),
    box_out: ti.template(),
):
    """Carry each guide's sideways vector from the root to the tip, and box the guides in.

    The root's vector turns with the head, and the smallest rotation from chord to chord carries it
    on, so that nothing along a guide is tied to the world and nothing can flip.

    Args:
        strand_first: Row of the first strand in the arena's tables.
        strand_count: Strands of this hair.
        own_first: Row of the first strand in `strand_frame`.
        slot: Which box of `box_out` is grown.
        hair: Numbers of this head, laid out as in this module.
        guide_start: Row of each strand's first point.
        guide_count: Points of each strand.
        strand_frame: Numbers of each strand, laid out as in `scatter`.
        guide_point: Guide points [m].
        guide_side_out: Unit vector across the guide at each of its points.
        box_out: Least and greatest place on the light's axes, in steps of BOX_STEP.
    """
    for i in range(strand_count + 1):
        low = ti.Vector([1e9, 1e9, 1e9])
        high = -low
        margin = hair[MARGIN]
        if i == strand_count:
            middle = turn(hair, HEAD, triple(hair, BALL)) + triple(hair, HEAD + 9)
            low = on_axes(hair, middle)
            high = low
            margin = hair[BALL + 3]
        else:
            start = guide_start[strand_first + i]
            count = guide_count[strand_first + i]
            frame = strand_frame[own_first + i]
            side = turn(hair, HEAD, ti.Vector([frame[0], frame[1], frame[2]]))
            before = unit(guide_point[start + 1] - guide_point[start])
            side = unit(side - before * side.dot(before))
            for p in range(count):
                here = guide_point[start + p]
                along = unit(
                    guide_point[start + ti.min(p + 1, count - 1)]
                    - guide_point[start + ti.max(p - 1, 0)]
                )
                # Smallest rotation that takes one unit vector to the next; two opposite ones have
                # none.
                side = side - (before + along) * (
                    side.dot(along) / ti.max(1.0 + before.dot(along), 1e-3)
                )
                side = unit(side - along * side.dot(along))
                guide_side_out[start + p] = side
                before = along
                place = on_axes(hair, here + triple(hair, SHIFT))
                low = ti.min(low, place)
                high = ti.max(high, place)
        for c in ti.static(range(3)):
            least = ti.cast(ti.floor((low[c] - margin) / BOX_STEP), ti.i32)
            most = ti.cast(ti.ceil((high[c] + margin) / BOX_STEP), ti.i32)
            ti.atomic_min(box_out[slot][c], least)
            ti.atomic_max(box_out[slot][c + 3], most)


@ti.func
def grid_distance(hair: ti.template(), grid: ti.template(), at: ti.i32, distance: ti.template(), x):
    """Return distance and its gradient from a grid of distances; far outside, simply far."""
    cell = hair[at + 4]
    q = (x - triple(hair, at + 1)) / cell
    nx, ny, nz = grid[1], grid[2], grid[3]
    answer = ti.Vector([1.0, 0.0, 1.0, 0.0])
    size = ti.Vector([nx, ny, nz])
    inside = True
    for c in ti.static(range(3)):
        inside = inside and q[c] > 0.0 and q[c] < size[c] - 1.001
    if inside:
        i = ti.cast(q, ti.i32)
        f = q - ti.cast(i, ti.f32)
        base = grid[0] + (i[0] * ny + i[1]) * nz + i[2]
        a000, a001 = distance[base], distance[base + 1]
        a010, a011 = distance[base + nz], distance[base + nz + 1]
        far = base + ny * nz
        a100, a101 = distance[far], distance[far + 1]
        a110, a111 = distance[far + nz], distance[far + nz + 1]
        b00, b01 = a000 + (a100 - a000) * f[0], a001 + (a101 - a001) * f[0]
        b10, b11 = a010 + (a110 - a010) * f[0], a011 + (a111 - a011) * f[0]
        c0, c1 = b00 + (b10 - b00) * f[1], b01 + (b11 - b01) * f[1]
        dx0 = (a100 - a000) + ((a110 - a010) - (a100 - a000)) * f[1]
        dx1 = (a101 - a001) + ((a111 - a011) - (a101 - a001)) * f[1]
        dy = (b10 - b00) + ((b11 - b01) - (b10 - b00)) * f[2]
        n = unit(ti.Vector([dx0 + (dx1 - dx0) * f[2], dy, c1 - c0]))
        answer = ti.Vector([c0 + (c1 - c0) * f[2], n[0], n[1], n[2]])
    return answer


@ti.func
def solid(hair: ti.template(), whole: ti.template(), distance: ti.template(), which, x):
    """Return how far a place is from the head (0) or the body (1) and the direction out of it."""
    at = SHAPES + which * SHAPE_SIZE
    kind = ti.cast(hair[at], ti.i32)
    answer = ti.Vector([1.0, 0.0, 1.0, 0.0])
    if kind > 0:
        frame = BODY if which == 1 else HEAD
        local = turn_back(hair, frame, x - triple(hair, frame + 9))
        if kind == 1:
            from_middle = local - triple(hair, at + 1)
            length = ti.sqrt(ti.max(from_middle.dot(from_middle), 1e-20))
            n = from_middle / length
            answer = ti.Vector([length - hair[at + 4], n[0], n[1], n[2]])
        else:
            first = which * 4
            grid = ti.Vector([whole[first], whole[first + 1], whole[first + 2], whole[first + 3]])
            answer = grid_distance(hair, grid, at, distance, local)
        n = turn(hair, frame, ti.Vector([answer[1], answer[2], answer[3]]))
        answer = ti.Vector([answer[0], n[0], n[1], n[2]])
    return answer


@ti.func
def keep_out(hair: ti.template(), whole: ti.template(), distance: ti.template(), x, soft, guide):
    """Move a point out of head and body.

    Distances below `soft` are squeezed into 0..soft smoothly instead of cut off, so that hairs
    pressed on the head keep their order and stay a layer. Where head and body leave no room, the
    point goes towards its guide's line, which is outside.
    """
    least = 0.15 * soft
    calm = 0
    for turn_index in range(KEEP_OUT_TURNS):
        # By turns: in the corner where head and body meet, each turn halves what is left.
        if calm > 1:
            break
        calm += 1
        answer = solid(hair, whole, distance, turn_index % 2, x)
        d = answer[0]
        if d < soft:
            # Later turns only mend what the other's turn broke; none must squeeze twice.
            aim = least + (soft - least) * ti.exp((d - soft) / (soft - least))
            if turn_index > 1:
                aim = ti.max(d, least)
            if turn_index < 2 or d < 0.5 * least:
                calm = 0
            x += ti.Vector([answer[1], answer[2], answer[3]]) * (aim - d)
    if calm < 2:
        # Try the place itself first, then halve the way to the guide.
        low, high, share = 0.0, 1.0, 0.0
        for _ in range(8):
            place = x + (guide - x) * share
            nearest = ti.min(
                solid(hair, whole, distance, 0, place)[0], solid(hair, whole, distance, 1, place)[0]
            )
            if nearest < 0.0:
                low = share
            else:
                high = share
            share = 0.5 * (low + high)
        x += (guide - x) * high
    return x


@ti.func
def wave(x):
    """Return the sine within 0.000001, for less than the library's: a point needs several."""
    t = x / TAU
    t -= ti.floor(t + 0.5)
    # Folded to a quarter turn to each side.
    if ti.abs(t) > 0.25:
        t = (0.5 if t > 0.0 else -0.5) - t
    y = t * TAU
    z = y * y
    return y * (0.99999660 + z * (-0.16664824 + z * (0.00830629 - z * 0.00018363)))


@ti.func
def smooth(t):
    """Return a smooth ramp from 0 at 0 to 1 at 1."""
    t = ti.min(ti.max(t, 0.0), 1.0)
    return t * t * (3.0 - 2.0 * t)


@ti.func
def plait_place(plait, phase, rope_phase, rope_x, rope_y, fuzz):
    """Return where a hair is in its plait's cross-section and in its rope's, in their radii.

    The ropes of a braid run on one figure of eight a part of the way round it apart, so that each
    goes over the middle and then under; the two of a twist on a circle. Each turns as it goes.
    """
    wide, deep, thick = 0.585, 0.415, 0.38
    p = phase + rope_phase
    x, y = wave(p), wave(2.0 * p)
    if plait < 2.5:
        y = wave(p + 0.25 * TAU)
        wide, deep, thick = 0.5, 0.5, 0.5
    if plait < 1.5:
        wide, deep, thick = 0.0, 0.0, 1.0
    thick *= 1.0 - fuzz
    c, s = wave(phase + 0.25 * TAU), wave(phase)
    own_x, own_y = c * rope_x - s * rope_y, s * rope_x + c * rope_y
    return wide * x + thick * own_x, deep * y + thick * own_y, own_x, own_y


@ti.func
def on_curve(point: ti.template(), start, last, i, f):
    """Return the place on a line of points drawn as a smooth curve, and the way on from there.

    Args:
        point: Points [m].
        start: Row of the line's first.
        last: Its segments.
        i: The segment.
        f: How far along that, 0 to 1.
    """
    p1, p2 = point[start + i], point[start + i + 1]
    # Beyond the ends the line goes on as it came.
    p0, p3 = 2.0 * p1 - p2, 2.0 * p2 - p1
    if i > 0:
        p0 = point[start + i - 1]
    if i + 1 < last:
        p3 = point[start + i + 2]
    m1, m2 = 0.5 * (p2 - p0), 0.5 * (p3 - p1)
    bulge = 2.0 * (p1 - p2) + m1 + m2
    sweep = 3.0 * (p2 - p1) - 2.0 * m1 - m2
    place = p1 + f * (m1 + f * (sweep + f * bulge))
    return place, m1 + f * (2.0 * sweep + f * 3.0 * bulge)


@ti.func
def on_bend(s, step, turns, begin):
    """Return a point's place along its hair, moved onto a zig-zag's bend if none is nearer to it.

    Args:
        s: Share of the length.
        step: Share from one point to the next.
        turns: Phase for each share [rad].
        begin: Phase at the root [rad].
    """
    half = 0.5 * TAU
    phase = turns * s + begin
    bend = (ti.floor(phase / half) + 0.5) * half
    away = (bend - phase) / ti.max(turns, 1e-6)
    if ti.abs(away) < 0.5 * step:
        s += away
    return s


@ti.func
def triangle_wave(phase):
    """Return a wave of straight lines between -1 and 1 with sine's period and sign."""
    t = phase / TAU + 0.25
    return 1.0 - 4.0 * ti.abs(t - ti.floor(t) - 0.5)


@ti.kernel
def expand(
    # layout
    hair_count: ti.i32,
    point_count: ti.i32,
    point_first: ti.i32,
    # control
    hair: ti.types.ndarray(dtype=ti.f32, ndim=1),
    whole: ti.types.ndarray(dtype=ti.i32, ndim=1),
    # model
    guide_start: ti.template(),
    guide_count: ti.template(),
    strand_frame: ti.template(),
    hair_strand: ti.template(),
    hair_trait: ti.template(),
    distance: ti.template(),
    # state in
    guide_point: ti.template(),
    guide_side: ti.template(),
    # out
    point_out: ti.template(),
    round_out: ti.template(),
):
    """Make every point of every drawn hair of one head.

    Args:
        hair_count: Drawn hairs.
        point_count: Points of each, at least two.
        point_first: Row of the first point in `point_out`.
        hair: Numbers of this head, laid out as in this module.
        whole: Grid of the head (first row, nx, ny, nz), of the body (the same), first strand in the
            arena's tables, first strand in `strand_frame`, first hair in the hair tables, hairs of
            each guide that are drawn, hairs of each guide that there are.
        guide_start: Row of each strand's first point.
        guide_count: Points of each strand.
        strand_frame: Numbers of each strand, laid out as in `scatter`.
        hair_strand: Own guide and the guide it leans to.
        hair_trait: Numbers of each hair, laid out as in `scatter`.
        distance: Distances of every grid [m].
        guide_point: Guide points [m].
        guide_side: Unit vector across the guide at each of its points.
        point_out: Points of the drawn hairs [m].
        round_out: Of plaits only: the direction out of the rope at each point, of length 1 where it
            lies open to 0 where it is hidden.
    """
    for n in range(hair_count * point_count):
        h = n // point_count
        j = n - h * point_count
        row = whole[10] + h // whole[11] * whole[12] + h % whole[11]
        trait = hair_trait[row]
        strands = hair_strand[row]
        first = trait[START]
        s = first + ti.cast(j, ti.f32) / (point_count - 1) * (trait[CUT] - first)
        if hair[ZIGZAG] > 0.0 and hair[COIL] > 0.0 and j > 0:
            s = on_bend(
                s,
                (trait[CUT] - first) / (point_count - 1),
                TAU
                * hair[COIL]
                * (guide_count[whole[8] + strands[0]] - 1)
                * strand_frame[whole[9] + strands[0]][6]
                * (1.0 + WILD_TURNS * (1.0 - hair[DEFINITION]) * trait[WILD]),
                trait[LOCK_PHASE] + (1.0 - hair[DEFINITION]) * trait[HAIR_PHASE],
            )
        lean = trait[LEAN] * (1.0 - 0.6 * hair[CLUMP] * s)

        x = ti.Vector([0.0, 0.0, 0.0])
        along = ti.Vector([0.0, 0.0, 0.0])
        other_x, other_along = x, along
        side = ti.Vector([1.0, 0.0, 0.0])
        reach, grown, pull = 0.0, 0.0, 1.0
        for leg in range(2):
            strand = strands[0] if leg == 0 else strands[1]
            start = guide_start[whole[8] + strand]
            last = guide_count[whole[8] + strand] - 1
            u = s * last
            i = ti.min(ti.cast(u, ti.i32), last - 1)
            f = u - i
            p1, p2 = guide_point[start + i], guide_point[start + i + 1]
            place, ahead = on_curve(guide_point, start, last, i, f)
            if leg == 1:
                other_x, other_along = place, ahead
            else:
                x, along = place, ahead
                segment = strand_frame[whole[9] + strand][6]
                reach = s * last * segment
                grown = (s - first) * last * segment
                pull = ti.sqrt((p2 - p1).dot(p2 - p1)) / segment
                side = guide_side[start + i] * (1.0 - f) + guide_side[start + i + 1] * f
        frame = strand_frame[whole[9] + strands[0]]
        apart = (
            guide_point[guide_start[whole[8] + strands[1]]]
            - guide_point[guide_start[whole[8] + strands[0]]]
        ).norm()
        times = (other_x - x).norm() / ti.max(apart, 1e-6)
        lean *= 1.0 - smooth((times - PART_FROM) / (PART_AT - PART_FROM))
        guide = x + triple(hair, SHIFT)
        x += lean * (other_x - x)
        along = unit(along + lean * (other_along - along))
        side = unit(side - along * side.dot(along))
        rise = turn(hair, HEAD, ti.Vector([frame[3], frame[4], frame[5]]))
        leave = smooth(grown / ROOT_FADE)
        spread = leave
        if first > 0.0:
            # It starts beside its guide's way over the scalp, not round its root.
            spread = 1.0
        # At the root hairs spread in the scalp; along the hair across it, and flatter.
        across = turn(hair, HEAD, ti.Vector([frame[0], frame[1], frame[2]]))
        beyond = 0.0
        if frame[TIE_AT] > 0.0:
            beyond = smooth((s - frame[TIE_AT]) / 0.15)
        flat = frame[7] + (1.0 - frame[7]) * beyond
        other = rise * (1.0 - spread) + along.cross(side) * spread * flat

        wild = trait[WILD]
        gather = trait[GATHER] * ti.min(1.0, 1.6 * s) * (1.0 - 0.8 * ti.min(1.0, wild * 4.0))
        tight = 1.0 - hair[CLUMP] * s * (1.0 - 0.5 * wild)
        ox = (trait[OFFSET_X] * (1.0 - gather) + trait[LOCK_X] * gather) * tight
        oy = (trait[OFFSET_Y] * (1.0 - gather) + trait[LOCK_Y] * gather) * tight

        # Locks wander slowly, single hairs more quickly and less: what keeps hair from looking
        # ruled.
        spacing = hair[LENGTH] / (point_count - 1)
        slow = TAU * reach / ti.max(0.17, 5.0 * spacing)
        quick = TAU * reach / ti.max(0.04, 7.0 * spacing)
        lock_phase, hair_phase = trait[LOCK_PHASE], trait[HAIR_PHASE]
        drift = ti.min(0.03 * reach, 0.0015 + 0.012 * hair[FRIZZ])
        stray = wild * ti.min(0.12 * reach, 0.012)
        fray = ti.min(0.02 * reach, 0.0006 + 0.006 * hair[FRIZZ]) * (0.3 + 0.7 * s)
        ox += drift * wave(slow + lock_phase) + fray * wave(quick + 3.0 * hair_phase)
        oy += drift * wave(1.37 * slow + 2.0 * lock_phase) + fray * wave(
            0.83 * quick + 5.0 * hair_phase
        )
        if wild > 0.0:
            ox += stray * wave(slow + 2.0 * hair_phase) + wild * 0.25 * s * trait[OFFSET_X]
            oy += stray * (0.4 + wave(0.7 * slow + 3.0 * hair_phase))

        if frame[TIE_AT] > 0.0:
            # Gathered in the tie, and as wide as it wants to be after it.
            scale = 1.0 + (frame[TIE_SQUEEZE] - 1.0) * smooth(s / frame[TIE_AT])
            scale += (frame[TIE_SPREAD] - scale) * beyond
            ox *= scale
            oy *= scale

        cx, cy = 0.0, 0.0
        if hair[PLAIT] > 0.0:
            fuzz = 0.3 * hair[FRIZZ]
            phase = TAU * hair[PLAIT_TURNS] * reach + frame[PLAIT_PHASE]
            rope_x, rope_y = trait[ROPE_X], trait[ROPE_Y]
            px, py, own_x, own_y = plait_place(
                hair[PLAIT], phase, trait[ROPE_PHASE], rope_x, rope_y, fuzz
            )
            # For shading: out of rope and plait, short where one rope goes under another.
            rounded = unit(ti.Vector([0.65 * own_x + 0.35 * px, 0.65 * own_y + 0.35 * py, 0.0]))
            rounded *= smooth(grown / JOIN) * (0.2 + 0.8 * smooth((px * px + py * py - 0.1) / 0.5))
            round_out[point_first + n] = side * rounded[0] + along.cross(side) * rounded[1]
            # Single hairs stray, but not out of their rope.
            if hair[PLAIT] > 1.5:
                fuzz *= 0.38
            px += fuzz * 0.7 * wave(quick + 3.0 * hair_phase)
            py += fuzz * 0.7 * wave(0.83 * quick + 5.0 * hair_phase)
            radius = hair[PLAIT_RADIUS] * (1.0 - 0.5 * smooth((s - 0.92) / 0.08))
            # What comes in on the way over the scalp runs along with it for longer.
            joined = smooth(grown / (2.0 * JOIN if first > 0.0 else JOIN))
            ox = trait[OFFSET_X] * (1.0 - joined)
            oy = trait[OFFSET_Y] * (1.0 - joined)
            cx, cy = radius * px * joined, radius * py * joined
        elif hair[COIL] > 0.0:
            zig = hair[ZIGZAG]
            alone = 1.0 - hair[DEFINITION]
            coil = hair[COIL] * (1.0 + WILD_TURNS * alone * trait[WILD])
            # A coil's hair keeps its length: pulled by `pull`, the coil gets that much narrower.
            # Across its axis a turn of a coil is 2 pi radii long, one of a zig-zag 4.
            across_length = (TAU * (1.0 - zig) + 4.0 * zig) * coil
            wide = across_length * hair[COIL_RADIUS]
            own_length = 1.0 + wide * wide
            radius = ti.sqrt(ti.max(own_length - pull * pull, 0.0)) / across_length
            radius *= ti.min(1.0, reach * hair[COIL])
            phase = TAU * coil * reach + lock_phase + alone * hair_phase
            bend = ti.floor(phase / (0.5 * TAU))
            plane = ZIGZAG_TURN * bend + lock_phase + 2.0 * alone * hair_phase
            tooth = triangle_wave(phase)
            # Locks of both hands: all of one would look knitted.
            hand = 1.0 if lock_phase < 0.5 * TAU else -1.0
            cx = radius * (
                wave(phase + 0.25 * TAU) * (1.0 - zig) + tooth * wave(plane + 0.25 * TAU) * zig
            )
            cy = radius * (hand * wave(phase) * (1.0 - zig) + tooth * wave(plane) * zig)

        x += (across * (1.0 - spread) + side * spread) * ox + other * oy + triple(hair, SHIFT)
        # A coil is as round where hair lies flat.
        x += side * cx + along.cross(side) * cy
        let_down = ti.max(0.0, 1.0 - grown / (0.75 * ROOT_FADE))
        down = ti.Vector([trait[DROP_X], trait[DROP_Y], trait[DROP_Z]])
        x += turn(hair, HEAD, down) * (let_down * let_down)
        soft = 0.0004 + 0.0026 * leave
        point_out[point_first + n] = keep_out(hair, whole, distance, x, soft, guide)
