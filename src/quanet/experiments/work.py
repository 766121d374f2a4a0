"""The two pieces of work of an experiment: a classifier's rows of a dataset, and one cell."""

import hashlib
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.classifiers import cross_fit, fit_classifier, posteriors_of
from quanet.data.dataset import Dataset
from quanet.errors import InvalidExperiment
from quanet.evaluation.cells import Cell
from quanet.evaluation.evaluate import evaluate
from quanet.evaluation.selection import GridSearchQ
from quanet.experiments.bounds import bound_of
from quanet.experiments.datasets import Parts, load
from quanet.experiments.estimators import make, needs_seed, prepare, reads_posteriors_only, values_of
from quanet.experiments.manifest import About
from quanet.experiments.plan import Method, Plan
from quanet.experiments.provenance import hardware, versions
from quanet.experiments.store import Store, from_npz, to_npz, write
from quanet.folds import Folds
from quanet.simplex import encode

HELD_OUT = 0.4  # of the rows that methods learn from, for choosing settings


@dataclass(frozen=True, slots=True)
class Job:
    """What all work of one experiment needs to know."""

    plan: Plan
    folder: str
    fingerprints: dict[str, str]
    device: str | None = None

    @property
    def store(self) -> Store:
        """Where results go."""
        return Store(self.folder)

    def key(self, cell: Cell) -> str:
        """The cell's key."""
        return self.plan.key(cell, self.fingerprints[cell.dataset])

    def rows_path(self, dataset: str, classifier: str, run: int) -> Path:
        """Where the rows are that the classifier's methods read in a run; many runs may share them."""
        differs = self.plan.learn is not None or needs_seed(
            make(self.plan.classifiers[classifier].part, self.plan.python_path)
        )
        key = self.plan.rows_key(classifier, self.fingerprints[dataset], run if differs else None)
        return self.store.rows_path(dataset, classifier, key)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a piece of work failed."""

    reason: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Rows:
    """What methods learn from and are tried on: instances, or their rows, with labels."""

    X: Any
    y: LabelArray
    X_test: Any
    y_test: LabelArray
    prior: FloatArray
    about: About = field(default_factory=dict)


def split_of(train: Dataset, share: float, seed: int) -> tuple[IntArray, IntArray]:
    """Positions of the instances that `Dataset.split` puts into its first and second part."""
    return train.split_positions(share, rng=seed)


def make_rows(job: Job, dataset: str, classifier: str, run: int) -> float | Failure:
    """Fit a classifier, keep its rows of held-out training instances and of the test set; the seconds it took."""
    started = time.perf_counter()
    plan = job.plan
    try:
        with _noted() as notes:
            parts = load(plan.place(dataset))
            said = plan.classifiers[classifier]
            model = prepare(make(said.part, plan.python_path), seed=run, device=job.device, shared=False)
            if said.grid is not None:
                scored = {"scoring": "neg_log_loss", "error_score": "raise"}
                model = GridSearchCV(model, values_of(said.grid), cv=Folds(), **scored)
            fitted, posteriors, held = _held_out(plan, model, parts.train, run)
            embeds = hasattr(fitted, "transform") and (plan.learn is not None or hasattr(fitted, "fit_out_of_fold"))
            arrays = {"held": held, "posteriors": posteriors}
            arrays["test_posteriors"] = posteriors_of(fitted, parts.test.X, parts.train.classes)
            if embeds:
                arrays["embedding"] = fitted.transform(parts.train.take(held).X)
                arrays["test_embedding"] = fitted.transform(parts.test.X)
        arrays["y"] = encode(parts.train.y, parts.train.classes)[held]
        arrays["y_test"] = encode(parts.test.y, parts.train.classes)
        seconds = time.perf_counter() - started
        about = _about(parts) | {"seconds": seconds, "warnings": notes, "hardware": hardware(), "versions": versions()}
        protocol = plan.draws(len(parts.train.classes))
        about["limit"] = bound_of(arrays["test_posteriors"], parts.test.y, parts.train.classes, protocol)
        if said.grid is not None:
            about["chosen"] = {name: repr(value) for name, value in model_choice(fitted).items()}
        kept = {name: compact(values) for name, values in arrays.items()}
        about["digest"] = fingerprint_of(kept)
        write(job.rows_path(dataset, classifier, run), to_npz(kept, about, compressed=False))
    except InvalidExperiment:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a classifier raises, the others go on
        return _failure(error)
    return seconds


def model_choice(fitted: Any) -> dict[str, Any]:
    """The settings that a search has chosen."""
    chosen: dict[str, Any] = getattr(fitted, "best_params_", {})
    return chosen


def _held_out(plan: Plan, model: Any, train: Dataset, run: int) -> tuple[Any, FloatArray, IntArray]:
    """A fitted classifier, posteriors (m, k) of instances made without having seen them, and their positions."""
    if plan.learn is None:
        codes = encode(train.y, train.classes)
        fitted, posteriors, held = cross_fit(model, train.X, codes, train.classes, cv=plan.folds)
        return fitted, posteriors, held
    first, held = split_of(train, plan.learn, run)
    learn = train.take(first)
    fitted = fit_classifier(model, learn.X, learn.y)
    return fitted, posteriors_of(fitted, train.take(held).X, train.classes), held


def run_cell(job: Job, cell: Cell) -> float | Failure:
    """Fit a method, estimate all bags, keep the results; the seconds it took."""
    import_module("quanet.kernels")  # once a process, and not a method's time
    started = time.perf_counter()
    method = job.plan.method(cell.method)
    try:
        with _noted() as notes:
            rows = _rows_for(job, cell, method)
            quantifier = _quantifier(job, cell, method, rows)
            width = len(rows.prior) if method.classifier and reads_posteriors_only(quantifier) else None
            X, X_test = (X if width is None else X[:, :width] for X in (rows.X, rows.X_test))
            begun = time.perf_counter()
            leaked = {"leaked": (X_test, rows.y_test)} if method.leak else {}
            quantifier.fit(X, rows.y, **leaked)
            fitted = time.perf_counter()
            protocol = job.plan.draws(len(rows.prior))
            results = evaluate(quantifier, X_test, rows.y_test, protocol, rng=cell.run)
            ended = time.perf_counter()
        seconds = {"fit": fitted - begun, "evaluate": ended - fitted, "rows": rows.about.get("seconds", 0.0)}
        about = {
            "method": {"classifier": method.classifier, **method.part},
            "prior": rows.prior.tolist(),
            "seconds": {name: round(value, 4) for name, value in seconds.items()},
            "learnt": learnt_facts(quantifier),
            "rows": rows.about.get("digest", ""),
            "limit": rows.about.get("limit"),
            "stand_in": rows.about["stand_in"],
            "leak": method.leak,
            "warnings": notes,
            "hardware": hardware(),
            "versions": versions(),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        job.store.write_cell(cell, job.key(cell), results, about)
    except InvalidExperiment:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a method raises, the others go on
        failure = _failure(error)
        job.store.write_failure(cell, job.key(cell), failure.reason, failure.traceback)
        return failure
    return time.perf_counter() - started


def _rows_for(job: Job, cell: Cell, method: Method) -> Rows:
    if method.classifier is None:
        parts = load(job.plan.place(cell.dataset))
        train, test = parts.train, parts.test
        return Rows(train.X, train.y, test.X, test.y, train.prevalence, _about(parts))
    path = job.rows_path(cell.dataset, method.classifier, cell.run)
    arrays, about = from_npz(path)
    both = []
    for part in ("", "test_"):
        names = (f"{part}posteriors", f"{part}embedding")
        both.append(np.hstack([arrays[name].astype(float) for name in names if name in arrays]))
    classes = np.array(about["classes"])
    return Rows(both[0], classes[arrays["y"]], both[1], classes[arrays["y_test"]], np.array(about["prior"]), about)


def _quantifier(job: Job, cell: Cell, method: Method, rows: Rows) -> Any:
    """The method as it is fitted: with its seed, and inside a search where there is a grid."""
    made = make(method.part, job.plan.python_path)
    share = None if job.plan.learn is None else 1 - job.plan.learn
    made = prepare(made, seed=cell.run, device=job.device, shared=method.classifier is not None, share=share)
    if method.grid is None:
        return made
    splits: Any = StratifiedShuffleSplit(1, test_size=HELD_OUT, random_state=cell.run)
    refit = True
    if method.classifier is None and job.plan.learn is not None:
        # As in the paper: fitted to the part to learn from, chosen on the other.
        splits = [split_of(Dataset(rows.X, rows.y), job.plan.learn, cell.run)]
        refit = False
    return GridSearchQ(
        made,
        values_of(method.grid),
        protocol=job.plan.draws(len(rows.prior)),
        metric=method.select,
        cv=splits,
        refit=refit if method.refit is None else method.refit,
        random_state=cell.run,
    )


def _about(parts: Parts) -> About:
    classes, prior = parts.train.classes.tolist(), parts.train.prevalence.tolist()
    return {"classes": classes, "prior": prior, "stand_in": parts.stand_in}


def learnt_facts(quantifier: Any) -> About:
    """What a fitted method says of itself in a few numbers: chosen settings, steps, whether it corrects."""
    facts: About = {}
    for name in ("best_setting_", "best_error_", "corrects_", "p_value_"):
        value = getattr(quantifier, name, None)
        if isinstance(value, dict):
            facts[name] = {key: repr(one) for key, one in value.items()}
        elif value is not None and value == value:
            facts[name] = value.item() if hasattr(value, "item") else value
    if hasattr(quantifier, "history_"):
        facts["epochs"] = len(quantifier.history_)
    return facts


def compact(values: Any) -> Any:
    """Numbers in 32 bits where that loses nothing.

    Examples
    --------
    >>> compact(np.array([0.5, 0.25])).dtype, compact(np.array([0.1])).dtype
    (dtype('float32'), dtype('float64'))
    """
    array = np.asarray(values)
    kind = {"f": np.float32, "i": np.int32}.get(array.dtype.kind)
    if kind is None:
        return array
    small = array.astype(kind)
    return small if (small == array).all() else array


def fingerprint_of(arrays: dict[str, Any]) -> str:
    """Equal for equal rows, so that a cell can say which ones it has read."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        found.update(np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()[:16]


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Inside, warnings are written down, each once, instead of shown in the middle of other output."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield notes
        finally:
            notes += dict.fromkeys(f"{one.category.__name__}: {one.message}" for one in caught)


def _failure(error: Exception) -> Failure:
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return Failure(reason, traceback.format_exc())
