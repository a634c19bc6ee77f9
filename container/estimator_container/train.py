"""The host entrypoint: `train`, what a platform runs in a training image."""

from __future__ import annotations

import os
import sys

from .contract.configuration import Cluster, read_configuration, read_environment, read_secret
from .contract.names import EXIT_FRAMEWORK_ERROR, LIFELINE_FD, LISTEN_FD, Layout
from .failures.kind import Kind
from .failures.outcome import Outcome
from .failures.verdict import Verdict
from .host.coordination.port import Coordinator, HostPort
from .host.host import Host
from .host.spec import HostSpec
from .mesh import common_secret
from .runtime.errors import ConfigurationError


def main() -> int:
    """Run this host's part of the job; returns 0, 1 (the user's failure), 2 (another) or 143 (stopped)."""
    layout = Layout.from_environment()
    _keep_descriptors()
    try:
        for folder in layout.written_by_the_job():
            os.makedirs(folder, exist_ok=True)
        os.environ.update(read_environment(layout))
        configuration = read_configuration(layout)
        secret = _secret(layout, configuration.cluster)
        host = Host(HostSpec.read(layout, configuration, secret), _take_part)
    except (ConfigurationError, OSError) as error:
        Outcome("failed", Verdict(Kind.CONFIGURATION, str(error))).write(layout)
        sys.stderr.write(f"train: {error}\n")
        return EXIT_FRAMEWORK_ERROR
    return host.run()


def _take_part(host: HostPort) -> Coordinator:
    """As the first host, or as one of the others."""
    if host.spec.leads:
        from .host.coordination.leader import Leader

        return Leader(host)
    from .host.coordination.follower import Follower

    return Follower(host)


def _secret(layout: Layout, cluster: Cluster) -> bytes | None:
    """The best that there is; a job of one host asks nobody for one."""
    return read_secret(layout) or common_secret.agree(layout, cluster) or common_secret.of_trusted_network(cluster)


def _keep_descriptors() -> None:
    """What the platform hands to this process is for none of the programs that it starts."""
    for variable in (LISTEN_FD, LIFELINE_FD):
        if descriptor := os.environ.get(variable):
            os.set_inheritable(int(descriptor), False)
