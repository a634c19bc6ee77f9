"""A trial in which `tf.data` keeps what it has made, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
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


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_mapped_is_kept(case):
    program = [sys.executable, "-c", BEGIN + case]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
