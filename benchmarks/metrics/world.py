"""S3: how long hosts that are up need to become one world."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from estimator_container.contract.events import PhaseStarted

from .. import jobs, machines
from ..harness import Case, Extent, Metric, Panel, Target, Way

BARE = "mpirun, bare launch agent"
PANEL = Panel("from hosts that are up to all ranks in the world", "hosts", "s", (Target("fit()", BARE, 1.3),))


def ours(count: int) -> float:
    """From when the last host has begun with its world."""
    job, called, returned, _ = jobs.fit(jobs.estimator(jobs.HELLO, count))
    text = b"".join(line.data for line in job.logs(stream="stdout")).decode()
    begun = [event.time for event in jobs.events(job) if event.what == PhaseStarted("world")]
    return jobs.moments(called, returned, text, count).in_world - max(begun)


def by_hand(argv: list[str], count: int) -> float:
    told = jobs.by_hand(argv, count)
    return told.in_world - told.called


def cases(extent: Extent) -> Iterator[Case]:
    with jobs.own_home():
        for count in extent.pick((2, 4, 8, 16), (2, 4)):
            single = jobs.quickest_mpirun(count)
            with machines.hosts(count) as hosts, machines.sshd_on(hosts) as ssh:
                yield Case(
                    (PANEL,),
                    count,
                    (
                        Way("mpirun, one host", "floor", partial(by_hand, single, count)),
                        Way(BARE, "floor", partial(by_hand, hosts.mpirun(hosts.bare_agent), count)),
                        Way("mpirun, ssh", "peer", partial(by_hand, hosts.mpirun(ssh), count), peer="ssh"),
                        Way("fit()", "ours", partial(ours, count)),
                    ),
                )


METRIC = Metric(
    "S3",
    "The world alone",
    "One rank a host; the hosts are processes of one machine with a name each. Ours is timed from when the last host's "
    "toolkit has begun with the "
    "world, the others from the start of mpirun, all until the last rank's MPI_Init has returned. The floors: mpirun "
    "with as many ranks on "
    "one host, which needs no daemon, and mpirun whose launch agent starts each daemon on the spot. The peer is mpirun "
    "over ssh, with an "
    "sshd for each host that waits for it. All have the same flags and variables (ssh brings no variable to a "
    "daemon), so what differs is who starts the daemons, and that a job's mpirun may start before its last host.",
    cases,
    peers=("ssh",),
)
