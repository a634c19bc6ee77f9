"""Fetch a code bundle from a store: `code_download.py s3://bucket/key PATH`.

A process of its own, because a client of S3 is more to load than all of the toolkit, and most jobs need none. What it
says is for the job's log.
"""

from __future__ import annotations

import os
import sys

_AMAZON = (".amazonaws.com", ".amazonaws.com.cn")
sys.path.append(os.path.abspath(os.path.join(__file__, "../../..")))


def main(uri: str, path: str) -> int:
    """Put the object at `uri` at `path`; returns 1, having said why, where that cannot be done."""
    _take_endpoint_of_local_mode()
    from estimator_container.storage import StorageError, open_store  # here: the toolkit only wants this file's name

    folder, _, name = uri.rpartition("/")
    try:
        open_store(folder).download(name, path)
    except StorageError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _take_endpoint_of_local_mode() -> None:
    """The local mode of SageMaker's SDK names the server in a variable of its own, Amazon's own one too."""
    endpoint = os.environ.get("S3_ENDPOINT_URL")
    if endpoint and not endpoint.endswith(_AMAZON):
        os.environ.setdefault("AWS_ENDPOINT_URL_S3", endpoint)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
