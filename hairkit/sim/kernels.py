"""The solver's kernels: one launch moves every guide through a step.

The strand is a discrete elastic rod without a twist unknown, stepped implicitly (DER after Bergou et al. 2008; the
direct solve of a chain after Deul et al. 2018): one linear solve for bending, stretch, hold, drag and inertia
together, then rounds of a direct length solve (Han and Harada 2013) and contact, contact last.

A tick takes six sweeps over a strand: frames and bending forces root to tip; elimination tip to root, with the
torques that bending hands down to the root; substitution root to tip, which already eliminates the first length
solve; then its substitution, contact, and one more round.
"""

from hairkit.backend import ti
from hairkit.sim import columns as col
from hairkit.sim.contact import push_out
from hairkit.sim.rod import inverse_symmetric, pose_between, rotate, spring, transport

# Scratch columns: 0-2 where the tick began; 3-13 what bending leaves (g, h, binormal, 1/chord, torque);
# then over it 3-20 the factors (y, G, E); then over those 3-7 the length solve (edge, pivot, right-hand side).
G_ = 3
H_ = 6
K_ = 9
CHORD_ = 12
TORQUE_ = 13
Y_ = 3
GAIN_ = 6
E_ = 15
EDGE_ = 3
PIVOT_ = 6
RHS_ = 7

_HUGE_BITS = 0x5368D4A5
"""The bits of 1e12 as an f32; a sum of squares past it, infinite or NaN has larger bits, or the sign's."""


@ti.func
def _place_root(arena: ti.template(), turn, moved, s0, r0):
    """Put points 0 and 1 where the head carries them; remember where they were."""
    for i in ti.static(range(2)):
        r = r0 + i * ti.static(arena.stride)
        s = s0 + i * ti.static(arena.stride)
        x, y, z = rotate(turn, arena.rest[r, 0], arena.rest[r, 1], arena.rest[r, 2])
        for c in ti.static(range(3)):
            arena.scratch[s, c] = arena.position[r, c]
        arena.position[r, 0] = x + moved[0]
        arena.position[r, 1] = y + moved[1]
        arena.position[r, 2] = z + moved[2]


@ti.func
def _bend(arena: ti.template(), turn, b, s0, r0, count):
    """Root to tip: carry the frame along the chords, leave each triple's force and torque in scratch."""
    stride = ti.static(arena.stride)
    x0 = arena.position[r0, 0]
    y0 = arena.position[r0, 1]
    z0 = arena.position[r0, 2]
    r = r0 + stride
    x1 = arena.position[r, 0]
    y1 = arena.position[r, 1]
    z1 = arena.position[r, 2]
    ux = x1 - x0
    uy = y1 - y0
    uz = z1 - z0
    inverse = 1.0 / (ti.sqrt(ux * ux + uy * uy + uz * uz) + 1e-9)
    ux = ux * inverse
    uy = uy * inverse
    uz = uz * inverse
    arena.scratch[s0, ti.static(CHORD_)] = inverse
    nx, ny, nz = rotate(turn, arena.frame[b, 0], arena.frame[b, 1], arena.frame[b, 2])
    for i in range(1, count - 1):
        r = r0 + i * stride
        s = s0 + i * stride
        x2 = arena.position[r + stride, 0]
        y2 = arena.position[r + stride, 1]
        z2 = arena.position[r + stride, 2]
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
        k0 = arena.curvature[r, 0]
        k1 = arena.curvature[r, 1]
        k2 = arena.curvature[r, 2]
        rx = k0 * nx + k1 * bx + k2 * ux
        ry = k0 * ny + k1 * by + k2 * uy
        rz = k0 * nz + k1 * bz + k2 * uz
        stiff = arena.bend[r, 0]
        gx = (x0 + x2 - 2.0 * x1 - rx) * stiff
        gy = (y0 + y2 - 2.0 * y1 - ry) * stiff
        gz = (z0 + z2 - 2.0 * z1 - rz) * stiff
        # How R kappa turns with its own chord: the chord's share of the energy's gradient.
        ur = ux * rx + uy * ry + uz * rz
        ug = ux * gx + uy * gy + uz * gz
        hx = ur * gx - ug * rx
        hy = ur * gy - ug * ry
        hz = ur * gz - ug * rz
        uh = ux * hx + uy * hy + uz * hz
        arena.scratch[s, ti.static(G_)] = gx
        arena.scratch[s, ti.static(G_ + 1)] = gy
        arena.scratch[s, ti.static(G_ + 2)] = gz
        arena.scratch[s, ti.static(H_)] = (hx - uh * ux) * chord
        arena.scratch[s, ti.static(H_ + 1)] = (hy - uh * uy) * chord
        arena.scratch[s, ti.static(H_ + 2)] = (hz - uh * uz) * chord
        arena.scratch[s, ti.static(K_)] = 2.0 * k * cx
        arena.scratch[s, ti.static(K_ + 1)] = 2.0 * k * cy
        arena.scratch[s, ti.static(K_ + 2)] = 2.0 * k * cz
        arena.scratch[s, ti.static(CHORD_)] = chord
        arena.scratch[s, ti.static(TORQUE_)] = (
            gx * (uy * rz - uz * ry) + gy * (uz * rx - ux * rz) + gz * (ux * ry - uy * rx)
        )
        x0 = x1
        y0 = y1
        z0 = z1
        x1 = x2
        y1 = y2
        z1 = z2


