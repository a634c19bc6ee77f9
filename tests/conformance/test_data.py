"""D: input channels."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import random
import struct
import subprocess
from pathlib import Path

import pytest

from estimator_sdk import InvalidArgument, Job, JobFailed, TrainingInput
from estimator_sdk.backends.docker import engine
from estimator_sdk.backends.supervised.job import wait_until_gone
from estimator_sdk.spec.job_document import ShuffleConfig
from tests.conformance.jobs import left_of, supervisor_of
from tests.stores.servers import BUCKET
from tests.waiting import SECONDS, kill, wait_for

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
    with pytest.raises(InvalidArgument, match=r"inputs\['train'\].*nothing is at"):
        script.run(LISTING, inputs={"train": f"file://{tmp_path / 'nowhere'}"})
    assert list(home.glob("jobs/*")) == before


FILES = {"a.bin": os.urandom(3000), "deep/er/c.txt": b"c", "deep/z": os.urandom(9000), "empty": b"", "x y/\u00fc": b"u"}
HOSTS = ("algo-1", "algo-2")


def found_by(job, out, host):
    return {name: bytes.fromhex(data) for name, data in json.loads(out(job, host=host)).items()}


@pytest.mark.law("D1")
def test_a_prefix_is_complete_on_every_host(script, out, objects):
    uri = objects.put({**{f"train/{name}": data for name, data in FILES.items()}, "train-not/this": b"no"})
    job = script.run(LISTING, hosts=2, inputs={"train": f"{uri}/train"})
    for host in HOSTS:
        assert found_by(job, out, host) == FILES


@pytest.mark.law("D1")
def test_one_object_is_a_channel_of_one_file(script, out, objects):
    uri = objects.put({"train/one.csv": b"1,2\n", "train/one.csv.old": b"not this one"})
    job = script.run(LISTING, inputs={"train": f"{uri}/train/one.csv"})
    assert found_by(job, out, "algo-1") == {"one.csv": b"1,2\n"}


@pytest.mark.law("D1")
def test_a_prefix_may_end_in_the_middle_of_a_name(script, out, s3_objects):
    uri = s3_objects.put({"train/part-1": b"1", "train/part-2/x": b"2", "train/other": b"not this one"})
    job = script.run(LISTING, inputs={"train": f"{uri}/train/part-"})
    assert found_by(job, out, "algo-1") == {"part-1": b"1", "part-2/x": b"2"}


@pytest.mark.law("D1")
def test_a_manifest_names_the_objects(script, out, objects):
    uri = objects.put({f"train/{name}": data for name, data in FILES.items()})
    manifest = json.dumps([{"prefix": f"{uri}/train/"}, "deep/z", "a.bin"])
    objects.put({"manifest": manifest.encode()})
    given = TrainingInput(f"{uri}/manifest", s3_data_type="ManifestFile")
    job = script.run(LISTING, hosts=2, inputs={"train": given})
    for host in HOSTS:
        assert found_by(job, out, host) == {name: FILES[name] for name in ("deep/z", "a.bin")}


@pytest.mark.law("D3")
def test_credentials_that_expire_while_a_channel_is_fetched_are_said_and_nothing_runs(script, out, s3_objects):
    uri = s3_objects.put({f"train/{name}": data for name, data in FILES.items()})
    s3_objects.proxy.choose = lambda request: "expired" if "train/deep/z" in request.target else None
    failed = script.fail(LISTING, hosts=2, inputs={"train": f"{uri}/train"})
    assert failed.verdict.kind == "channels"
    assert f"{uri}/train/deep/z" in str(failed) and "ExpiredToken" in str(failed) and "sign in again" in str(failed)
    assert out(Job.attach(failed.job_name)) == b""


@pytest.mark.law("D2")
@pytest.mark.parametrize("shuffle", [None, ShuffleConfig(seed=3)])
def test_hosts_share_the_objects_by_bytes(script, out, objects, shuffle):
    sizes = random.Random(1)
    files = {f"{number:02d}/part": os.urandom(sizes.randrange(9000)) for number in range(20)}
    uri = objects.put({f"train/{name}": data for name, data in files.items()})
    given = TrainingInput(f"{uri}/train", distribution="ShardedByS3Key", shuffle_config=shuffle)
    job = script.run(LISTING, hosts=3, inputs={"train": given})
    found = [found_by(job, out, host) for host in (*HOSTS, "algo-3")]
    assert sum(map(len, found)) == len(files)
    assert {name: data for share in found for name, data in share.items()} == files
    weights = [sum(map(len, share.values())) for share in found]
    assert max(weights) - min(weights) <= max(map(len, files.values()))


@pytest.mark.law("D2")
def test_a_host_without_a_share_has_an_empty_folder(script, out, objects):
    uri = objects.put({"train/only": b"1"})
    job = script.run(LISTING, hosts=2, inputs={"train": TrainingInput(f"{uri}/train", distribution="ShardedByS3Key")})
    assert [found_by(job, out, host) for host in HOSTS] == [{"only": b"1"}, {}]


def refused(script, uri, home, **arguments):
    """The sentence of a job that must not start; no host of it has begun anything."""
    failed = script.fail("print('ran')", inputs={"train": TrainingInput(uri, **arguments)})
    assert failed.verdict.kind == "channels"
    job = Job.attach(failed.job_name)
    assert list(job.logs()) == []
    assert not [path for path in job.folder.glob("hosts/*/*") if path.name not in ("output", "input")]
    assert not (job.folder / "channels").exists()
    return str(failed)


@pytest.mark.law("D3")
def test_an_absent_prefix_fails_before_any_host_starts(script, home, s3_objects):
    check_absent_prefix(script, home, s3_objects, "File")


@pytest.mark.law("D3")
@pytest.mark.on_one_machine
def test_an_absent_prefix_of_a_pipe_fails_before_any_host_starts(script, home, s3_objects):
    check_absent_prefix(script, home, s3_objects, "Pipe")


def check_absent_prefix(script, home, s3_objects, mode):
    uri = s3_objects.put({"train/a": b"a"})
    said = refused(script, f"{uri}/tran", home, input_mode=mode)
    assert f"'train' cannot be fetched from {uri}/tran: no object's key starts with" in said


@pytest.mark.law("D3")
def test_a_missing_bucket_fails_before_any_host_starts(script, home, s3_objects):
    said = refused(script, "s3://nobody-made-this/train", home)
    assert "'train' cannot be fetched from s3://nobody-made-this/train: " in said and "bucket" in said


@pytest.mark.law("D3")
def test_a_denied_bucket_fails_before_any_host_starts(script, home, ceph_server, monkeypatch, no_aws):
    for name, value in ceph_server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "stranger")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "stranger-secret")
    said = refused(script, f"s3://{BUCKET}/train", home)
    assert f"'train' cannot be fetched from s3://{BUCKET}/train: " in said and "denies access" in said
    assert "stranger-secret" not in said


@pytest.mark.law("D3")
def test_a_manifest_that_is_none_fails_before_any_host_starts(script, home, objects):
    uri = objects.put({"manifest": b"a,b"})
    said = refused(script, f"{uri}/manifest", home, s3_data_type="ManifestFile")
    assert f"the manifest {uri}/manifest is not valid JSON" in said


@pytest.mark.law("D3")
def test_a_manifest_with_an_object_that_is_not_there_fails_before_any_host_starts(script, home, objects):
    uri = objects.put({"a": b"a"})
    objects.put({"manifest": json.dumps([{"prefix": f"{uri}/"}, "a", "b"]).encode()})
    assert f"{uri}/b does not exist" in refused(script, f"{uri}/manifest", home, s3_data_type="ManifestFile")


@pytest.mark.law("D3")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"input_mode": "FastFile"}, "input_mode 'FastFile'"),
        ({"s3_data_type": "AugmentedManifestFile"}, "s3_data_type 'AugmentedManifestFile'"),
        ({"record_wrapping": "RecordIO"}, "record_wrapping 'RecordIO'"),
        ({"shuffle_config": ShuffleConfig(seed=1)}, "shuffle_config"),
        ({"instance_groups": ["a"]}, "instance_groups"),
    ],
)
def test_what_cannot_be_had_here_is_refused_by_name(script, home, arguments, words):
    before = list(home.glob("jobs/*"))
    with pytest.raises(InvalidArgument, match=r"inputs\['train'\] asks for ") as raised:
        script.run(LISTING, inputs={"train": TrainingInput("s3://bucket/train", **arguments)})
    assert words in str(raised.value)
    assert list(home.glob("jobs/*")) == before


PIPED = """
import json, os
channel = os.environ["SM_CHANNEL_TRAIN"]
mode = json.loads(os.environ["SM_INPUT_DATA_CONFIG"])["train"]["TrainingInputMode"]
found = []
for epoch in range(EPOCHS):
    found.append(open(f"{channel}_{epoch}", "rb").read().hex())
    assert os.path.exists(f"{channel}_{epoch + 1}")
