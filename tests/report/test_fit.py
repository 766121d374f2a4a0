from quanet.data.instances import InputColumns
from quanet.report.fit import (
    counts_sentence,
    counts_table,
    drift_line,
    errors_table,
    limits_line,
    summarize_training,
    which_error,
)
from quanet.workflows.fit import HeldOutErrors, LearnedDrift, Training


def made_training(**changes):
    errors = HeldOutErrors(0.0123, 0.2, 500, 100, 0.25)
    facts = {
        "method": "EMQ",
        "files": ("train.csv",),
        "inputs": InputColumns("text"),
        "label": "label",
        "rows": 12,
        "counts": {"neg": 4, "pos": 6},
        "skipped": {"no text": 2},
        "duplicates": 2,
        "conflicts": 1,
        "errors": errors,
        "holds_out": True,
        "advice": (),
        "seconds": 1.5,
        "seed": 0,
    }
    return Training(**facts | changes)


def test_of_many_classes_the_largest_are_shown():
    counts = {f"c{n}": n + 1 for n in range(30)}
    rows = counts_table(counts).rows
    assert [name for name, _ in rows[:3]] == ["c29", "c28", "c27"]
    assert rows[-1][0] == "19 others"
    assert counts_sentence({"neg": 1, "pos": 3}) == "Classes: neg 1 (25.0 %), pos 3 (75.0 %)"


def test_errors_are_compared_with_a_plain_count_and_a_constant_answer():
    errors = HeldOutErrors(0.0123, 0.2, 500, 100, 0.25)
    assert [entries[0].text for _, entries in errors_table(errors, "EMQ").rows] == [
        "1.2 points",
        "20.0 points",
        "25.0 points",
    ]
    assert len(errors_table(errors, "CC").rows) == 2


def test_the_report_states_errors_data_and_advice():
    summary = summarize_training(made_training(advice=("This is a poor model.", "Label more.")))
    assert "Expected mean error of a share: 1.2 points; of a plain count of labels (CC): 20.0 points." in summary.answer
    [caution] = summary.cautions
    assert (caution.severity, caution.sentence, caution.advice) == ("warning", "This is a poor model.", "Label more.")
    [data] = [section for section in summary.sections if section.title == "Training data"]
    assert data.paragraphs[1:] == (
        "10 of 12 rows: 2 skipped (no text).",
        "2 rows are copies of earlier ones (20.0 %); copies share a fold. "
        "Check the labels: copies of 1 row have different ones.",
    )
    assert summary.data()["held_out"]["error"] == 0.0123


def test_the_smallest_shares_that_can_be_told_from_0_are_listed():
    limits = {"neg": (0.0213, 0.0091), "pos": (0.35, 0.05)}
    training = made_training(limits=limits, counts={"neg": 1, "pos": 99})
    summary = summarize_training(training)
    [table] = [table for table in summary.tables if table.corner == "class"]
    assert [entries[2].text for _, entries in table.rows] == ["2.1 % / 0.9 %", "35.0 % / 5.0 %"]
    assert table.columns[2].title == "smallest share told from 0, in 500 / 5,000 rows"
    assert limits_line(training) == (
        "Smallest share told from 0, in 500 / 5,000 rows: pos 35.0 % / 5.0 % and neg 2.1 % / 0.9 %"
    )
    found = summary.data()["smallest_shares"]
    assert found == {"500": {"neg": 0.0213, "pos": 0.35}, "5000": {"neg": 0.0091, "pos": 0.05}}


def test_classes_that_the_model_can_miss_are_a_note():
    # 2.1 % is more than the class has in the training data; 35 % is more than 5 %; 1 % is neither.
    limits = {"neg": (0.0213, 0.0091), "pos": (0.35, 0.05), "none": (0.01, 0.01), "odd": (1.0, 1.0)}
    training = made_training(limits=limits, counts={"neg": 1, "pos": 50, "none": 40, "odd": 9})
    [note] = summarize_training(training).cautions
    assert note.severity == "note"
    assert note.sentence == (
        "In 500 rows the model can miss a class with a small share: 'odd' at any share, 'pos' below 35.0 % (50.0 % "
        "in training) and 'neg' below 2.1 % (1.0 % in training)."
    )
    assert "0.0 % does not mean that the class is absent" in note.advice
    assert summarize_training(made_training(limits={"neg": (0.02, 0.01), "pos": (0.02, 0.01)})).cautions == ()


def test_limits_that_are_unknown_are_called_so():
    summary = summarize_training(made_training())
    assert limits_line(made_training()).endswith("unknown (too few held-out posteriors of some class)")
    assert limits_line(made_training(holds_out=False)).endswith("unknown (EMQ has no held-out instances)")
    assert [entries[2].text for _, entries in summary.tables[-1].rows] == ["--", "--"]
    assert summary.data()["smallest_shares"] == {}


def test_a_sentence_says_which_of_the_two_errors_applies():
    learned = LearnedDrift("clusters", 8, 0.365, "On 8 clusters ...")
    [sentence] = which_error(made_training(drift=learned))
    assert sentence == (
        "Expect an error of about 1.2 points if new data differ from the training data in class shares only, and of "
        "about 36.5 points (at a share of 50 %) if they differ as the left-out clusters of the training data do."
    )
    assert which_error(made_training(drift=LearnedDrift("", 0, None, "Typical."))) == ()
    assert which_error(made_training(drift=learned, errors=None)) == ()


def test_unknown_errors_are_explained():
    assert "since there are too few held-out instances" in summarize_training(made_training(errors=None)).answer
    without = made_training(errors=None, holds_out=False, method="CC")
    assert "since CC has no held-out instances" in summarize_training(without).answer


def test_the_report_states_how_the_drift_scale_was_learned():
    learned = LearnedDrift("clusters", 8, 0.052, "On 8 clusters of the training data, each left out once, ...")
    summary = summarize_training(made_training(drift=learned))
    [section] = [section for section in summary.sections if section.title == "Drift"]
    assert section.paragraphs[1] == "On 8 clusters of the training data, each left out once, ..."
    assert summary.data()["drift"] == {
        "kind": "clusters",
        "parts": 8,
        "bias": 0.052,
        "sentence": "On 8 clusters of the training data, each left out once, ...",
    }
    assert drift_line(made_training()) == "Drift: unknown; intervals do not include it."
