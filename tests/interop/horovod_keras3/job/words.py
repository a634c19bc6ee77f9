"""What scripts and articles of Keras 2 and TensorFlow 1 say, and what the line after the error is to say today."""

from __future__ import annotations

import tempfile

import horovod.tensorflow.keras as hvd
import keras
import numpy as np
import tensorflow as tf
from estimator_container.horovod_keras3.dropped import advice

WORDS = {
    # Optimizers.
    "keras.optimizers.Adam(lr=0.1)": "learning_rate=",
    "tf.keras.optimizers.SGD(lr=0.1, momentum=0.9)": "learning_rate=",
    "keras.optimizers.SGD(0.1).lr": ".learning_rate",
    "keras.backend.set_value(keras.optimizers.SGD(0.1).lr, 0.2)": ".assign(value)",
    "keras.backend.set_value(keras.optimizers.SGD(0.1).learning_rate, 0.2)": ".assign(value)",
    "keras.backend.get_value(keras.optimizers.SGD(0.1).learning_rate)": ".numpy()",
    "keras.optimizers.legacy.Adam(0.1)": "keras.optimizers where",
    "tf.keras.optimizers.legacy.SGD(0.1)": "keras.optimizers where",
    "tf.keras.optimizers.experimental.SGD(0.1)": "keras.optimizers where",
    "keras.optimizers.SGD(0.1).get_weights()": ".variables",
    "keras.optimizers.SGD(0.1).weights": ".variables",
    "keras.optimizers.SGD(0.1)._hyper": ".learning_rate",
    "keras.optimizers.SGD(0.1).get_gradients(0, [])": "tf.GradientTape",
    "keras.optimizers.SGD(0.1)._compute_gradients(0, [])": "tf.GradientTape",
    "tf.keras.mixed_precision.experimental.set_policy('mixed_float16')": "set_global_policy",
    "tf.keras.losses.mean_squared_error": "keras.losses.MeanSquaredError()",
    # Layers.
    "keras.layers.BatchNormalization(fused=True)": "leave fused= out",
    "keras.layers.Dense(1, weights=[])": "leave weights= out",
    "keras.layers.CuDNNLSTM(3)": "keras.layers.LSTM",
    "keras.layers.experimental.preprocessing.Rescaling(1.0)": "keras.layers.Rescaling",
    "from keras.layers.experimental.preprocessing import Rescaling": "keras.layers",
    "from keras.layers.core import Dense": "keras.layers",
    "from keras.layers.normalization import BatchNormalization": "keras.layers",
    # Data and tools.
    "from keras.preprocessing.image import ImageDataGenerator": "tensorflow.keras.preprocessing.image",
    "from keras.preprocessing import image; image.ImageDataGenerator()": "tensorflow.keras.preprocessing.image",
    "from keras.preprocessing.text import Tokenizer": "tensorflow.keras.preprocessing.text",
    "from keras.utils import np_utils": "keras.utils.to_categorical",
    "from keras.utils.np_utils import to_categorical": "keras.utils",
    "keras.utils.multi_gpu_model(model, 2)": "leave the call out",
    "from keras.wrappers.scikit_learn import KerasClassifier": "keras.wrappers",
    # Models.
    "model.fit_generator(None)": "model.fit,",
    "model.evaluate_generator(None)": "model.evaluate,",
    "model.predict_generator(None)": "model.predict,",
    "model.predict_classes(x)": ".argmax(axis=-1)",
    "model.fit(x, y, workers=4)": "leave workers= out",
    "model.fit(x, y, nb_epoch=4)": "epochs=",
    "model.fit(x, y, use_multiprocessing=True)": "PyDataset",
    "model.compile('sgd', 'mse', sample_weight_mode='temporal')": "leave sample_weight_mode= out",
    "model.save(folder + '/model')": ".keras",
    "model.save_weights(folder + '/w.h5')": ".weights.h5",
    "keras.models.load_model(folder)": "TFSMLayer",
    "keras.callbacks.ModelCheckpoint('c-{epoch}.h5', period=2)": "save_freq",
    "keras.callbacks.ModelCheckpoint('c-{epoch}', save_weights_only=True)": ".weights.h5",
    "keras.callbacks.ModelCheckpoint('c-{epoch}')": ".keras",
    "keras.callbacks.TensorBoard('logs', write_grads=True)": "leave write_grads= out",
    # The backend.
    "keras.backend.set_session(None)": "leave the call out",
    "tf.keras.backend.set_session(None)": "leave the call out",
    "keras.backend.get_session()": "leave the call out",
    "keras.backend.learning_phase()": "training=",
    "keras.backend.set_learning_phase(1)": "training=",
    "keras.backend.mean(x)": "tf.keras.backend.mean",
    "keras.backend.function([], [])": "keras.Model",
    # TensorFlow 1.
    "tf.ConfigProto()": "tf.config.set_visible_devices(",
    "tf.Session()": "and no session",
    "tf.InteractiveSession()": "and no session",
    "tf.GPUOptions()": "tf.config.set_visible_devices(",
    "tf.placeholder(tf.float32)": "tf.compat.v1.placeholder",
    "tf.global_variables_initializer()": "tf.compat.v1.global_variables_initializer",
    "tf.random_uniform([1])": "tf.compat.v1.random_uniform",
    "tf.truncated_normal([1])": "tf.compat.v1.truncated_normal",
    "tf.layers": "tf.keras.layers",
    "tf.layers.dense(x, 1)": "tf.keras.layers",
    "tf.contrib.layers": "tf.contrib was removed",
    "tf.logging.set_verbosity(tf.logging.INFO)": "tf.compat.v1.logging",
    "tf.app.run()": "tf.compat.v1.app",
    "tf.enable_eager_execution()": "leave the call out",
    "tf.executing_eagerly_outside_functions()": "tf.compat.v1.executing_eagerly_outside_functions",
    "tf.train.AdamOptimizer(0.1)": "tf.keras.optimizers.Adam",
    "tf.train.GradientDescentOptimizer(0.1)": "tf.keras.optimizers.SGD",
    "tf.train.get_or_create_global_step()": "tf.compat.v1.train.get_or_create_global_step",
    "tf.train.MonitoredTrainingSession()": "tf.compat.v1.train.MonitoredTrainingSession",
    "tf.losses.sparse_softmax_cross_entropy(1, 1)": "tf.compat.v1.losses.sparse_softmax_cross_entropy",
    "tf.losses.softmax_cross_entropy(1, 1)": "tf.compat.v1.losses.softmax_cross_entropy",
    "tf.metrics.accuracy(1, 1)": "tf.compat.v1.metrics.accuracy",
    "tf.estimator.RunConfig()": "Keras model",
    "tf.reset_default_graph()": "tf.compat.v1.reset_default_graph",
    "tf.set_random_seed(1)": "tf.random.set_seed",
    "tf.variable_scope('a')": "tf.compat.v1.variable_scope",
    "tf.summary.FileWriter('a')": "tf.compat.v1.summary.FileWriter",
    "tf.gfile.Exists('a')": "tf.compat.v1.gfile",
    "tf.data.Dataset.range(3).make_one_shot_iterator()": "tf.compat.v1.data.make_one_shot_iterator",
    "tf.reduce_sum(x, 1, keep_dims=True)": "keepdims=",
    "tf.to_float(1)": "tf.compat.v1.to_float",
}


def told() -> dict[str, tuple[str, str | None]]:
    """How each of them ends, and the line after it; both are empty for what does not fail."""
    found = {}
    for word in WORDS:
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        with tempfile.TemporaryDirectory() as folder:
            places = {"keras": keras, "tf": tf, "hvd": hvd, "model": model, "folder": folder}
            found[word] = _end_of(word, {**places, "x": np.zeros((4, 3)), "y": np.zeros((4, 1))})
    return found


def _end_of(word: str, places: dict[str, object]) -> tuple[str, str | None]:
    try:
        exec(word, places)
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0], advice(error)
    return "", None
