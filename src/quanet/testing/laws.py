"""The laws of the contract: of estimates, and of a quantifier as an object. And what they are tried on."""

import io
import tempfile
import warnings
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
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.synthetic import Gaussians
from quanet.errors import InvalidSetting, QuanetError, QuanetWarning
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.persist.load import load, untrusted_types
from quanet.persist.save import save
from quanet.simplex import count

LabelKind = Literal["string", "integer", "boolean"]
CLOSE = 1e-9  # what rounding in another order may change


@dataclass(frozen=True)
class ContractCase:
    """A quantifier, data to fit it to, and a pool to draw bags from."""

    quantifier: Quantifier
    X: FloatArray
    codes: IntArray
    names: LabelArray
    pool: FloatArray

    @property
    def y(self) -> LabelArray:
        """Labels of the data."""
        return self.names[self.codes]

    def fit(self) -> Quantifier:
        """A new copy, fitted to the data."""
        return clone(self.quantifier).fit(self.X, self.y)

    @cached_property
    def fitted(self) -> Quantifier:
        """One that all laws share which only look at it."""
        return self.fit()

    @property
    def reads_posteriors(self) -> bool:
        """Whether posteriors can be given instead of numbers."""
        return isinstance(self.quantifier, AggregativeQuantifier)


def names_of(k: int, kind: LabelKind) -> LabelArray:
    """Labels (k,) of one kind, in sorted order."""
    if kind == "boolean":
        if k != 2:
            raise InvalidSetting(f"boolean labels have two classes, not {k}.")
        return np.array([False, True])
    return np.array([f"class {c:02}" for c in range(k)]) if kind == "string" else 10 * (np.arange(k) + 1)


def on_the_simplex(case: ContractCase) -> None:
    """Estimates are at least 0 and sum to 1."""
    bags = Bags([np.arange(n) for n in (1, 2, 5, len(case.pool))])
    estimate = case.fitted.predict_bags(case.pool, bags)
    assert estimate.shape == (4, len(case.names))
    assert (estimate >= 0).all()
    np.testing.assert_allclose(estimate.sum(axis=1), 1, atol=CLOSE)


def order_is_irrelevant(case: ContractCase) -> None:
    """The order of a bag's instances changes nothing."""
    fitted = case.fitted
    np.testing.assert_allclose(fitted.predict(case.pool[::-1]), fitted.predict(case.pool), atol=1e-7)


def training_order_is_irrelevant(case: ContractCase) -> None:
    """The same training instances in another order give the same estimates, to the last bit."""
    estimate = case.fitted.predict(case.pool)
    for order in (np.arange(len(case.X))[::-1], np.argsort(case.X[:, 0])):
        fitted = clone(case.quantifier).fit(case.X[order], case.y[order])
        np.testing.assert_array_equal(fitted.predict(case.pool), estimate)


def relabelling_permutes(case: ContractCase) -> None:
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


def batch_equals_loop(case: ContractCase) -> None:
    """A bag's estimate never depends on its neighbours in the batch."""
    fitted = case.fitted
    rows = fitted.represent(case.pool)
    stack = rows[np.random.default_rng(0).integers(len(rows), size=(2, 3, 15))]
    alone = np.stack([[fitted.aggregate(bag) for bag in pair] for pair in stack])
    np.testing.assert_allclose(fitted.aggregate(stack), alone, atol=CLOSE)
    ragged = [np.arange(3), np.arange(5, 30), np.arange(3) + 7]
    together = fitted.predict_bags(case.pool, Bags(ragged))
    np.testing.assert_allclose(together, [fitted.aggregate(rows[bag]) for bag in ragged], atol=CLOSE)


def weights_repeat_instances(case: ContractCase) -> None:
    """Equal weights change nothing, and a whole weight counts an instance as often as it says."""
    fitted, pool = case.fitted, case.pool[:30]
    np.testing.assert_allclose(fitted.predict(pool, np.full(30, 0.7)), fitted.predict(pool), atol=CLOSE)
    weights = np.arange(30) % 3
    repeated = fitted.predict(np.repeat(pool, weights, axis=0))
    np.testing.assert_allclose(fitted.predict(pool, 5.0 * weights), repeated, atol=1e-7)


def perfect_classifier_is_exact(case: ContractCase) -> None:
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


def degenerate_classifiers_give_shares(case: ContractCase) -> None:
    """Posteriors that are all equal, never name a class, are always wrong or are votes in tenths give valid shares."""
    name = {"classifier", "quantifier__classifier"} & set(case.quantifier.get_params())
    if not name or "grid" in case.quantifier.get_params():
        return
    quantifier = clone(case.quantifier).set_params(**{name.pop(): "precomputed"})
    k, codes = len(case.names), case.codes[::3]
    for kind, posteriors in _degenerate_posteriors(k, codes).items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", QuanetWarning)
            fitted = clone(quantifier).fit(posteriors, case.names[codes])
            stack = fitted.represent(posteriors)[np.random.default_rng(0).integers(len(codes), size=(3, 12))]
            together, alone = fitted.aggregate(stack), np.stack([fitted.aggregate(bag) for bag in stack])
            again = clone(quantifier).fit(posteriors, case.names[codes]).aggregate(stack)
        message = f"Posteriors: {kind}."
        assert not caught, f"{message} A warning was raised: {caught[0].message}"
        assert (together >= 0).all(), message  # nor is it NaN
        np.testing.assert_allclose(together.sum(axis=1), 1, atol=CLOSE, err_msg=message)
        np.testing.assert_allclose(together, alone, atol=1e-6, err_msg=message)
        np.testing.assert_array_equal(together, again, err_msg=message)


def _degenerate_posteriors(k: int, codes: IntArray) -> dict[str, FloatArray]:
    """Posteriors (n, k) as poor classifiers give them, by what is wrong with them."""
    mostly_right = 0.6 * np.eye(k)[codes] + 0.4 / k
    votes = np.random.default_rng(0).multinomial(10, mostly_right) / 10
    blind = np.column_stack([np.zeros(len(codes)), mostly_right[:, 1:]])
    return {
        "all equal": np.full((len(codes), k), 1 / k),
        "a class is never named": blind / blind.sum(axis=1, keepdims=True),
        "one class for all": np.eye(k)[np.zeros_like(codes)],
        "always wrong": np.eye(k)[(codes + 1) % k],
        "votes in tenths": votes,
    }


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
