"""Audits of judges by simulation with known truth: clusters, differences with Holm, several judges, anchor sets.

python benchmarks/judge_clusters.py --seed 0 --trials 1000 --jobs 2 --output benchmarks/results/judge-clusters.md
"""

import argparse
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from quanet.data.periods import Key
from quanet.files import replacing
from quanet.labels.judge_covariance import JudgedUnits, joint_spread
from quanet.labels.judges import correct_counts
from quanet.workflows.audit import audit_judges
from quanet.workflows.correct import correct_groups
from quanet.workflows.judge_checks import check_anchor
from quanet.workflows.judge_differences import compare_rates

SIZE = 10  # mean rows of a cluster
CHUNK = 125  # trials of one job
# Where human labels come from, clusters of the judged rows, clusters (or share of the rows) with human labels.
DESIGNS = (
    ("other clusters", 20, 20),
    ("other clusters", 100, 20),
    ("other clusters", 100, 50),
    ("some clusters", 40, 20),
    ("some clusters", 200, 40),
    ("rows of all clusters", 20, 0.3),
    ("rows of all clusters", 60, 0.2),
)
# Share of the class, its correlation within clusters, that of the judge's errors.
SETTINGS = ((0.3, 0.0, 0.0), (0.3, 0.3, 0.1), (0.3, 0.2, 0.3), (0.1, 0.1, 0.1), (0.05, 0.2, 0.2))


def rates_of_clusters(mean: float, correlation: float, clusters: int, rng: np.random.Generator) -> Any:
    """A rate for each cluster, such that labels within one have this correlation: (clusters,)."""
    if not correlation:
        return np.full(clusters, mean)
    spread = (1 - correlation) / correlation
    return rng.beta(mean * spread, (1 - mean) * spread, size=clusters)


def judged_clusters(
    clusters: int, share: float, correlation: float, of_errors: float, rng: np.random.Generator
) -> tuple[Any, Any, Any]:
    """Cluster, truth and judgement of every row; clusters have different sizes. The judge finds 85 %, errs on 10 %."""
    sizes = 1 + rng.poisson(rng.gamma(2, (SIZE - 1) / 2, clusters))
    unit = np.repeat(np.arange(clusters), sizes)
    truth = rng.random(len(unit)) < rates_of_clusters(share, correlation, clusters, rng)[unit]
    found, wrong = (rates_of_clusters(mean, of_errors, clusters, rng)[unit] for mean in (0.85, 0.1))
    return unit, truth.astype(int), (rng.random(len(unit)) < np.where(truth, found, wrong)).astype(int)


def drawn(design: tuple[str, int, float], setting: tuple[float, float, float], rng: np.random.Generator) -> Any:
    """Rows of one file and its counts: bag (2,), table (2, 2), own labels (2,)."""
    source, clusters, labelled = design
    unit, truth, said = judged_clusters(clusters, *setting, rng)
    if source == "other clusters":
        other, known, judged = judged_clusters(int(labelled), 0.5, *setting[1:], rng)
        n, m = len(unit), len(other)
        rows = JudgedUnits(
            np.concatenate([unit, other + clusters]),
            np.repeat([0, -1], [n, m]),
            np.concatenate([np.full(n, -1), known]),
            np.concatenate([said, judged]),
            np.repeat([True, False], [n, m]),
            np.zeros(n + m, dtype=bool),
        )
        return rows, np.bincount(said, minlength=2), table_of(known, judged), np.zeros(2, dtype=int)
    if source == "some clusters":
        with_label = (rng.permutation(clusters) < labelled)[unit]
    else:
        with_label = rng.random(len(unit)) < labelled
    rows = JudgedUnits(unit, np.zeros(len(unit), int), np.where(with_label, truth, -1), said, ~with_label, with_label)
    known, judged = truth[with_label], said[with_label]
    return rows, np.bincount(said[~with_label], minlength=2), table_of(known, judged), np.bincount(known, minlength=2)


def table_of(known: Any, judged: Any) -> Any:
    return np.bincount(known * 2 + judged, minlength=4).reshape(2, 2)


def covered_clusters(
    design: tuple[str, int, float], setting: tuple[float, float, float], trials: int, seed: list[int]
) -> Any:
    """Covered without and with clusters, widths, design effect: (trials, 5)."""
    rng = np.random.default_rng(seed)
    files: list[Any] = []
    while len(files) < trials:
        one = drawn(design, setting, rng)
        if one[2].sum(axis=1).min() >= 5:
            files.append(one)
    bags, tables, own = (np.stack([one[part] for one in files]) for part in (1, 2, 3))
    estimate, lower, upper = correct_counts(bags, tables, own, level=0.95)
    spreads = []
    for i, (rows, *counts) in enumerate(files):
        twice = [np.stack([one, one]) for one in counts]
        spreads.append(joint_spread(rows, *twice, estimate[[i, i]], np.array([True, True])))
    stretch = np.stack([one.stretch(0.95)[-1] for one in spreads])
    _, low, high = correct_counts(bags, tables, own, level=0.95, stretch=stretch)
    p, c = setting[0], 1
    effect = [one.effect[-1, c] for one in spreads]
    plain, wide = ((a[:, c] <= p) & (p <= b[:, c]) for a, b in ((lower, upper), (low, high)))
    return np.stack([plain, wide, (upper - lower)[:, c], (high - low)[:, c], effect], axis=1)


