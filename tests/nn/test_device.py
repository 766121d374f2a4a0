import pytest
import torch

from quanet.errors import InvalidSetting
from quanet.nn.device import full_precision, resolve_device, seeded

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("cuda", "mps", "taken"), [(True, True, "cuda"), (True, False, "cuda"), (False, True, "mps"), (False, False, "cpu")]
)
def test_auto_takes_the_fastest_there_is(monkeypatch, cuda, mps, taken):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert resolve_device("auto").type == taken


def test_a_device_by_name_is_that_device():
    assert resolve_device("cpu") == CPU


@pytest.mark.parametrize("device", ["cuda:99", "no such device"])
def test_a_device_that_is_not_there_is_named_with_the_way_out(device):
    with pytest.raises(InvalidSetting, match=rf"device '{device}' is not available: .* Use 'auto' or 'cpu'\."):
        resolve_device(device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is there")
def test_cuda_without_cuda_is_an_error_and_not_the_cpu():
    with pytest.raises(InvalidSetting, match="'cuda' is not available"):
        resolve_device("cuda")


def test_a_seed_gives_the_same_numbers_again():
    drawn = []
    for seed in (1, 1, 2):
        with seeded(CPU, seed):
            drawn.append(torch.rand(5))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_the_global_generator_goes_on_as_if_nothing_had_been_seeded():
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="shape"), seeded(CPU, 1):
        torch.rand(5).reshape(2, 2)
    assert torch.equal(torch.get_rng_state(), before)


def test_full_precision_forbids_short_numbers_and_leaves_settings_as_they_were():
    before = torch.backends.cudnn.allow_tf32
    with full_precision(torch.device("cuda")):
        assert not torch.backends.cudnn.allow_tf32
    with full_precision(CPU):
        assert torch.backends.cudnn.allow_tf32 == before
    assert torch.backends.cudnn.allow_tf32 == before
