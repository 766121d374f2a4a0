"""The likelihoods that a method computes from posteriors: what states of more than two classes keep next to them."""

import numpy as np
from numpy.typing import NDArray

from quanet.base import Quantifier
from quanet.methods.kde import KDEyML
from quanet.uncertainty.closed_form import closed_form_of, likelihoods_of

BITS = 12  # of a likelihood


def own_likelihoods(quantifier: Quantifier, values: NDArray[np.floating]) -> NDArray[np.float32]:
    """Likelihoods (n, k) of each class, up to a factor for each row; (n, 0) if the method maximises none, or for k = 2.

    With them, the scores of exactly the likelihood that the method maximises are summed over all instances
    (`Layout.control_variates`). Two classes are kept as cells, which need no scores. Likelihoods are rounded to 12
    bits, so that they do not depend on the rows that are computed together; the estimate does not read them.
    """
    densities, formula = isinstance(quantifier, KDEyML), closed_form_of(quantifier)
    if not len(values) or len(quantifier.classes_) == 2 or not (densities or formula == "likelihood"):
        return np.empty((len(values), 0), dtype=np.float32)
    rows = quantifier.rows(values.astype(float))
    mantissas, exponents = np.frexp(rows if densities else likelihoods_of(quantifier, rows))
    return np.ldexp(np.rint(mantissas * 2**BITS), exponents - BITS).astype(np.float32)
