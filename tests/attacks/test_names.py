"""Names that a user, a generated file or a store hands over: of channels, of keys, of files.

Each ends in what it names, delivered, or in one sentence before the start; never outside of its folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import uuid
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, ParamValidationError
from estimator_container.agents.channels.channel import ChannelError, ChannelTask
from estimator_container.agents.channels.fetch import fetch
from estimator_container.agents.channels.source import open_source
from estimator_container.agents.channels.stream import stream
from estimator_container.agents.checkpoints.restore import restore
from estimator_container.storage import StorageError, open_store
from hypothesis import example, given
from hypothesis import strategies as st

from estimator_sdk import Estimator, InvalidArgument, Job, TrainingInput
from tests.stores.servers import BUCKET

LISTING = """
import json, os
channel = os.environ["SM_CHANNEL_TRAIN"]
walked = [os.path.join(folder, name) for folder, _, names in os.walk(channel) for name in names]
print(json.dumps({os.path.relpath(path, channel): open(path).read() for path in walked}))
"""

names = st.one_of(
    st.sampled_from(["", ".", "..", "...", "a", "b", "a.b", "~", " ", "%2e%2e", "\\", "\n", "\x7f", "etc", "-rf"]),
    st.sampled_from([".estimator-notes", ".estimator-0123456789abcdef.part", ".estimator", "every-host", "fetched"]),
    st.sampled_from(["n" * 255, "n" * 256, "é" * 127, "é" * 128]),
    st.text(min_size=1, max_size=4),
)
keys = st.lists(names, min_size=1, max_size=3).map("/".join).filter(lambda key: 0 < len(key.encode()) < 900)


@pytest.fixture(scope="module")
def client(localstack_server):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in localstack_server.environment().items():
            patch.setenv(name, value)
        yield localstack_server.client()


def put(client, found) -> tuple[str, dict[str, bytes]]:
    """A prefix with objects of these keys, and what is really in it: a server takes not every key."""
    prefix, taken = uuid.uuid4().hex, {}
    for number, key in enumerate(found):
        with contextlib.suppress(ClientError, ParamValidationError):
            client.put_object(Bucket=BUCKET, Key=f"{prefix}/{key}", Body=f"of {number}".encode())
            taken[key] = f"of {number}".encode()
    return f"s3://{BUCKET}/{prefix}", taken


def files_below(folder: Path) -> dict[str, bytes]:
    walked = [Path(above, name) for above, _, names in os.walk(folder) for name in names]
    return {str(path.relative_to(folder)): path.read_bytes() for path in walked}


def fetched(uri: str, folder: Path) -> dict[str, bytes]:
    channel = ChannelTask("train", uri, str(folder / "train"))
    fetch(channel, open_source(channel), ["algo-1"], "hard", lambda size, objects: None)
    return files_below(folder / "train" / "every-host")


def shared(uri: str, folder: Path) -> dict[str, bytes]:
    channel = ChannelTask("train", uri, str(folder / "train"), is_sharded=True)
    fetch(channel, open_source(channel), ["algo-1", "algo-2"], "hard", lambda size, objects: None)
    return {**files_below(folder / "train" / "algo-1"), **files_below(folder / "train" / "algo-2")}


def restored(uri: str, folder: Path) -> dict[str, bytes]:
    restore(open_store(uri), str(folder / "train"))
    return files_below(folder / "train")


@pytest.mark.parametrize("way", [fetched, shared, restored])
@given(st.lists(keys, min_size=1, max_size=3, unique=True))
@example(["a//b"])
@example(["../../escaped", "a"])
@example(["a", "a/b"])
@example(["a/", "b"])
@example(["a", "a-b", "a/"])
@example(["/a", "a"])
@example([".estimator-notes", "b"])
@example(["n" * 256])
@example(["A", "a"])
@example([""])
@example(["", "a"])
def test_every_key_of_a_bucket_is_delivered_or_said(client, tmp_path_factory, way, found):
    uri, taken = put(client, found)
    folder = tmp_path_factory.mktemp("inside") / "folder"
    folder.mkdir()
    unfinished = {key for key in taken if ".estimator-0123456789abcdef.part" in key.split("/")}
    of_checkpoints = {key for key in taken if key.startswith(".estimator/") and way is restored}
    try:
        delivered = way(uri, folder)
    except (StorageError, ChannelError) as error:
        # The words that an operating system or a client has for it are no help.
        assert len(str(error).splitlines()) == 1 and "Errno" not in str(error) and "cannot be written" not in str(error)
        delivered = None
    assert [path.name for path in folder.parent.iterdir()] == ["folder"]
    if delivered is not None:
        assert delivered == {key: data for key, data in taken.items() if key not in unfinished | of_checkpoints}


@pytest.mark.parametrize("found", [["a//b"], ["a", "a-b", "a/"], ["../up"]])
def test_a_pipe_delivers_each_object_once_or_says_which_it_cannot(client, found):
    uri, _ = put(client, found)
    channel = ChannelTask("train", uri, "", is_piped=True)
    with pytest.raises(StorageError, match="slash"):
        source = open_source(channel)
        b"".join(stream(source.store, source.objects(), channel))


def test_a_key_is_not_read_for_another_whose_slashes_are_more(client):
    uri, _ = put(client, ["a/b"])
    for odd in (f"{uri}/a//b", f"{uri}//a", f"{uri}/a//"):
        with pytest.raises(StorageError, match="slash"):
            open_source(ChannelTask("train", odd, ""))


@pytest.mark.parametrize("found", [["a//b"], ["a", "a/b"], ["n" * 300, "b"]])
def test_a_channel_that_no_folder_can_hold_ends_the_job_before_its_script(client, script, out, found):
    uri, _ = put(client, found)
    failed = script.fail("print('ran')", inputs={"train": uri})
    assert failed.verdict.kind == "channels"
    assert f"the channel 'train' cannot be fetched from {uri}: " in str(failed)
    assert str(failed).partition(" cannot be fetched from ")[2].count(uri) == 2  # it is said of the objects too
    assert not any(word in str(failed) for word in ("who may write", "invalid path", "Errno"))
    assert out(Job.attach(failed.job_name)) == b""


def test_whatever_a_users_own_files_are_called_they_are_all_there(script, out, tmp_path):
    data = tmp_path / "data"
    (data / "a.part").mkdir(parents=True)
    odd = [".estimator-notes", "new\nline", "\udcff", "\x1b[31m", "a.part/..b", "-rf", "é" * 127]
    for name in odd:
        (data / name).write_text("x")
    for distribution in ("FullyReplicated", "ShardedByS3Key"):
        job = script.run(LISTING, inputs={"train": TrainingInput(f"file://{data}", distribution=distribution)})
        assert json.loads(out(job)) == dict.fromkeys(odd, "x")


def test_what_is_no_data_in_a_folder_does_not_hold_up_the_others(tmp_path, monkeypatch):
    (tmp_path / "data" / "loop").mkdir(parents=True)
    (tmp_path / "data" / "file").write_text("x")
    (tmp_path / "data" / "loop" / "up").symlink_to("..")
    os.mkfifo(tmp_path / "data" / "fifo")
    monkeypatch.chdir(tmp_path / "data")  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    assert restored(f"file://{tmp_path}/data", tmp_path / "folder") == {"file": b"x"}
    assert shared(f"file://{tmp_path}/data", tmp_path / "other") == {"file": b"x"}


@pytest.mark.parametrize("target", ["nowhere", "broken", "/nowhere/else"])
def test_a_link_that_leads_to_nothing_is_not_passed_over(tmp_path, target):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_text("x")
    (tmp_path / "data" / "broken").symlink_to(target)
    for way in (shared, restored):
        with pytest.raises(StorageError, match=f"/data/broken is a link to {target}, which does not exist"):
            way(f"file://{tmp_path}/data", tmp_path / way.__name__)


@pytest.mark.parametrize("named", ["folder", "fifo", "file/below", "../secret", "folder/../file"])
def test_a_manifest_names_files_of_its_prefix_and_nothing_else(tmp_path, named):
    (tmp_path / "secret").write_text("x")
    (tmp_path / "data" / "folder").mkdir(parents=True)
    (tmp_path / "data" / "file").write_text("x")
    os.mkfifo(tmp_path / "data" / "fifo")
    (tmp_path / "manifest").write_text(json.dumps([{"prefix": f"file://{tmp_path}/data/"}, "file", named]))
    channel = ChannelTask("train", f"file://{tmp_path}/manifest", str(tmp_path / "train"), is_manifest=True)
    with pytest.raises(StorageError, match=r"listed but not in|does not exist|others below|'\.' or '\.\.'"):
        fetch(channel, open_source(channel), ["algo-1"], "symbolic", lambda size, objects: None)


def test_a_channel_of_the_name_of_anothers_draft_is_another(script, client, out):
    uri, _ = put(client, ["a/x", "b/x"])
    source = "import os; print(*(open(os.environ[f'SM_CHANNEL_{name}'] + '/x').read() for name in ('A', 'A.PART')))"
    job = script.run(source, inputs={"a": f"{uri}/a", "a.part": f"{uri}/b"})
    assert out(job) == b"of 0 of 1\n"


@given(st.text(alphabet=st.sampled_from("aA.-_/ \n\0é"), max_size=5))
@example(".")
@example("..")
@example("estimator-code")
@example("estimator-world")
@example("train")
@example("a" * 65)
def test_a_channel_is_planned_in_a_folder_of_its_own_or_refused(tmp_path_factory, name):
    entry_point = tmp_path_factory.getbasetemp() / "train.py"
    entry_point.touch()
    estimator = Estimator(entry_point=entry_point, backend="process")
    try:
        planned = [each.name for each in estimator.plan({"Train": "s3://bucket/a", name: "s3://bucket/b"}).channels]
    except InvalidArgument as error:
        assert str(error).startswith(f"inputs[{name!r}]")
        return
    assert planned == ["Train", name]
    assert os.path.normpath(f"/data/{name}") == f"/data/{name}" and "/" not in name
    assert name not in ("train", "estimator-code", "estimator-world")
