"""Tables that commands are tried on."""

import numpy as np
import pandas as pd

from .conftest import draw


def one_line(err):
    """The error, which must be a single line, the last."""
    lines = [line for line in err.splitlines() if line.startswith("Error:")]
    assert len(lines) == 1
    assert err.rstrip().endswith(lines[0])
    assert "Traceback" not in err
    return lines[0]


def labelled(n=300, share=0.4, seed=7):
    """Labelled reviews of two products over three months, none of them twice in a row."""
    texts, labels = draw(share, n, seed)
    order = np.random.default_rng(seed).permutation(n)
    days = [f"2024-{1 + place * 3 // n:02}-{1 + place % 28:02}" for place in range(n)]
    return pd.DataFrame(
        {
            "review": np.array(texts, dtype=object)[order],
            "sentiment": labels[order],
            "product": np.where(np.arange(n) % 2, "lamp", "radio"),
            "date": days,
        }
    )


def stream(shares, n=80, start="2024-01-01", seed=3):
    """Reviews of as many weeks as there are shares."""
    weeks = []
    for number, share in enumerate(shares):
        texts, _ = draw(share, n, seed + number)
        day = np.datetime64(start) + 7 * number
        weeks.append(pd.DataFrame({"review": texts, "date": [str(day + place % 7) for place in range(n)]}))
    return pd.concat(weeks)


def judged(n=600, part=0.3, seed=0):
    """A judge's labels and scores of answers by two models, and human labels of a part."""
    rng = np.random.default_rng(seed)
    model = rng.integers(2, size=n)
    truth = (rng.random(n) < np.array([0.3, 0.6])[model]).astype(int)
    judge = np.where(rng.random(n) < 0.2, 1 - truth, truth)
    names = np.array(["good", "bad"])
    return pd.DataFrame(
        {
            "model": np.array(["A", "B"])[model],
            "date": [f"2024-{1 + place % 4:02}-01" for place in range(n)],
            "human": np.where(rng.random(n) < part, names[truth], ""),
            "judge": names[judge],
            "score": (truth + rng.normal(size=n) / 2).round(3),
        }
    )
