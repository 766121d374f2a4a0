"""What hypothesis draws: prevalences, stacks of posteriors, and fixed ones for comparison with peers."""

import numpy as np
from hypothesis import strategies as st

from quanet.arrays import FloatArray, IntArray

SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def prevalences(draw: st.DrawFn, k: int | None = None, b: int = 5) -> FloatArray:
    """A stack of prevalence vectors (b, k), corners and edges of the simplex among them."""
    classes = draw(st.integers(2, 6)) if k is None else k
    rng = np.random.default_rng(draw(SEEDS))
    points = rng.dirichlet(np.full(classes, draw(st.sampled_from([0.05, 0.5, 1.0, 20.0]))), size=b)
    points[0] = np.eye(classes)[rng.integers(classes)]
    return points


@st.composite
def posteriors(draw: st.DrawFn, k: int | None = None) -> FloatArray:
    """A stack of bags of posteriors (b, n, k), some of them nearly or exactly certain."""
    classes = draw(st.integers(2, 5)) if k is None else k
    b, n = draw(st.integers(1, 4)), draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(SEEDS))
    stack = rng.dirichlet(np.full(classes, draw(st.sampled_from([0.02, 0.3, 1.0, 10.0]))), size=(b, n))
    certain = rng.random((b, n)) < draw(st.sampled_from([0.0, 0.3]))
    stack[certain] = np.eye(classes)[rng.integers(classes, size=int(certain.sum()))]
    return stack / stack.sum(axis=-1, keepdims=True)


def fixed_posteriors(n: int, k: int, shift: float) -> tuple[FloatArray, IntArray]:
    """Posteriors and classes by a formula, so that a peer's answers to them can be written down."""
    i, c = np.arange(n)[:, None], np.arange(k)[None, :]
    y = (np.arange(n) * 7 + np.arange(n) // 5) % k
    weights = np.exp(2.0 * np.sin(1.3 * i + 2.1 * c + shift) + 1.6 * (c == y[:, None]))
    return weights / weights.sum(axis=1, keepdims=True), y
