"""Learning from a table of labelled instances, and how well the result may be expected to do: `quanet fit`."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.answers.labelled import read_pool
from quanet.answers.reading import Inputs
from quanet.arrays import LabelArray
from quanet.base import Quantifier
from quanet.data.columns import as_labels
from quanet.errors import InvalidData
from quanet.methods.counting import classify_and_count
from quanet.metrics import absolute_error
from quanet.protocols import UPP
from quanet.simplex import count

if TYPE_CHECKING:
    from quanet.data.streams import Source

MOST_CLASSES = 200  # beyond, a column is hardly one of labels
BAGS, BAG_SIZE = 500, 500  # to measure errors by; smaller where few instances are held out
FEWEST = 10  # held-out instances of a class in either half


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Labelled instances of a source.

    Attributes
    ----------
    X, y : instances and labels (n,).
    counts : instances by class.
    skipped : rows left out, by the reason.
    """

    X: Any
    y: LabelArray
    counts: dict[Any, int]
    skipped: dict[str, int]


def read_labelled(source: "Source", inputs: Inputs, label: str) -> Labelled:
    """All labelled instances of a source; rows without an instance or a label are left out and counted."""
    pool = read_pool(source, inputs, label)
    y = as_labels(pool.names)
    counts = dict(sorted(Counter(y.tolist()).items()))
    _check(counts, f"{source.name}: column {label!r}")
    return Labelled(pool.X, y, counts, pool.skipped)


def _check(counts: dict[Any, int], where: str) -> None:
    if len(counts) < 2:
        only = next(iter(counts))
        raise InvalidData(f"{where} holds one class only, {only!r}; shares need at least two. Add rows of the others.")
    if len(counts) > MOST_CLASSES:
        raise InvalidData(
            f"{where} holds {len(counts):,} different labels in {sum(counts.values()):,} rows. Is it the right one?"
        )
    rarest = min(counts, key=lambda one: counts[one])
    if counts[rarest] < 2:
        raise InvalidData(
            f"{where} has one row of the class {rarest!r}; learning needs at least two. Add rows, or merge."
        )


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Mean absolute errors of shares in bags of held-out instances, at prevalences from 0 to 1.

    Attributes
    ----------
    error : of the quantifier.
    counted : of a plain count of its classifier's labels (CC).
    bags, bag_size : how many were drawn, and of how many instances.
    """

    error: float
    counted: float
    bags: int
    bag_size: int


def held_out_errors(quantifier: Quantifier, *, seed: int = 0) -> HeldOut | None:
    """Errors that may be expected, or None where the quantifier has kept nothing to measure them by.

    Its classifier has not seen the held-out rows. What it has learnt from them is learnt again from one half, and bags
    are drawn from the other; then the other way round.
    """
    if not (quantifier._reads_posteriors and hasattr(quantifier, "held_rows_")):  # noqa: SLF001
        return None
    k = len(quantifier.classes_)
    inputs, codes = quantifier.held_rows_.astype(float), quantifier.held_codes_.astype(np.intp)
    if count(codes, k).min() < 2 * FEWEST:
        return None
    rng = np.random.default_rng(seed)
    half = _halves(codes, rng)
    size = min(BAG_SIZE, len(codes) // 4)
    errors, counted = [], []
    for own in (half, ~half):
        relearnt = quantifier._relearnt(inputs[~own], codes[~own])  # noqa: SLF001
        bags = UPP(bag_size=size, repeats=BAGS // 2).draw(codes[own], rng=rng, classes=np.arange(k))
        rows = relearnt._rows(inputs[own])  # noqa: SLF001
        errors.append(absolute_error(bags.prevalences, relearnt._aggregate_bags(rows, bags)))  # noqa: SLF001
        plain = np.concatenate([classify_and_count(stack) for _, stack in bags.gather(inputs[own, :k])])
        counted.append(absolute_error(bags.prevalences, plain))
    return HeldOut(float(np.mean(errors)), float(np.mean(counted)), BAGS, size)


def _halves(codes: Any, rng: np.random.Generator) -> Any:
    """Half of the instances of every class, at random, as a mask (n,)."""
    half = np.zeros(len(codes), dtype=bool)
    for c in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == c))
        half[members[: len(members) // 2]] = True
    return half
