"""Styles: what a file may say, what errors tell, and that the maps to physics keep their order."""

import math
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

from hairkit.errors import StyleError
from hairkit.style import Style, load_style, style_keys, style_names

KEYS = {key.name: key for key in style_keys()}


def message(toml: str) -> str:
    """Return the error that a style file's text gives."""
    with pytest.raises(StyleError) as caught:
        Style.from_toml(toml, "folder/mine.toml")
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith("folder/mine.toml: ")
    return text


# ---- presets


def test_every_shipped_style_loads_under_its_own_name():
    """Load each style file and find its name and a description in it."""
    for name in style_names():
        style = load_style(name)
        assert style.name == name
        assert style.description


@pytest.mark.parametrize(
    ("name", "length"),
    [
        ("straight", 0.30),
        ("long", 0.55),
        ("wavy", 0.40),
        ("curly", 0.30),
        ("short", 0.07),
        ("fur", 0.035),
        ("gel", 0.10),
    ],
)
def test_presets_have_the_lengths_of_the_catalogue(name, length):
    """Compare each preset's length with the catalogue's."""
    assert load_style(name).length == length


def test_straight_is_the_default_style():
    """Build a style from nothing and compare it with the file, which spells every key out."""
    straight = load_style("straight")
    assert Style(description=straight.description) == straight


def test_presets_are_shaped_as_the_catalogue_says():
    """Check what the catalogue's words say: waves in one plane, spirals, spikes that stay."""
    wavy, curly, gel = load_style("wavy"), load_style("curly"), load_style("gel")
    assert wavy.curl > 0 and wavy.curl_radius > 0 and wavy.curl_flat == 1.0
    assert curly.curl == 9.0 and curly.curl_radius > 0 and curly.curl_flat == 0.0
    assert curly.segments == 24
    assert curly.clump < load_style("straight").clump  # fluffy tips
    assert curly.frizz > load_style("straight").frizz
    assert gel.hold == 0.85
    others = ("straight", "long", "wavy", "curly", "short", "fur")
    assert gel.droop > 2 * max(load_style(n).droop for n in others)


def test_curls_in_the_guides_fit_into_their_own_length():
    """A turn's circle must be shorter than the hair that goes into a turn."""
    for name in style_names():
        style = load_style(name)
        assert 2 * math.pi * style.curl_radius * style.curl < 0.9


def test_curls_in_the_guides_have_enough_segments():
    """Give every turn of a preset at least eight segments, so that it is drawn round."""
    for name in style_names():
        style = load_style(name)
        assert style.curl * style.segment_length() <= 1 / 8


def test_straight_types_run_from_fine_and_silky_to_coarse():
    """Order 1A, 1B, 1C by stiffness, hair width, frizz and shine; only 1C bends, in one plane."""
    types = [load_style(name) for name in ("1a", "1b", "1c")]
    rigidity = [style.bending_rigidity() for style in types]
    assert rigidity[0] < rigidity[1] < rigidity[2]
    for rising in ("hair_width", "frizz", "density"):
        values = [getattr(style, rising) for style in types]
        assert values[0] < values[1] < values[2]
    assert types[0].shine > types[1].shine > types[2].shine
    assert [style.curl * style.curl_radius > 0 for style in types] == [False, False, True]
    assert types[2].curl_flat == 1.0


def test_wavy_types_run_from_loose_to_defined_from_the_root():
    """Order 2A, 2B, 2C by waves a metre (3 to 5), depth, frizz and where the wave begins."""
    types = [load_style(name) for name in ("2a", "2b", "2c")]
    assert [style.curl for style in types] == [3.0, 4.0, 5.0]
    assert all(style.curl_flat == 1.0 for style in types)
    starts = [style.curl_start for style in types]
    assert starts[0] > starts[1] > starts[2]
    for rising in ("frizz", "curl_radius"):
        values = [getattr(style, rising) for style in types]
        assert values[0] < values[1] < values[2]
    slight = load_style("1c")
    assert slight.curl * slight.curl_radius < types[0].curl * types[0].curl_radius


def test_presets_suit_the_ordinary_clock():
    """Keep every preset's bending spring, root included, where 1/120 s steps carry it."""
    for name in style_names():
        style = load_style(name)
        assert 1e3 < style.bending_stiffness() <= style.bending_stiffness() * style.stiff_root < 1e6


# ---- names


@pytest.mark.parametrize("name", ["2c", "2C", "2-c", " 2_C ", "2 c"])
def test_names_forgive_case_and_separators(name):
    """Find one style under many spellings."""
    assert load_style(name).name == "2c"


