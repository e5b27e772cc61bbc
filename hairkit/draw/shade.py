"""Kernels that light drawn hairs: a density grid, soft shadow, and the fibre's highlights.

The grid's third axis points at the key light, so that the light's way through the hair is one
running sum down each column; the same sum along all axes, both ways, gives how open a place is to
the sky.
"""

from hairkit.backend import ti
from hairkit.draw.expand import BOX_STEP, unit
from hairkit.draw.scatter import TILT, TINT, WARMTH

# Where each number is in the array `view` that a picture's launches share.
EYE, RIGHT, UP, FORWARD = 0, 3, 6, 9
FOCAL, WIDTH, HEIGHT, SAMPLES, NEAR, FINEST = 12, 13, 14, 15, 16, 17
LIGHT_AXES = 18
"""Axes of the light's grid: right, up, towards the light; 9 numbers."""
RIM, KEY_COLOR, RIM_COLOR, SKY_COLOR, WORLD_UP = 27, 30, 33, 36, 39
BACK_MIDDLE, BACK_EDGE, TRANSPARENT, SAMPLE_SHIFT = 42, 45, 48, 49
VIEW_NUMBERS = 50

# Where each number is in a head's row of `look`.
ROOT_COLOR, TIP_COLOR = 0, 3
HAIR_WIDTH, SHINE, SHIFT, POINT_AREA, REACH, PLAITED = 6, 7, 8, 9, 10, 11
LOOK_NUMBERS = 12

LIGHT_KEY = 16.0
"""Added to heights towards the light [m] so that they are positive, and their bits in order."""
SOLID = 0.985
"""Share of the light that the head keeps out: all but what its skin lets through."""
SKY_DENSITY = 0.55
"""How strongly hair shuts out the sky, as a share of its optical depth."""
KEY_DENSITY = 0.55
"""How strongly hair shuts out the key light: hairs scatter most of what they catch forward."""


BRIGHTEST = 4.0
"""What a layer of white hairs with highlights of strength 1 would send out of the light that it
gets, as the lobes stand; see `fibre`."""


@ti.func
def vec(numbers: ti.template(), at: ti.template()):
    """Return three numbers of an array as a vector."""
    return ti.Vector([numbers[at], numbers[at + 1], numbers[at + 2]])


@ti.func
def row(numbers: ti.template(), slot, at: ti.template()):
    """Return three numbers of a head's row as a vector."""
    return ti.Vector([numbers[slot, at], numbers[slot, at + 1], numbers[slot, at + 2]])


@ti.func
def to_grid(view: ti.template(), box: ti.template(), slot, cells, x):
    """Return where a place is in its head's light grid, in cells."""
    b = box[slot]
    on_axes = ti.Vector(
        [
            x.dot(vec(view, LIGHT_AXES)),
            x.dot(vec(view, LIGHT_AXES + 3)),
            x.dot(vec(view, LIGHT_AXES + 6)),
        ]
    )
    low = ti.Vector([b[0], b[1], b[2]]) * BOX_STEP
    size = ti.Vector([b[3] - b[0], b[4] - b[1], b[5] - b[2]]) * BOX_STEP
    return (on_axes - low) / ti.max(size, 1e-6) * cells


@ti.func
def lightness(light: ti.template(), first, cells, q):
    """Return optical depth towards the key light and openness to the sky at a place in the grid."""
    p = ti.min(ti.max(q - 0.5, 0.0), cells - 1.001)
    i = ti.cast(p, ti.i32)
    f = p - ti.cast(i, ti.f32)
    base = first + (i[0] * cells + i[1]) * cells + i[2]
    a = light[base] * (1.0 - f[2]) + light[base + 1] * f[2]
    b = light[base + cells] * (1.0 - f[2]) + light[base + cells + 1] * f[2]
    far = base + cells * cells
    c = light[far] * (1.0 - f[2]) + light[far + 1] * f[2]
    d = light[far + cells] * (1.0 - f[2]) + light[far + cells + 1] * f[2]
    return (a * (1.0 - f[1]) + b * f[1]) * (1.0 - f[0]) + (c * (1.0 - f[1]) + d * f[1]) * f[0]


@ti.func
def scramble(value: ti.u32) -> ti.u32:
    """Return well-mixed bits of a number (the output step of a permuted congruential generator)."""
    a = value * ti.u32(747796405) + ti.u32(2891336453)
    a = ((a >> ((a >> ti.u32(28)) + ti.u32(4))) ^ a) * ti.u32(277803737)
    return (a >> ti.u32(22)) ^ a


