"""These tests are about the methods' own arithmetic, often on weak posteriors; `test_shrinkage.py` has the rest."""

import pytest

from quanet import base


@pytest.fixture(autouse=True, scope="module")
def nothing_is_shrunk():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "shrinkage_of", lambda *_: 0.0)
        yield
