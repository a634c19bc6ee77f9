import resource
import subprocess
import sys

import pytest
from estimator_container.contract.environment import check_size
from estimator_container.runtime import exec_limits
from estimator_container.runtime.exec_limits import (
    AT_LEAST,
    AT_MOST,
    ONE,
    excess,
    handed_to_daemons,
    limit_of_all,
    own_stack,
)

SMALL = 1 << 20  # bytes of stack, which leaves 256 KiB to arguments and variables


@pytest.mark.parametrize(
    ("stack", "limit"),
    [(8 << 20, 2 << 20), (-1, AT_MOST), (1 << 40, AT_MOST), (64 << 10, AT_LEAST), (4 * AT_LEAST + 8, AT_LEAST + 2)],
)
def test_all_together_may_take_a_quarter_of_the_stack_within_bounds(stack, limit):
    assert limit_of_all(stack) == limit


def test_the_stack_is_this_process_s_own():
    assert own_stack() == resource.getrlimit(resource.RLIMIT_STACK)[0]


@pytest.mark.parametrize(
    ("argv", "environment", "kind", "name", "size"),
    [
        (["x" * (ONE + 1)], {}, "argument", "0", ONE + 1),
        (["a", "é" * ONE], {}, "argument", "1", 2 * ONE),
        ([], {"A": "x" * (ONE - 1)}, "variable", "A", ONE + 1),
        ([], {"SM_HPS": "x" * (ONE - 20)}, "variable", "SM_HPS", ONE - 13),
        (["a"] * 100_000, {}, "all", "", 100_000 * 10 + 2 + 16),
        (["\udcff"], {"A": "x" * (ONE - 2)}, None, None, None),
    ],
)
def test_the_first_thing_that_is_too_large_is_told_with_its_size(argv, environment, kind, name, size):
    found = excess(argv, environment, SMALL, spare=100)
    assert (found and found.kind, found and found.name, found and found.size) == (kind, name, size)
    assert found is None or f"{size:,} bytes" in str(found)


def test_parameters_of_open_mpi_become_arguments_of_its_daemons():
    given = {"OMPI_MCA_btl": "self,tcp", "OMPI_COMM_WORLD_RANK": "1", "A": "b"}
    assert handed_to_daemons(given) == ["-mca", "btl", '"self,tcp"']


@pytest.mark.parametrize("text", ["\0", "\ud800"])
def test_text_that_cannot_be_passed_on_is_an_error(text):
    with pytest.raises(ValueError, match=r"NUL|surrogates"):
        excess([text], {}, SMALL)


@pytest.mark.parametrize("words", [1, 500, 5000])
def test_the_kernel_draws_the_line_at_the_same_byte(words):
    """The most that is no excess is started, and two pages more are not."""
    argv = ["/bin/true", *["x"] * words, *["x" * ONE] * 4]
    found = excess(argv, dict.fromkeys("ABCD", ""), SMALL)
    assert found is not None and found.kind == "all"
    room = ONE - (found.size - found.limit - exec_limits.ADDED) // 4
    for length, outcome in ((room - 16, "0"), (room + 2048, "E2BIG")):
        told = [sys.executable, "-c", _START, *map(str, (SMALL, words, length))]
        assert subprocess.check_output(told, text=True).strip() == outcome


_START = """
import os, resource, sys
stack, words, length = map(int, sys.argv[1:])
argv = ["/bin/true", *["x"] * words, *["x" * length] * 4]
resource.setrlimit(resource.RLIMIT_STACK, (stack, resource.getrlimit(resource.RLIMIT_STACK)[1]))
try:
    pid = os.posix_spawn(argv[0], argv, dict.fromkeys("ABCD", ""))
    print(os.waitpid(pid, 0)[1])
except OSError as error:
    print("E2BIG" if error.errno == 7 else error)
"""


def test_a_host_looks_closely_only_at_what_may_be_too_large(monkeypatch):
    monkeypatch.setattr(exec_limits, "excess", lambda *_: pytest.fail("looked at"))
    check_size(["python", "train.py"], {"A": "x" * 30_000, "B": "é" * 5_000})
