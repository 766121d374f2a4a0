"""The two kinds of tasks of an experiment: the rows of a dataset by a classifier, and one cell."""

import hashlib
import os
import platform
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit

import quanet
from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.classifiers.cross_fitting import cross_fit, fit_classifier, posteriors_of
from quanet.classifiers.folds import Folds
from quanet.data.dataset import Dataset
from quanet.errors import InvalidExperiment
from quanet.evaluation.evaluate import Cell, evaluate, fit_for_estimates
from quanet.evaluation.searches import GridSearchQ
from quanet.lab.bounds import bound_of
from quanet.lab.build import make, needs_seed, prepare, reads_posteriors_only, values_of
from quanet.lab.plan import Method, Parts, Plan, load
from quanet.lab.store import Metadata, Store, from_npz, to_npz, write
from quanet.simplex import encode

HELD_OUT = 0.4  # fraction of the training rows for choosing settings


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that affect results."""
    found = {"python": platform.python_version(), "quanet": quanet.__version__}
    for name in ("numpy", "scipy", "scikit-learn", "numba", "torch"):
        if name != "torch" or "torch" in sys.modules:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = "?"
    return found


def hardware() -> str:
    """The processor, its cores, and the accelerator if torch is in use."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    found = f"{model}, {os.cpu_count()} cores"
    if "torch" in sys.modules:
        from quanet.nn.device import accelerator

        found += f", {accelerator()}" if accelerator() else ""
    return found


