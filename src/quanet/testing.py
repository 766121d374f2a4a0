"""The contract that every quantifier keeps, as checks: for our methods and for anyone's.

>>> from quanet import PACC
>>> check_quantifier(PACC(), k=3, labels="string")
"""

import io
import tempfile
from collections.abc import Callable
from contextlib import chdir, redirect_stdout
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.bags import Bags
from quanet.base import AggregativeQuantifier, Quantifier
from quanet.data.synthetic import Gaussians
from quanet.errors import InvalidSetting, QuanetError
from quanet.persist.folder import load, save, untrusted_types
from quanet.simplex import count

LabelKind = Literal["string", "integer", "boolean"]
CLOSE = 1e-9  # what rounding in another order may change


@dataclass(frozen=True)
class _Case:
    """A quantifier, data to fit it to, and a pool to draw bags from."""

    quantifier: Quantifier
    X: FloatArray
    codes: IntArray
    names: LabelArray
    pool: FloatArray

    @property
    def y(self) -> LabelArray:
        return self.names[self.codes]

    def fit(self) -> Quantifier:
        return clone(self.quantifier).fit(self.X, self.y)

    @cached_property
    def fitted(self) -> Quantifier:
        """One that all laws share which only look at it."""
        return self.fit()

    @property
    def reads_posteriors(self) -> bool:
        return isinstance(self.quantifier, AggregativeQuantifier)


def check_quantifier(quantifier: Quantifier, *, k: int = 2, labels: LabelKind = "string", seed: int = 0) -> None:
    """Raise an AssertionError that names the law a quantifier breaks; return nothing if it keeps all.

    Parameters
    ----------
    quantifier : not fitted; it must accept numbers (n, d), and where it takes posteriors a classifier of "precomputed".
    k : number of classes in the data it is tried on.
    labels : what those classes are called by; "boolean" only for two.
    seed : of that data.
    """
    names = _names(k, labels)
    source = Gaussians(k=k, distance=3.0)
    uniform = np.full(k, 1 / k)
    X, codes = source.draw(uniform, 60 * k, rng=seed)
    pool, _ = source.draw(uniform, 40 * k, rng=seed + 1)
    case = _Case(quantifier, X, codes, names, pool)
    for law in LAWS:
        try:
            law(case)
        except AssertionError as error:
            raise AssertionError(f"{quantifier} breaks a law. {law.__doc__} {error}") from error


def _names(k: int, kind: LabelKind) -> LabelArray:
    if kind == "boolean":
        if k != 2:
            raise InvalidSetting(f"booleans name two classes, not {k}.")
        return np.array([False, True])
    return np.array([f"class {c:02}" for c in range(k)]) if kind == "string" else 10 * (np.arange(k) + 1)


def on_the_simplex(case: _Case) -> None:
    """Estimates are at least 0 and sum to 1."""
    bags = Bags([np.arange(n) for n in (1, 2, 5, len(case.pool))])
    estimate = case.fitted.predict_bags(case.pool, bags)
    assert estimate.shape == (4, len(case.names))
    assert (estimate >= 0).all()
    np.testing.assert_allclose(estimate.sum(axis=1), 1, atol=CLOSE)


def order_is_irrelevant(case: _Case) -> None:
    """The order of a bag's instances changes nothing."""
    fitted = case.fitted
    np.testing.assert_allclose(fitted.predict(case.pool[::-1]), fitted.predict(case.pool), atol=1e-7)


def relabelling_permutes(case: _Case) -> None:
    """Other names for the classes give the same shares under the other names."""
    k = len(case.names)
    reverse = np.arange(k)[::-1]
    if case.reads_posteriors:
        source = Gaussians(k=k, distance=3.0)
        quantifier = clone(case.quantifier).set_params(classifier="precomputed")
        X, pool = (source.posteriors(part, np.full(k, 1 / k)) for part in (case.X, case.pool))
        reversed_X, reversed_pool = X[:, reverse], pool[:, reverse]
    else:
        quantifier = clone(case.quantifier)
        reversed_X, reversed_pool = X, pool = case.X, case.pool
    estimate = clone(quantifier).fit(X, case.y).predict(pool)
    renamed = clone(quantifier).fit(reversed_X, case.names[reverse][case.codes]).predict(reversed_pool)
    np.testing.assert_allclose(renamed[reverse], estimate, atol=1e-5)


