"""What a report was made with."""

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("quanet", "numpy", "scipy", "scikit-learn", "torch")


def reproduction(settings: Sequence[tuple[str, str]], model: Mapping[str, Any] | None = None) -> tuple[Any, ...]:
    """Settings as they were given, what is known of the model, and the versions, unless they were given too."""
    given = {name for name, _ in settings}
    known = [(f"model: {name}", str(value)) for name, value in (model or {}).items() if f"model: {name}" not in given]
    versions = "" if "versions" in given else ", ".join(f"{name} {number}" for name, number in _versions())
    return (*settings, *known, *((("versions", versions),) if versions else ()))


def _versions() -> list[tuple[str, str]]:
    found = [("Python", platform.python_version())]
    for name in PACKAGES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return found
