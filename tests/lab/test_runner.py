import json

import numpy as np
import pytest

from quanet import APP, EMQ, SVMKLD, DeepSets, GridSearchQ, TextClassifier, evaluate
from quanet.errors import InvalidExperiment, InvalidPlan, InvalidSetting, QuanetWarning
from quanet.evaluation.evaluate import Cell
from quanet.lab import work
from quanet.lab.parallel import Serial
from quanet.lab.plan import load, read_plan
from quanet.lab.runner import RowsOf, Selection, run, state_of
from quanet.lab.store import Store, from_npz, pack, read_all, read_cells, read_manifest, read_packed, to_npz
from tests.lab.conftest import PLAN, write_words


def run_all(home, text=None, **options):
    if text is not None:
        (home / "plan.toml").write_text(text)
    return list(run(read_plan(home / "plan.toml"), home / "out", Serial(), **options))


def same(one, other):
    return list(one) == list(other) and all(
        (one[cell].results.estimate == other[cell].results.estimate).all() for cell in one
    )


def test_a_plan_gives_what_its_parts_give_by_hand(home):
    run_all(home)
    cells = read_cells(home / "out")
    plan = read_plan(home / "plan.toml")
    parts = load(plan.place("words"))
    protocol = APP(bag_size=20, repeats=2)
    for seed in (0, 1):
        learn, held = parts.train.split(0.6, rng=seed)
        classifier = TextClassifier(embedding_size=4).fit(learn.X, learn.y)
        method = EMQ("precomputed").fit(classifier.predict_proba(held.X), held.y)
        results = evaluate(method, classifier.predict_proba(parts.test.X), parts.test.y, protocol, rng=seed)
        found = cells[Cell("words", "EMQ", seed)]
        np.testing.assert_allclose(found.results.estimate, results.estimate, atol=1e-7)
        np.testing.assert_array_equal(found.results.truth, results.truth)
        np.testing.assert_allclose(found.prior, parts.train.prevalence)
        first, second = work.split_of(parts.train, 0.6, seed)
        assert parts.train.take(second).X == held.X
        search = GridSearchQ(
            SVMKLD(), {"C": [0.1, 1.0]}, protocol=protocol, cv=[(first, second)], refit=False, random_state=seed
        ).fit(parts.train.X, parts.train.y)
        results = evaluate(search, parts.test.X, parts.test.y, protocol, rng=seed)
        np.testing.assert_allclose(cells[Cell("words", "SVM-KLD", seed)].results.estimate, results.estimate, atol=1e-7)


def test_folds_share_rows_over_runs_and_networks_read_embeddings(home):
    text = PLAN.replace("learn = 0.6", "folds = 3") + '[methods.DeepSets]\nclassifier = "text"\nmax_epochs = 1\n'
    (home / "plan.toml").write_text(text)
    some = Selection({"method": ["CC", "EMQ"]}), Selection({"method": ["DeepSets"], "run": ["1"]})
    facts = [fact for one in some for fact in run_all(home, only=one, device="cpu")]
    rows = [fact.work for fact in facts if isinstance(fact.work, RowsOf)]
    assert rows == [RowsOf("words", "text", 0)]  # no run differs from another, so they are made once
    parts = load(read_plan(home / "plan.toml").place("words"))
    from quanet.classifiers.cross_fitting import cross_fit
    from quanet.simplex import encode

    classes = parts.train.classes
    fitted, posteriors, held = cross_fit(
        TextClassifier(embedding_size=4), parts.train.X, encode(parts.train.y, classes), classes, cv=3
    )
    X = np.hstack([posteriors, fitted.transform(parts.train.X)[held]])
    X_test = np.hstack([fitted.predict_proba(parts.test.X), fitted.transform(parts.test.X)])
    method = DeepSets("precomputed", max_epochs=1, random_state=1, device="cpu").fit(X, parts.train.y[held])
    results = evaluate(method, X_test, parts.test.y, APP(bag_size=20, repeats=2), rng=1)
    found = read_cells(home / "out")[Cell("words", "DeepSets", 1)].results
    np.testing.assert_allclose(found.estimate, results.estimate, atol=1e-7)


def test_time_is_counted_rows_once(home):
    run_all(home)
    seconds = state_of(home / "out").seconds
    abouts = [about for _, about in read_all(home / "out").values()]
    assert len({about["rows"] for about in abouts}) == 3  # of two runs, and none
    shared = [about for about in abouts if about["rows"]]
    assert seconds["rows"] == pytest.approx(sum(about["seconds"]["rows"] for about in shared) / 2)
    assert seconds["fit"] == pytest.approx(sum(about["seconds"]["fit"] for about in abouts))


