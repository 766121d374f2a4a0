"""States as Arrow files, and such files merged, so that what was read once need not be read again.

A file has one row, one list per array, and the header as JSON in the metadata of the schema.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from quanet.corpus.kept_rows import Cells, CopySums, KeptRows, Rows
from quanet.corpus.layout import Layout
from quanet.corpus.state import VERSION, Accumulator, Groups, KeptTexts, State, StateHeader, distinct, regroup
from quanet.data.file_names import STATE, shown_name, split_address
from quanet.data.periods import Key
from quanet.errors import InvalidData, InvalidSetting
from quanet.files import replacing

METADATA = b"quanet_state"


def to_bytes(state: State) -> bytes:
    """A state as an Arrow file. Equal states have equal bytes."""
    sink = pa.BufferOutputStream()
    _write(state, sink)
    return sink.getvalue().to_pybytes()


def _write(state: State, sink: Any, compression: str | None = "zstd") -> None:
    """Write a state to an Arrow stream or a file."""
    state = state.in_order()
    arrays, columns = _arrays(state), {}
    for name, array in arrays.items():
        columns[name] = pa.LargeListArray.from_arrays([0, array.size], pa.array(array.ravel()))
    columns["texts.texts"] = pa.LargeListArray.from_arrays([0, len(state.texts.texts)], state.texts.texts)
    for at, key in enumerate(state.header.keys):
        names = pa.array([group[at].encode(errors="surrogatepass") for group in state.groups], pa.large_binary())
        columns[f"groups.{at}.{key.column}"] = pa.LargeListArray.from_arrays([0, len(names)], names)
    facts = {
        "version": VERSION,
        "header": asdict(state.header),
        "partitions": sorted(state.partitions),
        "rows": state.rows,
        "groups": len(state.groups),
        "skipped": state.skipped,
        "labels": state.labels,
        "overlap": state.overlap,
        "shapes": {name: array.shape for name, array in arrays.items()},
    }
    table = pa.table(columns).replace_schema_metadata({METADATA: json.dumps(facts)})
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)  # threads would keep their memory
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)


def from_bytes(data: bytes, name: str = "The state") -> State:
    """The state in an Arrow file. Raises `InvalidData` if it is damaged, or of another version."""
    try:
        table = pa.ipc.open_file(pa.BufferReader(data), options=pa.ipc.IpcReadOptions(use_threads=False)).read_all()
        facts = json.loads((table.schema.metadata or {})[METADATA])
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise InvalidData(f"{name} is not a state of quanet, or it is damaged. Read the data again.") from error
    if facts.get("version") != VERSION:
        raise InvalidData(
            f"{name} is a state of version {facts.get('version')!r}; this quanet reads version {VERSION}. "
            "Read the data again, or use the quanet that wrote it."
        )
    try:
        return _state(table, facts)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InvalidData(f"{name} is a damaged state of quanet. Read the data again.") from error


def save_state(state: State, path: Path, *, compress: bool = True) -> int:
    """Write a state in one step; returns its bytes. Compression needs as much memory as the file."""
    try:
        with replacing(path) as file, pa.OSFile(file.name, "wb") as sink:
            _write(state, sink, "zstd" if compress else None)
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be written: {error.strerror or error}. Choose another file.") from None
    return path.stat().st_size


def load_state(path: Path) -> State:
    """The state in a file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidData(f"{path} cannot be read: {error.strerror}.") from None
    return from_bytes(data, str(path))


def _arrays(state: State) -> dict[str, Any]:
    """The arrays of a state, by name."""
    kept, texts = state.kept, state.texts
    arrays = {"levels": kept.levels, "sums": state.sums, "totals": state.totals}
    parts: dict[str, Any] = {"rows": kept.rows, "cells": kept.cells, "sampled": kept.sampled, "copies": kept.copies}
    for part, held in parts.items():
        arrays |= {f"{part}.{name}": getattr(held, name) for name in held.__slots__}
    if arrays["rows.weights"] is None:
        del arrays["rows.weights"]
    return arrays | {f"texts.{name}": getattr(texts, name) for name in ("hashes", "groups", "descriptions")}


