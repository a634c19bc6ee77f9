"""S10: a checkpoint that comes back, and a channel that comes to every host."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from estimator_container.contract.agent_events import ChannelFetched, ChannelFetching

from estimator_sdk import Estimator

from .. import jobs, peers, transfers
from ..harness import FEW, MEMORY, SCRIPTS, Case, Extent, Metric, Panel, Target, Way
from ..transfers import BUCKET, OURS

ONE = Panel("restore a checkpoint of one file", "MB", "s", (Target(OURS, "s5cmd"),))
ONE_CPU = Panel("what the client computes to restore one file", "MB", "CPU s/GiB")
MANY = Panel("restore a checkpoint of files of 64 KiB", "files", "s", (Target(OURS, "s5cmd"),))
MANY_CPU = Panel("what the client computes to restore files of 64 KiB", "files", "CPU s/GiB")
CHANNEL = Panel(
    "a channel of 200 files of 64 KiB, on every host", "hosts", "s", (Target("fit()", "s5cmd, for each host"),)
)
FILES = 200


def ours(prefix: str, hosts: int, script: Path) -> float:
    """From when the channel's fetching begins until it is in place for all hosts."""
    estimator = Estimator(entry_point=script, instance_count=hosts, backend="process", base_job_name="bench")
    job = jobs.fit(estimator, {"train": f"s3://{BUCKET}/{prefix}"}).job
    at = {type(event.what): event.time for event in jobs.events(job)}
    return at[ChannelFetched] - at[ChannelFetching]


def a_copy_for_each(prefix: str, hosts: int, scratch: Path) -> float:
    """s5cmd once for each host, all at once."""
    folders = [scratch / f"copy-{number}" for number in range(hosts)]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    with ThreadPoolExecutor(hosts) as pool:
        copies = pool.map(lambda folder: transfers.s5cmd(f"s3://{BUCKET}/{prefix}/*", f"{folder}/"), folders)
        return max(copy.seconds for copy in copies)


def raw(prefix: str, scratch: Path) -> float:
    target = scratch / "raw"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    return transfers.forked(transfers.raw_down, target, prefix).seconds


def sagemaker(prefix: str) -> float:
    argv = [str(peers.SAGEMAKER), str(SCRIPTS / "sagemaker_channel.py"), BUCKET, prefix]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(argv, check=False, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        raise RuntimeError(f"SageMaker's SDK could not fetch the channel: {(done.stdout + done.stderr)[-2000:]}")
    return float(done.stdout.split()[-1])


def cases(extent: Extent) -> Iterator[Case]:
    with tempfile.TemporaryDirectory(prefix="bench-", dir=MEMORY) as name, jobs.own_home():
        scratch = Path(name)
        (scratch / "server").mkdir()
        with transfers.server(scratch / "server"):
            one, many = (ONE, ONE_CPU), (MANY, MANY_CPU)
            loads = [(one, size, transfers.one_file) for size in extent.pick((1, 8, 64, 256), (1, 64), (1000,))]
            loads += [(many, count, transfers.many_files) for count in extent.pick((10, 100, 1000), (100,), (5000,))]
            for number, (panels, n, make) in enumerate(loads):
                folder = make(scratch / f"load-{number}", n)
                prefixes: dict[str, str] = {}
                ways = restores(folder, scratch, extent, prefixes)
                if panels is one:
                    yield Case(panels, n, ways, transfers.runs(extent, n))
                else:
                    yield Case(panels, n, transfers.few_of_others(ways, n))
                transfers.forget(prefixes)
            prefix = "channel"
            transfers.forked(transfers.raw_up, transfers.many_files(scratch / "data", FILES), prefix)
            script = scratch / "train.sh"
            script.write_text("#!/bin/sh\n")
            for hosts in extent.pick((1, 4, 16), (1, 2)):
                local = partial(sagemaker, prefix)
                copies = partial(a_copy_for_each, prefix, hosts, scratch)
                few = FEW if hosts == 16 else None
                ways = (
                    Way("raw client, once", "floor", partial(raw, prefix, scratch)),
                    Way("s5cmd, for each host", "peer", copies, peer="s5cmd", at_most=few),
                    Way("SageMaker local mode, once", "peer", local, peer="sagemaker", at_most=FEW),
                    Way("fit()", "ours", partial(ours, prefix, hosts, script)),
                )
                yield Case((CHANNEL,), hosts, ways)


def restores(folder: Path, scratch: Path, extent: Extent, prefixes: dict[str, str]) -> tuple[Way, ...]:
    """Each brings back what it has brought there itself; `prefixes` gets where that is."""
    for way in transfers.up(folder, prefixes):
        if way.peer not in extent.left_out:
            way.run()
    return transfers.down(scratch, prefixes, transfers.size_of(folder))


METRIC = Metric(
    "S10",
    "Restoring a checkpoint, fetching a channel",
    "A restore is ours from the listing of the store to all files in place, verified; each way brings back what it has "
    "brought there itself, with the clocks of S8, and as many runs. A channel is timed within a job, "
    "from the start of its fetching until it is in place for every host of this machine; its bytes come once however "
    "many hosts there are. s5cmd runs once for each host, all at the same time; SageMaker's local mode fetches one "
    "object after the other, and its imports are not timed. The floor is a raw client that brings each object once.",
    cases,
    peers=("s5cmd", "rclone", "boto3-crt", "sagemaker"),
)
