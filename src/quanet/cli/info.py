"""`quanet info`: describe a model from its folder, without loading it."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from quanet.cli.console import console, warnings_as_lines
from quanet.cli.options import ModelFolder
from quanet.wording import percent

if TYPE_CHECKING:
    from quanet.persist.load import Facts

# Shown in the sentence about the data, or in the tables of errors and classes.
SHOWN_ELSEWHERE = {
    *("files", "text", "features", "label", "rows", "names", "counts", "held_out", "method", "drift"),
    "smallest_shares",
}
CLASSES_SHOWN = 30


def info(
    model: ModelFolder,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Describe a model: method, parameters, classes, training data, held-out errors, versions, size.

    The folder is checked for damage and only read; no code in it is loaded or run.

    [bold]Examples[/]

    quanet info model/

    quanet info model/ --json | jq '.classes'
    """
    from quanet.persist.load import model_facts

    with warnings_as_lines():
        facts = model_facts(model)
    if as_json:
        typer.echo(json.dumps(_plain(facts), indent=1, ensure_ascii=False))
        return
    title = f"[bold]{escape(facts.method)}[/]"
    instances = "" if facts.instances is None else f", trained on {facts.instances:,} instances"
    console.print(f"{title}{instances}", highlight=False)
    _pairs("", {"folder": str(facts.folder), "saved": _when(facts), **_own(facts)})
    if facts.classes:
        _print_classes(facts)
    results = {name: f"{value:.4g}" for name, value in facts.config.get("results", {}).items()}
    _pairs("Held-out errors", results)
    _pairs("Parameters", facts.settings)
    _pairs("Versions", {"quanet": facts.config.get("quanet", ""), **facts.config.get("versions", {})})
    _pairs(
        "Files", {name: _size(size) for name, size in facts.files.items()} | {"all": _size(sum(facts.files.values()))}
    )
    if facts.untrusted:
        console.print(
            f"\n[yellow]Contains types of other packages[/], which are not loaded unless you trust them: "
            f"{escape(', '.join(facts.untrusted))}",
            highlight=False,
        )


def _own(facts: "Facts") -> dict[str, str]:
    """Facts that were saved with the model."""
    own = {"data": facts.config.get("data", ""), "notes": facts.config.get("notes", "")}
    saved = facts.config.get("facts", {}).items()
    own["drift"] = facts.drift
    own |= {name: _written(value) for name, value in saved if name not in SHOWN_ELSEWHERE}
    return {name: value for name, value in own.items() if value}


def _written(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_written(one)}" for name, one in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _when(facts: "Facts") -> str:
    return str(facts.config.get("saved", "")).replace("T", " ").replace("+00:00", " UTC")


def _print_classes(facts: "Facts") -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), title="\nClasses", title_justify="left", title_style="bold")
    table.add_column("class")
    table.add_column("training share", justify="right")
    shares = [percent(share, digits=2) for share in facts.prior] or [""] * len(facts.classes)
    saved = facts.config.get("facts", {})
    names, smallest = saved.get("names", {}), saved.get("smallest_shares", {})
    for size in smallest:
        table.add_column(f"told from 0 in {int(size):,} rows", justify="right")
    for label, share in list(zip(facts.classes, shares, strict=True))[:CLASSES_SHOWN]:
        named = f" ({names[str(label)]})" if str(label) in names else ""
        limits = (percent(shares[str(label)], digits=2) if str(label) in shares else "" for shares in smallest.values())
        table.add_row(escape(f"{label}{named}"), share, *limits)
    console.print(table)
    if len(facts.classes) > CLASSES_SHOWN:
        console.print(f"and {len(facts.classes) - CLASSES_SHOWN} more")


def _pairs(title: str, pairs: dict[str, str]) -> None:
    if not pairs:
        return
    table = Table(
        box=None,
        show_header=False,
        padding=(0, 2, 0, 0),
        title=f"\n{title}" if title else None,
        title_justify="left",
        title_style="bold",
    )
    for name, value in pairs.items():
        table.add_row(f"[dim]{escape(name)}[/]", escape(value))
    console.print(table)


def _size(size: int) -> str:
    return f"{size / 1e6:,.2f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"


def _plain(facts: "Facts") -> dict[str, Any]:
    return {
        "folder": str(facts.folder),
        "method": facts.method,
        "settings": facts.settings,
        "classes": facts.classes,
        "prior": facts.prior,
        "instances": facts.instances,
        "drift": facts.drift,
        **facts.config,
        "files": facts.files,
        "bytes": sum(facts.files.values()),
        "untrusted": facts.untrusted,
    }
