"""What a developer debugs: the logger `estimator_sdk`, at level DEBUG. What a user is told goes another way.

Nobody sees it unless an application configures `logging`, or ESTIMATOR_LOG=debug or `estimator --debug` asks for it.
"""

from __future__ import annotations

import os
import sys
import warnings

VARIABLE = "ESTIMATOR_LOG"
_NAME = "estimator_sdk"
_MARK = "debug"
"""What begins each line that is shown."""


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
    """Show all that is logged on standard error, each line with its time, process and module; in supervisors too."""
    import logging

    logger = logging.getLogger(_NAME)
    if any(isinstance(handler, logging.StreamHandler) for handler in logger.handlers):
        return
    os.environ[VARIABLE] = "debug"
    handler = logging.StreamHandler()
    form = f"{_MARK} %(asctime)s.%(msecs)03d %(process)d %(module)s: %(message)s"
    handler.setFormatter(logging.Formatter(form, "%H:%M:%S"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)


def is_debug_output(line: str) -> bool:
    """Whether a line on standard error is one that `show` brought there."""
    return line.startswith(f"{_MARK} ")


def show_if_asked_for() -> None:
    """Obey the variable. Warns of a value that it cannot have."""
    given = os.environ.get(VARIABLE, "")
    if given.lower() == "debug":
        show()
    elif given:
        what = f"{VARIABLE} is {given!r}, which is not a valid value"
        warnings.warn(f"{what}; set it to debug, or remove it", stacklevel=2)
