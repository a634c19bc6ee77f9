import re

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_sdk.errors import InvalidArgument
from estimator_sdk.values import job_name

SHAPE = botocore.session.get_session().get_service_model("sagemaker").shape_for("TrainingJobName")


def is_allowed(name: str) -> bool:
    return re.fullmatch(SHAPE.metadata["pattern"], name) is not None and len(name) <= SHAPE.metadata["max"]


@given(st.text() | st.text("abc-", max_size=80))
def test_the_rule_is_the_services(name):
    try:
        assert job_name.checked(name) == name
        allowed = True
    except InvalidArgument:
        allowed = False
    assert allowed == is_allowed(name)


@given(st.text() | st.text("ab-_", max_size=80))
def test_new_names_and_suggested_names_are_allowed(text):
    base = job_name.base_of(text)
    assert is_allowed(base) and is_allowed(job_name.unique(base))


def test_new_names_differ_and_sort_by_time():
    names = [job_name.unique("train") for _ in range(200)]
    assert len(set(names)) == 200
    stamps = [name.rpartition("-")[0] for name in names]
    assert stamps == sorted(stamps)
    assert re.fullmatch(r"train-\d{4}(-\d\d){5}-\d{3}-[0-9a-f]{6}", names[0])


@pytest.mark.parametrize(("wrong", "better"), [("my_job", "my-job"), ("-a-", "a"), ("a" * 64, "a" * 63), ("", "job")])
def test_a_wrong_name_is_refused_with_one_that_would_do(wrong, better):
    with pytest.raises(InvalidArgument, match=f"write '{better}'$") as raised:
        job_name.checked(wrong)
    assert raised.value.argument == "job_name"


def test_a_name_that_is_no_string_is_refused():
    with pytest.raises(InvalidArgument, match=r"must be a str, not 3 \(int\)"):
        job_name.checked(3)  # type: ignore[arg-type]