print(json.dumps([mode, found]))
"""


def piped(job, out, host):
    mode, found = json.loads(out(job, host=host))
    assert mode == "Pipe"
    return [bytes.fromhex(epoch) for epoch in found]


@pytest.mark.law("D4")
@pytest.mark.on_one_machine
def test_a_pipe_delivers_the_bytes_in_the_order_of_the_keys_each_epoch(script, out, objects):
    uri = objects.put({f"train/{name}": data for name, data in FILES.items()})
    given = TrainingInput(f"{uri}/train", input_mode="Pipe")
    job = script.run(PIPED.replace("EPOCHS", "3"), hosts=2, inputs={"train": given})
    for host in HOSTS:
        assert piped(job, out, host) == [b"".join(FILES[name] for name in sorted(FILES))] * 3
    assert not [path for path in job.folder.rglob("train_*") if path.is_fifo()]


@pytest.mark.law("D4")
@pytest.mark.on_one_machine
def test_a_pipe_delivers_objects_larger_than_what_it_reads_ahead(script, out, s3_objects):
    files = {"large": os.urandom(45_000_000), "next": b"end"}
    uri = s3_objects.put(files)
    source = """
import hashlib, os
for epoch in range(2):
    print(hashlib.sha256(open(os.environ["SM_CHANNEL_TRAIN"] + f"_{epoch}", "rb").read()).hexdigest())
