"""Batches by the time of their arrival, for data without dates."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from quanet.corpus.state import Accumulator, State
from quanet.corpus.state_files import from_bytes
from quanet.data.periods import Key
from quanet.serve.store.projects import ProjectRow
from quanet.serve.store.uploads import done_batches
from quanet.serve.work.job_context import JobContext, JobRefused
from quanet.serve.work.read_options import ReadOptions

ARRIVAL = Key("arrival")
MOST_TIMES = 500  # of batches; of more batches, those of an hour or of a day have one time
FORMS = ("%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:00:00", "%Y-%m-%d")


@dataclass(frozen=True, eq=False)
class _Arrived:
    """The state of batches that have arrived, by their id, with the form of times."""

    form: str
    done: dict[int, int]
    state: State


def arrival_state(context: JobContext, row: ProjectRow, options: ReadOptions) -> State:
    """The state of the batches that the project's model has read, with the time of arrival as their group."""
    with context.store.read() as connection:
        found = done_batches(connection, row.id, row.model)
    times = [datetime.fromtimestamp(one.created, UTC) for one in found]
    form = next((form for form in FORMS[:-1] if len(Counter(f"{at:{form}}" for at in times)) <= MOST_TIMES), FORMS[-1])
    kept: dict[str, _Arrived] = context.memory.setdefault("arrivals", {})
    known = kept.get(f"{row.id} {row.model}")
    now = {one.id: one.done for one in found}
    if known is None or known.form != form or not known.done.items() <= now.items():
        known = None
    merged = Accumulator(known.state if known else None)
    for one, at in zip(found, times, strict=True):
        if known is None or one.id not in known.done:
            new = from_bytes(context.store.blobs.path(one.state).read_bytes())
            if new.header.weight == (options.weight or ""):
                merged.add(_at(new, f"{at:{form}}"))
    state = merged.state()
    if state is None:
        raise JobRefused("The batches are being read. Try again in a moment.")
    kept.clear()
    kept[f"{row.id} {row.model}"] = _Arrived(form, now, state)
    return state


def _at(state: State, time: str) -> State:
    """The state as one group with this time."""
    one = state.as_one()
    return replace(one, header=replace(one.header, keys=(ARRIVAL,)), groups=((time,),))
