"""Wrong input gets one sentence on standard error and the exit code 2, and nothing is started."""

from __future__ import annotations

import pytest

from estimator_sdk.backends.supervised.job_folder.record import Record, write_record
from estimator_sdk.values.home import JobFolder

RUN = "--", "python", "train.py"
JOB = "train-2030-01-31"


@pytest.fixture
def job(home) -> None:
    """A job that has ended."""
    folder = JobFolder.for_job(JOB)
    folder.path.mkdir(parents=True)
    folder.request.write_text("{}")
    write_record(Record(JOB, "Completed", "process", ("algo-1", "algo-2"), 1.0, ended=2.0), folder)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["console", "--port", "65536"], "'65536' is not a port; give one from 1 to 65535, or 0 for a free one"),
        (["console", "--port", "-1"], "'-1' is not a port"),
        (["timeline", JOB, "--seconds", "0"], "seconds must be more than 0 and at most 600, not 0"),
        (["timeline", JOB, "--seconds", "-1"], "seconds must be more than 0 and at most 600, not -1"),
        (["timeline", JOB, "--seconds", "1e9"], "seconds must be more than 0 and at most 600, not 1e+09"),
        (["timeline", JOB, "--output", "no/such/folder/f.json"], "--output 'no/such/folder/f.json' cannot be written"),
        (["rnu", *RUN], "estimator: 'rnu' is not a command; did you mean 'run'?"),
        (["run"], "there is no command; write it after --"),
        (["run", "--"], "there is no command"),
        (["run", "python", "train.py"], "'python' is not an option; write -- before the command"),
        (["run", "--distribted", "2", *RUN], "--distribted is not an option; did you mean '--distributed'?"),
        (["run", "--distributed=2x", *RUN], "'2x' is not a whole number of at least 1"),
        (["run", "--dist", "2", *RUN], "--dist is not an option"),
        (["run", "--distributed", "0", *RUN], "'0' is not a whole number of at least 1"),
        (["run", "--distributed", "-1", *RUN], "'-1' is not a whole number of at least 1"),
        (["run", "--distributed", *RUN], "expected one argument"),
        (["run", "--processes-per-host", "2", *RUN], "add --distributed 1"),
        (["run", "-d", "1", "--processes-per-host", "0", *RUN], "'0' is not a whole number of at least 1"),
        (["run", "--instance-type", "ml.g5.13xlarge", *RUN], "did you mean 'ml.g5.16xlarge'?"),
        (["run", "--backend", "doker", *RUN], "backend 'doker' is not known; did you mean 'docker'?"),
        (["run", "--", "python", "trian.py"], "the script 'trian.py' is not a file in '.'; did you mean 'train.py'?"),
        (["run", "--", "COLOUR=blue", "python", "train.py"], "there is no program 'COLOUR=blue' on PATH"),
        (["run", "--source-dir", "nowhere", "--", "ls"], "source_dir 'nowhere' does not exist"),
        (["run", "--job-name", "my_job", *RUN], "write 'my-job'"),
        (["run", "--job-name", JOB, *RUN], "is already taken by the job in"),
        (["run", "--env", "A", *RUN], "is not of the form NAME=VALUE"),
        (["run", "--env", "A=1", "--env", "A=2", *RUN], "'A' is given twice"),
        (["run", "--input", "train=./nowhere", *RUN], "there is no such file or folder"),
        (["run", "--input", "train=ftp://host/x", *RUN], "ftp://host/x"),
        (["run", "--metric", "loss=(", *RUN], "is not a valid pattern"),
        (["run", "--slurm", "gpu", *RUN], "--slurm 'gpu' is not of the form KEY=VALUE"),
        (["run", "--slurm", "partitoin=gpu", *RUN], "did you mean 'partition'?"),
        (["run", "--slurm", "nice=low", *RUN], "must be a whole number of at least 0, not 'low'"),
        (["run", "--slurm", "exclusive=yes", *RUN], "must be True or False, not 'yes'"),
        (["run", "--slurm", "sbatch_options.time=5", *RUN], "is set by the backend itself"),
        (["run", "-t", "slurm", "--image", "estimator/mpi:py311", *RUN], "which Docker has on this machine"),
        (["run", "--max-run", "0", *RUN], "'0' is not a whole number of at least 1"),
        (["run", "--memory", "much", *RUN], "invalid float value: 'much'"),
        (["run", "--cpus", "2", *RUN], "or use backend='docker'"),
        (["run", "--logs", "some", *RUN], "invalid choice: 'some'"),
        (["run", "--junit", "no/such/folder/f.xml", *RUN], "--junit 'no/such/folder/f.xml' cannot be written"),
        (["run", "--summary", ".", *RUN], "--summary '.' cannot be written"),
        (["run", "--detach", "--junit", "f.xml", *RUN], "--detach does not wait"),
        (["plan", "--detach", *RUN], "--detach is not an option"),
        (["ps", "--backend", "proces"], "did you mean 'process'?"),
        (["ps", "--status", "Done"], "invalid choice: 'Done'"),
        (["ps", "train"], "'train' is an unexpected argument"),
        (["why", "train-2030-01-32"], "did you mean 'train-2030-01-31'?"),
        (["logs", "../jobs"], "'../jobs' is not allowed"),
        (["logs", JOB, "--host", "algo-3"], "did you mean 'algo-2'?"),
        (["logs", JOB, "--rank", "0,x"], "'0,x' is not a rank"),
        (["logs", JOB, "--rank", "9" * 5000], "9' is not a rank"),
        (["logs", JOB, "--grep", "("], "'(' is not a pattern"),
        (["logs", JOB, "--stream", "out"], "invalid choice: 'out'"),
        (["stop"], "the following arguments are required: JOB"),
        (["attach", "nothing-like-it"], "there is no job 'nothing-like-it'"),
        (["checkpoints"], "the following arguments are required: action"),
        (["checkpoints", "list", JOB], "invalid choice: 'list'"),
        (["checkpoints", "ls", JOB], "keeps no checkpoints"),
        (["checkpoints", "ls", JOB, "--uri", "file:///tmp"], "give only one of them"),
        (["checkpoints", "ls", "--uri", "ftp://host"], "--uri 'ftp://host'"),
        (["checkpoints", "pull", JOB], "pull needs --to DIR"),
        (["checkpoints", "pull", JOB, "--to", "."], "--to '.' is not an empty folder"),
        (["checkpoints", "verify", JOB, "--to", "x"], "--to is for pull"),
        (["images", "build"], "one of mpi, tensorflow, pytorch"),
        (["images", "build", "jax"], "invalid choice: 'jax'"),
        (["images", "ls", "mpi"], "ls lists all images"),
        (["doctor", "--needs", "flink"], "--needs 'flink' is not known; Known: docker, horovod"),
        (["doctor", "--probe"], "--probe has no effect without --backend; add --backend slurm"),
        (["doctor", "--backend", "process", "--probe"], "the backend process has no job that tries its machines"),
        (["doctor", "--backend", "kubernetes"], "kubernetes"),
        (["doctor", "some-job", "--backend", "process"], "--backend is about what is installed, and a job was named"),
        (["doctor", "no-such-job"], "no-such-job"),
        (["doctor", "--picture", "a.svg"], "--picture has no effect without a job"),
        (
            ["doctor", "run", "--picture", "no/such/a.svg", "--", "true"],
            "--picture 'no/such/a.svg' cannot be",
        ),
        (["doctor", "run", "--seconds", "1", "--", "true"], "'1' is not a number of seconds from 3 to 3600"),
        (["doctor", "run", "--job-name", "a", "--", "true"], "--job-name has no place in a trial"),
        (["doctor", "run", "--checkpoint-uri", "file:///a", "--", "true"], "--checkpoint-uri has no place in a trial"),
        (["completion", "fish"], "invalid choice: 'fish'"),
    ],
)
def test_wrong_input_is_one_sentence_and_starts_nothing(estimator, home, job, words, sentence):
    code, out, err = estimator(*words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.startswith("estimator") and err.count("\n") == 1
    assert [path.name for path in (home / "jobs").iterdir()] == [JOB]


def test_without_any_job_there_is_no_newest(estimator, home):
    code, out, err = estimator("why")
    assert (code, out) == (2, "")
    assert err == "estimator why: there is no job on this machine yet; start one with `estimator run`\n"
    assert not home.exists()
