"""The option --backend of the commands that plan a job."""

from __future__ import annotations

from argparse import _ActionsContainer

from ..backends import BUILT_IN


def add(parser: _ActionsContainer, default: str) -> None:
    """Add --backend to a parser or a group of one; `default` says what holds without it."""
    parser.add_argument("--backend", help=f"{', '.join(BUILT_IN)}, or one of another package (default: {default})")
