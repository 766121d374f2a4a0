"""`quanet evaluate`: how well a model does on labelled instances that it has not seen."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from quanet.cli.console import details, note, warnings_as_lines
from quanet.cli.labels import settle_labels
from quanet.cli.moving import moving
from quanet.cli.opening import about_model, inputs_for, open_model, settings
from quanet.cli.options import (
    OUTPUT,
    DateFormat,
    Encoding,
    Files,
    Force,
    Label,
    Level,
    ModelFolder,
    NormalizeLabels,
    Report,
    Seed,
    Text,
    check_level,
)
from quanet.cli.protocol import BagSize, ProtocolName, Repeats, drawing_of
from quanet.cli.tables import diagnosis_lines
from quanet.cli.writing import AnswerFormat, Output, check_outputs, choose_format, write_answer, write_summary
from quanet.files import as_utf8

if TYPE_CHECKING:
    from quanet.answers.evaluation import Evaluation
    from quanet.answers.reading import Inputs, Reading
    from quanet.answers.shares import Key
    from quanet.base import Quantifier
    from quanet.data.streams import Source

METRICS = ("ae", "rae", "kld")


def evaluate(
    model: ModelFolder,
    files: Files,
    label: Label = None,
    text: Text = None,
    normalize_labels: NormalizeLabels = False,
    protocol: ProtocolName = "app",
    bag_size: BagSize = None,
    repeats: Repeats = None,
    level: Level = 0.95,
    seed: Seed = 0,
    date_format: DateFormat = None,
    encoding: Encoding = "utf-8",
    form: AnswerFormat = None,
    output: Output = None,
    bags: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write truth and estimate of every bag: .csv.", rich_help_panel=OUTPUT),
    ] = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Say how well a model does: draw bags of labelled instances, and compare its estimates with the truth.

    By default as in the paper: 21 prevalences from 1 to 99 %, 100 bags of 500 each.

    Beside the model stand CC, a plain count of its classifier's labels, and TrainPrevalence, the training shares.

    [bold]Examples[/]

    quanet evaluate model/ test.csv --label sentiment

    quanet evaluate model/ test.csv --label sentiment --protocol by:product --report report.html

    quanet evaluate model/ test.csv --format json | jq '.methods[0].ae'
    """
    from quanet.answers.drawing import draw_bags
    from quanet.answers.evaluation import evaluate_model
    from quanet.answers.labelled import labels_in
    from quanet.data.columns import label_name, match_labels
    from quanet.data.streams import Source

    check_level(level)
    drawing = drawing_of(protocol, bag_size, repeats)
    form = choose_format(form, output)
    check_outputs(output, bags, report=report, force=force)
    with warnings_as_lines():
        quantifier, facts = open_model(model)
        source = Source(files, encoding=encoding)
        inputs, named = _columns(source, facts, text, label, drawing.key)
        reading = _read(quantifier, source, inputs, named, drawing.key, date_format)
        names, groups = labels_in(reading)
        names = settle_labels(names, normalize=normalize_labels, known=map(label_name, quantifier.classes_.tolist()))
        labels = match_labels(names, quantifier.classes_, source=source.name)
        drawn = draw_bags(drawing, labels, quantifier.classes_, groups=groups, rng=seed)
        for message in drawn.notes:
            note(message)
        about = about_model(model, facts, quantifier)
        with moving(f"Estimating {len(drawn.bags):,} bags"):
            found = evaluate_model(
                quantifier, reading, labels, drawn, level=level, rng=seed, source=source.name, model=about
            )
    if bags is not None:
        _write_bags(found, bags)

    def summary() -> Any:
        from quanet.report.evaluation import summarize_evaluation

        return summarize_evaluation(found, settings=settings())

    write_summary(report, summary)
    write_answer(
        form,
        output,
        shown=lambda: _shown(found),
        rows=lambda: _rows(found),
        plain=lambda: _plain(found),
    )


def _columns(
    source: "Source", facts: dict[str, Any], text: str | None, label: str | None, key: "Key | None"
) -> tuple["Inputs", str]:
    """The columns of instances and of labels."""
    from quanet.data.columns import find_label

    inputs = inputs_for(source, facts, text, besides=[one for one in (label, key and key.column) if one])
    known = facts.get("label") if facts.get("label") in source.columns else None
    taken = find_label(source, label or known, besides=inputs.columns)
    if taken.guessed:
        note(f"{source.name}: label {taken.name!r} (guessed)")
    return inputs, taken.name


