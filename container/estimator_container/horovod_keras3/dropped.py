"""What scripts of Keras 2 and TensorFlow 1 say that today's do not know: a line after the error tells today's word."""

from __future__ import annotations

import re
import sys
from types import ModuleType, TracebackType
from typing import Any

_IN_A_GRAPH = "in a graph: with tf.Graph().as_default()"
_OWN_MODULE = r"module 'keras\.(?:_tf_keras\.keras\.)?"

# What an error says, as `Type: message`, and what to write in the place of that.
_OF_KERAS = (
    # Optimizers.
    (r"ValueError: Argument\(s\) not recognized: \{.*'lr':", "write learning_rate= where the script has lr="),
    (r"has no attribute '(?:lr|_hyper)'$", "write .learning_rate where the script has .lr"),
    (r"`keras\.optimizers\.legacy` is not supported", "write keras.optimizers where it has keras.optimizers.legacy"),
    (_OWN_MODULE + r"optimizers' has no attribute 'experimental'", "write keras.optimizers where it has .experimental"),
    (r"has no attribute '(?:get_)?weights'$", "write .variables, and .numpy() of each of them"),
    (r"has no attribute '_?(?:get|compute)_gradients'$", "take the gradients from a tf.GradientTape"),
    (
        _OWN_MODULE + r"mixed_precision' has no attribute 'experimental'",
        "write keras.mixed_precision.set_global_policy('mixed_float16')",
    ),
    (_OWN_MODULE + r"losses' has no attribute 'mean_squared_error'", "write keras.losses.MeanSquaredError()"),
    # Layers and tools.
    (r"passed to \w+: \{'(fused|input_length|weights)'", r"leave \1= out"),
    (_OWN_MODULE + r"layers' has no attribute 'CuDNN(\w+)'", r"write keras.layers.\1, which uses cuDNN by itself"),
    (
        r"keras\.layers(?:\.experimental|\.core|\.convolutional|\.pooling|\.recurrent|\.embeddings|\.normalization|"
        r"\.advanced_activations|' has no attribute 'experimental)\b",
        "every layer, such as keras.layers.Rescaling, is in keras.layers itself",
    ),
    (
        r"keras\.preprocessing\.(image|text|sequence)' ?.*has no attribute|"
        r"(?:from|named) 'keras\.preprocessing\.(image|text|sequence)",
        r"import it from tensorflow.keras.preprocessing.\1\2, as long as it is there",
    ),
    (r"np_utils", "write keras.utils.to_categorical where the script has np_utils.to_categorical"),
    (r"has no attribute 'multi_gpu_model'", "leave the call out: each rank trains on a GPU of its own"),
    (r"named 'keras\.wrappers\.scikit_learn'", "write keras.wrappers.SKLearnClassifier, or SKLearnRegressor"),
    # Models and callbacks.
    (
        r"has no attribute '(fit|evaluate|predict)_generator'$",
        r"write model.\1, which takes generators and a keras.utils.PyDataset",
    ),
    (r"has no attribute 'predict_(?:classes|proba)'$", "write model.predict(x), and .argmax(axis=-1) for classes"),
    (r"fit\(\) got an unexpected keyword argument 'nb_epoch'", "write epochs= where the script has nb_epoch="),
    (
        r"\w+\(\) got an unexpected keyword argument '(workers|use_multiprocessing|max_queue_size)'",
        r"leave \1= out, or give it to a keras.utils.PyDataset",
    ),
    (
        r"ModelCheckpoint.* got an unexpected keyword argument 'period'",
        "write save_freq=, which counts batches, where it has period=",
    ),
    (r"(?:compile|TensorBoard\.__init__)\(\) got an unexpected keyword argument '(\w+)'", r"leave \1= out"),
    (r"Invalid filepath extension for saving", "end the file's name in .keras; model.export() writes folders"),
    (r"must end in `\.weights\.h5`|must end in `?\.weights\.h5", "end the file's name in .weights.h5"),
    (r"must end in `\.keras`", "end the file's name in .keras"),
    (
        r"File format not supported: filepath=",
        "a TensorFlow SavedModel folder is read by keras.layers.TFSMLayer(folder, call_endpoint='serving_default'), "
        "for predictions only; save the model as a .keras or .h5 file to train it",
    ),
    # The backend.
    (r"has no attribute '(?:get|set)_value'$", "write .numpy() or .assign(value) on the variable itself"),
    (r"backend' has no attribute '[gs]et_session'", "leave the call out: Keras 3 has no sessions"),
    (
        r"backend' has no attribute '(?:set_)?learning_phase'",
        "leave the call out, and call the model with training=True or training=False",
    ),
    (r"backend' has no attribute 'function'", "make a keras.Model of these inputs and outputs, and call it"),
)
_OF_TENSORFLOW = (
    (
        r"module 'tensorflow' has no attribute '(?:ConfigProto|GPUOptions|Session|InteractiveSession)'",
        "to give each rank a GPU, write tf.config.set_visible_devices("
        "tf.config.list_physical_devices('GPU')[hvd.local_rank()], 'GPU'), and no session",
    ),
    (r"module 'tensorflow' has no attribute 'enable_eager_execution'", "leave the call out: TensorFlow 2 is eager"),
    (r"module 'tensorflow' has no attribute 'set_random_seed'", "write tf.random.set_seed"),
    (r"module 'tensorflow' has no attribute 'layers'", "write tf.keras.layers, whose layers are called on their input"),
    (
        r"module 'tensorflow' has no attribute 'contrib'",
        "tf.contrib was removed; parts of it are now separate packages",
    ),
    (
        r"module 'tensorflow' has no attribute 'estimator'",
        "TensorFlow 2.16 removed Estimators; write a Keras model, and call model.fit()",
    ),
    (
        r"\.train' has no attribute 'GradientDescentOptimizer'",
        "write tf.keras.optimizers.SGD, or tf.compat.v1.train.GradientDescentOptimizer " + _IN_A_GRAPH,
    ),
    (
        r"\.train' has no attribute '(Adam|Adagrad|Adadelta|Ftrl)Optimizer'",
        r"write tf.keras.optimizers.\1, or tf.compat.v1.train.\1Optimizer " + _IN_A_GRAPH,
    ),
    (
        r"\.train' has no attribute 'RMSPropOptimizer'",
        "write tf.keras.optimizers.RMSprop, or tf.compat.v1.train.RMSPropOptimizer " + _IN_A_GRAPH,
    ),
    (
        r"has no attribute 'make_(one_shot|initializable)_iterator'",
        r"iterate over the dataset in a for loop, or write tf.compat.v1.data.make_\1_iterator(dataset) " + _IN_A_GRAPH,
    ),
    (r"TypeError: .*unexpected keyword argument 'keep_dims'", "write keepdims= where the script has keep_dims="),
)
_MISSING = re.compile(
    r"module '(?:tensorflow(?:\._api\.v2\.(\w+))?|keras\._tf_keras\.keras\.(losses|metrics))' has no attribute '(\w+)'"
)


