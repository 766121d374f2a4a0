"""Measure how far diagnostics, refined estimates, corrected rates and the monitor can be trusted.

python benchmarks/trust.py --data FOLDER --rows FOLDER --output benchmarks/results/trust.md
"""

import argparse
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from quanet import EMQ, Monitor, diagnose, plan_labels
from quanet.classifiers.cross_fitting import cross_fit
from quanet.classifiers.text import TextClassifier
from quanet.evaluation.prior_shift import mixture_test
from quanet.files import replacing
from quanet.labels.judges import correct_counts
from quanet.labels.prediction_powered import prediction_powered
from quanet.labels.refine import fixed_label_em, likelihood_ratios, responsibilities
from quanet.report.charts import monitor_figure, save_figure
from quanet.simplex import classes_of, encode

FOREIGN = {"imdb": ("airline-3class", "amazon-devices")}
Rows = dict[Any, Any]


def read(data: Path, name: str, part: str) -> tuple[list[str], Any]:
    table = pd.read_parquet(data / f"{name}-{part}.parquet", columns=["text", "label"])
    return table["text"].tolist(), table["label"].to_numpy()


def rows_of(data: Path, folder: Path, name: str) -> Rows:
    """Posteriors of the text default: out of fold for training; of the test part; and of foreign texts."""
    path = folder / f"{name}.npz"
    if not path.exists():
        texts, labels = read(data, name, "train")
        classes = classes_of(labels)
        codes = encode(labels, classes)
        classifier, held, order = cross_fit(TextClassifier(), texts, codes, classes, cv=5)
        found = {"held": held, "held_codes": codes[order]}
        found |= {"test_codes": encode(read(data, name, "test")[1], classes)}
        for part, other in {"test": name, **{f"on {other}": other for other in FOREIGN.get(name, ())}}.items():
            found[part] = classifier.predict_proba(read(data, other, "test")[0])
        with replacing(path) as file:
            np.savez(file, **found)
    return dict(np.load(path))


def draw(codes: Any, shares: Any, n: int, rng: np.random.Generator) -> Any:
    """Row numbers of a bag of prior shift, each instance once."""
    counts = rng.multinomial(n, shares)
    pools = [np.flatnonzero(codes == c) for c in range(len(shares))]
    if any(len(pool) < count for pool, count in zip(pools, counts, strict=True)):
        return None
    return np.concatenate([rng.choice(pool, count, replace=False) for pool, count in zip(pools, counts, strict=True)])


def prior_shift(rows: dict[str, Rows], trials: int) -> Iterator[str]:
    """How often the posteriors of bags do not fit any mixture of the classes (`benchmarks/drift.py` has the states)."""
    sizes = (100, 500)
    yield "| model | bags of | prevalence | " + " | ".join(f"p < .05, {n}" for n in sizes) + " |"
    yield "|---|---|---|" + "---|" * len(sizes)
    cases = [("imdb", "the other half of held-out training instances", "half"), ("imdb", "imdb test", "test")]
    cases += [("imdb", "airline tweets", "on airline-3class"), ("imdb", "amazon-devices test", "on amazon-devices")]
    cases += [("amazon-devices", "the other half of held-out training instances", "half")]
    cases += [("amazon-devices", "amazon-devices test", "test"), ("airline-3class", "airline test, later days", "test")]
    for name, what, key in cases:
        for how in ("as it is",) if key.startswith("on ") else ("uniform", "as it is"):
            found = [np.mean([one_test(rows[name], key, how, n, at) for at in range(trials)]) for n in sizes]
            yield f"| {name} | {what} | {how} | " + " | ".join(f"{x:.1%}" for x in found) + " |"


def one_test(rows: Rows, key: str, how: str, n: int, trial: int) -> bool:
    """Whether the posteriors of a bag do not fit any mixture of the classes."""
    held, codes = rows["held"], rows["held_codes"]
    k, rng = held.shape[1], np.random.default_rng([n, trial])
    half = key == "half"
    pool, pool_codes = (held, codes) if half else (rows[key], rows["test_codes"])
    if half:  # one of eight
        order = np.random.default_rng(trial % 8).permutation(len(codes))
        reference, rest = order[::2], order[1::2]
        pool, pool_codes, held, codes = pool[rest], pool_codes[rest], held[reference], codes[reference]
    if how == "uniform":
        chosen = None
        while chosen is None:
            chosen = draw(pool_codes, rng.dirichlet(np.ones(k)), n, rng)
    else:
        chosen = rng.choice(len(pool), n, replace=False)
    return mixture_test(pool[chosen], held, codes, refitted=not half, resamples=199, rng=rng).p_value <= 0.05


