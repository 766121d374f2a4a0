"""Time and memory of `quanet predict --by GROUP` by rows, groups and engine, on generated texts with known shares.

    python benchmarks/corpora.py run FOLDER --base OLD/src            # the whole plan; a second call resumes
    python benchmarks/corpora.py run FOLDER --rows 2000 --groups 10   # everything, small
    python benchmarks/corpora.py run FOLDER --only '*-ray-*' '*-spark-*'   # only these runs of the plan
    python benchmarks/corpora.py run FOLDER --again --only '2000-*'         # once more; the table shows the fastest
    python benchmarks/corpora.py table FOLDER -o benchmarks/results/corpora.md --picture docs/corpora.png

FOLDER gets the texts (about 54 bytes each), the model, the answers and runs.jsonl, a line for each finished run. Every
run is a command in its own process. Memory is that of each process, as reported by the kernel.

--base is the src folder of an earlier version, whose `predict` keeps all rows in memory. Its speed on one core is the
reference. The exact estimate of all rows is that of the same command without a cap.
"""

import argparse
import json
import platform
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from corpora_table import write_picture, write_table
from corpora_texts import CLASSES, GROUPS, write_corpus, write_labelled
from corpora_watch import run_watched

LABELLED = 5000  # texts that the model is fitted to
TINY = 2000  # rows of a corpus that shows how long a start takes
SEED = 7
NUMBERS = ("estimate", "lower", "upper")
SOURCE = Path(__file__).parents[1] / "src"


@dataclass(frozen=True)
class Run:
    """One command: rows, groups, engine, its workers and cores (0: all).

    The engine "base" is the earlier version, "exact" the local engine without a cap of rows.
    """

    rows: int
    groups: int
    engine: str
    workers: int = 1
    cores: int = 0

    @property
    def name(self) -> str:
        """Names its files."""
        return f"{self.rows}-{self.groups}-{self.engine}-{self.workers}-{self.cores}"


def plan(given: argparse.Namespace) -> list[Run]:
    """What is run, the references first."""
    engines = [name for name in given.engines if name != "local"]
    if given.rows:
        sizes = [(rows, groups) for rows in given.rows for groups in given.groups]
        return _at_one_size(sizes, engines, base=given.base is not None)
    middle = [(1_000_000, 1000)]
    runs = _at_one_size([(TINY, 10), *middle], engines, base=given.base is not None)
    for groups in (10, 100_000):
        runs += [Run(1_000_000, groups, engine, 2) for engine in ("exact", "local")]
    runs += [Run(rows, groups, "local", 2) for rows in (100_000, 10_000_000) for groups in GROUPS]
    runs += [Run(3_000_000, 1000, "local", 1, 1), *(Run(3_000_000, 1000, engine, 2) for engine in ("local", *engines))]
    # With fewer rows no group is above the cap.
    return runs + [Run(10_000_000, groups, "exact", 2) for groups in (1000, 10)]


def _at_one_size(sizes: list[tuple[int, int]], engines: list[str], *, base: bool) -> list[Run]:
    runs = []
    for rows, groups in sizes:
        if base:
            runs.append(Run(rows, groups, "base", 1, 1))
        runs.append(Run(rows, groups, "exact", 2))
        runs += [Run(rows, groups, "local", 1, 1), Run(rows, groups, "local", 2)]
        runs += [Run(rows, groups, engine, 2) for engine in engines]
    return runs


