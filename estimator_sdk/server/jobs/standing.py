"""Where the ranks of a job that stands still are: equal stacks folded into one, with who is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from estimator_container.failures.verdict import names_of

if TYPE_CHECKING:
    from estimator_container.contract.events import RanksStand

MOST_GROUPS = 64
"""Different stacks that are shown, those of the fewest ranks first."""
MOST_STACK = 20_000
"""Characters of one of them."""


def folded(event: RanksStand, at: float) -> dict[str, object] | None:
    """What the report of the hosts says, as the API shows it; None for a report that is no such thing.

    The stack that the fewest ranks have comes first: who differs is who is looked for.
    """
    report = event.report if isinstance(event.report, Mapping) else {}
    groups = report.get("groups")
    found = [_group(each) for each in groups] if isinstance(groups, list) else []
    stacks = sorted((each for each in found if each is not None), key=lambda each: int(str(each["count"])))
    if not stacks:
        return None
    return {"time": at, "seconds": event.seconds, "sentence": event.sentence or "", "stacks": stacks[:MOST_GROUPS]}


def _group(group: object) -> dict[str, object] | None:
    if not isinstance(group, Mapping) or not isinstance(group.get("stack"), str):
        return None
    places = [each for each in group.get("ranks") or () if isinstance(each, Mapping)]
    ranks = [each["rank"] for each in places if isinstance(each.get("rank"), int)]
    hosts = [str(each.get("host")) for each in places]
    who = names_of(ranks) if ranks else ", ".join(hosts)
    return {"who": who, "count": len(places), "stack": group["stack"].rstrip("\n")[:MOST_STACK]}
