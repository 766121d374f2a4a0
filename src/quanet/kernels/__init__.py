"""The compiled loops, each over a whole stack of bags: numba's only door.

A kernel fills arrays that its caller made and checked; it neither validates nor allocates by the number of bags.
"""

from quanet.kernels.bag_rows import count_argmax as count_argmax
from quanet.kernels.bag_rows import draw_by_class as draw_by_class
from quanet.kernels.compiled_network import GRID as GRID
from quanet.kernels.compiled_network import mirror as mirror
from quanet.kernels.compiled_network import read_shares as read_shares
from quanet.kernels.compiler import compiled as compiled
from quanet.kernels.histograms import add_cells as add_cells
from quanet.kernels.histograms import count_cells as count_cells
from quanet.kernels.histograms import count_cubic as count_cubic
from quanet.kernels.histograms import nearest_by_order as nearest_by_order
from quanet.kernels.histograms import nearest_of_two as nearest_of_two
from quanet.kernels.histograms import rank_quadratics as rank_quadratics
from quanet.kernels.importance_weights import bounded_shifts as bounded_shifts
from quanet.kernels.importance_weights import mean_entries as mean_entries
from quanet.kernels.maximum_likelihood import binary_expectation_maximization as binary_expectation_maximization
from quanet.kernels.maximum_likelihood import binary_likelihood as binary_likelihood
from quanet.kernels.maximum_likelihood import contrasts as contrasts
from quanet.kernels.maximum_likelihood import expectation_maximization as expectation_maximization
from quanet.kernels.maximum_likelihood import expectation_step as expectation_step
from quanet.kernels.maximum_likelihood import mixture_likelihood as mixture_likelihood
from quanet.kernels.prior_likelihood import incremental_prior as incremental_prior
from quanet.kernels.prior_likelihood import smooth_likelihood as smooth_likelihood
from quanet.kernels.quadratic import simplex_quadratic as simplex_quadratic
from quanet.kernels.quadratic import simplex_quadratics as simplex_quadratics
from quanet.kernels.quadratic import simplex_quadratics_of as simplex_quadratics_of
from quanet.kernels.threshold_sweep import CELLS as CELLS
from quanet.kernels.threshold_sweep import cells_of as cells_of
from quanet.kernels.threshold_sweep import median_sweep as median_sweep