def monitor(rows: Rows, steady: int, trials: int) -> Iterator[str]:
    held, codes = rows["held"], rows["held_codes"]
    quantifier = EMQ("precomputed").fit(held[::2], codes[::2])
    pools = [held[1::2][codes[1::2] == c] for c in (0, 1)]
    rng = np.random.default_rng(0)

    def batch(p: float) -> Any:
        positive = rng.binomial(500, p)
        return np.concatenate([rng.choice(pools[1], positive), rng.choice(pools[0], 500 - positive)])

    false = 0
    for trial in range(steady):
        watch, p = Monitor(quantifier), (0.02, 0.1, 0.3, 0.5, 0.9)[trial % 5]
        false += any(watch.update(batch(p)).alarm for _ in range(1000))
    yield f"- false alarms over 1,000 steady batches of 500: {false} of {steady} trials"
    for before, (old, new) in itertools.product((10, 100), ((0.5, 0.6), (0.3, 0.2), (0.05, 0.15), (0.9, 0.8))):
        delays = []
        for _ in range(trials):
            watch = Monitor(quantifier)
            for _ in range(before):
                watch.update(batch(old))
            delays.append(next((at for at in range(1, 9) if watch.update(batch(new)).alarm), 99))
        found = np.array(delays)
        yield (
            f"- from {old:.0%} to {new:.0%} after {before} batches: found within 5 in {np.mean(found <= 5):.1%} "
            f"of {trials} trials, after {np.median(found):.0f} in the median"
        )


