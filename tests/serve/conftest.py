import logging
import os

import pytest


@pytest.fixture(autouse=True)
def without_waiting_for_the_disk(monkeypatch):
    """Tests kill processes, but do not cut the power."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def logged():
    """What the service logs."""
    records, handler, logger = [], logging.Handler(), logging.getLogger("quanet")
    handler.emit = records.append
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield records
    logger.setLevel(before)
    logger.removeHandler(handler)
