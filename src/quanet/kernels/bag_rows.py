"""Bags: drawing them, counting in them."""

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.kernels.compiler import compiled


@compiled
def draw_by_class(pool: IntArray, starts: IntArray, counts: IntArray, uniforms: FloatArray, out: IntArray) -> None:
    """Draw ``counts[i, c]`` instances of every class `c` for every bag `i`, one bag after another into `out`.

    ``pool[starts[c]:starts[c + 1]]`` are the instances of class `c`; the slice is shuffled in place as far as a bag
    needs (Fisher and Yates), which leaves every later bag uniform too. A class with too few instances is drawn from
    with replacement.
    """
    position = 0
    for i in range(counts.shape[0]):
        for c in range(counts.shape[1]):
            first = starts[c]
            available = starts[c + 1] - first
            wanted = counts[i, c]
            for j in range(wanted):
                if wanted <= available:
                    other = first + j + np.int64(uniforms[position] * (available - j))
                    chosen = pool[other]
                    pool[other] = pool[first + j]
                    pool[first + j] = chosen
                else:
                    chosen = pool[first + np.int64(uniforms[position] * available)]
                out[position] = chosen
                position += 1


@compiled
def count_argmax(posteriors: FloatArray, out: FloatArray) -> None:
    """Add to ``out[i, c]`` the instances of bag `i` whose largest posterior is that of class `c`."""
    n, k = posteriors.shape[1:]
    for i in range(posteriors.shape[0]):
        if k == 2:  # without a branch, so that many instances are compared at once
            second = 0
            for j in range(n):
                second += posteriors[i, j, 1] > posteriors[i, j, 0]
            out[i, 0] += n - second
            out[i, 1] += second
        else:
            for j in range(n):
                best, top = 0, posteriors[i, j, 0]
                for c in range(1, k):
                    value = posteriors[i, j, c]
                    if value > top:
                        best, top = c, value
                out[i, best] += 1
