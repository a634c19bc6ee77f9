import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import estimator_container
import pytest

from tests.waiting import SECONDS

TOOLKIT = str(Path(estimator_container.__file__).absolute().parents[1])
RUNNER = [sys.executable, "-u", "-m", "estimator_container.ranks.script_runner"]
PYTHON = [sys.executable, "-u"]


@pytest.fixture
def both(tmp_path):
    """Runs a program as a rank and by `python` itself; gives what each of them did."""

    def run(script, *argv, name="train.py", **env):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(script if isinstance(script, bytes) else script.encode())
        return [ran(start, *(argv or (name, "--lr", "0.1")), cwd=tmp_path, **env) for start in (RUNNER, PYTHON)]

    return run


def ran(start, *argv, cwd, **env):
    env = {**os.environ, "PYTHONPATH": TOOLKIT, **env}
    done = subprocess.run([*start, *argv], cwd=cwd, capture_output=True, timeout=SECONDS, env=env, check=False)
    return done.returncode, done.stdout, done.stderr


SAME = {
    "its arguments": "import sys; print(sys.argv)",
    "its names": "print(__name__, __file__, __package__, __spec__, __doc__)",
    "its loader": "print(type(__loader__), __loader__.name, __loader__.path, __loader__.get_source('__main__'))",
    "a docstring": "'''What it does.'''\nprint(__doc__)",
    "its path": "import sys; print(sys.path)",
    "its flags": "import sys; print(sys.flags, sys.stdout.line_buffering, sys.flags.dont_write_bytecode)",
    "its globals": "print(sorted(set(globals()) - {'__cached__', '__annotations__'}))",
    "annotations": "x: int = 5\nprint(__annotations__)",
    "the main module": "x = 5\nimport __main__\nprint(__main__.x, __main__.__dict__ is globals())",
    "pickles of its own classes": """
import pickle
class Point:
    def __init__(self, x): self.x = x
def double(x): return 2 * x
print(pickle.loads(pickle.dumps(Point(3))).x, pickle.loads(pickle.dumps(double))(4), pickle.dumps(Point(1)))
""",
    "pickles in a thread that goes on after the script's end": """
import pickle, threading
class Point: pass
def later():
    threading.main_thread().join()
    print(type(pickle.loads(pickle.dumps(Point()))), Point)
threading.Thread(target=later).start()
""",
    "exit handlers after success": "import atexit\nword = 'bye'\natexit.register(lambda: print(word))\nprint('hello')",
    "exit handlers after an exit with 0": "import atexit, sys\natexit.register(print, 'bye')\nsys.exit(0)",
    "the source of its functions": "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))",
    "a generator that is left": "def g():\n    try: yield\n    finally: print('closed')\nx = g(); next(x)",
    "latin-1": "# -*- coding: latin-1 -*-\nprint(ascii('é'))".encode("latin-1"),
    "a byte order mark": b"\xef\xbb\xbfprint('fine')",
    "windows lines": b"print(1)\r\nprint(2)\r\n",
    "an empty script": "",
    "exit without a code": "import sys; sys.exit()",
    "exit with None": "import sys; sys.exit(None)",
    "exit with 3": "import sys; print('x'); sys.exit(3)",
    "exit with 256": "import sys; sys.exit(256)",
    "exit with -1": "import sys; sys.exit(-1)",
    "exit with True": "import sys; sys.exit(True)",
    "exit with a text": "import sys; sys.exit('the reason')",
    "exit with a list": "import sys; sys.exit(['a', 1])",
    "exit with 0.0": "import sys; sys.exit(0.0)",
    "exit in a function": "def f(): raise SystemExit(4)\nf()",
    "exit in a thread": "import threading as t\na = t.Thread(target=quit, args=(5,))\na.start(); a.join(); print('on')",
    "quit": "quit(6)",
    "an exit at once": "import os; os._exit(8)",
    "an exception": "print('x')\ndef f():\n    raise ValueError('boom')\nf()",
    "an exception with a cause": "try:\n    1 / 0\nexcept ArithmeticError as e:\n    raise KeyError('x') from e",
    "an exception while another is handled": "try:\n    1 / 0\nexcept ArithmeticError:\n    nothing",
    "a long chain of exceptions": (
        "def f(n):\n    try: f(n - 1) if n else 1 / 0\n    except Exception: 5 / 0\nf(5)"
    ),
    "an exception without words": "raise ValueError",
    "an exception in an imported function": "import json\njson.loads('{')",
    "a missing module": "import nothing_of_the_kind",
    "a script that is no Python": "x = = 1\n",
    "a script with bad indentation": "if 1:\nprint()",
    "an assertion": "assert 0, 'reason'",
    "a hook of its own": """
import sys
sys.excepthook = lambda *what: print('hooked', what[0].__name__, file=sys.stderr)
raise ValueError
""",
    "a hook that fails": """
import sys
def hook(kind, error, traceback):
    print('hooked', kind, sys.exc_info(), sys.last_value is error, traceback.tb_lineno, file=sys.stderr)
    raise KeyError('of the hook')
sys.excepthook = hook
1 / 0
""",
    "a hook that cannot be called so": "import sys\nsys.excepthook = lambda: None\n1 / 0",
    "a hook that exits": "import sys\nsys.excepthook = lambda *what: sys.exit(7)\n1 / 0",
    "a warning": "import warnings\nwarnings.warn('careful')",
    "buffered output before an exception": """
import sys
sys.stdout.reconfigure(line_buffering=False, write_through=False)
print('kept')
raise ValueError
""",
    "a log that is flushed": """
import logging.handlers, sys
held = logging.handlers.MemoryHandler(99, target=logging.StreamHandler(sys.stdout))
logging.getLogger().addHandler(held)
logging.getLogger().error('kept')
sys.exit(2)
""",
    "a closed stdout": "import sys\nsys.stdout.close()\nsys.exit(3)",
}  # fmt: skip


