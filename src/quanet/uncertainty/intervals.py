"""An interval for every quantifier: `predict_interval` for one bag, `predict_interval_bags` for many."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import AggregativeQuantifier, Quantifier
from quanet.errors import InvalidBags, InvalidSetting, QuanetWarning
from quanet.uncertainty.bayes import posterior_draws, shortest
from quanet.uncertainty.bootstrap import draw
from quanet.uncertainty.closed import Ends, closed_form, closed_form_of
from quanet.uncertainty.conformal import Calibrations, Errors, calibrations_of, least_held
from quanet.uncertainty.held import Held, Likelihoods, aggregate_bags, brought_ahead, held_of, remembered, unshrunk
from quanet.uncertainty.regions import Interval
from quanet.uncertainty.steady import Steadied

Method = Literal["auto", "conformal", "closed", "bootstrap", "bayes"]
METHODS = ("auto", "conformal", "closed", "bootstrap", "bayes")
STEADIED = ("conformal", "bootstrap")  # those that read maximum likelihood beside an estimate
TARGETS = ("bag", "source")
LEAST_HELD = 2  # of a class, to see how its instances differ


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """What is asked: intervals of bags of a pool's inputs."""

    quantifier: Quantifier
    inputs: FloatArray
    bags: Bags
    estimate: FloatArray
    held: Held | None
    level: float
    own: bool
    resamples: int
    rng: int
    kept: bool

    def likelihoods(self) -> Likelihoods | None:
        if not self.quantifier._reads_posteriors:  # noqa: SLF001
            return None
        if self.held is None or not self.kept:
            return Likelihoods(self.held, self.quantifier.prior_)
        return remembered(self.quantifier, "likelihoods", lambda: Likelihoods(self.held, self.quantifier.prior_))

    def calibrations(self) -> Calibrations:
        assert self.held is not None
        return calibrations_of(self.quantifier, self.held, own=self.own, seed=self.rng, kept=self.kept)

    def held_errors(self, n: int) -> tuple[list[Errors], float] | None:
        if self.held is None:
            return None
        found, _, ratio = self.calibrations().of_size(self.quantifier, n)
        return found, ratio


def predict_interval(
    quantifier: Quantifier,
    X: Any,
    level: float = 0.95,
    *,
    method: Method = "auto",
    target: Literal["bag", "source"] = "bag",
    held_out: tuple[Any, Any] | None = None,
    resamples: int = 1000,
    rng: int = 0,
) -> Interval:
    """Prevalences of one bag of instances X, with lower and upper ends.

    Parameters
    ----------
    quantifier : fitted.
    X : instances of the bag, two at least.
    level : how often an interval should hold the truth.
    method : "conformal", calibrated on bags of held-out rows, for any quantifier; "closed", a formula, for CC, PCC,
        ACC, PACC, EMQ and a QuaNet whose network does not correct its base; "bootstrap"; "bayes". "auto" takes the
        formula where there is one, except for QuaNet, and conformal intervals otherwise.
    target : "bag", the shares of these very instances, or "source", those of what they were drawn from at random, which
        are less certain: of ten coins thrown, or of the coin.
    held_out : instances and labels that the quantifier has not been fitted to, (X, y). None takes what fit has kept.
        Methods that learn nothing from held-out rows, such as CC, keep none: then intervals are those of a bootstrap
        of the bag alone, with a warning.
    resamples : of the bootstrap.
    rng : seed.

    Notes
    -----
    All of them suppose that only prevalences have changed since training. Where instances of a class have changed
    too, intervals hold the truth less often than they say.

    Where a method's bias is known from held-out rows, as that of CC, the interval lies where the truth may be, and is
    widened to hold the estimate too. So it does where maximum likelihood on the same posteriors shows part of an
    estimate's error, and where the classifier is known to be ahead of those of its folds (`quanet.lead`). Where a weak
    classifier's estimates are shrunk (`quanet.shrinkage`), the interval is that of the estimate before, widened by the
    same share of what it leaves out of 0 to 1: a useless classifier has intervals from 0 to 1.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> X, y = Gaussians().draw([0.5, 0.5], 1000, rng=0)
    >>> new, _ = Gaussians().draw([0.8, 0.2], 300, rng=1)
    >>> found = predict_interval(EMQ().fit(X, y), new)
    >>> found.lower.round(2), found.upper.round(2)
    (array([0.71, 0.18]), array([0.82, 0.29]))
    """
    check_is_fitted(quantifier, "classes_")
    n = _num_samples(X)
    bags = Bags([np.arange(n)])
    found = predict_interval_bags(
        quantifier,
        X,
        bags,
        level,
        method=method,
        target=target,
        held_out=held_out,
        resamples=resamples,
        rng=rng,
    )
    return Interval(
        found.estimate[0],
        found.lower[0],
        found.upper[0],
        found.covariance[0],
        found.sizes[0],
        level,
        found.method,
        found.classes,
    )


