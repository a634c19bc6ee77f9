import pytest

from estimator_sdk.errors import InvalidArgument
from estimator_sdk.ignore_rules import FILE, IgnoreRules


@pytest.mark.parametrize(
    ("lines", "name", "is_folder", "left_out"),
    [
        ([], "a.py", False, False),
        (["*.csv"], "a.csv", False, True),
        (["*.csv"], "data/deep/a.csv", False, True),
        (["*.csv"], "a.csv.py", False, False),
        (["/a.csv"], "a.csv", False, True),
        (["/a.csv"], "data/a.csv", False, False),
        (["data/*.csv"], "data/a.csv", False, True),
        (["data/*.csv"], "data/deep/a.csv", False, False),
        (["data/**/a.csv"], "data/deep/er/a.csv", False, True),
        (["data/**/a.csv"], "data/a.csv", False, True),
        (["**/a"], "x/y/a", True, True),
        (["build/"], "build", True, True),
        (["build/"], "build", False, False),
        (["a[0-9].py"], "a7.py", False, True),
        (["a?.py"], "ab.py", False, True),
        (["a?.py"], "a.py", False, False),
        (["A.py"], "a.py", False, False),
        (["*.csv", "!keep.csv"], "keep.csv", False, False),
        (["!keep.csv", "*.csv"], "keep.csv", False, True),
        (["*.csv", "!*.csv", "a.csv"], "a.csv", False, True),
        (["# *.py", "", "  ", "!", "/"], "a.py", False, False),
        (["  *.py  "], "a.py", False, True),
    ],
)
def test_the_last_rule_that_matches_decides(lines, name, is_folder, left_out):
    assert IgnoreRules.parse(lines).leave_out(name, is_folder) is left_out


@pytest.mark.parametrize("name", [".git", "__pycache__", ".venv", ".venv311", ".mypy_cache", ".ipynb_checkpoints"])
def test_version_control_and_caches_stay_out_at_any_depth(name, tmp_path):
    rules = IgnoreRules.of(tmp_path)
    assert rules.leave_out(name, True) and rules.leave_out(f"pkg/{name}", True)


def test_the_folder_s_own_file_adds_rules_and_takes_back(tmp_path):
    (tmp_path / FILE).write_text("*.csv\n!.venv/\n", encoding="utf-8")
    rules = IgnoreRules.of(tmp_path)
    assert rules.leave_out("a.csv", False) and rules.leave_out(FILE, False)
    assert not rules.leave_out(".venv", True) and not rules.leave_out("a.py", False)


def test_an_unreadable_file_is_refused(tmp_path):
    (tmp_path / FILE).write_bytes(b"\xff\xfe\xff")
    with pytest.raises(InvalidArgument, match="cannot be read"):
        IgnoreRules.of(tmp_path)
