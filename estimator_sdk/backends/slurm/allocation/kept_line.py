"""The line to a host on another machine, over the one mesh of the job's supervisor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from estimator_container.contract.names import Layout
from estimator_container.failures.verdict import Verdict
from estimator_container.host.coordination.platform_line import END
from estimator_container.runtime.loop import Loop

from ....values.home import JobFolder
from ...supervised.supervisor.hosts_line import FirstWord, OnAttemptFailed


class Teller(Protocol):
    """What reaches the hosts."""

    def tell(self, host: str, *fields: str) -> None:
        """Send a message to a host that is there."""

    def tell_again(self, host: str) -> None:
        """Have a host begin again as soon as it is known where the first one is."""


class KeptLine:
    """As `HostsLine` has it."""

    def __init__(
        self,
        loop: Loop,
        teller: Teller,
        folder: JobFolder,
        host: str,
        on_failed: OnAttemptFailed,
        on_silence: Callable[[], None],
    ) -> None:
        """The host is about to be started; Slurm may take its time for that."""
        self._is_up = False
        layout = Layout(str(folder.host(host)))
        self._first_word = FirstWord(loop, on_silence, Path(layout.temporary_folders).exists)
        self._first_word.expect()
        self.is_closed = False
        self.waits_for_first = False
        """Whether it begins again once the first host has said where it is."""
        self._teller = teller
        self._host = host
        self._on_failed = on_failed
        self.on_silence = on_silence

    @property
    def is_up(self) -> bool:
        return self._is_up

    @is_up.setter
    def is_up(self, is_up: bool) -> None:
        self._is_up = is_up
        if is_up:
            self._first_word.come()

    @property
    def has_come(self) -> bool:
        return self._first_word.has_come

    def on_failed(self, found: Verdict, address: str, lost: tuple[str, ...]) -> None:
        """The host says that an attempt failed."""
        if not self.is_closed:
            self._on_failed(found, address, lost)

    def begin_again(self, first_host_at: str = "") -> None:
        self._teller.tell_again(self._host)

    def end(self) -> None:
        self._teller.tell(self._host, END)

    def close(self) -> None:
        self.is_closed = True
        self._first_word.stop()
