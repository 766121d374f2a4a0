"""The catalogue: the facts about every method, read from its `about`."""

import ast
import inspect
import re
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import quanet
from quanet.errors import InvalidSetting, MissingExtra, brief
from quanet.methods.about import About

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("name", "reference", "classes", "needs", "cost")


@cache
def listed_methods() -> dict[str, About]:
    """The facts about all public methods, by name.

    They are read from the source: importing all methods takes seconds.

    Examples
    --------
    >>> listed_methods()["QuaNet"].reference
    'Esuli, Moreo and Sebastiani (2018)'
    """
    found = {}
    for name, module in quanet.MODULE_OF.items():
        about = _entries(module).get(name)
        if about is not None:
            found[name] = about
    return dict(sorted(found.items()))


@cache
def _entries(module: str) -> dict[str, About]:
    """The ``about = About(...)`` of the classes in a module, by class name."""
    source = _source(module)
    if source is None or "About(" not in source:
        return {}
    found = {}
    for kind in ast.parse(source).body:
        for line in getattr(kind, "body", ()):
            if isinstance(kind, ast.ClassDef) and isinstance(line, ast.AnnAssign) and _is_entry(line):
                call: Any = line.value
                named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
                found[kind.name] = About(*map(ast.literal_eval, call.args), **named)
    return found


def _source(module: str) -> str | None:
    loader: Any = getattr(find_spec(module), "loader", None)
    return None if loader is None else loader.get_source(module)


def _is_entry(line: ast.AnnAssign) -> bool:
    return isinstance(line.target, ast.Name) and line.target.id == "about" and isinstance(line.value, ast.Call)


def list_methods() -> "pd.DataFrame":
    """Every public method: name, reference, classes (two, any, ordered), what it needs, cost of a bag.

    Use it to find the methods that fit your data; `quanet methods` prints the same table.

    Returns
    -------
    pandas.DataFrame
        with the columns name, reference, classes, needs and cost.

    Examples
    --------
    >>> methods = list_methods().set_index("name")
    >>> methods.loc["MS", ["reference", "classes", "needs"]].tolist()
    ['Forman (2008)', 'two', 'posteriors']
    >>> methods.index[methods["classes"] == "ordered"].tolist()[:3]
    ['FrankHall', 'OACC', 'ODMy']
    """
    import pandas as pd

    entries = [(name, *(getattr(about, column) for column in COLUMNS[1:])) for name, about in listed_methods().items()]
    return pd.DataFrame(entries, columns=list(COLUMNS))


def find_method(name: str) -> str:
    """The public name of a method, in any case; `InvalidSetting` with the nearest names if it does not exist.

    Examples
    --------
    >>> find_method("kdeyml")
    'KDEyML'
    """
    known = {method.lower(): method for method in listed_methods()}
    wanted = name.strip().lower()
    if wanted in known:
        return known[wanted]
    near = [known[method] for method in get_close_matches(wanted, known, 3, 0.5)]
    hint = f"Did you mean {' or '.join(near)}?" if near else "`quanet methods` lists all."
    raise InvalidSetting(f"Unknown method {brief(name)}. {hint}")


@cache
def all_methods() -> dict[str, Any]:
    """The classes of the methods in the catalogue, by name; networks only if PyTorch is installed."""
    found = {}
    for name in listed_methods():
        with suppress(MissingExtra):
            found[name] = getattr(quanet, name)
    return found


def describe_method(name: str) -> dict[str, Any]:
    """The facts about one method, its summary, its settings and its references.

    Examples
    --------
    >>> found = describe_method("emq")
    >>> found["summary"]
    'Expectation maximization quantifier (SLD): the prevalences under which the bag is most likely.'
    >>> found["settings"]["calibration"]["default"]
    "'bcts'"
    """
    known = find_method(name)
    kind: Any = getattr(quanet, known)
    return {
        "name": known,
        "family": kind.about.family,
        "summary": _summary(kind),
        "classes": kind.about.classes,
        "needs": kind.about.needs,
        "cost": kind.about.cost,
        "reference": kind.about.reference,
        "references": _plain(_section(kind, "References")),
        "settings": {
            setting: {
                "default": "needed" if parameter.default is parameter.empty else repr(parameter.default),
                "means": _meaning(kind, setting),
            }
            for setting, parameter in inspect.signature(kind).parameters.items()
        },
    }


def _summary(kind: type) -> str:
    """The first paragraph of a docstring."""
    return _plain((inspect.getdoc(kind) or "").partition("\n\n")[0])


def _section(kind: type, title: str) -> str:
    """The text under a title in a class's own docstring."""
    own = inspect.cleandoc(kind.__doc__ or "")
    _, found, rest = own.partition(f"{title}\n{'-' * len(title)}\n")
    return re.split(r"\n\n?\w[\w ]*\n-{3,}\n", rest)[0] if found else ""


def _meaning(kind: type, setting: str) -> str:
    """The description of a parameter, from the docstring of the class, of a base class, or of a class it refers to."""
    for base in kind.__mro__:
        for entry in re.split(r"\n(?=\S)", _section(base, "Parameters")):
            names, colon, meaning = entry.partition(" : ")
            if colon and setting in re.split(r",\s*", names):
                text = _plain(meaning)
                reference = re.match(r"(?:see|as in|as for) (\w+)\.\s*", text)
                bases = {ancestor.__name__: ancestor for ancestor in kind.__mro__}
                other = reference and (bases.get(reference[1]) or getattr(quanet, reference[1], None))
                found = _meaning(other, setting) if other else ""
                return f"{found} {text[reference.end() :]}".strip() if reference and found else text
    return ""


def _plain(text: str) -> str:
    """Words without markup, on one line."""
    return " ".join(re.sub(r":\w+:`([^`]*)`|`+([^`]*)`+", lambda found: found[1] or found[2], text).split())
