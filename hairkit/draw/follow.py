"""Kernels that move drawn hairs with lines of their own along with the guides that they follow.

A hair's place beside each of its guides at rest turns with that guide, as a rigid rod would, and is
put back beside where the guide is now. With guides at rest that gives the hair's own line again.
"""

from hairkit.backend import ti
from hairkit.draw.expand import KEEP_OUT_TURNS, SHIFT, on_curve, smooth, solid, triple, unit

PART_FROM, PART_AT = 0.15, 0.5
"""Places that two guides give a point may be this far apart, as a share of its hair's length up to
it, until the second guide begins to count less, and not at all."""

WEDGED = 5e-4
"""A point that two turns have left this deep has no room where it is [m]."""


@ti.kernel
def turn_guides(
    # layout
    strand_first: ti.i32,
    strand_count: ti.i32,
    rest_first: ti.i32,
    # model
    guide_start: ti.template(),
    guide_count: ti.template(),
    guide_frame: ti.template(),
    # state in
    guide_point: ti.template(),
    guide_side: ti.template(),
    # out
    guide_turn_out: ti.template(),
):
    """Work out how far each guide point has turned since the rest pose.

    Args:
        strand_first: Row of the first strand in the arena's tables.
        strand_count: Strands of this hair.
        rest_first: Row of the first guide point in `guide_frame`.
        guide_start: Row of each strand's first point.
        guide_count: Points of each strand.
        guide_frame: Unit vectors along and across the guide at rest, in the head's frame.
        guide_point: Guide points [m].
        guide_side: Unit vector across the guide at each of its points.
        guide_turn_out: Rotation from the head's frame at rest to the world, row by row.
    """
    for i in range(strand_count):
        start = guide_start[strand_first + i]
        last = guide_count[strand_first + i] - 1
        rest = rest_first + start - guide_start[strand_first]
        for p in range(last + 1):
            along = unit(
                guide_point[start + ti.min(p + 1, last)] - guide_point[start + ti.max(p - 1, 0)]
            )
            side = guide_side[start + p]
            other = along.cross(side)
            frame = guide_frame[rest + p]
            was_along = ti.Vector([frame[0], frame[1], frame[2]])
            was_side = ti.Vector([frame[3], frame[4], frame[5]])
            was_other = was_along.cross(was_side)
            for r in ti.static(range(3)):
                for c in ti.static(range(3)):
                    guide_turn_out[start + p][3 * r + c] = (
                        along[r] * was_along[c] + side[r] * was_side[c] + other[r] * was_other[c]
                    )


@ti.func
def keep_above(hair: ti.template(), whole: ti.template(), distance: ti.template(), x, least, guide):
    """Move a point out of head and body as far as it was out of them at rest.

    Where head and body leave no room, the point goes halfway to its guide's line in later turns.
    """
    for turn_index in range(KEEP_OUT_TURNS):
        answer = solid(hair, whole, distance, turn_index % 2, x)
        if answer[0] < least:
            x += ti.Vector([answer[1], answer[2], answer[3]]) * (least - answer[0])
            if turn_index > 3 and answer[0] < least - WEDGED:
                x += 0.5 * (guide - x)
    return x


@ti.kernel
def follow(
    # layout
    hair_count: ti.i32,
    point_count: ti.i32,
    point_first: ti.i32,
    strand_first: ti.i32,
    rest_first: ti.i32,
    line_first: ti.i32,
    line_point_first: ti.i32,
    # control
    hair: ti.types.ndarray(dtype=ti.f32, ndim=1),
    whole: ti.types.ndarray(dtype=ti.i32, ndim=1),
    # model
    guide_start: ti.template(),
    guide_count: ti.template(),
    guide_rest: ti.template(),
    line_guide: ti.template(),
    line_share: ti.template(),
    line: ti.template(),
    distance: ti.template(),
    # state in
    guide_point: ti.template(),
    guide_turn: ti.template(),
    # out
    point_out: ti.template(),
):
    """Make every point of one head's drawn hairs that have lines of their own.

    Args:
        hair_count: Drawn hairs.
        point_count: Points of each, at least two.
        point_first: Row of the first point in `point_out`.
        strand_first: Row of the first strand in the arena's tables.
        rest_first: Row of the first guide point in `guide_rest`.
        line_first: Row of the first hair in `line_guide` and `line_share`.
        line_point_first: Row of the first point in `line`.
        hair: Numbers of this head, laid out as in `expand`.
        whole: Whole numbers of this head, laid out as in `expand`.
        guide_start: Row of each strand's first point.
        guide_count: Points of each strand.
        guide_rest: Guide points at rest in the head's frame [m].
        line_guide: Guides that each hair follows.
        line_share: How much each of these counts, then the hair's length as a share of theirs,
            then that length [m].
        line: Numbers of each point at rest, laid out as in `lines`.
        distance: Distances of every grid [m].
        guide_point: Guide points [m].
        guide_turn: How far each guide point has turned since the rest pose.
        point_out: Points of the drawn hairs [m].
    """
    for n in range(hair_count * point_count):
        h = n // point_count
        own = line[line_point_first + n]
        guides = line_guide[line_first + h]
        share = line_share[line_first + h]
        place = ti.Vector([own[0], own[1], own[2]])
        x = ti.Vector([0.0, 0.0, 0.0])
        nearest, first = x, x
        total = 0.0
        for leg in range(3):
            strand, weight, part = guides[0], share[0], share[3]
            if leg == 1:
                strand, weight, part = guides[1], share[1], share[4]
            elif leg == 2:
                strand, weight, part = guides[2], share[2], share[5]
            if weight > 0.0:
                start = guide_start[strand_first + strand]
                last = guide_count[strand_first + strand] - 1
                rest = rest_first + start - guide_start[strand_first]
                u = own[3] * part * last
                i = ti.min(ti.cast(u, ti.i32), last - 1)
                f = u - i
                was, _ = on_curve(guide_rest, rest, last, i, f)
                now, _ = on_curve(guide_point, start, last, i, f)
                turned = guide_turn[start + i] * (1.0 - f) + guide_turn[start + i + 1] * f
                beside = place - was
                aside = ti.Vector([0.0, 0.0, 0.0])
                for r in ti.static(range(3)):
                    aside[r] = (
                        turned[3 * r] * beside[0]
                        + turned[3 * r + 1] * beside[1]
                        + turned[3 * r + 2] * beside[2]
                    )
                # The mean of two turns shortens what it turns.
                size = aside.dot(aside)
                if size > 1e-16:
                    aside *= ti.sqrt(beside.dot(beside) / size)
                there = now + aside
                if leg == 0:
                    nearest, first = now, there
                # Guides that went different ways share no hair: between them it would shrink.
                apart = (there - first).norm() / ti.max(own[3] * share[6], 1e-6)
                weight *= 1.0 - smooth((apart - PART_FROM) / (PART_AT - PART_FROM))
                x += weight * there
                total += weight
        x /= total
        shift = triple(hair, SHIFT)
        point_out[point_first + n] = keep_above(
            hair, whole, distance, x + shift, own[4], nearest + shift
        )
