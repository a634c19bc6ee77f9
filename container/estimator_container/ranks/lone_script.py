"""Run a Python script or module as `python` would, and write down where its threads are when the toolkit asks.

It takes the same arguments as `script_runner`, for a host whose script is in no world: its failure is shown and ends
the process as usual, exit handlers included.
"""

from __future__ import annotations

import sys

from . import script_runner


def main() -> None:
    """The command line: exits as `python` would for the same program."""
    sys.meta_path.insert(0, script_runner.AtImport(script_runner.leave_stacks_when_asked()))
    try:
        script_runner.run_program(sys.argv[1:])
    except SystemExit:
        raise
    except BaseException as error:
        shown = script_runner.without_our_frames(error.__traceback__ and error.__traceback__.tb_next)
        sys.excepthook(type(error), error.with_traceback(shown), shown)
        sys.excepthook = lambda *_: None  # it has been shown
        raise


if __name__ == "__main__":
    main()
