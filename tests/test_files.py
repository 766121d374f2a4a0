import pytest

from quanet.errors import InvalidSetting
from quanet.files import write_whole


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path):
    folder = tmp_path / "taken"
    folder.mkdir()
    (folder / "kept.txt").write_text("kept")
    with pytest.raises(InvalidSetting, match="taken cannot be written"):
        write_whole(folder, b"new")
    assert [path.name for path in tmp_path.rglob("*")] == ["taken", "kept.txt"]
