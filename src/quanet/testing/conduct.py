"""Laws of a quantifier as an object: what it accepts, keeps, writes and raises."""

import io
import tempfile
from collections.abc import Callable
from contextlib import chdir, redirect_stdout
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

from quanet.bags import Bags
from quanet.errors import QuanetError
from quanet.persist.load import load, untrusted_types
from quanet.persist.save import save
from quanet.simplex import count
from quanet.testing.case import CLOSE, ContractCase


def classes_are_the_labels(case: ContractCase) -> None:
    """`classes_` are the labels, sorted, and `prior_` their training shares."""
    fitted = case.fitted
    assert fitted.classes_.tolist() == case.names.tolist()
    np.testing.assert_allclose(fitted.prior_, count(case.codes, len(case.names)) / len(case.codes))


def read_once_is_read(case: ContractCase) -> None:
    """Instances that it has read already give the same estimates."""
    read = case.fitted.read(case.pool)
    np.testing.assert_allclose(case.fitted.predict(read), case.fitted.predict(case.pool), atol=CLOSE)
    bags = Bags([np.arange(3), np.arange(5, 30)])
    np.testing.assert_allclose(
        case.fitted.predict_bags(read, bags), case.fitted.predict_bags(case.pool, bags), atol=CLOSE
    )


def same_seed_same_result(case: ContractCase) -> None:
    """Two fits to the same data give the same estimates, to the last bit."""
    np.testing.assert_array_equal(case.fit().predict(case.pool), case.fitted.predict(case.pool))


def inputs_are_untouched(case: ContractCase) -> None:
    """Neither fit nor predict changes what it is given, the constructor's parameters included."""
    X, y, pool = case.X.copy(), case.y, case.pool.copy()
    quantifier = clone(case.quantifier)
    before = deepcopy(quantifier.get_params())
    quantifier.fit(X, y).predict(pool)
    np.testing.assert_array_equal(X, case.X)
    np.testing.assert_array_equal(y, case.y)
    np.testing.assert_array_equal(pool, case.pool)
    assert repr(quantifier.get_params()) == repr(before)


def works_in_scikit_learn(case: ContractCase) -> None:
    """It can be cloned, set, put into a pipeline and searched over."""
    parameters = case.quantifier.get_params(deep=False)
    copy = clone(case.quantifier)
    assert copy.set_params(**parameters) is copy
    assert repr(copy.get_params(deep=False)) == repr(parameters)
    piped = Pipeline([("scaler", MinMaxScaler()), ("it", clone(case.quantifier))])
    rows = np.arange(len(case.X))
    search = GridSearchCV(piped, {f"it__{name}": [value] for name, value in parameters.items()}, cv=[(rows, rows[:10])])
    assert search.fit(case.X, case.y).best_estimator_.predict(case.pool).shape == case.names.shape


def unfitted_is_an_error(case: ContractCase) -> None:
    """To predict before fit raises NotFittedError."""
    for predict in (
        lambda q: q.predict(case.pool),
        lambda q: q.predict_bags(case.pool, Bags([[0]])),
    ):
        _raises(NotFittedError, predict, clone(case.quantifier))


def bad_input_is_a_clear_error(case: ContractCase) -> None:
    """An empty bag, one class, a length mismatch, NaN or a missing column raises a QuanetError."""
    fitted = case.fitted
    new = clone(case.quantifier)
    _raises(QuanetError, fitted.predict, case.pool[:0])
    _raises(QuanetError, fitted.aggregate, fitted.represent(case.pool)[:0])
    _raises(QuanetError, fitted.predict_bags, case.pool, Bags([[len(case.pool)]]))
    _raises(QuanetError, new.fit, case.X, case.y[:1].repeat(len(case.y)))
    _raises(QuanetError, new.fit, case.X, case.y[1:])
    if case.reads_posteriors:
        _raises(QuanetError, new.fit, np.where(case.X[0] == case.X, np.nan, case.X), case.y)
        _raises(QuanetError, fitted.predict, case.pool[:, 1:])


def nothing_is_written(case: ContractCase) -> None:
    """Neither fit nor predict prints, writes to the working folder or touches the global random state."""
    settings = np.geterr()
    before = np.random.get_state(legacy=False)  # noqa: NPY002
    # A state that no method would leave behind; the caller's comes back at the end.
    np.random.seed(20181022)  # noqa: NPY002
    marked = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    try:
        with tempfile.TemporaryDirectory() as folder, chdir(folder), redirect_stdout(io.StringIO()) as printed:
            case.fit().predict(case.pool)
            assert not list(Path(folder).iterdir())
        left = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    finally:
        np.random.set_state(before)  # noqa: NPY002
    assert not printed.getvalue()
    np.testing.assert_equal(left, marked)
    assert np.geterr() == settings


def survives_saving(case: ContractCase) -> None:
    """Saved and loaded, it has the same parameters and gives the same estimates, to the last bit."""
    fitted = case.fitted
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "model"
        try:
            save(fitted, folder)
            loaded = load(folder, trusted=[type(fitted), *untrusted_types(folder)])
        except QuanetError as error:
            raise AssertionError(f"It cannot be saved and loaded: {error}") from error
    assert repr(loaded.get_params()) == repr(fitted.get_params())
    assert loaded.classes_.dtype == fitted.classes_.dtype
    np.testing.assert_array_equal(loaded.classes_, fitted.classes_)
    np.testing.assert_array_equal(loaded.predict(case.pool), fitted.predict(case.pool))


def _raises(kind: type[Exception], call: Callable[..., Any], *arguments: Any) -> None:
    try:
        call(*arguments)
    except kind:
        return
    except Exception as error:
        raise AssertionError(f"{kind.__name__} was due, not {type(error).__name__}: {error}") from error
    raise AssertionError(f"{kind.__name__} was due, and nothing was raised.")
