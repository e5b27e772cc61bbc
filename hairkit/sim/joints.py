"""Kernels that turn chains' points into joints' rotations, and joints' matrices into a skin."""

from hairkit.backend import ti
from hairkit.sim import columns as col
from hairkit.sim.kernels import seen_point

LIMITLESS = 7.0
"""An angle that no joint turns by, for no limit [rad]."""


@ti.func
def between(a, b):
    """Return the smallest rotation of a unit vector to another one, a quaternion (x, y, z, w)."""
    axis = a.cross(b)
    real = 1.0 + a.dot(b)
    if real < 1e-6:
        # Two opposite ones have no smallest: any half turn across does.
        spare = ti.Vector([1.0, 0.0, 0.0])
        if ti.abs(a[0]) > 0.6:
            spare = ti.Vector([0.0, 1.0, 0.0])
        axis = a.cross(spare).normalized()
        real = 0.0
    q = ti.Vector([axis[0], axis[1], axis[2], real])
    return q / q.norm()


@ti.func
def times(a, b):
    """Return the rotation b, then a."""
    return ti.Vector(
        [
            a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
            a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
            a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
            a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
        ]
    )


@ti.func
def turned_back(q, v):
    """Rotate a vector by the inverse of a unit quaternion."""
    axis = -ti.Vector([q[0], q[1], q[2]])
    return v + 2.0 * axis.cross(axis.cross(v) + q[3] * v)


@ti.func
def mapped(matrix: ti.template(), v):
    """Return the unit direction that a direction becomes."""
    way = ti.Vector([0.0, 0.0, 0.0])
    for c in ti.static(range(3)):
        for k in ti.static(range(3)):
            way[c] += matrix[c, k] * v[k]
    return way / ti.max(way.norm(), 1e-30)


@ti.func
def limited(turn, limit):
    """Return a rotation by no more than an angle, about the same axis."""
    held = turn
    half = ti.acos(ti.min(turn[3], 1.0))
    if 2.0 * half > limit:
        share = ti.sin(0.5 * limit) / ti.sin(half)
        held = ti.Vector([turn[0] * share, turn[1] * share, turn[2] * share, ti.cos(0.5 * limit)])
    return held


@ti.kernel
def swing(
    # counts
    chain_count: ti.i32,
    first_strand: ti.i32,
    serial: ti.template(),
    # model
    chain_joints: ti.types.ndarray(dtype=ti.i32, ndim=2),
    rest: ti.types.ndarray(dtype=ti.f32, ndim=2),
    limit: ti.f32,
    # control
    numbers: ti.types.ndarray(dtype=ti.f32, ndim=2),
    into_carrier: ti.types.ndarray(dtype=ti.f32, ndim=2),
    # state in
    arena: ti.template(),
    # out
    turns: ti.types.ndarray(dtype=ti.f32, ndim=2),
):
    """Work out how each joint is turned in its parent, from the rest pose and without twist.

    Args:
        chain_count: Chains.
        first_strand: The first one's row in the strand table.
        serial: Whether the calling thread does it alone, compiled in.
        chain_joints: First joint and number of joints of each chain, shape (chains, 2).
        rest: Unit direction of each bone at rest in the carrier's space, shape (joints, 3).
        limit: Largest angle of a joint [rad].
        numbers: One row a hair, see ``columns``.
        into_carrier: From the world to the carrier's space, directions only, shape (3, 3).
        arena: The fields.
        turns: Quaternions (x, y, z, w), shape (joints, 4).
    """
    ti.loop_config(serialize=serial)
    for s in range(chain_count):
        carried = ti.Vector([0.0, 0.0, 0.0, 1.0])
        first = chain_joints[s, 0]
        here = seen_point(arena, numbers, first_strand + s, 1)
        for bone in range(chain_joints[s, 1]):
            there = seen_point(arena, numbers, first_strand + s, bone + 2)
            step = there - here
            here = there
            straight = ti.Vector([rest[first + bone, c] for c in range(3)])
            turn = between(straight, turned_back(carried, mapped(into_carrier, step)))
            if limit < LIMITLESS:
                turn = limited(turn, limit)
            for c in ti.static(range(4)):
                turns[first + bone, c] = turn[c]
            carried = times(carried, turn)


@ti.func
def turned(q, v):
    """Rotate a vector by a unit quaternion."""
    axis = ti.Vector([q[0], q[1], q[2]])
    return v + 2.0 * axis.cross(axis.cross(v) + q[3] * v)


