"""What Horovod's callbacks do on Keras 3. The classes here lend their methods to Horovod's."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf

from .operations import broadcast
from .optimizer import Distributed
from .reduction import plain, reference

Logs = dict[str, Any]


class Broadcast:
    """Give every rank the weights and the optimizer state of one rank when training starts.

    So all start equal, and after a restart only that rank needs to have read the checkpoint. A model that is
    built (its input shape is known) is set before its first step; another one right after it, with the
    first step's results of the other ranks thrown away. The random seeds of layers such as Dropout stay
    each rank's own.
    """

    stock_name = "BroadcastGlobalVariablesCallback"
    model: keras.Model
    root_rank: int
    device: str
    broadcast_done: bool
    _local_vars: set[Any]

    def register_local_var(self, var: Any) -> None:
        """Leave this variable to each rank."""
        self._local_vars.add(reference(var))

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Check the model; broadcast now if its variables exist."""
        _check(self.model)
        self.broadcast_done = False
        model = self.model
        if model.built:
            if not model.optimizer.built and model.trainable_variables:
                model.optimizer.build(model.trainable_variables)
            self._broadcast()

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Broadcast after the first step when the variables did not exist before it."""
        if not self.broadcast_done:
            self._broadcast()

    def _broadcast(self) -> None:
        variables = [*self.model.weights, *self.model.optimizer.variables]
        wanted = [plain(variable) for variable in variables if reference(variable) not in self._local_vars]
        with tf.device(self.device):
            broadcast(wanted, self.root_rank)
        self.broadcast_done = True


def _check(model: keras.Model) -> None:
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    averages = isinstance(model.optimizer, Distributed) or isinstance(optimizer, Distributed)
    if model.jit_compile and averages:
        raise ValueError(
            "The model is compiled with jit_compile on, and XLA cannot compile Horovod's operations: "
            "pass jit_compile=False to model.compile()."
        )
    if hvd.size() > 1 and not averages:
        warnings.warn(
            f"The optimizer of this model, {type(optimizer).__name__}, does not average gradients, so "
            f"the {hvd.size()} ranks will drift apart: pass it through DistributedOptimizer "
            "before model.compile(), unless the model's own train_step averages.",
            RuntimeWarning,
            stacklevel=2,
        )


class MetricAverage:
    """Replace each rank's metrics by their mean over all ranks at the end of every epoch.

    Put it before the callbacks that read metrics, such as EarlyStopping: they must decide alike on all ranks.
    All ranks must have the same metrics: where one validates, all must.
    """

    stock_name = "MetricAverageCallback"

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Average `logs` in place."""
        if not logs:
            return
        names = sorted(logs)
        values = [np.asarray(logs[name], "float64") for name in names]
        together = tf.constant(np.concatenate([value.ravel() for value in values]))
        means = hvd.allreduce(together, op=hvd.Average, name="metrics_of_epoch").numpy()
        ends = np.cumsum([value.size for value in values])
        for name, value, mean in zip(names, values, np.split(means, ends[:-1])):
            logs[name] = mean.reshape(value.shape) if value.shape else float(mean[0])


class LearningRateSchedule:
    """Set the learning rate, and correct the momentum in the step in which it changes."""

    stock_name = "LearningRateScheduleCallback"
    model: keras.Model
    initial_lr: float
    multiplier: Callable[[float], float]
    staircase: bool
    momentum_correction: bool
    steps_per_epoch: int | None
    restore_momentum: float | None
    _autodetect_steps_per_epoch: Callable[[], int]

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Find the steps per epoch if the script leaves them open, and make SGD's momentum changeable."""
        if not self.staircase and not self.steps_per_epoch:
            self.steps_per_epoch = self._autodetect_steps_per_epoch()
        optimizer = _inner(self.model)
        momentum = getattr(optimizer, "momentum", None)
        if self.momentum_correction and momentum and type(momentum) is float:
            optimizer.momentum = _LiveNumber(momentum)
            self.model.make_train_function(force=True)  # one that was traced has the number in it for good

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Put the learning rate into the logs, as Horovod's own callback does."""
        if logs is not None:
            logs["lr"] = _learning_rate(self.model)

    def _adjust_learning_rate(self, epoch: float) -> None:
        optimizer = _inner(self.model)
        old = _learning_rate(self.model)
        new = self.initial_lr * self.multiplier(epoch)
        optimizer.learning_rate = new
        momentum = getattr(optimizer, "momentum", None)
        if isinstance(momentum, _LiveNumber) and self.momentum_correction and old:
            self.restore_momentum = float(momentum)
            momentum.variable.assign(self.restore_momentum * new / old)

    def _restore_momentum_if_needed(self) -> None:
        if self.restore_momentum is not None:
            _inner(self.model).momentum.variable.assign(self.restore_momentum)
            self.restore_momentum = None


class LearningRateWarmup:
    """A schedule that says when it is done."""

    stock_name = "LearningRateWarmupCallback"
    model: keras.Model
    end_epoch: int
    verbose: int

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Put the learning rate into the logs; with `verbose`, rank 0 prints when the warmup is over."""
        rate = _learning_rate(self.model)
        if logs is not None:
            logs["lr"] = rate
        if epoch == self.end_epoch - 1 and self.verbose > 0 and hvd.rank() == 0:
            print(f"\nEpoch {epoch + 1}: finished gradual learning rate warmup to {rate:g}.")


class _LiveNumber(float):
    """A number that is another one in a step: an optimizer keeps and saves the one, and its graph reads the other."""

    variable: tf.Variable

    def __new__(cls, value: float) -> _LiveNumber:
        number = super().__new__(cls, value)
        with tf.init_scope():
            number.variable = tf.Variable(value, trainable=False, dtype=tf.float32)
        return number

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> tf.Tensor:
        value = self.variable.read_value()
        return value if dtype is None else tf.cast(value, dtype)


def _inner(model: keras.Model) -> Any:
    """The optimizer that has the numbers: a LossScaleOptimizer has those of another one."""
    return getattr(model.optimizer, "inner_optimizer", model.optimizer)


def _learning_rate(model: keras.Model) -> float:
    return float(keras.ops.convert_to_numpy(_inner(model).learning_rate))


def init_without_path(init: Callable[..., None]) -> Callable[..., None]:
    """For `BestModelCheckpoint`, whose path is set after it has been made: Keras 3 looks at the path's end at once."""

    @functools.wraps(init)
    def init_checkpoint(self: Any, *args: Any, **kwargs: Any) -> None:
        given = inspect.signature(init).bind(self, *args, **kwargs).arguments
        settings = {name: value for name, value in given.items() if name != "self"}
        path = "best.weights.h5" if settings.get("save_weights_only") else "best.keras"
        keras.callbacks.ModelCheckpoint.__init__(self, path, save_best_only=True, **settings)
        self.filepath = None

    return init_checkpoint


def needs_path(self: Any, logs: Logs | None = None) -> None:
    """As `on_train_begin`."""
    if self.filepath is None:
        raise ValueError(
            "This BestModelCheckpoint has no path yet: set its `filepath`, which must end in .keras "
            "(or in .weights.h5 with save_weights_only), before model.fit()."
        )
