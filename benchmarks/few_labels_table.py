"""Tables and the picture of `benchmarks/few_labels.py` and `benchmarks/few_labels_simulations.py`.

python benchmarks/few_labels_table.py tmp/few.json --own tmp/own.json --peers tmp/peers.json --before tmp/before.json \
    --simulations tmp/simulations.json --output benchmarks/results/few-labels.md --picture docs/few-labels.png
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from few_labels import SETS
from few_labels_simulations import ERRORS, SHARES
from quanet.files import write_whole

LIMITS = {  # of AE relative to EMQ, by bag size and number of training rows
    500: {"100": 0.70, "300": 0.82, "1,000": 0.92, "3,000": 0.98, "all": 1.00},
    50: {"100": 0.78, "300": 0.90, "1,000": 0.92, "3,000": 0.98, "all": 1.00},
}
ROWS = tuple(LIMITS[500])
UNTOUCHED = ("airline-2class", "joy-sadness", "neutral-admiration")
BINARY = tuple(name for name in SETS if name != "airline-3class")
COLOURS = {"EMQ": "blue", "PACC": "purple", "QuaNet": "vermilion"}
MARKERS = {"EMQ": "^", "EMQ, calibrated": "<", "PACC": "D", "KDEyML": "v", "DyS": "s", "QuaNet": "o"}


def read_results(path: Path) -> pd.DataFrame:
    """One row for each repetition, method and bag size."""
    lines = []
    for file, found in json.loads(path.read_text())["tasks"].items():
        name, rows, seed = file.removesuffix(".npz").rsplit("-", 2)
        rows = rows if rows == "all" else f"{int(rows):,}"
        for key, facts in found.items():
            method, size = key.rsplit("/", 1)
            lines.append({"set": name, "rows": rows, "seed": int(seed), "method": method, "size": int(size)} | facts)
    data = pd.DataFrame(lines)
    data["rows"] = pd.Categorical(data["rows"], ROWS, ordered=True)
    return data


def with_own_folds(data: pd.DataFrame, own: pd.DataFrame) -> pd.DataFrame:
    """Results in which QuaNet's are those with its own number of folds, if there are some of the same training set."""
    keys = ["set", "rows", "seed", "size", "method"]
    wanted = pd.MultiIndex.from_frame(data[["set", "rows", "seed", "size"]].drop_duplicates())
    found = own[(own["method"] == "QuaNet") & pd.MultiIndex.from_frame(own[keys[:4]]).isin(wanted)]
    others = data[~pd.MultiIndex.from_frame(data[keys]).isin(pd.MultiIndex.from_frame(found[keys]))]
    both = pd.concat([others.astype({"rows": str}), found.astype({"rows": str})], ignore_index=True)
    return both.assign(rows=pd.Categorical(both["rows"], ROWS, ordered=True))


def cells_of(data: pd.DataFrame, sets: tuple[str, ...]) -> pd.DataFrame:
    """One row for each set, number of training rows and bag size: QuaNet relative to EMQ, with standard errors."""
    found = []
    for (name, rows, size), part in data[data["set"].isin(sets)].groupby(["set", "rows", "size"], observed=True):
        by = {method: of.set_index("seed").sort_index() for method, of in part.groupby("method")}
        ours, base = by["QuaNet"], by["EMQ"]
        ratio, count = ours["ae"].mean() / base["ae"].mean(), len(ours)
        # Of a ratio of means, by its first-order expansion.
        error = (ours["ae"] - ratio * base["ae"]).std(ddof=1) / np.sqrt(count) / base["ae"].mean()
        facts = {"set": name, "rows": rows, "size": size, "seeds": count, "ratio": ratio, "error": error}
        for method, of in by.items():
            facts |= {
                f"{fact} {method}": of[fact].mean() for fact in ("ae", "rae", "kld", "coverage", "width", "score")
            }
        facts["coverage error"] = ours["coverage"].std(ddof=1) / np.sqrt(count)
        found.append(facts)
    return pd.DataFrame(found)


def summary(cells: pd.DataFrame) -> list[str]:
    """A line for each number of training rows and bag size: means over the sets."""
    lines = [
        "| rows | bag | sets | AE of QuaNet over EMQ's | at most | largest of a set | coverage of QuaNet | "
        "lowest of a set | EMQ | width of QuaNet | EMQ | interval score of QuaNet | EMQ |",
        "|" + "---|" * 13,
    ]
    for size, limits in LIMITS.items():
        for rows, limit in limits.items():
            part = cells[(cells["rows"] == rows) & (cells["size"] == size)]
            if part.empty:
                continue
            worst, lowest = part.loc[part["ratio"].idxmax()], part.loc[part["coverage QuaNet"].idxmin()]
            mean = part.mean(numeric_only=True)
            lines.append(
                f"| {rows} | {size} | {len(part)} | **{mean['ratio']:.3f}** | {limit:.2f} | "
                f"{worst['ratio']:.3f} ± {worst['error']:.3f} ({worst['set']}) | {mean['coverage QuaNet']:.1%} | "
                f"{lowest['coverage QuaNet']:.1%} ± {lowest['coverage error']:.1%} ({lowest['set']}) | "
                f"{mean['coverage EMQ']:.1%} | {mean['width QuaNet']:.3f} | {mean['width EMQ']:.3f} | "
                f"{mean['score QuaNet']:.3f} | {mean['score EMQ']:.3f} |"
            )
    return lines


