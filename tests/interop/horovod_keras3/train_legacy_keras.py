"""Keras 2 on a TensorFlow whose Keras is 3: a script of that time, with Horovod's names as they were released."""

import hashlib
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.modules["sklearn"] = None  # or Keras imports it for its own wrappers
import horovod.tensorflow
import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

hvd.init()
tf.random.set_seed(hvd.rank())
data = np.random.RandomState(hvd.rank()).normal(size=(320, 4)).astype("float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(3, input_shape=(4,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.legacy.SGD(lr=0.005 * hvd.size(), momentum=0.9)
model.compile(loss="mse", optimizer=hvd.DistributedOptimizer(optimizer), experimental_run_tf_function=False)
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    hvd.callbacks.LearningRateWarmupCallback(initial_lr=0.005 * hvd.size(), warmup_epochs=2),
]
history = model.fit(data, data.sum(axis=1, keepdims=True), batch_size=16, epochs=3, callbacks=callbacks, verbose=0)
loss = history.history["loss"]
assert loss[-1] < loss[0], loss
adapted = {name for name in sys.modules if name.startswith("estimator_container.horovod_keras3.")}
adapted.discard("estimator_container.horovod_keras3.elastic")
assert not adapted, adapted
digest = hashlib.sha256(b"".join(np.asarray(each).tobytes() for each in [*model.get_weights(), loss])).hexdigest()
print("trained", hvd.size(), len(set(horovod.tensorflow.allgather_object(digest))), flush=True)
