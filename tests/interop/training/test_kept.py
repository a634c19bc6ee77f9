"""A trial in which `tf.data` keeps what it has made, each time in a process of its own.

TensorFlow takes seconds to import, so they are children of one that has imported it and done nothing with it.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

BEGIN = """
import sys

sys.modules["sklearn"] = None  # or Keras imports it for its own wrappers
import tensorflow as tf
from estimator_container.training.trials import kept

calls = []


def count(number):
    calls.append(int(number))
    return 2 * number


def counted(number):
    made = tf.py_function(count, [number], tf.int64)
    made.set_shape(())
    return made


def drawing(number):
    return number + tf.random.uniform((), 0, 1000, tf.int64)


def mapped(data):
    return data.map(lambda number: number + 1).map(counted)


def passes(data, count=3):
    return [[int(each) for each in data] for _ in range(count)]
"""
EACH_IN_A_CHILD = """
import json, os, traceback

for name, case in json.load(sys.stdin).items():
    if child := os.fork():
        _, status = os.waitpid(child, 0)
        assert status == 0, name
        continue
    wrong = ""
    try:
        exec(case)
    except BaseException:
        wrong = traceback.format_exc()
    print(json.dumps([name, wrong]), flush=True)
    os._exit(0)
"""
CASES = {
    "without it each pass makes all anew": """
assert passes(mapped(tf.data.Dataset.range(4))) == [[2, 4, 6, 8]] * 3
assert calls == [1, 2, 3, 4] * 3, calls
""",
    "samples are made once, by all calls of map that follow each other": """
kept.mapped_once(tf.data.Dataset)
assert passes(mapped(tf.data.Dataset.range(4))) == [[2, 4, 6, 8]] * 3
assert calls == [1, 2, 3, 4], calls
""",
    "a batch that is replayed is made once, whoever passes over it again": """
import os, types
from estimator_container.contract.names import DOCTOR
from estimator_container.training.boundaries import in_tensorflow

os.environ[DOCTOR] = "replay"
in_tensorflow.watch_datasets(types.SimpleNamespace(DatasetV2=tf.data.Dataset), None)
assert passes(mapped(tf.data.Dataset.range(4))) == [[2, 2, 2, 2]] * 3
assert calls == [1], calls
""",
    "what is random is drawn anew in each pass": """
kept.mapped_once(tf.data.Dataset)
first, second, third = passes(mapped(tf.data.Dataset.range(4)).map(drawing))
assert first != second != third
assert calls == [1, 2, 3, 4], calls
""",
    "what a pass takes is known, whatever repeats it": """
data = mapped(tf.data.Dataset.range(10)).batch(4).repeat().prefetch(2)
assert kept.size_of(data) == {"batches": 3, "bytes": 3 * 4 * 8}, kept.size_of(data)
""",
    "nothing is to be kept where nothing is mapped, or the length is not known": """
plain = tf.data.Dataset.range(10).batch(2)
assert kept.size_of(plain) == {}
assert kept.size_of(plain.map(drawing)) == {}
assert kept.size_of(mapped(tf.data.Dataset.range(10).filter(lambda number: number > 3))) == {}
""",
}


@pytest.fixture(scope="module")
def wrong() -> dict[str, str]:
    """The traceback of each case that fails, and nothing of one that does not."""
    program = [sys.executable, "-c", BEGIN + EACH_IN_A_CHILD]
    done = subprocess.run(program, input=json.dumps(CASES), stdout=subprocess.PIPE, text=True, check=True, timeout=600)
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("case", CASES)
def test_what_is_mapped_is_kept(wrong, case):
    assert wrong[case] == ""
