"""The reserved hyperparameters: what a job carries for the toolkit and its platform, and not for the script.

`Reserved` is their table. The line of a field has its type, its kind (how it is checked, decoded and encoded), and its
name where that is not the field's own behind OWN_PREFIX. What comes is read by it, once, and what is written is written
by it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from ..runtime.errors import ConfigurationError
from . import hyperparameters as hp
from . import steps as job_steps
from .names import NUM_PROCESSES, PROGRAM, PROGRAM_VARIABLE, SUBMIT_DIRECTORY
from .steps import Step

OWN_PREFIX = "sagemaker_estimator_"
"""Of those that no other toolkit knows; the rest of the name is that of the field, and of the argument of the SDK's
`Estimator` that it comes from."""
_IGNORED = ("sagemaker_enable_cloudwatch_metrics", "sagemaker_s3_output")
"""Mean nothing to us, and nothing to a script."""
_TRUE = (True, "True", "true")


class WrongHyperparameter(ConfigurationError):
    """A reserved hyperparameter holds what it may not."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name} {what}")
        self.name, self.what = name, what


def _as_it_is(value: object) -> object:
    return value


class _Kind(NamedTuple):
    """What a JSON value must be."""

    what: str
    """In words, with an example."""
    is_right: Callable[[Any], bool]
    decode: Callable[[Any], object] = _as_it_is
    encode: Callable[[Any], object] = _as_it_is


class _Option(NamedTuple):
    """A line of the table, less the field's own name and type."""

    name: str
    kind: _Kind
    is_for_frameworks: bool
    """Whether the script finds it in `SM_FRAMEWORK_PARAMS`."""

    def read(self, value: object) -> object:
        """Raises WrongHyperparameter."""
        if not self.kind.is_right(value):
            raise WrongHyperparameter(self.name, f"must be {self.kind.what}, not {value!r} ({type(value).__name__})")
        words = value if isinstance(value, list) else [value]
        if not all(hp.can_be_passed(word) for word in words if isinstance(word, str)):
            what = "holds a NUL or an unpaired surrogate, which neither a variable nor an argument can hold; remove it"
            raise WrongHyperparameter(self.name, what)
        return self.kind.decode(value)


def _option(kind: _Kind, name: str = "", is_for_frameworks: bool = False) -> Any:  # noqa: ANN401 - as its field
    """Without a name it is one of ours, under that of its field."""
    return field(default=None, metadata={"option": _Option(name, kind, is_for_frameworks)})


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    """At least 0, and of a size that a float can have."""
    return (isinstance(value, float) and value >= 0) or (_is_whole(value) and 0 <= value < 1 << 1023)


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_ANYTHING = _Kind("any value", lambda value: True)
_FILE = _Kind("the name of a file, such as 'train.py'", _is_text)
_PLACE = _Kind("the name of a file or folder, such as 's3://bucket/sourcedir.tar.gz'", _is_text)
_OPTIONS = _Kind("one string, such as '-x NAME'", _is_text)
_COUNT = _Kind("a whole number of at least 1, such as 2", lambda value: _is_whole(value) and value >= 1)
_FLAG = _Kind("true or false", lambda value: isinstance(value, bool))
_SECONDS = _Kind("a number of seconds, such as 120", _is_number)
_CPUS = _Kind("a number of CPUs, such as 1.5", _is_number)
_GIB = _Kind("a number of GiB, such as 4", _is_number)
_WORDS = _Kind('a JSON list of strings, such as ["--lr", "0.1"]', _is_list, tuple)
_COMMAND = _Kind(
    'a JSON list of a program and its arguments, such as ["bash", "run.sh"]',
    lambda value: _is_list(value) and value != [],
    tuple,
)
_PATTERNS = _Kind(
    "True, False, or a list of names and patterns, such as ['AWS_*', 'HF_TOKEN']",
    lambda value: isinstance(value, bool) or _is_list(value),
    lambda value: value if isinstance(value, bool) else tuple(value),
)
_POLICY = _Kind('a JSON object, such as {"on": ["signal"], "max": 5}', lambda value: isinstance(value, dict))
_SLURM = _Kind('a JSON object, such as {"partition": "gpu"}', lambda value: isinstance(value, dict))
_POOL = _Kind(
    'a JSON list of machines, such as [{"name": "a", "slots": 4}]',
    lambda value: isinstance(value, list) and all(isinstance(each, dict) for each in value),
    tuple,
)
_STEPS = _Kind(job_steps.FORM, job_steps.are_steps, job_steps.from_value, job_steps.to_value)


