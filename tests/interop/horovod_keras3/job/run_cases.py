"""Run every case that is named, or all, on all ranks, and print a line of JSON for each."""

from __future__ import annotations

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
sys.modules["sklearn"] = None  # Keras would import it for its own wrappers: a fifth of the start

import gc
import json
import time
import traceback
from collections.abc import Iterator

import arguments
import elastic
import horovod.tensorflow as hvd
import names
import numpy as np
import state
import steps
import tensorflow as tf
import words
from case import EVENS, Case, Outcome, digest


def cases() -> Iterator[tuple[str, Case]]:
    for module in (names, arguments, steps, state, elastic):
        for name, member in vars(module).items():
            if name.startswith("case_") and (not sys.argv[1:] or name.removeprefix("case_") in sys.argv[1:]):
                yield name.removeprefix("case_"), member


def difference(outcome: Outcome) -> float:
    if hvd.rank() > 0 and not outcome.expected:
        return 0.0
    pairs = zip(outcome.weights, outcome.expected, strict=True)
    differences = (np.abs(np.asarray(one, "float64") - np.asarray(other, "float64")) for one, other in pairs)
    return max((float(each.max()) for each in differences), default=0.0)


def result(name: str, case: Case) -> dict[str, object]:
    """How a case ended on all ranks, as rank 0 tells it."""
    begun = time.process_time()
    try:
        outcome = case()
        agrees = outcome.agree is None or hvd.rank() in outcome.agree
        here = (agrees, digest(outcome.weights), difference(outcome), outcome.tolerance, "")
    except Exception:
        here = (True, "", 0.0, 0.0, traceback.format_exc())
    ranks = hvd.allgather_object(here, name=f"result_of_{name}")
    errors = [f"rank {rank}: {error}" for rank, (*_, error) in enumerate(ranks) if error]
    return {
        "case": name,
        "error": "\n".join(errors),
        "agree": len({weights for agrees, weights, *_ in ranks if agrees}) == 1,
        "difference": max(difference for _, _, difference, _, _ in ranks),
        "tolerance": max(tolerance for *_, tolerance, _ in ranks),
        "seconds": round(time.process_time() - begun, 2),
    }


if __name__ == "__main__":
    gc.freeze()  # or each collection would go through all of TensorFlow
    hvd.init(process_sets=[EVENS])
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})  # or it takes as long as the steps
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    for name, case in cases():
        told = result(name, case)
        if hvd.rank() == 0:
            print(f"CASE {json.dumps(told)}", flush=True)
    if hvd.rank() == 0:
        print(f"WORDS {json.dumps(words.told())}", flush=True)
