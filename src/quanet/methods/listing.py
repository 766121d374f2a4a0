"""The catalogue: what every method is, for whom and at what cost."""

import ast
import inspect
import re
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from quanet.errors import InvalidSetting, MissingExtra, brief
from quanet.methods.about import About

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("name", "reference", "classes", "needs", "cost")
FAMILIES = {
    "baseline": ("baseline",),
    "counting": ("cde", "counting", "friedman", "neighbours"),
    "thresholds": ("thresholds",),
    "likelihood": ("em", "likelihood"),
    "weights": ("weights",),
    "matching": ("energy", "features", "hellinger", "kde", "matching"),
    "svm": ("svm_counting",),
    "words": ("readme",),
    "ordered": ("frank_hall", "ordinal", "ordinal_matching", "unfolding"),
    "networks": ("estimator", "sets"),
    "composed": ("auto", "ensemble", "multiclass", "selection"),
}


class Listed(NamedTuple):
    """A method's entry, and the family it belongs to."""

    about: About
    family: str


@cache
def listed_methods() -> dict[str, Listed]:
    """The entries of all public methods by name, read from their source: nothing is imported, which takes seconds.

    Examples
    --------
    >>> listed_methods()["QuaNet"].about.reference
    'Esuli, Moreo and Sebastiani (2018)'
    """
    public: Any = import_module("quanet")
    found = {}
    for name, room in public._ROOM_OF.items():  # noqa: SLF001
        about = _entries(room).get(name)
        if about is not None:
            found[name] = Listed(about, _family(room))
    return dict(sorted(found.items()))


@cache
def _entries(room: str) -> dict[str, About]:
    """What the classes of a module say with ``about = About(...)``, by name."""
    source = _source(f"quanet.{room}")
    if source is None or "About(" not in source:
        return {}
    found = {}
    for kind in ast.parse(source).body:
        for line in getattr(kind, "body", ()):
            if isinstance(kind, ast.ClassDef) and isinstance(line, ast.AnnAssign) and _is_entry(line):
                said: Any = line.value
                named = {one.arg: ast.literal_eval(one.value) for one in said.keywords}
                found[kind.name] = About(*map(ast.literal_eval, said.args), **named)
    return found


def _source(module: str) -> str | None:
    loader: Any = getattr(find_spec(module), "loader", None)
    return None if loader is None else loader.get_source(module)


def _is_entry(line: ast.AnnAssign) -> bool:
    return isinstance(line.target, ast.Name) and line.target.id == "about" and isinstance(line.value, ast.Call)


def catalogue() -> "pd.DataFrame":
    """Every public method: name, reference, classes (two, any, ordered), what it needs, cost of a bag.

    Examples
    --------
    >>> methods = catalogue().set_index("name")
    >>> methods.loc["MS", ["reference", "classes", "needs"]].tolist()
    ['Forman (2008)', 'two', 'posteriors']
    >>> methods.index[methods["classes"] == "ordered"].tolist()[:3]
    ['FrankHall', 'OACC', 'ODMy']
    """
    import pandas as pd

    entries = [
        (name, about.reference, about.classes, about.needs, about.cost) for name, (about, _) in listed_methods().items()
    ]
    return pd.DataFrame(entries, columns=list(COLUMNS))


def find_method(name: str) -> str:
    """The public name of a method, whatever its case; `InvalidSetting` with the nearest ones where there is none.

    Examples
    --------
    >>> find_method("kdeyml")
    'KDEyML'
    """
    known = {one.lower(): one for one in listed_methods()}
    wanted = name.strip().lower()
    if wanted in known:
        return known[wanted]
    near = [known[one] for one in get_close_matches(wanted, known, 3, 0.5)]
    told = f"Did you mean {' or '.join(near)}?" if near else "`quanet methods` lists all."
    raise InvalidSetting(f"Unknown method {brief(name)}. {told}")


@cache
def all_methods() -> dict[str, Any]:
    """Public classes that have an entry in the catalogue, by name; those of networks where PyTorch is installed."""
    # Not by an import statement: this room is below some of the public names.
    public: Any = import_module("quanet")
    found = {}
    for name in listed_methods():
        with suppress(MissingExtra):
            found[name] = getattr(public, name)
    return found


def family_of(kind: type) -> str:
    """The family of a method, by the file it stands in.

    Examples
    --------
    >>> family_of(all_methods()["MS2"]), family_of(all_methods()["KDEyML"])
    ('thresholds', 'matching')
    """
    return _family(kind.__module__)


def _family(room: str) -> str:
    file = room.rpartition(".")[2]
    return next(family for family, files in FAMILIES.items() if file in files)


def describe_method(name: str) -> dict[str, Any]:
    """All that there is to say of a method in short: what it does, for whom, its settings, where it comes from.

    Examples
    --------
    >>> found = describe_method("emq")
    >>> found["summary"]
    'Expectation maximization quantifier (SLD): the prevalences under which the bag is most likely.'
    >>> found["settings"]["calibration"]["default"]
    "'bcts'"
    """
    public: Any = import_module("quanet")
    known = find_method(name)
    kind: Any = getattr(public, known)
    return {
        "name": known,
        "family": family_of(kind),
        "summary": _summary(kind),
        "classes": kind.about.classes,
        "needs": kind.about.needs,
        "cost": kind.about.cost,
        "reference": kind.about.reference,
        "references": _plain(_section(kind, "References")),
        "settings": {
            setting: {
                "default": "needed" if one.default is one.empty else repr(one.default),
                "means": _meaning(kind, setting, public),
            }
            for setting, one in inspect.signature(kind).parameters.items()
        },
    }


def _summary(kind: type) -> str:
    """The first paragraph of a docstring."""
    return _plain((inspect.getdoc(kind) or "").partition("\n\n")[0])


def _section(kind: type, title: str) -> str:
    """What a docstring of a class's own has under a title."""
    own = inspect.cleandoc(kind.__doc__ or "")
    _, found, rest = own.partition(f"{title}\n{'-' * len(title)}\n")
    return re.split(r"\n\n?\w[\w ]*\n-{3,}\n", rest)[0] if found else ""


def _meaning(kind: type, setting: str, public: Any) -> str:
    """What the docstring of a class, of one above it, or of the one that it points to says of a parameter."""
    for base in kind.__mro__:
        for entry in re.split(r"\n(?=\S)", _section(base, "Parameters")):
            names, colon, meaning = entry.partition(" : ")
            if colon and setting in re.split(r",\s*", names):
                said = _plain(meaning)
                pointed = re.match(r"(?:see|as in|as for) (\w+)\.\s*", said)
                above = {one.__name__: one for one in kind.__mro__}
                other = pointed and (above.get(pointed[1]) or getattr(public, pointed[1], None))
                found = _meaning(other, setting, public) if other else ""
                return f"{found} {said[pointed.end() :]}".strip() if pointed and found else said
    return ""


def _plain(text: str) -> str:
    """Words without markup, on one line."""
    return " ".join(re.sub(r":\w+:`([^`]*)`|`+([^`]*)`+", lambda found: found[1] or found[2], text).split())
