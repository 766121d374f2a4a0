import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given

from quanet import LEIP, MS, MS2, OEMQ, RLLS, Gaussians, ReadMe, WordBags, X, kernels
from quanet.drift.scale import without_drift
from tests.strategies import posteriors


def interpreted(monkeypatch):
    """The kernels as plain Python, which coverage can see and a debugger can step through."""
    rooms = [kernels, *(value for value in vars(kernels).values() if isinstance(value, ModuleType))]
    for room in rooms:
        for name, kernel in list(vars(room).items()):
            if hasattr(kernel, "py_func"):
                monkeypatch.setattr(room, name, kernel.py_func)
    return kernels


@pytest.mark.parametrize("k", [2, 4])
def test_compiled_and_plain_python_agree(k, monkeypatch):
    rng = np.random.default_rng(k)
    stack = rng.dirichlet(np.full(k, 0.4), size=(6, 25))
    stack[0, :, 0], stack[0, :, 1:] = 1.0, 0.0  # a bag of one class
    stack[1] = 1 / k  # a bag that says nothing
    quadratic = np.cov(rng.normal(size=(k, 50))) + np.eye(k)
    linears = rng.normal(size=(8, k)) * 3
    scale = np.ones(k)

    def run(room):
        start = np.full((6, k), 1 / k)
        counted, newton, mixture, em, solved = (
            np.zeros((6, k)), start.copy(), start.copy(), start.copy(), np.full((8, k), 1 / k)
        )  # fmt: skip
        room.count_argmax(stack, counted)
        left = [room.mixture_likelihood(stack, scale, mixture, 1e-6, 50)]
        left.append(room.expectation_maximization(stack, scale, np.ones(len(stack)), em, 1e-4, 12, 40))
        room.simplex_quadratics(quadratic, linears, solved)
        if k == 2:
            left.append(room.binary_likelihood(stack, scale, newton, 1e-6, 50))
            again = start.copy()
            left.append(room.binary_expectation_maximization(stack, scale, again, 1e-4, 12, 40))
            np.testing.assert_allclose(again, em, atol=1e-12)
            np.testing.assert_allclose(newton, mixture, atol=1e-6)
        pool, drawn = np.arange(30), np.empty(24, dtype=np.intp)
        room.draw_by_class(pool, np.array([0, 4, 30]), np.array([[6, 6], [2, 10]]), rng_numbers, drawn)
        return counted, mixture, em, solved, newton, drawn, np.array(left)

    rng_numbers = rng.random(24)
    compiled = run(kernels)
    for one, other in zip(compiled, run(interpreted(monkeypatch)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
    np.testing.assert_allclose(compiled[0].sum(axis=1), 25)
    np.testing.assert_allclose(compiled[1][1], 1 / k)


def test_the_searches_of_matching_are_the_same_in_plain_python(monkeypatch):
    rng = np.random.default_rng(0)
    templates, targets = rng.dirichlet(np.ones(9), size=2).T, rng.dirichlet(np.full(9, 0.4), size=7)
    targets[0], targets[1] = templates[:, 0], templates[:, 1]  # the two ends
    targets[2] = 0.0
    scores, bags = np.sort(rng.random(20).round(2)), np.sort(rng.random((7, 6)).round(2), axis=1)
    shares = np.eye(2)[(scores + rng.normal(scale=0.2, size=20) > 0.5).astype(int)].cumsum(axis=0)
    shares /= shares[-1]
    columns = rng.random((7, 6, 1)).round(1)
    rows = np.concatenate([columns, (20 * columns).round(), (10 * columns).round()], axis=2)
    table, above, beyond = rng.random((3, 1, 21, 2))

    def run(room):
        found = [np.zeros(7) for _ in range(4)]
        for kind in range(3):
            room.nearest_of_two(templates, targets, kind, 0.5, 1e-9, 100, found[kind])
        room.nearest_by_order(scores, shares, bags, 0.5, found[3])
        quadratics, linears, solved = np.tile(np.eye(2), (7, 1, 1)), np.zeros((7, 2)), np.full((7, 2), 0.5)
        room.rank_quadratics(rows, table, above, beyond, quadratics, linears)
        room.simplex_quadratics_of(quadratics, np.arange(len(quadratics)), linears, solved)
        cells = np.zeros((7, 21))
        room.count_cells(rows[..., 1:2], np.array([0]), cells)
        bins = np.zeros((7, 6))
        room.add_cells(cells, np.stack([np.arange(21) // 4, np.arange(21) // 11]), bins)
        spread = np.zeros((7, 14))
        room.count_cubic(bags, 0.1, spread)
        return [*found, quadratics, linears, solved, cells, bins, spread]

    for one, other in zip(run(kernels), run(interpreted(monkeypatch)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize(("scores", "answer"), [([0.1, 0.2], 0.0), ([0.8, 0.9], 1.0), ([0.5, 0.5], 0.3)])
def test_the_order_of_scores_decides_by_hand(scores, answer, monkeypatch):
    # Two training scores, one of each class; where they are the same, nothing is known and the start stays.
    known = np.array([0.5, 0.5]) if answer == 0.3 else np.array([0.2, 0.8])
    shares = np.array([[1.0, 1.0], [1.0, 1.0]]) if answer == 0.3 else np.array([[1.0, 0.0], [1.0, 1.0]])
    found = np.empty(1)
    interpreted(monkeypatch).nearest_by_order(known, shares, np.array([scores]), 0.3, found)
    assert found[0] == pytest.approx(answer)


@given(posteriors(3))
def test_newton_reaches_what_em_approaches(stack):
    k = stack.shape[-1]
    start = np.full((len(stack), k), 1 / k)
    newton, em = start.copy(), start.copy()
    kernels.mixture_likelihood(stack, np.ones(k), newton, 1e-8, 200)
    kernels.expectation_maximization(stack, np.ones(k), np.ones(len(stack)), em, 1e-12, 12, 200_000)
    gradient = np.empty(k)
    for bag, found, approached in zip(stack, newton, em, strict=True):
        height = kernels.expectation_step(bag, np.ones(k), found, gradient)
        assert height >= kernels.expectation_step(bag, np.ones(k), approached, gradient) - 1e-9


def test_tiny_likelihoods_do_not_underflow():
    stack = np.full((3, 2), 1e-150)
    stack[:, 1] = 1e-300
    gradient = np.empty(2)
    height = kernels.expectation_step(stack, np.ones(2), np.array([0.5, 0.5]), gradient)
    assert height == pytest.approx(np.log(0.5e-150))
    np.testing.assert_allclose(gradient, [2, 0], atol=1e-9)


def test_where_no_cache_can_be_written_kernels_compile_all_the_same(monkeypatch):
    real = kernels.compiler.numba.njit

    def without_cache(*arguments, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return real(*arguments, **options)

    monkeypatch.setattr(kernels.compiler.numba, "njit", without_cache)
    assert kernels.compiled(lambda x: x + 1)(1) == 2


def test_a_single_certain_instance_settles_on_its_class():
    found = np.array([[0.5, 0.5]])
    assert kernels.binary_likelihood(np.array([[[0.0, 1.0]]]), np.ones(2), found, 1e-6, 100) == 0
    assert found.tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize(("zeros", "ones"), [(1, 1), (1, 3), (4, 0), (0, 4), (499, 1)])
def test_certain_instances_are_counted_whatever_the_start(zeros, ones):
    bag = np.repeat(np.eye(2), [zeros, ones], axis=0)[None]
    for start in (0.5, ones / (zeros + ones) or 0.01, 0.01, 0.99):
        found = np.array([[1 - start, start]])
        assert kernels.binary_likelihood(bag, np.ones(2), found, 1e-6, 100) == 0
        assert found[0, 1] == pytest.approx(ones / (zeros + ones), abs=1e-9)


def test_a_step_that_overshoots_is_shortened(monkeypatch):
    room = interpreted(monkeypatch).maximum_likelihood
    monkeypatch.setattr(room, "WARM_UP", 0)  # EM first would leave no bad start to Newton
    steps = []
    plain = room.expectation_step
    monkeypatch.setattr(room, "expectation_step", lambda *given: steps.append(plain(*given)) or steps[-1])
    bag = np.array(
        [
            [0.4797727, 0.4823276, 0.0378996],
            [0.0007193, 0.9992773, 3.32e-06],
            [0.0001645, 0.0000546, 0.9997808],
            [0.0000896, 0.9999062, 4.19e-06],
            [0.0055864, 0.9930017, 0.0014118],
            [9.96e-17, 0.9996963, 0.0003037],
            [2.14e-19, 0.9997675, 0.0002325],
            [0.5376231, 0.4623769, 1e-300],
            [0.1971390, 0.8028524, 8.54e-06],
        ]
    )
    found = np.array([[0.17480819, 0.00477463, 0.82041718]])
    assert room.mixture_likelihood(bag[None], np.ones(3), found, 1e-6, 100) == 0
    assert min(np.diff(steps)) < 0  # one trial went down, and was taken back
    np.testing.assert_allclose(found[0] * (bag / (bag @ found[0])[:, None]).mean(axis=0), found[0], atol=1e-7)


@pytest.mark.parametrize(
    ("quantifier", "k"),
    [(MS(), 2), (MS2(), 2), (X(), 2), (RLLS(), 3), (LEIP(), 3), (OEMQ(), 3), (ReadMe(subsets=3, words=1), 2)],
    ids=lambda value: type(value).__name__,
)
def test_methods_give_the_same_in_plain_python(quantifier, k, monkeypatch):
    if isinstance(quantifier, ReadMe):
        X, y = WordBags(k=k, length=5).draw(np.full(k, 1 / k), 40, rng=0)
    else:
        X, y = Gaussians(k=k, distance=1.5).draw(np.full(k, 1 / k), 60, rng=0)
    with without_drift():
        fitted = quantifier.fit(X, y)
    stack = fitted.represent(X)[np.random.default_rng(0).integers(len(y), size=(2, 12))]
    compiled = fitted.aggregate(stack)
    for room in [module for name, module in sys.modules.items() if name.startswith("quanet.")]:
        for name, kernel in list(vars(room).items()):
            if hasattr(kernel, "py_func"):
                monkeypatch.setattr(room, name, kernel.py_func)
    with without_drift():
        again = quantifier.fit(X, y)
    np.testing.assert_allclose(again.aggregate(stack), compiled, atol=1e-7)
