"""Recognise handwritten digits with Keras 3 on TensorFlow, on all ranks of a Horovod world.

    python digits_keras_horovod.py                      # one process
    mpirun -np 4 python digits_keras_horovod.py         # four of them
    mpirun -np 4 python digits_keras_horovod.py --keep  # the same batches, as the doctor advises to take them

What Horovod asks of a training script is marked with numbers, 1 to 7.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # the same bits on every kind of CPU, and no notice

import checkpoints
import digits
import horovod.tensorflow as hvd
import keras
import numpy as np
import open_mpi
import tensorflow as tf
from estimator_container import keras_horovod

SUFFIX = ".keras"


def arguments(argv: list[str]) -> argparse.Namespace:
    """Hyperparameters come as arguments, folders as arguments or from the environment of a training job."""
    model_dir = os.environ.get("SM_MODEL_DIR", "/opt/ml/model")
    checkpoint_dir = os.environ.get("SM_CHECKPOINT_DIR", "/opt/ml/checkpoints")
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=32, help="images a step on each rank")
    parser.add_argument("--learning-rate", type=float, default=0.005, help="for one rank; times their number")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="keep the images in TensorFlow, as the doctor advises")
    parser.add_argument("--train", default=os.environ.get("SM_CHANNEL_TRAIN"), help="folder of digits.npz")
    parser.add_argument("--model-dir", type=Path, default=Path(model_dir))
    parser.add_argument("--checkpoint-dir", type=Path, default=Path(checkpoint_dir))
    return parser.parse_args(argv)


def join_world() -> None:
    """1. Meet the other ranks, and take no more than this rank's part of the machine."""
    open_mpi.find()
    hvd.init()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank() % len(gpus)], "GPU")


def share(settings: argparse.Namespace, count: int, epoch: int) -> list[np.ndarray]:
    """2. This rank's share of so many images, in batches: every rank has the same number of them."""
    return digits.batches(
        count,
        rank=hvd.rank(),
        size=hvd.size(),
        batch_size=settings.batch_size,
        seed=settings.seed,
        epoch=epoch,
    )


class Share(keras.utils.PyDataset):
    """The batches of this rank, of which Keras asks for one after the other."""

    def __init__(self, data: digits.Examples, settings: argparse.Namespace, epoch: int) -> None:
        super().__init__()
        self.data, self.settings, self.epoch = data, settings, epoch
        self.batches = share(settings, len(data), epoch)

    def on_epoch_end(self) -> None:
        self.epoch += 1
        self.batches = share(self.settings, len(self.data), self.epoch)

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        batch = self.data[self.batches[index]]
        return batch.images, batch.labels


def kept(data: digits.Examples, settings: argparse.Namespace, done: int) -> tf.data.Dataset:
    """The same batches, epoch after epoch: TensorFlow has the images, and asks Python for the order of an epoch."""
    images, labels = tf.constant(data.images), tf.constant(data.labels)

    def orders() -> Iterator[np.ndarray]:
        for epoch in itertools.count(done + 1):  # a `Share` is told of the end of an epoch once before the first
            for _, batches in itertools.groupby(share(settings, len(data), epoch), key=len):
                yield np.stack(list(batches))

    order = tf.data.Dataset.from_generator(orders, output_signature=tf.TensorSpec([None, None], tf.int64))
    chosen = order.map(lambda order: (tf.gather(images, order), tf.gather(labels, order)))
    options = tf.data.Options()  # to improve nothing: that takes longer than these batches
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return chosen.unbatch().with_options(options)


def inputs(data: digits.Examples, test: digits.Examples, settings: argparse.Namespace, done: int) -> dict[str, Any]:
    """What `fit` takes: for each epoch a new iterator, or one for all of them, which costs less."""
    if not settings.keep:
        return {"x": Share(data, settings, done), "validation_data": (test.images, test.labels)}
    return {"x": kept(data, settings, done), "steps_per_epoch": len(share(settings, len(data), done))}


