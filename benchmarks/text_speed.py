"""Texts per second of `TextClassifier` on one core: this checkout against another one, alternating in one run.

    git worktree add ../before COMMIT
    python benchmarks/text_speed.py --base ../before/src --parquet reviews.parquet \
        --output benchmarks/results/text-speed.md

One model is fitted by this checkout and read by both. Each checkout has its own process, and the two take turns, so
that a busy machine slows both. Times are seconds of the processor. Texts are generated: words of syllables with
frequencies as in English, 10 to 30 words for a short text. With `--parquet`, also the texts of its column `text`,
by a model fitted to its column `label`. Last, `quanet predict` reads a CSV file of short texts, start-up included.
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
from typing import Any

import numpy as np
import pandas as pd

WORDS, SYLLABLES = 20_000, 300
LEARNED = 5000  # texts that a model is fitted to
JOBS = {
    "predict_proba": "posteriors (`predict_proba`)",
    "read": "posteriors and embeddings (`read`)",
    "describe": "descriptions, for drift",
    "hash_texts": "hashes, to find training texts",
}


def generate(n: int, fewest: int, most: int, *, seed: int) -> tuple[list[str], Any]:
    """Texts of `fewest` to `most` words and their classes, which prefer different words."""
    rng = np.random.default_rng(0)
    letters = [first + vowel + last for first in "bdfghklmnprstvw" for vowel in "aeiou" for last in ("", "n", "r", "s")]
    syllables = np.array(letters)[:SYLLABLES]
    words = np.array(["".join(syllables[rng.integers(SYLLABLES, size=rng.integers(1, 4))]) for _ in range(WORDS)])
    frequency = 1 / (10 + np.arange(WORDS))
    tilted = [frequency * np.exp(rng.normal(scale=0.5, size=WORDS)) for _ in range(2)]
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n)
    texts = []
    for label, length in zip(labels, rng.integers(fewest, most + 1, size=n), strict=True):
        chosen = np.searchsorted(np.cumsum(tilted[label]), rng.random(length) * tilted[label].sum())
        texts.append(" ".join(words[chosen]).capitalize() + ".")
    return texts, labels


def serve(model: str, table: str) -> None:
    """Answer jobs on standard input with the seconds they take; runs in the process of one checkout."""
    from quanet import load
    from quanet.data.duplicates import hash_texts

    quantifier, texts = load(model), pd.read_parquet(table)["text"].tolist()
    classifier = quantifier.classifier_
    jobs = {
        "predict_proba": classifier.predict_proba,
        "read": classifier.read,
        "describe": quantifier.drift_.describer,
        "hash_texts": hash_texts,
    }
    answer = f"{table}-{os.getpid()}.npy"
    np.save(answer, classifier.predict_proba(texts))
    print(answer, flush=True)
    for line in sys.stdin:
        started = time.process_time()
        jobs[line.strip()](texts)
        print(time.process_time() - started, flush=True)


def one_core(source: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def compare(name: str, texts: list[str], labels: Any, sources: list[Path], rounds: int) -> list[str]:
    """Rows of the table for one kind of texts: half to learn from, at most, and the others to read."""
    from quanet import CC, save

    learned = min(LEARNED, len(texts) // 2)
    with tempfile.TemporaryDirectory() as folder:
        model, table = f"{folder}/model", f"{folder}/texts.parquet"
        save(CC().fit(texts[:learned], labels[:learned]), model)
        pd.DataFrame({"text": texts[learned:]}).to_parquet(table)
        workers = [
            subprocess.Popen(
                [sys.executable, __file__, "--serve", model, table],
                env=one_core(source),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for source in sources
        ]
        before, after = (np.load(worker.stdout.readline().strip()) for worker in workers)
        found: dict[str, list[list[float]]] = {job: [] for job in JOBS}
        for number in range(rounds + 1):
            for job, times in found.items():
                took = []
                for worker in workers:
                    worker.stdin.write(f"{job}\n")
                    worker.stdin.flush()
                    took.append(float(worker.stdout.readline()))
                if number:  # the first round loads the compiled code
                    times.append(took)
        for worker in workers:
            worker.communicate()
    n = len(texts) - learned
    rows = []
    for job, times in found.items():
        old, new = np.array(times).T
        ratios = old / new
        rows.append(
            f"| {name} | {JOBS[job]} | {n / np.median(old):,.0f} | {n / np.median(new):,.0f} | "
            f"{np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f}) |"
        )
    return [*rows, f"| {name} | largest difference of a posterior | | | {np.abs(before - after).max():.0e} |"]


def whole_command(rows: int, sources: list[Path], rounds: int) -> list[str]:
    """Rows of the table for `quanet predict` on one file, start-up included."""
    texts, labels = generate(LEARNED, 10, 30, seed=1)
    many, _ = generate(rows, 10, 30, seed=2)
    with tempfile.TemporaryDirectory() as folder:
        train, new = Path(folder, "train.csv"), Path(folder, "new.csv")
        pd.DataFrame({"text": texts, "label": labels}).to_csv(train, index=False)
        pd.DataFrame({"text": many}).to_csv(new, index=False)
        quanet = [sys.executable, "-m", "quanet"]
        model = f"{folder}/model"
        command = [*quanet, "fit", str(train), "--method", "EMQ", "-o", model]
        subprocess.run(command, env=one_core(sources[1]), check=True, capture_output=True)
        found = []
        for number in range(rounds + 1):
            took = []
            for source in sources:
                process = subprocess.Popen(
                    [*quanet, "predict", model, str(new)],
                    env=one_core(source),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                assert process.returncode == 0
                took.append((used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
            if number:
                found.append(took)
    (old, now), (large, larger) = np.array(found).T
    ratios = old / now
    name = f"{rows:,} of 10 to 30 words"
    return [
        f"| {name} | `quanet predict`, all of it | {rows / np.median(old):,.0f} | {rows / np.median(now):,.0f} | "
        f"{np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f}) |",
        f"| {name} | its peak memory, MB | {np.median(large):,.0f} | {np.median(larger):,.0f} | |",
    ]


def commit_of(source: Path) -> str:
    command = ["git", "-C", str(source), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, help="the folder src of another checkout")
    parser.add_argument("--parquet", type=Path, action="append", default=[], help="a table with text and label")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=300_000, help="of the file for quanet predict; 0: leave it out")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--serve", nargs=2, metavar=("MODEL", "TABLE"), help="used by the script itself")
    arguments = parser.parse_args()
    if arguments.serve:
        serve(*arguments.serve)
        return
    if arguments.base is None:
        parser.error("pass --base, the folder src of the checkout to compare with")
    sources = [arguments.base.resolve(), Path(__file__).resolve().parents[1] / "src"]
    rows = compare("10 to 30 words", *generate(25_000, 10, 30, seed=1), sources, arguments.rounds)
    rows += compare("100 to 400 words", *generate(7000, 100, 400, seed=1), sources, arguments.rounds)
    for path in arguments.parquet:
        table = pd.read_parquet(path).sample(frac=1, random_state=0)[: 2 * LEARNED]
        rows += compare(path.stem, table["text"].tolist(), table["label"].to_numpy(), sources, arguments.rounds)
    if arguments.rows:
        rows += whole_command(arguments.rows, sources, max(2, arguments.rounds // 2))
    commits = [commit_of(source) for source in sources]
    lines = [
        "# Texts per second on one core",
        "",
        f"Made by `benchmarks/text_speed.py`: commit {commits[1]} against {commits[0]}, in turns, {arguments.rounds} "
        f"rounds, seconds of one core of {platform.machine()}; Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
        + ". Ratios are medians of the rounds, with their range.",
        "",
        "| texts | work | texts per second before | now | ratio |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]
    text = "\n".join(lines)
    print(text)
    if arguments.output:
        arguments.output.write_text(text)


if __name__ == "__main__":
    main()
