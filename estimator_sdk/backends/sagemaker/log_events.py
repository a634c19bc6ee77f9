"""The log of a job of the service: its streams in CloudWatch Logs, one a host, merged by time into lines."""

from __future__ import annotations

import heapq
import re
import time
from collections.abc import Iterator
from typing import Any

from estimator_container.logs.frames import number_of
from estimator_container.logs.lines import Block

from . import faults
from .service import Service

GROUP = "/aws/sagemaker/TrainingJobs"
# Events reach CloudWatch a few seconds after they were written, the last ones after the job's end; nothing says that
# the last one has come.
QUIET_SECONDS = 10.0
QUIET_POLL_SECONDS = 1.0
_RANK = r"(?P<world>\d+),(?:mpirank:)?(?P<rank>\d+)[^\]\s]*"
_TAG = re.compile(rf"\[(?:{_RANK}|algo-\d+)\]<(?P<stream>stdout|stderr|toolkit)>:")
_HOST = re.compile(r"algo-\d+")


class JobLog:
    """Reads the log of one job as far as it has come, again and again."""

    def __init__(self, service: Service, job_name: str) -> None:
        self._service = service
        self._job_name = job_name
        self._doing = f"read the log of {job_name}"
        self._tokens: dict[str, str | None] = {}

    def new_blocks(self) -> Iterator[Block]:
        """The lines that have come since the last call, of all hosts, merged by time.

        Raises BackendError where CloudWatch does not answer.
        """
        for name in self._stream_names():
            self._tokens.setdefault(name, None)
        yield from heapq.merge(*(self._blocks(name) for name in self._tokens), key=lambda block: block.time_ns)

    def last_blocks(self) -> Iterator[Block]:
        """The lines that still come after the job's end, until none has come for `QUIET_SECONDS`."""
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < QUIET_SECONDS:
            time.sleep(QUIET_POLL_SECONDS)
            for block in self.new_blocks():
                yield block
                quiet_since = time.monotonic()

    def _stream_names(self) -> Iterator[str]:
        chosen = {"logGroupName": GROUP, "logStreamNamePrefix": f"{self._job_name}/"}
        try:
            for page in self._service.pages("logs", "describe_log_streams", self._doing, **chosen):
                yield from (stream["logStreamName"] for stream in page["logStreams"])
        except faults.Refused as error:
            if error.code != "ResourceNotFoundException":  # no job of this account has written anything yet
                raise

    def _blocks(self, stream: str) -> Iterator[Block]:
        found = _HOST.search(stream.rpartition("/")[2])
        host = found[0] if found else stream
        chosen = {"logGroupName": GROUP, "logStreamName": stream, "startFromHead": True}
        while True:
            token = self._tokens[stream]
            more = {} if token is None else {"nextToken": token}
            page = self._service.call("logs", "get_log_events", self._doing, **chosen, **more)
            yield from (block_of(event, host) for event in page["events"])
            # At the end of a stream the service gives the same token again.
            self._tokens[stream] = page["nextForwardToken"]
            if page["nextForwardToken"] == token:
                return


def block_of(event: dict[str, Any], host: str) -> Block:
    """An event of the log, most often a line; the tags of our images and of mpirun say of which rank and stream it is.

    >>> line = block_of({"timestamp": 1, "message": "[1,3]<stderr>:oh"}, "algo-2")
    >>> line.rank, line.stream, line.data
    (3, 'stderr', b'oh\\n')
    """
    message: str = event["message"]
    tag = _TAG.match(message)
    rank = number_of(int(tag["world"]), int(tag["rank"])) if tag and tag["rank"] else None
    text = message[tag.end() :] if tag else message
    data = text.encode("utf-8", "surrogatepass")
    return Block(
        time_ns=event["timestamp"] * 1_000_000,
        host=host,
        rank=rank,
        stream=tag["stream"] if tag else "stdout",
        data=data if data.endswith(b"\n") else data + b"\n",
    )
