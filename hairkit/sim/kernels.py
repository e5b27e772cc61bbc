"""The solver's kernels: one launch moves every guide; the others load, read and shift hair.

The strand is a discrete elastic rod without a twist unknown, stepped implicitly (the rod after
Bergou et al. 2008, the direct solve of a chain after Deul et al. 2018): one linear solve for
bending, stretch, hold, drag, inertia and pressed contact together, then rounds of a direct length
solve (Han and Harada 2013) and contact, contact last.
"""

from hairkit.backend import ti
from hairkit.sim import columns as col
from hairkit.sim.bending import bend, eliminate, substitute
from hairkit.sim.contact import KNOWN_OWNER, push_out
from hairkit.sim.ends import finish, place_root, to_rest
from hairkit.sim.lengths import eliminate_lengths, substitute_lengths
from hairkit.sim.rod import pose_between, rotate, since

THREAD_TURNS = 512
"""Turns of a loop that Taichi 1.7.4 gives a CPU thread at a time, whatever ``block_dim`` says: all
but the first of each are empty, or a few chunks would all be one thread's."""


@ti.func
def move(
    arena: ti.template(),
    numbers: ti.template(),
    hair,
    b,
    s0,
    r0,
    count,
    h,
    before,
    alpha,
    trial,
    last,
):
    """Move a block through one tick.

    Args:
        arena: The fields.
        numbers: One row a hair, then one for each collider of each hair; see ``columns``.
        hair: The hair's row.
        b: The block.
        s0: Its first scratch row.
        r0: Its first row.
        count: Points of its strands.
        h: The tick [s].
        before: Where the tick began, as a fraction of the step.
        alpha: Where it ends.
        trial: Whether it is taken back after the view is written.
        last: Whether it is the step's last, which writes the view.

    Returns:
        How many strands of the block had gone bad.
    """
    radius = numbers[hair, col.RADIUS]
    contact_first = ti.cast(numbers[hair, col.CONTACT_FIRST], ti.i32)
    contact_count = ti.cast(numbers[hair, col.CONTACT_COUNT], ti.i32)
    rounds = ti.cast(numbers[hair, col.ROUNDS], ti.i32)
    turn, moved = pose_between(numbers, hair, col.POSE_BEFORE, col.POSE_NOW, alpha)
    u = 1.0 - alpha
    wind = (
        numbers[hair, col.WIND_BEFORE] * u + numbers[hair, col.WIND_NOW] * alpha,
        numbers[hair, col.WIND_BEFORE + 1] * u + numbers[hair, col.WIND_NOW + 1] * alpha,
        numbers[hair, col.WIND_BEFORE + 2] * u + numbers[hair, col.WIND_NOW + 2] * alpha,
    )
    place_root(arena, turn, moved, s0, r0)
    was, _ = pose_between(numbers, hair, col.POSE_BEFORE, col.POSE_NOW, before)
    rolled = since(turn, was)
    spin = (
        (rolled[0][0] - 1.0, rolled[0][1], rolled[0][2]),
        (rolled[1][0], rolled[1][1] - 1.0, rolled[1][2]),
        (rolled[2][0], rolled[2][1], rolled[2][2] - 1.0),
    )
    damping = numbers[hair, col.BEND_DAMPING] / h
    bend(arena, turn, b, s0, r0, count, damping, spin)
    eliminate(arena, numbers, hair, turn, moved, wind, h, s0, r0, count)
    substitute(arena, s0, r0, count, numbers[hair, col.TETHER])
    # Contact first, then rounds of length solve and contact; one call of each, since a
    # call is the function's code once more.
    # No break: forward mode knows none.
    going = 1
    for round_ in range(rounds + 1):
        bind = 1.0 if round_ < 3 else 0.0
        if round_ > 0 and going > 0:
            low = numbers[hair, col.STRAIN_LOW]
            high = numbers[hair, col.STRAIN_HIGH]
            left = eliminate_lengths(arena, s0, r0, count, low, high, bind)
            if round_ > 1 and left <= 0.0:
                going = 0
            else:
                substitute_lengths(arena, s0, r0, count, bind)
        # Hair settles its thickness away from a surface. Where that and the lengths do
        # not go together (pinched, or round something sharp) it may come closer, but
        # never inside.
        out = radius
        if round_ > 2:
            out = 0.25 * radius
        if going > 0:
            for c in range(contact_first, contact_first + contact_count):
                push_out(arena, numbers, c, round_ == 0, before, alpha, s0, r0, count, out)
    return finish(arena, turn, moved, b, h, s0, r0, count, trial, last)


