"""Instances that a quantifier has read, by group."""

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import FloatArray, IntArray, LabelArray, Merged
from quanet.bags import Bags
from quanet.data.instances import Inputs
from quanet.data.periods import Codes
from quanet.evaluation.contents import SomeTexts


@dataclass(slots=True, eq=False)
class GroupedInputs:
    """Instances that a quantifier has read, with their groups.

    Attributes
    ----------
    instances : input of `Quantifier.predict`, with descriptions if the quantifier has a drift scale.
    codes : (n,) the group of every instance, a position in `groups`.
    groups : values of the keys, sorted.
    skipped : rows skipped, by reason.
    unknown_words : share of unknown words, if the classifier has a vocabulary.
    training_texts : number of texts that the model was trained on; None if it does not record them.
    labels : number of rows by label, if a label column was given.
    weights, weight : (n,) weights of the instances, and the name of their column; None and "" without weights.
    some_texts : a random selection of the texts.
    merged, merged_weights : if rows stand for several instances, how many, and the weight (n,) of all these.
    all_rows : the same instances as one group, if they are too many to be estimated once more.
    clusters, cluster : (n,) names of the clusters of the instances, and of their column; None and "" without clusters.
    left_out : (rows,) 0 for every row that is an instance; else why not, a position in `reasons`.
    """

    instances: Inputs
    codes: Codes
    groups: list[tuple[str, ...]]
    skipped: dict[str, int]
    unknown_words: float | None
    labels: Counter[str] = field(default_factory=Counter)
    some_texts: SomeTexts = field(default_factory=SomeTexts)
    training_texts: int | None = None
    weights: FloatArray | None = None
    weight: str = ""
    left_out: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, dtype=np.int8))
    reasons: tuple[str, ...] = ("",)
    merged: Merged | None = None
    merged_weights: FloatArray | None = None
    all_rows: "GroupedInputs | None" = None
    clusters: LabelArray | None = None
    cluster: str = ""

    @property
    def rows(self) -> IntArray:
        """(n,) the row of every instance in the source, counted from 0 over all its files."""
        return np.flatnonzero(self.left_out == 0)

    @property
    def without_weight(self) -> int:
        """Rows of weight 0, which do not count; merged rows are not counted."""
        return 0 if self.weights is None else int((self.weights == 0).sum())

    @property
    def total(self) -> int:
        """The number of instances."""
        return len(self.codes) if self.merged is None else int(self.merged.counts.sum())

    def bags(self) -> Bags:
        """A bag for every group, with its name and the weights."""
        in_order = bool((self.codes[1:] >= self.codes[:-1]).all())
        small = np.int32 if len(self.codes) < 2**31 else np.intp  # row numbers, of which there may be many
        order = np.arange(len(self.codes), dtype=small) if in_order else np.argsort(self.codes, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(self.codes))[:-1])
        labels = [", ".join(group) or "all" for group in self.groups]
        return Bags(members, labels=labels, weights=self.row_weights, merged=self.merged)

    def whole(self) -> Bags:
        """One bag of all instances, with the weights."""
        weights, merged = self.row_weights, self.merged
        return Bags(np.arange(len(self.codes))[None], labels=["all"], weights=weights, merged=merged)

    def as_one(self) -> "GroupedInputs":
        """The same instances as one group; of very many rows, fewer are kept."""
        if self.all_rows is not None:
            return self.all_rows
        return replace(self, codes=np.zeros_like(self.codes), groups=[()])

    @property
    def row_weights(self) -> FloatArray | None:
        """(n,) how much every row counts: its weight, or that of its instances; None if all count alike."""
        return self.weights if self.merged is None else self.merged_weights
