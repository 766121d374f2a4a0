"""A real Ray on this machine. It starts once, for all that is asked of it."""

import os
from importlib.util import find_spec

import pytest

from quanet.errors import InvalidExperiment, InvalidSetting
from quanet.experiments.parallel import Serial, engine_of
from quanet.experiments.plan_reader import read_plan
from quanet.experiments.runner import run
from quanet.experiments.store import read_cells

# Found, not imported, which every process that collects tests would do.
pytestmark = pytest.mark.skipif(not find_spec("ray"), reason="the extra ray")


# Ray's own start warns of what it will do one day.
@pytest.mark.filterwarnings("ignore")
def test_a_ray_cluster_gives_the_same_numbers_and_ends_with_the_engine(home):
    import ray

    plan = read_plan(home / "plan.toml")
    list(run(plan, home / "here", Serial()))
    with engine_of("ray", 2) as engine:
        assert engine.slots == 2
        facts = list(run(plan, home / "there", engine))
        assert not [fact.error for fact in facts if fact.error]
        here, there = read_cells(home / "here"), read_cells(home / "there")
        assert list(here) == list(there)
        for cell in here:
            assert (here[cell].results.estimate == there[cell].results.estimate).all()
        engine.submit("wrong", _complain)
        with pytest.raises(InvalidSetting, match="not like this"):
            engine.next()
        engine.submit("dead", os._exit, 9)
        with pytest.raises(InvalidExperiment, match="Ray lost a task"):
            engine.next()
        assert ray.is_initialized()
    assert not ray.is_initialized()


def _complain():
    raise InvalidSetting("not like this")
