"""Laws of the documentation: links lead somewhere, and pages stay as short as promised."""

import re
import subprocess
from pathlib import Path

import pytest

import quanet

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def documents() -> list[Path]:
    found = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    names = found.splitlines() or [str(path.relative_to(ROOT)) for path in ROOT.glob("*.md")]
    return [ROOT / name for name in names]


def anchors(document: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(document):
    for link in LINK.findall(FENCE.sub("", document.read_text()).replace("\n", " ")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path) if path else document
        assert target.exists(), f"{document.name}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{document.name}: {link}"


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_the_tree_in_contributing_lists_every_package_and_module():
    source = ROOT / "src" / "quanet"
    parts = [path for path in source.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    tree = (ROOT / "CONTRIBUTING.md").read_text()
    for part in parts:
        name = f"{part.name}/" if part.is_dir() else part.name
        assert name.startswith("__") or f"\n  {name} " in tree, name


def python_in(document: Path) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", document.read_text(), re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_code_in_the_docs_uses_public_names(document):
    code = python_in(document)
    imported = ",".join(re.findall(r"from quanet import (.*)", code)).replace(" ", "").split(",")
    for name in {*imported, *re.findall(r"\bquanet\.(\w+)", code)} - {""}:
        assert name in {*quanet.__all__, "ray", "spark", "client"}, name
    assert not re.search(r"(from|import) quanet\.(?!ray$|spark$|client$)", code, re.MULTILINE)


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_files_named_in_the_docs_exist(document):
    if document.name == "CHANGELOG.md":  # tells of old names, too
        return
    text = document.read_text()
    written = re.findall(r"^```python\n# (\S+\.py)$", text, re.MULTILINE)  # by the page itself
    for name in set(re.findall(r"`([a-z_/]+\.pyi?)`", FENCE.sub("", text))) - set(written):
        folders = (ROOT, ROOT / "src", ROOT / "src" / "quanet", ROOT / "benchmarks", document.parent)
        assert any((folder / name).exists() for folder in folders), name
