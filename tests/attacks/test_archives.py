"""Hostile archives, played on code and on models, on each Python that unpacks them here.

What `tests/unit/container/host/preparation/test_code.py` has of code is not said again.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import subprocess
import tarfile
import tempfile
import tracemalloc
from pathlib import Path

import estimator_container
import pytest
from estimator_container.host.preparation.code import fetch as fetch_code
from estimator_container.runtime.errors import ConfigurationError
from hypothesis import given
from hypothesis import strategies as st

import estimator_sdk
from estimator_sdk import EstimatorError
from estimator_sdk.job import model_files
from tests.waiting import SECONDS

DEBIAN_12 = "/usr/bin/python3"
Member = tuple[tarfile.TarInfo, bytes]


def file(name: str, content: bytes = b"x", mode: int = 0o644) -> Member:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    return member, content


def other(name: str, kind: bytes, target: str = "") -> Member:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


def link(name: str, target: str) -> Member:
    return other(name, tarfile.SYMTYPE, target)


def hard(name: str, target: str) -> Member:
    return other(name, tarfile.LNKTYPE, target)


def folder(name: str) -> Member:
    return other(name, tarfile.DIRTYPE)


def named_in_pax(name: str) -> Member:
    """A file whose extended header gives it another name, which need not be one that a header can hold."""
    member, content = file("é")
    member.pax_headers = {"path": name}
    return member, content


def archive_of(path: Path, *members: Member) -> Path:
    with tarfile.open(path, "w:gz", errors="surrogateescape") as tar:
        for member, content in members:
            tar.addfile(member, io.BytesIO(content))
    return path


def of_negative_size(path: Path) -> Path:
    """A header whose size is -512: the next member is this one again (CVE-2025-8194)."""
    header = bytearray(file("again", b"")[0].tobuf(tarfile.GNU_FORMAT))
    header[124:136] = (-512).to_bytes(12, "big", signed=True)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    before = file("before", b"")[0].tobuf(tarfile.GNU_FORMAT)
    path.write_bytes(gzip.compress(before + bytes(header) + bytes(1024)))
    return path


def of_a_huge_header(path: Path, kind: bytes) -> Path:
    """What a few kilobytes grow to, and tarfile reads whole: names and attributes of 16 MB."""
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 16 << 20
    path.write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + b"a" * (16 << 20) + bytes(1024), 1))
    return path


def tree(root: Path) -> dict[str, str | bytes | None]:
    """All below a folder: links as their targets, folders as None, files as their bytes."""
    return {
        str(path.relative_to(root)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in root.rglob("*")
    }


def escaping(root: Path) -> list[Path]:
    """What leads out of a folder. A link to itself does not: `Path.resolve` would call it an error."""
    top = os.path.realpath(root)
    return [path for path in root.rglob("*") if not Path(os.path.realpath(path)).is_relative_to(top)]


HONEST = (file("model.bin", b"weights"), folder("deep"), file("deep/é", b"1"), link("deep/up", "../model.bin"))
ARRIVED = {"model.bin": b"weights", "deep": None, "deep/é": b"1", "deep/up": "../model.bin"}

REACH_OUT = {
    "above": [file("../evil")],
    "far above": [file("a/../../../../evil")],
    "absolute": [file("/tmp/evil")],
    "two slashes": [file("//tmp/evil")],
    "a folder above": [folder("../evil")],
    "through a link": [link("l", ".."), file("l/evil")],
    "through an absolute link": [link("l", "/tmp"), file("l/evil")],
    "through a link inside": [folder("d"), link("l", "d"), file("l/evil")],
    "through a link that comes later": [file("l/evil"), link("l", "..")],
    "through a link of two names": [link("l", "x"), folder("d"), link("./l", ".."), file("d/../l/evil")],
    "through a hard link": [file("f"), hard("h", "f"), file("h/evil")],
    "into a file": [file("f"), file("f/evil")],
    "in the place of everything": [link(".", "..")],
    "a name with a NUL": [named_in_pax("a\0b")],
}
LEFT_OUT = {
    "an absolute link": [link("etc", "/etc")],
    "a link out": [link("deep/out", "../..")],
    "a chain of links out": [folder("d"), link("d/up", ".."), link("out", "d/up/../evil")],
    "a longer chain": [folder("a"), link("a/r", ".."), link("b", "a/r"), link("c", "b/../../evil")],
    "a hard link to an absolute name": [hard("passwd", "/etc/passwd")],
    "a hard link out": [hard("up", "../x")],
    "a hard link to a link": [link("l", "model.bin"), hard("h", "l")],
    "a character device": [other("null", tarfile.CHRTYPE)],
    "a block device": [other("disk", tarfile.BLKTYPE)],
    "a FIFO": [other("fifo", tarfile.FIFOTYPE)],
    "what tar does not know": [other("strange", b"Z")],
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Deep enough that what escapes from it still lands below `tmp_path`."""
    deep = tmp_path / "a" / "b" / "c" / "place"
    deep.mkdir(parents=True)
    return deep


