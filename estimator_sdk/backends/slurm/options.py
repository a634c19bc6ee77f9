"""The argument `slurm=`: what of Slurm a job asks for, besides what an estimator says of every platform."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields

from estimator_container.contract.names import TRANSPORTS

from ...errors import InvalidArgument
from ...values.naming import shown, suggestion

_OURS = (
    *("array", "batch", "chdir", "cpus-per-task", "export", "get-user-env", "input", "job-name", "mem", "no-kill"),
    *("clusters", "gid", "help", "no-requeue", "nodes", "ntasks", "ntasks-per-node", "open-mode", "output", "error"),
    *("overcommit", "parsable", "requeue", "signal", "test-only", "time", "uid", "usage", "version", "wait", "wrap"),
)
"""Options of sbatch that the backend sets itself, or that would take from it what it needs."""
OUR_OWN = (
    *("gpus", "hosts_per_node", "after", "python", "modules", "interface", "transport", "local_scratch"),
    *("export_script", "container_runtime", "container_mounts", "container_options"),
)
"""What is no option of sbatch."""
_FLAGS = ("exclusive", "requeue")
_NUMBERS = ("nice", "gpus", "gpus_per_node", "hosts_per_node")
GPUS = ("gpus", "gpus_per_node")
"""Two ways to say the same."""
DICTS = ("sbatch_options", "container_options")
"""What takes options of other programs; where an option is a word, theirs follow the name and a dot."""
RUNTIMES = ("pyxis", "apptainer", "charliecloud")
"""What can run an image on a node."""
_CHOICES: Mapping[str, Sequence[object]] = {"transport": TRANSPORTS, "container_runtime": RUNTIMES}
_PATHS = {
    "python": "'/shared/env/bin/python'",
    "local_scratch": "'/scratch', or the name of a variable, such as 'SLURM_TMPDIR'",
}
_OF_IMAGES = ("container-image", "container-mounts", "container-env", "bind")
"""Options of those that the backend sets itself."""
_IN_A_LINE = re.compile(r"[^\x00-\x1f\x7f\"'\\`$]+")
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class SlurmOptions:
    """What `sbatch` is told: each field but those in `OUR_OWN` is its option of that name (manual of sbatch, 22.05)."""

    partition: str | None = None
    """Partitions to run in, with commas between them; `instance_type="slurm.NAME"` names one, too."""
    account: str | None = None
    """Whom the job's resources are charged to."""
    qos: str | None = None
    """The quality of service."""
    constraint: str | None = None
    """Features that nodes must have, such as `"ib&a100"`."""
    gres: str | None = None
    """Generic resources of each node, such as `"gpu:4"`."""
    gpus: int | None = None
    """GPUs of each host, in the place of `gpus_per_node`; an estimator's argument `gpus` says the same."""
    gpus_per_node: int | None = None
    """GPUs of each node; the number of processes on each host where `distribution` says none."""
    hosts_per_node: int | None = None
    """How many hosts share a node, with its GPUs divided between them; one host a node unless it is given."""
    reservation: str | None = None
    """A reservation to run in."""
    nodelist: str | None = None
    """Nodes that must be among those of the job."""
    exclude: str | None = None
    """Nodes that must not be."""
    exclusive: bool = False
    """Whether no other job may share the nodes."""
    licenses: str | None = None
    """Licences of the cluster, such as `"matlab:1"`."""
    nice: int | None = None
    """By how much the job's priority is lowered."""
    dependency: str | None = None
    """Which jobs of Slurm it waits for, such as `"afterok:1234"`."""
    after: str | None = None
    """The name of a job of ours on this cluster, which must have completed first."""
    comment: str | None = None
    """Any text."""
    mail_type: str | None = None
    """What mail is sent about, such as `"END,FAIL"`."""
    mail_user: str | None = None
    """Who gets it."""
    python: str | None = None
    """The Python of the nodes, as an absolute path there; the one that calls `fit()` unless it is given."""
    modules: Sequence[str] = field(default_factory=list)
    """What `module load` brings into the environment of the hosts, such as `["openmpi/4.1.8"]`."""
    interface: str | None = None
    """Over which network interface nodes talk, such as `"ib0"`; by default over the one that has a node's address."""
    transport: str | None = None
    """How MPI talks between nodes: `"tcp"`, or `"fabric"`, which lets Open MPI choose; by default that is chosen where
    InfiniBand, EFA or Slingshot is active."""
    local_scratch: str | None = None
    """A folder of each node's own disk, such as `"/scratch"`, or the name of the variable in which a node has it, such
    as `"SLURM_TMPDIR"`: channels from a store are fetched to there, once for all hosts of a node."""
    export_script: str | None = None
    """A file that the batch script is written to; the job starts once somebody gives it to `sbatch`."""
    container_runtime: str | None = None
    """What runs `image_uri` on nodes: `"pyxis"`, `"apptainer"` or `"charliecloud"`; by default the first of them that
    this machine has."""
    container_mounts: Sequence[str] = field(default_factory=list)
    """Folders of nodes that the image sees besides those of the job, such as `["/datasets"]` or `["/nvme:/fast"]`."""
    container_options: Mapping[str, str | int | bool] = field(default_factory=dict)
    """Other options of what runs the image, by their long names without dashes; True is for one without a value."""
    requeue: bool = True
    """Whether Slurm may start the job again after a preemption or the loss of its first node; it goes on from its
    newest checkpoint then."""
    sbatch_options: Mapping[str, str | int | bool] = field(default_factory=dict)
    """Any other options of sbatch, by their long names without dashes; True is for one without a value."""

    @classmethod
    def from_document(cls, given: Mapping[str, object], where: str = "slurm") -> SlurmOptions:
        """What a dict says. Raises InvalidArgument for an unknown option and a value that cannot be used."""
        known = {each.name: each for each in fields(cls)}
        for key in given:
            if key not in known:
                hint = suggestion(key, known)
                raise _refused(where, shown(key), f"is not known; {hint} Others go into 'sbatch_options'")
        checked = {key: _checked(key, value, where) for key, value in given.items() if value is not None}
        if checked.keys() >= set(GPUS):
            raise _refused(where, "'gpus'", "replaces 'gpus_per_node'; give only one of them")
        return cls(**checked)  # type: ignore[arg-type]

    @classmethod
    def from_words(cls, given: Mapping[str, str]) -> SlurmOptions:
        """What a command line says, where all is text. Raises InvalidArgument as `from_document` does.

        >>> SlurmOptions.from_words({"gpus_per_node": "4", "sbatch_options.contiguous": "true"}).to_document()
        {'gpus_per_node': 4, 'sbatch_options': {'contiguous': True}}
        """
        found: dict[str, object] = {}
        for key, text in given.items():
            option, dot, name = key.partition(".")
            if option in DICTS and dot:
                others = found.setdefault(option, {})
                assert isinstance(others, dict)
                others[name] = text.lower() == "true" or text
            else:
                found[key] = _from_word(key, text)
        return cls.from_document(found)

    def to_document(self) -> dict[str, object]:
        """The way back from `from_document`: what is not as it is by default."""
        default = asdict(SlurmOptions())
        return {name: value for name, value in asdict(self).items() if value != default[name]}

    def lines(self) -> Iterator[str]:
        """The words of sbatch, one option each.

        >>> list(SlurmOptions(partition="gpu", exclusive=True, comment="two words").lines())
        ['--partition=gpu', '--exclusive', '--comment="two words"', '--requeue']
        """
        for name, value in asdict(self).items():
            if name in OUR_OWN:
                continue
            if name == "sbatch_options":
                yield from words(value)
            elif name == "requeue":
                yield "--requeue" if value else "--no-requeue"
            elif value is not None and value is not False:
                yield _word(name.replace("_", "-"), value)


