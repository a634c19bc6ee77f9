"""What a machine answers without a pool."""

from __future__ import annotations

import sys

from estimator_sdk.backends.ssh.on_host.operations import Operations


def test_a_job_with_stores_is_refused_where_their_client_cannot_be_loaded(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    answer, _ = Operations(has_stores=True).answer({"operation": "supervise"}, b"")
    assert answer["error"].startswith(f"its Python {sys.version.split()[0]} cannot load the client of s3:// stores")
    assert answer["error"].endswith("; install the package obstore there, or Python 3.11 or newer as python3")
