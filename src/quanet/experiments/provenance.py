"""Provenance of results: versions of libraries, and the hardware."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import quanet


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that affect results."""
    found = {"python": platform.python_version(), "quanet": quanet.__version__}
    for name in ("numpy", "scipy", "scikit-learn", "numba", "torch"):
        if name != "torch" or "torch" in sys.modules:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = "?"
    return found


def hardware() -> str:
    """The processor, its cores, and the accelerator if torch is in use."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    found = f"{model}, {os.cpu_count()} cores"
    if "torch" in sys.modules:
        from quanet.nn.device import accelerator

        found += f", {accelerator()}" if accelerator() else ""
    return found
