"""Kinds of failures, those that nobody here knows included."""

import errno
import subprocess
import sys
from pathlib import Path

import estimator_container
import pytest
from estimator_container.failures.kind import Kind, of_error
from estimator_container.runtime.errors import ConfigurationError

COPIES = """
import copy, pickle, sys
sys.path.insert(0, sys.argv[1])
from estimator_container.failures.kind import Kind
for kind in (Kind.DEADLOCK, Kind("of_another_package")):
    for found in (copy.copy(kind), copy.deepcopy([kind])[0], pickle.loads(pickle.dumps(kind))):
        assert type(found) is Kind and (found, found.name, found.origin) == (kind, kind.name, kind.origin)
assert copy.deepcopy(Kind.DEADLOCK) is Kind.DEADLOCK
"""


@pytest.mark.parametrize("python", [sys.executable, "/usr/bin/python3"], ids=["this Python", "Debian's"])
def test_a_kind_can_be_copied_and_pickled(python):
    toolkit = Path(estimator_container.__file__).parents[1]
    subprocess.run([python, "-c", COPIES, str(toolkit)], check=True)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ESTALE, errno.EIO])
def test_what_a_machine_lacks_for_a_while_is_the_platform_s(number):
    assert of_error(OSError(number, "as the kernel says it", "/a/file")) is Kind.PLATFORM


@pytest.mark.parametrize(
    "error", [FileNotFoundError(errno.ENOENT, "none"), PermissionError(errno.EACCES, "no"), ConfigurationError("wrong")]
)
def test_what_no_other_attempt_finds_otherwise_is_the_configuration_s(error):
    assert of_error(error) is Kind.CONFIGURATION
