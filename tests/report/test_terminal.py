"""What a terminal shows of answers whose figures are made by hand."""

import dataclasses

import numpy as np
import pytest
from rich.console import Console

from quanet.evaluation.findings import Diagnosis, Finding
from quanet.report.markdown import to_markdown
from quanet.report.predict import summarize_shares
from quanet.report.render import to_csv, to_html
from quanet.report.summary import Column, Section, Summary, Table, TableEntry
from quanet.report.terminal import print_summary, to_text
from quanet.uncertainty.widening import Drift
from tests.report.made_answers import ALARM, made_shares, monthly, monthly_by_product


def printed(shares, *, width=80, verbose=False):
    page = Console(width=width, color_system=None)
    with page.capture() as captured:
        print_summary(summarize_shares(shares), page, verbose=verbose)
    return captured.get()


@pytest.mark.same_lines
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


def drifting(shares):
    """The shares of three groups: trusted, widened by 5 points, and refused."""
    interval = shares.interval
    lower, upper = interval.lower.copy(), interval.upper.copy()
    lower[1:], upper[1:] = lower[1:] + 0.05, upper[1:] - 0.05
    drift = Drift(
        distance=np.array([0.0, 0.01, 0.2]),
        variance=np.array([0.0, 0.002, 0.1]),
        cost=np.full((3, 2), 0.07),
        lower=lower,
        upper=upper,
        state=np.array(["trusted", "widened", "refused"], dtype=object),
        labels=np.array([0, 40, 96]),
        source="from the bias on 8 clusters",
    )
    return dataclasses.replace(shares, interval=dataclasses.replace(interval, drift=drift))


def test_every_group_has_a_state_with_what_it_needs():
    shares = drifting(monthly(3))
    assert shares.notes == ["", "few, widened", "refused"]
    table = to_csv(summarize_shares(shares)).splitlines()
    assert table[0].endswith("counted,drift,state,labels,note")
    assert table[5].endswith(",0.07,refused,96,refused")
    out = printed(shares, width=120)
    assert "few, widened by 5.0" in out
    assert "refused: label 96" in out
    assert "few: fewer than 20 instances, or an interval wider than 20 points without drift (1 group)." in out
    assert "trusted: drift that can be seen adds at most half of the sampling error" in out
    data = summarize_shares(shares).data()
    assert [group["state"] for group in data["groups"]] == ["trusted", "widened", "refused"]
    assert [group["labels"] for group in data["groups"]] == [0, 40, 96]
    assert data["groups"][2]["classes"]["positive"]["drift"] == 0.07
    assert summarize_shares(shares).figures()["groups"][1]["state"] == "widened"


def test_too_few_rows_are_one_mark():
    shares = drifting(monthly(3))
    drift = dataclasses.replace(shares.interval.drift, state=np.full(3, "few rows", dtype=object))
    few = dataclasses.replace(shares, interval=dataclasses.replace(shares.interval, drift=drift))
    assert few.small.any()
    assert few.notes == ["few rows"] * 3
    out = printed(few, width=120)
    assert "few, few rows" not in out
    assert "few rows: no drift is seen, but so few rows may hide drift that matters" in out


def test_a_warning_is_printed_once_with_the_first_example():
    quoted = ("a text about\nsomething " + "very " * 30 + "different", "another text", "and <b>another</b>")
    finding = Finding("contents", "alarm", "Texts differ from the training texts.", "Use refine.", {}, quoted)
    shares = monthly(3, diagnosis=Diagnosis([finding]))
    summary, out = summarize_shares(shares), " ".join(printed(shares, width=120).split())
    assert out.count("Texts differ from the training texts.") == 1
    assert 'Example: "a text about something very very' in out
    assert "another text" not in out
    page, marked = to_html(summary), to_markdown(summary)
    assert page.count("Texts differ from the training texts.") == marked.count("Texts differ from the training") == 1
    assert "<summary>3 example texts</summary>" in page
    assert "and &lt;b&gt;another&lt;/b&gt;" in page
    assert summary.data()["diagnosis"][0]["examples"] == list(quoted)


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
