"""`quanet fit`: train a model on labelled files."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quanet.cli.console import (
    command_line,
    command_settings,
    exit_on_signals,
    note,
    progress,
    training_progress,
    warn,
    warnings_as_lines,
    write_report,
)
from quanet.cli.options import OUTPUT, Files, Force, Report, check_class, check_outputs, name_classes, parse_one_key
from quanet.data.settings import COLUMNS, METHOD, LabelledColumns, SavedNaming, Seed, split_names
from quanet.errors import brief
from quanet.files import parse_toml
from quanet.progress import duration

if TYPE_CHECKING:
    from quanet.base import Quantifier


def fit(
    files: Files,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the model.", rich_help_panel=OUTPUT),
    ],
    columns: LabelledColumns,
    seed: Seed,
    naming: SavedNaming,
    features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Numeric column, if there are no texts. Repeatable, or several separated by commas.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN[:PERIOD]",
            help="Parts that differ, such as product or date:quarter: each is left out once, to learn what drift may "
            "cost. [dim]default: clusters[/]",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="QuaNet, EMQ, PACC, ...: see `quanet methods`. [dim]default: QuaNet[/]",
            rich_help_panel=METHOD,
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Parameter of the method, such as cv=5 or classifier__C=1. Repeatable.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    classifier: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="TextClassifier, LSTMClassifier, SentenceClassifier, or module:Class. [dim]default: by the data[/]",
            rich_help_panel=METHOD,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="Device for networks: cpu, cuda, mps. [dim]default: the fastest[/]", rich_help_panel=METHOD),
    ] = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Train a model on labelled FILES, for `quanet predict`.

    [bold]Examples[/]

    quanet fit reviews.csv --text review --label sentiment -o model

    quanet fit 'reviews-*.jsonl.gz' --method EMQ -o model --force

    quanet fit reviews.csv --label sentiment --groups product -o model

    quanet fit houses.parquet --features rooms,price --label sold -o model --method PACC --set cv=10
    """
    from quanet.data.duplicates import RowOrder
    from quanet.data.streams import TableSource
    from quanet.persist.save import free_place
    from quanet.progress import listening
    from quanet.report.fit import (
        copies_sentences,
        counts_sentence,
        drift_line,
        limits_line,
        named_counts,
        rows_sentence,
        summarize_training,
        which_error,
    )
    from quanet.simplex import classes_of
    from quanet.workflows.fit import save_training, train
    from quanet.workflows.labelled import choose_columns, order_posteriors, read_labelled

    _check_output(output, force=force)
    free_place(output, overwrite=True)
    check_outputs(report=report, force=force)
    names = _check_features(features, columns.text)
    given = naming.by_label
    key = parse_one_key(groups, "--groups").as_required() if groups else None
    quantifier = build_quantifier(method, setting or [], classifier, seed=seed.seed, device=device)
    source = TableSource(files, **columns.table_options)
    inputs, label, found = choose_columns(
        source, columns.text, columns.label, features=names, detect=False, exclude=[key.column] if key else []
    )
    note(found)
    with warnings_as_lines(), exit_on_signals():
        with progress(f"Reading {source.name}", source.size) as update:
            source.follow = update
            data = read_labelled(
                source,
                inputs,
                label,
                normalize=columns.normalize_labels,
                groups=key,
                form=columns.date_format,
                given=given,
            )
        show = check_class(naming, name_classes(classes_of(data.y), given))
        if inputs.features and getattr(quantifier, "classifier", None) == "precomputed":
            data, inputs = order_posteriors(data, inputs)
        note(rows_sentence(source.rows, data.skipped))
        note(counts_sentence(named_counts(data.counts, given, show)))
        for sentence in copies_sentences(len(data.y), data.duplicates, data.conflicts):
            note(sentence)
        order = RowOrder().add(data.y.tolist()).sentence
        if order:
            note(f"{order} {RowOrder.advice}")
        with progress(f"Training {type(quantifier).__name__}") as update, listening(training_progress(update)):
            training = train(
                quantifier,
                data,
                files=tuple(source.names),
                inputs=inputs,
                label=label,
                names=given,
                seed=seed.seed,
                progress=lambda what: update(None, what),
            )
    size = save_training(quantifier, training, output, command=command_line())
    summary = summarize_training(training, settings=command_settings(), focus=show)
    note(summary.answer)
    note(drift_line(training))
    for sentence in which_error(training):
        note(sentence)
    note(limits_line(training))
    for finding in summary.cautions:
        (note if finding.severity == "note" else warn)(finding.sentence)
        note(finding.advice)
    write_report(summary, report)
    note(f"Model: {output} ({size / 1e6:.1f} MB), trained in {duration(training.seconds)}")
    note(f"Next: quanet predict {shlex.quote(str(output))} NEW_FILE")


def _check_output(output: Path, *, force: bool) -> None:
    from quanet.errors import InvalidSetting

    if output.is_dir() and any(output.iterdir()) and not force:
        raise InvalidSetting(f"{output} already exists. Choose another name, or replace the model with --force.")


def _check_features(features: list[str] | None, text: str | None) -> tuple[str, ...]:
    names = split_names(features)
    if features and text is not None:
        raise typer.BadParameter("Give --text or --features, not both.", param_hint="--features")
    if features and not names:
        raise typer.BadParameter("Name at least one column.", param_hint="--features")
    return names


def build_quantifier(
    method: str | None, settings: Sequence[str], classifier: str | None, *, seed: int, device: str | None
) -> "Quantifier":
    """The quantifier, not yet fitted; a wrong name or value is a usage error."""
    from quanet.errors import InvalidPart, InvalidSetting
    from quanet.workflows.fit import DEFAULT_METHOD, new_quantifier

    method = method or DEFAULT_METHOD
    options = dict(_setting(one) for one in settings)
    try:
        return new_quantifier(method, options, classifier, seed=seed, device=device)
    except InvalidSetting as error:
        word = error.word if isinstance(error, InvalidPart) else ""
        raise typer.BadParameter(str(error), param_hint=_option_at_fault(word, method, classifier)) from error


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name.strip() and equals):
        raise typer.BadParameter(f"{brief(text)} is not of the form key=value, such as cv=5.", param_hint="--set")
    try:
        return name.strip(), parse_toml(f"value = {value}")["value"]
    except ValueError:
        return name.strip(), value.strip()  # a word without quotes


def _option_at_fault(word: str, method: str, classifier: str | None) -> str:
    if word.lower() == method.lower():
        return "--method"
    return "--classifier" if classifier and word.lower() == classifier.lower() else "--set"
