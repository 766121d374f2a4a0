"""The figures of the paper, and what of ours they may be compared with.

Source: A. Esuli, A. Moreo and F. Sebastiani, "A Recurrent Neural Network for Sentiment Quantification", CIKM 2018, in
its Table 1: means of 10 runs over 21 prevalences x 100 bags of 500.
"""

import re
from collections.abc import Mapping

METRICS = ("ae", "rae", "kld")

# By dataset, then by row: AE, RAE, KLD.
TABLE_1: Mapping[str, Mapping[str, tuple[float, float, float]]] = {
    "IMDB": {
        "CC": (0.096, 1.193, 0.044),
        "ACC": (0.021, 0.144, 0.011),
        "PCC": (0.107, 1.336, 0.053),
        "PACC": (0.019, 0.126, 0.010),
        "SVM-KLD": (0.065, 0.890, 0.025),
        "SVM-NKLD": (0.068, 0.938, 0.026),
        "SVM-Q": (0.075, 1.127, 0.029),
        "EMQ": (0.094, 0.529, 0.045),
        "QuaNet": (0.018, 0.108, 0.003),
    },
    "Kindle": {
        "CC": (0.417, 5.805, 0.717),
        "ACC": (0.160, 0.884, 0.839),
        "PCC": (0.407, 5.704, 0.661),
        "PACC": (0.138, 0.688, 0.736),
        "SVM-KLD": (0.228, 3.186, 0.171),
        "SVM-NKLD": (0.080, 1.192, 0.033),
        "SVM-Q": (0.387, 5.246, 0.548),
        "EMQ": (0.104, 1.196, 0.046),
        "QuaNet": (0.061, 0.491, 0.021),
    },
    "HP": {
        "CC": (0.476, 6.487, 1.346),
        "ACC": (0.245, 2.919, 0.400),
        "PCC": (0.469, 6.411, 1.202),
        "PACC": (0.205, 2.391, 0.267),
        "SVM-KLD": (0.385, 5.298, 0.543),
        "SVM-NKLD": (0.217, 3.146, 0.160),
        "SVM-Q": (0.486, 6.560, 1.643),
        "EMQ": (0.200, 2.912, 0.140),
        "QuaNet": (0.099, 1.036, 0.047),
    },
}

DATASETS = {"imdb": "IMDB", "kindle": "Kindle", "hp": "HP"}
# Public data of the same kind, where the paper's are not at hand. Never compared with its figures.
STAND_INS = {"kindle-device": "Kindle", "kindle-store": "Kindle", "amazon-devices": "HP"}
# By letters and digits of our names. EMQ is the paper's on naive Bayes alone, QuaNet in the paper's form alone.
ROWS = {
    "cc": "CC",
    "acc": "ACC",
    "pcc": "PCC",
    "pacc": "PACC",
    "svmkld": "SVM-KLD",
    "svmnkld": "SVM-NKLD",
    "svmq": "SVM-Q",
    "emqnb": "EMQ",
    "emqmnb": "EMQ",
    "emqnaivebayes": "EMQ",
    "emqonnaivebayes": "EMQ",
    "quanetpaper": "QuaNet",
    # The authors' code chooses the weights on test bags, so this is what was published.
    "quanetpaperselectedontest": "QuaNet",
}


def dataset_title(name: str, stand_ins: Mapping[str, str] = STAND_INS) -> str:
    """How a dataset is headed: by the paper's name, by its own, or as the stand-in that it is.

    Examples
    --------
    >>> dataset_title("imdb"), dataset_title("kindle-device"), dataset_title("airline")
    ('IMDB', 'kindle-device (stand-in for Kindle)', 'airline')
    """
    if stands_for := {**STAND_INS, **stand_ins}.get(name):
        return f"{name} (stand-in for {stands_for})"
    return DATASETS.get(name, name)


def paper_row(method: str) -> str | None:
    """The row of the paper's table that a method reproduces.

    Examples
    --------
    >>> paper_row("SVM(KLD)"), paper_row("QuaNet.paper()"), paper_row("EMQ")
    ('SVM-KLD', 'QuaNet', None)
    """
    return ROWS.get(re.sub(r"[^a-z0-9]", "", method.lower()))


def published(dataset: str, method: str, metric: str) -> float | None:
    """The paper's figure for a dataset, method and metric of ours; None where it has none.

    Examples
    --------
    >>> published("imdb", "QuaNet.paper", "rae"), published("kindle-device", "CC", "ae"), published("imdb", "CC", "se")
    (0.108, None, None)
    """
    row = paper_row(method)
    if dataset not in DATASETS or row is None or metric not in METRICS:
        return None
    return TABLE_1[DATASETS[dataset]][row][METRICS.index(metric)]
