"""S8: from the closing of a checkpoint to its being durable in the store."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from .. import transfers
from ..harness import Case, Extent, Metric, Panel, Target
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
MANY = Panel("publish a checkpoint of files of 64 KiB", "files", "s", (Target(OURS, RIVALS, 1.05),))


def cases(extent: Extent) -> Iterator[Case]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        scratch = Path(name)
        (scratch / "server").mkdir()
        with transfers.server(scratch / "server"):
            for size in extent.pick((1, 8, 64, 256), (1, 64), (1000,)):
                folder = transfers.one_file(scratch / f"{size}MB", size)
                slow = size >= transfers.SLOW
                ways = transfers.by_turns("up", folder, extent) if slow else transfers.up(folder, {})
                yield Case((ONE,), size, ways)
            for count in extent.pick((10, 100, 1000), (100,), (5000,)):
                folder = transfers.many_files(scratch / f"{count} files", count)
                yield Case((MANY,), count, transfers.up(folder, {}))


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
    f"From {transfers.SLOW} MB on each way has a LocalStack of its own, and they take turns of half a second in which "
    "the others are frozen.",
    cases,
    peers=("s5cmd", "rclone", "boto3-crt"),
)
