"""The one place where drawing allocates Taichi fields.

Fields cannot be freed, and a kernel compiles again for each new field, so each grows in powers of
two and starts large enough for a usual head and picture.
"""

from typing import Any

from hairkit.backend import Launcher, ti
from hairkit.draw.tables import Tables

_KINDS: dict[str, tuple[int, int]] = {
    # name: (components, rows at first)
    "strand_frame": (12, 2**10),
    "guide_side": (3, 2**13),
    "hair_trait": (20, 2**15),
    "guide_rest": (3, 2**10),
    "guide_frame": (6, 2**10),
    "guide_turn": (9, 2**10),
    "line": (5, 2**10),
    "line_share": (7, 2**10),
    "point": (3, 2**20),
    "color": (3, 2**20),
    "screen": (4, 2**20),
    "distance": (1, 2**20),
    "mesh_rest": (12, 2**14),
    "mesh_world": (6, 2**14),
    "mesh_screen": (3, 2**14),
    "light": (2, 2**21),
}
_WHOLE_KINDS: dict[str, tuple[int, int]] = {
    "hair_strand": (2, 2**15),
    "line_guide": (3, 2**10),
    "mesh_face": (4, 2**15),
    "density": (1, 2**21),
    "box": (6, 2**4),
    "changed": (1, 2),
    "shown": (1, 2**20),
    "tile_key": (1, 2**16),
    "sample_key": (1, 2**22),
    "sample_id": (1, 2**22),
}


class Fields:
    """Named fields that only ever grow.

    Attributes are Taichi fields: vectors of f32 or i32, plain scalars where a row has one
    component.
    """

    owner: Any = None
    """The renderer whose heads lie in them; another one lays its own out anew."""

    def __init__(self) -> None:
        """Start with nothing allocated."""
        self._rows: dict[str, int] = {}
        self.launch = Launcher()
        self.tables = Tables()

    def ensure(self, name: str, rows: int) -> Any:
        """Return a field of at least so many rows; growing it loses what it held.

        Args:
            name: One of the names in this module's tables.
            rows: Rows that are needed.
        """
        if self._rows.get(name, 0) < rows:
            whole = name in _WHOLE_KINDS
            components, first = (_WHOLE_KINDS if whole else _KINDS)[name]
            size = _grown(first, rows)
            kind = ti.i32 if whole else ti.f32
            if components == 1:
                setattr(self, name, ti.field(kind, shape=size))
            else:
                setattr(self, name, ti.Vector.field(components, kind, shape=size))
            self._rows[name] = size
        return getattr(self, name)

    def best(self, rows: int) -> Any:
        """Return a field of 64-bit samples of at least so many rows."""
        return self._plain("sample_best", ti.u64, 2**10, rows)

    def picture(self, rows: int) -> Any:
        """Return a field of packed pixels, four bytes each, of at least so many rows."""
        return self._plain("pixel", ti.u32, 2**20, rows)

    def _plain(self, name: str, kind: Any, first: int, rows: int) -> Any:
        """Return a field of one number a row; growing it loses what it held."""
        if self._rows.get(name, 0) < rows:
            size = _grown(first, rows)
            setattr(self, name, ti.field(kind, shape=size))
            self._rows[name] = size
        return getattr(self, name)

    def bytes(self) -> int:
        """Return how many bytes of device memory the fields take."""
        parts = {**_KINDS, **_WHOLE_KINDS, "pixel": (1, 0), "sample_best": (2, 0)}
        return sum(4 * rows * parts[name][0] for name, rows in self._rows.items())

    def __getattr__(self, name: str) -> Any:
        """Say which field has not been allocated."""
        raise AttributeError(f"drawing field {name!r} has not been allocated")


def _grown(first: int, rows: int) -> int:
    """Return the rows of a field that holds so many: doubled as often as it takes."""
    size = first
    while size < rows:
        size *= 2
    return size


def shared_fields(session: Any) -> Fields:
    """Return the session's drawing fields, the same for all its worlds: kernels compile once."""
    return session.shared.setdefault("drawing", Fields())
