"""Style: what hair is like (length, shape, feel, look), its file, and what it means in physics."""

import json
import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from hairkit.errors import StyleError, nearest
from hairkit.paths import styles_dir

# What the maps below are made of. Chosen by looking; each has a unit and a reason.
STIFFEST_BENDING = 1e-4
"""Bending rigidity at `bend` 0 [N m^2]: a free clump of 0.005 kg/m then sags over about 0.13 m."""
HOLD_AT_HALF = 300.0
"""Spring to the rest pose at `hold` 0.5 [1/s^2]: under its weight a point sags by about 3 cm."""
RIGID_STRETCH = 1e7
"""Stretch spring of inextensible hair [1/s^2]: as stiff as single precision can carry."""
STRETCH_COMPLIANCE = 4.0
"""Strain for each newton of pull at `stretch` 1 [1/N]."""
COIL_COMPLIANCE = 10.0
"""Share of a coil's largest strain for each newton of pull [1/N]: 0.1 N unwinds it."""
STRETCH_DEAD_ZONE = 0.002
"""Strain that the length solve leaves alone in inextensible hair, so that idle hair is still."""
AIR_DRAG = 2.0
"""Drag of one square metre of clump seen from the side, for each m/s [kg/(m^2 s)].

Half of air's 1.2 kg/m^3 times a cylinder's drag coefficient 1.1, made linear at 3 m/s.
"""

_ONE_LINE = r"^[^\x00-\x1f\x7f]*$"

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


