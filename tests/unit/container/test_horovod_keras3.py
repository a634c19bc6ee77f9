"""When Horovod's names are adapted to Keras 3, and when they are left alone; what they do then is tests/interop's."""

import os
import subprocess
import sys
from pathlib import Path

import estimator_container
import pytest

TOOLKIT = str(Path(estimator_container.__file__).parents[1])
RANK = ["-m", "estimator_container.ranks.script_runner", "train.py"]
# What has been adapted says so here: the real thing needs TensorFlow, which takes seconds to import.
SPY = """
import estimator_container, sys, types
def spy(name):
    module = types.ModuleType(f"estimator_container.horovod_keras3.{name}")
    module.adapt = lambda stock: print("adapted", stock.__name__, stock.complete)
    sys.modules[module.__name__] = module
spy("stock_tensorflow")
spy("stock_keras")
"""
KERAS = "{version}\nclass config:\n    backend = lambda: '{backend}'\n"


@pytest.fixture
def run(tmp_path):
    """Runs a script beside packages of the names of Horovod, TensorFlow and Keras; gives what it wrote."""

    def run(script, *start, version="__version__ = '3.15.1'", backend="tensorflow", code=0, **env):
        files = {
            "horovod/__init__.py": "__version__ = '0.28.1'",
            "horovod/tensorflow/__init__.py": "import tensorflow, tensorflow.keras\ncomplete = True",
            "horovod/_keras/__init__.py": "import horovod.tensorflow\ncomplete = True",
            "horovod/keras/__init__.py": "import horovod._keras\ncomplete = True",
            "horovod/torch/__init__.py": "",
            "horovod/torch/elastic/__init__.py": "def run(func):\n    return 'as it is'\n",
            "tensorflow/__init__.py": "",
            "tensorflow/keras.py": KERAS.format(version=version, backend=backend),
            "keras.py": KERAS.format(version=version, backend=backend),
            "train.py": SPY + script,
        }
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        environment = {**os.environ, "PYTHONPATH": f"{TOOLKIT}:{tmp_path}", **env}
        words = [sys.executable, "-B", *(start or RANK)]  # the files of one second are others in the next run
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout.splitlines(), done.stderr.splitlines()

    return run


ALL = ["adapted horovod.tensorflow True", "adapted horovod._keras True", "adapted horovod.keras True"]


def test_in_a_rank_they_are_adapted_as_a_script_imports_them_and_one_rank_says_so(run):
    adapted, said = run("import horovod.keras", RANK="0")
    assert adapted == ALL
    assert said == [
        "Horovod 0.28.1, which was written for Keras 2, is adapted to Keras 3.15.1 here "
        "(ESTIMATOR_HOROVOD_KERAS3=off leaves it as it is)"
    ]
    assert run("import horovod.keras", RANK="1") == (ALL, [])


def test_a_module_that_runs_as_a_rank_is_no_different(run):
    assert run("import horovod.keras", "-m", "estimator_container.ranks.script_runner", "-m", "train")[0] == ALL


@pytest.mark.parametrize("script", ["{ours}; import horovod.keras", "import horovod.keras; {ours}; {ours}"])
def test_elsewhere_they_are_adapted_by_one_import_before_or_after(run, script):
    ours = "import estimator_container.horovod_keras3"
    assert run(script.format(ours=ours), "train.py")[0] == ALL


def test_elsewhere_without_that_import_they_stay_as_they_are(run):
    assert run("import horovod.keras", "train.py") == ([], [])


@pytest.mark.parametrize(
    "given",
    [
        {"ESTIMATOR_HOROVOD_KERAS3": "off"},
        {"version": ""},  # as `tf.keras` is in TensorFlow 2.15, and in later ones with TF_USE_LEGACY_KERAS=1
        {"version": "__version__ = '2.15.0'"},
        {"backend": "torch"},
    ],
)
def test_they_stay_as_they_are_where_that_is_asked_for_or_nothing_is_wrong(run, given):
    assert run("import horovod.keras", **given) == ([], [])


@pytest.mark.parametrize("script", ["", "import keras", "import horovod.torch"])
def test_a_script_without_horovod_on_tensorflow_adapts_nothing(run, script):
    assert run(script) == ([], [])


def test_a_script_that_imports_no_horovod_loads_nothing_of_it(run):
    script = "import json; print(sorted(name for name in sys.modules if 'horovod' in name and 'stock' not in name))"
    assert run(script)[0] == ["[]"]


def test_horovod_is_shown_as_its_own_loaders_loaded_it(run):
    script = (
        "import horovod.tensorflow as h, inspect; print(type(h.__loader__).__name__, len(inspect.getsource(h)) > 9)"
    )
    assert run(script)[0] == [ALL[0], "SourceFileLoader True"]


DROPPED = {
    "ValueError(\"Argument(s) not recognized: {'lr': 0.1}\")": "write learning_rate= where the script has lr=",
    "AttributeError(\"'SGD' object has no attribute 'lr'\")": "write .learning_rate where the script has .lr",
    "ImportError('`keras.optimizers.legacy` is not supported in Keras 3. When')": "write keras.optimizers where",
    "AttributeError(\"module 'tensorflow' has no attribute 'ConfigProto'\")": "tf.config.set_visible_devices(",
    "AttributeError(\"module 'tensorflow' has no attribute 'estimator'\")": "write a Keras model",
    "AttributeError(\"'Sequential' object has no attribute 'fit_generator'\")": "write model.fit, which takes",
    "TypeError(\"M.compile() got an unexpected keyword argument 'weights'\")": "leave weights= out",
}


@pytest.mark.parametrize("error", DROPPED)
def test_after_an_error_of_a_word_of_keras_2_a_line_says_what_to_write_today(run, error):

    script = f"import horovod.tensorflow\nsys.excepthook({error.partition('(')[0]}, {error}, None)"
    *_, named, today = run(script, RANK="0")[1]
    assert named.startswith(error.partition("(")[0]) and DROPPED[error] in today


def test_after_another_error_there_is_none(run):
    script = "import horovod.tensorflow\nsys.excepthook(ValueError, ValueError('lr is not set'), None)"
    assert run(script, RANK="0")[1][-1] == "ValueError: lr is not set"


def test_a_script_that_ends_before_it_has_imported_horovod_is_told_too(run):
    script = "import {} as keras\nraise ImportError(\"No module named 'keras.preprocessing.text'\")"
    *_, today = run(script.format("keras"), code=1)[1]
    assert "tensorflow.keras.preprocessing.text" in today
    assert "No module named" in run(script.format("keras"), version="__version__ = '2.15.0'", code=1)[1][-1]
    assert "No module named" in run(script.format("json"), code=1)[1][-1]


@pytest.mark.parametrize(("driver", "is_left"), [("", False), ("0", False), ("1", True)])
def test_elastic_training_runs_once_unless_there_is_a_driver(run, driver, is_left):
    script = """
import horovod.torch.elastic

class State:
    _rank = staticmethod(lambda: 0)
    sync = lambda self: print("synchronized")

@horovod.torch.elastic.run
def train(state, word):
    return word

print(train if train == "as it is" else train(State(), "trained"))
"""
    written, said = run(script, HOROVOD_ELASTIC=driver)
    assert written == (["as it is"] if is_left else ["synchronized", "trained"])
    assert len(said) == (0 if is_left else 1) and all("calls train() once" in line for line in said)
