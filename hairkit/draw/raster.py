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
    parts: ti.i32,
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
    """Rasterise faces of a mesh, one thread for every so many rows of a face.

    Args:
        mode: How samples are stored, see `mark`.
        face_first: Row of the first face.
        face_count: Faces.
        sample_first: First sample of the picture.
        columns: Samples across.
        rows: Samples down.
        second: 0 for pass one, 1 for pass two.
        parts: Threads for each face, which take its rows in turn.
        shift: How far samples are moved, as in `place_of` [samples].
        mesh_face: Three vertices and the head of each face.
        mesh_screen: Right, down [samples], and what grows towards the viewer; zero where it cannot
            be seen.
        sample_key_out: Bits of the nearest.
        sample_id_out: Number of the nearest.
        changed_out: Row 0 becomes 1 where plain stores changed anything.
    """
    for n in range(face_count * parts):
        face = face_first + n // parts
        corner = mesh_face[face]
        a, b, c = mesh_screen[corner[0]], mesh_screen[corner[1]], mesh_screen[corner[2]]
        if a[2] > 0.0 and b[2] > 0.0 and c[2] > 0.0:
            low_x, high_x = ti.min(a[0], b[0], c[0]), ti.max(a[0], b[0], c[0])
            low_y, high_y = ti.min(a[1], b[1], c[1]), ti.max(a[1], b[1], c[1])
            i0 = ti.max(ti.cast(ti.floor(ti.max(low_x, 0.0) - 0.5), ti.i32), 0)
            i1 = ti.min(ti.cast(ti.min(high_x, 1.0 * columns) + 0.5, ti.i32) + 1, columns)
            k0 = ti.max(ti.cast(ti.floor(ti.max(low_y, 0.0) - 0.5), ti.i32), 0)
            k1 = ti.min(ti.cast(ti.min(high_y, 1.0 * rows) + 0.5, ti.i32) + 1, rows)
            k0 += n % parts
            turns = (k1 - k0 + parts - 1) // parts
            # Each corner's weight, and with them the key, grows evenly across and down.
            area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
            safe = ti.max(ti.abs(area), 1e-12) * (1.0 if area >= 0.0 else -1.0)
            b_across, b_down = (c[1] - a[1]) / safe, (a[0] - c[0]) / safe
            c_across, c_down = (a[1] - b[1]) / safe, (b[0] - a[0]) / safe
            for i in range(i0, i1):
                for turn_index in range(turns):
                    k = k0 + turn_index * parts
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
