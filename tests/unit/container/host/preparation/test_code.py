import io
import os
import random
import stat
import tarfile
from pathlib import Path

import pytest
from estimator_container.host.preparation.code import bundle_of, fetch
from estimator_container.runtime.errors import ConfigurationError

BINARY = bytes(range(256)) * 5000


@pytest.fixture
def code(tmp_path):
    """The empty code folder, deep enough that what escapes from it still lands below `tmp_path`."""
    folder = tmp_path / "a" / "b" / "c" / "code"
    folder.mkdir(parents=True)
    return folder


def file(name, content=b"", mode=0o644):
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    return member, content


def link(name, target, kind=tarfile.SYMTYPE):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


def special(name, kind):
    member = tarfile.TarInfo(name)
    member.type = kind
    return member, b""


def folder(name):
    return special(name, tarfile.DIRTYPE)


@pytest.fixture
def archive(tmp_path):
    def make(*members, mode="w:gz"):
        path = tmp_path / "sourcedir.tar.gz"
        with tarfile.open(path, mode) as tar:
            for member, content in members:
                tar.addfile(member, io.BytesIO(content))
        return str(path)

    return make


def tree(root):
    """All below a folder: links as their targets, folders as None, files as their bytes."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = str(path.readlink())
        else:
            found[name] = path.read_bytes() if path.is_file() else None
    return found


# What arrives.


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_an_archive_arrives_byte_for_byte(archive, code, mode):
    fetch(
        archive(
            file("train.py", b"print()\n"),
            file("./data/binary", BINARY),
            file("empty"),
            folder("empty folder"),
            file("deep/er/é.txt", b"\0"),
            mode=mode,
        ),
        str(code),
    )
    assert tree(code) == {
        "train.py": b"print()\n",
        "data": None,
        "data/binary": BINARY,
        "empty": b"",
        "empty folder": None,
        "deep": None,
        "deep/er": None,
        "deep/er/é.txt": b"\0",
    }


def test_of_a_mode_only_the_exec_bit_is_kept_and_only_for_the_user(archive, code):
    modes = {"plain": 0o600, "run": 0o755, "private run": 0o700, "closed": 0o000, "setuid": 0o4755, "group": 0o670}
    fetch(archive(*(file(name, b"x", mode) for name, mode in modes.items())), str(code))
    arrived = {name: stat.S_IMODE((code / name).stat().st_mode) for name in modes}
    assert arrived == {
        "plain": 0o600, "run": 0o700, "private run": 0o700, "closed": 0o600, "setuid": 0o700, "group": 0o600
    }  # fmt: skip


@pytest.mark.parametrize("umask", [0, 0o077])
@pytest.mark.parametrize("form", ["archive", "folder", "file"])
def test_nothing_that_arrives_is_open_to_others(archive, code, tmp_path, form, umask):
    source = tmp_path / "source"
    (source / "lib").mkdir(parents=True)
    for name in ("train.py", "lib/module.py", "lib/run"):
        (source / name).write_bytes(b"x")
        (source / name).chmod(0o777 if name == "lib/run" else 0o666)
    (source / "lib").chmod(0o777)
    source.chmod(0o777)
    packed = archive(file("train.py", b"x", 0o666), file("lib/module.py", b"x"), file("lib/run", b"x", 0o777))
    code.chmod(0o777)
    before = os.umask(umask)
    try:
        fetch({"archive": packed, "folder": str(source), "file": str(source / "train.py")}[form], str(code))
    finally:
        os.umask(before)
    modes = {str(path.relative_to(code)): path.stat().st_mode & 0o7777 for path in (code, *code.rglob("*"))}
    expected = {".": 0o700, "train.py": 0o600, "lib": 0o700, "lib/module.py": 0o600, "lib/run": 0o700}
    assert modes == (expected if form != "file" else {".": 0o700, "train.py": 0o600})


def test_links_inside_the_tree_arrive_as_links(archive, code):
    fetch(
        archive(
            link("before", "target"),
            file("target", b"x"),
            file("lib/module.py", b"y"),
            link("lib/up", "../target"),
            link("lib2", "lib"),
            link("chain", "before"),
            link("dangling", "nothing"),
            link("here", "."),
        ),
        str(code),
    )
    assert tree(code) == {
        "before": "target",
        "target": b"x",
        "lib": None,
        "lib/module.py": b"y",
        "lib/up": "../target",
        "lib2": "lib",
        "chain": "before",
        "dangling": "nothing",
        "here": ".",
    }
    assert (code / "chain").read_bytes() == b"x"


def test_a_hard_link_arrives_as_the_same_file(archive, code):
    fetch(archive(file("one", b"x", 0o755), link("a/two", "one", tarfile.LNKTYPE)), str(code))
    assert (code / "a" / "two").read_bytes() == b"x"
    assert (code / "one").samefile(code / "a" / "two")


def test_files_belong_to_who_unpacks_them(archive, code):
    member, content = file("train.py", b"x")
    member.uid, member.gid, member.uname, member.gname = 12345, 12345, "daemon", "daemon"
    fetch(archive((member, content)), str(code))
    arrived = (code / "train.py").stat()
    assert (arrived.st_uid, arrived.st_gid) == (os.getuid(), os.getgid())


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_folder_arrives_with_its_links_and_exec_bits(tmp_path, code, prefix):
    source = tmp_path / "source"
    (source / "lib").mkdir(parents=True)
    (source / "binary").write_bytes(BINARY)
    (source / "empty").touch()
    (source / "run.sh").write_bytes(b"#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    (source / "lib" / "link").symlink_to("../binary")
    (source / "dangling").symlink_to("nothing")
    (source / "folder link").symlink_to("lib")
    fetch(f"{prefix}{source}", str(code))
    assert tree(code) == tree(source)
    assert os.access(code / "run.sh", os.X_OK)


def test_a_single_file_arrives_under_its_name(tmp_path, code):
    (tmp_path / "train.py").write_bytes(b"print()\n")
    fetch(str(tmp_path / "train.py"), str(code))
    assert tree(code) == {"train.py": b"print()\n"}


def test_an_empty_file_is_a_file_and_no_archive(tmp_path, code):
    (tmp_path / "train.py").touch()
    fetch(str(tmp_path / "train.py"), str(code))
    assert tree(code) == {"train.py": b""}


def test_code_that_is_there_already_is_left_alone(tmp_path, code):
    (code / "train.py").write_bytes(b"mine")
    fetch("s3://bucket/nothing", str(code))
    assert tree(code) == {"train.py": b"mine"}


def test_a_code_folder_may_be_its_own_source(code):
    fetch(str(code), str(code))
    assert tree(code) == {}


# What is refused.

ESCAPES = {
    "a name above the folder": [file("../evil", b"x")],
    "a name far above it": [file("a/../../../../evil", b"x")],
    "an absolute name": [file("/evil", b"x")],
    "a folder above": [folder("../evil")],
    "a name that goes up and comes back": [file("a/../b", b"x")],
    "a link to an absolute name": [link("etc", "/etc")],
    "a link to what is above": [link("up", "..")],
    "a deep link to what is above": [link("a/b/up", "../../../x")],
    "a link with an absolute name": [link("/evil", "x")],
    "a hard link to an absolute name": [link("passwd", "/etc/passwd", tarfile.LNKTYPE)],
    "a hard link to what is above": [link("up", "../x", tarfile.LNKTYPE)],
    "a hard link to nothing": [link("gone", "nothing", tarfile.LNKTYPE)],
    "a hard link to a link": [folder("a"), link("a/l", "../x"), link("h", "a/l", tarfile.LNKTYPE)],
    "a hard link through a link": [link("s", "d"), file("d/f"), link("h", "s/f", tarfile.LNKTYPE)],
    "a hard link to a link that would lead out from its new place": [
        link("a/b/c/l", "../../../x"),
        link("h", "a/b/c/l", tarfile.LNKTYPE),
        file("payload", b"x"),
        link("h/evil", "payload", tarfile.LNKTYPE),
    ],
    "a file below a link": [folder("d"), link("l", "d"), file("l/evil", b"x")],
    "a file below a link that comes later": [file("l/evil", b"x"), link("l", "..")],
    "a link below a link": [folder("d"), link("l", "d"), link("l/m", "x")],
    "a link that is written through another": [link("d/up", ".."), link("d/up/../../evil", "payload")],
    "a chain of links that leads out": [folder("d"), link("d/up", ".."), link("out", "d/up/../evil")],
    "a longer chain": [folder("a"), link("a/r", ".."), link("b", "a/r"), link("c", "b/../../evil")],
    "a name spelled with a dot below a link": [link("./l", "d"), file("././l/evil", b"x"), folder("d")],
    "a character device": [special("null", tarfile.CHRTYPE)],
    "a block device": [special("disk", tarfile.BLKTYPE)],
    "a fifo": [special("fifo", tarfile.FIFOTYPE)],
    "a file below a file": [file("f", b"x"), file("f/g", b"x")],
    "a file in the place of a folder": [folder("d"), file("d/x"), file("d", b"x")],
}


@pytest.mark.parametrize("members", ESCAPES.values(), ids=ESCAPES)
@pytest.mark.parametrize("behind", [False, True], ids=["first", "last"])
def test_an_archive_that_reaches_out_is_refused_and_nothing_is_left_of_it(tmp_path, archive, code, members, behind):
    honest = [file("train.py", b"print()\n"), file("lib/module.py"), link("lib/link", "module.py")]
    path = archive(*honest, *members) if behind else archive(*members, *honest)
    before = tree(tmp_path)
    with pytest.raises(ConfigurationError) as refused:
        fetch(path, str(code))
    assert path in str(refused.value)
    assert tree(tmp_path) == before


def test_a_refusal_names_the_member_and_says_that_nothing_ran(archive, code):
    said = r"holds '\.\./evil', which would .*: it was refused, and nothing was run"
    with pytest.raises(ConfigurationError, match=said):
        fetch(archive(file("../evil")), str(code))
    with pytest.raises(ConfigurationError, match="the link 'etc' to '/etc', outside the folder"):
        fetch(archive(link("etc", "/etc")), str(code))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
@pytest.mark.parametrize("kept", [0.5, 0.99])
def test_a_damaged_archive_is_refused_whole(archive, code, mode, kept):
    content = random.Random(1).randbytes(300_000)
    path = archive(file("a.py", b"print()\n"), file("data", content), file("z.py", content), mode=mode)
    whole = Path(path).read_bytes()
    Path(path).write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(ConfigurationError, match="cannot take the code from .*sourcedir.tar.gz"):
        fetch(path, str(code))
    assert tree(code) == {}


def test_an_archive_with_a_flipped_byte_in_its_middle_is_refused_whole(archive, code):
    path = archive(file("a.py", b"print()\n"), file("data", random.Random(1).randbytes(100_000)))
    damaged = bytearray(Path(path).read_bytes())
    damaged[50_000] ^= 0xFF
    Path(path).write_bytes(damaged)
    with pytest.raises(ConfigurationError, match="cannot take the code"):
        fetch(path, str(code))
    assert tree(code) == {}


def test_a_folder_that_cannot_be_copied_whole_is_refused_whole(tmp_path, code):
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.py").touch()
    os.mkfifo(source / "fifo")
    with pytest.raises(ConfigurationError, match="cannot take the code from .*fifo"):
        fetch(str(source), str(code))
    assert tree(code) == {}


@pytest.mark.parametrize("source", ["/no/such/place", "file:///no/such/place"])
def test_a_source_that_is_not_there_is_refused_by_name(code, source):
    with pytest.raises(ConfigurationError, match=f"the code should be at {source}, but nothing is there"):
        fetch(source, str(code))


@pytest.mark.parametrize("source", ["s3://bucket/key.tar.gz", "https://host/code.tar.gz"])
def test_a_source_that_this_toolkit_cannot_fetch_is_refused_with_what_to_do(code, source):
    with pytest.raises(ConfigurationError, match=f"{source}, which this toolkit cannot fetch; bring it in the channel"):
        fetch(source, str(code))


def test_a_bundle_is_found_in_the_folder_of_its_channel(tmp_path):
    channel = tmp_path / "estimator-code"
    assert bundle_of(str(channel)) is None
    channel.mkdir()
    with pytest.raises(ConfigurationError, match="must hold one code bundle, but holds 0 files"):
        bundle_of(str(channel))
    (channel / "a.tar.gz").touch()
    assert bundle_of(str(channel)) == str(channel / "a.tar.gz")
