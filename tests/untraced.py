"""Calls into libraries that coverage does not trace: Python 3.11 has no cheap tracer, and it traces every file."""

import sys
from contextlib import suppress
from functools import wraps
from importlib import import_module

LIBRARIES = {
    "numba.core.dispatcher": ["Dispatcher.compile"],
    "matplotlib.figure": ["Figure.savefig", "Figure.subplots", "Figure.draw_without_rendering", "Figure.findobj"],
    "rich.console": ["Console.print"],
    "rich.table": ["Table.__rich_measure__"],
    "scipy.stats.distributions": ["rv_continuous.ppf", "rv_continuous.isf", "rv_continuous.sf", "rv_continuous.cdf"],
    "sklearn.linear_model": ["LogisticRegression.fit"],
    "sklearn.utils.extmath": ["randomized_svd"],
    "torch": ["Tensor.backward"],
    "torch.nn": ["LSTM.forward"],
    "torch.optim": ["Adam.__init__", "Adam.step"],
}


def _resume():
    """The first call after `sys.settrace` lets coverage install its fast tracer again."""


def untraced(function):
    """`function`, whose lines and calls are not traced. Its caller's are: coverage finds the same frame as before."""

    @wraps(function)
    def call(*args, **options):
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            return function(*args, **options)
        finally:
            sys.settrace(tracer)
            _resume()

    return call


def untrace_libraries():
    """Do not trace what takes long in libraries and calls nothing of quanet, except `prefetch` when it is compiled."""
    for place, names in LIBRARIES.items():
        with suppress(ImportError):
            module = import_module(place)
            for name in names:
                *owner, last = name.split(".")
                home = getattr(module, owner[0]) if owner else module
                setattr(home, last, untraced(getattr(home, last)))
