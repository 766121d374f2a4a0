import pytest
from hypothesis import settings

from quanet.drift.scale import without_drift

# A first call compiles, so a deadline would measure the compiler; the same examples every time, so a failure stays.
settings.register_profile("quanet", deadline=None, derandomize=True, max_examples=15)
settings.load_profile("quanet")

ESTIMATES_ONLY = {"classifiers", "data", "experiments", "labels", "methods"}
ESTIMATES_ONLY |= {"test_checkpoints.py", "test_lstm.py", "test_set_networks.py"}


def pytest_collection_modifyitems(items):
    """Coverage makes a test that is not array arithmetic take half as long again: trace what adds to it.

    `no_cover` (of pytest-cov) marks slow tests whose lines faster ones run, too; `same_lines` marks slow tests of which
    all cases run the same lines, so that the first is enough.
    """
    seen = set()
    for item in items:
        if item.path.suffix == ".md":
            item.add_marker("no_cover")
        if item.get_closest_marker("same_lines"):
            test = item.nodeid.partition("[")[0]
            if test in seen:
                item.add_marker("no_cover")
            seen.add(test)


@pytest.fixture(autouse=True, scope="module")
def drift_where_it_matters(request):
    """Estimates do not depend on the drift scale, so tests that are about them alone are faster without it."""
    if not {request.path.parent.name, request.path.name} & ESTIMATES_ONLY:
        yield
        return
    with without_drift():
        yield