@ti.func
def _eliminate(
    arena: ti.template(), numbers: ti.template(), hair, turn, moved, wind, h, s0, r0, count
):
    """Tip to root: assemble each point's row of the implicit system and eliminate it.

    Unknown is the displacement from where the tick began. Row i couples to i - 1 by W and to i - 2 by the bending
    stiffness k at i - 1. Kept for the way back: y = D^-1 b, G = D^-1 W, E = k D^-1.
    """
    stride = ti.static(arena.stride)
    hold = numbers[hair, ti.static(col.HOLD)]
    stretch = numbers[hair, ti.static(col.STRETCH)]
    drag = numbers[hair, ti.static(col.DRAG)]
    inertia = 1.0 / (h * h)
    damp = drag / h
    fx = numbers[hair, ti.static(col.GRAVITY)] + drag * wind[0]
    fy = numbers[hair, ti.static(col.GRAVITY + 1)] + drag * wind[1]
    fz = numbers[hair, ti.static(col.GRAVITY + 2)] + drag * wind[2]
    zero = arena.position[r0, 0] * 0.0
    torque = zero
    k1 = zero
    k2 = zero
    # Triples i and i + 1: g, what acts on their ends (a), what acts on their middle (c).
    g1x = zero
    g1y = zero
    g1z = zero
    g2x = zero
    g2y = zero
    g2z = zero
    a1x = zero
    a1y = zero
    a1z = zero
    a2x = zero
    a2y = zero
    a2z = zero
    c1x = zero
    c1y = zero
    c1z = zero
    c2x = zero
    c2y = zero
    c2z = zero
    c3x = zero
    c3y = zero
    c3z = zero
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
    xx = arena.position[r, 0]
    xy = arena.position[r, 1]
    xz = arena.position[r, 2]
    for back in range(count - 2):
        i = count - 1 - back
        r = r0 + i * stride
        s = s0 + i * stride
        m = s - stride
        # Bending: triple i - 1 comes in.
        torque = torque + arena.scratch[m, ti.static(TORQUE_)]
        w = -0.5 * torque
        kx = arena.scratch[m, ti.static(K_)] * w
        ky = arena.scratch[m, ti.static(K_ + 1)] * w
        kz = arena.scratch[m, ti.static(K_ + 2)] * w
        chord = arena.scratch[m, ti.static(CHORD_)]
        before = arena.scratch[m - stride, ti.static(CHORD_)]
        g0x = arena.scratch[m, ti.static(G_)]
        g0y = arena.scratch[m, ti.static(G_ + 1)]
        g0z = arena.scratch[m, ti.static(G_ + 2)]
        a0x = arena.scratch[m, ti.static(H_)] + kx * chord
        a0y = arena.scratch[m, ti.static(H_ + 1)] + ky * chord
        a0z = arena.scratch[m, ti.static(H_ + 2)] + kz * chord
        bx = 2.0 * g1x - g0x - g2x + a0x - a2x + c1x - c3x
        by = 2.0 * g1y - g0y - g2y + a0y - a2y + c1y - c3y
        bz = 2.0 * g1z - g0z - g2z + a0z - a2z + c1z - c3z
        g2x = g1x
        g2y = g1y
        g2z = g1z
        g1x = g0x
        g1y = g0y
        g1z = g0z
        a2x = a1x
        a2y = a1y
        a2z = a1z
        a1x = a0x
        a1y = a0y
        a1z = a0z
        c3x = c2x
        c3y = c2y
        c3z = c2z
        c2x = c1x
        c2y = c1y
        c2z = c1z
        c1x = kx * before
        c1y = ky * before
        c1z = kz * before
        # The segment towards the root.
        lx = arena.position[r - stride, 0]
        ly = arena.position[r - stride, 1]
        lz = arena.position[r - stride, 2]
        qx, qy, qz, Qxx, Qxy, Qxz, Qyy, Qyz, Qzz = spring(
            xx - lx, xy - ly, xz - lz, arena.length[r - stride, 0], stretch
        )
        # Inertia, drag, hold; half a point's mass at the tip.
        mass = 0.5 if i == count - 1 else 1.0
        k0 = arena.bend[r - stride, 0]
        diagonal = (inertia + damp + hold) * mass + 4.0 * k1 + k0 + k2
        gx, gy, gz = rotate(turn, arena.rest[r, 0], arena.rest[r, 1], arena.rest[r, 2])
        bx = bx + px - qx + (arena.velocity[r, 0] / h + hold * (gx + moved[0] - xx) + fx) * mass
        by = by + py - qy + (arena.velocity[r, 1] / h + hold * (gy + moved[1] - xy) + fy) * mass
        bz = bz + pz - qz + (arena.velocity[r, 2] / h + hold * (gz + moved[2] - xz) + fz) * mass
        arena.scratch[s, 0] = xx
        arena.scratch[s, 1] = xy
        arena.scratch[s, 2] = xz
        xx = lx
        xy = ly
        xz = lz
        # D = A - W^T G - k^2 D^-1 of the two rows before.
        Dxx = diagonal + Pxx + Qxx - k2 * E2xx - (W0 * G0 + W3 * G3 + W6 * G6)
        Dxy = Pxy + Qxy - k2 * E2xy - (W0 * G1 + W3 * G4 + W6 * G7)
        Dxz = Pxz + Qxz - k2 * E2xz - (W0 * G2 + W3 * G5 + W6 * G8)
        Dyy = diagonal + Pyy + Qyy - k2 * E2yy - (W1 * G1 + W4 * G4 + W7 * G7)
        Dyz = Pyz + Qyz - k2 * E2yz - (W1 * G2 + W4 * G5 + W7 * G8)
        Dzz = diagonal + Pzz + Qzz - k2 * E2zz - (W2 * G2 + W5 * G5 + W8 * G8)
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
        arena.scratch[s, ti.static(Y_)] = y1x
        arena.scratch[s, ti.static(Y_ + 1)] = y1y
        arena.scratch[s, ti.static(Y_ + 2)] = y1z
        arena.scratch[s, ti.static(GAIN_)] = G0
        arena.scratch[s, ti.static(GAIN_ + 1)] = G1
        arena.scratch[s, ti.static(GAIN_ + 2)] = G2
        arena.scratch[s, ti.static(GAIN_ + 3)] = G3
        arena.scratch[s, ti.static(GAIN_ + 4)] = G4
        arena.scratch[s, ti.static(GAIN_ + 5)] = G5
        arena.scratch[s, ti.static(GAIN_ + 6)] = G6
        arena.scratch[s, ti.static(GAIN_ + 7)] = G7
        arena.scratch[s, ti.static(GAIN_ + 8)] = G8
        arena.scratch[s, ti.static(E_)] = E1xx
        arena.scratch[s, ti.static(E_ + 1)] = E1xy
        arena.scratch[s, ti.static(E_ + 2)] = E1xz
        arena.scratch[s, ti.static(E_ + 3)] = E1yy
        arena.scratch[s, ti.static(E_ + 4)] = E1yz
        arena.scratch[s, ti.static(E_ + 5)] = E1zz
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
def _substitute(arena: ti.template(), s0, r0, count, tether):
    """Root to tip: each point's displacement, and no point farther from the root than its tether."""
    stride = ti.static(arena.stride)
    r = r0 + stride
    hx = arena.position[r, 0]
    hy = arena.position[r, 1]
    hz = arena.position[r, 2]
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
        dx = arena.scratch[s, ti.static(Y_)] - (
            arena.scratch[s, ti.static(GAIN_)] * d1x
            + arena.scratch[s, ti.static(GAIN_ + 1)] * d1y
            + arena.scratch[s, ti.static(GAIN_ + 2)] * d1z
            + arena.scratch[s, ti.static(E_)] * d2x
            + arena.scratch[s, ti.static(E_ + 1)] * d2y
            + arena.scratch[s, ti.static(E_ + 2)] * d2z
        )
        dy = arena.scratch[s, ti.static(Y_ + 1)] - (
            arena.scratch[s, ti.static(GAIN_ + 3)] * d1x
            + arena.scratch[s, ti.static(GAIN_ + 4)] * d1y
            + arena.scratch[s, ti.static(GAIN_ + 5)] * d1z
            + arena.scratch[s, ti.static(E_ + 1)] * d2x
            + arena.scratch[s, ti.static(E_ + 3)] * d2y
            + arena.scratch[s, ti.static(E_ + 4)] * d2z
        )
        dz = arena.scratch[s, ti.static(Y_ + 2)] - (
            arena.scratch[s, ti.static(GAIN_ + 6)] * d1x
            + arena.scratch[s, ti.static(GAIN_ + 7)] * d1y
            + arena.scratch[s, ti.static(GAIN_ + 8)] * d1z
            + arena.scratch[s, ti.static(E_ + 2)] * d2x
            + arena.scratch[s, ti.static(E_ + 4)] * d2y
            + arena.scratch[s, ti.static(E_ + 5)] * d2z
        )
        d2x = d1x
        d2y = d1y
        d2z = d1z
        d1x = dx
        d1y = dy
        d1z = dz
        reach = reach + arena.length[r - stride, 0] * tether
        wx = arena.scratch[s, 0] + dx - hx
        wy = arena.scratch[s, 1] + dy - hy
        wz = arena.scratch[s, 2] + dz - hz
        f = ti.min(reach / (ti.sqrt(wx * wx + wy * wy + wz * wz) + 1e-9), 1.0)
        arena.position[r, 0] = hx + wx * f
        arena.position[r, 1] = hy + wy * f
        arena.position[r, 2] = hz + wz * f


