"""Choose the methods to compare: by name or by speed, and whether they can run on the data."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import quanet
from quanet.arrays import LabelArray
from quanet.classifiers.text import is_text
from quanet.errors import InvalidSetting, MissingExtra
from quanet.lab.catalogue import all_methods, find_method

SETS = ("quick", "all")
SEARCH = "AutoQuantifier"  # compares the other methods itself
SLOW = ("KDEyHD",)  # although it uses posteriors: with more than two classes it draws many points for every bag
# Rough run times, relative to a method that uses posteriors, for the estimate of the remaining time.
NETWORK_COST, SLOW_COST = 200.0, 10.0


def choose_methods(asked: Sequence[str]) -> list[str]:
    """Names of methods, fastest first.

    Parameters
    ----------
    asked : names in upper or lower case; or "quick" (methods that use posteriors and take seconds) or "all".

    Examples
    --------
    >>> choose_methods(["emq", "CC", "hdx"])
    ['CC', 'EMQ', 'HDx']
    >>> "HistNetQ" in choose_methods(["quick"]), "HistNetQ" in choose_methods(["all"])
    (False, True)
    """
    if len(asked) == 1 and asked[0].lower() in SETS:
        quick = asked[0].lower() == "quick"
        whole = [name for name, kind in all_methods().items() if not _needed(kind) and name != SEARCH]
        return sorted((name for name in whole if not quick or relative_cost(name) <= 1), key=_speed)
    wanted = [name for name in asked if name.lower() not in SETS]
    if len(wanted) < len(asked):
        raise InvalidSetting("quick and all cannot be combined with names. Use one of them alone, or list methods.")
    return sorted({find_method(name) for name in wanted}, key=_speed)


def obstacle(name: str, X: Any, classes: LabelArray) -> str:
    """The reason why a method cannot run on these data, according to its catalogue entry; "" if it can."""
    kind = _class_or_none(name)
    if kind is None:
        return ""
    k, needed = len(classes), _needed(kind)
    if needed:
        return f"it combines other methods and needs {' and '.join(needed)}. Use it from Python."
    if kind.about.classes == "two" and k > 2:
        return f"it needs two classes; these data have {k}."
    if kind.about.classes == "ordered" and k == 2:
        return "it needs at least three ordered classes; these data have two."
    if kind.about.classes == "ordered" and classes.dtype.kind not in "biuf":
        return "it needs ordered classes; these labels are names without an order."
    if kind.about.needs == "text" and not is_text(X):
        return "it needs texts; these instances are numbers."
    return ""


def _needed(kind: Any) -> list[str]:
    """Parameters without a default, which are other methods."""
    parameters: Mapping[str, inspect.Parameter] = inspect.signature(kind).parameters
    return [name for name, one in parameters.items() if one.default is one.empty]


def method_class(name: str) -> Any:
    """The class of a method; raises `MissingExtra` if its extra is not installed."""
    return getattr(quanet, name)


def _class_or_none(name: str) -> Any:
    """The class of a method; None if its extra is not installed."""
    try:
        return method_class(name)
    except MissingExtra:
        return None


def relative_cost(name: str) -> float:
    """Rough run time of a method, relative to a method that uses posteriors."""
    kind = _class_or_none(name)
    if kind is None:
        return 0.0
    if name in quanet.NEED_TORCH:
        return NETWORK_COST
    slow = kind.about.needs in ("features", "text") or name in (SEARCH, *SLOW)
    return SLOW_COST if slow else 1.0


def _speed(name: str) -> tuple[float, str]:
    return relative_cost(name), name