def test_what_is_done_is_not_done_again_and_a_changed_method_alone_is(home):
    first = run_all(home)
    assert (first[0].done, first[0].total, first[-1].done) == (0, 6, 6)
    before = read_cells(home / "out")
    assert len(run_all(home)) == 1
    again = run_all(home, PLAN.replace("C = [0.1, 1.0]", "C = [10.0]"))
    assert [fact.work for fact in again[1:]] == [Cell("words", "SVM-KLD", 0), Cell("words", "SVM-KLD", 1)]
    assert len(run_all(home, PLAN)) == 1  # what the first plan asked for is still there
    assert same(read_cells(home / "out"), before)


def test_changed_data_run_again(home):
    run_all(home)
    write_words(home, n=160)
    load.cache_clear()
    assert sum(isinstance(fact.work, Cell) for fact in run_all(home)) == 6


def test_a_part_of_a_plan_can_be_run(home):
    plan = read_plan(home / "plan.toml")
    facts = run_all(home, only=Selection.parse("method=CC,run=1", plan))
    assert [fact.work for fact in facts if isinstance(fact.work, Cell)] == [Cell("words", "CC", 1)]
    assert list(read_cells(home / "out")) == [Cell("words", "CC", 1)]
    states = state_of(home / "out").cells
    assert states[Cell("words", "CC", 1)] == "done"
    assert list(states.values()).count("missing") == 5
    assert len(list(Selection.parse("", plan).values)) == 0
    for text, message in (("methd=CC", "Did you mean 'method'"), ("run=7", "no run '7'"), ("method=C", "no method")):
        with pytest.raises(InvalidSetting, match=message):
            Selection.parse(text, plan)


def test_a_method_that_fails_is_recorded_and_the_others_go_on(home):
    text = PLAN + '[methods.BAD]\nkind = "DeepSets"\nclassifier = "text"\ndevice = "quantum"\n'
    facts = run_all(home, text)
    failed = [fact for fact in facts if fact.error]
    assert [fact.work for fact in failed] == [Cell("words", "BAD", 0), Cell("words", "BAD", 1)]
    assert "device 'quantum' is not available" in failed[0].error
    assert facts[-1].done == facts[-1].total == 8
    assert len(read_cells(home / "out")) == 6
    assert "device 'quantum'" in state_of(home / "out").cells[Cell("words", "BAD", 0)]
    record = next((home / "out" / "failed").iterdir())
    assert "Traceback" in json.loads(record.read_text())["traceback"]
    assert sum(bool(fact.error) for fact in run_all(home)) == 2  # tried again, for it may have been the machine


def test_a_classifier_that_fails_takes_its_methods_with_it(home):
    text = (
        PLAN + '[classifiers.deep]\nkind = "LSTMClassifier"\ndevice = "quantum"\n[methods.PCC]\nclassifier = "deep"\n'
    )
    failed = [fact for fact in run_all(home, text) if fact.error]
    assert [fact.work for fact in failed] == [Cell("words", "PCC", 0), Cell("words", "PCC", 1)]
    assert len(read_cells(home / "out")) == 6


def test_a_damaged_cell_and_damaged_rows_are_set_aside_and_made_again(home):
    run_all(home)
    before = read_cells(home / "out")
    cell = next((home / "out" / "cells").glob("words--CC--0--*"))
    cell.write_bytes(cell.read_bytes()[:100])
    for rows in (home / "out" / "rows").iterdir():
        rows.write_bytes(b"nothing")
    with pytest.warns(QuanetWarning) as warned:
        facts = run_all(home)
    assert len([one for one in warned if "will be computed again" in str(one.message)]) == 2
    assert [type(fact.work).__name__ for fact in facts[1:]] == ["RowsOf", "Cell"]
    assert same(read_cells(home / "out"), before)
    assert cell.with_name(f"{cell.name}.bad").exists()


def test_a_full_disk_stops_the_run_and_keeps_what_is_there(home, monkeypatch):
    written = []

    def write_or_not(path, content):
        if len(written) == 2:
            raise InvalidExperiment(f"{path} cannot be written: No space left on device.")
        written.append(path)
        work_write(path, content)

    work_write = work.write
    monkeypatch.setattr("quanet.lab.store.write", write_or_not)
    with pytest.raises(InvalidExperiment, match="No space left"):
        run_all(home)
    monkeypatch.undo()
    assert list(read_cells(home / "out")) == [Cell("words", "CC", 0)]
    run_all(home)
    assert len(read_cells(home / "out")) == 6


def test_a_dataset_that_is_not_there_is_named_with_its_line(home):
    with pytest.raises(InvalidPlan, match=r"plan.toml, line 1: .*does not exist"):
        run_all(home, PLAN.replace("words-train", "wrds-train"))
    with pytest.raises(InvalidPlan, match=r"line 2: .*(?s:imdb)"):
        run_all(home, PLAN.replace("datasets = [", 'datasets = [\n"imbd", '))
    (home / "words-test.csv").write_text("text,label\nfine,awful\n")
    load.cache_clear()
    with pytest.raises(InvalidPlan, match="the class 'awful'"):
        run_all(home, PLAN)


