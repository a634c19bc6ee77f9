"""What a job's supervisor and the keepers of its hosts tell each other."""

from __future__ import annotations

SUPERVISOR = "supervisor"
"""The name by which it proves itself to keepers."""

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
LEAVE = "leave"
"""Remove everything, and end."""

# From a keeper.
ABOUT = "about"
"""What the machine is: its address, and what tells it from others."""
FLUSHED = "flushed"
"""All that has been asked for has been sent."""
ENDED = "ended"
"""The host's toolkit has ended, and all that it has left has been sent: with its exit code."""
NOT_RUN = "not run"
"""It could not be started: with the reason."""
