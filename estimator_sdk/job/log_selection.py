"""Which lines of a job's log are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InvalidArgument
from ..values.naming import suggestion
from .asked import check_whole

if TYPE_CHECKING:
    from estimator_container.logs.lines import Block

STREAMS = ("stdout", "stderr", "toolkit")


@dataclass(frozen=True)
class LogSelection:
    """Those of a rank, a host and a stream; None is all of them."""

    rank: int | None
    host: str | None
    stream: str | None

    @classmethod
    def checked(cls, hosts: Sequence[str], rank: int | None, host: str | None, stream: str | None) -> LogSelection:
        """Of a job with these hosts. Raises InvalidArgument for a host, a stream or a rank that it cannot have."""
        if rank is not None:
            check_whole("rank", rank, 0)
        for argument, value, known in (("host", host, hosts), ("stream", stream, STREAMS)):
            if value is not None and value not in known:
                raise InvalidArgument(argument, f"{argument} {value!r} is not in this job; {suggestion(value, known)}")
        return cls(rank, host, stream)

    def has(self, block: Block) -> bool:
        """Whether the lines of a block are among them."""
        return (
            (self.rank is None or block.rank == self.rank)
            and (self.host is None or block.host == self.host)
            and (self.stream is None or block.stream == self.stream)
        )
