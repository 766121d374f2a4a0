"""Training a quantifier on a labelled table, and the errors to expect: `quanet fit`."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

import quanet
from quanet.arrays import BoolArray, IntArray
from quanet.base import Quantifier
from quanet.data.columns import ClassNames
from quanet.data.duplicates import RowOrder, hash_training_texts, split_groups
from quanet.data.instances import InputColumns, Inputs
from quanet.drift.scale import root_mean_square
from quanet.errors import InvalidPart, brief
from quanet.held_out import HeldOut
from quanet.lab.build import make, prepare
from quanet.methods.counting import classify_and_count
from quanet.metrics import absolute_error
from quanet.persist.save import save
from quanet.protocols import UPP
from quanet.uncertainty.intervals import predict_interval_bags
from quanet.uncertainty.regions import ROUNDING
from quanet.wording import points
from quanet.workflows.labelled import Labelled

DEFAULT_METHOD = "QuaNet"
COVERAGE_BAGS, COVERAGE_SIZE, COVERAGE_HALVES = 100, 250, 10  # to measure coverage on
BAGS, BAG_SIZE = 500, 500  # to measure errors on; smaller if few instances are held out
POOR = 0.5  # a model is poor if its error exceeds this part of the constant answer's error
FEWEST = 10  # held-out instances of a class in each half
LIMIT_SIZES = (500, 5_000)  # rows for which the smallest share that can be told from 0 is stated


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


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """What came of training a quantifier.

    Attributes
    ----------
    method : name of the quantifier's class.
    files : names of the files.
    inputs, label : columns.
    rows : rows read, and those skipped by reason in `skipped`.
    counts : instances by class.
    duplicates, conflicts : copies of other instances, and instances whose copies have different labels.
    errors : errors to expect, measured on held-out instances; None if unknown.
    holds_out : whether the quantifier has held-out instances at all.
    advice : sentences about a poor model and what would help.
    drift : how the drift scale was learned (`LearnedDrift`).
    names : names of classes by label, as answers show them; labels without an entry are shown as they are.
    seconds : duration of training.
    seed : random seed.
    order : a sentence if labels are related to the order of the rows; otherwise empty.
    limits : by class, the smallest shares that can be told from 0 in `LIMIT_SIZES` rows (`detection_limits`); empty if
        unknown.
    """

    method: str
    files: tuple[str, ...]
    inputs: InputColumns
    label: str
    rows: int
    counts: dict[Any, int]
    skipped: dict[str, int]
    duplicates: int
    conflicts: int
    errors: HeldOutErrors | None
    holds_out: bool
    advice: tuple[str, ...]
    seconds: float
    seed: int
    drift: "LearnedDrift | None" = None
    names: dict[str, str] = field(default_factory=dict)
    order: str = ""
    limits: dict[Any, tuple[float, ...]] = field(default_factory=dict)

    @property
    def instances(self) -> int:
        """Instances trained on."""
        return sum(self.counts.values())

    @property
    def sentence(self) -> str:
        """The training data in a sentence."""
        files = ", ".join(self.files[:5]) + (f" and {len(self.files) - 5} more" if len(self.files) > 5 else "")
        columns = (
            f"texts in `{self.inputs.text}`" if self.inputs.text else f"numbers in `{', '.join(self.inputs.features)}`"
        )
        copies = f" {self.duplicates:,} rows are copies of others." if self.duplicates else ""
        return f"{self.instances:,} rows of {files}: {columns}, labels in `{self.label}`.{copies}"

    @property
    def results(self) -> dict[str, float]:
        """Held-out errors by name."""
        if self.errors is None:
            return {}
        bags = f"mean absolute error, {self.errors.bags} bags of {self.errors.bag_size}"
        return {f"{self.method}, {bags}": self.errors.error, f"CC, {bags}": self.errors.counted}

    def facts(self, command: str) -> dict[str, Any]:
        """Facts that are saved with the model."""
        return {
            "files": list(self.files),
            "text": self.inputs.text,
            "features": list(self.inputs.features),
            "label": self.label,
            "rows": self.instances,
            "skipped": self.skipped,
            "duplicates": self.duplicates,
            "conflicts": self.conflicts,
            "names": self.names,
            "smallest_shares": {
                str(size): {str(name): round(shares[at], 6) for name, shares in self.limits.items()}
                for at, size in enumerate(LIMIT_SIZES)
                if self.limits
            },
            "counts": {str(name): number for name, number in self.counts.items()},
            "held_out": asdict(self.errors) if self.errors else {},
            "drift": asdict(self.drift) if self.drift else {},
            "command": command,
            "method": self.method,
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
        }


def new_quantifier(
    method: str,
    settings: Mapping[str, Any] | None = None,
    classifier: str | None = None,
    *,
    seed: int = 0,
    device: str | None = None,
) -> Quantifier:
    """A quantifier that is not yet fitted. Raises `InvalidPart` if a name or setting is unknown; its `word` says which.

    Parameters
    ----------
    method, classifier : names of classes, in any case; a class of another package is "package.module:Class".
    settings : parameters of the method.
    seed, device : of all its parts that have one.
    """
    part: dict[str, Any] = {"kind": _exact_name(method)}
    if classifier is not None:
        part["classifier"] = {"kind": _exact_name(classifier)}
    made = make(part | dict(settings or {}))
    if not isinstance(made, Quantifier):
        raise InvalidPart(f"{brief(method)} does not estimate shares. `quanet methods` lists the methods.", method)
    made = prepare(made, seed=seed, device=device, shared=False)
    chosen = getattr(made, "classifier", None)
    if classifier is not None and (isinstance(chosen, Quantifier) or not hasattr(chosen, "predict")):
        raise InvalidPart(f"{brief(classifier)} is not a classifier.", classifier)
    return made


def _exact_name(name: str) -> str:
    """A name in the case of the code: EMQ for emq."""
    if ":" in name:  # a class of another package
        return name
    first, dot, rest = name.partition(".")
    lowered = {one.lower(): one for one in quanet.__all__}
    if first.lower() not in lowered:
        near = get_close_matches(first.lower(), lowered, n=1)
        hint = f" Did you mean {lowered[near[0]]}?" if near else ""
        raise InvalidPart(f"Unknown name {brief(first)}.{hint} `quanet methods` lists all.", name)
    return lowered[first.lower()] + dot + rest


def train(
    quantifier: Quantifier,
    data: Labelled,
    *,
    files: tuple[str, ...],
    inputs: InputColumns,
    label: str,
    names: Mapping[str, str] | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Training:
    """Fit a quantifier in place and measure the errors to expect.

    Parameters
    ----------
    quantifier : not yet fitted.
    data : labelled instances.
    files, inputs, label : names of files and columns, for the record.
    names : names of classes by label (`parse_names`).
    seed : seed of the bags that errors are measured on.
    progress : called with what is done next.
    """
    started = time.perf_counter()
    # Only if they are given: other packages' quantifiers may not accept groups.
    options: dict[str, Any] = {} if data.groups is None else {"groups": data.groups}
    quantifier.fit(data.X, data.y, **options)
    seconds = time.perf_counter() - started
    if progress:
        progress("Measuring errors on held-out instances")
    errors = held_out_errors(quantifier, seed=seed)
    if inputs.text:
        quantifier.training_hashes_ = hash_training_texts(data.X)
    return Training(
        method=type(quantifier).__name__,
        files=tuple(Path(file).name for file in files),
        inputs=inputs,
        label=label,
        rows=len(data.y) + sum(data.skipped.values()),
        counts=data.counts,
        skipped=data.skipped,
        duplicates=data.duplicates,
        conflicts=data.conflicts,
        errors=errors,
        holds_out=quantifier.held_out_ is not None,
        advice=explain_poor(ClassNames.of(quantifier.classes_, names or {}).rename(quantifier), errors),
        seconds=seconds,
        seed=seed,
        drift=learned_drift(quantifier),
        names=dict(names or {}),
        order=RowOrder().add(data.y.tolist()).sentence,
        limits=_limits(quantifier),
    )


def _limits(quantifier: Quantifier) -> dict[Any, tuple[float, ...]]:
    limits = quantifier.detection_limits(LIMIT_SIZES)
    if np.isnan(limits).any():
        return {}
    return dict(zip(quantifier.classes_.tolist(), map(tuple, limits.T.tolist()), strict=True))


def save_training(quantifier: Quantifier, training: Training, folder: Path, *, command: str = "") -> int:
    """Save a fitted quantifier with the facts of its training; return the size of the folder in bytes.

    A model that is already there is replaced.
    """
    save(
        quantifier,
        folder,
        data=training.sentence,
        results=training.results,
        facts=training.facts(command),
        overwrite=True,
    )
    return sum(file.stat().st_size for file in folder.iterdir())


@dataclass(frozen=True, slots=True)
class LearnedDrift:
    """How the drift scale was learned.

    Attributes
    ----------
    kind : "clusters" or "groups" of the training data that were left out; "" if other datasets are used instead.
    parts : number of parts that were left out.
    bias : root mean square of the bias on these parts at a share of 50 %; None without parts.
    sentence : all this in a sentence, or what is unknown.
    """

    kind: str
    parts: int
    bias: float | None
    sentence: str


def learned_drift(quantifier: Quantifier) -> LearnedDrift | None:
    """How the drift scale of a fitted quantifier was learned; None if it has none."""
    scale = quantifier.drift_
    if scale is None:
        return None
    bias = root_mean_square(scale.variances) if len(scale.variances) else None
    return LearnedDrift(scale.kind, len(scale.distances), bias, scale.sentence)
