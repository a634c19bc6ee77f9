"""Start a job on its pool: bring what the machines need, the supervisor to the first one, and a keeper to each."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import tarfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from estimator_container.contract.names import SECRET_BYTES

from ...errors import BackendError
from ..packages import needs_client_of_stores
from . import checks
from .files import SshFolder, Whereabouts
from .job import SshJob
from .on_host.words import common_folder
from .pool import PoolHost
from .session.connection import Deliveries, Purpose, Session
from .session.upload import PIECE, Sending

if TYPE_CHECKING:
    from ...plan.plan import Plan

AT_ONCE = 32
"""Machines that are asked at the same time."""
CONNECTED_AT_ONCE = 8
"""Machines that are connected to at the same time. A jump host has a login of each, and OpenSSH's server drops some at
random once ten are under way (`MaxStartups`)."""


def start(plan: Plan) -> SshJob:
    """As `SshBackend.start`."""
    from ...code import store as code_store
    from ..supervised.client import first_record, new_folder
    from ..supervised.job_folder.record import Process, write_record

    code_store.upload(plan.code, plan.code_uri)
    folder, started = SshFolder.for_job(plan.job_name), list[SshJob]()
    try:
        mark = os.urandom(8).hex()  # which nobody who could be there before can know
        keepers = [f"{plan.job_name}.{mark}.{number}" for number, _ in enumerate(checks.machines_of_plan(plan), 1)]
        with sessions(checks.machines_of_plan(plan), _purposes(plan, keepers)) as opened:
            with new_folder(plan, folder):
                client = Process.from_pid(os.getpid())
                write_record(replace(first_record(plan), supervisor=client), folder)  # until it runs
                _start(plan, folder, opened, keepers[0], common_folder(mark))
            started.append(SshJob(folder, opened.pop(0)))  # it goes on being used
    except KeyboardInterrupt:
        for job in started:  # of which nobody has been told yet
            job.stop()
        raise
    except OSError as error:
        what = f"the job {plan.job_name} could not be started: {error}"
        hint = "set ESTIMATOR_HOME to a folder that you can write to, with free space"
        raise BackendError(f"{what}; {hint}") from None
    return started[0]


@contextlib.contextmanager
def sessions(machines: Sequence[PoolHost], purposes: Sequence[Purpose] = ()) -> Iterator[list[Session]]:
    """A session on each machine, many at once, which are closed at the end unless they were taken out of the list.

    Raises BackendError, which names every machine that cannot be reached.
    """
    deliveries = Deliveries()
    given = [*itertools.zip_longest(machines, purposes)]
    opened = on_all(lambda each: Session(each[0], each[1], deliveries), given, CONNECTED_AT_ONCE)
    failed = [each for each in opened if isinstance(each, BackendError)]
    ready = [each for each in opened if isinstance(each, Session)]
    try:
        if failed:
            raise BackendError("; ".join(map(str, failed)))
        yield ready
    finally:
        on_all(Session.close, ready)


def on_all(do: Callable[..., Any], items: Sequence[Any], at_once: int = AT_ONCE) -> list[Any]:
    """What a function gives for each item, called for many at once; a BackendError is what it gives, too."""

    def tried(item: object) -> object:
        try:
            return do(item)
        except BackendError as error:
            return error

    with ThreadPoolExecutor(max(1, min(at_once, len(items)))) as threads:
        return list(threads.map(tried, items))


def _purposes(plan: Plan, keepers: Sequence[str]) -> list[Purpose]:
    first = Purpose(needs_client_of_stores(plan), True, Path(plan.code).name if plan.code else "", keepers[0])
    return [first, *(Purpose(keeper=keeper) for keeper in keepers[1:])]


def _start(plan: Plan, folder: SshFolder, opened: Sequence[Session], kept: str, common: str) -> None:
    """`kept` is the name of the first machine's keeper, and `common` the folder that has one path on all machines."""
    first = opened[0]
    names = [f"machine-{number}" for number in range(1, len(opened) + 1)]
    secret = os.urandom(SECRET_BYTES).hex()
    if plan.image is not None:
        plan = _in_image(plan, opened)
    machines = [{"name": name, "at": str(session.host)} for name, session in zip(names, opened, strict=True)]
    code = _bring_code(plan, first)
    answer = first.ask(
        "supervise",
        plan.to_json().encode(),
        code=code,
        pool={"secret": secret, "machines": machines},
        channels=_bring_channels(plan, first, kept),
        variables={name: value for name, value in os.environ.items() if name.startswith("AWS_")},
    )

    def keep(number: int) -> None:
        told = {"name": names[number], "secret": secret, "supervisor": answer["door"], "common": common}
        opened[number].ask("keep", json.dumps(told).encode())

    try:
        folder.write_whereabouts(Whereabouts(first.host, answer["folder"], plan.output_path))
        failed = [each for each in on_all(keep, range(len(opened))) if isinstance(each, BackendError)]
        if failed:
            raise BackendError("; ".join(map(str, failed)))
    except BaseException:  # a Ctrl-C, too: nobody here knows of the job any more
        try:
            with contextlib.closing(Session(first.host)) as session:
                session.ask("stop", folder=answer["folder"])
        except (BackendError, OSError) as error:
            hint = f"`estimator pool adopt {first.host} {plan.job_name}` makes it known here"
            warnings.warn(f"{plan.job_name} may still run on {first.host}: {error}; {hint}", stacklevel=2)
        raise


def _in_image(plan: Plan, opened: Sequence[Session]) -> Plan:
    """The plan, whose hosts have the image's own PYTHONPATH. Raises BackendError for machines that cannot run it."""
    from .session import images  # most jobs have none

    found = on_all(lambda session: images.checked(session, plan), opened)
    failed = [str(each) for each in found if isinstance(each, BackendError)]
    if failed:
        raise BackendError("; ".join(failed))
    own = {"PYTHONPATH": found[0].search_path} if found[0].search_path else {}
    return replace(plan, hosts=tuple(replace(host, environment={**host.environment, **own}) for host in plan.hosts))


def _bring_code(plan: Plan, first: Session) -> str | None:
    """The name of the code's bundle on the first machine, which has it once."""
    if plan.code is None:
        return None
    path = Path(plan.code)
    if not first.has_code:
        upload = Sending(first, path.name)
        with path.open("rb") as file:
            shutil.copyfileobj(file, upload, PIECE)
        upload.finish()
    return path.name


def _bring_channels(plan: Plan, first: Session, kept: str) -> dict[str, str]:
    """Channel -> the folder or file on the first machine that a channel of this machine was copied to.

    They are below the folder of that machine's keeper, which removes them.
    """
    brought = {}
    for channel in plan.channels:
        if channel.is_in_place:
            source = Path(channel.source.removeprefix("file://"))
            archive = f"{kept}.{channel.name}.tar"
            upload = Sending(first, archive, stays=False)
            with tarfile.open(fileobj=cast("IO[bytes]", upload), mode="w|", dereference=True) as tar:
                tar.add(source, source.name)
            upload.finish()
            answer = first.ask("channel", archive=archive, keeper=kept, name=channel.name)
            brought[channel.name] = str(answer["path"])
    return brought
