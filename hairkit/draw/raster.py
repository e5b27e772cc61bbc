"""Kernels of the visibility buffer: which hair segment or mesh face each sample shows.

Each sample keeps its nearest inverse distance (the bits of a positive f32, whose order is the
number's) and, of the pieces at that distance, the smallest number. Where 64 bits can be compared
and stored at once that is one pass. Elsewhere pass one finds the distance and pass two, which is
the same kernel so that it computes the same bits, the number. No result depends on the order of
threads. Samples lie column by column, as most hair hangs. Inverse distance is linear on the screen.
"""

from hairkit.backend import ti
from hairkit.draw.expand import BODY, HEAD, triple, turn, unit
from hairkit.draw.shade import (
    EYE,
    FOCAL,
    FORWARD,
    HEIGHT,
    LIGHT_AXES,
    LIGHT_KEY,
    NEAR,
    RIGHT,
    SAMPLES,
    UP,
    WIDTH,
    to_grid,
    vec,
)

TILE = 8
"""Samples across a tile."""
ATOMIC, PLAIN, PACKED = 0, 1, 2
"""How samples are stored: by atomics of 32 bits in two passes, by plain stores again and again
until nothing changes, by atomics of 64 bits in one pass."""
ALL, EIGHTH, EVEN, ODD = range(4)
"""Which hairs a launch draws: all, every eighth, every second that is no eighth, the others."""
NOTHING = 2147483647
"""Number of a sample that shows the background; faces count down from -1, hair rows up from 0."""


@ti.kernel
def clear(
    # layout
    sample_count: ti.i32,
    slot_count: ti.i32,
    cell_count: ti.i32,
    tile_count: ti.i32,
    # out
    mode: ti.template(),
    sample_key_out: ti.template(),
    sample_id_out: ti.template(),
    sample_best_out: ti.template(),
    box_out: ti.template(),
    density_out: ti.template(),
    tile_key_out: ti.template(),
):
    """Start a picture: no sample shows anything, boxes and grids are empty.

    Args:
        sample_count: Samples, those of the view from the light included.
        slot_count: Heads.
        cell_count: Cells of all grids.
        tile_count: Tiles of the picture.
        mode: How samples are stored.
        sample_key_out: Bits of the nearest inverse distance.
        sample_id_out: Number of what is nearest.
        sample_best_out: Both in one, where they are stored so.
        box_out: Box of each head.
        density_out: Points in each cell.
        tile_key_out: Bits of the farthest that each tile shows.
    """
    for i in range(sample_count):
        sample_key_out[i] = 0
        if ti.static(mode == PACKED):
            sample_best_out[i] = ti.u64(0)
        else:
            sample_id_out[i] = NOTHING
    for i in range(slot_count):
        for c in ti.static(range(3)):
            box_out[i][c] = NOTHING
            box_out[i][c + 3] = -NOTHING
    for i in range(cell_count):
        density_out[i] = 0
    for i in range(tile_count):
        tile_key_out[i] = 0


@ti.kernel
def clear_keys(
    # layout
    sample_first: ti.i32,
    sample_count: ti.i32,
    # out
    sample_key_out: ti.template(),
):
    """Empty the view from the light for the next head.

    Args:
        sample_first: First sample.
        sample_count: Samples.
        sample_key_out: Bits of the nearest.
    """
    for i in range(sample_first, sample_first + sample_count):
        sample_key_out[i] = 0


@ti.kernel
def pose_mesh(
    # layout
    vertex_first: ti.i32,
    vertex_count: ti.i32,
    slot: ti.i32,
    cells: ti.i32,
    from_light: ti.i32,
    # control
    hair: ti.types.ndarray(dtype=ti.f32, ndim=1),
    view: ti.types.ndarray(dtype=ti.f32, ndim=1),
    # model
    mesh_rest: ti.template(),
    # state in
    box: ti.template(),
    # out
    mesh_world_out: ti.template(),
    mesh_screen_out: ti.template(),
):
    """Put vertices where head and body carry them, then on the screen or in the light's grid.

    Args:
        vertex_first: Row of the first vertex.
        vertex_count: Vertices.
        slot: This head's box.
        cells: Cells along each axis of its grid.
        from_light: 1 to look along the key light into the grid, 0 for the camera.
        hair: Numbers of this head, laid out as in `expand`.
        view: Numbers of the picture, laid out as in `shade`.
        mesh_rest: Position, normal, share that follows the head, share that is scalp, colour; in
            the head's frame.
        box: Box of each head on the light's axes.
        mesh_world_out: Position [m] and normal.
        mesh_screen_out: Right and down [samples or cells], and what grows towards the viewer.
    """
    for v in range(vertex_first, vertex_first + vertex_count):
        rest = mesh_rest[v]
        p = ti.Vector([rest[0], rest[1], rest[2]])
        normal = ti.Vector([rest[3], rest[4], rest[5]])
        by_head = turn(hair, HEAD, p) + triple(hair, HEAD + 9)
        by_body = turn(hair, BODY, p) + triple(hair, BODY + 9)
        x = by_head * rest[6] + by_body * (1.0 - rest[6])
        normal = unit(
            turn(hair, HEAD, normal) * rest[6] + turn(hair, BODY, normal) * (1.0 - rest[6])
        )
        mesh_world_out[v] = ti.Vector([x[0], x[1], x[2], normal[0], normal[1], normal[2]])
        if from_light == 1:
            q = to_grid(view, box, slot, cells, x)
            height = x.dot(vec(view, LIGHT_AXES + 6)) - box[slot][2] * 1e-4
            mesh_screen_out[v] = ti.Vector([q[0], q[1], height + LIGHT_KEY])
        else:
            from_eye = x - vec(view, EYE)
            deep = from_eye.dot(vec(view, FORWARD))
            inverse = 1.0 / ti.max(deep, view[NEAR])
            scale = view[FOCAL] * inverse
            right = 0.5 * view[WIDTH] + from_eye.dot(vec(view, RIGHT)) * scale
            down = 0.5 * view[HEIGHT] - from_eye.dot(vec(view, UP)) * scale
            ahead = 1.0 if deep > view[NEAR] else 0.0
            mesh_screen_out[v] = ti.Vector(
                [right * view[SAMPLES], down * view[SAMPLES], inverse * ahead]
            )


