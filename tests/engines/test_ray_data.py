"""A real Ray on this machine. It starts once, for all that is asked of it."""

import pytest

from quanet.engines import ray_data
from quanet.engines.ray_data import connected, run_ray
from quanet.errors import EngineFailed, InvalidData
from tests.engines.conftest import LAYOUTS, check_how_to, digits, local_digits
from tests.engines.killing import KillOnce

pytest.importorskip("ray", reason="the extra ray is not installed")
# What Ray announces for later versions.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def ray():
    with connected(2) as ray:
        yield ray


def test_partitions_in_any_order_one_repeated_and_one_actor_killed_give_the_same_digits(
    ray, corpus, expected, tmp_path, monkeypatch
):
    monkeypatch.setattr(ray_data, "MOST_BLOCKS", 12)  # fewer tasks: each takes a while to start
    work = KillOnce(corpus.work, corpus.partitions[64][20].id, tmp_path / "killed")
    found = corpus.by_layout(run_ray(work, corpus.all_partitions(), workers=1))
    assert (tmp_path / "killed").exists()
    for layout in LAYOUTS:
        assert corpus.shares(found[layout]) == expected


def test_an_actor_that_dies_again_and_again_is_one_line(ray, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_data, "RETRIES", 0)
    work = KillOnce(None, 0, tmp_path / "killed", always=True)
    with pytest.raises(EngineFailed, match=r"Ray lost an actor 1 times.*fewer --workers"):
        list(run_ray(work, [0], workers=1))


def test_the_how_to_runs_and_its_dataset_has_the_digits_of_one_process(ray, tmp_path, monkeypatch):
    page = check_how_to("ray", tmp_path, monkeypatch)
    assert digits(page["shares"]) == local_digits(page["model"], page["frame"])
    with pytest.raises(InvalidData, match="no column 'brand'"):
        page["quanet"].ray.predict(page["dataset"], page["model"], by="brand")
