"""S23: what the digits example loses to input, which Python hands to `tf.data` batch by batch."""

from __future__ import annotations

from estimator_container.training.trials import words

from ..input_gap import Example, Run, metric

ADVISED = "one iterator for all epochs, tried"
DIGITS = Example(
    "digits",
    "digits_keras_horovod.py",
    {ADVISED: Run((f"{words.STACK}=64", words.GO_ON)), "the same in the script": Run(arguments=("--keep",))},
    "the same in the script",
)
METRIC = metric(
    "S23",
    DIGITS,
    "Batches of 32 digits, which a `PyDataset` of Keras makes, and a small network with Horovod. The doctor advises "
    "one iterator for all epochs, of batches that are handed over in stacks: that is tried without changing the "
    "script, and `--keep` is the script with it, which validates all of its test images at once.",
)
