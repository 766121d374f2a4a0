"""`quanet evaluate`: evaluate a model on labelled instances that it was not trained on."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quanet.cli import options
from quanet.cli.console import (
    command_settings,
    note,
    progress,
    warnings_as_lines,
    write_answer,
    write_report,
    write_table,
)
from quanet.cli.model_folder import load_model, read_grouped
from quanet.cli.options import (
    OUTPUT,
    AnswerFormat,
    Files,
    Force,
    ModelFolder,
    Output,
    Report,
    check_class,
)
from quanet.cli.protocol import BagSize, ProtocolName, Repeats, parse_protocol
from quanet.data.settings import Estimation, FileColumns, LabelSpelling, Naming

if TYPE_CHECKING:
    from quanet.data.instances import InputColumns
    from quanet.data.streams import TableSource


def evaluate(
    model: ModelFolder,
    files: Files,
    inputs: FileColumns,
    labels: LabelSpelling,
    estimation: Estimation,
    naming: Naming,
    protocol: ProtocolName = "app",
    bag_size: BagSize = None,
    repeats: Repeats = None,
    form: AnswerFormat = None,
    output: Output = None,
    bags: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write truth and estimate of every bag: .csv.", rich_help_panel=OUTPUT),
    ] = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Evaluate a model: draw bags of labelled instances and compare its estimates with the true shares.

    The default is the protocol of the QuaNet paper: 21 prevalences from 1 to 99 %, 100 bags of 500 instances each.

    The model is compared with CC, a plain count of its classifier's labels, and TrainPrevalence, the training shares.

    [bold]Examples[/]

    quanet evaluate model/ test.csv --label sentiment

    quanet evaluate model/ test.csv --label sentiment --protocol by:product --report report.html

    quanet evaluate model/ test.csv --format json | jq '.methods[0].ae'
    """
    from quanet.corpus.model_inputs import describe_model
    from quanet.data.columns import label_name, match_labels
    from quanet.data.periods import Key
    from quanet.data.streams import TableSource
    from quanet.report.evaluate import bag_rows, summarize_evaluation
    from quanet.workflows.drawing import draw_bags
    from quanet.workflows.evaluate import evaluate_model
    from quanet.workflows.labelled import labels_in, settle_labels

    drawing = parse_protocol(protocol, bag_size, repeats)
    form = options.choose_format(form, output)
    options.check_outputs(output, bags, report=report, force=force)
    with warnings_as_lines():
        quantifier, facts = load_model(model, naming)
        show = check_class(naming, facts["class_names"])
        source = TableSource(files, **inputs.table_options)
        read, column = _columns(
            source, facts, inputs, labels.label, [drawing.key.column if drawing.key else None, inputs.weight]
        )
        keys = [Key(column, required=True), *([drawing.key] if drawing.key else [])]
        reading = read_grouped(quantifier, source, read, inputs, keys=keys, missing="no label")
        written, groups = labels_in(reading)
        shown = facts["class_names"].shown(written)
        known = map(label_name, quantifier.classes_.tolist())
        settled = settle_labels(shown, normalize=labels.normalize_labels, known=known)
        truth = match_labels(settled, quantifier.classes_, source=source.name)
        drawn = draw_bags(drawing, truth, quantifier.classes_, groups=groups, rng=estimation.seed)
        for message in drawn.notes:
            note(message)
        with progress(f"Estimating {len(drawn.bags):,} bags"):
            evaluation = evaluate_model(
                quantifier,
                reading,
                truth,
                drawn,
                level=estimation.level,
                drift=estimation.drift,
                rng=estimation.seed,
                source=source.name,
                model=describe_model(model, facts, quantifier),
            )
    write_table(bag_rows(evaluation), bags, "Bags")
    summary = summarize_evaluation(evaluation, settings=command_settings(), focus=show)
    write_report(summary, report)
    write_answer(summary, form, output)


def _columns(
    source: "TableSource", facts: dict[str, Any], given: FileColumns, label: str | None, others: "list[str | None]"
) -> tuple["InputColumns", str]:
    """The columns of instances and of labels, which are none of the `others`."""
    from quanet.corpus.model_inputs import find_inputs
    from quanet.data.columns import find_label

    exclude = [one for one in (label, *others) if one]
    inputs = find_inputs(source, facts, given.text, given.features, exclude=exclude)
    trained_on = facts.get("label") if facts.get("label") in source.columns else None
    column = find_label(source, label or trained_on, besides=[*inputs.columns, *(one for one in others if one)])
    if column.guessed:
        note(f"{source.name}: label column {column.name!r} (detected)")
    return inputs, column.name
