"""The Python of the nodes, and how a batch script sees to it that a node has what its job needs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from ....errors import InvalidArgument
from ..files import BEFORE_MODULES
from ..options import SlurmOptions

OLDEST = (3, 9)
"""That the supervisor and a host's toolkit run on."""
_SAYS_SO = f"import sys; print(sys.version_info >= {OLDEST})"
"""A program that is no Python may end well, too, but does not answer this with True."""
_ANSWER_SECONDS = 30.0
_WHERE = "slurm['python']"
_INITS = (
    *('"$LMOD_PKG"/init/sh', '"$MODULESHOME"/init/sh', "/etc/profile.d/lmod.sh", "/etc/profile.d/modules.sh"),
    *("/usr/share/lmod/lmod/init/sh", "/usr/share/modules/init/sh"),
)
"""What defines `module` in a shell that nobody has logged in to, where Lmod and Environment Modules have it."""


def checked(options: SlurmOptions) -> str:
    """The interpreter. Raises InvalidArgument for one that this machine has, too, and that cannot run a job.

    A path that is not here may be on the nodes: their batch script looks.
    """
    python = options.python
    if python is None:
        return sys.executable
    if not Path(python).exists():
        return python
    import subprocess  # who looks at jobs need not load it

    try:
        done = subprocess.run(
            (python, "-I", "-S", "-c", _SAYS_SO),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_ANSWER_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InvalidArgument(_WHERE, f"{_WHERE} is {python!r}, which cannot be run: {error}; name a Python") from None
    if done.stdout.strip() != b"True":
        what = f"{_WHERE} is {python!r}, which is not Python {_oldest()} or later"
        raise InvalidArgument(_WHERE, f"{what}; name one that is, with what the script imports")
    return python


def before_start(options: SlurmOptions) -> Iterator[str]:
    """Lines of the batch script that load modules, and look for the Python on the first node."""
    yield from modules(options)
    if options.python is None:
        failed = f"name a Python of the nodes in {_WHERE}, or call fit() from one that they share: {sys.executable}"
        yield f"[ -x {shlex.quote(sys.executable)} ] || {_end(f'{failed} is not on')}"
    else:
        failed = f"{_WHERE}: {options.python} is not Python {_oldest()} or later on"
        answer = f'"$({shlex.quote(options.python)} -I -S -c {shlex.quote(_SAYS_SO)})"'
        yield f"[ {answer} = True ] || {_end(failed)}"


def modules(options: SlurmOptions) -> Iterator[str]:
    """Lines of a batch script that load modules."""
    if options.modules:
        yield f'export {BEFORE_MODULES}="$(env | cut -d= -f1)"'
        yield f"for init in {' '.join(_INITS)}; do"
        yield '  command -v module >/dev/null || { [ -r "$init" ] && . "$init"; }'
        yield "done"
        failed = f"slurm['modules']: module load {' '.join(options.modules)} fails on"
        yield f"module load {shlex.join(options.modules)} || {_end(failed)}"


def _end(sentence: str) -> str:
    return f'{{ echo {shlex.quote(sentence)} "$SLURMD_NODENAME" >&2; exit 1; }}'


def _oldest() -> str:
    return ".".join(map(str, OLDEST))
