"""The kernel that turns what each sample shows into a picture: heads are lit here."""

from hairkit.backend import ti
from hairkit.draw.expand import unit
from hairkit.draw.raster import NOTHING, place_of, weights
from hairkit.draw.shade import (
    BACK_EDGE,
    BACK_MIDDLE,
    EYE,
    KEY_COLOR,
    KEY_DENSITY,
    LIGHT_AXES,
    RIM,
    RIM_COLOR,
    ROOT_COLOR,
    SAMPLE_SHIFT,
    SKY_COLOR,
    TRANSPARENT,
    WORLD_UP,
    lightness,
    row,
    scramble,
    to_grid,
    vec,
)

BAND = 16
"""Pixels across a band of the picture. Samples lie column by column and pixels row by row: a band
taken row by row finds both in the caches."""


@ti.func
def soft_clip(c):
    """Return light as a picture can hold it: nearly linear when dark, rolling off towards one."""
    a = ti.max(c, 0.0) * 1.06
    return (a * (a + 0.55)) / (a * (a + 0.80) + 0.33)


@ti.func
def encode(c):
    """Return linear light as sRGB."""
    a = ti.min(ti.max(c, 0.0), 1.0)
    # The power 1 / 2.4 out of a square root, fitted: within 0.00014 of the curve, a thirtieth of a
    # step of eight bits.
    half = ti.sqrt(a)
    curve = -0.04347772 + half * (1.44544671 + half * (4.07024504 - half * 0.28616202))
    curve /= 1.0 + 4.18675479 * half
    return ti.select(a < 0.0031308, 12.92 * a, curve)


