"""Write tables chunk by chunk, in bounded memory: CSV, JSON lines, Parquet; and Excel, which is limited itself."""

import json
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from quanet.data.workbooks import check_excel, to_workbook
from quanet.errors import InvalidSetting
from quanet.files import as_utf8, json_ready, replacing

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

ENDINGS = (".csv", ".jsonl", ".parquet", ".xlsx")


def check_rows_file(path: Path) -> None:
    """Raise `InvalidSetting` unless `write_chunks` can write such a file."""
    if path.suffix.lower() not in ENDINGS:
        raise InvalidSetting(f"{path} does not end in any of {', '.join(ENDINGS)}.")
    if path.suffix.lower() == ".xlsx":
        check_excel()


def write_chunks(path: Path, chunks: "Iterable[pd.DataFrame]") -> int:
    """Write data frames with the same columns to one file, which appears when it is complete; return their rows."""
    check_rows_file(path)
    write = dict(zip(ENDINGS, (_write_csv, _write_json_lines, _write_parquet, _write_excel), strict=True))
    try:
        with replacing(path) as file:
            return write[path.suffix.lower()](file, chunks)
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be written: {error.strerror or error}. Choose another file.") from None


def _write_csv(file: IO[bytes], chunks: "Iterable[pd.DataFrame]") -> int:
    rows = 0
    for chunk in chunks:
        file.write(as_utf8(chunk.to_csv(index=False, header=rows == 0, float_format="%.6g")))
        rows += len(chunk)
    return rows


def _write_json_lines(file: IO[bytes], chunks: "Iterable[pd.DataFrame]") -> int:
    rows = 0
    for chunk in chunks:
        for values in zip(*(chunk[name].tolist() for name in chunk.columns), strict=True):
            record = json_ready(dict(zip(chunk.columns, map(_rounded, values), strict=True)))
            file.write(as_utf8(json.dumps(record, ensure_ascii=False) + "\n"))
        rows += len(chunk)
    return rows


def _rounded(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _write_parquet(file: IO[bytes], chunks: "Iterable[pd.DataFrame]") -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, writer = 0, None
    try:
        for chunk in chunks:
            schema = None if writer is None else writer.schema
            table = pa.Table.from_pandas(chunk, schema=schema or _schema(chunk), preserve_index=False)
            if writer is None:
                writer = pq.ParquetWriter(file, table.schema)
            writer.write_table(table)
            rows += len(chunk)
    finally:
        if writer is not None:
            writer.close()
    return rows


def _write_excel(file: IO[bytes], chunks: "Iterable[pd.DataFrame]") -> int:
    import pandas as pd

    table = pd.concat(list(chunks))
    file.write(to_workbook(table, "items"))
    return len(table)


def _schema(chunk: "pd.DataFrame") -> Any:
    """Types of the columns: numbers as they are, all else text; the first rows may all be empty."""
    import pyarrow as pa

    kinds = {"i": pa.int64(), "f": pa.float64()}
    return pa.schema([(name, kinds.get(chunk[name].dtype.kind, pa.string())) for name in chunk.columns])
