"""The network of `QuaNet` that is trained once: what it reads of a task, and its forward pass; needs torch.

`quanet.kernels.compiled_network` is the same arithmetic without torch, compiled, for estimates.

A task has scores of held-out instances of two classes and of a bag. All are sorted together and cut into `BINS` bins of
equal weight, each of the three sets weighing a third. So the network reads ranks: it does not matter how a classifier
scales its scores. Equal scores share their bins evenly.

Next to them it reads the likelihood of every share, from scores calibrated on the held-out instances. Shares are those
of a grid that is dense around the estimate of maximum likelihood and reaches from 0 to 1, so that one network resolves
shares to a half or to a thousandth. The answer is a distribution over the nodes of this grid.
"""

import math

import torch
from torch import Tensor, nn

BINS = 96
GRID = 96
WIDTH = 96
HEADS = 4
LAYERS = 2  # of attention
FEATURES = 12  # of a bin
FACTS = 18  # of a task
CLIP = 12.0  # largest log-likelihood ratio
UNIFORM = 0.25  # share of the grid's nodes that are spread evenly over all shares
REACH = 1.2  # of the dense part of the grid, in standard deviations
FLOOR = 1e-4  # smallest variance relative to that of one instance
STEPS = 30  # of bisection
HALVINGS = 26


def calibrated_ratios(scores: Tensor, counts: Tensor) -> Tensor:
    """Log-likelihood ratios (t, m) of scores (t, m), by logistic regression on held-out counts (t, 2, m)."""
    known = counts.sum(1)
    total = known.sum(1, keepdim=True)
    centre = (scores * known).sum(1, keepdim=True) / total
    spread = (((scores - centre) ** 2 * known).sum(1, keepdim=True) / total).sqrt().clamp_min(1e-6)
    z = (scores - centre) / spread
    share = counts[:, 1].sum(1, keepdim=True) / total
    slope, shift = torch.ones_like(centre), torch.logit(share)
    for _ in range(STEPS):
        posterior = torch.sigmoid(slope * z + shift)
        weight = posterior * (1 - posterior) * known
        error = posterior * known - counts[:, 1]
        g1, g0 = (error * z).sum(1, keepdim=True) + 1e-3 * slope, error.sum(1, keepdim=True)
        h11, h10 = (weight * z * z).sum(1, keepdim=True) + 1e-3, (weight * z).sum(1, keepdim=True)
        h00 = weight.sum(1, keepdim=True) + 1e-4
        determinant = (h11 * h00 - h10 * h10).clamp_min(1e-9)
        step1, step0 = (h00 * g1 - h10 * g0) / determinant, (h11 * g0 - h10 * g1) / determinant
        part = 1 / torch.maximum(step1.abs(), step0.abs() / 2).clamp_min(1)
        slope, shift = (slope - part * step1).clamp(1e-3, 100), (shift - part * step0).clamp(-100, 100)
    return (slope * z + shift - torch.logit(share)).clamp(-CLIP, CLIP)


def most_likely(ratios: Tensor, bag: Tensor) -> Tensor:
    """The share (t,) under which bags (t, m) of instances with log-likelihood ratios (t, m) are most likely."""
    excess = torch.expm1(ratios)
    low, high = torch.zeros_like(ratios[:, 0]), torch.ones_like(ratios[:, 0])
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        rising = (bag * excess / (1 + middle[:, None] * excess)).sum(1) > 0
        low, high = torch.where(rising, middle, low), torch.where(rising, high, middle)
    return (low + high) / 2


def grid_nodes(centre: Tensor, reach: Tensor, number: int = GRID) -> Tensor:
    """Nodes (t, g) between 0 and 1, dense around shares (t,), in angles within so much (t,) of them."""
    angle = torch.asin(centre.clamp(0, 1).sqrt())[:, None]
    reach = reach[:, None]
    below, above = torch.atan(angle / reach), torch.atan((math.pi / 2 - angle) / reach)
    wanted = torch.linspace(0, 1, number, device=centre.device)[None]
    low, high = torch.zeros(len(centre), number, device=centre.device), torch.full((len(centre), number), math.pi / 2)
    high = high.to(centre.device)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        dense = (torch.atan((middle - angle) / reach) + below) / (below + above)
        left = UNIFORM * middle / (math.pi / 2) + (1 - UNIFORM) * dense < wanted
        low, high = torch.where(left, middle, low), torch.where(left, high, middle)
    nodes = torch.sin((low + high) / 2) ** 2
    nodes[:, 0], nodes[:, -1] = 0.0, 1.0
    return nodes