@ti.kernel
def resolve(
    # layout
    width: ti.i32,
    height: ti.i32,
    samples: ti.i32,
    cells: ti.i32,
    # control
    view: ti.types.ndarray(dtype=ti.f32, ndim=1),
    look: ti.types.ndarray(dtype=ti.f32, ndim=2),
    # model
    mesh_rest: ti.template(),
    mesh_face: ti.template(),
    # state in
    mesh_world: ti.template(),
    mesh_screen: ti.template(),
    color: ti.template(),
    screen: ti.template(),
    box: ti.template(),
    light: ti.template(),
    sample_id: ti.template(),
    # out
    pixel_out: ti.template(),
):
    """Turn what each sample shows into a picture.

    Args:
        width: Pixels across.
        height: Pixels down.
        samples: Samples across a pixel.
        cells: Cells along each axis of a head's grid.
        view: Numbers of the picture, laid out as in `shade`.
        look: Numbers of each head, laid out as in `shade`.
        mesh_rest: Position, normal, share that follows the head, share that is scalp,
            colour.
        mesh_face: Three vertices and the head of each face.
        mesh_world: Position [m] and normal.
        mesh_screen: Right, down [samples], inverse distance [1/m].
        color: Light from each hair point towards the eye.
        screen: Right, down [pixels], inverse distance, half width [pixels] of each hair point.
        box: Box of each head on the light's axes.
        light: Optical depth towards the key light, and openness to the sky.
        sample_id: Number of what each sample shows.
        pixel_out: sRGB and alpha, a byte each, red lowest.
    """
    for n in range((width + BAND - 1) // BAND * BAND * height):
        band = n // (BAND * height)
        y = (n - band * BAND * height) // BAND
        x = band * BAND + n % BAND
        if x >= width:
            continue
        total = ti.Vector([0.0, 0.0, 0.0])
        covered = 0.0
        shift = view[SAMPLE_SHIFT]
        across = (x + 0.5) / width - 0.5
        downward = (y + 0.5) / height - 0.5
        round_off = ti.min(1.0, 2.2 * (across * across + (downward + 0.05) * (downward + 0.05)))
        behind = vec(view, BACK_MIDDLE) * (1.0 - round_off) + vec(view, BACK_EDGE) * round_off
        skin_number, skin_seen = 0, ti.Vector([0.0, 0.0, 0.0])
        for o in range(samples * samples):
            sx = x * samples + o % samples
            sy = y * samples + o // samples
            number = sample_id[sx * height * samples + sy]
            if number == NOTHING:
                total += behind * (1.0 - view[TRANSPARENT])
            elif number >= 0:
                a, b = screen[number], screen[number + 1]
                at = place_of(sx, sy, shift) / samples
                px, py = at[0] - a[0], at[1] - a[1]
                ex, ey = b[0] - a[0], b[1] - a[1]
                per = 1.0 / ti.max(ex * ex + ey * ey, 1e-9)
                f = ti.min(ti.max((px * ex + py * ey) * per, 0.0), 1.0)
                half = a[3] + (b[3] - a[3]) * f
                rounding = 1.0
                if half > 0.6:
                    # A ribbon that is pixels wide is seen to be round.
                    off = (px * ey - py * ex) * ti.sqrt(per) / half
                    edge = ti.sqrt(ti.max(1.0 - off * off, 0.0))
                    rounding -= ti.min(half - 0.6, 1.0) * 0.55 * (1.0 - edge)
                total += soft_clip((color[number] * (1.0 - f) + color[number + 1] * f) * rounding)
                covered += 1.0
            elif number == skin_number:
                # Skin is smooth: one face needs its light once in a pixel.
                total += skin_seen
                covered += 1.0
            else:
                corner = mesh_face[-1 - number]
                slot = corner[3]
                a, b, c = mesh_screen[corner[0]], mesh_screen[corner[1]], mesh_screen[corner[2]]
                at = place_of(sx, sy, shift)
                w = weights(a, b, c, at[0], at[1])
                w *= ti.Vector([a[2], b[2], c[2]])
                w /= ti.max(w[0] + w[1] + w[2], 1e-9)
                world = (
                    mesh_world[corner[0]] * w[0]
                    + mesh_world[corner[1]] * w[1]
                    + mesh_world[corner[2]] * w[2]
                )
                scalp = (
                    mesh_rest[corner[0]][7] * w[0]
                    + mesh_rest[corner[1]][7] * w[1]
                    + mesh_rest[corner[2]][7] * w[2]
                )
                p = ti.Vector([world[0], world[1], world[2]])
                normal = unit(ti.Vector([world[3], world[4], world[5]]))
                q = to_grid(view, box, slot, cells, p + normal * 0.004)
                # Past the grid's sides nothing is known; below it the shadow goes on as it left it.
                near_side = ti.min(q[0], q[1], cells - q[0], cells - q[1])
                known = ti.min(ti.max(0.3 * near_side - 0.3, 0.0), 1.0)
                lit = ti.Vector([0.0, 1.0])
                if known > 0.0:
                    sampled = lightness(light, slot * cells * cells * cells, cells, q)
                    lit = lit * (1.0 - known) + sampled * known
                scalp = ti.min(ti.max(scalp, 0.0), 1.0)
                skin = (
                    vec(mesh_rest[corner[0]], 8) * w[0]
                    + vec(mesh_rest[corner[1]], 8) * w[1]
                    + vec(mesh_rest[corner[2]], 8) * w[2]
                )
                base = skin * (1.0 - scalp) + row(look, slot, ROOT_COLOR) * (0.55 * scalp)
                to_eye = unit(vec(view, EYE) - p)
                toward = vec(view, LIGHT_AXES + 6)
                facing = normal.dot(toward)
                # Skin lets light around the edge of its shadow, red the farthest.
                wrap = ti.Vector([0.34, 0.20, 0.16]) * (1.0 - scalp)
                diffuse = ti.max((facing + wrap) / (1.0 + wrap), 0.0)
                shadow = ti.exp(-KEY_DENSITY * 1.3 * lit[0])
                half_way = unit(toward + to_eye)
                gleam = ti.pow(ti.max(normal.dot(half_way), 0.0), 22.0) * 0.045 * (1.0 - scalp)
                sky = ti.min(1.0, 1.75 * lit[1])
                edge_light = ti.max(normal.dot(vec(view, RIM)), 0.0)
                up_share = 0.62 + 0.38 * normal.dot(vec(view, WORLD_UP))
                lightly = vec(view, KEY_COLOR) * (shadow * 0.36)
                shown = lightly * (base * diffuse + gleam * ti.max(facing, 0.0) * 3.0)
                shown += vec(view, RIM_COLOR) * base * (edge_light * sky * sky * 0.35)
                shown += vec(view, SKY_COLOR) * base * (sky * up_share * 0.52 + 0.02)
                skin_number, skin_seen = number, soft_clip(shown)
                total += skin_seen
                covered += 1.0
        count = ti.cast(samples * samples, ti.f32)
        alpha = 1.0
        if view[TRANSPARENT] > 0.5:
            alpha = covered / count
            total /= ti.max(covered, 1.0)
        else:
            total /= count
        # Less than a step of noise, the same in every picture, hides the steps of a smooth
        # background.
        noise = (
            ti.cast(scramble(ti.cast(x * height + y, ti.u32)) & ti.u32(255), ti.f32) / 255.0 - 0.5
        )
        code = ti.cast(
            ti.min(ti.max(encode(total) * 255.0 + 0.5 + 0.7 * noise, 0.0), 255.0), ti.u32
        )
        top = ti.cast(alpha * 255.0 + 0.5, ti.u32)
        pixel_out[y * width + x] = (
            code[0] | (code[1] << ti.u32(8)) | (code[2] << ti.u32(16)) | (top << ti.u32(24))
        )


@ti.kernel
def copy_pixels(
    # layout
    pixel_count: ti.i32,
    channels: ti.template(),
    # state in
    pixel: ti.template(),
    # out
    image_out: ti.types.ndarray(dtype=ti.u8, ndim=2),
):
    """Copy a picture to the host, a byte for each channel.

    Args:
        pixel_count: Pixels.
        channels: 3, or 4 with alpha.
        pixel: sRGB and alpha, a byte each, red lowest.
        image_out: Shape (pixels, channels).
    """
    for i in range(pixel_count):
        code = pixel[i]
        for c in ti.static(range(channels)):
            image_out[i, c] = ti.cast((code >> ti.u32(8 * c)) & ti.u32(255), ti.u8)
