"""Which kind of interval each bag gets: the one policy, for Python, the commands and the reports.

With ``method="auto"`` a bag gets the first possible kind:

1. One instance, copies of one, one with nearly all of the weight, or one cluster: no kind. The interval is 0 to 1.
2. "network", for `QuaNet`.
3. Fewer than `SMALL_BAG` instances: "conformal", because formulas are approximations for many instances.
4. "closed", if a formula exists.
5. "conformal".
6. "bootstrap", with a warning, if there are no or too few held-out instances.

"bayes" is never chosen automatically.

Where the width of an interval is decided:

=====================================  ================================================================
which kind a bag gets, by its size     here: `SMALL_BAG`, `choose_kinds`
how many held-out instances it needs   here: `MIN_HELD_OUT`; for conformal intervals: `conformal.min_held_out`
how many resamples the bootstrap has   here: `bootstrap_resamples`
intervals of `QuaNet`                  `bayes`: `network_intervals`
intervals of small bags                `conformal`: `calibrate_errors`, `Errors.bounds`
intervals of large bags by formula     `closed_form`
errors of bags above 1,024 instances   `conformal`: `MAX_SIZE`, `Errors.spread`
a fallback without held-out instances  `conformal`: `BootstrapDraws.ends`
errors that were never seen            `unseen_errors`, for every other kind with held-out instances
use of maximum likelihood              `control_variates`; `intervals`: `COMBINED_KINDS`
limits for every kind, weak classifiers  `intervals`: `_limit`
weights, copies and clusters           `sampling`: `sampling_sizes` instead of the size
drift                                  `widening`: `combine_ends`; `quanet.drift.scale`
=====================================  ================================================================
"""

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from quanet.base import Quantifier
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.held_out import HeldOut
from quanet.nn.quanet import QuaNet
from quanet.parameters import check_level, one_of
from quanet.uncertainty.closed_form import closed_form_of
from quanet.uncertainty.conformal import min_held_out
from quanet.uncertainty.sampling import BagEvidence

