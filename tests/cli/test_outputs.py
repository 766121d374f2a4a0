"""What cannot be written is reported before the work: here before it is noticed that the data do not exist."""

import sys

import pytest

from quanet.errors import InvalidSetting
from quanet.files import check_writable, write_whole

from .made_tables import one_line

LONG = "a" * 245  # with an ending, and as a part of the name of a temporary file, longer than a name may be


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "missing.csv", "-o", LONG),
        ("fit", "missing.csv", "-o", "file.txt/model"),
        ("fit", "missing.csv", "-o", "model", "--report", f"{LONG}.html"),
        *(
            ("predict", "MODEL", "missing.csv", option, f"{LONG}{ending}")
            for option, ending in {
                "-o": ".csv",
                "--plot": ".svg",
                "--report": ".md",
                "--items": ".csv",
                "--save-state": ".arrow",
            }.items()
        ),
        ("evaluate", "MODEL", "missing.csv", "--bags", f"{LONG}.csv"),
        ("monitor", "MODEL", "missing.csv", "--by", "date:day", "--state", LONG),
        ("diff", "MODEL", "missing.csv", "other.csv", "-o", f"{LONG}.csv"),
        ("diagnose", "MODEL", "missing.csv", "-o", f"{LONG}.csv"),
        ("check", "missing.csv", "-o", f"{LONG}.csv"),
        ("compare", "missing.csv", "other.csv", "-o", f"{LONG}.csv"),
        ("label", "plan", "MODEL", "missing.csv", "-o", f"{LONG}.csv"),
        ("refine", "MODEL", "missing.csv", "--labels", "missing.csv", "-o", f"{LONG}.csv"),
        ("merge", "missing.arrow", "-o", f"{LONG}.arrow"),
        ("experiment", "table", "missing", "-o", f"{LONG}.csv"),
    ],
)
def test_an_output_that_cannot_be_written_is_reported_first(call, model, tmp_path, words):
    (tmp_path / "file.txt").write_text("x")
    code, _, err = call(*(model if word == "MODEL" else word for word in words))
    assert code == 1
    assert "cannot be written: " in one_line(err)
    assert "missing.csv" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]


@pytest.mark.parametrize(
    ("words", "module"),
    [
        (("predict", "MODEL", "missing.csv", "--plot", "a.png"), "matplotlib.figure"),
        (("diff", "MODEL", "missing.csv", "other.csv", "--plot", "a.png"), "matplotlib.figure"),
        (("monitor", "MODEL", "missing.csv", "--by", "date:day", "--plot", "a.png"), "matplotlib.figure"),
        (("fit", "missing.csv", "-o", "model", "--report", "a.html"), "matplotlib.figure"),
        (("predict", "MODEL", "missing.csv", "--format", "html"), "matplotlib.figure"),
        (("predict", "MODEL", "missing.csv", "-o", "a.html"), "matplotlib.figure"),
        (("evaluate", "MODEL", "missing.csv", "--bags", "a.xlsx"), "openpyxl"),
        (("label", "plan", "MODEL", "missing.csv", "-o", "a.xlsx"), "openpyxl"),
    ],
)
def test_a_missing_extra_is_reported_first(call, model, monkeypatch, words, module):
    monkeypatch.setitem(sys.modules, module, None)
    code, _, err = call(*(model if word == "MODEL" else word for word in words))
    assert code == 1
    assert module.partition(".")[0] in one_line(err)
    assert "pip install 'quanet[" in one_line(err)
    assert "missing.csv" not in err


def test_the_check_agrees_with_writing(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / f"{LONG}.csv", tmp_path / "file" / "a.csv"):
        for write in (check_writable, lambda path: write_whole(path, b"x")):
            with pytest.raises(InvalidSetting, match="cannot be written: "):
                write(path)
    check_writable(tmp_path / "a.csv")
    check_writable(tmp_path / "new" / "folders" / "model")  # they are created
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