def run_all(given: argparse.Namespace) -> None:
    folder: Path = given.folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "answers").mkdir(exist_ok=True)
    done = {line["name"] for line in read_runs(folder)}
    model = fit_model(folder, given.base)
    for run in plan(given):
        wanted = not given.only or any(fnmatch(run.name, pattern) for pattern in given.only)
        if not wanted or (run.name in done and not given.again):
            continue
        corpus = folder / f"texts-{run.rows}"
        facts = write_corpus(corpus, run.rows, SEED)
        found = measure(run, model, corpus, folder / "answers", given.base) | {"corpus": facts} | provenance()
        with (folder / "runs.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
        peak = max(one["peak_mb"] for one in found["processes"])
        print(f"{run.name}: {found['seconds']:.1f} s, peak {peak:,.0f} MB, {found['differences']}", flush=True)


def read_runs(folder: Path) -> list[dict[str, Any]]:
    """The finished runs."""
    path = folder / "runs.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def fastest(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of repeated runs the fastest, with their number."""
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        before = found.get(run["name"], run)
        best = min(before, run, key=lambda one: one["seconds"])
        times = before.get("times", 0) + 1
        found[run["name"]] = best | {"times": times}
    return list(found.values())


def fit_model(folder: Path, base: Path | None) -> Path:
    """The model, fitted by the earlier version if there is one, so that both can load it."""
    model = folder / "model"
    if not model.exists():
        write_labelled(folder / "labelled.parquet", LABELLED, SEED)
        words = ["fit", str(folder / "labelled.parquet"), "--text", "text", "--label", "label", "-o", str(model)]
        run_watched([sys.executable, "-m", "quanet", *words], environment={"PYTHONPATH": str(base or SOURCE)})
    return model


def measure(run: Run, model: Path, corpus: Path, answers: Path, base: Path | None) -> dict[str, Any]:
    """Run one command; its time, processes, bytes of state, and the distance of its answer to others."""
    answer, state = answers / f"{run.name}.csv", answers / f"{run.name}.arrow"
    words = [
        "predict",
        str(model),
        str(corpus / "*.parquet"),
        "--by",
        f"group{run.groups}",
        "-o",
        str(answer),
        "--force",
    ]
    if run.engine not in ("base", "exact"):
        words += ["--engine", run.engine, "--workers", str(run.workers), "--save-state", str(state)]
    program = [__file__, "exact"] if run.engine == "exact" else ["-m", "quanet"]
    environment = {"PYTHONPATH": str(base if run.engine == "base" else SOURCE), "OMP_NUM_THREADS": "1"}
    found = run_watched(
        [sys.executable, *program, *words],
        environment=environment,
        cores=set(range(run.cores)) if run.cores else None,
    )
    size = state.stat().st_size if state.exists() else None
    state.unlink(missing_ok=True)
    mine = pd.read_csv(answer, keep_default_na=False)
    return {
        "name": run.name,
        "rows": run.rows,
        "groups": run.groups,
        "engine": run.engine,
        "workers": run.workers,
        "cores": run.cores,
        **found,
        "state_bytes": size,
        "differences": differences(run, mine, answers),
        "truth": against_truth(run, mine, corpus),
    }


def differences(run: Run, mine: pd.DataFrame, answers: Path) -> dict[str, dict[str, float]]:
    """Largest differences from the first local run of the same texts, and from the exact estimate of all rows."""
    found, keys = {}, [f"group{run.groups}", "class"]
    for name, engine in (("local", "local"), ("exact", "exact")):
        others = [Run(run.rows, run.groups, engine, workers, cores) for workers, cores in ((1, 1), (1, 0), (2, 0))]
        paths = [answers / f"{other.name}.csv" for other in others if other.name != run.name]
        path = next((path for path in paths if path.exists()), None)
        if path is not None and run.engine not in ("base", "exact"):
            theirs = pd.read_csv(path, keep_default_na=False)
            if not mine[keys].equals(theirs[keys]):
                raise SystemExit(f"{path} has other groups or classes.")
            found[name] = {column: float((mine[column] - theirs[column]).abs().max()) for column in NUMBERS}
    return found


def against_truth(run: Run, answer: pd.DataFrame, corpus: Path) -> dict[str, float]:
    """Mean error of the groups' shares, and how many intervals contain the truth."""
    with np.load(corpus / "truth.npz") as truth:
        counts = truth[str(run.groups)]
    second = answer[answer["class"] == CLASSES[1]]
    chosen = counts[second[f"group{run.groups}"].str[1:].astype(int)]
    share = chosen[:, 1] / chosen.sum(axis=1)
    inside = (second["lower"] <= share + 1e-12) & (share - 1e-12 <= second["upper"])
    error = (second["estimate"] - share).abs()
    return {"mean_error": float(error.mean()), "covered": float(inside.mean())}


def provenance() -> dict[str, Any]:
    """Where a run was made."""
    found = {"python": platform.python_version()}
    for name in ("quanet", "numpy", "pyarrow", "ray", "pyspark"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"versions": found}


def without_cap() -> None:
    """Run quanet with the words after "exact", and keep all rows of every group."""
    from quanet.cli.main import run
    from quanet.corpus.layout import Layout

    Layout.most_rows = lambda *_: sys.maxsize  # type: ignore[method-assign]
    sys.argv = ["quanet", *sys.argv[2:]]
    run()


def main() -> None:
    if sys.argv[1:2] == ["exact"]:
        without_cap()
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    runner = verbs.add_parser("run", help="generate texts, fit the model, and measure")
    runner.add_argument("folder", type=Path)
    runner.add_argument("--rows", type=int, nargs="+", help="instead of the whole plan")
    runner.add_argument("--groups", type=int, nargs="+", default=[10], choices=tuple(GROUPS), help="with --rows")
    runner.add_argument("--engines", nargs="+", default=["local", "ray", "spark"])
    runner.add_argument("--only", nargs="+", help="only runs with such names: '1000000-*', '*-ray-*'")
    runner.add_argument("--again", action="store_true", help="repeat finished runs; the table shows the fastest")
    runner.add_argument("--base", type=Path, help="src folder of an earlier version")
    texts = verbs.add_parser("texts", help="only generate the texts")
    texts.add_argument("folder", type=Path)
    texts.add_argument("--rows", type=int, nargs="+", default=[TINY, 100_000, 1_000_000, 3_000_000, 10_000_000])
    table = verbs.add_parser("table", help="write the results")
    table.add_argument("folder", type=Path)
    table.add_argument("--output", "-o", type=Path, default=Path("corpora.md"))
    table.add_argument("--picture", type=Path)
    given = parser.parse_args()
    if given.verb == "run":
        run_all(given)
    elif given.verb == "texts":
        for rows in given.rows:
            print(write_corpus(given.folder / f"texts-{rows}", rows, SEED), flush=True)
    else:
        runs = fastest(read_runs(given.folder))
        for line in runs:  # also from runs that came later
            run = Run(*(line[name] for name in ("rows", "groups", "engine", "workers", "cores")))
            answers = given.folder / "answers"
            mine = pd.read_csv(answers / f"{run.name}.csv", keep_default_na=False)
            line["differences"] = differences(run, mine, answers)
        write_table(runs, given.output)
        if given.picture is not None:
            write_picture(runs, given.picture)


if __name__ == "__main__":
    main()