def words(given: Mapping[str, object]) -> Iterator[str]:
    """Options by their long names, as words of a line."""
    return (_word(key, each) for key, each in given.items())


def _from_word(key: str, text: str) -> object:
    if key in _NUMBERS and text.isdecimal():
        return int(text)
    if key in _FLAGS:
        return {"true": True, "false": False}.get(text.lower(), text)
    return text.split(",") if key in ("modules", "container_mounts") else text


def is_word(text: str) -> bool:
    """Whether it can stand in a line of a batch script without quotes.

    >>> is_word("gpu-2"), is_word("a b"), is_word("a\\ntouch x"), is_word("")
    (True, False, False, False)
    """
    return _IN_A_LINE.fullmatch(text) is not None and not re.search(r"[\s#;]", text)


def _word(name: str, value: object) -> str:
    if value is True:
        return f"--{name}"
    text = str(value)
    return f'--{name}="{text}"' if re.search(r"[\s#;]", text) else f"--{name}={text}"


def _checked(name: str, value: object, where: str) -> object:
    key = shown(name)
    if name in _FLAGS:
        if not isinstance(value, bool):
            raise _refused(where, key, f"must be True or False, not {shown(value)}")
    elif name in _NUMBERS:
        least = 0 if name == "nice" else 1
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 1 << 31:
            hint = "; gres takes a type, such as 'gpu:a100:2'" if name in GPUS and isinstance(value, str) else ""
            raise _refused(where, key, f"must be a whole number of at least {least}, not {shown(value)}{hint}")
    elif name in _NESTED:
        return _NESTED[name](value, f"{where}[{key}]")
    else:
        _check_text(value, where, key)
        if value not in (choices := _CHOICES.get(name, (value,))):
            known = ", ".join(map(repr, choices))
            raise _refused(where, key, f"is {shown(value)}, but must be one of {known}; leave it out for what is there")
        is_path = str(value).startswith("/") or (name == "local_scratch" and _VARIABLE.fullmatch(str(value)))
        if name in _PATHS and not is_path:
            raise _refused(where, key, f"must be an absolute path, such as {_PATHS[name]}, not {shown(value)}")
    return value


