"""Devices: which one to use, its random numbers and its precision."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import Lock, RLock

import torch
from torch import nn

from quanet.errors import InvalidSetting

TRAINING = RLock()  # torch's random numbers belong to the whole process
PRECISION, MOVING = Lock(), Lock()
_precise: list[bool] = []  # what was set before, once for every thread that needs full precision now


def resolve_device(device: str) -> torch.device:
    """The device a word means: "auto" takes CUDA, then Apple's MPS, then the CPU.

    Examples
    --------
    >>> resolve_device("cpu")
    device(type='cpu')
    """
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as error:
        reason = " ".join(str(error).split("\n")[0].split())
        raise InvalidSetting(f"device {device!r} is not available: {reason}. Use 'auto' or 'cpu'.") from error
    return found


def accelerator() -> str:
    """The name of the accelerator that "auto" takes; nothing if that is the CPU."""
    found = resolve_device("auto").type
    return torch.cuda.get_device_name() if found == "cuda" else found.upper() if found == "mps" else ""


def on_device(network: nn.Module, device: torch.device) -> nn.Module:
    """A network on a device and ready to estimate; one that is so already is not touched, as others may be using it.

    Moving a recurrent network, even to where it is, takes its weights apart for a moment.
    """
    with MOVING:
        where = next(network.parameters()).device
        if network.training or where.type != device.type or device.index not in (None, where.index):
            network.to(device).eval()
    return network


@contextmanager
def seeded(device: torch.device, seed: int) -> Iterator[None]:
    """Inside, torch's random numbers follow from `seed`; outside, they go on as if nothing had been drawn.

    Layers draw their first weights and dropout from torch's global generators and take no other. So only one thread is
    inside at a time, and trainings in several threads give the same networks as one after the other.

    Examples
    --------
    >>> before = torch.get_rng_state()
    >>> with seeded(torch.device("cpu"), 7):
    ...     drawn = torch.rand(3)
    >>> bool((torch.get_rng_state() == before).all())
    True
    """
    accelerator = {"cuda": torch.cuda, "mps": torch.mps}.get(device.type)
    with TRAINING, torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        before = torch.default_generator.get_state()
        before_there = accelerator.get_rng_state() if accelerator else None
        try:
            # Not `torch.manual_seed`, which reseeds every device of the machine.
            torch.default_generator.manual_seed(seed)
            if accelerator:
                accelerator.manual_seed(seed)
            yield
        finally:
            torch.default_generator.set_state(before)
            if accelerator and before_there is not None:
                accelerator.set_rng_state(before_there)


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, torch computes on one core: small steps gain little from more, and lose much where others use them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Inside, cuDNN computes in all 32 bits: its shorter TF32 makes an output depend on the size of the batch."""
    if device.type != "cuda":
        yield
        return
    with PRECISION:
        _precise.append(_allow_tf32(False))
    try:
        yield
    finally:
        with PRECISION:
            before = _precise.pop()  # those that came later have found it switched off
            if not _precise:
                _allow_tf32(before)


def _allow_tf32(allowed: bool) -> bool:
    """Set whether cuDNN may compute in TF32; whether it might before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions announce a change of this setting's name
        before = bool(torch.backends.cudnn.allow_tf32)
        torch.backends.cudnn.allow_tf32 = allowed
    return before
