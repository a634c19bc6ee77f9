"""The host entrypoint: `train`, what a platform runs in a training image."""

from __future__ import annotations

import os
import sys

from .contract import names
from .contract.names import EXIT_FRAMEWORK_ERROR, Layout
from .contract.settings import Settings, gpu_share, read_environment, read_secret
from .failures.kind import of_error
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
    try:
        for folder in layout.written_by_the_job():
            os.makedirs(folder, exist_ok=True)
        os.environ.update(read_environment(layout))
        if names.GPU_SHARE in os.environ:
            from .host import gpus  # few hosts share any

            gpus.take(*gpu_share(os.environ))
        settings = Settings.read(layout, os.environ)
        _keep_descriptors(settings)
        host = Host(HostSpec.from_settings(settings, _secret(settings)), _take_part)
    except (ConfigurationError, OSError) as error:
        Outcome("failed", Verdict(of_error(error), str(error))).write(layout)
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


def _secret(settings: Settings) -> bytes | None:
    """The best that there is; a job of one host asks nobody for one."""
    agreed = read_secret(settings.layout) or common_secret.agree(settings.layout, settings.cluster)
    return agreed or common_secret.of_trusted_network(settings)


def _keep_descriptors(settings: Settings) -> None:
    """What the platform hands to this process is for none of the programs that it starts."""
    for descriptor in (settings.listen_fd, settings.lifeline_fd):
        if descriptor is not None:
            os.set_inheritable(descriptor, False)
