"""A real Ray on this machine. It starts once, for all that is asked of it, by experiments too."""

import os
from importlib.util import find_spec

import pytest

from quanet.corpus import ray_data
from quanet.corpus.ray_data import run_ray
from quanet.errors import EngineFailed, InvalidData, InvalidExperiment
from quanet.lab.parallel import Serial, engine_of
from quanet.lab.plan import read_plan
from quanet.lab.runner import run
from quanet.lab.store import read_cells
from tests.corpus.conftest import LAYOUTS, check_how_to, digits, local_digits
from tests.corpus.killing import KillOnce, refuse
from tests.lab.conftest import ONE_CLASSIFIER, write_words

# Found, not imported, which every process that collects tests would do.
pytestmark = [
    pytest.mark.skipif(not find_spec("ray"), reason="the extra ray is not installed"),
    pytest.mark.filterwarnings("ignore"),  # what Ray announces for later versions
]


@pytest.fixture(scope="module")
def engine():
    """The engine of experiments, which starts Ray and ends it."""
    import ray

    with engine_of("ray", 2) as engine:
        assert ray.is_initialized()
        yield engine
    assert not ray.is_initialized()


def test_partitions_in_any_order_one_repeated_and_one_actor_killed_give_the_same_digits(
    engine, corpus, expected, tmp_path, monkeypatch
):
    monkeypatch.setattr(ray_data, "MOST_BLOCKS", 4)  # fewer tasks: each takes a while to start
    work = KillOnce(corpus.work, corpus.partitions[64][20].id, tmp_path / "killed")
    found = corpus.by_layout(run_ray(work, corpus.all_partitions(), workers=1))
    assert (tmp_path / "killed").exists()
    for layout in LAYOUTS:
        assert corpus.shares(found[layout]) == expected


def test_an_actor_that_dies_again_and_again_is_one_line(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_data, "RETRIES", 0)
    work = KillOnce(None, 0, tmp_path / "killed", always=True)
    with pytest.raises(EngineFailed, match=r"Ray lost an actor 1 times.*fewer --workers"):
        list(run_ray(work, [0], workers=1))


def test_the_how_to_runs_and_its_dataset_has_the_digits_of_one_process(engine, tmp_path, monkeypatch):
    page = check_how_to("ray", tmp_path, monkeypatch)
    assert digits(page["shares"]) == local_digits(page["model"], page["frame"])
    with pytest.raises(InvalidData, match="no column 'brand'"):
        page["quanet"].ray.predict(page["dataset"], page["model"], by="brand")


def test_an_experiment_on_ray_gives_the_same_numbers(engine, tmp_path):
    write_words(tmp_path)
    (tmp_path / "plan.toml").write_text(ONE_CLASSIFIER)
    plan = read_plan(tmp_path / "plan.toml")
    list(run(plan, tmp_path / "here", Serial()))
    assert engine.slots == 2
    facts = list(run(plan, tmp_path / "there", engine))
    assert not [fact.error for fact in facts if fact.error]
    here, there = read_cells(tmp_path / "here"), read_cells(tmp_path / "there")
    assert list(here) == list(there)
    for cell in here:
        assert (here[cell].results.estimate == there[cell].results.estimate).all()
    engine.submit("wrong", refuse, None)
    with pytest.raises(InvalidData, match="not this one"):
        engine.next()
    engine.submit("dead", os._exit, 9)
    with pytest.raises(InvalidExperiment, match="Ray lost a task"):
        engine.next()
