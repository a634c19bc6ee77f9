"""What is asked of a job and makes no sense: a sentence, and nothing done."""

from types import SimpleNamespace

import numpy as np
import pytest

from estimator_sdk import InvalidArgument, list_jobs
from estimator_sdk.job import asked
from estimator_sdk.job.job import Job
from estimator_sdk.telemetry.machines import Question
from estimator_sdk.telemetry.metrics import metric_definitions


class OneJob:
    """A job that has completed, of two hosts, which have left nothing."""

    name = "a"

    def record(self):
        return SimpleNamespace(hosts=("algo-1", "algo-2"), model_data="file:///none/model.tar.gz", attempts=())

    def request(self):
        definitions = [{"Name": "bad", "Regex": "("}, {"Name": "good", "Regex": "x=(.*)"}]
        return {"AlgorithmSpecification": {"MetricDefinitions": definitions}}

    def log_files(self):
        return []

    def blocks(self, follow, stop, on_open_line):
        return iter(())


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda job: job.wait(float("nan")), "timeout must be a number, not nan"),
        (lambda job: job.logs(rank="0"), "rank must be a whole number from 0 on, not '0'"),
        (lambda job: job.logs(rank=-1), "rank must be a whole number from 0 on, not -1"),
        (lambda job: job.logs(host="algo-3"), "host 'algo-3' is not in this job"),
        (lambda job: job.curves(points=1), "points must be a whole number from 2 on, not 1"),
        (lambda job: job.machines("system.cpu.utilization"), r"metrics is 'system.cpu.utilization'; give several as a"),
        (lambda job: job.machines(["system.cpu.utilisation"]), "did you mean 'system.cpu.utilization'"),
        (lambda job: job.machines(hosts={"algo-12"}), "hosts has 'algo-12'; did you mean 'algo-[12]'"),
        (lambda job: job.machines(ranks=3), "ranks is 3; give several as a list"),
        (lambda job: job.machines(ranks=["1"]), "ranks must be a whole number from 0 on, not '1'"),
        (lambda job: job.machines(start="now"), "start must be a number, not 'now'"),
        (lambda job: job.machines(end=float("nan")), "end must be a number, not nan"),
        (lambda job: job.machines(points=0), "points must be a whole number from 1 on, not 0"),
        (lambda job: job.machines(resolution=-5), "resolution is -5, but it is the seconds of a point"),
        (lambda job: job.download(5), "path is 5; give a folder of this machine"),
        (lambda job: job.download(""), "path is ''; give a folder of this machine"),
        (lambda job: job.download("s3://bucket/model"), "path is 's3://bucket/model'; give a folder of this machine"),
        (lambda job: job.download("/dev/null/model"), "the folder '/dev/null/model' cannot be made: Not a directory"),
        (lambda job: list_jobs(limit=-1), "limit must be a whole number from 0 on, not -1"),
        (lambda job: list_jobs(limit="5"), "limit must be a whole number from 0 on, not '5'"),
        (lambda job: list_jobs(backend=["process"]), r"backend \['process'\] is not known"),
    ],
)
def test_it_is_refused_in_a_sentence(ask, sentence):
    with pytest.raises(InvalidArgument, match=sentence):
        ask(Job(OneJob()))


def test_a_number_of_numpy_and_the_rank_of_a_script_without_a_world_are_good():
    asked.check_whole("rank", np.int64(3), 0)
    asked.check_measured(Question(ranks={None, np.int64(3)}), ["algo-1"])


def test_a_metric_whose_pattern_python_cannot_read_is_left_out_with_a_warning():
    """As of a document that no Estimator has checked: it must not hide how its job has ended."""
    with pytest.warns(UserWarning, match="the metric 'bad' is left out, because its pattern '\\(' is not valid"):
        found = metric_definitions(OneJob())
    assert [name for name, _ in found] == ["good"]
