"""Who is to blame where the connection between two hosts ends in the middle of a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..mesh.pulse import Loss, Reach, silent_seconds
from ..runtime.loop import Loop
from .kind import Kind
from .verdict import Verdict, of_lost_host, of_silent_host


class LostHosts:
    """The neighbours of a host to which it has no connection any more."""

    def __init__(
        self, loop: Loop, own: str, others: Sequence[str], missed_beats: int, report: Callable[[Verdict], object]
    ) -> None:
        """`others` are the neighbours, silent after so many beats; `report` is called with who is to blame."""
        self._own = own
        self._others = others
        self._seconds = silent_seconds(missed_beats)
        self._report = report
        self.apart: dict[str, Loss] = {}
        """Those that may be there though one end hears nothing of the other, until there are others in their places."""
        self._reach = Reach(loop)

    def learn(self, on_loopback: bool) -> None:
        """All is well, so what answers now can be asked later; no network says anything of hosts on loopback."""
        if not on_loopback:
            self._reach.learn()

    def lose(self, host: str, how: Loss) -> None:
        """The connection to a neighbour has ended."""
        if how is Loss.CLOSED:
            self._report(of_lost_host(host, self._own))
            return
        self.apart[host] = how
        if how is Loss.STOOD_STILL or len(self._unheard_by) == len(self._others):
            self._report(self._on_itself())
        elif len(self.apart) == 1:
            self._reach.check(self._blame)

    def forget(self, host: str) -> None:
        """Another is in its place."""
        self.apart.pop(host, None)

    def _blame(self, cut_off: bool) -> None:
        """One host of several is to blame for its silence, and this one for that of all."""
        if not self.apart:
            return  # there are others in their places
        everybody = len(self.apart) == len(self._others) > 1
        silent = [host for host, how in self.apart.items() if how is Loss.SILENT]
        if cut_off or everybody:
            self._report(self._on_itself())
        elif silent:
            self._report(of_silent_host(silent[0], self._own, self._seconds))
        else:
            self._report(of_lost_host(next(iter(self.apart)), self._own))

    @property
    def _unheard_by(self) -> list[str]:
        return [host for host, how in self.apart.items() if how is not Loss.SILENT]

    def _on_itself(self) -> Verdict:
        if self._unheard_by:
            what = f"{self._own} stood still or was cut off: {', '.join(self._unheard_by)} heard nothing from it"
            return Verdict(Kind.HOST_LOST, f"{what} for more than {self._seconds:g} s, and gave up on it", self._own)
        what = f"{self._own} is cut off from its network: it has heard nothing for more than {self._seconds:g} s"
        return Verdict(Kind.HOST_LOST, f"{what} from {', '.join(self.apart)}", self._own)