@pytest.mark.parametrize("script", SAME.values(), ids=SAME)
def test_a_script_behaves_as_by_python_itself(both, script):
    as_rank, by_python = both(script)
    assert as_rank == by_python


@pytest.mark.parametrize("script", [b"print('\xff')\n", b"print(1)\0\n"], ids=["no UTF-8", "a NUL"])
def test_a_script_that_cannot_be_read_is_an_error(both, script):
    as_rank, by_python = both(script)
    # Python before 3.11.4 runs what stands before a NUL, and says of a text with one that it has "null bytes".
    older = b"\0" in script and sys.version_info < (3, 11, 4)
    for code, out, err in [as_rank] if older else [as_rank, by_python]:
        assert (code, out) == (1, b"")
        assert (b"null bytes" if older else b"SyntaxError") in err


@pytest.mark.parametrize(
    "arguments", [[], ["-m", "x"], ["--", "-"], ["", "a b", "$(ls)", "é", "-u"], ["-c", "print()"], ["--help"], ["-h"]]
)
def test_every_argument_reaches_the_script(both, arguments):
    as_rank, by_python = both("import sys; print(sys.argv)", "train.py", *arguments)
    assert as_rank == by_python
    assert as_rank[0] == 0


def test_a_script_in_a_folder_imports_what_lies_beside_it_and_not_the_toolkit(both, tmp_path):
    (tmp_path / "run").mkdir()
    for name in ("code", "machine", "beside"):
        (tmp_path / "run" / f"{name}.py").write_text("print(__name__, 'of the user')")
    script = "import sys, code, machine, beside\nprint(sys.path[0], sys.argv[0], __file__)"
    as_rank, by_python = both(script, "run/train.py", name="run/train.py")
    assert as_rank == by_python
    assert as_rank[1].count(b"of the user") == 3


def test_a_crash_in_native_code_says_where_the_script_was(both):
    script = "import os, signal\ndef train():\n    os.kill(os.getpid(), signal.SIGSEGV)\ntrain()"
    (code, out, err), by_python = both(script)
    assert (code, out) == by_python[:2] == (-signal.SIGSEGV, b"")
    assert b"Fatal Python error: Segmentation fault" in err and b'train.py", line 3 in train\n' in err


def test_a_safe_path_stays_safe(both):
    as_rank, by_python = both("import sys; print(sys.path)", PYTHONSAFEPATH="1")
    assert as_rank == by_python


SPAWNS = """
import multiprocessing, sys
GLOBAL = 5
class Point:
    def __init__(self, x): self.x = x
def double(point): return Point(2 * point.x + GLOBAL)
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(double, [Point(1), Point(2)])[1].x)
"""


@pytest.mark.parametrize("argv", [["train.py"], ["-m", "train"]])
def test_a_script_can_spawn_processes(both, argv):
    as_rank, by_python = both(SPAWNS, *argv)
    assert as_rank == by_python == (0, b"9\n", b"")


# Modules.

MODULES = {
    "its names": "import sys\nprint(__name__, __file__, __package__, __spec__.name, sys.argv, sys.path)",
    "an import from beside it": "from . import other",
    "pickles of its own classes": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))))",
    "pickles in an exit handler": """
import atexit, pickle
class A: pass
atexit.register(lambda: print(pickle.dumps(A())))
""",
    "an exception": "def f(): raise ValueError('boom')\nf()",
    "exit with 3": "import sys; sys.exit(3)",
    "exit with a text": "import sys; sys.exit('the reason')",
    "exit handlers after success": "import atexit\nword = 'bye'\natexit.register(lambda: print(word))",
    "a module that is no Python": "x = = 1",
    "a missing import": "import nothing_of_the_kind",
}


