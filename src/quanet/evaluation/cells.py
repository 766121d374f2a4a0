"""A cell of an experiment: one dataset, one method, one run, and its results."""

from dataclasses import dataclass
from typing import NamedTuple

from quanet.arrays import FloatArray
from quanet.evaluation.results import Results


class Cell(NamedTuple):
    """One dataset, one method, one run."""

    dataset: str
    method: str
    run: int


@dataclass(frozen=True, slots=True, eq=False)
class CellOutcome:
    """The results of a cell.

    Attributes
    ----------
    results : truth and estimate of each bag; all methods of a dataset and run have the same bags.
    prior : (k,) training prevalences, in the order of `results.classes`.
    seconds : time to fit, without the work that methods share.
    """

    results: Results
    prior: FloatArray
    seconds: float
