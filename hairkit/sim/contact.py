"""Contact of guide points with colliders: how deep, and which way out.

Each collider goes over a strand's points by itself, so that its own numbers stay in registers.
Shapes work on lanes; a distance grid is looked up strand by strand. Contact has no friction: hair
slides.
"""

from hairkit.backend import ti
from hairkit.sim import columns as col
from hairkit.sim.rod import pose_between, rotate, rotate_back

NORMAL = 8
"""Scratch columns of the direction out of what a point touches, 3; zero for nothing."""
CARRY = 11
"""Scratch column of how far the surface moved along that direction during the tick [m]."""
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
    outer = ti.sqrt(ox * ox + oy * oy + oz * oz)
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
def grid_distance(grid: ti.template(), table: ti.template(), row, px, py, pz):
    """Return a distance grid's value and unit gradient at one point of its own frame."""
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
    outside = ti.sqrt(ox * ox + oy * oy + oz * oz) * cell
    i = ti.min(ti.cast(cx, ti.i32), nx - 2)
    j = ti.min(ti.cast(cy, ti.i32), ny - 2)
    k = ti.min(ti.cast(cz, ti.i32), nz - 2)
    fx = cx - i
    fy = cy - j
    fz = cz - k
    at = first + (i * ny + j) * nz + k
    v000 = grid[at]
    v001 = grid[at + 1]
    v010 = grid[at + nz]
    v011 = grid[at + nz + 1]
    v100 = grid[at + ny * nz]
    v101 = grid[at + ny * nz + 1]
    v110 = grid[at + ny * nz + nz]
    v111 = grid[at + ny * nz + nz + 1]
    a00 = v000 + (v001 - v000) * fz
    a01 = v010 + (v011 - v010) * fz
    a10 = v100 + (v101 - v100) * fz
    a11 = v110 + (v111 - v110) * fz
    b0 = a00 + (a01 - a00) * fy
    b1 = a10 + (a11 - a10) * fy
    dx = b1 - b0
    dy = (a01 - a00) * (1.0 - fx) + (a11 - a10) * fx
    dz = ((v001 - v000) * (1.0 - fy) + (v011 - v010) * fy) * (1.0 - fx) + (
        (v101 - v100) * (1.0 - fy) + (v111 - v110) * fy
    ) * fx
    size = 1.0 / ti.sqrt(dx * dx + dy * dy + dz * dz + 1e-20)
    return b0 + (b1 - b0) * fx + outside, dx * size, dy * size, dz * size


@ti.func
def _carry(px, py, pz, nx, ny, nz, back, shift):
    """Return how far the surface at p, which came from back p + shift, moved along n."""
    wx, wy, wz = rotate(back, px, py, pz)
    return (px - wx - shift[0]) * nx + (py - wy - shift[1]) * ny + (pz - wz - shift[2]) * nz