@ti.func
def _keep_lengths(arena: ti.template(), s0, r0, count, low, high):
    """Direct length solve: one Newton step of all segments at once, tridiagonal.

    Strain between ``low`` and ``high`` is left alone: without that dead zone the solve would fight stiff bending
    for ever, with it an idle strand is still.
    """
    stride = ti.static(arena.stride)
    r = r0 + stride
    lx = arena.position[r, 0]
    ly = arena.position[r, 1]
    lz = arena.position[r, 2]
    zero = lx * 0.0
    ex = zero
    ey = zero
    ez = zero
    pivot = zero
    rhs = zero
    below = 0.0
    for i in range(2, count):
        r = r0 + i * stride
        s = s0 + i * stride
        x = arena.position[r, 0]
        y = arena.position[r, 1]
        z = arena.position[r, 2]
        vx = x - lx
        vy = y - ly
        vz = z - lz
        n = ti.sqrt(vx * vx + vy * vy + vz * vz)
        inverse = 1.0 / (n + 1e-9)
        vx = vx * inverse
        vy = vy * inverse
        vz = vz * inverse
        rest = arena.length[r - stride, 0]
        excess = n - rest
        excess = excess - ti.max(low * rest, ti.min(high * rest, excess))
        # Inverse masses: 0 for point 1, which the head holds; 2 for the tip, half a point's mass.
        above = 2.0 if i == count - 1 else 1.0
        off = -below * (vx * ex + vy * ey + vz * ez)
        t = off * pivot
        rhs = excess - t * rhs
        pivot = 1.0 / (below + above + 1e-6 - off * t)
        arena.scratch[s, ti.static(EDGE_)] = vx
        arena.scratch[s, ti.static(EDGE_ + 1)] = vy
        arena.scratch[s, ti.static(EDGE_ + 2)] = vz
        arena.scratch[s, ti.static(PIVOT_)] = pivot
        arena.scratch[s, ti.static(RHS_)] = rhs
        below = above
        ex = vx
        ey = vy
        ez = vz
        lx = x
        ly = y
        lz = z
    pull = zero
    tx = zero
    ty = zero
    tz = zero
    for back in range(count - 2):
        i = count - 1 - back
        r = r0 + i * stride
        s = s0 + i * stride
        vx = arena.scratch[s, ti.static(EDGE_)]
        vy = arena.scratch[s, ti.static(EDGE_ + 1)]
        vz = arena.scratch[s, ti.static(EDGE_ + 2)]
        weight = 2.0 if i == count - 1 else 1.0
        # t is the pull of the segment towards the tip; its dot product with this edge is the off-diagonal.
        pull = (
            arena.scratch[s, ti.static(RHS_)] + weight * (vx * tx + vy * ty + vz * tz)
        ) * arena.scratch[s, ti.static(PIVOT_)]
        fx = vx * pull
        fy = vy * pull
        fz = vz * pull
        arena.position[r, 0] = arena.position[r, 0] + weight * (tx - fx)
        arena.position[r, 1] = arena.position[r, 1] + weight * (ty - fy)
        arena.position[r, 2] = arena.position[r, 2] + weight * (tz - fz)
        tx = fx
        ty = fy
        tz = fz


