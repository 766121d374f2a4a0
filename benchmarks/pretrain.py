"""Train QuaNet's network on simulated tasks, on one GPU; compare priors and networks by short runs.

    python benchmarks/pretrain.py train --output first.safetensors --log first.jsonl --checkpoint first.pt \
        --steps 13735 --recipe '{"prior": {"plain": 0, "weak": 1, "fold_shift": 0.25, "fold_noise": 0.3,
        "final_shift": 0.1, "final_skew": 0.8}}'
    python benchmarks/pretrain.py train --output weights.safetensors --log second.jsonl --checkpoint second.pt \
        --start first.safetensors --steps 4721 --recipe '{"lr": 0.0015}'
    python benchmarks/pretrain.py ablate --output ablations.json --recipe '{"steps": 1536, "batch": 512}' --real FOLDER
    python benchmarks/pretrain.py table ablations.json

The number of steps, not the time, decides the result; `--steps auto` measures how many fit into `--seconds`. A run that
was stopped resumes from its checkpoint. `--real` has scores of real texts, which `few_labels.py read` writes: every
network is also measured on them, and two variants learn from half of the data sets and are measured on the other half.
With `ablate --start`, variants continue from these weights; those of another network cannot.
"""

import argparse
import json
import time
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from quanet.nn.pretrain import PretrainingRecipe, losses, read_scores, train
from quanet.nn.share_network import ShareNetwork
from quanet.nn.simulator import Prior, Simulator, TaskScores

ABLATIONS = {
    "as shipped": PretrainingRecipe(),
    "no fitted classifiers": PretrainingRecipe(prior=Prior(fitted=0.0)),
    "no fold errors": PretrainingRecipe(prior=Prior(folds=False)),
    "half the fold errors": PretrainingRecipe(
        prior=Prior(fold_shift=0.08, fold_noise=0.1, final_shift=0.035, final_skew=0.3)
    ),
    "scores unrelated to the likelihood ratio": PretrainingRecipe(prior=Prior(likelihood_ratio=0.0)),
    "all scores linear in its logarithm": PretrainingRecipe(prior=Prior(plain=1.0)),
    "no scores linear in its logarithm": PretrainingRecipe(prior=Prior(plain=0.0)),
    "no steps": PretrainingRecipe(prior=Prior(steps=False)),
    "uniform shares only": PretrainingRecipe(prior=Prior(ends=False)),
    "no nearly perfect classifiers": PretrainingRecipe(prior=Prior(near_perfect=False)),
    "no large problems": PretrainingRecipe(prior=Prior(large=False)),
    "no facts": PretrainingRecipe(network={"use_facts": False}),
    "recurrent layer alone": PretrainingRecipe(network={"layers": 0}),
    "one layer of attention": PretrainingRecipe(network={"layers": 1}),
    "width of 64": PretrainingRecipe(network={"width": 64}),
}
HALVES = {  # of the real data sets
    "first half": ("imdb", "film-reviews-ko", "kindle-device", "amazon-devices"),
    "second half": ("blitzer4", "shopping-zh", "kindle-store"),
}
BAG = 500  # instances of a bag of real scores
MEASURED = 512  # tasks of real scores, for each data set and number of training rows
REAL_ROWS = (100, 300, 1000)  # training rows of tasks of real scores
START = "not trained further"


