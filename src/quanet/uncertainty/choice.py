"""Which kind of interval a bag gets: the one policy, for Python, the commands and the reports.

With ``method="auto"`` a bag gets the first kind of these that its size and the held-out instances allow:

1. One instance: no kind. Its interval is everything from 0 to 1.
2. Fewer than 20 instances: "conformal", since formulas are for many instances.
3. "closed", where a formula exists; not for a `QuaNet`, whose choice between network and base it does not know.
4. "conformal".
5. "bootstrap", with a warning, where no held-out instances were kept, or too few.

"bayes" is never chosen.
"""

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from quanet.arrays import IntArray
from quanet.base import Quantifier
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.uncertainty.closed import closed_form_of
from quanet.uncertainty.conformal import least_held
from quanet.uncertainty.held import Held

Method = Literal["auto", "conformal", "closed", "bootstrap", "bayes"]
METHODS = ("auto", "conformal", "closed", "bootstrap", "bayes")
TARGETS = ("bag", "source")
NONE = "none"  # the kind of a bag of one instance
FEW = 20  # instances, below which formulas are not reliable
LEAST_HELD = 2  # held-out instances of a class, to see how its instances differ
DRAWS = 20_000  # of the bootstrap, over all bags together
RESAMPLES = (100, 1000)  # of one bag: the fewest and the most
ALONE = "one instance: any share is possible"
UNKNOWN_BIAS = "not enough held-out instances: the bias is unknown"


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What intervals are made of.

    Attributes
    ----------
    kinds : (b,) kind of interval of every bag; "none" for a bag of one instance.
    held : the held-out instances to use, or None.
    notes : (b,) what a reader should know about a bag's interval; empty where there is nothing to know.
    """

    kinds: Any
    held: Held | None
    notes: Any

    @property
    def name(self) -> str:
        """All kinds, the most frequent first."""
        kinds, counts = np.unique(self.kinds, return_counts=True)
        return ", ".join(kinds[np.argsort(-counts, kind="stable")].tolist())


def check_options(level: float, method: str, target: str) -> None:
    """Raise `InvalidSetting` for an option that no interval can have."""
    if not 0 < level < 1:
        raise InvalidSetting(f"level is a probability between 0 and 1, such as 0.95; got {level}.")
    if method not in METHODS:
        raise InvalidSetting(f"method is one of {', '.join(METHODS)}; got {method!r}.")
    if target not in TARGETS:
        raise InvalidSetting(f"target is one of {', '.join(TARGETS)}; got {target!r}.")


def choose(quantifier: Quantifier, method: str, held: Held | None, sizes: IntArray, level: float) -> Choice:
    """The kind of interval of every bag, by its size (b,) and what is known of held-out instances."""
    held = _known(quantifier, method, held, level)
    kinds = np.full(len(sizes), NONE, dtype="<U9")
    kinds[sizes > 1] = method if method != "auto" else _first(quantifier, held, level, few=False)
    few = (sizes > 1) & (sizes < FEW)
    if method == "auto" and few.any():
        kinds[few] = _first(quantifier, held, level, few=True)
    notes = np.full(len(sizes), "" if held is not None else UNKNOWN_BIAS, dtype=object)
    notes[sizes == 1] = ALONE
    return Choice(kinds, held, notes)


def resamples_of(resamples: int | None, level: float, bags: int) -> int:
    """How often the bootstrap draws a bag, or `InvalidSetting` if that is too rare for the level.

    It takes its time for every bag, so that each of many `bags` gets fewer draws.

    Examples
    --------
    >>> resamples_of(None, 0.95, 1), resamples_of(None, 0.95, 1000), resamples_of(None, 0.999, 1000)
    (1000, 100, 4000)
    """
    least = int(np.ceil(2 / (1 - level) - 1e-9))
    if resamples is None:
        fewest, most = RESAMPLES
        return max(min(most, DRAWS // bags), fewest, 2 * least)
    if resamples < least:
        raise InvalidSetting(f"a level of {level} needs at least {least} resamples; got {resamples}.")
    return resamples


def _known(quantifier: Quantifier, method: str, held: Held | None, level: float) -> Held | None:
    """The held-out instances, if they are enough for the method; for "auto", if they are enough for any."""
    name = type(quantifier).__name__
    if held is None and method in {"conformal", "closed"}:
        raise InvalidSetting(
            f"{name} has kept no held-out rows, which method={method!r} needs. "
            "Give labelled instances that it was not fitted to: held_out=(X, y)."
        )
    if method == "bayes" and not quantifier._reads_posteriors:  # noqa: SLF001
        raise InvalidSetting(f"{name} does not read posteriors, which method='bayes' needs. Use 'conformal'.")
    if held is None:
        _warn(f"{name} has kept no held-out rows, so its interval does not include its bias or its learning error.")
        return None
    if method == "auto" and _too_few(held, LEAST_HELD):
        _warn(f"{_shortage(quantifier, held, LEAST_HELD, level)} The interval does not include bias or learning error.")
        return None
    least = least_held(level) if method == "conformal" else LEAST_HELD
    if method != "auto" and _too_few(held, least):
        raise InvalidData(f"{_shortage(quantifier, held, least, level)} Give more: held_out=(X, y).")
    return held


def _first(quantifier: Quantifier, held: Held | None, level: float, *, few: bool) -> str:
    if held is None:
        return "bootstrap"
    formula = closed_form_of(quantifier) is not None
    # A network's choice between itself and its base is not in the formula.
    if formula and not few and not hasattr(quantifier, "corrects_"):
        return "closed"
    if not _too_few(held, least_held(level)):
        return "conformal"
    if formula:
        return "closed"
    _warn(f"{_shortage(quantifier, held, least_held(level), level)} A bootstrap is used, which may be too narrow.")
    return "bootstrap"


def _too_few(held: Held, least: int) -> bool:
    return bool(held.distinct.min() < least)


def _shortage(quantifier: Quantifier, held: Held, least: int, level: float) -> str:
    rarest, different = int(held.distinct.argmin()), "" if held.groups is None else "different "
    return (
        f"An interval of level {level} needs at least {least} {different}held-out instances of every class; there are "
        f"{int(held.distinct[rarest]) or 'none'} of class {quantifier.classes_.tolist()[rarest]!r}."
    )


def _warn(sentence: str) -> None:
    advice = "" if "held_out=" in sentence else " Give labelled instances that it was not fitted to: held_out=(X, y)."
    warnings.warn(sentence + advice, QuanetWarning, stacklevel=5)
