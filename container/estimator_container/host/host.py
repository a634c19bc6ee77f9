"""One host of a job: its phases, its processes and its end."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..agents import code_download
from ..contract import entry_point, environment
from ..contract import hyperparameters as hp
from ..contract.configuration import Configuration, number
from ..contract.entry_point import CommandLine, FrameworkFunction, Program
from ..contract.names import (
    CONSOLE,
    DEFAULT_HANG_TIMEOUT,
    DEFAULT_STOP_TIMEOUT,
    DEFAULT_WORLD_TIMEOUT,
    HANG_TIMEOUT_HYPERPARAMETER,
    HOSTS_PER_MACHINE,
    LAUNCH_VARIABLES_HYPERPARAMETER,
    LIFELINE_FD,
    OVERLAY_DIR,
    PLATFORM_VARIABLES,
    SCRATCH_DIR,
    SECRET_BYTES,
    SHARED_MEMORY_DIR,
    STOP_TIMEOUT,
    TRAINING_MODULE,
    TRUST_NETWORK,
    WORLD_CHANNEL,
    WORLD_SECRET_FILE,
    WORLD_TIMEOUT,
    Layout,
)
from ..failures import verdict
from ..failures.outcome import Outcome
from ..failures.verdict import Verdict, last_words
from ..logs import console
from ..logs.events import EventLog, ProgramOutput
from ..logs.frames import NO_RANK, SPAWNED, FrameWriter
from ..mesh.endpoint import Endpoint, address_of, interface_of, taken_ipv6_port
from ..ranks.script_runner import STACKS_VARIABLE, WEIGHTS_VARIABLE
from ..ranks.server import WRAPPER, Ended, RankCommand, RankServer, rank_or_none
from ..ranks.wrapper import SOCKET_VARIABLE
from ..runtime import machine, private_folder, reserve
from ..runtime.children import Children, OnExit, become_subreaper, kill_descendants
from ..runtime.errors import ConfigurationError
from ..runtime.loop import Loop, Timer
from ..worlds import distributions
from ..worlds.mpi import command_line, programs
from ..worlds.mpi.world import World as MpiWorld
from ..worlds.world import DirectWorld
from . import code, requirements, steps
from .follower import Follower
from .leader import Leader

if TYPE_CHECKING:
    import socket

    from ..failures.hang import HangWatch
    from ..failures.horovod_stalls import Lasting, Stall

CONSOLE_SECONDS = 10.0  # that a slow reader of the container's output has for the last lines
FROZEN_SECONDS = 3.0  # that a rank may be stopped, by a debugger's hand or another's, before it has failed
VICTIM_GRACE = 0.25  # seconds between SIGTERM and SIGKILL for ranks whose world has failed


class JobEnded(Exception):
    """The job's outcome is known before this host came to its end by itself."""