@ti.func
def _finish(arena: ti.template(), turn, moved, b, hair, h, s0, r0, count, trial, last):
    """New velocities, what the caller sees, and how far the block moved; a strand gone bad starts afresh."""
    stride = ti.static(arena.stride)
    rate = 1.0 / h
    size = arena.position[r0, 0] * 0.0
    most = size
    for i in range(count):
        r = r0 + i * stride
        s = s0 + i * stride
        for c in ti.static(range(3)):
            x = arena.position[r, c]
            d = x - arena.scratch[s, c]
            size = size + x * x
            most = ti.max(most, ti.abs(d))
            if last:
                arena.view[r, c] = x
            if trial:
                arena.position[r, c] = arena.scratch[s, c]
            else:
                arena.velocity[r, c] = d * rate
    worst = 0.0
    if ti.static(arena.lanes > 1):
        for lane in ti.static(range(arena.lanes)):
            bits = ti.bit_cast(size[lane], ti.i32)
            if bits < 0 or bits > _HUGE_BITS:
                ti.atomic_add(arena.hair_resets[hair], 1)
                for i in range(count):
                    r = r0 + i * stride
                    x, y, z = rotate(turn, arena.rest[r, 0][lane], arena.rest[r, 1][lane], arena.rest[r, 2][lane])
                    arena.position[r, 0][lane] = x + moved[0]
                    arena.position[r, 1][lane] = y + moved[1]
                    arena.position[r, 2][lane] = z + moved[2]
                    for c in ti.static(range(3)):
                        arena.velocity[r, c][lane] = 0.0
                        arena.view[r, c][lane] = arena.position[r, c][lane]
            else:
                worst = ti.max(worst, most[lane])
    else:
        bits = ti.bit_cast(size, ti.i32)
        if bits < 0 or bits > _HUGE_BITS:
            ti.atomic_add(arena.hair_resets[hair], 1)
            for i in range(count):
                r = r0 + i * stride
                x, y, z = rotate(turn, arena.rest[r, 0], arena.rest[r, 1], arena.rest[r, 2])
                arena.position[r, 0] = x + moved[0]
                arena.position[r, 1] = y + moved[1]
                arena.position[r, 2] = z + moved[2]
                for c in ti.static(range(3)):
                    arena.velocity[r, c] = 0.0
                    arena.view[r, c] = arena.position[r, c]
        else:
            worst = most
    if not trial:
        arena.block_motion[b] = worst * rate


