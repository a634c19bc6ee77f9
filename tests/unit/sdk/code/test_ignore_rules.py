import pytest

from estimator_sdk.code.ignore_rules import FILE, IgnoreRules, Reason, parse
from estimator_sdk.errors import InvalidArgument


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
        (["# *.py", "", "  ", "!", "/", "\\", "[z-a]"], "a.py", False, False),
        (["*.py  "], "a.py", False, True),
        (["\\#a"], "#a", False, True),
        (["a[!b].py"], "ac.py", False, True),
        (["a[^b].py"], "ab.py", False, False),
        (["**/" * 30 + "x"], "a/" * 30 + "y", False, False),
    ],
)
def test_the_last_rule_that_matches_decides(lines, name, is_folder, left_out, tmp_path):
    (tmp_path / FILE).write_text("\n".join(lines), encoding="utf-8")
    rules = IgnoreRules.around(tmp_path).in_folder("", tmp_path)
    assert rules.leaves_out(name, tmp_path / name, is_folder) is (Reason.OWN if left_out else None)


@pytest.mark.parametrize("name", [".git", "__pycache__", ".venv", ".venv311", ".mypy_cache", ".ipynb_checkpoints"])
def test_version_control_and_caches_stay_out_at_any_depth(name, tmp_path):
    rules = IgnoreRules.around(tmp_path)
    for path in (name, f"pkg/{name}"):
        assert rules.leaves_out(path, tmp_path / path, True) is Reason.ALWAYS


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        (folder / f".{name}").write_text(lines, encoding="utf-8")


def left_out(rules, folder, *names):
    return [name for name in names if rules.leaves_out(name.rstrip("/"), folder / name, name.endswith("/"))]


def test_the_folder_s_own_file_has_the_last_word(tmp_path):
    write(tmp_path, estimatorignore="*.csv\n!.venv/\n!a.log\n", gitignore="*.log\n!b.csv\n!__pycache__/\n")
    rules = IgnoreRules.around(tmp_path, with_git=True).in_folder("", tmp_path)
    names = ("a.csv", "b.csv", "a.log", "b.log", FILE, ".venv/", "__pycache__/", "a.py")
    assert left_out(rules, tmp_path, *names) == ["a.csv", "b.csv", "b.log", FILE, "__pycache__/"]


def test_a_file_in_a_folder_says_more_about_what_is_in_it(tmp_path):
    write(tmp_path, gitignore="*.log\n/data\n")
    write(tmp_path / "pkg", gitignore="!keep.log\n/local\n")
    above = IgnoreRules.around(tmp_path, with_git=True).in_folder("", tmp_path)
    inside = above.in_folder("pkg/", tmp_path / "pkg")
    names = ("pkg/a.log", "pkg/keep.log", "pkg/local", "pkg/deep/local", "pkg/data")
    assert left_out(inside, tmp_path, *names) == ["pkg/a.log", "pkg/local"]
    assert left_out(above, tmp_path, *names) == ["pkg/a.log", "pkg/keep.log"]


def test_the_rules_of_the_repository_around_the_folder_count_as_far_as_it_goes(tmp_path):
    source = tmp_path / "repository" / "team" / "trial"
    write(tmp_path, gitignore="a.py\n")
    write(tmp_path / "repository", gitignore="*.ckpt\n/team/trial/data/\n")
    write(tmp_path / "repository" / "team", gitignore="!keep.ckpt\nwandb/\n")
    source.mkdir()
    names = ("a.py", "a.ckpt", "keep.ckpt", "data/", "deep/data/", "wandb/")
    assert left_out(IgnoreRules.around(source, with_git=True), source, *names) == []
    (tmp_path / "repository" / ".git").mkdir()
    assert left_out(IgnoreRules.around(source, with_git=True), source, *names) == ["a.ckpt", "data/", "wandb/"]
    assert left_out(IgnoreRules.around(source), source, *names) == []


@pytest.mark.parametrize("lines", ["/team/\n", "trial\n", "team/*\n"])
def test_a_folder_that_its_repository_ignores_as_a_whole_is_taken_as_it_is(tmp_path, lines):
    source = tmp_path / "team" / "trial"
    write(tmp_path, gitignore=f"*.csv\n{lines}")
    write(source)
    (tmp_path / ".git").mkdir()
    assert left_out(IgnoreRules.around(source, with_git=True), source, "a.py", "a.csv") == []


def test_an_unreadable_file_is_refused(tmp_path):
    (tmp_path / FILE).write_bytes(b"\xff\xfe\xff")
    with pytest.raises(InvalidArgument, match="cannot be read"):
        IgnoreRules.around(tmp_path).in_folder("", tmp_path)


def test_nothing_is_parsed_without_a_rule():
    assert parse(["# a comment", "", "  "]) is None