def binned(scores: Tensor, counts: Tensor, ratios: Tensor) -> tuple[Tensor, Tensor]:
    """Counts (t, BINS, 3) of each set in bins of equal weight of the joint order, and mean ratios (t, BINS)."""
    t = len(scores)
    sizes = counts.sum(2, keepdim=True)
    absent = counts.sum(1) == 0
    order = torch.where(absent, torch.full_like(scores, 1e9), scores).argsort(1)
    ranked = torch.where(absent, torch.full_like(scores, 1e9), scores).gather(1, order)
    values = torch.cat([counts, ((counts / sizes).sum(1) / 3 * ratios)[:, None]], 1)
    cumulated = values.gather(2, order[:, None].expand(-1, 4, -1)).double().cumsum(2)
    cumulated = torch.cat([cumulated.new_zeros(t, 4, 1), cumulated], 2)  # before each place
    weight = (cumulated[:, :3] / cumulated[:, :3, -1:]).sum(1) / 3
    edges = torch.linspace(0, 1, BINS + 1, device=scores.device, dtype=weight.dtype)[1:-1].expand(t, -1).contiguous()
    at = (torch.searchsorted(weight[:, 1:].contiguous(), edges)).clamp(max=scores.shape[1] - 1)
    value = ranked.gather(1, at).contiguous()
    start = torch.searchsorted(ranked, value)
    end = torch.searchsorted(ranked, value, right=True)
    before, after = weight.gather(1, start), weight.gather(1, end)
    part = ((edges - before) / (after - before).clamp_min(1e-12)).clamp(0, 1)[:, None]

    def at_place(place: Tensor) -> Tensor:
        return cumulated.gather(2, place[:, None].expand(-1, 4, -1))

    inner = at_place(start) + part * (at_place(end) - at_place(start))
    every = torch.cat([cumulated[:, :, :1], inner, cumulated[:, :, -1:]], 2)
    found = every.diff(dim=2).float()
    return found[:, :3].transpose(1, 2), found[:, 3] * BINS


