"""Write docs/reference/methods.md from the catalogue and from what benchmarks/catalogue.py measured.

python docs/make_reference.py
"""

from pathlib import Path

from quanet.methods import catalogue

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "methods.md"
MEASURED = ROOT / "benchmarks" / "results" / "catalogue.md"

HEAD = """# Methods

Made by `python docs/make_reference.py` from `quanet.methods.catalogue()`; the times are those of
`benchmarks/results/catalogue.md`, where the machine and the command stand: one thread, milliseconds for a bag of 500
instances of two classes (for methods of ordered classes of five), rows gathered from a pool and aggregated. *n*
instances in a bag, *k* classes.

- **classes**: two (wrap in `OneVsRest` for more), any number, or ordered ones;
- **needs**: what it reads of an instance. All that need posteriors take any classifier, texts, or `"precomputed"`.

"""


def measured_times(table: str) -> dict[str, str]:
    """The milliseconds of every method in a Markdown table whose first two columns are name and time."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")
    ]
    return {row[0].strip("`"): row[1] for row in rows[2:] if len(row) > 1}


def render(measured: str) -> str:
    """The page, for a table of measured times."""
    times = measured_times(measured)
    lines = ["| method | reference | classes | needs | cost of a bag | ms |", "|" + "---|" * 6]
    for entry in catalogue().itertuples():
        time = times.get(str(entry.name), "")
        lines.append(
            f"| `{entry.name}` | {entry.reference} | {entry.classes} | {entry.needs} | {entry.cost} | {time} |"
        )
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(render(MEASURED.read_text() if MEASURED.exists() else ""))
