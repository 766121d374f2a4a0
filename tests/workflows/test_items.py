from functools import partial

import numpy as np
import pandas as pd
import pytest

from quanet import CC, EMQ, PACC, Gaussians, HDx
from quanet.corpus import layout
from quanet.corpus.batch_reader import BatchReader
from quanet.corpus.grouped_inputs import reading_of
from quanet.corpus.reading import read_state
from quanet.data.instances import InputColumns
from quanet.data.periods import Key
from quanet.data.streams import TableSource
from quanet.drift.scale import without_drift
from quanet.errors import InvalidData, InvalidSetting
from quanet.uncertainty.adjusted_posteriors import AdjustedPosteriors
from quanet.workflows.items import check_items, write_items
from quanet.workflows.predict import estimate_shares


@pytest.fixture(scope="module")
def training():
    return Gaussians(k=3).draw([0.3, 0.3, 0.4], 400, rng=0)


@pytest.fixture(scope="module")
def pool():
    parts = [Gaussians(k=3).draw(share, 150, rng=seed) for seed, share in enumerate(([0.8, 0.1, 0.1], [0.2, 0.4, 0.4]))]
    return np.concatenate([X for X, _ in parts])


@pytest.fixture(scope="module")
def fitted(training):
    with without_drift():
        return {kind.__name__: kind().fit(*training) for kind in (EMQ, PACC, CC)}


CODES = np.repeat([0, 1], 150)


@pytest.mark.parametrize("name", ["EMQ", "PACC", "CC"])
def test_the_mean_of_a_group_is_its_estimate(fitted, pool, name):
    read = fitted[name].read(pool).values
    estimate = np.stack([fitted[name].predict(pool[g == CODES]) for g in (0, 1)])
    adjusted = AdjustedPosteriors(fitted[name], read, CODES, estimate).of(read, CODES)
    means = np.stack([adjusted[g == CODES].mean(axis=0) for g in (0, 1)])
    np.testing.assert_allclose(means, estimate, atol=1e-7)
    np.testing.assert_allclose(adjusted.sum(axis=1), 1)


def adjust_all(quantifier, pool, estimate, weights=None):
    """Posteriors of a pool that is one bag."""
    read, codes = quantifier.read(pool).values, np.zeros(len(pool), dtype=int)
    return AdjustedPosteriors(quantifier, read, codes, estimate, weights).of(read, codes)


def test_emq_needs_no_more_than_the_rule_of_saerens(fitted, pool):
    emq = fitted["EMQ"]
    estimate = emq.predict(pool)
    adjusted = adjust_all(emq, pool, estimate[None])
    joint = emq.represent(pool) / emq.prior_ * estimate
    np.testing.assert_allclose(adjusted, joint / joint.sum(axis=1, keepdims=True), atol=1e-6)


def test_weights_weigh_the_mean(fitted, pool):
    emq, weights = fitted["EMQ"], np.arange(300) + 1.0
    wanted = np.array([[0.2, 0.5, 0.3]])
    adjusted = adjust_all(emq, pool, wanted, weights)
    np.testing.assert_allclose(weights @ adjusted / weights.sum(), wanted[0], atol=1e-7)


def test_a_class_that_is_absent_stays_absent(fitted, pool):
    emq = fitted["EMQ"]
    assert adjust_all(emq, pool, np.array([[0.0, 0.5, 0.5]]))[:, 0].max() < 1e-6


def test_a_quantifier_without_posteriors_says_nothing_about_single_instances(training):
    with without_drift():
        hdx = HDx().fit(training[0], training[1] > 0)
    with pytest.raises(InvalidSetting, match="does not use posteriors"):
        AdjustedPosteriors(hdx, training[0], np.zeros(len(training[0]), dtype=int), hdx.prior_[None])


@pytest.fixture(scope="module")
def table(pool):
    made = pd.DataFrame(pool, columns=["a", "b", "c"]).assign(id=np.arange(300), shop=np.where(CODES, "y", "x"))
    made.loc[[3, 299], "b"] = np.nan
    made.loc[7, "shop"] = None
    return made


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "xlsx"])
def test_every_row_is_written_in_order_with_its_reason(fitted, table, tmp_path, ending):
    table.to_csv(tmp_path / "new.csv", index=False)
    source, keys = TableSource([tmp_path / "new.csv"]), [Key("shop", required=True)]
    reader = BatchReader(fitted["EMQ"], InputColumns(features=("a", "b", "c")), keys=keys)
    reading = reading_of(read_state(reader, source), fitted["EMQ"])
    shares = estimate_shares(fitted["EMQ"], reading, keys=keys, drift=False)
    path = tmp_path / f"items.{ending}"
    assert write_items(path, reader, source, reading, shares, keep=["id"]) == 300
    readers = {
        "csv": pd.read_csv,
        "parquet": pd.read_parquet,
        "jsonl": partial(pd.read_json, lines=True),
        "xlsx": pd.read_excel,
    }
    found = readers[ending](path)
    assert found.columns.tolist() == ["row", "id", "shop", "class", "p_0", "p_1", "p_2", "skipped"]
    assert found["row"].tolist() == list(range(1, 301))
    assert found["id"].astype(int).tolist() == table["id"].tolist()
    why = found["skipped"]
    assert (why[3], why[299], why[7]) == ("a number is missing", "a number is missing", "no group")
    assert why.notna().sum() == 3
    used = found[why.isna()]
    means = used.groupby("shop")[["p_0", "p_1", "p_2"]].mean().to_numpy()
    np.testing.assert_allclose(means, shares.interval.estimate, atol=2e-6)
    assert (used["class"].astype(int) == used[["p_0", "p_1", "p_2"]].to_numpy().argmax(axis=1)).all()


def test_above_the_cap_posteriors_agree_with_the_shares_of_all_rows(fitted, tmp_path, monkeypatch):
    emq, inputs, pool = fitted["EMQ"], InputColumns(features=("a", "b", "c")), Gaussians(k=3)
    for seed in range(4):
        X, _ = pool.draw([0.6, 0.1, 0.3], 1000, rng=seed)
        pd.DataFrame(X, columns=["a", "b", "c"]).to_parquet(tmp_path / f"{seed}.parquet")
    source, reader = TableSource([tmp_path / "*.parquet"]), BatchReader(emq, inputs)
    monkeypatch.setattr(layout, "MOST_ROWS", 1000)
    reading = reading_of(read_state(reader, source), emq)
    assert reading.merged is not None
    shares = estimate_shares(emq, reading, drift=False)
    assert write_items(tmp_path / "items.csv", reader, source, reading, shares) == 4000
    means = pd.read_csv(tmp_path / "items.csv")[["p_0", "p_1", "p_2"]].to_numpy().mean(axis=0)
    np.testing.assert_allclose(means, shares.total.estimate, atol=2e-3)


def test_columns_are_checked_before_the_work(table, tmp_path):
    table.rename(columns={"a": "row"}).to_csv(tmp_path / "new.csv", index=False)
    source = TableSource([tmp_path / "new.csv"])
    with pytest.raises(InvalidSetting, match="writes a column 'row' of its own"):
        check_items(source, ["row"], [], np.array([0, 1]))
    with pytest.raises(InvalidData, match="no column 'idd'"):
        check_items(source, ["idd"], [], np.array([0, 1]))
    with pytest.raises(InvalidSetting, match="standard input"):
        check_items(TableSource(["-"]), [], [], np.array([0, 1]))
