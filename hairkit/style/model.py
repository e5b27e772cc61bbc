"""The style itself: its keys, its file, and the one place where they become physics."""

import math
import os
from pathlib import Path
from typing import Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hairkit.errors import StyleError
from hairkit.style.keys import (
    ONE_LINE,
    ColourValue,
    RealNumber,
    StyleKey,
    WholeNumber,
    colour_key,
    key,
    read_keys,
)
from hairkit.style.text import Format, parse, quoted
from hairkit.style.tie import Ties

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
    | `part`            | rest pose only: combed back (0) or from a parting to the sides (1) |
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
    | `thickness`       | contact radius of a point [m]; `plait_radius` if that is more      |
    | `damping`         | drag on top of the air's [1/s]                                     |
    | `shrinkage`       | largest strain 1 / (1 - shrinkage) - 1, and the compliance of the  |
    |                   | coil's spring, 10 shrinkage / (1 - shrinkage) [1/N]                |
    | `coil`            | drawn hairs: turns a metre of hair at rest                         |
    | `coil_radius`     | drawn hairs: radius of a coil [m]                                  |
    | `zigzag`          | drawn hairs: round coils (0) to sharp bends (1)                    |
    | `definition`      | drawn hairs: each hair coils alone (0) or its clump together (1)   |
    | `plait`           | drawn hairs: in 3, 2 or 1 ropes along the guide; 0 loose           |
    | `plait_radius`    | drawn hairs: half the width of that [m]; least contact radius      |
    | `plait_turns`     | drawn hairs: repeats of the pattern a metre of guide               |
    | `area`            | roots: within this angle of straight up [rad]                      |
    | `upward`          | rest pose: leaves its own way (0) to straight up (1)               |
    | `backward`        | rest pose: leaves its own way (0) to straight back (1)             |
    | `side_length`     | lengths: at the sides as a share of the top's                      |
    | `flat_top`        | lengths: cut level above the highest root, share of `length`       |
    | `row_guides`      | roots: one row from hairline to nape for so many guides            |
    | `root_color`      | drawn hairs: colour at t = 0 (sRGB)                                |
    | `tip_color`       | drawn hairs: colour at t = 1 (sRGB)                                |
    | `hairs_per_guide` | drawn hairs: how many follow each guide                            |
    | `spread`          | drawn hairs: distance from their guide, in guide spacings          |
    | `clump`           | drawn hairs: how far tips gather to their guide                    |
    | `frizz`           | drawn hairs: how far each strays from its clump                    |
    | `hair_width`      | drawn hairs: width of one [m]                                      |
    | `shine`           | drawn hairs: strength of the highlights                            |
    | `shift`           | drawn hairs: the highlights' shift along the hair [rad]            |
    | `scalp`           | drawn head: share of the root colour that the scalp takes          |
    | `fade`            | drawn head: how far beyond the roots that reaches [m]              |
    | `[[tie]]`         | rest pose: roots within reach are laid along the scalp to it; the  |
    |                   | laid part follows the head                                         |

    Each map is monotone in its key. The stretch spring of a segment is
    1e7 / (1 + 1e7 rho s^2 compliance) [1/s^2]: a strand's strain does not depend on its points.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    name: str = Field(
        "straight", min_length=1, max_length=64, pattern=ONE_LINE, description="what it is called"
    )
    description: str = Field(
        "", max_length=300, pattern=ONE_LINE, description="what it looks like, in one line"
    )

    length: RealNumber = key("shape", 0.30, 0.002, 3.0, "m", "length of a strand at rest")
    segments: WholeNumber = key(
        "shape", 12, 2, 254, "", "simulated segments of a guide; the root segment comes on top"
    )
    droop: RealNumber = key(
        "shape",
        0.06,
        0.001,
        10.0,
        "m",
        "distance over which a strand turns from the scalp to the ground",
    )
    lift: RealNumber = key(
        "shape", 0.35, 0.0, 1.0, "", "leaves the scalp along its normal (1) or as it is combed (0)"
    )
    comb: RealNumber = key(
        "shape", 0.6, 0.0, 1.0, "", "how strongly it is combed back off the face"
    )
    part: RealNumber = key(
        "shape",
        1.0,
        0.0,
        1.0,
        "",
        "combed straight back (0) or to the sides of a parting in the middle (1)",
    )
    curl: RealNumber = key(
        "shape", 0.0, 0.0, 60.0, "turns/m", "turns a metre of strand, in the guides"
    )
    curl_radius: RealNumber = key(
        "shape", 0.0, 0.0, 0.05, "m", "radius of a spiral, or half the depth of a wave"
    )
    curl_flat: RealNumber = key("shape", 0.0, 0.0, 1.0, "", "spiral (0) to wave in one plane (1)")
    curl_start: RealNumber = key(
        "shape", 0.3, 0.0, 1.0, "", "share of the length after which the curl has its full radius"
    )

    hold: RealNumber = key(
        "motion",
        0.0,
        0.0,
        1.0,
        "",
        "how strongly it keeps its rest pose: 0 free, 0.85 gel, 1 rigid",
    )
    density: RealNumber = key(
        "motion", 0.005, 1e-4, 1.0, "kg/m", "mass a metre of the clump that a guide stands for"
    )
    bend: RealNumber = key("motion", 0.7, 0.0, 3.0, "", "softness in bending: 0 stiffest")
    stretch: RealNumber = key("motion", 0.0, 0.0, 1.0, "", "softness in stretching: 0 inextensible")
    max_stretch: RealNumber = key(
        "motion", 0.05, 0.002, 0.5, "", "largest strain of hair that stretches (stretch > 0)"
    )
    stiff_root: RealNumber = key(
        "motion", 2.0, 1.0, 20.0, "", "bending stiffness at the root as a multiple of the tip's"
    )
    width: RealNumber = key("motion", 0.004, 0.0, 0.1, "m", "width of the clump to the air")
    thickness: RealNumber = key(
        "motion", 0.003, 0.0, 0.05, "m", "collision radius of a guide's points"
    )
    damping: RealNumber = key("motion", 2.0, 0.0, 200.0, "1/s", "drag on top of the air's")

    coil: RealNumber = key(
        "coil", 0.0, 0.0, 1000.0, "turns/m", "turns a metre of hair at rest, drawn"
    )
    coil_radius: RealNumber = key("coil", 0.0, 0.0, 0.03, "m", "radius of a drawn coil")
    zigzag: RealNumber = key("coil", 0.0, 0.0, 1.0, "", "round coils (0) to sharp bends (1)")
    definition: RealNumber = key(
        "coil", 1.0, 0.0, 1.0, "", "each hair coils on its own (0) or a clump's hairs together (1)"
    )
    shrinkage: RealNumber = key(
        "coil",
        0.0,
        0.0,
        0.9,
        "",
        "share of its pulled-straight length that coiled hair loses at rest",
    )

    plait: WholeNumber = key(
        "plait",
        0,
        0,
        3,
        "",
        "each guide is drawn as a braid of three strands (3), a twist of two (2), one rope (1) or "
        "loose hair (0)",
    )
    plait_radius: RealNumber = key(
        "plait", 0.005, 0.0005, 0.05, "m", "half the width of a braid, twist or rope"
    )
    plait_turns: RealNumber = key(
        "plait", 30.0, 0.0, 300.0, "turns/m", "repeats of the pattern a metre, six crossings each"
    )

    area: RealNumber = key(
        "growth", math.pi, 0.2, math.pi, "rad", "hair grows within this angle of straight up"
    )
    upward: RealNumber = key(
        "growth", 0.0, 0.0, 1.0, "", "leaves the scalp its own way (0) to straight up (1)"
    )
    backward: RealNumber = key(
        "growth", 0.0, 0.0, 1.0, "", "leaves the scalp its own way (0) to straight back (1)"
    )
    side_length: RealNumber = key(
        "growth", 1.0, 0.05, 1.0, "", "length at the sides and the nape as a share of the top's"
    )
    flat_top: RealNumber = key(
        "growth", 0.0, 0.0, 1.0, "", "cut level, this share of the length above the highest root"
    )
    row_guides: WholeNumber = key(
        "growth",
        0,
        0,
        10_000,
        "",
        "guides that one row stands for: rows from the hairline to the nape, 6 to 14 of them",
    )

    root_color: ColourValue = colour_key((0.16, 0.10, 0.065), "colour at the root")
    tip_color: ColourValue = colour_key((0.30, 0.19, 0.12), "colour at the tip")
    hairs_per_guide: WholeNumber = key(
        "look", 128, 1, 2000, "", "drawn hairs that follow each guide"
    )
    spread: RealNumber = key(
        "look", 0.8, 0.0, 3.0, "guide spacings", "how far drawn hairs spread around their guide"
    )
    clump: RealNumber = key("look", 0.35, 0.0, 1.0, "", "how far tips gather to their guide")
    frizz: RealNumber = key(
        "look", 0.08, 0.0, 1.0, "", "how far single hairs stray from their clump"
    )
    hair_width: RealNumber = key("look", 0.0003, 1e-5, 0.005, "m", "width of a drawn hair")
    shine: RealNumber = key("look", 1.0, 0.0, 2.0, "", "strength of the highlights")
    shift: RealNumber = key("look", 0.10, 0.0, 0.6, "rad", "the highlights' shift along the hair")
    scalp: RealNumber = key(
        "look", 1.0, 0.0, 1.0, "", "how much of the roots' colour the scalp has between the hairs"
    )
    fade: RealNumber = key(
        "look", 0.0, 0.0, 0.2, "m", "how far that colour fades out beyond the roots"
    )

    ties: Ties = Field((), description="bands that gather hair: [[tie]] tables")

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
            raise StyleError(_FORMAT.explain(error, values)) from None

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
            values = _FORMAT.flat(parse(text))
            if source:
                values.setdefault("name", Path(source).stem)
            return cls(**values)
        except StyleError as error:
            raise StyleError(f"{where}: {error}") from None

    def to_toml(self) -> str:
        """Return the text of a complete style file, each key with its unit and meaning."""
        lines = [f"name = {quoted(self.name)}", f"description = {quoted(self.description)}"]
        section = ""
        for known in style_keys():
            if known.section != section:
                section = known.section
                lines += ["", f"[{section}]"]
            value = getattr(self, known.name)
            text = str(list(value)) if isinstance(value, tuple) else repr(value)
            unit = f"[{known.unit}] " if known.unit else ""
            lines.append(f"{known.name} = {text}  # {unit}{known.meaning}")
        for tie in self.ties:
            lines += ["", *tie.to_toml()]
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

    def contact_radius(self) -> float:
        """Return how far a guide's points stay away from what they touch [m]."""
        return max(self.thickness, self.plait_radius if self.plait else 0.0)

    def air_drag(self) -> float:
        """Return the drag of the air on a clump for each unit of mass [1/s]."""
        return AIR_DRAG * self.width / self.density

    def drag(self) -> float:
        """Return all drag for each unit of mass [1/s]: the air's and `damping`."""
        return self.damping + self.air_drag()


def style_keys() -> tuple[StyleKey, ...]:
    """Return every key of a style file but `name` and `description`, in the file's order."""
    return tuple(_KEYS.values())


_KEYS = read_keys(Style)
_FORMAT = Format(_KEYS)
