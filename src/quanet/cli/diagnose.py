"""`quanet diagnose`: check whether the estimates for new files can be trusted."""

from quanet.cli.console import command_settings, progress, warnings_as_lines, write_answer, write_report
from quanet.cli.model_folder import load_model, read_files
from quanet.cli.options import (
    AnswerFormat,
    Files,
    Force,
    ModelFolder,
    Output,
    Report,
    check_class,
    check_outputs,
    choose_format,
)
from quanet.data.settings import Level, Naming, Reading, Seed


def diagnose(
    model: ModelFolder,
    files: Files,
    reading: Reading,
    level: Level,
    seed: Seed,
    naming: Naming,
    form: AnswerFormat = None,
    output: Output = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Check whether estimates for FILES can be trusted, how accurate single labels are, and what to do next.

    Checks prior shift, topics, unknown words, the classifier and the number of instances, overall and by group.

    [bold]Examples[/]

    quanet diagnose model new.csv

    quanet diagnose model new.csv --by product --report diagnosis.html
    """
    from quanet.corpus.group_files import open_files
    from quanet.corpus.model_inputs import describe_model
    from quanet.corpus.state_files import is_state
    from quanet.data.storage import without_credentials
    from quanet.report.diagnose import summarize_trust
    from quanet.workflows.diagnose import judge_trust
    from quanet.workflows.predict import estimate_shares

    form = choose_format(form, output)
    check_outputs(output, report=report, force=force)
    with warnings_as_lines():
        quantifier, facts = load_model(model, naming)
        show = check_class(naming, facts["class_names"])
        data = open_files(
            quantifier,
            facts,
            files,
            reading,
        )
        instances = read_files(data)
        with progress("Checking"):
            shares = estimate_shares(
                quantifier,
                instances,
                keys=reading.keys,
                level=level.level,
                seed=seed.seed,
                source=data.name,
                model=describe_model(model, facts, quantifier),
            )
    rows = [without_credentials(file) for file in files if not is_state(file)]  # states have no rows to label
    trust = judge_trust(shares, model=str(model), files=rows or ["FILES"], by=reading.by)
    summary = summarize_trust(trust, settings=command_settings(), focus=show)
    write_report(summary, report)
    write_answer(summary, form, output)
