r"""How much of their bias bags share that drifted in the same way.

The bias of a bag depends on its displacement from the nearest mixture of the training classes, whose squared length is
its distance D (`quanet.drift.profile`), and on the classes of its instances. Two bags share their bias if both agree.
The correlation of their biases is

.. math:: \rho_{AB} = \Big(\frac{D_A + D_B - D_{AB}}{2 \sqrt{D_A D_B}}\Big)^\kappa
          \cdot \frac{p_A \cdot p_B}{\lVert p_A \rVert \lVert p_B \rVert}

with the squared distance :math:`D_{AB}` between the bags, beyond what their prevalences explain. The first factor is a
power of the cosine of the displacements, at least 0. The power :math:`\kappa` is `POWER`, so that bags that drifted
in different directions share hardly any bias (`benchmarks/natural_differences.py`). Drift that cannot be seen comes
from the means of the training classes, which both bags share: its correlation is the second factor, with the
prevalences divided by the root of the class counts.
"""

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.instances import Inputs
from quanet.drift.profile import BagMeans, share_between
from quanet.drift.scale import variance_at
from quanet.uncertainty.widening import Drift, described

POWER = 8  # of the cosine of two displacements


def drift_correlation(
    quantifier: Quantifier, inputs: Inputs, bags: Bags, estimate: FloatArray, drift: Drift, members: IntArray
) -> FloatArray:
    """Correlation (m, g, g) of the biases of the bags at positions (m, g); 0 where drift is unknown.

    Parameters
    ----------
    quantifier : fitted, with a drift scale.
    inputs, bags : b bags of the inputs.
    estimate, drift : of these bags.
    members : bags whose biases are compared with each other.
    """
    m, g = members.shape
    correlation = np.broadcast_to(np.eye(g), (m, g, g)).copy()
    scale, descriptions = quantifier.drift_, described(quantifier, inputs)
    if scale is None or scale.profile is None or descriptions is None:
        return correlation
    rows, columns = np.triu_indices(g, 1)
    first, second = members[:, rows].ravel(), members[:, columns].ravel()
    means = BagMeans.of(descriptions, bags, inputs.hashes)
    found = scale.profile.compare_pairs(means, first, second)
    least = scale.profile.compare(BagMeans.of(descriptions, Bags([bags.flat]), inputs.hashes)).deviations[0]
    apart = share_between(found.distances, found.deviations, float(least))
    known = np.isfinite(drift.variance)
    total, distances = (np.where(known, values, 0.0) for values in (drift.variance, drift.distance))
    seen = np.sqrt(np.minimum(variance_at(distances, scale.rate), total))
    lengths = np.maximum(2 * np.sqrt(distances[first] * distances[second]), 1e-300)
    cosine = np.clip((distances[first] + distances[second] - apart) / lengths, 0, 1)
    classes = _unit(estimate)
    unseen = np.sqrt(total - seen**2)[:, None] * _unit(estimate / np.sqrt(scale.profile.counts))
    covariance = seen[first] * seen[second] * cosine**POWER * (classes[first] * classes[second]).sum(axis=1)
    covariance += (unseen[first] * unseen[second]).sum(axis=1)
    values = covariance / np.maximum(np.sqrt(total[first] * total[second]), 1e-300)
    values = np.where(known[first] & known[second], np.clip(values, -1, 1), 0.0).reshape(m, -1)
    correlation[:, rows, columns] = values
    correlation[:, columns, rows] = values
    return correlation


def _unit(rows: FloatArray) -> FloatArray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
