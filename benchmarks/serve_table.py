"""The table of all measurements of the service."""

import json
from pathlib import Path
from typing import Any

HEAD = """# The service: first chart, pages, load, kills, hostile requests

<!-- not run: a benchmark -->
```console
$ python benchmarks/serve.py first FOLDER
$ python benchmarks/serve.py pages FOLDER
$ python benchmarks/serve.py load FOLDER
$ python benchmarks/serve_kill.py FOLDER
$ python benchmarks/serve_schema.py FOLDER
$ python benchmarks/serve.py table FOLDER -o benchmarks/results/serve.md
```

Server, workers and clients share 2 cores and one machine. {versions}. SQLite. {note}
"""


def write_table(folder: Path, output: Path, note: str = "") -> None:
    """Write what the scripts have measured as a page."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    parts = {"first": _first, "pages": _pages, "load": _load, "kill": _kill, "schema": _schema, "hostile": _hostile}
    versions = ", ".join(f"{name} {number}" for name, number in found["load"]["versions"].items())
    text = HEAD.format(versions=versions.capitalize(), note=note or "Every measurement was made once.")
    output.write_text("\n".join([text, *(parts[name](found[name]) for name in parts if name in found)]))


def _required(rows: list[tuple[str, str, str]]) -> str:
    return _table(("", "required", "measured"), rows)


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _first(found: dict[str, Any]) -> str:
    rows = [
        ("clicks from the start page to the first chart", "<= 5", str(found["clicks"])),
        ("seconds from the command to the first chart", "<= 120", f"{found['seconds']:.0f}"),
        ("seconds until the start page answers", "", f"{found['ready']:.1f}"),
    ]
    return "## The first chart, with the film reviews of the demo\n\n" + _required(rows)


def _pages(found: dict[str, Any]) -> str:
    pages = found["pages"]
    rows = [
        (name, f"{one['bytes'] / 1000:.0f}", f"{1000 * one['median']:.0f}", f"{1000 * one['p95']:.0f}")
        for name, one in pages.items()
    ]
    title = f"## Pages with {found['batches']:,} batches and {found['rows']:,} rows\n\n"
    how = (
        f"{found['repeats']} requests for each page, one at a time. The batches were written into the store directly: "
        "each has its own file of 100 rows, and the answer of a batch that the demo had read. Required: at most 200 KB "
        "and 300 ms.\n\n"
    )
    return title + how + _table(("page", "KB", "median, ms", "95th percentile, ms"), rows)


def _load(found: dict[str, Any]) -> str:
    codes = found["codes"]
    wrong = sum(number for key, number in codes.items() if int(key.split()[1]) >= 400 and not key.endswith("429"))
    limited = sum(number for key, number in codes.items() if key.endswith("429"))
    rows = [
        ("errors other than 429", "0", f"{wrong:,} of {sum(codes.values()):,} requests"),
        ("answers 429", "", f"{limited:,}"),
        ("95th percentile of reads that were not refused, ms", "< 500", f"{1000 * found['p95']['read']:.0f}"),
        ("of posts and labels, ms", "", f"{1000 * found['p95']['post']:.0f} and {1000 * found['p95']['label']:.0f}"),
        ("largest memory of all processes, MB", "< 1,500", f"{found['memory'] / 1e6:,.0f}"),
        (
            "batches posted, labels given, items labelled twice",
            "0 twice",
            f"{found['posted']:,}, {found['labels']:,}, {found['labelled_twice']}",
        ),
        (
            f"batches that wait {found['afterwards']:.0f} s later, failed ones",
            "0 failed",
            f"{found['batches'].get('queued', 0):,}, {found['batches'].get('failed', 0):,}",
        ),
    ]
    how = (
        f"{found['clients']} clients for {found['seconds']:.0f} s, each with its own token and pauses of a second on "
        "average: 60 % read pages, 20 % post batches of 20 rows, 20 % label; who is refused (429) waits "
        "another second; on the store of the pages above. The service answers 6 reads and 8 changes at once, and "
        "refuses the rest.\n\n"
    )
    return "## Load\n\n" + how + _required(rows)


def _kill(found: dict[str, Any]) -> str:
    rows = [(name, *map(str, values)) for name, values in found["rows"].items()]
    return f"## Kills\n\n{found['how']}\n\n" + _table(("", *found["columns"]), rows)


def _schema(found: dict[str, Any]) -> str:
    rows = [(name, f"{value:,}") for name, value in found["counts"].items()]
    return f"## Requests made from the OpenAPI description\n\n{found['how']}\n\n" + _table(("", "number"), rows)


def _hostile(found: dict[str, Any]) -> str:
    rows = [(name, f"{value:,}") for name, value in found["counts"].items()]
    return f"## Hostile uploads and names\n\n{found['how']}\n\n" + _table(("", "number"), rows)
