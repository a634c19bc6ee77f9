"""What the S3 client raises, as errors of the port.

The client gives little more than a text: the status of the answer and its body, in which S3 names the error by a code
(https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html). An answer to HEAD has no body, so no code.
"""

from __future__ import annotations

import re

from ..errors import (
    AccessDenied,
    BadCredentials,
    Conflict,
    InvalidLocation,
    NoCredentials,
    NoSuchBucket,
    NotFound,
    StorageError,
)
from .retry import TransientFault, UploadGone

HOW_TO_SIGN_IN = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the instance or the container a role"
)
HOW_TO_SIGN_IN_AGAIN = (
    "sign in again; the profile that AWS_PROFILE names in the AWS files is read again while a job runs, but "
    "AWS_ACCESS_KEY_ID and AWS_SESSION_TOKEN in the environment stay as they were when the job was started"
)

_STATUS = re.compile(r"status code: (\d{3})")
_ADDRESS = re.compile(r"\w+://\S+")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]+)</Message>")
_INVALID_PATH = re.compile(r'^\s*path: (".*"),$', re.MULTILINE)  # in the client's account of where an error is from
_REGION = re.compile(r"<Region>([\w-]+)</Region>")

BAD_CREDENTIALS = {
    "AuthorizationQueryParametersError",
    "InvalidAccessKeyId",
    "InvalidSecurity",
    "InvalidToken",
    "SignatureDoesNotMatch",
}
EXPIRED = {"ExpiredToken", "TokenRefreshRequired"}
_TRANSIENT_STATUSES = {408, 429, 500, 502, 503, 504}
# An error of two writers at once, an upload whose parts came too slowly, and a sum that does not fit what arrived.
_TRANSIENT_CODES = {"BadDigest", "ConditionalRequestConflict", "OperationAborted", "RequestTimeout", "SlowDown"}
_WRONG_REGION = {"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect"}


def status_of(error: BaseException) -> int | None:
    """The HTTP status of the answer that the error is about, if there was one."""
    found = _STATUS.search(str(error))
    return int(found[1]) if found else None


def has_code(error: BaseException) -> bool:
    """Whether the answer says in a code what is wrong."""
    return _CODE.search(str(error)) is not None


def translate(error: BaseException, where: str, bucket: str) -> StorageError:
    """The port's error for one of the client's, about the object or the prefix at the URI `where`."""
    text = str(error)
    status = status_of(error)
    code, message = _first(_CODE, text), _first(_MESSAGE, text)
    said = ": ".join(part for part in (code, message) if part)
    if status is None and "credential" in _ADDRESS.sub("", text).lower():
        return NoCredentials(f"{where} needs credentials, but none were found{_because(text)}: {HOW_TO_SIGN_IN}")
    if type(error).__name__ == "InvalidPathError":
        key = _first(_INVALID_PATH, text) or "one of them"
        what = f"{where} has an object whose key cannot be a file's path: {key}"
        return InvalidLocation(
            f"{what}; give it a key of names separated by single slashes, without '.', '..' and control characters, or "
            "name a prefix that excludes it"
        )
    if status is None and _is_of_the_client(error):
        return StorageError(f"{where} cannot be used: {text.splitlines()[0].rstrip('.')}")
    if status is None or status in _TRANSIENT_STATUSES or code in _TRANSIENT_CODES:
        return _transient(text, status, said)
    if code == "NoSuchUpload":
        return UploadGone("its multipart upload no longer exists")
    if code == "NoSuchBucket":
        return NoSuchBucket(f"{where} is in the bucket {bucket!r}, which does not exist: check its name and endpoint")
    if code in EXPIRED:
        return BadCredentials(f"{where} refuses credentials that have expired ({said}): {HOW_TO_SIGN_IN_AGAIN}")
    if code in BAD_CREDENTIALS:
        return BadCredentials(f"{where} refuses the credentials ({said}): {HOW_TO_SIGN_IN}")
    if code == "RequestTimeTooSkewed":
        return BadCredentials(f"{where} refuses the time of the request ({said}): set the clock of this machine")
    if code in _WRONG_REGION or status in (301, 307):
        region = _first(_REGION, text) or "the bucket's region"
        return StorageError(f"{where} is in another region ({said or status}): set AWS_REGION to {region}")
    if status == 403:
        return AccessDenied(f"{where} denies access{_in_brackets(said)}: grant the credentials the permission for it")
    if status == 401:
        return BadCredentials(f"{where} refuses the credentials{_in_brackets(said)}: {HOW_TO_SIGN_IN}")
    if status == 404:
        return NotFound(f"{where} does not exist: check the key")
    if status in (409, 412):
        return Conflict(f"{where} does not meet the write's condition, so nothing was written")
    return StorageError(f"{where} answered {status}{_in_brackets(said)}: see the store's documentation")


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""


def _is_of_the_client(error: BaseException) -> bool:
    """Whether the client itself refused, before or after the network: that does not pass."""
    return isinstance(error, (ValueError, TypeError)) or type(error).__name__ in (
        "NotSupportedError",
        "UnknownConfigurationKeyError",
    )


def _transient(text: str, status: int | None, said: str) -> TransientFault:
    reason = f"it answered {status}{_in_brackets(said)}" if status else _because(text).lstrip(": ") or "no answer"
    fault = TransientFault(reason)
    fault.exhausted = re.search(r" after \d+ retries", text) is not None
    return fault


def _because(text: str) -> str:
    """The innermost reason that the client's text gives, in its own words."""
    for name, words in (
        ("ConnectionRefused", "connection refused"),
        ("kind: Timeout", "timed out"),
        ("dns error", "its host name cannot be resolved"),
        ("ConnectionReset", "connection reset"),
        ("IncompleteMessage", "the connection was cut"),
        ("certificate", "its certificate is not trusted"),
    ):
        if name in text:
            return f": {words}"
    first = text.partition("\n")[0].rpartition(" - ")[2]
    return f": {first.lower()}" if first else ""


def _in_brackets(said: str) -> str:
    return f" ({said})" if said else ""
