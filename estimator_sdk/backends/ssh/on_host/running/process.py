"""A host that is a process of its machine."""

from __future__ import annotations

import os
import sys

from estimator_container.contract import names as contract

from .....values.home import cache_folder
from .. import words
from .place import HostPlace, OnGone


class KeptProcess:
    """See `KeptHost`."""

    def __init__(self, settings: words.RunSettings, place: HostPlace) -> None:
        self.stdin = None
        here = {words.PYTHON: sys.executable, words.TOOLKIT: str(place.software / words.TOOLKIT)}
        self.argv = [here.get(word, word) for word in settings.argv]
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SSH_")},
            **settings.environment,
            **place.variables(),
            contract.LIFELINE_FD: str(place.lifeline),
            contract.KEPT_ENVIRONMENTS: str(cache_folder() / "environments"),
        }
        importable = filter(None, (str(place.software), self.environment.get("PYTHONPATH")))
        self.environment["PYTHONPATH"] = os.pathsep.join(importable)  # ranks import the toolkit

    def ended(self, code: int, then: OnGone) -> None:
        then(code, None)  # what cannot be run has been said

    def end(self) -> None:
        """The keeper does."""
