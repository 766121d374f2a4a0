"""The trained network of `QuaNet` without torch: what it reads of a bag, and its forward pass, one bag after another.

The arithmetic is that of `quanet.nn.share_network`, where it is explained; a test compares both. Every bag goes through
the same operations on arrays of the same shape, so that its estimate does not depend on its neighbours.
"""

import math
from typing import Any

import numpy as np

from quanet.arrays import FloatArray
from quanet.kernels.compiler import compiled

BINS = 96
GRID = 96
FEATURES = 12
FACTS = 18
CLIP = 12.0
UNIFORM = 0.25
REACH = 1.2
FLOOR = 1e-4
HALVINGS = 26
AT_A_TIME = 32  # factors of a likelihood that are multiplied before a logarithm is taken; exp(32 CLIP) is a number
HEADS = 4


@compiled
def clipped_excess(ratios: FloatArray, out: FloatArray) -> None:
    """Likelihood ratios minus 1, from their logarithms (n,)."""
    for j in range(len(ratios)):
        out[j] = math.expm1(min(max(ratios[j], -CLIP), CLIP))


@compiled
def most_likely_share(excess: FloatArray) -> float:
    """The share under which instances with these likelihood ratios minus 1 (n,) are most likely."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        slope = 0.0
        for j in range(len(excess)):
            slope += excess[j] / (1.0 + middle * excess[j])
        if slope > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@compiled
def place_nodes(centre: float, reach: float, nodes: FloatArray) -> None:
    """Fill nodes (g,) between 0 and 1, dense around a share."""
    angle = math.asin(math.sqrt(centre))
    quarter = math.pi / 2
    below = math.atan(angle / reach)
    both = below + math.atan((quarter - angle) / reach)
    last = len(nodes) - 1
    start = 0.0
    for j in range(1, last):
        wanted = j / last
        low, high = start, quarter
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            dense = (math.atan((middle - angle) / reach) + below) / both
            if UNIFORM * middle / quarter + (1 - UNIFORM) * dense < wanted:
                low = middle
            else:
                high = middle
        start = low
        nodes[j] = math.sin((low + high) / 2) ** 2
    nodes[0], nodes[last] = 0.0, 1.0


@compiled
def fill_curve(excess: FloatArray, weight: float, nodes: FloatArray, sharpness: float, base: FloatArray) -> None:
    """Fill the log probabilities (g,) of the nodes by the likelihood of a bag alone."""
    n, number = len(excess), len(nodes)
    for j in range(number):
        base[j] = 0.0
    product = np.empty(number)
    for start in range(0, n, AT_A_TIME):
        product[:] = 1.0
        for i in range(start, min(start + AT_A_TIME, n)):
            for j in range(number):
                product[j] *= 1.0 + nodes[j] * excess[i]
        for j in range(number):
            base[j] += math.log(product[j])
    largest = base.max()
    for j in range(number):
        base[j] = max((base[j] - largest) * weight * sharpness, -60.0)
        low, high = nodes[max(j - 1, 0)], nodes[min(j + 1, number - 1)]
        size = max(nodes[j] - low, 1e-9 if j else 0.0) + max(high - nodes[j], 1e-9 if j + 1 < number else 0.0)
        base[j] += math.log(size / 2)
    largest = base.max()
    total = 0.0
    for j in range(number):
        total += math.exp(base[j] - largest)
    for j in range(number):
        base[j] -= largest + math.log(total)


@compiled
def fill_bins(
    held: FloatArray, held_weights: FloatArray, bag: FloatArray, weight: float, sizes: FloatArray, out: FloatArray
) -> None:
    """Cut the joint order of held-out (m,) and bag scores (n,), both sorted, into bins of equal weight: out (bins, 4).

    Counts of the two classes and of the bag, and the sum of the ratios. Equal scores share their bins evenly.
    """
    m, n, bins = len(held), len(bag), len(out)
    before = np.zeros(4)  # counts of the three sets, weighted ratios
    added = np.empty(4)
    edge = np.zeros(4)  # the same at the last edge
    at_held, at_bag, filled, passed = 0, 0, 0, 0.0
    while at_held < m or at_bag < n:
        value = np.inf
        if at_held < m:
            value = held[at_held]
        if at_bag < n and bag[at_bag] < value:
            value = bag[at_bag]
        first, second, own = 0.0, 0.0, 0.0
        while at_held < m and held[at_held] == value:
            first += held_weights[at_held, 0]
            second += held_weights[at_held, 1]
            at_held += 1
        while at_bag < n and bag[at_bag] == value:
            own += weight
            at_bag += 1
        step = (first / sizes[0] + second / sizes[1] + own / sizes[2]) / 3
        added[0], added[1], added[2] = first, second, own
        added[3] = step * min(max(value, -CLIP), CLIP)
        while filled < bins - 1 and passed + step >= (filled + 1) / bins:
            part = min(max(((filled + 1) / bins - passed) / max(step, 1e-12), 0.0), 1.0)
            for c in range(4):
                inner = before[c] + part * added[c]
                out[filled, c] = inner - edge[c]
                edge[c] = inner
            filled += 1
        for c in range(4):
            before[c] += added[c]
        passed += step
    while filled < bins:
        for c in range(4):
            out[filled, c] = before[c] - edge[c]
            edge[c] = before[c]
        filled += 1


@compiled
def held_out_rates(excess: FloatArray, weights: FloatArray, odds: float, rates: FloatArray) -> None:
    """Fill the rates (2, 2), counted and probabilistic, at which each class's held-out instances (m,) look positive."""
    sizes = np.zeros(2)
    rates[:] = 0.0
    for j in range(len(excess)):
        ratio = (1.0 + excess[j]) * odds
        for c in range(2):
            sizes[c] += weights[j, c]
            rates[0, c] += weights[j, c] * (ratio > 1.0)
            rates[1, c] += weights[j, c] * ratio / (1.0 + ratio)
    for c in range(2):
        rates[0, c] /= sizes[c]
        rates[1, c] /= sizes[c]


