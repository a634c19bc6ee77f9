"""Write what a host finds below its base directory: configuration files, channels, the job's secret."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from estimator_container.contract.names import Layout

from ....plan import host_documents
from ....plan.plan import Plan
from ....values.home import JobFolder, make_folder, write_private
from ..agents import channel_places


def write(plan: Plan, host: str, layout: Layout, interface: str) -> None:
    """Fill the base directory of one host, and make its log file, so that readers can open it."""
    for folder in (layout.config, *layout.written_by_the_job()):
        make_folder(folder)
    _write_json(layout.hyperparameters, dict(plan.hyperparameters))
    _write_json(layout.input_data_config, host_documents.input_data_config(plan))
    _write_json(layout.resource_config, host_documents.resource_config(plan, host, interface))
    if plan.checkpoint_uri is not None:
        _write_json(layout.checkpoint_config, {"LocalPath": plan.checkpoint_path, "S3Uri": plan.checkpoint_uri})
    Path(layout.frames).touch(0o600)


def write_secret(layout: Layout, secret: bytes) -> None:
    """Leave the job's secret for the toolkit, which takes the file away; no other image would."""
    _write_secret(layout.world_secret, secret)


def write_environment(layout: Layout, environment: Mapping[str, str]) -> None:
    """Leave the user's variables for the toolkit, which takes the file away; no description of the host shows them."""
    _write_secret(layout.environment, json.dumps(dict(environment)).encode())


def write_pip_settings(layout: Layout, document: bytes) -> None:
    """Leave what pip is to be told for the toolkit, which takes the file away: URLs of indexes hold passwords."""
    _write_secret(layout.pip_settings, document)


def make_mount_point(place: Path, is_folder: bool) -> None:
    """An empty folder or file that something is mounted over."""
    if is_folder:
        make_folder(place)
    else:
        make_folder(place.parent)
        place.touch(0o600)


def link_channels(plan: Plan, folder: JobFolder, host: str, data: Path) -> None:
    """Put each channel of a host under its name: a folder as a link to it, a file as a link in a folder.

    Nothing is copied, however many hosts read the channel. What was fetched may be on a disk of another machine. Links
    left by a host that never started are replaced.
    """
    for channel in plan.channels:
        source = channel_places.place(channel, folder, host)
        if source is None:
            continue
        place = data / channel.name
        if not channel.is_in_place or source.is_dir():
            _link(place, source)
        else:
            place.mkdir(0o700, exist_ok=True)
            _link(place / source.name, source)


def _link(place: Path, source: Path) -> None:
    place.unlink(missing_ok=True)
    place.symlink_to(source)


def _write_json(path: str, value: object) -> None:
    write_private(path, json.dumps(value))


def _write_secret(path: str, secret: bytes) -> None:
    """No other user may read it, not even for the moment between its creation and a `chmod`.

    One left by a host that never started is replaced.
    """
    Path(path).unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(secret)
