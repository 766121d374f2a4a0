import pytest

from quanet import UPP
from quanet.errors import InvalidPlan, nearest
from quanet.evaluation.evaluate import Cell
from quanet.lab.plan import PlanText, read_plan
from tests.lab.conftest import PLAN

TEXT = """\
# A plan.
datasets = [
  "imdb",   # the paper's
  "kindle",
]
runs = 3

[methods.CC]
classifier = "lstm"

[methods.EMQ]
kind = "EMQ" # not "CC"
classifier.steps = [
  { kind = "a" },
  { kind = "b" },
]

[methods."QuaNet.paper"]
"""


@pytest.mark.parametrize(
    ("keys", "word", "line"),
    [
        (("datasets",), "", 2),
        (("datasets",), "imdb", 3),
        (("datasets",), "kindle", 4),
        (("runs",), "", 6),
        (("methods", "CC"), "", 8),
        (("methods", "CC", "classifier"), "", 9),
        (("methods", "EMQ", "kind"), "EMQ", 12),
        (("methods", "EMQ", "classifier"), "b", 15),
        (("methods", "QuaNet.paper"), "", 18),
        (("methods", "QuaNet.paper", "nothing of the kind"), "", 18),
        (("methods", "EMQ", "a setting that is not there"), "", 11),
        ((), "", 1),
        (("nowhere",), "", 1),
    ],
)
def test_everything_has_its_line(keys, word, line):
    assert PlanText(TEXT, "plan.toml").line(keys, word) == line


def test_broken_toml_is_named_with_its_line():
    with pytest.raises(InvalidPlan, match=r"plan.toml is not valid TOML: .*line 2"):
        PlanText("runs = 3\ndatasets = imdb\n", "plan.toml")