def test_the_packed_form_reads_as_the_folder_does(home):
    run_all(home)
    files = pack(home / "out", home / "packed")
    assert sorted(file.name for file in files) == sorted(file.name for file in (home / "packed").iterdir())
    assert len(files) == 4
    assert same(read_cells(home / "packed"), read_cells(home / "out"))
    about = read_packed(home / "packed")[Cell("words", "SVM-KLD", 1)][1]
    assert about["learnt"]["best_setting_"]["C"] in ("0.1", "1.0")
    assert {"python", "numpy", "scikit-learn"} <= set(about["versions"])
    assert "cores" in about["hardware"]
    assert set(about["seconds"]) == {"fit", "evaluate", "rows"}
    assert set(state_of(home / "packed").cells.values()) == {"done"}
    run_all(home, PLAN.partition("[methods.SVM")[0])
    pack(home / "out", home / "packed")
    assert len(list((home / "packed").iterdir())) == 3  # no file is left of a method that is no more
    with pytest.raises(InvalidExperiment, match="already packed"):
        pack(home / "packed", home / "twice")


def test_packed_results_are_not_overwritten_by_a_run(home):
    run_all(home)
    pack(home / "out", home / "packed")
    with pytest.raises(InvalidExperiment, match="contains packed results"):
        next(run(read_plan(home / "plan.toml"), home / "packed", Serial()))
    assert len(read_cells(home / "packed")) == 6


def test_methods_that_read_different_rows_are_told(home):
    plan = read_plan(home / "plan.toml")
    run_all(home, only=Selection.parse("method=CC", plan))
    for rows in (home / "out" / "rows").iterdir():  # as if made on another machine, with other last digits
        arrays, about = from_npz(rows)
        rows.write_bytes(to_npz(arrays, about | {"digest": "other"}, compressed=False))
    run_all(home, only=Selection.parse("run=1", plan))
    assert state_of(home / "out").unlike == [("words", 1, "text")]


def test_nothing_to_pack_is_said(home):
    plan = read_plan(home / "plan.toml")
    facts = run(plan, home / "out", Serial())
    next(facts)
    facts.close()
    with pytest.raises(InvalidExperiment, match="no finished cell"):
        pack(home / "out", home / "packed")


LEAK = """
from quanet import CC

class Peeking(CC):
    def fit(self, X, y, *, leaked):
        self.seen_ = len(leaked[1])
        return super().fit(X, y)
"""


def test_own_classes_lie_beside_the_plan_and_may_be_handed_the_test_set_if_the_plan_says_so(home):
    (home / "own_methods_of_a_test.py").write_text(LEAK)
    text = PLAN.replace("runs = 2", "runs = 1\npython_path = '.'")
    run_all(home, text + '[methods.P]\nkind = "own_methods_of_a_test:Peeking"\nclassifier = "text"\nleak = true\n')
    cells = read_cells(home / "out")
    np.testing.assert_array_equal(
        cells[Cell("words", "P", 0)].results.estimate, cells[Cell("words", "CC", 0)].results.estimate
    )
    about = Store(home / "out").read_cell(Cell("words", "P", 0), _key(home, "P"))[1]
    assert about["leak"] is True
    assert read_manifest(home / "out")["aside"] == ["P"]


def _key(home, method):
    manifest = json.loads((home / "out" / "experiment.json").read_text())
    return next(key for _, name, _, key in manifest["cells"] if name == method)


def test_naive_bayes_by_grid_as_a_shared_classifier_and_as_a_methods_own(home):
    write_words(home, "three", k=3)
    steps = """steps = [
  { kind = "sklearn.feature_extraction.text:TfidfVectorizer" },
  { kind = "sklearn.naive_bayes:MultinomialNB" },
]
"""
    text = (
        PLAN.partition("[classifiers")[0].replace("words", "three").replace("runs = 2", "runs = 1")
        + "[classifiers.bayes]\ngrid = { multinomialnb__alpha = [0.01, 1.0] }\n"
        + steps
        + '[methods.EMQ]\nclassifier = "bayes"\ngrid = [{ calibration = ["None", "bcts"] }]\n'
        + '[methods.EMQ-NB]\nkind = "EMQ"\ncalibration = "None"\n'
        + "grid = { classifier__multinomialnb__alpha = [0.01, 1.0] }\n[methods.EMQ-NB.classifier]\n"
        + steps
    )
    assert not [fact.error for fact in run_all(home, text) if fact.error]
    cells = read_cells(home / "out")
    assert cells[Cell("three", "EMQ", 0)].results.estimate.shape == (42, 3)
    about = Store(home / "out").read_cell(Cell("three", "EMQ-NB", 0), _key(home, "EMQ-NB"))[1]
    assert about["learnt"]["best_setting_"]["classifier__multinomialnb__alpha"] in ("0.01", "1.0")
