import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Networks this small are done before threads have met, and wait for each other on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