def test_a_file_that_is_no_plan_is_named(tmp_path):
    with pytest.raises(InvalidPlan, match="cannot be read: No such file"):
        PlanText.read(tmp_path / "plan.toml")
    (tmp_path / "plan.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidPlan, match="not UTF-8 text"):
        PlanText.read(tmp_path / "plan.toml")


def test_the_nearest_name_ignores_case_and_may_be_none():
    assert nearest("quanet.Paper", ["QuaNet.paper", "CC"]).startswith("Did you mean 'QuaNet.paper'?")
    assert nearest("zebra", ["CC"]) == "Choose from CC."
    assert nearest("zebra", []) == "None are defined."


def read(home, text):
    (home / "plan.toml").write_text(text)
    return read_plan(home / "plan.toml")


def test_a_plan_is_read(home):
    plan = read_plan(home / "plan.toml")
    assert plan.name == "plan"
    assert plan.runs == (0, 1)
    assert (plan.learn, plan.folds) == (0.6, None)
    assert plan.metrics == ("ae", "rae", "kld")
    cells = list(plan.cells)
    assert len(cells) == 6
    assert cells[0] == Cell("words", "CC", 0)
    assert plan.method("SVM-KLD").classifier is None
    assert plan.method("EMQ").part == {"kind": "EMQ"}
    assert plan.place("words").path == f"{home}/words-train.csv::{home}/words-test.csv"


def test_several_classifiers_make_several_methods_and_some_methods_are_for_some_datasets(home):
    plan = read(
        home,
        PLAN.replace("runs = 2", "runs = [7, 3]")
        + '[classifiers.other]\nkind = "TextClassifier"\nC = 1\n'
        + '[methods.PCC]\nclassifier = ["text", "other"]\ndatasets = ["words"]\n',
    )
    assert [method.name for method in plan.methods][-2:] == ["PCC (text)", "PCC (other)"]
    assert plan.runs == (7, 3)


def test_more_than_two_classes_are_drawn_uniformly(home):
    plan = read_plan(home / "plan.toml")
    assert plan.draws(3) == UPP(bag_size=20, repeats=42)
    assert len(plan.draws(2).draw([0, 1] * 30, rng=0)) == 42


# What is changed in the plan, the line it is on, and what the message says.
WRONG = [
    ('kind = "TextClassifier"', 'kind = "TextClasifier"', 10, "Did you mean 'TextClassifier'?"),
    ('kind = "SVMKLD"', 'kind = "SVMKL"', 20, "Did you mean 'SVMKLD'?"),
    ("[methods.EMQ]", "[methods.EQM]", 16, "Did you mean 'EMQ'?"),
    ("[methods.EMQ]", '[methods."QuaNet.papr"]', 16, "Did you mean 'paper'?"),
    ("[methods.EMQ]", '[methods.M]\nkind = "APP"', 17, "APP is not a quantifier"),
    ("[methods.EMQ]", '[methods.M]\nkind = "sklearn.linear_model:Lasso"', 17, "is not a quantifier"),
    ("[methods.EMQ]", '[methods.M]\nkind = "sklearn.linear_model:Laso"', 17, "Did you mean 'Lasso'?"),
    ("[methods.EMQ]", '[methods.M]\nkind = "no_such_module:Method"', 17, "python_path"),
    ("[methods.EMQ]", "[methods.EMQ]\nmax_itr = 3", 17, "Did you mean 'max_iter'?"),
    ("[methods.EMQ]", '[methods.EMQ]\nmax_iter = "many"', 17, "max_iter of EMQ must be int; got 'many'"),
    ("[methods.EMQ]", '[methods.EMQ]\nsolver = "newtn"', 17, "solver of EMQ must be"),
    ("[methods.EMQ]", "[methods.EMQ]\nleak = true", 17, "takes no test data"),
    ("[methods.EMQ]", "[methods.EMQ]\nrefit = 1", 17, "refit must be true or false; got 1"),
    ("[methods.EMQ]", '[methods.EMQ]\nselect = "aee"', 17, "Did you mean 'ae'?"),
    ("[methods.EMQ]", '[methods.EMQ]\ndatasets = ["word"]', 17, "Did you mean 'words'?"),
    ("[methods.EMQ]", "[methods.EMQ]\nclassifier__C = 1", 17, "has no setting 'classifier__C'"),
    ("[methods.EMQ]\n", "[methods.M]\nkind = 3\n", 17, "a part needs steps or a kind"),
    ("C = [0.1, 1.0]", "K = [0.1, 1.0]", 21, "has no setting 'K'"),
    ("C = [0.1, 1.0]", "C = 1", 21, "grid must give each setting a list"),
    ("{ C = [0.1, 1.0] }", "3", 21, "grid must give each setting a list"),
    ("[methods.EMQ]", "[methods.EMQ]\nsettings = { max_itr = 3 }", 17, "Did you mean 'max_iter'?"),
    ('[methods.EMQ]\nclassifier = "text"', '[methods.EMQ]\nclassifier = "txt"', 17, "Did you mean 'text'?"),
    ("embedding_size = 4", "embeding_size = 4", 11, "Did you mean 'embedding_size'?"),
    ('kind = "TextClassifier"', 'kind = "sklearn.svm:LinearSVC"', 11, "has no setting 'embedding_size'"),
    ('kind = "TextClassifier"\nembedding_size = 4', 'kind = "sklearn.svm:LinearSVC"', 10, "has no predict_proba"),
    ('kind = "TextClassifier"\nembedding_size = 4', "steps = []", 10, "steps must be a list of parts"),
    ('kind = "TextClassifier"\nembedding_size = 4', "steps = [3]", 10, "3 is not a part"),
    ('kind = "TextClassifier"\nembedding_size = 4', "", 9, "a part needs steps or a kind"),
    ("embedding_size = 4", 'embedding_size = 4\ndatasets = ["word"]', 12, "Did you mean 'words'?"),
    ("bag_size = 20", 'bag_size = "20"', 6, "bag_size of APP must be int"),
    ("bag_size = 20", 'kind = "AP"', 6, "Did you mean 'APP'?"),
    ("learn = 0.6", "learn = 1.6", 3, "learn must lie between 0 and 1"),
    ("learn = 0.6", "folds = 1", 3, "folds must be at least 2"),
    ("learn = 0.6", "folds = 5\nlearn = 0.6", 4, "either learn"),
    ("learn = 0.6", "", 1, "either learn"),
    ("learn = 0.6", 'learn = "most"', 3, "learn must be a number"),
    ("learn = 0.6", 'learn = 0.6\nmetrics = ["ae", "rea"]', 4, "Did you mean 'rae'?"),
    ("learn = 0.6", "learn = 0.6\nmetrics = []", 4, "a list with at least one value"),
    ("learn = 0.6", 'learn = 0.6\nprotocols = "APP"', 4, "Did you mean 'protocol'?"),
    ("[protocol]", "[protocols]", 5, "Did you mean 'protocol'?"),
    ("runs = 2", "runs = 0", 2, "runs must be a number of runs"),
    ("runs = 2", "runs = [1, -1]", 2, "runs must be a number of runs"),
    ("runs = 2", "runs = [1, 1]", 2, "runs contains 1 twice"),
    ('name = "words", ', 'nam = "words", ', 1, "Did you mean 'name'?"),
    ('name = "words", ', "", 1, "A dataset must be a name, or a table"),
    ("datasets = [", 'datasets = ["words", ', 1, "contains 'words' twice"),
]


@pytest.mark.parametrize(("said", "instead", "line", "message"), WRONG, ids=[f"{w[1][:40]!r}" for w in WRONG])
def test_what_is_wrong_is_named_with_its_line_and_the_nearest_match(home, said, instead, line, message):
    assert said in PLAN
    with pytest.raises(InvalidPlan) as raised:
        read(home, PLAN.replace(said, instead, 1))
    assert f"plan.toml, line {line}: " in str(raised.value)
    assert message in str(raised.value)


def test_a_classifier_may_be_for_some_datasets(home):
    two = PLAN.replace("datasets = [", 'datasets = ["imdb", ').replace("size = 4", 'size = 4\ndatasets = ["words"]')
    plan = read(home, two)
    assert {cell.dataset for cell in plan.cells if cell.method in ("CC", "EMQ")} == {"words"}
    assert {cell.dataset for cell in plan.cells if cell.method == "SVM-KLD"} == {"imdb", "words"}
    with pytest.raises(InvalidPlan, match=r"line 19: EMQ and its classifier 'text' have no dataset in common"):
        read(home, two.replace("[methods.EMQ]", '[methods.EMQ]\ndatasets = ["imdb"]'))


def test_a_plan_without_methods_or_with_tables_that_are_none_is_refused(home):
    with pytest.raises(InvalidPlan, match="has no methods"):
        read(home, PLAN.partition("[methods.CC]")[0])
    with pytest.raises(InvalidPlan, match=r"line 4: protocol must be a table; got 3"):
        read(home, 'datasets = ["imdb"]\nruns = 1\nlearn = 0.5\nprotocol = 3\n')


def test_a_key_changes_with_what_determines_the_cell_and_with_nothing_else(home):
    plan = read_plan(home / "plan.toml")
    cells = list(plan.cells)
    keys = {cell: plan.key(cell, "data") for cell in cells}
    assert len(set(keys.values())) == len(cells)
    same = read(home, PLAN.replace("runs = 2", 'runs = 3\nmetrics = ["ae"]').replace("methods.EMQ", "methods.EMQ "))
    assert {cell: same.key(cell, "data") for cell in cells} == keys
    other = read(home, PLAN.replace("embedding_size = 4", "embedding_size = 5"))
    changed = {cell for cell in cells if other.key(cell, "data") != keys[cell]}
    assert changed == {cell for cell in cells if cell.method != "SVM-KLD"}
    assert all(plan.key(cell, "other data") != keys[cell] for cell in cells)
