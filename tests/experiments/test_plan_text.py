import pytest

from quanet.errors import InvalidPlan, nearest
from quanet.experiments.plan_text import PlanText

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
