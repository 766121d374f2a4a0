"""Learning from a table of labelled instances, and how well the result may be expected to do: `quanet fit`."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.answers.labelled import read_pool
from quanet.answers.reading import Inputs
from quanet.arrays import BoolArray, IntArray, LabelArray
from quanet.base import Quantifier
from quanet.data.columns import as_labels, label_name
from quanet.data.variants import normalize_labels
from quanet.duplicates import find_distinct, split_groups
from quanet.errors import InvalidData
from quanet.instances import posterior_columns
from quanet.methods.counting import classify_and_count
from quanet.metrics import absolute_error
from quanet.protocols import UPP
from quanet.simplex import classes_of
from quanet.uncertainty.held import Held, kept_of

if TYPE_CHECKING:
    from quanet.data.streams import Source

MOST_CLASSES = 200  # beyond, a column is hardly one of labels
BAGS, BAG_SIZE = 500, 500  # to measure errors by; smaller where few instances are held out
POOR = 0.5  # of the error of the training prevalences: a model with more of it is called poor
FEWEST = 10  # held-out instances of a class in either half


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Labelled instances of a source.

    Attributes
    ----------
    X, y : instances and labels (n,).
    counts : instances by class.
    skipped : rows left out, by the reason.
    duplicates : instances that are copies of an earlier one (`quanet.duplicates`).
    conflicts : instances of which copies have different labels.
    """

    X: Any
    y: LabelArray
    counts: dict[Any, int]
    skipped: dict[str, int]
    duplicates: int = 0
    conflicts: int = 0


def read_labelled(source: "Source", inputs: Inputs, label: str, *, normalize: bool = False) -> Labelled:
    """All labelled instances of a source; rows without an instance or a label are left out and counted.

    With `normalize`, labels that are probably one class written in several ways become one (`normalize_labels`).
    """
    pool = read_pool(source, inputs, label)
    y = as_labels(normalize_labels(pool.names).tolist() if normalize else pool.names)
    counts = dict(sorted(Counter(y.tolist()).items()))
    _check(counts, f"{source.name}: column {label!r}")
    return Labelled(pool.X, y, counts, pool.skipped, *_copies(pool.X, y))


def _copies(X: Any, y: LabelArray) -> tuple[int, int]:
    """Instances that are copies of an earlier one, and distinct instances with several labels."""
    distinct = find_distinct(X)
    if distinct is None:
        return 0, 0
    codes = np.unique(y, return_inverse=True)[1].ravel()
    pairs = np.unique(np.column_stack([distinct.owner, codes]), axis=0)[:, 0]
    return distinct.copies, int((np.bincount(pairs) > 1).sum())


def order_posteriors(data: Labelled, inputs: Inputs) -> tuple[Labelled, Inputs]:
    """Columns that are posteriors, named after the classes, in the order of the classes; all others after them."""
    import pandas as pd

    classes = classes_of(data.y)
    posteriors, others = posterior_columns(pd.DataFrame(data.X, columns=pd.Index(inputs.features)), classes)
    names = [label_name(label) for label in classes.tolist()]
    rest = [name for name in inputs.features if name not in names]
    return replace(data, X=np.hstack([posteriors, others])), Inputs(features=(*names, *rest))


