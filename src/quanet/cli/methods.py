"""`quanet methods`: list the methods, or describe one."""

import json
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from quanet.cli.console import console, note
from quanet.errors import brief

WHOM = {"two": "two classes", "any": "any number of classes", "ordered": "ordered classes"}


def methods(
    name: Annotated[str | None, typer.Argument(help="Method to describe.", show_default=False)] = None,
    classes: Annotated[int | None, typer.Option(min=2, help="Show only methods for this number of classes.")] = None,
    family: Annotated[str | None, typer.Option(help="Show only one family, such as counting or matching.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the methods, or describe one: what it does, its parameters, its reference, its cost.

    [bold]Examples[/]

    quanet methods --classes 3

    quanet methods --family thresholds --json | jq '.[].name'

    quanet methods emq
    """
    from quanet.errors import InvalidSetting
    from quanet.lab.catalogue import describe_method

    if name is not None:
        try:
            found = describe_method(name)
        except InvalidSetting as error:
            raise typer.BadParameter(str(error), param_hint="NAME") from None
        _print_json(found) if as_json else _show(found)
        return
    chosen = _chosen(classes, family)
    if as_json:
        _print_json(chosen)
        return
    console.print(_listed(chosen))
    note(f"{len(chosen)} methods. `quanet methods NAME` describes one. Cost: n instances in a bag, k classes.")


def _chosen(classes: int | None, family: str | None) -> list[dict[str, str]]:
    from dataclasses import asdict

    from quanet.lab.catalogue import listed_methods
    from quanet.methods.about import FAMILIES

    if family is not None and family.lower() not in FAMILIES:
        from quanet.data.columns import nearest_first

        raise typer.BadParameter(
            f"Unknown family {brief(family)}. Choose from {', '.join(nearest_first(family, FAMILIES))}.",
            param_hint="--family",
        )
    fitting = ("two", "any", "ordered") if classes is None else ("two", "any") if classes == 2 else ("any", "ordered")
    return [
        {"name": name, **asdict(about)}
        for name, about in listed_methods().items()
        if about.classes in fitting and (family is None or about.family == family.lower())
    ]


def _listed(entries: list[dict[str, str]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("method", no_wrap=True, style="bold")
    for title in ("family", "classes", "needs"):
        table.add_column(title, no_wrap=True)
    wide = console.width >= 110
    table.add_column("reference")
    if wide:
        table.add_column("cost of a bag")
    for entry in entries:
        cells = [entry[key] for key in ("name", "family", "classes", "needs", "reference")]
        table.add_row(*map(escape, cells + ([entry["cost"]] if wide else [])))
    return table


def _show(found: dict[str, Any]) -> None:
    console.print(f"[bold]{found['name']}[/]  {escape(found['summary'])}\n", highlight=False)
    facts = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for title, value in (
        ("for", WHOM[found["classes"]]),
        ("input", found["needs"]),
        ("family", found["family"]),
        ("reference", found["references"] or found["reference"]),
        ("cost", f"{found['cost']}, for a bag of n instances and k classes"),
    ):
        facts.add_row(f"[dim]{title}[/]", escape(value))
    console.print(facts)
    if not found["settings"]:
        return
    settings = Table(
        box=None,
        padding=(0, 2, 0, 0),
        title="\nParameters (quanet fit --set NAME=VALUE)",
        title_justify="left",
        title_style="bold",
    )
    settings.add_column("name", no_wrap=True, style="bold")
    settings.add_column("default", max_width=24)
    settings.add_column("meaning")
    for name, setting in found["settings"].items():
        settings.add_row(name, escape(setting["default"]), escape(setting["means"]))
    console.print(settings)


def _print_json(content: Any) -> None:
    typer.echo(json.dumps(content, indent=1, ensure_ascii=False))
