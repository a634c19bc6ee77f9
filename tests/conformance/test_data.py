"""D: input channels."""

from __future__ import annotations

import json
import os

import pytest

from estimator_sdk import InvalidArgument, TrainingInput

LISTING = """
import hashlib, json, os
channel = os.environ["SM_CHANNEL_TRAIN"]
found = {}
for folder, _, names in os.walk(channel):
    for name in names:
        path = os.path.join(folder, name)
        found[os.path.relpath(path, channel)] = open(path, "rb").read().hex()
print(json.dumps(found))
"""


@pytest.mark.law("D1")
def test_a_folder_is_complete_on_every_host(script, out, tmp_path):
    data = tmp_path / "digits"
    (data / "deep" / "er").mkdir(parents=True)
    files = {"a.bin": os.urandom(2000), "empty": b"", "deep/er/c.txt": b"c"}
    for name, content in files.items():
        (data / name).write_bytes(content)
    job = script.run(LISTING, hosts=2, inputs={"train": f"file://{data}"})
    for host in ("algo-1", "algo-2"):
        assert json.loads(out(job, host=host)) == {name: content.hex() for name, content in files.items()}


@pytest.mark.law("D1")
def test_one_file_is_a_channel_of_one_file(script, out, tmp_path):
    (tmp_path / "one.csv").write_bytes(b"1,2\n")
    (tmp_path / "other.csv").write_bytes(b"not this one")
    job = script.run(LISTING, inputs={"train": TrainingInput(f"file://{tmp_path / 'one.csv'}")})
    assert json.loads(out(job)) == {"one.csv": b"1,2\n".hex()}


@pytest.mark.law("D1")
def test_several_channels_are_kept_apart(script, out, tmp_path):
    for name in ("train", "test"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "name").write_text(name)
    source = """
import os
for name in ("TRAIN", "TEST"):
    print(open(os.path.join(os.environ[f"SM_CHANNEL_{name}"], "name")).read(), end=" ")
"""
    inputs = {name: f"file://{tmp_path / name}" for name in ("train", "test")}
    assert out(script.run(source, inputs=inputs)) == b"train test "


@pytest.mark.law("D1")
def test_a_missing_place_is_refused_by_name_before_anything_starts(script, home, tmp_path):
    before = list(home.glob("jobs/*"))
    with pytest.raises(InvalidArgument, match=r"inputs\['train'\].*nothing at"):
        script.run(LISTING, inputs={"train": f"file://{tmp_path / 'nowhere'}"})
    assert list(home.glob("jobs/*")) == before
