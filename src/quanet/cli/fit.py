"""`quanet fit`: learn from labelled files."""

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quanet.cli.console import ended_by_signals, note, notes, warn, warnings_as_lines
from quanet.cli.making import make_quantifier
from quanet.cli.moving import learning, moving, spoken
from quanet.cli.opening import command_line
from quanet.cli.options import COLUMNS, HOW, OUTPUT, Encoding, Files, Force, Label, NormalizeLabels, Seed, Text

if TYPE_CHECKING:
    from quanet.answers.fitting import HeldOut, Labelled
    from quanet.answers.reading import Inputs
    from quanet.base import Quantifier
    from quanet.data.streams import Source

SHOWN = 12  # classes that are listed


def fit(
    files: Files,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", help="Where the model goes.", rich_help_panel=OUTPUT),
    ],
    text: Text = None,
    label: Label = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of numbers, where there are no texts; may be given again, or several with commas.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    normalize_labels: NormalizeLabels = False,
    encoding: Encoding = "utf-8",
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="QuaNet, EMQ, PACC, ...: see `quanet methods`. [dim]default: QuaNet; EMQ without torch[/]",
            rich_help_panel=HOW,
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the method, such as max_epochs=20 or classifier__C=1; may be given again.",
            rich_help_panel=HOW,
        ),
    ] = None,
    classifier: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="TextClassifier, LSTMClassifier, SentenceClassifier, or module:Class. [dim]default: by the data[/]",
            rich_help_panel=HOW,
        ),
    ] = None,
    seed: Seed = 0,
    device: Annotated[
        str | None, typer.Option(help="Of networks: cpu, cuda, mps. [dim]default: the best[/]", rich_help_panel=HOW)
    ] = None,
    force: Force = False,
) -> None:
    """Learn from labelled FILES and write a model, for `quanet predict`.

    [bold]Examples[/]

    quanet fit reviews.csv --text review --label sentiment -o model

    quanet fit 'reviews-*.jsonl.gz' --method EMQ -o model --force

    quanet fit houses.parquet --features rooms,price --label sold -o model --method PACC --set cv=10
    """
    from quanet.answers.fitting import held_out_errors, order_posteriors, read_labelled
    from quanet.data.streams import Source
    from quanet.diagnostics.overlap import remember_texts
    from quanet.persist.folder import save
    from quanet.persist.place import free_place
    from quanet.progress import listening

    _check_output(output, force=force)
    free_place(output)
    quantifier = make_quantifier(method, setting or [], classifier, seed=seed, device=device)
    source = Source(files, encoding=encoding)
    inputs, label = _columns(source, text, features, label)
    with warnings_as_lines(), ended_by_signals():
        with moving(f"Reading {source.name}", source.size) as move:
            source.follow = move
            data = read_labelled(source, inputs, label, normalize=normalize_labels)
        if inputs.features and getattr(quantifier, "classifier", None) == "precomputed":
            data, inputs = order_posteriors(data, inputs)
        _tell(data, source)
        started = time.perf_counter()
        name = type(quantifier).__name__
        with moving(f"Learning, {name}") as move, listening(learning(move)):
            quantifier.fit(data.X, data.y)
        seconds = time.perf_counter() - started
        with moving("Measuring errors on held-out instances"):
            errors = held_out_errors(quantifier, seed=seed)
    _tell_errors(errors, quantifier)
    if inputs.text:
        quantifier.training_hashes_ = remember_texts(data.X)
    facts = _facts(source, inputs, label, data, errors) | {"method": name, "seed": seed, "seconds": round(seconds, 1)}
    save(quantifier, output, data=_sentence(facts), results=_results(errors, name), facts=facts)
    size = sum(file.stat().st_size for file in output.iterdir())
    note(f"Model: {output} ({size / 1e6:.1f} MB), learnt in {spoken(seconds)}")
    note(f"Next: quanet predict {shlex.quote(str(output))} NEW_FILE")


def _check_output(output: Path, *, force: bool) -> None:
    from quanet.errors import InvalidSetting

    if output.is_dir() and any(output.iterdir()) and not force:
        raise InvalidSetting(f"{output} is there already. Give another name, or --force to replace the model.")