@compiled
def describe_bag(
    held: FloatArray,
    held_excess: FloatArray,
    held_weights: FloatArray,
    rates: FloatArray,
    bag: FloatArray,
    weight: float,
    bins: FloatArray,
    base: FloatArray,
    facts: FloatArray,
    nodes: FloatArray,
) -> None:
    """Fill what the network reads of a bag: log-likelihood ratios (n,), sorted, of instances that count this much each.

    Bins (bins, features), log probabilities of the nodes by likelihood alone (g,), facts and nodes (g,).
    """
    n, number = len(bag), len(bins)
    sizes = np.zeros(3)
    for j in range(len(held)):
        sizes[0] += held_weights[j, 0]
        sizes[1] += held_weights[j, 1]
    size = sizes[2] = n * weight
    excess = np.empty(n)
    clipped_excess(bag, excess)
    likely = most_likely_share(excess)
    p = (size * likely + 0.5) / (size + 1)
    odds = sizes[1] / sizes[0]
    observed, hard, soft = 0.0, 0.0, 0.0
    for j in range(n):
        slope = excess[j] / (1.0 + p * excess[j])
        observed += slope * slope
        ratio = (1.0 + excess[j]) * odds
        hard += ratio > 1.0
        soft += ratio / (1.0 + ratio)
    observed = max(observed / n, 1e-6)
    expected, learned = 0.0, 0.0
    for c in range(2):
        share = p if c else 1 - p
        mean, square = 0.0, 0.0
        for j in range(len(held)):
            slope = held_excess[j] / (1.0 + p * held_excess[j])
            mean += held_weights[j, c] * slope
            square += held_weights[j, c] * slope * slope
        mean /= sizes[c]
        square /= sizes[c]
        expected += share * square
        learned += share * share * max(square - mean * mean, 0.0) / sizes[c]
    information = (observed + max(expected, 1e-6)) / 2
    of_curve = 1 / (size * information)
    within = p * (1 - p)
    of_bag = max(of_curve - within / size, 0.0)
    learned = min(learned / information**2, 10.0)
    least = FLOOR * within / size + within * (p**2 / sizes[1] ** 2 + (1 - p) ** 2 / sizes[0] ** 2) + 1e-12
    variance = of_bag + learned + least
    reach = REACH * min(max(math.sqrt(variance / (4 * within)), 1e-5), 1.0)
    place_nodes(likely, reach, nodes)
    sharpness = min(max(of_curve / variance, 1e-3), 100.0)
    fill_curve(excess, weight, nodes, sharpness, base)
    found = np.empty((number, 4))
    fill_bins(held, held_weights, bag, weight, sizes, found)
    tilt = math.log(p / (1 - p))
    for i in range(number):
        for c in range(3):
            bins[i, c] = found[i, c] / sizes[c] * (number / 2)
            bins[i, 3 + c] = math.log1p(max(found[i, c], 0.0)) * 0.4
            bins[i, 6 + c] = math.log(sizes[c]) / 4 - 1
        ratio = found[i, 3] * number
        bins[i, 9] = ratio / 4
        bins[i, 10] = 1 / (1 + math.exp(-(ratio + tilt)))
        bins[i, 11] = 2 * i / (number - 1) - 1
    for c in range(3):
        facts[c] = math.log(sizes[c]) / 4 - 1
    facts[3] = 2 * likely - 1
    facts[4] = tilt / 4
    facts[5] = math.log(reach) / 3
    facts[6] = math.log(sharpness) / 3
    facts[7] = math.log(learned + 1e-9) / 6
    facts[8] = math.log(of_bag + 1e-9) / 6
    facts[9] = math.log(information) / 3
    for kind in range(2):
        counted = (soft if kind else hard) / n
        gap = rates[kind, 1] - rates[kind, 0]
        adjusted = counted if abs(gap) < 1e-3 else (counted - rates[kind, 0]) / max(gap, 1e-3)
        facts[10 + 4 * kind] = counted
        facts[11 + 4 * kind] = min(max(adjusted, -0.5), 1.5)
        facts[12 + 4 * kind] = rates[kind, 1]
        facts[13 + 4 * kind] = rates[kind, 0]


