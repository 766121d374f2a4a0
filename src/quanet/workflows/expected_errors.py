"""Errors to expect of a fitted quantifier, measured on held-out instances, and what would reduce large ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from quanet.arrays import BoolArray, IntArray
from quanet.base import Quantifier
from quanet.data.duplicates import split_groups
from quanet.data.instances import Inputs
from quanet.held_out import HeldOut
from quanet.methods.counting import classify_and_count
from quanet.metrics import absolute_error
from quanet.protocols import UPP
from quanet.uncertainty.intervals import predict_interval_bags
from quanet.uncertainty.regions import ROUNDING
from quanet.wording import points

COVERAGE_BAGS, COVERAGE_SIZE, COVERAGE_HALVES = 100, 250, 10  # to measure coverage on
BAGS, BAG_SIZE = 500, 500  # to measure errors on; smaller if few instances are held out
POOR = 0.5  # a model is poor if its error exceeds this part of the constant answer's error
FEWEST = 10  # held-out instances of a class in each half


@dataclass(frozen=True, slots=True)
class HeldOutErrors:
    """Mean absolute errors of shares in bags of held-out instances, at prevalences from 0 to 1.

    Attributes
    ----------
    error : error of the quantifier.
    counted : error of a plain count of its classifier's labels (CC).
    bags, bag_size : number of bags, and of instances in each.
    constant : error of the training prevalences as a constant answer.
    """

    error: float
    counted: float
    bags: int
    bag_size: int
    constant: float = float("nan")

    @property
    def is_poor(self) -> bool:
        """Whether the error is more than half of that of a constant answer."""
        return self.error > POOR * self.constant


def held_out_errors(quantifier: Quantifier, *, seed: int = 0) -> HeldOutErrors | None:
    """Errors to expect, or None if the quantifier has no held-out instances, or too few.

    The classifier was not trained on the held-out rows. The aggregation is fitted again on one half of them, and bags
    are drawn from the other half; then the halves are swapped.
    """
    if quantifier.held_out_ is None or not quantifier.reads_posteriors:
        return None
    held = quantifier.held_out_.doubles()
    k = len(quantifier.classes_)
    inputs, codes = held.inputs, held.codes
    if held.distinct.min() < 2 * FEWEST:
        return None
    rng = np.random.default_rng(seed)
    half = halves(held, rng)
    size = min(BAG_SIZE, int(held.distinct.sum()) // 4)
    errors, counted, constant = [], [], []
    for own in (half, ~half):
        relearnt = quantifier.relearn(inputs[~own], codes[~own])
        bags = UPP(bag_size=size, repeats=BAGS // 2).draw(codes[own], rng=rng, classes=np.arange(k))
        rows = relearnt.rows(inputs[own])
        errors.append(absolute_error(bags.prevalences, relearnt.aggregate_bags(rows, bags)))
        plain = np.concatenate([classify_and_count(stack) for _, stack in bags.gather(inputs[own, :k])])
        counted.append(absolute_error(bags.prevalences, plain))
        constant.append(absolute_error(bags.prevalences, quantifier.prior_))
    return HeldOutErrors(float(np.mean(errors)), float(np.mean(counted)), BAGS, size, float(np.mean(constant)))


@dataclass(frozen=True, slots=True)
class HeldOutCoverage:
    """How often intervals contain the true share, in bags of held-out instances.

    Attributes
    ----------
    covered : part of the intervals that contain it; level : part that should.
    width : mean width of the intervals.
    bags, bag_size : number of bags, and of instances in each.
    """

    covered: float
    level: float
    width: float
    bags: int
    bag_size: int


def held_out_coverage(quantifier: Quantifier, *, level: float = 0.95, seed: int = 0) -> HeldOutCoverage | None:
    """The coverage of intervals on bags of held-out instances, or None if these are unknown or too few.

    As in `held_out_errors`, one half of the held-out instances replaces the training data of the aggregation, and bags
    are drawn from the other half. They are like the training data, so the intervals are those without drift.
    """
    if quantifier.held_out_ is None or not quantifier.reads_posteriors:
        return None
    held = quantifier.held_out_.doubles()
    if held.distinct.min() < 2 * FEWEST:
        return None
    rng, k = np.random.default_rng(seed), len(quantifier.classes_)
    size = min(COVERAGE_SIZE, int(held.distinct.sum()) // 8)
    protocol = UPP(bag_size=size, repeats=COVERAGE_BAGS // COVERAGE_HALVES)
    inside, widths = [], []
    for _ in range(COVERAGE_HALVES):  # bags of the same half have errors in common, so several are needed
        own = halves(held, rng)
        bags = protocol.draw(held.codes[own], rng=rng, classes=np.arange(k))
        known = Inputs(held.inputs[~own]), quantifier.classes_[held.codes[~own]]
        relearnt = quantifier.relearn(held.inputs[~own], held.codes[~own])
        found = predict_interval_bags(
            relearnt, Inputs(held.inputs[own]), bags, level, held_out=known, rng=seed, drift=False
        )
        inside.append((bags.prevalences >= found.lower - ROUNDING) & (bags.prevalences <= found.upper + ROUNDING))
        widths.append(found.width)
    return HeldOutCoverage(float(np.mean(inside)), level, float(np.mean(widths)), COVERAGE_BAGS, size)


def explain_poor(quantifier: Quantifier, errors: HeldOutErrors | None) -> tuple[str, ...]:
    """Sentences about a model with large errors, and what would help; none if it does well or nothing is known.

    Training errors shrink roughly with the square root of the number of labels, which gives the number needed.
    """
    if errors is None or not errors.is_poor:
        return ()
    wanted = POOR * errors.constant
    n, k = quantifier.n_instances_, len(quantifier.classes_)
    needed = _rounded_up(n * (errors.error / wanted) ** 2)
    sentences = [
        f"This is a poor model: its mean error is {points(errors.error)}; always answering with the training "
        f"shares has an error of {points(errors.constant)}.",
        f"More labelled rows would help: about {needed:,} instead of {n:,} for an error of {points(wanted)}, "
        "if errors shrink with the square root of their number.",
    ]
    if k > 2:
        first, second = _most_confused(quantifier)
        sentences.append(f"Fewer classes would help: merge {first!r} and {second!r}, which are confused most often.")
    sentences.append("Also check that the input column distinguishes the classes; another column may be better.")
    return tuple(sentences)


def _most_confused(quantifier: Quantifier) -> tuple[Any, Any]:
    """The two classes that are confused most often among held-out instances."""
    assert quantifier.held_out_ is not None
    held = quantifier.held_out_.doubles()
    posteriors = np.array([held.inputs[part, : held.k].mean(axis=0) for part in held.by_class()])
    confusion = np.triu(posteriors + posteriors.T, 1)
    first, second = np.unravel_index(int(confusion.argmax()), confusion.shape)
    return quantifier.classes_.tolist()[first], quantifier.classes_.tolist()[second]


def _rounded_up(number: float) -> int:
    """A number with two digits, not smaller.

    Examples
    --------
    >>> _rounded_up(361.2)
    370
    """
    unit = 10 ** max(0, len(str(int(number))) - 2)
    return int(np.ceil(number / unit)) * unit


def halves(held: HeldOut, rng: np.random.Generator) -> BoolArray:
    """Half of the different instances of every class, at random, with their copies: a mask (n,)."""

    def half_of_each(codes: IntArray) -> IntArray:
        half = np.zeros(len(codes), dtype=np.intp)
        for c in np.unique(codes):
            members = rng.permutation(np.flatnonzero(codes == c))
            half[members[: len(members) // 2]] = 1
        return half

    return split_groups(held.groups, held.codes, half_of_each) == 1