@ti.kernel
def advance(
    # counts
    chunk_count: ti.i32,
    serial: ti.template(),
    # model and state
    arena: ti.template(),
    # control
    active: ti.types.ndarray(dtype=ti.i32, ndim=1),
    numbers: ti.types.ndarray(dtype=ti.f32, ndim=2),
):
    """Move every active block through a step: whole ticks, then a trial tick to its end.

    A tick changes the state. The trial tick, where the step ends between two ticks, is taken back
    after the caller's view is written, so that the motion depends on the clock alone and never on
    who calls how often.

    Args:
        chunk_count: Parts of the launch; a chunk's blocks share scratch rows on the CPU.
        serial: Whether chunks run in the calling thread, compiled in.
        arena: The fields.
        active: Blocks to move, shape (at least as many,).
        numbers: One row a hair, then one for each collider of each hair; see ``columns``.
    """
    turns = ti.static(1 if serial or arena.lanes == 1 else THREAD_TURNS)
    ti.loop_config(serialize=serial)
    for task in range(chunk_count * turns):
        chunk = task // turns
        each_blocks = ti.cast(numbers[0, col.CHUNK_BLOCKS], ti.i32)
        last = ti.min((chunk + 1) * each_blocks, ti.cast(numbers[0, col.ACTIVE_COUNT], ti.i32))
        if task % turns > 0:
            last = 0
        for q in range(chunk * each_blocks, last):
            b = active[q]
            r0 = arena.block_row[b]
            s0 = r0
            if ti.static(arena.lanes > 1):
                s0 = chunk * ti.static(arena.longest)
            count = arena.block_points[b]
            hair = arena.block_hair[b]
            ticks = ti.cast(numbers[hair, col.TICKS], ti.i32)
            trial_s = numbers[hair, col.TRIAL_S]
            total = ticks
            if trial_s > 0.0:
                total = ticks + 1
            first = numbers[hair, col.ALPHA_FIRST]
            each = numbers[hair, col.ALPHA_TICK]
            if numbers[hair, col.RESET] > 0.0:
                turn, moved = pose_between(numbers, hair, col.POSE_BEFORE, col.POSE_NOW, 1.0)
                to_rest(arena, turn, moved, r0, count)
            bad = 0
            for tick in range(total):
                trial = tick == ticks
                h = numbers[hair, col.TICK_S]
                alpha = first + tick * each
                if trial:
                    h = trial_s
                    alpha = 1.0
                before = alpha - each
                if trial:
                    before = first + (tick - 1) * each
                bad = bad + move(
                    arena,
                    numbers,
                    hair,
                    b,
                    s0,
                    r0,
                    count,
                    h,
                    before,
                    alpha,
                    trial,
                    tick == total - 1,
                )
            # After the ticks: on some software Vulkan drivers an atomic in a loop ends the loop.
            if bad > 0:
                ti.atomic_add(arena.hair_resets[hair], bad)


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
        rows: Rest point [m], rest curvature [m], bending [1/s^2], length [m], thickness as a share,
            shape (row_count, lanes, 9).
        frames: Normal of the root edge in the head's frame, shape (block_count, lanes, 3).
        blocks: Row after first_row, and points, of each block, shape (block_count, 2).
        arena: The fields.
    """
    for r in range(row_count):
        for c in ti.static(range(3)):
            _set_row(arena.row[col.REST + c], first_row + r, rows, r, c)
            _set_row(arena.row[col.CURVATURE + c], first_row + r, rows, r, c + 3)
        _set_row(arena.row[col.BEND], first_row + r, rows, r, 6)
        _set_row(arena.row[col.LENGTH], first_row + r, rows, r, 7)
        _set_row(arena.row[col.THICKNESS], first_row + r, rows, r, 8)
        for slot in ti.static(range(3)):
            # No collider's number: nothing is known.
            for lane in ti.static(range(arena.lanes)):
                owner = col.KNOWN_EACH * slot + KNOWN_OWNER
                if ti.static(arena.lanes > 1):
                    arena.known[first_row + r, owner][lane] = 0.0
                else:
                    arena.known[first_row + r, owner] = 0.0
    for b in range(block_count):
        for c in ti.static(range(3)):
            _set_row(arena.frame[c], first_block + b, frames, b, c)
        arena.block_row[first_block + b] = first_row + blocks[b, 0]
        arena.block_points[first_block + b] = blocks[b, 1]
        arena.block_hair[first_block + b] = hair
        arena.block_motion[first_block + b] = 0.0
        arena.hair_resets[hair] = 0


@ti.func
def _set_row(field: ti.template(), row, array: ti.template(), index, source: ti.template()):
    if ti.static(hasattr(field, "n")):
        for lane in ti.static(range(field.n)):
            field[row][lane] = array[index, lane, source]
    else:
        field[row] = array[index, 0, source]


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
    """Write where each strand's points are, and how many of them are not simulated.

    Args:
        strand_count: Strands of the hair.
        first_strand: Its first row in the strand table.
        hair: Its row in the table of numbers.
        table: Row, lane, first drawing point, points, and points before the first simulated one of
            each strand, shape (strand_count, 5).
        arena: The fields.
    """
    for s in range(strand_count):
        arena.strand_row[first_strand + s] = table[s, 0]
        arena.strand_lane[first_strand + s] = table[s, 1]
        arena.guide_start[first_strand + s] = table[s, 2]
        arena.guide_count[first_strand + s] = table[s, 3]
        arena.strand_rigid[first_strand + s] = table[s, 4]
        arena.strand_hair[first_strand + s] = hair


@ti.func
def seen_point(arena: ti.template(), numbers: ti.template(), strand, point):
    """Return where the caller sees a guide point, relative to its hair's origin."""
    hair = arena.strand_hair[strand]
    r = arena.strand_row[strand] + point * ti.static(arena.stride)
    x = ti.Vector([0.0, 0.0, 0.0])
    solid = numbers[hair, col.SOLID] > 0.0 or point < arena.strand_rigid[strand]
    for c in ti.static(range(3)):
        if ti.static(arena.lanes > 1):
            lane = arena.strand_lane[strand]
            x[c] = arena.row[col.REST + c][r][lane] if solid else arena.row[col.VIEW + c][r][lane]
        else:
            x[c] = arena.row[col.REST + c][r] if solid else arena.row[col.VIEW + c][r]
    if solid:
        turn, moved = pose_between(numbers, hair, col.POSE_BEFORE, col.POSE_NOW, 1.0)
        y = rotate(turn, x[0], x[1], x[2])
        for c in ti.static(range(3)):
            x[c] = y[c] + moved[c]
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
            arena.guide_point[arena.guide_start[s] + i] = seen_point(arena, numbers, s, i)


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
            x = seen_point(arena, numbers, s, i)
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
        arena.row[col.POSITION][r] = arena.row[col.POSITION][r] + dx
        arena.row[col.POSITION + 1][r] = arena.row[col.POSITION + 1][r] + dy
        arena.row[col.POSITION + 2][r] = arena.row[col.POSITION + 2][r] + dz
        arena.row[col.VIEW][r] = arena.row[col.VIEW][r] + dx
        arena.row[col.VIEW + 1][r] = arena.row[col.VIEW + 1][r] + dy
        arena.row[col.VIEW + 2][r] = arena.row[col.VIEW + 2][r] + dz


