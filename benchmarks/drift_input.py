"""Drift inside QuaNet's network or outside: interval scores where data drift naturally, and where they do not.

    python benchmarks/drift_input.py train --output tmp/drift-input.safetensors --seconds 600
    python benchmarks/drift_input.py measure FOLDER --weights tmp/drift-input.safetensors

*Outside*: the drift scale widens the intervals of the shipped network, as `QuaNet` does. *Inside*: the shipped network
gets the size of the expected drift as one more input and is trained further on simulated tasks whose bags have another
share than the one that is asked for; how far off it is follows from that size. FOLDER contains the files that
`drift.py` needs.
"""

import argparse
import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from drift import BAGS, SCENARIOS, SIZE
from quanet import UPP, QuaNet, predict_interval_bags
from quanet.nn.pretrain import TaskBatch, quantile, read_scores, shipped_network
from quanet.nn.share_network import FACTS, GRID, WIDTH, ShareNetwork, read_tasks, surprise
from quanet.nn.simulator import Simulator

LEAST, MOST = 1e-5, 1.0  # variance of the bias relative to p (1 - p); a quarter of the tasks have the least
MEASURED = (
    *("amazon-devices", "kindle-store", "blitzer4 without books", "blitzer4 without dvd"),
    *("blitzer4 without electronics", "blitzer4 without kitchen"),
    *("halves of amazon-devices-test", "halves of kindle-device-test", "halves of blitzer4"),
)


class DriftNetwork(ShareNetwork):
    """The shipped network, with the logarithm of the drift's variance as one more fact."""

    def __init__(self) -> None:
        super().__init__()
        self.curve = nn.Linear(2 * GRID + FACTS + 1, WIDTH)

    @classmethod
    def from_shipped(cls) -> "DriftNetwork":
        """It ignores the new input at first."""
        network, state = cls(), shipped_network().state_dict()
        state["curve.weight"] = torch.cat([state["curve.weight"], torch.zeros(WIDTH, 1)], 1)
        network.load_state_dict(state)
        return network


def facts_with(facts: Tensor, variance: Tensor) -> Tensor:
    """Facts (t, FACTS + 1) of tasks with variances (t,)."""
    return torch.cat([facts, variance.clamp(LEAST, MOST).log()[:, None] / 4], 1)


def drifted(share: Tensor, variance: Tensor, generator: torch.Generator) -> Tensor:
    """Shares (t,) that are off by so much in angles, which have about the same variance everywhere; 0 and 1 reflect."""
    off = variance.sqrt() / 2 * torch.randn(len(share), generator=generator, device=generator.device)
    return torch.sin(torch.asin(share.clamp(0, 1).sqrt()) + off) ** 2


def draw(simulator: Simulator, size: int) -> tuple[TaskBatch, Tensor]:
    """Tasks with drift, and its variance."""
    some = size // 2
    read = [read_scores(simulator.small(some, 128, 512)), read_scores(simulator.large(size - some))]
    batch = TaskBatch(*(torch.cat(parts) for parts in zip(*(one.parts() for one in read), strict=True)))
    variance = simulator.log_uniform(size, LEAST, MOST)
    variance = torch.where(simulator.uniform(size) < 0.25, torch.full_like(variance, LEAST), variance)
    share = drifted(batch.share, variance * (variance > LEAST), simulator.generator)
    return TaskBatch(*batch.parts()[:4], share), variance


def train(options: argparse.Namespace) -> None:
    generator = torch.Generator(options.device).manual_seed(options.seed)
    simulator, network = Simulator(generator), DriftNetwork.from_shipped().to(options.device)
    optimizer = torch.optim.AdamW(network.parameters(), options.lr, weight_decay=1e-3)
    start, step = time.monotonic(), 0
    while (done := (time.monotonic() - start) / options.seconds) < 1:
        batch, variance = draw(simulator, options.batch)
        for group in optimizer.param_groups:
            group["lr"] = options.lr * min(1, (step + 1) / 20) * (0.5 * (1 + math.cos(math.pi * done)) + 0.002)
        logits = network(batch.bins, batch.base, facts_with(batch.facts, variance))
        loss = surprise(logits, batch.nodes, batch.share).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 20 == 1:
            print(
                f"{step} steps of {options.batch}, {time.monotonic() - start:.0f} s: {float(loss.detach()):.3f}",
                flush=True,
            )
    save_file({name: value.cpu().contiguous() for name, value in network.state_dict().items()}, options.output)


