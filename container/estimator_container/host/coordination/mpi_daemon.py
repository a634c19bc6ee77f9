"""Open MPI's daemon on a host that is not the first: mpirun asks for it, and it starts the ranks there."""

from __future__ import annotations

from collections.abc import Callable

from ...failures.kind import Kind
from ...failures.outcome import CULPRIT_SECONDS
from ...failures.verdict import Verdict, last_words, signal_name
from ...logs.events import ProgramOutput
from ...worlds.mpi import daemon, programs
from ..commands import environment_of_programs
from ..spec import HostSpec
from ..toolkit import Toolkit


class MpiDaemon:
    """The daemon of one step."""

    def __init__(
        self,
        spec: HostSpec,
        toolkit: Toolkit,
        on_gone: Callable[[], None],
        report: Callable[[Verdict], None],
    ) -> None:
        """`on_gone` is called at its end, and `report` if it should not have ended."""
        self.runs = False
        self._spec = spec
        self._toolkit = toolkit
        self._on_gone = on_gone
        self._report = report
        self._output: ProgramOutput | None = None

    def start(self, node: str, request: str) -> None:
        """Start it as `node`, with what mpirun asks of it. Raises ConfigurationError or OSError."""
        spec, toolkit = self._spec, self._toolkit
        path = programs.find("orted")
        argv = daemon.daemon(request, path, toolkit.scratch, spec.renamed, toolkit.ipv6_port)
        env = {**environment_of_programs(spec, toolkit), **programs.relocation(path)}
        if spec.renamed:
            env.update(daemon.daemon_identity(node))
        self._output = toolkit.start_program(argv, env, self._ended)
        self.runs = True

    def close(self) -> None:
        """Neither pass on its words nor tell of its end from now on."""
        self._report = lambda found: None
        if self._output is not None:
            self._output.finish()

    def _ended(self, code: int) -> None:
        """One that ends well does so because mpirun told it to; otherwise nobody else would notice."""
        self.runs = False
        self._on_gone()
        if code < 0:
            self._tell(code)  # before the ranks that lose it and exit with an error of their own
        elif code > 0:
            self._toolkit.loop.after(CULPRIT_SECONDS, lambda: self._tell(code))  # a rank may be the culprit

    def _tell(self, code: int) -> None:
        assert self._output is not None
        name = self._spec.name
        message = f"the MPI daemon on {name} ended with {code} in the middle of the job"
        ended_by = signal_name(-code) if code < 0 else None
        self._report(Verdict(Kind.MPI, message, name, signal=ended_by, detail=last_words(self._output.finish())))
