"""The implicit solve of a strand: bending, stretch, hold, drag and inertia in one banded system.

Frames and bending forces root to tip; elimination tip to root, with the torques that bending hands
down to the root; substitution root to tip.
"""

from hairkit.backend import ti
from hairkit.sim import columns as col
from hairkit.sim.contact import CARRY, NORMAL
from hairkit.sim.rod import inverse_symmetric, rotate, spring

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
def bend(arena: ti.template(), turn, b, s0, r0, count, damping, spin):
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
    wx = arena.row[r0 + stride, col.POSITION] - arena.scratch[one, 0]
    wy = arena.row[r0 + stride, col.POSITION + 1] - arena.scratch[one, 1]
    wz = arena.row[r0 + stride, col.POSITION + 2] - arena.scratch[one, 2]
    # What the head's turn, which is made already, has put into the first triple.
    sx = arena.row[r0, col.POSITION] - arena.scratch[s0, 0] - wx
    sy = arena.row[r0, col.POSITION + 1] - arena.scratch[s0, 1] - wy
    sz = arena.row[r0, col.POSITION + 2] - arena.scratch[s0, 2] - wz
    x0 = arena.row[r0, col.POSITION]
    y0 = arena.row[r0, col.POSITION + 1]
    z0 = arena.row[r0, col.POSITION + 2]
    r = r0 + stride
    x1 = arena.row[r, col.POSITION]
    y1 = arena.row[r, col.POSITION + 1]
    z1 = arena.row[r, col.POSITION + 2]
    ux = x1 - x0
    uy = y1 - y0
    uz = z1 - z0
    inverse = 1.0 / (ti.sqrt(ux * ux + uy * uy + uz * uz) + 1e-9)
    ux = ux * inverse
    uy = uy * inverse
    uz = uz * inverse
    arena.scratch[s0, CHORD_] = inverse
    zero = x0 * 0.0
    nx, ny, nz = rotate(turn, arena.frame[b, 0], arena.frame[b, 1], arena.frame[b, 2])
    for i in range(1, count - 1):
        r = r0 + i * stride
        s = s0 + i * stride
        x2 = arena.row[r + stride, col.POSITION]
        y2 = arena.row[r + stride, col.POSITION + 1]
        z2 = arena.row[r + stride, col.POSITION + 2]
        arena.scratch[s + stride, 0] = x2
        arena.scratch[s + stride, 1] = y2
        arena.scratch[s + stride, 2] = z2
        x2 = x2 + wx
        y2 = y2 + wy
        z2 = z2 + wz
        arena.row[r + stride, col.POSITION] = x2
        arena.row[r + stride, col.POSITION + 1] = y2
        arena.row[r + stride, col.POSITION + 2] = z2
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
        k0 = arena.row[r, col.CURVATURE]
        k1 = arena.row[r, col.CURVATURE + 1]
        k2 = arena.row[r, col.CURVATURE + 2]
        rx = k0 * nx + k1 * bx + k2 * ux
        ry = k0 * ny + k1 * by + k2 * uy
        rz = k0 * nz + k1 * bz + k2 * uz
        stiff = arena.row[r, col.BEND]
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
        arena.scratch[s, G_] = gx + resist * (sx - ox)
        arena.scratch[s, G_ + 1] = gy + resist * (sy - oy)
        arena.scratch[s, G_ + 2] = gz + resist * (sz - oz)
        sx = zero
        sy = zero
        sz = zero
        arena.scratch[s, H_] = (k2 * gx - gu * rx) * chord
        arena.scratch[s, H_ + 1] = (k2 * gy - gu * ry) * chord
        arena.scratch[s, H_ + 2] = (k2 * gz - gu * rz) * chord
        arena.scratch[s, K_] = 2.0 * k * cx
        arena.scratch[s, K_ + 1] = 2.0 * k * cy
        arena.scratch[s, K_ + 2] = 2.0 * k * cz
        arena.scratch[s, CHORD_] = chord
        arena.scratch[s, TORQUE_] = k0 * gb - k1 * gn
        x0 = x1
        y0 = y1
        z0 = z1
        x1 = x2
        y1 = y2
        z1 = z2


