"""The shares of a batch or of all batches as an answer: estimated, described, and stored in every form."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quanet.corpus.grouped_inputs import GroupedInputs
from quanet.report.predict import summarize_shares
from quanet.serve.work.job_context import JobContext
from quanet.serve.work.loaded_models import LoadedModel
from quanet.serve.work.read_options import ReadOptions
from quanet.serve.work.render_answer import stored_forms
from quanet.serve.work.share_facts import share_facts
from quanet.workflows.predict import Shares, estimate_shares


@dataclass(frozen=True, slots=True)
class ShareAnswer:
    """Shares, the sentence about them, the command that gives them, their blobs by form, and facts for pages."""

    shares: Shares
    sentence: str
    command: str
    forms: dict[str, str]
    facts: dict[str, Any]


def answer_shares(
    context: JobContext,
    model: LoadedModel,
    reading: GroupedInputs,
    options: ReadOptions,
    title: str,
    files: Sequence[str],
) -> ShareAnswer:
    """Estimate the shares of what was read, as `quanet predict` does, and store the answer in every form.

    Parameters
    ----------
    context, model, options : of the job.
    reading : instances, with their groups.
    title, files : what the answer calls the data, and the files in the command that gives it.
    """
    context.report(0.6, "Estimating")
    shares = estimate_shares(
        model.quantifier,
        reading,
        keys=options.keys,
        level=options.level,
        seed=options.seed,
        source=title,
        model=model.about,
    )
    command = options.command("predict", files)
    focus = model.facts["class_names"].find(options.show)
    summary = summarize_shares(shares, settings=[("command", command)], focus=focus)
    context.report(0.9, "Drawing charts")
    facts = share_facts(shares, reading.some_texts, options)
    return ShareAnswer(shares, summary.answer, command, stored_forms(context.store.blobs, summary), facts)