def batch_equals_loop(case: _Case) -> None:
    """A bag's estimate never depends on its neighbours in the batch."""
    fitted = case.fitted
    rows = fitted.represent(case.pool)
    stack = rows[np.random.default_rng(0).integers(len(rows), size=(2, 3, 15))]
    alone = np.stack([[fitted.aggregate(bag) for bag in pair] for pair in stack])
    np.testing.assert_allclose(fitted.aggregate(stack), alone, atol=CLOSE)
    ragged = [np.arange(3), np.arange(5, 30), np.arange(3) + 7]
    together = fitted.predict_bags(case.pool, Bags(ragged))
    np.testing.assert_allclose(together, [fitted.aggregate(rows[bag]) for bag in ragged], atol=CLOSE)


def classes_are_the_labels(case: _Case) -> None:
    """`classes_` are the labels, sorted, and `prior_` their training shares."""
    fitted = case.fitted
    assert fitted.classes_.tolist() == case.names.tolist()
    np.testing.assert_allclose(fitted.prior_, count(case.codes, len(case.names)) / len(case.codes))


def read_once_is_read(case: _Case) -> None:
    """Instances that it has read already give the same estimates."""
    read = case.fitted.read(case.pool)
    np.testing.assert_allclose(case.fitted.predict(read), case.fitted.predict(case.pool), atol=CLOSE)
    bags = Bags([np.arange(3), np.arange(5, 30)])
    np.testing.assert_allclose(
        case.fitted.predict_bags(read, bags), case.fitted.predict_bags(case.pool, bags), atol=CLOSE
    )


def same_seed_same_result(case: _Case) -> None:
    """Two fits to the same data give the same estimates, to the last bit."""
    np.testing.assert_array_equal(case.fit().predict(case.pool), case.fitted.predict(case.pool))


def inputs_are_untouched(case: _Case) -> None:
    """Neither fit nor predict changes what it is given, the constructor's parameters included."""
    X, y, pool = case.X.copy(), case.y, case.pool.copy()
    quantifier = clone(case.quantifier)
    before = deepcopy(quantifier.get_params())
    quantifier.fit(X, y).predict(pool)
    np.testing.assert_array_equal(X, case.X)
    np.testing.assert_array_equal(y, case.y)
    np.testing.assert_array_equal(pool, case.pool)
    assert repr(quantifier.get_params()) == repr(before)


def works_in_scikit_learn(case: _Case) -> None:
    """It can be cloned, set, put into a pipeline and searched over."""
    parameters = case.quantifier.get_params(deep=False)
    copy = clone(case.quantifier)
    assert copy.set_params(**parameters) is copy
    assert repr(copy.get_params(deep=False)) == repr(parameters)
    piped = make_pipeline(MinMaxScaler(), clone(case.quantifier)).fit(case.X, case.y)
    assert piped.predict(case.pool).shape == case.names.shape
    search = GridSearchCV(clone(case.quantifier), {name: [value] for name, value in parameters.items()}, cv=2)
    assert search.fit(case.X, case.y).best_estimator_.predict(case.pool).shape == case.names.shape


def perfect_classifier_is_exact(case: _Case) -> None:
    """With posteriors of 0 and 1 that are right, the estimate is the truth; in its order, if the method shrinks it."""
    if not case.reads_posteriors:
        return
    quantifier = clone(case.quantifier).set_params(classifier="precomputed")
    k = len(case.names)
    quantifier.fit(np.eye(k)[case.codes], case.y)
    bag = np.repeat(np.arange(k), np.arange(1, k + 1))
    truth = np.arange(1, k + 1) / len(bag)
    estimate = quantifier.predict(np.eye(k)[bag])
    if getattr(quantifier, "_exact", True):
        np.testing.assert_allclose(estimate, truth, atol=1e-6)
    else:
        assert (np.diff(estimate) > 0).all()


def unfitted_is_an_error(case: _Case) -> None:
    """To predict before fit raises NotFittedError."""
    for predict in (
        lambda q: q.predict(case.pool),
        lambda q: q.predict_bags(case.pool, Bags([[0]])),
    ):
        _raises(NotFittedError, predict, clone(case.quantifier))


def bad_input_is_a_clear_error(case: _Case) -> None:
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


def nothing_is_written(case: _Case) -> None:
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


def survives_saving(case: _Case) -> None:
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


LAWS: tuple[Callable[[_Case], None], ...] = (
    inputs_are_untouched,
    on_the_simplex,
    order_is_irrelevant,
    relabelling_permutes,
    batch_equals_loop,
    classes_are_the_labels,
    read_once_is_read,
    same_seed_same_result,
    works_in_scikit_learn,
    perfect_classifier_is_exact,
    unfitted_is_an_error,
    bad_input_is_a_clear_error,
    nothing_is_written,
    survives_saving,
)
