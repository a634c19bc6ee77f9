"""Bring one shard in a process of its own, for a process that was forked, as DataLoaders do with their workers.

The client of an s3 store does not survive a fork.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from estimator_container.storage import Object, StorageError, open_store

_PROGRAM = "from estimator_container.data.reading.fetch import main; main()"


def fetch_elsewhere(uri: str, shard: Object, path: str) -> None:
    """Put the bytes of an object of the store at `uri` at `path`. Raises StorageError."""
    task = json.dumps({"uri": uri, "object": [shard.key, shard.size, shard.etag], "path": path})
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = [sys.executable, "-c", _PROGRAM]
    done = subprocess.run(words, input=task, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode:
        said = done.stdout.strip() or f"the process that brings {shard.key} ended with {done.returncode}"
        raise StorageError(said)


def main() -> None:
    """What that process does; on its standard output is why it cannot.

    It ends at once: while an interpreter tidies up, a thread of the client's that wants in may abort the process.
    """
    task = json.load(sys.stdin)
    code = 0
    try:
        open_store(task["uri"]).download(Object(*task["object"]), task["path"])
    except StorageError as error:
        print(error, flush=True)
        code = 1
    os._exit(code)