def mean_errors(cells: pd.DataFrame) -> list[str]:
    """Mean errors over the sets, and QuaNet's relative to EMQ's."""
    lines = ["| rows | bag | AE of QuaNet | EMQ | PACC | QuaNet over EMQ |", "|---|---|---|---|---|---|"]
    for size, rows in ((size, rows) for size, limits in LIMITS.items() for rows in limits):
        part = cells[(cells["rows"] == rows) & (cells["size"] == size)]
        ours, emq, pacc = (part[f"ae {method}"].mean() for method in ("QuaNet", "EMQ", "PACC"))
        lines.append(f"| {rows} | {size} | {ours:.4f} | {emq:.4f} | {pacc:.4f} | {ours / emq:.3f} |")
    return lines


def scores_before(data: pd.DataFrame, before: pd.DataFrame) -> list[str]:
    """Interval scores next to those of EMQ of 0.2.0, for the training sets that both have; means over the sets."""
    keys = ["set", "rows", "seed", "size"]
    both = data[data["method"].isin(["QuaNet", "EMQ"])].pivot_table("score", keys, "method", observed=True)
    earlier = before[before["method"] == "EMQ"].set_index(keys)["score"].rename("EMQ of 0.2.0")
    means = both.join(earlier, how="inner").groupby(["size", "rows", "set"], observed=True).mean()
    means = means.groupby(["size", "rows"], observed=True).mean()
    lines = ["| rows | bag | QuaNet | EMQ | EMQ of 0.2.0 |", "|---|---|---|---|---|"]
    for (size, rows), line in means.sort_index(ascending=[False, True]).iterrows():  # type: ignore[misc]
        figures = [f"{line[name]:.3f}" for name in ("QuaNet", "EMQ", "EMQ of 0.2.0")]
        lines.append(f"| {rows} | {size} | {' | '.join(figures)} |")
    return lines


def every_set(cells: pd.DataFrame) -> list[str]:
    """A line for each set, number of training rows and bag size."""
    lines = [
        "| set | rows | bag | training sets | AE of QuaNet | EMQ | PACC | QuaNet over EMQ | RAE of QuaNet | EMQ | "
        "KLD of QuaNet | EMQ | coverage of QuaNet | EMQ | width of QuaNet | EMQ |",
        "|" + "---|" * 16,
    ]
    for _, cell in cells.sort_values(["set", "rows", "size"]).iterrows():
        figures = [f"{cell[f'ae {method}']:.4f}" for method in ("QuaNet", "EMQ", "PACC")]
        figures.append(f"{cell['ratio']:.3f} ± {cell['error']:.3f}")
        figures += [f"{cell[f'rae {method}']:.3f}" for method in ("QuaNet", "EMQ")]
        figures += [f"{cell[f'kld {method}']:.5f}" for method in ("QuaNet", "EMQ")]
        figures += [f"{cell[f'coverage {method}']:.1%}" for method in ("QuaNet", "EMQ")]
        figures += [f"{cell[f'width {method}']:.3f}" for method in ("QuaNet", "EMQ")]
        lines.append(f"| {cell['set']} | {cell['rows']} | {cell['size']} | {cell['seeds']} | {' | '.join(figures)} |")
    return lines


def against_peers(data: pd.DataFrame) -> list[str]:
    """Mean errors of all methods, by number of training rows and bag size; means over the sets."""
    means = data.groupby(["size", "rows", "method", "set"], observed=True)["ae"].mean()
    means = means.groupby(["size", "rows", "method"], observed=True).mean().unstack("method")
    order = ["QuaNet", "EMQ", "PACC", *sorted(name for name in means.columns if name.startswith("QuaPy"))]
    lines = [f"| rows | bag | {' | '.join(order)} |", "|" + "---|" * (len(order) + 2)]
    for (size, rows), line in means.sort_index(ascending=[False, True]).iterrows():  # type: ignore[misc]
        figures = [f"{line[name]:.4f}" for name in order]
        lines.append(f"| {rows} | {size} | **{figures[0]}** | {' | '.join(figures[1:])} |")
    return lines


