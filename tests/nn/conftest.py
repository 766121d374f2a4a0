from dataclasses import replace

import pytest
import torch

from quanet import base
from quanet.nn import paper, set_networks


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Networks this small are done before threads have met, and wait for each other on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True, scope="module")
def nothing_is_shrunk():
    """Networks of one epoch know nothing, and would all give the training prevalence (`tests/test_shrinkage.py`)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "shrinkage_of", lambda *_: 0.0)
        yield


@pytest.fixture
def small(monkeypatch):
    """Recipes of a few small batches, so that a fit takes a moment."""
    for module in (paper, set_networks):
        tiny = replace(module.RECIPE, bags=6, sizes=(20, 30), batches=2, stop_sizes=(20, 30), stop_batches=2)
        monkeypatch.setattr(module, "RECIPE", tiny)