def _check(counts: dict[Any, int], where: str) -> None:
    if len(counts) < 2:
        only = next(iter(counts))
        raise InvalidData(f"{where} holds one class only, {only!r}; shares need at least two. Add rows of the others.")
    if len(counts) > MOST_CLASSES:
        raise InvalidData(
            f"{where} holds {len(counts):,} different labels in {sum(counts.values()):,} rows. Is it the right one?"
        )


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Mean absolute errors of shares in bags of held-out instances, at prevalences from 0 to 1.

    Attributes
    ----------
    error : of the quantifier.
    counted : of a plain count of its classifier's labels (CC).
    bags, bag_size : how many were drawn, and of how many instances.
    constant : of the training prevalences, which look at no instance.
    """

    error: float
    counted: float
    bags: int
    bag_size: int
    constant: float = float("nan")

    @property
    def is_poor(self) -> bool:
        """Whether more than half of the error remains that one makes without looking at any instance."""
        return self.error > POOR * self.constant


def held_out_errors(quantifier: Quantifier, *, seed: int = 0) -> HeldOut | None:
    """Errors that may be expected, or None where the quantifier has kept nothing to measure them by.

    Its classifier has not seen the held-out rows. What it has learnt from them is learnt again from one half, and bags
    are drawn from the other; then the other way round.
    """
    if not (quantifier._reads_posteriors and hasattr(quantifier, "held_rows_")):  # noqa: SLF001
        return None
    k = len(quantifier.classes_)
    held = kept_of(quantifier)
    inputs, codes = held.inputs, held.codes
    if held.distinct.min() < 2 * FEWEST:
        return None
    rng = np.random.default_rng(seed)
    half = halves(held, rng)
    size = min(BAG_SIZE, int(held.distinct.sum()) // 4)
    errors, counted, constant = [], [], []
    for own in (half, ~half):
        relearnt = quantifier._relearnt(inputs[~own], codes[~own])  # noqa: SLF001
        bags = UPP(bag_size=size, repeats=BAGS // 2).draw(codes[own], rng=rng, classes=np.arange(k))
        rows = relearnt._rows(inputs[own])  # noqa: SLF001
        errors.append(absolute_error(bags.prevalences, relearnt._aggregate_bags(rows, bags)))  # noqa: SLF001
        plain = np.concatenate([classify_and_count(stack) for _, stack in bags.gather(inputs[own, :k])])
        counted.append(absolute_error(bags.prevalences, plain))
        constant.append(absolute_error(bags.prevalences, quantifier.prior_))
    return HeldOut(float(np.mean(errors)), float(np.mean(counted)), BAGS, size, float(np.mean(constant)))


def explain_poor(quantifier: Quantifier, errors: HeldOut | None) -> list[str]:
    """Sentences about a model that errs much, and what would help; none where it does well or nothing is known.

    Errors of learning shrink about with the root of the number of labels, which tells how many would be enough.
    """
    if errors is None or not errors.is_poor:
        return []
    wanted = POOR * errors.constant
    n, k = quantifier.n_instances_, len(quantifier.classes_)
    needed = _rounded_up(n * (errors.error / wanted) ** 2)
    said = [
        f"This is a poor model: it errs by {100 * errors.error:.1f} points, and answering the training shares without "
        f"reading anything by {100 * errors.constant:.1f}.",
        f"More labelled rows would help: about {needed:,} instead of {n:,} for an error of {100 * wanted:.0f} points, "
        "if errors shrink with the root of their number.",
    ]
    if k > 2:
        one, other = _most_confused(quantifier)
        said.append(f"Fewer classes would help: {one!r} and {other!r} are confused most often; merge them if you can.")
    said.append("Also check that the column that is read tells the classes apart; another one may be better.")
    return said


def _most_confused(quantifier: Quantifier) -> tuple[Any, Any]:
    """The two classes that held-out instances are most often taken for each other in."""
    held = kept_of(quantifier)
    taken = np.array([held.inputs[part, : held.k].mean(axis=0) for part in held.by_class()])
    both = np.triu(taken + taken.T, 1)
    names = quantifier.classes_.tolist()
    one, other = np.unravel_index(int(both.argmax()), both.shape)
    return names[one], names[other]


def _rounded_up(number: float) -> int:
    """A number with two digits, not smaller.

    Examples
    --------
    >>> _rounded_up(361.2)
    370
    """
    unit = 10 ** max(0, len(str(int(number))) - 2)
    return int(np.ceil(number / unit)) * unit


def halves(held: Held, rng: np.random.Generator) -> BoolArray:
    """Half of the different instances of every class, at random, with their copies: a mask (n,)."""

    def half_of_each(codes: IntArray) -> IntArray:
        half = np.zeros(len(codes), dtype=np.intp)
        for c in np.unique(codes):
            members = rng.permutation(np.flatnonzero(codes == c))
            half[members[: len(members) // 2]] = 1
        return half

    return split_groups(held.groups, held.codes, half_of_each) == 1
