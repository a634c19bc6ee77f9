"""What the toolkit makes of the settings for pip that the platform leaves."""

import json
import os
from pathlib import Path

import pytest
from estimator_container.host.preparation import pip_settings

URL = "https://me:a%2Fpass@packages/simple"


@pytest.fixture
def left(tmp_path, monkeypatch):
    """Leaves settings, and gives their path."""
    monkeypatch.delenv("PIP_CONFIG_FILE", raising=False)
    for name in ("HTTPS_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NETRC"):
        monkeypatch.delenv(name, raising=False)

    def left(**fields):
        path = tmp_path / "pip.json"
        empty = {"options": {}, "certificates": {}, "variables": {}, "netrc": "", "left_out": []}
        path.write_text(json.dumps({**empty, **fields}))
        return str(path)

    return left


def test_they_are_gone_from_the_platforms_file_at_once_and_from_ours_afterwards(left):
    path = left(options={"index-url": [URL], "find-links": ["/a", "/b"]}, certificates={"cert": "a certificate"})
    with pip_settings.taken(path) as settings:
        assert not Path(path).exists()
        config, certificate = (Path(settings.environment[name]) for name in ("PIP_CONFIG_FILE", "SSL_CERT_FILE"))
        assert config.stat().st_mode & 0o777 == certificate.stat().st_mode & 0o777 == 0o600
        said = config.read_text()
    assert said == (f"[global]\nindex-url = {URL}\nfind-links = \n    /a\n    /b\ncert = {certificate}\n")
    assert not config.parent.exists()


def test_what_the_job_or_its_image_sets_counts_more(left, monkeypatch, tmp_path):
    monkeypatch.setenv("HTTPS_PROXY", "http://of-the-job:1")
    given = {"variables": {"HTTPS_PROXY": "http://of-this-machine:1", "NO_PROXY": "corp"}}
    with pip_settings.taken(left(**given)) as settings:
        assert settings.environment["HTTPS_PROXY"] == "http://of-the-job:1"
        assert settings.environment["NO_PROXY"] == "corp"
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pip_settings.taken(left(**given)) as settings:
        assert settings is None


def test_no_form_of_a_password_is_in_what_pip_says(left):
    netrc = "machine packages login me password of-netrc\n"
    given = {"options": {"index-url": [URL]}, "variables": {"HTTPS_PROXY": "http://me:of-proxy@proxy"}, "netrc": netrc}
    with pip_settings.taken(left(**given)) as settings:
        basic = "bWU6YS9wYXNz"  # of me:a/pass
        said = settings.masked(f"{URL} a/pass {basic} of-netrc http://me:of-proxy@proxy https://u:p@x \xff".encode())
    text = said.decode("utf-8", "surrogateescape")
    assert not any(word in text for word in ("a%2Fpass", "a/pass", basic, "of-netrc", "of-proxy", ":p@"))
    assert text.count("<hidden>") == 6 and text.endswith("\xff")


def test_without_settings_pip_is_left_alone(left, tmp_path):
    for path in (str(tmp_path / "pip.json"), left()):
        with pip_settings.taken(path) as settings:
            assert settings is None
        assert not Path(path).exists()


def test_what_is_left_out_is_said(left, capsys):
    with pip_settings.taken(left(left_out=["pip's proxy is elsewhere"])):
        pass
    assert capsys.readouterr().out == "pip's proxy is elsewhere\n"