@dataclass(frozen=True, slots=True)
class Job:
    """What all tasks of an experiment share."""

    plan: Plan
    folder: str
    fingerprints: dict[str, str]
    device: str | None = None

    @property
    def store(self) -> Store:
        """The folder of the results."""
        return Store(self.folder)

    def key(self, cell: Cell) -> str:
        """The key of a cell."""
        return self.plan.key(cell, self.fingerprints[cell.dataset])

    def rows_path(self, dataset: str, classifier: str, run: int) -> Path:
        """The file of the rows that methods with this classifier use in a run; several runs may share it."""
        differs = self.plan.learn is not None or needs_seed(
            make(self.plan.classifiers[classifier].part, self.plan.python_path)
        )
        key = self.plan.rows_key(classifier, self.fingerprints[dataset], run if differs else None)
        return self.store.rows_path(dataset, classifier, key)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a task failed."""

    reason: str
    traceback: str


@dataclass(frozen=True, slots=True)
class ClassifierRows:
    """Training and test data of methods: instances, or their rows, with labels."""

    X: Any
    y: LabelArray
    X_test: Any
    y_test: LabelArray
    prior: FloatArray
    about: Metadata = field(default_factory=dict)


def split_of(train: Dataset, share: float, seed: int) -> tuple[IntArray, IntArray]:
    """Positions of the instances in the two parts of `Dataset.split`."""
    return train.split_positions(share, rng=seed)


def make_rows(job: Job, dataset: str, classifier: str, run: int) -> float | Failure:
    """Fit a classifier, and save its rows of held-out training instances and of the test set. Returns seconds."""
    started = time.perf_counter()
    plan = job.plan
    try:
        with _recorded_warnings() as notes:
            parts = load(plan.place(dataset))
            planned = plan.classifiers[classifier]
            model = prepare(make(planned.part, plan.python_path), seed=run, device=job.device, shared=False)
            if planned.grid is not None:
                scored = {"scoring": "neg_log_loss", "error_score": "raise"}
                model = GridSearchCV(model, values_of(planned.grid), cv=Folds(), **scored)
            fitted, posteriors, held_out = _held_out(plan, model, parts.train, run)
            embeds = hasattr(fitted, "transform") and (plan.learn is not None or hasattr(fitted, "fit_out_of_fold"))
            arrays = {"held": held_out, "posteriors": posteriors}
            arrays["test_posteriors"] = posteriors_of(fitted, parts.test.X, parts.train.classes)
            if embeds:
                arrays["embedding"] = fitted.transform(parts.train.take(held_out).X)
                arrays["test_embedding"] = fitted.transform(parts.test.X)
        arrays["y"] = encode(parts.train.y, parts.train.classes)[held_out]
        arrays["y_test"] = encode(parts.test.y, parts.train.classes)
        seconds = time.perf_counter() - started
        about = _about(parts) | {"seconds": seconds, "warnings": notes, "hardware": hardware(), "versions": versions()}
        protocol = plan.draws(len(parts.train.classes))
        about["limit"] = bound_of(arrays["test_posteriors"], parts.test.y, parts.train.classes, protocol)
        if planned.grid is not None:
            about["chosen"] = {name: repr(value) for name, value in model_choice(fitted).items()}
        compacted = {name: compact(values) for name, values in arrays.items()}
        about["digest"] = fingerprint_of(compacted)
        write(job.rows_path(dataset, classifier, run), to_npz(compacted, about, compressed=False))
    except InvalidExperiment:
        raise
    except Exception as error:  # noqa: BLE001 - other classifiers continue after any error
        return _failure(error)
    return seconds


def model_choice(fitted: Any) -> dict[str, Any]:
    """The settings chosen by a search."""
    chosen: dict[str, Any] = getattr(fitted, "best_params_", {})
    return chosen


def _held_out(plan: Plan, model: Any, train: Dataset, run: int) -> tuple[Any, FloatArray, IntArray]:
    """A fitted classifier, posteriors (m, k) of held-out instances, and their positions."""
    if plan.learn is None:
        codes = encode(train.y, train.classes)
        return cross_fit(model, train.X, codes, train.classes, cv=plan.folds)
    first, held_out = split_of(train, plan.learn, run)
    learn = train.take(first)
    fitted = fit_classifier(model, learn.X, learn.y)
    return fitted, posteriors_of(fitted, train.take(held_out).X, train.classes), held_out


def run_cell(job: Job, cell: Cell) -> float | Failure:
    """Fit a method, estimate all bags, and save the results. Returns seconds."""
    started = time.perf_counter()
    method = job.plan.method(cell.method)
    try:
        with _recorded_warnings() as notes:
            rows = _rows_for(job, cell, method)
            quantifier = _quantifier(job, cell, method, rows)
            width = len(rows.prior) if method.classifier and reads_posteriors_only(quantifier) else None
            X, X_test = (X if width is None else X[:, :width] for X in (rows.X, rows.X_test))
            begin = time.perf_counter()
            leaked = {"leaked": (X_test, rows.y_test)} if method.leak else {}
            fit_for_estimates(quantifier, X, rows.y, **leaked)
            fitted = time.perf_counter()
            protocol = job.plan.draws(len(rows.prior))
            results = evaluate(quantifier, X_test, rows.y_test, protocol, rng=cell.run)
            ended = time.perf_counter()
        seconds = {"fit": fitted - begin, "evaluate": ended - fitted, "rows": rows.about.get("seconds", 0.0)}
        about = {
            "method": {"classifier": method.classifier, **method.part},
            "prior": rows.prior.tolist(),
            "seconds": {name: round(value, 4) for name, value in seconds.items()},
            "learnt": learned_facts(quantifier),
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
    except Exception as error:  # noqa: BLE001 - other methods continue after any error
        failure = _failure(error)
        job.store.write_failure(cell, job.key(cell), failure.reason, failure.traceback)
        return failure
    return time.perf_counter() - started


def _rows_for(job: Job, cell: Cell, method: Method) -> ClassifierRows:
    if method.classifier is None:
        parts = load(job.plan.place(cell.dataset))
        train, test = parts.train, parts.test
        return ClassifierRows(train.X, train.y, test.X, test.y, train.prevalence, _about(parts))
    path = job.rows_path(cell.dataset, method.classifier, cell.run)
    arrays, about = from_npz(path)
    both = []
    for part in ("", "test_"):
        names = (f"{part}posteriors", f"{part}embedding")
        both.append(np.hstack([arrays[name].astype(float) for name in names if name in arrays]))
    classes = np.array(about["classes"])
    return ClassifierRows(
        both[0], classes[arrays["y"]], both[1], classes[arrays["y_test"]], np.array(about["prior"]), about
    )


def _quantifier(job: Job, cell: Cell, method: Method, rows: ClassifierRows) -> Any:
    """The quantifier to fit: with its seed, and within a search if there is a grid."""
    made = make(method.part, job.plan.python_path)
    share = None if job.plan.learn is None else 1 - job.plan.learn
    made = prepare(made, seed=cell.run, device=job.device, shared=method.classifier is not None, share=share)
    if method.grid is None:
        return made
    splits: Any = StratifiedShuffleSplit(1, test_size=HELD_OUT, random_state=cell.run)
    refit = True
    if method.classifier is None and job.plan.learn is not None:
        # As in the paper: fitted to one part, chosen on the other.
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


def _about(parts: Parts) -> Metadata:
    classes, prior = parts.train.classes.tolist(), parts.train.prevalence.tolist()
    return {"classes": classes, "prior": prior, "stand_in": parts.stand_in}


def learned_facts(quantifier: Any) -> Metadata:
    """A few facts about a fitted method: chosen settings, epochs."""
    facts: Metadata = {}
    for name in ("best_setting_", "best_error_"):
        value = getattr(quantifier, name, None)
        if isinstance(value, dict):
            facts[name] = {key: repr(item) for key, item in value.items()}
        elif value is not None and value == value:
            facts[name] = value.item() if hasattr(value, "item") else value
    if hasattr(quantifier, "history_"):
        facts["epochs"] = len(quantifier.history_)
    return facts


def compact(values: Any) -> Any:
    """Numbers in 32 bits if this is lossless.

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
    """A hash of rows, so that a cell can record which rows it used."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        found.update(np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()[:16]


@contextmanager
def _recorded_warnings() -> Iterator[list[str]]:
    """Record warnings within the block, each once, instead of printing them."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield notes
        finally:
            notes += dict.fromkeys(f"{warning.category.__name__}: {warning.message}" for warning in caught)


def _failure(error: Exception) -> Failure:
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return Failure(reason, traceback.format_exc())