@ti.kernel
def carry_rows(
    # counts
    row_count: ti.i32,
    first_row: ti.i32,
    # control
    change: ti.types.ndarray(dtype=ti.f32, ndim=2),
    # state
    arena: ti.template(),
):
    """Carry a hair's points and their motion along rigidly.

    Args:
        row_count: Rows of the hair.
        first_row: Its first row.
        change: Rotation, and what is added after it, in the solver's unit, shape (3, 4).
        arena: The fields.
    """
    for r in range(first_row, first_row + row_count):
        for at in ti.static((col.POSITION, col.VELOCITY, col.VIEW, col.TOUCH)):
            x, y, z = arena.row[at][r], arena.row[at + 1][r], arena.row[at + 2][r]
            for c in ti.static(range(3)):
                moved = change[c, 0] * x + change[c, 1] * y + change[c, 2] * z
                if ti.static(at in (col.POSITION, col.VIEW)):
                    moved = moved + change[c, 3]
                arena.row[at + c][r] = moved


@ti.kernel
def load_grid(
    # counts
    count: ti.i32,
    first: ti.i32,
    # in
    values: ti.types.ndarray(dtype=ti.f32, ndim=2),
    # out
    arena: ti.template(),
):
    """Write a distance grid's values into the arena.

    Args:
        count: Cells of the grid.
        first: Where they go.
        values: Distance [m] and direction out of each cell, shape (count, 4).
        arena: The fields.
    """
    for i in range(count):
        for c in ti.static(range(4)):
            arena.grid_value[first + i][c] = values[i, c]


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