class RealTasks:
    """Tasks from scores of real texts, in files that `few_labels.py read` writes.

    Parameters
    ----------
    folder : of the files.
    rows : numbers of training rows.
    sets : names of data sets.
    device : where tasks are made.
    """

    def __init__(self, folder: Path, rows: tuple[int, ...], sets: tuple[str, ...], device: str) -> None:
        files = [file for name in sets for n in rows for file in sorted(folder.glob(f"{name}-{n}-*.npz"))]
        kept = [np.load(file) for file in files]
        most = max(len(part["codes"]) for part in kept)

        def padded(values: list[Any], width: int, fill: float) -> torch.Tensor:
            found = np.full((len(values), width), fill, np.float32)
            for row, value in zip(found, values, strict=True):
                row[: len(value)] = value[:width]
            return torch.tensor(found, device=device)

        self.held = padded([part["held"] for part in kept], most, 0.0)
        self.codes = padded([part["codes"] for part in kept], most, -1.0)
        pools = [[part["pool"][part["truth"] == c] for part in kept] for c in (0, 1)]
        widest = max(len(pool) for of_class in pools for pool in of_class)
        self.pools = torch.stack([padded(of_class, widest, 0.0) for of_class in pools], 1)
        self.sizes = torch.tensor([[len(pool) for pool in of_class] for of_class in pools], device=device).T

    def draw(self, generator: torch.Generator, number: int, smallest: int = 2, largest: int = BAG) -> TaskScores:
        """Tasks with bags of so many instances."""
        simulator, device = Simulator(generator), generator.device
        task = torch.randint(len(self.held), (number,), generator=generator, device=device)
        classes = (simulator.uniform(number, BAG) < simulator.shares(number)[:, None]).long()
        place = (simulator.uniform(number, BAG) * self.sizes[task[:, None], classes]).long()
        bag = self.pools[task[:, None], classes, place]
        size = simulator.log_uniform(number, smallest, largest + 0.5).floor()
        kept = torch.arange(BAG, device=device) < size[:, None]
        held, codes = self.held[task], self.codes[task]
        counts = held.new_zeros(number, 3, held.shape[1] + BAG)
        for c in (0, 1):
            counts[:, c, : held.shape[1]] = (codes == c).float()
        counts[:, 2, held.shape[1] :] = kept.float()
        share = (classes * kept).sum(1) / kept.sum(1)
        return TaskScores(torch.cat([held, bag], 1), counts, share)


def measured_on_real(network: Any, folder: Path, device: str, sets: tuple[str, ...]) -> dict[str, Any]:
    """Losses of a network on tasks of real scores, by data set, number of training rows and size of bags."""
    found = {}
    for rows, name in product(REAL_ROWS, sets):
        if not list(folder.glob(f"{name}-{rows}-*.npz")):
            continue
        generator = torch.Generator(device).manual_seed(rows)
        tasks = RealTasks(folder, (rows,), (name,), device)
        for size in (50, BAG):
            drawn = tasks.draw(generator, MEASURED, size, size)
            found[f"{name}/{rows}/{size}"] = losses(network, read_scores(drawn))
    return found


def network_of(weights: dict[str, torch.Tensor], device: str) -> ShareNetwork:
    """The network with these weights."""
    network = ShareNetwork().to(device)
    network.load_state_dict(weights)
    return network


def state_of(network: ShareNetwork) -> dict[str, torch.Tensor]:
    """The weights of a network, in single precision on the CPU."""
    return {name: value.float().cpu().contiguous() for name, value in network.state_dict().items()}


def measured_steps(recipe: PretrainingRecipe, device: str, seconds: float) -> int:
    """Steps that fit into so many seconds, from those after each of three draws of tasks."""
    between = recipe.chunk * recipe.chunks * recipe.reuse
    reports = train(replace(recipe, steps=3 * between, valid=64), device, every=between)
    times = [time.monotonic() for _ in reports]
    return int(seconds * 2 * between / (times[-1] - times[0]))


def stages_of(weights: Path) -> list[Any]:
    """How weights were made, stage by stage."""
    with safe_open(weights, "np") as file:
        return list(json.loads(file.metadata()["stages"]))


def recipe_of(options: argparse.Namespace) -> PretrainingRecipe:
    changed = json.loads(options.recipe)
    if "prior" in changed:
        changed["prior"] = Prior(**changed["prior"])
    return PretrainingRecipe(seed=options.seed, **changed)


def run_training(options: argparse.Namespace) -> None:
    recipe = recipe_of(options)
    steps = measured_steps(recipe, options.device, options.seconds) if options.steps == "auto" else int(options.steps)
    recipe, start = replace(recipe, steps=steps), time.monotonic()
    weights = None if options.start is None else load_file(options.start)
    earlier = [] if options.start is None else stages_of(options.start)
    command = f"python benchmarks/pretrain.py train --steps {steps} --seed {options.seed} --recipe '{options.recipe}'"
    for report in train(recipe, options.device, start_from=weights, checkpoint=options.checkpoint, every=options.every):
        network = report.pop("network_")
        report["seconds"] = round(time.monotonic() - start, 1)
        if options.real is not None and report["step"] == steps:
            report["real"] = measured_on_real(network, options.real, options.device, sum(HALVES.values(), ()))
        print(json.dumps(report), flush=True)
        with options.log.open("a") as log:
            log.write(json.dumps(report) + "\n")
        facts = {"stages": json.dumps([*earlier, {"command": command, "recipe": asdict(recipe)}])}
        partial = options.output.with_suffix(".partial")
        save_file(state_of(network), partial, facts)
        partial.replace(options.output)


