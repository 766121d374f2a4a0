"""Train the network of `QuaNet` once, on simulated tasks; compare its weights with what was recorded.

    python -m quanet.nn.pretrain --check

compares the shipped weights, and their losses on fixed simulated tasks, with `share_network.json`, which also has the
commands that made them. `benchmarks/pretrain.py` makes the weights; after that, ``--record`` writes the losses.
"""

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from quanet.nn.share_network import ShareNetwork, read_tasks, surprise, swapped_bins, swapped_facts
from quanet.nn.share_reader import WEIGHTS
from quanet.nn.simulator import Prior, Simulator, TaskScores

VALIDATION_SEED = 20_181_022
CHECKED = 1024  # fixed tasks of `check`
TOLERANCE = 2e-3  # of losses, relative to their size; machines round differently
RECORD = WEIGHTS.with_suffix(".json")
# Shares of the tasks in a chunk: held-out rows of a class and instances of a bag, at most. The rest are large.
SMALL = ((0.25, 128, 256), (0.35, 512, 1024), (0.1, 1500, 2500))


@dataclass(frozen=True, slots=True)
class PretrainingRecipe:
    """How the network is trained."""

    steps: int = 20_000
    batch: int = 1024
    valid: int = 8192  # fixed tasks, of the whole prior
    chunk: int = 8  # batches whose tasks are made together
    chunks: int = 1  # that are shuffled together
    reuse: int = 1  # how often each task is seen, with its classes in either order; more where drawing tasks is slow
    lr: float = 2.5e-3
    warm_up: int = 500
    weight_decay: float = 1e-3
    seed: int = 0
    prior: Prior = field(default_factory=Prior)
    network: dict[str, Any] = field(default_factory=dict)  # arguments of `ShareNetwork`


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """What the network reads of tasks, with the nodes of their grids and their true shares."""

    bins: Tensor
    base: Tensor
    facts: Tensor
    nodes: Tensor
    share: Tensor

    def take(self, chosen: Any) -> "TaskBatch":
        """Some of the tasks."""
        return TaskBatch(*(value[chosen] for value in self.parts()))

    def parts(self) -> tuple[Tensor, ...]:
        """All arrays."""
        return self.bins, self.base, self.facts, self.nodes, self.share

    @classmethod
    def joined(cls, batches: "list[TaskBatch]") -> "TaskBatch":
        """The tasks of all batches."""
        return cls(*(torch.cat(parts) for parts in zip(*(batch.parts() for batch in batches), strict=True)))

    def with_half_swapped(self) -> "TaskBatch":
        """The same tasks; in the first half, the classes have changed places."""
        half = len(self.share) // 2
        return TaskBatch.joined([self.take(slice(half)).swapped(), self.take(slice(half, None))])

    def swapped(self) -> "TaskBatch":
        """The same tasks after the two classes have changed places, and the sign of the scores with them."""
        bins, facts = swapped_bins(self.bins), swapped_facts(self.facts)
        return TaskBatch(bins, self.base.flip(1), facts, 1 - self.nodes.flip(1), 1 - self.share)


@torch.no_grad()
def draw_batch(simulator: Simulator, size: int) -> TaskBatch:
    """So many tasks of all kinds."""
    numbers = [round(part * size) for part, *_ in SMALL]
    if not simulator.prior.large:
        numbers[1] += size - sum(numbers)
    drawn = [simulator.small(number, *most) for number, (_, *most) in zip(numbers, SMALL, strict=True) if number]
    if size > sum(numbers):
        drawn.append(simulator.large(size - sum(numbers)))
    return TaskBatch.joined([read_scores(scores) for scores in drawn])


@torch.no_grad()
def read_scores(scores: TaskScores) -> TaskBatch:
    """What the network reads of these tasks."""
    return TaskBatch(*read_tasks(scores.scores, scores.counts), scores.share)


@torch.no_grad()
def losses(network: nn.Module, batch: TaskBatch) -> dict[str, float]:
    """Surprise and absolute error of the network and of its base; coverage and width of 95 % intervals.

    Also the error of maximum likelihood itself.
    """
    parts = zip(*(torch.split(whole, 1024) for whole in batch.parts()[:3]), strict=True)
    logits = torch.cat([network(*part).float() for part in parts])
    found = {"likelihood_ae": float(((batch.facts[:, 3] + 1) / 2 - batch.share).abs().mean())}
    for name, values in (("base", batch.base), ("network", logits)):
        found[name] = float(surprise(values, batch.nodes, batch.share).mean())
        middle, lower, upper = (quantile(values, batch.nodes, level) for level in (0.5, 0.025, 0.975))
        found[f"{name}_ae"] = float((middle - batch.share).abs().mean())
        found[f"{name}_coverage"] = float(((lower <= batch.share) & (batch.share <= upper)).float().mean())
        found[f"{name}_width"] = float((upper - lower).mean())
    return found


def quantile(logits: Tensor, nodes: Tensor, level: float) -> Tensor:
    """Quantiles (t,) of distributions over nodes (t, g): half of a node's probability lies on either side of it."""
    chance = logits.softmax(1).double()
    cumulated = chance.cumsum(1) - chance / 2
    cumulated[:, 0], cumulated[:, -1] = chance[:, 0], 1 - chance[:, -1]  # the ends are shares of exactly 0 and 1
    wanted = torch.full((len(nodes), 1), level, dtype=cumulated.dtype, device=nodes.device)
    at = torch.searchsorted(cumulated.contiguous(), wanted).clamp(1, nodes.shape[1] - 1)
    below, above = cumulated.gather(1, at - 1), cumulated.gather(1, at)
    part = ((wanted - below) / (above - below).clamp_min(1e-12)).clamp(0, 1)
    low, high = nodes.gather(1, at - 1), nodes.gather(1, at)
    return (low + part * (high - low))[:, 0].float()