Method = Literal["auto", "network", "conformal", "closed", "bootstrap", "bayes"]
Target = Literal["bag", "source"]
METHODS = ("auto", "network", "conformal", "closed", "bootstrap", "bayes")
TARGETS = ("bag", "source")
NO_KIND = "none"  # of a bag of one instance or cluster
SMALL_BAG = 20  # instances below which formulas are not reliable
MIN_HELD_OUT = 2  # held-out instances per class, so that their variance can be computed
TOTAL_RESAMPLES = 20_000  # of the bootstrap, over all bags
MIN_RESAMPLES, MAX_RESAMPLES = 100, 1000  # per bag
UNKNOWN_BIAS_NOTE = "not enough held-out instances: the bias is unknown"
ADVICE = "Pass labelled instances that it was not fitted to: held_out=(X, y)."


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The kinds of intervals that bags get.

    Attributes
    ----------
    kinds : (b,) kind of each bag; "none" for a bag of one instance.
    held_out : the held-out instances to use, or None.
    notes : (b,) remarks for readers; empty if there is nothing to report.
    """

    kinds: Any
    held_out: HeldOut | None
    notes: Any

    @property
    def name(self) -> str:
        """All kinds, the most frequent first."""
        kinds, counts = np.unique(self.kinds, return_counts=True)
        return ", ".join(kinds[np.argsort(-counts, kind="stable")].tolist())


def check_options(level: float, method: str, target: str) -> None:
    """Raise `InvalidSetting` for an invalid level, method or target."""
    check_level(level)
    one_of(*METHODS).check("method", method)
    one_of(*TARGETS).check("target", target)


def choose_kinds(
    quantifier: Quantifier, method: str, held_out: HeldOut | None, evidence: BagEvidence, level: float
) -> Choice:
    """The kind of interval of every bag, from its effective size and the held-out instances."""
    sizes = evidence.sizes
    held_out = _usable_held_out(quantifier, method, held_out, level)
    kinds = np.full(len(sizes), NO_KIND, dtype="<U9")
    kinds[sizes > 1] = method if method != "auto" else _first_possible(quantifier, held_out, level, small=False)
    small = (sizes > 1) & (sizes < SMALL_BAG)
    if method == "auto" and small.any():
        kinds[small] = _first_possible(quantifier, held_out, level, small=True)
    notes = evidence.notes.copy()
    if held_out is None:
        known = sizes > 1
        notes[known] = [f"{UNKNOWN_BIAS_NOTE}; {note}" if note else UNKNOWN_BIAS_NOTE for note in notes[known]]
    return Choice(kinds, held_out, notes)


def bootstrap_resamples(resamples: int | None, level: float, bags: int) -> int:
    """Number of resamples per bag; `InvalidSetting` if the caller's number is too small for the level.

    The more bags there are, the fewer resamples each of them gets, because every bag is resampled separately.

    Examples
    --------
    >>> bootstrap_resamples(None, 0.95, 1), bootstrap_resamples(None, 0.95, 1000)
    (1000, 100)
    >>> bootstrap_resamples(None, 0.999, 1000)
    4000
    """
    least = int(np.ceil(2 / (1 - level) - 1e-9))
    if resamples is None:
        return max(min(MAX_RESAMPLES, TOTAL_RESAMPLES // bags), MIN_RESAMPLES, 2 * least)
    if resamples < least:
        raise InvalidSetting(f"a level of {level} needs at least {least} resamples; got {resamples}.")
    return resamples


def _usable_held_out(quantifier: Quantifier, method: str, held_out: HeldOut | None, level: float) -> HeldOut | None:
    """The held-out instances, if they are enough for the method; for "auto", if they are enough for any kind."""
    name = type(quantifier).__name__
    if method == "network" and not isinstance(quantifier, QuaNet):
        raise InvalidSetting(f"{name} has no network, which method='network' needs. Use QuaNet or method='conformal'.")
    if held_out is None and method in {"conformal", "closed"}:
        raise InvalidSetting(f"{name} has no held-out instances, which method={method!r} needs. {ADVICE}")
    if method == "bayes" and not quantifier.reads_posteriors:
        raise InvalidSetting(f"{name} does not read posteriors, which method='bayes' needs. Use method='conformal'.")
    if held_out is None:
        _warn(f"{name} has no held-out instances, so its interval does not include its bias or its learning error.")
        return None
    network = isinstance(quantifier, QuaNet) and method in {"auto", "network"}
    least = 1 if network else min_held_out(level) if method == "conformal" else MIN_HELD_OUT
    if method == "auto" and _too_few(held_out, least):
        _warn(f"{_shortage(quantifier, held_out, least, level)} The interval does not include bias or learning error.")
        return None
    if method != "auto" and _too_few(held_out, least):
        raise InvalidData(f"{_shortage(quantifier, held_out, least, level)} Pass more of them: held_out=(X, y).")
    return held_out


def _first_possible(quantifier: Quantifier, held_out: HeldOut | None, level: float, *, small: bool) -> str:
    """The first kind of the list above that is possible for a bag of several instances."""
    if held_out is None:
        return "bootstrap"
    if isinstance(quantifier, QuaNet):
        return "network"
    formula = closed_form_of(quantifier) is not None
    if formula and not small:
        return "closed"
    if not _too_few(held_out, min_held_out(level)):
        return "conformal"
    if formula:
        return "closed"
    shortage = _shortage(quantifier, held_out, min_held_out(level), level)
    _warn(f"{shortage} A bootstrap interval is used instead, which may be too narrow.")
    return "bootstrap"


def _too_few(held_out: HeldOut, least: int) -> bool:
    return bool(held_out.distinct.min() < least)


def _shortage(quantifier: Quantifier, held_out: HeldOut, least: int, level: float) -> str:
    rarest, different = int(held_out.distinct.argmin()), "" if held_out.groups is None else "different "
    return (
        f"An interval of level {level} needs at least {least} {different}held-out instances of every class; "
        f"class {quantifier.classes_.tolist()[rarest]!r} has {int(held_out.distinct[rarest])}."
    )


def _warn(sentence: str) -> None:
    warnings.warn(f"{sentence} {ADVICE}", QuanetWarning, stacklevel=5)