def _read(
    quantifier: "Quantifier",
    source: "Source",
    inputs: "Inputs",
    label: str,
    key: "Key | None",
    date_format: str | None,
) -> "Reading":
    """Instances as the model reads them, grouped by their label first."""
    from quanet.answers.reading import read_source
    from quanet.answers.shares import Key

    keys = [Key(label, required=True), *([key] if key else [])]
    source.check([*inputs.columns, *(one.column for one in keys)])
    with moving(f"Reading {source.name}", source.size) as move:
        source.follow = move
        reading = read_source(quantifier, source, inputs, keys=keys, form=date_format)
    told = {"no group": "no label"}
    left_out = ", ".join(f"{number:,} left out ({told.get(why, why)})" for why, number in reading.skipped.items())
    note(f"{len(reading.instances):,} of {source.rows:,} rows{': ' + left_out if left_out else ''}")
    return reading


def _shown(found: "Evaluation") -> list[Any]:
    name, result = next(iter(found.results.items()))
    bags = len(result)
    error = result.error().mean()
    beside = f", CC by {100 * found.results['CC'].error().mean():.1f}" if len(found.results) > 2 else ""
    sentence = (
        f"[bold]{escape(name)} errs by {100 * error:.1f} points on average[/]{beside}; its {found.interval.level:.0%} "
        f"intervals hold the truth in {found.covered.mean():.1%} of cases."
    )
    return [
        sentence,
        _errors(found),
        f"[dim]Mean (standard deviation) over {bags:,} bags. {escape(found.protocol)}.{_least(found)}[/]",
        _classes(found),
        "[dim]covered: share of bags whose interval holds the truth; width: of their intervals, on average.[/]",
        *diagnosis_lines(found.diagnosis, everything=not details.quiet),
    ]


def _least(found: "Evaluation") -> str:
    if found.limit is None:
        return ""
    return " Least possible: the Cramér-Rao bound of the classifier's posteriors, averaged over prevalences."


def _errors(found: "Evaluation") -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for metric in METRICS:
        table.add_column(metric.upper(), justify="right", no_wrap=True)
    for number, (name, result) in enumerate(found.results.items()):
        cells = [(one.mean(), one.std()) for one in (result.error(metric) for metric in METRICS)]
        shown = f"[bold]{escape(name)}[/]" if number == 0 else escape(name)
        table.add_row(shown, *(f"{mean:.4f} [dim]({spread:.4f})[/]" for mean, spread in cells))
    if found.limit is not None:
        table.add_row("[dim]least possible[/]", f"[dim]{found.limit.errors.mean():.4f}         [/]", "", "")
    return table


def _classes(found: "Evaluation") -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in ("class", "training", "this file", "estimate", "interval", "covered", "width"):
        table.add_column(title, justify="left" if title == "class" else "right", no_wrap=title != "class")
    for c, label in enumerate(found.whole.classes.tolist()):
        table.add_row(
            f"[bold]{escape(str(label))}[/]",
            f"{found.prior[c]:.1%}",
            f"{found.whole_truth[c]:.1%}",
            f"{found.whole.estimate[c]:.1%}",
            f"{found.whole.lower[c]:.1%} to {found.whole.upper[c]:.1%}",
            f"{found.covered[:, c].mean():.1%}",
            f"{found.interval.width[:, c].mean():.1%}",
        )
    return table


def _rows(found: "Evaluation") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number, (name, result) in enumerate(found.results.items()):
        row: dict[str, Any] = {"method": name, "bags": len(result)}
        for metric in METRICS:
            errors = result.error(metric)
            row |= {metric: errors.mean(), f"{metric}_sd": errors.std()}
        rows.append(row | {"coverage": found.covered.mean() if number == 0 else float("nan")})
    return rows


def _plain(found: "Evaluation") -> dict[str, Any]:
    classes = [str(label) for label in found.whole.classes.tolist()]
    return {
        "source": found.source,
        "model": found.model,
        "protocol": found.protocol,
        "level": found.interval.level,
        "interval": found.interval.method,
        "methods": _rows(found),
        "limit": None if found.limit is None else float(found.limit.errors.mean()),
        "whole": {
            name: {
                "training": found.prior[c],
                "truth": found.whole_truth[c],
                "estimate": found.whole.estimate[c],
                "lower": found.whole.lower[c],
                "upper": found.whole.upper[c],
                "covered": found.covered[:, c].mean(),
                "width": found.interval.width[:, c].mean(),
            }
            for c, name in enumerate(classes)
        },
        "diagnosis": [
            {"name": one.name, "severity": one.severity, "sentence": one.sentence, "numbers": dict(one.numbers)}
            for one in found.diagnosis
        ],
    }


def _write_bags(found: "Evaluation", path: Path) -> None:
    from quanet.report.files import write_whole

    result = next(iter(found.results.values()))
    table = result.frame().rename(columns={"label": "bag"})
    table["lower"], table["upper"] = found.interval.lower.ravel(), found.interval.upper.ravel()
    write_whole(path, as_utf8(table.to_csv(index=False)))
    note(f"Bags: {path}")
