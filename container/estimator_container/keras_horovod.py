"""Horovod for Keras 3 on TensorFlow: average the gradients, start from equal weights, average the metrics.

What `horovod_keras3` makes of Horovod's own names, for scripts that would rather say so:

    import horovod.tensorflow as hvd
    from estimator_container import keras_horovod

    hvd.init()
    optimizer = keras_horovod.DistributedOptimizer(keras.optimizers.Adam(0.001 * hvd.size()))
    model.compile(optimizer, loss="mse")
    model.fit(..., callbacks=[
        keras_horovod.BroadcastGlobalVariablesCallback(),
        keras_horovod.MetricAverageCallback(),
    ])

Every rank must make the same number of steps an epoch, for each step waits for all ranks. To raise the
learning rate slowly at the start, use a Keras schedule with a warm-up, such as
`keras.optimizers.schedules.CosineDecay`.

Nothing else of this package imports this module: it needs Keras, TensorFlow and Horovod.
"""

from __future__ import annotations

import horovod.tensorflow as hvd
import keras

if int(keras.__version__.split(".")[0]) < 3:
    raise ImportError(
        f"estimator_container.keras_horovod is for Keras 3, and this is Keras {keras.__version__}: "
        "import horovod.tensorflow.keras instead, which works with Keras 2."
    )
if keras.config.backend() != "tensorflow":
    raise ImportError(
        f"Horovod needs Keras on TensorFlow, and Keras runs on {keras.config.backend()!r} here: "
        "set KERAS_BACKEND=tensorflow before keras is imported."
    )

from .horovod_keras3 import keras_itself
from .horovod_keras3.callbacks import Broadcast, MetricAverage
from .horovod_keras3.optimizer import Distributed, distributed_class
from .horovod_keras3.reduction import ReductionSettings

keras_itself.adapt()


def DistributedOptimizer(
    optimizer: keras.optimizers.Optimizer,
    *,
    op: int = hvd.Average,
    compression: type[hvd.compression.Compressor] = hvd.Compression.none,
) -> keras.optimizers.Optimizer:
    """Make a Keras optimizer average its gradients over all ranks before it applies them.

    optimizer: any `keras.optimizers.Optimizer`. It is this very object that changes and is returned, so an
        optimizer that came out of a saved model keeps its state (momentum, iterations).
    op: `hvd.Average` (the default), `hvd.Sum` or `hvd.Adasum`.
    compression: `hvd.Compression.none` (the default), or `hvd.Compression.fp16` to send half of the bytes.

    The sparse gradient of an embedding travels as a dense one.

    In a saved model the optimizer goes by the name of its original class, so plain Keras loads the file. What
    is loaded is the plain optimizer: give it to this function again before you go on training.

    Raises TypeError for what is not a Keras optimizer, ValueError for one that averages already.
    """
    if isinstance(optimizer, Distributed):
        raise ValueError(
            f"This {type(optimizer).__name__} optimizer averages its gradients already: "
            "pass it to DistributedOptimizer only once."
        )
    settings = ReductionSettings(op=op, compression=compression, sparse_as_dense=True)
    averaging = distributed_class(optimizer, settings)
    object.__setattr__(optimizer, "__class__", averaging)  # past Keras, which would track it as a new layer
    return optimizer


class BroadcastGlobalVariablesCallback(Broadcast, keras.callbacks.Callback):  # type: ignore[misc]
    """Give every rank the weights and the optimizer state of one rank when training starts.

    root_rank: the rank whose values all others take.

    Raises ValueError when training starts with `jit_compile` on: XLA cannot compile Horovod's operations.
    Warns when the model's optimizer does not average and there is more than one rank.
    """

    def __init__(self, root_rank: int = 0) -> None:
        super().__init__()
        self.root_rank = root_rank
        self.device = ""
        self.broadcast_done = False
        self._local_vars = set()


class MetricAverageCallback(MetricAverage, keras.callbacks.Callback):  # type: ignore[misc]
    """Replace each rank's metrics by their mean over all ranks at the end of every epoch.

    Put it before the callbacks that read metrics, such as EarlyStopping: they must decide alike on all ranks.
    All ranks must have the same metrics: where one validates, all must.
    """
