import pickle

import pytest
from estimator_container.failures.verdict import Verdict

from estimator_sdk import errors


def test_every_error_is_an_estimator_error():
    for name in ("InvalidArgument", "JobFailed", "JobNotFound", "BackendError"):
        assert issubclass(getattr(errors, name), errors.EstimatorError)


def test_an_invalid_argument_is_a_value_error_that_names_the_argument():
    with pytest.raises(ValueError, match=r"^role is wrong$") as raised:
        raise errors.InvalidArgument("role", "role is wrong")
    assert isinstance(raised.value, errors.InvalidArgument) and raised.value.argument == "role"


def test_a_failed_job_says_its_name_and_the_verdict():
    verdict = Verdict("exit_code", "rank 1 on algo-2 exited with code 7", detail="Traceback: boom")
    error = errors.JobFailed("job-1", verdict)
    assert (error.job_name, error.verdict) == ("job-1", verdict)
    assert str(error) == f"the job job-1 failed: {verdict.text().rstrip()}"
    assert str(error).startswith("the job job-1 failed: rank 1 on algo-2 exited with code 7\n\nTraceback: boom\n\n")


def test_errors_survive_pickling():
    error = errors.JobFailed("job-1", Verdict("signal", "killed"))
    for original in (error, errors.InvalidArgument("role", "role is wrong")):
        copy = pickle.loads(pickle.dumps(original))
        assert (type(copy), str(copy), vars(copy)) == (type(original), str(original), vars(original))