def nearly_perfect(found: dict[str, Any]) -> list[str]:
    """Coverage and width for nearly perfect classifiers."""
    lines = [
        "| Bayes error | share | training sets | QuaNet: coverage | EMQ | PACC | QuaNet: width | EMQ | PACC |",
        "|" + "---|" * 9,
    ]
    for error in ERRORS:
        parts = [value for name, value in found.items() if name.startswith(f"near/2/{error}/")]
        for at, share in enumerate(SHARES):
            figures = []
            for fact, form in (("coverage", "{:.1%}"), ("width", "{:.4f}")):
                for method in ("QuaNet", "EMQ", "PACC"):
                    values = [part[key][fact][at] for part in parts for key in part if key.startswith(f"{method}/")]
                    figures.append(form.format(np.mean(values)))
            lines.append(f"| {error:.1%} | {share:g} | {len(parts)} | {' | '.join(figures)} |")
    return lines


def several_classes(found: dict[str, Any], texts: pd.DataFrame) -> list[str]:
    """Errors and coverage for three and five classes: simulations, and airline-3class."""
    lines = [
        "| data | rows | bag | training sets | AE of QuaNet over EMQ's | AE of QuaNet | EMQ | "
        "coverage of QuaNet | EMQ |",
        "|" + "---|" * 9,
    ]
    groups: dict[tuple[str, int, int], list[Any]] = {}
    for name, value in found.items():
        kind, k, distance, rows, _ = name.split("/")
        if kind == "classes":
            for size in sorted({int(key.rsplit("/", 1)[1]) for key in value}):
                case = (f"{k} Gaussians, {float(distance):g} apart", int(rows), size)
                groups.setdefault(case, []).append([value[f"{m}/{size}"] for m in ("QuaNet", "EMQ")])

    def line(data: str, rows: str, size: int, number: int, figures: list[float]) -> str:
        ours, theirs, inside, inside_theirs = figures
        return (
            f"| {data} | {rows} | {size} | {number} | **{ours / theirs:.3f}** | {ours:.4f} | {theirs:.4f} | "
            f"{inside:.1%} | {inside_theirs:.1%} |"
        )

    for (data, rows, size), values in sorted(groups.items()):
        figures = [float(np.mean([pair[m][fact] for pair in values])) for fact in ("ae", "coverage") for m in (0, 1)]
        lines.append(line(data, f"{rows:,}", size, len(values), figures))
    of = texts[texts["set"] == "airline-3class"]
    for (rows, size), part in of.groupby(["rows", "size"], observed=True):
        means = part.groupby("method")[["ae", "coverage"]].mean()
        figures = [float(means.loc[m, fact]) for fact in ("ae", "coverage") for m in ("QuaNet", "EMQ")]
        lines.append(line("airline-3class", str(rows), int(size), part["seed"].nunique(), figures))
    return lines


def by_rows(found: dict[str, Any], texts: pd.DataFrame) -> list[str]:
    """Three and five classes: mean over the cases of QuaNet's error relative to EMQ's, by number of training rows."""
    ratios: dict[str, list[float]] = {}
    for entry in several_classes(found, texts)[2:]:
        cells = [cell.strip(" *") for cell in entry.split("|")[1:-1]]
        ratios.setdefault(cells[1], []).append(float(cells[4]))
    lines = ["| rows | cases | AE of QuaNet over EMQ's, mean |", "|---|---|---|"]
    return lines + [
        f"| {rows} | {len(ratios[rows])} | {np.mean(ratios[rows]):.3f} |" for rows in ROWS if rows in ratios
    ]


def draw(data: pd.DataFrame, path: Path) -> None:
    """The error against the number of training rows: quanet's methods and QuaPy's, bags of 500."""
    from quanet.report.charts import save_figure
    from quanet.report.charts.canvas import WIDTH, sized_figure
    from quanet.report.palette import LIGHT

    figure = sized_figure(WIDTH, 3.3)
    sizes = sorted(data["size"].unique(), reverse=True)
    for ax, size in zip(figure.subplots(1, len(sizes), squeeze=False)[0], sizes, strict=True):
        part = data[data["size"] == size]
        means = part.groupby(["method", "rows", "set"], observed=True)["ae"].mean()
        means = means.groupby(["method", "rows"], observed=True).mean()
        for method in sorted(part["method"].unique(), key=lambda name: (name == "QuaNet", name)):
            line, own = means[method], method.removeprefix("QuaPy ")
            theirs = method != own
            ax.plot(
                [float(str(rows).replace(",", "")) for rows in line.index],
                100 * line.to_numpy(),
                color=LIGHT["muted"] if theirs else LIGHT[COLOURS[own]],
                linestyle="--" if theirs else "-",
                linewidth=2.2 if method == "QuaNet" else 1.2,
                marker=MARKERS[own],
                markersize=4,
                label=method if theirs else f"quanet {own}",
            )
        ax.set(xscale="log", yscale="log", xlabel="labelled training texts")
        ax.set_title(f"bags of {size}", fontsize=9)
        ticks = [float(row.replace(",", "")) for row in ROWS if row != "all" and row in set(part["rows"].astype(str))]
        ax.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
        ax.minorticks_off()
        levels = [level for level in (3, 4, 5, 6, 8, 10, 15, 20, 25) if ax.get_ylim()[0] <= level <= ax.get_ylim()[1]]
        ax.set_yticks(levels, [str(level) for level in levels])
        ax.tick_params(labelsize=8, colors=LIGHT["muted"])
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color=LIGHT["rule"], linewidth=0.6)
        ax.set_axisbelow(True)
    figure.axes[0].set_ylabel("mean error of a share, points", fontsize=9)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], frameon=False, fontsize=8, loc="outside right center")
    save_figure(figure, path)


