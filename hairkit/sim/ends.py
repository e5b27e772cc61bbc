"""How a tick begins and ends: roots, velocities, the caller's view, strands gone bad."""

from hairkit.backend import ti
from hairkit.sim import columns as col
from hairkit.sim.contact import CARRY, NORMAL
from hairkit.sim.rod import put, rotate

_HUGE_BITS = 0x5368D4A5
"""The bits of 1e12 as an f32; a sum of squares past it, infinite or NaN has larger bits, or the
sign's."""


@ti.func
def place_root(arena: ti.template(), turn: ti.template(), moved: ti.template(), s0, r0):
    """Put points 0 and 1 where the head carries them; remember where they were."""
    for i in ti.static(range(2)):
        r = r0 + i * ti.static(arena.stride)
        s = s0 + i * ti.static(arena.stride)
        x, y, z = rotate(
            turn, arena.row[col.REST][r], arena.row[col.REST + 1][r], arena.row[col.REST + 2][r]
        )
        for c in ti.static(range(3)):
            put(arena, arena.scratch[c], s, arena.row[col.POSITION + c][r])
        put(arena, arena.row[col.POSITION], r, x + moved[0])
        put(arena, arena.row[col.POSITION + 1], r, y + moved[1])
        put(arena, arena.row[col.POSITION + 2], r, z + moved[2])


@ti.func
def finish(
    arena: ti.template(),
    turn: ti.template(),
    moved: ti.template(),
    b,
    h,
    s0,
    r0,
    count,
    trial,
    last,
):
    """New velocities, view and block motion; a strand gone bad starts afresh.

    Returns:
        How many strands of the block had gone bad.
    """
    stride = ti.static(arena.stride)
    rate = 1.0 / h
    size = arena.row[col.POSITION][r0] * 0.0
    most = size
    # Conditions stay outside the loops, which would not become vector code around them.
    if last:
        for i in range(count):
            r = r0 + i * stride
            for c in ti.static(range(3)):
                put(arena, arena.row[col.VIEW + c], r, arena.row[col.POSITION + c][r])
    if trial:
        for i in range(count):
            r = r0 + i * stride
            s = s0 + i * stride
            for c in ti.static(range(3)):
                x = arena.row[col.POSITION + c][r]
                size = size + x * x
                put(arena, arena.row[col.POSITION + c], r, arena.scratch[c][s])
    else:
        for i in range(2, count):
            r = r0 + i * stride
            s = s0 + i * stride
            x = arena.row[col.POSITION][r]
            y = arena.row[col.POSITION + 1][r]
            z = arena.row[col.POSITION + 2][r]
            vx = x - arena.scratch[0][s]
            vy = y - arena.scratch[1][s]
            vz = z - arena.scratch[2][s]
            size = size + x * x + y * y + z * z
            most = ti.max(most, ti.max(ti.abs(vx), ti.max(ti.abs(vy), ti.abs(vz))))
            # What contact pushed out does not fly off: no faster along the normal than the surface
            # itself.
            nx = arena.scratch[NORMAL][s]
            ny = arena.scratch[NORMAL + 1][s]
            nz = arena.scratch[NORMAL + 2][s]
            off = ti.max(vx * nx + vy * ny + vz * nz - arena.scratch[CARRY][s], 0.0)
            put(arena, arena.row[col.VELOCITY], r, (vx - nx * off) * rate)
            put(arena, arena.row[col.VELOCITY + 1], r, (vy - ny * off) * rate)
            put(arena, arena.row[col.VELOCITY + 2], r, (vz - nz * off) * rate)
            put(arena, arena.row[col.TOUCH], r, nx)
            put(arena, arena.row[col.TOUCH + 1], r, ny)
            put(arena, arena.row[col.TOUCH + 2], r, nz)
            put(arena, arena.row[col.CARRIED], r, arena.scratch[CARRY][s])
        most = most * rate
    worst = 0.0
    bad = 0
    if ti.static(arena.lanes > 1):
        for lane in ti.static(range(arena.lanes)):
            bits = ti.bit_cast(size[lane], ti.i32)
            if bits < 0 or bits > _HUGE_BITS:
                bad = bad + 1
                for i in range(count):
                    r = r0 + i * stride
                    x, y, z = rotate(
                        turn,
                        arena.row[col.REST][r][lane],
                        arena.row[col.REST + 1][r][lane],
                        arena.row[col.REST + 2][r][lane],
                    )
                    arena.row[col.POSITION][r][lane] = x + moved[0]
                    arena.row[col.POSITION + 1][r][lane] = y + moved[1]
                    arena.row[col.POSITION + 2][r][lane] = z + moved[2]
                    for c in ti.static(range(3)):
                        arena.row[col.VELOCITY + c][r][lane] = 0.0
                        arena.row[col.TOUCH + c][r][lane] = 0.0
                        arena.row[col.VIEW + c][r][lane] = arena.row[col.POSITION + c][r][lane]
            else:
                worst = ti.max(worst, most[lane])
    elif ti.static(arena.differentiable):
        # What went bad shows in the results; putting it right would have no derivative.
        worst = most
    else:
        bits = ti.bit_cast(size, ti.i32)
        if bits < 0 or bits > _HUGE_BITS:
            bad = bad + 1
            for i in range(count):
                r = r0 + i * stride
                x, y, z = rotate(
                    turn,
                    arena.row[col.REST][r],
                    arena.row[col.REST + 1][r],
                    arena.row[col.REST + 2][r],
                )
                put(arena, arena.row[col.POSITION], r, x + moved[0])
                put(arena, arena.row[col.POSITION + 1], r, y + moved[1])
                put(arena, arena.row[col.POSITION + 2], r, z + moved[2])
                for c in ti.static(range(3)):
                    put(arena, arena.row[col.VELOCITY + c], r, 0.0)
                    put(arena, arena.row[col.TOUCH + c], r, 0.0)
                    put(arena, arena.row[col.VIEW + c], r, arena.row[col.POSITION + c][r])
        else:
            worst = most
    if not trial:
        arena.block_motion[b] = worst
    return bad


@ti.func
def to_rest(arena: ti.template(), turn: ti.template(), moved: ti.template(), r0, count):
    """Put a block into its rest pose in the head, still."""
    for i in range(count):
        r = r0 + i * ti.static(arena.stride)
        x, y, z = rotate(
            turn, arena.row[col.REST][r], arena.row[col.REST + 1][r], arena.row[col.REST + 2][r]
        )
        put(arena, arena.row[col.POSITION], r, x + moved[0])
        put(arena, arena.row[col.POSITION + 1], r, y + moved[1])
        put(arena, arena.row[col.POSITION + 2], r, z + moved[2])
        for c in ti.static(range(3)):
            put(arena, arena.row[col.VIEW + c], r, arena.row[col.POSITION + c][r])
            put(arena, arena.row[col.VELOCITY + c], r, arena.row[col.POSITION + c][r] * 0.0)
            put(arena, arena.row[col.TOUCH + c], r, arena.row[col.POSITION + c][r] * 0.0)
