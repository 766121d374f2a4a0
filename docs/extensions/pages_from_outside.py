"""Pages that are kept outside docs/: measurements, CHANGELOG, CONTRIBUTING. They are copied before the build.

Links in Markdown are relative to the files of the repository, so that they also work there. On the site they lead to
the copies.
"""

import os
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
RESULTS = ROOT / "benchmarks" / "results"
COPIES = DOCS / "measurements"  # ignored by git
# Pages that exist only on the site, by what they are made of.
BUILT = {
    ROOT / "README.md": DOCS / "index.md",
    RESULTS: COPIES / "index.md",
    DOCS / "gallery": DOCS / "auto_gallery" / "index.rst",
    ROOT / "src" / "quanet" / "__init__.pyi": DOCS / "reference" / "api" / "index.md",
    ROOT / "src" / "quanet" / "cli": DOCS / "reference" / "command-line.md",
}
PICTURES = (".png", ".svg")
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")

HEAD = """# Measurements

Every figure of this site was measured. These are the tables that the scripts of `benchmarks/` wrote, each with the
command that repeats it.

| | |
|---|---|
"""


def originals() -> dict[Path, Path]:
    """The copy of each page or picture from outside, by its original."""
    copies = {ROOT / "CHANGELOG.md": DOCS / "changelog.md", ROOT / "CONTRIBUTING.md": DOCS / "contributing.md"}
    for path in sorted(RESULTS.rglob("*")):
        if path.suffix in {".md", *PICTURES}:
            name = path.relative_to(RESULTS).as_posix().replace("/table.md", "-table.md").replace("/", "-")
            copies[path] = COPIES / name
    return copies


def title(page: Path) -> str:
    """The first heading."""
    found = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else page.stem


def copy_pages(app: Any) -> None:
    """Copy what has changed, and write the list of measurements."""
    copies = originals()
    COPIES.mkdir(exist_ok=True)
    for original, copy in copies.items():
        content = original.read_bytes()
        if original.suffix == ".md" and not content.startswith(b"# "):
            content = f"# {original.relative_to(RESULTS).with_suffix('').as_posix()}\n\n".encode() + content
        if not copy.exists() or copy.read_bytes() != content:
            copy.write_bytes(content)
    pages = [copy for copy in copies.values() if copy.suffix == ".md" and copy.parent == COPIES]
    lines = [f"| [{title(page)}]({page.name}) | `benchmarks/results/{original_name(page)}` |" for page in sorted(pages)]
    hidden = ["", "```{toctree}", ":hidden:", "", *(page.stem for page in sorted(pages)), "```", ""]
    index = HEAD + "\n".join([*lines, *hidden])
    if not (COPIES / "index.md").exists() or (COPIES / "index.md").read_text(encoding="utf-8") != index:
        (COPIES / "index.md").write_text(index, encoding="utf-8")
    wanted = {*copies.values(), COPIES / "index.md"}
    for stale in set(COPIES.iterdir()) - wanted:
        stale.unlink()


def original_name(copy: Path) -> str:
    """The path of a measurement below benchmarks/results."""
    by_copy = {kept: original for original, kept in originals().items()}
    return by_copy[copy].relative_to(RESULTS).as_posix()


def lead_to_copies(app: Any, name: str, source: list[str]) -> None:
    """Change the links of a page that lead outside, and those of a copy."""
    page = Path(app.srcdir) / f"{name}.md"
    if not page.exists() or name.startswith("auto_gallery"):
        return
    copies = originals()
    by_copy = {copy: original for original, copy in copies.items()}
    home = by_copy.get(page, page).parent

    def lead(found: re.Match[str]) -> str:
        link, anchor = found[1], found[2] or ""
        if re.match(r"[a-z]+:", link) or link.startswith("<"):
            return found[0]
        target = Path(os.path.normpath(home / link))
        if target in BUILT:
            target, anchor = BUILT[target], ""
        target = copies.get(target, target)
        if target.is_dir() and (target / "index.md").exists():
            target /= "index.md"
        return os.path.relpath(target, page.parent) + anchor

    source[0] = LINK.sub(lead, source[0])


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("builder-inited", copy_pages)
    app.connect("source-read", lead_to_copies)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
