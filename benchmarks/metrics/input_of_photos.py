"""S22: what the photos example loses to input, which decodes JPEGs."""

from __future__ import annotations

from estimator_container.training.trials import words

from ..input_gap import Example, Run, metric

PHOTOS = Example(
    "photos",
    "photos_keras_horovod.py",
    {
        "parallel calls of map, and prefetch": Run((words.PARALLEL, f"{words.PREFETCH}=4"), most_ranks=1),
        "kept in memory": Run(arguments=("--keep",)),
    },
    "kept in memory",
)
METRIC = metric(
    "S22",
    PHOTOS,
    "192 JPEGs of 512 x 512 pixels a rank, decoded by `tf.data` with one call of `map` after the other, in batches of "
    "32, and a small network of Keras with Horovod. The doctor advises parallel calls of `map`, which does not help "
    "where the CPUs are busy, and to keep the decoded samples in memory, which is `--keep` of the script. That also "
    "goes on with one iterator over all epochs, and so does what replays the first batch: as it is, `fit` makes one "
    "for each epoch of 6 steps, which takes up to 20 ms.",
)
