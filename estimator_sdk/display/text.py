"""A job as text."""

from __future__ import annotations

from collections import Counter

from ..values.naming import some
from . import groups
from .snapshot import Snapshot
from .view import Phase

SHOWN = 8
"""Ranks and metrics that are named one by one."""


def text(snapshot: Snapshot) -> str:
    """A few lines: state, phases, ranks, metrics, links, and why it ended."""
    lines = [f"{group.title}: {group.lines}" for group in groups.grouped(snapshot.view.in_order())]
    metrics = [f"{name} {each.last:g} ({each.count})" for name, each in snapshot.view.metrics.items()]
    rows = [
        ("phases", ", ".join(f"{name} {duration_of(phase)}" for name, phase in snapshot.view.phases.items())),
        ("lines", some(lines, SHOWN)),
        ("metrics", some(metrics, SHOWN)),
        ("kept", snapshot.view.kept.checkpoints),
        *_places(snapshot),
    ]
    body = [f"  {name:8} {value}" for name, value in rows if value]
    why = [f"  {line}".rstrip() for line in why_of(snapshot).splitlines()]
    return "\n".join([headline(snapshot), *body, *why])


def _places(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Where to look further; of many places of one name the first."""
    named = Counter[str]()
    rows: list[tuple[str, str]] = []
    for link in snapshot.links:
        named[link.name] += 1
        if named[link.name] <= SHOWN:
            rows.append((link.name, link.place))
    return [*rows, *((name, f"and {count - SHOWN} more") for name, count in named.items() if count > SHOWN)]


def headline(snapshot: Snapshot) -> str:
    """Name, state, time and place in one line."""
    state, seconds = snapshot.state, snapshot.seconds
    took = "" if seconds is None else f", {seconds:.1f} s"
    hosts = f"{len(state.hosts)} host{'' if len(state.hosts) == 1 else 's'}"
    return f"{state.name}: {state.status}{took}, {hosts}, backend {state.backend}"


def why_of(snapshot: Snapshot) -> str:
    """Why it ended as it did; empty where there is nothing to say."""
    state = snapshot.state
    return state.verdict.text().rstrip() if state.verdict is not None else state.reason


def duration_of(phase: Phase) -> str:
    """How long a phase took, or how far it is."""
    if not phase.is_over:
        return f"on {len(phase.begun - phase.ended)} of {len(phase.begun)} hosts" if len(phase.begun) > 1 else "…"
    return "done" if phase.seconds is None else f"{phase.seconds:.1f} s"
