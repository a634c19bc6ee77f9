"""What to run: SageMaker's CreateTrainingJob document as frozen, typed data.

Members, their types and their values are those of the CreateTrainingJob API reference. Members that nothing
here interprets (debugger, profiler, experiment and the like) stay in `other`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from ..values.conform import conform
from .structure import Structure, structure

if TYPE_CHECKING:
    from estimator_container.contract.reserved import Hyperparameters

D = TypeVar("D", bound="JobDocument")

# The members of DescribeTrainingJob's answer that say what happened, not what to do.
_OF_A_RUN = {
    "AutoMLJobArn",
    "BillableTimeInSeconds",
    "BillableTokenCount",
    "CreationTime",
    "DebugRuleEvaluationStatuses",
    "FailureReason",
    "FinalMetricDataList",
    "LabelingJobArn",
    "LastModifiedTime",
    "MlflowDetails",
    "ModelArtifacts",
    "OutputModelPackageArn",
    "ProfilerRuleEvaluationStatuses",
    "ProfilingStatus",
    "ProgressInfo",
    "ResponseMetadata",
    "SecondaryStatus",
    "SecondaryStatusTransitions",
    "TrainingEndTime",
    "TrainingJobArn",
    "TrainingJobStatus",
    "TrainingStartTime",
    "TrainingTimeInSeconds",
    "TuningJobArn",
    "WarmPoolStatus",
}

InputMode = Literal["Pipe", "File", "FastFile"]


@structure
class MetricDefinition(Structure):
    """A metric that is read out of the job's log."""

    name: str
    regex: str
    """Its first group is the metric's value."""


@structure
class AlgorithmSpecification(Structure):
    """The image, and how it is run."""

    training_input_mode: InputMode
    """How channels arrive that do not say it themselves."""
    training_image: str | None = None
    algorithm_name: str | None = None
    metric_definitions: tuple[MetricDefinition, ...] | None = None
    enable_sagemaker_metrics_time_series: bool | None = None
    container_entrypoint: tuple[str, ...] | None = None
    """Replaces the image's ENTRYPOINT and the word `train`."""
    container_arguments: tuple[str, ...] | None = None


@structure
class S3DataSource(Structure):
    """Objects below a URI, or those that a manifest at a URI lists."""

    s3_data_type: Literal["ManifestFile", "S3Prefix", "AugmentedManifestFile", "Converse"]
    s3_uri: str
    """An `s3://` URI; backends on this machine also take `file://`."""
    s3_data_distribution_type: Literal["FullyReplicated", "ShardedByS3Key"] | None = None
    attribute_names: tuple[str, ...] | None = None
    instance_group_names: tuple[str, ...] | None = None


@structure
class FileSystemDataSource(Structure):
    """A folder of a file system in the job's VPC."""

    file_system_id: str
    file_system_access_mode: Literal["rw", "ro"]
    file_system_type: Literal["EFS", "FSxLustre"]
    directory_path: str


@structure
class DataSource(Structure):
    """Where a channel's data is: exactly one of its members."""

    s3_data_source: S3DataSource | None = None
    file_system_data_source: FileSystemDataSource | None = None


@structure
class ShuffleConfig(Structure):
    """The order of a Pipe channel's objects is shuffled anew each epoch."""

    seed: int


@structure
class Channel(Structure):
    """One named input of the job, which arrives below `input/data/<channel_name>`."""

    channel_name: str
    data_source: DataSource
    content_type: str | None = None
    compression_type: Literal["None", "Gzip"] | None = None
    record_wrapper_type: Literal["None", "RecordIO"] | None = None
    input_mode: InputMode | None = None
    """None means the job's `training_input_mode`."""
    shuffle_config: ShuffleConfig | None = None


@structure
class OutputDataConfig(Structure):
    """Where model and outputs go."""

    s3_output_path: str
    """A prefix; the job's name is added to it. Backends on this machine also take `file://`."""
    kms_key_id: str | None = None
    compression_type: Literal["GZIP", "NONE"] | None = None


@structure
class InstanceGroup(Structure):
    """So many instances of one type, in a job of several types."""

    instance_type: str
    instance_count: int
    instance_group_name: str


@structure
class ResourceConfig(Structure):
    """The instances of the job."""

    instance_type: str | None = None
    instance_count: int | None = None
    volume_size_in_gb: int | None = None
    """GB of disk on each instance."""
    volume_kms_key_id: str | None = None
    keep_alive_period_in_seconds: int | None = None
    instance_groups: tuple[InstanceGroup, ...] | None = None
    """In place of `instance_type` and `instance_count`."""
    training_plan_arn: str | None = None


