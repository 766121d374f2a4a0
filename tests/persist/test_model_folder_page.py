"""docs/reference/model-folder.md lists the files and fields that are really written."""

import json

import numpy as np

import quanet
from quanet import EMQ, TextClassifier
from quanet.cli.info import _plain
from quanet.data.instances import InputColumns
from quanet.persist.load import CONTAINERS, READERS, model_facts
from quanet.persist.save import MANY
from quanet.persist.trust import FORMAT, library_versions
from quanet.workflows.fit import HeldOutErrors, LearnedDrift, Training
from tests.page_fields import listed, sections

PAGE = sections("reference/model-folder.md")


def saved(folder, **about):
    texts = [f"{word} film {number}" for number in range(20) for word in ("good", "bad")]
    quanet.save(EMQ(TextClassifier()).fit(texts, ["yes", "no"] * 20), folder, **about)
    return json.loads((folder / "config.json").read_text())


def test_files_and_fields_of_the_configuration(tmp_path):
    config = saved(tmp_path / "m")
    assert listed(PAGE["config.json"], "field")[: len(config)] == list(config)
    assert config["quanet_format"] == FORMAT
    assert f"version of this format: {FORMAT} |" in PAGE["config.json"]
    versions = next(row for row in PAGE["config.json"].splitlines() if row.startswith("| `versions`"))
    assert all(f"`{name}`" in versions for name in library_versions())
    files = listed(PAGE["Files"], "file")
    assert {path.name for path in (tmp_path / "m").iterdir()} <= {*files}
    card = (tmp_path / "m" / "README.md").read_text()
    assert "## Classes" in card


def test_kinds_of_nodes():
    assert set(listed(PAGE["The tree"], "key")) == {*READERS, *CONTAINERS}
    assert f"{MANY:,} or more" in PAGE["The tree"]


def test_facts_of_a_training():
    training = Training(
        method="EMQ",
        files=("reviews.csv",),
        inputs=InputColumns("review"),
        label="sentiment",
        rows=2,
        counts={"no": 1, "yes": 1},
        skipped={},
        duplicates=0,
        conflicts=0,
        errors=HeldOutErrors(0.1, 0.2, 3, 4, 0.3),
        holds_out=True,
        advice=(),
        seconds=1.0,
        seed=0,
        drift=LearnedDrift("clusters", 8, 0.1, "Eight clusters."),
    )
    facts = training.facts("quanet fit reviews.csv")
    section = PAGE["Facts that `quanet fit` saves"]
    assert listed(section, "field") == list(facts)
    for part in ("held_out", "drift"):
        [row] = [row for row in section.splitlines() if row.startswith(f"| `{part}`")]
        assert all(f"`{name}`" in row for name in facts[part]), part


def test_what_info_prints(tmp_path):
    config = saved(tmp_path / "m", facts={"rows": 40})
    printed = _plain(model_facts(tmp_path / "m"))
    own = listed(PAGE["Read it without loading"], "field")
    assert set(printed) == {*own, *config} - {"model", "sha256"}
    assert isinstance(printed["bytes"], int)
    assert np.isclose(sum(printed["prior"]), 1)
