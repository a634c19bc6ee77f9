"""Who may do what, on a server that checks signatures (LocalStack takes any); and that no error shows a secret."""

from __future__ import annotations

import json
import socket
import time

import pytest
from estimator_container.storage import AccessDenied, BadCredentials, NoCredentials, open_store

from .conftest import BUCKET

WRONG = "a-wrong-secret-that-nobody-may-see"


@pytest.fixture
def environment(ceph_server, monkeypatch):
    for name, value in ceph_server.environment().items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def everything(store, folder):
    """Each thing that a store can be asked."""
    return [
        lambda: list(store.list()),
        lambda: store.head("key"),
        lambda: store.read("key"),
        lambda: store.write("key", b"1"),
        lambda: store.write("key", b"1", if_absent=True),
        lambda: store.download("key", str(folder / "file")),
        lambda: store.upload(__file__, "key"),
        lambda: store.download_many([("key", str(folder / "file"))]),
        lambda: store.delete(["key"]),
    ]


@pytest.mark.parametrize(
    ("variable", "code"),
    [("AWS_SECRET_ACCESS_KEY", "SignatureDoesNotMatch"), ("AWS_ACCESS_KEY_ID", "InvalidAccessKeyId")],
)
def test_wrong_credentials_are_said_to_be_wrong_and_are_not_shown(environment, folder, variable, code):
    environment.setenv(variable, WRONG)
    for attempt in everything(open_store(f"s3://{BUCKET}/root"), folder):
        with pytest.raises(
            BadCredentials, match=rf"s3://{BUCKET}/.* refuses the credentials \({code}.*AWS_PROFILE"
        ) as error:
            attempt()
        cause = error.value
        while cause is not None:
            assert WRONG not in str(cause)
            assert "tester-secret" not in str(cause)
            cause = cause.__cause__ or cause.__context__
    assert list(folder.iterdir()) == []


def test_anothers_bucket_is_denied(environment, folder):
    environment.setenv("AWS_ACCESS_KEY_ID", "stranger")
    environment.setenv("AWS_SECRET_ACCESS_KEY", "stranger-secret")
    for attempt in everything(open_store(f"s3://{BUCKET}/root"), folder):
        with pytest.raises(AccessDenied, match=f"s3://{BUCKET}/.* denies access"):
            attempt()
    assert list(folder.iterdir()) == []


@pytest.mark.alone
def test_without_credentials_it_says_so_at_once_and_asks_no_metadata_service(environment, monkeypatch):
    environment.delenv("AWS_ACCESS_KEY_ID")
    environment.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: pytest.fail("a connection was made"))
    began = time.monotonic()
    with pytest.raises(NoCredentials, match=f"s3://{BUCKET} needs credentials, but there are none: set AWS_ACCESS"):
        open_store(f"s3://{BUCKET}")
    assert time.monotonic() - began < 20


def test_keys_region_and_endpoint_are_read_from_the_profile(environment, ceph_server, tmp_path):
    for name in ceph_server.environment():
        environment.delenv(name)
    environment.setenv("AWS_PROFILE", "mine")
    (tmp_path / "AWS_CONFIG_FILE").write_text(
        "[profile mine]\nregion = eu-central-1\nservices = here\n"
        f"[services here]\ns3 =\n  endpoint_url = {ceph_server.endpoint}\n"
    )
    keys = f"aws_access_key_id = {ceph_server.access_key}\naws_secret_access_key = {ceph_server.secret_key}\n"
    (tmp_path / "AWS_SHARED_CREDENTIALS_FILE").write_text(f"[mine]\n{keys}")
    store = open_store(f"s3://{BUCKET}/profile")
    store.write("key", b"1")
    assert store.read("key") == b"1"


def test_who_signs_in_again_is_let_in_without_opening_the_store_again(environment, ceph_server, tmp_path):
    environment.delenv("AWS_ACCESS_KEY_ID")
    environment.delenv("AWS_SECRET_ACCESS_KEY")
    profile = tmp_path / "AWS_SHARED_CREDENTIALS_FILE"
    profile.write_text(f"[default]\naws_access_key_id = gone\naws_secret_access_key = {WRONG}\n")
    store = open_store(f"s3://{BUCKET}/again")
    with pytest.raises(BadCredentials):
        store.write("key", b"1")
    keys = f"aws_access_key_id = {ceph_server.access_key}\naws_secret_access_key = {ceph_server.secret_key}\n"
    profile.write_text(f"[default]\n{keys}")
    time.sleep(0.2)  # the client keeps what it has for a tenth of a second
    store.write("key", b"1")
    assert store.read("key") == b"1"


def test_a_profile_that_needs_a_program_is_left_to_botocore(environment, ceph_server, tmp_path):
    environment.delenv("AWS_ACCESS_KEY_ID")
    environment.delenv("AWS_SECRET_ACCESS_KEY")
    program = tmp_path / "credentials"
    answer = {"Version": 1, "AccessKeyId": ceph_server.access_key, "SecretAccessKey": ceph_server.secret_key}
    program.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    program.chmod(0o700)
    (tmp_path / "AWS_CONFIG_FILE").write_text(f"[default]\ncredential_process = {program}\n")
    store = open_store(f"s3://{BUCKET}/process")
    store.write("key", b"1")
    assert store.read("key") == b"1"
