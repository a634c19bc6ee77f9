"""Images on the machines of a pool: how Docker runs one there, and what a machine or an image lacks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....errors import BackendError, InvalidArgument
from ....values.standard_streams import Tolerant

if TYPE_CHECKING:
    from ....plan.plan import Plan
    from ...docker.images.look import Inside
    from .connection import Session

_RUN = ("docker", "run", "--rm", "--interactive", "--network=host", "--pull=never", "--log-driver=none")
"""Its network is the machine's, so that hosts find each other at the addresses of their machines."""


def run_words(with_gpus: bool) -> tuple[str, ...]:
    """How the command begins that runs a host in an image on its machine."""
    return (*_RUN, "--gpus=all") if with_gpus else _RUN


def look(session: Session, image: str, words: Sequence[str]) -> Inside:
    """What an image on a machine has, which pulls it if it does not have it; that is said on the standard error.

    Raises BackendError for a machine that cannot run it, with Docker's own words, and InvalidArgument for an image
    whose Python is too old.
    """
    from ...docker.images import needs
    from ...docker.images.look import Inside

    found = session.ask("image", image=image, words=list(words), pulls=False)["inside"]
    if found is None:
        print(f"{session.host}: pulling {image}", file=Tolerant(sys.stderr))
        found = session.ask("image", image=image, words=list(words), pulls=True)["inside"]
    inside = Inside.from_facts(found, keeps_entrypoint=False)
    needs.check_python(image, inside)
    return inside


def checked(session: Session, plan: Plan) -> Inside:
    """What a plan's image has on a machine that can run the plan's hosts in it. Raises BackendError."""
    from ...docker.images import needs

    try:
        inside = look(session, plan.image or "", plan.image_words)
        needs.check(plan, inside)
    except InvalidArgument as error:
        raise BackendError(f"{session.host}: {error}") from None
    return inside
