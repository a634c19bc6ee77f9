"""The registry: what is known of each backend without loading it, and that nobody else asks which one it is."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import estimator_sdk
from estimator_sdk import Estimator, InvalidArgument, backends

PACKAGE = Path(estimator_sdk.__file__).parent
OWN = [PACKAGE / "backends" / name for name in backends.BUILT_IN]
ELSEWHERE = [path for path in PACKAGE.rglob("*.py") if not any(path.is_relative_to(folder) for folder in OWN)]
REGISTRY = PACKAGE / "backends" / "__init__.py"
COUNTS_PROCESSES = PACKAGE / "display" / "progress.py"  # in words, of which one is the name of a backend, too
NAMES_INSTANCE_TYPES = PACKAGE / "spec" / "instances.py"  # one of which is called as its backend
SHOWS_PLANS = PACKAGE / "plan" / "plan.py"


def places(paths, is_meant):
    """Where in files a node of their trees is meant, as `file:line`."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if is_meant(node):
                yield f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}"


def test_only_the_registry_and_a_backend_itself_say_its_name():
    def is_name(node):
        return isinstance(node, ast.Constant) and node.value in backends.BUILT_IN

    assert list(places(set(ELSEWHERE) - {REGISTRY, COUNTS_PROCESSES, NAMES_INSTANCE_TYPES}, is_name)) == []
    assert len(list(places([REGISTRY], is_name))) == len(backends.BUILT_IN)


def test_nobody_asks_whether_a_plan_has_an_image():
    def asks(node):
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return False
        return getattr(node.left, "attr", getattr(node.left, "id", "")) == "image"

    assert list(places(set(ELSEWHERE) - {SHOWS_PLANS}, asks)) == []


@pytest.mark.parametrize("name", backends.BUILT_IN)
def test_what_is_said_of_a_backend_is_what_it_says_itself(name):
    made = backends.load(name)
    assert (made.name, made.capabilities) == (name, backends.capabilities(name))


def test_what_a_backend_can_do_is_known_without_loading_it():
    code = "import sys; from estimator_sdk import backends; [backends.capabilities(each) for each in backends.BUILT_IN]"
    code += "; print(*(name for name in sys.modules if name.endswith('.backend')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


@pytest.mark.parametrize(
    ("instance_type", "has_image", "chosen"),
    [
        ("local", False, "process"),
        ("local_gpu", False, "process"),
        ("local", True, "docker"),
        ("local_gpu", True, "docker"),
        ("ml.m5.large", True, "sagemaker"),
        ("ml.m5.large", False, "sagemaker"),
    ],
)
def test_the_type_and_the_image_choose_a_backend(instance_type, has_image, chosen):
    assert backends.choose(instance_type, has_image) == chosen


def test_only_backends_that_choose_machines_have_spares():
    assert [name for name in backends.BUILT_IN if backends.capabilities(name).has_spares] == ["slurm", "ssh"]


@pytest.mark.parametrize("name", [name for name in backends.BUILT_IN if not backends.capabilities(name).has_spares])
def test_a_backend_without_a_choice_of_machines_refuses_spare_hosts(tmp_path, name):
    (tmp_path / "train.py").touch()
    estimator = Estimator(entry_point=tmp_path / "train.py", image_uri="i", role="r", spare_hosts=1, backend=name)
    with pytest.raises(InvalidArgument, match=rf"backend {name!r} has no choice of machines; leave it out") as raised:
        estimator.plan()
    assert raised.value.argument == "spare_hosts"


@pytest.mark.parametrize("limit", [{"cpus": 2}, {"memory": 4}], ids=lambda limit: next(iter(limit)))
def test_a_backend_without_limits_refuses_them_and_names_one_that_has_them(tmp_path, monkeypatch, limit):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").touch()
    with pytest.raises(InvalidArgument, match=r"backend 'process' cannot limit hosts; .* backend='docker'") as raised:
        Estimator(entry_point=tmp_path / "train.py", **limit).plan()
    assert raised.value.argument in limit
