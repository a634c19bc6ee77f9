"""Horovod's own names, right on Keras 3: `horovod.tensorflow`, `horovod.tensorflow.keras` and `horovod.keras`.

Horovod 0.28.1, the last release, was written for Keras 2. On Keras 3 its `DistributedOptimizer` averages nothing, and
its tape, callbacks and `load_model` fail. Importing this package adapts those names when a script imports Horovod, or
at once where it has:

    import estimator_container.horovod_keras3
    import horovod.tensorflow.keras as hvd

In a rank of a world the toolkit imports it when a script imports Horovod (`script_runner`). It does nothing
with Keras 2 or Keras on another backend than TensorFlow, but for the one thing that `TF_USE_LEGACY_KERAS=1` needs, nor
where ESTIMATOR_HOROVOD_KERAS3 is `off`. `docs/horovod.md` says what is adapted, and how.

    stock_tensorflow.py, stock_keras.py   what takes the place of what, module by module of Horovod's
    keras_itself.py                       what Keras gets back that Horovod and its scripts stand on
    optimizer.py, reduction.py, passes.py an optimizer that averages; the averaging; several backward passes a step
    callbacks.py, loading.py, batch_normalization.py  what is written anew
    operations.py                         broadcasting, and names that are the same on every rank
    dropped.py                            what older scripts say that Keras 3 does not know
    elastic.py                            `hvd.elastic` without a driver, with any framework
"""

from __future__ import annotations

import os
import sys
from types import ModuleType

from ..contract.names import HOROVOD_KERAS3
from ..runtime.after_import import after_import

# What is adapted when it has been imported, and the module of this package that does it. Each imports those above it.
_HOMES = {
    "horovod.tensorflow": "stock_tensorflow",
    "horovod._keras": "stock_keras",
    "horovod.keras": "stock_keras",
    "horovod.tensorflow.keras": "stock_keras",
}
# The same with any framework: they know nothing of Keras.
_OF_ELASTIC = {"horovod.tensorflow.elastic": "elastic", "horovod.torch.elastic": "elastic"}
_adapted: set[str] = set()


def _adapt(module: ModuleType) -> None:
    name = module.__name__
    if name in _adapted:
        return
    if name in _HOMES and not _is_keras_3():
        if name == "horovod.tensorflow.keras":
            _give_keras_2_its_backend(module)
        return
    from importlib import import_module

    if name in _HOMES and _adapted.isdisjoint(_HOMES):
        from .dropped import advise_at_exceptions

        _say_so()
        advise_at_exceptions()
    _adapted.add(name)
    home = _HOMES.get(name) or _OF_ELASTIC[name]
    import_module(f"{__name__}.{home}").adapt(module)


def _is_keras_3() -> bool:
    """Whether TensorFlow's Keras is Keras 3, and runs on TensorFlow. Horovod has imported both by now."""
    import tensorflow as tf

    # As Keras 2, `tf.keras` has no version: in TensorFlow 2.15, and in later ones with TF_USE_LEGACY_KERAS=1.
    if int(getattr(tf.keras, "__version__", "2").partition(".")[0]) < 3:
        return False
    backend: str = tf.keras.config.backend()
    return backend == "tensorflow"


def _give_keras_2_its_backend(module: ModuleType) -> None:
    """Horovod takes `keras.backend`, which is that of Keras 3 even where TF_USE_LEGACY_KERAS=1 chooses Keras 2."""
    import keras
    import tensorflow as tf

    if not hasattr(tf.keras, "__version__") and int(keras.__version__.partition(".")[0]) >= 3:
        module.K = module.callbacks.K = tf.keras.backend  # type: ignore[attr-defined]


def _say_so() -> None:
    import keras
    from horovod import __version__  # type: ignore[attr-defined]

    if os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")) == "0":
        print(
            f"Horovod {__version__}, which was written for Keras 2, is adapted to Keras {keras.__version__} here "
            f"({HOROVOD_KERAS3}=off leaves it as it is)",
            file=sys.stderr,
            flush=True,
        )


def _install() -> None:
    if os.environ.get(HOROVOD_KERAS3, "").lower() == "off":
        return
    for name in (*_OF_ELASTIC, *_HOMES):
        after_import(name, _adapt)


_install()
