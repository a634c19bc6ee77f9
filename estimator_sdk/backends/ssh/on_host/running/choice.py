"""What runs a host."""

from __future__ import annotations

from estimator_container.runtime.children import Children

from .. import words
from .place import HostPlace, KeptHost
from .process import KeptProcess


def kept_host(settings: words.RunSettings, place: HostPlace, children: Children) -> KeptHost:
    """A process of the machine or, in a job with an image, a container; nothing is started yet."""
    if settings.image is None:
        return KeptProcess(settings, place)
    from .container import KeptContainer  # most have none

    return KeptContainer(settings, settings.image, place, children)
