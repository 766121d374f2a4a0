"""Made tables for `digits_commands.py`: reviews, streams of them, judged answers, numbers."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

import quanet as q

NAMES = np.array(["negative", "positive", "neutral"])


def reviews(n: int, share: float, seed: int, k: int = 2, *, bad: bool = False) -> pd.DataFrame:
    """Labelled reviews of two products over three months, a few of them copies; `bad` adds rows with gaps."""
    shares = [1 - share, share] if k == 2 else [1 - share, share / 2, share / 2]
    texts, codes = q.WordBags(k=k, preference=4.0).draw(shares, n, rng=seed)
    order = np.random.default_rng(seed).permutation(n)
    table = pd.DataFrame(
        {
            "review": np.array(texts, dtype=object)[order],
            "sentiment": NAMES[codes[order]],
            "product": np.where(np.arange(n) % 3, "lamp", "radio"),
            "date": [f"2024-{1 + place * 3 // n:02}-{1 + place % 28:02}" for place in range(n)],
        }
    )
    table = pd.concat([table, table[:8]], ignore_index=True)
    if bad:
        table.loc[[3, 5], "review"] = ""
        table.loc[[7, 8], "product"] = ""
        table.loc[9, "date"] = ""
    return table


def stream(shares: Sequence[float], seed: int = 3) -> pd.DataFrame:
    """Reviews of as many weeks as there are shares."""
    weeks = []
    for number, share in enumerate(shares):
        week = reviews(70, share, seed + number)[["review"]]
        day = np.datetime64("2024-01-01") + 7 * number
        weeks.append(week.assign(date=[str(day + place % 7) for place in range(len(week))]))
    return pd.concat(weeks)


def judged(n: int, part: float, seed: int, k: int = 2) -> pd.DataFrame:
    """A judge's labels and scores of answers by three models, and human labels of a part."""
    rng = np.random.default_rng(seed)
    model = rng.integers(3, size=n)
    truth = np.where(rng.random(n) < np.array([0.3, 0.6, 0.5])[model], 1 + rng.integers(k - 1, size=n), 0)
    judge = np.where(rng.random(n) < 0.2, (truth + 1) % k, truth)
    return pd.DataFrame(
        {
            "model": np.array(["A", "B", "C"])[model],
            "date": [f"2024-{1 + place % 4:02}-01" for place in range(n)],
            "human": np.where(rng.random(n) < part, NAMES[truth], ""),
            "judge": NAMES[judge],
            "score": (truth + rng.normal(size=n) / 2).round(3),
        }
    )


def houses(n: int, share: float, seed: int, k: int = 2) -> pd.DataFrame:
    """Numbers with labels."""
    X, codes = q.Gaussians(k=k, distance=2.5).draw([1 - share] + [share / (k - 1)] * (k - 1), n, rng=seed)
    named = {f"x{at}": X[:, at].round(6) for at in range(X.shape[1])}
    table = pd.DataFrame(named | {"sold": NAMES[codes], "year": 2010 + np.arange(n) % 4})
    return table.sample(frac=1, random_state=seed)
