"""The executors of a Spark session: a job's hosts are processes there, kept by the tasks of one barrier stage.

What such a task starts is the keeper of the pools with ssh; the supervisor is on the driver's machine.
"""

from __future__ import annotations

from ..port import Capabilities

NAME = "spark"
CAPABILITIES = Capabilities(is_supervised=True, has_executors=True)
"""Here, so that they can be asked for without what the backend itself needs."""
