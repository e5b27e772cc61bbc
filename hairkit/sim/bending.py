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
def bend(arena: ti.template(), turn, b, s0, r0, count):
    """Root to tip: carry the frame along; leave each triple's force and torque in scratch."""
    stride = ti.static(arena.stride)
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
    nx, ny, nz = rotate(turn, arena.frame[b, 0], arena.frame[b, 1], arena.frame[b, 2])
    for i in range(1, count - 1):
        r = r0 + i * stride
        s = s0 + i * stride
        x2 = arena.row[r + stride, col.POSITION]
        y2 = arena.row[r + stride, col.POSITION + 1]
        z2 = arena.row[r + stride, col.POSITION + 2]
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
        arena.scratch[s, G_] = gx
        arena.scratch[s, G_ + 1] = gy
        arena.scratch[s, G_ + 2] = gz
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

    Unknown is the displacement from where the tick began. Row i couples to i - 1 by W and to i - 2
    by the bending stiffness k at i - 1. Kept for the way back: y = D^-1 b, G = D^-1 W, E = k D^-1.
    """
    stride = ti.static(arena.stride)
    hold = numbers[hair, col.HOLD]
    stretch = numbers[hair, col.STRETCH]
    drag = numbers[hair, col.DRAG]
    air = numbers[hair, col.AIR]
    rate = 1.0 / h
    inertia = rate * rate
    damp = drag * rate
    # Internal damping: bending resists its own rate, which only the matrix sees; sag does not.
    stiffen = 1.0 + numbers[hair, col.BEND_DAMPING] * rate
    fx = numbers[hair, col.GRAVITY] + air * wind[0]
    fy = numbers[hair, col.GRAVITY + 1] + air * wind[1]
    fz = numbers[hair, col.GRAVITY + 2] + air * wind[2]
    zero = arena.row[r0, col.POSITION] * 0.0
    torque = zero
    k1 = zero
    k2 = zero
    # What bending has put on points i, i - 1 and i - 2 so far.
    f0x = zero
    f0y = zero
    f0z = zero
    f1x = zero
    f1y = zero
    f1z = zero
    f2x = zero
    f2y = zero
    f2z = zero
    # The segment towards the tip.
    px = zero
    py = zero
    pz = zero
    Pxx = zero
    Pxy = zero
    Pxz = zero
    Pyy = zero
    Pyz = zero
    Pzz = zero
    # Rows i + 1 and i + 2 of the factors.
    b1x = zero
    b1y = zero
    b1z = zero
    y2x = zero
    y2y = zero
    y2z = zero
    y1x = zero
    y1y = zero
    y1z = zero
    W0 = zero
    W1 = zero
    W2 = zero
    W3 = zero
    W4 = zero
    W5 = zero
    W6 = zero
    W7 = zero
    W8 = zero
    G0 = zero
    G1 = zero
    G2 = zero
    G3 = zero
    G4 = zero
    G5 = zero
    G6 = zero
    G7 = zero
    G8 = zero
    E1xx = zero
    E1xy = zero
    E1xz = zero
    E1yy = zero
    E1yz = zero
    E1zz = zero
    E2xx = zero
    E2xy = zero
    E2xz = zero
    E2yy = zero
    E2yz = zero
    E2zz = zero
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
        g0x = arena.scratch[m, G_]
        g0y = arena.scratch[m, G_ + 1]
        g0z = arena.scratch[m, G_ + 2]
        a0x = arena.scratch[m, H_] + kx * chord
        a0y = arena.scratch[m, H_ + 1] + ky * chord
        a0z = arena.scratch[m, H_ + 2] + kz * chord
        cx = kx * before
        cy = ky * before
        cz = kz * before
        bx = f0x - g0x + a0x
        by = f0y - g0y + a0y
        bz = f0z - g0z + a0z
        f0x = f1x + 2.0 * g0x + cx
        f0y = f1y + 2.0 * g0y + cy
        f0z = f1z + 2.0 * g0z + cz
        f1x = f2x - g0x - a0x
        f1y = f2y - g0y - a0y
        f1z = f2z - g0z - a0z
        f2x = -cx
        f2y = -cy
        f2z = -cz
        # The segment towards the root.
        lx = arena.row[r - stride, col.POSITION]
        ly = arena.row[r - stride, col.POSITION + 1]
        lz = arena.row[r - stride, col.POSITION + 2]
        qx, qy, qz, Qxx, Qxy, Qxz, Qyy, Qyz, Qzz = spring(
            xx - lx, xy - ly, xz - lz, arena.row[r - stride, col.LENGTH], stretch
        )
        # Inertia, drag, hold; half a point's mass at the tip.
        mass = 0.5 if i == count - 1 else 1.0
        k0 = arena.row[r - stride, col.BEND] * stiffen
        diagonal = (inertia + damp + hold) * mass + 4.0 * k1 + k0 + k2
        bx = bx + px - qx + (arena.row[r, col.VELOCITY] * rate + fx) * mass
        by = by + py - qy + (arena.row[r, col.VELOCITY + 1] * rate + fy) * mass
        bz = bz + pz - qz + (arena.row[r, col.VELOCITY + 2] * rate + fz) * mass
        if hold > 0.0:
            gx, gy, gz = rotate(
                turn,
                arena.row[r, col.REST],
                arena.row[r, col.REST + 1],
                arena.row[r, col.REST + 2],
            )
            pull = hold * mass
            bx = bx + pull * (gx + moved[0] - xx)
            by = by + pull * (gy + moved[1] - xy)
            bz = bz + pull * (gz + moved[2] - xz)
        # A point that touches something and is pressed against it stays on it: what contact would
        # only undo.
        tx = arena.row[r, col.TOUCH]
        ty = arena.row[r, col.TOUCH + 1]
        tz = arena.row[r, col.TOUCH + 2]
        held = ti.select(bx * tx + by * ty + bz * tz < 0.0, CONTACT, 0.0)
        carried = held * arena.row[r, col.CARRIED]
        bx = bx + carried * tx
        by = by + carried * ty
        bz = bz + carried * tz
        hx = held * tx
        hy = held * ty
        arena.scratch[s, 0] = xx
        arena.scratch[s, 1] = xy
        arena.scratch[s, 2] = xz
        xx = lx
        xy = ly
        xz = lz
        # D = A - W^T G - k^2 D^-1 of the two rows before.
        Dxx = diagonal + hx * tx + Pxx + Qxx - k2 * E2xx - (W0 * G0 + W3 * G3 + W6 * G6)
        Dxy = hx * ty + Pxy + Qxy - k2 * E2xy - (W0 * G1 + W3 * G4 + W6 * G7)
        Dxz = hx * tz + Pxz + Qxz - k2 * E2xz - (W0 * G2 + W3 * G5 + W6 * G8)
        Dyy = diagonal + hy * ty + Pyy + Qyy - k2 * E2yy - (W1 * G1 + W4 * G4 + W7 * G7)
        Dyz = hy * tz + Pyz + Qyz - k2 * E2yz - (W1 * G2 + W4 * G5 + W7 * G8)
        Dzz = diagonal + held * tz * tz + Pzz + Qzz - k2 * E2zz - (W2 * G2 + W5 * G5 + W8 * G8)
        bx = bx - k2 * y2x - (G0 * b1x + G3 * b1y + G6 * b1z)
        by = by - k2 * y2y - (G1 * b1x + G4 * b1y + G7 * b1z)
        bz = bz - k2 * y2z - (G2 * b1x + G5 * b1y + G8 * b1z)
        Ixx, Ixy, Ixz, Iyy, Iyz, Izz = inverse_symmetric(Dxx, Dxy, Dxz, Dyy, Dyz, Dzz)
        cross = -2.0 * (k0 + k1)
        N0 = cross - Qxx - k1 * G0
        N1 = -Qxy - k1 * G3
        N2 = -Qxz - k1 * G6
        N3 = -Qxy - k1 * G1
        N4 = cross - Qyy - k1 * G4
        N5 = -Qyz - k1 * G7
        N6 = -Qxz - k1 * G2
        N7 = -Qyz - k1 * G5
        N8 = cross - Qzz - k1 * G8
        W0 = N0
        W1 = N1
        W2 = N2
        W3 = N3
        W4 = N4
        W5 = N5
        W6 = N6
        W7 = N7
        W8 = N8
        G0 = Ixx * W0 + Ixy * W3 + Ixz * W6
        G1 = Ixx * W1 + Ixy * W4 + Ixz * W7
        G2 = Ixx * W2 + Ixy * W5 + Ixz * W8
        G3 = Ixy * W0 + Iyy * W3 + Iyz * W6
        G4 = Ixy * W1 + Iyy * W4 + Iyz * W7
        G5 = Ixy * W2 + Iyy * W5 + Iyz * W8
        G6 = Ixz * W0 + Iyz * W3 + Izz * W6
        G7 = Ixz * W1 + Iyz * W4 + Izz * W7
        G8 = Ixz * W2 + Iyz * W5 + Izz * W8
        E2xx = E1xx
        E2xy = E1xy
        E2xz = E1xz
        E2yy = E1yy
        E2yz = E1yz
        E2zz = E1zz
        E1xx = k0 * Ixx
        E1xy = k0 * Ixy
        E1xz = k0 * Ixz
        E1yy = k0 * Iyy
        E1yz = k0 * Iyz
        E1zz = k0 * Izz
        y2x = y1x
        y2y = y1y
        y2z = y1z
        y1x = Ixx * bx + Ixy * by + Ixz * bz
        y1y = Ixy * bx + Iyy * by + Iyz * bz
        y1z = Ixz * bx + Iyz * by + Izz * bz
        b1x = bx
        b1y = by
        b1z = bz
        arena.scratch[s, Y_] = y1x
        arena.scratch[s, Y_ + 1] = y1y
        arena.scratch[s, Y_ + 2] = y1z
        arena.scratch[s, GAIN_] = G0
        arena.scratch[s, GAIN_ + 1] = G1
        arena.scratch[s, GAIN_ + 2] = G2
        arena.scratch[s, GAIN_ + 3] = G3
        arena.scratch[s, GAIN_ + 4] = G4
        arena.scratch[s, GAIN_ + 5] = G5
        arena.scratch[s, GAIN_ + 6] = G6
        arena.scratch[s, GAIN_ + 7] = G7
        arena.scratch[s, GAIN_ + 8] = G8
        arena.scratch[s, E_] = E1xx
        arena.scratch[s, E_ + 1] = E1xy
        arena.scratch[s, E_ + 2] = E1xz
        arena.scratch[s, E_ + 3] = E1yy
        arena.scratch[s, E_ + 4] = E1yz
        arena.scratch[s, E_ + 5] = E1zz
        px = qx
        py = qy
        pz = qz
        Pxx = Qxx
        Pxy = Qxy
        Pxz = Qxz
        Pyy = Qyy
        Pyz = Qyz
        Pzz = Qzz
        k2 = k1
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
        wx = arena.scratch[s, 0] + dx - hx
        wy = arena.scratch[s, 1] + dy - hy
        wz = arena.scratch[s, 2] + dz - hz
        f = ti.min(reach / (ti.sqrt(wx * wx + wy * wy + wz * wz) + 1e-9), 1.0)
        arena.row[r, col.POSITION] = hx + wx * f
        arena.row[r, col.POSITION + 1] = hy + wy * f
        arena.row[r, col.POSITION + 2] = hz + wz * f
        arena.scratch[s, NORMAL] = zero
        arena.scratch[s, NORMAL + 1] = zero
        arena.scratch[s, NORMAL + 2] = zero
        arena.scratch[s, CARRY] = zero
