"""A small model and a table in 1, 7 and 64 partitions, as files that an engine reads."""

import doctest
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from quanet import EMQ, save
from quanet.corpus.batch_reader import BatchReader, ReadingWork
from quanet.corpus.grouped_inputs import reading_of
from quanet.corpus.model_inputs import ModelFiles
from quanet.corpus.reading import collect
from quanet.corpus.state_files import from_bytes
from quanet.data.instances import InputColumns
from quanet.data.periods import parse_key
from quanet.data.streams import TableSource, partitions_of
from quanet.workflows.predict import estimate_shares

LAYOUTS = (1, 7, 64)
KEYS = ("product", "date:month")


@dataclass
class Corpus:
    """A model, a table, its partitions by layout, and the work."""

    home: Path
    table: pd.DataFrame
    work: ReadingWork
    partitions: dict

    def shares(self, states):
        """The shares of these states."""
        quantifier = self.work.model.quantifier()
        reading = reading_of(collect(iter(states)), quantifier)
        return digits(estimate_shares(quantifier, reading, keys=self.work.keys))

    def all_partitions(self):
        """The partitions of all layouts, in any order, one of each layout twice."""
        every = [one for layout in LAYOUTS for one in [*self.partitions[layout], self.partitions[layout][-1]]]
        random.Random(0).shuffle(every)
        return every

    def by_layout(self, states):
        """States of all layouts, divided into those of each."""
        found = {layout: [] for layout in LAYOUTS}
        ids = {one.id: layout for layout in LAYOUTS for one in self.partitions[layout]}
        for state in states:
            (name,) = from_bytes(state).partitions
            found[ids[name]].append(state)
        return found


def digits(shares):
    """Shares and intervals, bit by bit."""
    arrays = [shares.interval.estimate, shares.interval.lower, shares.interval.upper, shares.counted]
    arrays += [] if shares.totals is None else [shares.totals]
    total = (shares.total.estimate, shares.total.lower, shares.total.upper)
    return [shares.groups, shares.sizes.tolist(), *(array.tobytes() for array in (*arrays, *total))]


def check_how_to(name, folder, monkeypatch):
    """Run the examples of a how-to in an empty folder; the names that it defines."""
    monkeypatch.chdir(folder)
    page = Path(__file__).parents[2] / "docs" / "how-to" / f"{name}.md"
    examples = doctest.DocTestParser().get_doctest(page.read_text(), {}, name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    failed, tried = runner.run(examples, clear_globs=False)
    assert tried
    assert not failed
    return examples.globs


def local_digits(model, frame):
    """Digits of texts by product, read in this process."""
    keys = (parse_key("product"),)
    state = BatchReader(model, InputColumns("text"), keys=keys)(frame.astype(object), partition="all")
    return digits(estimate_shares(model, reading_of(state, model), keys=keys))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    home = tmp_path_factory.mktemp("corpus")
    rng = np.random.default_rng(0)
    n = 1500
    labels = rng.integers(0, 2, n)
    numbers = rng.normal(labels[:, None] * 1.5, 1.0, (n, 2))
    save(EMQ().fit(numbers[:300], labels[:300]), home / "model", facts={"features": ["x", "z"]})
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, n - 300), "D")
    table = pd.DataFrame(
        {
            "x": numbers[300:, 0],
            "z": numbers[300:, 1],
            "product": rng.choice(["tea", "coffee"], n - 300),
            "date": days.strftime("%d.%m.%Y"),
            "views": rng.integers(0, 5, n - 300),
        }
    )
    partitions = {}
    for layout in LAYOUTS:
        (home / str(layout)).mkdir()
        for number, rows in enumerate(np.array_split(rng.permutation(len(table)), layout)):
            table.iloc[rows].to_parquet(home / f"{layout}/{number}.parquet")
        partitions[layout] = partitions_of(TableSource([home / str(layout) / "*.parquet"]))
    inputs, keys = InputColumns(features=("x", "z")), tuple(map(parse_key, KEYS))
    work = ReadingWork(ModelFiles.of(home / "model"), inputs, keys, (None, "%d.%m.%Y"), "views")
    return Corpus(home, table, work, partitions)


@pytest.fixture(scope="session")
def expected(corpus):
    """The shares of the table, read in this process from one file."""
    return corpus.shares([corpus.work(one) for one in corpus.partitions[1]])