def run_ablations(options: argparse.Namespace) -> None:
    found = json.loads(options.output.read_text()) if options.output.exists() else {}
    every = sum(HALVES.values(), ())
    weights = None if options.start is None else load_file(options.start)
    variants: dict[str, tuple[PretrainingRecipe, tuple[str, ...], tuple[str, ...]]] = {
        name: (recipe, (), every)
        for name, recipe in ABLATIONS.items()
        if weights is None or not set(recipe.network) - {"use_facts"}
    }
    if options.real is not None:
        for (half, learned), measured in zip(HALVES.items(), reversed(HALVES.values()), strict=True):
            variants[f"real scores of the {half}, too"] = PretrainingRecipe(), learned, measured
    if weights is not None and options.real is not None and START not in found:
        found[START] = {
            "real": measured_on_real(network_of(weights, options.device), options.real, options.device, every)
        }
    for name, (variant, learned, measured) in variants.items():
        if name in found or (options.only and name not in options.only):
            continue
        recipe = replace(variant, seed=options.seed, **json.loads(options.recipe))
        others = RealTasks(options.real, REAL_ROWS, learned, options.device).draw if learned else None
        for report in train(recipe, options.device, start_from=weights, others=others, every=recipe.steps):
            network = report.pop("network_")
            if options.real is not None:
                report["real"] = measured_on_real(network, options.real, options.device, measured)
            if options.keep is not None:
                options.keep.mkdir(parents=True, exist_ok=True)
                save_file(state_of(network), options.keep / f"{name}.safetensors")
            found[name] = report
        print(name, {key: value for key, value in found[name].items() if key != "real"}, flush=True)
        partial = options.output.with_suffix(".partial")
        partial.write_text(json.dumps(found, indent=1))
        partial.replace(options.output)


def print_table(options: argparse.Namespace) -> None:
    """Errors relative to the first variant's on the same tasks of real scores, means over data sets; then coverage."""
    found = json.loads(options.found.read_text())
    base = next(iter(found.values()))["real"]
    cases = [f"/{rows}/{size}" for rows in REAL_ROWS for size in (50, BAG)]
    print(f"| | {' | '.join('{1} rows, bags of {2}'.format(*case.split('/')) for case in cases)} |")
    print("|" + "---|" * (len(cases) + 1))
    for name, facts in found.items():
        cells = []
        for case in cases:
            kept = [key for key in facts["real"] if key.endswith(case)]
            ratio = np.mean([facts["real"][key]["network_ae"] / base[key]["network_ae"] for key in kept])
            coverage = np.mean([facts["real"][key]["network_coverage"] for key in kept])
            cells.append(f"{ratio:.3f}, {coverage:.1%}")
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    training = commands.add_parser("train")
    training.add_argument("--steps", default="auto")
    training.add_argument("--seconds", type=float, default=540.0)
    training.add_argument("--start", type=Path, help="weights of an earlier stage")
    training.add_argument("--log", type=Path, required=True)
    training.add_argument("--checkpoint", type=Path)
    training.add_argument("--every", type=int, default=512, help="steps between two lines of the log")
    training.add_argument("--recipe", default="{}", help="JSON of fields of the recipe that differ")
    training.set_defaults(run=run_training)
    ablating = commands.add_parser("ablate")
    ablating.add_argument("--keep", type=Path, help="folder for the weights of every variant")
    ablating.add_argument("--start", type=Path, help="weights that every variant continues from")
    ablating.add_argument(
        "--recipe", default="{}", help="JSON of fields in which all recipes differ from the usual one"
    )
    ablating.add_argument(
        "--only", nargs="+", choices=[*ABLATIONS, *(f"real scores of the {half}, too" for half in HALVES)]
    )
    ablating.set_defaults(run=run_ablations)
    tabulating = commands.add_parser("table")
    tabulating.add_argument("found", type=Path)
    tabulating.set_defaults(run=print_table)
    for command in (training, ablating):
        command.add_argument("--output", type=Path, required=True)
        command.add_argument("--device", default="cuda")
        command.add_argument("--seed", type=int, default=0)
        command.add_argument("--real", type=Path, help="folder of scores of real texts to measure on")
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = False
    main()