@ti.func
def get(arena: ti.template(), at: ti.template(), strand, point):
    """Return three columns of a chain's point."""
    r = arena.strand_row[strand] + point * ti.static(arena.stride)
    x = ti.Vector([0.0, 0.0, 0.0])
    for c in ti.static(range(3)):
        if ti.static(arena.lanes > 1):
            x[c] = arena.row[at + c][r][arena.strand_lane[strand]]
        else:
            x[c] = arena.row[at + c][r]
    return x


@ti.func
def put(arena: ti.template(), at: ti.template(), strand, point, x):
    """Write three columns of a chain's point."""
    r = arena.strand_row[strand] + point * ti.static(arena.stride)
    for c in ti.static(range(3)):
        if ti.static(arena.lanes > 1):
            arena.row[at + c][r][arena.strand_lane[strand]] = x[c]
        else:
            arena.row[at + c][r] = x[c]


@ti.kernel
def keep_limits(
    # counts
    chain_count: ti.i32,
    first_strand: ti.i32,
    # model
    chain_joints: ti.types.ndarray(dtype=ti.i32, ndim=2),
    rest: ti.types.ndarray(dtype=ti.f32, ndim=2),
    limit: ti.f32,
    # control
    into_carrier: ti.types.ndarray(dtype=ti.f32, ndim=2),
    out_of_carrier: ti.types.ndarray(dtype=ti.f32, ndim=2),
    # state
    arena: ti.template(),
):
    """Turn bones back that bend too far in their parents, and stop them there.

    Args:
        chain_count: Chains.
        first_strand: The first one's row in the strand table.
        chain_joints: First joint and number of joints of each chain, shape (chains, 2).
        rest: Unit direction of each bone at rest in the carrier's space, shape (joints, 3).
        limit: Largest angle of a joint [rad].
        into_carrier: From the world to the carrier's space, directions only, shape (3, 3).
        out_of_carrier: The other way, shape (3, 3).
        arena: The fields.
    """
    for s in range(chain_count):
        strand = first_strand + s
        for at in ti.static((col.POSITION, col.VIEW)):
            carried = ti.Vector([0.0, 0.0, 0.0, 1.0])
            first = chain_joints[s, 0]
            here = get(arena, at, strand, 1)
            moved = here
            for bone in range(chain_joints[s, 1]):
                there = get(arena, at, strand, bone + 2)
                step = there - here
                here = there
                straight = ti.Vector([rest[first + bone, c] for c in range(3)])
                turn = between(straight, turned_back(carried, mapped(into_carrier, step)))
                held = limited(turn, limit)
                if held[3] > turn[3]:
                    turn = held
                    towards = turned(times(carried, turn), straight)
                    step = mapped(out_of_carrier, towards) * step.norm()
                carried = times(carried, turn)
                moved = moved + step
                back = moved - there
                size = back.norm()
                if size > 1e-7:
                    put(arena, at, strand, bone + 2, moved)
                    if ti.static(at == col.POSITION):
                        speed = get(arena, col.VELOCITY, strand, bone + 2)
                        outward = ti.min(speed.dot(back) / size, 0.0)
                        put(arena, col.VELOCITY, strand, bone + 2, speed - back / size * outward)


@ti.kernel
def blend(
    # counts
    vertex_count: ti.i32,
    influence_count: ti.i32,
    # model
    vertices: ti.types.ndarray(dtype=ti.f32, ndim=2),
    indices: ti.types.ndarray(dtype=ti.i32, ndim=2),
    weights: ti.types.ndarray(dtype=ti.f32, ndim=2),
    # control
    matrices: ti.types.ndarray(dtype=ti.f32, ndim=3),
    # out
    places: ti.types.ndarray(dtype=ti.f32, ndim=2),
):
    """Move a mesh's vertices by its bones: linear blend skinning.

    Args:
        vertex_count: Vertices.
        influence_count: Bones that may move each.
        vertices: Positions at rest, shape (v, 3).
        indices: Rows of bones, shape (v, influences).
        weights: Shares that sum to 1, shape (v, influences).
        matrices: What each bone does to the mesh, shape (bones, 3, 4).
        places: Where the vertices are, shape (v, 3).
    """
    for v in range(vertex_count):
        place = ti.Vector([0.0, 0.0, 0.0])
        for slot in range(influence_count):
            bone = indices[v, slot]
            for c in ti.static(range(3)):
                moved = matrices[bone, c, 3]
                for k in ti.static(range(3)):
                    moved += matrices[bone, c, k] * vertices[v, k]
                place[c] += weights[v, slot] * moved
        for c in ti.static(range(3)):
            places[v, c] = place[c]
