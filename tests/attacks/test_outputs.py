"""What scripts leave behind, and what becomes of it: odd names, files that are none, hosts that leave the same."""

from __future__ import annotations

import os
import signal
import tarfile
from pathlib import Path

import pytest
from estimator_container.contract.agent_events import OutputsFailed
from estimator_container.storage import open_store

from estimator_sdk import Job, JobFailed, JobNotFound
from estimator_sdk.backends.supervised import client
from estimator_sdk.backends.supervised.job_folder.record import Process
from estimator_sdk.telemetry.sentences import sentence_about
from estimator_sdk.values.home import JobFolder
from tests.waiting import SECONDS, remove_in_use, wait_until_gone, wait_until_stopped

EVERYTHING = """
import os, socket
model = os.environ["SM_MODEL_DIR"]
os.chdir(model)
open("weights", "w").write("w")
os.makedirs("deep/er")
os.symlink(os.path.join(model, "weights"), "deep/er/inside")
os.symlink("weights", "relative")
os.symlink(os.path.realpath(model), "whole")
os.link("weights", "again")
os.symlink("/etc", "outside")
os.symlink("../../input", "up")
os.mkfifo("fifo")
socket.socket(socket.AF_UNIX).bind("socket")
open(b"\\xff \\n\\x1b", "w").write("odd")
"""


def test_what_a_script_leaves_comes_back_and_what_an_archive_cannot_hold_is_said(script, tmp_path):
    job = script.run(EVERYTHING)
    assert job.status == "Completed"
    for name in ("'fifo' of algo-1", "'socket'", "'outside' of algo-1, a link to '/etc', outside the folder", "'up'"):
        assert name in job.reason
    folder = job.download(tmp_path / "here")
    found = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    odd = os.fsdecode(b"\xff \n\x1b")
    assert found == {"weights", "deep", "deep/er", "deep/er/inside", "relative", "whole", "again", odd}
    assert (folder / "deep/er/inside").readlink() == Path("../../weights")
    assert (folder / "deep/er/inside").read_text() == (folder / "relative").read_text() == "w"
    assert (folder / "whole").resolve() == folder.resolve() and (folder / "again").samefile(folder / "weights")


TOO_DEEP = """
import os
os.chdir(os.environ["SM_MODEL_DIR"])
open("weights", "w").close()
for name, count in (("d", 300), ("e" * 200, 30)):
    here = os.open(".", os.O_RDONLY)
    for _ in range(count):
        os.mkdir(name)
        os.chdir(name)
    open("leaf", "w").close()
    os.fchdir(here)
"""


def test_a_name_that_is_too_long_or_too_deep_costs_nothing_else(script, tmp_path):
    job = script.run(TOO_DEEP)
    assert (job.status, job.reason.count("… of algo-1, which is too long for a path")) == ("Completed", 1)
    assert "/".join("d" * 300) + "/leaf" in contents(job.folder / "output" / "model.tar.gz")
    assert len(job.reason) < 500
    with pytest.warns(UserWarning, match="d/d/'…, which is too long or too deep for a file$"):
        folder = job.download(tmp_path / "here")
    assert (folder / "weights").exists() and (folder / "d" / "d").is_dir()


def test_a_model_that_is_a_file_where_its_folder_was_is_told(script):
    job = script.run(
        "import os\nmodel = os.environ['SM_MODEL_DIR']\nos.rmdir(model)\nopen(model, 'w').write('weights')"
    )
    assert job.status == "Completed" and "'model' of algo-1, which is a file instead of a folder" in job.reason


def test_a_script_that_removes_its_output_folder_completes(script, tmp_path):
    text = "import os, shutil\nshutil.rmtree(os.environ['SM_OUTPUT_DIR'])"
    job = script.run(text, output_path=f"file://{tmp_path}")
    assert job.status == "Completed"


HOSTS = """
import os
host = os.environ["SM_CURRENT_HOST"]
for folder in (os.environ["SM_MODEL_DIR"], os.environ["SM_OUTPUT_DATA_DIR"]):
    os.chdir(folder)
    os.makedirs("variables")
    open(f"variables/{host}", "w").write(host)
    open("equal", "w").write("same")
    os.symlink(os.path.join(folder, "equal"), "link")
    if folder.endswith("model"):
        open("variables/shared", "w").write(host)
        os.makedirs("kind") if host == "algo-1" else open("kind", "w").close()
"""


