"""Labels as a call wants them: variants of one label made one, or reported."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from quanet.cli.console import note, warn

if TYPE_CHECKING:
    from quanet.answers.fitting import Labelled
    from quanet.answers.labelled import Pool
    from quanet.answers.reading import Inputs
    from quanet.answers.shares import Key
    from quanet.data.streams import Source


def settle_labels(names: Sequence[Any], *, normalize: bool, known: Iterable[Any] = ()) -> list[Any]:
    """The labels, with one spelling for all variants if asked for; otherwise variants are reported.

    Parameters
    ----------
    names : labels as they were read; None where there is none.
    normalize : whether variants become one.
    known : classes of a model, whose spelling is taken.
    """
    from quanet.data.variants import describe_variants, label_variants, spellings

    classes = list(known)
    everything = [*names, *classes]
    if not normalize:
        said = describe_variants(everything)
        if said:
            warn(f"{said} If so, give --normalize-labels.")
        return list(names)
    spelling = spellings(names, classes)
    for group in label_variants(everything):
        kept = spelling.get(group[0], group[0])
        note(f"Labels taken for {kept!r}: {', '.join(repr(one) for one in group if one != kept)}")
    return [spelling.get(name, name) for name in names]


def settle_judgements(
    judged: Sequence[Any],
    human: Sequence[Any],
    aside: tuple[Sequence[Any], Sequence[Any]] | None,
    *,
    normalize: bool,
) -> tuple[Sequence[Any], Sequence[Any], tuple[Sequence[Any], Sequence[Any]] | None]:
    """Labels of people and of the judge, spelt alike if asked for; what people write is the spelling that is kept."""
    from quanet.data.variants import spellings

    parts = [judged, human, *(aside or ())]
    known = spellings(aside[0] if aside else human).values() if normalize else ()
    settled = settle_labels([label for part in parts for label in part], normalize=normalize, known=known)
    ends = [sum(map(len, parts[: at + 1])) for at in range(len(parts))]
    first, second, *rest = (settled[end - len(part) : end] for part, end in zip(parts, ends, strict=True))
    return first, second, (rest[0], rest[1]) if aside else None


def labelled_pools(
    train: "Source",
    test: "Source",
    columns: "tuple[Inputs, str, str]",
    key: "Key | None",
    date_format: str | None,
    *,
    normalize: bool,
) -> "tuple[Labelled, Pool]":
    """The labelled instances of both files."""
    from dataclasses import replace

    from quanet.answers.fitting import read_labelled
    from quanet.answers.labelled import read_pool
    from quanet.data.columns import label_name

    inputs, named, told = columns
    note(told)
    learn = read_labelled(train, inputs, named, normalize=normalize)
    tried = read_pool(test, inputs, named, key=key, form=date_format)
    names = settle_labels(tried.names, normalize=normalize, known=map(label_name, learn.counts))
    tried = replace(tried, names=names)
    for source, skipped in ((train, learn.skipped), (test, tried.skipped)):
        for reason, number in skipped.items():
            note(f"{source.name}: {number:,} rows left out ({reason})")
    return learn, tried
