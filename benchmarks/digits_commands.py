"""Cases for `digits.py`: every verb of the command line, on made files: what is printed, and every file written."""

import contextlib
import functools
import io
import json
import os
import runpy
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import quanet as q
from digits_facts import facts, of_csv, of_html, of_markdown, plain, printed, sentence
from digits_tables import houses, judged, reviews, stream

REPORTS = "--force --report out.html", "--force --report out.md", "--force --report out.json"
PLAN = """\
datasets = [{ name = "words", path = "words-train.csv::words-test.csv" }]
runs = 2
learn = 0.6
metrics = ["ae", "rae"]

[protocol]
bag_size = 20
repeats = 2

[classifiers.text]
kind = "TextClassifier"
embedding_size = 4

[methods.CC]
classifier = "text"

[methods.EMQ]
classifier = "text"

[methods.PACC]
classifier = "text"

[methods.SVM-KLD]
kind = "SVMKLD"
grid = { C = [0.1, 1.0] }
"""


class Desk:
    """A folder, the command line called in it, and the facts of all calls."""

    def __init__(self, home: Path) -> None:
        self.home, self.found = home, {}  # type: Path, dict[str, Any]
        self.seen: dict[Path, int] = {}

    def call(self, line: str, stdin: str = "") -> None:
        """One call: its exit code, what it prints, and the files it writes."""
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        before = sys.argv, sys.stdin
        sys.argv, sys.stdin = ["quanet", *line.split()], io.TextIOWrapper(io.BytesIO(stdin.encode()))
        code: Any = 0
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
                runpy.run_module("quanet", run_name="__main__")
        except SystemExit as ended:
            code = ended.code
        except Exception as error:  # noqa: BLE001
            code = type(error).__name__
        finally:
            sys.argv, sys.stdin = before
        self.found[line] = {
            "code": facts(code),
            "out": self.shown(out.buffer.getvalue().decode()),
            "err": sentence(err.buffer.getvalue().decode(), str(self.home)),
            "files": {str(file.relative_to(self.home)): self.read(file) for file in self.written()},
        }

    def written(self) -> Iterator[Path]:
        """Files that are new or changed, except those within models and experiments."""
        for file in sorted(self.home.iterdir()):
            changed = file.stat().st_mtime_ns
            if file.is_file() and self.seen.get(file) != changed:
                self.seen[file] = changed
                yield file

    def shown(self, text: str) -> Any:
        """What is printed: JSON, CSV, a page or a table."""
        home = str(self.home)
        with contextlib.suppress(json.JSONDecodeError):
            return facts(json.loads(text), home)
        if text.lstrip().lower().startswith(("<!doctype", "<table", "<html")):
            return of_html(text, home)
        first = text.split("\n", 1)[0]
        if first.count(",") >= 2 and " " not in first:
            return of_csv(plain(text, home), home)
        return printed(text, home)

    def read(self, file: Path) -> Any:
        """What is in a file that was written; of pictures only that they are there."""
        home = str(self.home)
        if file.suffix in (".png", ".pdf"):
            return "picture"
        if file.suffix == ".parquet":
            return facts(pd.read_parquet(file), home)
        text = file.read_text()
        if file.suffix in (".html", ".svg"):
            return of_html(text, home)
        if file.suffix == ".md":
            return of_markdown(text, home)
        if file.suffix == ".csv":
            return of_csv(plain(text, home), home)
        return self.shown(text)

    def put(self, **tables: pd.DataFrame) -> None:
        """Write tables as CSV."""
        for name, table in tables.items():
            table.to_csv(self.home / f"{name}.csv", index=False)
        list(self.written())


