"""The compiled loops, each over a whole stack of bags: numba's only door.

A kernel fills arrays that its caller made and checked; it neither validates nor allocates by the number of bags.
"""

from quanet.kernels.bags import count_argmax as count_argmax
from quanet.kernels.bags import draw_by_class as draw_by_class
from quanet.kernels.bags import pool_in_order as pool_in_order
from quanet.kernels.compiler import compiled as compiled
from quanet.kernels.likelihood import binary_expectation_maximization as binary_expectation_maximization
from quanet.kernels.likelihood import binary_likelihood as binary_likelihood
from quanet.kernels.likelihood import contrasts as contrasts
from quanet.kernels.likelihood import expectation_maximization as expectation_maximization
from quanet.kernels.likelihood import expectation_step as expectation_step
from quanet.kernels.likelihood import mixture_likelihood as mixture_likelihood
from quanet.kernels.matching import add_cells as add_cells
from quanet.kernels.matching import count_cells as count_cells
from quanet.kernels.matching import count_cubic as count_cubic
from quanet.kernels.matching import nearest_by_order as nearest_by_order
from quanet.kernels.matching import nearest_of_two as nearest_of_two
from quanet.kernels.matching import rank_quadratics as rank_quadratics
from quanet.kernels.priors import incremental_prior as incremental_prior
from quanet.kernels.priors import smooth_likelihood as smooth_likelihood
from quanet.kernels.quadratic import simplex_quadratic as simplex_quadratic
from quanet.kernels.quadratic import simplex_quadratics as simplex_quadratics
from quanet.kernels.quadratic import simplex_quadratics_of as simplex_quadratics_of
from quanet.kernels.thresholds import CELLS as CELLS
from quanet.kernels.thresholds import cells_of as cells_of
from quanet.kernels.thresholds import median_sweep as median_sweep
from quanet.kernels.weights import bounded_shifts as bounded_shifts
from quanet.kernels.weights import mean_entries as mean_entries
