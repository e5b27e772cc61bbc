"""Styles by name and from files."""

import os
import re
from pathlib import Path

from hairkit.errors import StyleError, nearest
from hairkit.paths import styles_dir
from hairkit.style.model import Style
from hairkit.style.text import parse, shown


def style_names() -> list[str]:
    """Return the names of the styles that come with hairkit."""
    # What a file calls itself: "high-top fade" has spaces that its file's name has not.
    return sorted(
        str(parse(path.read_text("utf-8"))["name"]) for path in styles_dir().glob("*.toml")
    )


def load_style(name: str | os.PathLike[str], *, colors: Style | None = None) -> Style:
    """Return a style by its name or from a file.

    Args:
        name: A name of `style_names()` (case, spaces, dashes and underscores do not matter), or the
            path of a file that ends in .toml.
        colors: A style whose hair colours it takes, in place of its own.

    Raises:
        StyleError: No such style or file, or the file is wrong.
    """
    if not isinstance(name, str | os.PathLike):
        raise StyleError(f"style {shown(name)}: expected a name or the path of a .toml file")
    if isinstance(name, os.PathLike) or name.lower().endswith(".toml"):
        path = Path(name)
        if path.suffix.lower() != ".toml":
            raise StyleError(f"{path}: expected a style file that ends in .toml")
        return _colored(_load_file(path), colors)
    path = _files().get(_bare(name))
    if path is None:
        names = {_bare(known): known for known in style_names()}
        hint = nearest(_bare(name), names) if _bare(name) else ""
        hint = re.sub("'(.*)'", lambda found: repr(names[found[1]]), hint)
        raise StyleError(f"unknown style {shown(name)}{hint} (styles: {', '.join(names.values())})")
    return _colored(_load_file(path), colors)


def _colored(style: Style, colors: Style | None) -> Style:
    if colors is None:
        return style
    return style.replace(root_color=colors.root_color, tip_color=colors.tip_color)


def _files() -> dict[str, Path]:
    return {_bare(path.stem): path for path in styles_dir().glob("*.toml")}


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
