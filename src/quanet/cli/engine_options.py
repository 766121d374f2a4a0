"""The options --engine and --workers: which processes read the files."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from quanet.engines.reading_run import EngineChoice

READING = "Reading"


class EngineName(StrEnum):
    """Engines (see `quanet.engines`)."""

    local = "local"
    ray = "ray"
    spark = "spark"


Engine = Annotated[
    EngineName,
    typer.Option(
        help="Where files are read: local processes, the Ray cluster at RAY_ADDRESS, or the Spark cluster at MASTER or "
        "SPARK_REMOTE. The result is the same.",
        rich_help_panel=READING,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Number of processes, each on one core; default: one per core, for files that are not small.",
        rich_help_panel=READING,
    ),
]


def choose_engine(model: Path, engine: EngineName, workers: int | None) -> "EngineChoice":
    """The engine given with --engine and --workers. An engine that is not installed raises an error now."""
    from quanet.engines.reading_run import EngineChoice

    return EngineChoice(model, engine.value, workers).check()
