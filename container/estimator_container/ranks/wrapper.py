"""The wrapper around one rank: owns its pipes and its process group, and says how it ended.

MPI's daemons start `python -I -S wrapper.py mpi COMMAND…` on each host, or, where there is no MPI, the toolkit itself
`wrapper.py RANK`. The wrapper asks the toolkit of its host, over a Unix socket, what to run; so no argument or
variable of the user's passes through mpirun. Only a rank that another one spawns has its command from that one. The
wrapper stands on the path to the first line of the script, so it imports little.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator

sys.path.append(os.path.abspath(os.path.join(__file__, "../../..")))

from estimator_container.logs.frames import STDERR, STDOUT, FrameWriter, number_of
from estimator_container.runtime.wire import Unpacker, pack

TYPE_CHECKING = False  # `typing` has it too, and would cost each rank two milliseconds
if TYPE_CHECKING:
    import signal
    import socket
else:
    # What the modules of these names wrap in enumerations: without those, a rank starts 6 ms of CPU earlier.
    import _signal as signal
    import _socket as socket

SOCKET_VARIABLE = "ESTIMATOR_HOST_SOCKET"
PLATFORM_VARIABLE = "ESTIMATOR_PLATFORM_ADDRESS"  # as in `contract.names`, which no rank loads
BY_MPI = "mpi"  # the first argument where MPI's daemon starts the wrapper: see `spawned.fork_agent`
LOCAL_JOB = 0xFFFF  # the bits of MPI's job number that tell the worlds of one mpirun apart (orte/types.h in 4.1)
EXIT_STOPPED = 143  # of a script that was told to stop, and did; as in `contract.names`, which no rank loads
SCHEDULER_SECONDS = 0.5  # that the toolkit may take to say whose a signal was; Open MPI kills a second after its own
FIRST_FD = 3  # the lowest that is free when the rank starts


class Rank:
    """One rank from its command to its end."""

    def __init__(self, host: socket.socket, rank: int, spawned: list[str]) -> None:
        """`spawned` is the command of a rank that another one started; empty for others."""
        self._host = host
        self._rank = rank
        self._spawned = spawned
        self._unpacker = Unpacker()
        self._messages: list[list[str]] = []
        self._pid = 0
        self._status: int | None = None
        self._told_to_end = False
        self._hold = False
        self._alive = ""

    def run(self) -> int:
        """Run the rank's command; returns the exit code for mpirun."""
        self._watch_signals()
        local_rank = os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0")
        if self._spawned:
            self._tell("spawned", str(self._rank), local_rank, os.getcwd(), *self._spawned)
        else:
            self._tell("rank", str(self._rank), local_rank)
        _, frames, cwd, self._alive, cpus, batch, argc, dropc, *rest = self._next_message()
        first, last = int(argc), int(argc) + int(dropc)
        argv, drop, settings = rest[:first], rest[first:last], rest[last:]
        self._frames = FrameWriter(frames)
        os.chdir(cwd)
        everywhere = _bind(set(map(int, cpus.split(",")))) if cpus else None
        if batch:
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        pipes, said = self._start(argv, _environment(drop, settings))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
        if everywhere is not None:
            os.sched_setaffinity(0, everywhere)
        from estimator_container.ranks.streams import Streams  # here, because the script has started by now

        self._streams = Streams(self._frames, self._rank, pipes, self._waker, said)
        self._serve()
        self._end_group()
        return self._report(self._streams.tail)

    def give_up(self, error: Exception) -> int:
        """End a rank whose output can no longer be stored: a log with holes would be a lie."""
        _signal_group(self._pid, signal.SIGKILL)
        self._status = 1 << 8
        return self._report(f"the log of this rank could not be written: {error}\n".encode("utf-8", "replace"))

    def _watch_signals(self) -> None:
        self._wakeup, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        for signum in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, lambda signum, frame: None)
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))  # as it is where the toolkit starts this process

    def _start(self, argv: list[str], env: dict[str, str]) -> tuple[dict[int, int], bytes]:
        """Returns the pipes to read, each with its stream, and what stderr has had already."""
        pipes = {stream: os.pipe2(os.O_CLOEXEC) for stream in (STDOUT, STDERR)}
        said = b""
        try:
            self._pid = os.posix_spawnp(
                argv[0],
                argv,
                env,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, pipes[STDOUT][1], 1),
                    (os.POSIX_SPAWN_DUP2, pipes[STDERR][1], 2),
                    *self._vouch_while_alive(),
                ],
                setpgroup=0,
                setsigmask=[],
                setsigdef=[signal.SIGPIPE, signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP],
            )
        except OSError as error:
            # 127 is what a shell gives for a command that cannot be run.
            self._status = 127 << 8
            said = f"cannot run {argv[0]!r}: {error.strerror}\n".encode("utf-8", "replace")
            self._frames.write(self._rank, STDERR, said)
        for _, write in pipes.values():
            os.close(write)
        self._tell("started", str(self._pid))
        return {read: stream for stream, (read, _) in pipes.items()}, said

    def _vouch_while_alive(self) -> list[tuple[int, int, str, int, int]]:
        """Files that the rank has open as long as it lives: see `ranks_alive`."""
        if not self._alive:
            return []
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC  # the rank of an earlier step left its words there
        paths = {FIRST_FD: self._alive_path("first"), last_fd(): self._alive_path("last")}
        return [(os.POSIX_SPAWN_OPEN, fd, path, flags, 0o600) for fd, path in paths.items()]

    def _vouch_for_good(self) -> None:
        """The rank ended by itself and in order: whatever it closed is what it meant to write."""
        for which in ("first", "last"):
            with open(self._alive_path(which), "w") as file:
                file.write("ended in order")

    def _alive_path(self, which: str) -> str:
        return os.path.join(self._alive, f"{self._rank}-{which}")

    def _serve(self) -> None:
        """Wait for the end of the rank's process; threads move its bytes meanwhile."""
        self._streams.move()
        poll = select.poll()
        for fd in (self._wakeup, self._host.fileno()):
            poll.register(fd, select.POLLIN)
        while self._status is None and self._streams.not_stored is None:
            fd, _ = poll.poll()[0]  # one at a time: what is done for a signal may read what the host has sent
            if fd == self._wakeup:
                self._on_signals()
            else:
                self._on_host()

    def _on_signals(self) -> None:
        signals = set(os.read(self._wakeup, 4096))
        if self._streams.stalls:
            self._streams.stalls = False
            self._tell("stalled", _text(self._streams.tail))
        for signum in signals & {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}:
            self._told_to_end = True  # mpirun gives up on the job: this rank is not the one that failed
            was_missed = self._was_missed_by_scheduler()  # now: a rank that ends in order handles no signal any more
            if signum == signal.SIGTERM:
                self._tell("told")  # before it waits: mpirun kills this process a second later
            if was_missed or not self._has_scheduler_told(signum):
                _signal_group(self._pid, signum)
        if signal.SIGCHLD in signals:
            self._reap()

    def _has_scheduler_told(self, signum: int) -> bool:
        """Whether that was a scheduler, whose signal the rank has had too; the toolkit of the host has it then."""
        if signum != signal.SIGTERM or PLATFORM_VARIABLE not in os.environ:
            return False
        if not self._hold and select.select([self._host], [], [], SCHEDULER_SECONDS)[0]:
            self._on_host()
        return self._hold

    def _was_missed_by_scheduler(self) -> bool:
        """Whether SIGTERM would have ended the rank: a scheduler signals those that are there when it looks."""
        with open(f"/proc/{self._pid}/status", "rb") as file:
            handled = [line[7:] for line in file if line.startswith((b"SigCgt:", b"SigIgn:", b"SigBlk:"))]
        return not any(int(mask, 16) >> (signal.SIGTERM - 1) & 1 for mask in handled)

    def _reap(self) -> None:
        while self._pid and self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if not pid:
                return
            if os.WIFSTOPPED(status):
                self._tell("frozen", str(os.WSTOPSIG(status)))
            elif os.WIFCONTINUED(status):
                self._tell("thawed")
            else:
                self._status = status

    def _on_host(self) -> None:
        self._hold = ["hold"] in list(self._receive()) or self._hold

    def _end_group(self) -> None:
        """Take what is still in the pipes, end what the rank left running, take its last words."""
        self._streams.stop()
        _signal_group(self._pid, signal.SIGKILL)
        self._pid = 0  # this process may have to wait for long, and somebody else may get the number
        self._streams.drain()

    def _report(self, tail: bytes) -> int:
        status = self._status or 0
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        if self._alive and code in (0, EXIT_STOPPED):
            self._vouch_for_good()
        if select.select([self._host], [], [], 0.0)[0]:  # as the rank ended, it may have been told to hold
            self._on_host()
        self._tell("ended", str(code), "told" if self._told_to_end else "", _text(tail))
        # mpirun ends the whole world once it sees a rank fail. The toolkit first finds out who failed
        # and lets the others save their work, and ends this process itself.
        while code != 0 or self._hold:
            self._next_message()
        return code

    def _tell(self, *fields: str) -> None:
        self._host.sendall(pack(fields))

    def _next_message(self) -> list[str]:
        while not self._messages:
            self._messages += self._receive()
        return self._messages.pop(0)

    def _receive(self) -> Iterator[list[str]]:
        if not (data := self._host.recv(1 << 16)):
            # The toolkit of this host is gone, and nobody else would end this rank.
            _signal_group(self._pid, signal.SIGKILL)
            os._exit(1)
        return self._unpacker.feed(data)