@structure
class VpcConfig(Structure):
    """The network that the instances are attached to."""

    security_group_ids: tuple[str, ...]
    subnets: tuple[str, ...]


@structure
class StoppingCondition(Structure):
    """When the job is ended even if its script is not done."""

    max_runtime_in_seconds: int | None = None
    max_wait_time_in_seconds: int | None = None
    """Of a spot job: its run and all the waiting for capacity."""
    max_pending_time_in_seconds: int | None = None


@structure
class Tag(Structure):
    """A label of the job."""

    key: str
    value: str


@structure
class CheckpointConfig(Structure):
    """Where checkpoints are kept, outside and inside the instance."""

    s3_uri: str
    local_path: str | None = None
    """None means `/opt/ml/checkpoints`."""


@structure
class RetryStrategy(Structure):
    """How often a job is restarted after a failure of the platform."""

    maximum_retry_attempts: int


@structure
class JobDocument(Structure):
    """A complete job: what CreateTrainingJob accepts, and every backend.

    Equal documents make equal specs. Values are read-only and are checked against their types when a spec is
    created; further restrictions of a service (patterns, lengths) are left to the service.
    """

    is_document: ClassVar[bool] = True

    training_job_name: str
    algorithm_specification: AlgorithmSpecification | None = None
    role_arn: str | None = None
    """The service requires it; a job on this machine has none."""
    hyperparameters: Mapping[str, str] | None = None
    """As they are on disk in the container: each value is JSON; reserved names start with `sagemaker_`."""
    input_data_config: tuple[Channel, ...] | None = None
    output_data_config: OutputDataConfig | None = None
    """The service requires it; on this machine None means the job's own folder."""
    resource_config: ResourceConfig | None = None
    vpc_config: VpcConfig | None = None
    stopping_condition: StoppingCondition | None = None
    tags: tuple[Tag, ...] | None = None
    enable_network_isolation: bool | None = None
    enable_inter_container_traffic_encryption: bool | None = None
    enable_managed_spot_training: bool | None = None
    checkpoint_config: CheckpointConfig | None = None
    environment: Mapping[str, str] | None = None
    retry_strategy: RetryStrategy | None = None

    def __repr__(self) -> str:
        """Without secrets: a notebook shows it."""
        from estimator_container.logs.masking import in_variables

        from .masking import in_hyperparameters

        shown = {
            "environment": self.environment and in_variables(self.environment),
            "hyperparameters": self.hyperparameters and in_hyperparameters(self.hyperparameters),
        }
        return self._representation(shown)

    @property
    def decoded(self) -> Hyperparameters:
        """`hyperparameters`, decoded. Raises InvalidArgument for a reserved one that holds what it may not."""
        from .hyperparameters import decode

        return decode(self.hyperparameters or {})

    @property
    def instance_type(self) -> str:
        """That of its first instances; `local` where none is named."""
        resources = self.resource_config or ResourceConfig()
        first = resources.instance_groups[0].instance_type if resources.instance_groups else resources.instance_type
        return first or "local"

    def to_request(self) -> dict[str, Any]:
        """The CreateTrainingJob document, ready for JSON and for boto3's `create_training_job(**request)`."""
        return self.to_document()

    @classmethod
    def from_request(cls: type[D], document: Mapping[str, object]) -> D:
        """The spec of a CreateTrainingJob document; `to_request` returns the same document.

        Raises InvalidArgument, which names the member, for a document with a value of the wrong type.

        >>> spec = JobDocument.from_request({"TrainingJobName": "a", "ResourceConfig": {"InstanceCount": 2}})
        >>> spec.resource_config.instance_count, spec.to_request()["ResourceConfig"]
        (2, {'InstanceCount': 2})
        """
        return cls.from_document(document)

    @classmethod
    def from_description(cls: type[D], answer: Mapping[str, object]) -> D:
        """The spec of a job as DescribeTrainingJob describes it, so that it can be run again anywhere.

        What happened to the job is left out; the description lacks its tags. Raises InvalidArgument as `from_request`.

        >>> answer = {"TrainingJobName": "a", "TrainingJobStatus": "Completed", "RoleArn": "arn:aws:iam::1:role/r"}
        >>> JobDocument.from_description(answer)
        JobDocument(training_job_name='a', role_arn='arn:aws:iam::1:role/r')
        """
        conform(Mapping[str, object], answer, "the description")
        return cls.from_request({member: value for member, value in answer.items() if member not in _OF_A_RUN})
