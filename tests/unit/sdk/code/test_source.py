import hashlib
import os
import shutil
import tarfile
import tempfile
import warnings
from pathlib import Path

import pytest
from estimator_container.host.preparation import code

from estimator_sdk.code.source import Source
from estimator_sdk.errors import EstimatorError, InvalidArgument


def write(path: Path, content: bytes = b"", mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    return path


@pytest.fixture
def src(tmp_path):
    """A source folder with all that a tree can have."""
    root = tmp_path / "src"
    write(root / "train.py", b"print('hello')\n")
    write(root / "run.sh", b"#!/bin/sh\n", 0o755)
    write(root / "pkg" / "__init__.py")
    write(root / "pkg" / "données.bin", bytes(range(256)), 0o600)
    (root / "empty").mkdir()
    (root / "latest").symlink_to("pkg/__init__.py")
    (root / "pkg" / "up").symlink_to("../train.py")
    (root / "pkg" / "nowhere").symlink_to("later")
    (root / "folder").symlink_to("pkg")
    return root


def names(archive: Path) -> list[str]:
    with tarfile.open(archive) as tar:
        return tar.getnames()


def refusal(source: Source) -> InvalidArgument:
    with pytest.raises(InvalidArgument) as raised:
        source.check()
    return raised.value


def test_a_tree_arrives_byte_for_byte_with_exec_bits_links_and_empty_folders(src, tmp_path):
    archive, there = tmp_path / "code.tar.gz", tmp_path / "code"
    there.mkdir()
    Source("train.py", str(src)).bundle(archive)
    code.fetch(str(archive), str(there))
    found = {path.relative_to(there) for path in there.rglob("*")}
    assert found == {path.relative_to(src) for path in src.rglob("*")}
    for name in ("train.py", "run.sh", "pkg/__init__.py", "pkg/données.bin"):
        assert (there / name).read_bytes() == (src / name).read_bytes()
    assert os.access(there / "run.sh", os.X_OK) and (there / "train.py").stat().st_mode & 0o111 == 0
    assert (there / "empty").is_dir()
    for name in ("latest", "pkg/up", "pkg/nowhere", "folder"):
        assert (there / name).readlink() == (src / name).readlink()


def test_the_same_tree_gives_the_same_bytes(src, tmp_path):
    first = Source("train.py", str(src)).bundle(tmp_path / "a.tar.gz")
    elsewhere = tmp_path / "elsewhere" / "other"
    shutil.copytree(src, elsewhere, symlinks=True, copy_function=shutil.copyfile)
    (elsewhere / "run.sh").chmod(0o700)
    os.utime(elsewhere / "train.py", (1, 1))
    second = Source("train.py", str(elsewhere)).bundle(tmp_path / "b.tar.gz")
    assert first == second == hashlib.sha256((tmp_path / "a.tar.gz").read_bytes()).hexdigest()
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()


@pytest.mark.parametrize("change", ["content", "name", "exec bit", "link"])
def test_another_tree_gives_other_bytes(src, tmp_path, change):
    before = Source("train.py", str(src)).bundle(tmp_path / "a.tar.gz")
    if change == "content":
        write(src / "train.py", b"print('hallo')\n")
    elif change == "name":
        (src / "run.sh").rename(src / "go.sh")
    elif change == "exec bit":
        (src / "train.py").chmod(0o755)
    else:
        (src / "latest").unlink()
        (src / "latest").symlink_to("train.py")
    assert Source("train.py", str(src)).bundle(tmp_path / "b.tar.gz") != before


def test_nothing_of_the_machine_is_in_the_bundle(src, tmp_path):
    Source("train.py", str(src)).bundle(tmp_path / "a.tar.gz")
    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        members = tar.getmembers()
    assert [member.name for member in members] == sorted(member.name for member in members)
    for member in members:
        assert (member.mtime, member.uid, member.gid, member.uname, member.gname) == (0, 0, 0, "", "")
        assert member.mode in (0o700, 0o600) or (member.issym() and member.mode == 0o777)
    assert (tmp_path / "a.tar.gz").read_bytes()[3:8] == b"\0\0\0\0\0"  # no name, no time in the gzip header


def test_what_is_ignored_stays_out(src, tmp_path):
    write(src / ".git" / "HEAD")
    write(src / "pkg" / "__pycache__" / "a.pyc")
    write(src / "data" / "big.csv")
    write(src / ".estimatorignore", b"*.csv\n")
    Source("train.py", str(src)).bundle(tmp_path / "a.tar.gz")
    kept = set(names(tmp_path / "a.tar.gz"))
    assert "data" in kept and not {"data/big.csv", ".git", "pkg/__pycache__", ".estimatorignore"} & kept


@pytest.mark.parametrize("place", ["kept", "pkg/kept", "."])
def test_the_jobs_stay_out_where_their_folder_is_in_the_source(src, tmp_path, monkeypatch, place):
    """Else each job would carry all those before it."""
    before = names_of(src, tmp_path / "before.tar.gz")
    monkeypatch.setenv("ESTIMATOR_HOME", str(src / place))
    for name in ("jobs/earlier/output/model.tar.gz", "code/earlier.tar.gz"):
        write(src / place / name)
    assert names_of(src, tmp_path / "after.tar.gz") == before


def names_of(src: Path, bundle: Path) -> list[str]:
    Source("train.py", str(src)).bundle(bundle)
    return names(bundle)


def test_an_ignored_entry_point_is_refused(src):
    write(src / ".estimatorignore", b"train.py\n")
    error = refusal(Source("train.py", str(src)))
    assert error.argument == "entry_point" and ".estimatorignore" in str(error) and "!train.py" in str(error)


def test_an_entry_point_alone_is_bundled_alone_at_the_top(src, tmp_path):
    source = Source(str(src / "run.sh"))
    assert source.program == "run.sh"
    source.bundle(tmp_path / "a.tar.gz")
    assert names(tmp_path / "a.tar.gz") == ["run.sh"]


def test_a_lone_entry_point_that_is_a_link_is_bundled_as_the_file_it_leads_to(src, tmp_path):
    (tmp_path / "go.py").symlink_to(src / "train.py")
    Source(str(tmp_path / "go.py")).bundle(tmp_path / "a.tar.gz")
    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        assert tar.getmember("go.py").isfile() and tar.extractfile("go.py").read() == b"print('hello')\n"


def test_dependencies_are_put_at_the_top_under_their_own_names(src, tmp_path):
    write(tmp_path / "lib" / "deep" / "a.py")
    write(tmp_path / "more.txt")
    source = Source("train.py", str(src), (f"{tmp_path}/lib/", str(tmp_path / "more.txt")))
    source.bundle(tmp_path / "a.tar.gz")
    assert {"lib", "lib/deep", "lib/deep/a.py", "more.txt", "train.py"} <= set(names(tmp_path / "a.tar.gz"))


def test_a_clash_of_names_is_refused(src, tmp_path):
    write(tmp_path / "train.py")
    error = refusal(Source("train.py", str(src), (str(tmp_path / "train.py"),)))
    assert error.argument == "dependencies[0]" and "rename one of them" in str(error)


@pytest.mark.parametrize(
    ("entry_point", "words"),
    [
        ("trian.py", "did you mean 'train.py'"),
        ("./train.py", "did you mean 'train.py'"),
        ("src/train.py", "did you mean 'train.py'"),
        ("pkg", "is not a file"),
        ("pkg/nowhere", "is not a file"),
        ("", "is not a file"),
        ("../other.py", "is not a path inside source_dir"),
        ("pkg/../../other.py", "is not a path inside source_dir"),
    ],
)
def test_a_missing_entry_point_is_refused_with_the_nearest_file(src, tmp_path, entry_point, words):
    write(tmp_path / "other.py")
    error = refusal(Source(entry_point, str(src)))
    assert error.argument == "entry_point" and words in str(error)


def test_an_absolute_entry_point_is_refused_with_its_relative_name(src):
    assert str(refusal(Source(str(src / "train.py"), str(src)))).endswith("write 'train.py'")


@pytest.mark.parametrize("name", ["my train.py", "a$b.py", "-x.py", "é.py"])
def test_a_name_that_no_entry_point_can_have_is_refused(src, name):
    write(src / name)
    assert "is not allowed" in str(refusal(Source(name, str(src))))
    assert "is not allowed" in str(refusal(Source(str(src / name))))


def test_missing_paths_are_refused_with_the_nearest(src, tmp_path):
    error = refusal(Source("train.py", str(tmp_path / "scr")))
    assert error.argument == "source_dir" and "did you mean 'src'" in str(error)
    error = refusal(Source(str(src / "trian.py")))
    assert error.argument == "entry_point" and "did you mean 'train.py'" in str(error)
    error = refusal(Source("train.py", str(src), (str(src), str(tmp_path / "lob"))))
    assert error.argument == "dependencies[1]" and "does not exist" in str(error)
    assert "is not a folder" in str(refusal(Source("train.py", str(src / "run.sh"))))
    assert "path on this machine" in str(refusal(Source("train.py", "s3://bucket/code.tar.gz")))


def bundled(source: Source, tmp_path: Path) -> tuple[dict[str, tarfile.TarInfo], list[str]]:
    """The members of a bundle by their names, and the warnings about it."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # an earlier test may have left a socket
        source.bundle(tmp_path / "bundled.tar.gz")
    with tarfile.open(tmp_path / "bundled.tar.gz") as tar:
        return {member.name: member for member in tar}, [str(each.message) for each in told]


@pytest.mark.parametrize("target", ["../outside.py", "/etc/hostname", "pkg/../../outside.py", ".."])
def test_a_link_out_of_the_tree_is_left_out_with_a_line_that_names_it(src, tmp_path, target):
    write(tmp_path / "outside.py")
    (src / "link").symlink_to(target)
    kept, (told,) = bundled(Source("train.py", str(src)), tmp_path)
    assert "link" not in kept and "train.py" in kept
    assert told == f"left out of the code, because the hosts cannot use it: link, a link to {target}"


def test_many_links_out_of_the_tree_are_one_line(src, tmp_path):
    deep = tmp_path / "outside" / "deep"
    deep.mkdir(parents=True)
    for number in range(20):
        (src / f"a{number:02d}").symlink_to(deep)
    kept, (told,) = bundled(Source("train.py", str(src)), tmp_path)
    assert "a00" not in kept and told.count("a link to") == 5 and told.endswith(" and 15 more")


@pytest.mark.parametrize("name", ["linked.py", "folder_of_another/train.py"])
@pytest.mark.parametrize("argument", ["entry_point", "script"])
def test_an_entry_point_that_needs_a_link_out_of_the_tree_is_refused(src, tmp_path, name, argument):
    write(tmp_path / "other" / "train.py")
    (src / "linked.py").symlink_to(tmp_path / "other" / "train.py")
    (src / "folder_of_another").symlink_to(tmp_path / "other")
    program = name if argument == "entry_point" else None
    error = refusal(Source(program, str(src), script=None if program else name))
    assert f"{name.split('/')[0]} is a link to {tmp_path}/other" in str(error) and "copy in its place" in str(error)


def test_an_entry_point_behind_a_link_inside_the_tree_is_one(src):
    Source("folder/__init__.py", str(src)).check()


@pytest.mark.parametrize("target", ["{src}/pkg", "../src/pkg", "{src}/../src/folder"])
def test_a_link_that_stays_in_the_tree_by_way_of_its_outside_leads_there_on_the_hosts(src, tmp_path, target):
    (src / "sub").mkdir()
    for name in ("link", "sub/link"):
        (src / name).symlink_to(target.format(src=src) if "{" in target else f"{'../' * name.count('/')}{target}")
    kept, told = bundled(Source("train.py", str(src)), tmp_path)
    assert (kept["link"].linkname, kept["sub/link"].linkname, told) == ("pkg", "../pkg", [])


def test_what_is_no_file_is_refused_or_left_out_of_a_folder(src, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    error = refusal(Source("train.py", str(src), (str(tmp_path / "pipe"),)))
    assert error.argument == "dependencies[0]" and "neither a file nor a folder nor a link" in str(error)
    os.mkfifo(src / "pipe")
    kept, (told,) = bundled(Source("train.py", str(src)), tmp_path)
    assert "pipe" not in kept and told.endswith("cannot use it: pipe, a FIFO")


def test_an_environment_of_any_name_is_left_out_and_can_be_taken_back(src, tmp_path):
    write(src / "env311" / "pyvenv.cfg")
    (src / "env311" / "bin").mkdir()
    (src / "env311" / "bin" / "python").symlink_to("/usr/bin/python3")
    write(src / "tools" / "conda" / "conda-meta" / "history")
    kept, told = bundled(Source("train.py", str(src)), tmp_path)
    assert not {"env311", "tools/conda"} & set(kept) and "tools" in kept and told == []
    write(src / ".estimatorignore", b"!env311/\n")
    kept, told = bundled(Source("train.py", str(src)), tmp_path)
    assert "env311/pyvenv.cfg" in kept and len(told) == 1


def test_git_s_rules_count_where_they_are_asked_for_and_a_line_says_so(src, tmp_path):
    write(src / ".gitignore", b"*.csv\n/data/\n__pycache__/\n")
    write(src / "data" / "a")
    write(src / "pkg" / "b.csv")
    write(src / "pkg" / "__pycache__" / "a.pyc")
    kept, told = bundled(Source("train.py", str(src)), tmp_path)
    assert {"data/a", "pkg/b.csv"} <= set(kept) and told == []
    kept, (told,) = bundled(Source("train.py", str(src), with_git=True), tmp_path)
    assert "train.py" in kept and not {"data", "pkg/b.csv"} & set(kept)
    hint = "a line !NAME in .estimatorignore includes one again"
    assert told == f"left out of the code, because .gitignore names it: data, pkg/b.csv; {hint}"
    write(src / ".estimatorignore", b"!/data/\n")
    kept, (told,) = bundled(Source("train.py", str(src), with_git=True), tmp_path)
    assert "data/a" in kept and "data" not in told


@pytest.mark.parametrize("argument", ["entry_point", "script"])
def test_an_entry_point_that_git_leaves_out_is_refused_with_the_line_that_takes_it_back(src, argument):
    write(src / ".gitignore", b"/made/\n")
    write(src / "made" / "train.py")
    program = "made/train.py" if argument == "entry_point" else None
    error = refusal(Source(program, str(src), script=None if program else "made/train.py", with_git=True))
    assert "'made/train.py' is left out of" in str(error) and str(error).endswith(
        "add the line !made/ to .estimatorignore"
    )
    Source("made/train.py", str(src)).check()


def test_a_file_that_cannot_be_read_is_refused():
    """Run as another user where the tests are root's, who can read everything."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        write(root / "src" / "train.py")
        write(root / "src" / "secret.txt", mode=0o000)
        write(root / "closed" / "train.py")
        write(root / "closed" / "inner" / "a.py")
        (root / "closed" / "inner").chmod(0o000)
        for name, path in (("src", "secret.txt"), ("closed", "inner")):
            message = as_ordinary_user(lambda name=name: refusal(Source("train.py", str(root / name))))
            assert path in message and "cannot be read" in message
        (root / "closed" / "inner").chmod(0o755)


def as_ordinary_user(work) -> str:
    """What `work` returns, as text, from a child that is not root."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            os.write(writing, str(work()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode()
    os.waitpid(child, 0)
    return text


def test_checking_writes_nothing(src, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    Source("train.py", str(src)).check()
    assert sorted(tmp_path.rglob("*")) == before


def test_an_archive_that_cannot_be_written_is_said(src, tmp_path):
    with pytest.raises(EstimatorError, match="cannot be bundled"):
        Source("train.py", str(src)).bundle(tmp_path / "missing" / "a.tar.gz")
