"""The direct length solve of a strand (Han and Harada 2013), along what its points touch."""

from hairkit.backend import ti
from hairkit.sim import columns as col
from hairkit.sim.contact import NORMAL
from hairkit.sim.rod import put

# Scratch columns, over what the implicit solve has left.
EDGE_ = 3
PIVOT_ = 6
RHS_ = 7

STRAIN_LEFT = 0.003
"""Strain beyond the dead zone that asks for one more round of length solve and contact."""


@ti.func
def eliminate_lengths(arena: ti.template(), s0, r0, count, low, high, bind):
    """First half: one Newton step of all segments at once, tridiagonal, root to tip.

    A point that touches a collider moves along its surface only, so that contact has little left to
    undo. Strain between ``low`` and ``high`` is left alone: without that dead zone the solve would
    fight stiff bending for ever, with it an idle strand is still.

    Returns:
        How much longer or shorter than STRAIN_LEFT beyond that the worst segment of the block is
        [m]; 0 for none.
    """
    stride = ti.static(arena.stride)
    r = r0 + stride
    lx = arena.row[col.POSITION][r]
    ly = arena.row[col.POSITION + 1][r]
    lz = arena.row[col.POSITION + 2][r]
    zero = lx * 0.0
    # What moves the point below for a unit pull of the segment below it; point 1 is the head's and
    # stays.
    mx = zero
    my = zero
    mz = zero
    nx = zero
    ny = zero
    nz = zero
    below = 0.0
    pivot = zero
    rhs = zero
    worst = zero
    for i in range(2, count):
        r = r0 + i * stride
        s = s0 + i * stride
        x = arena.row[col.POSITION][r]
        y = arena.row[col.POSITION + 1][r]
        z = arena.row[col.POSITION + 2][r]
        vx = x - lx
        vy = y - ly
        vz = z - lz
        n = ti.sqrt(vx * vx + vy * vy + vz * vz)
        inverse = 1.0 / (n + 1e-9)
        vx = vx * inverse
        vy = vy * inverse
        vz = vz * inverse
        rest = arena.row[col.LENGTH][r - stride]
        excess = n - rest
        excess = excess - ti.max(low * rest, ti.min(high * rest, excess))
        worst = ti.max(worst, ti.abs(excess) - STRAIN_LEFT * rest)
        off = -(vx * mx + vy * my + vz * mz)
        along = vx * nx + vy * ny + vz * nz
        diagonal = below * (1.0 - along * along)
        # Inverse masses: 2 for the tip, half a point's mass; along the surface only where it
        # touches one.
        above = 2.0 if i == count - 1 else 1.0
        nx = arena.scratch[NORMAL][s] * bind
        ny = arena.scratch[NORMAL + 1][s] * bind
        nz = arena.scratch[NORMAL + 2][s] * bind
        along = vx * nx + vy * ny + vz * nz
        mx = (vx - nx * along) * above
        my = (vy - ny * along) * above
        mz = (vz - nz * along) * above
        diagonal = diagonal + above * (1.0 - along * along)
        t = off * pivot
        rhs = excess - t * rhs
        pivot = 1.0 / (diagonal + 1e-4 - off * t)
        put(arena, arena.scratch[EDGE_], s, vx)
        put(arena, arena.scratch[EDGE_ + 1], s, vy)
        put(arena, arena.scratch[EDGE_ + 2], s, vz)
        put(arena, arena.scratch[PIVOT_], s, pivot)
        put(arena, arena.scratch[RHS_], s, rhs)
        below = above
        lx = x
        ly = y
        lz = z
    most = 0.0
    if ti.static(arena.lanes > 1):
        most = worst.max()
    else:
        most = worst
    return most


@ti.func
def substitute_lengths(arena: ti.template(), s0, r0, count, bind):
    """Direct length solve, second half: move the points, tip to root."""
    stride = ti.static(arena.stride)
    zero = arena.row[col.POSITION][r0] * 0.0
    tx = zero
    ty = zero
    tz = zero
    for back in range(count - 2):
        i = count - 1 - back
        r = r0 + i * stride
        s = s0 + i * stride
        vx = arena.scratch[EDGE_][s]
        vy = arena.scratch[EDGE_ + 1][s]
        vz = arena.scratch[EDGE_ + 2][s]
        nx = arena.scratch[NORMAL][s] * bind
        ny = arena.scratch[NORMAL + 1][s] * bind
        nz = arena.scratch[NORMAL + 2][s] * bind
        weight = 2.0 if i == count - 1 else 1.0
        # t is the pull of the segment towards the tip, kept to the surface.
        along = tx * nx + ty * ny + tz * nz
        tx = (tx - nx * along) * weight
        ty = (ty - ny * along) * weight
        tz = (tz - nz * along) * weight
        pull = (arena.scratch[RHS_][s] + vx * tx + vy * ty + vz * tz) * arena.scratch[PIVOT_][s]
        along = vx * nx + vy * ny + vz * nz
        put(
            arena,
            arena.row[col.POSITION],
            r,
            arena.row[col.POSITION][r] + tx - (vx - nx * along) * weight * pull,
        )
        put(
            arena,
            arena.row[col.POSITION + 1],
            r,
            arena.row[col.POSITION + 1][r] + ty - (vy - ny * along) * weight * pull,
        )
        put(
            arena,
            arena.row[col.POSITION + 2],
            r,
            arena.row[col.POSITION + 2][r] + tz - (vz - nz * along) * weight * pull,
        )
        tx = vx * pull
        ty = vy * pull
        tz = vz * pull
