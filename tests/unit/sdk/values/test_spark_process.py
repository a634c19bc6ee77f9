"""What is told of a Spark that nobody has loaded."""

import subprocess
import sys

PROGRAM = """
import sys
from estimator_sdk.values import spark_process

assert not spark_process.is_remote() and not spark_process.is_frame([1])
assert "pyspark" not in sys.modules
"""


def test_nobody_loads_spark_to_ask_for_it():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
