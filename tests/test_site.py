"""The checks of the built documentation site notice what they are there for."""

import importlib.util
import json
from pathlib import Path

import pytest

import quanet

PATH = Path(__file__).parents[1] / "docs" / "check_site.py"


@pytest.fixture(scope="module")
def check_site():
    spec = importlib.util.spec_from_file_location("check_site", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def site(tmp_path):
    (tmp_path / "index.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#there">b</a><a href="#top">up</a><img src="p.png">'
    )
    (tmp_path / "b.html").write_text(
        '<p id="there"><a href="https://example.org/">elsewhere</a><a href="./">home</a></p>'
    )
    (tmp_path / "p.png").write_bytes(b"")
    index = {"objects": {"quanet": [[0, 0, 1, "", name] for name in quanet.MODULE_OF]}}
    (tmp_path / "searchindex.js").write_text(f"Search.setIndex({json.dumps(index)})")
    return tmp_path


def test_a_site_without_problems_has_none(check_site, site):
    assert list(check_site.broken_links(site)) == []
    assert list(check_site.missing_in_index(site)) == []


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        ('<a href="c.html">c</a>', "c.html does not exist"),
        ('<a href="b.html#nowhere">b</a>', "has no such place"),
        ('<img src="q.png">', "q.png does not exist"),
        ('<script src="https://example.org/x.js"></script>', "loads https://example.org/x.js"),
    ],
)
def test_a_broken_link_is_named_with_its_page(check_site, site, added, problem):
    (site / "b.html").write_text((site / "b.html").read_text() + added)
    [found] = check_site.broken_links(site)
    assert found.startswith("b.html")
    assert problem in found


def test_a_name_that_is_not_in_the_search_is_named(check_site, site):
    index = {"objects": {"quanet": [[0, 0, 1, "", name] for name in quanet.MODULE_OF if name != "EMQ"]}}
    (site / "searchindex.js").write_text(f"Search.setIndex({json.dumps(index)})")
    assert list(check_site.missing_in_index(site)) == ["quanet.EMQ is not in the search"]
