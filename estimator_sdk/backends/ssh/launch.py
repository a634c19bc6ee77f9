"""Start a job on its pool: bring what the machines need, the supervisor to the first one, and a keeper to each."""

from __future__ import annotations

import contextlib
import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_container.contract.names import SECRET_BYTES

from ...errors import BackendError
from . import checks
from .files import SshFolder, Whereabouts
from .job import SshJob
from .pool import PoolHost
from .session.connection import Session

if TYPE_CHECKING:
    from ...plan.plan import Plan

PIECE = 4 << 20
"""Bytes that are sent at once."""
AT_ONCE = 32
"""Machines that are connected to at the same time: a jump host may not take many more."""


def start(plan: Plan) -> SshJob:
    """As `SshBackend.start`."""
    from ...code import store as code_store
    from ..supervised.client import first_record, new_folder
    from ..supervised.job_folder.record import write_record

    code_store.upload(plan.code, plan.code_uri)
    folder = SshFolder.for_job(plan.job_name)
    try:
        with new_folder(plan, folder), _sessions_for(plan) as opened:
            write_record(first_record(plan), folder)
            _start(plan, folder, opened)
    except OSError as error:
        what = f"the job {plan.job_name} could not be started: {error}"
        hint = "set ESTIMATOR_HOME to a folder that you can write to, with free space"
        raise BackendError(f"{what}; {hint}") from None
    return SshJob(folder)


@contextlib.contextmanager
def sessions(machines: Sequence[PoolHost], with_stores: Collection[PoolHost] = ()) -> Iterator[list[Session]]:
    """A session on each machine, all at once. Raises BackendError, which names every one that cannot be reached.

    Those in `with_stores` get the client of s3:// stores, too.
    """
    opened = on_all(lambda machine: Session(machine, machine in with_stores), machines)
    failed = [each for each in opened if isinstance(each, BackendError)]
    ready = [each for each in opened if isinstance(each, Session)]
    try:
        if failed:
            raise BackendError("; ".join(map(str, failed)))
        yield ready
    finally:
        on_all(Session.close, ready)


def on_all(do: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
    """What a function gives for each item, called for many at once; a BackendError is what it gives, too."""

    def tried(item: object) -> object:
        try:
            return do(item)
        except BackendError as error:
            return error

    with ThreadPoolExecutor(max(1, min(AT_ONCE, len(items)))) as threads:
        return list(threads.map(tried, items))


def _sessions_for(plan: Plan) -> contextlib.AbstractContextManager[list[Session]]:
    machines = checks.machines_of_plan(plan)
    uris = (plan.output_path, plan.checkpoint_uri, *(channel.source for channel in plan.channels))
    has_stores = any(uri is not None and not uri.startswith("file://") for uri in uris)
    return sessions(machines, machines[:1] if has_stores else ())


def _start(plan: Plan, folder: SshFolder, opened: Sequence[Session]) -> None:
    first = opened[0]
    mark = os.urandom(8).hex()  # which nobody who could be there before can know
    keepers = [f"{plan.job_name}.{mark}.{number}" for number in range(1, len(opened) + 1)]
    names = [f"machine-{number}" for number in range(1, len(opened) + 1)]
    secret = os.urandom(SECRET_BYTES).hex()
    machines = [{"name": name, "at": str(session.host)} for name, session in zip(names, opened, strict=True)]
    code = _bring_code(plan, first)
    answer = first.ask(
        "supervise",
        plan.to_json().encode(),
        code=code,
        pool={"secret": secret, "machines": machines},
        channels=_bring_channels(plan, first, keepers[0]),
        variables={name: value for name, value in os.environ.items() if name.startswith("AWS_")},
    )
    folder.write_whereabouts(Whereabouts(first.host, answer["folder"], plan.output_path))

    def keep(number: int) -> None:
        told = {"name": names[number], "secret": secret, "supervisor": answer["door"], "common": f"/tmp/est-{mark}"}
        opened[number].ask("keep", json.dumps(told).encode(), name=keepers[number])

    failed = [each for each in on_all(keep, range(len(opened))) if isinstance(each, BackendError)]
    if failed:
        first.ask("stop", folder=answer["folder"])
        raise BackendError("; ".join(map(str, failed)))


def _bring_code(plan: Plan, first: Session) -> str | None:
    """The name of the code's bundle on the first machine, which has it once."""
    if plan.code is None:
        return None
    path = Path(plan.code)
    if not first.ask("has", name=path.name)["has"]:
        _put(path, path.name, first)
    return path.name


def _bring_channels(plan: Plan, first: Session, kept: str) -> dict[str, str]:
    """Channel -> the folder or file on the first machine that a channel of this machine was copied to.

    They are below the folder of that machine's keeper, which removes them.
    """
    brought = {}
    for channel in plan.channels:
        if channel.is_in_place:
            source = Path(channel.source.removeprefix("file://"))
            with tempfile.NamedTemporaryFile(prefix="est-", suffix=".tar") as packed:
                with tarfile.open(fileobj=packed, mode="w", dereference=True) as tar:
                    tar.add(source, source.name)
                packed.flush()
                _put(Path(packed.name), Path(packed.name).name, first)
                answer = first.ask("channel", archive=Path(packed.name).name, keeper=kept, name=channel.name)
            brought[channel.name] = str(answer["path"])
    return brought


def _put(path: Path, name: str, session: Session) -> None:
    with path.open("rb") as file:
        begins = True
        while data := file.read(PIECE):
            session.ask("put", data, name=name, begins=begins, ends=file.tell() == path.stat().st_size)
            begins = False
