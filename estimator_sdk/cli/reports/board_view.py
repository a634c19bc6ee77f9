"""The board of a job in a terminal, laid out by `rich`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...values.naming import size
from . import printable

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

    from ...telemetry.board import Board

NOTHING = "–"


def layout(board: Board) -> Group:
    """The board as `rich` shows it."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [Text(_headline(board), style="bold")]
    hosts = ("HOST", "CPU", "MEMORY", "DISK R/W", "NETWORK IN/OUT", "WAITING", "GPU")
    rows = [
        (
            row.host,
            _percent(row.cpu),
            f"{_bytes(row.memory)} of {_bytes(row.memory_limit)}",
            f"{_rate(row.disk_read)} / {_rate(row.disk_write)}",
            f"{_rate(row.receive)} / {_rate(row.transmit)}",
            _percent(row.pressure),
            " ".join(map(_percent, row.gpus)) or NOTHING,
        )
        for row in board.hosts
    ]
    parts.append(_table(hosts, rows))
    if board.ranks:
        names = ("RANK", "HOST", "CPUS", "MEMORY", "THREADS", "DISK", "STEP", *map(printable.one_line, board.metrics))
        of_ranks = [
            (
                NOTHING if row.rank is None else str(row.rank),
                row.host,
                _number(row.cpu, ".2f"),
                _bytes(row.memory),
                _number(row.threads, ".0f"),
                _rate(row.disk),
                _number(row.step, ".0f"),
                *(_number(row.metrics.get(name), ".5g") for name in board.metrics),
            )
            for row in board.ranks
        ]
        parts.append(_table(names, of_ranks))
    return Group(*parts)


def _headline(board: Board) -> str:
    seconds = "" if board.seconds is None else f", {board.seconds:.0f} s"
    attempt = f", attempt {board.attempt}" if board.attempt > 1 else ""
    return f"{board.name}  {board.status}{seconds}{attempt}"


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in names:
        table.add_column(Text(name), justify="left" if name in ("HOST", "RANK") else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.0f} %"


def _bytes(count: float | None) -> str:
    return NOTHING if count is None else size(round(count))


def _rate(count: float | None) -> str:
    return NOTHING if count is None else f"{size(round(count))}/s"


def _number(value: float | None, form: str) -> str:
    return NOTHING if value is None else format(value, form)
