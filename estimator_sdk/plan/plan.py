"""What a job will run, resolved for one backend: nothing is left to decide, and all of it can be printed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from estimator_container.contract.names import DEFAULT_BASE_DIR, DEFAULT_STOP_TIMEOUT, Layout

from ..spec.limits import DEFAULT_MAX_RUN
from ..spec.restart_policy import RestartPolicy

if TYPE_CHECKING:
    from estimator_container.contract.reserved import Hyperparameters

DEFAULT_CHECKPOINTS = Layout(DEFAULT_BASE_DIR).checkpoints
DEFAULT_CHECKPOINT_KEEP = 3
EVERYTHING = ("*",)
"""What hosts inherit that inherit all variables."""


@dataclass(frozen=True)
class RankPlan:
    """One process of the script."""

    rank: int | None
    """Its rank in the world; None without a distribution."""
    local_rank: int
    host: str


@dataclass(frozen=True)
class ChannelPlan:
    """Input data: where it is and what the script sees."""

    name: str
    source: str
    """The URI that the user gave."""
    config: Mapping[str, str]
    """Its entry in `inputdataconfig.json`."""
    is_manifest: bool = False
    """Whether the source lists the objects."""
    is_gzipped: bool = False
    """Whether a pipe unpacks the objects."""
    seed: int | None = None
    """Of the shuffle, if there is one."""

    @property
    def is_piped(self) -> bool:
        """Whether the script reads the channel from a FIFO, not from files."""
        return self.config["TrainingInputMode"] == "Pipe"

    @property
    def is_sharded(self) -> bool:
        """Whether each host gets a share of the objects, not all of them."""
        return self.config["S3DistributionType"] == "ShardedByS3Key"

    @property
    def is_in_place(self) -> bool:
        """Whether the hosts can be given the source itself: a file or folder of this machine, whole."""
        special = self.is_manifest or self.is_piped or self.is_sharded
        return self.source.startswith("file://") and not special


@dataclass(frozen=True)
class StepPlan:
    """One line that every rank runs, once all ranks have ended the one before."""

    name: str
    command: tuple[str, ...]
    """What each rank runs, in the code folder."""


@dataclass(frozen=True)
class HostPlan:
    """One host: what is started, where, and with what in its environment."""

    name: str
    address: str
    """Its IP address, or "" where that is known only once it runs."""
    base_dir: str
    """What stands for `/opt/ml`, relative to the folder of the job's hosts or absolute in a container."""
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    """Variables that the platform sets for this host alone."""


