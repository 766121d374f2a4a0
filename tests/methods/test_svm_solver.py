"""Both searches against every labelling there is, the dual against all planes at once, and the published reference."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, load_npz

from quanet.errors import InvalidSetting
from quanet.methods import svm_solver
from quanet.methods.svm import LOSSES
from quanet.methods.svm_solver import (
    OLD,
    Planes,
    count_losses,
    minimise,
    plane_of,
    q_loss,
    scores_of,
    search_for,
    solve_dual,
    worst_by_count,
    worst_by_table,
    worst_table,
)
from tests.strategies import SEEDS

REFERENCE = Path(__file__).parents[2].parent / "shared" / "svmperf"


def loss_of(loss, positive, labelling):
    """The loss as the papers write it, one labelling at a time."""
    n, P, k = len(positive), positive.sum(), labelling.sum()
    N = n - P
    if loss == "q":
        recall, quality = (positive & labelling).sum() / P, 1 - abs(P - k) / max(P, N)
        return 100 * (1 - (2 * quality * recall / (quality + recall) if quality + recall else 0))
    if loss == "ae":
        return 100 * abs(k - P) / n
    if loss == "rae":
        return 100 * (abs(k - P) / (P + 0.5) + abs(k - P) / (N + 0.5)) / 2
    p, q = (P + 0.5) / (n + 1), (k + 0.5) / (n + 1)
    divergence = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    return divergence if loss == "kld" else 100 - 200 / (1 + np.exp(divergence))


def violation_of(loss, positive, labelling, scores):
    margin = 50 / len(scores) * (2.0 * (positive.astype(float) - labelling)) @ scores
    return loss_of(loss, positive, labelling) - margin


def lossy_labellings(loss, positive):
    every = (np.array(signs, dtype=bool) for signs in product([False, True], repeat=len(positive)))
    return [labelling for labelling in every if loss_of(loss, positive, labelling) > 1e-12]


@st.composite
def labelled_scores(draw, least=2, most=9):
    """Scores, some of them equal, and labels of both classes."""
    n = draw(st.integers(least, most))
    rng = np.random.default_rng(draw(SEEDS))
    scores = rng.standard_normal(n) * draw(st.sampled_from([0.0, 0.01, 1.0, 100.0]))
    if draw(st.booleans()):
        scores = scores.round()
    positive = rng.random(n) < draw(st.sampled_from([0.1, 0.5, 0.9]))
    positive[:2] = rng.permutation([True, False])
    return scores, positive


@pytest.mark.parametrize("loss", LOSSES)
@given(labelled_scores())
def test_no_labelling_is_more_violated_than_the_one_found(loss, drawn):
    scores, positive = drawn
    violation, labelling = search_for(loss, positive)(scores)
    assert violation == pytest.approx(violation_of(loss, positive, labelling, scores), abs=1e-9)
    every = [violation_of(loss, positive, other, scores) for other in lossy_labellings(loss, positive)]
    assert violation == pytest.approx(max(every), abs=1e-9)


@given(labelled_scores(least=60, most=150))
def test_branch_and_bound_finds_what_the_scan_of_all_tables_finds(drawn):
    scores, positive = drawn
    own, other = (
        np.append(0.0, np.cumsum(-np.sort(-scores[side]))) * 100 / len(scores) for side in (positive, ~positive)
    )
    P, N = positive.sum(), (~positive).sum()
    scan = np.array([[q_loss(a, b, P, N) + own[a] + other[b] for b in range(N + 1)] for a in range(P + 1)])
    scan[P, 0] = -np.inf  # the true labelling
    value, a, b = worst_table(own, other)
    assert value == pytest.approx(scan.max(), abs=1e-9)
    assert scan[a, b] == pytest.approx(value, abs=1e-9)


@given(st.sampled_from(["kld", "nkld", "ae", "rae"]), st.integers(2, 40), st.data())
def test_a_loss_is_what_the_papers_write_and_zero_at_the_truth_alone(loss, n, data):
    P = data.draw(st.integers(1, n - 1))
    positive = np.arange(n) < P
    written = [loss_of(loss, positive, np.arange(n) < k) for k in range(n + 1)]
    losses = count_losses(loss, P, n)
    np.testing.assert_allclose(losses, written, atol=1e-9)
    assert (losses == 0).tolist() == (np.arange(n + 1) == P).tolist()


def test_the_true_labelling_is_never_returned():
    positive = np.array([True, True, False, False])
    for search in (worst_by_table, lambda s, p: worst_by_count(s, p, count_losses("ae", 2, 4))):
        violation, labelling = search(np.array([9.0, 9.0, -9.0, -9.0]), positive)
        assert violation < 0
        assert (labelling != positive).any()


def test_a_loss_that_needs_more_than_a_count_is_not_tabulated():
    with pytest.raises(InvalidSetting, match="loss must be one of 'kld', 'nkld', 'ae', 'rae'; got"):
        count_losses("q", 1, 2)


@given(SEEDS, st.integers(1, 6), st.integers(1, 4), st.sampled_from([0.01, 1.0, 50.0]))
def test_the_dual_is_solved_exactly(seed, m, d, C):
    rng = np.random.default_rng(seed)
    directions, losses = rng.standard_normal((m, d)), rng.random(m) * 10
    directions[0] = 0.0
    quadratic = C * directions @ directions.T
    shares = rng.dirichlet(np.ones(m))
    solve_dual(quadratic, losses, shares)
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)
    # Optimal if and only if no plane rises above the level of those that have a share.
    heights = losses - quadratic @ shares
    assert heights.max() - shares @ heights <= 1e-9 * losses.max()


@pytest.mark.parametrize("loss", LOSSES)
@given(seed=SEEDS)
def test_the_optimum_is_that_of_all_planes_at_once(loss, seed):
    rng = np.random.default_rng(seed)
    X, positive = rng.standard_normal((6, 2)), np.arange(6) < 2
    every = lossy_labellings(loss, positive)
    planes = np.array([plane_of(X, positive, labelling) for labelling in every])
    losses = np.array([loss_of(loss, positive, labelling) for labelling in every])
    everything = Planes(3)
    for plane, one in zip(planes, losses, strict=True):
        everything.add(plane, one)
    weights, dual = everything.lift(2.0)
    primal = weights @ weights / 2 + 2 * max((losses - planes @ weights).max(), 0)
    assert primal == pytest.approx(dual, rel=1e-6)
    solution = minimise(X, positive, search_for(loss, positive), C=2.0, tol=1e-7, max_iter=500, planes=Planes(3))
    assert solution.primal == pytest.approx(primal, rel=1e-5, abs=1e-6)
    assert solution.dual <= primal + 1e-6 * abs(primal)


def test_the_objective_is_what_a_general_optimiser_finds():
    rng = np.random.default_rng(3)
    X, positive = rng.standard_normal((30, 2)), np.arange(30) < 9
    search = search_for("nkld", positive)

    def objective(weights):
        return weights @ weights / 2 + 5 * max(search(scores_of(X, weights))[0], 0.0)

    solution = minimise(X, positive, search, C=5.0, tol=1e-6, max_iter=500, planes=Planes(3))
    assert objective(solution.weights) == pytest.approx(solution.primal)
    found = minimize(objective, solution.weights + 0.1, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-8})
    assert solution.primal <= found.fun + 1e-6


@given(SEEDS)
def test_sparse_and_dense_rows_of_any_precision_give_the_same(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((7, 5)) * (rng.random((7, 5)) < 0.4)
    positive, labelling, weights = rng.random(7) < 0.5, rng.random(7) < 0.5, rng.standard_normal(6)
    for kind in (np.float64, np.float32):
        sparse = csr_matrix(X.astype(kind))
        np.testing.assert_allclose(scores_of(sparse, weights), scores_of(X, weights), atol=1e-5)
        np.testing.assert_allclose(
            plane_of(sparse, positive, labelling), plane_of(X, positive, labelling), rtol=1e-5, atol=1e-5
        )


def test_planes_without_weight_are_dropped_in_time():
    planes = Planes(2)
    planes.add(np.array([1.0, 0.0]), 10.0)
    planes.add(np.array([1.0, 0.0]), 1.0)  # below the first everywhere
    planes.lift(1.0)
    for _ in range(OLD + 1):
        planes.drop_old()
    assert planes.losses.tolist() == [0.0, 10.0]
    np.testing.assert_allclose(planes.lift(1.0)[0], [1.0, 0.0])


def test_planes_that_are_all_zero_leave_a_loss_that_no_weights_avoid():
    planes = Planes(2)
    planes.add(np.zeros(2), 3.0)
    weights, dual = planes.lift(2.0)
    assert weights.tolist() == [0.0, 0.0]
    assert dual == pytest.approx(6.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_compiled_and_plain_python_agree(loss, monkeypatch):
    rng = np.random.default_rng(0)
    X, positive = csr_matrix(rng.random((80, 6)) * (rng.random((80, 6)) < 0.5)), np.arange(80) < 30

    def run():
        search = search_for(loss, positive)
        return minimise(X, positive, search, C=20.0, tol=0.01, max_iter=50, planes=Planes(7))

    compiled = run()
    for name, loop in list(vars(svm_solver).items()):
        if hasattr(loop, "py_func"):
            monkeypatch.setattr(svm_solver, name, loop.py_func)
    plain = run()
    assert plain.primal == pytest.approx(compiled.primal, rel=1e-6)
    np.testing.assert_allclose(plain.weights, compiled.weights, atol=1e-5)


def reference_rows():
    file = REFERENCE / "reference.csv"
    return list(pd.read_csv(file).itertuples(index=False)) if file.is_file() else []


@pytest.mark.skipif(not (REFERENCE / "reference.csv").is_file(), reason="the reference values lie beside the checkout")
@pytest.mark.parametrize("row", reference_rows(), ids=lambda row: f"{row.loss}-{row.n}-{row.C}")
def test_the_reference_is_reached(row):
    X, y = csr_matrix(load_npz(REFERENCE / "X.npz"))[: row.n], np.load(REFERENCE / "y.npy")[: row.n]
    positive = y == 1
    solution = minimise(
        X,
        positive,
        search_for(row.loss, positive),
        C=float(row.C),
        tol=0.1,
        max_iter=1000,
        planes=Planes(X.shape[1] + 1),
    )
    assert solution.dual >= row.dual * 0.999 or solution.gap <= row.C * 0.1
    if row.primal - row.dual > row.C * 0.1:  # it stopped with an unsolved dual
        assert solution.primal <= row.primal