@dataclass(frozen=True)
class Reserved:
    """What the reserved hyperparameters of a job say; None is said of nothing."""

    program: str | None = _option(_FILE, PROGRAM)
    """The entry point, relative to the code folder; see `program_in`."""
    submit_directory: str | None = _option(_PLACE, SUBMIT_DIRECTORY)
    """Where the code is: a folder, an archive or a file, by its path on the host or its URI."""
    container_log_level: object = _option(_ANYTHING, "sagemaker_container_log_level")
    job_name: object = _option(_ANYTHING, "sagemaker_job_name")
    region: object = _option(_ANYTHING, "sagemaker_region")
    instance_groups: object = _option(_ANYTHING, "sagemaker_distribution_instance_groups", is_for_frameworks=True)
    """Those that the distribution spans."""
    # The `sagemaker-training` package has this one name for MPI and for torchrun.
    processes_per_host: int | None = _option(_COUNT, "sagemaker_mpi_num_of_processes_per_host", is_for_frameworks=True)
    num_processes: int | None = _option(_COUNT, NUM_PROCESSES, is_for_frameworks=True)
    """All of the world; no more than a check of the one before."""
    custom_mpi_options: str | None = _option(_OPTIONS, "sagemaker_mpi_custom_mpi_options", is_for_frameworks=True)

    stop_timeout: float | None = _option(_SECONDS)
    """Seconds between SIGTERM and SIGKILL."""
    hang_timeout: float | None = _option(_SECONDS)
    """Seconds that a world may stand still; 0 for ever."""
    cpus: float | None = _option(_CPUS)
    """CPUs that a platform of ours grants each host."""
    memory: float | None = _option(_GIB)
    """GiB of memory that it grants each host."""
    checkpoint_keep: int | None = _option(_COUNT)
    """How many snapshots a platform of ours keeps."""
    restart_policy: Mapping[str, Any] | None = _option(_POLICY)
    """After which failures a platform of ours begins again."""
    slurm: Mapping[str, Any] | None = _option(_SLURM)
    """What a scheduler is asked for besides."""
    pool: Sequence[Mapping[str, Any]] | None = _option(_POOL)
    """The machines that a platform of ours may use."""
    queue: bool | None = _option(_FLAG)
    """Whether a job waits until the machines have room for it."""
    spare_hosts: int | None = _option(_COUNT)
    """How many machines of its own a platform keeps ready for hosts that are suspect."""
    arguments: tuple[str, ...] | None = _option(_WORDS)
    """The script's arguments as they were written."""
    command: tuple[str, ...] | None = _option(_COMMAND)
    """A whole command, in the place of an entry point."""
    steps: tuple[Step, ...] | None = _option(_STEPS)
    """Lines that ranks run, in the place of an entry point."""
    inherit_environment: bool | tuple[str, ...] | None = _option(_PATTERNS)
    """Which variables hosts have from the process that starts them: all, none, or names and patterns."""
    launch_variables: tuple[str, ...] | None = _option(_WORDS)
    """The variables for MPI and launchers that the user has set on purpose; see `worlds.mpi.inherited`."""

    distributions: Mapping[str, bool] = field(default_factory=dict)
    """Name of a distribution -> whether it is enabled: what each `sagemaker_<name>_enabled` says."""

    @classmethod
    def read(cls, decoded: Mapping[str, Any]) -> Reserved:
        """From hyperparameters as JSON values. Raises WrongHyperparameter."""
        given = ((name, option, decoded.get(option.name)) for name, option in _TABLE)
        values: dict[str, Any] = {name: option.read(value) for name, option, value in given if value is not None}
        enabled = {each: value in _TRUE for name, value in decoded.items() if (each := _distribution(name))}
        return cls(**values, distributions=enabled)

    def encode(self) -> dict[str, str]:
        """As they are on disk: what is said, each as JSON under its name.

        >>> Reserved(program="train.py", cpus=1.5, distributions={"mpi": True}).encode()
        {'sagemaker_program': '"train.py"', 'sagemaker_estimator_cpus': '1.5', 'sagemaker_mpi_enabled': 'true'}
        """
        given = ((option, getattr(self, name)) for name, option in _TABLE)
        values = {option.name: option.kind.encode(value) for option, value in given if value is not None}
        values.update({enabled_by(name): value for name, value in self.distributions.items()})
        return {name: json.dumps(value) for name, value in values.items()}

    def program_in(self, environment: Mapping[str, str]) -> str | None:
        """The entry point of a job with these variables, of which one counts more than the hyperparameter."""
        return environment.get(PROGRAM_VARIABLE) or self.program


