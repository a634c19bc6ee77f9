"""A job as one piece of HTML, which needs nothing but itself, escapes all it was told, and is bounded in size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from .snapshot import Snapshot
from .text import duration_of, why_of
from .view import LAST_LINES, Log

LOG_ROOM = 200_000
"""Characters of HTML that all logs take together."""
FOLDS = 64
"""Logs that have a fold of their own."""
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
.estimator-job table {border-collapse: collapse; margin: 6px 0}
.estimator-job td, .estimator-job th {padding: 0 12px 0 0; text-align: left}
.estimator-job summary {cursor: pointer}
.estimator-job code {overflow-wrap: anywhere; font-size: 12px}
"""
# A redrawn cell opens what was open. Nothing of the job is in the script; without it, all begins folded.
_SCRIPT = """
(function (script) {
  try {
    var root = script.closest(".estimator-job"), kept = window.sessionStorage;
    root.querySelectorAll("details").forEach(function (fold) {
      var key = "estimator-job " + root.dataset.job + " " + fold.dataset.fold, before = kept.getItem(key);
      if (before !== null) fold.open = before === "open";
      fold.addEventListener("toggle", function () { kept.setItem(key, fold.open ? "open" : "folded"); });
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
    return "".join(f"<div><small>{escape(note[:1000])}</small></div>" for note in snapshot.view.notes)


def _why(snapshot: Snapshot) -> str:
    why = why_of(snapshot)
    if not why:
        return ""
    first, _, rest = why.partition("\n")
    shown = f"<p><b>{escape(first[:WHY_ROOM])}</b></p>"
    detail = rest.strip()[:WHY_ROOM]
    return shown + (_fold("why", "traceback and what to try", [detail], is_open=True) if detail else "")


def _metrics(snapshot: Snapshot) -> str:
    found = list(snapshot.view.metrics.items())
    rows = [
        f"<tr><td>{escape(name)}</td><td>{value.last:g}</td><td>{value.count}</td></tr>"
        for name, value in found[:METRICS]
    ]
    head = "<tr><th>metric</th><th>last value</th><th>values</th></tr>"
    more = _more(len(found) - METRICS, "metrics", ".metrics()")
    return f'<table class="metrics">{head}{"".join(rows)}</table>{more}' if rows else ""


def _logs(snapshot: Snapshot) -> str:
    logs = snapshot.view.in_order()
    room = LOG_ROOM // max(1, min(len(logs), FOLDS))
    folds = [_fold(name, _title(name, log), list(_last(log, room))) for name, log in logs[:FOLDS]]
    return "".join(folds) + _more(len(logs) - FOLDS, "logs", ".logs(rank=…)")


def _title(name: str, log: Log) -> str:
    lines = f"{log.count} line{'' if log.count == 1 else 's'}"
    return f"{name} – {lines}{f', the last {LAST_LINES}' if log.count > LAST_LINES else ''}"


def _last(log: Log, room: int) -> Iterator[str]:
    """The newest lines that have room once they are escaped, the oldest of them first."""
    kept: list[str] = []
    for line in reversed(log.newest()):
        room -= len(escape(line)) + 1
        if room < 0:
            break
        kept.append(line)
    return reversed(kept)


def _fold(name: str, title: str, lines: Iterable[str], is_open: bool = False) -> str:
    text = escape("\n".join(lines))
    return (
        f'<details data-fold="{escape(name)}"{" open" if is_open else ""}>'
        f"<summary>{escape(title)}</summary><pre>{text}</pre></details>"
    )


def _links(snapshot: Snapshot) -> str:
    return "".join(
        f"<div><small>{escape(link.name)}</small> <code>"
        + (f'<a href="{escape(link.address)}">{escape(link.place)}</a>' if link.address else escape(link.place))
        + "</code></div>"
        for link in snapshot.links[:FOLDS]
    )


def _more(count: int, what: str, where: str) -> str:
    return f"<div><small>and {count} more {what}: Job{escape(where)}</small></div>" if count > 0 else ""