def judges(trials: int) -> Iterator[str]:
    rng = np.random.default_rng(0)
    yield "| tpr | fpr | human labels a class | coverage at p = 0 | .02 | .2 | .5 | .9 | 1 | mean width |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    every = []
    for (tpr, fpr), m in itertools.product(((0.6, 0.4), (0.8, 0.1), (0.95, 0.02), (1.0, 0.0)), (10, 30, 100)):
        line, widths = [], []
        for p in (0.0, 0.02, 0.2, 0.5, 0.9, 1.0):
            judged = rng.binomial(1000, p * tpr + (1 - p) * fpr, size=trials)
            right, wrong = rng.binomial(m, tpr, size=trials), rng.binomial(m, fpr, size=trials)
            tables = np.stack([np.stack([m - wrong, wrong], 1), np.stack([m - right, right], 1)], 1)
            bags = np.stack([1000 - judged, judged], 1)
            _, low, high = (one[:, 1] for one in correct_counts(bags, tables, np.zeros((trials, 2), int), level=0.95))
            line.append(np.mean((low <= p + 1e-6) & (p - 1e-6 <= high)))
            widths.append(np.mean(high - low))
        every += line
        yield f"| {tpr} | {fpr} | {m} | " + " | ".join(f"{c:.1%}" for c in line) + f" | {np.mean(widths):.3f} |"
    yield ""
    yield f"Two classes, 1,000 judged instances: {np.mean(every):.1%} on average, {min(every):.1%} at worst."
    found = []
    confusion = np.array([[0.8, 0.1, 0.1], [0.15, 0.7, 0.15], [0.05, 0.15, 0.8]])  # of a class, along a row
    for p, m in itertools.product(([0.2, 0.3, 0.5], [0.05, 0.05, 0.9], [0.0, 0.4, 0.6]), (30, 100)):
        tables = np.stack([rng.multinomial(m, row, size=trials // 2) for row in confusion], axis=1)
        bags = rng.multinomial(1000, np.array(p) @ confusion, size=trials // 2)
        _, low, high = correct_counts(bags, tables, np.zeros((trials // 2, 3), int), level=0.95)
        hits = (low <= np.array(p) + 1e-6) & (np.array(p) - 1e-6 <= high)
        found += np.mean(hits, axis=0).tolist()
    yield f"Three classes, six settings: {np.mean(found):.1%} on average, {min(found):.1%} at worst."


def few_labels(data: Path, rows: Rows, trials: int) -> Iterator[str]:
    """Coverage of the prediction-powered interval, in and out of the model's own domain."""
    quantifier = EMQ("precomputed").fit(rows["held"], rows["held_codes"])
    amazon = encode(read(data, "amazon-devices", "test")[1], quantifier.classes_)
    pools = {"imdb test": ("test", rows["test_codes"]), "amazon-devices test": ("on amazon-devices", amazon)}
    yield "| model | bags of 2,000 from | positive | labels | coverage | mean width | AE | AE of EMQ alone |"
    yield "|---|---|---|---|---|---|---|---|"
    for (what, (key, codes)), n in itertools.product(pools.items(), (20, 50, 200)):
        ratios = likelihood_ratios(quantifier, rows[key])
        for p in (0.5, 0.9) if key == "test" else (0.8, 0.97):
            rng = np.random.default_rng(n)
            out = []
            for _ in range(trials):
                size = min(2000, int((codes == 0).sum() / (1 - p)))
                chosen = draw(codes, [1 - p, p], int(size * 0.9), rng)
                part = rng.permutation(len(chosen))[:n]
                truth, labels = codes[chosen].mean(), codes[chosen][part]
                bag, known = ratios[chosen], ratios[chosen][part]
                shares = fixed_label_em(bag, known, labels)
                powered = prediction_powered(responsibilities(bag, shares), responsibilities(known, shares), labels)
                low, high = (ends[1] for ends in powered.interval(0.95))
                alone = quantifier.aggregate(quantifier.represent(rows[key][chosen]))[1]
                error = abs(powered.estimate[1] - truth)
                out.append((low <= truth <= high, high - low, error, abs(alone - truth)))
            hit, width, error, alone = np.mean(out, axis=0)
            yield f"| imdb | {what} | {p:.0%} | {n} | {hit:.1%} | {width:.3f} | {error:.3f} | {alone:.3f} |"
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(rows["test"]), 2000, replace=False)
    plans = {how: plan_labels(quantifier, rows["test"][chosen], 0.05, design=how) for how in ("random", "stratified")}
    yield ""
    yield "Labels for a width of 5 points on a bag of 2,000: " + ", ".join(f"{h} {p.n}" for h, p in plans.items()) + "."


def texts(data: Path, output: Path) -> Iterator[str]:
    """The output of `diagnose` for three bags, and a chart of a monitor over the days of the airline tweets."""
    train, labels = read(data, "imdb", "train")
    quantifier = EMQ().fit(train, labels)
    rng = np.random.default_rng(0)
    fine, of_fine = read(data, "imdb", "test")
    yield from said("Fine: 500 IMDB test reviews, 80 % positive", quantifier, pick(fine, of_fine, 0.8, 500, rng))
    tweets = read(data, "airline-3class", "test")[0]
    some = [tweets[at] for at in rng.choice(len(tweets), 500, replace=False)]
    yield from said("Foreign texts: an IMDB model and 500 airline tweets", quantifier, some)
    train, labels = read(data, "amazon-devices", "train")
    later, of_later = read(data, "amazon-devices", "test")
    devices = EMQ().fit(train, labels)
    yield from said("Drift: amazon-devices, half positive", devices, pick(later, of_later, 0.5, 900, rng))
    yield from said("Drift: amazon-devices, all of the later reviews", devices, later)
    days = pd.read_parquet(data / "airline-3class-test.parquet")
    watch = Monitor(EMQ().fit(*read(data, "airline-3class", "train")), window=1, half_life=1, tolerance=0.01)
    stamps = pd.to_datetime(days["date"], utc=True).dt.tz_localize(None).dt.floor("6h")
    for stamp, part in days.groupby(stamps):
        if len(part) > 1:
            watch.update(part["text"].tolist(), date=stamp.to_datetime64())
    history = watch.history()
    save_figure(monitor_figure(history, label=0), output.with_name("trust-monitor.png"))
    yield f"\nMonitor over {len(watch.dates_)} quarters of days of airline tweets: change since {history.since}."


def pick(items: list[str], labels: Any, positive: float, n: int, rng: np.random.Generator) -> list[str]:
    chosen = draw(np.asarray(labels), [1 - positive, positive], n, rng)
    return [items[at] for at in chosen]


def said(title: str, quantifier: Any, bag: list[str]) -> Iterator[str]:
    yield f"\n{title} (estimate {quantifier.predict(bag)[-1]:.1%} positive):\n"
    yield from (f"- {line}" for line in str(diagnose(quantifier, bag)).splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with NAME-train.parquet and NAME-test.parquet")
    parser.add_argument("--rows", type=Path, required=True, help="folder where posteriors are kept between runs")
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--steady", type=int, default=100, help="number of trials of 1,000 batches")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/trust.md"))
    asked = parser.parse_args()
    start = time.process_time()
    rows = {name: rows_of(asked.data, asked.rows, name) for name in ("imdb", "amazon-devices", "airline-3class")}
    sections = {
        "Do the posteriors fit a mixture of the classes?": prior_shift(rows, asked.trials),
        "Monitor": monitor(rows["imdb"], asked.steady, asked.trials // 4),
        "Corrected rates": judges(asked.trials),
        "A few labels": few_labels(asked.data, rows["imdb"], asked.trials // 2),
        "What diagnose says": texts(asked.data, asked.output),
    }
    lines = ["# Trust: measured", "", "`python benchmarks/trust.py`, text default, 5 folds, one core.", ""]
    for title, section in sections.items():
        lines += [f"## {title}", "", *section, ""]
        print(title, round(time.process_time() - start), "s", flush=True)
    with replacing(asked.output) as file:
        file.write("\n".join(lines).encode())


if __name__ == "__main__":
    main()
