"""Shares of a Ray dataset: ``quanet.ray.predict(dataset, model, by=["product"])``."""

from pathlib import Path
from typing import Any

from quanet.base import Quantifier
from quanet.corpus.ray_data import column_names, first_rows, read_dataset
from quanet.data.settings import Estimation, TableReading, with_settings
from quanet.workflows.cluster_tables import ClusterTable, predict_table
from quanet.workflows.predict import Shares

__all__ = ["predict"]


@with_settings
def predict(
    dataset: Any,
    model: str | Path | Quantifier,
    reading: TableReading,
    estimation: Estimation,
    *,
    workers: int | None = None,
) -> Shares:
    """Estimate the share of every class in a Ray dataset, overall and by group, with intervals.

    Use it for data that are on a Ray cluster. Actors load the model once and read the blocks where they are; only
    states travel. The digits are those of `quanet predict` on the same rows.

    Parameters
    ----------
    dataset : `ray.data.Dataset`.
    model : a model folder, or a fitted quantifier. It is sent to the actors.
    by : columns to group by, such as "product" or "date:month".
    text, features : the text column, or numeric columns; default: those that the model was trained on.
    weight : a column of weights, such as views.
    date_format : format of dates, such as ``%d/%m/%Y``; detected if only one fits.
    level : confidence level of the intervals.
    seed : random seed.
    drift : whether intervals include drift.
    workers : at most this many actors; None: one per core of the cluster.

    Returns
    -------
    Shares
        `total` and `interval` (`Interval`) with the shares of all rows and of every `groups`; `diagnosis`, and more.
        `summarize_shares` turns it into a report.

    Examples
    --------
    >>> import ray.data  # doctest: +SKIP
    >>> from quanet.ray import predict
    >>> shares = predict(ray.data.read_parquet("reviews/"), "model/", by=["product"])  # doctest: +SKIP
    >>> print(shares.total)  # doctest: +SKIP
    """
    table = ClusterTable(
        "The dataset",
        column_names(dataset),
        lambda number, columns: first_rows(dataset, number, columns),
        lambda work: read_dataset(work, dataset, workers=workers),
    )
    return predict_table(table, model, reading, estimation)
