import copy
import dataclasses
import json
import pickle
import random
from collections.abc import Mapping
from types import NoneType
from typing import Literal, get_args, get_origin

import botocore.session
import pytest
from botocore.model import Shape
from botocore.validate import ParamValidator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from estimator_sdk import JobSpec
from estimator_sdk.errors import InvalidArgument
from estimator_sdk.spec import job_document as module
from estimator_sdk.spec.structure import Structure, member_name
from estimator_sdk.values.conform import field_hints, without_none

REQUEST = botocore.session.get_session().get_service_model("sagemaker").shape_for("CreateTrainingJobRequest")
MINIMAL = {
    "TrainingJobName": "job",
    "RoleArn": "arn:aws:iam::123456789012:role/training",
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
}


def documents(shape: Shape) -> st.SearchStrategy:
    """Any value of a shape, as the service model describes it: every member may be there or not."""
    if shape.type_name == "structure":
        members = {name: documents(member) for name, member in shape.members.items()}
        required = {name: members.pop(name) for name in shape.required_members}
        return st.fixed_dictionaries(required, optional=members)
    if shape.type_name == "list":
        return st.lists(documents(shape.member), max_size=2)
    if shape.type_name == "map":
        return st.dictionaries(st.text(), documents(shape.value), max_size=2)
    if shape.type_name in ("integer", "long"):
        return st.integers(-(1 << 63), (1 << 63) - 1)
    if shape.type_name == "boolean":
        return st.booleans()
    return st.sampled_from(shape.enum) if shape.enum else st.text()


def full(shape: Shape, rng: random.Random) -> object:
    """A value of a shape with every member in it."""
    if shape.type_name == "structure":
        return {name: full(member, rng) for name, member in shape.members.items()}
    if shape.type_name == "list":
        return [full(shape.member, rng) for _ in range(max(1, shape.metadata.get("min", 1)))]
    if shape.type_name == "map":
        return {f"key{index}": full(shape.value, rng) for index in range(2)}
    if shape.type_name in ("integer", "long"):
        return shape.metadata.get("min", 0) + rng.randrange(2)
    if shape.type_name == "boolean":
        return rng.random() < 0.5
    return rng.choice(shape.enum) if shape.enum else "x" * max(20, shape.metadata.get("min", 0))


def test_the_minimal_document_round_trips():
    assert JobSpec.from_request(MINIMAL).to_request() == MINIMAL


@pytest.mark.parametrize("seed", range(20))
def test_a_document_with_every_member_is_valid_and_round_trips(seed):
    document = full(REQUEST, random.Random(seed))
    assert isinstance(document, dict) and set(document) == set(REQUEST.members)
    assert not ParamValidator().validate(document, REQUEST).has_errors()
    spec = JobSpec.from_request(document)
    assert spec.to_request() == document
    assert JobSpec.from_request(spec.to_request()) == spec


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents(REQUEST))
def test_any_document_of_the_service_model_round_trips(document):
    before = copy.deepcopy(document)
    assert JobSpec.from_request(document).to_request() == before == document


def test_members_that_are_newer_than_the_sdk_survive_where_they_stood():
    document = {
        **MINIMAL,
        "Tomorrow": {"A": [1, {"B": None}], "C": 0.5},
        "ResourceConfig": {"InstanceCount": 2, "Turbo": True},
        "InputDataConfig": [{"ChannelName": "a", "DataSource": {"TapeSource": {"Reel": 7}}, "Speed": "slow"}],
    }
    spec = JobSpec.from_request(document)
    assert spec.other["Tomorrow"] == {"A": (1, {"B": None}), "C": 0.5}
    assert spec.resource_config.other == {"Turbo": True}
    assert spec.to_request() == document


def test_absent_and_empty_are_distinct():
    empty = {**MINIMAL, "Tags": [], "HyperParameters": {}, "InputDataConfig": [], "ResourceConfig": {}}
    absent, present = JobSpec.from_request(MINIMAL), JobSpec.from_request(empty)
    assert (absent.tags, absent.hyperparameters, absent.resource_config) == (None, None, None)
    assert (present.tags, present.hyperparameters) == ((), {})
    assert absent != present and present.to_request() == empty


def test_the_request_is_json_and_belongs_to_the_caller():
    document = {**MINIMAL, "Environment": {"A": "b"}, "Tomorrow": [{"x": [1]}]}
    spec = JobSpec.from_request(document)
    request = spec.to_request()
    assert json.loads(json.dumps(request)) == document
    request["Environment"]["A"] = "changed"
    request["Tomorrow"][0]["x"].append(2)
    document["Environment"]["A"] = "changed"
    assert spec.environment == {"A": "b"} and spec.to_request()["Tomorrow"] == [{"x": [1]}]


def test_a_spec_cannot_be_changed():
    spec = JobSpec.from_request({**MINIMAL, "Environment": {"A": "b"}, "Tags": [{"Key": "k", "Value": "v"}]})
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.role_arn = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        spec.environment["A"] = "c"  # type: ignore[index]
    assert isinstance(spec.tags, tuple)


def test_equal_documents_make_equal_specs_with_equal_hashes():
    document = full(REQUEST, random.Random(0))
    first, second = JobSpec.from_request(document), JobSpec.from_request(copy.deepcopy(document))
    assert first == second and hash(first) == hash(second)
    assert pickle.loads(pickle.dumps(first)) == first == copy.deepcopy(first)
    assert dataclasses.replace(first, training_job_name="other") != first


def test_the_repr_shows_what_is_there_only():
    assert repr(module.ResourceConfig(instance_count=2)) == "ResourceConfig(instance_count=2)"
    assert repr(module.VpcConfig(security_group_ids=(), subnets=("a",), other={"B": 1})) == (
        "VpcConfig(security_group_ids=(), subnets=('a',), other={'B': 1})"
    )