@ti.func
def place_of(i, k, shift):
    """Return where a sample of column i and row k is [samples].

    Odd rows and columns are moved on, even ones back: two samples across a pixel then see edges
    that hang or lie at four places instead of two.
    """
    x = i + 0.5 + shift * (2 * (k & 1) - 1)
    y = k + 0.5 + shift * (2 * (i & 1) - 1)
    return ti.Vector([x, y])


@ti.func
def weights(a, b, c, x, y):
    """Return how much of each corner a place in a triangle has; all positive inside."""
    area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    size = ti.max(ti.abs(area), 1e-12)
    safe = size if area >= 0.0 else -size
    wb = ((x - a[0]) * (c[1] - a[1]) - (y - a[1]) * (c[0] - a[0])) / safe
    wc = ((b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0])) / safe
    return ti.Vector([1.0 - wb - wc, wb, wc])


@ti.func
def packed(key, number):
    """Return bits of the inverse distance, and below them of the number, the smallest on top."""
    high = ti.cast(ti.cast(ti.bit_cast(key, ti.i32), ti.u32), ti.u64) << ti.u64(32)
    return high | ti.cast(ti.cast(NOTHING - number, ti.u32), ti.u64)


@ti.func
def wins(mode: ti.template(), sample, key, number, second, sample_key: ti.template()):
    """Return whether a piece is nearer than what a sample has: in pass two, whether it is that."""
    better = False
    if ti.static(mode == PACKED):
        better = packed(key, number) > sample_key[sample]
    elif second == 0:
        better = ti.bit_cast(key, ti.i32) > sample_key[sample]
    else:
        better = ti.bit_cast(key, ti.i32) == sample_key[sample]
    return better


@ti.func
def mark(
    mode: ti.template(),
    sample,
    key,
    number,
    second,
    sample_key: ti.template(),
    sample_id: ti.template(),
    changed: ti.template(),
):
    """Store a piece that `wins` a sample.

    Plain stores may lose to each other, but only a stored value that is better than the one
    read, so launches repeated until nothing changes end with what atomics give at once.
    """
    if ti.static(mode == PACKED):
        ti.atomic_max(sample_key[sample], packed(key, number))
    elif second == 0:
        bits = ti.bit_cast(key, ti.i32)
        if ti.static(mode == PLAIN):
            sample_key[sample] = bits
            changed[0] = 1
        else:
            ti.atomic_max(sample_key[sample], bits)
    elif ti.static(mode == PLAIN):
        if number < sample_id[sample]:
            sample_id[sample] = number
            changed[0] = 1
    else:
        ti.atomic_min(sample_id[sample], number)


@ti.func
def key_of(mode: ti.template(), value):
    """Return the bits of the inverse distance in what a sample stores."""
    bits = 0
    if ti.static(mode == PACKED):
        bits = ti.cast(ti.cast(value >> ti.u64(32), ti.u32), ti.i32)
    else:
        bits = value
    return bits


@ti.kernel
def unpack(
    # layout
    sample_count: ti.i32,
    # state in
    sample_best: ti.template(),
    # out
    sample_id_out: ti.template(),
    shown_out: ti.template(),
):
    """Tell each sample's number, and each hair segment whether it is seen.

    Args:
        sample_count: Samples of the picture.
        sample_best: Bits of the nearest inverse distance, and below them of its number.
        sample_id_out: Number of what is nearest.
        shown_out: 1 where the segment that begins here is seen.
    """
    for i in range(sample_count):
        both = sample_best[i]
        number = NOTHING - ti.cast(ti.cast(both & ti.u64(0xFFFFFFFF), ti.u32), ti.i32)
        sample_id_out[i] = number
        if number >= 0 and number != NOTHING:
            shown_out[number] = 1


