"""What Spark is in this process, seen without loading it: whoever uses it has imported it."""

from __future__ import annotations

import sys
from itertools import takewhile

_NOT_SAID = ("\tat ", "Driver stacktrace:")
"""How the lines begin after which only Java's own words come."""
_HIDING = ("finished unsuccessfully.", "Traceback (most recent call last):", "see the stack trace below.")
"""How the first line ends where Spark says only below it what a task has died of."""


def is_remote() -> bool:
    """Whether it is a client of Spark Connect, which is no driver."""
    utils = sys.modules.get("pyspark.sql.utils")
    return utils is not None and bool(utils.is_remote())


def is_frame(value: object) -> bool:
    """Whether something is a DataFrame of Spark, in a driver or in a client of Spark Connect."""
    kinds = [sys.modules.get(name) for name in ("pyspark.sql.dataframe", "pyspark.sql.connect.dataframe")]
    return any(isinstance(value, kind.DataFrame) for kind in kinds if kind is not None)


def words_of(error: Exception) -> str:
    """One line of what Spark says in an error, without what Java and Python were doing meanwhile.

    >>> java = "\\n\\tat org.apache.spark.Task.run(Task.scala:1)"
    >>> words_of(Exception("Job 3 cancelled part of cancelled job group mine" + java))
    'Job 3 cancelled part of cancelled job group mine'
    >>> lost = "Stage failed because barrier task ResultTask(0, 3) finished unsuccessfully."
    >>> words_of(Exception(lost + "\\nExecutorLostFailure (executor 1 exited)\\nDriver stacktrace:" + java))
    'ExecutorLostFailure (executor 1 exited)'
    >>> died = "Lost task 0.3: org.apache.spark.api.python.PythonException: Traceback (most recent call last):"
    >>> words_of(Exception(died + "\\n  File 'worker.py', line 1\\nImportError: no pyarrow\\n" + java))
    'ImportError: no pyarrow'
    """
    told = getattr(error, "java_exception", None)
    text = str(told.getMessage()) if told is not None else str(error)
    first, *others = text.strip().splitlines() or [type(error).__name__]
    if not first.endswith(_HIDING):
        return first
    said = [line.strip() for line in takewhile(lambda line: not line.startswith(_NOT_SAID), others)]
    found = [line for line in said if line]
    return found[-1] if found else first
