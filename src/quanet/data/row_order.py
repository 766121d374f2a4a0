"""Whether labels are related to the order of the rows: in a file that is sorted by label, topic or source, they are."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

SURE = 5.0  # standard deviations by which equal neighbours must exceed what chance explains
NOTABLE = 0.05  # share of the neighbours


class RowOrder:
    r"""Counts neighbouring rows with the same label, a part of a file at a time.

    In random order, neighbours have the same label with probability :math:`\sum_c p_c^2` (runs test; Mood 1940).

    Examples
    --------
    >>> RowOrder().add(["good"] * 50 + ["bad"] * 50).sentence
    'The labels are related to the order of the rows: 99 % of neighbouring rows have the same label, 50 % by chance.'
    >>> RowOrder().add(["good", "bad"] * 50).sentence
    ''
    """

    advice = (
        "The file seems to be sorted. Estimates do not depend on its order. If neighbouring rows belong together, such "
        "as posts of one author or reviews of one product, name their column with --groups."
    )

    def __init__(self) -> None:
        self.counts = Counter[Any]()
        self.alike = 0
        self._last: Any = None

    def add(self, labels: Iterable[Any]) -> "RowOrder":
        """Count the next rows; None is a row without a label, which is left out."""
        for label in labels:
            if label is not None:
                self.counts[label] += 1
                self.alike += label == self._last
                self._last = label
        return self

    @property
    def sentence(self) -> str:
        """What was found; empty if labels are not related to the order, or not noticeably."""
        n = self.counts.total()
        if n < 2:
            return ""
        squares, cubes = (sum((number / n) ** power for number in self.counts.values()) for power in (2, 3))
        found, deviation = self.alike / (n - 1), (max(squares + squares**2 - 2 * cubes, 0.0) / n) ** 0.5
        if found - squares <= max(NOTABLE, SURE * deviation):
            return ""
        return (
            f"The labels are related to the order of the rows: {100 * found:.0f} % of neighbouring rows have the same "
            f"label, {100 * squares:.0f} % by chance."
        )
