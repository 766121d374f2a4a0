"""Errors of a classifier's labels, learned from held-out instances, and the confusion matrix of a bag that follows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from quanet.bags import Bags
from quanet.errors import InvalidSetting, QuanetWarning
from quanet.uncertainty.relearning import REPLICATES, Likelihoods, as_full_fit, replicates

if TYPE_CHECKING:
    from quanet.arrays import FloatArray, IntArray
    from quanet.base import Quantifier
    from quanet.held_out import HeldOut

RAKING = 100  # steps
LEAST = 1e-12
MAX_RESAMPLED = 5000  # held-out instances of a replicate
MIN_OF_CLASS = 50  # among them


@dataclass(frozen=True, slots=True, eq=False)
class LabelErrors:
    """What held-out instances say about the classifier's labels.

    Attributes
    ----------
    likelihoods : turns posteriors into likelihoods of the classes, calibrated on the held-out instances.
    read : (m, k) likelihoods of the held-out instances.
    labels, codes : (m,) their predicted labels and their classes.
    k : number of classes.
    quantifier : that has learned from them, if its estimates depend on them; else None.
    share : of resampled instances that were used: variances are larger by 1 / share.
    """

    likelihoods: Likelihoods
    read: FloatArray
    labels: IntArray
    codes: IntArray
    k: int
    quantifier: Quantifier | None = None
    share: float = 1.0

    @classmethod
    def of(cls, held_out: HeldOut, prior: FloatArray, quantifier: Quantifier | None = None) -> LabelErrors:
        """Those of held-out instances whose inputs begin with posteriors."""
        posteriors = held_out.inputs[:, : held_out.k]
        likelihoods = Likelihoods(held_out, prior)
        labels = posteriors.argmax(axis=1)
        return cls(likelihoods, likelihoods(posteriors), labels, held_out.codes, held_out.k, quantifier)

    def weights(self, prevalences: FloatArray) -> FloatArray:
        """(m,) the share of every held-out instance if classes had these prevalences."""
        return (prevalences / np.bincount(self.codes, minlength=self.k))[self.codes]


def learn_label_errors(quantifier: Quantifier) -> list[LabelErrors]:
    """The errors of a fitted quantifier's labels, as its final classifier makes them; then of resampled instances."""
    full = as_full_fit(quantifier)
    if not quantifier.reads_posteriors or full.held_out_ is None:
        raise InvalidSetting(
            f"{type(quantifier).__name__} keeps no posteriors of held-out instances, so its classifier's errors are "
            "unknown. Use EMQ, PACC or QuaNet."
        )
    held_out, rng = full.held_out_.doubles(), np.random.default_rng(0)
    found = [LabelErrors.of(held_out, full.prior_)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuanetWarning)  # fit has already warned
        for r, resampled in enumerate(held_out.resamples(rng, REPLICATES)):
            drawn, share = resampled, _thinning(resampled)
            if share < 1:
                drawn = drawn.take(rng.choice(len(drawn.codes), round(share * len(drawn.codes)), replace=False))
                relearned = full.relearn(drawn.inputs, drawn.codes)
            else:  # the same resamples as those of intervals
                learned = replicates(full)
                relearned = learned[r % len(learned)]
            errors = LabelErrors.of(drawn, full.prior_, None if relearned is full else relearned)
            found.append(replace(errors, share=share))
    return found


def _thinning(drawn: HeldOut) -> float:
    """Share of very many resampled instances that suffices, to save time; 1 if a class is rare."""
    share = min(1.0, MAX_RESAMPLED / len(drawn.codes))
    return share if share * drawn.counts.min() >= MIN_OF_CLASS else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class ReadBag:
    """A bag as its rows.

    Attributes
    ----------
    inputs : (n, d).
    share : (n,) of each row in the bag.
    counted : (k,) shares of the labels of all instances.
    squares : (n,) sum of the squared shares of each row's instances.
    """

    inputs: FloatArray
    share: FloatArray
    counted: FloatArray
    squares: FloatArray

    @property
    def size(self) -> float:
        """The effective size."""
        return 1 / float(self.squares.sum())


def _joint(values: FloatArray, labels: IntArray, share: FloatArray) -> FloatArray:
    """Weighted sums of values (n, k) by label: (k, k), classes in rows and labels in columns."""
    k = values.shape[1]
    weighted = values * share[:, None]
    return np.stack([np.bincount(labels, weights=weighted[:, c], minlength=k) for c in range(k)])


def expected_confusion(known: LabelErrors, bag: ReadBag, prevalences: FloatArray) -> FloatArray:
    """The expected confusion matrix at given prevalences: (k, k)."""
    return expected_confusions([known], bag, prevalences[None])[0]


def expected_confusions(known: list[LabelErrors], bag: ReadBag, prevalences: FloatArray) -> FloatArray:
    """The expected confusion matrix by each of r, at its own prevalences: (r, k) -> (r, k, k)."""
    labels = bag.inputs[:, : known[0].k].argmax(axis=1)
    tables = []
    for one, at in zip(known, prevalences, strict=True):
        posteriors = Likelihoods.posteriors(one.likelihoods(bag.inputs), at)
        seen = np.eye(one.k)[one.codes] - Likelihoods.posteriors(one.read, at)
        tables.append(_joint(posteriors, labels, bag.share) + _joint(seen, one.labels, one.weights(at)))
    return rake(np.stack(tables), prevalences, bag.counted)


def rake(tables: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Tables (..., k, k) with given sums of rows (..., k) and columns (k,), near other tables.

    Examples
    --------
    >>> rake(np.array([[0.4, 0.1], [0.1, 0.4]]), np.array([0.7, 0.3]), np.array([0.6, 0.4])).round(3)
    array([[0.546, 0.154],
           [0.054, 0.246]])
    """
    tables = np.maximum(tables, LEAST)
    sums, done = tables.sum(axis=-1), np.zeros(tables.shape[:-2], dtype=bool)
    for _ in range(RAKING):
        raked = tables * (rows / sums)[..., None]
        raked *= columns / np.maximum(raked.sum(axis=-2, keepdims=True), LEAST)
        tables = np.where(done[..., None, None], tables, raked)  # so that no table depends on its neighbours
        sums = tables.sum(axis=-1)
        done = np.abs(sums - rows).max(axis=-1) < 1e-10
        if done.all():
            break
    return tables


def relearned_prevalences(known: list[LabelErrors], bag: ReadBag) -> FloatArray:
    """Estimates of the bag by quantifiers that have learned from resampled held-out instances: (r, k); 0 if none do."""
    bags = Bags(np.arange(len(bag.inputs))[None], weights=bag.share * len(bag.share))
    found = np.zeros((len(known) - 1, known[0].k))
    for r, one in enumerate(known[1:]):
        if one.quantifier is not None:
            found[r] = one.quantifier.aggregate_bags(one.quantifier.rows(bag.inputs), bags)[0]
    return found


def class_covariances(known: LabelErrors, bag: ReadBag, prevalences: FloatArray) -> FloatArray:
    """Covariance of the shares of true classes among the instances with each label, by chance alone: (k, k, k)."""
    posteriors = Likelihoods.posteriors(known.likelihoods(bag.inputs), prevalences)
    labels = bag.inputs[:, : known.k].argmax(axis=1)
    found = np.empty((known.k, known.k, known.k))
    for j in range(known.k):
        part, share = posteriors[labels == j], bag.squares[labels == j]
        found[j] = np.diag(share @ part) - (part * share[:, None]).T @ part
    return found
