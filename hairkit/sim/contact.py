"""Contact of guide points with colliders: how deep, and which way out.

Each collider goes over a strand's points by itself, so that its own numbers stay in registers.
Shapes work on lanes; a distance grid is looked up strand by strand. Contact has no friction: hair
slides.
"""

from hairkit.backend import ti
from hairkit.sim import columns as col
from hairkit.sim.rod import pose_between, put, rotate, rotate_back, since

NORMAL = 8
"""Scratch columns of the direction out of what a point touches, 3; zero for nothing."""
CARRY = 11
"""Scratch column of how far the surface moved along that direction during the tick [m]."""
LOOK = 12
"""Scratch columns of where lanes look a grid up, and whether they do, 4."""
KNOWN_AT = 0
"""Columns of a slot: where the grid was looked up, in its frame [m], 3."""
KNOWN_DISTANCE = 3
"""The distance found there [m]."""
KNOWN_OUT = 4
"""The direction out, in the grid's frame, 3."""
KNOWN_OWNER = 7
"""Which collider it was."""
REUSE = 2e-5
"""A plane found this near by holds still [m]: a point at rest would otherwise never come to rest
where a grid's directions change from cell to cell."""
TINY = 1e-30
"""Under a root that may be of zero, where its derivative would be no number."""
TOUCHING = 2e-5
"""A point this near to where contact would push it touches the collider [m]."""


@ti.func
def _sphere(px, py, pz, radius):
    n = ti.sqrt(px * px + py * py + pz * pz) + 1e-9
    r = 1.0 / n
    return n - radius, px * r, py * r, pz * r


@ti.func
def _capsule(px, py, pz, table: ti.template(), row):
    ax = table[row, col.SHAPE]
    ay = table[row, col.SHAPE + 1]
    az = table[row, col.SHAPE + 2]
    bx = table[row, col.SHAPE + 3] - ax
    by = table[row, col.SHAPE + 4] - ay
    bz = table[row, col.SHAPE + 5] - az
    qx = px - ax
    qy = py - ay
    qz = pz - az
    squared = ti.max(bx * bx + by * by + bz * bz, 1e-12)
    f = ti.min(ti.max((qx * bx + qy * by + qz * bz) / squared, 0.0), 1.0)
    return _sphere(qx - bx * f, qy - by * f, qz - bz * f, table[row, col.SHAPE + 6])


@ti.func
def _sign(v):
    return ti.select(v < 0.0, -1.0, 1.0)


@ti.func
def _box(px, py, pz, hx, hy, hz):
    sx = _sign(px)
    sy = _sign(py)
    sz = _sign(pz)
    qx = px * sx - hx
    qy = py * sy - hy
    qz = pz * sz - hz
    ox = ti.max(qx, 0.0)
    oy = ti.max(qy, 0.0)
    oz = ti.max(qz, 0.0)
    outer = ti.sqrt(ox * ox + oy * oy + oz * oz + TINY)
    inner = ti.min(ti.max(qx, ti.max(qy, qz)), 0.0)
    inside = outer < 1e-9
    # Inside, out through the nearest face.
    fx = ti.select(qx >= ti.max(qy, qz), 1.0, 0.0)
    fy = ti.select(qy >= qz, 1.0 - fx, 0.0)
    fz = 1.0 - fx - fy
    r = 1.0 / (outer + 1e-9)
    return (
        outer + inner,
        sx * ti.select(inside, fx, ox * r),
        sy * ti.select(inside, fy, oy * r),
        sz * ti.select(inside, fz, oz * r),
    )


@ti.func
def _ellipsoid(px, py, pz, rx, ry, rz):
    # First-order distance: exact at the surface, where contact happens.
    ax = px / rx
    ay = py / ry
    az = pz / rz
    bx = ax / rx
    by = ay / ry
    bz = az / rz
    k0 = ti.sqrt(ax * ax + ay * ay + az * az) + 1e-9
    k1 = ti.sqrt(bx * bx + by * by + bz * bz) + 1e-9
    r = 1.0 / k1
    return k0 * (k0 - 1.0) * r, bx * r, by * r, bz * r


