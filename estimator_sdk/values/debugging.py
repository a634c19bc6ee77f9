"""What a developer debugs: the logger `estimator_sdk`, at level DEBUG. What a user is told goes another way.

Nobody sees it unless an application configures `logging`, or ESTIMATOR_LOG=debug or `estimator --debug` asks for it.
"""

from __future__ import annotations

import os
import sys
import warnings

VARIABLE = "ESTIMATOR_LOG"
_NAME = "estimator_sdk"


def debug(message: str, *values: object) -> None:
    """Log a message, whose `%s` stand for the values; no value may hold a secret.

    Does nothing in a process that has not imported `logging`, which takes some milliseconds: nobody listens there.
    """
    logging = sys.modules.get("logging")
    if logging is not None:
        logger = logging.getLogger(_NAME)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
        logger.debug(message, *values, stacklevel=2)


def show() -> None:
    """Show all that is logged on standard error, each line with its time, process and module."""
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(process)d %(module)s: %(message)s", "%H:%M:%S"))
    logger = logging.getLogger(_NAME)
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)


def show_if_asked_for() -> None:
    """Obey the variable. Warns of a value that it cannot have."""
    given = os.environ.get(VARIABLE, "")
    if given.lower() == "debug":
        show()
    elif given:
        warnings.warn(f"{VARIABLE} is {given!r}, which means nothing; set it to debug, or remove it", stacklevel=2)
