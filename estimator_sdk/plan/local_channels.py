"""The channels of a job on this machine: what of SageMaker's inputs can be had here, and what not, by name."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from ..errors import InvalidArgument
from ..spec.job_document import Channel, JobDocument, S3DataSource
from ..values import uris
from .plan import ChannelPlan


def plans(spec: JobDocument) -> tuple[ChannelPlan, ...]:
    """Every channel, resolved. Raises InvalidArgument, which names the channel; looks at no object store."""
    algorithm = spec.algorithm_specification
    default = algorithm.training_input_mode if algorithm else "File"
    found = tuple(_plan(channel, channel.input_mode or default) for channel in spec.input_data_config or ())
    for pipe in found:
        for other in found:
            if pipe.is_piped and re.fullmatch(rf"{re.escape(pipe.name)}_\d+", other.name):
                what = f"inputs[{other.name!r}] has the same name as a FIFO of the piped channel {pipe.name!r}"
                raise InvalidArgument(f"inputs[{other.name!r}]", f"{what}; rename one of them")
    return found


def _plan(channel: Channel, mode: str) -> ChannelPlan:
    argument = f"inputs[{channel.channel_name!r}]"
    s3 = channel.data_source.s3_data_source
    if s3 is None:
        raise InvalidArgument(
            argument,
            f"{argument} is on a SageMaker file system, which this backend cannot mount; use an s3:// or file:// URI",
        )
    _check(argument, channel, s3, mode)
    config = {
        "TrainingInputMode": mode,
        "S3DistributionType": s3.s3_data_distribution_type or "FullyReplicated",
        "RecordWrapperType": channel.record_wrapper_type or "None",
        **({"ContentType": channel.content_type} if channel.content_type else {}),
    }
    return ChannelPlan(
        channel.channel_name,
        s3.s3_uri,
        config,
        is_manifest=s3.s3_data_type == "ManifestFile",
        is_gzipped=channel.compression_type == "Gzip",
        seed=channel.shuffle_config.seed if channel.shuffle_config else None,
    )


def _check(argument: str, channel: Channel, s3: S3DataSource, mode: str) -> None:
    sharded = s3.s3_data_distribution_type == "ShardedByS3Key"
    refused = {
        "input_mode 'FastFile', which needs SageMaker's own file system; use 'File' or 'Pipe'": mode == "FastFile",
        f"s3_data_type {s3.s3_data_type!r}, which no backend here reads; use 'S3Prefix' or 'ManifestFile'": (
            s3.s3_data_type not in ("S3Prefix", "ManifestFile")
        ),
        "attribute_names, which belong to an augmented manifest; leave them out": s3.attribute_names is not None,
        "instance_groups, but a job on this machine has none; leave them out": s3.instance_group_names is not None,
        "record_wrapping 'RecordIO', which only works with a pipe; use input_mode='Pipe', or leave it out": (
            mode == "File" and channel.record_wrapper_type == "RecordIO"
        ),
        "shuffle_config, but a folder that is not shared has no order; use input_mode='Pipe', or leave it out": (
            mode == "File" and channel.shuffle_config is not None and not sharded
        ),
    }
    for what, holds in refused.items():
        if holds:
            raise InvalidArgument(argument, f"{argument} asks for {what}")
    uris.check_store(argument, s3.s3_uri)
    if s3.s3_uri.startswith("file://"):
        _check_place(argument, s3.s3_uri, Path(s3.s3_uri.removeprefix("file://")))


def _check_place(argument: str, uri: str, path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidArgument(argument, f"{argument} is {uri}, but nothing is at {path}; check the path") from None
    except OSError as error:
        what = f"{path} cannot be accessed: {(error.strerror or str(error)).lower()}"
        raise InvalidArgument(argument, f"{argument} is {uri}, but {what}; check the path") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InvalidArgument(
            argument, f"{argument} is {uri}, which is neither a file nor a folder; name one, or a folder of files"
        )