@ti.func
def _to_rest(arena: ti.template(), turn, moved, r0, count):
    """Put a block into its rest pose in the head, still."""
    for i in range(count):
        r = r0 + i * ti.static(arena.stride)
        x, y, z = rotate(turn, arena.rest[r, 0], arena.rest[r, 1], arena.rest[r, 2])
        arena.position[r, 0] = x + moved[0]
        arena.position[r, 1] = y + moved[1]
        arena.position[r, 2] = z + moved[2]
        for c in ti.static(range(3)):
            arena.view[r, c] = arena.position[r, c]
            arena.velocity[r, c] = arena.position[r, c] * 0.0


@ti.kernel
def advance(
    # counts
    active_count: ti.i32,
    chunk_count: ti.i32,
    chunk_blocks: ti.i32,
    serial: ti.template(),
    # model and state
    arena: ti.template(),
    # control
    active: ti.types.ndarray(dtype=ti.i32, ndim=1),
    numbers: ti.types.ndarray(dtype=ti.f32, ndim=2),
    contacts: ti.types.ndarray(dtype=ti.f32, ndim=2),
):
    """Move every active block through one step: whole ticks, then a trial tick to the returned time.

    A tick changes the state. The trial tick, where the step ends between two ticks, is taken back after the caller's
    view is written, so that the motion depends on the clock alone and never on who calls how often.

    Args:
        active_count: How many blocks of ``active`` to move.
        chunk_count: Parts of the launch; a chunk's blocks share scratch rows on the CPU.
        chunk_blocks: Blocks in a chunk.
        serial: Whether chunks run in the calling thread, compiled in.
        arena: The fields.
        active: Block numbers, shape (at least active_count,).
        numbers: One row a hair, see ``columns``, shape (hairs, HAIR_COLUMNS).
        contacts: One row for each collider of each hair, shape (rows, CONTACT_COLUMNS).
    """
    ti.loop_config(serialize=serial)
    for chunk in range(chunk_count):
        for q in range(chunk * chunk_blocks, ti.min((chunk + 1) * chunk_blocks, active_count)):
            b = active[q]
            r0 = arena.block_row[b]
            s0 = r0
            if ti.static(arena.lanes > 1):
                s0 = chunk * ti.static(arena.longest)
            count = arena.block_points[b]
            hair = arena.block_hair[b]
            ticks = ti.cast(numbers[hair, ti.static(col.TICKS)], ti.i32)
            trial_s = numbers[hair, ti.static(col.TRIAL_S)]
            total = ticks
            if trial_s > 0.0:
                total = ticks + 1
            first = numbers[hair, ti.static(col.ALPHA_FIRST)]
            each = numbers[hair, ti.static(col.ALPHA_TICK)]
            radius = numbers[hair, ti.static(col.RADIUS)]
            friction = numbers[hair, ti.static(col.FRICTION)]
            contact_first = ti.cast(numbers[hair, ti.static(col.CONTACT_FIRST)], ti.i32)
            contact_count = ti.cast(numbers[hair, ti.static(col.CONTACT_COUNT)], ti.i32)
            rounds = ti.cast(numbers[hair, ti.static(col.ROUNDS)], ti.i32)
            if numbers[hair, ti.static(col.RESET)] > 0.0:
                turn, moved = pose_between(
                    numbers, hair, ti.static(col.POSE_BEFORE), ti.static(col.POSE_NOW), 1.0
                )
                _to_rest(arena, turn, moved, r0, count)
            for tick in range(total):
                trial = tick == ticks
                h = numbers[hair, ti.static(col.TICK_S)]
                alpha = first + tick * each
                before = alpha - each
                if trial:
                    h = trial_s
                    alpha = 1.0
                turn, moved = pose_between(
                    numbers, hair, ti.static(col.POSE_BEFORE), ti.static(col.POSE_NOW), alpha
                )
                wind = ti.Vector(
                    [
                        numbers[hair, ti.static(col.WIND_BEFORE) + c] * (1.0 - alpha)
                        + numbers[hair, ti.static(col.WIND_NOW) + c] * alpha
                        for c in range(3)
                    ]
                )
                _place_root(arena, turn, moved, s0, r0)
                _bend(arena, turn, b, s0, r0, count)
                _eliminate(arena, numbers, hair, turn, moved, wind, h, s0, r0, count)
                _substitute(arena, s0, r0, count, numbers[hair, ti.static(col.TETHER)])
                for _ in range(rounds):
                    _keep_lengths(
                        arena,
                        s0,
                        r0,
                        count,
                        numbers[hair, ti.static(col.STRAIN_LOW)],
                        numbers[hair, ti.static(col.STRAIN_HIGH)],
                    )
                    for c in range(contact_first, contact_first + contact_count):
                        push_out(arena, contacts, c, before, alpha, s0, r0, count, radius, friction)
                _finish(
                    arena, turn, moved, b, hair, h, s0, r0, count, trial, tick == total - 1
                )


