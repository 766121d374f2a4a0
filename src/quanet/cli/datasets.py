"""`quanet datasets`: list, download and describe datasets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from quanet.cli.console import console, notes, problems
from quanet.cli.options import command
from quanet.data.settings import TextForm

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from quanet.data.dataset import Dataset
    from quanet.data.lequa import BagFiles
    from quanet.data.loading import BagsDescription, Description, ListedDataset, TrainTest

app = typer.Typer(name="datasets", help="List, download and describe datasets.", no_args_is_help=True)
CLASSES_SHOWN = 30
WIDTH = 100


def _known(names: list[str]) -> list[str]:
    """Names of datasets; an unknown name is a usage error."""
    from quanet.data.registry import find_entry
    from quanet.errors import InvalidSetting

    try:
        return [find_entry(name).name for name in names]
    except InvalidSetting as error:
        raise typer.BadParameter(str(error)) from None


@app.command("list")
def list_() -> None:
    """List the datasets, and which of them are available on this machine."""
    from rich.table import Table

    from quanet.data.download import cache_folder
    from quanet.data.loading import list_datasets

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("name", no_wrap=True)
    table.add_column("task")
    for title in ("k", "train", "test"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("source")
    table.add_column("available", no_wrap=True)
    found = list_datasets()
    for listed in found:
        table.add_row(*_row(listed, cache_folder()))
    console.print(table)
    places = sorted({str(listed.at.parent) for listed in found if listed.at is not None})
    problems.print(
        f"k: classes; 5,000 x 250: bags and their size. Downloads go to {cache_folder()} (QUANET_CACHE). "
        "QUANET_DATA lists folders that are searched first." + "".join(f"\nAvailable in {place}" for place in places),
        highlight=False,
        soft_wrap=True,
        markup=False,
    )


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Datasets to download.", callback=_known)],
    mirror: Annotated[
        str | None, typer.Option(help="Mirror that serves the files as NAME/FILE.", envvar="QUANET_MIRROR")
    ] = None,
) -> None:
    """Download datasets into the cache, verify them, and print their location.

    Files in the cache are not downloaded again; an interrupted download resumes.

    Example: quanet datasets fetch imdb kindle hp
    """
    from quanet.data.loading import fetch_dataset

    tasks: dict[str, TaskID] = {}
    with _bar() as bar:

        def follow(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = bar.add_task(file)
            bar.update(tasks[file], completed=done, total=total)

        for name in names:
            try:
                place = fetch_dataset(name, mirror=mirror, progress=follow)
            except KeyboardInterrupt:
                problems.print(f"{name}: stopped. Run the same command to resume.")
                raise
            console.print(f"{name}: {escape(str(place))}", highlight=False, soft_wrap=True)


def show(
    data: Annotated[
        str, typer.Argument(metavar="NAME_OR_PATH", help="Name of a dataset, a file, TRAIN::TEST, or a folder.")
    ],
    form: TextForm,
    text: Annotated[str | None, typer.Option(help="Text column, for your own tables.")] = None,
    label: Annotated[str, typer.Option(help="Label column.")] = "label",
    first: Annotated[int, typer.Option(min=0, help="Number of instances to print of each part.")] = 3,
) -> None:
    """Show counts and prevalences of the classes, lengths of texts, dates, and the first instances.

    Example: quanet datasets show reviews-2023.csv::reviews-2024.csv --text body --label stars
    """
    from quanet.data.lequa import BagFiles
    from quanet.data.loading import describe, describe_bags

    with notes.status(f"Reading {escape(data)} ..."):
        title, parts = _parts(data, text=text, label=label, **form.table_options)
    console.print(title, highlight=False, soft_wrap=True)
    for name, part in parts.items():
        if isinstance(part, BagFiles):
            _print_bags(name, describe_bags(part))
        else:
            _print_part(name, describe(part, first=first))


app.command()(command(show))


def _parts(data: str, **columns: Any) -> "tuple[str, dict[str, Dataset | BagFiles]]":
    """The parts of a dataset; a single file is one part."""
    from quanet.data.file_names import split_address
    from quanet.data.loading import load_dataset, read_part
    from quanet.data.reviews import is_dated

    path, _ = split_address(data)
    if path.is_file() and not (path.suffix == ".txt" and is_dated(str(path))):
        return escape(data), {"all": read_part(data, **columns)}
    loaded: TrainTest = load_dataset(data, **columns, download=False)
    stand_in = f", {loaded.stand_in}" if loaded.stand_in else ""
    parts: dict[str, Dataset | BagFiles] = {"train": loaded.train}
    if loaded.dev is not None:
        parts["dev"] = loaded.dev
    return f"[bold]{escape(loaded.name)}[/]{stand_in} ({escape(loaded.source)})", {**parts, "test": loaded.test}


def _row(listed: "ListedDataset", cache: Path) -> tuple[str, ...]:
    entry = listed.entry
    train, test = entry.sizes[0]
    bags = f"{entry.bags[1]:,} x {entry.bags[2]:,}" if entry.bags else "-"
    place = "cache" if listed.at is not None and listed.at.is_relative_to(cache) else "yes"
    return (
        f"[bold]{entry.name}[/]",
        entry.task,
        str(entry.classes),
        "-" if train is None else f"{train:,}",
        bags if test is None else f"{test:,}",
        f"[yellow]{entry.stand_in}[/]" if entry.stand_in else entry.source,
        "[dim]no[/]" if listed.at is None else f"[green]{place}[/]",
    )


def _bar() -> "Progress":
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=notes,
        transient=True,
    )


def _print_part(name: str, part: "Description") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=f"{name}: {part.instances:,} instances", box=SIMPLE_HEAD, title_justify="left", pad_edge=False)
    table.add_column("class")
    table.add_column("instances", justify="right")
    table.add_column("prevalence", justify="right")
    for label, number in list(part.counts.items())[:CLASSES_SHOWN]:
        table.add_row(escape(str(label)), f"{number:,}", f"{number / part.instances:.4f}")
    if len(part.counts) > CLASSES_SHOWN:
        table.add_row(f"and {len(part.counts) - CLASSES_SHOWN} more", "", "")
    console.print(table)
    if part.words is not None:
        least, low, middle, high, most = part.words.tolist()
        console.print(
            f"words per text: {least:.0f} to {most:.0f}, middle half {low:.0f} to {high:.0f}, median {middle:.0f}; "
            f"{part.repeated:,} repeated texts",
            highlight=False,
            soft_wrap=True,
        )
    if part.width is not None:
        console.print(f"features: {part.width}", highlight=False)
    if part.dates is not None:
        console.print(f"dates: {escape(part.dates[0])} to {escape(part.dates[1])}", highlight=False)
    for label, instance in part.first:
        shown = " ".join(str(instance).split())
        shown = shown if len(shown) <= WIDTH else f"{shown[: WIDTH - 3]}..."
        console.print(f"[dim]{escape(str(label))}[/]  {escape(shown)}", highlight=False, soft_wrap=True)
    console.print()


def _print_bags(name: str, part: "BagsDescription") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=f"{name}: {part.bags:,} bags", box=SIMPLE_HEAD, title_justify="left")
    for title in ("class", "least", "mean", "greatest prevalence"):
        table.add_column(title, justify="right")
    if part.prevalences is None:
        console.print(f"{name}: {part.bags:,} bags; their true prevalences are not available", highlight=False)
        return
    for label, values in list(enumerate(part.prevalences.T.tolist()))[:CLASSES_SHOWN]:
        table.add_row(str(label), *(f"{value:.4f}" for value in values))
    console.print(table)
