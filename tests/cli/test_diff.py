import io
import json

import pandas as pd
import pytest

from .conftest import draw
from .test_fit import one_line
from .test_predict import by_authors


@pytest.fixture(scope="module")
def years(tmp_path_factory):
    """Two files whose shares of positive reviews are 0.3 and 0.6."""
    folder = tmp_path_factory.mktemp("years")
    for year, share in ((2016, 0.3), (2017, 0.6)):
        pd.DataFrame({"review": draw(share, 200, year)[0], "views": 3}).to_csv(folder / f"{year}.csv", index=False)
    return folder


def test_two_files_are_compared_with_each_other(call, model, years):
    code, out, err = call("diff", model, years / "2016.csv", years / "2017.csv", "--class", "negative")
    assert code == 0
    assert "200 of 200 rows" in err
    (found,) = json.loads(out)["comparisons"]
    assert (found["first"], found["second"], found["sizes"]) == ("2016", "2017", [200, 200])
    negative = found["classes"]["negative"]
    assert negative["lower"] < -0.3 < negative["upper"] < 0
    assert negative["p"] == negative["adjusted"] < 0.01


def test_the_table_says_it_in_a_sentence(call, model, years):
    words = ("diff", model, years / "2016.csv", years / "2017.csv", "--class", "negative", "--format", "table", "-q")
    code, out, _ = call(*words)
    assert code == 0
    assert out.startswith("negative fell by ")
    assert "from 2016 to 2017." in " ".join(out.split())


def test_groups_by_product_and_periods_by_month(call, model, files, tmp_path):
    code, out, _ = call("diff", model, files / "new.csv", "--by", "product", "--format", "csv", "-q")
    assert code == 0
    table = pd.read_csv(io.StringIO(out))
    assert table["second"].tolist() == ["radio"]  # the only other group
    assert table["difference"].iloc[0] == pytest.approx(-0.5, abs=0.12)
    words = ("--by", "date:month", "--report", "r.html", "--plot", "p.png")
    code, out, _ = call("diff", model, files / "new.csv", *words, "-q")
    assert code == 0
    answer = json.loads(out)
    assert [one["second"] for one in answer["comparisons"]] == ["2024-02", "2024-03"]
    assert answer["changes"][0]["first"] == "2024-01"
    assert answer["trends"][0]["per"] == "month"
    assert "Trend:" in (tmp_path / "r.html").read_text()
    assert (tmp_path / "p.png").stat().st_size > 1000


def test_weights_target_and_drift_reach_the_answer(call, model, years):
    files = (years / "2016.csv", years / "2017.csv")
    plain, weighted, bag, narrow = (
        json.loads(call("diff", model, *files, "-q", *more)[1])["comparisons"][0]["classes"]["positive"]
        for more in ((), ("--weight", "views"), ("--target", "bag"), ("--no-drift",))
    )
    assert weighted["difference"] == pytest.approx(plain["difference"], abs=0.01)  # all weights are equal
    width = plain["upper"] - plain["lower"]
    assert bag["upper"] - bag["lower"] < width
    assert narrow["upper"] - narrow["lower"] < width
    assert narrow["drift"] is None


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["2016.csv"], 2, "One file has only one side. Give two files, or group its rows with --by."),
        (["2016.csv", "2016.csv"], 2, "2016.csv is given twice"),
        (["2016.csv", "2017.csv", "--against", "2016", "--between", "2016", "2017"], 2, "not both"),
        (["2016.csv", "2017.csv", "--against", "2061"], 1, "Unknown group '2061'. Choose from '2016', '2017'."),
        (["2016.csv", "2017.csv", "--between", "2016", "2018"], 1, "Unknown group '2018'"),
        (["2016.csv", "--by", "views"], 1, "one group only, '3'"),
        (["2016.csv", "2017.csv", "--class", "neutral"], 2, "neutral"),
    ],
)
def test_what_cannot_be_compared_is_one_line(call, model, years, words, code, message):
    paths = [years / word if word.endswith(".csv") else word for word in words]
    found, _, err = call("diff", model, *paths, "-q")
    assert found == code
    assert message in (" ".join(err.split()).replace("│ ", "").replace(" │", "") if code == 2 else one_line(err))


def test_a_part_is_not_compared_with_the_whole(call, model, years, tmp_path):
    pd.read_csv(years / "2016.csv").iloc[:80].to_csv(tmp_path / "part.csv", index=False)
    code, _, err = call("diff", model, years / "2016.csv", "part.csv", "-q")
    assert code == 1
    assert "All rows of part also occur in 2016" in one_line(err)


def test_clusters_widen_the_difference(call, model, tmp_path):
    for name, share in (("a", 0.3), ("b", 0.6)):
        by_authors(tmp_path / f"{name}.csv", share, 20, seed=800)
    words = ("diff", model, tmp_path / "a.csv", tmp_path / "b.csv", "-q", "--no-drift")
    plain, clustered = (
        json.loads(call(*words, *more)[1])["comparisons"][0]["classes"]["positive"]
        for more in ((), ("--cluster", "author"))
    )
    assert plain["difference"] == clustered["difference"]
    assert clustered["upper"] - clustered["lower"] > 1.5 * (plain["upper"] - plain["lower"])
