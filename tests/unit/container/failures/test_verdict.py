import json
import pickle
import subprocess
import sys
from dataclasses import asdict

import pytest
from estimator_container.contract.names import FAILURE_TEXT_LIMIT
from estimator_container.failures.kind import Kind, Origin
from estimator_container.failures.verdict import (
    LAST_LINES,
    Verdict,
    last_words,
    of_rank,
    signal_name,
)
from estimator_container.ranks import script_runner
from hypothesis import given
from hypothesis import strategies as st

TEXT = st.text(max_size=40) | st.integers(0, 3000).map(lambda count: "x" * count) | st.just("line\n" * 500)
OPTIONAL_INT = st.none() | st.integers()
VERDICTS = st.builds(
    Verdict,
    st.sampled_from(["exit_code", "exception", "signal", "mpi", "host_lost"]),
    TEXT,
    st.none() | st.text(max_size=5),
    OPTIONAL_INT,
    OPTIONAL_INT,
    st.none() | st.just("SIGKILL"),
    TEXT,
    st.lists(st.integers(0, 9), max_size=4).map(tuple),
)


def stderr_of(script):
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False).stderr


# In words.


@given(VERDICTS)
def test_the_failure_text_is_never_longer_than_what_the_platform_shows(verdict):
    assert len(verdict.failure_text()) <= FAILURE_TEXT_LIMIT


@pytest.mark.parametrize("message", [0, 1, 1010, 1016, 1017, 1018, 1019, 1020, 1022, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("detail", [0, 1, 5, 1000, 1022, 1024, 5000])
def test_the_failure_text_fits_at_every_length(message, detail):
    verdict = Verdict("exit_code", "m" * message, detail="d" * detail)
    text = verdict.failure_text()
    assert len(text) <= FAILURE_TEXT_LIMIT
    assert text.endswith("\n")
    if len(verdict.text()) <= FAILURE_TEXT_LIMIT - 2:
        assert text == verdict.text()
    elif message < 500:
        assert text.endswith(f"\n\n{Kind.EXIT_CODE.what_to_try}\n")


def test_of_a_long_detail_the_end_is_shown_below_the_whole_sentence():
    verdict = Verdict(
        "exception", "rank 1 on algo-2 exited with code 1: ValueError: x", detail="start" + "y" * 5000 + "end"
    )
    text = verdict.failure_text()
    assert text.startswith(f"{verdict.message}\n\n… y")
    assert text.endswith(f"yend\n\n{Kind.EXCEPTION.what_to_try}\n")
    assert len(text) == FAILURE_TEXT_LIMIT


def test_a_sentence_that_is_too_long_by_itself_is_cut_and_says_so():
    assert Verdict("exit_code", "m" * 5000).failure_text() == "m" * (FAILURE_TEXT_LIMIT - 2) + "…\n"


@pytest.mark.parametrize(
    ("detail", "text"),
    [("", "why\n"), (" \n", "why\n"), ("words\n\n", "why\n\nwords\n"), ("  indented", "why\n\n  indented\n")],
)
def test_the_whole_text_is_the_sentence_and_below_it_the_detail_and_what_to_try(detail, text):
    assert Verdict("exit_code", "why", detail=detail).text() == f"{text}\n{Kind.EXIT_CODE.what_to_try}\n"


def test_the_text_names_those_that_had_to_end_too():
    assert "\n\nIt ended ranks 0, 2 and 3 too.\n\n" in Verdict("signal", "why", rank=1, victims=(0, 2, 3)).text()


def test_every_kind_has_something_to_try():
    assert all(kind.what_to_try.endswith(".") for kind in Kind)


@pytest.mark.parametrize(
    ("kind", "users"),
    [
        ("exit_code", True),
        ("exception", True),
        ("signal", True),
        ("requirements", True),
        ("mpi", False),
        ("configuration", False),
        ("host_lost", False),
        ("host_missing", False),
        ("toolkit", False),
        ("platform", False),
    ],
)
def test_a_failure_is_the_users_or_the_platforms(kind, users):
    assert Verdict(kind, "why").is_user_failure is users


def test_the_kind_of_another_package_or_version_is_kept_and_nothing_is_assumed_of_it():
    verdict = Verdict("quota_exceeded", "the account may have no more instances")
    assert verdict.kind == "quota_exceeded" and f"{verdict.kind}" == "quota_exceeded"
    assert verdict.kind.origin is Origin.OTHER and not verdict.is_user_failure and not verdict.may_pass
    assert verdict.text() == "the account may have no more instances\n"
    for kept in (Verdict.from_json(verdict.to_json()), pickle.loads(pickle.dumps(verdict)), Verdict(**asdict(verdict))):
        assert kept == verdict
    assert "quota_exceeded" not in list(Kind)


@pytest.mark.parametrize("kind", [None, 5, ["exit_code"]])
def test_a_kind_that_is_no_text_is_refused(kind):
    with pytest.raises(ValueError, match="is not a valid Kind"):
        Verdict.from_json(json.dumps({"kind": kind, "message": "why"}))


# As JSON.


@given(VERDICTS)
def test_a_verdict_comes_back_from_its_json(verdict):
    assert Verdict.from_json(verdict.to_json()) == verdict


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "5",
        "null",
        "{}",
        '{"kind": "mpi"}',
        '{"kind": "mpi", "message": "m", "more": 1}',
        '{"kind": "a", "message": "m", "victims": 3}',
    ],
)
def test_any_other_text_is_a_value_error(text):
    with pytest.raises(ValueError):
        Verdict.from_json(text)


