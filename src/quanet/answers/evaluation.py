"""How well a model does on labelled instances: what `quanet evaluate` answers."""

from dataclasses import dataclass, field
from typing import Any

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.diagnostics.findings import Diagnosis
from quanet.evaluation.limits import Limit
from quanet.evaluation.results import Results
from quanet.uncertainty.regions import Interval


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Estimates of a model for bags of labelled instances, beside those of simpler ones.

    Attributes
    ----------
    results : by name, the model first, then CC (a plain count of its labels) and TrainPrevalence, on the same bags.
    interval : of the model, arrays (b, k).
    covered : (b, k) whether the truth lies in it.
    prior : (k,) training prevalences.
    whole : truth (k,) and interval, arrays (k,), of all labelled instances as one bag.
    diagnosis : of all labelled instances as one bag.
    limit : the least error that the model's classifier allows; None where it is not known.
    protocol : how bags were drawn, as one line.
    source, model : where the instances come from, and what is known of the model.
    """

    results: dict[str, Results]
    interval: Interval
    covered: FloatArray
    prior: FloatArray
    whole_truth: FloatArray
    whole: Interval
    diagnosis: Diagnosis
    limit: Limit | None
    protocol: str
    source: str = ""
    model: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Errors of many methods on the same bags, best first.

    Attributes
    ----------
    results : by method.
    errors : metric -> (methods,) mean errors, in the order of `results`.
    p_values : metric -> (methods,) of a paired test against the best one, NaN for itself; adjusted for their number.
    seconds : (methods,) to fit and to estimate.
    failed : method -> why it could not run on these data.
    prior, counts : (k,) training prevalences, and instances of every class in the test file.
    protocol, train, test : how bags were drawn, and the files.
    """

    classes: LabelArray
    results: dict[str, Results]
    errors: dict[str, FloatArray]
    p_values: dict[str, FloatArray]
    seconds: FloatArray
    failed: dict[str, str]
    prior: FloatArray
    counts: IntArray
    limit: Limit | None
    protocol: str
    train: str
    test: str
