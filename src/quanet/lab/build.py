"""Build the estimators that a plan names, after checking their settings.

A part of a plan is a table: ``kind`` names a class and all else are its settings, or ``steps`` lists the parts of a
pipeline. A setting may be a part itself; "None" is Python's None; ``classifier__C`` is the C of the classifier.
"""

import inspect
import sys
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from datetime import date, time
from importlib import import_module
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline

import quanet
from quanet.base import Quantifier
from quanet.errors import InvalidPart, brief, nearest
from quanet.methods.aggregative import AggregativeQuantifier

Part = Mapping[str, Any]


def find(kind: str, python_path: str | None = None) -> Callable[..., Any]:
    """What makes an estimator: a public class of quanet, ``Class.method`` of one, or ``module:Class`` of any module.

    Examples
    --------
    >>> find("QuaNet.paper").__name__, find("sklearn.naive_bayes:MultinomialNB").__name__
    ('paper', 'MultinomialNB')
    """
    module, _, names = kind.rpartition(":")
    first, *others = names.split(".")
    if module:
        home: Any = _import(module, kind, python_path)
        public = [name for name in vars(home) if not name.startswith("_")]
    else:
        home, public = None, list(quanet.MODULE_OF)
    if first not in public:
        known = public if module else estimators()
        raise InvalidPart(f"{module or 'quanet'} has no {first!r}. {nearest(first, known)}", kind)
    found = getattr(home, first) if module else _public(first)
    for name in others:
        if name.startswith("_") or not hasattr(found, name):
            ways = [way for way, value in vars(found).items() if isinstance(value, classmethod) and way[0] != "_"]
            raise InvalidPart(f"{first} has no {name!r}. {nearest(name, ways)}", kind)
        found = getattr(found, name)
    made = found if inspect.isclass(found) else getattr(found, "__self__", None)  # a class, or a way to make one
    if not (inspect.isclass(made) and _is_part(made)):
        raise InvalidPart(f"{kind!r} is not an estimator class (scikit-learn's BaseEstimator).", kind)
    return found


def _public(name: str) -> Any:
    getattr(quanet, name)  # names an extra that is missing; a module may have the same name
    return getattr(import_module(quanet.MODULE_OF[name]), name)


def _is_part(kind: type) -> bool:
    """Whether a class makes estimators, or is one of the dataclasses, such as protocols, that they are made of."""
    return (issubclass(kind, BaseEstimator) or is_dataclass(kind)) and not inspect.isabstract(kind)


def _import(module: str, kind: str, python_path: str | None) -> types.ModuleType:
    if python_path is not None and python_path not in sys.path:
        sys.path.append(python_path)  # last, so that a file there hides no installed package
    if not all(part.isidentifier() for part in module.split(".")):
        raise InvalidPart(f"{kind!r} does not name a class: write module:Class.", kind)
    try:
        return import_module(module)
    except Exception as error:
        raise InvalidPart(
            f"{kind!r} cannot be imported: {error}. A module next to the plan needs python_path = '.' in it.", kind
        ) from error


def estimators() -> list[str]:
    """Public names of quanet that a plan can use, without those of extras that are not installed."""
    found = []
    for name in quanet.__all__:
        with suppress(ImportError):
            value = getattr(quanet, name)
            if inspect.isclass(value) and issubclass(value, BaseEstimator) and not inspect.isabstract(value):
                found.append(name)
    return found


def make(part: Any, python_path: str | None = None) -> Any:
    """The estimator that a part describes.

    Examples
    --------
    >>> make({"kind": "EMQ", "calibration": "None"})
    EMQ(calibration=None)
    >>> make({"steps": [{"kind": "sklearn.preprocessing:StandardScaler"}, {"kind": "sklearn.naive_bayes:GaussianNB"}]})
    Pipeline(steps=[('standardscaler', StandardScaler()), ('gaussiannb', GaussianNB())])
    """
    if not isinstance(part, Mapping):
        raise InvalidPart(
            f"{brief(part)} is not a part. Write a table with a kind, such as {{kind = 'EMQ'}}.", brief(part)
        )
    if "steps" in part:
        steps, others = part["steps"], {key: value for key, value in part.items() if key != "steps"}
        if not isinstance(steps, list) or not steps:
            raise InvalidPart("steps must be a list of parts, such as [{kind = 'TextClassifier'}].", "steps")
        pipeline = make_pipeline(*(make(step, python_path) for step in steps))
        return _with_nested(pipeline, others, python_path)
    if "kind" not in part or not isinstance(part["kind"], str):
        raise InvalidPart("a part needs steps or a kind, the name of a class, such as kind = 'EMQ'.", "kind")
    factory = find(part["kind"], python_path)
    settings = {key: value for key, value in part.items() if key != "kind"}
    direct = {name: _value(value, python_path) for name, value in settings.items() if "__" not in name}
    _check_settings(part["kind"], factory, direct)
    try:
        made = factory(**direct)
    except (TypeError, ValueError) as error:
        raise InvalidPart(f"{part['kind']} cannot be built: {error}", part["kind"]) from error
    nested = {name: value for name, value in settings.items() if "__" in name}
    return _with_nested(made, nested, python_path)