@pytest.mark.parametrize("members", REACH_OUT.values(), ids=REACH_OUT)
def test_an_archive_that_reaches_out_is_refused_and_nothing_is_left_of_it(tmp_path, place, members):
    made = archive_of(tmp_path / "model.tar.gz", *HONEST, *members)
    before = tree(tmp_path)
    with pytest.raises(EstimatorError, match="nothing was unpacked"):
        model_files.fetch(f"file://{made}", place)
    with pytest.raises(ConfigurationError):
        fetch_code(str(made), str(place))
    assert tree(tmp_path) == before


@pytest.mark.parametrize("members", LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_a_model_can_do_without_is_left_out_with_a_word_and_refused_as_code(tmp_path, place, members):
    made = archive_of(tmp_path / "model.tar.gz", *HONEST, *members)
    with pytest.raises(ConfigurationError, match="it was refused, and nothing was run"):
        fetch_code(str(made), str(place))
    assert tree(place) == {}
    with pytest.warns(UserWarning, match=f"{members[-1][0].name}'"):
        model_files.fetch(f"file://{made}", place)
    found = tree(place)
    assert {name: found.get(name) for name in ARRIVED} == ARRIVED
    assert members[-1][0].name not in found
    assert escaping(place) == []


@pytest.mark.parametrize("name", ["a/" * 3000 + "a", "a/" * 300 + "a"], ids=["long", "deep"])
def test_a_name_that_no_file_can_have_costs_the_rest_nothing(tmp_path, place, name):
    made = archive_of(tmp_path / "model.tar.gz", *HONEST, file(name), hard("h", name))
    with pytest.warns(UserWarning, match="too long or too deep for a file"):
        model_files.fetch(f"file://{made}", place)
    assert tree(place) == ARRIVED
    with pytest.raises(ConfigurationError, match="it was refused, and nothing was run"):
        (tmp_path / "code").mkdir()
        fetch_code(str(made), str(tmp_path / "code"))


def test_bits_owners_and_times_of_an_archive_give_nobody_anything(tmp_path, place):
    modes = {"setuid": 0o6755, "sticky": 0o1777, "open": 0o666, "closed": 0, "private": 0o600, "group runs": 0o654}
    members = [file(name, mode=mode) for name, mode in modes.items()]
    for member, _ in members:
        member.uid = member.gid = 12345
        member.mtime = 1e30
    model_files.fetch(f"file://{archive_of(tmp_path / 'model.tar.gz', *members)}", place)
    arrived = {name: (place / name).stat() for name in modes}
    assert {name: oct(stat.S_IMODE(status.st_mode)) for name, status in arrived.items()} == {
        "setuid": "0o755", "sticky": "0o755", "open": "0o644", "closed": "0o600", "private": "0o600",
        "group runs": "0o644",
    }  # fmt: skip
    assert {(status.st_uid, status.st_gid) for status in arrived.values()} == {(os.getuid(), os.getgid())}


def test_names_are_bytes_and_of_several_of_one_name_the_last_counts(tmp_path, place):
    odd = os.fsdecode(b"\xff \xc3\n\x1b")
    members = (file(odd), file("Case", b"1"), file("case", b"2"), file("twice", b"1"), file("./twice", b"2"))
    model_files.fetch(f"file://{archive_of(tmp_path / 'model.tar.gz', *members)}", place)
    assert tree(place) == {odd: b"x", "Case": b"1", "case": b"2", "twice": b"2"}


def test_a_file_that_claims_to_be_huge_takes_no_room(tmp_path, place):
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as opened:
        opened.truncate(1 << 40)
    path = tmp_path / "model.tar.gz"
    subprocess.run(["tar", "--sparse", "-czf", str(path), "-C", str(tmp_path), "sparse"], check=True)
    model_files.fetch(f"file://{path}", place)
    found = (place / "sparse").stat()
    assert (found.st_size, found.st_blocks) == (1 << 40, 0)


def test_a_damaged_archive_is_refused_whole_and_what_was_there_stays(tmp_path, place):
    made = archive_of(tmp_path / "model.tar.gz", file("model.bin", b"new"), file("data", os.urandom(100_000)))
    made.write_bytes(made.read_bytes()[:50_000])
    (place / "model.bin").write_bytes(b"old")
    for path in (made, of_negative_size(tmp_path / "again.tar.gz")):
        with pytest.raises(EstimatorError, match="cannot be unpacked: .*nothing was kept"):
            model_files.fetch(f"file://{path}", place)
        assert tree(place) == {"model.bin": b"old"}


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_a_header_takes_no_more_memory_than_names_do(tmp_path, place, kind):
    made = of_a_huge_header(tmp_path / "model.tar.gz", kind)
    tracemalloc.start()
    try:
        with pytest.raises(EstimatorError, match="cannot be unpacked: .*nothing was kept"):
            model_files.fetch(f"file://{made}", place)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_what_is_no_archive_is_one_sentence(tmp_path, place):
    path = tmp_path / "model.tar.gz"
    for content in (b"", b"<html>AccessDenied</html>", gzip.compress(b""), os.urandom(1000)):
        path.write_bytes(content)
        with pytest.raises(
            EstimatorError, match="it is not a tar archive, or its beginning is damaged; nothing was kept"
        ):
            model_files.fetch(f"file://{path}", place)


def test_nothing_is_written_through_a_link_that_is_there_already(tmp_path, place):
    made = archive_of(tmp_path / "model.tar.gz", file("data/evil"))
    (tmp_path / "elsewhere").mkdir()
    (place / "data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EstimatorError, match="data is a link, but in the model it is a folder; choose an empty folder"):
        model_files.fetch(f"file://{made}", place)
    assert tree(tmp_path / "elsewhere") == {} and tree(place) == {"data": str(tmp_path / "elsewhere")}
    (tmp_path / "mine").write_bytes(b"mine")
    (place / "file").symlink_to(tmp_path / "mine")
    model_files.fetch(f"file://{archive_of(made, file('file', b'new'))}", place)
    assert (place / "file").read_bytes() == b"new" and (tmp_path / "mine").read_bytes() == b"mine"


def test_nothing_of_a_model_without_an_archive_is_written_through_a_link(tmp_path, place):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "model" / "data").mkdir(parents=True)
    (tmp_path / "model" / "data" / "weights").write_bytes(b"new")
    (place / "data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EstimatorError, match="data is a link, but in the model it is a folder; choose an empty folder"):
        model_files.fetch(f"file://{tmp_path}/model", place)
    assert tree(tmp_path / "elsewhere") == {} and tree(place) == {"data": str(tmp_path / "elsewhere")}
    (place / "data").unlink()
    model_files.fetch(f"file://{tmp_path}/model", place)
    assert tree(place) == {"data": None, "data/weights": b"new"}


def test_of_a_model_without_an_archive_that_cannot_be_had_whole_nothing_is_left(tmp_path, place):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "a").write_bytes(b"1")
    (tmp_path / "model" / "b").symlink_to("nothing")
    with pytest.raises(EstimatorError, match="cannot be downloaded"):
        model_files.fetch(f"file://{tmp_path}/model", place)
    assert tree(place) == {}


UNPACKS = """
import json, sys, warnings
sys.path[:0] = json.loads(sys.argv[1])
warnings.simplefilter("ignore")
from pathlib import Path
from estimator_sdk import EstimatorError
from estimator_sdk.job import model_files
from estimator_container.host.preparation.code import fetch
from estimator_container.runtime.errors import ConfigurationError
for name in sys.argv[3:]:
    for what, unpack, refusal in (
        ("model", lambda place: model_files.fetch(f"file://{name}", place), EstimatorError),
        ("code", lambda place: fetch(name, str(place)), ConfigurationError),
    ):
        place = Path(sys.argv[2]) / f"{Path(name).name}.{what}"
        place.mkdir()
        try:
            unpack(place)
        except refusal:
            print(what, Path(name).name, "refused")
"""


def test_debians_python_without_a_filter_keeps_inside_too(tmp_path):
    assert subprocess.check_output([DEBIAN_12, "-c", "import sys; print(sys.version_info[:2])"], text=True)
    zoo = [*REACH_OUT.values(), *LEFT_OUT.values()]
    names = [str(archive_of(tmp_path / f"{number}.tar.gz", *HONEST, *each)) for number, each in enumerate(zoo)]
    names.append(str(of_negative_size(tmp_path / f"{len(zoo)}.tar.gz")))
    before = tree(tmp_path)
    search = [str(Path(each.__file__).parents[1]) for each in (estimator_sdk, estimator_container)]
    places = tmp_path / "a" / "b" / "c"
    places.mkdir(parents=True)
    program = [DEBIAN_12, "-I", "-S", "-c", UNPACKS, json.dumps(search), str(places), *names]
    done = subprocess.run(program, capture_output=True, text=True, timeout=SECONDS, check=True)
    refused = set(done.stdout.splitlines())
    assert {f"code {number}.tar.gz refused" for number in range(len(names))} <= refused
    models = [number for number in range(len(names)) if f"model {number}.tar.gz refused" in refused]
    assert models == [*range(len(REACH_OUT)), len(zoo)]
    inside = tree(tmp_path / "a")
    assert {name: content for name, content in tree(tmp_path).items() if not name.startswith("a")} == before
    assert all(name.startswith("b/c/") for name in inside if name not in ("b", "b/c"))
    assert escaping(places) == []


NAMES = st.lists(st.sampled_from(["a", "b", "..", ".", "", "é", "\udcff"]), min_size=1, max_size=4).map("/".join)
MEMBERS = st.one_of(
    st.builds(file, NAMES),
    st.builds(folder, NAMES),
    st.builds(link, NAMES, NAMES),
    st.builds(hard, NAMES, NAMES),
    st.builds(other, NAMES, st.just(tarfile.FIFOTYPE)),
)


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(st.lists(MEMBERS, max_size=8))
def test_whatever_an_archive_holds_nothing_lands_or_leads_outside(members):
    with tempfile.TemporaryDirectory() as name:
        top = Path(name).resolve()
        made = archive_of(top / "model.tar.gz", *members)
        for what in ("model", "code"):
            place = top / what / "deep" / "place"
            place.mkdir(parents=True)
            try:
                if what == "model":
                    model_files.fetch(f"file://{made}", place)
                else:
                    fetch_code(str(made), str(place))
            except (EstimatorError, ConfigurationError):
                assert tree(place) == {}
            assert escaping(place) == []
            assert set(tree(top / what)) - {"deep"} == {"deep/place", *(f"deep/place/{each}" for each in tree(place))}
        assert {path.name for path in top.iterdir()} == {"code", "model", "model.tar.gz"}
