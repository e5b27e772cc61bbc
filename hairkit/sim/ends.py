"""How a tick begins and ends: roots, velocities, the caller's view, strands gone bad."""

from hairkit.backend import ti
from hairkit.sim import columns as col
from hairkit.sim.contact import CARRY, NORMAL
from hairkit.sim.rod import rotate

_HUGE_BITS = 0x5368D4A5
"""The bits of 1e12 as an f32; a sum of squares past it, infinite or NaN has larger bits, or the
sign's."""


@ti.func
def place_root(arena: ti.template(), turn, moved, s0, r0):
    """Put points 0 and 1 where the head carries them; remember where they were."""
    for i in ti.static(range(2)):
        r = r0 + i * ti.static(arena.stride)
        s = s0 + i * ti.static(arena.stride)
        x, y, z = rotate(
            turn, arena.row[r, col.REST], arena.row[r, col.REST + 1], arena.row[r, col.REST + 2]
        )
        for c in ti.static(range(3)):
            arena.scratch[s, c] = arena.row[r, col.POSITION + c]
        arena.row[r, col.POSITION] = x + moved[0]
        arena.row[r, col.POSITION + 1] = y + moved[1]
        arena.row[r, col.POSITION + 2] = z + moved[2]


@ti.func
def finish(arena: ti.template(), turn, moved, b, h, s0, r0, count, trial, last):
    """New velocities, view and block motion; a strand gone bad starts afresh.

    Returns:
        How many strands of the block had gone bad.
    """
    stride = ti.static(arena.stride)
    rate = 1.0 / h
    size = arena.row[r0, col.POSITION] * 0.0
    most = size
    # Conditions stay outside the loops, which would not become vector code around them.
    if last:
        for i in range(count):
            r = r0 + i * stride
            for c in ti.static(range(3)):
                arena.row[r, col.VIEW + c] = arena.row[r, col.POSITION + c]
    if trial:
        for i in range(count):
            r = r0 + i * stride
            s = s0 + i * stride
            for c in ti.static(range(3)):
                x = arena.row[r, col.POSITION + c]
                size = size + x * x
                arena.row[r, col.POSITION + c] = arena.scratch[s, c]
    else:
        for i in range(2, count):
            r = r0 + i * stride
            s = s0 + i * stride
            x = arena.row[r, col.POSITION]
            y = arena.row[r, col.POSITION + 1]
            z = arena.row[r, col.POSITION + 2]
            vx = x - arena.scratch[s, 0]
            vy = y - arena.scratch[s, 1]
            vz = z - arena.scratch[s, 2]
            size = size + x * x + y * y + z * z
            most = ti.max(most, ti.max(ti.abs(vx), ti.max(ti.abs(vy), ti.abs(vz))))
            # What contact pushed out does not fly off: no faster along the normal than the surface
            # itself.
            nx = arena.scratch[s, NORMAL]
            ny = arena.scratch[s, NORMAL + 1]
            nz = arena.scratch[s, NORMAL + 2]
            off = ti.max(vx * nx + vy * ny + vz * nz - arena.scratch[s, CARRY], 0.0)
            arena.row[r, col.VELOCITY] = (vx - nx * off) * rate
            arena.row[r, col.VELOCITY + 1] = (vy - ny * off) * rate
            arena.row[r, col.VELOCITY + 2] = (vz - nz * off) * rate
            arena.row[r, col.TOUCH] = nx
            arena.row[r, col.TOUCH + 1] = ny
            arena.row[r, col.TOUCH + 2] = nz
            arena.row[r, col.CARRIED] = arena.scratch[s, CARRY]
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
                        arena.row[r, col.REST][lane],
                        arena.row[r, col.REST + 1][lane],
                        arena.row[r, col.REST + 2][lane],
                    )
                    arena.row[r, col.POSITION][lane] = x + moved[0]
                    arena.row[r, col.POSITION + 1][lane] = y + moved[1]
                    arena.row[r, col.POSITION + 2][lane] = z + moved[2]
                    for c in ti.static(range(3)):
                        arena.row[r, col.VELOCITY + c][lane] = 0.0
                        arena.row[r, col.TOUCH + c][lane] = 0.0
                        arena.row[r, col.VIEW + c][lane] = arena.row[r, col.POSITION + c][lane]
            else:
                worst = ti.max(worst, most[lane])
    else:
        bits = ti.bit_cast(size, ti.i32)
        if bits < 0 or bits > _HUGE_BITS:
            bad = bad + 1
            for i in range(count):
                r = r0 + i * stride
                x, y, z = rotate(
                    turn,
                    arena.row[r, col.REST],
                    arena.row[r, col.REST + 1],
                    arena.row[r, col.REST + 2],
                )
                arena.row[r, col.POSITION] = x + moved[0]
                arena.row[r, col.POSITION + 1] = y + moved[1]
                arena.row[r, col.POSITION + 2] = z + moved[2]
                for c in ti.static(range(3)):
                    arena.row[r, col.VELOCITY + c] = 0.0
                    arena.row[r, col.TOUCH + c] = 0.0
                    arena.row[r, col.VIEW + c] = arena.row[r, col.POSITION + c]
        else:
            worst = most
    if not trial:
        arena.block_motion[b] = worst
    return bad


@ti.func
def to_rest(arena: ti.template(), turn, moved, r0, count):
    """Put a block into its rest pose in the head, still."""
    for i in range(count):
        r = r0 + i * ti.static(arena.stride)
        x, y, z = rotate(
            turn, arena.row[r, col.REST], arena.row[r, col.REST + 1], arena.row[r, col.REST + 2]
        )
        arena.row[r, col.POSITION] = x + moved[0]
        arena.row[r, col.POSITION + 1] = y + moved[1]
        arena.row[r, col.POSITION + 2] = z + moved[2]
        for c in ti.static(range(3)):
            arena.row[r, col.VIEW + c] = arena.row[r, col.POSITION + c]
            arena.row[r, col.VELOCITY + c] = arena.row[r, col.POSITION + c] * 0.0
            arena.row[r, col.TOUCH + c] = arena.row[r, col.POSITION + c] * 0.0
