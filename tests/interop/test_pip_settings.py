"""pip in a container finds packages as pip does where the job was started, and nobody else sees by which password."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import docker
import pytest

from estimator_sdk import Estimator, JobFailed
from estimator_sdk.backends.docker import engine

from . import package_index
from .package_index import PASSWORD, USER, with_password

SCRIPT = "import private_words; print(private_words.WORD)"
TELLS_ALL = """
import os, sys
def _tell(*given, **more):
    for path in (os.environ["PIP_CONFIG_FILE"], os.environ.get("NETRC", os.devnull)):
        print(open(path).read())
    sys.exit("it told all")
get_requires_for_build_wheel = prepare_metadata_for_build_wheel = build_wheel = _tell
"""


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine's own pip is seen."""
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


@pytest.fixture
def run(tmp_path: Path, image: str):
    def run(**files: str):
        source = tmp_path / "source"
        source.mkdir()
        for name, content in {"train.py": SCRIPT, **files}.items():
            (source / name).write_text(content)
        return Estimator(entry_point="train.py", source_dir=source, image_uri=image).fit(logs="none")

    return run


@pytest.fixture
def descriptions(tmp_path: Path) -> list[str]:
    """What the engine says of containers of jobs while pip of one of them asks for a package."""
    return []


@pytest.fixture
def index(tmp_path: Path, descriptions: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    client = engine.connect()
    (network,) = client.networks.list(names=["bridge"])
    (keys := tmp_path / "keys").mkdir()
    package_index.write_index(tmp_path / "index", "private_words")

    def describe() -> None:
        for container in client.containers.list(filters={"label": engine.JOB_LABEL}, ignore_removed=True):
            with contextlib.suppress(docker.errors.NotFound):  # it has just ended
                descriptions.append(json.dumps(client.api.inspect_container(container.id)))

    # Not by a variable, which would be the authority of an image's build, too.
    (tmp_path / "pip.conf").write_text(f"[global]\ncert = {package_index.authority(keys)}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    # The first address of the bridge is this machine's; a new engine does not say so.
    address = str(next(ip_network(network.attrs["IPAM"]["Config"][0]["Subnet"]).hosts()))
    with package_index.running(tmp_path / "index", address, keys, describe) as url:
        yield url


def assert_hidden(home: Path, descriptions: list[str]) -> None:
    assert descriptions and not any(PASSWORD in text or "only%2Ffor" in text for text in descriptions)
    kept = [path for path in home.rglob("*") if path.is_file()]
    assert any(path.name == "frames" for path in kept)
    for path in kept:
        content = path.read_bytes()
        assert PASSWORD.encode() not in content and b"only%2Ffor" not in content, path
        assert b"authority.pem" not in content and path.name != "pip.json", path


def test_an_index_behind_tls_of_its_own_and_a_password(run, index, descriptions, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", with_password(index))
    job = run(**{"requirements.txt": "private_words\n"})
    assert [line.data for line in job.logs(stream="stdout")] == [b"from the index\n"]
    assert_hidden(tmp_path / "home", descriptions)


def test_an_index_whose_password_is_in_netrc(run, index, descriptions, tmp_path, monkeypatch):
    host = index.split("/")[2].partition(":")[0]
    netrc = tmp_path / "netrc"
    netrc.write_text(
        f"machine {host} login {USER} password {PASSWORD}\nmachine elsewhere login me password mine-alone\n"
    )
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("PIP_INDEX_URL", index)
    with pytest.raises(JobFailed) as failed:
        project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        run(**{"requirements.txt": "private_words\n", "pyproject.toml": project, "backend.py": TELLS_ALL})
    said = failed.value.verdict.detail
    assert "it told all" in said and f"login {USER} password <hidden>" in said and "elsewhere" not in said
    assert_hidden(tmp_path / "home", descriptions)


def test_folders_of_the_machine(run, tmp_path, monkeypatch):
    package_index.write_index(tmp_path / "index", "private_words")
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "other_words-1.0-py3-none-any.whl").write_bytes(
        package_index.wheel("other_words", "from the folder")
    )
    monkeypatch.setenv("PIP_INDEX_URL", f"file://{tmp_path}/index/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", f"{tmp_path}/wheels {tmp_path}/nowhere")
    also = "\nimport other_words; print(other_words.WORD)"
    job = run(**{"requirements.txt": "private_words\nother_words\n", "train.py": SCRIPT + also})
    assert [line.data for line in job.logs(stream="stdout")] == [b"from the index\n", b"from the folder\n"]
    said = b"".join(line.data for line in job.logs(stream="toolkit"))
    assert f"find-links {tmp_path}/nowhere is not a folder".encode() in said
