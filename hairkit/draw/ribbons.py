"""The kernel that puts hairs into the visibility buffer, as ribbons that face the camera."""

from hairkit.backend import ti
from hairkit.draw.raster import PACKED, TILE, mark, wins

ALL, EIGHTH, EVEN, ODD = range(4)
"""Which hairs a launch draws: all, every eighth, every second that is no eighth, the others."""


@ti.func
def hidden(tile_key: ti.template(), rows, low_x, high_x, low_y, high_y, key):
    """Return whether every tile that a box of samples touches shows only nearer things."""
    down = (rows + TILE - 1) // TILE
    bits = ti.bit_cast(key, ti.i32)
    behind = 1
    for i in range(low_x // TILE, high_x // TILE + 1):
        for k in range(low_y // TILE, high_y // TILE + 1):
            if bits >= tile_key[i * down + k]:
                behind = 0
                break
        if behind == 0:
            break
    return behind


@ti.kernel
def draw_hairs(
    # layout
    mode: ti.template(),
    hair_count: ti.i32,
    hair_share: ti.i32,
    point_count: ti.i32,
    point_first: ti.i32,
    samples: ti.i32,
    columns: ti.i32,
    rows: ti.i32,
    second: ti.i32,
    shift: ti.f32,
    # state in
    screen: ti.template(),
    tile_key: ti.template(),
    # out
    sample_key_out: ti.template(),
    sample_id_out: ti.template(),
    changed_out: ti.template(),
    shown_out: ti.template(),
):
    """Rasterise ribbons that face the camera, one thread a segment.

    A thread walks sample by sample along the segment's longer direction, so thin lines have no
    gaps; ends of wide ribbons are round, so joints have none either. Most segments lie under
    others: those behind all that their tiles show are left out, which changes nothing in the
        picture.

    Args:
        mode: How samples are stored, see `mark`.
        hair_count: Drawn hairs.
        hair_share: Which of them this launch draws: ALL, EIGHTH, EVEN or ODD.
        point_count: Points of each.
        point_first: Row of the first point.
        samples: Samples across a pixel.
        columns: Samples across the picture.
        rows: Samples down the picture.
        second: 0 for pass one, 1 for pass two.
        shift: How far samples are moved, as in `place_of` [samples].
        screen: Right, down [pixels], inverse distance [1/m], half width [pixels].
        tile_key: Bits of the farthest that each tile shows; zero leaves nothing out.
        sample_key_out: Bits of the nearest.
        sample_id_out: Number of the nearest.
        changed_out: Row 0 becomes 1 where plain stores changed anything.
        shown_out: 1 where the segment that begins here is seen, written in pass two.
    """
    eighth = (hair_count + 7) // 8
    drawn = hair_count
    if hair_share == EIGHTH:
        drawn = eighth
    elif hair_share == EVEN:
        drawn = (hair_count + 1) // 2 - eighth
    elif hair_share == ODD:
        drawn = hair_count // 2
    for n in range(drawn * (point_count - 1)):
        h = n // (point_count - 1)
        j = n - h * (point_count - 1)
        if hair_share == EIGHTH:
            h *= 8
        elif hair_share == EVEN:
            h = h // 3 * 8 + h % 3 * 2 + 2
        elif hair_share == ODD:
            h = h * 2 + 1
        at = point_first + h * point_count + j
        seen = 0
        a, b = screen[at], screen[at + 1]
        per = ti.cast(samples, ti.f32)
        # Where it can be, with room for its width, for round ends and for samples that are moved.
        room_around = 1.5 * ti.max(a[3], b[3]) * per + 2.0
        left = ti.min(a[0], b[0]) * per - room_around
        right = ti.max(a[0], b[0]) * per + room_around
        top = ti.min(a[1], b[1]) * per - room_around
        bottom = ti.max(a[1], b[1]) * per + room_around
        seeable = a[2] > 0.0 and b[2] > 0.0
        seeable = seeable and right > 0.0 and bottom > 0.0 and left < columns and top < rows
        if seeable:
            x0, x1 = ti.cast(ti.max(left, 0.0), ti.i32), ti.cast(right, ti.i32)
            y0, y1 = ti.cast(ti.max(top, 0.0), ti.i32), ti.cast(bottom, ti.i32)
            nearest = ti.max(a[2], b[2])
            x1, y1 = ti.min(x1, columns - 1), ti.min(y1, rows - 1)
            seeable = hidden(tile_key, rows, x0, x1, y0, y1, nearest) == 0
        if seeable:
            steep = ti.abs(b[1] - a[1]) > ti.abs(b[0] - a[0])
            ua, va = a[0] * per, a[1] * per
            ub, vb = b[0] * per, b[1] * per
            u_end, v_end = columns, rows
            if steep:
                ua, va = a[1] * per, a[0] * per
                ub, vb = b[1] * per, b[0] * per
                u_end, v_end = rows, columns
            ka, kb, wa, wb = a[2], b[2], a[3] * per, b[3] * per
            if ub < ua:
                ua, ub = ub, ua
                va, vb = vb, va
                ka, kb = kb, ka
                wa, wb = wb, wa
            per_span = 1.0 / ti.max(ub - ua, 1e-6)
            slope = (vb - va) * per_span
            slant = ti.sqrt(1.0 + ti.min(slope * slope, 1.0))
            widest = ti.max(wa, wb)
            cap = widest if widest > 1.5 else 0.0
            i0 = ti.max(ti.cast(ti.floor(ti.max(ua - cap, 0.0) - 0.5 - shift) + 1.0, ti.i32), 0)
            i1 = ti.cast(ti.ceil(ti.min(ub + cap, 1.0 * u_end) - 0.5 + shift), ti.i32)
            i1 = ti.min(i1, u_end)
            room = widest * slant + shift * ti.min(ti.abs(slope), 1.0)
            stride_u = 1 if steep else rows
            stride_v = rows if steep else 1
            dk, dw = (kb - ka) * per_span, (wb - wa) * slant * per_span
            # Columns between the ends, where no sample is moved past one.
            j0 = ti.min(ti.max(ti.cast(ti.ceil(ua + shift - 0.5), ti.i32), i0), i1)
            j1 = ti.min(ti.max(ti.cast(ti.floor(ub - shift - 0.5), ti.i32) + 1, j0), i1)
            for e in range(i0, i1 - (j1 - j0)):
                i = e
                if e >= j0:
                    i = e + (j1 - j0)
                # Samples as `place_of` has them; its rule is the same with across and down
                # exchanged.
                lift = 0.5 + shift * (2 * (i & 1) - 1)
                guess = va + slope * (ti.min(ti.max(i + 0.5, ua), ub) - ua)
                k0 = ti.cast(ti.ceil(ti.max(guess - room - lift, 0.0)), ti.i32)
                k1 = ti.cast(ti.ceil(ti.min(guess + room - lift, v_end - 0.5)), ti.i32)
                for k in range(k0, k1):
                    u = i + 0.5 + shift * (2 * (k & 1) - 1)
                    held = ti.min(ti.max(u, ua), ub)
                    # Exactly zero between the ends, however the compiler rounds.
                    over = u - held
                    held -= ua
                    half = wa * slant + dw * held
                    off = k + lift - (va + slope * held)
                    if cap > 0.0 and over != 0.0:
                        # The round end of a ribbon that is wide enough to show one.
                        half = ti.sqrt(ti.max(cap * cap - over * over, 0.0))
                    if u >= ua - cap and u < ub + cap and off >= -half and off < half:
                        sample = i * stride_u + k * stride_v
                        key = ka + dk * held
                        if wins(mode, sample, key, at, second, sample_key_out):
                            seen = 1
                            mark(
                                mode,
                                sample,
                                key,
                                at,
                                second,
                                sample_key_out,
                                sample_id_out,
                                changed_out,
                            )
            for i in range(j0, j1):
                lift = 0.5 + shift * (2 * (i & 1) - 1)
                along = i + 0.5 - ua
                middle = va + slope * along - lift
                k0 = ti.max(ti.cast(ti.ceil(middle - room), ti.i32), 0)
                k1 = ti.min(ti.cast(ti.ceil(middle + room), ti.i32), v_end)
                half_here = wa * slant + dw * along
                sample = i * stride_u + k0 * stride_v
                for k in range(k0, k1):
                    moved = shift * (2 * (k & 1) - 1)
                    key = ka + dk * (along + moved)
                    # Most samples show something nearer: asked first, that costs least.
                    if wins(mode, sample, key, at, second, sample_key_out):
                        off = k - middle - slope * moved
                        half = half_here + dw * moved
                        if off >= -half and off < half:
                            seen = 1
                            mark(
                                mode,
                                sample,
                                key,
                                at,
                                second,
                                sample_key_out,
                                sample_id_out,
                                changed_out,
                            )
                    sample += stride_v
        if ti.static(mode != PACKED):
            if second == 1:
                shown_out[at] = seen
