"""The catalogue: what every method is, for whom and at what cost."""

from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from quanet.errors import InvalidSetting, MissingExtra

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("name", "reference", "classes", "needs", "cost")


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
    # Those of extras that are not installed are known by their names too: to use one says which extra it needs.
    known = {one.lower(): one for one in (*all_methods(), *_networks(public))}
    found = known.get(name.strip().lower())
    if found is None:
        near = [known[one] for one in get_close_matches(name.strip().lower(), known, 3, 0.5)]
        told = f"Did you mean {' or '.join(near)}?" if near else "`quanet methods` lists all."
        raise InvalidSetting(f"no method is called {name!r}. {told}")
    return found


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


def _networks(public: Any) -> list[str]:
    rooms: dict[str, tuple[str, ...]] = public._ROOMS  # noqa: SLF001
    return [*rooms["nn.estimator"], *rooms["nn.sets"]]
