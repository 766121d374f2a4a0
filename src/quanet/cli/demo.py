"""`quanet demo`: real reviews in, shares out, beside the truth."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from quanet.cli.console import console, note, notes

if TYPE_CHECKING:
    from quanet.arrays import FloatArray
    from quanet.base import Quantifier
    from quanet.data.dataset import Dataset
    from quanet.evaluation.results import Results
    from quanet.protocols import APP


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Picture of estimate against truth.")] = Path(
        "demo.png"
    ),
    report: Annotated[Path, typer.Option(help="Report of the case: .html, .md or .json.")] = Path("demo.html"),
    source: Annotated[str, typer.Option(help="imdb or rotten_tomatoes.")] = "imdb",
    seed: Annotated[int, typer.Option(help="Of the split and of the bags.")] = 0,
    bag_size: Annotated[int, typer.Option(min=1, help="Reviews in a bag.")] = 500,
    repeats: Annotated[int, typer.Option(min=1, help="Bags of each of the 21 prevalences.")] = 20,
) -> None:
    """Learn from movie reviews, then estimate the share of positive ones in sets that never look like the training set.

    Example: quanet demo --seed 1 --output picture.png --report case.html
    """
    from quanet import QuaNet
    from quanet.cli.demo_case import summarize_case
    from quanet.data.reviews import movie_reviews
    from quanet.protocols import APP
    from quanet.report.page import check_report, write_report
    from quanet.report.plots import check_suffix, error_by_shift, estimate_against_truth, new_figure, save_figure

    # These first, so that a missing extra or a wrong ending is told before the work.
    check_suffix(output)
    check_report(report)
    network = QuaNet("precomputed", random_state=seed)
    figure, panels = new_figure(2)
    started = time.perf_counter()
    train, test = movie_reviews(source).split(0.6, rng=seed)
    note(f"{train.name}: {len(train)} reviews to learn from, {len(test)} to draw bags from")
    protocol = APP(bag_size=bag_size, repeats=repeats)
    with notes.status("Learning words, weights and the network ..."):
        results, pool = _estimate_by_every_method(train, test, network, protocol, seed=seed)
    bags = len(next(iter(results.values())))
    console.print(_estimates(results))
    console.print(_errors(results, bags, bag_size))
    shown = {name: result for name, result in results.items() if name != "TrainPrevalence"}
    estimate_against_truth(panels[0], shown)
    error_by_shift(panels[1], shown, prior=train.prevalence)
    save_figure(figure, output)
    with notes.status("Writing the report ..."):
        command = f"quanet demo --source {source} --seed {seed} --bag-size {bag_size} --repeats {repeats}"
        settings = (("command", command), ("data", train.name), ("split", f"60 to 40 at random, seed {seed}"))
        case = summarize_case(network, pool, train, test, results, protocol, seed=seed, settings=settings)
        write_report(case, report)
    note(f"Report: {report}. Picture: {output}. It took {time.perf_counter() - started:.0f} s.")


def _estimate_by_every_method(
    train: "Dataset", test: "Dataset", network: "Quantifier", protocol: "APP", *, seed: int
) -> tuple[dict[str, "Results"], "FloatArray"]:
    """Results of every method on the same bags, and the pool's rows; one classifier serves all."""
    import numpy as np
    from sklearn.model_selection import StratifiedKFold

    from quanet.classifiers import cross_fit
    from quanet.evaluation.evaluate import evaluate
    from quanet.methods.baseline import TrainPrevalence
    from quanet.methods.counting import ACC, CC, PACC, PCC
    from quanet.methods.em import EMQ
    from quanet.simplex import encode
    from quanet.text import TextClassifier

    classes = train.classes
    # Reviews of one film lie side by side. The split scattered them over both parts, so the folds must too.
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    classifier, posteriors, held = cross_fit(TextClassifier(), train.X, encode(train.y, classes), classes, cv=folds)
    rows = np.hstack([posteriors, classifier.transform(train.X)[held]])
    pool = np.hstack([classifier.predict_proba(test.X), classifier.transform(test.X)])
    methods: list[Quantifier] = [method("precomputed") for method in (TrainPrevalence, CC, PCC, ACC, PACC, EMQ)]
    results = {}
    for method in (*methods, network):
        width = rows.shape[1] if method is network else len(classes)  # the network reads embeddings too
        fitted = method.fit(rows[:, :width], train.y[held])
        results[type(method).__name__] = evaluate(fitted, pool[:, :width], test.y, protocol, rng=seed)
    return results, pool


def _estimates(results: dict[str, "Results"]) -> Table:
    """Truth beside every method's estimate, for one bag of every other prevalence; the constant one in the title."""
    truth = next(iter(results.values())).truth[:, -1].tolist()
    constant = 100 * results["TrainPrevalence"].estimate[0, -1]
    table = Table(
        title="Positive reviews in single bags, in %: truth, estimates, errors\n"
        f"(TrainPrevalence answers {constant:.1f} every time)",
        box=None,
        padding=(0, 2, 0, 0),
    )
    table.add_column("truth", justify="right", style="bold")
    shown = {name: result for name, result in results.items() if name != "TrainPrevalence"}
    for name in shown:
        table.add_column(name, justify="right")
    for share in sorted(set(truth))[::2]:
        values = [100 * result.estimate[truth.index(share), -1] for result in shown.values()]
        table.add_row(f"{100 * share:.1f}", *(f"{value:.1f} [dim]{value - 100 * share:+.1f}[/]" for value in values))
    return table


def _errors(results: dict[str, "Results"], bags: int, bag_size: int) -> Table:
    """Mean errors over all bags, the best ones marked."""
    metrics = {"ae": "AE", "rae": "RAE", "kld": "KLD"}
    table = Table(title=f"Mean error over {bags} bags of {bag_size}", box=SIMPLE_HEAD)
    table.add_column("method")
    for title in metrics.values():
        table.add_column(title, justify="right")
    means = {name: [float(result.error(metric).mean()) for metric in metrics] for name, result in results.items()}
    best = [min(column) for column in zip(*means.values(), strict=True)]
    for name, row in means.items():
        cells = (f"[bold green]{v:.4f}[/]" if v == low else f"{v:.4f}" for v, low in zip(row, best, strict=True))
        table.add_row(name, *cells)
    return table
