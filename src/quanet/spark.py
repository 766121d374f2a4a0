"""Shares of a Spark data frame: ``quanet.spark.predict(df, model, by=["product"])``."""

from pathlib import Path
from typing import Any

from quanet.base import Quantifier
from quanet.corpus.spark_sql import first_rows, read_data_frame
from quanet.data.settings import Estimation, TableReading, with_settings
from quanet.workflows.cluster_tables import ClusterTable, predict_table
from quanet.workflows.predict import Shares

__all__ = ["predict"]


@with_settings
def predict(
    df: Any,
    model: str | Path | Quantifier,
    reading: TableReading,
    estimation: Estimation,
) -> Shares:
    """Estimate the share of every class in a Spark data frame, overall and by group, with intervals.

    Use it for data that are on a Spark cluster. `mapInArrow` reads the partitions where they are; only states travel.
    The digits are those of `quanet predict` on the same rows.

    Parameters
    ----------
    df : `pyspark.sql.DataFrame`. Timestamps are dates in the time zone of its session.
    model : a model folder, or a fitted quantifier. It is sent to the workers.
    by : columns to group by, such as "product" or "date:month".
    text, features : the text column, or numeric columns; default: those that the model was trained on.
    weight : a column of weights, such as views.
    date_format : format of dates, such as ``%d/%m/%Y``; detected if only one fits.
    level : confidence level of the intervals.
    seed : random seed.
    drift : whether intervals include drift.

    Returns
    -------
    Shares
        `total` and `interval` (`Interval`) with the shares of all rows and of every `groups`; `diagnosis`, and more.
        `summarize_shares` turns it into a report.

    Examples
    --------
    >>> from quanet.spark import predict
    >>> shares = predict(session.read.parquet("reviews/"), "model/", by=["product"])  # doctest: +SKIP
    >>> print(shares.total)  # doctest: +SKIP
    """
    table = ClusterTable(
        "The data frame",
        list(df.columns),
        lambda number, columns: first_rows(df, number, columns),
        lambda work: read_data_frame(work, df),
    )
    return predict_table(table, model, reading, estimation)
