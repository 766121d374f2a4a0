"""Time and memory of `quanet fit`, `quanet predict` and every `--help`, run from a shell.

    python benchmarks/commands.py IMDB_TRAIN IMDB_TEST -o benchmarks/results/commands.md

The two tables have the columns `text` and `label`. Peak memory is that of the command's process, as reported by the
kernel. A third file is generated: 2,000,000 short texts of words from the training reviews, with a product and a date.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

ROWS = 2_000_000
WORDS = 12  # of a short text
VERBS = "fit predict evaluate compare correct monitor info methods demo datasets experiment"


def run(*words: str) -> tuple[float, float, float]:
    """Seconds, seconds of all cores and peak memory in MB of a command."""
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "quanet", *words], stdout=subprocess.DEVNULL, stderr=errors, env=os.environ
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - started
        errors.seek(0)
        said = errors.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}: {said}")
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def write_many(path: Path, texts: list[str], rows: int) -> None:
    """Short texts of words drawn from the given texts, one after the other."""
    rng = np.random.default_rng(0)
    words = np.array([word for text in texts[:2000] for word in text.replace('"', "").replace(",", " ").split()])
    with path.open("w", encoding="utf-8") as file:
        file.write("text,product,date\n")
        for start in range(0, rows, 50_000):
            drawn = words[rng.integers(len(words), size=(min(50_000, rows - start), WORDS))]
            for number, line in enumerate(drawn.tolist(), start):
                month, day = 1 + number % 12, 1 + number % 28
                file.write(f"{' '.join(line)},p{number % 50},2024-{month:02}-{day:02}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--model", type=Path, help="Use this model instead of fitting one.")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--output", "-o", type=Path, default=Path("commands.md"))
    given = parser.parse_args()
    lines = []

    def measure(name: str, limit: str, *words: str) -> None:
        seconds, worked, memory = run(*words)
        lines.append(f"| {name} | {seconds:.1f} | {worked:.1f} | {memory:,.0f} | {limit} |")
        print(lines[-1], flush=True)

    with tempfile.TemporaryDirectory() as home:
        texts = pd.read_parquet(given.train)["text"].tolist()
        model = str(given.model or Path(home, "model"))
        if given.model is None:
            columns = ("--text", "text", "--label", "label")
            measure(
                f"`fit`, {len(texts):,} reviews of IMDB, default method",
                "300 s",
                "fit",
                str(given.train),
                *columns,
                "-o",
                model,
            )
        tested = len(pd.read_parquet(given.test, columns=["label"]))
        measure(f"`predict`, {tested:,} reviews of IMDB", "30 s, 3,000 MB", "predict", model, str(given.test))
        many = Path(home, "many.csv")
        write_many(many, texts, given.rows)
        size = f"{given.rows:,} short texts, {many.stat().st_size / 1e6:.0f} MB of CSV"
        measure(f"`predict`, {size}", "2,000 MB", "predict", model, str(many))
        by = ("--by", "product", "--by", "date:month")
        measure("the same, by product and month: 300 groups", "2,000 MB", "predict", model, str(many), *by)
    for verb in ("", *VERBS.split()):
        best = min(run(*verb.split(), "--help")[0] for _ in range(3))
        lines.append(f"| `{(verb + ' --help').strip()}`, best of 3 | {best:.2f} | | | 0.7 s |")
        print(lines[-1], flush=True)
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "pandas", "scikit-learn", "torch", "typer"))
    head = (
        "# Time and memory of the command line\n\nMade by `benchmarks/commands.py` on "
        f"{os.cpu_count()} cores; Python {platform.python_version()}, {versions}.\n\n"
        "| command | s | CPU s | peak MB | limit |\n|---|---|---|---|---|\n"
    )
    given.output.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