"""
    job = script.run(source, inputs={"train": TrainingInput(uri, input_mode="Pipe")})
    assert out(job).decode().split() == [hashlib.sha256(files["large"] + b"end").hexdigest()] * 2


@pytest.mark.law("D4")
@pytest.mark.on_one_machine
def test_a_shuffled_pipe_has_the_same_objects_in_another_order_each_epoch(script, out, objects):
    uri = objects.put({f"{number:02d}": bytes([number]) for number in range(40)})
    given = TrainingInput(uri, input_mode="Pipe", shuffle_config=ShuffleConfig(seed=5))
    first, second = (
        piped(script.run(PIPED.replace("EPOCHS", "2"), inputs={"train": given}), out, "algo-1") for _ in range(2)
    )
    assert first == second
    assert first[0] != first[1]
    assert [sorted(epoch) for epoch in first] == [list(range(40))] * 2


@pytest.mark.law("D2", "D4")
@pytest.mark.on_one_machine
def test_hosts_share_what_a_pipe_delivers_anew_each_epoch(script, out, objects):
    uri = objects.put({f"{number:02d}": bytes([number]) for number in range(40)})
    given = TrainingInput(uri, input_mode="Pipe", distribution="ShardedByS3Key", shuffle_config=ShuffleConfig(seed=5))
    job = script.run(PIPED.replace("EPOCHS", "2"), hosts=2, inputs={"train": given})
    one, two = (piped(job, out, host) for host in HOSTS)
    for epoch in range(2):
        assert sorted(one[epoch] + two[epoch]) == list(range(40))
        assert len(one[epoch]) == len(two[epoch]) == 20
    assert set(one[0]) != set(one[1])


@pytest.mark.law("D4")
@pytest.mark.on_one_machine
def test_a_pipe_unpacks_and_wraps(script, out, objects):
    uri = objects.put({"a": gzip.compress(b"first") + gzip.compress(b" member"), "b": gzip.compress(b"")})
    given = TrainingInput(uri, input_mode="Pipe", compression="Gzip", record_wrapping="RecordIO")
    job = script.run(PIPED.replace("EPOCHS", "1"), inputs={"train": given})
    record = struct.pack("<II", 0xCED7230A, 12) + b"first member" + struct.pack("<II", 0xCED7230A, 0)
    assert piped(job, out, "algo-1") == [record]


@pytest.mark.law("D4")
@pytest.mark.on_one_machine
def test_a_script_that_stops_reading_early_gets_the_next_epoch(script, out, objects):
    uri = objects.put({"a": bytes(3_000_000), "b": b"b"})
    source = """
