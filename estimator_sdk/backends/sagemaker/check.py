"""What jobs on SageMaker need on this machine: boto3, a region, credentials."""

from __future__ import annotations

from ...errors import EstimatorError
from ...values.packages import version_of
from ..port import Check, Missing
from .service import new_session, region_of


def _region() -> str:
    fix = "aws configure set region eu-west-1"
    try:
        region = region_of(new_session())
    except EstimatorError as error:
        raise Missing(str(error), "pip install 'estimator-sdk[sagemaker]'") from None
    if region is None:
        raise Missing("no region is set", fix)
    return region


def _credentials() -> str:
    try:
        session = new_session()
    except EstimatorError as error:
        raise Missing(str(error), "pip install 'estimator-sdk[sagemaker]'") from None
    from botocore.exceptions import BotoCoreError

    try:
        found = session.get_credentials()
    except BotoCoreError as error:
        raise Missing(str(error), "aws configure") from None
    if found is None:
        raise Missing("none found in the places where AWS's own tools look", "aws configure")
    return f"from {found.method}"


def _boto3() -> str:
    found = version_of("boto3")
    if found is None:
        raise Missing("the package boto3 is not installed", "pip install 'estimator-sdk[sagemaker]'")
    return found


CHECKS: tuple[Check, ...] = (("boto3", _boto3), ("region", _region), ("credentials", _credentials))
