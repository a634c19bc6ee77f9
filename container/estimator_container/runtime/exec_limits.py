"""How much the kernel lets a program start with: `execve(2)`, "Limits on size of arguments and environment".

Whoever plans a job looks before it starts, and a host before it starts its ranks, for all that a rank could say is
that it cannot be run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

ONE = (32 << 12) - 1
"""Bytes of one argument, or of one variable with its name and the `=`: MAX_ARG_STRLEN, less the NUL that ends it."""
AT_LEAST, AT_MOST = 128 << 10, 6 << 20
"""Bytes of all together, whatever the limit of the stack is."""
POINTER = 8  # bytes, which each argument and variable takes besides
ADDED = 16 << 10  # bytes that are left for what MPI and its daemons tell a rank in variables; Open MPI 4.1 takes 4 KiB
_PARAMETER = "OMPI_MCA_"  # begins the name of a variable that is a parameter of Open MPI


class Excess(NamedTuple):
    """What is too large."""

    kind: str
    """`argument`, `variable`, or `all` for arguments and variables together."""
    name: str
    """The variable's name, or the argument's index; empty for all together."""
    size: int
    """Bytes."""
    limit: int
    """Bytes."""

    def __str__(self) -> str:
        what = {
            "argument": f"argument {self.name} of the script is {self.size:,} bytes long",
            "variable": f"the variable {self.name} of the script is {self.size:,} bytes long with its name",
            "all": f"the arguments and variables of the script are {self.size:,} bytes together",
        }[self.kind]
        return f"{what}, but the kernel accepts {self.limit:,}; pass large values as files in a channel"


def limit_of_all(stack: int) -> int:
    """Bytes of all arguments and variables; `stack` is the soft limit of the stack in bytes, negative for none."""
    return AT_MOST if stack < 0 else max(AT_LEAST, min(AT_MOST, stack // 4))


def handed_to_daemons(variables: Mapping[str, str]) -> list[str]:
    """What mpirun makes of its variables to start a daemon on another host, which gets the variables themselves too.

    (`setup_launch` in plm_rsh_module.c and `mca_base_cmd_line_wrap_args` of Open MPI 4.1.)
    """
    given = ((name[len(_PARAMETER) :], value) for name, value in variables.items() if name.startswith(_PARAMETER))
    return [word for name, value in given for word in ("-mca", name, f'"{value}"')]


def own_stack() -> int:
    """The soft limit of this process's stack, which its children inherit."""
    import resource

    return resource.getrlimit(resource.RLIMIT_STACK)[0]


def excess(argv: Sequence[str], environment: Mapping[str, str], stack: int, spare: int = 0) -> Excess | None:
    """What keeps the kernel from starting a program as a rank; None if nothing does.

    `spare` bytes of each variable of the contract are kept free, and four times as many of all together. Raises
    ValueError for text that cannot be passed on.
    """
    sizes = {("argument", str(index)): _size(word) for index, word in enumerate(argv)}
    sizes |= {("variable", name): _size(f"{name}={value}") for name, value in environment.items()}
    for (kind, name), size in sizes.items():
        if size > ONE - (spare if name.startswith("SM_") else 0):
            return Excess(kind, name, size, ONE)
    # The name of the program is there once more, and each of the two lists ends with a pointer.
    whole = sum(sizes.values()) + len(sizes) * (POINTER + 1) + (_size(argv[0]) + 1 if argv else 0) + 2 * POINTER
    limit = limit_of_all(stack) - ADDED - 4 * spare
    return Excess("all", "", whole, limit) if whole > limit else None


def _size(text: str) -> int:
    if "\0" in text:
        raise ValueError(f"a NUL ends an argument: {text[:80]!r}")
    return len(text.encode("utf-8", "surrogateescape"))
