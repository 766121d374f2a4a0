"""What fitting a network over bags has around its loop: where it is kept, how it is shown, and how Ctrl-C ends it."""

import warnings
from collections.abc import Generator
from contextlib import closing
from typing import Any

import numpy as np
from sklearn.base import clone

from quanet.errors import InvalidSetting, QuanetWarning
from quanet.nn.batches import Pool
from quanet.nn.checkpoints import Checkpoint
from quanet.nn.loop import Epoch
from quanet.nn.progress import progress_line
from quanet.progress import report


def classifier_to_fit(quantifier: Any) -> Any:
    """The classifier of a quantifier, with the quantifier's checkpoint folder if it takes one and has none."""
    classifier = quantifier.classifier
    settings: dict[str, Any] = {} if isinstance(classifier, str) else getattr(classifier, "get_params", dict)()
    if quantifier.checkpoint is None or settings.get("checkpoint", "") is not None:
        return classifier
    return clone(classifier).set_params(checkpoint=quantifier.checkpoint)


def check_checkpoint(quantifier: Any) -> None:
    """Say what a checkpoint needs, before anything is fitted."""
    if quantifier.checkpoint is not None and quantifier.random_state is None:
        raise InvalidSetting("a checkpoint is found again by its seed: give random_state a number.")


def checkpoint_of(
    quantifier: Any, facts: tuple[Any, ...], pools: tuple[Pool, ...], rng: np.random.Generator
) -> Checkpoint | None:
    """Where a quantifier's training is kept: its checkpoint folder, if it has one."""
    if quantifier.checkpoint is None:
        return None
    arrays = [array for pool in pools for array in (pool.rows, pool.codes)]
    name = type(quantifier).__name__.lower()
    return Checkpoint(quantifier.checkpoint, name, *facts, *arrays, rng=rng)


def follow(epochs: Generator[Epoch, None, None], title: str, most: int, *, visible: bool) -> list[Epoch]:
    """Let a training run, showing it if asked; the epochs it took. Ctrl-C ends it with the best weights so far."""
    history: list[Epoch] = []
    try:
        with closing(epochs), progress_line(title, most, visible=visible) as show:
            for epoch in epochs:
                history.append(epoch)
                show(epoch)
                report("network", len(history) / most)
    except KeyboardInterrupt:
        warnings.warn(
            f"training was interrupted after {len(history)} epochs; the best weights so far are kept.",
            QuanetWarning,
            stacklevel=5,
        )
    return history