@ti.func
def eliminate(
    arena: ti.template(), numbers: ti.template(), hair, turn, moved, wind, h, s0, r0, count
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
    wx = arena.row[r0 + stride, col.POSITION] - arena.scratch[s0 + stride, 0]
    wy = arena.row[r0 + stride, col.POSITION + 1] - arena.scratch[s0 + stride, 1]
    wz = arena.row[r0 + stride, col.POSITION + 2] - arena.scratch[s0 + stride, 2]
    # Inertia and drag do not go along.
    along = (rate + drag) * rate
    ex = fx - along * wx
    ey = fy - along * wy
    ez = fz - along * wz
    held = hold * turn
    zero = arena.row[r0, 0] * 0.0
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
    xx = arena.row[r, col.POSITION]
    xy = arena.row[r, col.POSITION + 1]
    xz = arena.row[r, col.POSITION + 2]
    for back in range(count - 2):
        i = count - 1 - back
        r = r0 + i * stride
        s = s0 + i * stride
        m = s - stride
        # Bending: triple i - 1 comes in.
        torque = torque + arena.scratch[m, TORQUE_]
        w = -0.5 * torque
        kx = arena.scratch[m, K_] * w
        ky = arena.scratch[m, K_ + 1] * w
        kz = arena.scratch[m, K_ + 2] * w
        chord = arena.scratch[m, CHORD_]
        before = arena.scratch[m - stride, CHORD_]
        gx = arena.scratch[m, G_]
        gy = arena.scratch[m, G_ + 1]
        gz = arena.scratch[m, G_ + 2]
        ax = arena.scratch[m, H_] + kx * chord
        ay = arena.scratch[m, H_ + 1] + ky * chord
        az = arena.scratch[m, H_ + 2] + kz * chord
        kx = kx * before
        ky = ky * before
        kz = kz * before
        # The segment towards the root.
        lx = arena.row[r - stride, col.POSITION]
        ly = arena.row[r - stride, col.POSITION + 1]
        lz = arena.row[r - stride, col.POSITION + 2]
        qx, qy, qz, Qxx, Qxy, Qxz, Qyy, Qyz, Qzz = spring(
            xx - lx, xy - ly, xz - lz, arena.row[r - stride, col.LENGTH], stretch
        )
        # Inertia, drag, hold; half a point's mass at the tip.
        mass = 0.5 if i == count - 1 else 1.0
        rx = arena.row[r, col.REST]
        ry = arena.row[r, col.REST + 1]
        rz = arena.row[r, col.REST + 2]
        ox = held[0, 0] * rx + held[0, 1] * ry + held[0, 2] * rz - hold * xx + ex
        oy = held[1, 0] * rx + held[1, 1] * ry + held[1, 2] * rz - hold * xy + ey
        oz = held[2, 0] * rx + held[2, 1] * ry + held[2, 2] * rz - hold * xz + ez
        bx = bx - gx + ax - qx + (arena.row[r, col.VELOCITY] * rate + ox) * mass
        by = by - gy + ay - qy + (arena.row[r, col.VELOCITY + 1] * rate + oy) * mass
        bz = bz - gz + az - qz + (arena.row[r, col.VELOCITY + 2] * rate + oz) * mass
        # A point that touches something and is pressed against it stays on it: what contact
        # would only undo.
        tx = arena.row[r, col.TOUCH]
        ty = arena.row[r, col.TOUCH + 1]
        tz = arena.row[r, col.TOUCH + 2]
        press = ti.select(bx * tx + by * ty + bz * tz < 0.0, CONTACT, 0.0)
        carried = press * (arena.row[r, col.CARRIED] - wx * tx - wy * ty - wz * tz)
        bx = bx + carried * tx
        by = by + carried * ty
        bz = bz + carried * tz
        hx = press * tx
        hy = press * ty
        xx = lx
        xy = ly
        xz = lz
        k0 = arena.row[r - stride, col.BEND] * stiffen
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
        arena.scratch[s, Y_] = yx
        arena.scratch[s, Y_ + 1] = yy
        arena.scratch[s, Y_ + 2] = yz
        arena.scratch[s, GAIN_] = G0
        arena.scratch[s, GAIN_ + 1] = G1
        arena.scratch[s, GAIN_ + 2] = G2
        arena.scratch[s, GAIN_ + 3] = G3
        arena.scratch[s, GAIN_ + 4] = G4
        arena.scratch[s, GAIN_ + 5] = G5
        arena.scratch[s, GAIN_ + 6] = G6
        arena.scratch[s, GAIN_ + 7] = G7
        arena.scratch[s, GAIN_ + 8] = G8
        arena.scratch[s, E_] = Ixx
        arena.scratch[s, E_ + 1] = Ixy
        arena.scratch[s, E_ + 2] = Ixz
        arena.scratch[s, E_ + 3] = Iyy
        arena.scratch[s, E_ + 4] = Iyz
        arena.scratch[s, E_ + 5] = Izz
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
    hx = arena.row[r, col.POSITION]
    hy = arena.row[r, col.POSITION + 1]
    hz = arena.row[r, col.POSITION + 2]
    zero = hx * 0.0
    d1x = zero
    d1y = zero
    d1z = zero
    d2x = zero
    d2y = zero
    d2z = zero
    reach = zero
    for i in range(2, count):
        r = r0 + i * stride
        s = s0 + i * stride
        dx = arena.scratch[s, Y_] - (
            arena.scratch[s, GAIN_] * d1x
            + arena.scratch[s, GAIN_ + 1] * d1y
            + arena.scratch[s, GAIN_ + 2] * d1z
            + arena.scratch[s, E_] * d2x
            + arena.scratch[s, E_ + 1] * d2y
            + arena.scratch[s, E_ + 2] * d2z
        )
        dy = arena.scratch[s, Y_ + 1] - (
            arena.scratch[s, GAIN_ + 3] * d1x
            + arena.scratch[s, GAIN_ + 4] * d1y
            + arena.scratch[s, GAIN_ + 5] * d1z
            + arena.scratch[s, E_ + 1] * d2x
            + arena.scratch[s, E_ + 3] * d2y
            + arena.scratch[s, E_ + 4] * d2z
        )
        dz = arena.scratch[s, Y_ + 2] - (
            arena.scratch[s, GAIN_ + 6] * d1x
            + arena.scratch[s, GAIN_ + 7] * d1y
            + arena.scratch[s, GAIN_ + 8] * d1z
            + arena.scratch[s, E_ + 2] * d2x
            + arena.scratch[s, E_ + 4] * d2y
            + arena.scratch[s, E_ + 5] * d2z
        )
        d2x = d1x
        d2y = d1y
        d2z = d1z
        d1x = dx
        d1y = dy
        d1z = dz
        reach = reach + arena.row[r - stride, col.LENGTH] * tether
        wx = arena.row[r, col.POSITION] + dx - hx
        wy = arena.row[r, col.POSITION + 1] + dy - hy
        wz = arena.row[r, col.POSITION + 2] + dz - hz
        f = ti.min(reach / (ti.sqrt(wx * wx + wy * wy + wz * wz) + 1e-9), 1.0)
        arena.row[r, col.POSITION] = hx + wx * f
        arena.row[r, col.POSITION + 1] = hy + wy * f
        arena.row[r, col.POSITION + 2] = hz + wz * f
        arena.scratch[s, NORMAL] = zero
        arena.scratch[s, NORMAL + 1] = zero
        arena.scratch[s, NORMAL + 2] = zero
        arena.scratch[s, CARRY] = zero
