"""Horovod itself in a trial in which it sends half of the bytes."""

import json
import os
import subprocess
import sys

from estimator_container.contract.names import DOCTOR

SCRIPT = """
import inspect, json
from estimator_container.training import trials
trials.begin(None)
import horovod.tensorflow as hvd
from estimator_container import keras_horovod
chosen = [hvd.allreduce, hvd.DistributedGradientTape, hvd.DistributedOptimizer, keras_horovod.DistributedOptimizer]
print(json.dumps([inspect.signature(each).parameters["compression"].default.__name__ for each in chosen]))
"""


def test_what_a_script_does_not_compress_is_sent_in_16_bits():
    environment = {**os.environ, DOCTOR: "half", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True, timeout=300)
    assert set(json.loads(done.stdout.splitlines()[-1])) == {"FP16Compressor"}