@ti.kernel
def load_hair(
    # counts
    row_count: ti.i32,
    first_row: ti.i32,
    first_block: ti.i32,
    block_count: ti.i32,
    hair: ti.i32,
    # in
    rows: ti.types.ndarray(dtype=ti.f32, ndim=3),
    frames: ti.types.ndarray(dtype=ti.f32, ndim=3),
    blocks: ti.types.ndarray(dtype=ti.i32, ndim=2),
    # out
    arena: ti.template(),
):
    """Write a hair's constant data into the rows and blocks it was given.

    Args:
        row_count: Rows of the hair.
        first_row: Its first row.
        first_block: Its first block.
        block_count: Blocks of the hair.
        hair: Its row in the table of numbers.
        rows: Rest point [m], rest curvature [m], bending [1/s^2], length [m], shape (row_count, lanes, 8).
        frames: Normal of the root edge in the head's frame, shape (block_count, lanes, 3).
        blocks: Row after first_row, and points, of each block, shape (block_count, 2).
        arena: The fields.
    """
    for r in range(row_count):
        for c in ti.static(range(3)):
            _set_row(arena.rest, first_row + r, c, rows, r, c)
            _set_row(arena.curvature, first_row + r, c, rows, r, c + 3)
        _set_row(arena.bend, first_row + r, 0, rows, r, 6)
        _set_row(arena.length, first_row + r, 0, rows, r, 7)
    for b in range(block_count):
        for c in ti.static(range(3)):
            _set_row(arena.frame, first_block + b, c, frames, b, c)
        arena.block_row[first_block + b] = first_row + blocks[b, 0]
        arena.block_points[first_block + b] = blocks[b, 1]
        arena.block_hair[first_block + b] = hair
        arena.block_motion[first_block + b] = 0.0
        arena.hair_resets[hair] = 0