@torch.no_grad()
def inside(network: DriftNetwork, quantifier: Any, rows: Any, bags: Any, variance: Any) -> tuple[Any, Any, Any]:
    """Estimates and ends of 95 % intervals (b,) of the class that the network reads."""
    known = quantifier.known_
    held, counts = (torch.tensor(part[0], dtype=torch.float32) for part in known.of_two())
    ratios = known.ratios_of((rows / quantifier.prior_)[..., known.order])
    found = []
    for at, bag in enumerate(bags.indices):
        new = torch.tensor(ratios[bag], dtype=torch.float32)
        both = torch.zeros(1, 3, len(held) + len(new))
        both[0, :2, : len(held)], both[0, 2, len(held) :] = counts.T, 1.0
        bins, base, facts, nodes = read_tasks(torch.cat([held, new])[None], both)
        logits = network(bins, base, facts_with(facts, torch.tensor([float(variance[at])])))
        mean = float((logits.softmax(1) * nodes).sum())
        found.append([mean, *(float(quantile(logits, nodes, level)) for level in (0.025, 0.975))])
    return tuple(np.array(found).T)


def facts_of(estimate: Any, lower: Any, upper: Any, right: Any) -> list[float]:
    miss = np.maximum(lower - right, 0) + np.maximum(right - upper, 0)
    values = (np.abs(estimate - right), miss <= 1e-9, upper - lower, upper - lower + 40 * miss)
    return [float(np.mean(value)) for value in values]


def measure(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    network = DriftNetwork()
    network.load_state_dict(load_file(options.weights))
    names = ("AE", "coverage", "width", "interval score")
    print(
        f"| scenario | kind | {' | '.join(f'{name}, {where}' for where in ('outside', 'inside') for name in names)} |"
    )
    print("|" + "---|" * (2 + 2 * len(names)), flush=True)
    for name in options.only or MEASURED:
        train_part, target = SCENARIOS[name].read(options.folder, options.seed)
        quantifier = QuaNet().fit(train_part["text"].tolist(), train_part["label"].to_numpy())
        inputs = quantifier.read(target["text"].tolist())
        labels = target["label"].to_numpy()
        bags = UPP(bag_size=SIZE, repeats=BAGS).draw(labels, rng=options.seed, classes=quantifier.classes_)
        interval = predict_interval_bags(quantifier, inputs, bags)
        c = quantifier.known_.order[1]
        right = bags.prevalences[:, c]
        outer = facts_of(interval.estimate[:, c], interval.lower[:, c], interval.upper[:, c], right)
        rows = quantifier.rows(inputs.values)
        inner = facts_of(*inside(network, quantifier, rows, bags, interval.drift.variance), right)
        print(
            f"| {name} | {SCENARIOS[name].kind} | {' | '.join(f'{value:.4f}' for value in outer + inner)} |", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    training = verbs.add_parser("train")
    training.add_argument("--output", type=Path, required=True)
    training.add_argument("--seconds", type=float, default=600.0)
    training.add_argument("--device", default="cpu")
    training.add_argument("--batch", type=int, default=256)
    training.add_argument("--lr", type=float, default=1e-3)
    training.set_defaults(run=train)
    measuring = verbs.add_parser("measure")
    measuring.add_argument("folder", type=Path)
    measuring.add_argument("--weights", type=Path, required=True)
    measuring.add_argument("--only", nargs="+", choices=MEASURED)
    measuring.set_defaults(run=measure)
    for verb in (training, measuring):
        verb.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
