"""The findings of a diagnosis, each a sentence with its numbers and advice, and the checks behind them.

How much a bag says is checked, too: "weights" (do a few instances have most of it?) and "copies".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, overload

import numpy as np
from scipy import stats

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.classifiers.calibration import calibrate
from quanet.data.copies import count_copies
from quanet.data.instances import Inputs
from quanet.evaluation.limits import cramer_rao_variance
from quanet.evaluation.prior_shift import MixtureFit
from quanet.held_out import ADVICE, shrinkage_sentence
from quanet.simplex import count
from quanet.uncertainty.sampling import copies_notes
from quanet.wording import SHOWN_AS_ZERO, level_text, listing, many, p_value, percent, plus_minus, points, upper_text

if TYPE_CHECKING:
    from quanet.uncertainty.regions import Interval

SEVERITIES = ("ok", "note", "warning", "alarm")  # from best to worst
WIDE = 0.1  # half-width of an interval that is too wide
WORTH_A_SENTENCE = 0.0005  # of a share: less than a tenth of a point looks like nothing in an interval
NAMED = 3  # classes or groups in a sentence
LESS_CONFIDENT = "The instances may be shorter, noisier or of a different kind than the training data."
MORE_CONFIDENT = (
    "The instances may be longer, clearer or more alike than the training data, or copies of training instances. More "
    "confident does not mean more accurate: label a small random part and use refine."
)
FEW = 20  # instances; an estimate that depends on fewer is hardly an average


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a diagnosis.

    Attributes
    ----------
    name : what was checked, such as "prior shift".
    severity : "ok", "note", "warning" or "alarm".
    sentence : the result.
    advice : what to do; may be empty.
    numbers : the numbers behind the result, such as a p-value.
    examples : texts that show it.
    """

    name: str
    severity: str
    sentence: str
    advice: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.severity}: {self.sentence}" + (f" {self.advice}" if self.advice else "")


class Diagnosis(Sequence[Finding]):
    """Findings about a bag; printed, one line each.

    Examples
    --------
    >>> diagnosis = Diagnosis([Finding("bag size", "ok", "The bag is large enough.")])
    >>> print(diagnosis)
    ok: The bag is large enough.
    >>> diagnosis.severity, diagnosis["bag size"].sentence
    ('ok', 'The bag is large enough.')
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._findings = tuple(findings)

    @overload
    def __getitem__(self, at: int | str) -> Finding: ...
    @overload
    def __getitem__(self, at: slice) -> "Diagnosis": ...
    def __getitem__(self, at: int | str | slice) -> "Finding | Diagnosis":
        """A finding by position or name."""
        if isinstance(at, slice):
            return Diagnosis(self._findings[at])
        if isinstance(at, int):
            return self._findings[at]
        for finding in self._findings:
            if finding.name == at:
                return finding
        raise KeyError(f"Unknown finding {at!r}. Choose from {', '.join(finding.name for finding in self._findings)}.")

    def __len__(self) -> int:
        return len(self._findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._findings)

    @property
    def severity(self) -> str:
        """The worst severity among the findings."""
        return max((finding.severity for finding in self), key=SEVERITIES.index)

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def __repr__(self) -> str:
        return f"Diagnosis({len(self)} findings, worst: {self.severity})"


def shrinkage_findings(quantifier: Quantifier) -> list[Finding]:
    """The finding that estimates are shrunk towards the training prevalence; empty if they are not."""
    shrinkage = float(quantifier.chosen().shrinkage_)
    if not shrinkage:
        return []
    severity = "alarm" if shrinkage > 0.5 else "warning"
    return [Finding("shrinkage", severity, shrinkage_sentence(shrinkage), ADVICE, {"shrinkage": shrinkage})]


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The data that findings are computed from."""

    names: list[str]  # of the classes
    estimate: FloatArray  # (k,)
    prior: FloatArray  # (k,)
    bag: FloatArray  # (n, k) posteriors
    held_out: FloatArray  # (m, k) posteriors of held-out instances
    codes: IntArray  # (m,) their classes
    alpha: float
    half_width: float  # of the widest interval of a class
    unit: str = "instance"  # what `bag` has; with weights, instances of equal weight

    @property
    def n(self) -> int:
        """Instances in the bag."""
        return len(self.bag)


