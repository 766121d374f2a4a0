"""Differences between natural groups under drift: how much of their bias groups share.

    python benchmarks/natural_differences.py FOLDER --output benchmarks/results/natural-differences.md

FOLDER contains the Parquet files of `SCENARIOS`, with columns text and label; test files are not read. A quantifier
learns from one part of the data and estimates bags of 300 texts from groups of another part, at prevalences uniform on
the simplex. Pairs of bags are of the *same* group, which drifted alike, or of *different* groups. The power of the
cosine in `quanet.uncertainty.contrasts` was chosen on these data (1, 2, 4 and 8 were tried), so that differences are
covered about as often as the prevalences of the bags. So the table is no independent check of this choice.
"""

import argparse
import os
import sys
import warnings
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

METHODS = ("EMQ",)
BAGS, SIZE, PAIRS = 12, 300, 600
DOMAINS = ("books", "dvd", "electronics", "kitchen_&_housewares")
Part = pd.DataFrame


def by_domain(table: Part) -> dict[str, Part]:
    return {str(name): part for name, part in table.groupby("domain")}


def quarters(table: Part) -> dict[str, Part]:
    """Four parts in the order of the rows."""
    return {str(at): table.iloc[rows] for at, rows in enumerate(np.array_split(np.arange(len(table)), 4))}


def scenarios(folder: Path) -> dict[str, Any]:
    """What to learn from, and the groups to estimate, by name."""

    def read(name: str) -> Part:
        return pd.read_parquet(folder / f"{name}.parquet")

    rng = np.random.default_rng(0)
    reviews, films = read("blitzer4"), read("imdb-train").sample(6000, random_state=0)
    devices, tweets = (read(f"{name}-train").sort_values("date") for name in ("amazon-devices", "airline-3class"))
    found: dict[str, Any] = {
        f"{domain.split('_')[0]} to other products": (
            reviews[reviews["domain"] == domain],
            by_domain(reviews[reviews["domain"] != domain]),
        )
        for domain in DOMAINS
    }
    found["films to products"] = films, by_domain(reviews)
    others = {"kindle-device": read("kindle-device-train"), "kindle-store": read("kindle-store-train")}
    found["films to mixed"] = films, others | by_domain(reviews[reviews["domain"].isin(DOMAINS[2:])])
    found["devices over time"] = devices.iloc[:4000], quarters(devices.iloc[4000:])
    found["tweets over time"] = tweets.iloc[:1600], quarters(tweets.iloc[1600:])
    for name, table in {"products": reviews, "tweets": tweets}.items():
        order = rng.permutation(len(table))
        half, rest = table.iloc[order[: len(table) // 2]], table.iloc[order[len(table) // 2 :]]
        found[f"random halves of {name}"] = half, by_domain(rest) if name == "products" else quarters(rest)
    return found


def measure(method: str, train: Part, groups: dict[str, Part]) -> list[str]:
    """Coverage in % and mean width in points: bags, then pairs of the same and of different groups, in three ways."""
    import quanet
    from quanet.uncertainty import comparisons, contrasts

    quantifier = getattr(quanet, method)().fit(train["text"].tolist(), train["label"].tolist())
    rng, texts, members, names, truth = np.random.default_rng(1), [], [], [], []
    for name, part in groups.items():
        labels = part["label"].to_numpy()
        drawn = quanet.UPP(repeats=BAGS, bag_size=SIZE).draw(labels, rng=rng, classes=quantifier.classes_)
        members += [bag + len(texts) for bag in drawn.indices]
        truth += drawn.prevalences.tolist()
        names += [name] * BAGS
        texts += part["text"].tolist()
    read, bags, shares = quantifier.read(texts), quanet.Bags(members, labels=names), np.array(truth)
    pairs = rng.permutation(list(combinations(range(len(names)), 2)))[:PAIRS]
    same = np.array([names[first] == names[second] for first, second in pairs])
    columns = slice(1, 2) if shares.shape[1] == 2 else slice(None)
    interval = quanet.predict_interval_bags(quantifier, read, bags)
    entries = [entry(interval, shares, columns)]
    change = shares[pairs[:, 1]] - shares[pairs[:, 0]]
    original = contrasts.drift_correlation
    for kind in ("shared", "independent", "none"):
        sides = contrasts.read_sides(quantifier, read, bags, 0.95, target="bag", drift=kind != "none")
        if kind == "independent":
            contrasts.drift_correlation = lambda *_: np.broadcast_to(np.eye(2), (len(pairs), 2, 2))  # type: ignore[assignment]
        found = comparisons.differences_of(sides, pairs)
        contrasts.drift_correlation = original
        entries += [entry(found.take(np.flatnonzero(which)), change[which], columns) for which in (same, ~same)]
    return entries


def entry(found: Any, truth: Any, columns: slice) -> str:
    inside = (found.lower - 1e-9 <= truth) & (truth <= found.upper + 1e-9)
    width = 100 * float((found.upper - found.lower)[:, columns].mean())
    return f"{100 * inside[:, columns].mean():.0f} ({width:.0f})"


def main() -> None:
    sys.path[:] = sys.path[1:]  # this folder: in it `quanet` would be another benchmark
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    given = parser.parse_args()
    lines = [
        "# Differences between natural groups under drift",
        "",
        "Made by `python benchmarks/natural_differences.py FOLDER`, on training data only: intervals at 95 % that "
        f"contain the truth, in %, and their mean width in points. Bags of {SIZE} texts at prevalences uniform on the "
        "simplex; "
        f"{PAIRS} pairs of bags of the same group and of different groups. *shared*: the default, bags that drifted "
        "alike share their bias. *independent*: no bias is shared. *no drift*: intervals without drift. "
        "How much is shared was chosen on these data, so the table is no independent check of it.",
        "",
        "| learn, estimate | method | bags | shared: same | different | independent: same | different | no drift: same "
        "| different |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, (train, groups)), method in product(scenarios(given.folder).items(), given.methods):
        lines.append(f"| {name} | {method} | {' | '.join(measure(method, train, groups))} |")
        given.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
