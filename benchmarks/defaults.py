"""Choose EMQ's default calibration on held-out training data; test data are never read.

    python benchmarks/defaults.py FOLDER [--seeds 3]

FOLDER holds NAME-train.parquet files with columns text and label. Every training set is split in half, several times
over; EMQ is fitted to one half with each calibration and evaluated on bags of the other.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from quanet import APP, EMQ, PACC, UPP, Dataset, TextClassifier, evaluate
from quanet.calibration import METHODS
from quanet.classifiers import cross_fit
from quanet.simplex import encode


def errors(data: Dataset, seed: int) -> dict[str, tuple[float, float, float]]:
    """Mean AE, RAE and KLD of every calibration on one split; the classifier is shared."""
    train, held = data.split(0.5, rng=seed)
    codes = encode(train.y, data.classes)
    classifier, posteriors, rows = cross_fit(TextClassifier(), train.X, codes, data.classes, cv=5)
    pool = classifier.predict_proba(held.X)
    protocol = APP(bag_size=100, repeats=20) if len(data.classes) == 2 else UPP(bag_size=100, repeats=500)
    methods = {str(name): EMQ("precomputed", calibration=name) for name in (None, *METHODS)}
    methods["PACC"] = PACC("precomputed")
    found = {}
    for name, method in methods.items():
        results = evaluate(method.fit(posteriors, train.y[rows]), pool, held.y, protocol, rng=seed)
        found[name] = tuple(float(results.error(metric).mean()) for metric in ("ae", "rae", "kld"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    for file in sorted(arguments.folder.glob("*-train.parquet")):
        table = pd.read_parquet(file, columns=["text", "label"])
        data = Dataset(table["text"].tolist(), table["label"].to_numpy(), file.stem)
        runs = [errors(data, seed) for seed in range(arguments.seeds)]
        print(f"\n{data.name} ({len(data)} texts): mean AE, RAE, KLD over {arguments.seeds} splits")
        for name in runs[0]:
            ae, rae, kld = np.mean([run[name] for run in runs], axis=0)
            print(f"  {name:12} {ae:.4f}  {rae:.3f}  {kld:.4f}")


if __name__ == "__main__":
    main()
