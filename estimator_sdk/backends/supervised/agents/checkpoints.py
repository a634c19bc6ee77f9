"""The supervisor's side of the checkpoint agent: start it, hear it, start it again, have it finish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from estimator_container.agents.agent import AgentSettings
from estimator_container.agents.checkpoints.format import NOTHING
from estimator_container.agents.checkpoints.settings import CheckpointSettings
from estimator_container.contract.names import Layout
from estimator_container.runtime.children import Children
from estimator_container.runtime.folder_hold import HeldFolder
from estimator_container.runtime.loop import Loop

from ....plan.plan import Plan
from ....values.home import JobFolder, make_folder
from .agent_process import AgentOwner, RunningAgent, StartAgent

AGAIN_SECONDS = 30.0
"""After which another agent is started where one that publishes could not begin, as with a store that is away."""
AGENTS = 10  # that one attempt may lose before its checkpoints are given up
LAST_SECONDS = 5.0  # beyond its deadline, for its answer
_SILENT = "what publishes it has not answered in time"


class Checkpoints(AgentOwner):
    """The checkpoints of one attempt. The first host's are published; every host begins with the same."""

    def __init__(
        self,
        plan: Plan,
        folder: JobFolder,
        loop: Loop,
        children: Children,
        held: HeldFolder,
        at_hand: bool,
        elsewhere: StartAgent | None = None,
    ) -> None:
        """`at_hand` says that the folders are those of the attempt before, on the same hosts.

        `elsewhere` starts the agent that publishes where the first host's files are not on this machine.
        """
        super().__init__(loop, children)
        first, *others = (Layout(str(folder.host(host.name))) for host in plan.hosts)
        self._settings = CheckpointSettings(
            uri=plan.checkpoint_uri or "",
            folder=first.checkpoints,
            copies=tuple(other.checkpoints for other in others),
            alive=first.alive,
            frames=first.frames,
            job=plan.job_name,
            restore=True,
            at_hand=at_hand,
            kept=plan.checkpoint_keep,
            named=plan.checkpoint_path if plan.sees_only_mounts else "",
            held=held,
        )
        self.began_from = self.newest = ""
        """A checksum of what was restored, and of what would be now; `nothing`, or `plain` for a plain tree."""
        self._elsewhere = elsewhere
        self._claimed = 0
        """The number under which the agent publishes, which has restored."""
        self._restored = False
        self._failed: str | None = None
        self._finishing: float | None = None
        self._is_late = False
        self._unpublished: str | None = None
        self._finished = False
        self._ends = 0
        self._is_away = self._has_left = False
        """Whether the last agent could not begin to publish, so that another is started later; and whether it ended."""
        self._why_away = ""

    def begin(self, stopped: Callable[[], bool]) -> str | None:
        """Put the newest snapshot in place, and watch from then on; returns early once `stopped` is true.

        Returns why that cannot be; raises OSError.
        """
        for folder in (self._settings.folder, *self._settings.copies):
            make_folder(folder)
        self._start(self._settings)
        self._loop.run_until(lambda: self._restored or self._failed is not None or stopped())
        if self._elsewhere is not None and self._restored and self._agent is not None:
            self._agent.kill()
            self._settings = replace(self._settings, after=self._claimed)
            self._start(replace(self._settings, restore=False))
        return self._failed

    def _start(self, settings: AgentSettings) -> RunningAgent:
        if self._elsewhere is None or not self._restored:
            return super()._start(settings)
        self._agent = self._elsewhere(settings, self._on_message, self._lost)
        return self._agent

    def finish(self, seconds: float) -> str | None:
        """Have what there is published within so many seconds. Returns what is not, and why, in words."""
        if self._agent is None:
            return None
        if self._is_away:  # what has not been published may be now
            self._finishing = seconds
            self._loop.run_until(lambda: self._has_left, LAST_SECONDS)
            self._start_another()
        if self._failed is None and not self._finished:
            self._have_it_finish(self._agent, seconds if self._finishing is None else self._finishing)
            self._loop.run_until(lambda: self._finished or self._failed is not None or self._is_late)
        if self._finished:
            self._agent.close()
        else:  # another attempt may have its folder, so nobody goes on there
            self._finished = True
            self._agent.kill()
            where = f"{self._settings.folder} is in {self._settings.uri}"
            self._unpublished = f"whether {where} is not known: {self._why_away or _SILENT}"
        if not self._restored:
            return None  # no script has run
        if self._failed is not None:
            return f"the checkpoints in {self._settings.folder} are not all in {self._settings.uri}: {self._failed}"
        return self._unpublished

    def hasten(self, seconds: float) -> None:
        """Where it is finishing, let it take so many seconds from now on, if it had more."""
        if self._finishing is not None and self._agent is not None and not self._finished:
            self._have_it_finish(self._agent, seconds)

    def _have_it_finish(self, agent: RunningAgent, seconds: float) -> None:
        self._finishing = seconds
        agent.finish(str(seconds))
        self._loop.after(seconds + LAST_SECONDS, self._be_late)

    def _be_late(self) -> None:
        self._is_late = True

    def _on_message(self, message: list[str]) -> None:
        kind, *facts = message
        if kind == "restored":
            self._why_away = ""
            if not self._restored:
                self._restored, self._claimed = True, int(facts[4])
                self.began_from = self.newest = facts[1]
            elif facts[1] != NOTHING:  # as one that has not restored says of a plain tree, too
                self.newest = facts[1]
        elif kind == "failed" and self._restored and self._finishing is None:
            # Training goes on, and so does who publishes, once that is possible.
            self._is_away, self._why_away = True, facts[0]
            self._loop.after(AGAIN_SECONDS, self._try_again)
        elif kind == "failed":
            self._failed = facts[0]
        elif kind == "finished":
            self._finished = True
            size, reason = int(facts[0]), facts[1]
            self.newest = facts[2] or self.newest
            if size or reason:
                where = f"{self._settings.folder}, not in {self._settings.uri}"
                what = f"{size} bytes of checkpoints" if size else "checkpoints"
                self._unpublished = f"{what} are in {where}: {reason}"

    def _lost(self, code: int) -> None:
        self._loop.after(0.0, lambda: self._go_on_without(code))  # its last words may still be on their way

    def _go_on_without(self, code: int) -> None:
        """Somebody killed it: another goes on with the folder as it is."""
        if self._finished or self._failed is not None:
            return
        if self._is_away:
            self._has_left = True
            return
        self._ends += 1
        if self._ends > AGENTS:
            self._failed = f"the checkpoint agent ended {self._ends} times, the last time with {code}"
            return
        self._start_another()

    def _try_again(self) -> None:
        if self._is_away and self._agent is not None and not self._finished:
            self._start_another()

    def _start_another(self) -> None:
        self._is_away = self._has_left = False
        try:
            another = self._start(replace(self._settings, restore=not self._restored))
        except OSError as error:
            self._failed = f"no agent can be started: {error.strerror}"
            return
        if self._finishing is not None:
            another.finish(str(self._finishing))