@ti.kernel
def try_atomics(
    # layout
    turns: ti.i32,
    # out
    changed_out: ti.template(),
):
    """Count to `turns` with atomics inside a loop, which some software Vulkan drivers cannot.

    In Mesa 22.3's lavapipe a thread ends at the first atomic inside a loop.

    Args:
        turns: How far to count.
        changed_out: Row 1 becomes `turns` where atomics work.
    """
    for _ in range(1):
        for i in range(turns):
            ti.atomic_max(changed_out[1], i + 1)


@ti.kernel
def draw_mesh(
    # layout
    mode: ti.template(),
    face_first: ti.i32,
    face_count: ti.i32,
    sample_first: ti.i32,
    columns: ti.i32,
    rows: ti.i32,
    second: ti.i32,
    shift: ti.f32,
    # model
    mesh_face: ti.template(),
    # state in
    mesh_screen: ti.template(),
    # out
    sample_key_out: ti.template(),
    sample_id_out: ti.template(),
    changed_out: ti.template(),
):
    """Rasterise faces of a mesh, one thread a face.

    Args:
        mode: How samples are stored, see `mark`.
        face_first: Row of the first face.
        face_count: Faces.
        sample_first: First sample of the picture.
        columns: Samples across.
        rows: Samples down.
        second: 0 for pass one, 1 for pass two.
        shift: How far samples are moved, as in `place_of` [samples].
        mesh_face: Three vertices and the head of each face.
        mesh_screen: Right, down [samples], and what grows towards the viewer; zero where it cannot
            be seen.
        sample_key_out: Bits of the nearest.
        sample_id_out: Number of the nearest.
        changed_out: Row 0 becomes 1 where plain stores changed anything.
    """
    for face in range(face_first, face_first + face_count):
        corner = mesh_face[face]
        a, b, c = mesh_screen[corner[0]], mesh_screen[corner[1]], mesh_screen[corner[2]]
        if a[2] > 0.0 and b[2] > 0.0 and c[2] > 0.0:
            low_x, high_x = ti.min(a[0], b[0], c[0]), ti.max(a[0], b[0], c[0])
            low_y, high_y = ti.min(a[1], b[1], c[1]), ti.max(a[1], b[1], c[1])
            i0 = ti.max(ti.cast(ti.floor(ti.max(low_x, 0.0) - 0.5), ti.i32), 0)
            i1 = ti.min(ti.cast(ti.min(high_x, 1.0 * columns) + 0.5, ti.i32) + 1, columns)
            k0 = ti.max(ti.cast(ti.floor(ti.max(low_y, 0.0) - 0.5), ti.i32), 0)
            k1 = ti.min(ti.cast(ti.min(high_y, 1.0 * rows) + 0.5, ti.i32) + 1, rows)
            # Each corner's weight, and with them the key, grows evenly across and down.
            area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
            safe = ti.max(ti.abs(area), 1e-12) * (1.0 if area >= 0.0 else -1.0)
            b_across, b_down = (c[1] - a[1]) / safe, (a[0] - c[0]) / safe
            c_across, c_down = (a[1] - b[1]) / safe, (b[0] - a[0]) / safe
            for i in range(i0, i1):
                for k in range(k0, k1):
                    at = place_of(i, k, shift)
                    x, y = at[0] - a[0], at[1] - a[1]
                    wb = x * b_across + y * b_down
                    wc = x * c_across + y * c_down
                    wa = 1.0 - wb - wc
                    if wa >= 0.0 and wb >= 0.0 and wc >= 0.0:
                        key = wa * a[2] + wb * b[2] + wc * c[2]
                        place = sample_first + i * rows + k
                        if wins(mode, place, key, -1 - face, second, sample_key_out):
                            mark(
                                mode,
                                place,
                                key,
                                -1 - face,
                                second,
                                sample_key_out,
                                sample_id_out,
                                changed_out,
                            )


@ti.kernel
def farthest(
    # layout
    mode: ti.template(),
    columns: ti.i32,
    rows: ti.i32,
    # state in
    sample_key: ti.template(),
    # out
    tile_key_out: ti.template(),
):
    """Find the farthest thing that each tile of the picture shows: what lies behind it is hidden.

    Args:
        mode: How samples are stored.
        columns: Samples across the picture.
        rows: Samples down the picture.
        sample_key: What samples store.
        tile_key_out: Bits of the least of them in each tile, column by column.
    """
    down = (rows + TILE - 1) // TILE
    for tile in range((columns + TILE - 1) // TILE * down):
        i0 = tile // down * TILE
        k0 = (tile - tile // down * down) * TILE
        least = NOTHING
        for i in range(i0, ti.min(i0 + TILE, columns)):
            for k in range(k0, ti.min(k0 + TILE, rows)):
                least = ti.min(least, key_of(mode, sample_key[i * rows + k]))
        tile_key_out[tile] = least


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
