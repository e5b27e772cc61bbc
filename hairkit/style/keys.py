"""Keys of a style: what values they take, and how a model's fields say so."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field

ONE_LINE = r"^[^\x00-\x1f\x7f]*$"

Colour = tuple[float, float, float]


def _number(value: object) -> object:
    # Refuses text and true/false, which pydantic would turn into numbers; takes NumPy's scalars.
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError("not a number")
    return float(value)


def _whole(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError("not a whole number")
    return int(value)


def _colour(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray) else value


RealNumber = Annotated[float, BeforeValidator(_number)]
WholeNumber = Annotated[int, BeforeValidator(_whole)]
Channel = Annotated[RealNumber, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
ColourValue = Annotated[tuple[Channel, Channel, Channel], BeforeValidator(_colour)]


def key(section: str, default: float, low: float, high: float, unit: str, meaning: str) -> Any:
    """Return the field of a key that is a number: its default, range, unit and meaning."""
    extra = {"section": section, "unit": unit, "low": low, "high": high}
    return Field(default, ge=low, le=high, description=meaning, json_schema_extra=extra)


def colour_key(default: Colour, meaning: str) -> Any:
    """Return the field of a key that is a colour."""
    extra = {"section": "look", "unit": "sRGB", "low": 0.0, "high": 1.0}
    return Field(default, description=meaning, json_schema_extra=extra)


@dataclass(frozen=True, kw_only=True)
class StyleKey:
    """One key of a style file."""

    name: str
    """Name in the file and attribute of `Style`."""

    section: str
    """Section of the file that it stands in."""

    unit: str
    """Unit, or nothing for shares and ratios."""

    low: float
    """Smallest value."""

    high: float
    """Largest value."""

    default: float | Colour
    """Value when the file leaves it out."""

    meaning: str
    """What it does, in a few words."""

    def expected(self) -> str:
        """Return which values are allowed, in words."""
        unit = f" [{self.unit}]" if self.unit else ""
        if isinstance(self.default, tuple):
            kind = "three numbers"
        else:
            kind = "a whole number" if isinstance(self.default, int) else "a number"
        return f"{kind} from {self.low:g} to {self.high:g}{unit}"


def read_keys(model: type[BaseModel]) -> dict[str, StyleKey]:
    """Return a model's keys by name, in the order of its fields."""
    found: dict[str, StyleKey] = {}
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra
        if isinstance(extra, dict):
            values: dict[str, Any] = dict(extra)
            meaning = field.description or ""
            found[name] = StyleKey(name=name, default=field.default, meaning=meaning, **values)
    return found
