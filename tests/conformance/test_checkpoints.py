"""K: checkpoints in a store, and E8: another attempt goes on from there."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from estimator_container.agents.checkpoints.restore import restore, snapshots
from estimator_container.storage import Store, open_store

from estimator_sdk import Job, JobFailed
from tests.chaos import writer
from tests.conformance.by_turns import EXECUTORS, POOL
from tests.conformance.jobs import (
    agent_of,
    base_directory,
    events,
    kill_host,
    left_of,
    supervisor_of,
    tell,
    wait_until_up,
)
from tests.stores.fault_proxy import FaultProxy
from tests.stores.servers import BUCKET, Server
from tests.waiting import SECONDS, kill, wait_for

PRELUDE = """
import hashlib, os, pathlib, signal, sys, time
checkpoints = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"])
def wait_for(name):
    while not pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], name).exists():
        time.sleep(0.01)
def show():
    for path in sorted(path for path in checkpoints.rglob("*") if path.is_file()):
        print(path.relative_to(checkpoints), path.read_text(), flush=True)
"""


@dataclass
class Place:
    """Where checkpoints are kept, and how to look there without the toolkit's help."""

    uri: str
    folder: Path
    proxy: FaultProxy | None = None

    @property
    def store(self) -> Store:
        return open_store(self.uri, retry_seconds=10)

    def restored(self) -> dict[str, str]:
        """The files of the newest whole snapshot."""
        target = self.folder / uuid.uuid4().hex
        target.mkdir()
        restore(self.store, str(target))
        return {
            str(path.relative_to(target)): path.read_text("latin-1") for path in target.rglob("*") if path.is_file()
        }

    def holds(self, **files: str) -> Callable[[], bool]:
        return lambda: bool(list(snapshots(self.store))) and self.restored() == files


@pytest.fixture
def on_files(tmp_path: Path) -> Place:
    folder = tmp_path / "looked-at"
    folder.mkdir()
    return Place(f"file://{tmp_path / 'store'}", folder)