class Validation(keras.callbacks.Callback):
    """All images of the test set at once, for which `fit` would make a new iterator each time."""

    def __init__(self, test: digits.Examples) -> None:
        super().__init__()
        self.test = tf.constant(test.images), tf.constant(test.labels)

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        self.model.reset_metrics()
        found = self.model.test_on_batch(*self.test, return_dict=True)
        logs.update({f"val_{name}": float(value) for name, value in found.items()})


class EpochEnd(keras.callbacks.Callback):
    """6. Only rank 0 reports and writes files: the others hold the same model."""

    def __init__(self, settings: argparse.Namespace) -> None:
        super().__init__()
        self.settings = settings

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        path = checkpoints.path_of(self.settings.checkpoint_dir, epoch + 1, SUFFIX)
        with checkpoints.written_whole(path) as unfinished:
            self.model.save(unfinished)
        metrics = " ".join(f"{name} {logs[name]:.4f}" for name in ("loss", "acc", "val_loss", "val_acc"))
        print(f"epoch {epoch + 1}/{self.settings.epochs} {metrics}", flush=True)


def new_model() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((digits.PIXELS,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(digits.CLASSES),
        ]
    )


def start(settings: argparse.Namespace) -> tuple[int, keras.Model]:
    """Epochs done, and the model, compiled. Only rank 0 needs to see the checkpoint: see 5."""
    found = checkpoints.newest(settings.checkpoint_dir, SUFFIX) if hvd.rank() == 0 else None
    if found:
        print(f"resuming after epoch {found[0]} from {found[1]}", flush=True)
    done = hvd.broadcast_object(found[0] if found else 0)
    model = keras.models.load_model(found[1]) if found else new_model()
    optimizer = model.optimizer if found else keras.optimizers.Adam()
    # 3. As many ranks as there are, so much larger is the batch: the learning rate grows with it.
    optimizer.learning_rate = settings.learning_rate * hvd.size()
    # 4. Average the gradients of all ranks at every step.
    model.compile(
        keras_horovod.DistributedOptimizer(optimizer),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["acc"],
        jit_compile=False,
    )
    return done, model


def train(settings: argparse.Namespace, data: digits.Examples, test: digits.Examples) -> keras.Model:
    """Train from the newest checkpoint to the last epoch."""
    done, model = start(settings)
    own_test = test[hvd.rank() :: hvd.size()]
    # 5. All ranks start from the state of rank 0, and report the mean of their metrics.
    callbacks = [keras_horovod.BroadcastGlobalVariablesCallback(), keras_horovod.MetricAverageCallback()]
    if settings.keep:
        callbacks.insert(0, Validation(own_test))
    if hvd.rank() == 0:
        callbacks.append(EpochEnd(settings))
    model.fit(
        **inputs(data, own_test, settings, done),
        initial_epoch=done,
        epochs=settings.epochs,
        callbacks=callbacks,
        shuffle=False,  # the shares are shuffled already, alike in every run
        verbose=0,
    )
    return model


def check_agreement(model: keras.Model) -> None:
    """7. End with an error unless every rank holds the same weights, bit for bit."""
    weights = b"".join(weight.tobytes() for weight in model.get_weights())
    checksums = hvd.allgather_object(hashlib.sha256(weights).hexdigest())
    if len(set(checksums)) > 1:
        sys.exit(f"the weights differ between the {hvd.size()} ranks: not every gradient was averaged")
    if hvd.rank() == 0:
        print(f"weights agree on all {hvd.size()} ranks", flush=True)


def main(argv: list[str]) -> None:
    settings = arguments(argv)
    join_world()
    keras.utils.set_random_seed(settings.seed)

    data, test = digits.load(settings.train)
    if hvd.rank() == 0:
        print(f"training on {len(data)} images with {hvd.size()} ranks", flush=True)
    model = train(settings, data, test)
    check_agreement(model)
    if hvd.rank() == 0:
        _, accuracy = model.evaluate(test.images, test.labels, verbose=0)
        print(f"test_accuracy: {accuracy:.4f}", flush=True)
        with checkpoints.written_whole(settings.model_dir / "model.keras") as unfinished:
            model.save(unfinished)


if __name__ == "__main__":
    main(sys.argv[1:])
