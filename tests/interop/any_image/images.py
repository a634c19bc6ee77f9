"""Images as others make them: nothing of ours is in them, or not what it was."""

from __future__ import annotations

import contextlib
import io
import tarfile
import uuid
from collections.abc import Iterator

import docker

from estimator_sdk.backends.docker import engine
from estimator_sdk.backends.supervised.job import wait_until_gone

PLAIN = """
FROM estimator/mpi:py311
RUN rm -rf /opt/toolkit /usr/local/bin/train /opt/venv/lib/python3*/site-packages/estimator_container.pth \
 && printf '#!/bin/sh\\necho welcome\\nexport FROM_ENTRYPOINT=yes\\nexec "$@"\\n' > /begin && chmod 755 /begin
LABEL estimator.toolkit=""
ENTRYPOINT ["/begin"]
"""
"""A Python and Open MPI, and an ENTRYPOINT that prepares something for what stands behind it."""
WITHOUT_MPI = f"{PLAIN}\nENV PATH=/usr/local/bin:/usr/bin:/bin\n"
"""A Python alone."""
WITH_AN_OLDER_TOOLKIT = """
FROM estimator/mpi:py311
RUN cd /opt/toolkit/estimator_container && rm -rf __pycache__ \
 && for each in __init__ __main__; do echo 'raise SystemExit("the older toolkit")' > $each.py; done
ENTRYPOINT ["cat"]
"""
"""One that was made from an image of ours some time ago, whose ENTRYPOINT does not start what stands behind it."""

WITHOUT_ANYTHING_TO_RUN = """
FROM estimator/mpi:py311
RUN mkdir /only && printf '#!/bin/sh\\n' > /only/train
ENV PATH=/only
LABEL estimator.toolkit=""
ENTRYPOINT []
"""
"""No Python, and a `train` that nobody may run."""


@contextlib.contextmanager
def built(dockerfile: str) -> Iterator[str]:
    """An image, by a name that is removed at the end."""
    client, name = engine.connect(), _new_name()
    client.images.build(fileobj=io.BytesIO(dockerfile.encode()), tag=name, rm=True, forcerm=True)
    try:
        yield name
    finally:
        _remove(client, name)


@contextlib.contextmanager
def without_anything() -> Iterator[str]:
    """An image that is one text file."""
    client, name, data = engine.connect(), _new_name(), io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("nothing"))
    client.api.import_image_from_data(data.getvalue(), repository=name)
    try:
        yield name
    finally:
        _remove(client, name)


def _new_name() -> str:
    return f"estimator-tests/any-image-{uuid.uuid4().hex[:12]}"


def _remove(client: docker.DockerClient, name: str) -> None:
    wait_until_gone()  # its containers may be on their way
    client.images.remove(name)