@dataclass(frozen=True, repr=False)
class Plan:
    """A job resolved for one backend. `print` it to see what `fit()` runs."""

    job_name: str
    backend: str
    instance_type: str
    hosts: tuple[HostPlan, ...]
    ranks: tuple[RankPlan, ...]
    distribution: str
    """`none`, or the name of an argument of `distribution=`, such as `mpi`."""
    program: str | None
    """The entry point's name, or None for the image's own program."""
    command: tuple[str, ...]
    """What every rank runs, its arguments included, in the code folder; empty where `steps` say it."""
    hyperparameters: Mapping[str, str]
    """As they stand in `hyperparameters.json`, reserved ones included."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The user's own variables."""
    inherited: tuple[str, ...] = ()
    """Names and patterns (those of `fnmatch`) of the variables that hosts have from the process that starts them."""
    channels: tuple[ChannelPlan, ...] = ()
    code: str | None = None
    """Where the code bundle is on this machine."""
    code_uri: str | None = None
    """Where the bundle is kept besides; it is uploaded before the start if it is not there."""
    image: str | None = None
    """The container image, where hosts are containers."""
    image_words: tuple[str, ...] = ()
    """How a scheduler's node runs it: options of what starts a host there, or a program that is given the host's."""
    toolkit: str | None = None
    """The folder of this machine with the toolkit that containers get, where their image has none of ours."""
    keeps_entrypoint: bool = True
    """Whether a container begins with its image's ENTRYPOINT, if that has one."""
    sees_only_mounts: bool = False
    """Whether a host sees of this machine's files only what is mounted into it."""
    output_path: str = ""
    """The URI below which `<job name>/output/model.tar.gz` is written."""
    model_hosts: tuple[str, ...] = ()
    """The hosts whose `model/` folders make the model; those of others are kept apart."""
    request: Mapping[str, Any] = field(default_factory=dict)
    """The whole job as a CreateTrainingJob document."""
    checkpoint_uri: str | None = None
    """Where checkpoints are kept; None keeps none."""
    checkpoint_path: str = DEFAULT_CHECKPOINTS
    """Where the script of a container finds them."""
    checkpoint_keep: int = DEFAULT_CHECKPOINT_KEEP
    """How many of the newest snapshots stay there."""
    max_retry_attempts: int = 0
    """How often a job that the platform failed is started again."""
    restart_policy: RestartPolicy | None = None
    """After which other failures it is."""
    max_run: float = DEFAULT_MAX_RUN
    """Seconds after which the job is stopped."""
    stop_timeout: float = DEFAULT_STOP_TIMEOUT
    """Seconds between SIGTERM and SIGKILL."""
    region: str | None = None
    """The AWS region, where hosts are instances of SageMaker."""
    cpus: float | None = None
    """CPUs that each host may use; None is all that there are."""
    memory: float | None = None
    """GiB of memory that each host may use; None is all that there is."""
    steps: tuple[StepPlan, ...] = ()
    """What runs in the place of one command."""
    spare_hosts: int = 0
    """How many more hosts there is room for than there are, to take the places of those that are lost."""
    hosts_per_node: int = 1
    """How many of them share a node, where a scheduler grants nodes."""
    local_scratch: str | None = None
    """A folder of each node's own disk for the channels that are fetched, or the node's variable that names it; None
    fetches them once, for all hosts."""
    script: str | None = None
    """What a scheduler is given, where one starts the job."""

    @property
    def decoded(self) -> Hyperparameters:
        """`hyperparameters`, decoded. Raises InvalidArgument for a reserved one that holds what it may not."""
        from ..spec.hyperparameters import decode  # not for the supervisor, which runs what was planned

        return decode(self.hyperparameters)

    @property
    def world_size(self) -> int:
        """The number of processes on all hosts together."""
        return len(self.ranks)

    @property
    def processes_per_host(self) -> int:
        """The number of processes on each host, the same for all."""
        return len(self.ranks) // len(self.hosts)

    def inherited_from(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Those variables of an environment that the hosts have."""
        if self.inherited == EVERYTHING:
            return dict(environment)
        from fnmatch import fnmatchcase  # for jobs that choose

        return {
            name: value
            for name, value in environment.items()
            if any(fnmatchcase(name, pattern) for pattern in self.inherited)
        }

    def without_secrets(self) -> Plan:
        """The plan as it is shown and kept: without values that are secrets by their name or their form."""
        from estimator_container.logs.masking import in_variables, in_words

        from ..spec.masking import in_document, in_hyperparameters

        return replace(
            self,
            command=in_words(self.command),
            steps=tuple(replace(step, command=in_words(step.command)) for step in self.steps),
            hyperparameters=in_hyperparameters(self.hyperparameters),
            environment=in_variables(self.environment),
            request=in_document(self.request),
        )

    def to_json(self) -> str:
        """Everything, secrets included: for the process that runs it, not for a file."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The way back from `to_json`."""
        values: dict[str, Any] = json.loads(text)
        values["hosts"] = tuple(HostPlan(**{**host, "argv": tuple(host["argv"])}) for host in values["hosts"])
        values["ranks"] = tuple(RankPlan(**rank) for rank in values["ranks"])
        values["channels"] = tuple(ChannelPlan(**channel) for channel in values["channels"])
        values["steps"] = tuple(StepPlan(step["name"], tuple(step["command"])) for step in values["steps"])
        if values.get("restart_policy") is not None:
            values["restart_policy"] = RestartPolicy.from_document(values["restart_policy"])
        tuples = {name: tuple(values[name]) for name in ("command", "model_hosts", "inherited", "image_words")}
        return cls(**{**values, **tuples})

    def __repr__(self) -> str:
        shown = self.without_secrets()
        return f"Plan({', '.join(f'{each.name}={getattr(shown, each.name)!r}' for each in fields(self))})"

    def __str__(self) -> str:
        return "\n".join(_describe(self.without_secrets()))


def _how(channel: ChannelPlan) -> str:
    """What of a channel is not as it is mostly."""
    facts = {
        "a manifest": channel.is_manifest,
        "a share for each host": channel.is_sharded,
        "piped": channel.is_piped,
        "unpacked": channel.is_gzipped and channel.is_piped,
        "as RecordIO": channel.config.get("RecordWrapperType") == "RecordIO",
        f"shuffled by {channel.seed}": channel.seed is not None,
    }
    found = ", ".join(fact for fact, holds in facts.items() if holds)
    return f" ({found})" if found else ""


def _describe(plan: Plan) -> Iterator[str]:
    hosts = f"{len(plan.hosts)} host{'s' if len(plan.hosts) > 1 else ''}"
    yield f"job           {plan.job_name}"
    where = f" in {plan.region}" if plan.region else ""
    yield f"backend       {plan.backend}{where}, {hosts} of {plan.instance_type}"
    if plan.hosts_per_node > 1:
        yield f"              {plan.hosts_per_node} hosts on each node"
    yield f"distribution  {plan.distribution}, {plan.world_size} processes in all"
    if not plan.steps:
        yield f"command       {shlex.join(plan.command)}"
    for step in plan.steps:
        yield f"step          {step.name}: {shlex.join(step.command)}"
    yield f"code          {plan.code or '-'}"
    if plan.code_uri is not None:
        yield f"              kept as {plan.code_uri}"
    if plan.image is not None:
        yield f"image         {plan.image}"
    if plan.image_words:
        yield f"              by {shlex.join(plan.image_words)}"
    if plan.toolkit is not None:
        instead = "" if plan.keeps_entrypoint else ", in the place of the image's ENTRYPOINT"
        yield f"toolkit       {plan.toolkit}{instead}"
    yield f"output        {plan.output_path}"
    yield f"limits        {plan.max_run:g} s to run, {plan.stop_timeout:g} s to stop"
    if plan.cpus is not None:
        yield f"              {plan.cpus:g} CPUs for each host"
    if plan.spare_hosts:
        yield f"spare         {plan.spare_hosts}"
    if plan.memory is not None:
        yield f"              {plan.memory:g} GiB of memory for each host"
    if plan.restart_policy is not None:
        yield f"restarts      {plan.restart_policy}"
    if plan.checkpoint_uri is not None:
        yield f"checkpoints   {plan.checkpoint_path} <-> {plan.checkpoint_uri}, the newest {plan.checkpoint_keep}"
    for channel in plan.channels:
        yield f"channel       {channel.name} <- {channel.source}{_how(channel)}"
    if plan.local_scratch is not None:
        yield f"              fetched to {plan.local_scratch} of each node"
    if plan.inherited:
        named = "all variables of this process" if plan.inherited == EVERYTHING else " ".join(plan.inherited)
        yield f"inherits      {named}"
    for name, value in sorted(plan.environment.items()):
        yield f"environment   {name}={shlex.quote(value)}"
    for host in plan.hosts:
        ranks = [str(each.rank) for each in plan.ranks if each.host == host.name and each.rank is not None]
        runs = f"ranks {', '.join(ranks)}" if ranks else "the script once"
        yield f"host          {host.name} {host.address}: {runs}".replace(" :", ":")
        yield f"              {shlex.join(host.argv)}"
        for name, value in sorted(host.environment.items()):
            yield f"              {name}={shlex.quote(value)}"
    if plan.script is not None:
        yield "submits"
        yield from (f"              {line}" for line in plan.script.splitlines())
