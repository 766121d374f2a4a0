"""An interval for every quantifier: `predict_interval` for one bag, `predict_interval_bags` for many."""

from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import AggregativeQuantifier, Quantifier
from quanet.uncertainty.bayes import posterior_draws, shortest, with_learning
from quanet.uncertainty.bootstrap import draw
from quanet.uncertainty.choice import NONE, Method, check_options, choose, resamples_of
from quanet.uncertainty.closed import Ends, closed_form, closed_form_of
from quanet.uncertainty.conformal import Calibrations, Errors, calibrations_of
from quanet.uncertainty.held import Held, Likelihoods, brought_ahead, held_of, remembered, unshrunk
from quanet.uncertainty.learning import learning_covariance
from quanet.uncertainty.regions import Interval
from quanet.uncertainty.steady import Steadied

STEADIED = ("conformal", "bootstrap")  # kinds that read maximum likelihood next to an estimate


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """What is asked: intervals of bags of a pool's inputs; `positions` are the bags' places among all."""

    quantifier: Quantifier
    inputs: FloatArray
    bags: Bags
    positions: IntArray
    estimate: FloatArray
    held: Held | None
    level: float
    own: bool
    resamples: int | None
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
    resamples: int | None = None,
    rng: int = 0,
) -> Interval:
    """Prevalences of one bag of instances X, with lower and upper ends.

    Parameters
    ----------
    quantifier : fitted.
    X : instances of the bag. A single instance gets an interval from 0 to 1: it does not show how instances differ.
    level : how often an interval should hold the truth.
    method : "conformal", calibrated on bags of held-out rows, for any quantifier; "closed", a formula, for CC, PCC,
        ACC, PACC, EMQ and a QuaNet whose network does not correct its base; "bootstrap"; "bayes". "auto" uses the
        formula where there is one, except for QuaNet and for bags of fewer than 20 instances, and conformal intervals
        otherwise; where too few instances were held out for them, the formula or, last, the bootstrap.
    target : "bag", the shares of these very instances, or "source", those of what they were drawn from at random, which
        are less certain: of ten coins thrown, or of the coin.
    held_out : instances and labels that the quantifier has not been fitted to, (X, y). None uses what fit has kept.
        Methods that learn nothing from held-out rows, such as CC, keep none: then intervals are those of a bootstrap
        of the bag alone, with a warning.
    resamples : of the bootstrap. None means 1,000 a bag, more for a level above 99.6 %; with "auto" fewer for each of
        many bags, 100 at least.
    rng : seed.

    Notes
    -----
    All of them suppose that only prevalences have changed since training. Where instances of a class have changed
    too, intervals hold the truth less often than they say.

    `benchmarks/results/interval-simulation.md` has the coverage of every kind from a vertex of the simplex to its
    centre, and `docs/how-to/intervals.md` says where a kind must not be used. At shares of 0 and 1 intervals hold the
    truth more often than they say, since they end there.

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
    found = predict_interval_bags(
        quantifier,
        X,
        Bags([np.arange(_num_samples(X))], labels=["all"]),
        level,
        method=method,
        target=target,
        held_out=held_out,
        resamples=resamples,
        rng=rng,
    )
    return found.of_bag(0)


def predict_interval_bags(
    quantifier: Quantifier,
    X: Any,
    bags: Bags,
    level: float = 0.95,
    *,
    method: Method = "auto",
    target: Literal["bag", "source"] = "bag",
    held_out: tuple[Any, Any] | None = None,
    resamples: int | None = None,
    rng: int = 0,
) -> Interval:
    """Prevalences of bags of a pool X, with lower and upper ends, (b, k); options as for `predict_interval`."""
    check_is_fitted(quantifier, "classes_")
    # A search gives the interval of the quantifier that it has chosen.
    quantifier = cast("Quantifier", getattr(quantifier, "quantifier_", quantifier))
    check_options(level, method, target)
    reader = unshrunk(quantifier) if held_out is not None else brought_ahead(quantifier)
    choice = choose(quantifier, method, held_of(reader, held_out), bags.sizes, level)
    inputs, k = quantifier._inputs_of(X), len(quantifier.classes_)  # noqa: SLF001
    estimate = quantifier._aggregate_bags(quantifier._rows(inputs), bags)  # noqa: SLF001
    lower, upper = np.zeros_like(estimate), np.ones_like(estimate)
    covariance = np.broadcast_to(np.eye(k) / 4, (len(bags), k, k)).copy()
    for kind in sorted(set(choice.kinds.tolist()) - {NONE}):
        places = np.flatnonzero(choice.kinds == kind)
        some = bags if len(places) == len(bags) else bags.take(places)
        mine = _reader_for(kind, reader, choice.held, kept=held_out is None)
        read = estimate[places] if mine is quantifier else mine._aggregate_bags(mine._rows(inputs), some)  # noqa: SLF001
        own, kept, draws = target == "bag", held_out is None, None
        if kind == "bootstrap":
            draws = resamples_of(resamples, level, len(bags) if method == "auto" else 1)
        task = _Task(mine, inputs, some, places, read, choice.held, level, own, draws, rng, kept)
        lower[places], upper[places], covariance[places] = MAKERS[kind](task)
    # What is not a prevalence cannot be true; and an interval without its estimate would only confuse.
    lower = np.minimum(np.clip(lower, 0, 1), estimate)
    upper = np.maximum(np.clip(upper, 0, 1), estimate)
    # As far as a classifier is not trusted, neither are the errors that it makes on its own held-out rows.
    lower, upper = lower - quantifier.shrinkage_ * lower, upper + quantifier.shrinkage_ * (1 - upper)
    counted = bags.shares(inputs[:, :k].argmax(axis=1), k) if quantifier._reads_posteriors else None  # noqa: SLF001
    return Interval(
        estimate,
        lower,
        upper,
        covariance,
        bags.sizes,
        level,
        choice.name,
        quantifier.classes_,
        bags.labels,
        counted,
        choice.notes,
    )


def _reader_for(kind: str, reader: Quantifier, held: Held | None, *, kept: bool) -> Quantifier:
    """The quantifier whose errors an interval is made of: with maximum likelihood next to it where that helps."""
    # Rows that are made of posteriors alone, and an estimate that is not maximum likelihood itself.
    unsteady = isinstance(reader, AggregativeQuantifier) and closed_form_of(reader) != "likelihood"
    if held is None or not kept or kind not in STEADIED or not unsteady:
        return reader
    return remembered(reader, "steadied", lambda: Steadied.of(reader, held))


def _conformal(task: _Task) -> Ends:
    return task.calibrations().ends(task.quantifier, task.estimate, task.bags.sizes, task.level)


def _closed(task: _Task) -> Ends:
    likelihoods = task.likelihoods() or Likelihoods(None, task.quantifier.prior_)
    assert task.held is not None
    return closed_form(task.quantifier, task.held, likelihoods, task.inputs, task.bags, level=task.level, own=task.own)


def _bootstrap(task: _Task) -> Ends:
    likelihoods = task.likelihoods()
    assert task.resamples is not None
    found = []
    for position, members, estimate in zip(task.positions.tolist(), _members(task.bags), task.estimate, strict=True):
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
    labels = closed_form_of(task.quantifier) == "labels"
    covariance = _learning(task, likelihoods) if not labels else np.zeros((*task.estimate.shape, len(lower.T)))
    rng = np.random.default_rng(task.rng)
    for positions, stack in task.bags.gather(task.inputs):
        draws = posterior_draws(stack, task.held, likelihoods, labels=labels, own=task.own, rng=rng)
        draws = with_learning(draws, covariance[positions], rng=np.random.default_rng([task.rng, len(draws)]))
        lower[positions], upper[positions] = shortest(draws, task.level)
        centred = draws - draws.mean(axis=0)
        covariance[positions] = np.einsum("rbc,rbd->bcd", centred, centred) / (len(draws) - 1)
    return lower, upper, covariance


def _learning(task: _Task, likelihoods: Likelihoods) -> FloatArray:
    """What calibrating on other held-out rows would change: (b, k, k)."""
    if task.held is None:
        return np.zeros((*task.estimate.shape, task.estimate.shape[1]))
    found = np.empty_like(task.estimate)
    for positions, stack in task.bags.gather(likelihoods(task.inputs)):
        found[positions] = likelihoods.prevalences(stack)
    return learning_covariance(likelihoods(task.held.inputs), task.held, found)


MAKERS = {"conformal": _conformal, "closed": _closed, "bootstrap": _bootstrap, "bayes": _bayes}