def _text(tail: bytes) -> str:
    """The last words of a rank as a message can hold them."""
    return tail.decode("utf-8", "replace").replace("\0", "�")


def last_fd() -> int:
    """A descriptor above those that a script uses."""
    return min(os.sysconf("SC_OPEN_MAX"), 1024) - 1


def _who(words: list[str]) -> tuple[int, list[str]]:
    """The number of this rank, and the command that another rank gave it, if one did."""
    first, *command = words or [BY_MPI]
    if first != BY_MPI:
        return int(first), []
    rank, world = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ.get("PMIX_NAMESPACE", "1")) & LOCAL_JOB
    return (number_of(world, rank), command) if world > 1 else (rank, [])


def _environment(drop: list[str], settings: list[str]) -> dict[str, str]:
    """This process's environment, which MPI completed, less the names to drop, with the settings."""
    env = {name: value for name, value in os.environ.items() if name not in drop}
    env.update(dict(setting.split("=", 1) for setting in settings))
    local = {
        "RANK": "OMPI_COMM_WORLD_RANK",
        "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
        "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK",
        "LOCAL_WORLD_SIZE": "OMPI_COMM_WORLD_LOCAL_SIZE",
    }
    env.update({ours: env[theirs] for ours, theirs in local.items() if theirs in env})
    return env


def _bind(cpus: set[int]) -> set[int] | None:
    """Keep to these CPUs, and return those that were allowed; None where one of them is not allowed any more."""
    allowed = os.sched_getaffinity(0)
    if not cpus <= allowed:
        return None
    os.sched_setaffinity(0, cpus)
    return allowed


def _signal_group(pgid: int, signum: int) -> None:
    """Nothing happens if it is gone, or is 0, which is none."""
    try:  # contextlib would cost each rank a millisecond
        if pgid:
            os.killpg(pgid, signum)
    except (ProcessLookupError, PermissionError):
        pass


def main() -> int:
    """Run the rank that the arguments name, as its host's toolkit says; returns the exit code."""
    host = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    host.connect(os.environ[SOCKET_VARIABLE])
    rank = Rank(host, *_who(sys.argv[1:]))
    try:
        return rank.run()
    except Exception as error:  # whatever it is, the rank would go on with nobody to see to it
        return rank.give_up(error)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code if code >= 0 else 128 - code)