@ti.func
def _set_row(field: ti.template(), row, column, array: ti.template(), index, source):
    if ti.static(hasattr(field, "n")):
        for lane in ti.static(range(field.n)):
            field[row, column][lane] = array[index, lane, source]
    else:
        field[row, column] = array[index, 0, source]


@ti.kernel
def load_strands(
    # counts
    strand_count: ti.i32,
    first_strand: ti.i32,
    hair: ti.i32,
    # in
    table: ti.types.ndarray(dtype=ti.i32, ndim=2),
    # out
    arena: ti.template(),
):
    """Write where each strand's points are: its first row, lane, first drawing point and count.

    Args:
        strand_count: Strands of the hair.
        first_strand: Its first row in the strand table.
        hair: Its row in the table of numbers.
        table: Row, lane, guide start, guide count of each strand, shape (strand_count, 4).
        arena: The fields.
    """
    for s in range(strand_count):
        arena.strand_row[first_strand + s] = table[s, 0]
        arena.strand_lane[first_strand + s] = table[s, 1]
        arena.guide_start[first_strand + s] = table[s, 2]
        arena.guide_count[first_strand + s] = table[s, 3]
        arena.strand_hair[first_strand + s] = hair


@ti.func
def _seen(arena: ti.template(), numbers: ti.template(), strand, point):
    """Return where the caller sees a guide point, relative to its hair's origin."""
    hair = arena.strand_hair[strand]
    r = arena.strand_row[strand] + point * ti.static(arena.stride)
    x = ti.Vector([0.0, 0.0, 0.0])
    solid = numbers[hair, ti.static(col.SOLID)] > 0.0
    for c in ti.static(range(3)):
        if ti.static(arena.lanes > 1):
            lane = arena.strand_lane[strand]
            x[c] = arena.rest[r, c][lane] if solid else arena.view[r, c][lane]
        else:
            x[c] = arena.rest[r, c] if solid else arena.view[r, c]
    if solid:
        turn, moved = pose_between(
            numbers, hair, ti.static(col.POSE_BEFORE), ti.static(col.POSE_NOW), 1.0
        )
        x = turn @ x + moved
    return x