def at_desk(work: Callable[[Desk], None]) -> dict[str, Any]:
    """Facts of all the calls of a piece of work, in a folder of its own."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as made:
        home = Path(made).resolve()
        os.environ["QUANET_CACHE"], os.environ["QUANET_DATA"] = str(home / "cache"), str(home / "data")
        (home / "data").mkdir()
        os.chdir(home)
        try:
            desk = Desk(home)
            work(desk)
        finally:
            os.chdir(before)
    return desk.found


def texts(desk: Desk) -> None:
    """Two classes of texts: fit, predict, evaluate, monitor."""
    new = reviews(330, 0.7, 3, bad=True).drop(columns="sentiment")
    desk.put(train=reviews(260, 0.45, 1, bad=True), test=reviews(220, 0.4, 2), new=new, tiny=new[:4])
    odd = reviews(120, 0.5, 4)
    odd["sentiment"] = np.where(np.arange(len(odd)) % 5, odd["sentiment"], odd["sentiment"].str.upper() + " ")
    desk.put(odd=odd, days=new.assign(date=pd.to_datetime(new["date"], errors="coerce").dt.strftime("%d/%m/%Y")))
    few = "--text review --label sentiment"
    desk.call(f"fit train.csv {few} --method EMQ -o model")
    desk.call(f"fit odd.csv {few} --method PACC -o odd --normalize-labels")
    desk.call(f"fit odd.csv {few} --method PACC -o variants --set cv=3")
    desk.call(f"fit tiny.csv {few} -o tiny")
    desk.call("info model")
    desk.call("info model --json")
    for more in ("", "--by product", "--by date:month", "--by product --by date:month", "--level 0.8"):
        for form in ("json", "table", "csv"):
            desk.call(f"predict model new.csv {more} --format {form}")
    for form in ("html", "md"):
        desk.call(f"predict model new.csv --by date:week --format {form}")
    for report in REPORTS:
        desk.call(f"predict model new.csv --by product --by date:month {report}")
    desk.call("predict model new.csv --by date:month --plot trend.svg -o shares.parquet")
    desk.call("predict model days.csv --by date:quarter --date-format %d/%m/%Y --seed 4")
    desk.call("predict model tiny.csv")
    desk.call("predict model train.csv")
    desk.call("predict model -", stdin=new[:60].to_csv(index=False))
    desk.call("predict model missing.csv")
    desk.call("predict variants new.csv --by product")
    small = "--bag-size 40 --repeats 2"
    for protocol in ("app", "upp", "npp", "dirichlet:0.5", "by:product", "by:date:month"):
        desk.call(f"evaluate model test.csv --protocol {protocol} --label sentiment {small}")
    desk.call(f"evaluate model test.csv {small} --format table --bags bags.csv")
    desk.call(f"evaluate model test.csv {small} --format csv --level 0.8")
    desk.call(f"evaluate model train.csv {small}")
    for report in REPORTS:
        desk.call(f"evaluate model test.csv {small} {report}")


def monitored(desk: Desk) -> None:
    """A stream of texts with two changes."""
    desk.put(train=reviews(260, 0.45, 1), stream=stream([0.3] * 5 + [0.8] * 5 + [0.5] * 4))
    desk.put(later=stream([0.5, 0.2, 0.2], 40).assign(date="2024-06-03"))
    desk.call("fit train.csv --text review --label sentiment --method PACC -o model")
    for form in ("json", "table", "csv"):
        desk.call(f"monitor model stream.csv --by date:week --format {form}")
    desk.call("monitor model stream.csv --by date:month --level 0.8 --class negative --tolerance 0.01")
    desk.call("monitor model stream.csv --by date:week --window 14 --half-life 10 --plot band.svg")
    desk.call("monitor model stream.csv --by date:week --state watch")
    desk.call("monitor model later.csv --by date:week --state watch --restart")
    for report in REPORTS:
        desk.call(f"monitor model stream.csv --by date:week {report}")


def methods(desk: Desk) -> None:
    """Numbers, three classes and other methods: fit, predict, evaluate."""
    desk.put(train=houses(300, 0.4, 1), test=houses(400, 0.6, 2))
    desk.put(train3=houses(300, 0.6, 1, 3), test3=houses(400, 0.5, 2, 3))
    desk.put(words=reviews(200, 0.6, 1, 3), new=reviews(200, 0.3, 2, 3))
    for name in ("PACC", "KDEyML", "SVMQ", "TrainPrevalence"):
        for k, columns in (("", "x0"), ("3", "x0,x1")):
            model = f"{name}{k}"
            desk.call(f"fit train{k}.csv --features {columns} --label sold --method {name} -o {model}")
            desk.call(f"predict {model} test{k}.csv --by year")
            desk.call(f"evaluate {model} test{k}.csv --repeats 20 --bag-size 30 --protocol upp")
            desk.call(f"info {model} --json")
    tiny = "--set max_epochs=1 --set cv=2 --device cpu"
    desk.call(f"fit words.csv --text review --label sentiment --method DeepSets {tiny} -o net")
    desk.call("predict net new.csv --by date:month --report net.html")
    desk.call("evaluate net new.csv --label sentiment --protocol upp --repeats 20 --bag-size 20")
    desk.call("fit train3.csv --label sold --features x0 --method DyS -o wrong")
    desk.call("predict PACC test3.csv --features x0,x1")


def compared(desk: Desk) -> None:
    """Several methods on the same bags."""
    desk.put(train=houses(300, 0.4, 1), test=houses(400, 0.6, 2))
    desk.put(train3=houses(300, 0.6, 1, 3), test3=houses(400, 0.5, 2, 3))
    desk.put(words=reviews(200, 0.6, 1, 3), new=reviews(200, 0.3, 2, 3))
    small, three = "--label sold --bag-size 30 --repeats 2", "--bag-size 30 --repeats 30 --protocol upp"
    for form in ("json", "table", "csv"):
        desk.call(f"compare train.csv test.csv {small} --methods cc,acc,emq,dys --format {form}")
    desk.call(f"compare train.csv test.csv {small} --methods quick --protocol upp --metric rae")
    for report in REPORTS:
        desk.call(f"compare train.csv test.csv {small} --methods cc,pacc,emq {report}")
    desk.call(f"compare train3.csv test3.csv {three} --label sold --methods cc,pacc,emq,kdeyml --metric kld")
    desk.call(f"compare words.csv new.csv {three} --methods cc,emq --label sentiment --text review")


def corrections(desk: Desk) -> None:
    """Judges, the catalogue, and datasets."""
    desk.put(judged=judged(500, 0.3, 0), judged3=judged(500, 0.4, 1, 3))
    desk.put(few=judged(200, 0.2, 2), apart=judged(200, 1.0, 5))
    base = "--human human --judge judge"
    for file in ("judged", "judged3", "few"):
        for more in ("", "--by model", "--by date:month", "--by model --same-errors", "--chosen", "--level 0.8"):
            desk.call(f"correct {file}.csv {base} {more}")
    for form in ("json", "table", "csv"):
        desk.call(f"correct judged.csv {base} --by model --class negative --format {form}")
    desk.call("correct judged.csv --human human --judge score --scores")
    desk.call("correct judged.csv --human human --judge score --scores --by model")
    desk.call(f"correct judged.csv {base} --calibration apart.csv")
    desk.call(f"correct judged.csv {base} --calibration apart.csv --by model --normalize-labels")
    desk.call("correct judged.csv --human human --judge missing")
    for report in REPORTS:
        desk.call(f"correct judged3.csv {base} --by model {report}")
    for more in ("", "--json", "--classes 3", "--family thresholds", "emq", "nothing"):
        desk.call(f"methods {more}")
    for name in q.__all__:
        if isinstance(one := getattr(q, name), type) and issubclass(one, q.Quantifier):
            desk.call(f"methods {name} --json")
    desk.call("datasets list")
    desk.put(words=reviews(120, 0.4, 1))
    desk.call("datasets show words.csv --text review --label sentiment")


def experiments(desk: Desk) -> None:
    """A small plan: run, show, pack, tables, figures."""
    for seed, part in enumerate(("train", "test")):
        table = reviews(150, 0.5, seed)[["review", "sentiment"]].set_axis(["text", "label"], axis=1)
        desk.put(**{f"words-{part}": table})
    (desk.home / "plan.toml").write_text(PLAN)
    list(desk.written())
    desk.call("experiment run plan.toml --jobs 1 --only method=CC")
    desk.call("experiment run plan.toml --jobs 1")
    desk.call("experiment show plan")
    desk.call("experiment pack plan -o packed")
    desk.call("experiment show packed")
    for form in ("terminal", "markdown", "latex", "html"):
        desk.call(f"experiment table packed --format {form} --tests --metric ae --metric kld")
    desk.call("experiment table plan -o table.md --blocks datasets")
    for kind in ("estimates", "shift", "bias", "error", "ranks"):
        desk.call(f"experiment figure plan --kind {kind} -o {kind}.svg")


def demo(desk: Desk) -> None:
    """The demo, which takes half a minute and a package of reviews: recorded with ``--only demo`` only."""
    desk.call("demo --source rotten_tomatoes --bag-size 50 --repeats 1 --report demo.json")


def units() -> dict[str, Callable[[], Any]]:
    """All of them, by part and name."""
    made = (texts, monitored, methods, compared, corrections, experiments)
    return {f"commands/{one.__name__}": functools.partial(at_desk, one) for one in made} | {
        "demo/reviews": functools.partial(at_desk, demo)
    }
