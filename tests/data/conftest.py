import pytest

from quanet.data import download
from tests.data.server import serving


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(download, "PAUSE", 0.0)
    with serving() as opened:
        yield opened


@pytest.fixture(autouse=True)
def own_folders(monkeypatch, tmp_path):
    """No test sees the data or the cache of whoever runs it."""
    monkeypatch.delenv("QUANET_DATA", raising=False)
    monkeypatch.delenv("QUANET_MIRROR", raising=False)
    monkeypatch.setenv("QUANET_CACHE", str(tmp_path / "cache"))
