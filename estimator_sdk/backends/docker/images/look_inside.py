"""Say what an image offers to a job: `python3 -c THIS_FILE TOOLKIT MODULES`, in a container of the image.

It prints one line of JSON, and compiles the toolkit, which lies below the folder TOOLKIT, if it may write there.
Written for any Python 3, so that one that is too old can say so.
"""

import json
import os
import sys

OLDEST = (3, 9)
INITS = ("catatonit", "docker-init", "dumb-init", "tini", "tini-static")
"""First processes that pass signals on to the one that they have started."""


def found(toolkit: str, modules: list) -> dict:  # type: ignore[type-arg]
    """The version of this Python, and unless it is too old, the modules that it has, and its mpirun."""
    facts = {
        "python": list(sys.version_info[:3]),
        "gets_signals": _gets_signals(),
        "search_path": os.environ.get("PYTHONPATH", ""),
    }
    if sys.version_info[:2] >= OLDEST:
        sys.path.insert(0, toolkit)  # before one that the image has
        from estimator_container.host import gpus

        without_cuda = [name for name in modules if gpus.build_without_cuda(name)]
        facts.update(modules=_those_there(modules), without_cuda=without_cuda, mpirun=_mpirun())
        if os.access(toolkit, os.W_OK):
            _compile(toolkit)
    return facts


def _gets_signals() -> bool:
    """Whether a signal to the container would reach the toolkit in this process's place."""
    if os.getpid() == 1:
        return True
    with open("/proc/1/comm") as file:
        return file.read().strip() in INITS


def _those_there(modules: list) -> list:  # type: ignore[type-arg]
    from importlib.util import find_spec

    return [name for name in modules if find_spec(name) is not None]


def _mpirun() -> dict:  # type: ignore[type-arg]
    """What mpirun says of its version, or why there is none."""
    import subprocess

    from estimator_container.runtime.errors import ConfigurationError
    from estimator_container.worlds.mpi import programs

    try:
        path = programs.find("mpirun")
    except ConfigurationError as error:
        return {"missing": str(error)}
    command, variables = [path, "--version"], dict(os.environ, **programs.relocation(path))
    asked = subprocess.run(
        command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    lines = asked.stdout.decode("utf-8", "replace").split("\n")
    return {"version": lines[0].strip()}


def _compile(toolkit: str) -> None:
    """So that no host and no rank of a job does it, which could not keep the result."""
    import compileall

    compileall.compile_dir(toolkit, quiet=2)


if __name__ == "__main__":
    print("\n" + json.dumps(found(sys.argv[1], sys.argv[2:])))
