"""Kernels that run notebooks, and sockets that only they have.

By default one gets TCP ports that were free when they were chosen, which another test may have by the time that the
kernel has started.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import nbformat
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from traitlets.config import Config

START_SECONDS = 300.0  # for a machine that does much else


def execute(notebook: nbformat.NotebookNode, seconds: float, **options: Any) -> nbformat.NotebookNode:
    """Run a notebook in a kernel of its own, each cell for so many seconds at most; returns it with its outputs."""
    with _sockets() as sockets:
        return NotebookClient(
            notebook,
            timeout=seconds,
            startup_timeout=START_SECONDS,
            iopub_timeout=int(START_SECONDS),  # or what a cell has drawn last is lost
            kernel_name="python3",
            config=Config(KernelManager=sockets),
            **options,
        ).execute()


@contextmanager
def kernel() -> Iterator[BlockingKernelClient]:
    """A kernel that has started, for who asks it himself; it is gone afterwards."""
    with _sockets() as sockets:
        manager = KernelManager(kernel_name="python3", **sockets)
        manager.start_kernel()
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=START_SECONDS)
            yield client
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


@contextmanager
def _sockets() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        yield {"transport": "ipc", "ip": f"{folder}/kernel"}
