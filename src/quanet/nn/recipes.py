"""How the networks of `QuaNet` are trained, and how a training went."""

from dataclasses import dataclass

AT_A_TIME = {"cpu": 2**22, "cuda": 2**24}  # numbers of rows that pass through the network together
GROUPS = 16  # quantile groups of the residual network
# Shares of the pools for training, early stopping and the guard; the paper's network has no guard.
POOLS = {"paper": (0.75, 0.25, 1e-9), "residual": (0.6, 0.2, 0.2)}


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a network is trained: bags in a batch, their sizes, batches in an epoch, learning rate, groups if any.

    `stop_batches` of bags of `stop_sizes` decide when to stop.
    """

    bags: int
    sizes: tuple[int, int]
    batches: int
    stop_sizes: tuple[int, int]
    stop_batches: int
    lr: float
    groups: int | None


@dataclass(frozen=True, slots=True)
class Epoch:
    """The losses of an epoch; `best` is whether its weights are the best so far."""

    number: int
    train_loss: float
    valid_loss: float
    best: bool


RECIPES = {
    "paper": Recipe(
        bags=100, sizes=(500, 500), batches=100, stop_sizes=(500, 500), stop_batches=30, lr=1e-4, groups=None
    ),
    "residual": Recipe(
        bags=50, sizes=(20, 1000), batches=50, stop_sizes=(500, 1000), stop_batches=10, lr=1e-3, groups=GROUPS
    ),
}
