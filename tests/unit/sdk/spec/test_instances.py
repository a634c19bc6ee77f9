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


def test_every_name_has_plausible_figures():
    for name in set(instances.names()) - set(instances.LOCAL):
        found = instances.lookup(name)
        assert found.name == name
        assert found.cpus is not None and 2 <= found.cpus <= 384
        assert found.memory_gib is not None and 1.5 <= found.memory_gib / found.cpus <= 24
        accelerated = name.split(".")[1][0] in "pg"
        assert (found.gpus or 0) in ((1, 2, 4, 8, 16) if accelerated else (0,))
        assert (found.neurons > 0) == name.startswith("ml.trn")


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("ml.c4.8xlarge", (36, 60, 0, 0)),
        ("ml.c5.9xlarge", (36, 72, 0, 0)),
        ("ml.c5n.18xlarge", (72, 192, 0, 0)),
        ("ml.m4.10xlarge", (40, 160, 0, 0)),
        ("ml.m5.large", (2, 8, 0, 0)),
        ("ml.m8i.96xlarge", (384, 1536, 0, 0)),
        ("ml.r7i.48xlarge", (192, 1536, 0, 0)),
        ("ml.r8i-flex.large", (2, 16, 0, 0)),
        ("ml.t3.medium", (2, 4, 0, 0)),
        ("ml.p3.16xlarge", (64, 488, 8, 0)),
        ("ml.p4d.24xlarge", (96, 1152, 8, 0)),
        ("ml.p5.4xlarge", (16, 256, 1, 0)),
        ("ml.p6e-gb200.36xlarge", (144, 960, 4, 0)),
        ("ml.g4dn.12xlarge", (48, 192, 4, 0)),
        ("ml.g5.16xlarge", (64, 256, 1, 0)),
        ("ml.g7.12xlarge", (48, 192, 2, 0)),
        ("ml.trn1.32xlarge", (128, 512, 0, 32)),
    ],
)
def test_figures_are_those_of_the_ec2_type(name, figures):
    found = instances.lookup(name)
    assert (found.cpus, found.memory_gib, found.gpus, found.neurons) == figures


def test_local_types_stand_for_this_machine():
    assert instances.lookup("local") == instances.InstanceType("local", None, None, 0, 0)
    assert instances.lookup("local_gpu").gpus is None
    assert instances.lookup("local").is_local and not instances.lookup("ml.m5.large").is_local


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
        instances.lookup(wrong)
    assert raised.value.argument == "instance_type"
    assert wrong in str(raised.value) and nearest in str(raised.value)


@pytest.mark.parametrize("wrong", ["", "ml", "ml.", "ml.m5", "ml.m5.", "ml.m5.large.", "ml..large", "x.m5.large"])
def test_a_malformed_type_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        instances.lookup(wrong)


def test_nothing_heavy_is_imported():
    code = "import sys, estimator_sdk.spec.instances; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"difflib", "botocore", "boto3", "json"} & set(loaded)
