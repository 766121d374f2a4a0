"""The contract that every quantifier keeps, as checks: for our methods and for anyone's."""

from collections.abc import Callable

import numpy as np

from quanet.base import Quantifier
from quanet.data.synthetic import Gaussians
from quanet.testing import laws
from quanet.testing.laws import ContractCase, LabelKind, names_of

LAWS: tuple[Callable[[ContractCase], None], ...] = (
    laws.inputs_are_untouched,
    laws.on_the_simplex,
    laws.order_is_irrelevant,
    laws.training_order_is_irrelevant,
    laws.relabelling_permutes,
    laws.batch_equals_loop,
    laws.weights_repeat_instances,
    laws.classes_are_the_labels,
    laws.read_once_is_read,
    laws.same_seed_same_result,
    laws.works_in_scikit_learn,
    laws.perfect_classifier_is_exact,
    laws.degenerate_classifiers_give_shares,
    laws.unfitted_is_an_error,
    laws.bad_input_is_a_clear_error,
    laws.nothing_is_written,
    laws.survives_saving,
)


def check_quantifier(quantifier: Quantifier, *, k: int = 2, labels: LabelKind = "string", seed: int = 0) -> None:
    """Raise an AssertionError that names the law a quantifier breaks; return nothing if it keeps all.

    Call it in the tests of your own method. The laws: estimates are on the simplex, the order of instances matters
    neither in a bag nor in `fit`, other names of the classes permute the estimate, a bag does not depend on its
    neighbours, a perfect classifier gives the exact prevalences, equal seeds give equal results, errors are clear, and
    more.

    Parameters
    ----------
    quantifier : not fitted. It must accept numbers (n, d) and, if it uses posteriors, the classifier "precomputed".
    k : number of classes of the data that it is tested on.
    labels : kind of the labels: "string", "integer" or "boolean" (two classes only).
    seed : of the data.

    Examples
    --------
    >>> from quanet import PACC
    >>> check_quantifier(PACC(), k=3, labels="string")
    """
    names = names_of(k, labels)
    source = Gaussians(k=k, distance=3.0)
    uniform = np.full(k, 1 / k)
    X, codes = source.draw(uniform, 60 * k, rng=seed)
    pool, _ = source.draw(uniform, 40 * k, rng=seed + 1)
    case = ContractCase(quantifier, X, codes, names, pool)
    for law in LAWS:
        try:
            law(case)
        except AssertionError as error:
            raise AssertionError(f"{quantifier} breaks a law. {law.__doc__} {error}") from error
