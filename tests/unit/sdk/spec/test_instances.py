import subprocess
import sys

import botocore.session
import pytest

from estimator_sdk.errors import InvalidArgument
from estimator_sdk.spec import instances


def training_types() -> set[str]:
    model = botocore.session.get_session().get_service_model("sagemaker")
    return set(model.shape_for("TrainingInstanceType").enum)


def test_the_table_is_exactly_what_the_service_offers():
    ours = set(instances.names()) - set(instances.LOCAL)
    assert ours - training_types() == set()
    assert training_types() - ours == set()


def test_the_accelerated_families_and_no_others_have_gpus():
    for name in set(instances.names()) - set(instances.LOCAL):
        accelerated = name.split(".")[1][0] in "pg"
        assert instances.gpus(name) in ((1, 2, 4, 8, 16) if accelerated else (0,))


@pytest.mark.parametrize(
    ("name", "gpus"),
    [
        ("ml.c4.8xlarge", 0),
        ("ml.m5.large", 0),
        ("ml.r8i-flex.large", 0),
        ("ml.trn1.32xlarge", 0),
        ("ml.p2.16xlarge", 16),
        ("ml.p3.16xlarge", 8),
        ("ml.p4d.24xlarge", 8),
        ("ml.p5.4xlarge", 1),
        ("ml.p6e-gb200.36xlarge", 4),
        ("ml.g4dn.12xlarge", 4),
        ("ml.g5.16xlarge", 1),
        ("ml.g7.12xlarge", 2),
    ],
)
def test_gpus_are_those_of_the_ec2_type(name, gpus):
    assert instances.gpus(name) == gpus


def test_local_types_stand_for_this_machine():
    assert instances.gpus("local") == 0
    assert instances.gpus("local_gpu") is None


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ("ml.p3.2xlarg", "'ml.p3.2xlarge'"),
        ("p3.2xlarge", "'ml.p3.2xlarge'"),
        ("Local", "'local'"),
        ("ml.m5.LARGE", "'ml.m5.large'"),
    ],
)
def test_an_unknown_type_is_refused_with_the_nearest(wrong, nearest):
    with pytest.raises(InvalidArgument) as raised:
        instances.gpus(wrong)
    assert raised.value.argument == "instance_type"
    assert wrong in str(raised.value) and nearest in str(raised.value)


@pytest.mark.parametrize("wrong", ["", "ml", "ml.", "ml.m5", "ml.m5.", "ml.m5.large.", "ml..large", "x.m5.large"])
def test_a_malformed_type_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        instances.gpus(wrong)


def test_nothing_heavy_is_imported():
    code = "import sys, estimator_sdk.spec.instances; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"difflib", "botocore", "boto3", "json"} & set(loaded)
