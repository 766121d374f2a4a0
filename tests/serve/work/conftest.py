import shlex
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from quanet import WordBags
from quanet.cli import main
from quanet.serve.store import answers, jobs, projects, uploads
from quanet.serve.store.connection import ServiceStore
from quanet.serve.work import project_batches, render_answer
from quanet.serve.work.worker import Worker
from tests.serve.fast_store import open_store

SETTINGS = {"by": ["date:month"], "method": "EMQ", "show": "positive", "label": "sentiment"}
SHARES = {1: 0.8, 2: 0.8, 3: 0.8, 4: 0.3, 5: 0.3, 6: 0.3}  # of positive reviews, by month


def reviews(share, n, seed):
    texts, codes = WordBags(length=12, preference=3.0).draw([1 - share, share], n, rng=seed)
    return texts, np.array(["negative", "positive"])[codes]


def month_table(month, n=60):
    texts, _ = reviews(SHARES[month], n, month)
    days = [f"2024-{month:02}-{1 + at % 28:02}" for at in range(n)]
    return pd.DataFrame({"review": texts, "date": days, "product": ["lamp", "radio"] * (n // 2)})


class Now(dict):
    """The memory of a worker that forgets how long an overview took, so that it never pauses."""

    def __setitem__(self, name, value):
        super().__setitem__(name, 0.0 if name.startswith("seconds") else value)


def no_charts(summary):
    charts = [chart.name for section in summary.sections for chart in section.charts]
    return {name: {"wide-picture": "<svg></svg>", "narrow": "<svg></svg>"} for name in charts}


@dataclass
class Service:
    """A store, a worker without a process of its own, and a project in it."""

    store: ServiceStore
    project: str = ""
    files: dict = field(default_factory=dict)  # name: content

    def upload(self, name, table, kind="batch", project=None):
        content = table if isinstance(table, bytes) else table.to_csv(index=False).encode()
        self.files[name] = content
        blob = self.store.blobs.put_bytes(content, name.partition(".")[2])
        with self.store.write() as connection:
            if kind == "batch":
                return uploads.receive_batch(connection, project or self.project, name, blob, len(content))[0].id
            return uploads.add_file(connection, project or self.project, kind, name, blob, len(content)).id

    def new_project(self, settings):
        with self.store.write() as connection:
            return projects.create_project(connection, "Reviews", settings).id

    def ask(self, kind, payload, project=None, **how):
        with self.store.write() as connection:
            return jobs.enqueue(connection, kind, project or self.project, payload, **how).id

    def work(self, lane="quick"):
        import threading

        worker = Worker(self.store, lane, threading.Event())
        worker._memory = Now()
        worker.run(once=True)

    def job(self, id_):
        with self.store.read() as connection:
            return jobs.job(connection, id_)

    def answer(self, kind, about, project=None):
        with self.store.read() as connection:
            return answers.answer(connection, project or self.project, kind, about)

    def form(self, answer, form):
        return self.store.blobs.path(answer.forms[form]).read_text()

    def batch(self, id_, project=None):
        with self.store.read() as connection:
            return uploads.batch(connection, project or self.project, id_)


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    """A project with a model, six monthly batches, their overview and the monitor."""
    before, project_batches.PAUSE = project_batches.PAUSE, 0.0
    service = Service(open_store(tmp_path_factory.mktemp("service")))
    service.project = service.new_project(SETTINGS)
    texts, labels = reviews(0.5, 300, 0)
    table = pd.DataFrame({"review": texts, "sentiment": labels})
    service.upload("train.csv", table, "training")
    service.ask("check", {"file": 1})
    service.ask("train", {"file": 1}, lane="long")
    service.upload("m1.csv", month_table(1))
    service.work("long")
    service.work()
    for answer in (service.answer("batch", "batch:1"), service.answer("overview", "project")):
        assert service.form(answer, "fragment").count("<svg viewBox") == 4
    drawing, render_answer.draw_charts = render_answer.draw_charts, no_charts  # which takes most of the time
    for month in list(SHARES)[1:]:
        service.upload(f"m{month}.csv", month_table(month))
    service.work()
    yield service
    project_batches.PAUSE, render_answer.draw_charts = before, drawing
    service.store.close()


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """A store with an empty project. Charts are not drawn, which would take most of the time."""
    monkeypatch.setattr(project_batches, "PAUSE", 0.0)
    monkeypatch.setattr(render_answer, "draw_charts", no_charts)
    service = Service(open_store(tmp_path / "data"))
    service.project = service.new_project(SETTINGS)
    yield service
    service.store.close()


@pytest.fixture
def with_model(fresh, served):
    """A fresh project with the model of `served`, which needs no training."""
    with served.store.read() as connection:
        model = projects.project(connection, served.project).model
    copy = fresh.store.blobs.incoming() / "model"
    shutil.copytree(served.store.models.path(model), copy)
    fresh.store.models.put(copy)
    with fresh.store.write() as connection:
        projects.set_model(connection, fresh.project, model)
    return fresh


@pytest.fixture
def command_line(served, tmp_path, monkeypatch, capsysbinary):
    """Run a command, as answers show it, in a folder with the model and the uploaded files."""

    def run(command, *options):
        folder = tmp_path / "folder"
        if not folder.is_dir():
            folder.mkdir()
            with served.store.read() as connection:
                model = projects.project(connection, served.project).model
            shutil.copytree(served.store.models.path(model), folder / "model")
        for name, content in served.files.items():
            Path(folder, name).write_bytes(content)
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", [*shlex.split(command), *options])
        with pytest.raises(SystemExit) as ended:
            main.run()
        out, err = capsysbinary.readouterr()
        return ended.value.code, out.decode(), err.decode()

    return run


def until(condition, seconds=20.0):
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
