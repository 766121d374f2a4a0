"""Which columns of a table a model reads."""

from collections.abc import Sequence
from typing import Any

from quanet.data.columns import UnclearColumn, check_columns, find_text
from quanet.data.instances import InputColumns


def choose_inputs(
    source: Any, facts: dict[str, Any], text: str | None, features: Sequence[str] = (), *, exclude: Sequence[str] = ()
) -> tuple[InputColumns, str]:
    """The columns given, or those the model was trained on, or the only text column that is not excluded.

    Returns them with a note on what was detected, "" if nothing was.

    Parameters
    ----------
    source : a table: `columns`, `peek()` and `name` of `TableSource`.
    facts : saved with the model.
    text, features : the text column, or numeric columns, if given.
    exclude : columns that have another meaning.
    """
    names = list(features) or facts.get("features") or []
    if names and text is None:
        check_columns(names, source.columns, source.name)
        return InputColumns(features=tuple(names)), ""
    trained_on = facts.get("text")
    if text is None and trained_on in source.columns:
        return InputColumns(trained_on), ""
    try:
        column = find_text(source, text, besides=[*exclude, facts.get("label", "")])
    except UnclearColumn:
        if trained_on:
            check_columns([trained_on], source.columns, source.name)  # its message is more helpful
        raise
    why = f", since {trained_on!r} is missing" if trained_on else ""
    found = f"{source.name}: text column {column.name!r} (detected{why})" if column.guessed else ""
    return InputColumns(column.name), found