def train(
    recipe: PretrainingRecipe,
    device: str,
    *,
    start_from: dict[str, Tensor] | None = None,
    others: Callable[[torch.Generator, int], TaskScores] | None = None,
    checkpoint: Path | None = None,
    every: int = 512,
) -> Iterator[dict[str, Any]]:
    """Train a network, yielding its losses on fixed tasks every so many steps, with the network.

    Parameters
    ----------
    recipe : how.
    device : where.
    start_from : weights of an earlier stage.
    others : draws so many tasks that are not simulated, which half of each batch is made of.
    checkpoint : a file from which a run that was stopped resumes. It is written whenever new tasks are about to be
        drawn, so the result is the same.
    every : steps between two reports.
    """
    generator = torch.Generator(device).manual_seed(recipe.seed)
    with torch.random.fork_rng():  # layers draw their first weights from the global generator
        torch.manual_seed(recipe.seed)
        network = ShareNetwork(**recipe.network).to(device)
    if start_from is not None:
        network.load_state_dict(start_from)
    optimizer = torch.optim.AdamW(network.parameters(), recipe.lr, weight_decay=recipe.weight_decay)
    valid = draw_batch(Simulator(torch.Generator(device).manual_seed(VALIDATION_SEED)), recipe.valid)
    simulator, first = Simulator(generator, recipe.prior), 0
    if checkpoint is not None and checkpoint.exists():
        kept = torch.load(checkpoint, map_location=device, weights_only=True)
        network.load_state_dict(kept["network"])
        optimizer.load_state_dict(kept["optimizer"])
        generator.set_state(kept["generator"].cpu())
        first = kept["step"]
    for step, batch in enumerate(batches(recipe, simulator, others, first), first):
        rate = 0.5 * (1 + math.cos(math.pi * step / recipe.steps)) + 0.002
        for group in optimizer.param_groups:
            group["lr"] = recipe.lr * min(1.0, (step + 1) / recipe.warm_up) * rate
        with torch.autocast(device.split(":")[0], dtype=torch.bfloat16):
            logits = network(batch.bins, batch.base, batch.facts)
        loss = surprise(logits.float(), batch.nodes, batch.share).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        last = step + 1 == recipe.steps
        if checkpoint is not None and (last or (step + 1) % (recipe.chunk * recipe.chunks * recipe.reuse) == 0):
            partial = checkpoint.with_suffix(".partial")
            kept = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**kept, "generator": generator.get_state(), "step": step + 1}, partial)
            partial.replace(checkpoint)
        if last or (step + 1) % every == 0:
            yield {"step": step + 1, "loss": float(loss.detach()), **losses(network, valid), "network_": network}


def batches(
    recipe: PretrainingRecipe,
    simulator: Simulator,
    others: Callable[[torch.Generator, int], TaskScores] | None,
    first: int,
) -> Iterator[TaskBatch]:
    """Batches of all steps from the first of them on, which must be one at which tasks are drawn."""
    generator, drawn = simulator.generator, recipe.chunk * recipe.batch
    step = first
    while step < recipe.steps:
        parts = []
        for _ in range(recipe.chunks):
            parts.append(draw_batch(simulator, drawn if others is None else drawn // 2))
            if others is not None:
                parts.append(read_scores(others(generator, drawn - drawn // 2)))
        tasks = TaskBatch.joined(parts)
        for _ in range(recipe.reuse):
            order = torch.randperm(len(tasks.share), generator=generator, device=generator.device)
            for chosen in torch.split(order, recipe.batch)[: recipe.steps - step]:
                yield tasks.take(chosen).with_half_swapped()
                step += 1


def shipped_network() -> ShareNetwork:
    """The network with the shipped weights."""
    network = ShareNetwork()
    network.load_state_dict(load_file(WEIGHTS))
    return network


def measured() -> dict[str, Any]:
    """The hash of the shipped weights, and their losses on `CHECKED` fixed tasks, made on the CPU."""
    tasks = draw_batch(Simulator(torch.Generator("cpu").manual_seed(VALIDATION_SEED)), CHECKED)
    found = losses(shipped_network(), tasks)
    return {
        "sha256": hashlib.sha256(WEIGHTS.read_bytes()).hexdigest(),
        "tasks": CHECKED,
        "losses": {name: round(value, 6) for name, value in found.items()},
    }


def check() -> list[str]:
    """What differs from the record: the weights, or their losses. Empty if nothing does."""
    recorded, now = json.loads(RECORD.read_text()), measured()
    found = []
    if recorded["sha256"] != now["sha256"]:
        found.append(f"The weights have the hash {now['sha256']}, not {recorded['sha256']}, which was recorded.")
    for name, value in recorded["losses"].items():
        if abs(now["losses"][name] - value) > TOLERANCE * max(1.0, abs(value)):
            found.append(f"{name} is {now['losses'][name]}; {value} was recorded.")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run a command of this module; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m quanet.nn.pretrain", description="Check QuaNet's weights.")
    parser.add_argument("--check", action="store_true", help="compare the weights and their losses with the record")
    parser.add_argument("--record", action="store_true", help="write the record of new weights")
    options = parser.parse_args(arguments)
    if options.record:
        with safe_open(WEIGHTS, "np") as file:
            made = dict(file.metadata())
        RECORD.write_text(json.dumps({"made by": json.loads(made["stages"]), **measured()}, indent=1) + "\n")
        return 0
    if not options.check:
        parser.print_help()
        return 2
    found = check()
    sys.stdout.write("\n".join(found or ["The weights and their losses are those that were recorded."]) + "\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