def _value(value: Any, python_path: str | None) -> Any:
    if isinstance(value, Mapping) and ("kind" in value or "steps" in value):
        return make(value, python_path)
    if isinstance(value, list):
        return [_value(one, python_path) for one in value]
    if isinstance(value, date | time):  # TOML has them, no estimator does; a datetime is a date
        raise InvalidPart(f"{value} is a date or a time, which cannot be a setting. Put texts in quotes.", str(value))
    return None if value == "None" else value


def values_of(grid: Any) -> Any:
    """A grid of a plan with "None" and parts made what they mean."""
    if isinstance(grid, list):
        return [values_of(one) for one in grid]
    return {name: [_value(value, None) for value in values] for name, values in grid.items()}


def check_grid(estimator: Any, grid: Any) -> None:
    """Raise `InvalidPart` unless the grid gives values to settings that the estimator has."""
    known = estimator.get_params()
    for one in grid if isinstance(grid, list) else [grid]:
        if not isinstance(one, Mapping) or not one:
            raise InvalidPart("grid must give each setting a list of values, such as { C = [1, 10] }.", "grid")
        for name, values in one.items():
            if name not in known:
                raise InvalidPart(f"{type(estimator).__name__} has no setting {name!r}. {nearest(name, known)}", name)
            if not isinstance(values, list) or not values:
                raise InvalidPart(f"grid must give each setting a list of values, such as {name} = [1, 10].", name)


def _with_nested(estimator: Any, settings: Part, python_path: str | None) -> Any:
    for name, value in settings.items():
        known = estimator.get_params() if isinstance(estimator, BaseEstimator) else {}
        if name not in known:
            raise InvalidPart(f"{type(estimator).__name__} has no setting {name!r}. {nearest(name, known)}", name)
        estimator.set_params(**{name: _value(value, python_path)})
    return estimator


def _check_settings(kind: str, factory: Callable[..., Any], settings: Part) -> None:
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError) as error:
        raise InvalidPart(f"{kind} has no signature, so its settings cannot be checked.", kind) from error
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    unknown = [name for name in settings if name not in parameters]
    if unknown:
        raise InvalidPart(f"{kind} has no setting {unknown[0]!r}. {nearest(unknown[0], parameters)}", unknown[0])
    try:
        hints = get_type_hints(factory.__init__ if inspect.isclass(factory) else factory)
    except (NameError, TypeError):  # a type that its own module does not know cannot be checked
        hints = {}
    for name, value in settings.items():
        if name == "cv" and (isinstance(value, str) or value == []):  # whose type is open, as it may be a splitter
            raise InvalidPart(
                f"cv of {kind} must be a number of folds or a share such as 0.4; got {brief(value)}.", name
            )
        if name in hints and not fits(value, hints[name]):
            wanted = getattr(hints[name], "__name__", str(hints[name]).replace("typing.", ""))
            raise InvalidPart(f"{name} of {kind} must be {wanted}; got {brief(value)}.", name)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value of a plan has the type of a parameter; only plain types are checked.

    Examples
    --------
    >>> fits(3, int), fits(3, float), fits(True, int), fits("3", int | None), fits("em", Literal["newton", "em"])
    (True, True, False, False, True)
    """
    if get_origin(hint) in (Union, types.UnionType):
        return any(fits(value, one) for one in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if hint is type(None):
        return value is None
    if hint in (int, float, str, bool):
        allowed = (int, float) if hint is float else (hint,)
        return isinstance(value, allowed) and (hint is bool or not isinstance(value, bool))
    return True


def prepare(estimator: Any, *, seed: int, device: str | None, shared: bool, share: float | None = None) -> Any:
    """Fill in what a plan leaves open: seeds that are None, devices that are "auto", classifiers of shared rows.

    `share` is that of the instances which shared rows are of, if one classifier was fitted to the others.
    """
    fillings: dict[str, tuple[Any, Any]] = {"random_state": (None, seed)}
    if device is not None:
        fillings["device"] = ("auto", device)
    if shared:
        fillings["classifier"] = (None, "precomputed")
    settings = estimator.get_params()
    if shared and share is not None and {"classifier", "cv"} <= settings.keys():
        estimator.set_params(cv=share)
    for name, value in settings.items():
        default, filling = fillings.get(name.rpartition("__")[2], (..., ...))
        if default is not ... and value == default:
            estimator.set_params(**{name: filling})
    return estimator


def needs_seed(estimator: Any) -> bool:
    """Whether `prepare` gives the estimator the seed of the run."""
    values = estimator.get_params().items()
    return any(name.rpartition("__")[2] == "random_state" and value is None for name, value in values)


def reads_posteriors_only(estimator: Any) -> bool:
    """Whether the estimator, or the one inside it, takes posteriors and no embedding."""
    if isinstance(estimator, AggregativeQuantifier):
        return True
    inner = [value for value in estimator.get_params().values() if isinstance(value, Quantifier)]
    return any(isinstance(one, AggregativeQuantifier) for one in inner)
