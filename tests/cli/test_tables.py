"""Tables of answers whose figures are made by hand."""

import dataclasses

import pytest
from rich.console import Console

from quanet.answers.fitting import HeldOut
from quanet.cli.tables import counts_table, diagnosis_lines, errors_table, note_of, shares_table
from quanet.cli.writing_shares import as_bytes, frame, key_names
from tests.report.made_answers import ALARM, made_shares, monthly, monthly_by_product


def printed(*parts, width=80):
    paper = Console(width=width, color_system=None)
    with paper.capture() as captured:
        for part in parts:
            paper.print(part)
    return captured.get()


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_tables_fit_their_screen_and_show_every_group(width, k):
    classes = tuple(f"class {c}" for c in range(k))
    for shares in (made_shares(classes=classes), monthly(classes=classes), monthly_by_product(classes=classes)):
        out = printed(shares_table(shares, width), width=width)
        assert max(map(len, out.splitlines())) <= width
        assert all(values[-1] in out for values in shares.groups if values)
        assert "…" not in out
        assert classes[-1] in out


def test_two_classes_are_told_by_the_second_and_drawn_where_there_is_room():
    shares = monthly()
    drawn = printed(shares_table(shares, 100), width=100)
    assert "●" in drawn
    assert "negative" not in drawn
    assert "all" in drawn
    estimate = f"{shares.interval.estimate[0, 1]:.1%}"
    assert estimate in drawn
    assert "●" not in printed(shares_table(shares, 50), width=50)


def test_more_groups_than_a_screen_are_cut():
    groups = [(f"shop {n}",) for n in range(300)]
    out = printed(shares_table(made_shares(keys=[("shop",)], groups=groups), 100), width=100)
    assert "shop 199" in out
    assert "shop 200" not in out


def test_notes_tell_few_and_drift():
    shares = dataclasses.replace(monthly(3), diagnoses=("alarm", "", "ok"))
    assert [note_of(shares, g) for g in range(3)] == ["[red]drift[/]", "few", ""]
    assert frame(shares)["note"].tolist() == ["drift", "drift", "few", "few", "", ""]


def test_names_of_columns_stay_apart():
    shares = made_shares(
        keys=[("date", "year"), ("date", "month"), ("class", "")], groups=[("2024", "2024-01", "a")] * 2
    )
    assert key_names(shares) == ["date:year", "date:month", "class:"]
    assert frame(shares).columns.tolist()[:4] == ["date:year", "date:month", "class:", "class"]


def test_what_is_well_is_one_line_unless_all_is_wanted():
    shares = monthly()
    short = [line.plain for line in diagnosis_lines(shares.diagnosis, everything=False)]
    assert short[-1] == "✓ Nothing to say against: prior shift."
    assert short[0] == "· The prevalence is not that of training. Correct it."
    assert len(diagnosis_lines(shares.diagnosis, everything=True)) == 3
    assert diagnosis_lines(ALARM, everything=False)[0].plain.startswith("✗ This is not prior shift alone.")


def test_a_table_in_a_file_has_no_codes_and_no_spaces_at_its_ends():
    text = as_bytes(monthly(), "table").decode()
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_many_classes_are_counted_the_largest_first():
    counts = {f"c{n}": n + 1 for n in range(30)}
    lines = printed(counts_table(counts, 5)).split("\n")
    assert [line.split()[0] for line in lines[:4]] == ["c29", "c28", "c27", "c26"]
    assert lines[4].split()[:2] == ["26", "others"]


def test_errors_stand_beside_a_plain_count():
    errors = HeldOut(0.0123, 0.2, 500, 100)
    assert [line.split()[-2] for line in printed(errors_table(errors, "EMQ")).splitlines()] == ["1.2", "20.0"]
    assert len(printed(errors_table(errors, "CC")).splitlines()) == 1
