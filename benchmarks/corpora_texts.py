"""Generated short texts with known shares, as partitioned Parquet, written in bounded memory.

A text has 15 to 20 words. Each class draws them from its own distribution over the same words. Every text is in one
of 10, of 1,000 and of 100,000 groups (columns `group10` and so on). Its chance of the second class, between .1 and .9,
depends on all three. Consecutive rows are in different groups, so every file has rows of as many groups as it can.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

WORDS = 6000
LENGTHS = (15, 20)  # words of a text, both included
TILT = 0.45  # standard deviation of the logarithm of a word's odds between the classes
CHUNK = 50_000  # rows drawn and written at a time
CLASSES = ("complaint", "praise")
GROUPS = {10: 0.5, 1000: 0.3, 100_000: 0.2}  # numbers of groups, and how much each of them matters for the class
GOLDEN = (5**0.5 - 1) / 2


def vocabulary(seed: int) -> list[str]:
    """Different made-up words, frequent ones first and shorter."""
    rng = np.random.default_rng([seed, 1])
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "ar", "en", "il", "or", "us")]
    words: dict[str, None] = {}
    while len(words) < WORDS:
        count = 2 + (len(words) > 400) + (rng.random() < 0.2)
        words["".join(rng.choice(syllables, count))] = None
    return list(words)


def word_distributions(seed: int) -> np.ndarray:
    """Cumulative probabilities of the words in each class: (2, words)."""
    rng = np.random.default_rng([seed, 2])
    base = 1 / (np.arange(WORDS) + 10.0)  # Zipf
    tilt = TILT * rng.normal(size=WORDS)
    found = np.stack([base * np.exp(-tilt / 2), base * np.exp(tilt / 2)])
    found = np.cumsum(found, axis=1)
    return found / found[:, -1:]


def chances(rows: np.ndarray) -> np.ndarray:
    """The chance of the second class in each of the rows with these numbers, between .1 and .9."""
    parts = (part * np.mod((rows % groups + 1) * GOLDEN, 1.0) for groups, part in GROUPS.items())
    return np.asarray(0.1 + 0.8 * sum(parts))


class TextSource:
    """Draws texts of given classes.

    Parameters
    ----------
    seed : of the words and their distributions. Texts of one seed have the same language.
    """

    def __init__(self, seed: int) -> None:
        self.distributions = word_distributions(seed)
        words = vocabulary(seed)
        # The last word of a text ends it, so that the texts are one buffer of bytes and need no loop.
        self.words = pa.array([word + " " for word in words] + [word + "." for word in words], pa.large_string())

    def texts(self, classes: np.ndarray, rng: np.random.Generator) -> pa.LargeStringArray:
        """One text for each class in `classes` (n,)."""
        lengths = rng.integers(LENGTHS[0], LENGTHS[1] + 1, len(classes))
        ends = np.cumsum(lengths)
        of_words, drawn = np.repeat(classes, lengths), rng.random(ends[-1])
        ids = np.empty(len(drawn), dtype=np.int64)
        for code, distribution in enumerate(self.distributions):
            ids[of_words == code] = np.searchsorted(distribution, drawn[of_words == code])
        ids[ends - 1] += len(self.words) // 2
        joined = self.words.take(pa.array(ids))
        _, offsets, data = joined.buffers()
        starts = np.frombuffer(offsets, dtype=np.int64, count=len(ids) + 1)[np.concatenate([[0], ends])]
        return pa.LargeStringArray.from_buffers(len(classes), pa.py_buffer(starts.tobytes()), data)


def write_labelled(path: Path, rows: int, seed: int) -> None:
    """Labelled texts, both classes equally often."""
    rng = np.random.default_rng([seed, 3])
    classes = np.arange(rows) % 2
    labels = pa.array(np.array(CLASSES)[classes])
    pq.write_table(pa.table({"text": TextSource(seed).texts(classes, rng), "label": labels}), path)


def write_corpus(folder: Path, rows: int, seed: int) -> dict[str, Any]:
    """Write texts in groups to Parquet files in a folder, with the true shares in truth.npz; returns its facts.

    Parameters
    ----------
    folder : a finished corpus in it is used again.
    rows : number of texts; a file has 100,000, or an eighth of them if that is less.
    seed : of the language and of the texts.
    """
    done = folder / "corpus.json"
    if done.exists():
        return dict(json.loads(done.read_text()))
    folder.mkdir(parents=True, exist_ok=True)
    source, files = TextSource(seed), max(8, -(-rows // 100_000))
    names = {groups: pa.array([f"g{number:06d}" for number in range(groups)]) for groups in GROUPS}
    counts = {groups: np.zeros((groups, 2), dtype=np.int64) for groups in GROUPS}
    edges = np.linspace(0, rows, files + 1).astype(int).tolist()
    for file, (begin, end) in enumerate(pairwise(edges)):
        with pq.ParquetWriter(
            folder / f"part-{file:05d}.parquet",
            pa.schema({"text": pa.large_string()} | {f"group{groups}": pa.string() for groups in GROUPS}),
            compression="zstd",
            compression_level=1,
        ) as writer:
            for start in range(begin, end, CHUNK):
                rng, numbers = np.random.default_rng([seed, 4, start]), np.arange(start, min(start + CHUNK, end))
                classes = (rng.random(len(numbers)) < chances(numbers)).astype(np.int64)
                columns = {"text": source.texts(classes, rng)}
                for groups in GROUPS:
                    columns[f"group{groups}"] = names[groups].take(pa.array(numbers % groups))
                    np.add.at(counts[groups], (numbers % groups, classes), 1)
                writer.write_table(pa.table(columns))
    np.savez(folder / "truth.npz", **{str(groups): count for groups, count in counts.items()})
    size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    facts = {"rows": rows, "seed": seed, "files": files, "bytes": size}
    done.write_text(json.dumps(facts))
    return facts
