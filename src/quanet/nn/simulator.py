"""Simulated quantification tasks: labelled held-out scores and an unlabelled bag, from random classification problems.

QuaNet's network is trained on such tasks only. Which problems are drawn, and how often, is its prior:

=================  ====================================================================================================
held-out rows      20 to 20,000, at least 2 to 8 of each class; training prevalence from Beta(1.2, 1.2), in a quarter of
                   the problems from Beta(.5, .5)
bags               2 to 100,000 instances
shares             uniform from 0 to 1 (70 %), Beta(.4, .4) (22 %), exactly 0 or 1 (8 %)
score problems     each class is a mixture of three Gaussians on a line; the score is a warped likelihood ratio
                   (`Warp`); distances from useless to nearly perfect
fitted problems    a ridge classifier, fitted to simulated features in five folds; held-out scores come from the folds,
                   scores of the bag from a fit to all rows
large problems     as score problems, but drawn as counts per cell of a fine grid, so that 100,000 instances cost as
                   little as a thousand
fold errors        held-out scores of the five folds differ in scale and place and are noisier than those of the bag,
                   which are a little larger and, if one class is rare, nearer to it; the more so, the fewer rows
steps              one problem in six has scores of few values, as votes and trees give
=================  ====================================================================================================

Every function takes a `torch.Generator`, on the device where the tasks are made.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

FEWEST = 2  # held-out rows of a class; most problems have at least 5
FOLDS = 5
COMPONENTS = 3  # of the mixture of a class
CERTAIN = 30.0  # largest log-likelihood ratio
LEVELS = (4, 5, 10, 20, 50, 100)  # of scores with steps


@dataclass(frozen=True, slots=True)
class Prior:
    """Parts of the prior that can be switched off, to measure how much they matter."""

    fitted: float = 0.65  # share of the small problems with a fitted classifier
    folds: bool = True
    steps: bool = True
    ends: bool = True  # more shares near 0 and 1 than a uniform distribution has
    likelihood_ratio: float = 0.85  # share of the score problems whose scores grow with the likelihood ratio
    warp: float = 1.0  # how far from linear they grow with its logarithm
    plain: float = 0.7  # share of all problems whose scores are linear in it, and whose features are Gaussian
    weak: float = 1.6  # power of the uniform numbers that distances are drawn from: above 1, small ones are frequent
    near_perfect: bool = True
    large: bool = True
    fold_shift: float = 0.15  # largest shift of a fold's scores, in spreads
    fold_noise: float = 0.2  # largest noise of held-out scores
    final_shift: float = 0.07  # of the scores of bags
    final_skew: float = 0.6  # their shift if one class is rare


@dataclass(frozen=True, slots=True)
class TaskScores:
    """Tasks as weighted scores.

    Attributes
    ----------
    scores : (t, m) of all instances; unused places have a count of 0.
    counts : (t, 3, m) how many held-out instances of the first class, of the second, and of the bag have them.
    share : (t,) of the second class in the bag, as realised.
    """

    scores: Tensor
    counts: Tensor
    share: Tensor


class Simulator:
    """Draws tasks on a device.

    Parameters
    ----------
    generator : of random numbers.
    prior : which problems are drawn.
    """

    def __init__(self, generator: torch.Generator, prior: Prior | None = None) -> None:
        self.generator = generator
        self.prior = prior or Prior()

    @property
    def device(self) -> torch.device:
        """Where tasks are made."""
        return self.generator.device

    def uniform(self, *size: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Uniform random numbers."""
        return low + (high - low) * torch.rand(*size, generator=self.generator, device=self.device)

    def normal(self, *size: int) -> Tensor:
        """Standard normal random numbers."""
        return torch.randn(*size, generator=self.generator, device=self.device)

    def gamma(self, shape: Tensor) -> Tensor:
        """Gamma random numbers."""
        # The public distributions draw from the global generator only.
        return torch._standard_gamma(shape, generator=self.generator)  # noqa: SLF001

    def beta(self, size: int, a: float, b: float) -> Tensor:
        """Beta random numbers (size,)."""
        first, second = (self.gamma(torch.full((size,), value, device=self.device)) for value in (a, b))
        return first / (first + second).clamp_min(1e-30)

    def log_uniform(self, size: int, low: float, high: float) -> Tensor:
        """Numbers (size,) whose logarithms are uniform."""
        return self.uniform(size, low=math.log(low), high=math.log(high)).exp()

    def plain(self, size: int) -> Tensor:
        """Which problems are plain, (size, 1): 1 or 0."""
        return (self.uniform(size, 1) < self.prior.plain).float()

    def distances(self, size: int, low: float, high: float) -> Tensor:
        """Distances (size,) between classes, of which nearly perfect classifiers have large ones."""
        largest = high if self.prior.near_perfect else high / 2
        return low + (largest - low) * self.uniform(size) ** self.prior.weak

    def shares(self, size: int) -> Tensor:
        """Intended shares of the second class, (size,)."""
        share, kind = self.uniform(size), self.uniform(size)
        if not self.prior.ends:
            return share
        share = torch.where(kind < 0.22, self.beta(size, 0.4, 0.4), share)
        return torch.where(kind > 0.92, (share > 0.5).float(), share)

    def class_sizes(self, size: int, low: float, high: float) -> tuple[Tensor, Tensor]:
        """Held-out rows of both classes: (size,) each, at least `FEWEST`, together between two numbers."""
        rows = self.log_uniform(size, low, high)
        skewed = self.uniform(size) < 0.25
        prior = torch.where(skewed, self.beta(size, 0.5, 0.5), self.beta(size, 1.2, 1.2))
        fewest = self.log_uniform(size, FEWEST, 9)
        second = (rows * prior).maximum(fewest)
        return (rows - second).maximum(fewest).floor(), second.floor()

    def small(self, size: int, rows: int, bag: int) -> TaskScores:
        """Tasks with at most so many held-out rows of each class, and instances in a bag."""
        fitted = round(size * self.prior.fitted)
        numbers = {self._fitted: fitted, self._scored: size - fitted}
        return joined([draw(number, rows, bag) for draw, number in numbers.items() if number])

    def _sizes(self, size: int, rows: int, bag: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Which of the places are used, (size, rows), (size, rows) and (size, bag), and the classes in the bag."""
        first, second = (part.clamp(max=rows) for part in self.class_sizes(size, 20, 1.6 * rows))
        number = self.log_uniform(size, FEWEST, bag).floor()
        place = torch.arange(max(rows, bag), device=self.device)
        classes = (self.uniform(size, bag) < self.shares(size)[:, None]).long()
        used = (place[:rows] < first[:, None], place[:rows] < second[:, None], place[:bag] < number[:, None])
        return *used, classes

    def _scored(self, size: int, rows: int, bag: int) -> TaskScores:
        """Score problems: the score is a function of the likelihood ratio."""
        negative, positive, kept, classes = self._sizes(size, rows, bag)
        problem = Problem.draw(self, size)
        known = torch.cat([torch.zeros_like(negative), torch.ones_like(positive)], 1).long()
        held, new = (problem.scores(problem.draw_points(self, part)) for part in (known, classes))
        held, new = self._with_fold_errors(held, new, negative.sum(1), positive.sum(1))
        return self._finished(held, new, negative, positive, kept, classes)

    def _with_fold_errors(self, held: Tensor, new: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """Held-out scores (t, m) and those of bags (t, n) as cross-fitting gives them, from so many rows (t,) a class.

        The classifiers of the folds differ from each other, and the final one is better than they are.
        """
        few = (30 / (first + second)).sqrt().clamp(max=1)[:, None]
        spread = held.std(dim=1, keepdim=True)
        new = self._as_final(new, spread, first, second)
        if not self.prior.folds:
            return held, new
        fold = torch.arange(held.shape[1], device=self.device) % FOLDS
        scale = torch.exp(0.2 * few * self.uniform(len(held), 1) * self.normal(len(held), FOLDS))[:, fold]
        shift = (self.prior.fold_shift * few * spread * self.uniform(len(held), 1) * self.normal(len(held), FOLDS))[
            :, fold
        ]
        noise = self.prior.fold_noise * few * spread * self.uniform(len(held), 1) * self.normal(*held.shape)
        return held * scale + shift + noise, new

    def _as_final(self, new: Tensor, spread: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """Scores (t, n) as a classifier gives them that was fitted to all rows: larger, nearer to the rarer class."""
        few = (30 / (first + second)).sqrt().clamp(max=1)[:, None]
        larger = torch.exp(0.15 * few * self.normal(len(new), 1).abs())
        if not self.prior.folds:
            return new * larger
        skew = ((second - first) / (second + first))[:, None]
        shift = self.prior.final_shift * self.normal(len(new), 1)
        shift = shift - self.prior.final_skew * skew * self.normal(len(new), 1).abs()
        return new * larger + few * spread * shift

    def _fitted(self, size: int, rows: int, bag: int) -> TaskScores:
        """Fitted problems: a ridge classifier on simulated features, in folds."""
        negative, positive, kept, classes = self._sizes(size, rows, bag)
        width, centres = 96, 4
        decay = self.uniform(size, 1, low=0.0, high=1.0)
        scale = torch.arange(1, width + 1, device=self.device)[None] ** -decay
        distance = self.distances(size, 0.3, 7.0)[:, None]
        direction = self.normal(size, width) * (self.uniform(size, width) < self.log_uniform(size, 0.05, 1.0)[:, None])
        direction = direction / direction.norm(dim=1, keepdim=True).clamp_min(1e-6)
        plain = self.plain(size)
        other = 1 - plain
        topics = self.normal(size, 2, centres, width) * self.uniform(size, 1, 1, 1, low=0.0, high=0.8)
        topics = topics * other[..., None, None]
        known = torch.cat([torch.zeros_like(negative), torch.ones_like(positive)], 1).long()
        every = torch.cat([known, classes], 1)
        task = torch.arange(size, device=self.device)[:, None]
        topic = torch.randint(centres, every.shape, generator=self.generator, device=self.device)
        X = self.normal(size, every.shape[1], width)
        tails = (self.uniform(size, 1) < 0.5) & (other > 0)  # some rows are far longer than others
        X = (
            X
            * torch.where(tails, torch.exp(0.4 * self.normal(*every.shape)), torch.ones(1, device=self.device))[
                ..., None
            ]
        )
        X = X + topics[task, every, topic] + ((every - 0.5)[..., None] * (distance * direction)[:, None])
        threshold = self.uniform(size, 1, 1, low=0.0, high=1.5)
        sparse = (self.uniform(size, 1, 1) < 0.5).float() * other[..., None]  # features that are mostly 0, as words
        X = (sparse * (X - threshold).relu() + (1 - sparse) * X) * scale[:, None]
        used = torch.cat([negative, positive], 1).float()
        labelled, new = X[:, : known.shape[1]], X[:, known.shape[1] :]
        target = known.float() - 0.5
        place = torch.arange(known.shape[1], device=self.device) % FOLDS
        strength = self.log_uniform(size, 0.01, 30.0)
        held = torch.zeros_like(used)
        for fold in range(FOLDS):
            weights, centre, shift = ridge(labelled, target, used * (place != fold), strength)
            own = ((labelled - centre[:, None]) @ weights[..., None])[..., 0] + shift[:, None]
            held = torch.where(place == fold, own, held)
        weights, centre, shift = ridge(labelled, target, used, strength)
        found = ((new - centre[:, None]) @ weights[..., None])[..., 0] + shift[:, None]
        spread = ((held**2 * used).sum(1, keepdim=True) / used.sum(1, keepdim=True)).sqrt().clamp_min(1e-6)
        warp = Warp.draw(self, size, plain)
        return self._finished(warp(2 * held / spread), warp(2 * found / spread), negative, positive, kept, classes)

    def _finished(
        self, held: Tensor, new: Tensor, negative: Tensor, positive: Tensor, kept: Tensor, classes: Tensor
    ) -> TaskScores:
        scores = self._stepped(torch.cat([held, new], 1))
        rows = negative.shape[1]
        counts = scores.new_zeros(len(scores), 3, scores.shape[1])
        counts[:, 0, :rows], counts[:, 1, rows : 2 * rows] = negative.float(), positive.float()
        counts[:, 2, 2 * rows :] = kept.float()
        share = (classes * kept).sum(1) / kept.sum(1)
        return TaskScores(scores, counts, share)

    def _stepped(self, scores: Tensor) -> Tensor:
        """Scores (t, m); some of them rounded, as those of votes and trees."""
        size = len(scores)
        kind = self.uniform(size, 1)
        levels = torch.tensor(LEVELS, device=self.device, dtype=torch.float32)
        number = levels[torch.randint(len(LEVELS), (size, 1), generator=self.generator, device=self.device)]
        chance = torch.sigmoid(scores * torch.exp(0.5 * self.normal(size, 1)))
        rounded = ((chance * number).round() / number).clamp(0.2 / number, 1 - 0.2 / number)
        if not self.prior.steps:
            return scores
        return torch.where(kind < 1 / 6, torch.logit(rounded), scores)

    def large(self, size: int, cells: int = 1024, rows: float = 20_000, bag: float = 100_000) -> TaskScores:
        """Tasks with many instances, as counts per cell of a fine grid."""
        first, second = self.class_sizes(size, 300, rows)
        number, share = self.log_uniform(size, 100, bag), self.shares(size)
        problem = Problem.draw(self, size)
        points = problem.grid(cells)
        density = problem.log_densities(points)
        density = (density - density.amax(2, keepdim=True)).exp()
        density = density / density.sum(2, keepdim=True)
        intended = [first[:, None] * density[:, 0], second[:, None] * density[:, 1]]
        intended += [(number * (1 - share))[:, None] * density[:, 0], (number * share)[:, None] * density[:, 1]]
        drawn = [torch.poisson(part, generator=self.generator) for part in intended]
        for part, of_class in zip(drawn[:2], (0, 1), strict=True):  # at least some rows of each class
            few = part.sum(1) < FEWEST
            part[few] = part[few] + density[few, of_class] * FEWEST
        of_bag = drawn[2] + drawn[3]
        empty = of_bag.sum(1) < 1
        of_bag[empty], drawn[3][empty] = density[empty, 0] * 100, 0.0
        scores = problem.scores(points)
        mean = (scores[:, None] * density).sum(2)
        spread = ((scores[:, None] - mean[..., None]) ** 2 * density).sum(2).mean(1, keepdim=True).sqrt()
        both = self._stepped(torch.cat([scores, self._as_final(scores, spread, first, second)], 1))
        zeros = torch.zeros_like(of_bag)
        counts = torch.stack([torch.cat([part, zeros], 1) for part in drawn[:2]] + [torch.cat([zeros, of_bag], 1)], 1)
        return TaskScores(both, counts, drawn[3].sum(1) / of_bag.sum(1))


@dataclass(frozen=True, slots=True)
class Warp:
    """How scores grow with the likelihood ratio: powers below and above 0, a factor above 0, and where they saturate.

    All are (t, 1). A classifier's scores need not be linear in the likelihood ratio, but calibration assumes it.
    """

    below: Tensor
    above: Tensor
    factor: Tensor
    limit: Tensor

    @classmethod
    def draw(cls, simulator: Simulator, size: int, plain: Tensor) -> "Warp":
        """Random warps; none in plain problems (size, 1)."""
        strength = simulator.prior.warp * (1 - plain).clamp_min(1e-3)
        factor = torch.exp(0.4 * strength * simulator.normal(size, 1))
        limit = simulator.log_uniform(size, 2.0, 60.0)[:, None] / strength.clamp_min(1e-6)
        below, above = (torch.exp(0.35 * strength * simulator.normal(size, 1)) for _ in range(2))
        return cls(below, above, factor, limit)

    def __call__(self, values: Tensor) -> Tensor:
        """Warped values (t, m)."""
        size = values.abs().clamp_min(1e-12)
        grown = torch.where(values < 0, -(size**self.below), self.factor * size**self.above)
        return self.limit * torch.tanh(grown / self.limit)


@dataclass(frozen=True, slots=True)
class Problem:
    """Classification problems on a line: each class (t, 2) is a mixture of Gaussians (t, 2, `COMPONENTS`).

    TaskScores are warped likelihood ratios; where not `by_ratio` (t, 1), warped points.
    """

    mean: Tensor
    scale: Tensor
    weight: Tensor
    warp: "Warp"
    by_ratio: Tensor

    @classmethod
    def draw(cls, simulator: Simulator, size: int) -> "Problem":
        """Random problems."""
        device = simulator.device
        gap = simulator.distances(size, 0.1, 7.0)
        gammas = simulator.gamma(torch.tensor([1.0, 0.5, 0.3], device=device).expand(size, 2, COMPONENTS).contiguous())
        weight = gammas / gammas.sum(-1, keepdim=True).clamp_min(1e-20)
        spread = torch.tensor([0.0, 1.2, 2.5], device=device)
        mean = torch.stack([-gap / 2, gap / 2], 1)[:, :, None] + simulator.normal(size, 2, COMPONENTS) * spread
        scale = torch.exp(0.5 * simulator.normal(size, 2, COMPONENTS) + 0.35 * simulator.normal(size, 2, 1))
        by_ratio = simulator.uniform(size, 1) < simulator.prior.likelihood_ratio
        warp = Warp.draw(simulator, size, simulator.plain(size))
        return cls(mean, scale.clamp(0.15, 6), weight, warp, by_ratio)

    def draw_points(self, simulator: Simulator, classes: Tensor) -> Tensor:
        """Points (t, m) of instances of these classes (t, m)."""
        task = torch.arange(len(classes), device=classes.device)[:, None]
        bounds = self.weight.cumsum(-1)[task, classes]  # (t, m, components)
        chosen = (simulator.uniform(*classes.shape)[..., None] > bounds[..., :-1]).sum(-1)
        noise = simulator.normal(*classes.shape)
        return self.mean[task, classes, chosen] + self.scale[task, classes, chosen] * noise

    def grid(self, cells: int) -> Tensor:
        """Points (t, cells) over the range of both classes."""
        low, high = (self.mean - 4.5 * self.scale).amin((1, 2)), (self.mean + 4.5 * self.scale).amax((1, 2))
        return low[:, None] + (high - low)[:, None] * torch.linspace(0, 1, cells, device=self.mean.device)

    def log_densities(self, points: Tensor) -> Tensor:
        """Log densities (t, 2, m) of both classes at points (t, m)."""
        standard = (points[:, None, :, None] - self.mean[:, :, None]) / self.scale[:, :, None]
        return (-0.5 * standard**2 - self.scale.log()[:, :, None] + (self.weight + 1e-9).log()[:, :, None]).logsumexp(
            -1
        )

    def scores(self, points: Tensor) -> Tensor:
        """Scores (t, m) of points (t, m)."""
        density = self.log_densities(points)
        ratio = (density[:, 1] - density[:, 0]).clamp(-CERTAIN, CERTAIN)
        return self.warp(torch.where(self.by_ratio, ratio, points))


def ridge(X: Tensor, target: Tensor, weight: Tensor, strength: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Ridge regressions of targets (t, m) on X (t, m, d) with weights (t, m): coefficients and centre (t, d), mean."""
    total = weight.sum(1, keepdim=True).clamp_min(1)
    centre = (X * weight[..., None]).sum(1) / total
    shift = (target * weight).sum(1) / total[:, 0]
    centred = (X - centre[:, None]) * weight[..., None]
    gram = centred.transpose(1, 2) @ (X - centre[:, None])
    moment = (centred * (target - shift[:, None])[..., None]).sum(1)
    penalty = strength * gram.diagonal(dim1=1, dim2=2).mean(1).clamp_min(1e-6)
    eye = torch.eye(X.shape[2], device=X.device)
    factor = torch.linalg.cholesky(gram + penalty[:, None, None] * eye)
    return torch.cholesky_solve(moment[..., None], factor)[..., 0], centre, shift


def joined(parts: list[TaskScores]) -> TaskScores:
    """Tasks of several kinds together; all have equally many places."""
    return TaskScores(
        torch.cat([part.scores for part in parts]),
        torch.cat([part.counts for part in parts]),
        torch.cat([part.share for part in parts]),
    )
