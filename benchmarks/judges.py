"""Coverage of corrected rates, refined prevalences and the monitor's band, by simulation with known truth.

python benchmarks/judges.py --seed 0 --trials 200 --output benchmarks/results/judges.md
"""

import argparse
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from quanet import CC, EMQ, Gaussians, Monitor, refine
from quanet.data.periods import Key
from quanet.files import replacing
from quanet.labels.judges import correct_counts
from quanet.workflows.correct import correct_groups

JUDGES = {
    "fair": [[0.8, 0.1, 0.1], [0.15, 0.7, 0.15], [0.05, 0.15, 0.8]],
    "good": [[0.95, 0.03, 0.02], [0.04, 0.93, 0.03], [0.01, 0.04, 0.95]],
    "perfect": np.eye(3),
}


def covered(p: Any, rates: Any, m: int, trials: int, rng: np.random.Generator) -> Any:
    """Coverage of the interval of each class, with 1,000 judged instances: (k,)."""
    p, rates = np.array(p, dtype=float), np.array(rates)
    tables = np.stack([rng.multinomial(m, row, size=trials) for row in rates], axis=1)
    bags = rng.multinomial(1000, p @ rates, size=trials)
    _, lower, upper = correct_counts(bags, tables, np.zeros((trials, len(p)), dtype=int), level=0.95)
    return ((lower <= p + 1e-6) & (p - 1e-6 <= upper)).mean(axis=0)


def two_classes(trials: int, seed: int) -> Iterator[str]:
    rng = np.random.default_rng(seed)
    shares = (0.0, 0.02, 0.2, 0.5, 0.9, 1.0)
    yield "| tpr | fpr | labels a class | " + " | ".join(f"p = {p:g}" for p in shares) + " |"
    yield "|---|---|---|" + "---|" * len(shares)
    every = []
    for (tpr, fpr), m in itertools.product(((0.6, 0.4), (0.8, 0.1), (0.95, 0.02), (1.0, 0.0)), (10, 30, 100)):
        line = [covered([1 - p, p], [[1 - fpr, fpr], [1 - tpr, tpr]], m, trials, rng)[1] for p in shares]
        every += line
        yield f"| {tpr} | {fpr} | {m} | " + " | ".join(f"{one:.1%}" for one in line) + " |"
    yield f"\n{np.mean(every):.1%} on average, {min(every):.1%} at worst."


def three_classes(trials: int, seed: int) -> Iterator[str]:
    rng = np.random.default_rng(seed)
    yield "| judge | shares | 10 labels a class: worst and best class | 30 | 100 |"
    yield "|---|---|---|---|---|"
    every: list[float] = []
    for (name, rates), p in itertools.product(
        JUDGES.items(), ([0.2, 0.3, 0.5], [0.05, 0.05, 0.9], [0.01, 0.04, 0.95], [0, 0.4, 0.6])
    ):
        found = [covered(p, rates, m, trials, rng) for m in (10, 30, 100)]
        every += np.concatenate(found).tolist()
        yield f"| {name} | {p} | " + " | ".join(f"{one.min():.1%}, {one.max():.1%}" for one in found) + " |"
    yield f"\n{np.mean(every):.1%} on average, {min(every):.1%} at worst."