def _names(given: object, where: str) -> list[str]:
    if not isinstance(given, (list, tuple)):
        raise InvalidArgument(where, f"{where} must be a list such as ['openmpi/4.1.8'], not {shown(given)}")
    for number, name in enumerate(given):
        if not isinstance(name, str) or not is_word(name) or name.startswith("-"):
            raise _refused(where, str(number), f"must be the name of a module, not {shown(name)}")
    return [*given]


def _mounts(given: object, where: str) -> list[str]:
    if not isinstance(given, (list, tuple)):
        raise InvalidArgument(where, f"{where} must be a list such as ['/datasets'], not {shown(given)}")
    for number, each in enumerate(given):
        key = str(number)
        _check_text(each, where, key)
        if not is_word(each) or "," in each or not all(path.startswith("/") for path in each.split(":")[:2]):
            what = "must be an absolute path, or two with a colon between them, without commas and spaces"
            raise _refused(where, key, f"{what}, not {shown(each)}")
    return [*given]


def _of_image(given: object, where: str) -> dict[str, str | int | bool]:
    found = _dict(given, where, "nv")
    for name in found:
        if name in _OF_IMAGES:
            what = "is set by the backend itself; name folders in container_mounts, and the image in image_uri"
            raise _refused(where, shown(name), what)
    return found


def _others(given: object, where: str) -> dict[str, str | int | bool]:
    own = {each.name.replace("_", "-"): each.name for each in fields(SlurmOptions) if each.name not in DICTS}
    found = _dict(given, where, "wckey")
    for name in found:
        key = shown(name)
        if name in own and name not in _OURS:
            raise _refused(where, key, f"has a place of its own: write slurm={{{own[name]!r}: …}}")
        if any(ours.startswith(name) for ours in _OURS):  # sbatch takes any start of a name that is no other's
            raise _refused(where, key, "is set by the backend itself, or would break what it relies on; leave it out")
    return found


def _dict(given: object, where: str, example: str) -> dict[str, str | int | bool]:
    """Options of another program, by their long names."""
    if not isinstance(given, Mapping):
        raise InvalidArgument(where, f"{where} must be a dict such as {{{example!r}: 'x'}}, not {shown(given)}")
    for name, value in given.items():
        key = shown(name)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            meant = str(name).strip("-").replace("_", "-")
            likely = meant if _NAME.fullmatch(meant) else example
            raise _refused(where, key, f"is not an option's long name without its two dashes, such as {likely!r}")
        if not isinstance(value, (bool, int)):
            _check_text(value, where, key)
        elif value is False:
            raise _refused(where, key, "must be True, a number or a string, not False; leave it out")
    return dict(given)


_NESTED = {"modules": _names, "container_mounts": _mounts, "sbatch_options": _others, "container_options": _of_image}


def _check_text(value: object, where: str, key: str) -> None:
    if not isinstance(value, str):
        raise _refused(where, key, f"must be a string, not {shown(value)}")
    if not _IN_A_LINE.fullmatch(value) or value != value.strip():
        what = "holds nothing, or a character that no line of a batch script can hold (a control character, a quote, "
        raise _refused(where, key, f"is {shown(value)}, which {what}a backslash, $, or a space at an end); remove it")


def _refused(where: str, key: str, what: str) -> InvalidArgument:
    argument = f"{where}[{key}]"
    return InvalidArgument(argument, f"{argument} {what}")


def refused_on(backend: str, given: Mapping[str, object]) -> InvalidArgument:
    """What is said to a job that has such options, and runs elsewhere."""
    if given.keys() == {"gpus"}:
        what = f"gpus={given['gpus']} asks for GPUs of Slurm's nodes, but this job runs on backend {backend!r}"
        return InvalidArgument("gpus", f"{what}; leave it out: the instance type says which GPUs a host has there")
    what = f"slurm= is for jobs on Slurm, but this one runs on backend {backend!r}"
    return InvalidArgument("slurm", f"{what}; leave it out, or use instance_type='slurm'")
