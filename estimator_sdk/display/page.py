"""A job as one piece of HTML, which needs nothing but itself, escapes all it was told, and is bounded in size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from html import escape
from itertools import islice

from . import curve, groups
from .groups import Group
from .log import LAST_LINES, Log
from .series import Series
from .snapshot import JobLink, Snapshot
from .text import duration_of, why_of

LOG_ROOM = 200_000
"""Characters of HTML that all logs take together."""
MEMBERS = 8
"""Logs of a group that have a fold of their own in it."""
LINKS = 64
"""Places of one name that are shown, and how many of them without a fold."""
LINKS_UNFOLDED = 4
METRICS = 50
WHY_ROOM = 8_000
"""Characters of the reason of a failure."""

_STYLE = """
.estimator-job {font: 13px/1.5 system-ui, sans-serif; border: 1px solid rgba(128,128,128,.35); border-radius: 6px;
  padding: 8px 12px; max-width: 72em}
.estimator-job header {display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: baseline}
.estimator-job .status {border-radius: 9px; padding: 0 8px; color: #fff; background: #1f6feb}
.estimator-job[data-status=Completed] .status {background: #1a7f37}
.estimator-job[data-status=Failed] .status {background: #cf222e}
.estimator-job[data-status=Stopped] .status, .estimator-job[data-status=Stopping] .status {background: #8a6100}
.estimator-job ol {display: flex; flex-wrap: wrap; gap: 4px; list-style: none;
  padding: 0 !important; margin: 6px 0 !important}
.estimator-job li.phase {border: 1px solid rgba(128,128,128,.35); border-radius: 9px; padding: 0 8px; margin: 0}
.estimator-job li.phase[data-state=now] {background: rgba(31,111,235,.2)}
.estimator-job small {opacity: .7}
.estimator-job pre {white-space: pre-wrap; overflow-wrap: anywhere; max-height: 24em; overflow: auto; margin: 4px 0;
  padding: 6px; background: rgba(128,128,128,.12); font: 12px/1.4 ui-monospace, monospace; text-align: left}
.estimator-job table {border-collapse: collapse; margin: 6px 0; font: inherit}
.estimator-job td, .estimator-job th {padding: 0 12px 0 0; text-align: left}
.estimator-job td.name {max-width: 24em; overflow-wrap: anywhere}
.estimator-job td.curve {padding-right: 16px}
.estimator-job svg.curve {display: block}
.estimator-job svg.curve .mean {fill: none; stroke: #1f6feb; stroke-width: 1.5; stroke-linejoin: round}
.estimator-job svg.curve .band {fill: rgba(31,111,235,.25)}
.estimator-job svg.curve circle {fill: #1f6feb}
.estimator-job .odd {color: #cf222e; font-weight: bold}
.estimator-job td.number {font-variant-numeric: tabular-nums; white-space: nowrap}
.estimator-job details details, .estimator-job details > div {margin-left: 16px}
.estimator-job summary {cursor: pointer; padding: 1px 0}
.estimator-job .newest {display: block; margin-left: 14px; overflow: hidden; text-overflow: ellipsis; white-space: pre;
  opacity: .7; font: 12px/1.4 ui-monospace, monospace}
.estimator-job details[open] > summary .newest {display: none}
.estimator-job code {overflow-wrap: anywhere; font-size: 12px}
"""
# A redrawn cell opens what was open. Nothing of the job is in the script; without it, all begins folded. A click counts
# at once: a fold tells that it has opened only later, when the cell may have been drawn anew.
_SCRIPT = """
(function (script) {
  try {
    var root = script.closest(".estimator-job"), kept = window.sessionStorage;
    root.querySelectorAll("details").forEach(function (fold) {
      var key = "estimator-job " + root.dataset.job + " " + fold.dataset.fold, before = kept.getItem(key);
      if (before !== null) fold.open = before === "open";
      function keep(open) { kept.setItem(key, open ? "open" : "folded"); }
      fold.addEventListener("toggle", function () { keep(fold.open); });
      fold.querySelector("summary").addEventListener("click", function () { keep(!fold.open); });
    });
  } catch (error) {}
})(document.currentScript);
"""


def html(snapshot: Snapshot) -> str:
    """The job as a `<div>`. What a script wrote is text in it, whatever it looks like."""
    state = snapshot.state
    body = [_header(snapshot), _phases(snapshot), _notes(snapshot), _why(snapshot), _metrics(snapshot)]
    body += [_logs(snapshot), _links(snapshot)]
    attributes = f'class="estimator-job" data-job="{escape(state.name)}" data-status="{escape(state.status)}"'
    return f"<div {attributes}><style>{_STYLE}</style>{''.join(body)}<script>{_SCRIPT}</script></div>"


def _header(snapshot: Snapshot) -> str:
    state, seconds = snapshot.state, snapshot.seconds
    attempts = f"attempt {len(state.attempts)}" if len(state.attempts) > 1 else ""
    hosts = f"{len(state.hosts)} host{'' if len(state.hosts) == 1 else 's'}"
    facts = [hosts, f"backend {state.backend}", attempts, "" if seconds is None else f"{seconds:.1f} s"]
    shown = "".join(f"<span>{escape(fact)}</span>" for fact in facts if fact)
    return f'<header><b>{escape(state.name)}</b><span class="status">{escape(state.status)}</span>{shown}</header>'


def _phases(snapshot: Snapshot) -> str:
    final = snapshot.state.is_final
    items = [
        f'<li class="phase" data-state="{"done" if final or phase.is_over else "now"}">{escape(name)} '
        f"<small>{escape('' if final and not phase.is_over else duration_of(phase))}</small></li>"
        for name, phase in snapshot.view.phases.items()
    ]
    return f"<ol>{''.join(items)}</ol>" if items else ""


def _notes(snapshot: Snapshot) -> str:
    kept = snapshot.view.kept.checkpoints
    notes = [*snapshot.view.notes, *([f"kept: {kept}"] if kept else [])]
    return "".join(f"<div><small>{escape(note[:1000])}</small></div>" for note in notes)


def _why(snapshot: Snapshot) -> str:
    why = why_of(snapshot)
    if not why:
        return ""
    first, _, rest = why.partition("\n")
    shown = f"<p><b>{escape(first[:WHY_ROOM])}</b></p>"
    detail = rest.strip()[:WHY_ROOM]
    return shown + (_fold("why", "traceback and what to try", _text([detail]), is_open=True) if detail else "")


def _metrics(snapshot: Snapshot) -> str:
    found = list(snapshot.view.metrics.items())
    rows = [_metric(name, series) for name, series in found[:METRICS]]
    heads = "".join(f"<th>{head}</th>" for head in ("metric", "", "last value", "lowest", "highest", "values"))
    more = _more(len(found) - METRICS, "metrics", ".metrics()")
    return f'<table class="metrics"><tr>{heads}</tr>{"".join(rows)}</table>{more}' if rows else ""


def _metric(name: str, series: Series) -> str:
    low, high = series.extremes or (math.nan, math.nan)
    values = f"{series.count}" + (f" <small>from {len(series.newest)} ranks</small>" if len(series.newest) > 1 else "")
    return (
        f'<tr><td class="name">{escape(name)}</td><td class="curve">{curve.svg(name, series)}</td>'
        f'<td class="number">{_newest(series)}</td><td class="number">{low:g}</td>'
        f'<td class="number">{high:g}</td><td class="number">{values}</td></tr>'
    )


def _newest(series: Series) -> str:
    """The newest values of all ranks, from the lowest to the highest."""
    values = list(series.newest.values())
    finite = [value for value in values if math.isfinite(value)]
    shown = [" – ".join(dict.fromkeys([f"{min(finite):g}", f"{max(finite):g}"]))] if finite else []
    odd = [f"{value:g}" for value in values if not math.isfinite(value)]
    if odd:
        who = f" <small>on {len(odd)} of {len(values)} ranks</small>" if len(values) > 1 else ""
        shown.insert(0, f'<span class="odd">{odd[0]}{who}</span>')
    return ", ".join(shown)


def _logs(snapshot: Snapshot) -> str:
    found = groups.grouped(snapshot.view.in_order())
    room = LOG_ROOM // max(1, sum(min(len(group.logs), MEMBERS) for group in found))
    return "".join(_group(group, room) for group in found)


def _group(group: Group, room: int) -> str:
    first, title = group.logs[0], escape(group.title)
    about = group.lines if group.agree else f"{group.lines}, of many kinds"
    if group.behind is not None:
        about = f"{about}, the fewest on {group.behind.name}"
    newest = escape("".join(_last(first, 1000, 1)))
    summary = f'<b>{title}</b> <small>{escape(about)}</small><span class="newest">{newest}</span>'
    if len(group.logs) == 1:
        body = _text(_last(first, room))
    else:
        chosen = _members(group)
        body = "".join(_fold(log.name, escape(_title(log)), _text(_last(log, room))) for log in chosen)
        body += _more(len(group.logs) - len(chosen), "logs", ".logs(rank=…)")
    return _fold(f"group of {first.name}", summary, body)


def _members(group: Group) -> list[Log]:
    """The first, and the one that is behind."""
    first = list(group.logs[:MEMBERS])
    if group.behind is None or group.behind in first:
        return first
    return [*first[:-1], group.behind]


def _title(log: Log) -> str:
    lines = f"{log.count} line{'' if log.count == 1 else 's'}"
    return f"{log.name} – {lines}{f', the last {LAST_LINES}' if log.count > LAST_LINES else ''}"


def _last(log: Log, room: int, most: int | None = None) -> Iterator[str]:
    """The newest lines that have room once they are escaped, at most so many, the oldest of them first."""
    kept: list[str] = []
    for line in islice(reversed(log.newest()), most):
        room -= len(escape(line)) + 1
        if room < 0:
            break
        kept.append(line)
    return reversed(kept)


def _text(lines: Iterable[str]) -> str:
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


def _fold(name: str, summary: str, body: str, is_open: bool = False) -> str:
    """`summary` and `body` are HTML."""
    return (
        f'<details data-fold="{escape(name)}"{" open" if is_open else ""}><summary>{summary}</summary>{body}</details>'
    )


def _links(snapshot: Snapshot) -> str:
    named: dict[str, list[JobLink]] = {}
    for link in snapshot.links:
        named.setdefault(link.name, []).append(link)
    return "".join(
        "".join(map(_link, links))
        if len(links) <= LINKS_UNFOLDED
        else _fold(
            f"places of {name}",
            f"<small>{escape(name)}: {len(links)} places</small>",
            "".join(map(_link, links[:LINKS])) + _more(len(links) - LINKS, "places", ".log_files"),
        )
        for name, links in named.items()
    )


def _link(link: JobLink) -> str:
    place = escape(link.place)
    shown = f'<a href="{escape(link.address)}">{place}</a>' if link.address else place
    return f"<div><small>{escape(link.name)}</small> <code>{shown}</code></div>"


def _more(count: int, what: str, where: str) -> str:
    return f"<div><small>and {count} more {what}: Job{escape(where)}</small></div>" if count > 0 else ""