class Host:
    """This host, from its configuration to its exit code."""

    def __init__(self, layout: Layout, configuration: Configuration, secret: bytes | None) -> None:
        """Raises ConfigurationError for a world that cannot be."""
        self._hyperparameters = hp.decode(configuration.raw_hyperparameters)
        distributions.refuse_others(self._hyperparameters)
        self._world = distributions.world(self._hyperparameters, configuration.cluster.hosts, machine.gpus())
        self.steps = steps.of(self._hyperparameters)
        self._steps_over = 0
        self.hosts_per_machine = int(number(HOSTS_PER_MACHINE, 1))
        self.stop_timeout = number(STOP_TIMEOUT, DEFAULT_STOP_TIMEOUT)
        self.hang_timeout = _seconds(self._hyperparameters, HANG_TIMEOUT_HYPERPARAMETER, DEFAULT_HANG_TIMEOUT)
        self.world_timeout = number(WORLD_TIMEOUT, DEFAULT_WORLD_TIMEOUT)
        self.layout = layout
        self.cluster = configuration.cluster
        self.name = configuration.cluster.current_host
        self.secret = secret
        self.loop = Loop()
        self.children = Children(self.loop)
        reserve.keep(layout.reserve)
        self.events = EventLog(FrameWriter(layout.frames))
        self._endpoint: Endpoint | None = None
        self._taken: socket.socket | None = None
        self.outcome: Outcome | None = None
        self.stopping = False
        self._console: int | None = None
        self.scratch = _make_scratch()
        self.shared_memory = _make_shared_memory(self.scratch)
        self._configuration = configuration
        self._started: set[int] = set()
        self._frozen: dict[int, Timer] = {}
        self._hang_watch: HangWatch | None = None
        self._stalls: Lasting | None = None
        self._earlier_kills = machine.out_of_memory_kills()
        # Hosts that share no secret and need no world run as those of any other toolkit: each one for itself.
        together = secret is not None or self._world is not None or bool(self.steps)
        self.hosts = self.cluster.hosts if together else (self.name,)
        """Those that this one runs the job with, in their order; the first one leads."""
        leads = self.name == self.hosts[0]
        self._coordinator: Leader | Follower = Leader(self, self._world) if leads else Follower(self)
        self._ranks = RankServer(
            self.loop,
            os.path.join(self.scratch, "host"),
            self._rank_started,
            self._rank_ended,
            self._rank_frozen,
            self._coordinator.weights_seen,
            self._rank_stalled,
        )
        if isinstance(self._world, MpiWorld):
            self._ranks.mpirun_watches = True
            self._ranks.cpus = self._cpus_of_ranks(self._world)

    # The phases.

    def run(self) -> int:
        """Do the job's work on this host; returns the exit code for the platform."""
        become_subreaper()
        self._watch()
        self._show_on_console()
        try:
            self._work()
        except JobEnded:
            pass
        except (ConfigurationError, OSError) as error:
            self._report(Verdict("configuration", f"{self.name}: {error}", host=self.name))
        except Exception as error:
            import traceback

            what = f"the toolkit on {self.name} failed: {type(error).__name__}: {error}"
            self._report(Verdict("toolkit", what, host=self.name, detail=traceback.format_exc()))
        return self._end()

    def _work(self) -> None:
        self._coordinator.open()
        if isinstance(self._world, DirectWorld):
            self._endpoint = Endpoint(address_of(self.cluster))
        first, *others = self._prepare()
        self._coordinator.prepared()
        with self.events.phase("world"):
            self._assemble(0, first)
        with self.events.phase("run"):
            if self._world is not None and self.hang_timeout:
                from ..failures.hang import HangWatch  # a job that ends before has no need of it

                folders = (self.layout.frames, self._stacks, self.layout.code)
                self._hang_watch = HangWatch(self.loop, self._ranks, *folders, self.hang_timeout, self._ranks_stand)
            for number, command in enumerate(others, 1):
                self._until_steps_are_over(number)
                self._assemble(number, command)
            self._until(lambda: False)

    def _assemble(self, step: int, command: RankCommand) -> None:
        """Have all ranks of this host run the command of a step."""
        processes = self._world.processes_per_host if self._world else 1
        self._ranks.command = command
        self._started.clear()
        self._coordinator.ready()
        self._until(lambda: len(self._started) >= processes)
        self._coordinator.ranks_started(step)

    def _until_steps_are_over(self, number: int) -> None:
        self._until(lambda: self._steps_over >= number)

    def _prepare(self) -> list[RankCommand]:
        """Make the host ready; returns what its ranks run, step by step."""
        with self.events.phase("code"):
            program = self._fetch_program()
        is_package = program is not None and program.is_package
        if requirements.wanted(self.layout.code, is_package):
            with self.events.phase("requirements"):
                self._install(is_package)
        else:
            requirements.forget(self.layout.pip_settings)
        with self.events.phase("channels"):
            self._look_for_channels()
        return self._commands(program)

    def _fetch_program(self) -> Program | CommandLine | FrameworkFunction | None:
        """Bring the code here, and say what of it is run; None for steps. Raises ConfigurationError."""
        if self.steps:
            code.fetch(self._code_source(), self.layout.code)
            return None
        command = hp.command(self._hyperparameters)
        if command is not None:
            code.fetch(self._code_source(), self.layout.code)
            return CommandLine(tuple(command))
        name = os.environ.get("SAGEMAKER_PROGRAM") or self._hyperparameters.get("sagemaker_program")
        function = os.environ.get(TRAINING_MODULE)
        if not name and function:
            found = FrameworkFunction.parse(function)
            code.fetch(self._code_source(), self.layout.code)
            return found
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"sagemaker_program must name the file to run, and is {name!r}")
        code.fetch(self._code_source(), self.layout.code)
        return entry_point.program_in(name, self.layout.code)

    def _code_source(self) -> str:
        """Where the code is on this host; what is only in S3 is fetched first. Raises ConfigurationError."""
        channeled = code.bundle_of(self.layout.channeled_code)
        submitted = self._hyperparameters.get("sagemaker_submit_directory")
        source = channeled or str(submitted or self.layout.code)
        if not source.startswith("s3://") or os.listdir(self.layout.code):
            return source
        path = os.path.join(self.scratch, os.path.basename(source))
        exit_code, words = self._run_program([sys.executable, "-I", code_download.__file__, source, path])
        if exit_code != 0:
            raise ConfigurationError(f"the code could not be fetched: {last_words(words)}")
        return path

    def _install(self, package: bool) -> None:
        argv = [
            sys.executable,
            requirements.__file__,
            self.layout.code,
            "package" if package else "",
            os.environ.get(OVERLAY_DIR, ""),
            self.layout.pip_settings,
        ]
        exit_code, words = self._run_program(argv)
        if exit_code != 0:
            what = f"pip could not install what the code asks for on {self.name}"
            self._report(Verdict("requirements", what, host=self.name, detail=last_words(words)))
            raise JobEnded

    def _run_program(self, argv: Sequence[str]) -> tuple[int, str]:
        """Run a program of the toolkit's own to its end; returns its exit code and its last words."""
        ended: list[int] = []
        output = self.start_program(argv, os.environ, ended.append)
        self._until(lambda: bool(ended))
        return ended[0], output.finish()

    def _look_for_channels(self) -> None:
        """Say what is not there; only the script knows whether it needs it, and a host may have no share of it."""
        for channel, config in self._configuration.channels.items():
            first = f"{channel}_0" if config.get("TrainingInputMode") == "Pipe" else channel
            path = os.path.join(self.layout.data, first)
            if not os.path.exists(path):
                self.events.say(f"the channel {channel!r} should be at {path}, but there is nothing; the script runs")

    def _commands(self, program: Program | CommandLine | FrameworkFunction | None) -> list[RankCommand]:
        python = environment.interpreter(os.environ.get(OVERLAY_DIR))
        in_world = self._world is not None
        if program is None:
            lines = [step.command(python, in_world) for step in self.steps]
        else:
            lines = [program.command(python, in_world, hp.script_arguments(self._hyperparameters))]
        common = self._common_command(program.name if program is not None else None, python)
        path = common.settings["PATH"]
        # Looked up where the script would find it: what requirements have installed is there too.
        found = [common._replace(argv=(shutil.which(word, path=path) or word, *words)) for word, *words in lines]
        inherited = {name: value for name, value in self.program_environment().items() if name not in common.dropped}
        for command in found:
            environment.check_size(command.argv, {**inherited, **command.settings})
        return found

    def _common_command(self, program: str | None, python: str) -> RankCommand:
        """What all steps of the job have in common."""
        settings = {
            # Open MPI's own choice is names in /tmp and /dev/shm that others can guess, and make first.
            "OMPI_MCA_orte_tmpdir_base": self.scratch,
            "OMPI_MCA_btl_vader_backing_directory": self.shared_memory,
            **({} if isinstance(self._world, MpiWorld) else programs.for_scripts(sys.executable)),
            **(self._world.defaults(interface_of(self.cluster)) if isinstance(self._world, DirectWorld) else {}),
            **environment.of_the_script(self._configuration, self.layout, self._seen_by_ranks(), program, python),
        }
        if self._world is not None:
            settings[STACKS_VARIABLE] = self._stacks
            settings[WEIGHTS_VARIABLE] = self._ranks.path
        if isinstance(self._world, MpiWorld):
            if command_line.RULES_VARIABLE not in os.environ:
                settings[command_line.RULES_VARIABLE] = self._write_rules()
            settings.update(self._world.variables)
        return RankCommand(
            argv=(),
            folder=self.layout.code,
            frames=self.layout.frames,
            # What starts the ranks is not for programs that a rank starts by itself.
            dropped=(
                *sorted(PLATFORM_VARIABLES),
                SOCKET_VARIABLE,
                *programs.BORROWED_VARIABLES,
                f"OMPI_MCA_{programs.FORK_AGENT}",
            ),
            settings=settings,
            alive=self._make_alive(),
        )

    def _seen_by_ranks(self) -> Mapping[str, str]:
        if not isinstance(self._world, MpiWorld):
            return os.environ
        from ..worlds.mpi import inherited

        return inherited.for_ranks(os.environ, self.given_variables)

    def _cpus_of_ranks(self, world: MpiWorld) -> list[int]:
        """One for each rank of this host, if its machine has just as many as ranks; else none are set apart."""
        hosts, shared = world.hosts, self.hosts_per_machine
        cpus = sorted(os.sched_getaffinity(0))
        if world.places_ranks or len(cpus) != machine.cpus() or shared * world.processes_per_host != len(cpus):
            return []
        if shared not in (1, len(hosts)):
            return []  # which of them share this machine is not known
        first = hosts.index(self.name) * world.processes_per_host if shared > 1 else 0
        return cpus[first : first + world.processes_per_host]

    def _write_rules(self) -> str:
        """The leader decides whether they are followed, for ranks that did not agree would wait for ever."""
        path = os.path.join(self.scratch, "rules")
        private_folder.write(path, command_line.rules(len(self.cluster.hosts)))
        return path

    def _make_alive(self) -> str:
        """Where there are checkpoints, whoever publishes them must see whether the ranks that wrote them live."""
        if not os.path.exists(self.layout.checkpoint_config):
            return ""
        os.makedirs(self.layout.alive, mode=0o700, exist_ok=True)
        return self.layout.alive

    # What the coordinator asks of this host.

    @property
    def endpoint(self) -> str:
        """Where a rank of this host may listen, as `address:port`; empty where the toolkit need not see to that."""
        return self._endpoint.text if self._endpoint is not None else ""

    def start_ranks(self, endpoints: Sequence[str]) -> None:
        """Start the script under a wrapper: once without a world, else as each rank of this host.

        `endpoints` are those of all hosts, in their order.
        """
        ranks: Sequence[int] = (NO_RANK,)
        if isinstance(self._world, DirectWorld):
            ranks = self._world.ranks_of(self.name)
            self._ranks.variables_of = partial(self._world.variables_of, endpoints=endpoints)
        for rank in ranks:
            argv = [sys.executable, "-I", "-S", WRAPPER, str(rank)]
            self.children.start(argv, self.program_environment(), lambda code: None)

    def start_program(self, argv: Sequence[str], env: Mapping[str, str], on_exit: OnExit) -> ProgramOutput:
        """Start a program of the toolkit's own; its words go to the log."""
        output = ProgramOutput(self.loop, self.events)
        try:
            self.children.start(argv, env, on_exit, output.write_fd, output.write_fd)
        finally:
            output.started()
        return output

    @property
    def _stacks(self) -> str:
        """The folder where the ranks leave their stacks."""
        path = os.path.join(self.scratch, "stacks")
        os.makedirs(path, exist_ok=True)
        return path

    def program_environment(self) -> dict[str, str]:
        """The environment of MPI's programs and of the wrappers on this host."""
        if not isinstance(self._world, MpiWorld):
            return {**os.environ, SOCKET_VARIABLE: self._ranks.path}
        from ..worlds.mpi import inherited

        seen = inherited.for_programs(os.environ, self.given_variables)
        return {**self._world.defaults(interface_of(self.cluster)), **seen, SOCKET_VARIABLE: self._ranks.path}

    @property
    def ipv6_port(self) -> int | None:
        """A port that no other program of this host can listen at; None where there is no IPv6."""
        if self._taken is None:
            self._taken = taken_ipv6_port()
        return self._taken.getsockname()[1] if self._taken is not None else None

    @property
    def given_variables(self) -> list[str]:
        """The variables for launchers that the user has set for this job; others of that kind are inherited."""
        given = self._hyperparameters.get(LAUNCH_VARIABLES_HYPERPARAMETER)
        return [str(name) for name in given] if isinstance(given, list) else []

    @property
    def renamed(self) -> bool:
        """Whether this host shares its machine, and so cannot go by the machine's name."""
        return self.hosts_per_machine > 1 and machine.name() != self.name

    def required_secret(self) -> bytes:
        """What the hosts of this job prove themselves to each other with. Raises ConfigurationError without it."""
        if self.secret is None:
            raise ConfigurationError(
                "the hosts of this job share no secret, so they cannot trust each other: the platform must write "
                f"the same {self.layout.world_secret} on every host, or bring it by the channel {WORLD_CHANNEL!r}, "
                f"as {WORLD_SECRET_FILE} with {SECRET_BYTES} random bytes; where nobody else reaches their network, "
                f'environment={{"{TRUST_NETWORK}": "1"}} does without'
            )
        return self.secret

    def stop(self) -> None:
        """Let the ranks end in their own way, within the grace period."""
        if self.stopping or self.outcome is not None:
            return
        self.stopping = True
        self.events.emit("stopping")
        self._ranks.hold()
        self._ranks.signal_all(signal.SIGTERM)
        self.loop.after(self.stop_timeout, lambda: self._ranks.signal_all(signal.SIGKILL))
        self.loop.after(self.stop_timeout + 1.0, lambda: self.end(Outcome("stopped")))

    def step_over(self) -> None:
        """Every rank of every host has ended its step."""
        self._steps_over += 1

    def end(self, outcome: Outcome) -> None:
        """Set the outcome; the first one counts."""
        if self.outcome is None:
            self.outcome = outcome

    # What happens on this host.

    def _watch(self) -> None:
        for signum in (signal.SIGTERM, signal.SIGINT):
            self.loop.on_signal(signum, self._told_to_stop)
        if os.path.exists(self.layout.stop_request):
            self._told_to_stop()
        lifeline = os.environ.get(LIFELINE_FD)
        if lifeline:
            self.loop.on_readable(int(lifeline), self._platform_gone)

    def _show_on_console(self) -> None:
        """Show the ranks' lines on this container's standard output, unless the platform reads the frames itself."""
        if os.environ.get(CONSOLE) != "off":
            argv = [sys.executable, "-I", "-S", console.__file__, self.layout.frames, self.name]
            self._console = self.children.start(argv, os.environ, lambda code: setattr(self, "_console", None))

    def _wait_for_console(self) -> None:
        """Its last lines matter, but not for ever: nobody may be reading them."""
        self.loop.run_until(lambda: self._console is None, CONSOLE_SECONDS)

    def _told_to_stop(self) -> None:
        self.stop()
        self._coordinator.stop()

    def _platform_gone(self) -> None:
        self.loop.forget(int(os.environ[LIFELINE_FD]))
        self.end(Outcome("stopped"))

    def _rank_started(self, rank: int) -> None:
        self.events.emit("rank_started", rank=rank_or_none(rank))
        if rank < SPAWNED:
            self._started.add(rank)
        else:
            self._coordinator.spawned(rank)
        if self.stopping:
            self._ranks.hold()
            self._ranks.signal_all(signal.SIGTERM)

    def _rank_ended(self, ended: Ended) -> None:
        self._thawed(ended.rank)
        self.events.emit("rank_ended", rank=rank_or_none(ended.rank), code=ended.code)
        if ended.code == -signal.SIGKILL and machine.out_of_memory_kills() > self._earlier_kills:
            ended = ended._replace(out_of_memory=True)
        self._coordinator.rank_ended(ended)

    def _rank_frozen(self, rank: int, signum: int) -> None:
        """`signum` is what stopped it, or 0 when it goes on."""
        self.events.emit("rank_frozen" if signum else "rank_thawed", rank=rank_or_none(rank))
        if not signum:
            self._thawed(rank)
            return
        found = verdict.of_frozen_rank(self.name, rank_or_none(rank), signum, FROZEN_SECONDS)
        self._frozen[rank] = self.loop.after(FROZEN_SECONDS, lambda: self._coordinator.report(found))

    def _thawed(self, rank: int) -> None:
        timer = self._frozen.pop(rank, None)
        if timer is not None:
            timer.cancel()

    def _rank_stalled(self, rank: int, stderr_tail: str) -> None:
        """Horovod on this rank says whom it waits for; it says so again for as long as that lasts."""
        from ..failures import horovod_stalls  # only where Horovod has said so

        self._stalls = self._stalls or horovod_stalls.Lasting()
        stall = horovod_stalls.last_in(stderr_tail.encode())
        if stall is None:
            return
        if stall != self._stalls.stall:
            missing = {str(each): list(names) for each, names in stall.missing.items()}
            self.events.emit("horovod_stalled", rank=rank_or_none(rank), seconds=stall.seconds, missing=missing)
        self._stalls.tell(stall)
        self._coordinator.stalled(stall)

    def stalled(self, stall: Stall) -> None:
        """Horovod on a rank of some host says whom it waits for."""
        if self._hang_watch is not None:
            self._hang_watch.stalled(stall)

    def _ranks_stand(self, stacks: dict[int, str] | None) -> None:
        self.events.emit("ranks_stand" if stacks else "ranks_move")
        self._coordinator.ranks_stand(stacks)

    def _report(self, found: Verdict) -> None:
        """Say that this host failed, and wait for what the first host makes of it."""
        self._coordinator.report(found)
        self.loop.run_until(lambda: self.outcome is not None)

    def _until(self, done: Callable[[], bool]) -> None:
        self.loop.run_until(lambda: self.outcome is not None or done())
        if self.outcome is not None:
            raise JobEnded

    # The end.

    def _end(self) -> int:
        outcome = self.outcome
        assert outcome is not None
        self._coordinator.close()
        if outcome.kind == "failed":
            self._end_victims()
        self._ranks.close()
        if self._endpoint is not None:
            self._endpoint.close()
        outcome.write(self.layout)
        reason = outcome.verdict.masked().message if outcome.verdict else ""
        self.events.emit("ended", outcome=outcome.kind, reason=reason)
        self._wait_for_console()
        kill_descendants()
        for folder in {self.scratch, self.shared_memory}:
            shutil.rmtree(folder, ignore_errors=True)
        return outcome.exit_code

    def _end_victims(self) -> None:
        """Ask the ranks that still run to end; what they write meanwhile is kept."""
        for signum in (signal.SIGTERM, signal.SIGKILL):
            self._ranks.signal_all(signum)
            self.loop.run_until(lambda: not self._ranks.pids, VICTIM_GRACE)


def _seconds(hyperparameters: Mapping[str, object], name: str, default: float) -> float:
    """Raises ConfigurationError for anything but a number of at least 0."""
    value = hyperparameters.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise ConfigurationError(f"{name} must be a number of seconds, such as {default:g}, not {value!r}")
    return float(value)


def _make_scratch() -> str:
    """A private folder with a short name: the path of a socket has at most 107 bytes."""
    given = os.environ.get(SCRATCH_DIR)
    return private_folder.given(given) if given else private_folder.make(private_folder.base())


def _make_shared_memory(scratch: str) -> str:
    """Where the ranks of this host share memory: a folder of their own in memory, if there is such a place."""
    given = os.environ.get(SHARED_MEMORY_DIR)
    return private_folder.given(given) if given else private_folder.make_for_memory(scratch)
