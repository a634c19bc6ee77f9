"""Fetch a code bundle from a store: `code_download.py s3://bucket/key PATH`.

A process of its own, because a client of S3 is more to load than all of the toolkit, and most jobs need none. What it
says is for the job's log.
"""

from __future__ import annotations

import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main(uri: str, path: str) -> int:
    """Put the object at `uri` at `path`; returns 1, having said why, where that cannot be done."""
    from estimator_container.storage import StorageError, open_store  # here: the toolkit only wants this file's name

    folder, _, name = uri.rpartition("/")
    try:
        open_store(folder).download(name, path)
    except StorageError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