def advice(error: BaseException) -> str | None:
    """What to write today, where an error comes of a word that Keras 3 or TensorFlow 2 does not know.

    Of `'Adam' object has no attribute 'lr'` it is `Keras 3 removed this Keras 2 name: write .learning_rate where the
    script has .lr.`
    """
    text = f"{type(error).__name__}: {error}".partition("\n")[0].replace("keras.api.", "keras.")  # as before 3.10
    today = _first(_OF_KERAS, text) or _still_in_tensorflows_backend(text) if _has_keras_3() else None
    if today is not None:
        return f"Keras 3 removed this Keras 2 name: {today}."
    today = _first(_OF_TENSORFLOW, text) or _still_in_compat_v1(text)
    return f"TensorFlow 2 removed this TensorFlow 1 name: {today}." if today is not None else None


def _first(table: tuple[tuple[str, str], ...], text: str) -> str | None:
    matches = ((re.search(pattern, text), today) for pattern, today in table)
    return next((found.expand(today) for found, today in matches if found is not None), None)


def _still_in_tensorflows_backend(text: str) -> str | None:
    """The backend of Keras 3 has lost its functions, and that of tf.keras has most of them."""
    found = re.search(r"module 'keras\.backend' has no attribute '(\w+)'", text)
    keras: Any = getattr(sys.modules.get("tensorflow"), "keras", None)
    if found is None or keras is None or not hasattr(keras.backend, found[1]):
        return None
    return f"write tf.keras.backend.{found[1]}, or the function of keras.ops"


def _still_in_compat_v1(text: str) -> str | None:
    """Most of TensorFlow 1 is still there under another name."""
    found = _MISSING.search(text)
    place: Any = sys.modules.get("tensorflow")
    if found is None or place is None:
        return None
    path = ["compat", "v1", *filter(None, found.groups())]
    for each in path:
        place = getattr(place, each, None)
    if place is None:
        return None
    where = "" if isinstance(place, ModuleType) else f", {_IN_A_GRAPH}"
    return f"write tf.{'.'.join(path)}{where}"


def _has_keras_3() -> bool:
    return not str(getattr(sys.modules.get("keras"), "__version__", "3")).startswith("2.")


def advise_at_exceptions() -> None:
    """Have the line follow the traceback of an exception that ends the script."""
    shown = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        shown(kind, error, traceback)
        line = advice(error)
        if line is not None:
            print(line, file=sys.stderr, flush=True)

    sys.excepthook = excepthook
