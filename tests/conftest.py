import gc
import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from coverage import Coverage
from hypothesis import settings

from tests.untraced import untrace_libraries

# A process of the suite imports this before coverage starts, which would trace every line of these in vain.
if "PYTEST_XDIST_WORKER" in os.environ:
    for name in ("torch", "sklearn.ensemble", "scipy.stats", "matplotlib.figure", "numba", "skops.io", "typer", "ray"):
        with suppress(ImportError):
            import_module(name)
    untrace_libraries()

from quanet.drift.scale import without_drift

# A first call compiles, so a deadline would measure the compiler; the same examples every time, so a failure stays.
settings.register_profile("quanet", deadline=None, derandomize=True, max_examples=15)
settings.load_profile("quanet")

ESTIMATES_ONLY = {"classifiers", "data", "lab", "labels", "methods"}
ESTIMATES_ONLY |= {"test_training.py", "test_lstm.py", "test_set_networks.py"}


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Test files have no doctests, so they are not searched for any."""
    return [found for found in (yield) if not isinstance(found, DoctestModule)]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Import test files without coverage, if those of `src` were imported with it: half the time."""
    coverage = Coverage.current() if any(Path(one).name == "src" for one in collector.config.args) else None
    if coverage is None:
        return (yield)
    coverage.stop()
    try:
        return (yield)
    finally:
        coverage.start()


def pytest_make_parametrize_id(val, argname):
    """Bytes are no name: those of a packed file contain the time, and every process must collect the same names."""
    return argname if isinstance(val, bytes) else None


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


def pytest_collection_finish(session):
    """What was imported stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def drift_where_it_matters(request):
    """Estimates do not depend on the drift scale, so tests that are about them alone are faster without it."""
    if not {request.path.parent.name, request.path.name} & ESTIMATES_ONLY:
        yield
        return
    with without_drift():
        yield
