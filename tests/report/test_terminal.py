"""What a terminal shows of answers whose figures are made by hand."""

import dataclasses

import pytest
from rich.console import Console

from quanet.report.predict import summarize_shares
from quanet.report.render import to_csv
from quanet.report.summary import Column, Section, Summary, Table, TableEntry
from quanet.report.terminal import print_summary, to_text
from tests.report.made_answers import ALARM, made_shares, monthly, monthly_by_product


def printed(shares, *, width=80, verbose=False):
    page = Console(width=width, color_system=None)
    with page.capture() as captured:
        print_summary(summarize_shares(shares), page, verbose=verbose)
    return captured.get()


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_answers_fit_their_screen_and_show_every_group(width, k):
    classes = tuple(f"class {c}" for c in range(k))
    for shares in (made_shares(classes=classes), monthly(classes=classes), monthly_by_product(classes=classes)):
        out = printed(shares, width=width)
        assert max(map(len, out.splitlines())) <= width
        assert all(value in out for values in shares.groups for value in values)
        assert "…" not in out
        assert classes[-1] in out
        assert f"{100 * shares.interval.estimate[0, -1]:.1f}" in out


def test_an_interval_is_drawn_if_there_is_room_and_spare_columns_are_dropped_if_not():
    shares = monthly()
    assert "●" in printed(shares, width=120)
    narrow = printed(shares, width=50).split("Total")[0]
    assert "●" not in narrow
    assert "counted  " not in narrow
    assert f"{100 * shares.interval.estimate[0, 1]:.1f}" in narrow


def test_more_rows_than_a_screen_are_cut():
    groups = [(f"shop {n}",) for n in range(300)]
    out = printed(made_shares(keys=[("shop",)], groups=groups), width=100)
    assert "shop 199" in out
    assert "shop 200" not in out
    assert "100 more rows are not shown" in out


def test_notes_tell_few_and_drift():
    shares = dataclasses.replace(monthly(3), diagnoses=("alarm", "", "ok"))
    assert shares.notes == ["drift", "few", ""]
    assert shares.rows()["note"].tolist() == ["drift", "drift", "few", "few", "", ""]
    out = printed(shares, width=100)
    assert "few: fewer than 20 instances, or an interval wider than 20 points (1 group)." in out
    assert "drift: words or posteriors differ from the training data (1 group)" in out


def test_names_of_columns_stay_apart():
    shares = made_shares(
        keys=[("date", "year"), ("date", "month"), ("class", "")], groups=[("2024", "2024-01", "a")] * 2
    )
    assert shares.key_names == ["date:year", "date:month", "class:"]
    assert to_csv(summarize_shares(shares)).split(",")[:4] == ["date:year", "date:month", "class:", "class"]


def test_checks_without_problems_are_one_line_unless_verbose():
    out = printed(monthly(), width=100)
    assert "✓ Checked, no problems: prior shift." in out
    assert "· The prevalence is not that of training. Correct it." in out
    assert "Checked, no problems" not in printed(monthly(), width=100, verbose=True)
    alarmed = printed(monthly(diagnosis=ALARM), width=100)
    assert alarmed.count("✗ This is not prior shift alone.") == 1  # below the answer, not again among the checks


def test_details_and_settings_are_shown_only_if_verbose():
    table = Table("t", (Column("v"),), (("row", (TableEntry("1"),)),))
    summary = Summary(
        "t", "a", sections=(Section("Small print", tables=(table,), detail=True),), settings=(("s", "7"),)
    )
    page = Console(width=80, color_system=None)
    with page.capture() as captured:
        print_summary(summary, page)
    assert captured.get().strip() == "a"
    assert "Small print" in to_text(summary)
    assert "s: 7" in to_text(summary)


def test_a_text_file_has_no_codes_and_no_spaces_at_line_ends():
    text = to_text(summarize_shares(monthly()))
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_every_part_of_a_wide_table_names_its_rows_and_their_notes():
    columns = (Column("month", left=True), *(Column(f"class {c}") for c in range(12)), Column("note", left=True))
    entries = (
        TableEntry("2024-05"),
        *(TableEntry("12.3", detail="11.1 to 13.4") for _ in range(12)),
        TableEntry("few"),
    )
    table = Table("Shares", columns, (("camera", entries),), corner="product")
    text = to_text(Summary("Shares", "An answer.", sections=(Section("By product", tables=(table,)),)))
    rows = [line for line in text.splitlines() if "12.3" in line]
    assert len(rows) > 1
    assert all(line.split()[:2] == ["camera", "2024-05"] and line.split()[-1] == "few" for line in rows)
