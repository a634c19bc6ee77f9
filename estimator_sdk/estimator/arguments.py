"""The arguments of an estimator: every setting of a training job, under the names that SageMaker users know."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from estimator_container.contract import names as contract

from ..backends.slurm.options import SlurmOptions
from ..spec.job_document import InstanceGroup
from ..spec.limits import DEFAULT_MAX_RUN
from ..spec.restart_policy import RestartPolicy

StrPath = str | os.PathLike[str]


@dataclass(kw_only=True, eq=False, repr=False)
class Arguments:
    """The arguments of an estimator. `checks` says which values are allowed, and `document` what they become."""

    entry_point: StrPath | None = None
    """The script: a path in `source_dir`, or without it a file on this machine; None runs the image's own program."""
    source_dir: StrPath | None = None
    """A folder on this machine that becomes the code folder on each instance."""
    dependencies: Sequence[StrPath] = ()
    """Files and folders that are copied into the code folder under their own names."""
    arguments: Sequence[str] | None = None
    """The script's arguments, passed word by word as they are; None derives them from `hyperparameters`."""
    command: Sequence[str] | None = None
    """A program and its arguments, run in `source_dir` instead of an entry point: `["bash", "run.sh", "-v"]`."""
    steps: Sequence[str | Mapping[str, str]] | None = None
    """Shell lines, run in `source_dir` instead of an entry point: `["make", {"name": "fit", "run": "./fit"}]`.
    Every rank runs each line once all ranks have finished the one before; the first line that fails ends the job."""
    image_uri: str | None = None
    """The container image; None runs the script in this Python environment, or with `backend="docker"` in one of our
    images: the plain one with Open MPI and mpi4py, or the one with the framework that the distribution needs."""
    role: str | None = None
    """The job's IAM role; a job on this machine needs none."""
    instance_type: str = "local"
    """`local`, `local_gpu`, `slurm` or `slurm.PARTITION`, `spark`, or a SageMaker training instance type:
    `ml.g5.12xlarge`."""
    instance_count: int = 1
    """The number of hosts."""
    cpus: float | None = None
    """CPUs per host, such as 1.5, if hosts are containers on this machine or nodes of Slurm; None sets no limit."""
    memory: float | None = None
    """GiB of memory per host, if hosts are containers on this machine or nodes of Slurm; None sets no limit."""
    gpus: int | None = None
    """GPUs per host on nodes of Slurm, and by default as many processes of a world; elsewhere the instance type says
    which a host has."""
    distribution: Mapping[str, object] | None = None
    """`{"mpi": {"enabled": True, "processes_per_host": 2}}` runs an MPI world; `torch_distributed` instead sets up the
    ranks as torchrun does, `multi_worker_mirrored_strategy` and `parameter_server` as TensorFlow's strategies of these
    names need them; None runs the script once on each host."""
    hyperparameters: Mapping[str, object] | None = None
    """The script's arguments, passed as `--key value`; any JSON values, at most 100 including the reserved ones."""
    environment: Mapping[str, str] | None = None
    """Environment variables for the script."""
    inherit_environment: bool | Sequence[str] | None = None
    """Which variables of the process that calls `fit()` the script also sees. True means all of them, False those that
    a process needs to start, such as PATH and HOME, and a list of names and patterns, such as `["AWS_*", "HF_TOKEN"]`,
    these in addition. None means True if hosts are processes on this machine, and False otherwise: on Slurm those of
    modules and proxies come along; a container, and a host reached by ssh or on Spark, has its image's or its machine's
    own and gets only named variables; a SageMaker instance cannot inherit any."""
    metric_definitions: Sequence[Mapping[str, str]] | None = None
    """Metrics to read from the log: `[{"Name": "loss", "Regex": "loss: ([0-9.]+)"}]`."""
    input_mode: Literal["File", "Pipe", "FastFile"] = "File"
    """How channels arrive that do not set it themselves."""
    output_path: str | None = None
    """Where `<job name>/output/model.tar.gz` goes, `s3://` or `file://`; None lets the backend choose."""
    output_kms_key: str | None = None
    """The key with which outputs are encrypted; needs `output_path`."""
    code_location: str | None = None
    """Where the code bundle is kept under its hash, `s3://` or `file://`; None lets the backend choose."""
    checkpoint_s3_uri: str | None = None
    """Where checkpoints are kept, `s3://` or `file://`; None keeps none."""
    checkpoint_local_path: str | None = None
    """Where the script writes checkpoints in a container; None means `/opt/ml/checkpoints`. Hosts that are processes
    have no other folder than the one of `SM_CHECKPOINT_DIR`."""
    checkpoint_keep: int | None = None
    """How many of the newest snapshots stay in the store; None means 3."""
    base_job_name: str | None = None
    """The start of job names; None uses the entry point's name."""
    tags: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None
    """Labels: a dict, or a list of `{"Key": ..., "Value": ...}`."""
    max_run: int = DEFAULT_MAX_RUN
    """The number of seconds that the job may run."""
    max_wait: int | None = None
    """The number of seconds that a spot job may take, including waiting for capacity; at least `max_run`."""
    use_spot_instances: bool = False
    """Use SageMaker's spare capacity, which may be taken away again."""
    max_retry_attempts: int | None = None
    """How often the job is restarted after a failure of the platform, 1 to 30; None means never."""
    restart_policy: RestartPolicy | None = None
    """After which failures of the script the job begins again, from its newest snapshot and on the same hosts where
    they are in order: `{"on": ["signal", "deadlock"], "max": 5, "within": 3600, "backoff": 10}` allows 5 restarts (1 to
    1,000) within 3,600 seconds, of which the first waits for 10 seconds (up to 3,600) and each further one twice as
    long. None is after none."""
    spare_hosts: int = 0
    """How many more machines are kept ready, each of which can take the place of a host that is lost; refused by
    backends that have no choice of machines."""
    stop_timeout: float = contract.DEFAULT_STOP_TIMEOUT
    """Seconds between SIGTERM and SIGKILL when the job is stopped; on SageMaker it is always the default."""
    hang_timeout: float = contract.DEFAULT_HANG_TIMEOUT
    """Most seconds without output or progress on any rank before a deadlock is suspected and the job fails; ranks that
    use no CPU may have less, as their earlier silences tell. 0 means never."""
    keep_alive_period_in_seconds: int | None = None
    """Seconds for which instances are kept for the next job, up to 21,600."""
    volume_size: int = 30
    """GB of disk on each instance."""
    volume_kms_key: str | None = None
    """The key with which the disks of the instances are encrypted."""
    subnets: Sequence[str] | None = None
    """Subnets of a VPC; needs `security_group_ids`."""
    security_group_ids: Sequence[str] | None = None
    """Security groups of a VPC; needs `subnets`."""
    encrypt_inter_container_traffic: bool = False
    """Encrypt what instances send each other."""
    enable_network_isolation: bool = False
    """Cut the instances off from every network except the one between them."""
    instance_groups: Sequence[InstanceGroup] | None = None
    """Instances of several types, instead of `instance_type` and `instance_count`; only on SageMaker."""
    instance_placement_config: Mapping[str, object] | None = None
    """`ResourceConfig.InstancePlacementConfig` of CreateTrainingJob; this and the following are for SageMaker."""
    training_plan: str | None = None
    """The ARN of a training plan whose reserved instances are used."""
    model_uri: str | None = None
    """A model to continue from, which arrives as the channel `model_channel_name`."""
    model_channel_name: str = "model"
    """The name of the channel that `model_uri` becomes."""
    container_entry_point: Sequence[str] | None = None
    """Replaces the image's ENTRYPOINT and the word `train`."""
    container_arguments: Sequence[str] | None = None
    """The arguments of `container_entry_point`."""
    training_repository_access_mode: Literal["Platform", "Vpc"] | None = None
    """`Vpc` for an image in a registry in the VPC, not in Amazon ECR."""
    training_repository_credentials_provider_arn: str | None = None
    """A Lambda function that returns the credentials for that registry."""
    disable_output_compression: bool = False
    """Write the model as separate files below the output path; needs `output_path`."""
    enable_sagemaker_metrics: bool | None = None
    """`EnableSageMakerMetricsTimeSeries` of CreateTrainingJob: whether the service keeps the metrics as series."""
    enable_remote_debug: bool = False
    """Whether a shell can be opened in the job's containers, by AWS Systems Manager."""
    enable_infra_check: bool = False
    """Whether the service checks the instances' GPUs and network before the job."""
    enable_session_tag_chaining: bool = False
    """Whether the tags of the session that creates the job are passed to its role."""
    rules: Sequence[Mapping[str, object]] | None = None
    """`DebugRuleConfigurations` of CreateTrainingJob."""
    debugger_hook_config: Mapping[str, object] | bool | None = None
    """`DebugHookConfig` of CreateTrainingJob; False and None mean none."""
    tensorboard_output_config: Mapping[str, object] | None = None
    """`TensorBoardOutputConfig` of CreateTrainingJob."""
    profiler_config: Mapping[str, object] | None = None
    """`ProfilerConfig` of CreateTrainingJob."""
    disable_profiler: bool = False
    """`ProfilerConfig.DisableProfiler` of CreateTrainingJob, in the place of `profiler_config`."""
    container_log_level: int = 20
    """The toolkit's own log level, as a number of Python's `logging`."""
    slurm: SlurmOptions | None = None
    """What of a Slurm cluster the job asks for, such as `{"partition": "gpu", "account": "lab", "gpus_per_node": 4}`:
    see `docs/slurm.md`."""
    hosts: Sequence[str] | str | None = None
    """The machines of a pool that are reached by ssh, such as `["a", "user@b:2222"]` or, with slots, `"a:4,b:4"`."""
    hostfile: StrPath | None = None
    """A file that names them instead, one a line, as Open MPI's hostfiles do: `a slots=4`; see `docs/ssh.md`."""
    queue: bool = False
    """Whether the job waits until its machines have room beside other jobs, by their slots, and is not refused."""
    backend: str | None = None
    """The backend that runs the job, such as `process`; None lets the instance type choose."""