def contents(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        return {each.name: archive.extractfile(each).read().decode() for each in archive if each.isfile()}


def test_hosts_without_a_world_lose_no_file_to_each_other(script, tmp_path, capsys):
    estimator = script.estimator(HOSTS, hosts=3, output_path=f"file://{tmp_path / 'out'}")
    job = estimator.fit()
    folder = tmp_path / "out" / job.name / "output"
    names = ("algo-1", "algo-2", "algo-3")
    together = {"equal": "same", **{f"variables/{host}": host for host in names}}
    assert contents(folder / "output.tar.gz") == together
    assert contents(folder / "model.tar.gz") == {**together, "variables/shared": "algo-1"}
    for host in names[1:]:
        alone = {"equal": "same", f"variables/{host}": host, "variables/shared": host, "kind": ""}
        assert contents(folder / "hosts" / host / "model.tar.gz") == alone
    assert sorted(each.name for each in (folder / "hosts").rglob("*.gz")) == ["model.tar.gz"] * 2
    assert "('kind', 'variables/shared'), and model.tar.gz has the first host's" in job.reason
    assert "all that algo-2, algo-3 left is also in hosts/<host>/model.tar.gz" in job.reason
    assert "output.tar.gz" not in job.reason
    assert job.reason in capsys.readouterr().out


ODD = """
import os
folder = os.environ["SM_OUTPUT_INTERMEDIATE_DIR"]
odd = (b"a\\nb", b"\\xff", b"\\x1b[2J", b".estimator-0123456789abcdef.part", b".estimator-probe-0123456789abcdef")
for name in (*odd, b"good", b"e" * 255, b"\\xc3\\xa9 +%", b"deep/.estimator-y/z"):
    path = os.path.join(os.fsencode(folder), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w").write("x")
deep = os.path.join(folder, *["d" * 250] * 5)
os.makedirs(deep)
open(os.path.join(deep, "long"), "w").close()
open(os.path.join(os.environ["SM_MODEL_DIR"], "weights"), "w").write("w")
"""


def test_names_that_no_store_can_hold_are_named_and_the_rest_goes_up(script, tmp_path):
    job = script.run(ODD, output_path=f"file://{tmp_path / 'out'}")
    store = open_store(f"file://{tmp_path / 'out' / job.name / 'output'}")
    keys = {each.key for each in store.list()}
    assert keys == {
        "intermediate/good",
        f"intermediate/{'e' * 255}",
        "intermediate/é +%",
        "intermediate/deep/.estimator-y/z",
        "model.tar.gz",
        "output.tar.gz",
    }
    assert job.status == "Completed" and job.model_data is not None
    for name in (
        r"'intermediate/a\nb'",
        r"'intermediate/\udcff'",
        "'intermediate/.estimator-0123456789abcdef.part'",
        "and 1 more",
    ):
        assert name in job.reason
    assert "not uploaded, and still in the job's folder" in job.reason


NO_FILES = """
import os
folder = os.environ["SM_OUTPUT_INTERMEDIATE_DIR"]
os.chdir(folder)
open("epoch-3", "w").write("weights")
os.symlink(os.path.join(folder, "epoch-3"), "latest")
os.symlink("/etc/hostname", "outside")
os.symlink(".", "whole")
os.mkfifo("fifo")
for _ in range(20):
    os.mkdir("d" * 250)
    os.chdir("d" * 250)
"""


def test_what_is_no_file_is_named_a_link_inside_is_a_copy_and_the_rest_goes_up(script, tmp_path):
    job = script.run(NO_FILES, output_path=f"file://{tmp_path / 'out'}")
    folder = tmp_path / "out" / job.name / "output" / "intermediate"
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"epoch-3": "weights", "latest": "weights"}
    assert not (folder / "latest").is_symlink()
    for words in (
        "'intermediate/fifo' is a device, a FIFO or a socket",
        "'intermediate/outside' is a link to '/etc/hostname', outside the folder",
        "'intermediate/whole' is a link to '.', which is not a file",
        "ddd'… is too long for a path",
    ):
        assert words in job.reason
    assert job.status == "Completed" and job.reason.count("not uploaded, and still in the job's folder") == 1


