"""The implicit solve of a strand: bending, stretch, hold, drag and inertia in one banded system.

Frames and bending forces root to tip; elimination tip to root, with the torques that bending hands
down to the root; substitution root to tip.
"""

from hairkit.backend import ti
from hairkit.sim import columns as col
from hairkit.sim.contact import CARRY, NORMAL
from hairkit.sim.rod import inverse_symmetric, put, rotate, spring

# Scratch columns: 0-2 where the tick began; 3-13 what bending leaves (g, h, binormal, 1/chord,
# torque); then over it 3-20 the factors (y, G, E).
G_ = 3
H_ = 6
K_ = 9
CHORD_ = 12
TORQUE_ = 13
Y_ = 3
GAIN_ = 6
E_ = 15

CONTACT = 1e7
"""Spring that holds a pressed point to the surface it touches, a unit mass [1/s^2]."""


@ti.func
def bend(arena: ti.template(), turn: ti.template(), b, s0, r0, count, damping, spin: ti.template()):
    """Root to tip: carry the frame along; leave each triple's force and torque in scratch.

    Args:
        arena: The fields.
        turn: The head's rotation.
        b: The block.
        s0: Its first scratch row.
        r0: Its first row.
        count: Points of its strands.
        damping: Internal damping over the tick's length: it resists the rate of the bend as the
            head sees it, so neither riding nor turning along with the head is damped.
        spin: How the head turned during the tick, its rotation less the identity.
    """
    stride = ti.static(arena.stride)
    # Everything goes along with point 1 first: the linear system then sees how the strand moves
    # beside its root, not that root and strand move.
    one = s0 + stride
    wx = arena.row[col.POSITION][r0 + stride] - arena.scratch[0][one]
    wy = arena.row[col.POSITION + 1][r0 + stride] - arena.scratch[1][one]
    wz = arena.row[col.POSITION + 2][r0 + stride] - arena.scratch[2][one]
    # What the head's turn, which is made already, has put into the first triple.
    sx = arena.row[col.POSITION][r0] - arena.scratch[0][s0] - wx
    sy = arena.row[col.POSITION + 1][r0] - arena.scratch[1][s0] - wy
    sz = arena.row[col.POSITION + 2][r0] - arena.scratch[2][s0] - wz
    x0 = arena.row[col.POSITION][r0]
    y0 = arena.row[col.POSITION + 1][r0]
    z0 = arena.row[col.POSITION + 2][r0]
    r = r0 + stride
    x1 = arena.row[col.POSITION][r]
    y1 = arena.row[col.POSITION + 1][r]
    z1 = arena.row[col.POSITION + 2][r]
    ux = x1 - x0
    uy = y1 - y0
    uz = z1 - z0
    inverse = 1.0 / (ti.sqrt(ux * ux + uy * uy + uz * uz) + 1e-9)
    ux = ux * inverse
    uy = uy * inverse
    uz = uz * inverse
    put(arena, arena.scratch[CHORD_], s0, inverse)
    zero = x0 * 0.0
    nx, ny, nz = rotate(turn, arena.frame[0][b], arena.frame[1][b], arena.frame[2][b])
    for i in range(1, count - 1):
        r = r0 + i * stride
        s = s0 + i * stride
        x2 = arena.row[col.POSITION][r + stride]
        y2 = arena.row[col.POSITION + 1][r + stride]
        z2 = arena.row[col.POSITION + 2][r + stride]
        put(arena, arena.scratch[0], s + stride, x2)
        put(arena, arena.scratch[1], s + stride, y2)
        put(arena, arena.scratch[2], s + stride, z2)
        x2 = x2 + wx
        y2 = y2 + wy
        z2 = z2 + wz
        put(arena, arena.row[col.POSITION], r + stride, x2)
        put(arena, arena.row[col.POSITION + 1], r + stride, y2)
        put(arena, arena.row[col.POSITION + 2], r + stride, z2)
        vx = x2 - x0
        vy = y2 - y0
        vz = z2 - z0
        chord = 1.0 / (ti.sqrt(vx * vx + vy * vy + vz * vz) + 1e-9)
        vx = vx * chord
        vy = vy * chord
        vz = vz * chord
        # The curvature binormal and the transported normal share the cross product.
        cx = uy * vz - uz * vy
        cy = uz * vx - ux * vz
        cz = ux * vy - uy * vx
        k = 1.0 / (1.0 + ti.max(ux * vx + uy * vy + uz * vz, -0.98))
        px = cy * nz - cz * ny
        py = cz * nx - cx * nz
        pz = cx * ny - cy * nx
        nx = nx + px + (cy * pz - cz * py) * k
        ny = ny + py + (cz * px - cx * pz) * k
        nz = nz + pz + (cx * py - cy * px) * k
        ux = vx
        uy = vy
        uz = vz
        bx = uy * nz - uz * ny
        by = uz * nx - ux * nz
        bz = ux * ny - uy * nx
        k0 = arena.row[col.CURVATURE][r]
        k1 = arena.row[col.CURVATURE + 1][r]
        k2 = arena.row[col.CURVATURE + 2][r]
        rx = k0 * nx + k1 * bx + k2 * ux
        ry = k0 * ny + k1 * by + k2 * uy
        rz = k0 * nz + k1 * bz + k2 * uz
        stiff = arena.row[col.BEND][r]
        gx = (x0 + x2 - 2.0 * x1 - rx) * stiff
        gy = (y0 + y2 - 2.0 * y1 - ry) * stiff
        gz = (z0 + z2 - 2.0 * z1 - rz) * stiff
        # How R kappa turns with its own chord, u being orthogonal to n and b: the chord's share of
        # the gradient, and the torque that the roots' side of the frame hands on.
        gn = gx * nx + gy * ny + gz * nz
        gb = gx * bx + gy * by + gz * bz
        gu = gx * ux + gy * uy + gz * uz
        # How the rest curvature would turn with the head: that is no bending to be damped.
        ox, oy, oz = rotate(spin, rx, ry, rz)
        resist = stiff * damping
        put(arena, arena.scratch[G_], s, gx + resist * (sx - ox))
        put(arena, arena.scratch[G_ + 1], s, gy + resist * (sy - oy))
        put(arena, arena.scratch[G_ + 2], s, gz + resist * (sz - oz))
        sx = zero
        sy = zero
        sz = zero
        put(arena, arena.scratch[H_], s, (k2 * gx - gu * rx) * chord)
        put(arena, arena.scratch[H_ + 1], s, (k2 * gy - gu * ry) * chord)
        put(arena, arena.scratch[H_ + 2], s, (k2 * gz - gu * rz) * chord)
        put(arena, arena.scratch[K_], s, 2.0 * k * cx)
        put(arena, arena.scratch[K_ + 1], s, 2.0 * k * cy)
        put(arena, arena.scratch[K_ + 2], s, 2.0 * k * cz)
        put(arena, arena.scratch[CHORD_], s, chord)
        put(arena, arena.scratch[TORQUE_], s, k0 * gb - k1 * gn)
        x0 = x1
        y0 = y1
        z0 = z1
        x1 = x2
        y1 = y2
        z1 = z2