@ti.kernel
def present(
    # counts
    strand_count: ti.i32,
    first_strand: ti.i32,
    # in
    numbers: ti.types.ndarray(dtype=ti.f32, ndim=2),
    # out
    arena: ti.template(),
):
    """Gather a hair's points strand by strand for drawing, on the device.

    Args:
        strand_count: Strands of the hair.
        first_strand: Its first row in the strand table.
        numbers: One row a hair, see ``columns``.
        arena: The fields; ``guide_point`` [m] is written.
    """
    for s in range(first_strand, first_strand + strand_count):
        for i in range(arena.guide_count[s]):
            arena.guide_point[arena.guide_start[s] + i] = _seen(arena, numbers, s, i)


@ti.kernel
def read_points(
    # counts
    strand_count: ti.i32,
    first_strand: ti.i32,
    first_point: ti.i32,
    # in
    numbers: ti.types.ndarray(dtype=ti.f32, ndim=2),
    arena: ti.template(),
    # out
    points: ti.types.ndarray(dtype=ti.f32, ndim=2),
):
    """Copy a hair's points to the host.

    Args:
        strand_count: Strands of the hair.
        first_strand: Its first row in the strand table.
        first_point: Its first drawing point, which becomes row 0.
        numbers: One row a hair, see ``columns``.
        arena: The fields.
        points: Points relative to the hair's origin [m], shape (points, 3).
    """
    for s in range(first_strand, first_strand + strand_count):
        for i in range(arena.guide_count[s]):
            x = _seen(arena, numbers, s, i)
            for c in ti.static(range(3)):
                points[arena.guide_start[s] - first_point + i, c] = x[c]


@ti.kernel
def move_origin(
    # counts
    row_count: ti.i32,
    first_row: ti.i32,
    # control
    dx: ti.f32,
    dy: ti.f32,
    dz: ti.f32,
    # state
    arena: ti.template(),
):
    """Shift a hair's points when its origin moves the other way.

    Args:
        row_count: Rows of the hair.
        first_row: Its first row.
        dx: Shift along x [m].
        dy: Shift along y [m].
        dz: Shift along z [m].
        arena: The fields.
    """
    for r in range(first_row, first_row + row_count):
        arena.position[r, 0] = arena.position[r, 0] + dx
        arena.position[r, 1] = arena.position[r, 1] + dy
        arena.position[r, 2] = arena.position[r, 2] + dz
        arena.view[r, 0] = arena.view[r, 0] + dx
        arena.view[r, 1] = arena.view[r, 1] + dy
        arena.view[r, 2] = arena.view[r, 2] + dz


@ti.kernel
def load_grid(
    # counts
    count: ti.i32,
    first: ti.i32,
    # in
    values: ti.types.ndarray(dtype=ti.f32, ndim=1),
    # out
    arena: ti.template(),
):
    """Write a distance grid's values into the arena.

    Args:
        count: Cells of the grid.
        first: Where they go.
        values: Distances [m], shape (count,).
        arena: The fields.
    """
    for i in range(count):
        arena.grid_value[first + i] = values[i]


@ti.kernel
def most_motion(first_block: ti.i32, block_count: ti.i32, arena: ti.template()) -> ti.f32:
    """Return the fastest point's speed, by component, over a hair's blocks [m/s].

    Args:
        first_block: The hair's first block.
        block_count: Its blocks.
        arena: The fields.
    """
    worst = 0.0
    for b in range(first_block, first_block + block_count):
        ti.atomic_max(worst, arena.block_motion[b])
    return worst