# Of a rank.


@pytest.mark.parametrize("number", [9, 11, 15])
def test_a_signal_is_named_and_has_no_exit_code(number):
    verdict = of_rank("algo-2", 3, -number, "last words", (0, 1))
    assert verdict.kind == "signal"
    assert verdict.signal == signal_name(number)
    assert verdict.message.startswith(f"rank 3 on algo-2 was killed by {signal_name(number)}")
    assert (verdict.exit_code, verdict.detail, verdict.victims) == (None, "last words", (0, 1))


def test_only_a_kill_hints_at_the_memory():
    assert "out of memory" in of_rank("algo-1", 0, -9, "").message
    assert "out of memory" not in of_rank("algo-1", 0, -11, "").message


def test_an_unknown_signal_is_named_by_its_number():
    assert signal_name(99) == "signal 99"


def test_a_script_without_a_world_has_no_rank():
    assert of_rank("algo-1", None, 7, "").message == "the script on algo-1 exited with code 7"


def test_an_exit_code_is_told_with_the_last_lines():
    verdict = of_rank("algo-2", 1, 7, "\n".join(map(str, range(100))) + "\n\n")
    assert (verdict.kind, verdict.exit_code, verdict.signal) == ("exit_code", 7, None)
    assert verdict.message == "rank 1 on algo-2 exited with code 7"
    assert verdict.detail.split("\n") == [str(number) for number in range(100 - LAST_LINES, 100)]


@pytest.mark.parametrize(
    ("script", "exception"),
    [
        ("raise ValueError('boom')", "ValueError: boom"),
        ("raise ValueError", "ValueError"),
        ("raise ValueError('one\\ntwo')", "ValueError: one"),
        ("import nothing_of_the_kind", "ModuleNotFoundError: No module named 'nothing_of_the_kind'"),
        ("exec('a = = 1')", "SyntaxError: invalid syntax"),
        ("assert 0, 'reason'", "AssertionError: reason"),
        ("try: 1 / 0\nexcept ArithmeticError as e: raise KeyError('second') from e", "KeyError: 'second'"),
        (
            "import sys, atexit; atexit.register(lambda: sys.stderr.write('noise\\n')); raise OSError(5, 'x')",
            "OSError: [Errno 5] x",
        ),
    ],
)
def test_an_exception_is_named_in_the_sentence(script, exception):
    verdict = of_rank("algo-1", 0, 1, "warming up\n" + stderr_of(script))
    assert verdict.kind == ("import_error" if "ModuleNotFound" in exception else "exception")
    assert verdict.message == f"rank 0 on algo-1 exited with code 1: {exception}"
    assert verdict.detail.startswith("Traceback (most recent call last):")


def test_an_exception_group_is_named_and_not_the_frame_around_it():
    """As Python 3.11 and later write it."""
    group = """  + Exception Group Traceback (most recent call last):
  |   File "train.py", line 3, in <module>
  |     raise ExceptionGroup("two shards", [ValueError("bad"), KeyError(2)])
  | ExceptionGroup: two shards (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | ValueError: bad
    +---------------- 2 ----------------
    | KeyError: 2
    +------------------------------------
"""
    verdict = of_rank("algo-1", 0, 1, group)
    assert verdict.message == "rank 0 on algo-1 exited with code 1: ExceptionGroup: two shards (2 sub-exceptions)"


def test_a_traceback_that_the_script_survived_is_not_what_ended_it():
    script = "import sys, traceback\ntry: 1 / 0\nexcept ArithmeticError: traceback.print_exc()\nsys.exit(7)"
    verdict = of_rank("algo-1", 0, 7, stderr_of(script))
    assert verdict.kind == "exit_code"
    assert verdict.message == "rank 0 on algo-1 exited with code 7"


# Last words.

CHAIN = """
def first(): raise ValueError('the cause')
def second():
    try: first()
    except ValueError as error: raise KeyError('in between') {0}
try: second()
except KeyError as error: raise RuntimeError('the last') {0}
"""


@pytest.mark.parametrize("raised_from", ["from error", ""])
def test_of_chained_exceptions_the_whole_chain_is_kept_from_its_cause_on(raised_from):
    words = last_words("noise\n" + stderr_of(CHAIN.format(raised_from)))
    assert words.count("Traceback (most recent call last):") == 3
    assert words.index("the cause") < words.index("in between") < words.index("the last")
    assert "noise" not in words