@ti.func
def eliminate(
    arena: ti.template(),
    numbers: ti.template(),
    hair,
    turn: ti.template(),
    moved: ti.template(),
    wind: ti.template(),
    h,
    s0,
    r0,
    count,
):
    """Tip to root: assemble each point's row of the implicit system and eliminate it.

    Unknown is the displacement from where the tick began, moved along with point 1. Row i couples
    to i - 1 by W and to i - 2 by the bending stiffness k at i - 1. Kept for the way back: y = D^-1
    b, G = D^-1 W, E = k D^-1. Carried along is only what the next rows need, already summed up: few
    values stay in registers.
    """
    stride = ti.static(arena.stride)
    hold = numbers[hair, col.HOLD]
    stretch = numbers[hair, col.STRETCH]
    drag = numbers[hair, col.DRAG]
    rate = 1.0 / h
    inertia = rate * rate + drag * rate + hold
    # Internal damping: bending resists its own rate, which only the matrix sees; sag does not.
    stiffen = 1.0 + numbers[hair, col.BEND_DAMPING] * rate
    fx = numbers[hair, col.GRAVITY] + drag * wind[0] + hold * moved[0]
    fy = numbers[hair, col.GRAVITY + 1] + drag * wind[1] + hold * moved[1]
    fz = numbers[hair, col.GRAVITY + 2] + drag * wind[2] + hold * moved[2]
    wx = arena.row[col.POSITION][r0 + stride] - arena.scratch[0][s0 + stride]
    wy = arena.row[col.POSITION + 1][r0 + stride] - arena.scratch[1][s0 + stride]
    wz = arena.row[col.POSITION + 2][r0 + stride] - arena.scratch[2][s0 + stride]
    # Inertia and drag do not go along.
    along = (rate + drag) * rate
    ex = fx - along * wx
    ey = fy - along * wy
    ez = fz - along * wz
    zero = arena.row[0][r0] * 0.0
    torque = zero
    k1 = zero
    # What the rows towards the tip have put on this row's right-hand side and matrix.
    bx = zero
    by = zero
    bz = zero
    Dxx = zero
    Dxy = zero
    Dxz = zero
    Dyy = zero
    Dyz = zero
    Dzz = zero
    # What bending has put on the next two rows, and row i + 2's share of the next but one.
    f1x = zero
    f1y = zero
    f1z = zero
    f2x = zero
    f2y = zero
    f2z = zero
    ux = zero
    uy = zero
    uz = zero
    Vxx = zero
    Vxy = zero
    Vxz = zero
    Vyy = zero
    Vyz = zero
    Vzz = zero
    # k G of the row before.
    H0 = zero
    H1 = zero
    H2 = zero
    H3 = zero
    H4 = zero
    H5 = zero
    H6 = zero
    H7 = zero
    H8 = zero
    r = r0 + (count - 1) * stride
    xx = arena.row[col.POSITION][r]
    xy = arena.row[col.POSITION + 1][r]
    xz = arena.row[col.POSITION + 2][r]
    for back in range(count - 2):
        i = count - 1 - back
        r = r0 + i * stride
        s = s0 + i * stride
        m = s - stride
        # Bending: triple i - 1 comes in.
        torque = torque + arena.scratch[TORQUE_][m]
        w = -0.5 * torque
        kx = arena.scratch[K_][m] * w
        ky = arena.scratch[K_ + 1][m] * w
        kz = arena.scratch[K_ + 2][m] * w
        chord = arena.scratch[CHORD_][m]
        before = arena.scratch[CHORD_][m - stride]
        gx = arena.scratch[G_][m]
        gy = arena.scratch[G_ + 1][m]
        gz = arena.scratch[G_ + 2][m]
        ax = arena.scratch[H_][m] + kx * chord
        ay = arena.scratch[H_ + 1][m] + ky * chord
        az = arena.scratch[H_ + 2][m] + kz * chord
        kx = kx * before
        ky = ky * before
        kz = kz * before
        # The segment towards the root.
        lx = arena.row[col.POSITION][r - stride]
        ly = arena.row[col.POSITION + 1][r - stride]
        lz = arena.row[col.POSITION + 2][r - stride]
        qx, qy, qz, Qxx, Qxy, Qxz, Qyy, Qyz, Qzz = spring(
            xx - lx, xy - ly, xz - lz, arena.row[col.LENGTH][r - stride], stretch
        )
        # Inertia, drag, hold; half a point's mass at the tip.
        mass = 0.5 if i == count - 1 else 1.0
        rx = arena.row[col.REST][r]
        ry = arena.row[col.REST + 1][r]
        rz = arena.row[col.REST + 2][r]
        ox, oy, oz = rotate(turn, hold * rx, hold * ry, hold * rz)
        ox = ox - hold * xx + ex
        oy = oy - hold * xy + ey
        oz = oz - hold * xz + ez
        bx = bx - gx + ax - qx + (arena.row[col.VELOCITY][r] * rate + ox) * mass
        by = by - gy + ay - qy + (arena.row[col.VELOCITY + 1][r] * rate + oy) * mass
        bz = bz - gz + az - qz + (arena.row[col.VELOCITY + 2][r] * rate + oz) * mass
        # A point that touches something and is pressed against it stays on it: what contact
        # would only undo.
        tx = arena.row[col.TOUCH][r]
        ty = arena.row[col.TOUCH + 1][r]
        tz = arena.row[col.TOUCH + 2][r]
        press = ti.select(bx * tx + by * ty + bz * tz < 0.0, CONTACT, 0.0)
        carried = press * (arena.row[col.CARRIED][r] - wx * tx - wy * ty - wz * tz)
        bx = bx + carried * tx
        by = by + carried * ty
        bz = bz + carried * tz
        hx = press * tx
        hy = press * ty
        xx = lx
        xy = ly
        xz = lz
        k0 = arena.row[col.BEND][r - stride] * stiffen
        diagonal = inertia * mass + 4.0 * k1 + k0
        Ixx, Ixy, Ixz, Iyy, Iyz, Izz = inverse_symmetric(
            Dxx + diagonal + hx * tx + Qxx,
            Dxy + hx * ty + Qxy,
            Dxz + hx * tz + Qxz,
            Dyy + diagonal + hy * ty + Qyy,
            Dyz + hy * tz + Qyz,
            Dzz + diagonal + press * tz * tz + Qzz,
        )
        cross = -2.0 * (k0 + k1)
        W0 = cross - Qxx - H0
        W1 = -Qxy - H3
        W2 = -Qxz - H6
        W3 = -Qxy - H1
        W4 = cross - Qyy - H4
        W5 = -Qyz - H7
        W6 = -Qxz - H2
        W7 = -Qyz - H5
        W8 = cross - Qzz - H8
        G0 = Ixx * W0 + Ixy * W3 + Ixz * W6
        G1 = Ixx * W1 + Ixy * W4 + Ixz * W7
        G2 = Ixx * W2 + Ixy * W5 + Ixz * W8
        G3 = Ixy * W0 + Iyy * W3 + Iyz * W6
        G4 = Ixy * W1 + Iyy * W4 + Iyz * W7
        G5 = Ixy * W2 + Iyy * W5 + Iyz * W8
        G6 = Ixz * W0 + Iyz * W3 + Izz * W6
        G7 = Ixz * W1 + Iyz * W4 + Izz * W7
        G8 = Ixz * W2 + Iyz * W5 + Izz * W8
        yx = Ixx * bx + Ixy * by + Ixz * bz
        yy = Ixy * bx + Iyy * by + Iyz * bz
        yz = Ixz * bx + Iyz * by + Izz * bz
        Ixx = k0 * Ixx
        Ixy = k0 * Ixy
        Ixz = k0 * Ixz
        Iyy = k0 * Iyy
        Iyz = k0 * Iyz
        Izz = k0 * Izz
        put(arena, arena.scratch[Y_], s, yx)
        put(arena, arena.scratch[Y_ + 1], s, yy)
        put(arena, arena.scratch[Y_ + 2], s, yz)
        put(arena, arena.scratch[GAIN_], s, G0)
        put(arena, arena.scratch[GAIN_ + 1], s, G1)
        put(arena, arena.scratch[GAIN_ + 2], s, G2)
        put(arena, arena.scratch[GAIN_ + 3], s, G3)
        put(arena, arena.scratch[GAIN_ + 4], s, G4)
        put(arena, arena.scratch[GAIN_ + 5], s, G5)
        put(arena, arena.scratch[GAIN_ + 6], s, G6)
        put(arena, arena.scratch[GAIN_ + 7], s, G7)
        put(arena, arena.scratch[GAIN_ + 8], s, G8)
        put(arena, arena.scratch[E_], s, Ixx)
        put(arena, arena.scratch[E_ + 1], s, Ixy)
        put(arena, arena.scratch[E_ + 2], s, Ixz)
        put(arena, arena.scratch[E_ + 3], s, Iyy)
        put(arena, arena.scratch[E_ + 4], s, Iyz)
        put(arena, arena.scratch[E_ + 5], s, Izz)
        # For row i - 1: D = A - W^T G - k^2 D^-1 of the two rows before, and b alike.
        cx = G0 * bx + G3 * by + G6 * bz
        cy = G1 * bx + G4 * by + G7 * bz
        cz = G2 * bx + G5 * by + G8 * bz
        bx = f1x + 2.0 * gx + kx + qx - ux - cx
        by = f1y + 2.0 * gy + ky + qy - uy - cy
        bz = f1z + 2.0 * gz + kz + qz - uz - cz
        f1x = f2x - gx - ax
        f1y = f2y - gy - ay
        f1z = f2z - gz - az
        f2x = -kx
        f2y = -ky
        f2z = -kz
        ux = k0 * yx
        uy = k0 * yy
        uz = k0 * yz
        Dxx = k1 + Qxx - Vxx - (W0 * G0 + W3 * G3 + W6 * G6)
        Dxy = Qxy - Vxy - (W0 * G1 + W3 * G4 + W6 * G7)
        Dxz = Qxz - Vxz - (W0 * G2 + W3 * G5 + W6 * G8)
        Dyy = k1 + Qyy - Vyy - (W1 * G1 + W4 * G4 + W7 * G7)
        Dyz = Qyz - Vyz - (W1 * G2 + W4 * G5 + W7 * G8)
        Dzz = k1 + Qzz - Vzz - (W2 * G2 + W5 * G5 + W8 * G8)
        Vxx = k0 * Ixx
        Vxy = k0 * Ixy
        Vxz = k0 * Ixz
        Vyy = k0 * Iyy
        Vyz = k0 * Iyz
        Vzz = k0 * Izz
        H0 = k0 * G0
        H1 = k0 * G1
        H2 = k0 * G2
        H3 = k0 * G3
        H4 = k0 * G4
        H5 = k0 * G5
        H6 = k0 * G6
        H7 = k0 * G7
        H8 = k0 * G8
        k1 = k0


