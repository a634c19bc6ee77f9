import pytest
from estimator_container.storage.errors import (
    AccessDenied,
    BadCredentials,
    Conflict,
    NoCredentials,
    NoSuchBucket,
    NotFound,
    StorageError,
)
from estimator_container.storage.s3.faults import translate
from estimator_container.storage.s3.retry import TransientFault


def answer(status: int, code: str = "", more: str = "") -> Exception:
    body = f"<Error><Code>{code}</Code><Message>why</Message>{more}</Error>" if code else ""
    text = "Error performing GET http://host/b/k in 1ms - Server returned non-2xx"
    return Exception(f"{text} status code: {status} X: {body}")


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, "NoSuchKey", NotFound),
        (404, "", NotFound),
        (404, "NoSuchBucket", NoSuchBucket),
        (403, "AccessDenied", AccessDenied),
        (403, "", AccessDenied),
        (403, "SignatureDoesNotMatch", BadCredentials),
        (403, "InvalidAccessKeyId", BadCredentials),
        (403, "RequestTimeTooSkewed", BadCredentials),
        (400, "ExpiredToken", BadCredentials),
        (401, "", BadCredentials),
        (412, "PreconditionFailed", Conflict),
        (409, "ConditionalRequestConflict", TransientFault),
        (400, "RequestTimeout", TransientFault),
        (429, "", TransientFault),
        (500, "InternalError", TransientFault),
        (503, "SlowDown", TransientFault),
        (501, "NotImplemented", StorageError),
    ],
)
def test_an_answer_of_the_server_is_an_error_of_the_port(status, code, kind):
    error = translate(answer(status, code), "s3://b/k", "b")
    assert type(error) is kind
    assert "\n" not in str(error)
    assert kind is TransientFault or str(error).startswith("s3://b/k")


def test_a_bucket_elsewhere_is_said_with_its_region():
    error = translate(answer(400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"), "s3://b/k", "b")
    assert "set AWS_REGION to eu-west-1" in str(error)


def test_a_fault_of_the_wire_ought_to_pass_and_says_what_it_was():
    text = "Error performing GET http://h/b/k in 1ms - HTTP error: error sending request\n\nDebug: ConnectionRefused"
    error = translate(Exception(text), "s3://b/k", "b")
    assert isinstance(error, TransientFault)
    assert str(error) == "connection refused"
    assert not error.exhausted
    assert translate(Exception("PUT in 3s, after 4 retries, max - HTTP error"), "s3://b/k", "b").exhausted


def test_what_the_client_itself_refuses_does_not_pass():
    assert not isinstance(translate(ValueError("no"), "s3://b/k", "b"), TransientFault)


def test_a_key_that_is_called_credentials_is_no_matter_of_credentials():
    text = "Error performing GET http://h/b/credentials.json in 1ms - HTTP error: error sending request"
    assert isinstance(translate(Exception(text), "s3://b/credentials.json", "b"), TransientFault)


def test_credentials_that_cannot_be_had():
    assert isinstance(translate(Exception("Error getting credentials from metadata"), "s3://b/k", "b"), NoCredentials)
