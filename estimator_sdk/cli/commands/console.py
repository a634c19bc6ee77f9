"""`estimator console`: serve a page that shows the jobs, and open it."""

from __future__ import annotations

import sys
import threading
from argparse import Namespace

from ...errors import EstimatorError
from .. import answer
from ..parser import Parser, port


def add(parser: Parser) -> None:
    parser.add_argument("--port", metavar="N", type=port, default=0, help="the port (default: one that is free)")
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open nothing")
    parser.add_argument(
        "--host", metavar="IP", default="127.0.0.1", help="the address to listen on (default: %(default)s)"
    )
    parser.add_argument(
        "--token-file", metavar="FILE", help="keep the token in this file: with --port the address stays the same"
    )
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name, with its port if it has one, by which a proxy calls the console; may be given several times",
    )


def run(arguments: Namespace) -> int:
    """Serves until Ctrl-C or SIGTERM."""
    try:
        from ...server import serving
    except ModuleNotFoundError as error:
        hint = "install it with `pip install 'estimator-sdk[console]'`"
        raise EstimatorError(f"the console needs the package {error.name}, which is not installed; {hint}") from None
    serving.check_host(arguments.host, arguments.token_file is not None)
    token = serving.token_of(arguments.token_file)

    def ready(address: str) -> None:
        answer.show(arguments, {"address": address}, [address])
        if not arguments.no_browser:  # one in a terminal returns when it is left, and wants to be answered before
            threading.Thread(target=_open, args=(address,), daemon=True).start()

    serving.serve(arguments.host, arguments.port, token, arguments.allow_host, ready)
    return 0


def _open(address: str) -> None:
    import webbrowser

    if not webbrowser.open(address):
        print("estimator console: no browser was found; open the address above yourself", file=sys.stderr)