import os
channel = os.environ["SM_CHANNEL_TRAIN"]
with open(f"{channel}_0", "rb") as pipe:
    print(len(pipe.read(10)))
print(len(open(f"{channel}_1", "rb").read()))
"""
    job = script.run(source, inputs={"train": TrainingInput(uri, input_mode="Pipe")})
    assert out(job).split() == [b"10", b"3000001"]


@pytest.mark.law("D4")
@pytest.mark.on_one_machine
def test_a_pipe_that_fails_in_the_middle_fails_the_job_and_ends_no_epoch(script, objects):
    uri = objects.put({"a": gzip.compress(b"a"), "b": b"no gzip file"})
    given = TrainingInput(uri, input_mode="Pipe", compression="Gzip")
    failed = script.fail(PIPED.replace("EPOCHS", "1") + "print('an end')", inputs={"train": given})
    assert failed.verdict.kind == "channels"
    assert f"{uri}/b is not a complete gzip file" in str(failed)
    assert list(Job.attach(failed.job_name).logs(stream="stdout")) == []


@pytest.mark.law("D5")
@pytest.mark.parametrize("distribution", ["FullyReplicated", "ShardedByS3Key"])
def test_each_object_is_fetched_once_and_written_once(script, out, s3_objects, distribution):
    uri = s3_objects.put({f"train/{name}": data for name, data in FILES.items()})
    s3_objects.proxy.requests.clear()
    source = "import os; print(sum(1 for _ in os.walk(os.environ['SM_CHANNEL_TRAIN'])))"
    job = script.run(source, hosts=2, inputs={"train": TrainingInput(f"{uri}/train", distribution=distribution)})
    assert len(s3_objects.gets()) == len(FILES)
    assert not (job.folder / "channels").exists()


@pytest.mark.law("D5")
def test_hosts_have_the_very_same_files(script, out, s3_objects):
    uri = s3_objects.put({"train/a": b"a"})
    source = "import os; found = os.stat(os.environ['SM_CHANNEL_TRAIN'] + '/a'); print(found.st_dev, found.st_ino)"
    job = script.run(source, hosts=2, inputs={"train": f"{uri}/train"})
    assert out(job, host="algo-1") == out(job, host="algo-2")


@pytest.mark.law("D1")
def test_a_store_that_is_away_for_a_while_delays_the_channel_and_no_more(script, out, s3_objects):
    uri = s3_objects.put({f"train/{name}": data for name, data in FILES.items()})
    s3_objects.proxy.choose = lambda request: "cut" if request.number % 3 else None
    job = script.run(LISTING, inputs={"train": f"{uri}/train"})
    assert found_by(job, out, "algo-1") == FILES


@pytest.mark.law("D1", "E4")
def test_a_stop_while_fetching_leaves_nothing(script, s3_objects):
    uri = s3_objects.put({"train/a": b"a", "train/b": b"b"})
    s3_objects.proxy.choose = lambda request: "stall" if request.target.partition("?")[0].endswith("/b") else None
    job = script.estimator("print('ran')").fit({"train": f"{uri}/train"}, wait=False, logs="none")
    assert s3_objects.proxy.stalled.wait(SECONDS)
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    assert not (job.folder / "channels").exists()
    assert list(job.logs()) == []


@pytest.mark.law("E3")
def test_a_supervisor_that_is_killed_while_fetching_leaves_nothing(script, s3_objects):
    uri = s3_objects.put({"whole/a": b"a", "train/a": b"a", "train/b": b"b"})
    s3_objects.proxy.choose = lambda request: "stall" if request.target.partition("?")[0].endswith("/b") else None
    inputs = {"train": f"{uri}/train", "whole": f"{uri}/whole"}
    job = script.estimator("print('ran')").fit(inputs, wait=False, logs="none")
    channels = job.folder / "channels"
    assert s3_objects.proxy.stalled.wait(SECONDS)
    wait_for(lambda: (channels / "whole").exists() and (channels / "train~part").exists())
    kill(supervisor_of(job))
    with pytest.raises(JobFailed, match="supervisor"):
        job.wait(SECONDS)  # Slurm is not asked more often than every ten seconds
    assert left_of(job) == []
    wait_for(lambda: not [*channels.iterdir()])  # who removes it may have had no time so far


@pytest.mark.law("D1")
@pytest.mark.on_one_machine
def test_a_disk_too_small_for_a_channel_fails_before_any_host_starts(script, home, s3_objects, tmp_path, monkeypatch):
    uri = s3_objects.put({f"train/{number}": os.urandom(1_000_000) for number in range(6)})
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", str(disk)], check=True)
    try:
        monkeypatch.setenv("ESTIMATOR_HOME", str(disk))
        said = refused(script, f"{uri}/train", home)
        assert f"'train' cannot be fetched from {uri}/train: no space is left for {disk}" in said
        assert not [path for path in disk.rglob("*") if path.is_file() and path.stat().st_size > 500_000]
    finally:
        wait_until_gone()
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.law("D3", "A2")
def test_credentials_that_are_not_there_fail_before_any_host_starts(script, home, no_aws, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert "'train' cannot be fetched from s3://bucket/train: " in refused(script, "s3://bucket/train", home)


def lose_a_host(job, backend):
    """Kill the first host of the first attempt, as a machine is lost."""
    if backend == "docker":
        engine.connect().containers.get(f"{job.name}-1-algo-1").kill()
        return
    mark = f"SAGEMAKER_BASE_DIR={job.folder}/hosts/algo-1".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            of_the_host = mark in (process / "environ").read_bytes().split(b"\0")
            command = (process / "cmdline").read_bytes()
            if of_the_host and command.endswith(b"estimator_container\0train\0") and not command.startswith(b"srun"):
                kill(int(process.name))


@pytest.mark.law("D4", "D5")
@pytest.mark.on_one_machine
def test_another_attempt_has_the_channels_again_and_fetches_no_file_twice(script, out, backend, s3_objects, tmp_path):
    uri = s3_objects.put({"train/a": b"a", "train/b": b"b", "piped/a": b"c"})
    gate = tmp_path / "gate"
    gate.mkdir()
    source = """
import os, time
piped = open(os.environ["SM_CHANNEL_PIPED"] + "_0").read()
print(sorted(os.listdir(os.environ["SM_CHANNEL_TRAIN"])), piped, flush=True)
while not os.path.exists(os.environ["SM_CHANNEL_GATE"] + "/open"):
    time.sleep(0.05)
"""
    piped = TrainingInput(f"{uri}/piped", input_mode="Pipe")
    inputs = {"train": f"{uri}/train", "piped": piped, "gate": f"file://{gate}"}
    job = script.estimator(source, max_retry_attempts=1).fit(inputs, wait=False, logs="none")
    next(job.logs(stream="stdout", follow=True))
    lose_a_host(job, backend)
    (gate / "open").touch()
    assert job.wait(SECONDS) == "Completed"
    assert out(job).splitlines() == [b"['a', 'b'] c"] * 2
    assert sorted(key for key in s3_objects.gets() if key.startswith("train/")) == ["train/a", "train/b"]
