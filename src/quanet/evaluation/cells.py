"""Cells of an experiment: one dataset, one method, one run, and what came of it."""

from dataclasses import dataclass
from typing import NamedTuple

from quanet.arrays import FloatArray
from quanet.evaluation.results import Results


class Cell(NamedTuple):
    """Which dataset, which method, which run."""

    dataset: str
    method: str
    run: int


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a cell gave.

    Attributes
    ----------
    results : truth and estimate of every bag; methods of one dataset and run meet the same bags.
    prior : (k,) training prevalences, in the order of the results' classes.
    seconds : that fitting took, without what methods share.
    """

    results: Results
    prior: FloatArray
    seconds: float
