"""A secret that the hosts of a job agree on in a folder that they share, where their platform gives them none.

The local mode of SageMaker's SDK starts all hosts of a job on one machine and mounts one and the same `model` folder,
which is open to its user alone, into each of them; nothing else always reaches them all. On SageMaker itself every
instance has a folder of its own, so this is for hosts whose instance type says that they are local.
"""

from __future__ import annotations

import contextlib
import os

from ..contract.cluster import Cluster
from ..contract.names import SECRET_BYTES, TRUST_NETWORK, Layout
from ..contract.settings import Settings

_NAME = ".estimator-world-secret"
_LOCAL_TYPES = ("local", "local_gpu")


def agree(layout: Layout, cluster: Cluster) -> bytes | None:
    """The secret that the first host to come has made up; None for a single host, or hosts that share no folder."""
    if len(cluster.hosts) == 1 or cluster.current_instance_type not in _LOCAL_TYPES:
        return None
    path = _path(layout)
    own = f"{path}-{cluster.current_host}"
    with open(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(os.urandom(SECRET_BYTES))
    # A link appears whole or not at all, and only one host's can be the first.
    with contextlib.suppress(FileExistsError):
        os.link(own, path)
    os.unlink(own)
    with open(path, "rb") as file:
        return file.read()


def of_trusted_network(settings: Settings) -> bytes | None:
    """What stands for a secret where the user says that nobody else reaches the hosts; None where they say nothing.

    Everybody can work it out who knows the job's name and its hosts: it keeps apart jobs, and no strangers out.
    """
    if not settings.trusts_network:
        return None
    import hashlib  # where there is a secret, nobody comes here

    known = "\n".join((TRUST_NETWORK, settings.job_name or "", *settings.cluster.hosts))
    return hashlib.sha256(known.encode("utf-8", "surrogateescape")).digest()


def forget(layout: Layout) -> None:
    """Remove the secret, if there is one: all hosts have it, and the script is to see nothing of it."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_path(layout))


def _path(layout: Layout) -> str:
    return os.path.join(layout.model, _NAME)
