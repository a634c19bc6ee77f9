"""What scripts of Keras 2 and TensorFlow 1 say that today's do not know: a line after the error tells today's word."""

from __future__ import annotations

import re
import sys
from types import TracebackType

# What an error says, as `Type: message`, and what to write in the place of that.
_TODAY = (
    (r"ValueError: Argument\(s\) not recognized: \{.*'lr':", "write learning_rate= where the script has lr="),
    (r"has no attribute 'lr'$", "write .learning_rate where the script has .lr"),
    (r"`keras\.optimizers\.legacy` is not supported", "write keras.optimizers where it has keras.optimizers.legacy"),
    (
        r"module 'tensorflow' has no attribute '(ConfigProto|Session)'",
        "to give each rank a GPU, write tf.config.set_visible_devices("
        "tf.config.list_physical_devices('GPU')[hvd.local_rank()], 'GPU'), and no session",
    ),
    (r"module 'tensorflow' has no attribute 'enable_eager_execution'", "leave the call out: TensorFlow 2 is eager"),
    (
        r"module 'tensorflow' has no attribute '(placeholder|global_variables_initializer|get_variable|"
        r"random_uniform|global_variables|get_default_graph)'",
        r"write tf.compat.v1.\1, in a graph: with tf.Graph().as_default()",
    ),
    (r"has no attribute '(get|set)_value'$", "write .numpy() or .assign(value) on the variable itself"),
    (r"module 'keras\.backend' has no attribute 'set_session'", "leave the call out: Keras 3 has no sessions"),
    (
        r"has no attribute '(fit|evaluate|predict)_generator'$",
        r"write model.\1, which takes generators and a keras.utils.PyDataset",
    ),
    (r"module '.*losses' has no attribute 'mean_squared_error'", "write keras.losses.MeanSquaredError()"),
    (r"compile\(\) got an unexpected keyword argument '(\w+)'", r"leave \1= out"),
    (r"Unrecognized keyword arguments passed to \w+: \{'(fused|input_length)'", r"leave \1= out"),
)


def advice(error: BaseException) -> str | None:
    """What to write today, where an error comes of a word that Keras 3 or TensorFlow 2 does not know.

    >>> advice(AttributeError("'Adam' object has no attribute 'lr'"))
    'Keras 3 does not know this word of Keras 2: write .learning_rate where the script has .lr.'
    """
    text = f"{type(error).__name__}: {error}".partition("\n")[0]
    for pattern, today in _TODAY:
        found = re.search(pattern, text)
        if found is not None:
            which = "TensorFlow 2 does not know this word of TensorFlow 1"
            if "module 'tensorflow'" not in text:
                which = "Keras 3 does not know this word of Keras 2"
            return f"{which}: {found.expand(today)}."
    return None


def advise_at_exceptions() -> None:
    """Have the line follow the traceback of an exception that ends the script."""
    shown = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        shown(kind, error, traceback)
        line = advice(error)
        if line is not None:
            print(line, file=sys.stderr, flush=True)

    sys.excepthook = excepthook
