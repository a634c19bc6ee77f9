"""A file that is written on a machine piece by piece."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from estimator_sdk.backends.ssh.pool import PoolHost
from estimator_sdk.backends.ssh.session import connection
from estimator_sdk.backends.ssh.session.connection import Purpose, Session
from estimator_sdk.backends.ssh.session.upload import PIECE, UNDER_WAY, Sending
from estimator_sdk.errors import BackendError
from tests.waiting import SECONDS


@pytest.fixture
def session(tmp_path, monkeypatch):
    """One with our program on this machine, which is reached without ssh."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    def start(host, words):
        command = [sys.executable, "-I", "-S", "-c", connection._RUN]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=words, env=environment)

    monkeypatch.setattr(connection, "_start", start)
    monkeypatch.setattr(connection, "END_SECONDS", SECONDS)
    opened = Session(PoolHost("here"), Purpose(code="packed"))
    yield opened
    opened.close()


def test_a_file_of_many_pieces_arrives_as_it_is(session, tmp_path):
    data = os.urandom((UNDER_WAY + 2) * PIECE + 7)
    assert session.has_code is False
    upload = Sending(session, "packed")
    for begin in range(0, len(data), 3_000_000):
        upload.write(data[begin : begin + 3_000_000])
    upload.finish()
    assert (tmp_path / "estimator-sdk" / "code" / "packed").read_bytes() == data
    assert session.ask("reach", places=[]) == {"refused": []}


def test_what_the_machine_cannot_write_is_said_before_all_is_sent(session, tmp_path):
    (tmp_path / "estimator-sdk" / "code").write_text("no folder")
    upload = Sending(session, "packed")
    with pytest.raises(BackendError, match="here: .*code"):
        for _ in range(100):
            upload.write(bytes(PIECE))


@pytest.mark.parametrize("begins", [True, False])
def test_a_file_whose_connection_is_cut_is_not_there_and_neither_is_a_part_of_it(session, tmp_path, begins):
    code = tmp_path / "estimator-sdk" / "code"
    if not begins:
        session.ask("put", b"first", name="packed", begins=True, ends=False, stays=True)
        assert [path.name.rpartition(".")[2] for path in code.iterdir()] == ["packed"]
    facts = {"operation": "put", "name": "packed", "begins": begins, "ends": True, "stays": True, "size": 9}
    session._send(facts, b"half")
    session.close()
    assert not code.exists() or [*code.iterdir()] == []


def test_a_file_that_is_of_use_for_the_session_alone_ends_with_it(session, tmp_path):
    Sending(session, "kept").finish()
    Sending(session, "passing", stays=False).finish()
    code = tmp_path / "estimator-sdk" / "code"
    assert sorted(path.name for path in code.iterdir()) == ["kept", "passing"]
    session.close()
    assert [path.name for path in code.iterdir()] == ["kept"]