@ti.func
def substitute(arena: ti.template(), s0, r0, count, tether):
    """Root to tip: each point's displacement, no farther from the root than its tether."""
    stride = ti.static(arena.stride)
    r = r0 + stride
    hx = arena.row[col.POSITION][r]
    hy = arena.row[col.POSITION + 1][r]
    hz = arena.row[col.POSITION + 2][r]
    zero = hx * 0.0
    # Displacements go through memory, where those of point 0 and 1 are zero: carried along as
    # local vectors they would be packed in pairs, and everything they meet gathered.
    for c in ti.static(range(3)):
        put(arena, arena.scratch[Y_ + c], s0, zero)
        put(arena, arena.scratch[Y_ + c], s0 + stride, zero)
    reach = zero
    for i in range(2, count):
        r = r0 + i * stride
        s = s0 + i * stride
        d1x = arena.scratch[Y_][s - stride]
        d1y = arena.scratch[Y_ + 1][s - stride]
        d1z = arena.scratch[Y_ + 2][s - stride]
        d2x = arena.scratch[Y_][s - 2 * stride]
        d2y = arena.scratch[Y_ + 1][s - 2 * stride]
        d2z = arena.scratch[Y_ + 2][s - 2 * stride]
        dx = arena.scratch[Y_][s] - (
            arena.scratch[GAIN_][s] * d1x
            + arena.scratch[GAIN_ + 1][s] * d1y
            + arena.scratch[GAIN_ + 2][s] * d1z
            + arena.scratch[E_][s] * d2x
            + arena.scratch[E_ + 1][s] * d2y
            + arena.scratch[E_ + 2][s] * d2z
        )
        dy = arena.scratch[Y_ + 1][s] - (
            arena.scratch[GAIN_ + 3][s] * d1x
            + arena.scratch[GAIN_ + 4][s] * d1y
            + arena.scratch[GAIN_ + 5][s] * d1z
            + arena.scratch[E_ + 1][s] * d2x
            + arena.scratch[E_ + 3][s] * d2y
            + arena.scratch[E_ + 4][s] * d2z
        )
        dz = arena.scratch[Y_ + 2][s] - (
            arena.scratch[GAIN_ + 6][s] * d1x
            + arena.scratch[GAIN_ + 7][s] * d1y
            + arena.scratch[GAIN_ + 8][s] * d1z
            + arena.scratch[E_ + 2][s] * d2x
            + arena.scratch[E_ + 4][s] * d2y
            + arena.scratch[E_ + 5][s] * d2z
        )
        put(arena, arena.scratch[Y_], s, dx)
        put(arena, arena.scratch[Y_ + 1], s, dy)
        put(arena, arena.scratch[Y_ + 2], s, dz)
        reach = reach + arena.row[col.LENGTH][r - stride] * tether
        wx = arena.row[col.POSITION][r] + dx - hx
        wy = arena.row[col.POSITION + 1][r] + dy - hy
        wz = arena.row[col.POSITION + 2][r] + dz - hz
        f = ti.min(reach / (ti.sqrt(wx * wx + wy * wy + wz * wz) + 1e-9), 1.0)
        put(arena, arena.row[col.POSITION], r, hx + wx * f)
        put(arena, arena.row[col.POSITION + 1], r, hy + wy * f)
        put(arena, arena.row[col.POSITION + 2], r, hz + wz * f)
        put(arena, arena.scratch[NORMAL], s, zero)
        put(arena, arena.scratch[NORMAL + 1], s, zero)
        put(arena, arena.scratch[NORMAL + 2], s, zero)
        put(arena, arena.scratch[CARRY], s, zero)