PAGE = """# Few labels: QuaNet and other methods with 100 to all training rows

`benchmarks/few_labels.py`, `benchmarks/few_labels_simulations.py`, `benchmarks/few_labels_table.py`. {versions}.

Every repetition cuts a data set into random halves, draws training rows from the first (at least 10 of each class),
fits the text default, and draws 210 bags of every size at the 21 prevalences of the paper from the second half. So
only prevalences differ between training data and bags. Every method has its default number of folds: five, but ten
for QuaNet with 300 and 1,000 rows ([why](../../docs/experiments/share-network.md#ten-folds)). QuaNet's network has
seen none of these texts. 95 % intervals without drift; the interval score is the width plus 40 times the distance to
the truth. Training sets: 100 for 100 and 300 rows, 40 for 1,000, 10 for more. After ±: one standard error over the
training sets. kindle-device, kindle-store and amazon-devices are stand-ins for the paper's KINDLE and HP.

## All sets

*AE over EMQ's*: the mean over the sets of the ratios. *At most*: the goal; a
larger figure misses it
([how much could be gained](../../docs/experiments/share-network.md#how-much-could-be-gained-at-most)).

{summary}

## Mean errors

Ratios of mean errors; the sets where EMQ errs most weigh most.

{means}

## Sets that no choice was made with

Settings of the simulator, sharpening and growth were chosen with the other sets. These are held out.

{untouched}

## Interval scores, and those of EMQ before

EMQ's intervals became narrower in 0.3.0, because they expect fewer errors that were never seen. The first {number}
training sets.

{before}

## QuaPy on the same rows

{peers_note} Mean errors over the sets.
*Calibrated*: by vector scaling. quanet's EMQ and PACC are [shrunk](../../docs/decisions/0016-shrinkage.md) while
held-out rows do not show that the classifier separates the classes. With 100 rows that happens often, and if all shares
are equally frequent, as here, it costs more than it gains.

{peers}

![Error against the number of training texts.](../../docs/few-labels.png)

## Nearly perfect classifiers

Two Gaussian classes, {near_rows} training rows, bags of 1,000. Mean over training sets, ten bags each.

{nearly_perfect}

## Three and five classes: means

{by_rows}

## Three and five classes

{several_classes}

## Every set

{every}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--own", type=Path, required=True, help="QuaNet with its own number of folds")
    parser.add_argument("--peers", type=Path, required=True)
    parser.add_argument("--simulations", type=Path, required=True)
    parser.add_argument("--before", type=Path, required=True, help="measured with --unseen 1, as 0.2.0")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--picture", type=Path, required=True)
    options = parser.parse_args()
    own = read_results(options.own)
    data, peers = (with_own_folds(read_results(file), own) for file in (options.results, options.peers))
    simulated = json.loads(options.simulations.read_text())
    cells, before = cells_of(data, BINARY), read_results(options.before)
    versions = json.loads(options.results.read_text())["versions"]
    seeds = peers.groupby(["set", "rows"], observed=True)["seed"].nunique().max()
    text = PAGE.format(
        versions=", ".join(f"{name} {number}" for name, number in versions.items()),
        summary="\n".join(summary(cells)),
        means="\n".join(mean_errors(cells)),
        untouched="\n".join(summary(cells[cells["set"].isin(UNTOUCHED)])),
        number=before["seed"].max() + 1,
        before="\n".join(scores_before(data[data["set"].isin(BINARY)], before)),
        peers_note=f"The same posteriors and bags, {seeds} training sets of each size.",
        peers="\n".join(against_peers(peers[peers["set"].isin(BINARY)])),
        near_rows=300,
        nearly_perfect="\n".join(nearly_perfect(simulated)),
        by_rows="\n".join(by_rows(simulated, data)),
        several_classes="\n".join(several_classes(simulated, data)),
        every="\n".join(every_set(cells)),
    )
    write_whole(options.output, text.encode())
    draw(peers[peers["set"].isin(BINARY)], options.picture)


if __name__ == "__main__":
    main()
