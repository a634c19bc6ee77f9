import pytest
from estimator_container.worlds.mpi import fabric
from estimator_container.worlds.mpi.command_line import Fit, mpirun
from estimator_container.worlds.mpi.world import MpiWorld

from .parameters import parameters

HOSTS = ("algo-1", "algo-2")
FIT = Fit(("box", "algo-2"), "eth7", "/tmp/scratch", crowded=False, outnumbered=False, single_copy=True)


@pytest.fixture
def sysfs(tmp_path):
    """A folder in the form of /sys, with the files that a test names."""

    def made(**files):
        for name, text in {"class/net/eth0/operstate": "up\n", **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return str(tmp_path)

    return made


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n"}, "port 1 of the InfiniBand device mlx5_0 is active"),
        ({"class/infiniband/efa_0/ports/1/state": "4: ACTIVE\n"}, "port 1 of the EFA device efa_0 is active"),
        ({"class/net/hsn0/operstate": "up\n"}, "the Slingshot interface hsn0 is there"),
    ],
)
def test_a_network_that_is_faster_than_tcp_is_named(sysfs, files, words):
    assert fabric.found(sysfs(**files)) == words
    assert fabric.sentence(None, sysfs()) == f"Open MPI chooses among UCX, libfabric and TCP: {words}"


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"class/infiniband/mlx5_0/ports/1/state": "1: DOWN\n"},
        {"class/infiniband/mlx5_0/node_type": "1: CA\n"},
        {"class/net/hsn0/operstate": "down\n"},
    ],
)
def test_without_an_active_one_it_is_tcp(sysfs, files):
    assert fabric.found(sysfs(**files)) is None
    assert fabric.sentence(None, sysfs()) == "TCP: no InfiniBand, EFA or Slingshot is active"


def test_a_machine_without_any_such_folder_has_none(tmp_path):
    assert fabric.found(str(tmp_path / "nothing")) is None


def test_what_the_job_says_counts_more(monkeypatch):
    monkeypatch.setattr(fabric, "found", lambda: "a device")
    assert fabric.is_chosen(None, one_machine=False)
    assert not fabric.is_chosen(None, one_machine=True)
    assert not fabric.is_chosen("tcp", one_machine=False)
    monkeypatch.setattr(fabric, "found", lambda: None)
    assert not fabric.is_chosen(None, one_machine=False)
    assert fabric.is_chosen("fabric", one_machine=True)
    assert fabric.sentence("tcp") == "TCP, as the job says"


def test_on_such_a_network_open_mpi_chooses_how_ranks_talk():
    given = parameters(mpirun(MpiWorld(HOSTS, 1), FIT._replace(fabric=True), "mpirun", "/tmp/agent"))
    assert not {"pml", "btl"} & set(given)
    assert given["btl_tcp_if_include"] == "eth7"
    given = parameters(mpirun(MpiWorld(HOSTS, 1), FIT, "mpirun", "/tmp/agent"))
    assert (given["pml"], given["btl"]) == ("ob1", "self,vader,tcp")
