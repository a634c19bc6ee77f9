import os

import pytest
from estimator_container.host.gpus import listed, near_cpus, share, take
from estimator_container.runtime import machine

LISTING = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-9a3e5e4f-0ef7-4e1c-8d4e-5e2c0d5f6a7b)
"""
DIVIDED = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f)
  MIG 3g.20gb     Device  0: (UUID: MIG-9e5b1d3a-7a1f-5f6e-9d3b-1b2c3d4e5f60)
  MIG 3g.20gb     Device  1: (UUID: MIG-0a1b2c3d-4e5f-5061-8293-a4b5c6d7e8f9)
"""
ADDRESSES = """0, GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f, 00000000:07:00.0
1, GPU-9a3e5e4f-0ef7-4e1c-8d4e-5e2c0d5f6a7b, 00000000:B7:00.0
"""


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    monkeypatch.setattr(machine, "_taken", [])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def test_the_parts_of_a_divided_gpu_stand_for_it():
    assert listed(LISTING + DIVIDED.replace("GPU 0", "GPU 2")) == [
        "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f",
        "GPU-9a3e5e4f-0ef7-4e1c-8d4e-5e2c0d5f6a7b",
        "MIG-9e5b1d3a-7a1f-5f6e-9d3b-1b2c3d4e5f60",
        "MIG-0a1b2c3d-4e5f-5061-8293-a4b5c6d7e8f9",
    ]
    assert listed("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n") == []


@pytest.mark.parametrize("count", range(9))
@pytest.mark.parametrize("shares", range(1, 5))
def test_every_gpu_is_in_one_share(count, shares):
    names = [str(each) for each in range(count)]
    parts = [share(names, number, shares) for number in range(shares)]
    assert [name for part in parts for name in part] == names
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize(
    ("given", "number", "shares", "taken", "count"),
    [
        ("3,4,6,7", 1, 2, "6,7", 2),
        ("GPU-a,GPU-b", 0, 2, "GPU-a", 1),
        ("2,5", 0, 1, "2,5", 2),
        ("", 1, 2, "", 0),
    ],
)
def test_a_host_sees_its_share_alone(monkeypatch, given, number, shares, taken, count):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    take(number, shares)
    assert (os.environ["CUDA_VISIBLE_DEVICES"], machine.gpus()) == (taken, count)


@pytest.fixture
def machine_with(tmp_path, monkeypatch):
    """Makes this machine one whose driver lists these GPUs, at these addresses."""

    def be(listing, addresses=""):
        program = tmp_path / "nvidia-smi"
        program.write_text(
            f"#!/bin/sh\ncase $1 in -L) cat <<'END'\n{listing}END\n;; *) cat <<'END'\n{addresses}END\nesac\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")

    return be


def test_without_a_choice_gpus_are_named_by_their_uuids(machine_with):
    machine_with(LISTING)
    take(1, 2)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-9a3e5e4f-0ef7-4e1c-8d4e-5e2c0d5f6a7b"
    assert machine.gpus() == 1


def test_the_kernel_tells_which_cpus_are_near_a_gpu_and_its_parts(machine_with, tmp_path):
    first, second = listed(LISTING)
    machine_with(DIVIDED + LISTING.splitlines(keepends=True)[1], ADDRESSES)
    for address, cpus in (("0000:07:00.0", "0-3,8"), ("0000:b7:00.0", "4-7")):
        (tmp_path / address).mkdir()
        (tmp_path / address / "local_cpulist").write_text(f"{cpus}\n")
    near_first, near_second = frozenset({0, 1, 2, 3, 8}), frozenset({4, 5, 6, 7})
    parts = dict.fromkeys(listed(DIVIDED), near_first)
    assert (
        near_cpus(str(tmp_path)) == {first: near_first, "0": near_first, second: near_second, "1": near_second} | parts
    )


def test_nothing_is_known_to_be_near_where_the_driver_has_failed(machine_with):
    failed = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    machine_with(failed, failed)
    assert set(near_cpus().values()) == {frozenset()}
