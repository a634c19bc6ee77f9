"""What a command line of Open MPI's sets."""


def parameters(command):
    pairs = zip(command, command[1:])  # noqa: RUF007 - the toolkit's tests run on Python 3.9 too
    return {name: command[at + 2] for at, (flag, name) in enumerate(pairs) if flag in ("-mca", "--mca")}
