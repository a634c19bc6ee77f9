import os

import pytest
from estimator_container.host.gpus import listed, share, take
from estimator_container.runtime import machine

LISTING = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-9a3e5e4f-0ef7-4e1c-8d4e-5e2c0d5f6a7b)
"""
DIVIDED = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f)
  MIG 3g.20gb     Device  0: (UUID: MIG-9e5b1d3a-7a1f-5f6e-9d3b-1b2c3d4e5f60)
  MIG 3g.20gb     Device  1: (UUID: MIG-0a1b2c3d-4e5f-5061-8293-a4b5c6d7e8f9)
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


def test_without_a_choice_gpus_are_named_by_their_uuids(monkeypatch, tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{LISTING}END\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    take(1, 2)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-9a3e5e4f-0ef7-4e1c-8d4e-5e2c0d5f6a7b"
    assert machine.gpus() == 1
