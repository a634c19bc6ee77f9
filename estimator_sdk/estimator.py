"""The estimator: every setting of a training job, under the names that SageMaker users know."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from estimator_container.contract import names as contract

from . import command_line, distribution_argument, estimator_checks, service_arguments, steps_argument
from . import hyperparameters as encoding
from . import job_name as job_names
from . import spec as documents
from .arguments import named_arguments
from .sdk_v2_arguments import takes_sdk_v2_arguments
from .source import Source
from .spec import InstanceGroup, JobSpec
from .training_input import Inputs, channels

if TYPE_CHECKING:
    from .job import Job
    from .plan import Plan
    from .progress import Logs

StrPath = str | os.PathLike[str]


@takes_sdk_v2_arguments
@named_arguments
@dataclass(kw_only=True, eq=False, repr=False)
class Estimator:
    """A training job that can be run again and again; `fit()` runs it.

    All arguments are given by name. Each is checked here, before anything starts: an unknown name, a wrong
    type or a value out of range raises InvalidArgument, which names it and, where there is one, the nearest
    right one. Attributes can be changed afterwards and are checked again by `spec()`.
    """

    entry_point: StrPath | None = None
    """The script: a path in `source_dir`, or without it a file of this machine. None: the image's own."""
    source_dir: StrPath | None = None
    """A folder of this machine that becomes the code folder on each instance."""
    dependencies: Sequence[StrPath] = ()
    """Files and folders that are put into the code folder under their own names."""
    arguments: Sequence[str] | None = None
    """The script's arguments, word by word as they are to arrive; None makes them of `hyperparameters`."""
    command: Sequence[str] | None = None
    """A program and its arguments, run in `source_dir` in the place of an entry point: `["bash", "run.sh", "-v"]`."""
    steps: Sequence[str | Mapping[str, str]] | None = None
    """Shell lines, run in `source_dir` in the place of an entry point: `["make", {"name": "fit", "run": "./fit"}]`.
    Every rank runs each of them, once all ranks have ended the one before; the first that fails ends the job."""
    image_uri: str | None = None
    """The container image; None runs the script in this Python environment, or with `backend="docker"` in an image of
    ours: the plain one with Open MPI and mpi4py, or the one whose framework the distribution is of."""
    role: str | None = None
    """The IAM role of the job; a job on this machine needs none."""
    instance_type: str = "local"
    """`local`, `local_gpu`, or a training type of SageMaker such as `ml.g5.12xlarge`."""
    instance_count: int = 1
    """How many hosts."""
    cpus: float | None = None
    """CPUs of each host, such as 1.5, where hosts are containers of this machine; None sets no limit."""
    memory: float | None = None
    """GiB of memory of each host, where hosts are containers of this machine; None sets no limit."""
    distribution: Mapping[str, object] | None = None
    """`{"mpi": {"enabled": True, "processes_per_host": 2}}` runs an MPI world; `torch_distributed` in its place is the
    world of torchrun, and `multi_worker_mirrored_strategy` that of TensorFlow; None is once on each host."""
    hyperparameters: Mapping[str, object] | None = None
    """The script's arguments, `--key value`; any JSON values, at most 100 with the reserved ones."""
    environment: Mapping[str, str] | None = None
    """Variables that the script sees."""
    inherit_environment: bool | Sequence[str] | None = None
    """Which variables of the process that calls `fit()` the script sees besides. True is all of them, False those that
    a process needs to start, such as PATH and HOME, and a list of names and patterns, such as `["AWS_*", "HF_TOKEN"]`,
    these as well. None is True where hosts are processes, and False elsewhere: a container has the PATH and the like of
    its image and gets those that are named, and an instance of SageMaker cannot be given any."""
    metric_definitions: Sequence[Mapping[str, str]] | None = None
    """What to read out of the log: `[{"Name": "loss", "Regex": "loss: ([0-9.]+)"}]`."""
    input_mode: Literal["File", "Pipe", "FastFile"] = "File"
    """How channels arrive that do not say it themselves."""
    output_path: str | None = None
    """Where `<job name>/output/model.tar.gz` goes, `s3://` or `file://`; None leaves it to the backend."""
    output_kms_key: str | None = None
    """The key that outputs are encrypted with; needs `output_path`."""
    code_location: str | None = None
    """Where the code bundle is kept, `s3://` or `file://`, under its hash; None leaves it to the backend."""
    checkpoint_s3_uri: str | None = None
    """Where checkpoints are kept, `s3://` or `file://`; None keeps none."""
    checkpoint_local_path: str | None = None
    """Where the script writes them; None is `/opt/ml/checkpoints`."""
    checkpoint_keep: int | None = None
    """How many of the newest snapshots stay in their store; None is 3."""
    base_job_name: str | None = None
    """The start of the names of jobs; None takes the entry point's name."""
    tags: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None
    """Labels: a dict, or a list of `{"Key": ..., "Value": ...}`."""
    max_run: int = 86400
    """Seconds that the job may run."""
    max_wait: int | None = None
    """Seconds that a spot job may take with all its waiting; at least `max_run`."""
    use_spot_instances: bool = False
    max_retry_attempts: int | None = None
    """How often a job that the platform failed is started again, 1 to 30; None is never."""
    stop_timeout: float = contract.DEFAULT_STOP_TIMEOUT
    """Seconds between SIGTERM and SIGKILL when the job is stopped; on SageMaker it is always 120."""
    hang_timeout: float = contract.DEFAULT_HANG_TIMEOUT
    """Seconds without output in which no rank of an MPI job moves from its line, before a deadlock is suspected and the
    job fails; 0 is never."""
    keep_alive_period_in_seconds: int | None = None
    """How long instances are kept for the next job, up to 21,600."""
    volume_size: int = 30
    """GB of disk on each instance."""
    volume_kms_key: str | None = None
    subnets: Sequence[str] | None = None
    """Subnets of a VPC; needs `security_group_ids`."""
    security_group_ids: Sequence[str] | None = None
    """Security groups of a VPC; needs `subnets`."""
    encrypt_inter_container_traffic: bool = False
    enable_network_isolation: bool = False
    """Cut the instances off from any network but that among themselves."""
    instance_groups: Sequence[InstanceGroup] | None = None
    """Instances of several types, in place of `instance_type` and `instance_count`; on SageMaker only."""
    instance_placement_config: Mapping[str, object] | None = None
    """`ResourceConfig.InstancePlacementConfig` of CreateTrainingJob; this and the following are for SageMaker."""
    training_plan: str | None = None
    """The ARN of a plan whose reserved instances are used."""
    model_uri: str | None = None
    """A model to go on from, which arrives as the channel `model_channel_name`."""
    model_channel_name: str = "model"
    container_entry_point: Sequence[str] | None = None
    """Replaces the image's ENTRYPOINT and the word `train`."""
    container_arguments: Sequence[str] | None = None
    training_repository_access_mode: Literal["Platform", "Vpc"] | None = None
    """`Vpc` for an image in a registry of the VPC, not in Amazon ECR."""
    training_repository_credentials_provider_arn: str | None = None
    """A Lambda function that gives the credentials of that registry."""
    disable_output_compression: bool = False
    """Leave the model as single files below the output path; needs `output_path`."""
    enable_sagemaker_metrics: bool | None = None
    enable_remote_debug: bool = False
    enable_infra_check: bool = False
    enable_session_tag_chaining: bool = False
    rules: Sequence[Mapping[str, object]] | None = None
    """`DebugRuleConfigurations` of CreateTrainingJob."""
    debugger_hook_config: Mapping[str, object] | bool | None = None
    """`DebugHookConfig` of CreateTrainingJob; False and None are none."""
    tensorboard_output_config: Mapping[str, object] | None = None
    """`TensorBoardOutputConfig` of CreateTrainingJob."""
    profiler_config: Mapping[str, object] | None = None
    """`ProfilerConfig` of CreateTrainingJob."""
    disable_profiler: bool = False
    container_log_level: int = 20
    """The toolkit's own log level, in the numbers of Python's `logging`."""
    backend: str | None = None
    """What runs the job, such as `process`; None lets the instance type choose."""

    def __post_init__(self) -> None:
        # What a spec would refuse is refused now, at the line that says it.
        self.spec()

    def __repr__(self) -> str:
        from . import masking

        return masking.representation(self)

    @property
    def source(self) -> Source | None:
        """The user's code; None where the image's own program runs."""
        if self.entry_point is None and self.command is None and self.steps is None:
            return None
        return Source(
            None if self.entry_point is None else os.fspath(self.entry_point),
            None if self.source_dir is None else os.fspath(self.source_dir),
            tuple(os.fspath(dependency) for dependency in self.dependencies),
            None if self.command is None else command_line.script_of(self.command),
        )

    @property
    def training_image(self) -> str | None:
        """The container image of the job; None where it runs in this Python environment."""
        return self.image_uri

    def set_hyperparameters(self, **hyperparameters: object) -> None:
        """Add to the hyperparameters, or replace those of the same names."""
        self.hyperparameters = {**(self.hyperparameters or {}), **hyperparameters}
        self.spec()

    def spec(
        self, inputs: Inputs | None = None, job_name: str | None = None, *, code_uri: str | None = None
    ) -> JobSpec:
        """The job as a CreateTrainingJob document in typed form; `code_uri` is where its code bundle is.

        Looks at no file. Without `job_name` each call makes a new name. Raises InvalidArgument.
        """
        self._check()
        name = self._new_job_name() if job_name is None else job_names.checked(job_name)
        return JobSpec(
            training_job_name=name,
            algorithm_specification=documents.AlgorithmSpecification(
                training_image=self.training_image,
                training_input_mode=self.input_mode,
                metric_definitions=estimator_checks.metric_definitions(self.metric_definitions),
                enable_sagemaker_metrics_time_series=self.enable_sagemaker_metrics,
                container_entrypoint=_tuple(self.container_entry_point),
                container_arguments=_tuple(self.container_arguments),
                other=service_arguments.image_config(self),
            ),
            role_arn=self.role,
            hyperparameters=self._all_hyperparameters(name, code_uri),
            input_data_config=(*(channels(inputs) or ()), *service_arguments.model_channel(self)) or None,
            output_data_config=self._output(),
            resource_config=service_arguments.resources(self),
            vpc_config=self._vpc(),
            stopping_condition=documents.StoppingCondition(
                max_runtime_in_seconds=self.max_run, max_wait_time_in_seconds=self.max_wait
            ),
            tags=estimator_checks.tags(self.tags),
            # False is what an absent member means to the service.
            enable_network_isolation=self.enable_network_isolation or None,
            enable_inter_container_traffic_encryption=self.encrypt_inter_container_traffic or None,
            enable_managed_spot_training=self.use_spot_instances or None,
            checkpoint_config=self._checkpoints(),
            environment=self.environment,
            retry_strategy=self._retries(),
            other=service_arguments.job_members(self),
        )

    def plan(self, inputs: Inputs | None = None, job_name: str | None = None) -> Plan:
        """What `fit()` with the same arguments would run, resolved to the last detail; `print` it to see it.

        Starts nothing. Raises InvalidArgument for what cannot run.
        """
        from . import launch

        name = self._new_job_name() if job_name is None else job_name
        return launch.plan(
            self.source, lambda code: self.spec(inputs, name, code_uri=code), self.backend, self.code_location
        )

    def to_training_job_request(self, inputs: Inputs | None = None, job_name: str | None = None) -> dict[str, Any]:
        """The CreateTrainingJob document that `fit()` on SageMaker sends, with its code already in S3.

        It can be given to `aws sagemaker create-training-job --cli-input-json`, to boto3, or to
        `JobSpec.from_request`, which any backend runs. Starts nothing. Raises InvalidArgument as `plan` does, and
        BackendError where the code cannot be uploaded.
        """
        from . import launch

        name = self._new_job_name() if job_name is None else job_name
        return launch.request(self.source, lambda code: self.spec(inputs, name, code_uri=code), self.code_location)

    def fit(
        self,
        inputs: Inputs | None = None,
        wait: bool = True,
        logs: Logs | bool = "all",
        job_name: str | None = None,
    ) -> Job:
        """Run the job. It is `plan()`, then the start of that very plan.

        inputs: a URI or a TrainingInput, or a dict of them by channel name.
        wait: return at the end of the job; False returns as soon as it is started.
        logs: what to show while waiting: `all`, the lines of `rank0`, or `none`.
        job_name: the job's name; None makes a new one.

        Raises InvalidArgument before anything has started, and JobFailed, which names the first failing rank,
        when a job that is waited for fails. Ctrl-C stops the job in good order.
        """
        from . import launch

        chosen = launch.checked_logs(logs)
        return launch.run(self.plan(inputs, job_name), wait, chosen)

    def _check(self) -> None:
        estimator_checks.check(self)

    def _new_job_name(self) -> str:
        if self.base_job_name is not None:
            return job_names.unique(self.base_job_name)
        program = self.source.program if self.source is not None else None
        if self.command is not None:
            program = command_line.named_by(self.command)
        if self.steps is not None and self.source_dir is not None:
            program = Path(self.source_dir).resolve().name
        if program is not None:
            return job_names.unique(job_names.base_of(PurePosixPath(program).stem))
        image = (self.training_image or "").rpartition("/")[2].partition("@")[0].partition(":")[0]
        return job_names.unique(job_names.base_of(image))

    def _all_hyperparameters(self, name: str, code_uri: str | None) -> dict[str, str]:
        encoded = encoding.encode(self.hyperparameters or {})
        distribution = distribution_argument.parse(self.distribution)
        reserved: dict[str, object] = {}
        # An image with a program of its own may refuse what it does not know.
        if self.source is not None:
            if self.source.program is not None:
                reserved["sagemaker_program"] = self.source.program
            reserved["sagemaker_container_log_level"] = self.container_log_level
            reserved["sagemaker_job_name"] = name
        if code_uri is not None:
            reserved["sagemaker_submit_directory"] = code_uri
        for key, value, default in (
            (contract.STOP_TIMEOUT_HYPERPARAMETER, self.stop_timeout, contract.DEFAULT_STOP_TIMEOUT),
            (contract.HANG_TIMEOUT_HYPERPARAMETER, self.hang_timeout, contract.DEFAULT_HANG_TIMEOUT),
            (contract.CPUS_HYPERPARAMETER, self.cpus, None),
            (contract.MEMORY_HYPERPARAMETER, self.memory, None),
            (contract.CHECKPOINT_KEEP_HYPERPARAMETER, self.checkpoint_keep, None),
            (contract.ARGUMENTS_HYPERPARAMETER, self.arguments, None),
            (contract.COMMAND_HYPERPARAMETER, self.command, None),
            (contract.INHERIT_HYPERPARAMETER, self.inherit_environment, None),
        ):
            if value != default:
                reserved[key] = value
        encoded |= {key: json.dumps(value) for key, value in reserved.items()}
        encoded |= distribution_argument.to_hyperparameters(distribution)
        encoded |= steps_argument.to_hyperparameters(steps_argument.parse(self.steps))
        encoding.check_count(encoded)
        return encoded

    def _output(self) -> documents.OutputDataConfig | None:
        if self.output_path is None:
            return None
        return documents.OutputDataConfig(
            s3_output_path=self.output_path,
            kms_key_id=self.output_kms_key,
            compression_type="NONE" if self.disable_output_compression else None,
        )

    def _vpc(self) -> documents.VpcConfig | None:
        if self.subnets is None or self.security_group_ids is None:
            return None
        return documents.VpcConfig(subnets=tuple(self.subnets), security_group_ids=tuple(self.security_group_ids))

    def _checkpoints(self) -> documents.CheckpointConfig | None:
        if self.checkpoint_s3_uri is None:
            return None
        return documents.CheckpointConfig(s3_uri=self.checkpoint_s3_uri, local_path=self.checkpoint_local_path)

    def _retries(self) -> documents.RetryStrategy | None:
        if self.max_retry_attempts is None:
            return None
        return documents.RetryStrategy(maximum_retry_attempts=self.max_retry_attempts)


def _tuple(given: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if given is None else tuple(given)
