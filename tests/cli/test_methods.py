import json
import re

import pytest

from quanet.lab.catalogue import all_methods, describe_method
from quanet.methods.about import FAMILIES


def test_all_methods_are_listed(call):
    code, out, err = call("methods")
    assert code == 0
    for name in ("CC", "EMQ", "KDEyML", "SVMQ", "ReadMe"):
        assert name in out
    assert f"{len(all_methods())} methods." in err


def test_they_can_be_chosen_by_classes_and_family(call):
    _, out, _ = call("methods", "--classes", "3", "--json")
    assert {one["classes"] for one in json.loads(out)} == {"any", "ordered"}
    _, out, _ = call("methods", "--classes", "2", "--family", "Thresholds", "--json")
    assert [one["name"] for one in json.loads(out)] == ["MAX", "MS", "MS2", "T50", "TAC", "X"]
    code, _, err = call("methods", "--family", "threshold")
    assert code == 2
    assert "Choose from thresholds," in " ".join(err.split())


def test_one_is_shown_in_full(call):
    code, out, _ = call("methods", "emq")
    assert code == 0
    for words in ("Expectation maximization", "any number of classes", "Saerens", "'bcts'", "maximum number of steps"):
        assert words in out
    _, out, _ = call("methods", "emq", "--json")
    assert json.loads(out)["settings"]["max_iter"] == {"default": "1000", "means": "maximum number of steps."}


def test_an_unknown_one_is_a_wrong_call_that_names_the_nearest(call):
    code, out, err = call("methods", "kdey")
    assert (code, out) == (2, "")
    assert "Did you mean KDEy" in err


@pytest.mark.parametrize("name", all_methods())
def test_every_method_has_a_family_and_says_what_its_settings_mean(name):
    assert all_methods()[name].about.family in FAMILIES
    found = describe_method(name.upper())
    assert found["name"] == name
    assert found["summary"].endswith(".")
    assert "`" not in found["summary"]
    for setting in found["settings"].values():
        assert setting["means"]
        assert not re.fullmatch(r"(see|as in|as for) \w+\.", setting["means"])
