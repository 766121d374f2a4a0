"""Products of TF-IDF rows with weights or directions, computed text by text: the rows are never stored.

The result for a text depends on no other text, to the last bit.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import FloatArray
from quanet.classifiers.characters import Characters
from quanet.classifiers.derived import derived
from quanet.classifiers.terms import Terms
from quanet.kernels.term_counts import project

Floats = NDArray[np.float32]
FACTORS = np.concatenate([[0], 1 + np.log(np.arange(1, 1024))])  # weights of counts; those of larger ones are computed
NO_DIRECTIONS: Floats = np.empty((0, 0), dtype=np.float32)


def project_terms(
    terms: Terms,
    read: Characters,
    views: Sequence[tuple[float, Floats]] = (),
    directions: Floats | None = None,
    *,
    by_term: bool = True,
) -> tuple[FloatArray, Floats]:
    """Scores (n, c) of texts, and their positions (n, e) along directions.

    Parameters
    ----------
    terms : fitted.
    read : the characters of n texts.
    views : shares and weights (d + 1, c) of regressions on these terms; the last row of the weights is the intercept.
        The score is the weighted sum of theirs. Empty: c is 0.
    directions : of the first w terms: (w, e) if `by_term`, else (e, w). None: e is 0.
    """
    sources = terms.idf, *(part for view in views for part in view)
    records, shift = derived(terms, "scored" if views else "unscored", sources, lambda: _records(terms.idf, views))
    rows = NO_DIRECTIONS
    if directions is not None:
        turned = directions if by_term else directions.T
        rows = derived(terms, "directions", (directions,), lambda: np.array(turned, order="C"))
    n = len(read[1]) - 1
    scores, positions = np.empty((n, len(shift))), np.empty((n, rows.shape[1]), dtype=np.float32)
    counts = np.zeros(len(records), dtype=np.int32)
    how = terms.unit == "words", terms.repeats
    size = terms.longest, terms.bits
    project(*how, *read, *size, terms.columns, counts, records, rows, FACTORS, scores, positions)
    return scores + shift, positions


def _records(idf: Floats, views: Sequence[tuple[float, Floats]]) -> tuple[Floats, FloatArray]:
    """The idf of each term and its weights times idf (d + 1, 1 + c), side by side in memory, and the intercepts (c,).

    The last row is zero. It stands for unknown terms.
    """
    weights = np.zeros((len(idf) + 1, views[0][1].shape[1] if views else 0), dtype=np.float32)
    for share, part in views:
        weights += np.float32(share) * part
    records = np.zeros((len(idf) + 1, 1 + weights.shape[1]), dtype=np.float32)
    records[:-1, 0] = idf
    np.multiply(idf[:, None], weights[:-1], out=records[:-1, 1:])
    return records, weights[-1].astype(float)