def _state(table: Any, facts: dict[str, Any]) -> State:
    known = facts["header"]
    keys = tuple(Key(**key) for key in known["keys"])
    known["layout"].pop("pooled", None)  # in states of versions before 0.3
    layout = Layout(**known["layout"] | {"prior": tuple(known["layout"]["prior"])})
    header = StateHeader(**known | {"keys": keys, "layout": layout, "inputs": tuple(known["inputs"])})
    found = {
        name: table.column(name).chunk(0).values.to_numpy(zero_copy_only=False).reshape(shape)
        for name, shape in facts["shapes"].items()
    }
    names = [table.column(f"groups.{at}.{key.column}").chunk(0).values for at, key in enumerate(keys)]
    weights = found["rows.weights"] if layout.weighted else None
    rows = Rows(found["rows.groups"], found["rows.values"], found["rows.hashes"], weights)
    cells, sampled = (Cells(*(found[f"{part}.{name}"] for name in Cells.__slots__)) for part in ("cells", "sampled"))
    copies = CopySums(found["copies.groups"], found["copies.sums"])
    texts = table.column("texts.texts").chunk(0).values
    return State(
        header=header,
        partitions=frozenset(facts["partitions"]),
        rows=facts["rows"],
        groups=_groups(names) if keys else ((),) * facts["groups"],
        kept=KeptRows(layout, found["levels"], rows, cells, sampled, copies),
        sums=found["sums"],
        totals=found["totals"],
        texts=KeptTexts(found["texts.hashes"], found["texts.groups"], texts, found["texts.descriptions"]),
        skipped=Counter(facts["skipped"]),
        labels=Counter(facts["labels"]),
        overlap=tuple(facts["overlap"]),
    )


_latest: tuple[list[Any], Groups] = [], ()  # names, and the groups that they give


def _groups(names: list[Any]) -> Groups:
    """The groups with these values of the keys. States that arrive one after the other often have the same."""
    global _latest
    before, groups = _latest
    if len(before) != len(names) or not all(map(pa.Array.equals, before, names)):
        columns = [[name.decode(errors="surrogatepass") for name in column.to_pylist()] for column in names]
        groups = tuple(zip(*columns, strict=True))
        _latest = names, groups
    return groups


@dataclass(frozen=True, slots=True, eq=False)
class StateFile:
    """What a file with a state contains.

    Attributes
    ----------
    name : of the file.
    header : model, groups and weights.
    partitions : ids of the partitions.
    rows, instances, groups : their numbers; rows include those skipped.
    repeated : whether another file contains all its partitions, so that it adds nothing.
    """

    name: str
    header: StateHeader
    partitions: frozenset[str]
    rows: int
    instances: int
    groups: int
    repeated: bool = False

    @classmethod
    def of(cls, name: str, state: State) -> "StateFile":
        """The facts of a state."""
        return cls(name, state.header, state.partitions, state.rows, state.instances, len(state.groups))


@dataclass(frozen=True, slots=True, eq=False)
class MergedStates:
    """A merged state, and the files it comes from, in the order given."""

    state: State
    files: tuple[StateFile, ...]


def is_state(file: str) -> bool:
    """Whether a file is a state rather than a table, by its ending.

    Examples
    --------
    >>> is_state("week.arrow"), is_state("week.parquet")
    (True, False)
    """
    return Path(file).suffix.lower() == STATE


def merge_states(files: Sequence[str], keys: Sequence[Key] | None = None) -> MergedStates:
    """Merge the states in files. The order does not matter, and a file that occurs again adds nothing.

    Raises `InvalidData` if they come from different models, groups or weights, or share only a part of their rows.

    Parameters
    ----------
    files : names.
    keys : what to group by; None if all states are grouped alike.
    """
    if not files:
        raise InvalidData("There are no states to merge. Write one with quanet predict --save-state FILE.arrow.")
    # Their rows are loaded again, one by one: all of them together may not fit into memory.
    facts = [StateFile.of(file, _load(file, keys)) for file in files]
    for one in facts[1:]:
        facts[0].header.check(one.header, shown_name(one.name))
    try:
        different = distinct(facts)
    except InvalidData as error:
        names = ", ".join(map(shown_name, files[:3]))
        raise InvalidData(f"{names}{' and others' if len(files) > 3 else ''}: {error}") from None
    merged = Accumulator()
    for one in different:
        merged.add(_load(one.name, keys))
    state = merged.state()
    assert state is not None
    again = [one not in different for one in facts]
    return MergedStates(
        state, tuple(replace(one, repeated=is_again) for one, is_again in zip(facts, again, strict=True))
    )


def _load(file: str, keys: Sequence[Key] | None) -> State:
    path, _ = split_address(file)
    name = shown_name(file)
    if isinstance(path, Path):
        state = load_state(path)
    else:
        with path.open() as stored:
            state = from_bytes(stored.read(), name)
    return state if keys is None else regroup(state, keys, name)


def check_belongs(state: State, model: str, weight: str | None, name: str) -> None:
    """Raise `InvalidData` unless a state was read with this model (its digest) and this column of weights."""
    if state.header.model != model:
        raise InvalidData(f"{name} was read with another model. Use that model, or read its data again.")
    if state.header.weight != (weight or ""):
        weighted = f"is weighted by {state.header.weight!r}" if state.header.weight else "has no weights"
        raise InvalidData(f"{name} {weighted}. Use the same --weight, or read its data again.")
