"""What AWS answers when it does not do what it was asked to, in sentences that say what to do.

The codes are those of "Common Error Types" in the SageMaker API reference and of CreateTrainingJob, and those that the
other services use for the same.
"""

from __future__ import annotations

import re

from estimator_container.storage.s3.faults import BAD_CREDENTIALS, EXPIRED, HOW_TO_SIGN_IN

from ...errors import BackendError, InvalidArgument

_BAD_CREDENTIALS = {
    *BAD_CREDENTIALS,
    *EXPIRED,
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "UnrecognizedClientException",
}
"""Those of S3, and those that only other services use."""
_DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "403"}
_THROTTLED = {"RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequestsException"}
_ROLE = re.compile(r"assume|\brole\b|PassRole", re.IGNORECASE)


class Refused(BackendError):
    """An answer of a service that says no, with its code."""

    code: str
    """Such as `ResourceInUse`."""
    service_message: str
    was_retried: bool
    """Whether an earlier attempt at the same request may have been done all the same."""

    def __init__(self, sentence: str, code: str, service_message: str, was_retried: bool) -> None:
        super().__init__(sentence)
        self.code = code
        self.service_message = service_message
        self.was_retried = was_retried


def translate(error: Exception, doing: str, region: str) -> BackendError | InvalidArgument:
    """The SDK's error for one of botocore's; `doing` completes "cannot ..."."""
    from botocore import exceptions

    if isinstance(error, exceptions.ClientError):
        return _refused(error.response, doing, region)
    if isinstance(error, exceptions.ParamValidationError):
        return invalid_request(str(error.kwargs.get("report", error)))
    if isinstance(error, (exceptions.NoCredentialsError, exceptions.PartialCredentialsError)):
        return BackendError(f"cannot {doing}: there are no AWS credentials; {HOW_TO_SIGN_IN}")
    if isinstance(error, (exceptions.ConnectionError, exceptions.HTTPClientError)):
        endpoint = error.kwargs.get("endpoint_url") or f"the service in {region}"
        what = str(error).rstrip(".").partition("\n")[0]
        return BackendError(
            f"cannot {doing}: {endpoint} does not answer ({what}); check the network, the region and AWS_ENDPOINT_URL"
        )
    return BackendError(f"cannot {doing}: {str(error).rstrip('.')}; check the AWS settings of this machine")


def invalid_request(report: str) -> InvalidArgument:
    """The error for a request that the service's own model does not allow."""
    lines = "; ".join(line.strip() for line in report.splitlines() if line.strip())
    return InvalidArgument("CreateTrainingJob", f"CreateTrainingJob does not accept the job: {lines}; fix that")


def no_region() -> InvalidArgument:
    """The error for a machine that is told of no region."""
    return InvalidArgument(
        "instance_type",
        "no AWS region is set, so SageMaker cannot be reached; set AWS_REGION, or `region` in the profile, or use "
        "instance_type='local'",
    )


def _refused(response: dict[str, dict[str, str]], doing: str, region: str) -> Refused:
    code = str(response["Error"].get("Code", ""))
    message = str(response["Error"].get("Message", "")).rstrip(".")
    retries = int(response.get("ResponseMetadata", {}).get("RetryAttempts", 0))
    sentence = f"cannot {doing}: {_why(code, message, retries, region)}"
    return Refused(sentence, code, message, retries > 0)


def _why(code: str, message: str, retries: int, region: str) -> str:
    if code == "ResourceLimitExceeded":
        return (
            f"a quota of the account in {region} does not allow it: {message}; use fewer or other instances, or ask "
            "for more under Service Quotas, Amazon SageMaker"
        )
    if code in _BAD_CREDENTIALS:
        return f"AWS refuses the credentials ({code}: {message}); {HOW_TO_SIGN_IN}"
    if code in _DENIED:
        return f"AWS denies it ({message}); grant the credentials that permission, and iam:PassRole for the job's role"
    if code in _THROTTLED:
        return f"AWS is throttling requests, and still was after {retries} retries ({message}); try again later"
    if code == "ValidationException" and _ROLE.search(message):
        return f"{message}; role= must be a role in this account that sagemaker.amazonaws.com may assume"
    return f"{code}: {message}; see the service's documentation"