def _columns(source: "Source", text: str | None, features: list[str] | None, label: str | None) -> tuple["Inputs", str]:
    from quanet.answers.reading import Inputs
    from quanet.data.columns import UnclearColumn, check_columns, find_label, find_text
    from quanet.errors import InvalidData

    if features:
        if text is not None:
            raise typer.BadParameter("give --text or --features, not both.", param_hint="--features")
        names = tuple(name.strip() for one in features for name in one.split(",") if name.strip())
        if not names:
            raise typer.BadParameter("name at least one column.", param_hint="--features")
        check_columns(names, source.columns, source.name)
        inputs = Inputs(features=names)
        found = find_label(source, label, besides=names)
        took = [f"features {', '.join(names)}"]
    else:
        try:
            taken = find_text(source, text, besides=[label] if label else [])
        except UnclearColumn as error:
            raise InvalidData(f"{error} If the instances are numbers, name their columns: --features.") from None
        inputs = Inputs(taken.name)
        found = find_label(source, label, besides=[taken.name])
        took = [f"text {taken.name!r}{' (guessed)' if taken.guessed else ''}"]
    if found.name in inputs.columns:
        raise InvalidData(f"column {found.name!r} cannot be both what is learnt from and the label.")
    took.append(f"label {found.name!r}{' (guessed)' if found.guessed else ''}")
    note(f"{source.name}: {', '.join(took)}")
    return inputs, found.name


def _tell(data: "Labelled", source: "Source") -> None:
    from quanet.cli.tables import counts_table

    left_out = ", ".join(f"{number:,} left out ({reason})" for reason, number in data.skipped.items())
    note(f"{len(data.y):,} of {source.rows:,} rows{': ' + left_out if left_out else ''}")
    notes.print(counts_table(data.counts, SHOWN))
    if data.duplicates:
        note(duplicates_sentence(data))


def duplicates_sentence(data: "Labelled") -> str:
    """What is known of copies among the training rows."""
    share = data.duplicates / len(data.y)
    said = f"{data.duplicates:,} rows ({share:.1%}) are copies of earlier ones. They share a fold with these"
    if data.conflicts:
        return f"{said}; copies of {data.conflicts:,} of them have different labels, which is worth a look."
    return f"{said}."


def _tell_errors(errors: "HeldOut | None", quantifier: "Quantifier") -> None:
    from quanet.answers.fitting import explain_poor
    from quanet.cli.tables import errors_table

    name = type(quantifier).__name__
    if errors is None:
        why = "There are too few held-out" if hasattr(quantifier, "held_rows_") else f"{name} keeps no held-out"
        note(f"{why} instances to measure errors by; `quanet evaluate` does so on other files.")
        return
    note(f"Mean error of a share, on {errors.bags} held-out bags of {errors.bag_size} at prevalences from 0 to 1:")
    notes.print(errors_table(errors, name))
    for number, sentence in enumerate(explain_poor(quantifier, errors)):
        (note if number else warn)(sentence)


def _facts(
    source: "Source", inputs: "Inputs", label: str, data: "Labelled", errors: "HeldOut | None"
) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "files": [Path(file).name for file in source.files],
        "text": inputs.text,
        "features": list(inputs.features),
        "label": label,
        "rows": len(data.y),
        "skipped": data.skipped,
        "duplicates": data.duplicates,
        "conflicts": data.conflicts,
        "counts": {str(name): number for name, number in data.counts.items()},
        "held_out": asdict(errors) if errors else {},
        "command": command_line(),
    }


def _sentence(facts: dict[str, Any]) -> str:
    files = ", ".join(facts["files"][:5]) + (f" and {len(facts['files']) - 5} more" if len(facts["files"]) > 5 else "")
    read = f"texts in `{facts['text']}`" if facts["text"] else f"numbers in `{', '.join(facts['features'])}`"
    copies = f" {facts['duplicates']:,} rows are copies of others." if facts["duplicates"] else ""
    return f"{facts['rows']:,} rows of {files}: {read}, labels in `{facts['label']}`.{copies}"


def _results(errors: "HeldOut | None", name: str) -> dict[str, float]:
    if errors is None:
        return {}
    bags = f"mean absolute error, {errors.bags} bags of {errors.bag_size}"
    return {f"{name}, {bags}": errors.error, f"CC, {bags}": errors.counted}
