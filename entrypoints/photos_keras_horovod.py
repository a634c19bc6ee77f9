"""Tell shapes on photos apart with Keras 3, on all ranks of a Horovod world: an example that waits for its input.

    python photos_keras_horovod.py                           # one process
    mpirun -np 4 python photos_keras_horovod.py --keep       # four of them, with what the doctor advises

It reads its photos the way that is usually written first, one after the other, so it waits for them in most of a step:

    estimator doctor run --try --source-dir entrypoints -- python photos_keras_horovod.py
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import horovod.tensorflow as hvd
import keras
import open_mpi
import photos
import tensorflow as tf
from estimator_container import keras_horovod


def arguments(argv: list[str]) -> argparse.Namespace:
    """What it is told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--photos", type=int, default=192, help="for each rank")
    parser.add_argument("--batch-size", type=int, default=32, help="photos a step on each rank")
    parser.add_argument("--keep", action="store_true", help="keep what is made of the photos in memory")
    parser.add_argument("--model-dir", type=Path, default=Path(os.environ.get("SM_MODEL_DIR", "/opt/ml/model")))
    return parser.parse_args(argv)


def join_world() -> None:
    """Meet the other ranks, and take no more than this rank's part of the machine."""
    open_mpi.find()
    hvd.init()
    tf.config.threading.set_intra_op_parallelism_threads(1)


def batches(settings: argparse.Namespace, folder: Path) -> tf.data.Dataset:
    """This rank's photos, which it draws first."""
    numbers = range(hvd.rank(), settings.photos * hvd.size(), hvd.size())
    if not settings.keep:
        made = tf.data.Dataset.from_tensor_slices(photos.write(folder, numbers))
        return made.shuffle(len(numbers), seed=1).map(photos.load).batch(settings.batch_size)
    made = tf.data.Dataset.from_tensor_slices(photos.write(folder, numbers)).map(photos.load).cache()
    # It goes on over the epochs, because making an iterator for each of them takes as long as a step.
    return made.shuffle(len(numbers), seed=1).batch(settings.batch_size).repeat()


def new_model() -> keras.Model:
    """A small network of convolutions."""
    return keras.Sequential(
        [
            keras.Input((photos.SMALL_SIDE, photos.SMALL_SIDE, 3)),
            keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
            keras.layers.Conv2D(64, 3, activation="relu"),
            keras.layers.Conv2D(64, 3, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(len(photos.SHAPES)),
        ]
    )


def main(argv: list[str]) -> None:
    settings = arguments(argv)
    join_world()
    keras.utils.set_random_seed(0)
    model = new_model()
    model.compile(
        keras_horovod.DistributedOptimizer(keras.optimizers.Adam(0.003)),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["acc"],
        jit_compile=False,
    )
    callbacks = [keras_horovod.BroadcastGlobalVariablesCallback(), keras_horovod.MetricAverageCallback()]
    with tempfile.TemporaryDirectory(prefix="photos-") as folder:
        data = batches(settings, Path(folder))
        steps = math.ceil(settings.photos / settings.batch_size) if settings.keep else None
        fitted = model.fit(data, epochs=settings.epochs, steps_per_epoch=steps, callbacks=callbacks, verbose=0)
    if hvd.rank() == 0:
        print(f"train_accuracy: {fitted.history['acc'][-1]:.4f}", flush=True)
        settings.model_dir.mkdir(parents=True, exist_ok=True)
        model.save(settings.model_dir / "model.keras")


if __name__ == "__main__":
    main(sys.argv[1:])
