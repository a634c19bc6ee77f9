"""Horovod for Keras 3 on TensorFlow: average the gradients, start from equal weights, average the metrics.

Horovod 0.28.1, the last release, was written for Keras 2. Its own `hvd.DistributedOptimizer` overrides
methods that Keras 3 no longer calls: training runs, nothing is averaged, and the ranks drift apart without
a word. This module does the same work where Keras 3 looks for it:

    import horovod.tensorflow as hvd
    from estimator_container import keras_horovod

    hvd.init()
    optimizer = keras_horovod.DistributedOptimizer(keras.optimizers.Adam(0.001 * hvd.size()))
    model.compile(optimizer, loss="mse", jit_compile=False)
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

import itertools
import warnings
from collections.abc import Sequence
from typing import Any, Union

import horovod.tensorflow as hvd
import keras
import tensorflow as tf

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

Gradient = Union[tf.Tensor, tf.IndexedSlices]

# Horovod brings together what has the same name on every rank, and by default makes names out of those of
# variables. They differ where one rank has loaded its model and another has built it: then all would wait for
# ever. So each operation here has a name of its own, counted in the order in which optimizers are wrapped.
_optimizers = itertools.count()


class _AveragesGradients:
    """What `DistributedOptimizer` puts in front of an optimizer's own class."""

    _op: int
    _compression: type[hvd.compression.Compressor]
    _operation: str

    def apply(
        self, grads: Sequence[Gradient | None], trainable_variables: Sequence[keras.Variable] | None = None
    ) -> None:
        """Reduce the gradients over all ranks, then apply them as the optimizer itself would."""
        super().apply(self._reduced(grads), trainable_variables)  # type: ignore[misc]

    def _reduced(self, gradients: Sequence[Gradient | None]) -> list[tf.Tensor | None]:
        """One grouped allreduce of all gradients; a variable without a gradient keeps its None."""
        present = [tf.convert_to_tensor(gradient) for gradient in gradients if gradient is not None]
        if not present:
            return list(gradients)  # Keras has its own words for this
        reduced = iter(
            hvd.grouped_allreduce(
                present,
                op=self._op,
                compression=self._compression,
                name=self._operation,
                ignore_name_scope=True,
            )
        )
        return [None if gradient is None else next(reduced) for gradient in gradients]


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
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise TypeError(
            f"DistributedOptimizer needs a Keras optimizer object, not {optimizer!r}: "
            "pass for example keras.optimizers.Adam(0.001)."
        )
    if isinstance(optimizer, _AveragesGradients):
        raise ValueError(
            f"This {type(optimizer).__name__} optimizer averages its gradients already: "
            "pass it to DistributedOptimizer once only."
        )
    original = type(optimizer)
    # Keras writes the class by these two names; for one registered as serializable, by its registered name.
    members = {
        "__module__": original.__module__,
        "_op": op,
        "_compression": compression,
        "_operation": f"gradients_of_optimizer_{next(_optimizers)}",
    }
    averaging = type(keras.saving.get_registered_name(original), (_AveragesGradients, original), members)
    object.__setattr__(optimizer, "__class__", averaging)  # past Keras, which would track it as a new layer
    return optimizer


class BroadcastGlobalVariablesCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Give every rank the weights and the optimizer state of one rank when training starts.

    So all start equal, and after a restart only that rank needs to have read the checkpoint. A model that is
    built (its input shape is known) is set before its first step; another one right after it, with the
    first step's results of the other ranks thrown away. The random seeds of layers such as Dropout stay
    each rank's own.

    root_rank: the rank whose values all others take.

    Raises ValueError when training starts with `jit_compile` on: XLA cannot compile Horovod's operations.
    Warns when the model's optimizer does not average and there is more than one rank.
    """

    def __init__(self, root_rank: int = 0) -> None:
        super().__init__()
        self.root_rank = root_rank
        self._done = False

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Check the model; broadcast now if its variables exist."""
        _check(self.model)
        self._done = False
        if self.model.built:
            if not self.model.optimizer.built:
                self.model.optimizer.build(self.model.trainable_variables)
            self._broadcast()

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Broadcast after the first step when the variables did not exist before it."""
        if not self._done:
            self._broadcast()

    def _broadcast(self) -> None:
        variables = [*self.model.weights, *self.model.optimizer.variables]
        _broadcast([variable.value for variable in variables], self.root_rank)
        self._done = True


@tf.function  # type: ignore[untyped-decorator]
def _broadcast(variables: list[tf.Variable], root_rank: int) -> None:
    """As a graph: Horovod then gets all variables at once, not one after the other."""
    for index, variable in enumerate(variables):
        value = hvd.broadcast(variable, root_rank, name=f"variable_{index}", ignore_name_scope=True)
        variable.assign(value)


def _check(model: keras.Model) -> None:
    if model.jit_compile:
        raise ValueError(
            "The model is compiled with jit_compile on, and XLA cannot compile Horovod's operations: "
            "pass jit_compile=False to model.compile()."
        )
    if hvd.size() > 1 and not isinstance(model.optimizer, _AveragesGradients):
        warnings.warn(
            f"The optimizer of this model, {type(model.optimizer).__name__}, does not average gradients, so "
            f"the {hvd.size()} ranks will drift apart: pass it through keras_horovod.DistributedOptimizer "
            "before model.compile(), unless the model's own train_step averages.",
            RuntimeWarning,
            stacklevel=2,
        )


class MetricAverageCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Replace each rank's metrics by their mean over all ranks at the end of every epoch.

    Put it before the callbacks that read metrics, such as EarlyStopping: they must decide alike on all ranks.
    All ranks must have the same metrics: where one validates, all must.
    """

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Average `logs` in place."""
        if not logs:
            return
        names = sorted(logs)
        values = tf.constant([float(logs[name]) for name in names], dtype=tf.float64)
        means = hvd.allreduce(values, op=hvd.Average, name="metrics_of_epoch").numpy()
        for name, mean in zip(names, means):
            logs[name] = float(mean)