@pytest.fixture
def on_localstack(
    localstack_server: Server, on_files: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    proxy = FaultProxy(localstack_server.endpoint)
    for name, value in {**localstack_server.environment(), "AWS_ENDPOINT_URL_S3": proxy.endpoint}.items():
        monkeypatch.setenv(name, value)
    yield Place(f"s3://{BUCKET}/{uuid.uuid4().hex}", on_files.folder, proxy)
    proxy.close()


@pytest.fixture
def within_reach(request: pytest.FixtureRequest, backend: str) -> Place:
    """One that the hosts reach, wherever they are."""
    found: Place = request.getfixturevalue("on_localstack" if backend == POOL else "on_files")
    return found


@pytest.fixture(params=["file", "localstack"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue("on_files" if request.param == "file" else "on_localstack")
    return found


WRITES = f"""{PRELUDE}
if os.environ.get("RANK", "0") != "0":
    print("up", flush=True)
    wait_for("end")
    sys.exit()
(checkpoints / "closed").write_text("1")
(checkpoints / ".draft").mkdir()
(checkpoints / ".draft" / "model").write_text("22")
(checkpoints / ".draft").rename(checkpoints / "renamed")
still_open = (checkpoints / "open").open("w")
print("half", file=still_open, flush=True)
print("up", flush=True)
wait_for("go")
(checkpoints / "closed").write_text("333")
wait_for("end")
"""


@pytest.mark.law("K1")
def test_what_is_closed_or_renamed_into_place_is_in_the_store_soon(script, place):
    job = script.estimator(WRITES, processes=2, checkpoint_s3_uri=place.uri).fit(wait=False)
    wait_until_up(job, 2)
    wait_for(place.holds(**{"closed": "1", "renamed/model": "22"}), SECONDS)
    tell(job, "go")
    wait_for(place.holds(**{"closed": "333", "renamed/model": "22"}), SECONDS)
    tell(job, "end")
    assert job.wait(SECONDS) == "Completed"
    assert place.restored() == {"closed": "333", "renamed/model": "22", "open": "half\n"}
    assert job.reason == ""


@pytest.mark.law("K1")
def test_an_agent_that_is_killed_is_followed_by_another(script, place):
    job = script.estimator(WRITES, processes=1, checkpoint_s3_uri=place.uri).fit(wait=False)
    wait_until_up(job, 1)
    wait_for(place.holds(**{"closed": "1", "renamed/model": "22"}), SECONDS)
    killed = agent_of(job)
    kill(killed)
    tell(job, "go")
    wait_for(place.holds(**{"closed": "333", "renamed/model": "22"}), SECONDS)
    assert agent_of(job) != killed
    tell(job, "end")
    assert job.wait(SECONDS) == "Completed"
    assert job.reason == ""


CHAOS = """
import os, pathlib, sys, time, writer
folder = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"])
if os.environ.get("RANK", "0") == "0":
    print("restored", writer.newest_step(folder), writer.problems(folder), flush=True)
    print("up", flush=True)
    writer.main(folder, "seed")
print("up", flush=True)
time.sleep(600)
"""


@pytest.mark.law("K2", "E8")
def test_every_attempt_begins_with_one_whole_snapshot_and_the_newest(script, out, place):
    chance = random.Random(20261121)
    source = {"train.py": CHAOS, "writer.py": Path(writer.__file__).read_text()}
    estimator = script.estimator(source, hosts=2, processes=1, checkpoint_s3_uri=place.uri, max_retry_attempts=3)
    job = estimator.fit(wait=False)
    acknowledged = []
    for attempt in (1, 2, 3, 4):
        wait_until_up_in(job, attempt)
        wait_for(lambda attempt=attempt: events(job, "checkpoint_published", attempt=attempt), SECONDS)
        time.sleep(chance.uniform(0.0, 0.3))
        if attempt < 4:
            kill_host(job, chance.choice(["algo-1", "algo-2"]))
        else:
            job.stop()
    assert job.wait(SECONDS) == "Stopped"
    said = [line.split(" ", 2) for line in out(job, rank=0).decode().splitlines() if line != "up"]
    assert [problems for _, _, problems in said] == ["[]"] * 4
    steps = [int(step) for _, step, _ in said]
    assert steps[0] == 0 and steps == sorted(steps) and steps[-1] > 0  # the first may have published a draft alone
    for attempt in (2, 3, 4):
        (restored,) = events(job, "checkpoint_restored", attempt=attempt)
        acknowledged += [event["snapshot"] for event in events(job, "checkpoint_published", attempt=attempt - 1)]
        assert restored["base"] >= max(acknowledged)
        assert restored["passed_over"] == []
    # The attempts' logs are kept apart, and shown one after the other.
    assert len(job.log_files) == 8
    assert len({path.read_bytes() for path in job.log_files}) == 8
    assert [event["attempt"] for event in events(job, "attempt_failed", attempt=2)] == [2]
    # So is why each ended.
    *failed, last = job.attempts
    assert [(each.number, each.verdict.kind) for each in failed] == [
        (1, "host_lost"),
        (2, "host_lost"),
        (3, "host_lost"),
    ]
    assert (last.number, last.verdict) == (4, None)
    times = [time for each in job.attempts for time in (each.began, each.ended)]
    assert times == sorted(times)


def wait_until_up_in(job, attempt: int) -> None:
    wait_for(lambda: job._started.record().attempt == attempt, SECONDS)
    wait_for(lambda: sum(line.data == b"up\n" for line in job.logs(stream="stdout")) >= 2 * attempt, SECONDS)


@pytest.mark.law("E8")
def test_a_script_that_fails_is_not_tried_again(script, within_reach):
    source = f"{PRELUDE}\n(checkpoints / 'model').write_text('1')\nsys.exit(3)"
    failed = script.fail(source, processes=1, checkpoint_s3_uri=within_reach.uri, max_retry_attempts=2)
    assert failed.verdict.exit_code == 3
    assert Job.attach(failed.job_name)._started.record().attempt == 1


SAVES = f"{PRELUDE}\n(checkpoints / 'step').mkdir()\n(checkpoints / 'step' / 'model').write_text('1')"
SHOWS = f"{PRELUDE}\nshow()"


@pytest.mark.law("K3")
@pytest.mark.parametrize("processes", [None, 2])
def test_a_new_job_has_the_newest_snapshot_on_every_host(script, out, place, processes):
    script.run(SAVES, hosts=2, checkpoint_s3_uri=place.uri)
    job = script.run(SHOWS, hosts=3, processes=processes, checkpoint_s3_uri=place.uri)
    for host in ("algo-1", "algo-2", "algo-3"):
        assert out(job, host=host) == b"step/model 1\n" * (processes or 1)


@pytest.fixture
def elsewhere(backend, request) -> dict[str, str]:
    """The arguments that choose the other backend."""
    if backend == "docker":
        return {"backend": "process", "image_uri": None}
    return {"backend": "docker", "image_uri": request.getfixturevalue("image_of_the_other")}


@pytest.fixture(scope="session")
def image_of_the_other() -> str:
    import sys

    from estimator_sdk.backends.docker import engine
    from estimator_sdk.backends.docker.images import build, catalogue

    build.ensure(engine.connect(), catalogue.MPI.name, sys.stderr)
    return catalogue.MPI.name


@pytest.mark.law("K3")
def test_after_the_supervisors_death_nothing_is_left_and_the_other_backend_goes_on(script, out, place, elsewhere):
    job = script.estimator(WRITES, hosts=2, processes=1, checkpoint_s3_uri=place.uri).fit(wait=False)
    wait_until_up(job, 2)
    # Or a half-written file, which nobody vouches for after a death, would keep back what is whole.
    wait_for(place.holds(**{"closed": "1", "renamed/model": "22"}), SECONDS)
    wait_for(lambda: events(job, "checkpoint_published"))  # which is told after it can be seen
    acknowledged = max(event["snapshot"] for event in events(job, "checkpoint_published"))
    kill(supervisor_of(job))
    with pytest.raises(JobFailed, match="supervisor"):
        job.wait(SECONDS)
    assert left_of(job, SECONDS) == []
    job = script.run(SHOWS, checkpoint_s3_uri=place.uri, **elsewhere)
    (restored,) = events(job, "checkpoint_restored")
    assert restored["base"] >= acknowledged
    shown = out(job).decode().splitlines()
    assert {"closed 1", "renamed/model 22"} <= set(shown)


@pytest.mark.law("K4")
@pytest.mark.parametrize("first", ["the stale one", "the newer one"])
def test_a_stale_writer_cannot_publish_over_a_newer_one(script, out, place, first):
    source = f"{PRELUDE}\n(checkpoints / 'model').write_text(sys.argv[2])\nprint('up', flush=True)\nwait_for('go')\n"
    source += "(checkpoints / 'model').write_text(sys.argv[2] + ' again')\nwait_for('end')"
    arguments = {"processes": 1, "checkpoint_s3_uri": place.uri}
    stale = script.estimator(source, hyperparameters={"name": "stale"}, **arguments).fit(wait=False)
    wait_until_up(stale, 1)
    wait_for(place.holds(model="stale"), SECONDS)
    newer = script.estimator(source, hyperparameters={"name": "newer"}, **arguments).fit(wait=False)
    wait_until_up(newer, 1)
    wait_for(place.holds(model="newer"), SECONDS)
    for job in (stale, newer) if first == "the stale one" else (newer, stale):
        tell(job, "go")
        told = "checkpoint_failed" if job is stale else "checkpoint_published"
        count = 1 if job is stale else 2
        wait_for(lambda job=job, told=told, count=count: len(events(job, told)) >= count, SECONDS)
    for job in (newer, stale):
        tell(job, "end")
        assert job.wait(SECONDS) == "Completed"
    claimed = 2 if stale.backend == EXECUTORS else 1  # there, who restores is not who publishes
    assert f"an attempt later than {claimed}" in stale.reason and newer.reason == ""
    assert out(script.run(SHOWS, checkpoint_s3_uri=place.uri)) == b"model newer again\n"


@pytest.mark.law("K1")
@pytest.mark.parametrize("keep", [None, 1])
def test_as_many_snapshots_stay_as_are_to_be_kept(script, within_reach, keep):
    place = within_reach
    for number in range(4):
        source = f"{PRELUDE}\n(checkpoints / 'model').write_text('{number}')"
        script.run(source, checkpoint_s3_uri=place.uri, checkpoint_keep=keep)
    assert len(snapshots(place.store)) == (keep or 3)
    assert place.restored() == {"model": "3"}


@pytest.mark.law("K5")
def test_another_hosts_files_never_reach_the_store(script, within_reach):
    place = within_reach
    source = f"{PRELUDE}\n(checkpoints / os.environ['SM_CURRENT_HOST']).write_text('1')"
    script.run(source, hosts=3, checkpoint_s3_uri=place.uri)
    assert place.restored() == {"algo-1": "1"}
    assert not [each.key for each in place.store.list() if "algo" in each.key]


@pytest.mark.law("K5")
def test_a_local_delete_never_deletes_the_last_snapshot(script, out, within_reach):
    place = within_reach
    source = f"""{PRELUDE}
import shutil
(checkpoints / "model").write_text("1")
print("up", flush=True)
wait_for("go")
shutil.rmtree(checkpoints, ignore_errors=True)
"""
    job = script.estimator(source, checkpoint_s3_uri=place.uri).fit(wait=False)
    wait_for(place.holds(model="1"), SECONDS)
    tell(job, "go")
    assert job.wait(SECONDS) == "Completed"
    assert out(script.run(SHOWS, checkpoint_s3_uri=place.uri)) == b"model 1\n"


@pytest.mark.law("K6")
def test_a_plain_tree_is_restored_as_it_is_and_left_as_it_is(script, out, place):
    plain = {"model": b"1", "steps/3/model": b"33"}
    for key, data in plain.items():
        place.store.write(key, data)
    job = script.run(f"{SHOWS}\n(checkpoints / 'new').write_text('x')", hosts=2, checkpoint_s3_uri=place.uri)
    for host in ("algo-1", "algo-2"):
        assert out(job, host=host) == b"model 1\nsteps/3/model 33\n"
    assert {key: place.store.read(key) for key in plain} == plain
    assert place.restored() == {"model": "1", "steps/3/model": "33", "new": "x"}


@pytest.mark.law("K7")
def test_while_the_store_is_away_training_goes_on(script, on_localstack):
    source = f"""{PRELUDE}
print("up", flush=True)
wait_for("go")
for step in range(2):
    (checkpoints / "model").write_text(str(step))
    print("step", step, flush=True)
wait_for("end")
"""
    place = on_localstack
    job = script.estimator(source, checkpoint_s3_uri=place.uri, processes=1).fit(wait=False)
    wait_until_up(job, 1)
    place.proxy.choose = lambda request: "cut"
    tell(job, "go")
    lines = job.logs(stream="stdout", follow=True)
    assert [next(lines).data for _ in range(3)] == [b"up\n", b"step 0\n", b"step 1\n"]
    # Where the disk is so busy that the file stays open for 5 s, the first event says that it is waited for.
    wait_for(lambda: [each for each in events(job, "checkpoint_lag") if each["bytes"] == 1], SECONDS)
    assert all(each["seconds"] >= 5 for each in events(job, "checkpoint_lag"))
    assert events(job, "checkpoint_published") == []
    place.proxy.choose = lambda request: None
    wait_for(place.holds(model="1"), SECONDS)
    tell(job, "end")
    assert job.wait(SECONDS) == "Completed"
    assert job.reason == ""


@pytest.mark.law("K7")
def test_when_credentials_expire_training_goes_on_and_fresh_ones_are_used(script, on_localstack, monkeypatch, tmp_path):
    place = on_localstack
    sign_in(monkeypatch, tmp_path, "first")
    job = script.estimator(WRITES, checkpoint_s3_uri=place.uri, processes=1).fit(wait=False)
    wait_until_up(job, 1)
    wait_for(place.holds(**{"closed": "1", "renamed/model": "22"}), SECONDS)
    place.proxy.choose = lambda request: "expired" if request.access_key == "first" else None
    tell(job, "go")
    wait_for(lambda: events(job, "checkpoint_failed"), SECONDS)
    reason = events(job, "checkpoint_failed")[0]["reason"]
    assert f"{place.uri}/.estimator/" in reason and "ExpiredToken: The provided token has expired" in reason
    assert "sign in again" in reason
    assert job.status == "InProgress"
    sign_in(monkeypatch, tmp_path, "second")
    wait_for(place.holds(**{"closed": "333", "renamed/model": "22"}), SECONDS)
    tell(job, "end")
    assert job.wait(SECONDS) == "Completed"
    assert job.reason == ""


def sign_in(monkeypatch: pytest.MonkeyPatch, folder: Path, access_key: str) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    keys = f"aws_access_key_id = {access_key}\naws_secret_access_key = secret\naws_session_token = token\n"
    (folder / "new").write_text(f"[default]\n{keys}")
    (folder / "new").rename(folder / "AWS_SHARED_CREDENTIALS_FILE")


@pytest.mark.law("K8")
def test_what_expired_credentials_leave_unpublished_is_said(script, on_localstack, monkeypatch, tmp_path):
    place = on_localstack
    sign_in(monkeypatch, tmp_path, "first")
    job = script.estimator(LAST_WORDS, processes=1, checkpoint_s3_uri=place.uri, stop_timeout=10).fit(wait=False)
    wait_until_up(job, 1)
    wait_for(place.holds(model="first"), SECONDS)
    place.proxy.choose = lambda request: "expired" if request.access_key == "first" else None
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    kept = base_directory(job, "algo-1") / "checkpoints"
    assert f"10 bytes of checkpoints are in {kept}, not in {place.uri}" in job.reason
    assert "ExpiredToken" in job.reason and "sign in again" in job.reason
    assert {path.name: path.read_text() for path in kept.iterdir()} == {"model": "final", "last": "final"}
    sign_in(monkeypatch, tmp_path, "second")
    assert place.restored() == {"model": "first"}


LAST_WORDS = f"""{PRELUDE}
def save(signum, frame):
    for name in ("last", "model"):
        (checkpoints / name).write_text("final")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
(checkpoints / "model").write_text("first")
print("up", flush=True)
while True: time.sleep(0.01)
"""


@pytest.mark.law("K8")
def test_what_is_saved_after_sigterm_is_published_inside_the_grace_period(script, place):
    if place.proxy:
        place.proxy.choose = lambda request: time.sleep(0.2)
    job = script.estimator(LAST_WORDS, hosts=2, processes=1, checkpoint_s3_uri=place.uri).fit(wait=False)
    wait_until_up(job, 2)
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    assert place.restored() == {"model": "final", "last": "final"}
    assert job.reason == "stopped by the user"


@pytest.mark.law("K8")
def test_what_cannot_be_published_in_time_is_said(script, on_localstack):
    place = on_localstack
    job = script.estimator(LAST_WORDS, processes=1, checkpoint_s3_uri=place.uri, stop_timeout=10).fit(wait=False)
    wait_until_up(job, 1)
    wait_for(place.holds(model="first"), SECONDS)
    place.proxy.choose = lambda request: "stall"
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    place.proxy.choose = lambda request: None
    place.proxy.release()
    assert "10 bytes of checkpoints are in" in job.reason and place.uri in job.reason
    kept = base_directory(job, "algo-1") / "checkpoints"
    assert {path.name: path.read_text() for path in kept.iterdir()} == {"model": "final", "last": "final"}
    assert place.restored() == {"model": "first"}