def read_tasks(scores: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What the network reads of tasks with scores (t, m) and counts (t, 3, m).

    Bins (t, BINS, FEATURES), logits of the base (t, GRID), facts (t, FACTS) and nodes (t, GRID).
    """
    sizes = counts.sum(2)
    m0, m1, n = sizes.unbind(1)
    ratios = calibrated_ratios(scores, counts[:, :2])
    bag = counts[:, 2]
    likely = most_likely(ratios, bag)
    smooth = ((n * likely + 0.5) / (n + 1))[:, None]
    slope = torch.expm1(ratios) / (1 + smooth * torch.expm1(ratios))
    information = ((bag * slope**2).sum(1) / n).clamp_min(1e-6)
    p = smooth[:, 0]
    learned = torch.zeros_like(p)
    expected = torch.zeros_like(p)
    for c, (share, size) in enumerate(((1 - p, m0), (p, m1))):
        mean = (counts[:, c] * slope).sum(1) / size
        square = (counts[:, c] * slope**2).sum(1) / size
        expected = expected + share * square
        learned = learned + share**2 * (square - mean**2).clamp_min(0) / size
    information = (information + expected.clamp_min(1e-6)) / 2
    of_curve = 1 / (n * information)
    of_bag = (of_curve - p * (1 - p) / n).clamp_min(0)
    learned = (learned / information**2).clamp(max=10.0)
    least = FLOOR * p * (1 - p) / n + p * (1 - p) * (p**2 / m1**2 + (1 - p) ** 2 / m0**2) + 1e-12
    variance = of_bag + learned + least
    reach = REACH * (variance / (4 * p * (1 - p))).sqrt().clamp(1e-5, 1.0)
    nodes = grid_nodes(likely, reach)
    excess = torch.expm1(ratios)
    curve = torch.cat(
        [
            (bag[:, :, None] * torch.log1p((part[:, None] * excess[:, :, None]).clamp_min(-1 + 1e-7))).sum(1)
            for part in torch.split(nodes, 8, dim=1)
        ],
        1,
    )
    sharpness = (of_curve / variance).clamp(1e-3, 100)
    curve = ((curve - curve.amax(1, keepdim=True)) * sharpness[:, None]).clamp_min(-60)
    base = (curve + cell_sizes(nodes).log()).log_softmax(1)
    found, mean_ratio = binned(scores, counts, ratios)
    bins = torch.cat(
        [
            found / sizes[:, None] * (BINS / 2),
            torch.log1p(found) * 0.4,
            (sizes.log() / 4 - 1)[:, None].expand(-1, BINS, -1),
            (mean_ratio / 4)[..., None],
            (torch.sigmoid(mean_ratio + torch.logit(p)[:, None]))[..., None],
            torch.linspace(-1, 1, BINS, device=scores.device).expand(len(scores), -1)[..., None],
        ],
        2,
    )
    odds = torch.log(m1 / m0)[:, None]
    facts = torch.cat(
        [
            torch.stack(
                [
                    m0.log() / 4 - 1,
                    m1.log() / 4 - 1,
                    n.log() / 4 - 1,
                    2 * likely - 1,
                    torch.logit(p) / 4,
                    reach.log() / 3,
                    sharpness.log() / 3,
                    (learned + 1e-9).log() / 6,
                    (of_bag + 1e-9).log() / 6,
                    information.log() / 3,
                ],
                1,
            ),
            paper_statistics(ratios + odds, counts),
        ],
        1,
    )
    return bins, base, facts, nodes


def swapped_bins(bins: Tensor) -> Tensor:
    """Bins (t, BINS, FEATURES) of `read_tasks`, after the two classes have changed places."""
    counts, other = torch.split(bins.flip(1), [9, FEATURES - 9], dim=2)
    ratio, posterior, place = other.unbind(2)
    return torch.cat([counts[..., [1, 0, 2, 4, 3, 5, 7, 6, 8]], torch.stack([-ratio, 1 - posterior, -place], 2)], 2)


def swapped_facts(facts: Tensor) -> Tensor:
    """Facts (t, FACTS) of `read_tasks`, after the two classes have changed places."""
    first, second, size, likely, odds, *same = facts[:, :10].unbind(1)
    # CC, ACC, the rate of false and that of true positives, or their means; so PCC, PACC and theirs.
    statistics = 1 - facts[:, [10, 11, 13, 12, 14, 15, 17, 16]]
    return torch.cat([torch.stack([second, first, size, -likely, -odds, *same], 1), statistics], 1)


def paper_statistics(odds: Tensor, counts: Tensor) -> Tensor:
    """CC, ACC, PCC, PACC and the rates that they need, of the second class: (t, m), (t, 3, m) -> (t, 8)."""
    sizes = counts.sum(2)
    found = []
    for values in ((odds > 0).float(), torch.sigmoid(odds)):
        false, true, counted = ((counts * values[:, None]).sum(2) / sizes).unbind(1)
        gap = true - false
        adjusted = torch.where(gap.abs() < 1e-3, counted, (counted - false) / gap.clamp_min(1e-3)).clamp(-0.5, 1.5)
        found += [counted, adjusted, true, false]
    return torch.stack(found, 1)


def cell_sizes(nodes: Tensor) -> Tensor:
    """The part of all shares that belongs to every node: (t, g) -> (t, g)."""
    half = nodes.diff(dim=1).clamp_min(1e-9) / 2
    ends = half.new_zeros(len(half), 1)
    return torch.cat([half, ends], 1) + torch.cat([ends, half], 1)


class ShareNetwork(nn.Module):
    """Bins, base, facts -> logits over the nodes: the base's own, times a learned trust, plus those of the network."""

    def __init__(self, width: int = WIDTH, layers: int = LAYERS, heads: int = HEADS, *, use_facts: bool = True) -> None:
        super().__init__()
        self.use_facts = use_facts
        self.enter = nn.Linear(FEATURES, width)
        self.recurrent = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)
        self.attend = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 2 * width, 0.0, batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.normalise = nn.LayerNorm(2 * width)
        self.curve = nn.Linear(2 * GRID + FACTS, width)
        self.combine = nn.Linear(3 * width, 2 * width)
        self.leave = nn.Linear(2 * width, GRID + 1)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def forward(self, bins: Tensor, base: Tensor, facts: Tensor) -> Tensor:
        """(t, BINS, FEATURES), (t, GRID), (t, FACTS) -> logits (t, GRID)."""
        if not self.use_facts:
            facts = facts * 0
        seen = self.enter(bins)
        seen = seen + self.recurrent(seen)[0]
        for layer in self.attend:
            seen = layer(seen)
        pooled = self.normalise(torch.cat([seen.mean(1), seen.amax(1)], 1))
        known = self.curve(torch.cat([base.exp() * 10, base / 20, facts], 1)).relu()
        found = self.leave(self.combine(torch.cat([pooled, known], 1)).relu())
        return found[:, :-1] + 2 * torch.sigmoid(found[:, -1:]) * base


def surprise(logits: Tensor, nodes: Tensor, share: Tensor) -> Tensor:
    """Negative log probability (t,) of shares (t,), each divided between the two nodes around it."""
    logs = logits.log_softmax(1)
    above = torch.searchsorted(nodes, share[:, None].contiguous(), right=True).clamp(1, nodes.shape[1] - 1)
    low, high = nodes.gather(1, above - 1), nodes.gather(1, above)
    part = ((share[:, None] - low) / (high - low).clamp_min(1e-12)).clamp(0, 1)
    return -((1 - part) * logs.gather(1, above - 1) + part * logs.gather(1, above))[:, 0]
