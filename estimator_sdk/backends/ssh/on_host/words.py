"""What a job's supervisor and the keepers of its hosts tell each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

PYTHON = "python3"
"""Of the command of a host, the interpreter of its machine."""
TOOLKIT = "estimator_container"
"""Of the same, the toolkit where it is on that machine."""
POOL_VARIABLE = "ESTIMATOR_POOL"
"""Of the supervisor's environment: the descriptors of the socket at which keepers find it, and of a file with the
secret and the machines, with a comma between them."""
SUPERVISOR = "supervisor"
"""The name by which it proves itself to keepers."""

FRAMES = "output/logs/frames"
"""The log of a host, below its base directory."""

# From the supervisor.
CLEAR = "clear"
"""Remove a folder below the base directory: its name."""
ITEM = "item"
"""Both ways: a piece of a file, or a folder or a link. With the fields of an item of `trees`."""
TAKEN = "taken"
"""Both ways: one more item has been taken."""
RUN = "run"
"""Start the host: with its settings, as JSON."""
KILL = "kill"
"""End the host's toolkit, and all below it, whatever state it is in."""
FLUSH = "flush"
"""Send what the ranks of the attempt have written, and remove it here."""
AGENT = "agent"
"""Start the agent that publishes the checkpoints of the host: with its settings, as JSON."""
TELL_AGENT = "tell agent"
"""What its owner wants of it, and a value."""
WINDOW = "window"
"""Ask the host for a window of its timeline: with the request, which is empty where there is none any more."""
LEAVE = "leave"
"""Remove everything, and end."""
CLAIM = "claim"
"""Wait for slots of the machine: with the terms, as JSON."""
TAKE = "take"
"""Hold them from now on, if there is room."""
GIVE_BACK = "give back"
"""Wait for them again."""

# From a keeper.
ABOUT = "about"
"""What the machine is: its address, what tells it from others, and where it has the user's files, as `facts.own_home`
says."""
UNFIT = "unfit"
"""In place of that: the machine cannot have a host, with the reason."""
FLUSHED = "flushed"
"""All that has been asked for has been sent."""
ENDED = "ended"
"""The host's toolkit has ended, and all that it has left has been sent: with its exit code, and what of it could not be
read, each with the reason."""
MOST_NAMED = 10
"""Of such things: a message holds so many paths."""
NOT_RUN = "not run"
"""It could not be started: with the reason."""
AGENT_SAYS = "agent says"
"""With a message of the agent."""
AGENT_ENDED = "agent ended"
"""With its exit code."""
ROOM = "room"
"""How the claim on the machine stands: with one of the next three, and who is before this job."""
FREE, FULL, HELD = "free", "full", "held"
ASKED = "asked"
"""What the supervisor knows until it is told one of these."""


def common_folder(mark: str) -> str:
    """The folder that has the same path on all machines of a job with this mark."""
    return f"/tmp/est-{mark}"


class KeeperSettings(NamedTuple):
    """What a keeper is told, as JSON."""

    name: str
    """Its machine's in the mesh."""
    secret: str
    """In hex."""
    supervisor: str
    """Where that listens, as `address:port`."""
    common: str
    """A folder that has the same path on all machines, for mpirun has one command for all of them. Where it has the
    software already, who has started the keeper removes it."""
    address: str = ""
    """By which other machines reach this one; empty where it finds that out itself."""
    search_path: Sequence[str] = ()
    """Where else programs here find packages, such as the client of s3:// stores."""


class RunSettings(NamedTuple):
    """What a keeper is told of its host, as JSON."""

    argv: Sequence[str]
    """The command, with `PYTHON` and `TOOLKIT` for what the machine has."""
    base: str | None
    """The host's base directory, where the supervisor is on the same machine; else it is the keeper's."""
    log: str
    """The file for what the command writes, if so."""
    environment: Mapping[str, str]
    """What the platform tells the toolkit."""
    image: str | None = None
    """The image that it runs in."""
    image_words: Sequence[str] = ()
    """How the command begins that runs it there."""