@ti.kernel
def deposit(
    # layout
    row_first: ti.i32,
    row_skip: ti.i32,
    row_count: ti.i32,
    slot: ti.i32,
    cell_first: ti.i32,
    cells: ti.i32,
    # control
    view: ti.types.ndarray(dtype=ti.f32, ndim=1),
    # state in
    point: ti.template(),
    box: ti.template(),
    # out
    density_out: ti.template(),
):
    """Count drawn hair points in the cells of the light's grid.

    Each point is moved by up to half a cell, by its own row's bits: on average the same as
    spreading it over eight cells, for one atomic instead of eight.

    Args:
        row_first: First row of this head's points.
        row_skip: Points of this head that earlier launches have counted.
        row_count: Points to count.
        slot: This head's box.
        cell_first: First cell of this head's grid.
        cells: Cells along each axis.
        view: Numbers of the picture, laid out as in this module.
        point: Drawn hair points [m].
        box: Box of each head on the light's axes.
        density_out: Points in each cell.
    """
    for n in range(row_skip, row_skip + row_count):
        bits = scramble(ti.cast(n, ti.u32))
        jitter = ti.Vector(
            [
                ti.cast(bits & ti.u32(1023), ti.f32),
                ti.cast((bits >> ti.u32(10)) & ti.u32(1023), ti.f32),
                ti.cast((bits >> ti.u32(20)) & ti.u32(1023), ti.f32),
            ]
        ) * (1.0 / 1024.0) - (0.5 - 0.5 / 1024.0)
        q = to_grid(view, box, slot, cells, point[row_first + n]) + jitter
        i = ti.cast(ti.min(ti.max(q, 0.0), cells - 0.5), ti.i32)
        density_out[cell_first + (i[0] * cells + i[1]) * cells + i[2]] += 1