@ti.func
def _settle(arena: ti.template(), r, s, px, py, pz, depth, nx, ny, nz, back, shift):
    """Push lanes that are too deep out along n; note direction and surface motion."""
    touch = depth > -TOUCHING
    carried = _carry(px, py, pz, nx, ny, nz, back, shift)
    arena.scratch[CARRY][s] = ti.select(touch, carried, arena.scratch[CARRY][s])
    push = ti.max(depth, 0.0)
    arena.row[col.POSITION][r] = px + nx * push
    arena.row[col.POSITION + 1][r] = py + ny * push
    arena.row[col.POSITION + 2][r] = pz + nz * push
    arena.scratch[NORMAL][s] = ti.select(touch, nx, arena.scratch[NORMAL][s])
    arena.scratch[NORMAL + 1][s] = ti.select(touch, ny, arena.scratch[NORMAL + 1][s])
    arena.scratch[NORMAL + 2][s] = ti.select(touch, nz, arena.scratch[NORMAL + 2][s])


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
        radius: How far out a point is pushed [m].
    """
    kind = ti.cast(contacts[row, col.KIND], ti.i32)
    turn, moved = pose_between(contacts, row, col.COLLIDER_BEFORE, col.COLLIDER_NOW, alpha)
    turn0, moved0 = pose_between(contacts, row, col.COLLIDER_BEFORE, col.COLLIDER_NOW, before)
    back = turn0 @ turn.transpose()
    shift = moved0 - back @ moved
    stride = ti.static(arena.stride)
    if kind == col.SPHERE:
        centre = turn @ ti.Vector([contacts[row, col.SHAPE + c] for c in range(3)]) + moved
        size = contacts[row, col.SHAPE + 3] + radius
        for i in range(2, count):
            r = r0 + i * stride
            px = arena.row[col.POSITION][r]
            py = arena.row[col.POSITION + 1][r]
            pz = arena.row[col.POSITION + 2][r]
            d, nx, ny, nz = _sphere(px - centre[0], py - centre[1], pz - centre[2], size)
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
            _settle(arena, r, s0 + i * stride, px, py, pz, radius - d, nx, ny, nz, back, shift)
    else:
        known = 4 * ti.cast(contacts[row, col.SLOT], ti.i32)
        for i in range(2, count):
            r = r0 + i * stride
            s = s0 + i * stride
            if ti.static(arena.lanes > 1):
                near = _near(
                    first,
                    radius,
                    turn,
                    moved,
                    turn0,
                    moved0,
                    arena.row[col.POSITION][r],
                    arena.row[col.POSITION + 1][r],
                    arena.row[col.POSITION + 2][r],
                    arena.scratch[0][s],
                    arena.scratch[1][s],
                    arena.scratch[2][s],
                    arena.known[r, known],
                    arena.known[r, known + 1],
                    arena.known[r, known + 2],
                    arena.known[r, known + 3],
                )
                if near.min() < 0.0:
                    for lane in range(ti.static(arena.lanes)):
                        # Straight into fields: a local vector indexed by a variable would live in
                        # memory.
                        px = arena.row[col.POSITION][r][lane]
                        py = arena.row[col.POSITION + 1][r][lane]
                        pz = arena.row[col.POSITION + 2][r][lane]
                        wx = arena.scratch[0][s][lane]
                        wy = arena.scratch[1][s][lane]
                        wz = arena.scratch[2][s][lane]
                        depth, nx, ny, nz, sx, sy, sz, d = _grid_depth(
                            arena,
                            contacts,
                            row,
                            first,
                            radius,
                            turn,
                            moved,
                            turn0,
                            moved0,
                            px,
                            py,
                            pz,
                            wx,
                            wy,
                            wz,
                        )
                        arena.known[r, known][lane] = sx
                        arena.known[r, known + 1][lane] = sy
                        arena.known[r, known + 2][lane] = sz
                        arena.known[r, known + 3][lane] = d
                        if depth > -TOUCHING:
                            push = ti.max(depth, 0.0)
                            arena.row[col.POSITION][r][lane] = px + nx * push
                            arena.row[col.POSITION + 1][r][lane] = py + ny * push
                            arena.row[col.POSITION + 2][r][lane] = pz + nz * push
                            arena.scratch[NORMAL][s][lane] = nx
                            arena.scratch[NORMAL + 1][s][lane] = ny
                            arena.scratch[NORMAL + 2][s][lane] = nz
                            arena.scratch[CARRY][s][lane] = _carry(
                                px, py, pz, nx, ny, nz, back, shift
                            )
            else:
                px = arena.row[col.POSITION][r]
                py = arena.row[col.POSITION + 1][r]
                pz = arena.row[col.POSITION + 2][r]
                wx = arena.scratch[0][s]
                wy = arena.scratch[1][s]
                wz = arena.scratch[2][s]
                near = _near(
                    first,
                    radius,
                    turn,
                    moved,
                    turn0,
                    moved0,
                    px,
                    py,
                    pz,
                    wx,
                    wy,
                    wz,
                    arena.known[r, known],
                    arena.known[r, known + 1],
                    arena.known[r, known + 2],
                    arena.known[r, known + 3],
                )
                if near < 0.0:
                    depth, nx, ny, nz, sx, sy, sz, d = _grid_depth(
                        arena,
                        contacts,
                        row,
                        first,
                        radius,
                        turn,
                        moved,
                        turn0,
                        moved0,
                        px,
                        py,
                        pz,
                        wx,
                        wy,
                        wz,
                    )
                    arena.known[r, known] = sx
                    arena.known[r, known + 1] = sy
                    arena.known[r, known + 2] = sz
                    arena.known[r, known + 3] = d
                    _settle(arena, r, s, px, py, pz, depth, nx, ny, nz, back, shift)


@ti.func
def _near(first, radius, turn, moved, turn0, moved0, px, py, pz, wx, wy, wz, kx, ky, kz, known):
    """Return how far from a grid's contact a point is at least; negative: look it up.

    A distance changes no faster than the point moves, so the last look-up (at k, of value known, in
    the grid's frame) holds for a while. In the tick's first contact the way from where the tick
    began, w, counts as well.
    """
    lx, ly, lz = rotate_back(turn, px - moved[0], py - moved[1], pz - moved[2])
    gone = ti.sqrt((lx - kx) ** 2 + (ly - ky) ** 2 + (lz - kz) ** 2)
    if first:
        ox, oy, oz = rotate_back(turn0, wx - moved0[0], wy - moved0[1], wz - moved0[2])
        gone = ti.sqrt((ox - kx) ** 2 + (oy - ky) ** 2 + (oz - kz) ** 2)
        gone = gone + ti.sqrt((lx - ox) ** 2 + (ly - oy) ** 2 + (lz - oz) ** 2)
    return known - 1.1 * gone - radius - TOUCHING


@ti.func
def _grid_depth(
    arena: ti.template(),
    contacts: ti.template(),
    row,
    first,
    radius,
    turn,
    moved,
    turn0,
    moved0,
    px,
    py,
    pz,
    wx,
    wy,
    wz,
):
    """Return how deep p is in a grid's solid, the way out, and where what was looked up.

    In the tick's first contact the surface is the plane seen from where the tick began, w, where
    the point was
    outside: so a fast point does not go through something thin, such as an ear, and come out behind
        it.
    """
    lx, ly, lz = rotate_back(turn, px - moved[0], py - moved[1], pz - moved[2])
    sx = lx
    sy = ly
    sz = lz
    if first:
        sx, sy, sz = rotate_back(turn0, wx - moved0[0], wy - moved0[1], wz - moved0[2])
    d, mx, my, mz = grid_distance(arena.grid_value, contacts, row, sx, sy, sz)
    depth = radius - (d + mx * (lx - sx) + my * (ly - sy) + mz * (lz - sz))
    nx, ny, nz = rotate(turn, mx, my, mz)
    return depth, nx, ny, nz, sx, sy, sz, d
