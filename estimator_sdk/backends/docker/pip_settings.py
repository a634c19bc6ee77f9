"""What pip of this machine is told of indexes, proxies and certificates, for pip in the containers of a job.

A container knows nothing of this machine's pip configuration, and behind a proxy with an authority of its own it could
install nothing. What says where packages come from, and by which way, is brought; what says how they are installed
(`constraint`, `target`, `user`, …) is this machine's alone. The order of the files, and what counts more, is that of
pip's documentation, "Configuration", of which the sections [global] and [install] and the variables PIP_* are read.
"""

from __future__ import annotations

import configparser
import contextlib
import ipaddress
import netrc
import os
import sys
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from estimator_container.contract.names import Layout
from estimator_container.host.preparation import requirements
from estimator_container.host.preparation.pip_settings import CERTIFICATES, PipDocument

from ..supervised.supervisor import base_directory

_PLACES = ("index-url", "extra-index-url", "find-links")
_OPTIONS = (*_PLACES, *CERTIFICATES, "no-index", "trusted-host", "proxy", "retries", "timeout")
_ALSO_CALLED = {"default-timeout": "timeout", "pypi-url": "index-url"}
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES_OF_REQUESTS = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
_OF_MACHINE = Path("/etc/pip.conf")
_OF_PREFIX = Path(sys.prefix, "pip.conf")
_PACKAGE_FILES = (requirements.FILE, "setup.py", "pyproject.toml")


@dataclass
class PipSettings(PipDocument):
    """The settings that a container gets."""

    folders: dict[str, Path] = field(default_factory=dict)
    """Folders of this machine with packages or an index: path in the container -> path here."""

    @property
    def mounts(self) -> list[tuple[str, str, bool]]:
        """As `container.create` has them."""
        return [(str(here), inside, True) for inside, here in self.folders.items()]

    def write(self, layout: Layout) -> None:
        """Leave it for the toolkit of a host, and make the places of the folders."""
        base_directory.write_pip_settings(layout, self.to_json().encode())
        for inside in self.folders:
            base_directory.make_mount_point(Path(layout.package_folders, Path(inside).name), is_folder=True)


def for_code(bundle: str | None, environment: Mapping[str, str], inside: Layout) -> PipSettings | None:
    """As `of_this_machine`, where pip may run for the code in a bundle; None where it will not."""
    if bundle is None:
        return None
    with tarfile.open(bundle) as archive:
        nothing_to_install = set(_PACKAGE_FILES).isdisjoint(archive.getnames())
    return None if nothing_to_install else of_this_machine(environment, inside)


def of_this_machine(environment: Mapping[str, str], inside: Layout) -> PipSettings:
    """What pip would be told here, where it finds `environment`; `inside` is a container's layout."""
    made = PipSettings()
    given = _configured(environment)
    for name in _PLACES:
        words = [_place(name, word, made, inside) for word in given.get(name, "").split()]
        _set(made, name, [word for word in words if word is not None])
    for name in ("no-index", "retries", "timeout"):
        _set(made, name, [given[name]] if name in given else [])
    _set(made, "trusted-host", given.get("trusted-host", "").split())
    if _is_reachable("proxy", given.get("proxy", ""), made):
        _set(made, "proxy", [given["proxy"]])
    for name in _PROXIES:
        for spelt in (name, name.lower()):
            value = environment.get(spelt, "")
            if name == "NO_PROXY" or _is_reachable(spelt, value, made):
                made.variables |= {spelt: value} if value else {}
    _bring_certificates(made, given, environment)
    made.netrc = _netrc(made, environment)
    return made


def _set(made: PipSettings, name: str, values: list[str]) -> None:
    if values:
        made.options[name] = values


