"""Asking the hosts of a job for a window of their timeline, in their folders; `host.windows` of the toolkit answers."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from pathlib import Path

from estimator_container.contract.names import Layout

from ....errors import EstimatorError
from ....values.home import JobFolder, make_folder, replace_private


def ask(folder: JobFolder, hosts: Collection[str], request: str) -> None:
    """As `RecordsWindows.ask_for_window`."""
    places = {host: _request(folder, host) for host in hosts}
    if any(place.exists() for place in places.values()):
        raise EstimatorError(f"another window of {folder.name} was asked for and has not begun; wait for its end")
    for host, place in places.items():
        try:
            replace_private(place, request)
        except OSError as error:
            withdraw(folder, hosts)
            if isinstance(error, FileNotFoundError):
                why = f"{host} of {folder.name} is not there yet; try again when its ranks train"
            else:
                why = f"{host} cannot be asked: {error}; the job must be your own, on a disk with space"
            raise EstimatorError(why) from None


def withdraw(folder: JobFolder, hosts: Collection[str]) -> None:
    """As `RecordsWindows.withdraw_window`."""
    for host in hosts:
        with contextlib.suppress(OSError):
            _request(folder, host).unlink()


def add_output(folder: JobFolder, host: str, name: str, text: str) -> Path:
    """As `RecordsWindows.add_output`."""
    place = Path(Layout(str(folder.host(host))).output_data, name)
    make_folder(place.parent)
    replace_private(place, text)
    return place


def _request(folder: JobFolder, host: str) -> Path:
    return Path(Layout(str(folder.host(host))).timeline_request)
