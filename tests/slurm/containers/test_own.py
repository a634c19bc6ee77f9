"""What nodes have of their own: disks, to which they fetch channels, and devices, of which each host has a share."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.conformance.conftest import Objects
from tests.stores.fault_proxy import FaultProxy
from tests.stores.servers import BUCKET, Server

from .cluster import NODES, ContainerCluster
from .jobs import assert_nothing_is_left, submit

pytestmark = pytest.mark.long
DISK = "/var/tmp/disk"  # in the container of each node, and not on what they share
FILES = {f"train/{name}": name.encode() * 1000 for name in ("a", "b", "deep/c")}
WHERE = """
import os, pathlib
channel = pathlib.Path(os.environ["SM_CHANNEL_TRAIN"])
names = sorted(str(each.relative_to(channel)) for each in channel.rglob("*") if each.is_file())
print(os.environ["SLURMD_NODENAME"], channel.resolve(), *names, flush=True)
"""
SHOWS = """
import os
names = ("CUDA_VISIBLE_DEVICES", "SM_NUM_GPUS")
print(os.environ["SM_CURRENT_HOST"], os.environ["SLURMD_NODENAME"], *(os.environ.get(name, "") for name in names))
"""


@pytest.fixture
def store(shared_cluster: ContainerCluster, localstack_server: Server, monkeypatch) -> Iterator[Objects]:
    """A store that the nodes reach, and what it has been asked for."""
    proxy = FaultProxy(localstack_server.endpoint, address=shared_cluster.gateway)
    for name, value in {**localstack_server.environment(), "AWS_ENDPOINT_URL_S3": proxy.endpoint}.items():
        monkeypatch.setenv(name, value)
    made = Objects(f"s3://{BUCKET}/{uuid.uuid4().hex}", proxy)
    made.put(FILES)
    proxy.requests.clear()
    yield made
    proxy.close()


@pytest.mark.law("D5")
def test_each_node_fetches_a_channel_to_its_own_disk_once(
    containers: ContainerCluster, localstack_server: Server, store: Objects
):
    for node in NODES:
        containers.run("install", "--directory", "--mode=1777", DISK, machine=node)
    job = submit(
        *(containers, WHERE, 4, {"train": f"{store.uri}/train"}),
        variables={**localstack_server.environment(), "AWS_ENDPOINT_URL_S3": store.proxy.endpoint},
        slurm={"local_scratch": DISK, "hosts_per_node": 2},
    )
    end = job.end()
    assert end["status"] == "Completed", end
    assert Counter(store.gets()) == dict.fromkeys(FILES, 2)
    said = [text.split() for _, _, text in job.lines()]
    assert [names for _, _, *names in said] == [["a", "b", "deep/c"]] * 4
    assert len({node for node, *_ in said}) == 2 and all(folder.startswith(f"{DISK}/") for _, folder, *_ in said)
    assert_nothing_is_left(job, *NODES)
    assert [containers.run("ls", DISK, machine=node) for node in NODES] == [""] * 4


@pytest.mark.law("W5")
def test_hosts_that_share_a_node_have_the_gpus_that_slurm_grants_between_them(containers: ContainerCluster):
    job = submit(containers, SHOWS, hosts=3, gpus=1, slurm={"hosts_per_node": 2})
    assert job.end()["status"] == "Completed", job.end()
    said = {host: (node, *others) for host, node, *others in (text.split() for _, _, text in job.lines())}
    assert said["algo-1"][0] == said["algo-2"][0] != said["algo-3"][0]
    assert {host: others for host, (_, *others) in said.items()} == {
        "algo-1": ["0", "1"],
        "algo-2": ["1", "1"],
        "algo-3": ["0", "1"],
    }
    assert_nothing_is_left(job, *NODES)
