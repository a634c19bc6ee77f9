"""Call the function of an image's framework: `python -m …framework_function module:function`."""

from __future__ import annotations

import importlib
import sys


def main() -> None:
    """The command line. Whatever the function raises is the script's failure."""
    module, _, function = sys.argv.pop(1).partition(":")
    getattr(importlib.import_module(module), function)()


if __name__ == "__main__":
    main()
