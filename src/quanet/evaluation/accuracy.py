r"""Expected accuracy of a classifier on unlabelled instances: accuracy, F1 and confusion matrix, with intervals.

Two things are known. Held-out instances show how often the classifier confuses each class with each other one, which
gives the confusion matrix :math:`A(p)` of a bag with prevalences p. And the bag's own posteriors, adjusted to p
(Saerens et al. 2002), show how difficult its instances are: their mean over instances with the same label is
:math:`B(p)`. The posteriors of the held-out instances show how far B is off where the truth is known, :math:`B_h(p)`:

.. math:: M = B(p) + A(p) - B_h(p),

which is then made to agree with the estimated prevalences (rows) and with the number of predicted labels (columns) by
raking (Deming and Stephan 1940). M is correct if the held-out instances are representative of their classes, and also
if the posteriors are calibrated. It is the estimator of prediction-powered inference (Angelopoulos et al. 2023), with
posteriors as predictions. The task is known as classifier accuracy prediction (Volpi, Moreo and Sebastiani 2024).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import t

from quanet.bags import Bags
from quanet.data.copies import count_copies
from quanet.errors import InvalidSetting, QuanetWarning
from quanet.uncertainty.intervals import predict_interval_bags
from quanet.uncertainty.relearning import REPLICATES, Likelihoods, as_full_fit, cached, replicates
from quanet.wording import between, percent

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from quanet.arrays import FloatArray, IntArray, LabelArray, Merged
    from quanet.base import Quantifier
    from quanet.held_out import HeldOut
    from quanet.uncertainty.regions import Interval

MAX_INSTANCES = 20_000  # whose posteriors are used; of more, as many that are spread evenly over them
MAX_CELLS = 2500  # of a confusion matrix whose cells have intervals
STEP = 1e-3  # of prevalences, to see how much depends on them
RAKING = 100  # steps
LEAST = 1e-12
MAX_RESAMPLED = 5000  # held-out instances of a replicate
MIN_OF_CLASS = 50  # among them


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """An estimate with the lower and upper end of its interval: arrays of equal shape; NaN if unknown."""

    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedAccuracy:
    """Expected accuracy of the classifier's labels in a bag without labels: what `predict_accuracy` returns.

    Attributes
    ----------
    accuracy, macro_f1 : of all instances, and the mean F1 of the classes.
    f1 : (k,) of every class.
    confusion : (k, k) share of all instances with a true class (row) and a predicted label (column); sums to 1. The
        ends are NaN if there are more than 50 classes.
    level : confidence level of the intervals.
    classes : (k,) labels.
    n : number of instances.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians, predict_accuracy
    >>> X, y = Gaussians(distance=3).draw([0.5, 0.5], 500, rng=0)
    >>> expected = predict_accuracy(EMQ().fit(X, y), X)
    >>> expected.frame()["measure"].tolist(), bool(expected.accuracy.lower < 0.93 < expected.accuracy.upper)
    (['accuracy', 'macro F1', 'F1', 'F1'], True)
    """

    accuracy: Measure
    macro_f1: Measure
    f1: Measure
    confusion: Measure
    level: float
    classes: LabelArray
    n: int

    def frame(self) -> pd.DataFrame:
        """One row for accuracy, macro F1 and the F1 of every class: measure, class, estimate, lower, upper."""
        import pandas as pd

        k = len(self.classes)
        parts = (self.accuracy, self.macro_f1, self.f1)
        values = {
            end: np.concatenate([np.atleast_1d(getattr(one, end)) for one in parts])
            for end in ("estimate", "lower", "upper")
        }
        names = {"measure": ["accuracy", "macro F1", *["F1"] * k], "class": ["", "", *self.classes.tolist()]}
        return pd.DataFrame(names | values)

    def __str__(self) -> str:
        def written(name: str, one: Measure) -> str:
            return f"{name} {percent(float(one.estimate))} ({between(float(one.lower), float(one.upper))})"

        return f"Expected {written('accuracy', self.accuracy)}, {written('macro F1', self.macro_f1)}"


def predict_accuracy(
    quantifier: Quantifier,
    X: Any,
    level: float = 0.95,
    *,
    interval: Interval | None = None,
    weights: ArrayLike | None = None,
    merged: Merged | None = None,
    drift: bool = True,
    rng: int = 0,
) -> ExpectedAccuracy:
    """Predict accuracy, F1 and confusion matrix of the classifier's labels in a bag without labels.

    .. math:: M = B(p) + A(p) - B_h(p)

    The confusion matrix M joins what held-out instances show about the confusions of a bag with prevalences p, A, and
    what the bag's own posteriors show, B, less what these show on held-out instances, :math:`B_h`: the estimator of
    prediction-powered inference [1]_, here for classifier accuracy prediction [2]_. It is then raked [3]_ to agree with
    the estimated prevalences and the predicted labels.

    The classifier's label is the class with the largest posterior, before any adjustment; so these are the labels that
    `predict` of the classifier gives and that `CC` counts.

    Parameters
    ----------
    quantifier : fitted; it must read posteriors and keep held-out instances, as EMQ, PACC and QuaNet do.
    X : instances of the bag, or what `read` returned for them.
    level : confidence level of the intervals.
    interval : prevalences of the bag with their interval, if already computed.
    weights : (n,) exposure weights; None counts every instance once.
    merged : if rows stand for several instances each; `weights` are then the sums of their weights.
    drift : whether the uncertainty of the prevalences includes drift.
    rng : seed of the interval.

    Notes
    -----
    Intervals include three errors: that of the prevalences, that of the held-out instances, and chance in this bag.
    They assume that instances of a class are as difficult as the held-out ones, or that posteriors show it if they are
    not. `benchmarks/results/expected-accuracy.md` has the coverage, also where this does not hold.

    References
    ----------
    .. [1] A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan and T. Zrnic, "Prediction-powered inference",
           Science 382, 2023.
    .. [2] L. Volpi, A. Moreo and F. Sebastiani, "A simple method for classifier accuracy prediction under prior
           probability shift", Discovery Science 2024.
    .. [3] W. E. Deming and F. F. Stephan, "On a least squares adjustment of a sampled frequency table when the expected
           marginal totals are known", Annals of Mathematical Statistics 11, 1940.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> X, y = Gaussians().draw([0.5, 0.5], 1000, rng=0)
    >>> new, truth = Gaussians().draw([0.8, 0.2], 1000, rng=1)
    >>> quantifier = EMQ().fit(X, y)
    >>> print(predict_accuracy(quantifier, new))
    Expected accuracy 85.2 % (81.8 to 88.0 %), macro F1 80.0 % (74.5 to 84.5 %)
    >>> round(float((quantifier.classifier_.predict(new) == truth).mean()), 3)
    0.85
    """
    chosen = quantifier.chosen()
    inputs = chosen.read(X)
    known = cached(chosen, "label errors", lambda: learn_label_errors(chosen))
    whole = Bags(np.arange(len(inputs))[None], pool_size=len(inputs), weights=weights, merged=merged)
    if interval is None:
        interval = predict_interval_bags(chosen, inputs, whole, level, drift=drift, rng=rng).of_bag(0)
    k, n = known[0].k, int(whole.sizes[0])
    bag = _read_bag(inputs.values, whole, k, float(count_copies(inputs.hashes, whole).factor[0]))
    prevalences = _normalized(np.maximum(interval.estimate, 0.5 / n))
    table = expected_confusion(known[0], bag, prevalences)
    variance = _variance(known, bag, table, prevalences, interval.covariance)
    return _measures(table, variance, bag.size, level, chosen.classes_, n)


def _read_bag(inputs: FloatArray, whole: Bags, k: int, copies: float) -> ReadBag:
    """The bag of all inputs (N, d), with as many of them as are used; `copies` is their factor (`BagCopies`)."""
    share = _normalized(whole.relative_weights)
    counted = np.asarray(np.bincount(inputs[:, :k].argmax(axis=1), weights=share, minlength=k), dtype=float)
    squares = share**2
    if whole.merged is not None and whole.weights is not None:
        largest = whole.weights.max()
        squares = whole.merged.squares / largest**2 / (whole.weights / largest).sum() ** 2
    squares = squares * copies
    if len(inputs) > MAX_INSTANCES:
        inputs = inputs[whole.unweighted(inputs[:, :k], np.array([MAX_INSTANCES])).flat]
        share = np.full(MAX_INSTANCES, 1 / MAX_INSTANCES)
        squares = share * max(float(squares.sum()), 1 / MAX_INSTANCES)
    return ReadBag(inputs.astype(float), share, counted, squares)


def _normalized(values: FloatArray) -> FloatArray:
    return values / values.sum()


def _values(table: FloatArray) -> FloatArray:
    """Accuracy, macro F1, F1 of every class, and all cells: (k + 2 + k * k,)."""
    f1 = 2 * np.diag(table) / np.maximum(table.sum(axis=0) + table.sum(axis=1), LEAST)
    return np.concatenate([[np.trace(table), f1.mean()], f1, table.ravel()])


def _slopes(table: FloatArray) -> FloatArray:
    """How much each of `_values` changes with each cell, at given sums of rows and columns: (f, k, k)."""
    k = len(table)
    f1 = np.zeros((k, k, k))
    f1[np.arange(k), np.arange(k), np.arange(k)] = 2 / np.maximum(table.sum(axis=0) + table.sum(axis=1), LEAST)
    cells = np.eye(k * k).reshape(k * k, k, k) if k * k <= MAX_CELLS else np.empty((0, k, k))
    return np.concatenate([np.eye(k)[None], f1.mean(axis=0)[None], f1, cells])


def _variance(
    known: list[LabelErrors], bag: ReadBag, table: FloatArray, prevalences: FloatArray, covariance: FloatArray
) -> FloatArray:
    """Variances of `_values`: (f,); NaN where unknown."""
    k = len(table)
    learned, trained = _learning(known, bag, prevalences)
    gradient = np.empty((learned.shape[0], k))
    for c in range(k):
        towards = STEP * (np.eye(k)[c] - prevalences)
        ends = [_values(expected_confusion(known[0], bag, prevalences + sign * towards)) for sign in (1, -1)]
        gradient[:, c] = (ends[0] - ends[1]) / (2 * STEP)
    values, vectors = np.linalg.eigh(covariance - trained)  # what remains is the error of the bag, and drift
    rest = (vectors * np.maximum(values, 0)) @ vectors.T
    variance = learned + np.einsum("fc,cd,fd->f", gradient, rest, gradient)
    by_label = class_covariances(known[0], bag, prevalences)
    inverse = np.linalg.pinv(by_label.sum(axis=0), rcond=1e-10, hermitian=True)  # rows sum to 0
    slopes = _slopes(table)
    # The sums of rows are the prevalences, whose error is counted above: chance is what they leave open.
    left = slopes - (np.einsum("jcd,fdj->fc", by_label, slopes) @ inverse)[:, :, None]
    chance = np.full(len(variance), np.nan)
    chance[: len(slopes)] = np.einsum("fcj,jcd,fdj->f", left, by_label, left)
    return variance + chance


def _learning(known: list[LabelErrors], bag: ReadBag, prevalences: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variances (f,) and covariance of prevalences (k, k) that come from the number of held-out instances."""
    shifts = relearned_prevalences(known, bag)
    shifts -= shifts.mean(axis=0)
    moved = np.maximum(prevalences + shifts, 0.5 / bag.size)
    moved /= moved.sum(axis=1, keepdims=True)
    found = np.stack([_values(table) for table in expected_confusions(known[1:], bag, moved)])
    share = np.mean([one.share for one in known[1:]])
    return share * found.var(axis=0, ddof=1), share * shifts.T @ shifts / (len(shifts) - 1)


def _measures(
    table: FloatArray, variance: FloatArray, size: float, level: float, classes: LabelArray, n: int
) -> ExpectedAccuracy:
    k, values = len(table), _values(table)
    lower, upper = _ends(values, variance, level, size)

    def measure(start: int, *shape: int) -> Measure:
        part = slice(start, start + int(np.prod(shape)))
        return Measure(values[part].reshape(shape), lower[part].reshape(shape), upper[part].reshape(shape))

    return ExpectedAccuracy(measure(0), measure(1), measure(2, k), measure(2 + k, k, k), level, classes, n)


def _ends(values: FloatArray, variance: FloatArray, level: float, size: float) -> tuple[FloatArray, FloatArray]:
    """Ends between 0 and 1: intervals of log-odds, by half an instance wider, because instances are counted."""
    half = 0.5 / size
    inside = np.clip(values, half, 1 - half)
    reach = t.ppf((1 + level) / 2, REPLICATES - 1) * np.sqrt(np.maximum(variance, 0)) / (inside * (1 - inside))
    lower, upper = expit(logit(inside) - reach) - half, expit(logit(inside) + reach) + half
    return np.clip(lower, 0, values), np.clip(upper, values, 1)


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