def predict_interval_bags(
    quantifier: Quantifier,
    X: Any,
    bags: Bags,
    level: float = 0.95,
    *,
    method: Method = "auto",
    target: Literal["bag", "source"] = "bag",
    held_out: tuple[Any, Any] | None = None,
    resamples: int = 1000,
    rng: int = 0,
) -> Interval:
    """Prevalences of bags of a pool X, with lower and upper ends, (b, k); options as for `predict_interval`."""
    check_is_fitted(quantifier, "classes_")
    # A search gives the interval of the quantifier that it has chosen.
    quantifier = cast("Quantifier", getattr(quantifier, "quantifier_", quantifier))
    _check(level, method, target, bags, resamples)
    least = least_held(level) if method == "conformal" or _prefers_conformal(quantifier, method) else LEAST_HELD
    reader = unshrunk(quantifier) if held_out is not None else brought_ahead(quantifier)
    held = held_of(reader, held_out, least=least, purpose=f"an interval of level {level}")
    chosen = _choose(quantifier, method, held)
    inputs = quantifier._inputs_of(X)  # noqa: SLF001
    estimate = aggregate_bags(quantifier, quantifier._rows(inputs), bags)  # noqa: SLF001
    if held is not None and held_out is None and chosen in STEADIED and _is_unsteady(reader):
        reader = remembered(reader, "steadied", lambda: Steadied.of(reader, held))
    read = aggregate_bags(reader, reader._rows(inputs), bags) if reader is not quantifier else estimate  # noqa: SLF001
    task = _Task(reader, inputs, bags, read, held, level, target == "bag", resamples, rng, kept=held_out is None)
    lower, upper, covariance = MAKERS[chosen](task)
    # What is not a prevalence cannot be true; and an interval without its estimate would only confuse.
    lower = np.minimum(np.clip(lower, 0, 1), estimate)
    upper = np.maximum(np.clip(upper, 0, 1), estimate)
    # As far as a classifier is not trusted, neither are the errors that it makes on its own held-out rows.
    lower, upper = lower - quantifier.shrinkage_ * lower, upper + quantifier.shrinkage_ * (1 - upper)
    return Interval(estimate, lower, upper, covariance, bags.sizes, level, chosen, quantifier.classes_)


def _check(level: float, method: str, target: str, bags: Bags, resamples: int) -> None:
    if not 0 < level < 1:
        raise InvalidSetting(f"level is a probability between 0 and 1, such as 0.95; got {level}.")
    if method not in METHODS:
        raise InvalidSetting(f"method is one of {', '.join(METHODS)}; got {method!r}.")
    if target not in TARGETS:
        raise InvalidSetting(f"target is one of {', '.join(TARGETS)}; got {target!r}.")
    if bags.sizes.min() < 2:
        which = bags.labels.tolist()[int(bags.sizes.argmin())]
        raise InvalidBags(
            f"bag {which!r} has one instance, which shows nothing of how instances differ. Give two at least."
        )
    least = int(np.ceil(2 / (1 - level) - 1e-9))
    if method in {"auto", "bootstrap"} and resamples < least:
        raise InvalidSetting(f"a level of {level} needs at least {least} resamples; got {resamples}.")


