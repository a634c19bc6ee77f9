"""S8: from the closing of a checkpoint to its being durable in the store."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from .. import transfers
from ..harness import MEMORY, Case, Extent, Metric, Panel, Target
from ..transfers import OURS, RAW

RIVALS = (RAW, "s5cmd", "rclone", "boto3-crt")
ONE = Panel(
    "publish a checkpoint of one file",
    "MB",
    "s",
    (
        Target(OURS, RIVALS, 1.05, n=(64, 256, 1000)),
        Target(OURS, "raw client, two requests more", plus=0.010, n=(1, 8)),
    ),
)
ONE_CPU = Panel("what the client computes to publish one file", "MB", "CPU s/GiB")
MANY = Panel("publish a checkpoint of files of 64 KiB", "files", "s", (Target(OURS, RIVALS, 1.05),))
MANY_CPU = Panel("what the client computes to publish files of 64 KiB", "files", "CPU s/GiB")


def cases(extent: Extent) -> Iterator[Case]:
    with tempfile.TemporaryDirectory(prefix="bench-", dir=MEMORY) as name:
        scratch = Path(name)
        (scratch / "server").mkdir()
        with transfers.server(scratch / "server"):
            prefixes: dict[str, str] = {}
            for size in extent.pick((1, 8, 64, 256), (1, 64), (1000,)):
                folder = transfers.one_file(scratch / f"{size}MB", size)
                yield Case((ONE, ONE_CPU), size, transfers.up(folder, prefixes), transfers.runs(extent, size))
                transfers.forget(prefixes)
            for count in extent.pick((10, 100, 1000), (100,), (5000,)):
                folder = transfers.many_files(scratch / f"{count} files", count)
                yield Case((MANY, MANY_CPU), count, transfers.few_of_others(transfers.up(folder, prefixes), count))
                transfers.forget(prefixes)


METRIC = Metric(
    "S8",
    "Publishing a checkpoint",
    "Ours is the agent's publisher, from a folder that is settled to the manifest in the store: checksums, a manifest "
    "that is written last, the check "
    "that nobody else has claimed the checkpoints, and an upload that sees whether a file changed under it; small "
    "files share objects. The floor is a raw client with "
    "as many connections that does none of that. What a job does once before its script starts (the claim, the client "
    "of the store) is timed for "
    "neither, nor for boto3 with CRT; s5cmd and rclone, which people script, are started anew each time, as they are "
    "there. The server is "
    "LocalStack, on the same CPUs, unless AWS_ENDPOINT_URL_S3 names another; so it bounds what any client can reach. "
    "All files are in memory. "
    f"There are four times as many runs with {transfers.SLOW} MB, and more than elsewhere with more, for the target is "
    "a matter of a few per cent there.",
    cases,
    peers=("s5cmd", "rclone", "boto3-crt"),
)
