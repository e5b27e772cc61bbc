"""Ties: bands on the scalp that gather hair, as part of a style."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

from hairkit.errors import StyleError, nearest

TIE_KINDS = ("puff", "knot", "hang")

_RANGES = {"reach": (0.001, 10.0), "size": (0.005, 0.5)}


@dataclass(frozen=True, kw_only=True)
class Tie:
    """A band on the scalp: hair that grows within reach lies along the scalp to it.

    Raises:
        StyleError: A value is of the wrong type or out of range.
    """

    at: tuple[float, float, float]
    """Where: a direction from the middle of the skull, of any length, +Y up and +Z to the face."""

    kind: str = "puff"
    """What hair does from there: ``puff`` bursts out into a ball, ``knot`` winds into a knot,
    ``hang`` hangs."""

    reach: float = 10.0
    """Roots farther than this from it are not gathered [m]; nor are those nearer to another tie."""

    size: float = 0.06
    """How wide a knot is, or the ball of a puff [m]; hair that hangs has none."""

    via: tuple[float, float, float] | None = None
    """A direction over which hair goes on its way, as ``at``; None is the shortest way."""

    def __post_init__(self) -> None:
        """Check every value; what comes from NumPy becomes plain numbers."""
        object.__setattr__(self, "at", _direction("at", self.at))
        if self.via is not None:
            object.__setattr__(self, "via", _direction("via", self.via))
        if self.kind not in TIE_KINDS:
            raise StyleError(
                f"tie: kind = {self.kind!r}: expected puff, knot or hang"
                f"{nearest(str(self.kind), TIE_KINDS)}"
            )
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            number = isinstance(value, Real) and not isinstance(value, bool)
            if not number or not low <= float(value) <= high:
                raise StyleError(
                    f"tie: {name} = {value!r}: expected a number from {low:g} to {high:g} [m]"
                )
            object.__setattr__(self, name, float(value))

    def to_toml(self) -> list[str]:
        """Return its lines in a style file."""
        lines = [
            "[[tie]]",
            f'kind = "{self.kind}"',
            f"at = {list(self.at)}",
            f"reach = {self.reach!r}  # [m]",
            f"size = {self.size!r}  # [m]",
        ]
        return lines if self.via is None else [*lines, f"via = {list(self.via)}"]


def _direction(name: str, value: Any) -> tuple[float, float, float]:
    try:
        x, y, z = (float(part) for part in value)
    except (TypeError, ValueError):
        x = y = z = math.nan
    if not (math.isfinite(x + y + z) and math.hypot(x, y, z) > 1e-9):
        raise StyleError(
            f"tie: {name} = {value!r}: expected three numbers, a direction from the middle of the "
            "skull"
        )
    return x, y, z


def as_ties(values: Any) -> tuple[Tie, ...]:
    """Return ties from ties or the tables of a style file.

    Raises:
        StyleError: Something in it is no tie; the message says which, counted from 0.
    """
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise StyleError(f"tie = {values!r}: expected [[tie]] tables, or a list of Tie")
    return tuple(_as_tie(index, value) for index, value in enumerate(values))


def _as_tie(index: int, value: Any) -> Tie:
    if isinstance(value, Tie):
        return value
    if not isinstance(value, Mapping):
        raise StyleError(f"tie {index}: {value!r}: expected a Tie or a table")
    names = [field.name for field in fields(Tie)]
    for name in value:
        if name not in names:
            raise StyleError(f"tie {index}: {name}: unknown key{nearest(str(name), names)}")
    if "at" not in value:
        raise StyleError(
            f"tie {index}: expected a key at, a direction from the middle of the skull"
        )
    try:
        return Tie(**value)
    except StyleError as error:
        raise StyleError(f"tie {index}{str(error).removeprefix('tie')}") from None


Ties = Annotated[tuple[Tie, ...], PlainValidator(as_ties), PlainSerializer(tuple)]
