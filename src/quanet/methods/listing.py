"""The catalogue: what every method is, for whom and at what cost."""

import inspect
import re
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from quanet.errors import InvalidSetting, MissingExtra

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


def catalogue() -> "pd.DataFrame":
    """Every public method: name, reference, classes (two, any, ordered), what it needs, cost of a bag.

    Methods of the network room are listed where PyTorch is installed.

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
        (name, kind.about.reference, kind.about.classes, kind.about.needs, kind.about.cost)
        for name, kind in all_methods().items()
    ]
    return pd.DataFrame(entries, columns=list(COLUMNS))


def find_method(name: str) -> str:
    """The public name of a method, whatever its case; `InvalidSetting` with the nearest ones where there is none.

    Examples
    --------
    >>> find_method("kdeyml")
    'KDEyML'
    """
    public: Any = import_module("quanet")
    wanted = name.strip().lower()
    spelt = next((one for one in public.__all__ if one.lower() == wanted), None)
    if spelt is not None:
        try:
            if hasattr(getattr(public, spelt), "about"):  # nothing else is imported: some rooms take their time
                return spelt
        except MissingExtra:  # pragma: no cover - only without PyTorch; to use it will say what it needs
            return spelt
    known = {one.lower(): one for one in all_methods()}
    near = [known[one] for one in get_close_matches(wanted, known, 3, 0.5)]
    told = f"Did you mean {' or '.join(near)}?" if near else "`quanet methods` lists all."
    raise InvalidSetting(f"no method is called {name!r}. {told}")


@cache
def all_methods() -> dict[str, Any]:
    """Public classes that have an entry in the catalogue, by name."""
    # Not by an import statement: this room is below some of the public names.
    public: Any = import_module("quanet")
    found = {}
    for name in public.__all__:
        try:
            kind = getattr(public, name)
        except MissingExtra:  # pragma: no cover - only without PyTorch
            continue
        if isinstance(kind, type) and hasattr(kind, "about"):
            found[name] = kind
    return dict(sorted(found.items()))


def family_of(kind: type) -> str:
    """The family of a method, by the file it stands in.

    Examples
    --------
    >>> family_of(all_methods()["MS2"]), family_of(all_methods()["KDEyML"])
    ('thresholds', 'matching')
    """
    file = kind.__module__.rpartition(".")[2]
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
