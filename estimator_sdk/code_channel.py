"""The channels that bring the code and the world's secret to instances which only their platform can write to.

SageMaker fetches a job's channels with the job's role, into instances that may have no network, before the image
starts: so neither the toolkit nor the image needs a client of S3, and no credentials.
"""

from __future__ import annotations

import json
from dataclasses import replace

from estimator_container import contract

from .spec import JobSpec


def without(spec: JobSpec) -> JobSpec:
    """The same job with its code named where it is in S3, as a backend of this machine takes it."""
    channels = spec.input_data_config or ()
    hyperparameters = dict(spec.hyperparameters or {})
    for channel in channels:
        source = channel.data_source.s3_data_source
        if channel.channel_name == contract.CODE_CHANNEL and source is not None:
            hyperparameters["sagemaker_submit_directory"] = json.dumps(source.s3_uri)
    kept = tuple(channel for channel in channels if channel.channel_name not in contract.OUR_CHANNELS)
    if kept == channels:
        return spec
    return replace(spec, hyperparameters=hyperparameters, input_data_config=kept or None)