@ti.func
def _shape(kind, px, py, pz, table: ti.template(), row):
    """Return distance and direction out of a capsule, box, ellipsoid or plane, in its own frame."""
    sx = table[row, col.SHAPE + 3]
    sy = table[row, col.SHAPE + 4]
    sz = table[row, col.SHAPE + 5]
    nx = px * 0.0 + table[row, col.SHAPE]
    ny = px * 0.0 + table[row, col.SHAPE + 1]
    nz = px * 0.0 + table[row, col.SHAPE + 2]
    d = px * nx + py * ny + pz * nz - sx
    if kind == col.CAPSULE:
        d, nx, ny, nz = _capsule(px, py, pz, table, row)
    elif kind == col.BOX:
        d, nx, ny, nz = _box(px - nx, py - ny, pz - nz, sx, sy, sz)
    elif kind == col.ELLIPSOID:
        d, nx, ny, nz = _ellipsoid(px - nx, py - ny, pz - nz, sx, sy, sz)
    return d, nx, ny, nz


@ti.func
def _blend(grid: ti.template(), at, row, sheet, fx, fy, fz, c: ti.template()):
    """Return one number of a cell's eight corners, linearly interpolated."""
    a00 = grid[at][c] * (1.0 - fz) + grid[at + 1][c] * fz
    a01 = grid[at + row][c] * (1.0 - fz) + grid[at + row + 1][c] * fz
    a10 = grid[at + sheet][c] * (1.0 - fz) + grid[at + sheet + 1][c] * fz
    a11 = grid[at + sheet + row][c] * (1.0 - fz) + grid[at + sheet + row + 1][c] * fz
    b0 = a00 * (1.0 - fy) + a01 * fy
    b1 = a10 * (1.0 - fy) + a11 * fy
    return b0 * (1.0 - fx) + b1 * fx


@ti.func
def grid_distance(grid: ti.template(), table: ti.template(), row, px, py, pz):
    """Return a distance grid's value and direction out at one point of its own frame.

    The direction is interpolated between those at the grid's points. The gradient of interpolated
    distances would jump from cell to cell, and hair pressed into such a crease never rests.
    """
    first = ti.cast(table[row, col.SHAPE], ti.i32)
    nx = ti.cast(table[row, col.SHAPE + 1], ti.i32)
    ny = ti.cast(table[row, col.SHAPE + 2], ti.i32)
    nz = ti.cast(table[row, col.SHAPE + 3], ti.i32)
    cell = table[row, col.SHAPE + 7]
    inverse = 1.0 / cell
    gx = (px - table[row, col.SHAPE + 4]) * inverse
    gy = (py - table[row, col.SHAPE + 5]) * inverse
    gz = (pz - table[row, col.SHAPE + 6]) * inverse
    cx = ti.min(ti.max(gx, 0.0), nx - 1.0)
    cy = ti.min(ti.max(gy, 0.0), ny - 1.0)
    cz = ti.min(ti.max(gz, 0.0), nz - 1.0)
    ox = gx - cx
    oy = gy - cy
    oz = gz - cz
    outside = ti.sqrt(ox * ox + oy * oy + oz * oz + TINY) * cell
    i = ti.min(ti.cast(cx, ti.i32), nx - 2)
    j = ti.min(ti.cast(cy, ti.i32), ny - 2)
    k = ti.min(ti.cast(cz, ti.i32), nz - 2)
    fx = cx - i
    fy = cy - j
    fz = cz - k
    at = first + (i * ny + j) * nz + k
    d = _blend(grid, at, nz, ny * nz, fx, fy, fz, 0)
    mx = _blend(grid, at, nz, ny * nz, fx, fy, fz, 1)
    my = _blend(grid, at, nz, ny * nz, fx, fy, fz, 2)
    mz = _blend(grid, at, nz, ny * nz, fx, fy, fz, 3)
    size = 1.0 / ti.sqrt(mx * mx + my * my + mz * mz + 1e-20)
    return d * table[row, col.SHAPE + 8] + outside, mx * size, my * size, mz * size


@ti.func
def _carry(px, py, pz, nx, ny, nz, back: ti.template(), shift: ti.template()):
    """Return how far the surface at p, which came from back p + shift, moved along n."""
    wx, wy, wz = rotate(back, px, py, pz)
    return (px - wx - shift[0]) * nx + (py - wy - shift[1]) * ny + (pz - wz - shift[2]) * nz


