"""Commands derived from functions: a parameter that is a settings class becomes an option for each of its fields."""

import inspect
from collections.abc import Callable
from dataclasses import Field, fields
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from quanet.data.settings import Settings, flag_of, settings_classes
from quanet.errors import InvalidSetting


def command(verb: Callable[..., None]) -> Callable[..., None]:
    """A function for typer: fields of settings classes are options; the verb gets settings objects.

    A value that is not allowed is a usage error that names its option.
    """
    hints = get_type_hints(verb, include_extras=True)
    kinds = settings_classes(verb)
    parameters = []
    for name, parameter in inspect.signature(verb).parameters.items():
        options = map(_option, fields(kinds[name])) if name in kinds else [parameter.replace(annotation=hints[name])]
        parameters += [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]

    @wraps(verb)
    def run(**given: Any) -> None:
        settings = {name: settings_of(kind, given) for name, kind in kinds.items()}
        verb(**given, **settings)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del run.__wrapped__
    return run


def settings_of(kind: type[Settings], given: dict[str, Any]) -> Settings:
    """The settings with the values that were given, which are taken out; an invalid one is a usage error."""
    own = {one.name: one for one in fields(kind)}
    values = {name: given.pop(name) for name in own}
    values |= {name: not value for name, value in values.items() if _is_off(own[name])}
    values |= {name: tuple(value or ()) for name, value in values.items() if _is_several(own[name])}
    try:
        return kind(**values)
    except InvalidSetting as error:
        flag = flag_of(own[error.setting]) if error.setting in own else None
        raise typer.BadParameter(str(error), param_hint=flag) from None


def _option(one: Field[Any]) -> inspect.Parameter:
    """A field of a settings class as a parameter for typer."""
    facts, flag = one.metadata, flag_of(one)
    kind, default, names = one.type, one.default, [flag] if facts["flag"] or isinstance(one.default, bool) else []
    if _is_off(one):
        default = False
    if _is_several(one):
        kind, default = list[str] | None, None
    low, high = facts["bounds"]
    option = typer.Option(
        *names,
        metavar=facts["metavar"],
        help=facts["help"],
        rich_help_panel=facts["panel"],
        min=low,
        max=high,
        show_default=facts["show_default"],
    )
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


def _is_off(one: Field[Any]) -> bool:
    """Whether the option switches something off that is on."""
    return flag_of(one).startswith("--no-")


def _is_several(one: Field[Any]) -> bool:
    return isinstance(one.default, tuple)