def _configured(environment: Mapping[str, str]) -> dict[str, str]:
    """Every option that is brought, as pip would have it: [install] over [global], and variables over both."""
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for path in _files(environment):
        parser = configparser.RawConfigParser()
        with contextlib.suppress(
            OSError, UnicodeDecodeError, configparser.Error
        ):  # pip here says what is wrong with it
            parser.read(path, encoding="utf-8")
        for section, found in sections.items():
            if parser.has_section(section):
                found.update({_option(name): value for name, value in parser.items(section)})
    variables = {
        _option(name.removeprefix("PIP_")): value
        for name, value in environment.items()
        if name.startswith("PIP_") and value
    }
    merged = {**sections["global"], **sections["install"], **variables}
    return {name: value.strip() for name, value in merged.items() if name in _OPTIONS and value.strip()}


def _option(name: str) -> str:
    """
    >>> _option("--Default_Timeout")
    'timeout'
    """
    option = name.lower().replace("_", "-").removeprefix("--")
    return _ALSO_CALLED.get(option, option)


def _files(environment: Mapping[str, str]) -> list[Path]:
    """pip's configuration files, the one that counts most last."""
    named = environment.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return []
    home = Path(environment.get("HOME") or Path.home())
    shared = (environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    found = [*(Path(folder, "pip", "pip.conf") for folder in shared), _OF_MACHINE]
    if not (named and Path(named).exists()):
        own = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
        found += [home / ".pip" / "pip.conf", own / "pip" / "pip.conf"]
    return [*found, _OF_PREFIX, *([Path(named)] if named else [])]


def _place(option: str, word: str, made: PipSettings, inside: Layout) -> str | None:
    """A place with packages as a container has it; None where it cannot have it."""
    parts = urlsplit(word)
    if parts.scheme and parts.scheme != "file":
        return word if _is_reachable(option, word, made) else None
    here = Path(unquote(parts.path) if parts.scheme else word).expanduser()
    if not here.is_dir():
        made.left_out.append(
            f"pip's {option} {word} is not a folder on the machine that started the job; it is left out"
        )
        return None
    # An index has its files beside it mostly, and its pages link there: `simple` is its name in PEP 503.
    root = here.parent if option != "find-links" and here.name == "simple" else here
    mounts = {path: target for target, path in made.folders.items()}
    target = mounts.get(root) or f"{inside.package_folders}/{len(made.folders)}"
    made.folders[target] = root
    placed = Path(target) / here.relative_to(root)
    return f"file://{placed}" if parts.scheme else str(placed)


def _is_reachable(what: str, url: str, made: PipSettings) -> bool:
    """Whether a URL is there, and leads to another machine than the one that it is read on."""
    if not url:
        return False
    host = (urlsplit(url) if "://" in url else urlsplit(f"//{url}")).hostname or ""
    if _is_loopback(host):
        made.left_out.append(
            f"pip's {what} is at {host} on the machine that started the job, which a container cannot reach"
        )
        return False
    return True


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return host == "localhost"


def _bring_certificates(made: PipSettings, given: Mapping[str, str], environment: Mapping[str, str]) -> None:
    named = {name: given[name] for name in CERTIFICATES if name in given}
    for variable in _CERTIFICATES_OF_REQUESTS:
        if environment.get(variable):
            named.setdefault("cert", environment[variable])
    for name, path in named.items():
        try:
            made.certificates[name] = Path(path).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            made.left_out.append(f"pip's {name} {path} cannot be read: {error}; it is left out")


def _netrc(made: PipSettings, environment: Mapping[str, str]) -> str:
    """The entries of the hosts where packages are, for pip looks there for names and passwords."""
    path = Path(environment.get("NETRC") or Path(environment.get("HOME") or Path.home(), ".netrc"))
    words = (word for name in _PLACES for word in made.options.get(name, ()))
    hosts = {host for word in words if (host := urlsplit(word).hostname) is not None}
    try:
        entries = netrc.netrc(str(path)).hosts if hosts and path.is_file() else {}
    except (OSError, netrc.NetrcParseError) as error:
        made.left_out.append(f"{path} cannot be read: {error}; it is left out")
        return ""
    return "".join(_entries(entries, hosts))


def _entries(entries: Mapping[str, tuple[str | None, str | None, str | None]], hosts: Iterable[str]) -> list[str]:
    found = {host: entries[host] for host in sorted(hosts) if host in entries}
    return [f"machine {host} login {login} password {password}\n" for host, (login, _, password) in found.items()]
