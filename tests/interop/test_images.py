"""The images: found by a framework's version, built when they are first used, and able to train."""

from __future__ import annotations

import io
import re
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from estimator_sdk import BackendError, PyTorch, TensorFlow
from estimator_sdk.backends.docker import engine
from estimator_sdk.backends.docker.images import base, build, catalogue
from estimator_sdk.cli.main import main

MPI = {"mpi": {"enabled": True, "processes_per_host": 2}}


OF_THE_TOOLKIT = ("horovod", "obstore")
"""What is pinned by the images' recipe itself: the wheel that is built here, and the toolkit's client of S3."""
SCRIPTS = Path(__file__).parent / "images"
"""What images train, by framework; Keras 2 has a script of its time besides."""


def scripts_of(image: catalogue.Image) -> Iterator[Path]:
    yield SCRIPTS / f"train_{image.framework}.py"
    if any(package.startswith("keras==2.") for package in image.packages):
        yield SCRIPTS / "train_keras_2.py"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Images of versions that are not the newest, and those with CUDA, are built on request: `--all-images`."""
    wanted = metafunc.config.getoption("all_images")
    common = {catalogue.newest("tensorflow"), catalogue.newest("pytorch")}
    images = [image for image in catalogue.everything() if image.version and (wanted or image in common)]
    if {"each_image", "each_script"} <= {*metafunc.fixturenames}:
        pairs = [(image, script) for image in images for script in scripts_of(image)]
        ids = [f"{image.name}-{script.stem}" for image, script in pairs]
        metafunc.parametrize(("each_image", "each_script"), pairs, ids=ids)
    elif "each_image" in metafunc.fixturenames:
        metafunc.parametrize("each_image", images, ids=lambda image: image.name)


@pytest.fixture(autouse=True)
def jobs_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


def said(job) -> list[str]:
    return [line.data.decode().rstrip("\n") for line in job.logs(stream="stdout")]


@pytest.mark.long  # the newest ones train in the tests of the examples, too
def test_every_image_trains_on_two_hosts_and_the_ranks_agree(each_image, each_script):
    kind = {"tensorflow": TensorFlow, "pytorch": PyTorch}[each_image.framework]
    estimator = kind(
        entry_point=each_script,
        framework_version=each_image.version,
        instance_count=2,
        # Which chooses CUDA, and is only rehearsed: no GPU is needed.
        instance_type="ml.g5.xlarge" if each_image.for_gpus else "local",
        backend="docker",
        distribution=MPI,
        cpus=1,
    )
    assert estimator.plan().image == each_image.name
    lines = [line.split() for line in said(estimator.fit(logs="none")) if line.startswith("trained ")]
    assert [(size, distinct) for _, size, distinct, _ in lines] == [("4", "1")] * 4
    assert {version.partition("+")[0] for *_, version in lines} == {each_image.version}


def test_an_image_has_the_packages_that_are_pinned_for_it(each_image):
    client = engine.connect()
    build.ensure(client, each_image.name, sys.stderr)
    freeze = ["/opt/venv/bin/pip", "freeze", "--disable-pip-version-check"]
    frozen = client.containers.run(each_image.name, freeze, remove=True, network_mode="none").decode().splitlines()
    installed = {name: version.partition("+")[0] for name, version in versions(frozen) if name not in OF_THE_TOOLKIT}
    pinned = dict(versions(build.context.files(each_image)["constraints.txt"].decode().splitlines()))
    assert installed.items() <= pinned.items()


def versions(lines: list[str]) -> Iterator[tuple[str, str]]:
    """The packages and versions in what `pip freeze` says; a name has several spellings."""
    for line in lines:
        name, _, version = line.partition("==" if "==" in line else " @ ")
        yield re.sub("[-_.]+", "-", name).lower(), version


@pytest.fixture
def trial(image, monkeypatch):
    """A name for an image like no other that the engine has, removed afterwards with what hangs on it."""
    client = engine.connect()
    name = "estimator/trial:1"
    files = build.context.files
    mark = {"toolkit/estimator_container/mark.py": f"# {uuid.uuid4()}\n".encode()}
    monkeypatch.setattr(build.context, "files", lambda image: {**files(image), **mark})
    yield client, name
    if engine.has_image(client, name):
        client.images.remove(name)


def test_an_image_is_built_once_and_again_when_the_toolkit_changes(trial, monkeypatch):
    client, name = trial
    out = io.StringIO()
    build.build(client, catalogue.MPI, name, None, out)
    assert re.search(r"building estimator/trial:1: the first time.*Step 1/.*is built\n", out.getvalue(), re.DOTALL)
    first = client.images.get(name)
    assert engine.has_toolkit(client, name)

    out = io.StringIO()
    build.build(client, catalogue.MPI, name, None, out)
    assert (out.getvalue(), client.images.get(name).id) == ("", first.id)

    files = build.context.files
    changed = {"toolkit/estimator_container/new.py": b"# a change of the toolkit\n"}
    monkeypatch.setattr(build.context, "files", lambda image: {**files(image), **changed})
    out = io.StringIO()
    build.build(client, catalogue.MPI, name, None, out)
    second = client.images.get(name)
    assert second.id != first.id and "the toolkit has changed" in out.getvalue()
    # Only what stands on the toolkit is new.
    assert second.attrs["RootFS"]["Layers"][:-2] == first.attrs["RootFS"]["Layers"][:-2]
    with pytest.raises(docker.errors.ImageNotFound):
        client.images.get(first.id)


def test_a_build_that_fails_says_so_in_the_words_of_the_step(trial, monkeypatch):
    client, name = trial
    files = build.context.files
    broken = {"Dockerfile": b"ARG BASE\nFROM ${BASE} AS mpi\nRUN echo no such wheel; exit 3\n"}
    monkeypatch.setattr(build.context, "files", lambda image: {**files(image), **broken})
    with pytest.raises(BackendError, match=r"(?s)estimator/trial:1 could not be built: .*code: 3.*no such wheel"):
        build.build(client, catalogue.MPI, name, None, io.StringIO())


def test_no_base_is_one_sentence_with_both_ways_out(monkeypatch, image):
    client = engine.connect()
    monkeypatch.setattr(base, "PULLED", "localhost:1/no-such-base:1")
    monkeypatch.setattr(base, "MADE", "estimator/no-such-base:1")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BackendError, match=r"localhost:1/no-such-base:1 cannot be pulled.*--base.*--debian-base"):
        base.choose(client, io.StringIO())


def test_the_command_line_lists_the_images_and_refuses_what_it_does_not_have(capsys):
    assert main(["images", "ls"]) == 0
    shown = capsys.readouterr().out
    assert all(image.name in shown for image in catalogue.everything())
    assert main(["images", "build", "pytorch", "--framework-version", "0.4"]) == 2
    assert "framework_version" in capsys.readouterr().err
    assert main(["images", "build", "mpi", "--gpu"]) == 2
    assert "mpi contains no framework, so there is no other one with CUDA; leave --gpu out" in capsys.readouterr().err


def test_the_image_holds_no_key_no_ssh_and_no_certificate_of_the_building_machine(image):
    client = engine.connect()
    look = "command -v sshd ssh; ls /root/.ssh /etc/ssh /opt/ca 2>/dev/null; ls /opt"
    found = client.containers.run(image, ["sh", "-c", look], remove=True, network_mode="none").decode().split()
    assert found == ["toolkit", "venv"]