@ti.func
def _settle(
    arena: ti.template(),
    r,
    s,
    px,
    py,
    pz,
    depth,
    nx,
    ny,
    nz,
    back: ti.template(),
    shift: ti.template(),
):
    """Push lanes that are too deep out along n; note direction and surface motion."""
    touch = depth > -TOUCHING
    carried = _carry(px, py, pz, nx, ny, nz, back, shift)
    put(arena, arena.scratch[CARRY], s, ti.select(touch, carried, arena.scratch[CARRY][s]))
    push = ti.max(depth, 0.0)
    put(arena, arena.row[col.POSITION], r, px + nx * push)
    put(arena, arena.row[col.POSITION + 1], r, py + ny * push)
    put(arena, arena.row[col.POSITION + 2], r, pz + nz * push)
    put(arena, arena.scratch[NORMAL], s, ti.select(touch, nx, arena.scratch[NORMAL][s]))
    put(arena, arena.scratch[NORMAL + 1], s, ti.select(touch, ny, arena.scratch[NORMAL + 1][s]))
    put(arena, arena.scratch[NORMAL + 2], s, ti.select(touch, nz, arena.scratch[NORMAL + 2][s]))


@ti.func
def push_out(
    arena: ti.template(), contacts: ti.template(), row, first, before, alpha, s0, r0, count, radius
):
    """Push a block's points out of one collider where it is at a fraction alpha of the step.

    Points 0 and 1 belong to the head and are left alone.

    Args:
        arena: The fields.
        contacts: One row for each collider of each hair.
        row: The collider's row.
        first: Whether this is the tick's first contact.
        before: Where the tick began, as a fraction of the step.
        alpha: Where it ends.
        s0: The block's first scratch row.
        r0: Its first row.
        count: Points of its strands.
        radius: How far out the thickest point is pushed [m].
    """
    kind = ti.cast(contacts[row, col.KIND], ti.i32)
    turn, moved = pose_between(contacts, row, col.COLLIDER_BEFORE, col.COLLIDER_NOW, alpha)
    turn0, moved0 = pose_between(contacts, row, col.COLLIDER_BEFORE, col.COLLIDER_NOW, before)
    back = since(turn0, turn)
    from_x, from_y, from_z = rotate(back, moved[0], moved[1], moved[2])
    shift = (moved0[0] - from_x, moved0[1] - from_y, moved0[2] - from_z)
    stride = ti.static(arena.stride)
    if kind == col.SPHERE:
        cx, cy, cz = rotate(
            turn,
            contacts[row, col.SHAPE],
            contacts[row, col.SHAPE + 1],
            contacts[row, col.SHAPE + 2],
        )
        cx = cx + moved[0]
        cy = cy + moved[1]
        cz = cz + moved[2]
        for i in range(2, count):
            r = r0 + i * stride
            size = contacts[row, col.SHAPE + 3] + radius * arena.row[col.THICKNESS][r]
            px = arena.row[col.POSITION][r]
            py = arena.row[col.POSITION + 1][r]
            pz = arena.row[col.POSITION + 2][r]
            d, nx, ny, nz = _sphere(px - cx, py - cy, pz - cz, size)
            _settle(arena, r, s0 + i * stride, px, py, pz, -d, nx, ny, nz, back, shift)
    elif kind < col.GRID:
        for i in range(2, count):
            r = r0 + i * stride
            px = arena.row[col.POSITION][r]
            py = arena.row[col.POSITION + 1][r]
            pz = arena.row[col.POSITION + 2][r]
            lx, ly, lz = rotate_back(turn, px - moved[0], py - moved[1], pz - moved[2])
            d, mx, my, mz = _shape(kind, lx, ly, lz, contacts, row)
            nx, ny, nz = rotate(turn, mx, my, mz)
            deep = radius * arena.row[col.THICKNESS][r] - d
            _settle(arena, r, s0 + i * stride, px, py, pz, deep, nx, ny, nz, back, shift)
    else:
        known = col.KNOWN_EACH * ti.cast(contacts[row, col.SLOT], ti.i32)
        for i in range(2, count):
            r = r0 + i * stride
            s = s0 + i * stride
            px = arena.row[col.POSITION][r]
            py = arena.row[col.POSITION + 1][r]
            pz = arena.row[col.POSITION + 2][r]
            lx, ly, lz = rotate_back(turn, px - moved[0], py - moved[1], pz - moved[2])
            # In the tick's first contact the surface is the plane seen from where the tick began,
            # where the point was outside: so a fast point does not go through something thin, such
            # as an ear, and come out behind it.
            ox = lx
            oy = ly
            oz = lz
            if first:
                ox, oy, oz = rotate_back(
                    turn0,
                    arena.scratch[0][s] - moved0[0],
                    arena.scratch[1][s] - moved0[1],
                    arena.scratch[2][s] - moved0[2],
                )
            way = (lx - ox) * (lx - ox) + (ly - oy) * (ly - oy) + (lz - oz) * (lz - oz)
            kx = ox - arena.known[r, known + KNOWN_AT]
            ky = oy - arena.known[r, known + KNOWN_AT + 1]
            kz = oz - arena.known[r, known + KNOWN_AT + 2]
            gone = kx * kx + ky * ky + kz * kz
            # A distance changes no faster than the point moves.
            near = (
                arena.known[r, known + KNOWN_DISTANCE]
                - 1.1 * (ti.sqrt(gone) + ti.sqrt(way))
                - radius
                - TOUCHING
            )
            mine = arena.known[r, known + KNOWN_OWNER] == contacts[row, col.OWNER]
            # So that what is not a number is looked up again.
            away = ti.select(mine & (near >= 0.0), 1.0, -1.0)
            stale = ti.select((away > 0.0) | (mine & (gone <= REUSE * REUSE)), 0.0, 1.0)
            worst = 0.0
            if ti.static(arena.lanes > 1):
                worst = away.min()
            else:
                worst = away
            if worst < 0.0:
                if ti.static(arena.lanes > 1):
                    if stale.max() > 0.0:
                        # Through fields: a local vector indexed by a variable would live in memory.
                        put(arena, arena.scratch[LOOK], s, ox)
                        put(arena, arena.scratch[LOOK + 1], s, oy)
                        put(arena, arena.scratch[LOOK + 2], s, oz)
                        put(arena, arena.scratch[LOOK + 3], s, stale)
                        for lane in range(ti.static(arena.lanes)):
                            if arena.scratch[LOOK + 3][s][lane] > 0.0:
                                x = arena.scratch[LOOK][s][lane]
                                y = arena.scratch[LOOK + 1][s][lane]
                                z = arena.scratch[LOOK + 2][s][lane]
                                d, mx, my, mz = grid_distance(
                                    arena.grid_value, contacts, row, x, y, z
                                )
                                arena.known[r, known + KNOWN_AT][lane] = x
                                arena.known[r, known + KNOWN_AT + 1][lane] = y
                                arena.known[r, known + KNOWN_AT + 2][lane] = z
                                arena.known[r, known + KNOWN_DISTANCE][lane] = d
                                arena.known[r, known + KNOWN_OUT][lane] = mx
                                arena.known[r, known + KNOWN_OUT + 1][lane] = my
                                arena.known[r, known + KNOWN_OUT + 2][lane] = mz
                                arena.known[r, known + KNOWN_OWNER][lane] = contacts[row, col.OWNER]
                elif stale > 0.0:
                    d, mx, my, mz = grid_distance(arena.grid_value, contacts, row, ox, oy, oz)
                    put(arena, arena.known, (r, known + KNOWN_AT), ox)
                    put(arena, arena.known, (r, known + KNOWN_AT + 1), oy)
                    put(arena, arena.known, (r, known + KNOWN_AT + 2), oz)
                    put(arena, arena.known, (r, known + KNOWN_DISTANCE), d)
                    put(arena, arena.known, (r, known + KNOWN_OUT), mx)
                    put(arena, arena.known, (r, known + KNOWN_OUT + 1), my)
                    put(arena, arena.known, (r, known + KNOWN_OUT + 2), mz)
                    put(arena, arena.known, (r, known + KNOWN_OWNER), contacts[row, col.OWNER])
                # Where the plane was seen from too far away to mean anything, it is too far to
                # touch as well.
                mx = arena.known[r, known + KNOWN_OUT]
                my = arena.known[r, known + KNOWN_OUT + 1]
                mz = arena.known[r, known + KNOWN_OUT + 2]
                d = (
                    arena.known[r, known + KNOWN_DISTANCE]
                    + mx * (lx - arena.known[r, known + KNOWN_AT])
                    + my * (ly - arena.known[r, known + KNOWN_AT + 1])
                    + mz * (lz - arena.known[r, known + KNOWN_AT + 2])
                )
                nx, ny, nz = rotate(turn, mx, my, mz)
                deep = radius * arena.row[col.THICKNESS][r] - d
                _settle(arena, r, s, px, py, pz, deep, nx, ny, nz, back, shift)
