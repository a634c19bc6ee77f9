"""What an image is built from."""

from __future__ import annotations

import os

from estimator_sdk.backends.docker.images import catalogue, context


def test_who_runs_in_the_image_can_read_what_is_copied_there_whatever_the_umask_is_here(tmp_path, monkeypatch):
    certificates = tmp_path / "private.pem"
    certificates.touch(0o600)
    monkeypatch.setenv("PIP_CERT", str(certificates))
    before = os.umask(0o077)
    try:
        context.write(catalogue.MPI, context.files(catalogue.MPI), tmp_path / "context")
    finally:
        os.umask(before)
    made = list((tmp_path / "context").rglob("*"))
    assert {"bundle.pem", "host.py", "install"} <= {path.name for path in made}
    for path in made:
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644), path