WAITS = """
import os, time
print("up", flush=True)
open(os.path.join(os.environ["SM_OUTPUT_INTERMEDIATE_DIR"], "early"), "w").write("x")
while not os.path.exists(os.path.join(os.environ["SM_CHANNEL_GO"], "go")):
    time.sleep(0.02)
open(os.path.join(os.environ["SM_MODEL_DIR"], "weights"), "w").write(os.environ["SM_HP_WHO"])
"""


@pytest.fixture
def gate(tmp_path) -> Path:
    folder = tmp_path / "gate"
    folder.mkdir()
    return folder


def test_an_upload_that_fails_is_said_while_the_job_runs_and_ends_well_once_it_can(script, tmp_path, gate):
    blocked = tmp_path / "out"
    blocked.write_text("where the folder of the outputs has to be made")
    arguments = {"output_path": f"file://{blocked}", "hyperparameters": {"who": "me"}}
    job = script.estimator(WAITS, **arguments).fit({"go": f"file://{gate}"}, wait=False)
    said = []

    def hear(host, event):
        if isinstance(event, OutputsFailed):
            said.append(sentence_about(host, event))
            blocked.unlink(missing_ok=True)
            (gate / "go").touch()

    for _ in job._started.blocks(True, hear):
        pass
    assert len(said) == 1 and said[0].startswith("outputs: ") and "early cannot be written" in said[0]
    assert job.wait(SECONDS) == "Completed"
    assert (blocked / job.name / "output" / "intermediate" / "early").read_text() == "x"


def test_archives_go_up_though_the_intermediate_output_cannot(script, tmp_path):
    job_name = f"partly-{os.urandom(4).hex()}"
    place = tmp_path / "out" / job_name / "output"
    place.mkdir(parents=True)
    (place / "intermediate").write_text("in the way")
    text = WAITS.replace("while not", "while False and not")
    with pytest.raises(JobFailed) as failed:
        script.estimator(text, output_path=f"file://{tmp_path / 'out'}", hyperparameters={"who": "me"}).fit(
            job_name=job_name, logs="none"
        )
    assert failed.value.verdict.kind == "outputs" and "intermediate/early cannot be written" in str(failed.value)
    assert Job.attach(job_name).model_data == f"file://{place}/model.tar.gz"


def started(script, gate: Path, name: str, who: str) -> tuple[Job, Process]:
    """A job that runs, and its supervisor."""
    job = script.estimator(WAITS, hyperparameters={"who": who}).fit({"go": f"file://{gate}"}, wait=False, job_name=name)
    assert next(job.logs(stream="stdout", follow=True)).data == b"up\n"
    return job, job._started.record().supervisor


def assert_is_whole(name: str, who: str) -> None:
    job = Job.attach(name)
    assert (job.status, [attempt.number for attempt in job.attempts]) == ("Completed", [1])
    assert contents(job.folder / "output" / "model.tar.gz") == {"weights": who}


def test_a_job_whose_folder_is_removed_ends_and_the_next_of_its_name_is_its_own(script, gate):
    name = f"taken-{os.urandom(4).hex()}"
    first, supervisor = started(script, gate, name, "first")
    remove_in_use(first.folder)
    # It waits for the first one's end, which nothing else brings about.
    second, _ = started(script, gate, name, "second")
    assert not supervisor.is_alive()
    with pytest.raises(JobNotFound, match="now belongs to another job"):
        first.stop()
    (gate / "go").touch()
    assert second.wait(SECONDS) == "Completed"
    assert_is_whole(name, "second")


def test_a_supervisor_that_was_frozen_meanwhile_writes_nothing_into_the_next_job(script, gate, tmp_path, monkeypatch):
    name = f"frozen-{os.urandom(4).hex()}"
    (never := tmp_path / "never").mkdir()
    first, supervisor = started(script, never, name, "first")
    os.kill(supervisor.pid, signal.SIGSTOP)
    wait_until_stopped(supervisor.pid)
    remove_in_use(first.folder)
    monkeypatch.setattr(client, "supervisors", lambda folder: ())  # as in a container, which sees no other processes
    (gate / "go").touch()
    try:
        started(script, gate, name, "second")[0].wait(SECONDS)
        before = tree(JobFolder.for_job(name).path)
    finally:
        os.kill(supervisor.pid, signal.SIGCONT)
    wait_until_gone(supervisor.pid)
    assert tree(JobFolder.for_job(name).path) == before
    assert_is_whole(name, "second")


def tree(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
