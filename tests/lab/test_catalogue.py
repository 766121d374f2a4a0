import importlib.util
from pathlib import Path

import pytest

import quanet
from quanet import Gaussians
from quanet.base import Quantifier
from quanet.errors import InvalidData
from quanet.lab.catalogue import list_methods, listed_methods
from quanet.methods.about import FAMILIES, About
from quanet.methods.aggregative import AggregativeQuantifier

ROOT = Path(__file__).parents[2]


def test_every_public_method_is_listed_once():
    public = {name: value for name in quanet.__all__ if isinstance(value := getattr(quanet, name), type)}
    methods = {
        name
        for name, kind in public.items()
        if issubclass(kind, Quantifier) and kind not in (Quantifier, AggregativeQuantifier)
    }
    assert list_methods()["name"].tolist() == sorted(methods)


def test_entries_read_from_the_source_are_those_of_the_classes():
    for name, about in listed_methods().items():
        assert about == getattr(quanet, name).about


def test_every_entry_says_what_it_must():
    for name in list_methods()["name"]:
        about = getattr(quanet, name).about
        assert isinstance(about, About)
        assert about.family in FAMILIES
        assert about.classes in {"two", "any", "ordered"}
        assert about.needs in {"posteriors", "features", "text", "nothing"}
        assert about.reference
        assert about.cost


def test_the_page_of_methods_is_up_to_date():
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "docs" / "make_reference.py")
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    assert maker.PAGE.read_text() == maker.render(maker.MEASURED.read_text()), "run: python docs/make_reference.py"


def test_methods_of_two_classes_are_those_that_refuse_more():
    X, y = Gaussians(k=3).draw([0.3, 0.3, 0.4], 60, rng=0)
    two = list_methods().query("classes == 'two'")["name"].tolist()
    assert {"CDE", "DeBias", "MAX", "MS", "MS2", "T50", "TAC", "X"} <= set(two)
    for name in two:
        with pytest.raises(InvalidData, match=rf"OneVsRest\({name}\(\)\)"):
            getattr(quanet, name)().fit(X, y)