def parts(trials: int) -> list[int]:
    return [min(CHUNK, trials - at) for at in range(0, trials, CHUNK)]


def clusters(trials: int, seed: int, jobs: int) -> Iterator[str]:
    cells = list(itertools.product(DESIGNS, SETTINGS))
    work = [(number, part, size) for number in range(len(cells)) for part, size in enumerate(parts(trials))]
    done = Parallel(n_jobs=jobs)(
        delayed(covered_clusters)(*cells[number], size, [seed, number, part]) for number, part, size in work
    )
    yield (
        "| human labels of | clusters | with labels | share | correlation | of errors | rows independent | width "
        "| --cluster | width | design effect |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    every = []
    for number, (design, setting) in enumerate(cells):
        found = np.concatenate([out for out, one in zip(done, work, strict=True) if one[0] == number]).mean(axis=0)
        every.append(found[1])
        cells_shown = (*design, *setting)
        yield (
            "| " + " | ".join(map(str, cells_shown)) + f" | {found[0]:.1%} | {100 * found[2]:.1f} | {found[1]:.1%} "
            f"| {100 * found[3]:.1f} | {found[4]:.2f} |"
        )
    yield f"\nWith --cluster: {np.mean(every):.1%} on average, {min(every):.1%} to {max(every):.1%}. Widths in points."


def one_comparison(kind: str, seed: list[int]) -> tuple[float, ...]:
    """Six groups: a true null rejected, coverage of a pair and against the rest, width of the pair and by theory."""
    rng = np.random.default_rng(seed)
    g = 6
    shares = np.array([0.3, 0.3, 0.3, 0.3, 0.3, 0.3]) if kind != "one group differs" else np.array([0.2] * 5 + [0.5])
    correlated = 0.2 if kind == "clusters" else 0.0
    files = [judged_clusters(60, share, correlated, correlated, rng) for share in shares]
    owner = np.repeat(np.arange(g), [len(one[0]) for one in files])
    unit = np.concatenate([one[0] + 1000 * i for i, one in enumerate(files)])
    said = np.array(["good", "bad"], dtype=object)[np.concatenate([one[2] for one in files])]
    other, known, judged = judged_clusters(40, 0.5, correlated, correlated, rng)
    names = np.array(["good", "bad"], dtype=object)
    calibration: tuple[Any, ...] = (names[known], names[judged])
    if correlated:
        calibration = (*calibration, other - 1000)
    found = correct_groups(
        said,
        [None] * len(said),
        keys=[Key("g")],
        groups=[(str(i),) for i in range(g)],
        owner=owner,
        calibration=calibration,
        clusters=unit if correlated else None,
        joint=True,
    )
    labels = [str(i) for i in range(g)]
    rest, pair = compare_rates(found, labels, against="rest"), compare_rates(found, labels, between=("0", "5"))
    sizes = np.bincount(owner)
    true = [shares[i] - np.delete(shares, i) @ np.delete(sizes, i) / np.delete(sizes, i).sum() for i in range(g)]
    wrong = rest.significant[:, 0] & (np.abs(true) < 1e-9)
    difference = shares[5] - shares[0]
    covered = pair.lower[0, 0] <= difference <= pair.upper[0, 0]
    assert pair.relative_width is not None
    inside = (rest.lower[:, 0] <= true) & (true <= rest.upper[:, 0])
    return (
        float(wrong.any()),
        float(covered),
        float(inside.mean()),
        float(pair.relative_width[0, 0]),
        theory(shares, sizes, known),
    )


def theory(shares: Any, sizes: Any, known: Any) -> float:
    """Width of the difference of groups 0 and 5 relative to that of independent corrections, by the delta method."""
    tpr, fpr = 0.85, 0.1
    counts = np.bincount(known, minlength=2)
    own, common = [], []
    for i in (0, 5):
        p = shares[i]
        q = p * tpr + (1 - p) * fpr
        own.append(q * (1 - q) / sizes[i])
        common.append(
            np.array([p * np.sqrt(tpr * (1 - tpr) / counts[1]), (1 - p) * np.sqrt(fpr * (1 - fpr) / counts[0])])
        )
    shared = sum(own) + ((common[0] - common[1]) ** 2).sum()
    apart = sum(own) + (common[0] ** 2).sum() + (common[1] ** 2).sum()
    return float(np.sqrt(shared / apart))


def differences(trials: int, seed: int, jobs: int) -> Iterator[str]:
    yield (
        "Six groups of 60 clusters, one shared set of human labels (40 clusters). Each group against the rest (Holm), "
        "and the pair of group 5 and group 0."
    )
    yield ""
    yield (
        "| | a true null rejected (Holm) | coverage against the rest | coverage of the pair "
        "| its width, relative to independent corrections | by theory |"
    )
    yield "|---|---|---|---|---|---|"
    for number, kind in enumerate(("independent rows", "clusters", "one group differs")):
        out = Parallel(n_jobs=jobs)(delayed(one_comparison)(kind, [seed, 1, number, i]) for i in range(trials))
        wrong, pair, rest, width, expected = np.mean(out, axis=0)
        shown = "--" if kind == "clusters" else f"{expected:.3f}"
        yield f"| {kind} | {wrong:.1%} | {rest:.1%} | {pair:.1%} | {width:.3f} | {shown} |"


def one_panel(dependent: bool, m: int, seed: list[int]) -> tuple[float, ...]:
    """Covered by each of three judges and by all together, and the widths."""
    rng = np.random.default_rng(seed)
    n, p = 2000, 0.2
    truth = rng.random(n) < p
    hard = rng.random(n) < 0.2  # on which dependent judges err together
    judges = {}
    for name, found, wrong in (("a", 0.85, 0.1), ("b", 0.8, 0.1), ("c", 0.7, 0.15)):
        chance = np.where(truth, found, wrong)
        chance = np.where(hard & dependent, 0.5, chance)
        judges[name] = np.where(rng.random(n) < chance, "bad", "good").astype(object)
    human = np.where(np.arange(n) < m, np.where(truth, "bad", "good"), None)
    found = audit_judges(judges, human)
    assert found.panel is not None
    totals = [*found.panel.totals, found.total]
    return (*(float(one[1, 0] <= p <= one[2, 0]) for one in totals), *(float(one[2, 0] - one[1, 0]) for one in totals))


def judges(trials: int, seed: int, jobs: int) -> Iterator[str]:
    yield "| three judges | human labels | covered by a, b, c | by all together | width of a, b, c | of all together |"
    yield "|---|---|---|---|---|---|"
    for number, (dependent, m) in enumerate(itertools.product((False, True), (150, 400))):
        out = Parallel(n_jobs=jobs)(delayed(one_panel)(dependent, m, [seed, 2, number, i]) for i in range(trials))
        found = np.mean(out, axis=0)
        yield (
            f"| {'dependent' if dependent else 'independent'} | {m} | {', '.join(f'{one:.1%}' for one in found[:3])} "
            f"| {found[3]:.1%} | {', '.join(f'{100 * one:.1f}' for one in found[4:7])} | {100 * found[7]:.1f} |"
        )


def one_anchor(now: float, labels: int, seed: list[int]) -> bool:
    rng = np.random.default_rng(seed)

    def labelled(found: float, n: int) -> tuple[Any, Any]:
        truth = rng.random(n) < 0.3
        said = rng.random(n) < np.where(truth, found, 0.1)
        return np.where(truth, "bad", "good").astype(object), np.where(said, "bad", "good").astype(object)

    before = labelled(0.85, 300)
    return check_anchor(before[1], [None] * 300, labelled(now, labels), calibration=before).test.differ


def anchors(trials: int, seed: int, jobs: int) -> Iterator[str]:
    yield "| finds of the class now (85 % before) | labels of the anchor set | change reported |"
    yield "|---|---|---|"
    for number, (now, labels) in enumerate(itertools.product((0.85, 0.7, 0.5), (100, 300))):
        out = Parallel(n_jobs=jobs)(delayed(one_anchor)(now, labels, [seed, 3, number, i]) for i in range(trials))
        yield f"| {now:.0%} | {labels} | {np.mean(out):.1%} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/judge-clusters.md"))
    asked = parser.parse_args()
    start = time.perf_counter()
    trials, seed, jobs = asked.trials, asked.seed, asked.jobs
    sections = {
        "Intervals with clusters": clusters(trials, seed, jobs),
        "Differences between groups": differences(trials, seed, jobs),
        "Several judges": judges(max(trials // 4, 1), seed, jobs),
        "Anchor set": anchors(max(trials // 4, 1), seed, jobs),
    }
    text = "\n\n".join(f"## {title}\n\n" + "\n".join(lines) for title, lines in sections.items())
    head = (
        "# Audits of judges, by simulation\n\n"
        f"`python benchmarks/judge_clusters.py --seed {seed} --trials {trials}`, {time.perf_counter() - start:.0f} s "
        f"on {jobs} cores. Levels are 95 %; a quarter of the trials for several judges and anchor sets. All data are "
        f"generated. Clusters have {SIZE} rows on average and different sizes. Correlations are those between two rows "
        "of one cluster: of the class, and of the judge's errors.\n\n"
    )
    with replacing(asked.output) as file:
        file.write((head + text + "\n").encode())


if __name__ == "__main__":
    main()
