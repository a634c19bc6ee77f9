"""What this machine knows of jobs that it has submitted, without asking anybody."""

import pytest

from estimator_sdk import backends
from estimator_sdk.backends.port import Summary
from estimator_sdk.backends.sagemaker import submitted
from estimator_sdk.backends.sagemaker.faults import Refused
from estimator_sdk.backends.sagemaker.job import SageMakerJob
from estimator_sdk.backends.sagemaker.service import Service
from estimator_sdk.errors import JobNotFound
from estimator_sdk.job import listing
from estimator_sdk.server.jobs.index import JobIndex

HEARD = Summary("far-1", "InProgress", "sagemaker", ("algo-1", "algo-2"), 1.7e9, None)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch, no_aws):
    """A home in which nobody can be asked: there are no credentials, and none are looked for."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_what_was_last_heard_is_listed_where_nobody_can_be_asked(home):
    submitted.note("far-1", "eu-west-1")
    assert listing.summaries() == []  # the service has not taken it yet
    submitted.remember(HEARD)
    assert listing.summaries() == [HEARD]
    ended = HEARD._replace(status="Failed", ended=1.7e9 + 60)
    submitted.remember(ended)
    assert listing.summaries() == listing.summaries(limit=1) == [ended]
    assert submitted.region_of("far-1") == "eu-west-1"
    assert (home / "sagemaker" / "far-1.json").stat().st_mode & 0o777 == 0o600
    submitted.forget("far-1")
    assert listing.summaries() == []


class NotThere(Service):
    """The service as the credentials of another account see it."""

    def __init__(self):
        self.region = "eu-west-1"

    def call(self, *_, **__):
        raise Refused("it said no", "ValidationException", "Requested resource not found.", False)


def test_a_job_that_runs_in_another_account_is_not_forgotten(home):
    submitted.note("far-1", "eu-west-1")
    submitted.remember(HEARD)
    job, note = SageMakerJob("far-1", NotThere()), home / "sagemaker" / "far-1.json"
    with pytest.raises(JobNotFound, match=f"no job 'far-1' for this account, .*credentials of the account.*{note}"):
        job.record()
    assert listing.summaries() == [HEARD]
    submitted.remember(HEARD._replace(status="Completed", ended=1.7e9 + 60))
    with pytest.raises(JobNotFound, match="has no job 'far-1'$"):
        job.record()
    assert listing.summaries() == []


def test_of_jobs_that_others_submitted_nothing_is_kept(home):
    submitted.remember(HEARD)
    assert not (home / "sagemaker").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"region": "eu-west-1", "status": "Lost", "hosts": [], "created": 1, "ended": null}',
        '{"region": "eu-west-1", "status": ["Failed"], "hosts": [], "created": 1, "ended": null}',
        '{"region": "eu-west-1", "status": "Failed", "hosts": 3, "created": 1, "ended": null}',
        '{"region": "eu-west-1", "status": "Failed", "hosts": [], "created": "x", "ended": null}',
    ],
    ids=lambda text: text[:60],
)
def test_a_damaged_note_is_passed_over(home, text):
    submitted.note("far-1", "eu-west-1")
    (home / "sagemaker" / "far-1.json").write_text(text)
    (home / "sagemaker" / "no name.json").write_text("{}")
    assert listing.summaries() == []


def test_the_index_of_the_console_has_them_and_hears_of_changes(home):
    (home / "jobs").mkdir(parents=True)
    submitted.note("far-1", "eu-west-1")
    submitted.remember(HEARD)
    index = JobIndex()
    index.load()
    assert index.all() == [HEARD]
    assert index.refresh().removed == ()
    ended = HEARD._replace(status="Completed", ended=1.7e9 + 60)
    submitted.remember(ended)
    change = index.take("services", [each.summary() for each in backends.submitted()])
    assert (change.changed, change.removed, index.all()) == ((ended,), (), [ended])
    submitted.forget("far-1")
    assert index.take("services", [each.summary() for each in backends.submitted()]).removed == ("far-1",)
    assert index.all() == []
