"""What is loaded when each program of the toolkit starts: the cost of a start, without a clock."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import estimator_container

PACKAGE = Path(estimator_container.__file__).parent
MODULES = sorted(".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in PACKAGE.rglob("*.py"))
# Runs under the user's interpreter beside its framework; of the toolkit only a rank that imports that loads it.
OPTIONAL = (
    "keras_horovod",
    "horovod_keras3",
    "drift.tensorflow_steps",
    "drift.torch_first_calls",
    "drift.torch_steps",
    "training.boundaries.in_tensorflow",
)
# Imported in a function: when a store on S3 is opened, and by a program that is beside the framework; or by type
# checkers alone, which bring it.
WHEN_USED = {
    "contract.event": {"typing_extensions"},
    "storage.s3.client": {"obstore"},
    "storage.s3.aws_settings": {"botocore"},
    "worlds.tensorflow_server": {"tensorflow"},
    "ranks.flight_recorder": {"torch"},
    "training.trials.from_python": {"numpy", "tensorflow"},
    "training.trials.going_on": {"tensorflow"},
    "training.trials.kept": {"tensorflow"},
    # Adapters, which a script imports beside the framework.
    "training.for_scripts.data.for_numpy": {"numpy"},
    "training.for_scripts.data.for_tensorflow": {"tensorflow"},
    "training.for_scripts.data.for_torch": {"torch"},
}

HEAVY = {
    "asyncio",
    "concurrent",
    "ctypes",
    "email",
    "http",
    "multiprocessing",
    "pathlib",
    "queue",
    "ssl",
    "subprocess",
    "unittest",
    "urllib",
    "uuid",
    "venv",
    "xml",
}

# A rank starts many times in a job, so its list is exact; all of it is small or built into the interpreter.
OF_A_RANK = {
    "__future__",
    "collections",
    "genericpath",
    "itertools",
    "keyword",
    "operator",
    "os",
    "posixpath",
    "reprlib",
    "select",
    "stat",
    "struct",
    "zlib",
}


def loaded_by(module):
    """The modules that a bare interpreter, as the toolkit starts it, loads for one of ours."""
    script = (
        f"import sys; before = set(sys.modules); sys.path.append({str(PACKAGE.parent)!r}); "
        f"import estimator_container.{module}; print(*sorted(set(sys.modules) - before))"
    )
    command = [sys.executable, "-I", "-S", "-c", script]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def top_level(modules):
    return {name.partition(".")[0] for name in modules}


@cache
def source_of(module):
    return (PACKAGE / f"{module.replace('.', '/')}.py").read_text()


@cache
def nodes_of(module):
    """All that a file is made of, as Python 3.9 reads it."""
    return [*ast.walk(ast.parse(source_of(module), feature_version=(3, 9)))]


def imports_of(module):
    """The modules that a file imports anywhere, in functions too; ours by their bare names with a dot before."""
    for node in nodes_of(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def test_the_package_itself_loads_nothing():
    script = (
        f"import sys; before = set(sys.modules); sys.path.append({str(PACKAGE.parent)!r}); import estimator_container"
    )
    command = [sys.executable, "-I", "-S", "-c", f"{script}; print(*sorted(set(sys.modules) - before))"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "estimator_container\n"


def test_the_start_of_a_host_loads_nothing_heavy():
    loaded = loaded_by("train")
    assert not top_level(loaded) & HEAVY
    assert not loaded & {f"estimator_container.{module}" for module in OPTIONAL}


def test_the_start_of_a_rank_loads_a_short_list():
    loaded = loaded_by("ranks.wrapper")
    ours = {name.partition(".")[2] for name in loaded if name.startswith("estimator_container.")}
    assert ours == {"ranks", "ranks.wrapper", "logs", "logs.frames", "runtime", "runtime.wire"}
    others = {name for name in top_level(loaded) if not name.startswith("_") or name == "__future__"}
    assert others - {"estimator_container"} <= OF_A_RANK


def test_what_runs_a_script_in_a_world_loads_nothing_of_ours_into_it_but_itself():
    loaded = loaded_by("ranks.script_runner")
    assert {name for name in loaded if name.startswith("estimator_container.")} == {
        "estimator_container.ranks",
        "estimator_container.ranks.script_runner",
    }
    assert not top_level(loaded) & (HEAVY | {"dataclasses", "inspect", "typing", "json", "re"})


def test_the_command_line_starts_the_toolkit_from_a_bare_interpreter(tmp_path):
    command = [sys.executable, "-I", "-S", "-X", "importtime", str(PACKAGE), "train"]
    ran = subprocess.run(
        command, capture_output=True, text=True, env={"SAGEMAKER_BASE_DIR": str(tmp_path)}, check=False
    )
    assert ran.returncode == 2
    assert "train: " in ran.stderr
    assert "resourceconfig.json is missing" in (tmp_path / "output" / "failure").read_text()
    loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines() if line.startswith("import time:")}
    assert "estimator_container.train" in loaded
    assert not top_level(loaded) & HEAVY


# Of what the package is made.


def test_modules_import_the_standard_library_and_their_neighbours_alone():
    others = {}
    for module in (module for module in MODULES if not module.startswith(OPTIONAL)):
        allowed = {*sys.stdlib_module_names, "estimator_container", *WHEN_USED.get(module, ())}
        others[module] = top_level(name for name in imports_of(module) if not name.startswith(".")) - allowed
    assert {module: names for module, names in others.items() if names} == {}


def test_the_port_of_storage_loads_nothing_heavy_and_a_folder_needs_no_client_of_s3():
    assert not top_level(loaded_by("storage")) & (HEAVY | {"obstore", "botocore"})
    assert not top_level(loaded_by("storage.file")) & (HEAVY | {"obstore", "botocore"})
    assert not top_level(loaded_by("storage.s3.store")) & {"obstore", "botocore", "boto3"}


def test_no_module_knows_the_sdk():
    assert [module for module in MODULES if "estimator_sdk" in top_level(imports_of(module))] == []


def test_modules_are_written_for_python_3_9():
    assert {module: words for module in MODULES if (words := too_new(module))} == {}


def too_new(module):
    """What Python 3.9 does not have, beside what it cannot read."""
    source, nodes = source_of(module), nodes_of(module)
    keywords = ((node, keyword) for node in nodes if isinstance(node, ast.Call) for keyword in node.keywords)
    arguments = {(ast.unparse(call.func), keyword.arg) for call, keyword in keywords}
    found = arguments & {("zip", "strict"), ("dataclass", "slots"), ("dataclass", "kw_only")}
    is_annotated = any(isinstance(node, (ast.AnnAssign, ast.FunctionDef)) for node in nodes)
    if is_annotated and "from __future__ import annotations" not in source:
        found.add("annotations")
    if "pairwise" in source.replace("`pairwise`", ""):
        found.add("pairwise")
    return found | ({"tomllib"} & {*imports_of(module)})


def test_no_union_is_made_at_run_time_because_python_3_9_cannot():
    assert {module: unions for module in MODULES if (unions := made_unions(module))} == {}


def made_unions(module):
    nodes = nodes_of(module)
    annotations = {id(inner) for node in nodes for each in annotations_of(node) for inner in ast.walk(each)}
    return [
        ast.unparse(node)
        for node in nodes
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.BitOr)
        and id(node) not in annotations
        and any(is_type(side) for side in (node.left, node.right))
    ]


def annotations_of(node):
    for field in ("annotation", "returns"):
        annotation = getattr(node, field, None)
        if annotation is not None:
            yield annotation


def is_type(node):
    names = {"int", "str", "bytes", "bool", "float", "list", "dict", "set", "tuple", "object", "None", "type"}
    return ast.unparse(node).partition("[")[0] in names or ast.unparse(node)[:1].isupper()