def test_a_chain_does_not_reach_back_to_a_traceback_that_has_nothing_to_do_with_it():
    earlier = stderr_of("raise OSError('long ago')")
    words = last_words(earlier + "went on\n" + stderr_of(CHAIN.format("")))
    assert "long ago" not in words
    assert words.count("Traceback (most recent call last):") == 3


def test_of_two_tracebacks_the_last_one_counts():
    words = last_words(stderr_of("raise OSError('first')") + stderr_of("raise OSError('second')"))
    assert "second" in words
    assert "first" not in words


def test_without_a_traceback_the_last_lines_are_kept():
    assert last_words("") == ""
    assert last_words("one\ntwo\n\n") == "one\ntwo"
    assert last_words("x\n" * 100).count("x") == LAST_LINES


CRASH = """
import os, sys, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
def train(depth):
    if depth:
        train(depth - 1)
    print("terminate called: no such device", file=sys.stderr, flush=True)
    os.kill(os.getpid(), {signal})
try:
    raise ValueError("long past")
except ValueError:
    sys.excepthook(*sys.exc_info())
train(30)
"""


def crash_of(script):
    """The detail of the verdict on a rank that ran this script."""
    argv = [sys.executable, script_runner.__file__, str(script)]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    return of_rank("algo-1", 0, ran.returncode, ran.stderr).detail.splitlines()


@pytest.mark.parametrize(("signal", "error"), [(6, "Aborted"), (11, "Segmentation fault")])
def test_of_a_crash_the_innermost_calls_are_kept_and_what_was_said_just_before(tmp_path, signal, error):
    (tmp_path / "train.py").write_text(CRASH.format(signal=signal))
    lines = crash_of(tmp_path / "train.py")
    at = lines.index(f"Fatal Python error: {error}")
    assert lines[at - 1] == "terminate called: no such device"
    assert lines[at + 2].startswith("Current thread ") and lines[at + 2].endswith(" (most recent call last):")
    assert lines[at + 3 :] == [f'  File "{tmp_path}/train.py", line 6 in train'] * (LAST_LINES - 1) + [
        f'  File "{tmp_path}/train.py", line 8 in train'
    ]


def test_of_a_crash_in_few_calls_none_of_the_toolkit_is_shown(tmp_path):
    (tmp_path / "train.py").write_text("import os\nos.kill(os.getpid(), 11)")
    assert crash_of(tmp_path / "train.py")[3:] == [f'  File "{tmp_path}/train.py", line 2 in <module>']


def test_a_traceback_at_the_very_start_is_found():
    text = "Traceback (most recent call last):\nValueError: x"
    assert last_words(text) == text


def test_a_rank_killed_because_memory_ran_out_is_told_so_and_what_helps():
    found = of_rank("algo-2", 3, -9, "", (0, 1, 2)).as_out_of_memory()
    assert found.message == (
        "rank 3 on algo-2 was killed because its host had no memory left; give it more, or a smaller batch"
    )
    assert (found.kind, found.rank, found.victims, found.is_user_failure) == ("out_of_memory", 3, (0, 1, 2), True)


@pytest.mark.parametrize(
    ("last_line", "blames"),
    [
        ("RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:37412", True),
        ("ConnectionResetError: [Errno 104] Connection reset by peer", True),
        ("BrokenPipeError: [Errno 32] Broken pipe", True),
        (
            "torch.distributed.DistBackendError: ncclRemoteError: A call failed possibly due to a network error or a "
            "remote process exited prematurely.",
            True,
        ),
        (
            "tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by: failed to connect "
            "to all addresses",
            True,
        ),
        ("ValueError: no such digit", False),
        ("KeyError: 'connection'", False),
    ],
)
def test_a_rank_that_has_lost_another_says_so(last_line, blames):
    words = f'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n{last_line}\n'
    assert of_rank("algo-1", 0, 1, words).blames_another is blames
    assert not of_rank("algo-1", 0, 3, words).blames_another
    assert not of_rank("algo-1", 0, -9, words).blames_another


SPAWN_ON_ONE_HOST = """Traceback (most recent call last):
  File "train.py", line 5, in <module>
    start()
  File "src/mpi4py/MPI.src/Comm.pyx", line 2560, in mpi4py.MPI.Intracomm.Spawn
mpi4py.MPI.Exception: MPI_ERR_INTERN: internal error
"""


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (SPAWN_ON_ONE_HOST, "-oversubscribe"),
        ("Traceback (most recent call last):\nmpi4py.MPI.Exception: MPI_ERR_WIN: invalid window\n", "-mca osc pt2pt"),
    ],
)
def test_what_open_mpi_does_not_do_comes_with_the_way_out(words, way_out):
    text = of_rank("algo-1", 0, 1, words).text()
    assert way_out in text.rsplit("\n\n", 1)[1] and Kind.EXCEPTION.what_to_try not in text
