"""Connections to machines: where their sockets are, and what is said of a machine with which there is none."""

from __future__ import annotations

import shutil
import tempfile

import pytest

from estimator_sdk.backends.ssh.pool import PoolHost
from estimator_sdk.backends.ssh.session import masters
from estimator_sdk.backends.ssh.session.connection import Unreachable, lost

CHANGED = """
@@@@@@@@@@@@@@@@
@ WARNING: IT HAS CHANGED! @
@@@@@@@@@@@@@@@@
Host key verification failed.
"""


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (127, "bash: python3: not found", "2222 has no python3 on the PATH of its shell (bash: python3: not found)"),
        (1, "", "the login shell of gpu1:2222 has ended with code 1 instead of running python3: it said nothing; "),
        (126, "bash: python3: no", "has ended with code 126 instead of running python3: bash: python3: no; see that"),
        (1, "Traceback: E: no", "gpu1:2222: our program ended: Traceback: E: no"),
        (255, "timed out", "gpu1:2222 cannot be reached by ssh: timed out; see what `ssh -p 2222 gpu1 true` says"),
        (255, CHANGED, "by ssh: @ WARNING: IT HAS CHANGED! @ Host key verification failed.; see what"),
        (None, "", "cannot be reached by ssh: the connection was closed; see what"),
        (-9, "", "cannot be reached by ssh: the connection was closed; see what"),
    ],
)
def test_it_is_said_whether_ssh_the_shell_or_our_program_has_ended(code, words, said):
    assert said in str(lost(PoolHost("gpu1", 2222), code, words))


def test_a_job_goes_on_being_asked_for_unless_asking_again_is_no_use():
    assert isinstance(lost(PoolHost("gpu1"), 255, ""), Unreachable)
    assert isinstance(lost(PoolHost("gpu1"), 1, ""), Unreachable)
    assert not isinstance(lost(PoolHost("gpu1"), 127, ""), Unreachable)


@pytest.mark.parametrize("length", [20, 49, 85])
def test_a_socket_fits_its_path_however_long_that_of_the_temporary_folder_is(monkeypatch, length):
    place = tempfile.mkdtemp(prefix="t" * (length - len("/tmp/") - 8), dir="/tmp")
    monkeypatch.setenv("TMPDIR", place)
    try:
        assert len(f"{masters.folder()}/{'c' * 40}.{'r' * 16}") <= 103
        assert masters.folder().startswith(f"{place}/") is (length == 20)
    finally:
        shutil.rmtree(place)
