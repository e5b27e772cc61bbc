"""The strand's maths: a segment's spring, small symmetric solves, turns and poses.

Every function works on numbers and, elementwise, on vectors of lanes alike: components are written
out, and there are no branches.
"""

from hairkit.backend import ti
from hairkit.style import RIGID_STRETCH


@ti.func
def put(arena: ti.template(), field: ti.template(), index, value):
    """Store a value, in one place for all of the solver's fields.

    Where the arena carries derivatives, Taichi's forward mode would add the value's to what the
    element had: that is taken away first. The value, its derivative included, is known by then.
    """
    if ti.static(arena.differentiable):
        field.dual[index] = 0.0
    field[index] = value


@ti.func
def spring(ex, ey, ez, rest, stiffness):
    """Return a segment's force on its lower end and its stiffness block (xx, xy, xz, yy, yz, zz).

    Along a pulled segment the spring's own stiffness; pushed together it is as stiff as hair can
    be, or a coil would buckle under its own weight where it stands. Across it the geometric
    stiffness of tension, none in compression, so that the matrix stays positive definite.
    """
    length = ti.sqrt(ex * ex + ey * ey + ez * ez) + 1e-9
    inverse = 1.0 / length
    ux = ex * inverse
    uy = ey * inverse
    uz = ez * inverse
    along = ti.select(length < rest, RIGID_STRETCH, stiffness)
    force = along * (length - rest)
    across = ti.max(1.0 - rest * inverse, 0.0) * stiffness
    along = along - across
    ax = along * ux
    ay = along * uy
    return (
        force * ux,
        force * uy,
        force * uz,
        across + ax * ux,
        ax * uy,
        ax * uz,
        across + ay * uy,
        ay * uz,
        across + along * uz * uz,
    )


@ti.func
def inverse_symmetric(xx, xy, xz, yy, yz, zz):
    """Invert a symmetric positive definite 3 x 3 matrix, as (xx, xy, xz, yy, yz, zz).

    By its factors L D L^T: stiff along one direction and soft across it, as segments are, the
    determinant's products cancel, and its square in the derivative leaves single precision.
    """
    a = 1.0 / xx
    yx = xy * a
    zx = xz * a
    rest = yz - yx * xz
    b = 1.0 / (yy - yx * xy)
    zy = rest * b
    w = yx * zy - zx
    izz = 1.0 / (zz - zx * xz - zy * rest)
    ixz = w * izz
    iyz = -zy * izz
    return (
        a + yx * yx * b + w * ixz,
        -yx * b - zy * ixz,
        ixz,
        b - zy * iyz,
        iyz,
        izz,
    )


@ti.func
def rotate(m: ti.template(), x, y, z):
    """Turn a vector by three rows of numbers; the vector may be lanes."""
    return (
        m[0][0] * x + m[0][1] * y + m[0][2] * z,
        m[1][0] * x + m[1][1] * y + m[1][2] * z,
        m[2][0] * x + m[2][1] * y + m[2][2] * z,
    )


@ti.func
def rotate_back(m: ti.template(), x, y, z):
    """Turn a vector by the transpose of three rows of numbers."""
    return (
        m[0][0] * x + m[1][0] * y + m[2][0] * z,
        m[0][1] * x + m[1][1] * y + m[2][1] * z,
        m[0][2] * x + m[1][2] * y + m[2][2] * z,
    )


@ti.func
def pose_between(table: ti.template(), row, before: ti.template(), now: ti.template(), alpha):
    """Return rotation and translation a fraction of the way between a row's two poses.

    The rotation as rows of numbers: forward mode fails on local vectors and matrices.

    Great-circle interpolation; ``alpha`` may lie outside 0..1.
    """
    ax = table[row, before]
    ay = table[row, before + 1]
    az = table[row, before + 2]
    aw = table[row, before + 3]
    bx = table[row, now]
    by = table[row, now + 1]
    bz = table[row, now + 2]
    bw = table[row, now + 3]
    dot = ax * bx + ay * by + az * bz + aw * bw
    sign = 1.0 if dot >= 0.0 else -1.0
    dot = ti.min(ti.abs(dot), 1.0)
    s = 1.0 - alpha
    t = alpha * sign
    if dot < 0.9999:
        angle = ti.acos(dot)
        scale = 1.0 / ti.sin(angle)
        s = ti.sin((1.0 - alpha) * angle) * scale
        t = ti.sin(alpha * angle) * scale * sign
    x = s * ax + t * bx
    y = s * ay + t * by
    z = s * az + t * bz
    w = s * aw + t * bw
    k = 2.0 / (x * x + y * y + z * z + w * w)
    u = 1.0 - alpha
    return (
        (
            (1.0 - k * (y * y + z * z), k * (x * y - z * w), k * (x * z + y * w)),
            (k * (x * y + z * w), 1.0 - k * (x * x + z * z), k * (y * z - x * w)),
            (k * (x * z - y * w), k * (y * z + x * w), 1.0 - k * (x * x + y * y)),
        ),
        (
            table[row, before + 4] * u + table[row, now + 4] * alpha,
            table[row, before + 5] * u + table[row, now + 5] * alpha,
            table[row, before + 6] * u + table[row, now + 6] * alpha,
        ),
    )


@ti.func
def since(turn: ti.template(), was: ti.template()):
    """Return the rotation that leads from one to another, as rows of numbers."""
    return (
        rotate(was, turn[0][0], turn[0][1], turn[0][2]),
        rotate(was, turn[1][0], turn[1][1], turn[1][2]),
        rotate(was, turn[2][0], turn[2][1], turn[2][2]),
    )
