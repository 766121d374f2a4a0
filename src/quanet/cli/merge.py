"""`quanet merge`: merge saved states, so that old texts need not be read again."""

from pathlib import Path
from typing import Annotated

import typer

from quanet.cli.console import command_settings, warnings_as_lines, write_answer
from quanet.cli.options import OUTPUT, AnswerFormat, Force, check_outputs, check_state_file, choose_format


def merge(
    states: Annotated[
        list[str],
        typer.Argument(metavar="STATES", help="Files written with --save-state; a quoted pattern.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="State to write: .arrow.", show_default=False, rich_help_panel=OUTPUT
        ),
    ],
    form: AnswerFormat = None,
    force: Force = False,
) -> None:
    """Merge states of `quanet predict --save-state`: days to a week, shops to a chain.

    The order does not matter, and a state that is given twice counts once. States of different models, groups or
    weights are not merged. `quanet predict` and `quanet monitor` accept states wherever they accept files.

    [bold]Examples[/]

    quanet predict model monday.csv --by date:day --save-state monday.arrow

    quanet merge monday.arrow tuesday.arrow -o days.arrow

    quanet predict model days.arrow --by date:month
    """
    from quanet.corpus.state_files import merge_states, save_state
    from quanet.data.file_names import resolve
    from quanet.report.merge import summarize_merge

    form = choose_format(form, None)
    check_state_file(output, "--output")
    check_outputs(output, force=force)
    with warnings_as_lines():
        merged = merge_states(list(resolve(states)))
        save_state(merged.state, output)
    write_answer(summarize_merge(merged, output=str(output), settings=command_settings()), form, None)
