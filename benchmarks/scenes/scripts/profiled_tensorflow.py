"""One rank with `tf.data` that spends time on one thing, and what TensorFlow's profiler says of it."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf
from estimator_container.training import checkpointing, communicating, mark_step
from truth import Truth, arguments, compute, told_by_profiler

SENTENCES = re.compile(rb"(?:Your program is|[\d.]+ % of the total step time) [ -~]*?(?=[.](?![0-9]))")
"""Of the analysis, which is a protocol buffer (`input_pipeline.proto`): how input bound it is, and the rest."""
WAITING = {"checkpoint": checkpointing, "allreduce": communicating}


def batches(count: int, milliseconds: float) -> tf.data.Dataset:
    """Batches that take so long to decode, none of which is made ahead of time."""

    def decode(number: tf.Tensor) -> tf.Tensor:
        tf.py_function(lambda: time.sleep(milliseconds / 1000), [], [])
        return tf.cast(tf.fill((8, 16), number), tf.float32)

    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    data = tf.data.Dataset.range(count)
    return (data.map(decode) if milliseconds else data.map(lambda number: tf.fill((8, 16), 1.0))).with_options(options)


@contextlib.contextmanager
def profiler(is_on: bool, truth: Path) -> Iterator[None]:
    """Record what is done in here, and write down what the analysis of the input pipeline makes of it."""
    if not is_on:
        yield
        return
    from tensorflow.python.profiler.internal import _pywrap_profiler_plugin as plugin

    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        try:
            yield
        finally:
            tf.profiler.experimental.stop()
        recorded = [str(path) for path in Path(folder).rglob("*.xplane.pb")]
        found, _ = plugin.xspace_to_tools_data(recorded, "input_pipeline_analyzer")
    told_by_profiler(truth, "; ".join(sentence.decode() for sentence in SENTENCES.findall(found)))


def main() -> None:
    """Train a layer, step by step."""
    parser = arguments()
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    truth, weights = Truth(given.truth, 0), tf.Variable(tf.ones((16, 1)))

    @tf.function
    def train(batch: tf.Tensor) -> None:
        weights.assign_sub(0.001 * tf.ones((16, 1)) * tf.reduce_mean(batch @ weights))

    data = iter(batches(given.steps + 1, given.cause_ms if given.cause == "decode" else 0))
    with profiler(given.profile, given.truth):
        for number in range(given.steps + 1):
            with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                with truth.injected() if given.cause == "decode" else contextlib.nullcontext():
                    batch = next(data)
                train(batch)
                compute(given.computing_ms)
                if given.cause in WAITING:
                    with WAITING[given.cause](), truth.injected():
                        time.sleep(given.cause_ms / 1000)
            mark_step()
            truth.step()
    truth.write()


main()
