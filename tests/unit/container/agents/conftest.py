import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from estimator_container.agents.watching import folder as folders

SECONDS = 20.0  # that a folder has to hold still, on a slow machine


@pytest.fixture(autouse=True)
def no_end_by_a_lease():
    """A lease that is broken in the moment that it is held must not end the tests; the agent does the same."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGIO, before)


class Watched:
    """A folder under the agent's eyes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(exist_ok=True)
        self.folder = folders.WatchedFolder(str(path))

    def write(self, name: str, content: str = "x") -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def state(self, known=None, seconds=SECONDS):
        return self.folder.state(known or {}, seconds)


@pytest.fixture(params=["leases", "no leases"])
def leases(request, monkeypatch):
    """Both ways to know who writes: the file system's leases, and without them every single write."""
    if request.param == "no leases":
        monkeypatch.setattr(folders, "leases_work", lambda folder: False)
        monkeypatch.setattr(folders, "_LISTEN_SECONDS", 0.01)
    return request.param == "leases"


@pytest.fixture
def watch():
    """Watches a folder, which is made, until the end of the test."""
    with contextlib.ExitStack() as after:

        def new(path):
            made = Watched(path)
            after.callback(made.folder.close)
            return made

        yield new


@pytest.fixture
def watched(watch, tmp_path):
    return watch(tmp_path / "checkpoints")


class Program:
    """A Python program that is told what to do next, a line at a time, and says when it has done it."""

    def __init__(self, *, pass_fds=(), preexec_fn=None) -> None:
        code = "import os, sys\nfor line in sys.stdin:\n    exec(line)\n    print('done', flush=True)\n"
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            close_fds=preexec_fn is None,
            pass_fds=pass_fds,
            preexec_fn=preexec_fn,  # noqa: PLW1509 - no thread of ours runs
        )

    def does(self, line: str) -> None:
        self.tell(line)
        assert self.process.stdout.readline() == "done\n"

    def tell(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        self.process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()


@pytest.fixture
def program():
    with contextlib.ExitStack() as after:

        def new(**options):
            made = Program(**options)
            after.callback(made.close)
            return made

        yield new
