from __future__ import annotations

import os

import pytest

from estimator_sdk.backends.ssh.pool import PoolHost, from_argument, from_document, from_either, from_file
from estimator_sdk.errors import InvalidArgument


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("a", PoolHost("a")),
        ("a:4", PoolHost("a", None, 4)),
        ("a:2222", PoolHost("a", 2222)),
        ("a:22", PoolHost("a", 22)),
        ("me@a.b.c:2222:8", PoolHost("me@a.b.c", 2222, 8)),
        ("10.0.0.1:64:64", PoolHost("10.0.0.1", 64, 64)),
    ],
)
def test_a_machine_is_named_as_horovodrun_and_ssh_name_it(text, host):
    assert from_argument([text]) == from_argument(text) == (host,)
    assert from_document([host.to_document()]) == (host,)


def test_a_hostfile_is_read_as_open_mpi_reads_it(tmp_path):
    (tmp_path / "hosts").write_text("# all\na slots=4 max_slots=8\n\nb:2  # two\nme@c:2222 cpu = 3\nd\n")
    found = from_file(str(tmp_path / "hosts"))
    assert found == (PoolHost("a", None, 4), PoolHost("b", None, 2), PoolHost("me@c", 2222, 3), PoolHost("d"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "does not name a machine"),
        ([], "names no machine"),
        (["-oProxyCommand=x"], "does not name a machine"),
        (["a b"], "does not name a machine"),
        (["a:0"], "has 0 slots"),
        (["a:99999"], "not a port"),
        (["a:1:2:3"], "does not name a machine"),
        (["me@[fe80:1:2:3:4:5:6:7]:22"], "looks like an address of IPv6"),
        (["fe80::1"], "looks like an address of IPv6"),
        ("a,b,a", "names a twice"),
    ],
)
def test_what_names_no_machine_is_refused(given, said):
    with pytest.raises(InvalidArgument, match=said):
        from_argument(given)


def test_a_hostfile_with_a_line_that_names_no_machine_says_which(tmp_path):
    (tmp_path / "hosts").write_text("a\n;b\n")
    with pytest.raises(InvalidArgument, match="line 2"):
        from_file(str(tmp_path / "hosts"))
    with pytest.raises(InvalidArgument, match="cannot be read"):
        from_file(str(tmp_path / "none"))


def test_a_hostfile_that_is_no_list_of_machines_is_refused_by_its_name(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "twice").write_text("a\nb\na slots=2\n")
    for path, said in [
        (tmp_path / "fifo", "names no machine"),  # and is not waited for
        (tmp_path / "twice", "names a twice"),
        ("/dev/zero", "cannot be read: it has more than"),
    ]:
        with pytest.raises(InvalidArgument, match=f"hostfile .*{path}.* {said}"):
            from_file(str(path))


def test_what_a_command_is_given_is_a_hostfile_or_a_list_of_any_length(tmp_path):
    (tmp_path / "hosts").write_bytes(b"\xef\xbb\xbfa slots=4\r\nb\r\n")  # as Notepad writes it
    assert from_either(str(tmp_path / "hosts")) == (PoolHost("a", None, 4), PoolHost("b"))
    names = [f"machine-{number}.example.com" for number in range(300)]
    assert [host.name for host in from_either(",".join(names))] == names


@pytest.mark.parametrize("given", [None, 3, [3], [{"name": 3}], [{"other": "a"}], [{"name": "a", "slots": "4"}], "a"])
def test_a_document_that_lists_no_machines_is_refused(given):
    with pytest.raises(InvalidArgument):
        from_document(given)
