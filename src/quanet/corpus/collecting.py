"""Collect the results of an engine: merge states, report progress, and keep what is done if the run is killed."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

from quanet.corpus.batch_reader import bad_file
from quanet.corpus.processes import return_memory
from quanet.corpus.state import Accumulator, State
from quanet.corpus.state_files import from_bytes, save_state
from quanet.data.cache import cache_folder
from quanet.errors import BadFile, QuanetError

EVERY = 30.0  # seconds between checkpoints
SHARE = 0.05  # of the time that may be spent on checkpoints
OLDEST = 7 * 86400  # seconds that a checkpoint is kept


class RunCheckpoint:
    """The merged state of an unfinished run, in the cache folder.

    Parameters
    ----------
    facts : what the state depends on: the model, the settings, the partitions. Another run has another file.
    """

    def __init__(self, *facts: Any) -> None:
        name = sha256(repr(facts).encode(errors="surrogateescape")).hexdigest()[:32]
        self.path = cache_folder() / "runs" / f"{name}.arrow"
        self.saved = time.monotonic()
        self.cost = 0.0

    def load(self) -> State | None:
        """The state of a run that was killed; None if there is none, or if it cannot be used."""
        self._delete_old()
        try:
            return from_bytes(self.path.read_bytes(), str(self.path))
        except (OSError, QuanetError):
            return None

    @property
    def due(self) -> bool:
        """Whether it is time for the next checkpoint."""
        return time.monotonic() - self.saved >= max(EVERY, self.cost / SHARE)

    def save(self, state: State) -> None:
        """Write the state in one step. A run without a place for it continues."""
        begin = time.monotonic()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            save_state(state, self.path, compress=False)
        except (OSError, QuanetError):
            pass
        self.saved = time.monotonic()
        self.cost = self.saved - begin

    def delete(self) -> None:
        """Delete it, since the run is finished."""
        self.path.unlink(missing_ok=True)

    def _delete_old(self) -> None:
        for file in self.path.parent.glob("*.arrow"):
            try:
                if time.time() - file.stat().st_mtime > OLDEST:
                    file.unlink()
            except OSError:  # another process has deleted it
                continue


class BlockNames:
    """Ids of blocks that have none: a digest of the state, and how often it has occurred."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def __call__(self, result: bytes) -> str:
        """The id of the next block."""
        digest = sha256(result).hexdigest()[:20]
        self.seen[digest] += 1
        return f"{digest}.{self.seen[digest]}"


def collect(
    results: Iterable[bytes],
    *,
    start: State | None = None,
    checkpoint: RunCheckpoint | None = None,
    name: Callable[[bytes], str] | None = None,
    follow: Callable[[State], None] | None = None,
    skip: Callable[[str, str, str], None] | None = None,
) -> State | None:
    """The state of all results, in any order and perhaps repeated; None without any.

    Parameters
    ----------
    results : of `ReadingWork`, from an engine.
    start : the state of a run that was killed.
    checkpoint : where the state is kept meanwhile.
    name : gives every state an id, if each arrives exactly once.
    follow : called with every state that arrives.
    skip : called with a file that cannot be read, the reason and the partition.
    """
    found, known = Accumulator(start), set() if start is None else set(start.partitions)
    try:
        for result in results:
            if (bad := bad_file(result)) is not None:
                if skip is None:
                    raise BadFile(bad[1], bad[0], bad[2])
                skip(*bad)
                continue
            state = from_bytes(result)
            if name is not None:
                state = state.named(name(result))
            del result
            if state.partitions <= known:  # a retry
                continue
            known |= state.partitions
            found.add(state)
            if follow is not None:
                follow(state)
            del state
            return_memory()
            if checkpoint is not None and checkpoint.due:
                _keep(found, checkpoint)
                return_memory()
    except BaseException:
        if checkpoint is not None and time.monotonic() - checkpoint.saved > EVERY / 6:
            _keep(found, checkpoint)
        raise
    merged = found.state()
    return_memory()
    return merged


def _keep(found: Accumulator, checkpoint: RunCheckpoint) -> None:
    found.state()
    return_memory()
    state = found.state(in_order=True)  # so that there is no second copy while it is written
    return_memory()
    if state is not None:
        checkpoint.save(state)
