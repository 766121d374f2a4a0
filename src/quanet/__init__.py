"""quanet: how many, not which. Class prevalences in sets of unlabelled items.

>>> import quanet
>>> things = ["film", "plot", "cast", "score", "scene", "start", "end", "camera", "sound", "joke"]
>>> texts = [f"{word} {thing}" for thing in things for word in ("good", "bad")]
>>> quantifier = quanet.EMQ().fit(texts, ["pos", "neg"] * 10)
>>> quantifier.predict(["a good one", "so good", "quite bad", "good fun"]).round(2)
array([0.25, 0.75])

`__init__.pyi` lists the public names. Each is imported when it is first used, so `import quanet` is fast.
"""

import ast
from importlib import import_module
from pathlib import Path

__version__ = "0.3.0"

# The module of each public name, read from the stub.
MODULE_OF = {
    alias.name: node.module
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}

# The public names that need PyTorch.
NEED_TORCH = {name for name, module in MODULE_OF.items() if module.startswith("quanet.nn.")} - {"QuaNet"}

__all__ = ["__version__", *sorted(MODULE_OF)]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name not in MODULE_OF:
        raise AttributeError(f"module 'quanet' has no attribute {name!r}")
    try:
        module = import_module(MODULE_OF[name])
    except ModuleNotFoundError as error:
        from quanet.errors import missing_torch

        raise missing_torch(error, name) from None
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, without those that need PyTorch if it is not installed: `help(quanet)` uses all of them."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return [name for name in __all__ if name not in NEED_TORCH]
    return __all__
