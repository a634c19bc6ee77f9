"""Where a host is on its machine, and what its keeper asks of whatever runs it there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Optional, Protocol

from estimator_container.contract import names as contract

OnGone = Callable[[int, Optional[str]], None]
"""Called with the exit code of a toolkit, or minus a signal's number, and why it was never run, if it was not."""


class HostPlace(NamedTuple):
    """What a host finds on its machine."""

    name: str
    """Of its keeper, which no other has."""
    base: str
    """Its base directory."""
    common: Path
    """The folder that has the same path on all machines."""
    lifeline: int
    """The end of a pipe that says when the keeper is gone."""
    log: str
    """The file for what its command writes."""

    @property
    def software(self) -> Path:
        """A link to both packages."""
        return self.common / "software"

    def variables(self) -> dict[str, str]:
        """What the toolkit is told of it."""
        return {contract.BASE_DIR_VARIABLE: self.base, contract.OVERLAY_DIR: str(self.common / "environment")}


class KeptHost(Protocol):
    """A host that a keeper runs; it is started with these."""

    @property
    def argv(self) -> Sequence[str]:
        """The command."""

    @property
    def environment(self) -> Mapping[str, str]:
        """All of its variables."""

    @property
    def stdin(self) -> int | None:
        """What it reads; None is nothing."""

    def ended(self, code: int, then: OnGone) -> None:
        """The command has ended, with an exit code or minus a signal's number.

        `then` is called once nothing of the host runs any more but what is below the keeper.
        """

    def end(self) -> None:
        """End it, if it runs, and wait for that; processes below the keeper are ended by that itself."""
