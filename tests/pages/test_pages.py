"""Every code block of every page runs, or is marked as output."""

import shutil
from functools import cache

import pytest

from tests.pages.blocks import BEGINS_IN
from tests.pages.commands import ROOT
from tests.pages.folders import make_folder
from tests.pages.problems import problems_of
from tests.pages.running import run_page

# What `make docs` writes.
BUILT = {"_build", "auto_gallery", "measurements", "api"}
COPIES = {"docs/changelog.md", "docs/contributing.md", "docs/reference/command-line.md"}


def pages():
    """The names of all pages."""
    found = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")]
    names = [path.relative_to(ROOT).as_posix() for path in found if not BUILT & set(path.parts)]
    return ["README.md", "CONTRIBUTING.md", *sorted(set(names) - COPIES)]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """Folders in which pages begin, made when first wanted."""

    @cache
    def folder(name):
        home = tmp_path_factory.mktemp(name)
        make_folder(name, home)
        return home

    return folder


@pytest.mark.no_cover
@pytest.mark.parametrize("name", pages())
def test_the_blocks_of_a_page_run(name, prepared, tmp_path, monkeypatch):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not (found := problems_of(name, text)), "\n".join(found)
    for folder in BEGINS_IN.findall(text):
        shutil.copytree(prepared(folder), tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    run_page(name, text)
