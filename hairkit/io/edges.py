"""Strands as lines between numbered vertices, the way of mesh formats."""

from pathlib import Path

import numpy as np

from hairkit.errors import FileError


def edges_of_strands(counts: np.ndarray) -> np.ndarray:
    """Return the two rows of each segment, strand by strand, shape (segments, 2), i32."""
    # Every point but a tip begins a segment.
    ends = np.cumsum(counts, dtype=np.int64)
    starts = np.delete(np.arange(ends[-1] if len(ends) else 0, dtype=np.int32), ends - 1)
    return np.stack([starts, starts + 1], axis=1)


def strands_of_edges(
    path: Path, edges: np.ndarray, vertices: int
) -> tuple[np.ndarray | None, np.ndarray]:
    """Find strands in edges: vertices in a row, each in two edges at most.

    A strand's root is the end that its edges lead away from; where they do not agree, the end of
    the lower number. A vertex without an edge is a strand of one point.

    Args:
        path: The file, for messages.
        edges: Vertex numbers of both ends, shape (edges, 2), whole numbers.
        vertices: How many vertices there are.

    Returns:
        The vertices strand by strand, None if they are so already; and the points of each strand.

    Raises:
        FileError: A number is out of range, lines branch, or a line is closed.
    """
    wrong = (edges < 0) | (edges >= vertices)
    if wrong.any():
        edge = int(wrong.any(axis=1).argmax())
        raise FileError(
            f"{path}: edge {edge} joins vertices {edges[edge].tolist()}, "
            f"expected numbers from 0 to {vertices - 1}"
        )
    edges = edges.astype(np.int64, copy=False)
    if (edges[:, 1] - edges[:, 0] == 1).all() and (np.diff(edges[:, 0]) > 0).all():
        joined = np.zeros(vertices, bool)
        joined[edges[:, 0]] = True
        return None, np.diff(np.flatnonzero(~joined), prepend=-1)
    edges = edges[edges[:, 0] != edges[:, 1]]
    sides = np.concatenate([edges, edges[:, ::-1]])
    sides = np.unique(sides, axis=0)
    degree = np.bincount(sides[:, 0], minlength=vertices)
    if (degree > 2).any():
        vertex = int(degree.argmax())
        raise FileError(
            f"{path}: {degree[vertex]} lines meet at vertex {vertex}, expected strands, "
            "which do not branch"
        )
    first = np.cumsum(degree) - degree
    arrives = np.bincount(edges[:, 1], minlength=vertices)
    ends = np.flatnonzero(degree < 2)
    # Roots that edges lead away from, then ends of which it is not known.
    ends = np.concatenate([ends[arrives[ends] == 0], ends[arrives[ends] > 0]])
    return _walked(path, ends, first, degree, sides[:, 1])


def _walked(
    path: Path, ends: np.ndarray, first: np.ndarray, degree: np.ndarray, other: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Follow each line from an end to its other end."""
    order = np.zeros(len(degree), np.int64)
    counts: list[int] = []
    seen = bytearray(len(degree))
    starts, sizes, others = (np.ascontiguousarray(a).data for a in (first, degree, other))
    place = 0
    for end in ends.tolist():
        if seen[end]:
            continue
        at, begun = end, place
        while True:
            seen[at] = 1
            order[place] = at
            place += 1
            for row in range(starts[at], starts[at] + sizes[at]):
                if not seen[others[row]]:
                    at = others[row]
                    break
            else:
                break
        counts.append(place - begun)
    if place < len(degree):
        raise FileError(
            f"{path}: the line through vertex {seen.index(0)} is closed, expected two ends"
        )
    return order, np.array(counts, np.int64)