@pytest.mark.parametrize(
    ("member", "value", "path", "words"),
    [
        ("ResourceConfig", {"InstanceCount": "2"}, "ResourceConfig.InstanceCount", "an int, not '2' (str)"),
        (
            "ResourceConfig",
            {"InstanceCount": True},
            "ResourceConfig.InstanceCount",
            "an int, not True (bool)",
        ),
        ("ResourceConfig", {"InstanceCount": 2.0}, "ResourceConfig.InstanceCount", "an int, not 2.0 (float)"),
        ("ResourceConfig", {"InstanceCount": 1 << 63}, "ResourceConfig.InstanceCount", "has at most 64 bits"),
        ("ResourceConfig", [], "ResourceConfig", "a dict"),
        ("DebugHookConfig", {"Hook": {1, 2}}, "DebugHookConfig", "holds a value that JSON cannot represent"),
        ("ResourceConfig", {"OfLater": 10**5000}, "ResourceConfig.OfLater", "holds a value that JSON cannot represent"),
        ("ResourceConfig", None, "ResourceConfig", "not None"),
        ("EnableNetworkIsolation", 1, "EnableNetworkIsolation", "True or False"),
        ("Tags", {"Key": "a", "Value": "b"}, "Tags", "a list"),
        ("Tags", "ab", "Tags", "a list"),
        ("Tags", [{"Key": "a"}], "Tags[0].Value", "is missing; add it"),
        ("Tags", [{"Key": "a", "value": "b"}], "Tags[0].Value", "rename 'value' if you meant it"),
        ("Environment", {"A": 1}, "Environment['A']", "a str, not 1 (int)"),
        ("Environment", {1: "a"}, "Environment", "keys must be strings"),
        ("HyperParameters", {"lr": 0.1}, "HyperParameters['lr']", "a str"),
        (
            "InputDataConfig",
            [{"ChannelName": "a", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": 3}}}],
            "InputDataConfig[0].DataSource.S3DataSource.S3Uri",
            "a str",
        ),
        (
            "AlgorithmSpecification",
            {"TrainingInputMode": "file"},
            "AlgorithmSpecification.TrainingInputMode",
            "did you mean 'File'?",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_the_path_of_its_member(member, value, path, words):
    with pytest.raises(InvalidArgument) as raised:
        JobSpec.from_request({**MINIMAL, member: value})
    assert raised.value.argument == path
    assert str(raised.value).startswith(path) and words in str(raised.value)


def test_what_is_no_document_is_refused():
    for wrong in ([], "x", None, {1: 2}):
        with pytest.raises(InvalidArgument, match="the document"):
            JobSpec.from_request(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"^TrainingJobName is missing"):
        JobSpec.from_request({})


def test_a_structure_made_by_hand_is_checked_the_same_way():
    with pytest.raises(InvalidArgument, match=r"^ResourceConfig.InstanceCount must be an int"):
        module.ResourceConfig(instance_count="2")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="use instance_count="):
        module.ResourceConfig(other={"InstanceCount": 2})
    assert module.VpcConfig(security_group_ids=["a"], subnets=[]).security_group_ids == ("a",)  # type: ignore[arg-type]


def differences(cls: type[Structure], shape: Shape, path: str) -> list[str]:
    """Where a structure says other than the service model; members without a field do not count."""
    found = []
    for field in dataclasses.fields(cls):
        if field.name == "other":
            continue
        member, hint = member_name(field.name), field_hints(cls)[field.name]
        where = f"{path}.{member}"
        if member not in shape.members:
            found.append(f"{where} is invented")
            continue
        if field.default is dataclasses.MISSING and member not in shape.required_members:
            found.append(f"{where} is required here only")
        found += mismatches(without_none(hint), shape.members[member], where)
    return found


def mismatches(hint: object, shape: Shape, where: str) -> list[str]:
    kinds = {str: ("string",), int: ("integer", "long"), bool: ("boolean",)}
    if get_origin(hint) is Literal:
        return [] if set(get_args(hint)) == set(shape.enum) else [f"{where} has other values"]
    if get_origin(hint) is tuple and shape.type_name == "list":
        return mismatches(get_args(hint)[0], shape.member, f"{where}[]")
    if get_origin(hint) is Mapping and shape.type_name == "map":
        return mismatches(get_args(hint)[1], shape.value, f"{where}[...]")
    if isinstance(hint, type) and issubclass(hint, Structure) and shape.type_name == "structure":
        return differences(hint, shape, where)
    return [] if shape.type_name in kinds.get(hint, ()) else [f"{where} has another type"]


def test_every_typed_member_is_in_the_service_model_with_its_type_and_values():
    assert NoneType not in get_args(field_hints(JobSpec)["training_job_name"])
    assert differences(JobSpec, REQUEST, "") == []


def test_a_description_leaves_out_what_happened_and_keeps_what_to_do():
    answer = botocore.session.get_session().get_service_model("sagemaker").shape_for("DescribeTrainingJobResponse")
    known = {"TrainingJobName": "job", **{name: {} for name in answer.members if name not in REQUEST.members}}
    assert JobSpec.from_description({**known, "ResponseMetadata": {}}).to_request() == {"TrainingJobName": "job"}
    document = full(REQUEST, random.Random(1))
    assert isinstance(document, dict)
    assert JobSpec.from_description({**document, "TrainingJobStatus": "Completed"}).to_request() == document
    with pytest.raises(InvalidArgument, match="the description must be a dict, not None"):
        JobSpec.from_description(None)