def _prefers_conformal(quantifier: Quantifier, method: str) -> bool:
    # A network's choice between itself and its base is better calibrated than taken for granted.
    return method == "auto" and (closed_form_of(quantifier) is None or hasattr(quantifier, "corrects_"))


def _is_unsteady(quantifier: Quantifier) -> bool:
    # Rows that are made of posteriors alone, and an estimate that is not maximum likelihood itself.
    return isinstance(quantifier, AggregativeQuantifier) and closed_form_of(quantifier) != "likelihood"


def _choose(quantifier: Quantifier, method: str, held: Held | None) -> str:
    name = type(quantifier).__name__
    if held is None and method in {"conformal", "closed"}:
        raise InvalidSetting(
            f"{name} has kept no held-out rows, which method={method!r} needs. "
            "Give labelled instances that it was not fitted to: held_out=(X, y)."
        )
    if method == "bayes" and not quantifier._reads_posteriors:  # noqa: SLF001
        raise InvalidSetting(f"{name} does not read posteriors, which method='bayes' needs. Take 'conformal'.")
    if held is None:
        warnings.warn(
            f"{name} has kept no held-out rows, so that its interval knows nothing of its bias or of what it has "
            "learnt. Give labelled instances that it was not fitted to: held_out=(X, y).",
            QuanetWarning,
            stacklevel=4,
        )
        return "bootstrap" if method == "auto" else method
    if method != "auto":
        return method
    return "conformal" if _prefers_conformal(quantifier, method) else "closed"


def _conformal(task: _Task) -> Ends:
    return task.calibrations().ends(task.quantifier, task.estimate, task.bags.sizes, task.level)


def _closed(task: _Task) -> Ends:
    likelihoods = task.likelihoods() or Likelihoods(None, task.quantifier.prior_)
    assert task.held is not None
    return closed_form(task.quantifier, task.held, likelihoods, task.inputs, task.bags, level=task.level, own=task.own)


def _bootstrap(task: _Task) -> Ends:
    likelihoods = task.likelihoods()
    found = []
    for position, (members, estimate) in enumerate(zip(_members(task.bags), task.estimate, strict=True)):
        # Seeded by the bag's own place: its neighbours change nothing.
        rng = np.random.default_rng([task.rng, position])
        drawn = draw(
            task.quantifier, task.inputs[members], likelihoods, resamples=task.resamples, own=task.own, rng=rng
        )
        found.append(drawn.ends(estimate, task.level, task.held_errors(len(members))))
    lower, upper, covariance = (np.stack(part) for part in zip(*found, strict=True))
    return lower, upper, covariance


def _members(bags: Bags) -> list[IntArray]:
    return np.split(bags.flat, np.cumsum(bags.sizes)[:-1])


def _bayes(task: _Task) -> Ends:
    likelihoods = task.likelihoods()
    assert likelihoods is not None
    lower, upper = np.empty_like(task.estimate), np.empty_like(task.estimate)
    covariance = np.empty((*task.estimate.shape, task.estimate.shape[1]))
    labels = closed_form_of(task.quantifier) == "labels"
    rng = np.random.default_rng(task.rng)
    for positions, stack in task.bags.gather(task.inputs):
        draws = posterior_draws(stack, task.held, likelihoods, labels=labels, own=task.own, rng=rng)
        lower[positions], upper[positions] = shortest(draws, task.level)
        centred = draws - draws.mean(axis=0)
        covariance[positions] = np.einsum("rbc,rbd->bcd", centred, centred) / (len(draws) - 1)
    return lower, upper, covariance


MAKERS = {"conformal": _conformal, "closed": _closed, "bootstrap": _bootstrap, "bayes": _bayes}
