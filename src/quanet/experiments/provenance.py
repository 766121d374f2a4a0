"""Where numbers come from: the versions and the machine that made them."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import quanet


def versions() -> dict[str, str]:
    """Of Python and of the libraries that numbers depend on."""
    found = {"python": platform.python_version(), "quanet": quanet.__version__}
    for name in ("numpy", "scipy", "scikit-learn", "numba", "torch"):
        if name != "torch" or "torch" in sys.modules:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = "?"
    return found


def hardware() -> str:
    """Processor, cores, and the accelerator if networks were in use."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    there = f"{model}, {os.cpu_count()} cores"
    if "torch" in sys.modules:
        from quanet.nn.device import accelerator

        there += f", {accelerator()}" if accelerator() else ""
    return there
