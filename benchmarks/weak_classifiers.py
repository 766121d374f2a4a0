"""Errors of estimates by weak classifiers: the method's own estimate, the shrunk one, and the training prevalence.

    python benchmarks/weak_classifiers.py --seeds 8 --output benchmarks/results/weak-classifiers.md

Texts of twelve words are generated; a fraction of them, the signal, has one word of its class. The default text
classifier learns from 499 of them in six unequal classes, or from 200 in two. Bags of 300 have the training prevalence,
up to chance, or prevalences uniform on the simplex. All errors are sums of absolute errors over the classes.
"""

import argparse
import platform
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from quanet import ACC, EMQ, NPP, PACC, UPP, KDEyML
from quanet.classifiers.cross_fitting import cross_fit, resolve_classifier
from quanet.errors import QuanetWarning

SHARES = {499: np.array([0.38, 0.24, 0.16, 0.11, 0.07, 0.04]), 200: np.array([0.7, 0.3])}  # by training texts
SIGNALS = (0.0, 0.05, 0.2, 0.5, 1.0)
METHODS = (EMQ, PACC, ACC, KDEyML)
BAGS, SIZE, POOL = 30, 300, 1500


def texts_of(codes: Any, signal: float, rng: np.random.Generator) -> list[str]:
    often = 1 / np.arange(1, 401)
    words = rng.choice([f"w{number}" for number in range(400)], (len(codes), 12), p=often / often.sum()).astype(object)
    for at in np.flatnonzero(rng.random(len(codes)) < signal):
        words[at, 0] = f"c{codes[at]}x{rng.integers(15)}"
    return [" ".join(text) for text in words]


def errors(n: int, signal: float, seed: int) -> dict[str, list[float]]:
    """For every method: shrinkage, then error of raw, shrunk and prior on natural and on shifted bags."""
    shares, rng = SHARES[n], np.random.default_rng(seed)
    k = len(shares)
    y = np.concatenate([np.arange(k).repeat(2), rng.choice(k, n - 2 * k, p=shares)])
    classifier = resolve_classifier(None, ["a text"], np.arange(k))
    fitted, posteriors, held = cross_fit(classifier, texts_of(y, signal, rng), y, np.arange(k), cv=5)
    pools = []
    for prevalence, protocol in ((shares, NPP), (np.full(k, 1 / k), UPP)):
        codes = rng.choice(k, POOL, p=prevalence)
        bags = protocol(bag_size=SIZE, repeats=BAGS).draw(codes, rng=seed, classes=np.arange(k))
        pools.append((fitted.predict_proba(texts_of(codes, signal, rng)), bags))
    found = {}
    for method in METHODS:
        quantifier = method("precomputed").fit(posteriors, y[held])
        found[method.__name__] = [quantifier.shrinkage_]
        for rows, bags in pools:
            shrunk = quantifier.predict_bags(rows, bags)
            shrinkage, quantifier.shrinkage_ = quantifier.shrinkage_, 0.0
            raw = quantifier.predict_bags(rows, bags)
            quantifier.shrinkage_ = shrinkage
            off = (np.abs(one - bags.prevalences).sum(axis=1).mean() for one in (raw, shrunk, quantifier.prior_))
            found[method.__name__] += [float(one) for one in off]
    return found


def table(seeds: int) -> str:
    names = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scikit-learn"))
    lines = [
        "# Estimates by weak classifiers",
        "",
        f"Made by `python benchmarks/weak_classifiers.py --seeds {seeds}`: ",
    ]
    lines[-1] += f"means over {seeds} training sets. Python {platform.python_version()}, {names}."
    lines += [
        "",
        "Sums of absolute errors over the classes. Raw: the method's own estimate. Shrunk: what `predict` gives.",
    ]
    for n, shares in SHARES.items():
        lines += ["", f"## {len(shares)} classes, {n} training texts", ""]
        lines += ["| signal | method | shrinkage | natural: raw | shrunk | prior | shifted: raw | shrunk | prior |"]
        lines += ["|---|---|---|---|---|---|---|---|---|"]
        for signal in SIGNALS:
            runs = [errors(n, signal, seed) for seed in range(seeds)]
            for name in runs[0]:
                mean = np.mean([run[name] for run in runs], axis=0)
                lines.append(
                    f"| {signal:.0%} | {name} | {mean[0]:.2f} | " + " | ".join(f"{x:.3f}" for x in mean[1:]) + " |"
                )
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuanetWarning)  # that estimates are shrunk is what this is about
        arguments.output.write_text(table(arguments.seeds))


if __name__ == "__main__":
    main()
