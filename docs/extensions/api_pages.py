"""A page for every public name, and the list of all of them, written before the build from `quanet/__init__.pyi`."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import quanet
from quanet.lab.catalogue import listed_methods
from quanet.methods.about import FAMILIES

FOLDER = Path(__file__).parents[1] / "reference" / "api"  # ignored by git
# Heading and modules of names that are not methods of the catalogue, in this order.
GROUPS = {
    "Base classes": ("quanet.base", "quanet.methods.aggregative", "quanet.bags", "quanet.held_out"),
    "Classifiers and calibration": ("quanet.classifiers", "quanet.nn"),
    "Search and combination": ("quanet.evaluation.searches", "quanet.methods.ensemble"),
    "Parts of distribution matching": ("quanet.methods",),
    "Intervals, differences, trends": ("quanet.uncertainty",),
    "Trust: diagnosis, labels, judges, monitoring": (
        "quanet.evaluation.diagnose",
        "quanet.evaluation.monitor",
        "quanet.labels",
    ),
    "Protocols": ("quanet.protocols",),
    "Evaluation": ("quanet.evaluation", "quanet.lab.store"),
    "Errors of estimates": ("quanet.metrics",),
    "Data": ("quanet.data",),
    "Models in folders": ("quanet.persist",),
    "Reports and figures": ("quanet.report",),
    "The catalogue and the contract": ("quanet.lab.catalogue", "quanet.testing"),
    "Exceptions": ("quanet.errors",),
}
MODULES = {  # names outside `quanet` itself
    "quanet.ray.predict": "ray",
    "quanet.spark.predict": "spark",
    "quanet.client.Client": "client",
}
EXTRAS = {
    "quanet.nn.sentences": "transformers",
    "quanet.nn": "nn",
    "quanet.report.charts": "plot",
    "quanet.report.render": "report",
}

LISTS = ("Parameters", "Attributes", "Returns", "Raises", "Yields", "Other Parameters")
ENTRY = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.+)")

HEAD = """# Python: all public names

All names are in `quanet` and are imported when they are first used. Methods are listed by family; the
[catalogue](../methods.md) has their costs.
"""


def groups() -> dict[str, list[str]]:
    """Names by heading: methods by family, then the others."""
    found: dict[str, list[str]] = {}
    methods = listed_methods()
    for name, about in methods.items():
        found.setdefault(f"Methods: {about.family}", []).append(name)
    prefixes = {prefix: heading for heading, modules in GROUPS.items() for prefix in modules}
    for name, module in quanet.MODULE_OF.items():
        if name not in methods:
            nearest = max((prefix for prefix in prefixes if module.startswith(prefix)), key=len)
            found.setdefault(prefixes[nearest], []).append(name)
    order = [*(f"Methods: {family}" for family in FAMILIES), *GROUPS]
    return {heading: sorted(found[heading], key=str.lower) for heading in order if heading in found}


def extra_of(module: str) -> str | None:
    """The extra that a module needs."""
    return next((extra for prefix, extra in EXTRAS.items() if module.startswith(prefix)), None)


def page(full_name: str, extra: str | None) -> str:
    """The page of a name, in reStructuredText."""
    module, _, name = full_name.rpartition(".")
    thing = getattr(__import__(module, fromlist=[name]), name)
    kind = "class" if inspect.isclass(thing) else "function" if callable(thing) else "data"
    title = name if module == "quanet" else full_name
    options = "   :members:\n   :show-inheritance:\n" if kind == "class" else ""
    if kind == "class" and issubclass(thing, quanet.Quantifier) and thing is not quanet.Quantifier:
        options = "   :show-inheritance:\n"  # fit, predict and the rest are those of Quantifier
    note = f"Needs the extra ``{extra}``: ``pip install 'quanet[{extra}]'``.\n\n" if extra else ""
    shared = "\n*Methods*: those of :py:class:`quanet.Quantifier`, such as `fit`, `predict` and `predict_interval`.\n"
    uses = f"\n.. minigallery:: {full_name}\n   :add-heading: In the gallery\n"
    return (
        f"{title}\n{'=' * len(title)}\n\n{note}.. py:currentmodule:: {module}\n\n.. auto{kind}:: {full_name}\n{options}"
        f"{shared if ':members:' not in options and kind == 'class' else ''}{uses}"
    )


def first_line(name: str) -> str:
    """What a name is, in one line."""
    thing = getattr(quanet, name)
    text = inspect.getdoc(thing) if callable(thing) else "Errors by their short names, such as ae, rae and kld."
    line = (text or "").split("\n\n")[0].replace("\n", " ")
    return re.sub(r" \[\d+\]_", "", line).replace("|", "\\|")


def pages() -> Iterator[tuple[str, str]]:
    """Names and contents of all files."""
    lines = [HEAD]
    for heading, names in groups().items():
        lines += [f"## {heading}", "", "| | |", "|---|---|"]
        lines += [f"| [`{name}`]({name}.rst) | {first_line(name)} |" for name in names]
        lines += [""]
    lines += ["## Engines and the service", "", "| | |", "|---|---|"]
    lines += [f"| [`{name}`]({name}.rst) | needs the extra `{extra}` |" for name, extra in MODULES.items()]
    every = [*(name for names in groups().values() for name in names), *MODULES]
    yield "index.md", "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *every, "```", ""])
    for name, module in quanet.MODULE_OF.items():
        yield f"{name}.rst", page(f"quanet.{name}", extra_of(module))
    for full_name, extra in MODULES.items():
        yield f"{full_name}.rst", page(full_name, extra)


def write_pages(app: Any) -> None:
    """Write what has changed, and remove pages of names that are gone."""
    FOLDER.mkdir(exist_ok=True, parents=True)
    written = set()
    for name, content in pages():
        path = FOLDER / name
        written.add(path)
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            path.write_text(content, encoding="utf-8")
    for stale in set(FOLDER.iterdir()) - written:
        stale.unlink()


def show_public_bases(app: Any, name: str, thing: Any, options: Any, bases: list[Any]) -> None:
    """Bases by their public names; of others, the nearest one that has a name."""
    public = {getattr(quanet, one): one for one in quanet.MODULE_OF if inspect.isclass(getattr(quanet, one))}
    nearest = [next((kind for kind in base.__mro__ if kind in public), None) for base in bases]
    known = [f":py:class:`quanet.{public[base]}`" for base in dict.fromkeys(nearest) if base is not None]
    bases[:] = known or [base for base in bases if base is not object]


def describe_after_names(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Put descriptions below names, where numpydoc expects types.

    Docstrings have ``name : description``, because annotations have the types.
    """
    listed = False
    changed = []
    for place, line in enumerate(lines):
        underlined = place + 1 < len(lines) and set(lines[place + 1]) == {"-"}
        listed = line in LISTS if underlined else listed
        entry = ENTRY.fullmatch(line) if listed else None
        changed += [entry[1], f"    {entry[2]}"] if entry else [line]
    lines[:] = changed


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-bases", show_public_bases)
    app.connect("autodoc-process-docstring", describe_after_names, priority=100)  # before numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
