"""The steps of Slurm that hosts are: how they are started, and what srun says of their ends."""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from estimator_container.contract import names as contract
from estimator_container.contract.names import EXIT_STOPPED, Layout
from estimator_container.failures.kind import Kind
from estimator_container.failures.verdict import Verdict

from ....errors import BackendError
from ....plan.plan import HostPlan, Plan
from ....values.home import JobFolder
from .. import queue
from ..batch import packages
from .nodes import Node
from .places import Places

_SRUN = ("srun", "--kill-on-bad-exit=0", "--overlap", "--nodes=1", "--ntasks=1", "--export=ALL")
_OF_THIS_SYSTEM: tuple[str, ...] = ("LD_", "PYTHON", "VIRTUAL_ENV")
"""How variables begin that name places of a node's own system, which an image has not."""
_UNREACHED = "srun: error: Task launch for "
"""How srun says that a node does not answer (22.05)."""
_REFUSED = tuple(
    f"srun: error: {words} "
    for words in ("Unable to create step", "Unable to confirm allocation", "Slurm job")  # the last has expired
)
"""How it says that Slurm's controller has not made a step, before it says why (src/srun/allocate.c, 22.05)."""
_NO_ANSWER = (
    *("contact slurm", "timed out", "zero bytes", "connection", "standby mode", "unexpected message"),
    *("message send failure", "message receive failure"),
)
"""Words, in lower case, by which it says that the controller does not answer (src/common/slurm_errno.c, 22.05)."""
LAUNCHES = 30
"""How often a step is tried, at most, while Slurm's controller does not answer."""
LAUNCH_AGAIN_SECONDS = 5.0


def on(node: str, *argv: str, name: str | None = None) -> Sequence[str]:
    """The command that runs another one as a step on a node."""
    named = () if name is None else (f"--job-name={name}",)
    return (*_SRUN, *named, f"--nodelist={node}", *argv)


def kill(number: int, *names: str) -> None:
    """What is frozen does not end with its srun; of a node that is gone, Slurm may not know a step any more."""
    with suppress(BackendError):
        queue.kill_steps(number, *names)


def of_host(plan: Plan, host: HostPlan, node: Node) -> Sequence[str]:
    """The command that runs a host on a node: what takes options of srun, or a program that is given the host's own."""
    return on(node.name, *plan.image_words, *host.argv, name=host.name)


def variables(
    around: Mapping[str, str], plan: Plan, folder: JobFolder, attempt: int, places: Places, host: HostPlan
) -> Mapping[str, str]:
    """The environment of a host: what is `around` it, as far as that fits an image, and what it is told of its place.

    `attempt` is the first one on these hosts.
    """
    around = dict(around) if plan.image is None else _for_images(around)
    if packages.travel_with(plan):  # ranks of a world import the toolkit
        importable = (str(Path(host.argv[3]).parent), around.get("PYTHONPATH"))
        around["PYTHONPATH"] = os.pathsep.join(filter(None, importable))
    return {
        **around,
        **host.environment,
        contract.BASE_DIR_VARIABLE: str(folder.hosts / host.base_dir),
        contract.OVERLAY_DIR: str(folder.overlay(attempt)),
        contract.HOSTS_PER_MACHINE: str(places.hosts_on_machine(host.name)),
        contract.GPU_SHARE: f"{places.slot_of(host.name)}/{plan.hosts_per_node}",
        contract.HOST_ADDRESSES: json.dumps(places.addresses),
        contract.STOP_TIMEOUT: str(plan.stop_timeout),
        contract.JOB_NAME_VARIABLE: plan.job_name,
    }


def _for_images(around: Mapping[str, str]) -> dict[str, str]:
    """With a USER, without which some of what runs images does not start."""
    user = {} if "USER" in around else {"USER": pwd.getpwuid(os.getuid()).pw_name}
    return user | {name: value for name, value in around.items() if not name.startswith(_OF_THIS_SYSTEM)}


def to_remove(node: Node, layout: Layout) -> Iterator[Sequence[str]]:
    """The command that removes what a host that was killed has left on its node besides its own folder, if it has."""
    with suppress(OSError):  # of a host that had not begun
        folders = Path(layout.temporary_folders).read_text(encoding="utf-8").splitlines()
        yield on(node.name, "rm", "-rf", "--", *folders)


def why_not_launched(log: Path, since: int) -> str:
    """What srun has written, after so many bytes of the log, of a task that never began; empty if it did."""
    with suppress(OSError):
        lines = log.read_bytes()[since:].decode(errors="replace").splitlines()
        return next((line for line in lines if line.startswith((_UNREACHED, *_REFUSED))), "")
    return ""


def may_be_launched_later(why: str) -> bool:
    """Whether Slurm's controller has not answered, which says nothing of the node."""
    return why.startswith(_REFUSED) and any(words in why.lower() for words in _NO_ANSWER)


def is_of_ended_job(why: str) -> bool:
    """Whether Slurm has taken the whole job, whose supervisor is about to be told."""
    return why.startswith(_REFUSED) and ("completing" in why or "expired" in why)


def lacks_node(why: str) -> bool:
    """Whether the node does not answer, or no longer belongs to the allocation."""
    return why.startswith(_UNREACHED) or "node" in why.lower()


def without_image(plan: Plan, host: str, node: Node, layout: Layout, log: Path, since: int) -> Verdict | None:
    """Why a host that has ended never began: nobody has taken its secret, so its image was not run.

    What runs images has said why after so many bytes of the log.
    """
    if plan.image is None or not Path(layout.world_secret).exists():
        return None
    with suppress(OSError):
        said = log.read_bytes()[since:].decode(errors="replace").splitlines()
        lines = [line.strip() for line in said if line.strip() and not line.startswith("srun: ")]
        wrong = [line for line in lines if re.search("error|fatal", line, re.IGNORECASE)]
        why = next(iter([*wrong, *lines]), "nothing says why")
        what = f"the image {plan.image} does not run on {node.name}: {why}"
        return Verdict(Kind.IMAGE, f"{what}; see {log}", host)
    return None


def code_of_task(code: int, has_succeeded: bool) -> int:
    """The exit code of a step's task, or minus a signal's number; srun says 128 + N of one that a signal ended.

    Of a step whose node has failed it says 0, as of one that has done well: only that leaves the marker of success.
    """
    if code == 0 and not has_succeeded:
        return -signal.SIGKILL
    return 128 - code if code > 128 and code != EXIT_STOPPED else code