def prior_shift(case: Evidence, fit: MixtureFit) -> Finding:
    """Check that the posteriors are a mixture of those of the training classes, given the result of `mixture_test`."""
    numbers = {
        "p_value": fit.p_value,
        "statistic": fit.statistic,
        "surplus": fit.surplus,
        "points": 100 * fit.misfit,
        "half_width": case.half_width,
    }
    if fit.p_value >= case.alpha:
        return Finding(
            "prior shift",
            "ok",
            f"The bag looks like a mixture of the training classes ({p_value(fit.p_value)}).",
            numbers=numbers,
        )
    c, low, high = fit.worst
    more = "higher" if fit.surplus > 0 else "lower"
    sentence = (
        f"The posteriors do not fit any mixture of the training classes ({p_value(fit.p_value)}): about "
        f"{percent(fit.misfit)} of the instances do not fit. The share of those with a posterior of {case.names[c]!r} "
        f"{_range(low, high)} is {points(abs(fit.surplus))} {more} than expected."
    )
    if fit.misfit <= case.half_width:
        included = f"The interval ({plus_minus(case.half_width)}) includes an error of this size."
        return Finding("prior shift", "note", sentence, included, numbers)
    return Finding(
        "prior shift",
        "warning" if fit.misfit <= WIDE / 2 else "alarm",
        sentence,
        f"The error may exceed the interval ({plus_minus(case.half_width)}). Label a small random part of the bag and "
        "use refine, or train on newer data.",
        numbers,
    )


def _range(low: float, high: float) -> str:
    """Between which values a posterior is; near which, if both look the same."""
    ends = f"{low:.2f}", f"{high:.2f}"
    return f"near {ends[0]}" if ends[0] == ends[1] else f"between {ends[0]} and {ends[1]}"


def prevalence(case: Evidence) -> Finding:
    """Compare the prevalence with the training data. The score test of mean posteriors: Hotelling's T-square."""
    m, k = case.held_out.shape
    difference = case.bag.mean(axis=0) - case.held_out.mean(axis=0)
    covariance = np.cov(case.held_out, rowvar=False) * (1 / case.n + 1 / m)
    degrees = k - 1  # posteriors sum to 1
    statistic = float(difference @ np.linalg.pinv(covariance, rcond=1e-8, hermitian=True) @ difference)
    p = float(stats.f.sf(statistic / degrees, degrees, max(1, m - k)))
    gaps = np.abs(case.estimate - case.prior)
    at = int(np.flatnonzero(gaps >= gaps.max() - 1e-9)[-1])  # two classes differ equally: the last one
    numbers = {"p_value": p, "estimate": float(case.estimate[at]), "training": float(case.prior[at])}
    shares = f"{percent(case.estimate[at])} here, {percent(case.prior[at])} in the training data"
    found = f"{case.names[at]!r}: {shares}; {p_value(p)}"
    if p >= case.alpha:
        return Finding(
            "prevalence", "ok", f"The prevalence may be the same as in the training data ({found}).", numbers=numbers
        )
    return Finding(
        "prevalence",
        "note",
        f"The prevalence differs from the training data ({found}).",
        "Counting predicted labels (CC) is biased here. Corrected methods, such as EMQ or PACC, allow for it.",
        numbers,
    )


def deviations(case: Evidence) -> FloatArray:
    """Smallest possible standard deviation of each prevalence, for a bag of this size and prevalence: (k,)."""
    calibrated = calibrate(case.held_out, case.codes, method="bcts")(case.held_out)
    return np.sqrt(cramer_rao_variance(calibrated, case.estimate, bag_size=case.n))


def classifier(case: Evidence, deviations: FloatArray) -> Finding:
    """Check that the classifier separates the classes well enough."""
    members = np.eye(len(case.names))[case.codes]
    # Decided as if all classes were equally frequent: otherwise a rare class is hardly ever predicted.
    decided = (case.held_out / case.held_out.mean(axis=0)).argmax(axis=1)
    rates = (np.eye(len(case.names))[decided].T @ members) / members.sum(axis=0)
    condition = float(np.linalg.cond(rates))
    recall = float(np.diag(rates).mean())
    per_instance = float(deviations.max()) * case.n**0.5  # for a bag of one instance
    numbers = {"balanced_accuracy": recall, "condition": condition, "deviation_per_instance": per_instance}
    # The condition number is in `numbers`: it says nothing to most readers.
    found = f"balanced accuracy {percent(recall)}, by guessing {percent(1 / len(case.names))}"
    if not np.isfinite(per_instance) or condition > 50:
        return Finding(
            "classifier",
            "alarm",
            f"The classifier hardly separates the classes ({found}).",
            "Train a better classifier, merge classes that it confuses, or label a part of the bag (refine).",
            numbers,
        )
    # The prevalence in a bag of 500 could not be estimated to within 5 points.
    weak = per_instance * 1.96 / 500**0.5 > WIDE / 2 or condition > 10
    return Finding(
        "classifier",
        "warning" if weak else "ok",
        f"The classifier separates the classes {'poorly' if weak else 'well enough'} ({found}).",
        "Estimates need large bags. A better classifier helps more than a different method." if weak else "",
        numbers,
    )


