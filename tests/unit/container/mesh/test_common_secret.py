"""What hosts agree on that share a folder and nothing else."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from estimator_container.contract.cluster import Cluster
from estimator_container.contract.names import Layout
from estimator_container.contract.reserved import Hyperparameters
from estimator_container.contract.settings import Settings
from estimator_container.mesh import common_secret

HOSTS = tuple(f"algo-{number}-x7" for number in range(1, 9))


@pytest.fixture
def layout(tmp_path) -> Layout:
    made = Layout(str(tmp_path))
    Path(made.model).mkdir()
    return made


def cluster(host: str, hosts: tuple[str, ...] = HOSTS, instance_type: str = "local") -> Cluster:
    return Cluster(host, hosts, instance_type, "homogeneousCluster", (), "eth0", None, {})


@pytest.mark.parametrize("round_", range(20))
def test_hosts_that_come_at_the_same_time_have_one_secret(layout, round_):
    barrier, agreed = threading.Barrier(len(HOSTS)), []

    def come(host: str) -> None:
        barrier.wait()
        agreed.append(common_secret.agree(layout, cluster(host)))

    threads = [threading.Thread(target=come, args=(host,)) for host in HOSTS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(agreed) == len(HOSTS) and len(set(agreed)) == 1
    assert len(agreed[0]) == 32 and len(set(agreed[0])) > 8


def test_only_its_owner_reads_it_and_it_is_gone_when_it_has_served(layout):
    common_secret.agree(layout, cluster(HOSTS[0], instance_type="local_gpu"))
    (file,) = Path(layout.model).iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    common_secret.forget(layout)
    assert list(Path(layout.model).iterdir()) == []
    common_secret.forget(layout)


@pytest.mark.parametrize("other", [{"hosts": HOSTS[:1]}, {"instance_type": "ml.m5.xlarge"}])
def test_a_single_host_and_the_services_own_instances_agree_on_nothing(layout, other):
    assert common_secret.agree(layout, cluster(HOSTS[0], **other)) is None
    assert list(Path(layout.model).iterdir()) == []


# Where the user trusts the network.


def settings(host: str, hosts: tuple[str, ...] = HOSTS, **variables: str) -> Settings:
    resources = {"current_host": host, "hosts": list(hosts)}
    return Settings.from_documents(Layout("/opt/ml"), resources, {}, Hyperparameters.read({}), variables)


@pytest.mark.parametrize("choice", [None, "", "0"])
def test_without_the_users_word_there_is_nothing_in_place_of_a_secret(choice):
    variables = {} if choice is None else {"ESTIMATOR_TRUST_NETWORK": choice}
    assert common_secret.of_trusted_network(settings(HOSTS[0], **variables)) is None


def test_all_hosts_of_a_job_work_out_the_same_and_those_of_another_job_something_else():
    def found(host: str, hosts: tuple[str, ...] = HOSTS, job: str = "one") -> bytes | None:
        told = settings(host, hosts, ESTIMATOR_TRUST_NETWORK="1", TRAINING_JOB_NAME=job)
        return common_secret.of_trusted_network(told)

    first, second = found(HOSTS[0]), found(HOSTS[1])
    assert first == second and first is not None and len(first) == 32
    assert len({first, found(HOSTS[0], HOSTS[:2]), found(HOSTS[0], job="other")}) == 3