@pytest.mark.parametrize("script", MODULES.values(), ids=MODULES)
@pytest.mark.parametrize("safe", [False, True], ids=["", "safe path"])
def test_a_module_behaves_as_by_python_itself(both, tmp_path, script, safe):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("import sys; print(sys.argv)")
    (tmp_path / "package" / "other.py").write_text("print('imported')")
    env = {"PYTHONSAFEPATH": "1", "PYTHONPATH": f"{TOOLKIT}:{tmp_path}"} if safe else {}
    as_rank, by_python = both(script, "-m", "package.train", "--lr", "0.1", name="package/train.py", **env)
    assert without_runpy(as_rank) == without_runpy(by_python)


def without_runpy(what):
    """Python shows two frames of its own above those of a module."""
    code, out, err = what
    return code, out, re.sub(rb'  File "(<frozen runpy>|[^"]*/runpy\.py)".*\n(    .*\n)*', b"", err)


def test_a_missing_module_is_said_as_python_says_it(both):
    as_rank, by_python = both("", "-m", "nothing_of_the_kind")
    assert as_rank[0] == by_python[0] == 1
    assert b"No module named" in as_rank[2]


# What is meant to differ.


@pytest.mark.parametrize(
    ("end", "expected"), [("raise ValueError", 1), ("import sys; sys.exit(3)", 3), ("raise KeyboardInterrupt", 130)]
)
@pytest.mark.parametrize("argv", [["train.py"], ["-m", "train"]])
def test_a_failure_runs_no_exit_handler_and_waits_for_no_thread(tmp_path, end, expected, argv):
    waits = "import threading\nthreading.Thread(target=threading.Event().wait).start()"
    (tmp_path / "train.py").write_text(f"import atexit\natexit.register(print, 'bye')\n{waits}\n{end}")
    code, out, _ = ran(RUNNER, *argv, cwd=tmp_path)
    assert (code, out) == (expected, b"")


def test_a_traceback_holds_no_frame_of_the_toolkit(tmp_path):
    (tmp_path / "train.py").write_text("def f():\n    1 / 0\nf()\n")
    _, _, err = ran(RUNNER, "train.py", cwd=tmp_path)
    assert b"estimator_container" not in err
    assert b"runpy" not in err
    assert err.count(b"File ") == 2


def test_a_signal_ends_the_script_as_any_other(tmp_path):
    (tmp_path / "train.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)")
    code, _, _ = ran(RUNNER, "train.py", cwd=tmp_path)
    assert code == -signal.SIGTERM


CHILDREN = """
import multiprocessing, os, subprocess
def show(who):
    names = []
    for fd in os.listdir("/proc/self/fd"):
        try: names.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
        except OSError: pass
    print(who, *sorted(name for name in names if name in ("0-first", "0-last", "mine")), flush=True)
mine = open("mine", "w")
show("rank")
if os.fork() == 0:
    if os.fork() == 0:
        show("grandchild")
        os._exit(0)
    os.wait()
    show("child")
    os._exit(0)
os.wait()
with multiprocessing.get_context("fork").Pool(1) as pool:
    pool.apply(show, ["worker"])
os.system("ls -l /proc/self/fd | grep -c alive")
subprocess.run("ls -l /proc/self/fd | grep -c alive", shell=True, close_fds=False)
show("rank")
"""


def test_the_files_that_say_that_a_rank_lives_are_not_its_childrens(tmp_path):
    """A child that outlives a rank which was killed would vouch for it."""
    (tmp_path / "alive").mkdir()
    (tmp_path / "train.py").write_text(CHILDREN)
    opened = [os.open(tmp_path / "alive" / f"0-{which}", os.O_WRONLY | os.O_CREAT) for which in ("first", "last")]
    try:
        done = subprocess.run(
            [*RUNNER, "train.py"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": TOOLKIT},
            capture_output=True,
            text=True,
            pass_fds=opened,
            check=True,
        )
    finally:
        for fd in opened:
            os.close(fd)
    rank = "rank 0-first 0-last mine"
    assert done.stdout.splitlines() == [rank, "grandchild mine", "child mine", "worker mine", "0", "0", rank]


def test_a_rank_may_have_a_file_of_its_own_in_their_place(tmp_path):
    (tmp_path / "alive").mkdir()
    opened = os.open(tmp_path / "alive" / "0-first", os.O_WRONLY | os.O_CREAT)
    script = f"import os\nos.dup2(os.open('mine', os.O_CREAT | os.O_RDWR), {opened})\n"
    (tmp_path / "train.py").write_text(
        f"{script}if os.fork() == 0: os.write({opened}, b'x')\nelse: print(os.wait()[1])"
    )
    try:
        env = {**os.environ, "PYTHONPATH": TOOLKIT}
        done = subprocess.run(
            [*RUNNER, "train.py"], cwd=tmp_path, env=env, capture_output=True, pass_fds=[opened], check=True
        )
    finally:
        os.close(opened)
    assert done.stdout == b"0\n"
    assert (tmp_path / "mine").read_bytes() == b"x"
