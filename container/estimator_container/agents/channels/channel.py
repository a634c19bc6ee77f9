"""What the platform says of one channel: where its objects are, and how they are to arrive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Links = Literal["symbolic", "hard"]
EVERY_HOST = "every-host"


class ChannelError(Exception):
    """A channel's data cannot be fetched as requested; the message names where it should be."""


@dataclass(frozen=True)
class ChannelTask:
    """What is to be brought of one channel, with SageMaker's S3DataSource and Channel in mind."""

    name: str
    uri: str
    """`s3://` or `file://`: a prefix, one object, or a manifest."""
    target: str
    """The folder that takes what is fetched; a channel that is piped has no use for it."""
    is_manifest: bool = False
    is_sharded: bool = False
    is_piped: bool = False
    is_gzipped: bool = False
    """Whether a pipe delivers what the objects hold, unpacked; files stay as they are."""
    is_wrapped: bool = False
    """Whether a pipe delivers each object as one RecordIO record."""
    seed: int | None = None
    """Of the shuffle; None keeps the order of the keys."""

    @property
    def draft(self) -> str:
        """The folder that is filled until it is whole; no channel has such a name."""
        return f"{self.target}~part"

    def folder(self, host: str) -> str:
        """Where a host finds its files."""
        return f"{self.target}/{host if self.is_sharded else EVERY_HOST}"
