"""The report of `quanet fit`: what the model was trained on, and which errors to expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quanet.data.columns import label_name
from quanet.data.duplicates import RowOrder
from quanet.evaluation.findings import Finding
from quanet.report.phrases import listing, many, percent, points, with_share
from quanet.report.summary import Column, Section, Summary, Table, TableEntry
from quanet.wording import NONE
from quanet.workflows.fit import LIMIT_SIZES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quanet.workflows.fit import HeldOutErrors, Training

MOST_CLASSES = 12  # listed; the rest are added up
LARGE_LIMIT = 0.05  # a share that can be missed in a group of usual size, from which readers are told


def summarize_training(
    training: Training, *, settings: Sequence[tuple[str, str]] = (), focus: str | None = None
) -> Summary:
    """The report of a training: errors to expect, advice, training data; the class `focus` comes first in tables."""
    return Summary(
        title=f"Model {training.method}, trained on {', '.join(training.files[:3])}",
        answer=_answer(training),
        cautions=_cautions(training),
        sections=(
            _errors_section(training),
            Section("Drift", (*which_error(training), _drift_sentence(training))),
            data_section(training, focus),
        ),
        settings=(*settings, ("seed", str(training.seed))),
        data=lambda: training.facts(dict(settings).get("command", "")),
    )


def _answer(training: Training) -> str:
    model = f"{training.method}, trained on {training.instances:,} instances"
    if training.errors is None:
        why = "there are too few held-out" if training.holds_out else f"{training.method} has no held-out"
        return f"{model}. Expected errors are unknown, since {why} instances; `quanet evaluate` measures errors."
    counted = f"; of a plain count of labels (CC): {points(training.errors.counted)}" if training.method != "CC" else ""
    return f"{model}. Expected mean error of a share: {points(training.errors.error)}{counted}."


def _cautions(training: Training) -> tuple[Finding, ...]:
    found = []
    if training.advice:
        sentence, *advice = training.advice
        found.append(Finding("model quality", "warning", sentence, " ".join(advice)))
    return (*found, *_missed_classes(training))


def _missed_classes(training: Training) -> list[Finding]:
    """The note that small shares of some classes cannot be told from 0; none if the limits are low or unknown."""
    limits, size = named_counts(training.limits, training.names), LIMIT_SIZES[0]
    shares = {name: n / training.instances for name, n in named_counts(training.counts, training.names).items()}
    missed = {name: limit[0] for name, limit in limits.items() if limit[0] > min(shares[name], LARGE_LIMIT)}
    if not missed:
        return []
    listed = [
        f"{name!r} at any share"
        if limit == 1
        else f"{name!r} below {percent(limit)} ({percent(shares[name])} in training)"
        for name, limit in sorted(missed.items(), key=lambda item: -item[1])
    ]
    return [
        Finding(
            "small shares",
            "note",
            f"In {size} rows the model can miss a class with a small share: {listing(listed, most=3)}.",
            "An estimate of 0.0 % does not mean that the class is absent: read the upper end of its interval. Larger "
            "groups and more training rows of the class help.",
            missed,
        )
    ]


def _errors_section(training: Training) -> Section:
    if training.errors is None:
        return Section("Expected errors", ("Unknown.",))
    bags = f"{training.errors.bags} bags of {training.errors.bag_size} held-out instances"
    return Section(
        "Expected errors",
        (f"Measured on {bags}, with class shares from 0 to 100 %.",),
        tables=(errors_table(training.errors, training.method),),
    )


def errors_table(errors: HeldOutErrors, method: str) -> Table:
    """Held-out errors of the method, of a plain count, and of a constant answer."""
    rows = [
        (method, errors.error),
        ("plain count of labels (CC)", errors.counted),
        ("training shares", errors.constant),
    ]
    if method == "CC":
        del rows[1]
    return Table(
        "Mean absolute error of a share",
        (Column("error"),),
        tuple((name, (TableEntry(points(error), best=name == method),)) for name, error in rows),
    )


def limits_line(training: Training) -> str:
    """The smallest share of every class that can be told from 0."""
    if not training.limits:
        few = "many classes" if len(training.counts) > MOST_CLASSES else "few held-out posteriors of some class"
        why = f"too {few}" if training.holds_out else f"{training.method} has no held-out instances"
        return f"Smallest share told from 0: unknown ({why})"
    named = named_counts(training.limits, training.names).items()
    limits = [f"{name} {_limits_text(shares)}" for name, shares in sorted(named, key=lambda item: -item[1][0])]
    return f"{_smallest()[:1].upper()}{_smallest()[1:]}: {listing(limits)}"


def _smallest() -> str:
    return f"smallest share told from 0, in {' / '.join(f'{size:,}' for size in LIMIT_SIZES)} rows"


def _limits_text(shares: tuple[float, ...]) -> str:
    return " / ".join("none" if share == 1 else percent(share) for share in shares)


def drift_line(training: Training) -> str:
    """How the drift scale was learned, or what is unknown."""
    sentence = _drift_sentence(training)
    return f"Drift: {sentence[:1].lower()}{sentence[1:]}"


def which_error(training: Training) -> tuple[str, ...]:
    """Which of the two errors applies to new data, if both are known."""
    if training.errors is None or training.drift is None or training.drift.bias is None:
        return ()
    error, bias = points(training.errors.error), points(training.drift.bias)
    return (
        f"Expect an error of about {error} if new data differ from the training data in class shares only, and of "
        f"about {bias} (at a share of 50 %) if they differ as the left-out {training.drift.kind} of the training data "
        "do.",
    )


def _drift_sentence(training: Training) -> str:
    return training.drift.sentence if training.drift else "Unknown; intervals do not include it."


def data_section(training: Training, focus: str | None = None) -> Section:
    """Rows, copies and classes of the training data."""
    rows = rows_sentence(training.rows, training.skipped)
    return Section(
        "Training data",
        (
            training.sentence,
            f"{rows}.",
            *copies_sentences(training.instances, training.duplicates, training.conflicts),
            *([f"{training.order} {RowOrder.advice}"] if training.order else []),
        ),
        tables=(
            counts_table(
                named_counts(training.counts, training.names, focus), named_counts(training.limits, training.names)
            ),
        ),
    )


def rows_sentence(rows: int, skipped: Mapping[str, int]) -> str:
    """How many rows are used, and how many are skipped for which reason."""
    reasons = ", ".join(f"{number:,} skipped ({reason})" for reason, number in skipped.items())
    return f"{rows - sum(skipped.values()):,} of {rows:,} rows{': ' + reasons if reasons else ''}"


def copies_sentences(instances: int, duplicates: int, conflicts: int) -> tuple[str, ...]:
    """What is known about copies among the training rows."""
    if not duplicates:
        return ()
    labels = f" Check the labels: copies of {many(conflicts, 'row')} have different ones." if conflicts else ""
    rows = many(duplicates, "row is a copy of an earlier one", "rows are copies of earlier ones")
    return (f"{rows} ({percent(duplicates / instances)}); copies share a fold.{labels}",)


def named_counts(counts: Mapping[Any, Any], names: Mapping[str, str], focus: str | None = None) -> dict[str, Any]:
    """Instances, or something else, by the name of their class, the class `focus` first.

    Examples
    --------
    >>> named_counts({0: 30, 1: 20}, {"1": "positive"}, "positive")
    {'positive': 20, '0': 30}
    """
    named = {names.get(label_name(label), label_name(label)): number for label, number in counts.items()}
    return dict(sorted(named.items(), key=lambda item: item[0] != focus))


def counts_sentence(counts: Mapping[Any, int]) -> str:
    """Instances of every class; of many classes, the largest."""
    total = sum(counts.values())
    shown = _largest(counts)
    named = (with_share(name, f"{number:,} ({percent(number / total)})") for name, number in shown)
    return f"Classes: {', '.join(named)}"


def counts_table(counts: Mapping[Any, int], limits: Mapping[str, tuple[float, ...]] | None = None) -> Table:
    """Instances and shares of the classes, and the smallest shares that can be told from 0, if known."""
    total = sum(counts.values())
    rows = tuple(
        (
            name,
            (
                TableEntry(f"{number:,}"),
                TableEntry(percent(number / total)),
                TableEntry(_limits_text(limits[name]) if limits and name in limits else NONE),
            ),
        )
        for name, number in _largest(counts)
    )
    columns = (Column("instances"), Column("share"), Column(_smallest(), spare=True))
    return Table("Training instances by class", columns, rows, corner="class")


def _largest(counts: Mapping[Any, int]) -> list[tuple[str, int]]:
    shown = [(str(name), number) for name, number in counts.items()]
    if len(shown) > MOST_CLASSES:
        shown = sorted(shown, key=lambda item: -item[1])[: MOST_CLASSES - 1]
        rest = sum(counts.values()) - sum(number for _, number in shown)
        shown.append((f"{len(counts) - len(shown)} others", rest))
    return shown
