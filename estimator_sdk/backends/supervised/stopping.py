"""What a job is stopped by."""

import signal

STOPPED_BY = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals to its supervisor, which is started with them blocked, and takes them when it can."""
