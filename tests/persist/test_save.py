"""A folder is written whole or not at all, and one that is not as it was written is refused in so many words."""

import hashlib
import json
import pickle
import re
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from quanet import EMQ, PACC, Gaussians, load, save
from quanet.errors import InvalidModel, InvalidSetting, QuanetWarning
from quanet.persist import save as room
from quanet.persist.load import facts_of
from quanet.persist.trust import canonical_json

X, CODES = Gaussians(distance=2.0).draw([0.4, 0.6], 60, rng=0)


@cache
def fitted():
    return EMQ().fit(X, np.array(["no", "yes"])[CODES])


@pytest.fixture
def model(tmp_path):
    save(fitted(), tmp_path / "model")
    return tmp_path / "model"


def edit(model, change, *, sign=True):
    """Change config.json; with a right checksum, as someone with bad intentions would."""
    config = json.loads((model / "config.json").read_text())
    config.pop("sha256")
    change(config)
    config["sha256"] = hashlib.sha256(canonical_json(config)).hexdigest() if sign else "0" * 64
    (model / "config.json").write_text(json.dumps(config))


def replace_part(model, name, content):
    (model / name).write_bytes(content)
    edit(model, lambda config: config["files"].update({name: hashlib.sha256(content).hexdigest()}))


def test_a_model_is_four_kinds_of_files(model):
    assert sorted(path.name for path in model.iterdir()) == [
        "README.md",
        "arrays.safetensors",
        "config.json",
        "part-0.skops",
        "part-1.skops",
    ]


@pytest.mark.parametrize("name", ["config.json", "arrays.safetensors", "part-0.skops"])
@pytest.mark.parametrize("cut", [0, 1, -1])
def test_a_truncated_file_is_refused(model, name, cut):
    content = (model / name).read_bytes()
    (model / name).write_bytes(content[: cut if cut >= 0 else len(content) - 1])
    with pytest.raises(InvalidModel, match=re.escape(name)):
        load(model)


@pytest.mark.parametrize("name", ["arrays.safetensors", "part-0.skops"])
def test_a_changed_file_is_refused(model, name):
    content = bytearray((model / name).read_bytes())
    content[len(content) // 2] ^= 1
    (model / name).write_bytes(content)
    with pytest.raises(InvalidModel, match=f"{name} has been changed or cut off"):
        load(model)


def test_an_edited_configuration_is_refused(model):
    text = (model / "config.json").read_text()
    (model / "config.json").write_text(text.replace('"max_iter": 1000', '"max_iter": 1'))
    with pytest.raises(InvalidModel, match="edited or damaged"):
        load(model)


@pytest.mark.parametrize("name", ["arrays.safetensors", "part-0.skops"])
def test_a_missing_file_is_named(model, name):
    (model / name).unlink()
    with pytest.raises(InvalidModel, match=f"lacks {name}"):
        load(model)


def test_a_newer_format_says_to_upgrade(model):
    edit(model, lambda config: config.update(quanet_format=2, quanet="9.0"))
    with pytest.raises(InvalidModel, match=r"format 2, written by quanet 9\.0; .* Upgrade quanet"):
        load(model)


@pytest.mark.parametrize("stated", [0, -1, "1", None, True, 1.5])
def test_a_format_that_there_is_not_is_refused(model, stated):
    edit(model, lambda config: config.update(quanet_format=stated))
    with pytest.raises(InvalidModel, match="unknown format"):
        load(model)


def test_another_scikit_learn_is_a_warning(model):
    edit(model, lambda config: config["versions"].update({"scikit-learn": "1.2.3"}))
    with pytest.warns(QuanetWarning, match=r"saved with scikit-learn 1\.2\.3"):
        load(model)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (None, "has no config.json"),
        ("", "not valid JSON"),
        ("{" * 100_000, "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[1]", "a different program"),
        ('{"architectures": ["BertModel"]}', "a different program"),
    ],
    ids=["none", "empty", "open", "deep", "list", "other"],
)
def test_what_is_no_model_is_refused(tmp_path, content, match):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(InvalidModel, match=match):
        load(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidModel, match="does not exist"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "part-0.skops/../../x", "model.pkl", "part-0.skops\n"])