def bag_size(case: Evidence, deviations: FloatArray) -> Finding:
    """Check that the bag is large enough for a narrow interval."""
    half = float(stats.norm.isf(case.alpha / 2) * deviations.max())
    limit = f": the margin of error is at least {plus_minus(half)} at {level_text(1 - case.alpha)} confidence"
    limit = limit if half >= WORTH_A_SENTENCE else ""
    who = f"{many(case.n, case.unit)} {'is' if case.n == 1 else 'are'}"
    numbers = {"n": float(case.n), "half_width": half}
    if np.isfinite(half) and half <= WIDE / 2:
        return Finding("bag size", "ok", f"{who} enough{limit}.", numbers=numbers)
    needed = f"{int(np.ceil(case.n * (half / (WIDE / 2)) ** 2)):,}" if np.isfinite(half) else "even very many"
    numbers["needed"] = case.n * (half / (WIDE / 2)) ** 2
    return Finding(
        "bag size",
        "warning" if half <= WIDE else "alarm",
        f"{who} too few{limit}.",
        f"About {needed} instances would reduce it to {plus_minus(WIDE / 2)}. Merge bags, or collect more instances.",
        numbers,
    )


def confidence(case: Evidence, prevalences: FloatArray) -> Finding:
    """Check that the classifier is as confident as expected: the mean entropy against the best-fitting mixture."""
    entropy, held_out_entropy = _entropy(case.bag), _entropy(case.held_out)
    k = len(case.names)
    sizes = count(case.codes, k)
    means = np.array([held_out_entropy[case.codes == c].mean() for c in range(k)])
    variances = np.array([held_out_entropy[case.codes == c].var() for c in range(k)])
    expected = float(prevalences @ means)
    spread = prevalences @ (variances + means**2) - expected**2
    error = float(np.sqrt(spread / case.n + prevalences**2 @ (variances / sizes)))
    score = (float(entropy.mean()) - expected) / max(error, 1e-12)
    p = float(2 * stats.norm.sf(abs(score)))
    numbers = {"entropy": float(entropy.mean()), "expected": expected, "p_value": p}
    change = float(entropy.mean()) / max(expected, 1e-12) - 1
    if p >= case.alpha / 5 or abs(change) < 0.05:
        return Finding("confidence", "ok", "The classifier is as confident as expected.", numbers=numbers)
    return Finding(
        "confidence",
        "note",
        f"The classifier is {'less' if change > 0 else 'more'} confident than expected: the entropy of its posteriors "
        f"is {percent(1 + change, digits=0)} of what was expected ({p_value(p)}).",
        LESS_CONFIDENT if change > 0 else MORE_CONFIDENT,
        numbers,
    )


def zero_shares(total: "Interval", groups: "Interval | None" = None) -> list[Finding]:
    """The finding that shares are shown as 0.0 % although larger ones cannot be ruled out; empty if none is.

    Parameters
    ----------
    total : the interval of all instances, arrays (k,).
    groups : those of groups, if there are several, arrays (b, k).
    """
    upper: dict[str, float] = {}
    sentences: dict[str, str] = {}
    for c, name in enumerate(map(str, total.classes.tolist())):
        ends = total.upper[c : c + 1][total.estimate[c : c + 1] < SHOWN_AS_ZERO]
        parts = [f"up to {upper_text(float(ends[0]))}{'' if groups is None else ' overall'}"] if len(ends) else []
        if groups is not None:
            there = groups.upper[groups.estimate[:, c] < SHOWN_AS_ZERO, c]
            if len(there):
                parts.append(
                    f"up to {upper_text(float(there.max()))} in {len(there):,} of {len(groups.upper):,} groups"
                )
            ends = np.append(ends, there)
        if parts:
            upper[name], sentences[name] = float(ends.max()), f"{name!r}: {', '.join(parts)}"
    if not upper:
        return []
    order = sorted(upper, key=lambda name: -upper[name])
    rest = len(order) - NAMED
    more = f"; and {rest} more class{'es' * (rest > 1)}" if rest > 0 else ""
    return [
        Finding(
            "zero shares",
            "note",
            f"Shares are shown as 0.0 % that may be larger. What cannot be ruled out: "
            f"{'; '.join(sentences[name] for name in order[:NAMED])}{more}.",
            "0.0 % does not mean that a class is absent. Larger groups or labels show more.",
            upper,
        )
    ]


