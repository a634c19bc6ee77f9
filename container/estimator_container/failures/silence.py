"""Who is to blame where a host hears nothing of another one, though their connection was never closed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..mesh.pulse import Reach, silent_seconds
from ..runtime.loop import Loop
from .verdict import Verdict, of_cut_off_host, of_silent_host


class Silence:
    """What one host hears of its neighbours, when it hears nothing."""

    def __init__(
        self, loop: Loop, own: str, others: Sequence[str], missed_beats: int, report: Callable[[Verdict], object]
    ) -> None:
        """`others` are the neighbours, silent after so many beats; `report` is called once with who is to blame."""
        self._own = own
        self._others = others
        self._seconds = silent_seconds(missed_beats)
        self._report = report
        self.silent: list[str] = []
        """Those that are, until there are others in their places."""
        self._reach = Reach(loop)

    def learn(self, on_loopback: bool) -> None:
        """All is well, so what answers now can be asked later; no network says anything of hosts on loopback."""
        if not on_loopback:
            self._reach.learn()

    def begins(self, host: str) -> None:
        """A neighbour has fallen silent."""
        self.silent.append(host)
        if len(self.silent) == 1:
            self._reach.check(self._blame)

    def forget(self, host: str) -> None:
        """Another is in its place."""
        if host in self.silent:
            self.silent.remove(host)

    def _blame(self, cut_off: bool) -> None:
        """One host of several is to blame for its silence, and this one for that of all."""
        if not self.silent:
            return  # there are others in their places
        everybody = len(self.silent) == len(self._others) > 1
        if cut_off or everybody:
            self._report(of_cut_off_host(self._own, self.silent, self._seconds))
        else:
            self._report(of_silent_host(self.silent[0], self._own, self._seconds))
