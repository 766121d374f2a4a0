"""The catalogue: what every method is, for whom and at what cost."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
        for name, kind in sorted(_methods().items())
    ]
    return pd.DataFrame(entries, columns=list(COLUMNS))


def _methods() -> dict[str, Any]:
    """Public classes that have an entry, by name."""
    from quanet.errors import MissingExtra

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
    return found
