"""Credentials, region and endpoint, from where every AWS program takes them.

In the order of the AWS SDKs: the environment, a web identity or a container's role, the profile's files, the
instance's role. Profiles that need more than two files (SSO, an assumed role, a process) are left to botocore, if it
is there. See https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html
"""

from __future__ import annotations

import configparser
import contextlib
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Optional

from ..errors import NoCredentials, StorageError
from .faults import HOW_TO_SIGN_IN

_METADATA_HOST = "169.254.169.254"
_METADATA_SECONDS = 1.0  # as botocore waits
_ROLE_VARIABLES = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
# The client takes what ends within so many minutes for old, and asks again with the next request, ten times a second at
# most: fresh credentials are used as soon as they are there.
_TEMPORARY = timedelta(minutes=5)

_Keys = tuple[str, str, Optional[str]]
"""The access key, the secret and the token of a session."""


@dataclass
class AwsSettings:
    """What the S3 client is made with."""

    config: dict[str, Any] = field(default_factory=dict)
    """Region and endpoint."""
    client: dict[str, Any] = field(default_factory=dict)
    """Options of its HTTP client."""
    provider: Callable[[], dict[str, Any]] | None = None
    """Asked for credentials whenever they are needed, where they change."""
    endpoint: str | None = None
    """A server that is not Amazon's."""


def settings(where: str, environment: Mapping[str, str] = os.environ) -> AwsSettings:
    """The settings for the store at the URI `where`. Raises NoCredentials, and does not wait for a metadata service
    where an endpoint that is not Amazon's is set."""
    profile = _Profile(environment)
    found = AwsSettings()
    found.config["region"] = (
        environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or profile.get("region") or "us-east-1"
    )
    found.endpoint = _endpoint(environment, profile)
    if found.endpoint:
        # The path style, which every server understands, is the client's default.
        found.config["endpoint"] = found.endpoint
        found.client["allow_http"] = found.endpoint.startswith("http://")
    bundle = environment.get("AWS_CA_BUNDLE") or profile.get("ca_bundle")
    if bundle and not found.client.get("allow_http"):
        try:
            with open(bundle, "rb") as file:
                found.client["root_certificate"] = file.read()
        except OSError as error:
            raise StorageError(
                f"{where} needs the certificates in {bundle}, which cannot be read "
                f"({error.strerror}): check AWS_CA_BUNDLE"
            ) from error
    _sign_in(found, where, environment, profile)
    return found


def _sign_in(found: AwsSettings, where: str, environment: Mapping[str, str], profile: _Profile) -> None:
    if environment.get("AWS_SKIP_SIGNATURE", "").lower() in ("1", "true"):
        return  # a public bucket
    if environment.get("AWS_ACCESS_KEY_ID") and environment.get("AWS_SECRET_ACCESS_KEY"):
        return  # the client reads them, and AWS_SESSION_TOKEN, by itself
    if any(environment.get(name) for name in _ROLE_VARIABLES):
        return  # the client has providers for these, which renew what they get
    if profile.keys:
        found.provider = _of_files(profile.keys, environment)
        return
    found.provider = _of_botocore()
    if found.provider or (not found.endpoint and _metadata_answers(environment)):
        return
    needs = (
        "" if not profile.exists else f", and the profile {profile.name!r} has no keys that can be read without boto3"
    )
    raise NoCredentials(f"{where} needs credentials, but there are none{needs}: {HOW_TO_SIGN_IN}")


def _endpoint(environment: Mapping[str, str], profile: _Profile) -> str | None:
    """See https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html"""
    ignored = environment.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") or profile.get("ignore_configured_endpoint_urls")
    if (ignored or "").lower() == "true":
        return None
    url = (
        environment.get("AWS_ENDPOINT_URL_S3")
        or environment.get("AWS_ENDPOINT_URL")
        or profile.of_service("s3", "endpoint_url")
        or profile.get("endpoint_url")
    )
    return url.rstrip("/") if url else None


class _Profile:
    """The chosen profile of the two files of AWS programs; what `credentials` says wins over `config`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        home = os.path.expanduser("~/.aws")
        self.name = environment.get("AWS_PROFILE") or environment.get("AWS_DEFAULT_PROFILE") or "default"
        self._config = _read(environment.get("AWS_CONFIG_FILE") or f"{home}/config")
        credentials = _read(environment.get("AWS_SHARED_CREDENTIALS_FILE") or f"{home}/credentials")
        section = self.name if self.name == "default" else f"profile {self.name}"
        self._values = {**_section(self._config, section), **_section(credentials, self.name)}
        self.exists = bool(self._values)

    @property
    def keys(self) -> _Keys | None:
        """Those that the profile itself has."""
        access_key, secret = self.get("aws_access_key_id"), self.get("aws_secret_access_key")
        return (access_key, secret, self.get("aws_session_token")) if access_key and secret else None

    def get(self, name: str) -> str | None:
        return self._values.get(name)

    def of_service(self, service: str, name: str) -> str | None:
        """A value from the section of services that the profile names, where values are nested by indentation."""
        nested = _section(self._config, f"services {self._values.get('services', '')}").get(service, "")
        for line in nested.splitlines():
            key, _, value = line.partition("=")
            if key.strip() == name:
                return value.strip()
        return None


def _read(path: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(default_section="", strict=False)
    # A broken file is botocore's to complain about: its lines may hold secrets.
    with contextlib.suppress(configparser.Error, UnicodeDecodeError):
        parser.read(path, encoding="utf-8")
    return parser


def _section(parser: configparser.RawConfigParser, name: str) -> dict[str, str]:
    return dict(parser.items(name)) if parser.has_section(name) else {}


def _of_files(keys: _Keys, environment: Mapping[str, str]) -> Callable[[], dict[str, Any]]:
    """The keys of the profile as they are now: who signs in again in the middle of a job writes them there."""
    last = keys

    def provide() -> dict[str, Any]:
        nonlocal last
        last = _Profile(environment).keys or last  # while the file is written it may hold none
        return _temporary(*last)

    return provide


def _of_botocore() -> Callable[[], dict[str, Any]] | None:
    """What botocore makes of the environment and the profile, renewed when it has to be."""
    try:
        from botocore.session import Session
    except ImportError:
        return None
    session = Session()

    session.get_component("credential_provider").remove("iam-role")  # the client asks that service itself
    try:
        credentials = session.get_credentials()
    except Exception:  # of a profile that is not there, or half of one: said by the caller, without its content
        return None
    if credentials is None:
        return None

    def provide() -> dict[str, Any]:
        frozen = credentials.get_frozen_credentials()
        return _temporary(frozen.access_key, frozen.secret_key, frozen.token)

    return provide


def _temporary(access_key: str, secret: str, token: str | None) -> dict[str, Any]:
    """Credentials as the client takes them."""
    expires_at = datetime.now(timezone.utc) + _TEMPORARY
    return {"access_key_id": access_key, "secret_access_key": secret, "token": token, "expires_at": expires_at}


def _metadata_answers(environment: Mapping[str, str]) -> bool:
    """Whether there is an instance's metadata service to ask, found out within a second."""
    if environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return False
    try:
        with socket.create_connection((_METADATA_HOST, 80), timeout=_METADATA_SECONDS):
            return True
    except OSError:
        return False