@ti.kernel
def sweep(
    # layout
    axis: ti.i32,
    slot: ti.i32,
    cell_first: ti.i32,
    cells: ti.i32,
    key_first: ti.i32,
    # control
    look: ti.types.ndarray(dtype=ti.f32, ndim=2),
    # state in
    box: ti.template(),
    density: ti.template(),
    sample_key: ti.template(),
    # out
    light_out: ti.template(),
):
    """Sum what light meets along one axis of a head's grid, one thread a column, both ways.

    Launched for axis 0, 1 and 2 in this order: the first clears, the last, towards the light, also
    writes the key light's depth.

    Args:
        axis: The axis to go along.
        slot: This head's box and row of `look`.
        cell_first: First cell of this head's grid.
        cells: Cells along each axis.
        key_first: First sample of the head's depth seen from the light.
        look: Numbers of each head, laid out as in this module.
        box: Box of each head on the light's axes.
        density: Points in each cell.
        sample_key: Bits of the height of the head's surface towards the light.
        light_out: Optical depth towards the key light, and openness to the sky, 0..1.
    """
    for column in range(cells * cells):
        a = column // cells
        b = column - a * cells
        size = ti.Vector([0.0, 0.0, 0.0])
        for c in ti.static(range(3)):
            size[c] = ti.cast(box[slot][c + 3] - box[slot][c], ti.f32) * BOX_STEP / cells
        step = 1
        at = cell_first + (a * cells + b) * cells
        area = size[0] * size[1]
        below = ti.Vector([-1, -1, -1, -1, -1, -1, -1, -1, -1])
        if axis == 0:
            step = cells * cells
            at = cell_first + a * cells + b
            area = size[1] * size[2]
        elif axis == 1:
            step = cells
            at = cell_first + a * cells * cells + b
            area = size[0] * size[2]
        else:
            # Nine columns make the edge of the head's shadow soft. The surface itself must stay
            # lit: the shadow starts a cell and a half below it.
            for o in ti.static(range(9)):
                na = ti.min(ti.max(a + o // 3 - 1, 0), cells - 1)
                nb = ti.min(ti.max(b + o % 3 - 1, 0), cells - 1)
                bits = sample_key[key_first + na * cells + nb]
                if bits > 0:
                    height = ti.bit_cast(bits, ti.f32) - LIGHT_KEY
                    below[o] = ti.cast(ti.floor(height / size[2] - 1.5), ti.i32)
        each = look[slot, POINT_AREA] / ti.max(area, 1e-12)
        # What is left of the sky's light, halved cell by cell: most cells are empty and cost no
        # exponential.
        left = 1.0 / 6.0
        for c in range(cells):
            cell = at + c * step
            open_way = left
            if density[cell] > 0:
                half = ti.exp(-SKY_DENSITY * 0.5 * density[cell] * each)
                open_way = left * half
                left = open_way * half
            if axis == 0:
                light_out[cell] = ti.Vector([0.0, open_way])
            else:
                light_out[cell][1] = light_out[cell][1] + open_way
        left = 1.0 / 6.0
        depth = 0.0
        for c in range(cells):
            k = cells - 1 - c
            cell = at + k * step
            own = density[cell] * each
            here = depth + 0.5 * own
            depth += own
            open_way = left
            if density[cell] > 0:
                half = ti.exp(-SKY_DENSITY * 0.5 * own)
                open_way = left * half
                left = open_way * half
            if axis == 2:
                dark = 0
                for o in ti.static(range(9)):
                    dark += 1 if k <= below[o] else 0
                if dark > 0:
                    # The head keeps the sky out, too.
                    shut = 1.0 - dark * (SOLID / 9.0)
                    here -= ti.log(shut) / KEY_DENSITY
                    open_way *= ti.pow(shut, SKY_DENSITY / KEY_DENSITY)
                light_out[cell][0] = here
            light_out[cell][1] = light_out[cell][1] + open_way


@ti.kernel
def project(
    # layout
    hair_count: ti.i32,
    point_count: ti.i32,
    point_first: ti.i32,
    slot: ti.i32,
    # control
    view: ti.types.ndarray(dtype=ti.f32, ndim=1),
    look: ti.types.ndarray(dtype=ti.f32, ndim=2),
    # state in
    point: ti.template(),
    # out
    screen_out: ti.template(),
    shown_out: ti.template(),
):
    """Put every point of a head's drawn hairs on the screen.

    Args:
        hair_count: Drawn hairs.
        point_count: Points of each.
        point_first: Row of the first point.
        slot: This head's row of `look`.
        view: Numbers of the picture, laid out as in this module.
        look: Numbers of each head, laid out as in this module.
        point: Drawn hair points [m].
        screen_out: Place in the picture, right and down [pixels]; inverse distance along the view
            [1/m], zero behind the eye; half the ribbon's width [pixels].
        shown_out: Zero: nothing is known to be seen yet.
    """
    for n in range(hair_count * point_count):
        at = point_first + n
        s = ti.cast(n - n // point_count * point_count, ti.f32) / (point_count - 1)
        from_eye = point[at] - vec(view, EYE)
        deep = from_eye.dot(vec(view, FORWARD))
        ahead = 1.0 if deep > view[NEAR] else 0.0
        inverse = 1.0 / ti.max(deep, view[NEAR])
        scale = view[FOCAL] * inverse
        # The tip runs out; but no ribbon is thinner than most of a pixel, so none breaks into dots.
        wide = look[slot, HAIR_WIDTH] * ti.min(1.0, 0.25 + 3.0 * (1.0 - s)) * scale
        screen_out[at] = ti.Vector(
            [
                0.5 * view[WIDTH] + from_eye.dot(vec(view, RIGHT)) * scale,
                0.5 * view[HEIGHT] - from_eye.dot(vec(view, UP)) * scale,
                inverse * ahead,
                0.5 * ti.max(wide, view[FINEST]),
            ]
        )
        shown_out[at] = 0


@ti.func
def bell(angle, wide):
    """Return a bell curve of height one."""
    q = angle / wide
    return ti.exp(-0.5 * q * q)


@ti.func
def fibre(t, to_light, to_eye, tilt, shift, shine, base):
    """Return what a fibre sends to the eye of a light, linear red, green and blue.

    Kajiya and Kay's diffuse; on top the lobes of Marschner and others (2003) in the form of bells:
    R off the cuticle, white and moved towards the tip; TRT through the fibre and back, coloured and
    moved towards the root; TT straight through, which makes the rim of backlit hair glow.
    """
    sl, sv = t.dot(to_light), t.dot(to_eye)
    lp, vp = to_light - t * sl, to_eye - t * sv
    cl, cv = ti.sqrt(ti.max(lp.dot(lp), 1e-6)), ti.sqrt(ti.max(vp.dot(vp), 1e-6))
    around = lp.dot(vp) / (cl * cv)
    half = 0.5 * (ti.asin(ti.min(ti.max(sl, -1.0), 1.0)) + ti.asin(ti.min(ti.max(sv, -1.0), 1.0)))
    half += tilt
    facing = 0.5 + 0.5 * around
    first = bell(half + shift, 0.080) * (0.25 + 0.75 * facing) * 0.055
    second = bell(half - 1.5 * shift, 0.18) * facing * facing * 1.05
    through = bell(half + 0.5 * shift, 0.20) * (1.0 - facing) ** 3 * 0.9
    tint = ti.pow(ti.max(base, 1e-4), 0.30)
    diffuse = cl * (0.45 + 0.55 * facing) * 0.34
    # All lobes of light hair together would send out more than came in.
    all_sent = BRIGHTEST * (0.30 + 0.70 * shine) * ti.max(base[0], base[1], base[2])
    all_sent *= all_sent
    fair = 1.0 / ti.sqrt(ti.sqrt(1.0 + all_sent * all_sent))
    return fair * (
        base * diffuse
        + shine
        * (
            ti.Vector([first, first, first])
            + base * tint * (second * 1.35)
            + base * (second * 0.5 + through)
        )
    )


@ti.kernel
def shade(
    # layout
    hair_count: ti.i32,
    point_count: ti.i32,
    point_first: ti.i32,
    hair_first: ti.i32,
    kept: ti.i32,
    full: ti.i32,
    slot: ti.i32,
    cell_first: ti.i32,
    cells: ti.i32,
    # control
    view: ti.types.ndarray(dtype=ti.f32, ndim=1),
    look: ti.types.ndarray(dtype=ti.f32, ndim=2),
    # model
    hair_trait: ti.template(),
    # state in
    point: ti.template(),
    box: ti.template(),
    light: ti.template(),
    shown: ti.template(),
    # state in, out
    color: ti.template(),
):
    """Light every point of a head's drawn hairs that the picture shows.

    Args:
        hair_count: Drawn hairs.
        point_count: Points of each.
        point_first: Row of the first point.
        hair_first: Row of the first hair in `hair_trait`.
        kept: Hairs of each guide that are drawn.
        full: Hairs of each guide that there are.
        slot: This head's box and row of `look`.
        cell_first: First cell of this head's grid.
        cells: Cells along each axis.
        view: Numbers of the picture, laid out as in this module.
        look: Numbers of each head, laid out as in this module.
        hair_trait: Numbers of each hair, laid out as in `scatter`.
        point: Drawn hair points [m].
        box: Box of each head on the light's axes.
        light: Optical depth towards the key light, and openness to the sky.
        shown: 1 where the segment that begins here is seen.
        color: Light towards the eye, linear red, green and blue; of plaits, before that, what
            `expand` says of their roundness.
    """
    for n in range(hair_count * point_count):
        h = n // point_count
        j = n - h * point_count
        at = point_first + n
        if shown[at] == 1 or (j > 0 and shown[at - 1] == 1):
            x = point[at]
            t = unit(
                point[at + (1 if j + 1 < point_count else 0)] - point[at - (1 if j > 0 else 0)]
            )
            own = hair_first + h // kept * full + h % kept
            trait_tint, warmth, tilt = (
                hair_trait[own][TINT],
                hair_trait[own][WARMTH],
                hair_trait[own][TILT],
            )
            s = ti.cast(j, ti.f32) / (point_count - 1)

            from_eye = x - vec(view, EYE)
            to_eye = -unit(from_eye)
            lit = lightness(light, cell_first, cells, to_grid(view, box, slot, cells, x))
            blend = s * s * (3.0 - 2.0 * s)
            base = row(look, slot, ROOT_COLOR) * (1.0 - blend) + row(look, slot, TIP_COLOR) * blend
            base *= trait_tint * (1.0 + ti.Vector([0.05, 0.0, -0.06]) * warmth)
            base = ti.min(base, 0.95)
            root_shade = 0.72 + 0.28 * ti.min(1.0, s * look[slot, REACH] / 0.04)
            shift, shine = look[slot, SHIFT], look[slot, SHINE]

            # Bright hair passes on more of its own colour than dark hair does.
            passed = ti.exp(-KEY_DENSITY * lit[0] * (1.0 - 0.70 * ti.sqrt(base)))
            sky = ti.min(1.0, 1.9 * lit[1])
            key = fibre(t, vec(view, LIGHT_AXES + 6), to_eye, 0.055 * tilt, shift, shine, base)
            rim = fibre(t, vec(view, RIM), to_eye, 0.055 * tilt, shift, shine, base)
            over = t.dot(vec(view, WORLD_UP))
            dome = 0.72 + 0.28 * ti.sqrt(ti.max(1.0 - over * over, 0.0))
            if look[slot, PLAITED] > 0.0:
                # A plait is round, and dark where one of its ropes goes under another.
                out = color[at]
                open_way = ti.sqrt(out.dot(out))
                facing = 0.5 + 0.5 * out.dot(vec(view, LIGHT_AXES + 6))
                passed *= 0.25 + 1.1 * open_way * facing
                sky *= 0.45 + 0.55 * open_way
            color_here = vec(view, KEY_COLOR) * passed * key
            color_here += vec(view, RIM_COLOR) * (sky * sky * sky) * rim
            # Light that bounces from hair to hair takes on its colour: deep places grow warm, not
            # grey.
            dim = ti.pow(ti.max(sky, 1e-3), 2.6 - 2.0 * base)
            color_here += vec(view, SKY_COLOR) * base * (dim * (dome * 0.46) + 0.010)
            color[at] = color_here * root_shade
