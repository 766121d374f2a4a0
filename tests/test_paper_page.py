"""docs/paper.md: every equation of the paper has an entry, and everything that the page names exists."""

import importlib
import re
from functools import cache
from pathlib import Path

import pytest

import quanet

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "paper.md").read_text()
TEXT = re.sub(r"^```.*?^```", "", PAGE, flags=re.MULTILINE | re.DOTALL)
NAMES = sorted(set(re.findall(r"`([A-Za-z_]\w*(?:\.\w+)*)(?:\([^`]*\))?`", TEXT)))
FILES = sorted(set(re.findall(r"\]\(\.\./src/(quanet/[\w/]+)\.py\)", TEXT)))


@cache
def modules():
    return [importlib.import_module(name.replace("/", ".")) for name in FILES]


@pytest.mark.parametrize("number", range(1, 9))
def test_every_numbered_equation_has_its_formula_code_and_example(number):
    section = re.search(rf"^### Equation \({number}\): .*?(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
    assert section, number
    assert re.search(r"^\$\$.+\$\$$", section[0], re.MULTILINE)
    assert ">>> " in section[0]
    assert set(re.findall(r"`(\w+)`", section[0])) & set(NAMES) or number == 2


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_public_or_in_a_file_that_the_page_links(name):
    first, *rest = name.split(".")
    found = [place for place in [quanet, *modules()] if hasattr(place, first)]
    assert found, name
    one = getattr(found[0], first)
    for part in rest:
        one = getattr(one, part)


def test_functions_are_where_the_page_says():
    found = re.findall(r"`(\w+)[\w.]*` in\s\[\w+\.py\]\(\.\./src/(quanet/[\w/]+)\.py\)", TEXT)
    assert len(found) > 5
    for name, path in found:
        assert hasattr(importlib.import_module(path.replace("/", ".")), name), name


def test_the_network_has_the_sizes_of_the_paper():
    from quanet.nn.networks import PaperNetwork, TextLSTM
    from quanet.nn.paper import RECIPE
    from quanet.nn.row_maker import HELD_OUT

    network = PaperNetwork(101)
    assert (network.lstm.hidden_size, network.lstm.bidirectional) == (64, True)
    dense = [layer for layer in network.head if hasattr(layer, "in_features")]
    assert [(layer.in_features, layer.out_features) for layer in dense] == [(136, 1024), (1024, 512), (512, 2)]
    settings = quanet.QuaNet.paper().get_params()
    assert (RECIPE.bags, RECIPE.sizes, RECIPE.batches, RECIPE.lr) == (100, (500, 500), 100, 1e-4)
    assert (settings["max_epochs"] * RECIPE.batches, settings["patience"], HELD_OUT) == (20_000, 20, 0.4)
    text = TextLSTM(10, 2)
    assert (text.words.embedding_dim, text.lstm.hidden_size, text.embed[0].out_features) == (100, 128, 1024)
    assert text.embed[3].out_features == 100
