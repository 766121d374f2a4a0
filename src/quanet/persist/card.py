"""The model card: what a saved quantifier is, in Markdown, for whoever finds the folder."""

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

TOO_LONG = 200  # characters of a parameter's value


def model_card(estimator: Any, about: Mapping[str, Any], trusted: list[str]) -> str:
    """The card of an estimator.

    Parameters
    ----------
    estimator : fitted.
    about : what `config.json` says beside the model: "quanet", "saved", "versions", "data", "results", "notes".
    trusted : names of types that `load` must be told to trust.
    """
    sections = {
        "Load": _load(trusted),
        "Data": about["data"],
        "Classes": _classes(estimator),
        "Held-out errors": _table(("error", "value"), about["results"]),
        "Settings": _settings(estimator),
        "Notes": about["notes"],
        "Versions": _table(("library", "version"), {"quanet": about["quanet"], **about["versions"]}),
    }
    title = type(estimator).__name__
    opening = f"# {title}\n\n{_summary(estimator)} Saved by quanet {about['quanet']} on {about['saved'][:10]}.\n"
    return opening + "".join(f"\n## {name}\n\n{body.strip()}\n" for name, body in sections.items() if body.strip())


def _summary(estimator: Any) -> str:
    lines = (type(estimator).__doc__ or "A fitted estimator.").strip().splitlines()
    return " ".join(lines[0].split())


def _load(trusted: list[str]) -> str:
    argument = f", trusted={trusted!r}" if trusted else ""
    warning = "\nThese types are not quanet's: trust them only if you know their code.\n" if trusted else ""
    return f'```python\nimport quanet\n\nquantifier = quanet.load("this/folder"{argument})\n```\n{warning}'


def _classes(estimator: Any) -> str:
    if not hasattr(estimator, "classes_"):
        return ""
    names = [repr(label) for label in np.asarray(estimator.classes_).tolist()]
    prior = getattr(estimator, "prior_", None)
    shares = ["" if prior is None else f"{share:.4f}" for share in (names if prior is None else prior)]
    instances = getattr(estimator, "n_instances_", None)
    known = "" if instances is None else f"\nLearnt from {instances:,} instances.\n"
    return _table(("class", "training prevalence"), dict(zip(names, shares, strict=True))) + known


def _settings(estimator: Any) -> str:
    settings = {f"`{name}`": _short(value) for name, value in estimator.get_params(deep=False).items()}
    if hasattr(estimator, "classifier_"):
        settings["fitted classifier"] = _short(estimator.classifier_)
    return _table(("parameter", "value"), settings)


def _short(value: Any) -> str:
    text = textwrap.shorten(repr(value), TOO_LONG, placeholder=" ...")
    return f"`{text}`" if "`" not in text else text


def _table(head: tuple[str, str], rows: Mapping[str, Any]) -> str:
    if not rows:
        return ""
    lines = [head, ("---", "---"), *((name, _number(value)) for name, value in rows.items())]
    return "".join(f"| {_cell(left)} | {_cell(right)} |\n" for left, right in lines)


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
