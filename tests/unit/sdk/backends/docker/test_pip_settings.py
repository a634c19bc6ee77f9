"""What of this machine's pip configuration a container gets."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from estimator_container.contract.names import Layout
from estimator_container.host.preparation.pip_settings import taken

from estimator_sdk.backends.docker.pip_settings import PipSettings, for_code, of_this_machine

INSIDE = Layout("/opt/ml")


@pytest.fixture
def brought(tmp_path, monkeypatch):
    """What is brought of configuration files, path below the home -> content, and variables."""
    monkeypatch.setattr("estimator_sdk.backends.docker.pip_settings._OF_MACHINE", tmp_path / "machine.conf")
    monkeypatch.setattr("estimator_sdk.backends.docker.pip_settings._OF_PREFIX", tmp_path / "prefix.conf")

    def brought(files=None, **variables) -> PipSettings:
        for name, content in (files or {}).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        shared = str(tmp_path / "shared")
        return of_this_machine({"HOME": str(tmp_path), "XDG_CONFIG_DIRS": shared, **variables}, INSIDE)

    return brought


def test_the_section_of_install_counts_more_than_a_later_file_and_a_variable_more_than_both(brought):
    files = {
        "shared/pip/pip.conf": "[global]\nproxy = a:1\ntimeout = 7\n[install]\nindex-url = https://of-install/simple\n",
        ".config/pip/pip.conf": "[global]\nindex_url = https://of-the-user/simple\ndefault-timeout = 9\n",
    }
    assert brought(files).options == {
        "index-url": ["https://of-install/simple"],
        "proxy": ["a:1"],
        "timeout": ["9"],
    }
    assert brought(PIP_INDEX_URL="https://of-a-variable/simple").options["index-url"] == [
        "https://of-a-variable/simple"
    ]


def test_a_file_that_a_variable_names_takes_the_place_of_the_users(brought, tmp_path):
    files = {
        ".config/pip/pip.conf": "[global]\nretries = 1\nproxy = a:1\n",
        "named": "[global]\nretries = 2\n",
    }
    assert brought(files, PIP_CONFIG_FILE=str(tmp_path / "named")).options == {"retries": ["2"]}
    assert brought(files, PIP_CONFIG_FILE="/dev/null").options == {}


def test_several_places_and_hosts_are_brought_each_by_itself(brought):
    several = "[global]\nextra-index-url =\n  https://a/simple\n  https://b/simple\ntrusted-host = a b\n"
    found = brought({".config/pip/pip.conf": several}, PIP_FIND_LINKS="https://c/wheels https://d/wheels").options
    assert found["extra-index-url"] == ["https://a/simple", "https://b/simple"]
    assert found["find-links"] == ["https://c/wheels", "https://d/wheels"] and found["trusted-host"] == ["a", "b"]


def test_how_packages_are_installed_is_this_machines_alone(brought, tmp_path):
    constraints = tmp_path / "constraints.txt"
    constraints.touch()
    files = {".config/pip/pip.conf": f"[global]\nconstraint = {constraints}\nuser = yes\nno-deps = yes\n"}
    assert brought(files, PIP_TARGET="/somewhere", PIP_REQUIRE_VIRTUALENV="1").options == {}


def test_proxies_are_brought_for_pip_and_those_of_this_machine_are_left_out_with_a_word(brought):
    given = {"HTTPS_PROXY": "http://me:pw@proxy:3128", "http_proxy": "http://127.0.0.1:3128", "NO_PROXY": ".corp"}
    found = brought(**given, PIP_PROXY="localhost:8080")
    assert found.variables == {"HTTPS_PROXY": "http://me:pw@proxy:3128", "NO_PROXY": ".corp"}
    assert "proxy" not in found.options
    assert [sentence.split(" is at ")[0] for sentence in found.left_out] == ["pip's proxy", "pip's http_proxy"]


@pytest.mark.parametrize("variable", ["PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_certificates_are_brought_by_what_is_in_them(brought, tmp_path, variable):
    (tmp_path / "ca.pem").write_text("a certificate")
    found = brought(**{variable: str(tmp_path / "ca.pem"), "PIP_CLIENT_CERT": str(tmp_path / "nowhere.pem")})
    assert found.certificates == {"cert": "a certificate"}
    assert len(found.left_out) == 1 and "client-cert" in found.left_out[0]


def test_an_index_in_a_folder_is_mounted_with_what_its_pages_link_to(brought, tmp_path):
    for name in ("mirror/simple", "wheels"):
        (tmp_path / name).mkdir(parents=True)
    found = brought(
        PIP_INDEX_URL=f"file://{tmp_path}/mirror/simple",
        PIP_FIND_LINKS=f"{tmp_path}/wheels file://{tmp_path}/wheels {tmp_path}/nowhere",
    )
    assert found.folders == {"/opt/ml/input/pip/0": tmp_path / "mirror", "/opt/ml/input/pip/1": tmp_path / "wheels"}
    assert found.options == {
        "index-url": ["file:///opt/ml/input/pip/0/simple"],
        "find-links": ["/opt/ml/input/pip/1", "file:///opt/ml/input/pip/1"],
    }
    assert len(found.left_out) == 1 and "nowhere" in found.left_out[0]


def test_of_netrc_only_the_entries_of_indexes_are_brought(brought):
    netrc = {".netrc": "machine packages login me password pw\nmachine elsewhere login me password other\n"}
    assert brought(netrc).netrc == ""
    found = brought(netrc, PIP_EXTRA_INDEX_URL="https://packages/simple")
    assert found.netrc == "machine packages login me password pw\n"


@pytest.mark.parametrize(("names", "wanted"), [(["requirements.txt"], True), (["pyproject.toml"], True), ([], False)])
def test_they_are_wanted_where_pip_may_run(tmp_path: Path, names, wanted):
    with tarfile.open(tmp_path / "code.tar.gz", "w:gz") as archive:
        for name in ("train.py", "data/requirements.txt", *names):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    assert (for_code(str(tmp_path / "code.tar.gz"), {}, INSIDE) is not None) is wanted
    assert for_code(None, {}, INSIDE) is None


def test_the_toolkit_reads_what_is_written_and_the_places_of_folders_are_there(brought, tmp_path, monkeypatch):
    monkeypatch.delenv("PIP_CONFIG_FILE", raising=False)
    (tmp_path / "wheels").mkdir()
    layout = Layout(str(tmp_path / "host"))
    Path(layout.config).mkdir(parents=True)
    found = brought(PIP_INDEX_URL="https://me:a-pass@packages/simple", PIP_FIND_LINKS=str(tmp_path / "wheels"))
    found.write(layout)
    assert Path(layout.pip_settings).stat().st_mode & 0o777 == 0o600
    assert found.mounts == [(str(tmp_path / "wheels"), "/opt/ml/input/pip/0", True)]
    assert (tmp_path / "host" / "input" / "pip" / "0").is_dir()
    with taken(layout.pip_settings) as settings:
        assert settings is not None and "a-pass" in settings.secrets
        config = Path(settings.environment["PIP_CONFIG_FILE"]).read_text()
    assert "index-url = https://me:a-pass@packages/simple\nfind-links = /opt/ml/input/pip/0\n" in config
