"""The text of a style file: TOML in sections, and what is wrong with it in one line."""

import json
import math
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from hairkit.errors import StyleError, nearest
from hairkit.style.keys import StyleKey


def quoted(text: str) -> str:
    """Return a text as TOML writes it."""
    # JSON's escapes are all TOML's too.
    return json.dumps(text, ensure_ascii=False)


def shown(value: object) -> str:
    """Return a value as errors show it, cut short when it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def parse(text: str) -> dict[str, Any]:
    """Return a TOML file's table; errors name the line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem, _, place = str(error).rpartition(" (at ")
        found = re.match(r"line (\d+)", place)
        line = int(found[1]) if found else text.rstrip().count("\n") + 1
        raise StyleError(f"line {line}: not TOML: {problem or error}") from None
    except RecursionError:
        raise StyleError("not a style: arrays or tables nested too deeply") from None


TOP = {"name": "1 to 64", "description": "0 to 300"}
"""Keys that are text, with how many characters they may have."""


class Format:
    """Which keys a style file has, and where."""

    def __init__(self, keys: Mapping[str, StyleKey]) -> None:
        """Take the keys by name."""
        self._keys = keys
        self._sections = tuple(dict.fromkeys(key.section for key in keys.values()))
        self._known = [*keys, *TOP, "tie"]

    def flat(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Take keys out of their sections; refuse what is not where it belongs."""
        values: dict[str, Any] = {}
        for name, value in table.items():
            if isinstance(value, dict) and name in self._sections:
                for key, inner in value.items():
                    self._check_place(key, name)
                    values[key] = inner
            elif name == "tie":
                values["ties"] = value
            elif name in self._sections and name not in self._keys:
                raise StyleError(f"{name} = {shown(value)}: expected a section, [{name}]")
            elif isinstance(value, dict) and name not in TOP:
                raise StyleError(f"[{name}]: unknown section{nearest(name, self._sections)}")
            else:
                self._check_place(name, "")
                values[name] = value
        return values

    def explain(self, error: ValidationError, values: Mapping[str, object]) -> str:
        """Put pydantic's errors into one line: the key, its value, and what was expected."""
        problems = error.errors(include_url=False, include_context=False)
        first = problems[0]
        name = str(first["loc"][0])
        if name == "ties":
            return str(first["msg"]).removeprefix("Value error, ")
        value = shown(values.get(name))
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        if first["type"] == "extra_forbidden":
            return f"{name}: unknown key{nearest(name, self._known)}{more}"
        if name in TOP:
            return f"{name} = {value}: expected one line of {TOP[name]} characters{more}"
        key = self._keys[name]
        hint = _in_metres(values.get(name)) if key.unit == "m" else ""
        return f"[{key.section}] {name} = {value}: expected {key.expected()}{hint}{more}"

    def _check_place(self, name: str, section: str) -> None:
        here = f"[{section}] {name}" if section else name
        if name not in self._known:
            raise StyleError(f"{here}: unknown key{nearest(name, self._known)}")
        belongs = self._keys[name].section if name in self._keys else ""
        if belongs != section:
            place = (
                f"under [{belongs}]" if belongs else "at the top of the file, before the sections"
            )
            raise StyleError(f"{here}: expected {place}")


def _in_metres(value: object) -> str:
    found = re.fullmatch(r"\s*([0-9.]+)\s*(mm|cm|m)\s*", value) if isinstance(value, str) else None
    try:
        number = float(found[1]) if found else math.nan
    except ValueError:
        return ""
    scale = {"mm": 1e-3, "cm": 1e-2, "m": 1.0}[found[2]] if found else 1.0
    return f"; write {number * scale:g}" if math.isfinite(number) else ""