@compiled
def mirror(bins: FloatArray, base: FloatArray, facts: FloatArray) -> None:
    """Replace what the network reads of a bag by what it reads if the two classes change places."""
    number, g = len(bins), len(base)
    for i in range((number + 1) // 2):
        for c in range(FEATURES):
            bins[i, c], bins[number - 1 - i, c] = bins[number - 1 - i, c], bins[i, c]
    for i in range(number):
        for c in range(0, 9, 3):
            bins[i, c], bins[i, c + 1] = bins[i, c + 1], bins[i, c]
        bins[i, 9], bins[i, 10], bins[i, 11] = -bins[i, 9], 1 - bins[i, 10], -bins[i, 11]
    for j in range(g // 2):
        base[j], base[g - 1 - j] = base[g - 1 - j], base[j]
    facts[0], facts[1] = facts[1], facts[0]
    facts[3], facts[4] = -facts[3], -facts[4]
    for start in (10, 14):  # counted, adjusted, true and false rate
        for c in range(4):
            facts[start + c] = 1 - facts[start + c]
        facts[start + 2], facts[start + 3] = facts[start + 3], facts[start + 2]


@compiled
def tanh_of(values: Any) -> None:
    """Replace numbers (n,) by their hyperbolic tangents: a rational function, exact to 32-bit numbers."""
    for j in range(len(values)):
        x = min(max(values[j], np.float32(-7.99)), np.float32(7.99))
        s = x * x
        top = np.float32(-2.76076847742355e-16)
        top = top * s + np.float32(2.00018790482477e-13)
        top = top * s + np.float32(-8.60467152213735e-11)
        top = top * s + np.float32(5.12229709037114e-08)
        top = top * s + np.float32(1.48572235717979e-05)
        top = top * s + np.float32(6.37261928875436e-04)
        top = top * s + np.float32(4.89352455891786e-03)
        bottom = np.float32(1.19825839466702e-06)
        bottom = bottom * s + np.float32(1.18534705686654e-04)
        bottom = bottom * s + np.float32(2.26843463243900e-03)
        bottom = bottom * s + np.float32(4.89352518554385e-03)
        values[j] = x * top / bottom


@compiled
def add_normalised(x: Any, weight: Any, bias: Any, out: Any) -> None:
    """Layer normalisation of every row: (m, w) -> (m, w)."""
    m, width = x.shape
    for i in range(m):
        mean = np.float32(0.0)
        for j in range(width):
            mean += x[i, j]
        mean /= np.float32(width)
        square = np.float32(0.0)
        for j in range(width):
            square += (x[i, j] - mean) * (x[i, j] - mean)
        scale = np.float32(1.0) / np.sqrt(square / np.float32(width) + np.float32(1e-5))
        for j in range(width):
            out[i, j] = (x[i, j] - mean) * scale * weight[j] + bias[j]


@compiled
def add_rows(x: Any, bias: Any) -> None:
    """Add a bias (w,) to every row, in place."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] += bias[j]


@compiled
def run_lstm(gates: Any, recurrent: Any, states: Any, start: int, reverse: bool) -> None:
    """One direction of an LSTM: inputs' share of the gates (m, 4 h) -> states (m, start:start + h), added."""
    m, four = gates.shape
    hidden = four // 4
    zero, half, one = np.float32(0.0), np.float32(0.5), np.float32(1.0)
    state, memory, gate = np.zeros(hidden, np.float32), np.zeros(hidden, np.float32), np.empty(four, np.float32)
    shown = np.empty(hidden, np.float32)
    for step in range(m):
        row = m - 1 - step if reverse else step
        for j in range(four):
            gate[j] = gates[row, j]
        for i in range(0, hidden, 4):  # four at a time, so that sums stay in registers
            a, b, c, d = state[i], state[i + 1], state[i + 2], state[i + 3]
            for j in range(four):
                gate[j] += (a * recurrent[i, j] + b * recurrent[i + 1, j]) + (
                    c * recurrent[i + 2, j] + d * recurrent[i + 3, j]
                )
        for j in range(four):  # sigmoids by tangents of half the numbers; the third gate is a tangent
            if j < 2 * hidden or j >= 3 * hidden:
                gate[j] *= half
        tanh_of(gate)
        for j in range(hidden):
            enter, keep = half * (gate[j] + one), half * (gate[hidden + j] + one)
            memory[j] = keep * memory[j] + enter * gate[2 * hidden + j]
            shown[j] = memory[j]
        tanh_of(shown)
        for j in range(hidden):
            state[j] = half * (gate[3 * hidden + j] + one) * shown[j] + zero
            states[row, start + j] += state[j]


@compiled
def soften(scores: Any, bits: Any) -> None:
    """Softmax of every row (m, m), in place; `bits` (m,) is memory for whole numbers."""
    m = scores.shape[1]
    powers = bits.view(np.float32)
    for i in range(scores.shape[0]):
        largest = scores[i, 0]
        for j in range(1, m):
            largest = max(largest, scores[i, j])
        for j in range(m):  # exp(x) = 2^k exp(y)
            x = max(scores[i, j] - largest, np.float32(-80.0))
            k = np.floor(x * np.float32(1.4426950408889634) + np.float32(0.5))
            bits[j] = (np.int32(k) + np.int32(127)) << np.int32(23)
            y = x - k * np.float32(0.6931471805599453)
            value = np.float32(1.0 / 720) * y + np.float32(1.0 / 120)
            value = value * y + np.float32(1.0 / 24)
            value = value * y + np.float32(1.0 / 6)
            value = value * y + np.float32(0.5)
            value = value * y + np.float32(1.0)
            scores[i, j] = value * y + np.float32(1.0)
        total = np.float32(0.0)
        for j in range(m):
            scores[i, j] *= powers[j]
            total += scores[i, j]
        for j in range(m):
            scores[i, j] /= total


@compiled
def attend(x: Any, layer: Any, kept: Any) -> None:
    """One layer of attention and its dense layers, added to x (m, w) in place."""
    (norm1, shift1, into, into_bias, out_of, out_bias, norm2, shift2, first, first_bias, second, second_bias) = layer
    m, width = x.shape
    part = width // HEADS
    normal, mixed, products, bits, hidden = kept
    scale = np.float32(1.0 / math.sqrt(part))
    add_normalised(x, norm1, shift1, normal)
    three = np.dot(normal, into)
    add_rows(three, into_bias)
    for head in range(HEADS):
        query = np.ascontiguousarray(three[:, head * part : (head + 1) * part]) * scale
        key = np.ascontiguousarray(three[:, width + head * part : width + (head + 1) * part])
        value = np.ascontiguousarray(three[:, 2 * width + head * part : 2 * width + (head + 1) * part])
        np.dot(query, key.T, products)
        soften(products, bits)
        mixed[:, head * part : (head + 1) * part] = np.dot(products, value)
    np.dot(mixed, out_of, normal)
    add_rows(normal, out_bias)
    for i in range(m):
        for j in range(width):
            x[i, j] += normal[i, j]
    add_normalised(x, norm2, shift2, normal)
    np.dot(normal, first, hidden)
    for i in range(m):
        for j in range(hidden.shape[1]):
            hidden[i, j] = max(hidden[i, j] + first_bias[j], np.float32(0.0))
    np.dot(hidden, second, normal)
    add_rows(normal, second_bias)
    for i in range(m):
        for j in range(width):
            x[i, j] += normal[i, j]


@compiled
def dense_relu(x: Any, weight: Any, bias: Any) -> Any:
    """A dense layer of one row: (i,) -> (o,), negative numbers replaced by 0."""
    found = np.dot(x.reshape(1, -1), weight)[0]
    for j in range(len(found)):
        found[j] = max(found[j] + bias[j], np.float32(0.0))
    return found


@compiled
def forward(bins: Any, base: FloatArray, facts: Any, weights: Any, layers: Any, kept: Any, out: FloatArray) -> None:
    """Fill the probabilities (g,) of the nodes."""
    (enter, enter_bias, ahead, ahead_state, ahead_bias, back, back_state, back_bias, norm, shift, curve, curve_bias,
     combine, combine_bias, leave, leave_bias) = weights  # fmt: skip
    x = np.dot(bins, enter)
    add_rows(x, enter_bias)
    m, width = x.shape
    ahead_gates, back_gates = np.dot(x, ahead), np.dot(x, back)
    add_rows(ahead_gates, ahead_bias)
    add_rows(back_gates, back_bias)
    run_lstm(ahead_gates, ahead_state, x, 0, False)
    run_lstm(back_gates, back_state, x, width // 2, True)
    for layer in layers:
        attend(x, layer, kept)
    pooled = np.empty((1, 2 * width), np.float32)
    for j in range(width):
        total, largest = np.float32(0.0), x[0, j]
        for i in range(m):
            total += x[i, j]
            largest = max(largest, x[i, j])
        pooled[0, j] = total / np.float32(m)
        pooled[0, width + j] = largest
    normal = np.empty_like(pooled)
    add_normalised(pooled, norm, shift, normal)
    number = len(base)
    read = np.empty(2 * number + len(facts), np.float32)
    for j in range(number):
        read[j] = math.exp(base[j]) * 10
        read[number + j] = base[j] / 20
    read[2 * number :] = facts
    both = np.empty(3 * width, np.float32)
    both[: 2 * width] = normal[0]
    both[2 * width :] = dense_relu(read, curve, curve_bias)
    found = np.dot(dense_relu(both, combine, combine_bias).reshape(1, -1), leave)[0]
    trust = 2 / (1 + math.exp(-(found[number] + leave_bias[number])))
    for j in range(number):
        out[j] = found[j] + leave_bias[j] + trust * base[j]
    largest = out.max()
    together = 0.0
    for j in range(number):
        out[j] = math.exp(out[j] - largest)
        together += out[j]
    for j in range(number):
        out[j] /= together


@compiled
def read_shares(
    held: FloatArray,
    held_weights: FloatArray,
    bags: FloatArray,
    bag_weights: FloatArray,
    weights: Any,
    layers: Any,
    nodes: FloatArray,
    chances: FloatArray,
) -> None:
    """Fill nodes and their probabilities (b, g) for bags of log-likelihood ratios (b, n).

    Every bag is read twice, the second time with the classes in each other's place. The result is the geometric mean.

    Parameters
    ----------
    held, held_weights : (h, m) ratios of held-out instances and (h, m, 2) how much they count as instances of either
        class; one row for all bags, or one for each of them. They and the bags are sorted by ratio.
    bags, bag_weights : (b, n) and (b,) how much an instance counts.
    weights, layers : of the network.
    """
    m = held.shape[1]
    width = weights[0].shape[1]
    excess, rates = np.empty(m), np.empty((2, 2))
    bins, facts = np.empty((BINS, FEATURES)), np.empty(FACTS)
    base, mirrored = np.empty(GRID), np.empty(GRID)
    kept = (
        np.empty((BINS, width), np.float32),
        np.empty((BINS, width), np.float32),
        np.empty((BINS, BINS), np.float32),
        np.empty(BINS, np.int32),
        np.empty((BINS, layers[0][8].shape[1]), np.float32),
    )
    for i in range(len(bags)):
        of_held = i if len(held) > 1 else 0
        if i == 0 or len(held) > 1:
            clipped_excess(held[of_held], excess)
            odds = held_weights[of_held, :, 1].sum() / held_weights[of_held, :, 0].sum()
            held_out_rates(excess, held_weights[of_held], odds, rates)
        describe_bag(
            held[of_held], excess, held_weights[of_held], rates, bags[i], bag_weights[i], bins, base, facts, nodes[i]
        )
        forward(bins.astype(np.float32), base, facts.astype(np.float32), weights, layers, kept, chances[i])
        mirror(bins, base, facts)
        forward(bins.astype(np.float32), base, facts.astype(np.float32), weights, layers, kept, mirrored)
        together = 0.0
        for j in range(GRID):
            chances[i, j] = math.sqrt(chances[i, j] * mirrored[GRID - 1 - j])
            together += chances[i, j]
        for j in range(GRID):
            chances[i, j] /= together
