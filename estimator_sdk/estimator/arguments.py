"""The arguments of an estimator: every setting of a training job, under the names that SageMaker users know."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from estimator_container.contract import names as contract

from ..spec.job_document import InstanceGroup
from ..spec.limits import DEFAULT_MAX_RUN
from ..spec.restart_policy import RestartPolicy

StrPath = str | os.PathLike[str]


@dataclass(kw_only=True, eq=False, repr=False)
class Arguments:
    """What an estimator is given. `checks` says what each may be, and `document` what it becomes."""

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
    world of torchrun, `multi_worker_mirrored_strategy` and `parameter_server` those of TensorFlow; None is once on
    each host."""
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
    max_run: int = DEFAULT_MAX_RUN
    """Seconds that the job may run."""
    max_wait: int | None = None
    """Seconds that a spot job may take with all its waiting; at least `max_run`."""
    use_spot_instances: bool = False
    max_retry_attempts: int | None = None
    """How often a job that the platform failed is started again, 1 to 30; None is never."""
    restart_policy: RestartPolicy | None = None
    """After which failures of the script the job begins again, from its newest snapshot and on the same hosts where
    they are in order: `{"on": ["signal", "deadlock"], "max": 5, "within": 3600, "backoff": 10}`; None is after none."""
    stop_timeout: float = contract.DEFAULT_STOP_TIMEOUT
    """Seconds between SIGTERM and SIGKILL when the job is stopped; on SageMaker it is always the default."""
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