def _entropy(posteriors: FloatArray) -> FloatArray:
    return -(posteriors * np.log(np.maximum(posteriors, 1e-300))).sum(axis=1)


def carriers_of_half(bags: Bags) -> IntArray:
    """(b,) the smallest number of instances that have half of the weight of each bag.

    Examples
    --------
    >>> carriers_of_half(Bags([[0, 1, 2, 3], [0, 1]], weights=[5, 1, 1, 1]))
    array([1, 1])
    """
    weights, alike = bags.relative_weights, np.ones(len(bags.flat))
    if bags.merged is not None and bags.weights is not None:
        # A row counts as its effective number of instances, each with the same weight.
        sums, squares = bags.weights[bags.flat], np.maximum(bags.merged.squares[bags.flat], 1e-300)
        alike = np.where(sums > 0, sums**2 / squares, bags.merged.counts[bags.flat])
    order = np.lexsort((-weights / alike, bags.owners))
    shares = (weights / np.bincount(bags.owners, weights)[bags.owners])[order]
    reached = np.cumsum(shares) - bags.owners  # the shares of every bag sum to 1
    missing = np.clip((0.5 - 1e-9 - (reached - shares)) / np.maximum(shares, 1e-300), 0, 1)  # of each row, up to half
    carriers = np.bincount(bags.owners, np.where(missing >= 1, alike[order], np.ceil(missing * alike[order])))
    return np.maximum(carriers, 1).astype(np.intp)


def is_dominated(bags: Bags) -> BoolArray:
    """(b,) whether a few instances have half of the weight of a bag."""
    unequal = bags.effective_sizes < bags.sizes / 2
    return np.asarray((carriers_of_half(bags) < FEW) & unequal)


def weights_findings(whole: Bags, groups: Bags | None = None, *, weight: str = "") -> list[Finding]:
    """How unequal the weights are, and whether a few instances dominate; empty without weights.

    Parameters
    ----------
    whole : one bag with all instances.
    groups : the bags they are grouped into, if there are several.
    weight : what the weights are, such as "views".
    """
    if whole.weights is None:
        return []
    what = weight or "weight"
    n, effective, carriers = int(whole.sizes[0]), int(whole.effective_sizes[0]), int(carriers_of_half(whole)[0])
    gone = whole.flat[whole.weights[whole.flat] == 0]
    absent = len(gone) if whole.merged is None else int(whole.merged.counts[gone].sum())
    numbers = {"n": float(n), "effective_n": float(effective), "carriers": float(carriers), "absent": float(absent)}
    sentence = f"{carriers:,} of {n:,} instances carry half of the {what}: the effective size is {effective:,}."
    if absent:
        sentence += f" {many(absent, 'instance has', 'instances have')} no {what}; such instances do not count."
    names = [] if groups is None else [str(name) for name in groups.labels[is_dominated(groups)].tolist()]
    if names and groups is not None:
        few = f" In {len(names):,} of {len(groups):,} groups, fewer than {FEW} instances do"
        sentence += f"{few} ({listing(names, most=NAMED)})."
    if is_dominated(whole)[0] or names:
        advice = f"Shares of the {what} depend on these few instances; the interval includes that. Check them by hand."
        return [Finding("weights", "warning", sentence, advice, numbers)]
    return [Finding("weights", "ok" if effective > n / 2 else "note", sentence, numbers=numbers)]


def copies_findings(read: Inputs, whole: Bags, groups: Bags | None = None) -> list[Finding]:
    """How many instances are copies of others, if that makes the interval noticeably wider; else empty.

    Parameters
    ----------
    read : the instances as a quantifier has read them.
    whole : one bag with all instances.
    groups : the bags they are grouped into, if there are several.
    """
    found = count_copies(read.hashes, whole)
    note = str(copies_notes(whole, found)[0])
    numbers = {"copies": float(found.number[0]), "factor": float(found.factor[0])} if note else {}
    sentences = [f"{note[0].upper()}{note[1:]}."] if note else []
    if groups is not None:
        notes = copies_notes(groups, count_copies(read.hashes, groups))
        names = [str(name) for name in groups.labels[notes != ""].tolist()]
        others = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        listed = f" ({', '.join(names[:NAMED])}{others})"
        if names:
            sentences.append(f"There are copies in {len(names):,} of {len(groups):,} groups{listed}.")
    return [Finding("copies", "note", " ".join(sentences), numbers=numbers)] if sentences else []