def test_a_file_of_another_name_is_never_opened(model, name):
    edit(model, lambda config: config["files"].update({name: "0"}))
    with pytest.raises(InvalidModel, match="does not belong to a model"):
        load(model)


class Trap:
    """A pickle that would leave a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", ["arrays.safetensors", "part-0.skops"])
def test_a_pickle_is_refused_and_does_not_run(model, name, tmp_path):
    replace_part(model, name, pickle.dumps(Trap(tmp_path / "ran")))
    with pytest.raises(InvalidModel):
        load(model)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"$object": "EMQ"},
        {"$object": "EMQ", "id": 1, "state": {"__class__": 1}},
        {"$object": "evaluate", "id": 1, "state": {}},
        {"$object": "QuanetError", "id": 1, "state": {}},
        {"$object": "os.system", "id": 1, "state": {}},
        {"$object": "subprocess.Popen", "id": 1, "state": {"args": "touch x"}},
        {"$object": "Calibration", "id": 1, "state": {"nonsense": 1}},
        {"$object": 3, "id": 1, "state": {}},
        {"$object": ["EMQ"], "id": 1, "state": {}},
        {"$part": "part-7.skops"},
        {"$part": "../part-0.skops"},
        {"$array": "no such array"},
        {"$array": ["list"]},
        {"$same": 5},
        {"$raw": "rates_", "dtype": "O", "shape": [1]},
        {"$labels": [1], "dtype": "<f8", "shape": [1]},
        {"$labels": ["a"], "dtype": "<U1", "shape": [7]},
        {"$dict": [1]},
        {"$numpy": "load"},
        {"$dtype": "O,O"},
        {"$eval": "1"},
        {"$tuple": [1, 2]},
        {"$scalar": 3},
        {"$packed": "no such array"},
    ],
    ids=json.dumps,
)
def test_a_tree_that_save_does_not_write_is_refused(model, tree):
    edit(model, lambda config: config.update(model=tree))
    with pytest.raises(InvalidModel):
        load(model)


@pytest.mark.parametrize("key", ["files", "model", "versions"])
@pytest.mark.parametrize("value", [None, [], "text", 3])
def test_a_configuration_of_another_shape_is_refused(model, key, value):
    edit(model, lambda config: config.update({key: value}))
    with pytest.raises(InvalidModel, match="edited or damaged"):
        load(model)


def test_a_configuration_with_a_wrong_or_no_checksum_is_refused(model):
    edit(model, lambda config: None, sign=False)
    with pytest.raises(InvalidModel, match="edited or damaged"):
        load(model)
    config = json.loads((model / "config.json").read_text())
    del config["sha256"]
    config["results"] = {"AE": float("nan")}
    (model / "config.json").write_text(json.dumps(config))
    with pytest.raises(InvalidModel, match="edited or damaged"):
        load(model)


def test_an_unfitted_quantifier_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        save(EMQ(), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_what_is_no_estimator_is_not_saved(tmp_path):
    with pytest.raises(InvalidSetting, match="not an estimator"):
        save({"a": 1}, tmp_path / "model")


def test_folders_above_are_made_and_names_may_be_strings(tmp_path):
    save(fitted(), str(tmp_path / "a" / "b"))
    assert load(str(tmp_path / "a" / "b")).predict(X).shape == (2,)


def test_an_empty_folder_is_filled_and_a_link_followed(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "model")
    save(fitted(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "model").predict(X).shape == (2,)


def test_a_folder_of_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InvalidSetting, match="not empty and is not a quanet model"):
        save(fitted(), tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    with pytest.raises(InvalidSetting, match="is a file"):
        save(fitted(), tmp_path / "thesis.tex")


def test_a_model_among_other_things_is_refused(model):
    (model / "thesis.tex").write_text("years of work")
    with pytest.raises(InvalidSetting, match=r"also contains thesis\.tex"):
        save(fitted(), model)


def test_a_model_is_not_replaced_unless_asked(model):
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    with pytest.raises(InvalidSetting, match=r"already contains a model\. Choose .* or pass overwrite=True"):
        save(PACC().fit(X, CODES), model)
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before


def test_a_model_is_replaced_as_a_whole(model):
    posteriors = np.array([[0.9, 0.1], [0.2, 0.8]])
    save(PACC("precomputed").fit(posteriors, [1, 2]), model, overwrite=True)
    assert sorted(path.name for path in model.iterdir()) == ["README.md", "arrays.safetensors", "config.json"]
    assert isinstance(load(model), PACC)
    assert [path.name for path in model.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_failure_while_writing_leaves_the_old_model(model, monkeypatch, failure, at):
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    written = []
    write = room.write_new

    def fail(path, content):
        if len(written) == at:
            path.write_bytes(content[: len(content) // 2])
            raise failure
        written.append(path)
        write(path, content)

    monkeypatch.setattr(room, "write_new", fail)
    with pytest.raises(type(failure)):
        save(PACC().fit(X, CODES), model, overwrite=True)
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before
    assert [path.name for path in model.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failure_while_swapping_leaves_the_old_model(model, monkeypatch, failing):
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    calls = []
    rename = Path.rename

    def fail(self, target):
        calls.append(target)
        if len(calls) == failing:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(KeyboardInterrupt):
        save(PACC().fit(X, CODES), model, overwrite=True)
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before
    assert [path.name for path in model.parent.iterdir()] == ["model"]


def test_a_failure_where_no_model_was_leaves_nothing(tmp_path, monkeypatch):
    def fail(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(room, "write_new", fail)
    with pytest.raises(OSError, match="No space"):
        save(fitted(), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_copied_folder_loads(model, tmp_path):
    shutil.copytree(model, tmp_path / "copy")
    np.testing.assert_array_equal(load(tmp_path / "copy").predict(X), fitted().predict(X))


def test_saving_changes_nothing_in_the_quantifier(tmp_path):
    fitted = EMQ(LogisticRegression()).fit(X, CODES)
    before = fitted.predict(X)
    attributes = dict(vars(fitted))
    save(fitted, tmp_path / "model")
    assert vars(fitted) == attributes
    np.testing.assert_array_equal(fitted.predict(X), before)


def test_results_are_finite_numbers(tmp_path):
    with pytest.raises(InvalidSetting, match="AE = nan"):
        save(fitted(), tmp_path / "model", results={"AE": float("nan")})


def test_a_file_that_cannot_be_read_is_named(model):
    (model / "arrays.safetensors").unlink()
    (model / "arrays.safetensors").mkdir()
    with pytest.raises(InvalidModel, match=r"lacks arrays\.safetensors: Is a directory"):
        load(model)


def test_the_card_says_what_the_model_is(tmp_path):
    fitted = EMQ().fit(X, np.array(["no|t", "yes"])[CODES])
    save(fitted, tmp_path / "model", data="60 points.", results={"AE": 0.01234567}, notes="Use with **care**.")
    card = (tmp_path / "model" / "README.md").read_text()
    for line in [
        "# EMQ",
        "60 points.",
        "| AE | 0.01235 |",
        "| 'no\\|t' | 0.4000 |",
        "Learnt from 60 instances.",
        "| `calibration` | `'bcts'` |",
        "Use with **care**.",
        'quantifier = quanet.load("this/folder")',
    ]:
        assert line in card.splitlines()
    assert "## Held-out errors" in card
    assert "| scikit-learn |" in card


def test_the_card_leaves_out_what_is_not_known(model):
    card = (model / "README.md").read_text()
    assert "## Data" not in card
    assert "## Notes" not in card
    assert "Held-out" not in card


def test_facts_are_kept_and_read_without_loading(tmp_path):
    facts = {"text": "review", "counts": {"no": 24, "yes": 36}, "files": ["a.csv"]}
    save(fitted(), tmp_path / "model", data="Sixty.", facts=facts)
    for part in (tmp_path / "model").glob("*.s*"):
        part.unlink()  # so that nothing could be loaded
    found = facts_of(tmp_path / "model")
    assert {name: found[name] for name in facts} == facts
    assert found["data"] == "Sixty."
    with pytest.raises(InvalidSetting, match="facts must be names, numbers, lists and mappings"):
        save(fitted(), tmp_path / "other", facts={"array": np.ones(2)})


def test_a_model_without_facts_has_none(model):
    edit(model, lambda config: config.pop("facts"))  # as earlier ones were saved
    assert set(facts_of(model)) == {"quanet", "saved", "versions", "data", "results", "notes"}
    assert load(model).classes_.tolist() == ["no", "yes"]