def groups(trials: int, seed: int) -> Iterator[str]:
    """Six groups of 1,000; in the last one the judge finds fewer of the class."""
    yield "Covered is the group's own share; intervals are for the share of its source, so they cover more than 95 %."
    yield ""
    yield (
        "| finds of the class in five groups, in the sixth | labels in a group | labels are | groups 1 to 5 | group 6 "
        "| test finds a difference | with --same-errors: groups 1 to 5 | group 6 |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for worse, labelled, at_random in itertools.product((0.85, 0.7, 0.5), (150, 400), (True, False)):
        rng = np.random.default_rng(seed)
        out = [one_file(worse, labelled, at_random, rng) for _ in range(trials)]
        own, differ, pooled = (np.mean([one[part] for one in out], axis=0) for part in range(3))
        yield (
            f"| 85 %, {worse:.0%} | {labelled} | {'random' if at_random else 'chosen'} | {own[:5].mean():.1%} "
            f"| {own[5]:.1%} | {differ:.1%} | {pooled[:5].mean():.1%} | {pooled[5]:.1%} |"
        )


def one_file(worse: float, labelled: int, at_random: bool, rng: np.random.Generator) -> tuple[Any, bool, Any]:
    """Which groups are covered, whether the test finds a difference, and which are covered with --same-errors."""
    owner = np.repeat(np.arange(6), 1000)
    bad = rng.random(6000) < np.repeat([0.2, 0.3, 0.4, 0.3, 0.2, 0.35], 1000)
    said = np.where(bad, rng.random(6000) < np.where(owner == 5, worse, 0.85), rng.random(6000) < 0.05)
    judged = np.where(said, "bad", "good")
    human = np.where(np.arange(6000) % 1000 < labelled, np.where(bad, "bad", "good"), None)
    truth = bad.reshape(6, 1000).mean(axis=1)
    names = [(str(g),) for g in range(6)]
    hits = []
    for same in (False, True):
        found = correct_groups(
            judged, human, keys=[Key("g")], groups=names, owner=owner, at_random=at_random, same_errors=same
        )
        hits.append((found.lower[:, 0] <= truth) & (truth <= found.upper[:, 0]))
    assert found.errors is not None
    return hits[0], found.errors.differ, hits[1]


def refined(trials: int, seed: int) -> Iterator[str]:
    """A new training set for every bag, so that learning error is part of what is measured."""
    yield "| training | bag | labels | share | coverage of em | mean width | of prediction-powered | mean width |"
    yield "|---|---|---|---|---|---|---|---|"
    source = Gaussians()
    for train, (size, n), p in itertools.product((300, 1000), ((200, 20), (2000, 50)), (0.02, 0.3)):
        out = []
        for trial in range(trials):
            quantifier = EMQ().fit(*source.draw([0.5, 0.5], train, rng=10_000 * seed + trial))
            X, y = source.draw([1 - p, p], size, rng=10_000 * seed + 5000 + trial)
            part = np.random.default_rng([seed, trial]).permutation(size)[:n]
            for method in ("em", "prediction-powered"):
                found = refine(quantifier, X, X[part], y[part], method=method)
                out += [found.lower[1] <= y.mean() <= found.upper[1], found.upper[1] - found.lower[1]]
        hit, width, other, other_width = np.mean(np.reshape(out, (-1, 4)), axis=0)
        yield f"| {train} | {size} | {n} | {p} | {hit:.1%} | {width:.3f} | {other:.1%} | {other_width:.3f} |"


def monitor(series: int, seed: int) -> Iterator[str]:
    rng = np.random.default_rng(seed)
    quantifier = CC("precomputed").fit(np.repeat([[0.9, 0.1], [0.1, 0.9]], 20, axis=0), np.repeat([0, 1], 20))

    def follow(shares: list[float]) -> Any:
        watch = Monitor(quantifier)
        for p in shares:
            n = int(rng.integers(100, 1000))
            watch.update(np.where(rng.random(n) < p, [[0.1], [0.9]], [[0.9], [0.1]]).T)
        return watch.history()

    steady = [follow([(0.02, 0.1, 0.3, 0.5, 0.8)[trial % 5]] * 40) for trial in range(series)]
    alarms = [len(one.changes) for one in steady]
    inside = np.mean([~one.outside[:, 1] for one in steady])
    yield (
        f"- {series} steady series of 40 batches: {np.count_nonzero(alarms)} with a false alarm ({sum(alarms)} in "
        f"all); {inside:.1%} of batches within the 95 % band"
    )
    for shares in ([0.24] * 8 + [0.16] * 10 + [0.25] * 8, [0.3] * 10 + [0.5] * 10 + [0.3] * 10):
        found = [follow(shares) for _ in range(series // 4)]
        true = (np.flatnonzero(np.diff(shares)) + 1).tolist()
        both = np.mean([len(one.changes) == len(true) for one in found])
        near = [[abs(a.date - b) <= 1 for a, b in zip(one.changes, true, strict=False)] for one in found]
        yield (
            f"- {shares[0]:.0%} to {shares[12]:.0%} to {shares[-1]:.0%}: both changes and no other in {both:.0%} of "
            f"{len(found)} series; {np.mean(list(itertools.chain(*near))):.0%} of their dates off by one batch at most"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/judges.md"))
    asked = parser.parse_args()
    start = time.process_time()
    trials, seed = asked.trials, asked.seed
    sections = {
        "Corrected rates of two classes": two_classes(trials, seed),
        "Corrected rates of three classes": three_classes(max(trials // 2, 1), seed),
        "Groups in which the judge may err differently": groups(max(trials // 4, 1), seed),
        "Shares refined by a few labels": refined(max(trials // 2, 1), seed),
        "Monitor": monitor(trials, seed),
    }
    text = "\n\n".join(f"## {title}\n\n" + "\n".join(lines) for title, lines in sections.items())
    head = (
        "# Coverage of what human labels add, by simulation\n\n"
        f"`python benchmarks/judges.py --seed {seed} --trials {trials}`, {time.process_time() - start:.0f} s of CPU. "
        "Levels are 95 %; 1,000 judged instances. Where a share is 0 or 1, or a judge makes no errors, a valid "
        "interval covers more often than its level, since counts are whole numbers.\n\n"
    )
    with replacing(asked.output) as file:
        file.write((head + text + "\n").encode())


if __name__ == "__main__":
    main()
