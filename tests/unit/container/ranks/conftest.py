"""The wrappers of one host as real processes, and the toolkit's side of them."""

import os
import signal
import subprocess
import sys

import pytest
from estimator_container.logs.frames import STDOUT, FrameParser
from estimator_container.ranks.server import WRAPPER, RankCommand, RankServer


class Ranks:
    """Wrappers of one host, and what the toolkit hears of them."""

    def __init__(self, loop, run_until, folder):
        self.started, self.ended, self.frozen, self.weights, self.stalled = [], [], [], [], []
        self.frames_file = folder / "frames"
        self.processes = []
        self._run_until = run_until
        self._folder = folder
        self.server = RankServer(
            loop,
            str(folder / "host"),
            self.started.append,
            self.ended.append,
            lambda rank, signum: self.frozen.append((rank, signum)),
            self.weights.append,
            lambda rank, text: self.stalled.append((rank, text)),
        )

    def start(self, *argv, rank=0, dropped=(), settings=(), alive="", spawned=(), **env):
        """Start the wrapper of one rank, as mpirun would; `spawned` is the command of one that another rank starts."""
        self.server.command = RankCommand(
            argv, str(self._folder), str(self.frames_file), dropped, dict(settings), str(alive)
        )
        whole = {**os.environ, "ESTIMATOR_HOST_SOCKET": self.server.path, "OMPI_COMM_WORLD_RANK": str(rank), **env}
        words = ["mpi", *spawned] if spawned else []
        self.processes.append(subprocess.Popen([sys.executable, "-I", "-S", WRAPPER, *words], env=whole))
        return self.processes[-1]

    def until_started(self, count=1):
        self._run_until(lambda: len(self.started) == count)

    def until_ended(self, count=1):
        self._run_until(lambda: len(self.ended) == count)

    def output(self, rank=0, stream=STDOUT):
        return b"".join(frame.data for frame in self.frames(rank, stream))

    def frames(self, rank=0, stream=STDOUT):
        parser = FrameParser()
        content = self.frames_file.read_bytes()
        found = [*parser.feed(content), *parser.finish()]
        return [frame for frame in found if (frame.rank, frame.stream) == (rank, stream)]

    def close(self):
        self.server.signal_all(signal.SIGKILL)  # a wrapper that is killed ends no rank
        self.server.close()
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def ranks(loop, run_until, tmp_path):
    made = Ranks(loop, run_until, tmp_path)
    yield made
    made.close()


@pytest.fixture
def run(ranks):
    """Runs one rank to its end and gives how it ended."""

    def run(*argv, **options):
        ranks.start(*argv, **options)
        ranks.until_ended()
        return ranks.ended[0]

    return run
