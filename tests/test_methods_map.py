"""The map of methods shows every method once, and the picture is the one that the script draws from its page."""

from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from quanet import list_methods

DOCS = Path(__file__).parents[1] / "docs"


def map_script():
    spec = spec_from_file_location("make_map", DOCS / "make_map.py")
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_map_shows_every_method_once():
    script = map_script()
    families = script.families(script.PAGE.read_text())
    assert Counter(name for methods in families.values() for name in methods) == Counter(list_methods()["name"])
    assert sorted(families) == sorted(name for row in script.ROWS for name, *_ in row)


def test_the_picture_is_drawn_from_the_page():
    script = map_script()
    assert script.draw(script.families(script.PAGE.read_text())) == script.MAP.read_text()
