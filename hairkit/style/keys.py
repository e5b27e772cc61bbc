"""Keys of a style: what values they take, and how a model's fields say so."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field

from hairkit.errors import StyleError

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
    if isinstance(value, Mapping):
        unknown = sorted(set(value) - {"eumelanin", "pheomelanin"})
        if unknown:
            raise ValueError("not a colour: melanin is eumelanin and pheomelanin")
        return melanin_color(**{str(name): float(amount) for name, amount in value.items()})
    return value.tolist() if isinstance(value, np.ndarray) else value


def melanin_color(eumelanin: float = 0.0, pheomelanin: float = 0.0) -> Colour:
    """Return the sRGB colour of hair with so much of each pigment.

    Eumelanin makes hair brown to black, pheomelanin red: 0.2 to 0.4 of the first is blond, 1.3
    brown, 8 black; 0.4 of the second with as much of the first is red. Absorption as in d'Eon and
    others, "An Energy-Conserving Hair Reflectance Model" (2011); the colour that it gives after all
    scattering as fitted by Chiang and others, "A Practical and Controllable Hair and Fur Model"
    (2016), for a roughness across of 0.3.

    Args:
        eumelanin: Concentration, at least 0.
        pheomelanin: Concentration, at least 0.

    Raises:
        StyleError: A concentration is negative or not finite.
    """
    for name, amount in (("eumelanin", eumelanin), ("pheomelanin", pheomelanin)):
        if not (math.isfinite(amount) and 0.0 <= amount <= 100.0):
            raise StyleError(f"{name} = {amount}: expected a number from 0 to 100")
    absorbed = eumelanin * np.array([0.419, 0.697, 1.37])
    absorbed = absorbed + pheomelanin * np.array([0.187, 0.4, 1.05])
    across = 0.3
    spread = 5.969 - 0.215 * across + 2.532 * across**2 - 10.73 * across**3
    spread += 5.574 * across**4 + 0.245 * across**5
    linear = np.exp(-np.sqrt(absorbed) * spread)
    srgb = np.where(linear < 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    red, green, blue = (float(np.clip(part, 0.0, 1.0)) for part in srgb)
    return red, green, blue


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
            kind = "{eumelanin = ..., pheomelanin = ...} or three numbers"
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