def test_unknown_name_suggests_the_nearest():
    """Name the style that a slip of the finger meant, in one line."""
    with pytest.raises(StyleError, match=r"'wawy'.*'wavy'") as caught:
        load_style("wawy")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "zzzzzz", "../straight", "x\ny", None, 3])
def test_unknown_names_of_any_kind_are_one_line(name):
    """Refuse what is no name at all without a traceback of another library."""
    with pytest.raises(StyleError) as caught:
        load_style(name)
    assert "\n" not in str(caught.value)


def test_missing_file_names_the_file(tmp_path):
    """Say which style file is missing."""
    with pytest.raises(StyleError, match=r"none\.toml"):
        load_style(tmp_path / "none.toml")


@pytest.mark.parametrize("name", ["mine.txt", "mine"])
def test_path_of_another_kind_is_refused(tmp_path, name):
    """Refuse to read or write a style under an ending that load_style would not find."""
    with pytest.raises(StyleError, match=r"\.toml"):
        load_style(tmp_path / name)
    with pytest.raises(StyleError, match=r"\.toml"):
        Style().save(tmp_path / name)


# ---- what a file may say


def test_unknown_key_suggests_the_nearest():
    """Name section, key and the key that was meant."""
    assert re.search(r"\[shape\] lenght: unknown key.*'length'", message("[shape]\nlenght = 0.3"))


def test_unknown_section_suggests_the_nearest():
    """Name the section and the one that was meant."""
    assert re.search(r"\[shpe\]: unknown section.*'shape'", message("[shpe]\nlength = 0.3"))


@pytest.mark.parametrize("toml", ["length = 0.3", "[motion]\nlength = 0.3", "[coil]\nname = 'x'"])
def test_key_in_the_wrong_place_is_told_where_it_belongs(toml):
    """Say under which section a known key belongs."""
    assert re.search(r"expected (under \[shape\]|at the top)", message(toml))


def test_section_that_is_a_value_is_refused():
    """Refuse a number where a section should be."""
    assert "expected a section, [shape]" in message("shape = 3")


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_every_key_refuses_values_outside_its_range(key):
    """Go a little past each end; the error names key, value and range."""
    for value in (key.low - 1, key.high + 1, math.nan, math.inf, "1 cm", True, None, [0.1]):
        if isinstance(key.default, tuple) and isinstance(value, int | float):
            value = [0.5, value, 0.5]
        with pytest.raises(StyleError) as caught:
            Style(**{key.name: value})
        text = str(caught.value)
        assert text.startswith(f"[{key.section}] {key.name} = ")
        assert f"from {key.low:g} to {key.high:g}" in text and key.unit in text
        assert "\n" not in text


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_every_key_accepts_both_ends_of_its_range(key):
    """Take the smallest and the largest value, as they are."""
    for value in (key.low, key.high):
        value = (value,) * 3 if isinstance(key.default, tuple) else value
        assert getattr(Style(**{key.name: value}), key.name) == value


def test_value_with_a_unit_is_refused_with_the_unit_expected():
    """Refuse a text such as '30 cm' and say what to write instead."""
    text = message('[shape]\nlength = "30 cm"')
    assert "'30 cm'" in text and "[m]" in text and "write 0.3" in text


def test_whole_numbers_must_be_whole():
    """Refuse half a segment."""
    assert "a whole number from 2 to 254" in message("[shape]\nsegments = 12.5")


def test_several_mistakes_are_counted_in_one_line():
    """Name the first mistake and say how many more there are."""
    assert "(and 1 more)" in message("[shape]\nlength = -1\nlift = 7")


@pytest.mark.parametrize(
    ("toml", "line"),
    [("[shape]\nlength =\n", 2), ("[shape", 1), ("\n\na = [1,", 3), ("[shape]\nlift=1\nlift=1", 3)],
)
def test_broken_toml_names_file_and_line(toml, line):
    """Say on which line the file stops being TOML."""
    assert f"line {line}: not TOML" in message(toml)


def test_hostile_nesting_is_refused():
    """Refuse arrays nested deeper than a parser's stack."""
    assert "nested" in message("a = " + "[" * 20000)


