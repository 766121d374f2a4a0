"""Defaults of options from `quanet.toml` in the working directory.

A table for every verb, keys as the options are called: ``[predict]``, ``by = ["product", "date:month"]``. An option
given on the command line wins, then the environment (``QUANET_PREDICT_LEVEL``), then this file.
"""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from quanet.files import parse_toml

FILE = "quanet.toml"


def read_config(folder: Path, command: Any) -> dict[str, Any]:
    """What `quanet.toml` in a folder says, by the names of a command's parameters; empty where there is no such file.

    Raises a ValueError that says what is wrong with the file.
    """
    try:
        said = parse_toml((folder / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ValueError(f"{FILE} cannot be read: {error}") from error
    return _defaults(said, command, "")


def _defaults(said: Mapping[str, Any], command: Any, path: str) -> dict[str, Any]:
    commands: Mapping[str, Any] = getattr(command, "commands", {})
    options = {name: param for param in command.params for name in _names(param)}
    found: dict[str, Any] = {}
    for key, value in said.items():
        where = f"{path}{key}"
        if key in commands and isinstance(value, Mapping):
            found[key] = _defaults(value, commands[key], f"{where}.")
        elif key.replace("_", "-") in options:
            param = options[key.replace("_", "-")]
            found[param.name] = _value(value, param)
        else:
            raise ValueError(f"{FILE}: there is no {where!r}.{_nearest(key, [*commands, *options], path)}")
    return found


def _names(param: Any) -> list[str]:
    """What an option is called in the file: its long names without dashes, and for arguments their name."""
    long = [option.removeprefix("--") for option in param.opts if option.startswith("--")]
    return [name for name in long if name not in {"help", "version", "install-completion", "show-completion"}] or (
        [] if long else [param.name.replace("_", "-")]
    )


def _value(value: Any, param: Any) -> Any:
    several = getattr(param, "multiple", False) or param.nargs == -1
    if several and isinstance(value, Mapping):  # [fit.set]
        return [f"{key}={one if isinstance(one, str) else json.dumps(one, default=str)}" for key, one in value.items()]
    return [value] if several and not isinstance(value, list) else value


def _nearest(key: str, known: list[str], path: str) -> str:
    close = get_close_matches(key, known, n=1, cutoff=0.5)
    inside = f"[{path.rstrip('.')}]" if path else "it"
    return (f" Did you mean {close[0]!r}?" if close else "") + f" In {inside} there can be {', '.join(known)}."
