"""The channels that bring the code and the world's secret to instances which only their platform can write to.

SageMaker fetches a job's channels with the job's role, into instances that may have no network, before the image
starts: so neither the toolkit nor the image needs a client of S3, and no credentials.
"""

from __future__ import annotations

from dataclasses import replace

from estimator_container.contract import names as contract
from estimator_container.contract.names import Layout
from estimator_container.contract.reserved import Reserved

from ..spec.job_document import Channel, JobDocument


def without(spec: JobDocument) -> JobDocument:
    """The same job without these channels, and with its code named where it is in S3, as any backend takes it.

    So it is with the code of other SDKs that comes by a channel of theirs, which is kept.
    """
    channels = spec.input_data_config or ()
    kept = tuple(channel for channel in channels if channel.channel_name not in contract.OUR_CHANNELS)
    code = next(filter(None, (_code_in(channel, spec) for channel in channels)), None)
    hyperparameters = {**(spec.hyperparameters or {}), **Reserved(submit_directory=code).encode()}
    return replace(spec, hyperparameters=hyperparameters or None, input_data_config=kept or None)


def _code_in(channel: Channel, spec: JobDocument) -> str | None:
    """The URI of the job's code, if it comes in a channel."""
    source = channel.data_source.s3_data_source
    if source is None:
        return None
    submitted = spec.decoded.reserved.submit_directory
    place = f"{Layout(contract.DEFAULT_BASE_DIR).data}/{channel.channel_name}/{source.s3_uri.rpartition('/')[2]}"
    return source.s3_uri if channel.channel_name == contract.CODE_CHANNEL or submitted == place else None