def test_file_that_is_not_text_is_refused(tmp_path):
    """Refuse bytes that are not UTF-8 with the file's name."""
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe[\x00")
    with pytest.raises(StyleError, match=r"bad\.toml.*UTF-8"):
        load_style(tmp_path / "bad.toml")


def test_file_with_a_byte_order_mark_loads(tmp_path):
    """Read what some editors put before the text."""
    (tmp_path / "mine.toml").write_bytes(b"\xef\xbb\xbf[shape]\nlength = 1\n")
    style = load_style(str(tmp_path / "mine.toml"))
    assert style.length == 1.0
    assert style.name == "mine"


# ---- saving


def odd_style() -> Style:
    """Return a style with numbers and text that are awkward to write."""
    return Style(
        name='a "quoted" \\ name',
        description="höher, 髪 = 'x' # no comment",
        length=0.1 + 0.2,
        droop=1 / 3,
        hair_width=1e-5,
        root_color=(0.1, 1 / 7, 1e-17),
    )


def test_saving_and_loading_gives_the_same_style(tmp_path):
    """Round-trip every preset and an awkward style to the last bit."""
    for style in [odd_style(), *map(load_style, style_names())]:
        style.save(tmp_path / "saved.toml")
        assert load_style(tmp_path / "saved.toml") == style
        assert Style.from_toml(style.to_toml()) == style


def test_saved_file_names_every_key_with_its_unit():
    """Find each key on a line of its own, with unit and meaning in a comment."""
    lines = Style().to_toml().splitlines()
    for key in KEYS.values():
        (line,) = [line for line in lines if line.startswith(f"{key.name} = ")]
        assert key.meaning in line and key.unit in line


def test_failed_save_leaves_what_was_there(tmp_path, monkeypatch):
    """Break the rename; the old file stays whole and nothing is left beside it."""
    path = tmp_path / "mine.toml"
    Style(length=0.2).save(path)

    def refuse(*_):
        raise OSError(13, "Permission denied")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(StyleError, match=r"mine\.toml: cannot be written: Permission denied"):
        Style(length=0.4).save(path)
    assert load_style(path).length == 0.2
    assert list(tmp_path.iterdir()) == [path]


def test_saving_into_a_missing_folder_is_one_line(tmp_path):
    """Name the file that cannot be written."""
    with pytest.raises(StyleError, match=r"mine\.toml: cannot be written"):
        Style().save(tmp_path / "none" / "mine.toml")


# ---- the class


def test_style_is_frozen():
    """Refuse assignment and point to replace()."""
    with pytest.raises(StyleError, match="replace"):
        Style().length = 0.4  # type: ignore[misc]
    assert Style().length == 0.30


def test_replace_checks_and_leaves_the_original_alone():
    """Change a copy; refuse a wrong change."""
    style = load_style("long")
    changed = style.replace(hold=0.4, length=0.3)
    assert (changed.hold, changed.length, changed.bend) == (0.4, 0.3, style.bend)
    assert style == load_style("long")
    with pytest.raises(StyleError, match=r"hodl.*'hold'"):
        style.replace(hodl=0.4)
    with pytest.raises(StyleError, match="from 0 to 1"):
        style.replace(hold=2)


def test_numpy_numbers_are_numbers():
    """Take NumPy's scalars and arrays, which fitting hands over."""
    style = Style(hold=np.float64(0.25), segments=np.int64(9), root_color=np.array([0.1, 0.2, 0.3]))
    assert style == Style(hold=0.25, segments=9, root_color=(0.1, 0.2, 0.3))
    assert type(style.hold) is float and type(style.segments) is int


def test_styles_can_be_compared_hashed_and_pickled():
    """Use styles as keys and send them to other processes."""
    style = odd_style()
    assert pickle.loads(pickle.dumps(style)) == style
    assert len({style, odd_style(), Style()}) == 2


def test_docstring_tables_every_key_once():
    """Find each key in the one table that says what it becomes."""
    keys = re.findall(r"^ *\| `(\w+)`", Style.__doc__ or "", flags=re.M)
    assert sorted(keys) == sorted(KEYS)


def test_loading_a_style_leaves_taichi_out():
    """Load a style in a fresh interpreter and see that Taichi did not start."""
    code = (
        "import sys, hairkit.style as s; s.load_style('long'); assert 'taichi' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- from a style to physics

MAPS = [
    ("bend", Style.bending_rigidity, "falls"),
    ("bend", Style.bending_stiffness, "falls"),
    ("density", Style.bending_stiffness, "falls"),
    ("segments", Style.bending_stiffness, "rises"),
    ("length", Style.segment_length, "rises"),
    ("segments", Style.segment_length, "falls"),
    ("hold", Style.hold_stiffness, "rises"),
    ("stretch", Style.strain_compliance, "rises"),
    ("stretch", Style.stretch_stiffness, "falls"),
    ("shrinkage", Style.strain_compliance, "rises"),
    ("shrinkage", Style.stretch_stiffness, "falls"),
    ("shrinkage", lambda style: style.stretch_limits()[1], "rises"),
    ("width", Style.air_drag, "rises"),
    ("density", Style.air_drag, "falls"),
    ("width", Style.drag, "rises"),
    ("damping", Style.drag, "rises"),
    ("stiff_root", lambda style: float(style.bending_along(np.array(0.3))), "rises"),
    ("max_stretch", lambda style: style.replace(stretch=0.1).stretch_limits()[1], "rises"),
]


@pytest.mark.parametrize(("key", "physics", "way"), MAPS)
def test_maps_to_physics_are_monotone_over_the_whole_range(key, physics, way):
    """Walk a key from its lowest to its highest value; the quantity goes one way and stays > 0."""
    values = np.linspace(KEYS[key].low, KEYS[key].high, 21)
    if key == "segments":
        values = np.arange(KEYS[key].low, KEYS[key].high + 1)
    found = np.array([physics(Style(**{key: value})) for value in values])
    steps = found[1:] > found[:-1] if way == "rises" else found[1:] < found[:-1]
    assert np.all(steps)
    assert np.all(found >= 0.0)


def test_hold_is_free_at_0_and_rigid_at_1():
    """Check both ends and the middle of the map from hold to a spring."""
    assert Style(hold=0).hold_stiffness() == 0.0
    assert Style(hold=0.5).hold_stiffness() == 300.0
    assert Style(hold=1).hold_stiffness() == math.inf


def test_bending_is_stiffest_at_the_root():
    """Multiply the tip's stiffness by stiff_root at the root, falling on the way."""
    along = Style(stiff_root=5.0).bending_along(np.linspace(0, 1, 9))
    assert along[0] == 5.0 and along[-1] == 1.0
    assert np.all(np.diff(along) < 0)


def test_inextensible_hair_has_only_a_dead_zone():
    """Give hair that does not stretch a dead zone and the stiffest spring."""
    style = Style(max_stretch=0.4)
    assert style.stretch_limits() == (-0.002, 0.002)
    assert style.stretch_stiffness() == 1e7


def test_stretching_hair_stops_at_max_stretch():
    """Let hair with stretch > 0 reach max_stretch and no further."""
    assert Style(stretch=0.01).stretch_limits() == (-0.002, 0.05)
    assert Style(stretch=1, max_stretch=0.2).stretch_limits()[1] == 0.2


def test_coiled_hair_can_be_pulled_straight():
    """Let hair that rests at a quarter of its length be pulled to four times that."""
    assert Style(shrinkage=0.75).stretch_limits()[1] == pytest.approx(3.0)


def test_strain_under_a_load_does_not_depend_on_segments():
    """Turn springs back into strain for one newton: the same for any number of segments."""
    compliances = []
    for segments in (6, 12, 48):
        style = Style(stretch=0.5, segments=segments)
        mass = style.density * style.segment_length()
        spring = mass * style.stretch_stiffness()  # [N/m]
        floor = 1.0 / (mass * 1e7 * style.segment_length())
        compliances.append(1.0 / (spring * style.segment_length()) - floor)
    assert compliances == pytest.approx([Style(stretch=0.5).strain_compliance()] * 3)


def test_stiffness_for_another_segment_follows_the_fourth_power():
    """Ask for the bending spring of a strand half as long: sixteen times stiffer."""
    style = load_style("long")
    ratio = style.bending_stiffness(style.segment_length() / 2) / style.bending_stiffness()
    assert ratio == pytest.approx(16.0)


COILED = ("3a", "3b", "3c", "4a", "4b", "4c")


def test_coiled_types_are_the_charts() -> None:
    """Read types 3 and 4: radii and shrinkage as given, and turns that hair of its length takes.

    A helix of radius r and n turns a metre of hair at rest is sqrt(1 + (2 pi r n)^2) times as long
    as its axis, which is 1 / (1 - shrinkage); a zig-zag, 4 r across a turn, sqrt(1 + (4 r n)^2).
    """
    styles = [load_style(name) for name in COILED]
    radius = dict(zip(COILED, (style.coil_radius for style in styles), strict=True))
    assert (radius["3a"], radius["3c"], radius["4a"], radius["4c"]) == (
        11e-3,
        4.5e-3,
        3.5e-3,
        2.5e-3,
    )
    shrinkage = [style.shrinkage for style in styles]
    assert shrinkage[3:] == [0.60, 0.70, 0.75]
    assert shrinkage == sorted(shrinkage)
    definition = [style.definition for style in styles]
    assert definition == sorted(definition, reverse=True)
    assert (definition[0], definition[-1]) == (1.0, 0.0)
    for style in styles:
        across = 4.0 if style.zigzag == 1.0 else 2.0 * math.pi
        long = math.sqrt(1.0 + (across * style.coil_radius * style.coil) ** 2)
        assert long == pytest.approx(1.0 / (1.0 - style.shrinkage), rel=0.002), style.name
    assert [style.zigzag for style in styles] == [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
