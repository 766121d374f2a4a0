"""`quanet demo`: estimate shares in sets of real reviews, and compare them with the truth."""

import time
from pathlib import Path
from typing import Annotated

import typer

from quanet.cli.console import note, notes, write_answer, write_report


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Chart of estimates against the truth.")] = Path(
        "demo.png"
    ),
    report: Annotated[Path, typer.Option(help="Report: .html, .md or .json.")] = Path("demo.html"),
    source: Annotated[str, typer.Option(help="Dataset: imdb or rotten_tomatoes.")] = "imdb",
    seed: Annotated[int, typer.Option(help="Random seed of the split and the bags.")] = 0,
    bag_size: Annotated[int, typer.Option(min=1, help="Number of reviews in a bag.")] = 500,
    repeats: Annotated[int, typer.Option(min=1, help="Number of bags at each of 21 prevalences.")] = 20,
) -> None:
    """Train on movie reviews, then estimate the share of positive reviews in sets with very different shares.

    Example: quanet demo --seed 1 --output chart.png --report demo.html
    """
    from quanet import QuaNet
    from quanet.data.reviews import movie_reviews
    from quanet.files import check_writable
    from quanet.protocols import APP
    from quanet.report.charts import check_suffix, error_by_shift, estimate_against_truth, new_figure, save_figure
    from quanet.report.demo import summarize_demo
    from quanet.report.render import check_report
    from quanet.workflows.demo import run_demo

    # First, so that a missing extra, a wrong ending or a wrong folder is reported before the work.
    check_suffix(output)
    check_report(report)
    check_writable(output)
    check_writable(report)
    network = QuaNet()
    figure, panels = new_figure(2)
    started = time.perf_counter()
    train, test = movie_reviews(source).split(0.6, rng=seed)
    note(f"{train.name}: {len(train)} reviews for training, {len(test)} for bags")
    with notes.status("Training the classifier and the methods ..."):
        demonstration = run_demo(train, test, network, APP(bag_size=bag_size, repeats=repeats), seed=seed)
    shown = {name: result for name, result in demonstration.results.items() if name != "TrainPrevalence"}
    estimate_against_truth(panels[0], shown)
    error_by_shift(panels[1], shown, prior=train.prevalence)
    save_figure(figure, output)
    command = f"quanet demo --source {source} --seed {seed} --bag-size {bag_size} --repeats {repeats}"
    settings = (("command", command), ("data", train.name), ("split", f"60 to 40 at random, seed {seed}"))
    summary = summarize_demo(demonstration, settings=settings)
    write_report(summary, report)
    note(f"Chart: {output}. Finished in {time.perf_counter() - started:.0f} s.")
    write_answer(summary, "table", None)
