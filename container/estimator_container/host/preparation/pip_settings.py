"""What pip on the user's machine is told of indexes, proxies and certificates, for pip in a container.

The platform leaves it in `Layout.pip_settings`, for no description of the host should show it: index URLs carry
passwords. It is taken out of the file system as it is read, is there for pip alone, and is hidden in what pip says.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from ...logs.masking import HIDDEN, in_text

CERTIFICATES = ("cert", "client-cert")
_LEAST = 4  # characters: a shorter password would hide words that are none
_CONFIG_FILE = "PIP_CONFIG_FILE"
_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")  # what a build that pip starts looks at


@dataclass
class PipDocument:
    """What the platform leaves, as JSON."""

    options: dict[str, list[str]] = field(default_factory=dict)
    """Options of `pip install`, without their dashes."""
    certificates: dict[str, str] = field(default_factory=dict)
    """Of CERTIFICATES, what is in the file that the option names."""
    variables: dict[str, str] = field(default_factory=dict)
    netrc: str = ""
    """What .netrc says of the hosts of the indexes, and of no others."""
    left_out: list[str] = field(default_factory=list)
    """A sentence for each thing that a container could not have."""

    def to_json(self) -> str:
        """The settings as JSON, as `read` reads them."""
        return json.dumps({each.name: getattr(self, each.name) for each in fields(PipDocument)})

    @classmethod
    def read(cls, path: str) -> PipDocument:
        """What the file holds, which is removed; nothing without one."""
        try:
            with open(path, encoding="utf-8") as file:
                given = json.load(file)
        except FileNotFoundError:
            return cls()
        os.unlink(path)
        return cls(**{each.name: given[each.name] for each in fields(cls)})


class PipEnvironment(NamedTuple):
    """The environment of pip, and what no line of its output may show."""

    environment: Mapping[str, str]
    secrets: tuple[str, ...]

    def masked(self, line: bytes) -> bytes:
        """A line of output without passwords."""
        text = line.decode("utf-8", "surrogateescape")
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return in_text(text).encode("utf-8", "surrogateescape")


@contextlib.contextmanager
def taken(path: str) -> Iterator[PipEnvironment | None]:
    """The settings that the file holds, which is removed; None without one.

    Certificates and credentials are in a private folder as long as this lasts. A pip configuration file that the job or
    its image names keeps ours out.
    """
    document = PipDocument.read(path)
    for sentence in document.left_out:
        print(sentence, flush=True)
    own = os.environ.get(_CONFIG_FILE)
    holds_any = document.options or document.certificates or document.variables or document.netrc
    if not holds_any or (own and os.path.exists(own)):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="pip-") as folder:
        yield PipEnvironment({**os.environ, **_environment(document, folder)}, _secrets(document))


def _environment(document: PipDocument, folder: str) -> dict[str, str]:
    """Variables for pip; those that the job or its image sets count more."""
    options: dict[str, Sequence[str]] = dict(document.options)
    variables = {name: value for name, value in document.variables.items() if name not in os.environ}
    for name in CERTIFICATES:
        if name in document.certificates:
            options[name] = [_written(folder, f"{name}.pem", document.certificates[name])]
    for name in _CERTIFICATE_VARIABLES:
        if "cert" in options and name not in os.environ:
            variables[name] = options["cert"][0]
    if document.netrc and "NETRC" not in os.environ:
        variables["NETRC"] = _written(folder, "netrc", document.netrc)
    lines = [f"{name} = {_indented(values)}" for name, values in options.items()]
    return {**variables, _CONFIG_FILE: _written(folder, "pip.conf", "\n".join(["[global]", *lines, ""]))}


def _indented(values: Sequence[str]) -> str:
    """Several values stand on lines of their own, each of which is indented."""
    return values[0] if len(values) == 1 else "".join(f"\n    {value}" for value in values)


def _written(folder: str, name: str, text: str) -> str:
    path = os.path.join(folder, name)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _secrets(document: PipDocument) -> tuple[str, ...]:
    """All forms in which a password may be shown, the longest first."""
    words = [word for values in document.options.values() for word in values] + [*document.variables.values()]
    found = {form for word in words for form in _secrets_of(word)}
    tokens = document.netrc.split()
    found |= {value for word, value in zip(tokens[::2], tokens[1::2]) if word == "password"}
    return tuple(sorted((secret for secret in found if len(secret) >= _LEAST), key=len, reverse=True))


def _secrets_of(url: str) -> list[str]:
    user_and_password, at, _ = urlsplit(url).netloc.rpartition("@")
    if not at:
        return []
    user, colon, password = user_and_password.partition(":")
    secret = password if colon else user  # a token in the place of a user
    plain = unquote(user_and_password).encode("utf-8", "surrogateescape")
    return [secret, unquote(secret), base64.b64encode(plain).decode()]
