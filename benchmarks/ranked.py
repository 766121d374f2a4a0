"""All methods of an experiment, ranked by their error on each dataset, with the Cramér-Rao bound as a separate line.

    quanet experiment run benchmarks/modern.toml --output modern
    python benchmarks/ranked.py modern --output benchmarks/results/modern.md

Errors are means over the available runs. The bound is the mean of the lowest expected AE of an unbiased estimate at the
paper's 21 prevalences, from the first classifier's posteriors of the test data; see `quanet.evaluation.limits`. For
more than two classes it is computed for prevalences of the last class, with the others equal. It is then not a bound
for bags at random prevalences, and is left out.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from quanet.data.registry import STAND_INS
from quanet.lab.bounds import bounds_of
from quanet.lab.store import read_all

METRICS = ("ae", "rae", "kld")


def ranked(folder: Path) -> str:
    """Markdown: a table for every dataset, the best method first."""
    found = read_all(folder)
    bounds = bounds_of(folder)
    errors: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    classes: dict[str, int] = {}
    for cell, (outcome, _) in found.items():
        errors[cell.dataset][cell.method].append([float(outcome.results.error(m).mean()) for m in METRICS])
        classes[cell.dataset] = len(outcome.results.classes)
    abouts = [about for _, about in found.values()]
    machines = sorted({about["hardware"] for about in abouts})
    versions = sorted({", ".join(f"{n} {v}" for n, v in about["versions"].items()) for about in abouts})
    lines = ["# Every method, ranked", "", f"{'; '.join(machines)}. {'; '.join(versions)}.", ""]
    for dataset, of_method in errors.items():
        stand_in = f" ({STAND_INS[dataset]})" if dataset in STAND_INS else ""
        lines += [f"## {dataset}{stand_in}", "", "| | method | AE | RAE | KLD | runs |", "|---|---|---|---|---|---|"]
        means = {method: np.mean(runs, axis=0) for method, runs in of_method.items()}
        bound = float(bounds[dataset].errors.mean()) if dataset in bounds and classes[dataset] == 2 else None
        shown = bound is None
        for place, method in enumerate(sorted(means, key=lambda name: means[name][0]), start=1):
            if not shown and bound is not None and means[method][0] > bound:
                lines.append(f"| | *Cramér-Rao bound* | *{bound:.4f}* | | | |")
                shown = True
            ae, rae, kld = means[method]
            lines.append(f"| {place} | {method} | {ae:.4f} | {rae:.4f} | {kld:.4f} | {len(of_method[method])} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.output.write_text(ranked(arguments.folder))


if __name__ == "__main__":
    main()