_Real = Annotated[float, BeforeValidator(_number)]
_Whole = Annotated[int, BeforeValidator(_whole)]
_Channel = Annotated[_Real, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
_Colour = Annotated[tuple[_Channel, _Channel, _Channel], BeforeValidator(_colour)]


def _key(section: str, default: float, low: float, high: float, unit: str, meaning: str) -> Any:
    extra = {"section": section, "unit": unit, "low": low, "high": high}
    return Field(default, ge=low, le=high, description=meaning, json_schema_extra=extra)


def _colour_key(default: Colour, meaning: str) -> Any:
    extra = {"section": "look", "unit": "sRGB", "low": 0.0, "high": 1.0}
    return Field(default, description=meaning, json_schema_extra=extra)


class Style(BaseModel, frozen=True):
    """What hair is like; frozen, checked, and independent of any head.

    A style file is TOML with `name`, `description` and the sections below; a key left out has the
    value of `straight`, the default style. Every key's unit, range and meaning: `style_keys()`.

    From a key to physics, the only place (rho: `density`; s: segment [m]; t: root 0 to tip 1):

    | key               | becomes                                                            |
    |-------------------|--------------------------------------------------------------------|
    | `length`          | length of a strand at rest [m]; s = length / (segments + 1)        |
    | `segments`        | points of a guide = segments + 2; the root segment is the head's   |
    | `droop`           | rest pose only: distance over which a strand turns to the ground   |
    | `lift`            | rest pose only: along the scalp's normal (1) or as combed (0)      |
    | `comb`            | rest pose only: how strongly it is combed back off the face        |
    | `curl`            | rest pose and, through it, rest curvature: turns a metre           |
    | `curl_radius`     | rest pose: radius of a spiral, half the depth of a wave [m]        |
    | `curl_flat`       | rest pose: spiral (0) to wave in one plane (1)                     |
    | `curl_start`      | rest pose: t at which the curl has its full radius                 |
    | `hold`            | spring to the rest pose, 300 hold / (1 - hold) [1/s^2]; 1 is rigid |
    | `density`         | mass of a point = rho s, the tip half [kg]                         |
    | `bend`            | EI = 1e-4 * 10^-bend [N m^2]; k = EI / (rho s^4) [1/s^2]           |
    | `stretch`         | strain compliance 4 stretch [1/N]; 0 is inextensible               |
    | `max_stretch`     | largest strain when stretch > 0                                    |
    | `stiff_root`      | EI at t is multiplied by stiff_root^(1 - t)                        |
    | `width`           | air drag 2 width / rho [1/s], which wind pulls with                |
    | `thickness`       | contact radius of a point [m]                                      |
    | `damping`         | drag on top of the air's [1/s]                                     |
    | `shrinkage`       | largest strain 1 / (1 - shrinkage) - 1, and the compliance of the  |
    |                   | coil's spring, 10 shrinkage / (1 - shrinkage) [1/N]                |
    | `coil`            | drawn hairs: turns a metre of hair at rest                         |
    | `coil_radius`     | drawn hairs: radius of a coil [m]                                  |
    | `zigzag`          | drawn hairs: round coils (0) to sharp bends (1)                    |
    | `definition`      | drawn hairs: each hair coils alone (0) or its clump together (1)   |
    | `root_color`      | drawn hairs: colour at t = 0 (sRGB)                                |
    | `tip_color`       | drawn hairs: colour at t = 1 (sRGB)                                |
    | `hairs_per_guide` | drawn hairs: how many follow each guide                            |
    | `spread`          | drawn hairs: distance from their guide, in guide spacings          |
    | `clump`           | drawn hairs: how far tips gather to their guide                    |
    | `frizz`           | drawn hairs: how far each strays from its clump                    |
    | `hair_width`      | drawn hairs: width of one [m]                                      |
    | `shine`           | drawn hairs: strength of the highlights                            |
    | `shift`           | drawn hairs: the highlights' shift along the hair [rad]            |

    Each map is monotone in its key. The stretch spring of a segment is
    1e7 / (1 + 1e7 rho s^2 compliance) [1/s^2]: a strand's strain does not depend on its points.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    name: str = Field(
        "straight", min_length=1, max_length=64, pattern=_ONE_LINE, description="what it is called"
    )
    description: str = Field(
        "", max_length=300, pattern=_ONE_LINE, description="what it looks like, in one line"
    )

    length: _Real = _key("shape", 0.30, 0.002, 3.0, "m", "length of a strand at rest")
    segments: _Whole = _key(
        "shape", 12, 2, 254, "", "simulated segments of a guide; the root segment comes on top"
    )
    droop: _Real = _key(
        "shape",
        0.06,
        0.001,
        10.0,
        "m",
        "distance over which a strand turns from the scalp to the ground",
    )
    lift: _Real = _key(
        "shape", 0.35, 0.0, 1.0, "", "leaves the scalp along its normal (1) or as it is combed (0)"
    )
    comb: _Real = _key("shape", 0.6, 0.0, 1.0, "", "how strongly it is combed back off the face")
    curl: _Real = _key("shape", 0.0, 0.0, 60.0, "turns/m", "turns a metre of strand, in the guides")
    curl_radius: _Real = _key(
        "shape", 0.0, 0.0, 0.05, "m", "radius of a spiral, or half the depth of a wave"
    )
    curl_flat: _Real = _key("shape", 0.0, 0.0, 1.0, "", "spiral (0) to wave in one plane (1)")
    curl_start: _Real = _key(
        "shape", 0.3, 0.0, 1.0, "", "share of the length after which the curl has its full radius"
    )

    hold: _Real = _key(
        "motion",
        0.0,
        0.0,
        1.0,
        "",
        "how strongly it keeps its rest pose: 0 free, 0.85 gel, 1 rigid",
    )
    density: _Real = _key(
        "motion", 0.005, 1e-4, 1.0, "kg/m", "mass a metre of the clump that a guide stands for"
    )
    bend: _Real = _key("motion", 0.7, 0.0, 3.0, "", "softness in bending: 0 stiffest")
    stretch: _Real = _key("motion", 0.0, 0.0, 1.0, "", "softness in stretching: 0 inextensible")
    max_stretch: _Real = _key(
        "motion", 0.05, 0.002, 0.5, "", "largest strain of hair that stretches (stretch > 0)"
    )
    stiff_root: _Real = _key(
        "motion", 2.0, 1.0, 20.0, "", "bending stiffness at the root as a multiple of the tip's"
    )
    width: _Real = _key("motion", 0.004, 0.0, 0.1, "m", "width of the clump to the air")
    thickness: _Real = _key("motion", 0.003, 0.0, 0.05, "m", "collision radius of a guide's points")
    damping: _Real = _key("motion", 2.0, 0.0, 200.0, "1/s", "drag on top of the air's")

    coil: _Real = _key("coil", 0.0, 0.0, 1000.0, "turns/m", "turns a metre of hair at rest, drawn")
    coil_radius: _Real = _key("coil", 0.0, 0.0, 0.03, "m", "radius of a drawn coil")
    zigzag: _Real = _key("coil", 0.0, 0.0, 1.0, "", "round coils (0) to sharp bends (1)")
    definition: _Real = _key(
        "coil", 1.0, 0.0, 1.0, "", "each hair coils on its own (0) or a clump's hairs together (1)"
    )
    shrinkage: _Real = _key(
        "coil",
        0.0,
        0.0,
        0.9,
        "",
        "share of its pulled-straight length that coiled hair loses at rest",
    )

    root_color: _Colour = _colour_key((0.16, 0.10, 0.065), "colour at the root")
    tip_color: _Colour = _colour_key((0.30, 0.19, 0.12), "colour at the tip")
    hairs_per_guide: _Whole = _key("look", 128, 1, 2000, "", "drawn hairs that follow each guide")
    spread: _Real = _key(
        "look", 0.8, 0.0, 3.0, "guide spacings", "how far drawn hairs spread around their guide"
    )
    clump: _Real = _key("look", 0.35, 0.0, 1.0, "", "how far tips gather to their guide")
    frizz: _Real = _key("look", 0.08, 0.0, 1.0, "", "how far single hairs stray from their clump")
    hair_width: _Real = _key("look", 0.0003, 1e-5, 0.005, "m", "width of a drawn hair")
    shine: _Real = _key("look", 1.0, 0.0, 2.0, "", "strength of the highlights")
    shift: _Real = _key("look", 0.10, 0.0, 0.6, "rad", "the highlights' shift along the hair")

    def __init__(self, **values: object) -> None:
        """Check every value; what is left out is `straight`'s.

        Args:
            **values: Keys of the style, without their sections.

        Raises:
            StyleError: A key is unknown, or its value is of the wrong type or out of range.
        """
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise StyleError(_explain(error, values)) from None

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: a style is frozen."""
        raise StyleError(f"{name}: a style cannot be changed; use replace({name}=...)")

    # ---- files

    @classmethod
    def from_toml(cls, text: str, source: str = "") -> Self:
        """Read a style from the text of a style file.

        Args:
            text: TOML, with `name`, `description` and the sections of `Style`.
            source: The file, for errors; its stem is the name of a style without one.

        Raises:
            StyleError: Not TOML, or a section, key or value is wrong.
        """
        where = source or "style"
        try:
            values = _flat(_parse(text))
            if source:
                values.setdefault("name", Path(source).stem)
            return cls(**values)
        except StyleError as error:
            raise StyleError(f"{where}: {error}") from None

    def to_toml(self) -> str:
        """Return the text of a complete style file, each key with its unit and meaning."""
        lines = [f"name = {_quoted(self.name)}", f"description = {_quoted(self.description)}"]
        section = ""
        for key in style_keys():
            if key.section != section:
                section = key.section
                lines += ["", f"[{section}]"]
            value = getattr(self, key.name)
            text = str(list(value)) if isinstance(value, tuple) else repr(value)
            unit = f"[{key.unit}] " if key.unit else ""
            lines.append(f"{key.name} = {text}  # {unit}{key.meaning}")
        return "\n".join(lines) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a style file; it is complete or, on an error, what was there before.

        Raises:
            StyleError: The name does not end in .toml, or the file cannot be written.
        """
        path = Path(path)
        if path.suffix.lower() != ".toml":
            raise StyleError(f"{path}: expected a file name that ends in .toml")
        beside = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            try:
                beside.write_text(self.to_toml(), encoding="utf-8", newline="\n")
                os.replace(beside, path)
            finally:
                beside.unlink(missing_ok=True)
        except OSError as error:
            raise StyleError(f"{path}: cannot be written: {error.strerror}") from None

    def replace(self, **changes: object) -> Self:
        """Return a copy with some keys changed, checked like any other style.

        Args:
            **changes: Keys of the style, without their sections.

        Raises:
            StyleError: A key is unknown, or its value is of the wrong type or out of range.
        """
        return type(self)(**{**self.model_dump(), **changes})

    # ---- physics: the table in the class's docstring, and nowhere else

    def segment_length(self) -> float:
        """Return the rest length of a segment of a full-length strand [m]."""
        return self.length / (self.segments + 1)

    def bending_rigidity(self) -> float:
        """Return EI of the clump at the tip [N m^2]."""
        return STIFFEST_BENDING * 10.0**-self.bend

    def bending_along(self, share: np.ndarray) -> np.ndarray:
        """Return what EI is multiplied by along a strand.

        Args:
            share: Where, from 0 at the root to 1 at the tip, any shape.
        """
        return self.stiff_root ** (1.0 - np.asarray(share, dtype=np.float64))

    def bending_stiffness(self, segment: float | None = None) -> float:
        """Return the bending spring of a point at the tip, EI / (mass a point * segment^3) [1/s^2].

        Args:
            segment: Rest length of a segment [m]; a full-length strand's when left out.
        """
        segment = self.segment_length() if segment is None else segment
        return self.bending_rigidity() / (self.density * segment**4)

    def hold_stiffness(self) -> float:
        """Return the spring to the rest pose [1/s^2]; infinite (kinematic) at `hold` 1."""
        return math.inf if self.hold == 1.0 else HOLD_AT_HALF * self.hold / (1.0 - self.hold)

    def strain_compliance(self) -> float:
        """Return the strain for each newton of pull [1/N], of hair and coils together."""
        coil = COIL_COMPLIANCE * self.shrinkage / (1.0 - self.shrinkage)
        return STRETCH_COMPLIANCE * self.stretch + coil

    def stretch_stiffness(self, segment: float | None = None) -> float:
        """Return the stretch spring of a segment [1/s^2].

        Args:
            segment: Rest length of a segment [m]; a full-length strand's when left out.
        """
        segment = self.segment_length() if segment is None else segment
        soft = RIGID_STRETCH * self.density * segment**2 * self.strain_compliance()
        return RIGID_STRETCH / (1.0 + soft)

    def stretch_limits(self) -> tuple[float, float]:
        """Return the smallest and largest strain that the length solve allows."""
        hair = self.max_stretch if self.stretch > 0.0 else 0.0
        coiled = hair + (1.0 + hair) * self.shrinkage / (1.0 - self.shrinkage)
        return -STRETCH_DEAD_ZONE, max(STRETCH_DEAD_ZONE, coiled)

    def air_drag(self) -> float:
        """Return the drag of the air on a clump for each unit of mass [1/s]."""
        return AIR_DRAG * self.width / self.density

    def drag(self) -> float:
        """Return all drag for each unit of mass [1/s]: the air's and `damping`."""
        return self.damping + self.air_drag()


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


def style_keys() -> tuple[StyleKey, ...]:
    """Return every key of a style file but `name` and `description`, in the file's order."""
    return tuple(_KEYS.values())


def style_names() -> list[str]:
    """Return the names of the styles that come with hairkit."""
    return sorted(path.stem for path in styles_dir().glob("*.toml"))


def load_style(name: str | os.PathLike[str]) -> Style:
    """Return a style by its name or from a file.

    Args:
        name: A name of `style_names()` (case, spaces, dashes and underscores do not matter), or the
            path of a file that ends in .toml.

    Raises:
        StyleError: No such style or file, or the file is wrong.
    """
    if not isinstance(name, str | os.PathLike):
        raise StyleError(f"style {_shown(name)}: expected a name or the path of a .toml file")
    if isinstance(name, os.PathLike) or name.lower().endswith(".toml"):
        path = Path(name)
        if path.suffix.lower() != ".toml":
            raise StyleError(f"{path}: expected a style file that ends in .toml")
        return _load_file(path)
    names = {_bare(known): known for known in style_names()}
    known = names.get(_bare(name))
    if known is None:
        hint = nearest(_bare(name), names) if _bare(name) else ""
        hint = re.sub("'(.*)'", lambda found: repr(names[found[1]]), hint)
        raise StyleError(
            f"unknown style {_shown(name)}{hint} (styles: {', '.join(names.values())})"
        )
    return _load_file(styles_dir() / f"{known}.toml")


def _load_file(path: Path) -> Style:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise StyleError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        # Text that is not UTF-8, or a path with a null character in it.
        raise StyleError(f"{path}: expected a UTF-8 text file ({error})") from None
    return Style.from_toml(text, str(path))


def _bare(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()


def _quoted(text: str) -> str:
    # JSON's escapes are all TOML's too.
    return json.dumps(text, ensure_ascii=False)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem, _, place = str(error).rpartition(" (at ")
        found = re.match(r"line (\d+)", place)
        line = int(found[1]) if found else text.rstrip().count("\n") + 1
        raise StyleError(f"line {line}: not TOML: {problem or error}") from None
    except RecursionError:
        raise StyleError("not a style: arrays or tables nested too deeply") from None


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """Take keys out of their sections; refuse what is not where it belongs."""
    values: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict) and name in _SECTIONS:
            for key, inner in value.items():
                _check_place(key, name)
                values[key] = inner
        elif name in _SECTIONS and name not in _KEYS:
            raise StyleError(f"{name} = {_shown(value)}: expected a section, [{name}]")
        elif isinstance(value, dict) and name not in _TOP:
            raise StyleError(f"[{name}]: unknown section{nearest(name, _SECTIONS)}")
        else:
            _check_place(name, "")
            values[name] = value
    return values


def _check_place(name: str, section: str) -> None:
    here = f"[{section}] {name}" if section else name
    if name not in _KEYS and name not in _TOP:
        raise StyleError(f"{here}: unknown key{nearest(name, [*_KEYS, *_TOP])}")
    belongs = _KEYS[name].section if name in _KEYS else ""
    if belongs != section:
        place = f"under [{belongs}]" if belongs else "at the top of the file, before the sections"
        raise StyleError(f"{here}: expected {place}")


def _explain(error: ValidationError, values: Mapping[str, object]) -> str:
    """Put pydantic's errors into one line: the key, its value, and what was expected."""
    problems = error.errors(include_url=False, include_context=False)
    first = problems[0]
    name = str(first["loc"][0])
    shown = _shown(values.get(name))
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    if first["type"] == "extra_forbidden":
        return f"{name}: unknown key{nearest(name, [*_KEYS, *_TOP])}{more}"
    if name in _TOP:
        return f"{name} = {shown}: expected one line of {_TOP[name]} characters{more}"
    key = _KEYS[name]
    hint = _in_metres(values.get(name)) if key.unit == "m" else ""
    return f"[{key.section}] {name} = {shown}: expected {key.expected()}{hint}{more}"


def _in_metres(value: object) -> str:
    found = re.fullmatch(r"\s*([0-9.]+)\s*(mm|cm|m)\s*", value) if isinstance(value, str) else None
    try:
        number = float(found[1]) if found else math.nan
    except ValueError:
        return ""
    scale = {"mm": 1e-3, "cm": 1e-2, "m": 1.0}[found[2]] if found else 1.0
    return f"; write {number * scale:g}" if math.isfinite(number) else ""


def _read_keys() -> Iterator[StyleKey]:
    for name, field in Style.model_fields.items():
        extra = field.json_schema_extra
        if isinstance(extra, dict):
            meaning = field.description or ""
            yield StyleKey(name=name, default=field.default, meaning=meaning, **extra)  # type: ignore[arg-type]


_KEYS = {key.name: key for key in _read_keys()}
_SECTIONS = tuple(dict.fromkeys(key.section for key in _KEYS.values()))
_TOP = {"name": "1 to 64", "description": "0 to 300"}
