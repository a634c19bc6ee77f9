"""A script of the time of Keras 2, in the words that Keras 3 dropped, with Horovod's names as they were released."""

import hashlib
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import horovod.keras
import horovod.tensorflow
import horovod.tensorflow.keras as hvd
import keras
import numpy as np
import tensorflow as tf

hvd.init()
tf.random.set_seed(hvd.rank())
numbers = np.random.RandomState(hvd.rank())


def batches():
    while True:
        data = numbers.normal(size=(16, 4)).astype("float32")
        yield data, data.sum(axis=1, keepdims=True)


def trained(keras, hvd, optimizer, **loading):
    model = keras.models.Sequential([keras.layers.Dense(3, input_shape=(4,)), keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer=hvd.DistributedOptimizer(optimizer), experimental_run_tf_function=False)
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateWarmupCallback(initial_lr=0.005 * hvd.size(), warmup_epochs=2),
    ]
    history = model.fit_generator(batches(), steps_per_epoch=20, epochs=3, callbacks=callbacks, verbose=0).history
    assert history["loss"][-1] < history["loss"][0], history["loss"]
    assert abs(keras.backend.get_value(model.optimizer.lr) - 0.005 * hvd.size()) < 1e-6
    path = f"model-{hvd.rank()}.h5"
    model.save(path)
    assert hasattr(hvd.load_model(path, **loading).optimizer, "_allreduce")
    return model.get_weights(), history["loss"]


legacy = tf.keras.optimizers.legacy.SGD(lr=0.005 * hvd.size(), momentum=0.9)
of_that_day = keras.optimizers.Adam(learning_rate=0.005 * hvd.size())
results = [trained(tf.keras, hvd, legacy, legacy_opts=True), trained(keras, horovod.keras, of_that_day)]
# `hvd.elastic` is adapted with any framework.
adapted = {name for name in sys.modules if name.startswith("estimator_container.horovod_keras3.")}
adapted.discard("estimator_container.horovod_keras3.elastic")
assert not adapted and sys.excepthook is sys.__excepthook__, adapted
digest = hashlib.sha256(b"".join(np.asarray(each).tobytes() for weights, loss in results for each in [*weights, loss]))
every = horovod.tensorflow.allgather_object(digest.hexdigest())
print("trained", hvd.size(), len(set(every)), tf.__version__, flush=True)