def _table() -> Iterator[tuple[str, _Option]]:
    for each in fields(Reserved):
        option = each.metadata.get("option")
        if option is not None:
            yield each.name, option if option.name else option._replace(name=OWN_PREFIX + each.name)


_TABLE = tuple(_table())
_NOT_FOR_FRAMEWORKS = {*_IGNORED, *(option.name for _, option in _TABLE if not option.is_for_frameworks)}


def enabled_by(distribution: str) -> str:
    """The reserved hyperparameter that says whether a distribution is enabled.

    >>> enabled_by("torch_distributed")
    'sagemaker_torch_distributed_enabled'
    """
    return f"{hp.RESERVED_PREFIX}{distribution}_enabled"


def _distribution(name: str) -> str | None:
    """The way back from `enabled_by`; None for any other hyperparameter."""
    given = name[len(hp.RESERVED_PREFIX) : -len("_enabled")]
    return given if given and name == enabled_by(given) else None


class Hyperparameters(NamedTuple):
    """All hyperparameters of a job, decoded."""

    script: Mapping[str, Any]
    """Those of the script."""
    reserved: Reserved
    for_frameworks: Mapping[str, Any]
    """Of the reserved ones those that a script may want to know, those of the distributions among them, and those that
    are not known here: `SM_FRAMEWORK_PARAMS`."""

    @classmethod
    def read(cls, raw: Mapping[str, object]) -> Hyperparameters:
        """From what `hyperparameters.json` holds. Raises WrongHyperparameter."""
        decoded = hp.decode(raw)
        return cls(
            {name: value for name, value in decoded.items() if not hp.is_reserved(name)},
            Reserved.read(decoded),
            {name: value for name, value in decoded.items() if _is_for_frameworks(name)},
        )

    @property
    def arguments(self) -> list[str]:
        """What follows the entry point: the arguments that the job carries as they were written, else `to_arguments`.

        Raises ConfigurationError as that does, for hyperparameters are variables in any case.

        >>> Hyperparameters.read({"lr": "0.1", "sagemaker_estimator_arguments": '["data", "--lr", "0.1"]'}).arguments
        ['data', '--lr', '0.1']
        """
        made = hp.to_arguments(self.script)
        return made if self.reserved.arguments is None else list(self.reserved.arguments)


def _is_for_frameworks(name: str) -> bool:
    is_others = name.startswith(hp.RESERVED_PREFIX) and not name.startswith(OWN_PREFIX)
    return is_others and name not in _NOT_FOR_FRAMEWORKS
