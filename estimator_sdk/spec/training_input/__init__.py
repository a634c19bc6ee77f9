"""The inputs of a job: what `fit(inputs=...)` takes, and the channels it becomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ...errors import InvalidArgument
from ...values import uris
from ...values.arguments import named_arguments
from ...values.conform import conform, field_hints
from ...values.naming import shown
from ...values.spark_process import is_frame
from .. import channel_names
from ..job_document import Channel, DataSource, InputMode, S3DataSource, ShuffleConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .dataframe import FrameFiles

DEFAULT_CHANNEL = "training"


@named_arguments
@dataclass(frozen=True)
class TrainingInput:
    """One channel's data and how it arrives. The names are those of the SageMaker SDK.

    Raises InvalidArgument for a value of the wrong type, and for a location that is not an `s3://` or `file://` URI.
    """

    s3_data: str
    """`s3://bucket/prefix`, or `file:///folder` on this machine; a relative `file://./data` is made absolute."""
    distribution: Literal["FullyReplicated", "ShardedByS3Key"] | None = None
    """Whether each host gets all objects (the service's default) or its share of them."""
    compression: Literal["None", "Gzip"] | None = None
    """How the objects are compressed, which arrive uncompressed in `Pipe` mode."""
    content_type: str | None = None
    """The MIME type of the objects, which scripts find in `inputdataconfig.json`."""
    record_wrapping: Literal["None", "RecordIO"] | None = None
    """Whether each object becomes a RecordIO record, in `Pipe` mode."""
    s3_data_type: Literal["ManifestFile", "S3Prefix", "AugmentedManifestFile", "Converse"] = "S3Prefix"
    """What `s3_data` names: a prefix of objects, or a manifest that lists them."""
    instance_groups: Sequence[str] | None = None
    """The names of the instance groups that get this channel; None means all."""
    input_mode: InputMode | None = None
    """None means the estimator's `input_mode`."""
    attribute_names: Sequence[str] | None = None
    """The attributes to read from each line of an augmented manifest, in this order."""
    target_attribute_name: str | None = None
    """Only for AutoML jobs: refused here."""
    shuffle_config: ShuffleConfig | None = None
    """`{"Seed": 1}` has the objects come in another order in each epoch, in `Pipe` mode and by ShardedByS3Key."""
    hub_access_config: Mapping[str, object] | None = None
    """`HubAccessConfig` of CreateTrainingJob; this and the next are used only by SageMaker."""
    model_access_config: Mapping[str, object] | None = None
    """`ModelAccessConfig` of CreateTrainingJob."""

    def __post_init__(self) -> None:
        for name, hint in field_hints(type(self)).items():
            object.__setattr__(self, name, conform(hint, getattr(self, name), name))
        object.__setattr__(self, "s3_data", uris.checked("s3_data", self.s3_data))
        if self.target_attribute_name is not None:
            what = "target_attribute_name is for AutoML jobs; a training job has no such member; leave it out"
            raise InvalidArgument("target_attribute_name", what)

    @staticmethod
    def from_dataframe(
        dataframe: DataFrame,
        path: str,
        distribution: Literal["FullyReplicated", "ShardedByS3Key"] = "ShardedByS3Key",
    ) -> TrainingInput:
        """The rows of a Spark DataFrame as Parquet files, which executors write below `path` when `fit` is called.

        path: an `s3://` URI, or the `file://` URI of a folder that executors and this machine share. The files are in
            a new folder there, which is yours to remove.
        distribution: whether each host gets one of the files or, as `estimator_container.data.Dataset` needs it, all.

        There is one file for each host of the job, with as many row groups for each of its processes; all processes
        have the same number of rows, or one more. They are written once: another job of as many hosts and processes
        gets the same files. Raises InvalidArgument for what is no DataFrame, or no URI.
        """
        from .dataframe import FrameFiles

        return FrameInput(FrameFiles(dataframe, path), distribution)

    def channel(self, name: str) -> Channel:
        """This input as the channel `name`."""
        access = {"HubAccessConfig": self.hub_access_config, "ModelAccessConfig": self.model_access_config}
        source = S3DataSource(
            s3_data_type=self.s3_data_type,
            s3_uri=self.s3_data,
            s3_data_distribution_type=self.distribution,
            attribute_names=None if self.attribute_names is None else tuple(self.attribute_names),
            instance_group_names=None if self.instance_groups is None else tuple(self.instance_groups),
            other={member: value for member, value in access.items() if value is not None},
        )
        return Channel(
            channel_name=name,
            data_source=DataSource(s3_data_source=source),
            content_type=self.content_type,
            compression_type=self.compression,
            record_wrapper_type=self.record_wrapping,
            input_mode=self.input_mode,
            shuffle_config=self.shuffle_config,
        )


class FrameInput(TrainingInput):
    """A channel that is written when a job needs it."""

    def __init__(self, files: FrameFiles, distribution: Literal["FullyReplicated", "ShardedByS3Key"]) -> None:
        super().__init__(files.uri, distribution=distribution, content_type="application/x-parquet")
        self.__dict__["_files"] = files  # the class is frozen

    @property
    def files(self) -> FrameFiles:
        """What is written."""
        found: FrameFiles = self.__dict__["_files"]
        return found


Input = str | TrainingInput
Inputs = Mapping[str, Input] | Input


def channels(inputs: Inputs | None) -> tuple[Channel, ...] | None:
    """The channels of `fit(inputs=...)`: a single input is the channel `training`; a dict names its channels.

    None and an empty dict mean no channels. Raises InvalidArgument, which names the channel.

    >>> [channel.channel_name for channel in channels({"train": "s3://bucket/a", "test": "s3://bucket/b"})]
    ['train', 'test']
    """
    if inputs is None:
        return None
    if not isinstance(inputs, Mapping):
        return (_channel("inputs", DEFAULT_CHANNEL, inputs),)
    return tuple(_channel(f"inputs[{shown(name)}]", name, given) for name, given in inputs.items()) or None


def named(inputs: Inputs | None) -> Iterator[tuple[str, object]]:
    """Each of the inputs, and how messages call it."""
    if isinstance(inputs, Mapping):
        yield from ((f"inputs[{shown(name)}]", given) for name, given in inputs.items())
    elif inputs is not None:
        yield "inputs", inputs


def frames(inputs: Inputs | None) -> Iterator[tuple[str, FrameFiles]]:
    """Those of the inputs that are written when a job needs them, and how messages call each."""
    yield from ((where, given.files) for where, given in named(inputs) if isinstance(given, FrameInput))


def _channel(where: str, name: object, given: object) -> Channel:
    name = channel_names.checked(name, where)
    if isinstance(given, str):
        given = TrainingInput(uris.checked(where, given))
    if not isinstance(given, TrainingInput):
        if is_frame(given):
            hint = "write TrainingInput.from_dataframe(dataframe, 's3://bucket/prefix')"
            raise InvalidArgument(where, f"{where} is a Spark DataFrame, whose rows have to be files for a job; {hint}")
        what = "must be a URI such as 's3://bucket/prefix' or 'file:///folder', or a TrainingInput"
        raise InvalidArgument(where, f"{where} {what}, not {shown(given)} ({type(given).__name__})")
    return given.channel(name)
