"""What jobs on SageMaker need on this machine: boto3, a region, credentials."""

from __future__ import annotations

from ...errors import EstimatorError
from ..packages import package
from ..port import Check, Missing
from .service import new_session, region_of

_INSTALL = "pip install 'estimator-sdk[sagemaker]'"


def _region() -> str:
    fix = "aws configure set region eu-west-1"
    try:
        region = region_of(new_session())
    except EstimatorError as error:
        raise Missing(str(error), _INSTALL) from None
    if region is None:
        raise Missing("no region is set", fix)
    return region


def _credentials() -> str:
    try:
        session = new_session()
    except EstimatorError as error:
        raise Missing(str(error), _INSTALL) from None
    from botocore.exceptions import BotoCoreError

    try:
        found = session.get_credentials()
    except BotoCoreError as error:
        raise Missing(str(error), "aws configure") from None
    if found is None:
        raise Missing("none found in the places where AWS's own tools look", "aws configure")
    return f"from {found.method}"


CHECKS: tuple[Check, ...] = (("boto3", package("boto3", _INSTALL)), ("region", _region), ("credentials", _credentials))
